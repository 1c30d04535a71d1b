//! Ages as kubectl writes them.

use serde_json::Value;

use crate::api::object::{at, text};
use crate::time::Timestamp;

/// How long ago an object was created.
pub(super) fn of_object(object: &Value, now: Timestamp) -> String {
    since(text(at(object, &["metadata"]), "creationTimestamp"), now)
}

/// How long ago a time was; `<unknown>` if there is none.
pub(super) fn since(time: &str, now: Timestamp) -> String {
    match Timestamp::parse(time) {
        Some(time) => human(now.millis_since(time).div_euclid(1000)),
        None => "<unknown>".to_owned(),
    }
}

/// A duration in the one or two units that matter.
pub(super) fn human(seconds: i64) -> String {
    const YEAR: i64 = 365;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |a: i64, unit: &str, b: i64, smaller: &str| match b {
        0 => format!("{a}{unit}"),
        _ => format!("{a}{unit}{b}{smaller}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 2 * YEAR => format!("{days}d"),
        _ if days < 8 * YEAR => two(days / YEAR, "y", days % YEAR, "d"),
        _ => format!("{}y", days / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_kubectl_does() {
        let (minute, hour, day) = (60, 3600, 86_400);
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (2 * minute + 5, "2m5s"),
            (10 * minute + 5, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (3 * hour + 7 * minute, "3h7m"),
            (8 * hour + 7 * minute, "8h"),
            (47 * hour, "47h"),
            (2 * day, "2d"),
            (2 * day + 3 * hour, "2d3h"),
            (8 * day + 3 * hour, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (800 * day, "2y70d"),
            (9 * 365 * day, "9y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human(seconds), text);
        }
    }
}
