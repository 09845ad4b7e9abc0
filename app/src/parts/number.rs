//! Numbers as people read them: thousands apart, decimals as they were given, units quieter. None of them wraps.

use contract::Gpus;
use leptos::prelude::*;

/// A count with thousands apart: `8,200`.
pub fn count(n: u64) -> String {
    contract::reason::count(n)
}

/// GPUs: `1,024`, `0.25`.
pub fn gpus(amount: Gpus) -> String {
    let milli = amount.0.0;
    if milli.is_multiple_of(1_000) {
        count(milli / 1_000)
    } else {
        amount.to_string()
    }
}

/// `1 job`, `2 jobs`, `1,024 jobs`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// The same with its first letter a capital.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A plain decimal with thousands apart and a true minus: `-1220.00` is `−1,220.00`.
pub fn amount(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("−", rest),
        None => ("", text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    let dot = if part.is_empty() { "" } else { "." };
    format!("{sign}{whole}{dot}{part}")
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

/// Money with its currency: `$ 184,903.17`.
pub fn money(currency: &str, text: &str) -> String {
    let mark = match currency {
        "USD" => "$",
        "EUR" => "€",
        other => other,
    };
    match text.strip_prefix('-') {
        Some(rest) => format!("−{mark}\u{a0}{}", amount(rest)),
        None => format!("{mark}\u{a0}{}", amount(text)),
    }
}

/// GPU-hours to four decimals: the first one to read, the rest quieter, so that a column still adds up.
pub fn gpu_hours(text: &str) -> AnyView {
    let all = amount(text);
    let cut = all
        .find('.')
        .map_or(all.len(), |dot| (dot + 2).min(all.len()));
    let (read, rest) = all.split_at(cut);
    view! { {read.to_owned()}<span class="u">{rest.to_owned()}</span> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_their_digits() {
        assert_eq!(amount("184903.17"), "184,903.17");
        assert_eq!(amount("-1220.00"), "−1,220.00");
        assert_eq!(amount("0.00"), "0.00");
        assert_eq!(money("USD", "-1220.00"), "−$\u{a0}1,220.00");
        assert_eq!(money("CHF", "7.50"), "CHF\u{a0}7.50");
        assert_eq!(gpus("1024".parse().expect("GPUs")), "1,024");
        assert_eq!(gpus("0.25".parse().expect("GPUs")), "0.25");
    }

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
