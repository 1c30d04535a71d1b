//! A canonical 128-bit digest of a JSON value, taken while it streams by.
//!
//! The digest is the sum, modulo 2¹²⁸, of one hash per leaf: of the path to the leaf and of its
//! value. A path is itself a chain of hashes over member names and array positions, so the state
//! is one path per open level and one sum. Sums do not care about order, which makes the order of
//! members irrelevant, while positions in the path keep that of array elements. Two different
//! values collide only if the difference of two sums of 128-bit hashes of distinct texts happens
//! to be zero.
//!
//! Equality is Kubernetes' semantic one: `null` is absence, an empty array is absence, an empty
//! object is absence where the API has a map or an embedded struct, numbers and quantities
//! compare by value and times as instants. A [`Shape`] says where which rule holds.

use super::decimal::Decimal;
use super::shape::{Meaning, Shape};
use super::{Flow, Fragment, Handler, Token};
use crate::time::Timestamp;
use core::hash::Hasher;
use heapless::Vec;
use siphasher::sip128::{Hasher128, SipHasher13};

/// A canonical digest: equal values have equal digests, whatever the order of their members.
///
/// The default is the digest of absence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u128);

#[cfg(feature = "defmt")]
impl defmt::Format for Digest {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "Digest({=u128:#x})", self.0);
    }
}

impl Digest {
    /// The digest with these bits.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits of the digest.
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// The digest of a map with one more entry.
    pub(crate) fn add(&mut self, entry: Digest) {
        self.0 = self.0.wrapping_add(entry.0);
    }
}

/// How many arrays and objects may be open within a digested value. A pod template has at most
/// eleven, in the label selectors of a volume claim template.
pub const DIGEST_DEPTH: usize = 16;

/// The value is nested more deeply than [`DIGEST_DEPTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DigestTooDeep;

/// Takes the digest of the value whose tokens it is given.
#[derive(Clone, Debug)]
pub struct Digester {
    sum: Digest,
    levels: Vec<Level, DIGEST_DEPTH>,
    /// Path and shape of the value that comes next; without a shape, it is plain.
    path: u128,
    shape: Option<&'static Shape>,
    /// Hashes a key or string while its fragments come.
    hasher: Option<SipHasher13>,
    /// A text that has to be looked at as a whole, as far as it fits.
    text: Vec<u8, TEXT>,
    text_is_cut: bool,
    /// Levels of an omitted or too deep value that are open.
    ignored: u32,
    too_deep: bool,
}

/// Long enough for every quantity, timestamp and number that is not hashed as mere text, and for
/// every member name that a shape mentions.
const TEXT: usize = 48;

#[derive(Clone, Copy, Debug)]
struct Level {
    path: u128,
    shape: &'static Shape,
    /// Elements so far; `None` in an object.
    elements: Option<u32>,
}

/// What is hashed after a path, so that no two sorts of value are mistaken for each other.
#[derive(Clone, Copy)]
enum Tag {
    Member = 1,
    Element,
    Object,
    Array,
    Text,
    Number,
    LongNumber,
    True,
    False,
    Quantity,
    Time,
}

impl Digester {
    /// A digester for one plain value, until it is [restarted](Self::restart).
    pub const PLAIN: Self = Self {
        sum: Digest(0),
        levels: Vec::new(),
        path: 0,
        shape: None,
        hasher: None,
        text: Vec::new(),
        text_is_cut: false,
        ignored: 0,
        too_deep: false,
    };

    /// A digester for one value of this shape.
    pub const fn new(shape: &'static Shape) -> Self {
        let mut digester = Self::PLAIN;
        digester.shape = Some(shape);
        digester
    }

    /// The shape of the value that comes next.
    fn shape(&self) -> &'static Shape {
        self.shape.unwrap_or(&Shape::PLAIN)
    }

    /// Gets ready for another value.
    pub fn restart(&mut self, shape: &'static Shape) {
        self.sum = Digest::default();
        self.levels.clear();
        self.path = 0;
        self.shape = Some(shape);
        self.ignored = 0;
        self.too_deep = false;
    }

    /// The value will not come: its digest is known.
    pub(crate) fn recall(&mut self, digest: Digest) {
        self.sum = digest;
    }

    /// The digest of all that came.
    pub fn finish(&self) -> Result<Digest, DigestTooDeep> {
        if self.too_deep { Err(DigestTooDeep) } else { Ok(self.sum) }
    }

    /// Takes the next token of the value.
    pub fn push(&mut self, token: Token<'_>) {
        if self.ignored > 0 {
            return self.ignore(token);
        }
        match token {
            Token::Key(fragment) => return self.key(fragment),
            Token::String(fragment) | Token::Number(fragment) if !fragment.first => {}
            Token::ObjectEnd | Token::ArrayEnd => return self.close(),
            _ => self.begin_value(),
        }
        if self.shape().meaning == Meaning::Omitted {
            if matches!(token, Token::ObjectStart | Token::ArrayStart) {
                self.ignored = 1;
            }
            return;
        }
        match token {
            Token::ObjectStart => self.open(None),
            Token::ArrayStart => self.open(Some(0)),
            Token::String(fragment) => self.string(fragment),
            Token::Number(fragment) => self.number(fragment),
            Token::Bool(true) => self.leaf(Tag::True, b""),
            Token::Bool(false) => self.leaf(Tag::False, b""),
            Token::Null | Token::Key(_) | Token::ObjectEnd | Token::ArrayEnd => {}
        }
    }

    fn ignore(&mut self, token: Token<'_>) {
        match token {
            Token::ObjectStart | Token::ArrayStart => self.ignored = self.ignored.saturating_add(1),
            Token::ObjectEnd | Token::ArrayEnd => self.ignored -= 1,
            _ => {}
        }
    }

    /// In an array, the path of the element that begins. In an object, the key has set it.
    fn begin_value(&mut self) {
        let Some(level) = self.levels.last_mut() else { return };
        let Some(elements) = &mut level.elements else { return };
        let position = *elements;
        *elements += 1;
        let (path, shape) = (level.path, level.shape);
        self.path = hash(path, Tag::Element, &position.to_le_bytes());
        self.shape = Some(shape.rest());
    }

    fn key(&mut self, fragment: Fragment<'_>) {
        let Some(&Level { path, shape, .. }) = self.levels.last() else { return };
        if fragment.first {
            self.hasher = Some(hasher(path, Tag::Member));
            self.clear_text();
        }
        self.write(fragment.bytes);
        self.keep_text(fragment.bytes);
        if fragment.last {
            self.path = self.hashed();
            let known = if self.text_is_cut { None } else { shape.member(&self.text) };
            self.shape = Some(known.unwrap_or(shape.rest()));
        }
    }

    fn open(&mut self, elements: Option<u32>) {
        if elements.is_none() && !self.shape().empty_is_absent {
            self.leaf(Tag::Object, b"");
        }
        let level = Level { path: self.path, shape: self.shape(), elements };
        if self.levels.push(level).is_err() {
            self.too_deep = true;
            self.ignored = 1;
        }
    }

    fn close(&mut self) {
        if let Some(Level { path, elements: Some(count @ 1..), .. }) = self.levels.pop() {
            self.path = path;
            self.leaf(Tag::Array, &count.to_le_bytes());
        }
    }

    fn string(&mut self, fragment: Fragment<'_>) {
        if fragment.first {
            self.hasher = Some(hasher(self.path, Tag::Text));
            self.clear_text();
        }
        self.write(fragment.bytes);
        if self.shape().meaning != Meaning::Plain {
            self.keep_text(fragment.bytes);
        }
        if fragment.last && !self.meaningful_text() {
            self.sum.add(Digest(self.hashed()));
        }
    }

    fn number(&mut self, fragment: Fragment<'_>) {
        if fragment.first {
            self.hasher = Some(hasher(self.path, Tag::LongNumber));
            self.clear_text();
        }
        self.write(fragment.bytes);
        self.keep_text(fragment.bytes);
        if !fragment.last || self.meaningful_text() {
            return;
        }
        let value = if self.text_is_cut { None } else { Decimal::parse_number(&self.text) };
        match value {
            Some(value) => self.leaf(Tag::Number, &value.to_bytes()),
            None => self.sum.add(Digest(self.hashed())),
        }
    }

    /// Adds a quantity or time by its value; `false` if the text is neither, or not meant to be.
    fn meaningful_text(&mut self) -> bool {
        if self.text_is_cut {
            return false;
        }
        match self.shape().meaning {
            Meaning::Plain | Meaning::Omitted => false,
            Meaning::Quantity { zero_is_absent } => {
                let Some(value) = Decimal::parse_quantity(&self.text) else { return false };
                if !(zero_is_absent && value.is_zero()) {
                    self.leaf(Tag::Quantity, &value.to_bytes());
                }
                true
            }
            Meaning::Time => {
                let Some(time) = Timestamp::parse_rfc3339(&self.text) else { return false };
                self.leaf(Tag::Time, &time.as_micros().to_le_bytes());
                true
            }
        }
    }

    fn leaf(&mut self, tag: Tag, bytes: &[u8]) {
        self.sum.add(Digest(hash(self.path, tag, bytes)));
    }

    fn write(&mut self, bytes: &[u8]) {
        self.hasher.get_or_insert_default().write(bytes);
    }

    fn hashed(&self) -> u128 {
        self.hasher.map_or(0, |hasher| hasher.finish128().as_u128())
    }

    fn clear_text(&mut self) {
        self.text.clear();
        self.text_is_cut = false;
    }

    fn keep_text(&mut self, bytes: &[u8]) {
        self.text_is_cut |= self.text.extend_from_slice(bytes).is_err();
    }
}

impl Handler for Digester {
    fn token(&mut self, token: Token<'_>) -> Flow {
        self.push(token);
        Flow::Next
    }
}

/// The path and the sort of value are the key of the hash: hashes under different keys have
/// nothing to do with each other.
fn hasher(path: u128, tag: Tag) -> SipHasher13 {
    SipHasher13::new_with_keys(path as u64, (path >> 64) as u64 ^ tag as u64)
}

fn hash(path: u128, tag: Tag, bytes: &[u8]) -> u128 {
    let mut hasher = hasher(path, tag);
    hasher.write(bytes);
    hasher.finish128().as_u128()
}
