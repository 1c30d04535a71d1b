//! A point in wall-clock time, and the calendar behind it.

use super::Duration;

/// A point in wall-clock time: microseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Timestamp(i64);

/// Seconds in a day.
const DAY: i64 = 86_400;
const MICROS: i64 = 1_000_000;

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// The point `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The point `secs` seconds after the epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(MICROS))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(MICROS)
    }

    /// The microseconds past the whole second.
    pub const fn subsec_micros(self) -> u32 {
        self.0.rem_euclid(MICROS) as u32
    }

    /// Time since `earlier`; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        match self.0.checked_sub(earlier.0) {
            Some(micros) if micros > 0 => Duration::from_micros(micros as u64),
            Some(_) => Duration::ZERO,
            None if self.0 > earlier.0 => Duration::from_micros(self.0.abs_diff(earlier.0)),
            None => Duration::ZERO,
        }
    }

    /// `self + span`, at most the last point there is.
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(span.as_micros()))
    }
}

/// A date and time of day in UTC, as written in a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i32,
    pub(super) month: u32,
    pub(super) day: u32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) micros: u32,
}

impl Civil {
    /// The point in time, unless a part is out of its range (31 April, 25 o'clock).
    pub(super) fn to_timestamp(self) -> Option<Timestamp> {
        let valid = (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60;
        if !valid {
            return None;
        }
        let time_of_day = i64::from(self.hour * 3600 + self.minute * 60 + self.second);
        let secs = days_from_civil(self.year, self.month, self.day) * DAY + time_of_day;
        Some(Timestamp(secs * MICROS + i64::from(self.micros)))
    }

    /// The calendar date and time of day of a point in time.
    pub(super) fn from_timestamp(time: Timestamp) -> Self {
        let secs = time.as_secs();
        let (year, month, day) = civil_from_days(secs.div_euclid(DAY));
        let time_of_day = secs.rem_euclid(DAY) as u32;
        Self {
            year,
            month,
            day,
            hour: time_of_day / 3600,
            minute: time_of_day / 60 % 60,
            second: time_of_day % 60,
            micros: time.subsec_micros(),
        }
    }
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the epoch of a date of the proleptic Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last day of a year and the days
/// before month m are ⌊(153·m + 2) / 5⌋; 400 years are an era of 146,097 days.
fn days_from_civil(year: i32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - DAYS_TO_EPOCH
}

/// From 0000-03-01, where the eras start, to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i32, u32, u32) {
    let days = days + DAYS_TO_EPOCH;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks the calendar one day at a time, with nothing but the lengths of the months.
    #[test]
    fn every_day_of_ten_thousand_years_converts_both_ways() {
        let mut days = days_from_civil(0, 1, 1);
        assert_eq!(days, -719_528);
        for year in 0..10_000 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(days_from_civil(year, month, day), days);
                    assert_eq!(civil_from_days(days), (year, month, day));
                    days += 1;
                }
            }
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
    }

    #[test]
    fn the_gregorian_leap_rule_holds() {
        for (year, leap) in [(1900, false), (2000, true), (2024, true), (2026, false)] {
            assert_eq!(days_in_month(year, 2) == 29, leap, "{year}");
        }
    }

    #[test]
    fn since_never_overflows() {
        let (first, last) = (Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX));
        assert_eq!(last.since(first).as_micros(), u64::MAX);
        assert_eq!(first.since(last), Duration::ZERO);
        assert_eq!(last.saturating_add(Duration::from_secs(1)), last);
        assert_eq!(first.saturating_add(Duration::from_micros(u64::MAX)), last);
    }
}
