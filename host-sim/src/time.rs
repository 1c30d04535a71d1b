//! Wall-clock time as the API server writes it.
//!
//! The server never reads a clock: every operation is told what time it is, so that a simulation
//! can run it at any speed.

use std::fmt;

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `millis` milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The real clock of this machine; only the shell around the server may ask for it.
    pub fn of_system_clock() -> Self {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(since_epoch.map_or(0, |elapsed| elapsed.as_millis() as i64))
    }

    /// Milliseconds since the Unix epoch.
    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    /// The same moment cut to whole seconds, as `metav1.Time` keeps it.
    pub const fn whole_seconds(self) -> Self {
        Self(self.0.div_euclid(1000) * 1000)
    }

    /// This moment plus a number of seconds.
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    /// This moment plus a number of milliseconds.
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this moment; negative if it is later.
    pub const fn millis_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// `metav1.Time`: RFC 3339 in UTC with whole seconds.
    pub fn to_rfc3339(self) -> String {
        self.write("Z")
    }

    /// `metav1.MicroTime`: RFC 3339 in UTC with microseconds.
    pub fn to_rfc3339_micros(self) -> String {
        self.write(&format!(".{:03}000Z", self.0.rem_euclid(1000)))
    }

    /// Reads RFC 3339, with or without a fraction, with `Z` or a numeric offset.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once(['T', 't'])?;
        let mut parts = date.splitn(3, '-');
        let year = digits(parts.next()?, 4)?;
        let (month, day) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
        let zone_at = rest.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = rest.split_at(zone_at);
        let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut parts = time.splitn(3, ':');
        let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
        let second = digits(parts.next()?, 2)?;
        if !(1..=12).contains(&month)
            || !(1..=days_in_month(year, month)).contains(&day)
            || hour > 23
            || minute > 59
            || second > 60
        {
            return None;
        }
        let millis = if fraction.is_empty() {
            0
        } else {
            let padded: String = fraction.chars().chain("000".chars()).take(3).collect();
            digits(&padded, 3)?
        };
        let offset = match zone.split_at_checked(1)? {
            ("Z" | "z", "") => 0,
            (sign, offset) => {
                let (hours, minutes) = offset.split_once(':')?;
                let minutes = digits(hours, 2)? * 60 + digits(minutes, 2)?;
                if sign == "-" { -minutes } else { minutes }
            }
        };
        let seconds = days_from_civil(year, month, day) * 86_400
            + hour * 3600
            + (minute - offset) * 60
            + second.min(59);
        Some(Self(seconds * 1000 + millis))
    }

    /// As a `Date` header has it: `Thu, 01 Jan 1970 00:00:00 GMT`.
    pub fn to_http_date(self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let seconds = self.0.div_euclid(1000);
        let days = seconds.div_euclid(86_400);
        let (year, month, day) = civil_from_days(days);
        let (weekday, month) = (DAYS[days.rem_euclid(7) as usize], MONTHS[month as usize - 1]);
        let seconds = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
    }

    /// Date and time of day up to the second, then `rest`.
    fn write(self, rest: &str) -> String {
        let seconds = self.0.div_euclid(1000);
        let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
        let seconds = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{rest}")
    }
}

/// `metav1.MicroTime` of a moment of the real clock, to the microsecond.
pub fn micro_time(moment: std::time::SystemTime) -> String {
    let since_epoch = moment.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let micros = since_epoch.subsec_micros();
    Timestamp(since_epoch.as_millis() as i64).write(&format!(".{micros:06}Z"))
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

fn digits(text: &str, length: usize) -> Option<i64> {
    let all = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the epoch of a proleptic Gregorian date, counted in 400-year eras from March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_reads_rfc3339() {
        let moment = Timestamp::from_unix_millis(1_763_253_600_123);
        assert_eq!(moment.to_rfc3339(), "2025-11-16T00:40:00Z");
        assert_eq!(moment.to_rfc3339_micros(), "2025-11-16T00:40:00.123000Z");
        assert_eq!(Timestamp::parse("2025-11-16T00:40:00.123000Z"), Some(moment));
        assert_eq!(Timestamp::parse("2025-11-16T02:40:00.1230+02:00"), Some(moment));
        assert_eq!(Timestamp::parse("2025-11-16T00:40:00Z"), Some(moment.whole_seconds()));
    }

    #[test]
    fn dates_of_http_have_their_day_of_the_week() {
        let date = |text| Timestamp::parse(text).map(Timestamp::to_http_date);
        let example = Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned());
        assert_eq!(date("1994-11-06T08:49:37Z"), example);
        let before = Some("Wed, 31 Dec 1969 23:59:59 GMT".to_owned());
        assert_eq!(date("1969-12-31T23:59:59Z"), before);
    }

    #[test]
    fn the_real_clock_is_told_to_the_microsecond() {
        let moment =
            std::time::UNIX_EPOCH + std::time::Duration::from_micros(1_763_253_600_123_456);
        assert_eq!(micro_time(moment), "2025-11-16T00:40:00.123456Z");
    }

    #[test]
    fn every_day_of_two_centuries_goes_there_and_back() {
        for day in -36_524..36_524 {
            let noon = Timestamp::from_unix_millis((day * 86_400 + 43_200) * 1000);
            assert_eq!(Timestamp::parse(&noon.to_rfc3339()), Some(noon));
        }
    }

    #[test]
    fn refuses_what_is_not_a_time() {
        for text in ["", "2025-11-16", "2025-02-29T00:00:00Z", "2025-13-01T00:00:00Z", "tomorrow"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
