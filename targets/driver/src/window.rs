//! A text that is written again and again, of which a piece is kept each time.

use core::fmt;

/// Keeps the part of a text that begins after `skip` bytes, as far as it fits `N` bytes.
pub(crate) struct Window<const N: usize> {
    skip: usize,
    seen: usize,
    print: u32,
    bytes: heapless::Vec<u8, N>,
}

impl<const N: usize> Window<N> {
    /// Keeps what comes after `skip` bytes.
    pub(crate) const fn after(skip: usize) -> Self {
        Self { skip, seen: 0, print: 0, bytes: heapless::Vec::new() }
    }

    /// Keeps nothing and only counts.
    pub(crate) const fn counting() -> Self {
        Self::after(usize::MAX)
    }

    /// How long the whole text is.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    /// A number that tells the whole text from others of the same length, not those of an adversary.
    pub(crate) fn print(&self) -> u32 {
        self.print
    }

    /// The part that was kept.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<const N: usize> fmt::Write for Window<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let bytes = text.as_bytes();
        let from = self.skip.saturating_sub(self.seen);
        self.seen += bytes.len();
        // FNV-1a
        let mix = |print: u32, byte: &u8| (print ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        self.print = bytes.iter().fold(self.print, mix);
        let wanted = bytes.get(from..).unwrap_or_default();
        let room = N - self.bytes.len();
        let fits = wanted.get(..room).unwrap_or(wanted);
        self.bytes.extend_from_slice(fits).map_err(|_| fmt::Error)
    }
}
