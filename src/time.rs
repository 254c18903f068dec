//! Clock times in logs and dumps: the only module that touches chrono.
//!
//! Logs print local time without a zone, some only the time of day; dumps print `Sun Nov 29 13:52:06 2026` or
//! `2026/11/29 13:52:06.123`. All become a [`Stamp`]; differences are taken between stamps of one clock only.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use std::fmt;

/// A moment as a source printed it, in the source's own (unknown) time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    date: Option<NaiveDate>,
    time: NaiveTime,
}

impl Stamp {
    /// Reads a log's or a dump's time: `2026-11-29 13:51:19[.123|,123]`, the same with `T` or slashes, `18:43:27`,
    /// RFC 3339, or the C locale's `Sun Nov 29 13:52:06 2026`. `None` for anything else.
    pub fn parse(text: &str) -> Option<Stamp> {
        let text = text.trim();
        if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
            return Some(Stamp::of(moment.naive_local()));
        }
        let dotted = text.replace(',', ".");
        for format in
            ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y/%m/%d %H:%M:%S%.f", "%a %b %e %H:%M:%S %Y"]
        {
            if let Ok(moment) = NaiveDateTime::parse_from_str(&dotted, format) {
                return Some(Stamp::of(moment));
            }
        }
        let time = NaiveTime::parse_from_str(&dotted, "%H:%M:%S%.f").ok()?;
        Some(Stamp { date: None, time })
    }

    /// This machine's local time, to the millisecond: for samples taken now. Servers log local time too.
    pub fn now() -> Stamp {
        let now = Local::now().naive_local();
        Stamp::of(
            DateTime::from_timestamp_millis(now.and_utc().timestamp_millis())
                .map_or(now, |to| to.naive_utc()),
        )
    }

    fn of(moment: NaiveDateTime) -> Stamp {
        Stamp { date: Some(moment.date()), time: moment.time() }
    }

    /// Seconds from `earlier` to this stamp, negative where the clock went backwards. `None` where only one of
    /// the two has a date. Between two times of day, a step back by more than half a day is a midnight crossed.
    pub fn seconds_since(&self, earlier: &Stamp) -> Option<f64> {
        let difference = match (self.date, earlier.date) {
            (Some(date), Some(other)) => date.and_time(self.time) - other.and_time(earlier.time),
            (None, None) => {
                let step = self.time - earlier.time;
                if step < TimeDelta::hours(-12) { step + TimeDelta::days(1) } else { step }
            }
            _ => return None,
        };
        Some(difference.num_milliseconds() as f64 / 1000.0)
    }
}

impl fmt::Display for Stamp {
    /// ISO 8601 without a zone: `2026-11-29T13:51:19`, or the time of day alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date {
            Some(date) => write!(formatter, "{}T{}", date, self.time.format("%H:%M:%S%.f")),
            None => write!(formatter, "{}", self.time.format("%H:%M:%S%.f")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_logs_and_dumps_are_read() {
        for (text, shown) in [
            ("2026-11-29 13:51:19", "2026-11-29T13:51:19"),
            ("2025-01-01 00:00:00.123", "2025-01-01T00:00:00.123"),
            ("2025-01-01 00:00:00,123", "2025-01-01T00:00:00.123"),
            ("2026/11/29 13:52:06.5", "2026-11-29T13:52:06.500"),
            ("Sun Nov 29 13:52:06 2026", "2026-11-29T13:52:06"),
            ("2026-11-29T12:00:00.123456789Z", "2026-11-29T12:00:00.123456789"),
            ("18:43:27", "18:43:27"),
        ] {
            assert_eq!(Stamp::parse(text).map(|stamp| stamp.to_string()).as_deref(), Some(shown), "{text}");
        }
        assert_eq!(Stamp::parse("t"), None);
        assert_eq!(Stamp::parse("2026-13-45 99:00:00"), None);
    }

    #[test]
    fn differences_know_midnight_and_missing_dates() {
        let stamp = |text| Stamp::parse(text).unwrap();
        assert_eq!(stamp("2026-11-29 13:51:21").seconds_since(&stamp("2026-11-29 13:51:19")), Some(2.0));
        assert_eq!(stamp("00:00:01").seconds_since(&stamp("23:59:59")), Some(2.0));
        assert_eq!(stamp("2026-11-29 13:51:21").seconds_since(&stamp("13:51:19")), None);
    }
}
