//! No write without a cause: what a controller writes changes something.

use std::collections::{BTreeMap, BTreeSet};

use crate::server::request::Request as HttpRequest;

use super::Verdict;

pub(super) const PROPERTY: &str = "no write without a cause";

/// After a failure a controller does not know what it has done: so many writes are excused.
const EXCUSED: u32 = 20;

/// How much of each controller is excused.
#[derive(Debug, Default)]
pub(super) struct Causes {
    excused: BTreeMap<usize, u32>,
    /// What was written without success, by path: it may be written once more.
    failed: BTreeSet<(usize, String)>,
}

impl Causes {
    /// A controller does not know what it has done.
    pub(super) fn excuse(&mut self, device: usize) {
        self.excused.insert(device, EXCUSED);
    }

    /// A write of a controller has failed, or nobody knows.
    pub(super) fn failed(&mut self, device: usize, path: &str) {
        self.excuse(device);
        self.failed.insert((device, path.to_owned()));
    }

    pub(super) fn wrote(&mut self, device: usize, http: &HttpRequest, changed: bool) -> Verdict {
        let is_again = self.failed.remove(&(device, http.path.clone()));
        let excused = self.excused.entry(device).or_default();
        // An event whose answer was lost is told again, whenever there is time.
        if http.path.contains("/events/") {
            return Ok(());
        }
        // Somebody else may have deleted the same while the request was under way.
        if changed || is_again || *excused > 0 || http.method == http::Method::DELETE {
            *excused = excused.saturating_sub(1);
            return Ok(());
        }
        Err((PROPERTY, format!("{} {} changed nothing", http.method, http.path)))
    }
}
