//! Times as people read them: in the zone that bills are made in, against the now of the view (the demo's clock is its own).

use contract::{BILLING_ZONE, Span, person_span};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use leptos::prelude::*;
use std::sync::LazyLock;

static TIME_ZONE: LazyLock<TimeZone> =
    LazyLock::new(|| TimeZone::get(BILLING_ZONE).unwrap_or(TimeZone::UTC));

/// The zone that times are shown in.
pub fn zone_name() -> &'static str {
    TIME_ZONE.iana_name().unwrap_or("UTC")
}

fn local(at: Timestamp) -> ZonedDateTime {
    ZonedDateTime::new(at, TIME_ZONE.clone())
}

/// As short as it is still clear: `09:41` today, `Tue 03:00` within six days, `12 Nov 09:41` within the year.
pub fn clock(at: Timestamp, now: Timestamp) -> String {
    let (at, now) = (local(at), local(now));
    let days = (at.timestamp().as_second() - now.timestamp().as_second()).abs() / 86_400;
    let format = if at.date() == now.date() {
        "%H:%M"
    } else if days < 6 {
        "%a %H:%M"
    } else if at.year() == now.year() {
        "%-d %b %H:%M"
    } else {
        "%-d %b %Y"
    };
    at.strftime(format).to_string()
}

/// To the second: `30 Nov 2026, 09:41:02`.
pub fn exact(at: Timestamp) -> String {
    local(at).strftime("%-d %b %Y, %H:%M:%S").to_string()
}

/// `09:41:02`, of an instant that is now.
pub fn time_of_day(at: Timestamp) -> String {
    local(at).strftime("%H:%M:%S").to_string()
}

/// An instant, short; the whole of it on hover and for machines.
pub fn when(at: Timestamp, now: Timestamp) -> AnyView {
    view! { <time datetime=at.to_string() title=exact(at)>{clock(at, now)}</time> }.into_any()
}

/// How long ago: `38 min`.
pub fn age(at: Timestamp, now: Timestamp) -> AnyView {
    view! { <time datetime=at.to_string() title=exact(at)>{span(at, now)}</time> }.into_any()
}

/// The span between two instants in words; `0 s` when `from` is later.
pub fn span(from: Timestamp, to: Timestamp) -> String {
    let ms = to.as_millisecond() - from.as_millisecond();
    span_ms(u64::try_from(ms).unwrap_or(0))
}

/// Milliseconds in words, two units at most: `2 h 31 min`.
pub fn span_ms(ms: u64) -> String {
    person_span(Span::from_millis(ms).0)
}

/// `2026-11` as `November 2026`; unchanged when it is no month.
pub fn month_name(month: &str) -> String {
    let first: Result<jiff::civil::Date, _> = format!("{month}-01").parse();
    first.map_or_else(
        |_| month.to_owned(),
        |day| day.strftime("%B %Y").to_string(),
    )
}

/// `2026-11-03` as `Tue 3`; unchanged when it is no day.
pub fn day_name(day: &str) -> String {
    let date: Result<jiff::civil::Date, _> = day.parse();
    date.map_or_else(|_| day.to_owned(), |day| day.strftime("%a %-d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_short_as_it_is_still_clear() {
        let at = |text: &str| -> Timestamp { text.parse().expect(text) };
        let now = at("2026-11-30T08:52:00Z");
        for (given, want) in [
            ("2026-11-30T08:41:00Z", "09:41"),
            ("2026-11-29T23:30:00Z", "00:30"),
            ("2026-11-29T22:30:00Z", "Sun 23:30"),
            ("2026-12-01T02:00:00Z", "Tue 03:00"),
            ("2026-11-12T08:41:00Z", "12 Nov 09:41"),
            ("2026-07-12T08:41:00Z", "12 Jul 10:41"),
            ("2025-11-12T08:41:00Z", "12 Nov 2025"),
        ] {
            assert_eq!(clock(at(given), now), want, "{given}");
        }
        assert_eq!(exact(now), "30 Nov 2026, 09:52:00");
        assert_eq!(zone_name(), "Europe/Berlin");
    }

    #[test]
    fn months_and_days_have_names() {
        assert_eq!(month_name("2026-11"), "November 2026");
        assert_eq!(month_name("soon"), "soon");
        assert_eq!(day_name("2026-11-03"), "Tue 3");
    }
}
