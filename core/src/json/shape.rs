//! What the API's types say about a JSON value that its text does not.

/// How a value and what is in it compare.
#[derive(Debug)]
pub struct Shape {
    /// How the value itself compares, if it is a string or number.
    pub meaning: Meaning,
    /// For an object: `{}` is the same as absence, because the API has a map or an embedded
    /// struct there. Elsewhere it has a pointer, and an empty label selector, say, means the
    /// opposite of none.
    pub empty_is_absent: bool,
    /// The members of an object that are not plain, by name.
    pub members: &'static [(&'static str, &'static Shape)],
    /// The other members of an object, and the elements of an array. `None`: plain.
    pub rest: Option<&'static Shape>,
}

/// How a string or number compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Text as text, numbers by value.
    Plain,
    /// As a quantity: `1` is `1000m`.
    Quantity {
        /// The API has no pointer there: unset is zero.
        zero_is_absent: bool,
    },
    /// As an instant.
    Time,
    /// Not at all: the member might as well not be there.
    Omitted,
}

impl Shape {
    /// A value about which the text says it all.
    pub const PLAIN: Self =
        Self { meaning: Meaning::Plain, empty_is_absent: false, members: &[], rest: None };
    /// A map of plain values.
    pub const MAP: Self = Self { empty_is_absent: true, ..Self::PLAIN };
    /// A quantity that may be absent.
    pub const QUANTITY: Self =
        Self { meaning: Meaning::Quantity { zero_is_absent: false }, ..Self::PLAIN };
    /// A quantity whose absence means zero.
    pub const QUANTITY_OR_ZERO: Self =
        Self { meaning: Meaning::Quantity { zero_is_absent: true }, ..Self::PLAIN };
    /// A timestamp.
    pub const TIME: Self = Self { meaning: Meaning::Time, ..Self::PLAIN };
    /// Something that does not count.
    pub const OMITTED: Self = Self { meaning: Meaning::Omitted, ..Self::PLAIN };

    /// An object behind a pointer.
    pub const fn object(members: &'static [(&'static str, &'static Shape)]) -> Self {
        Self { members, ..Self::PLAIN }
    }

    /// An object embedded by value, or a map with special keys.
    pub const fn embedded(members: &'static [(&'static str, &'static Shape)]) -> Self {
        Self { members, empty_is_absent: true, ..Self::PLAIN }
    }

    /// An array of such values.
    pub const fn array(of: &'static Shape) -> Self {
        Self { rest: Some(of), ..Self::PLAIN }
    }

    /// A map to such values.
    pub const fn map(of: &'static Shape) -> Self {
        Self { rest: Some(of), ..Self::MAP }
    }

    pub(super) fn member(&self, name: &[u8]) -> Option<&'static Shape> {
        let mut members = self.members.iter();
        members.find(|(known, _)| known.as_bytes() == name).map(|(_, shape)| *shape)
    }

    pub(super) fn rest(&self) -> &'static Shape {
        self.rest.unwrap_or(&Self::PLAIN)
    }
}
