//! What the manager counts, and how Prometheus reads it.

use core::fmt::{self, Write};

use crate::json::Escape;
use crate::request::Method;

/// The counters of a manager. They wrap, as Prometheus' counters may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Metrics {
    /// Requests sent, by GET, POST, PATCH and DELETE; those of watches not included.
    pub requests: [u32; 4],
    /// Answers that refused a request because its object had changed.
    pub conflicts: u32,
    /// Answers that refused a request for other reasons, not counting "not found".
    pub refusals: u32,
    /// Requests that got no complete answer.
    pub failures: u32,
    /// Requests repeated because the server asked for it.
    pub retries_after: u32,
    /// Objects that did not fit into the cache.
    pub refused: u32,
    /// Objects that could not be read.
    pub faulty: u32,
    /// Responses given up because they stopped in the midst of an object while others waited.
    pub stalled: u32,
}

impl Metrics {
    /// Nothing was counted.
    pub const ZERO: Self = Self {
        requests: [0; 4],
        conflicts: 0,
        refusals: 0,
        failures: 0,
        retries_after: 0,
        refused: 0,
        faulty: 0,
        stalled: 0,
    };

    pub(crate) fn count_request(&mut self, method: Method) {
        let [get, post, patch, delete] = &mut self.requests;
        let count = match method {
            Method::Get => get,
            Method::Post => post,
            Method::Patch => patch,
            Method::Delete => delete,
        };
        *count = count.wrapping_add(1);
    }
}

/// Writes metrics in Prometheus' text format.
pub struct Exposition<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Exposition<'a> {
    /// An exposition that is written to `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// A metric with one value.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) -> fmt::Result {
        self.head(name, kind, help)?;
        writeln!(self.out, "{name} {value}")
    }

    /// A metric with one value per value of a label.
    pub fn labelled<'v>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'v str, u64)>,
    ) -> fmt::Result {
        self.head(name, kind, help)?;
        values.into_iter().try_for_each(|(of, value)| {
            write!(self.out, "{name}{{{label}=\"")?;
            // The same three characters are special in Prometheus' labels and in JSON.
            Escape(&mut *self.out).write_str(of)?;
            writeln!(self.out, "\"}} {value}")
        })
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) -> fmt::Result {
        writeln!(self.out, "# HELP {name} {help}")?;
        writeln!(self.out, "# TYPE {name} {kind}")
    }
}
