//! What one JSON patch may do: how much it copies, how deep it nests, how much it pushes around.
//!
//! A patch is small, but each of its operations works on the whole document: copies double it, moves
//! put it ever deeper into itself, and every insertion at the front of a list shifts the rest.

use serde_json::Value;

use crate::api::body::{MAX_DEPTH, depth};
use crate::api::status::MAX_BODY_BYTES;

/// The most operations in one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// What all copies of a patch may add up to in bytes of JSON: upstream's limit.
const MAX_COPIED_BYTES: usize = MAX_BODY_BYTES;

/// List elements that a patch may shift, and values it may move: a fraction of a second. Upstream
/// has no such limit; it does not hold up other requests meanwhile.
const MAX_EFFORT: usize = 1 << 25;

/// What a patch has done so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    copied: usize,
    effort: usize,
}

impl Ledger {
    /// Notes a copy of `value`, which is then `levels` deep in the document.
    pub(super) fn copy(&mut self, value: &Value, levels: usize) -> Result<(), String> {
        self.copied += json_bytes(value);
        if self.copied > MAX_COPIED_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {MAX_COPIED_BYTES}",
                self.copied
            ));
        }
        Self::nest(value, levels)
    }

    /// Notes that `value` is now `levels` deep in the document instead of elsewhere.
    pub(super) fn relocate(&mut self, value: &Value, levels: usize) -> Result<(), String> {
        self.spend(count(value))?;
        Self::nest(value, levels)
    }

    /// Notes that so many elements of a list were shifted.
    pub(super) fn shift(&mut self, elements: usize) -> Result<(), String> {
        self.spend(elements)
    }

    /// Refuses what could not be read again once it is stored, and what would exhaust the stack of
    /// whoever goes through it.
    pub(super) fn nest(value: &Value, levels: usize) -> Result<(), String> {
        if levels.saturating_add(depth(value)) > MAX_DEPTH {
            return Err(format!("the document would be nested deeper than {MAX_DEPTH} levels"));
        }
        Ok(())
    }

    fn spend(&mut self, effort: usize) -> Result<(), String> {
        self.effort = self.effort.saturating_add(effort);
        if self.effort > MAX_EFFORT {
            return Err(format!(
                "the operations of this patch move more than {MAX_EFFORT} values: send it in \
                 smaller patches"
            ));
        }
        Ok(())
    }
}

/// How many values there are, with all that is below. Recursion ends at [`MAX_DEPTH`].
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The length of a value as JSON.
fn json_bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Neither a value nor a counter can fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
