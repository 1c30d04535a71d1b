//! What clients may take from a server at most, and what is written down about them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::api::quantity::Quantity;
use crate::http::{InFlightLimits, Limits, LogTarget, Logs};

const LIMITS: &str = "Limits";
const LOGS: &str = "Logs";

/// Limits of everything that serves the API.
#[derive(Debug, Args)]
pub(super) struct LimitOptions {
    /// Requests in flight that only look, without watches; who comes too many is told to come
    /// again in a second (429); 0 is no limit
    #[arg(long, help_heading = LIMITS, default_value_t = 400, value_name = "N")]
    max_requests_inflight: usize,
    /// Requests in flight that change something; 0 is no limit
    #[arg(long, help_heading = LIMITS, default_value_t = 200, value_name = "N")]
    max_mutating_requests_inflight: usize,
    /// Memory for the bodies of all requests in flight, at least 4Mi
    #[arg(long, help_heading = LIMITS, default_value = "128Mi", value_name = "BYTES")]
    #[arg(value_parser = body_bytes)]
    max_body_bytes_inflight: usize,
    /// Open connections; beyond, those that have been idle longest are closed
    #[arg(long, help_heading = LIMITS, default_value_t = 20_000, value_name = "N")]
    max_connections: usize,
    /// Watches at the same time
    #[arg(long, help_heading = LIMITS, default_value_t = 10_000, value_name = "N")]
    max_watches: usize,
    /// How long a client may take to send a request, and to read a list, such as 90s or 2m; one that
    /// reads next to nothing of what waits for it is cut off after half of that
    #[arg(long, help_heading = LIMITS, default_value = "60s", value_name = "DURATION")]
    #[arg(value_parser = duration)]
    request_timeout: Duration,
    /// How many of the requests over HTTP/2 send their client to another connection (GOAWAY), from 0 to
    /// 1; kube-apiserver takes at most 0.02
    #[arg(long, help_heading = LIMITS, default_value = "0", value_name = "FRACTION")]
    #[arg(value_parser = chance)]
    goaway_chance: f64,
}

impl LimitOptions {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            watches: self.max_watches,
            connections: self.max_connections,
            in_flight: InFlightLimits {
                read_only: self.max_requests_inflight,
                mutating: self.max_mutating_requests_inflight,
                body_bytes: self.max_body_bytes_inflight,
            },
            stall: self.request_timeout / 2,
            patience: self.request_timeout,
            goaway_chance: self.goaway_chance,
            ..Limits::default()
        }
    }
}

/// Logs of everything that serves the API.
#[derive(Debug, Args)]
pub(super) struct LogOptions {
    /// Write who did what to the end of this file, as events of audit.k8s.io/v1 at level Metadata;
    /// '-' is the standard output
    #[arg(long, help_heading = LOGS, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Write a line for every request to the end of this file, or to the standard error output
    #[arg(long, help_heading = LOGS, value_name = "FILE")]
    #[arg(num_args = 0..=1, require_equals = true)]
    access_log: Option<Option<PathBuf>>,
}

impl LogOptions {
    pub(super) fn open(&self) -> Result<Logs> {
        let target = |path: &PathBuf, dash: LogTarget| match path.to_str() {
            Some("-") => dash,
            _ => LogTarget::File(path.clone()),
        };
        let audit = self.audit_log_path.as_ref().map(|path| target(path, LogTarget::Stdout));
        let access = self.access_log.as_ref().map(|path| match path {
            Some(path) => target(path, LogTarget::Stderr),
            None => LogTarget::Stderr,
        });
        if let (Some(LogTarget::File(one)), Some(LogTarget::File(two))) = (&audit, &access) {
            ensure!(one != two, "--audit-log-path and --access-log cannot be the same file");
        }
        Logs::open(audit.as_ref(), access.as_ref())
    }
}

fn body_bytes(text: &str) -> Result<usize> {
    let quantity = Quantity::parse(text).context("this is no number of bytes, such as 128Mi")?;
    let bytes = usize::try_from(quantity.ceil()).context("this is no number of bytes")?;
    let least = InFlightLimits::LEAST_BODY_BYTES;
    ensure!(bytes >= least, "the largest body needs {}Mi", least >> 20);
    Ok(bytes)
}

fn chance(text: &str) -> Result<f64> {
    let chance: f64 = text.parse().context("this is no number")?;
    ensure!((0.0..=1.0).contains(&chance), "from 0 to 1 is possible");
    Ok(chance)
}

/// Durations as Go writes them, in whole seconds: `90s`, `1m30s`, `1h`; a number is seconds.
fn duration(text: &str) -> Result<Duration> {
    const EXPECTED: &str = "this is no duration, such as 90s or 1m30s";
    let (mut seconds, mut number) = (0_u64, String::new());
    for character in text.chars() {
        let unit = match character {
            '0'..='9' => {
                number.push(character);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => bail!(EXPECTED),
        };
        let count: u64 = std::mem::take(&mut number).parse().context(EXPECTED)?;
        let more = count.checked_mul(unit).and_then(|more| seconds.checked_add(more));
        seconds = more.context("this is too long")?;
    }
    if !number.is_empty() {
        ensure!(number == text, EXPECTED);
        seconds = number.parse().context("this is too long")?;
    }
    ensure!((1..=86_400).contains(&seconds), "from one second to a day is possible");
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_or_refused() {
        for (text, seconds) in [("90s", 90), ("1m30s", 90), ("1h", 3600), ("7", 7), ("1m0s", 60)] {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        for text in ["", "s", "0", "0s", "1d", "-1s", "1m30", "99999999999999999999s", "25h"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(chance("0.02").unwrap(), 0.02);
        for text in ["", "x", "-0.1", "1.1", "NaN", "inf"] {
            assert!(chance(text).is_err(), "{text}");
        }
        assert_eq!(body_bytes("128Mi").unwrap(), 128 << 20);
        for text in ["", "x", "-1", "3Mi", "1e40"] {
            assert!(body_bytes(text).is_err(), "{text}");
        }
    }
}
