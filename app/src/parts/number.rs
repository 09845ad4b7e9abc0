//! Numbers as people read them: thousands apart, decimals as they were given, units quieter. None of them wraps.

use contract::Gpus;

pub use contract::{amount, count, plural, price};

/// GPUs: `1,024`, `0.25`.
pub fn gpus(amount: Gpus) -> String {
    contract::gpus(amount.0)
}

/// Words with their first letter a capital.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A plain decimal rounded half up to `places`, thousands apart; unchanged where it has no more than these.
pub fn rounded(text: &str, places: usize) -> String {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() <= places || !part.is_ascii() {
        return amount(text);
    }
    let kept: Option<i128> = format!("{whole}{}", &part[..places]).parse().ok();
    let up = i128::from(part.as_bytes()[places] >= b'5');
    let Some(kept) = kept else {
        return amount(text);
    };
    let negative = whole.starts_with('-');
    let all = if negative { kept.abs() + up } else { kept + up };
    let scale = 10_i128.pow(u32::try_from(places).unwrap_or(0));
    let sign = if negative && all != 0 { "-" } else { "" };
    if places == 0 {
        amount(&format!("{sign}{all}"))
    } else {
        amount(&format!("{sign}{}.{:0places$}", all / scale, all % scale))
    }
}

/// GPU-hours to four decimals, so that a column adds up.
pub fn gpu_hours(text: &str) -> String {
    amount(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_up_and_never_minus_nought() {
        for (text, places, want) in [
            ("506.9128", 1, "506.9"),
            ("506.9500", 1, "507.0"),
            ("999.96", 1, "1,000.0"),
            ("184903.50", 0, "184,904"),
            ("-0.04", 1, "0.0"),
            ("-12.35", 1, "−12.4"),
            ("7", 1, "7"),
        ] {
            assert_eq!(rounded(text, places), want, "{text}");
        }
    }
}
