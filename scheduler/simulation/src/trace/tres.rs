//! Slurm's trackable resources: `billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1`.

use thiserror::Error;

/// What of a TRES string is used here. Absent amounts are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tres {
    /// `cpu`.
    pub cpus: u64,
    /// `node`.
    pub nodes: u64,
    /// `gres/gpu`, or the sum over `gres/gpu:TYPE` where only those are named.
    pub gpus: u64,
    /// `mem`, in MiB, rounded down.
    pub memory_mib: u64,
}

/// A part of a TRES string that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{part}` is not NAME=AMOUNT")]
pub struct TresProblem {
    /// The part.
    pub part: String,
}

/// Reads a TRES string; names that are not used here are passed over.
pub fn parse_tres(text: &str) -> Result<Tres, TresProblem> {
    let mut tres = Tres::default();
    let (mut untyped, mut typed) = (None, 0);
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let problem = || TresProblem {
            part: part.to_owned(),
        };
        let (name, amount) = part.split_once('=').ok_or_else(problem)?;
        // No cluster has more of anything: what follows may multiply it.
        let count = || amount.parse::<u32>().map(u64::from).map_err(|_| problem());
        match name {
            "cpu" => tres.cpus = count()?,
            "node" => tres.nodes = count()?,
            "mem" => tres.memory_mib = memory_mib(amount).ok_or_else(problem)?,
            "gres/gpu" => untyped = Some(count()?),
            _ if name.starts_with("gres/gpu:") => typed += count()?,
            _ => {}
        }
    }
    // Newer versions name both the total and each type: the total is not added to its parts.
    tres.gpus = untyped.unwrap_or(typed);
    Ok(tres)
}

/// `62.50G`, `31000M`, `1T`, `512K`; without a unit it is MiB.
fn memory_mib(text: &str) -> Option<u64> {
    let unit = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let kib: u128 = match unit {
        "" | "M" => 1 << 10,
        "K" => 1,
        "G" => 1 << 20,
        "T" => 1 << 30,
        "P" => 1 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    u64::try_from(digits.checked_mul(kib)? / scale / 1_024).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_every_unit() {
        let mib = |text: &str| parse_tres(text).map(|tres| tres.memory_mib);
        assert_eq!(mib("mem=31000M"), Ok(31_000));
        assert_eq!(mib("mem=62.50G"), Ok(64_000));
        assert_eq!(mib("mem=2048K"), Ok(2));
        assert_eq!(mib("mem=1T"), Ok(1_048_576));
        assert!(mib("mem=1X").is_err());
    }

    #[test]
    fn an_amount_that_no_cluster_has_is_no_amount() {
        for text in [
            "gres/gpu=18446744073709551615",
            "gres/gpu:a100=18446744073709551615,gres/gpu:v100=1",
            "cpu=4294967296",
            "node=99999999999",
            "gres/gpu=-1",
        ] {
            assert!(parse_tres(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_total_is_not_added_to_its_types() {
        assert_eq!(
            parse_tres("gres/gpu=4,gres/gpu:a100=3,gres/gpu:v100=1").map(|tres| tres.gpus),
            Ok(4)
        );
        assert_eq!(
            parse_tres("gres/gpu:a100=3,gres/gpu:v100=1").map(|tres| tres.gpus),
            Ok(4)
        );
    }

    #[test]
    fn a_part_without_an_amount_is_named() {
        assert_eq!(
            parse_tres("cpu=1,node").unwrap_err().to_string(),
            "`node` is not NAME=AMOUNT"
        );
        assert_eq!(parse_tres("cpu=one").unwrap_err().part, "cpu=one");
    }
}
