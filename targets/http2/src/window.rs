//! Windows: how much each side may send before the other says that it may send more (RFC 9113 §6.9).

/// A window cannot be larger (§6.9.1).
pub(crate) const MAX: u32 = (1 << 31) - 1;
/// What every window starts with until somebody says otherwise (§6.9.2).
pub(crate) const DEFAULT: u32 = 65_535;

/// A window that would become larger than there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// A server that sends more than its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overrun;

/// How much we may send. It can be less than nothing (§6.9.2): a server may lower the window of streams
/// on which it has been used already.
///
/// Never below `-MAX`: what was sent was once allowed, and no more than `MAX` can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendWindow(i32);

impl SendWindow {
    pub(crate) const ZERO: Self = Self(0);

    /// `size` is at most [`MAX`].
    pub(crate) const fn new(size: u32) -> Self {
        Self(size as i32)
    }

    pub(crate) fn available(self) -> u32 {
        u32::try_from(self.0).unwrap_or(0)
    }

    pub(crate) fn spend(&mut self, count: u32) {
        self.0 = self.0.saturating_sub_unsigned(count);
    }

    /// By a WINDOW_UPDATE.
    pub(crate) fn grow(&mut self, by: u32) -> Result<(), Overflow> {
        self.0 = self.0.checked_add_unsigned(by).ok_or(Overflow)?;
        Ok(())
    }

    /// By a change of the size that windows start with.
    pub(crate) fn resize(&mut self, from: u32, to: u32) -> Result<(), Overflow> {
        let size = i64::from(self.0) + i64::from(to) - i64::from(from);
        self.0 = i32::try_from(size).map_err(|_| Overflow)?;
        Ok(())
    }
}

/// How much the server may send.
///
/// Of `size` bytes, `open` may still be sent, `credit` were taken in and the server has yet to be told, and
/// the rest is held by whoever reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    size: u32,
    open: u32,
    credit: u32,
}

impl ReceiveWindow {
    pub(crate) const ZERO: Self = Self { size: 0, open: 0, credit: 0 };

    pub(crate) const fn new(size: u32) -> Self {
        Self { size, open: size, credit: 0 }
    }

    /// What the server may still send.
    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    /// Takes what has come off the window.
    pub(crate) fn arrived(&mut self, count: u32) -> Result<(), Overrun> {
        self.open = self.open.checked_sub(count).ok_or(Overrun)?;
        Ok(())
    }

    /// Gives back what was taken in. What was never there is not given back.
    pub(crate) fn release(&mut self, count: u32) {
        let held = self.size - self.open - self.credit;
        self.credit += count.min(held);
    }

    /// Makes the window larger for good.
    pub(crate) fn widen(&mut self, by: u32) {
        let by = by.min(MAX - self.size);
        self.size += by;
        self.credit += by;
    }

    /// By how much the server's window should grow now. Credit is told when half of the window or more is to
    /// be given back: then a server never waits while nobody holds anything, and frames are few.
    pub(crate) fn due(&self) -> Option<u32> {
        (self.credit > 0 && self.credit >= self.size.div_ceil(2)).then_some(self.credit)
    }

    /// The server was told.
    pub(crate) fn told(&mut self) {
        self.open += self.credit;
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_be_less_than_nothing() {
        let mut window = SendWindow::new(MAX);
        window.spend(MAX);
        window.resize(MAX, 0).unwrap();
        assert_eq!((window.available(), window), (0, SendWindow(-i32::MAX)));
        window.grow(MAX).unwrap();
        assert_eq!(window.available(), 0);
        window.resize(0, 100).unwrap();
        assert_eq!(window.available(), 100);
    }

    #[test]
    fn a_window_cannot_be_larger_than_two_gigabytes() {
        let mut window = SendWindow::new(DEFAULT);
        assert_eq!(window.grow(MAX), Err(Overflow));
        assert_eq!(window.grow(MAX - DEFAULT), Ok(()));
        assert_eq!(window.grow(1), Err(Overflow));
        assert_eq!(window.resize(DEFAULT, DEFAULT + 1), Err(Overflow));
    }

    #[test]
    fn credit_is_told_when_half_of_the_window_is_to_be_given_back() {
        let mut window = ReceiveWindow::new(5);
        window.arrived(4).unwrap();
        window.release(2);
        assert_eq!(window.due(), None);
        window.release(1);
        assert_eq!(window.due(), Some(3));
        window.told();
        assert_eq!((window.due(), window), (None, ReceiveWindow { size: 5, open: 4, credit: 0 }));
    }

    #[test]
    fn what_never_came_is_not_given_back() {
        let mut window = ReceiveWindow::new(10);
        window.release(u32::MAX);
        assert_eq!(window, ReceiveWindow::new(10));
        assert_eq!(window.arrived(11), Err(Overrun));
    }

    #[test]
    fn whoever_holds_nothing_never_stops_the_server() {
        for size in 1..100 {
            for sent in 0..=size {
                let mut window = ReceiveWindow::new(size);
                window.arrived(sent).unwrap();
                window.release(sent);
                assert!(window.open > 0 || window.due().is_some(), "{sent} of {size}");
            }
        }
    }

    #[test]
    fn a_window_can_be_widened_up_to_what_there_can_be() {
        let mut window = ReceiveWindow::new(10);
        window.widen(u32::MAX);
        assert_eq!(window, ReceiveWindow { size: MAX, open: 10, credit: MAX - 10 });
        assert_eq!(window.due(), Some(MAX - 10));
    }
}
