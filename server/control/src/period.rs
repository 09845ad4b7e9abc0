//! Months and days of the billing zone: half-open, right across daylight saving.

use contract::BILLING_ZONE;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use scheduler::Millis;
use std::sync::LazyLock;

static BERLIN: LazyLock<TimeZone> =
    LazyLock::new(|| TimeZone::get(BILLING_ZONE).unwrap_or(TimeZone::UTC));

/// A month of the billing zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Month {
    first: Date,
}

/// An instant as views carry it.
pub(crate) fn instant(at: Millis) -> Timestamp {
    Timestamp::from_millisecond(i64::try_from(at.0).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX)
}

fn date_of(at: Millis) -> Date {
    BERLIN.to_datetime(instant(at)).date()
}

/// The day that an instant lies in: 20261130.
pub(crate) fn day_of(at: Millis) -> i32 {
    number(date_of(at))
}

fn number(date: Date) -> i32 {
    i32::from(date.year()) * 10_000 + i32::from(date.month()) * 100 + i32::from(date.day())
}

/// A day as text: `2026-11-30`.
pub(crate) fn day_text(day: i32) -> String {
    format!(
        "{:04}-{:02}-{:02}",
        day / 10_000,
        day / 100 % 100,
        day % 100
    )
}

impl Month {
    /// The month that an instant lies in.
    pub(crate) fn of(at: Millis) -> Self {
        Self {
            first: date_of(at).first_of_month(),
        }
    }

    /// The month that a text names: `2026-11`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if year.len() != 4 || month.len() != 2 || !digits(year) || !digits(month) {
            return None;
        }
        let (year, month): (i16, i8) = (year.parse().ok()?, month.parse().ok()?);
        // The fleet's time begins in 1970, and the calendar ends with 9999: its last month has no next one.
        (1971..=9998)
            .contains(&year)
            .then(|| Date::new(year, month, 1).ok().map(|first| Self { first }))?
    }

    /// `2026-11`.
    pub(crate) fn text(self) -> String {
        format!("{:04}-{:02}", self.first.year(), self.first.month())
    }

    /// Its number: 202611.
    pub(crate) fn number(self) -> i32 {
        number(self.first) / 100
    }

    /// From its number: 202611.
    pub(crate) fn from_number(number: i32) -> Self {
        let (year, month) = ((number / 100) as i16, (number % 100) as i8);
        Self {
            first: Date::new(year, month, 1).unwrap_or(date(1971, 1, 1)),
        }
    }

    fn next(self) -> Self {
        Self {
            first: self.first.saturating_add(1.month()),
        }
    }

    fn start(self) -> Millis {
        let midnight = BERLIN
            .to_timestamp(self.first.at(0, 0, 0, 0))
            // Beyond the last instant there is, so that no month ends before it begins.
            .unwrap_or(Timestamp::MAX);
        Millis(midnight.as_millisecond().max(0) as u64)
    }

    /// First instant, and first instant of the next month.
    pub(crate) fn bounds(self) -> (Millis, Millis) {
        (self.start(), self.next().start())
    }

    /// Numbers of its first and last day.
    pub(crate) fn days(self) -> (i32, i32) {
        (number(self.first), number(self.first.last_of_month()))
    }

    /// Days from its first to its last one, or to the day of `until`.
    pub(crate) fn days_until(self, until: Millis) -> Vec<i32> {
        let (first, last) = self.days();
        (first..=last.min(day_of(until))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(month: &str) -> u64 {
        let (from, to) = Month::parse(month).expect(month).bounds();
        to.since(from).0 / Millis::HOUR.0
    }

    #[test]
    fn a_month_is_an_hour_longer_or_shorter_when_the_clocks_change() {
        assert_eq!(hours("2026-11"), 30 * 24);
        assert_eq!(hours("2026-10"), 31 * 24 + 1);
        assert_eq!(hours("2026-03"), 31 * 24 - 1);
    }

    #[test]
    fn months_are_half_open_and_touch() {
        let november = Month::parse("2026-11").expect("a month");
        let (from, to) = november.bounds();
        assert_eq!(instant(from).to_string(), "2026-10-31T23:00:00Z");
        assert_eq!(
            (Month::of(from), Month::of(Millis(to.0 - 1))),
            (november, november)
        );
        assert_eq!(Month::of(to).text(), "2026-12");
        assert_eq!(
            (day_of(from), day_of(Millis(to.0 - 1))),
            (20_261_101, 20_261_130)
        );
    }

    #[test]
    fn no_month_ends_before_it_begins() {
        for at in [Millis(0), Millis(u64::MAX)] {
            let (from, to) = Month::of(at).bounds();
            assert!(from < to, "{}", Month::of(at).text());
        }
        let last = Month::parse("9998-12").expect("the last month that can be named");
        let (from, to) = last.bounds();
        assert_eq!(to.since(from).0 / Millis::DAY.0, 31);
    }

    #[test]
    fn what_names_no_month_is_refused() {
        for text in [
            "",
            "2026",
            "2026-13",
            "2026-00",
            "2026-1",
            "26-11",
            "2026-11-01",
            "+026-11",
            "1970-01",
            "9999-01",
            "9999-12",
            "١٩٧١-٠١",
        ] {
            assert_eq!(Month::parse(text), None, "{text}");
        }
    }
}
