//! Names of objects, compact.
//!
//! The pods of one ReplicaSet are called `<ReplicaSet>-<five characters>`. A pod's name is kept as
//! the interned text before its last dash, which is the ReplicaSet's own name, and a short tail in
//! the record itself.

use core::fmt;

use super::{Interner, Text, TextFull};
use crate::limits::ObjectName;

const TAIL: usize = 7;
/// What the server appends to `generateName`; the tail of a name without a suitable dash.
const GENERATED: usize = 5;
const DASH: u8 = 1 << 7;

/// The name of an object, comparable within one [`Interner`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name {
    stem: Text,
    /// Length of the tail, and [`DASH`] if a dash stands before it.
    shape: u8,
    tail: [u8; TAIL],
}

impl Name {
    /// The empty name.
    pub const EMPTY: Self = Self { stem: Text::EMPTY, shape: 0, tail: [0; TAIL] };

    /// Interns a name whole: right for names that are not one of many.
    pub fn whole(texts: &mut Interner, name: &str) -> Result<Self, TextFull> {
        texts.intern(name.as_bytes()).map(|stem| Self { stem, ..Self::default() })
    }

    /// Interns a name in two parts: right for pods.
    pub fn split(texts: &mut Interner, name: &str) -> Result<Self, TextFull> {
        let (stem, mut name) = parts(name);
        name.stem = texts.intern(stem)?;
        Ok(name)
    }

    /// The name that [`whole`](Self::whole) gave, if it is interned.
    pub fn find_whole(texts: &Interner, name: &str) -> Option<Self> {
        texts.find(name.as_bytes()).map(|stem| Self { stem, ..Self::default() })
    }

    /// The name that [`split`](Self::split) gave, if its stem is interned.
    pub fn find_split(texts: &Interner, name: &str) -> Option<Self> {
        let (stem, mut name) = parts(name);
        name.stem = texts.find(stem)?;
        Some(name)
    }

    /// Gives the interned part back.
    pub fn release(self, texts: &mut Interner) {
        texts.release(self.stem);
    }

    /// The order of the names as texts.
    pub fn compare(self, other: Self, texts: &Interner) -> core::cmp::Ordering {
        self.bytes(texts).cmp(other.bytes(texts))
    }

    fn bytes(self, texts: &Interner) -> impl Iterator<Item = u8> {
        let Self { stem, shape, tail } = self;
        let dash = (shape & DASH != 0).then_some(b'-');
        let tail = tail.into_iter().take(usize::from(shape & !DASH));
        texts.pieces(stem).flatten().copied().chain(dash).chain(tail)
    }

    /// Another handle to the same name.
    pub fn retain(self, texts: &mut Interner) -> Self {
        texts.retain(self.stem);
        self
    }

    /// The name that is this text as a whole.
    pub(crate) const fn from_text(stem: Text) -> Self {
        Self { stem, ..Self::EMPTY }
    }

    /// The text of a name that was interned [`whole`](Self::whole).
    pub fn as_text(self) -> Option<Text> {
        (self.shape == 0).then_some(self.stem)
    }

    /// Bits that tell names apart, for a hash index.
    pub(crate) fn bits(self) -> [u8; TAIL + 3] {
        let [low, high] = self.stem.bits().to_le_bytes();
        let [a, b, c, d, e, f, g] = self.tail;
        [low, high, self.shape, a, b, c, d, e, f, g]
    }

    /// The name as text.
    pub fn display(self, texts: &Interner) -> NameDisplay<'_> {
        NameDisplay { name: self, texts }
    }

    /// The name as a text of its own.
    pub(crate) fn to_object_name(self, texts: &Interner) -> ObjectName {
        use fmt::Write;
        let mut out = ObjectName::new();
        // A name has at most as many bytes.
        let _ = write!(out, "{}", self.display(texts));
        out
    }

    /// Whether this is the name in question.
    pub fn is(self, texts: &Interner, name: &str) -> bool {
        if self.shape == 0 {
            return texts.is(self.stem, name.as_bytes());
        }
        let (stem, rest) = parts(name);
        (rest.shape, rest.tail) == (self.shape, self.tail) && texts.is(self.stem, stem)
    }
}

/// A name that can be written out.
#[derive(Clone, Copy, Debug)]
pub struct NameDisplay<'a> {
    name: Name,
    texts: &'a Interner,
}

impl fmt::Display for NameDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Name { stem, shape, tail } = &self.name;
        self.texts.pieces(*stem).try_for_each(|piece| write_ascii(f, piece))?;
        if shape & DASH != 0 {
            f.write_str("-")?;
        }
        write_ascii(f, tail.get(..usize::from(shape & !DASH)).unwrap_or_default())
    }
}

/// Names are ASCII, so that a piece of a name never ends within a character.
fn write_ascii(f: &mut fmt::Formatter<'_>, piece: &[u8]) -> fmt::Result {
    f.write_str(core::str::from_utf8(piece).map_err(|_| fmt::Error)?)
}

/// The stem of a name, and the name without it.
fn parts(name: &str) -> (&[u8], Name) {
    let bytes = name.as_bytes();
    let dash = bytes.iter().rposition(|&byte| byte == b'-');
    let after_dash = dash.and_then(|dash| Some((bytes.get(..dash)?, bytes.get(dash + 1..)?)));
    if let Some((stem, tail)) = after_dash
        && (1..=TAIL).contains(&tail.len())
    {
        return (stem, stemless(tail, DASH));
    }
    match bytes.len().checked_sub(GENERATED).and_then(|at| bytes.split_at_checked(at)) {
        Some((stem, tail)) => (stem, stemless(tail, 0)),
        None => (&[], stemless(bytes, 0)),
    }
}

fn stemless(bytes: &[u8], dash: u8) -> Name {
    let mut tail = [0; TAIL];
    tail.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    Name { stem: Text::EMPTY, shape: bytes.len() as u8 | dash, tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;
    use std::string::ToString;

    fn names() -> impl Iterator<Item = std::string::String> {
        let long = "n".repeat(limits::NAME);
        let dashed = "a-".repeat(126) + "z";
        [
            "",
            "a",
            "web-0",
            "web",
            "web-frontend-7d4b9c6f5d-x2x7k",
            "web-frontend-7d4b9c6f5dx2x7k",
            "web-frontend-7d4b9c6f5d",
            "sevench-abcdefg",
            "eight-abcdefgh",
            "trailing-",
            "12345",
            "123456",
            &long,
            &dashed,
        ]
        .map(ToString::to_string)
        .into_iter()
    }

    #[test]
    fn both_forms_print_and_find_what_was_interned() {
        let mut texts = Interner::<[_; 200]>::new();
        let texts: &mut Interner = &mut texts;
        for name in names() {
            let split = Name::split(texts, &name).unwrap();
            let whole = Name::whole(texts, &name).unwrap();
            assert_eq!(split.display(texts).to_string(), name);
            assert_eq!(whole.display(texts).to_string(), name);
            assert_eq!(Name::find_split(texts, &name), Some(split));
            assert_eq!(Name::find_whole(texts, &name), Some(whole));
            for other in names() {
                assert_eq!(split.is(texts, &other), name == other, "{name} {other}");
                assert_eq!(whole.is(texts, &other), name == other, "{name} {other}");
            }
            split.release(texts);
            whole.release(texts);
        }
        assert_eq!(texts.used(), 0);
    }

    #[test]
    fn pods_of_a_replica_set_share_its_name() {
        let mut texts = Interner::<[_; 10]>::new();
        let texts: &mut Interner = &mut texts;
        Name::whole(texts, "web-frontend-7d4b9c6f5d").unwrap();
        let used = texts.used();
        for tail in ["x2x7k", "b4c9d", "zzzzz"] {
            Name::split(texts, &std::format!("web-frontend-7d4b9c6f5d-{tail}")).unwrap();
        }
        assert_eq!(texts.used(), used);
    }
}
