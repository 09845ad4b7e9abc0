//! Amounts and spans as people write them.

use scheduler::{Cents, MilliGpu, MilliGpuMs, Millis};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A number of GPUs: a JSON number (`8`, `0.25`) or the same as text; exact to a thousandth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpus(pub MilliGpu);

/// A span: `90s`, `45m`, `8h`, `2d`, `1h30m`; a bare number is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Millis);

impl Gpus {
    /// So many whole GPUs.
    pub const fn whole(n: u64) -> Self {
        Self(MilliGpu::gpus(n))
    }
}

impl Span {
    /// A span of so many milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(Millis(ms))
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

impl FromStr for Gpus {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no number of GPUs; write 8, or 0.25 for a share of one card");
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        if part.len() > 3 {
            return Err(format!("`{text}` is finer than a thousandth of a GPU"));
        }
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let milli: u64 = format!("{part:0<3}").parse().map_err(|_| wrong())?;
        let all = whole
            .checked_mul(1_000)
            .and_then(|all| all.checked_add(milli))
            .ok_or_else(wrong)?;
        Ok(Self(MilliGpu(all)))
    }
}

impl Serialize for Gpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.0.is_multiple_of(1_000) {
            serializer.serialize_u64(self.0.whole())
        } else {
            serializer.serialize_f64(self.0.0 as f64 / 1_000.0)
        }
    }
}

struct GpusVisitor;
impl Visitor<'_> for GpusVisitor {
    type Value = Gpus;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of GPUs: 8, or 0.25 for a share of one card")
    }
    fn visit_u64<E: Error>(self, n: u64) -> Result<Gpus, E> {
        n.checked_mul(1_000)
            .map(|milli| Gpus(MilliGpu(milli)))
            .ok_or_else(|| E::custom("too many GPUs"))
    }
    fn visit_i64<E: Error>(self, n: i64) -> Result<Gpus, E> {
        u64::try_from(n)
            .map_err(|_| E::custom("GPUs cannot be negative"))
            .and_then(|n| self.visit_u64(n))
    }
    fn visit_f64<E: Error>(self, n: f64) -> Result<Gpus, E> {
        // Through text, so that 0.1 is a tenth and what is finer than a thousandth is refused instead of rounded.
        n.to_string().parse().map_err(E::custom)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Gpus, E> {
        text.parse().map_err(E::custom)
    }
}
impl<'de> Deserialize<'de> for Gpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GpusVisitor)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.0;
        if left == 0 {
            return f.write_str("0s");
        }
        for (unit, ms) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1_000),
            ("ms", 1),
        ] {
            if left >= ms {
                write!(f, "{}{unit}", left / ms)?;
                left %= ms;
            }
        }
        Ok(())
    }
}

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no span of time; write 8h, 90m, 1d12h or seconds");
        let mut rest = text.trim();
        if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) {
            let seconds: u64 = rest.parse().map_err(|_| wrong())?;
            return seconds
                .checked_mul(1_000)
                .map(|ms| Self(Millis(ms)))
                .ok_or_else(wrong);
        }
        let mut total = 0u64;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let unit = match &rest[..letters] {
                "ms" => 1,
                "s" => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(wrong()),
            };
            rest = &rest[letters..];
            total = number
                .checked_mul(unit)
                .and_then(|part| total.checked_add(part))
                .ok_or_else(wrong)?;
        }
        Ok(Self(Millis(total)))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct SpanVisitor;
impl Visitor<'_> for SpanVisitor {
    type Value = Span;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a span of time: 8h, 90m, 1d12h, or seconds")
    }
    fn visit_u64<E: Error>(self, n: u64) -> Result<Span, E> {
        n.checked_mul(1_000)
            .map(|ms| Span(Millis(ms)))
            .ok_or_else(|| E::custom("too long"))
    }
    fn visit_i64<E: Error>(self, n: i64) -> Result<Span, E> {
        u64::try_from(n)
            .map_err(|_| E::custom("a span cannot be negative"))
            .and_then(|n| self.visit_u64(n))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
        text.parse().map_err(E::custom)
    }
}
impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

#[cfg(feature = "openapi")]
mod openapi {
    use super::{Gpus, Span};
    use utoipa::openapi::schema::{ObjectBuilder, Type};
    use utoipa::openapi::{RefOr, Schema};

    impl utoipa::PartialSchema for Gpus {
        fn schema() -> RefOr<Schema> {
            ObjectBuilder::new()
                .schema_type(Type::Number)
                .minimum(Some(0))
                .description(Some("GPUs; whole, or a share of one card"))
                .into()
        }
    }
    impl utoipa::ToSchema for Gpus {}
    impl utoipa::PartialSchema for Span {
        fn schema() -> RefOr<Schema> {
            ObjectBuilder::new()
                .schema_type(Type::String)
                .description(Some("A span of time: 8h, 90m, 1d12h"))
                .into()
        }
    }
    impl utoipa::ToSchema for Span {}
}

/// A count with thousands apart: `8,200`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 pod`, `1,025 pods`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// GPUs without their unit: `1,024`, `0.25`.
pub fn gpus(amount: MilliGpu) -> String {
    if amount.0.is_multiple_of(1_000) {
        count(amount.whole())
    } else {
        amount.to_string()
    }
}

/// GPUs with their unit: `1 GPU`, `1,024 GPUs`, `0.25 GPUs`.
pub fn gpu_count(amount: MilliGpu) -> String {
    let unit = if amount == MilliGpu::gpus(1) {
        "GPU"
    } else {
        "GPUs"
    };
    format!("{} {unit}", gpus(amount))
}

/// GPU-hours with four decimals: `506.9128`.
pub fn gpu_hours(held: MilliGpuMs) -> String {
    let e4 = held.gpu_hours_e4();
    format!("{}.{:04}", e4 / 10_000, e4 % 10_000)
}

/// Money with two decimals: `-1220.00`.
pub fn money(cents: Cents) -> String {
    let sign = if cents.0 < 0 { "-" } else { "" };
    format!(
        "{sign}{}.{:02}",
        cents.0.unsigned_abs() / 100,
        cents.0.unsigned_abs() % 100
    )
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

/// Money with its currency: `$ 184,903.17`.
pub fn price(currency: &str, text: &str) -> String {
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

/// A span for people, two units at most: `2 h 31 min`, `29 min`, `12 s`, `3 d 4 h`.
pub fn person_span(span: Millis) -> String {
    let seconds = span.0 / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let two = |first: u64, unit: &str, second: u64, smaller: &str| match second {
        0 => format!("{first} {unit}"),
        _ => format!("{first} {unit} {second} {smaller}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min"),
        3_600..86_400 => two(hours, "h", minutes, "min"),
        _ => two(days, "d", hours, "h"),
    }
}

/// True for what is not seen and changes what is: control characters, line breaks, and marks that turn the direction of
/// writing. No text that people give may hold them, and no terminal gets them.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_and_spans_read_what_they_write() {
        for text in ["0", "8", "0.25", "0.001", "1024"] {
            assert_eq!(
                text.parse::<Gpus>().map(|gpus| gpus.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["90s", "8h", "1d12h", "1h30m", "1500ms"] {
            let span: Span = text.parse().expect(text);
            assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        }
        for text in ["", "-1", "8.0001", "eight", "1e3", "99999999999999999999"] {
            assert!(text.parse::<Gpus>().is_err(), "{text}");
        }
        for text in ["", "8 hours", "h", "-5m", "8x", "99999999999999999999d"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_plain_decimals() {
        assert_eq!(gpu_hours(MilliGpuMs(1_824_886_080_000)), "506.9128");
        assert_eq!(money(Cents(-122_000)), "-1220.00");
        assert_eq!(money(Cents(-5)), "-0.05");
        assert_eq!(amount("184903.17"), "184,903.17");
        assert_eq!(amount("-1220.00"), "−1,220.00");
        assert_eq!(price("USD", "-1220.00"), "−$\u{a0}1,220.00");
        assert_eq!(price("CHF", "7.50"), "CHF\u{a0}7.50");
        assert_eq!(person_span(Millis(9_060_000)), "2 h 31 min");
        assert_eq!(plural(1, "pod", "pods"), "1 pod");
        assert_eq!(plural(1_025, "pod", "pods"), "1,025 pods");
        assert_eq!(gpu_count(MilliGpu::gpus(1)), "1 GPU");
        assert_eq!(gpu_count(MilliGpu(250)), "0.25 GPUs");
        assert_eq!(gpu_count(MilliGpu::gpus(8_200)), "8,200 GPUs");
    }
}
