//! Memory that starts as zero.
//!
//! What is all zero at the start takes no room in flash and need not be copied at boot. `Option` marks the
//! absence of a value by something that the value cannot be, and picks zero for that if zero is free: hence
//! enums whose first discriminant is 1. Where a value can be anything, [`ZeroOption`] marks it beside.

/// An `Option` that is all zero without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ZeroOption<T> {
    /// No value.
    #[default]
    None,
    /// A value.
    Some(T),
}

impl<T> ZeroOption<T> {
    /// The value where it is.
    pub const fn as_ref(&self) -> Option<&T> {
        match self {
            Self::None => None,
            Self::Some(value) => Some(value),
        }
    }

    /// The value where it is, to be changed.
    pub const fn as_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::None => None,
            Self::Some(value) => Some(value),
        }
    }

    /// The value, which is not here any more.
    pub fn take(&mut self) -> Option<T> {
        match core::mem::replace(self, Self::None) {
            Self::None => None,
            Self::Some(value) => Some(value),
        }
    }
}

impl<T> From<Option<T>> for ZeroOption<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Self::Some)
    }
}

impl<T: Copy> ZeroOption<T> {
    /// The value.
    pub const fn get(&self) -> Option<T> {
        match self {
            Self::None => None,
            Self::Some(value) => Some(*value),
        }
    }
}
