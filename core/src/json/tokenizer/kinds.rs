//! Which arrays and objects are open.

/// How many arrays and objects may be open at once. The same as `serde_json` allows.
pub const MAX_DEPTH: usize = 127;

/// The kind of each open array or object, one bit each: the lowest is that of the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u128);

impl Kinds {
    /// Nothing is open.
    pub(super) const NONE: Self = Self(0);
    /// An array that is a member of an object.
    pub(super) const ARRAY_IN_OBJECT: Self = Self(0b10);

    /// Whether the innermost is an object.
    #[inline]
    pub(super) const fn ends_in_object(self) -> bool {
        self.0 & 1 != 0
    }

    /// With another one in it.
    #[inline]
    pub(super) const fn and(self, object: bool) -> Self {
        Self(self.0 << 1 | object as u128)
    }

    /// Without the innermost, as many as this.
    #[inline]
    pub(super) const fn without_last(self, count: u8) -> Self {
        Self(self.0 >> count)
    }

    /// With a mark above all of them, which keeps count of them.
    pub(super) const fn marked(self, depth: u8) -> Self {
        Self(self.0 | 1 << depth)
    }

    /// Whether no more may be opened, going by the mark.
    #[inline]
    pub(super) const fn is_full(self) -> bool {
        self.0 >> MAX_DEPTH != 0
    }

    /// How many are open, going by the mark, and which, without it.
    pub(super) const fn unmarked(self) -> (u8, Self) {
        let depth = MAX_DEPTH as u8 - self.0.leading_zeros() as u8;
        (depth, Self(self.0 & !(1 << depth)))
    }
}
