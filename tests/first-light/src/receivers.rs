//! What the cases do with responses: keep a short one, or check a long one as it passes.

use core::fmt::Write;
use core::ops::ControlFlow;

use heapless::{String, Vec};
use picokube_driver::{Error, Receiver, ResponseHead};

use crate::pattern;

/// Keeps a short response.
#[derive(Default)]
pub(crate) struct Text {
    pub(crate) status: u16,
    pub(crate) dated: bool,
    pub(crate) body: String<512>,
}

impl Receiver for Text {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        *self = Self { status: head.status, dated: head.date.is_some(), body: String::new() };
        ControlFlow::Continue(())
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let text = core::str::from_utf8(bytes).unwrap_or("(not UTF-8)");
        match self.body.push_str(text) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Checks a stream against [`pattern`] without keeping it.
#[derive(Default)]
pub(crate) struct Checked {
    pub(crate) bytes: usize,
    pub(crate) first_wrong: Option<usize>,
}

impl Receiver for Checked {
    fn head(&mut self, _: &ResponseHead) -> ControlFlow<()> {
        *self = Self::default();
        ControlFlow::Continue(())
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        for byte in bytes {
            if *byte != pattern(self.bytes) && self.first_wrong.is_none() {
                self.first_wrong = Some(self.bytes);
            }
            self.bytes += 1;
        }
        ControlFlow::Continue(())
    }
}

/// Follows streams that the peer ends as told, one way after the other, and notes how each ended.
pub(crate) struct Ends<'e> {
    /// The `then=` of each stream in turn.
    pub(crate) plan: &'e [&'e str],
    pub(crate) bytes: usize,
    pub(crate) checked: Checked,
    pub(crate) seen: Vec<Result<(), Error>, 16>,
    /// How many streams brought all their bytes, each of them right.
    pub(crate) whole: usize,
}

impl<'e> Ends<'e> {
    pub(crate) fn new(bytes: usize, plan: &'e [&'e str]) -> Self {
        let checked = Checked::default();
        Self { plan, bytes, checked, seen: Vec::new(), whole: 0 }
    }
}

impl Receiver for Ends<'_> {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.checked.head(head)
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.checked.body(bytes).await
    }
}

impl Ends<'_> {
    /// What to ask for next, if anything.
    pub(crate) fn next_target(&mut self) -> Option<String<64>> {
        // An earlier stream's count must not pass for this one's if no head comes.
        self.checked = Checked::default();
        let then = self.plan.get(self.seen.len())?;
        let mut target = String::new();
        let _ = write!(target, "/stream?bytes={}&chunk=700&then={then}", self.bytes);
        Some(target)
    }

    /// A stream has ended, one way or another.
    pub(crate) fn ended(&mut self, how: Result<(), Error>) {
        let whole = self.checked.bytes == self.bytes && self.checked.first_wrong.is_none();
        self.whole += usize::from(whole);
        // There are not more in any plan.
        let _ = self.seen.push(how);
    }
}
