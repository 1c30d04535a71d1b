//! Reading header blocks, front to back, once.
//!
//! We announce a dynamic table of size 0. Then a block means the same whatever came before it: it can be
//! read as it comes, byte by byte, keeping what matters and forgetting the rest, and one that nobody wants
//! need not be read at all. That costs the server some bytes in each response, and us no memory: a table
//! would take 4 KiB.

use core::fmt;

use super::huffman;
use super::{ENTRY_OVERHEAD, STATIC_ENTRIES};

/// The largest head that is read, counted as in RFC 9113 §6.5.2, which the server is told
/// (`SETTINGS_MAX_HEADER_LIST_SIZE`).
pub const MAX_HEADER_LIST: u32 = 16_384;

/// What is kept of the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code, 200 to 599.
    pub status: u16,
    /// How long the body will be, if the server says so.
    pub content_length: Option<u64>,
    date: Text<29>,
    retry_after: Text<29>,
    content_type: Text<64>,
}

impl Head {
    const EMPTY: Self = Self {
        status: 0,
        content_length: None,
        date: Text::EMPTY,
        retry_after: Text::EMPTY,
        content_type: Text::EMPTY,
    };

    /// The server's clock, as it tells it: `Date` has 29 bytes, and a text of more is as good as none.
    pub fn date(&self) -> Option<&[u8]> {
        self.date.get()
    }

    /// When to ask again, as the server puts it: seconds, or a date.
    pub fn retry_after(&self) -> Option<&[u8]> {
        self.retry_after.get()
    }

    /// What the body is. A text of more than 64 bytes is as good as none.
    pub fn content_type(&self) -> Option<&[u8]> {
        self.content_type.get()
    }
}

/// A block that cannot be decoded. What follows it on the connection cannot either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression;

impl From<huffman::Invalid> for Compression {
    fn from(_: huffman::Invalid) -> Self {
        Self
    }
}

/// What is wrong with a head that could be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It breaks a rule of RFC 9113 §8.2 or §8.3.
    Malformed,
    /// It is larger than [`MAX_HEADER_LIST`].
    TooLarge,
}

/// Reads one block after the other.
#[derive(Clone, Debug)]
pub struct Decoder {
    step: Step,
    huffman: huffman::Decoder,
    /// The name that is being read.
    text: Text<20>,
    /// What came last of a value, which must not end in white space.
    last: u8,
    head: Head,
    fault: Fault,
    /// Of all fields so far.
    size: u32,
    has_status: bool,
    /// A field that is no pseudo-header was seen: no pseudo-header may follow.
    has_regular: bool,
    /// A field was seen: no change of the table's size may follow.
    has_field: bool,
    size_updates: u8,
}

/// What the next byte is.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The first byte of a field.
    Field,
    /// More of the index of a field that is in a table as a whole.
    Indexed(Integer),
    /// More of the index of a field whose name is in a table.
    Named(Integer),
    /// The first byte of a string's length.
    Length(Part),
    /// More of a string's length.
    LongLength(Part, Coding, Integer),
    /// A byte of a string of which so many are left.
    String(Part, Coding, u32),
}

/// Which string of a field.
#[derive(Clone, Copy, Debug)]
enum Part {
    Name,
    Value(Name),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Plain,
    Huffman,
}

/// An integer that takes more than its first byte (RFC 7541 §5.1).
#[derive(Clone, Copy, Debug)]
struct Integer {
    value: u32,
    shift: u8,
}

impl Integer {
    const fn above(value: u8) -> Self {
        Self { value: value as u32, shift: 0 }
    }

    /// Takes the next byte in; `true` if it was the last. Four are enough for everything that a block can
    /// hold, and §5.1 wants longer ones to be errors.
    fn push(&mut self, byte: u8) -> Result<bool, Compression> {
        if self.shift > 21 {
            return Err(Compression);
        }
        self.value += u32::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        Ok(byte & 0x80 == 0)
    }
}

/// The headers that are told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Status,
    Date,
    RetryAfter,
    ContentType,
    ContentLength,
    /// Those about a connection, which HTTP/2 has no use for (§8.2.2), and pseudo-headers of requests.
    Forbidden,
    Other,
}

impl Name {
    /// That of an entry of the static table; our dynamic table is empty.
    fn of_index(index: u32) -> Result<Self, Compression> {
        Ok(match index {
            1..=7 => Self::Forbidden,
            8..=14 => Self::Status,
            28 => Self::ContentLength,
            31 => Self::ContentType,
            33 => Self::Date,
            53 => Self::RetryAfter,
            57 => Self::Forbidden, // transfer-encoding
            15..=STATIC_ENTRIES => Self::Other,
            _ => return Err(Compression),
        })
    }

    /// One that was spelt out. A text that was too long to be kept is none of those that matter.
    fn of_text<const N: usize>(text: &Text<N>) -> Self {
        match text.get() {
            Some(b":status") => Self::Status,
            Some(b"date") => Self::Date,
            Some(b"retry-after") => Self::RetryAfter,
            Some(b"content-type") => Self::ContentType,
            Some(b"content-length") => Self::ContentLength,
            Some(
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
                | b"upgrade",
            ) => Self::Forbidden,
            _ if text.bytes.first() == Some(&b':') => Self::Forbidden,
            _ => Self::Other,
        }
    }
}

impl Decoder {
    /// At the start of a block. All zero.
    pub const fn new() -> Self {
        Self {
            step: Step::Field,
            huffman: huffman::Decoder::START,
            text: Text::EMPTY,
            last: 0,
            head: Head::EMPTY,
            fault: Fault::None,
            size: 0,
            has_status: false,
            has_regular: false,
            has_field: false,
            size_updates: 0,
        }
    }

    /// The next bytes of a block.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Compression> {
        bytes.iter().try_for_each(|byte| {
            self.step = self.accept(*byte)?;
            Ok(())
        })
    }

    /// The block has ended: what was in it, and whether there was a status.
    pub fn finish(&mut self) -> Result<Result<(Head, bool), Fault>, Compression> {
        let Self { step, head, fault, has_status, .. } = core::mem::take(self);
        match (step, fault) {
            (Step::Field, Fault::None) => Ok(Ok((head, has_status))),
            (Step::Field, fault) => Ok(Err(fault)),
            _ => Err(Compression),
        }
    }

    fn accept(&mut self, byte: u8) -> Result<Step, Compression> {
        match self.step {
            Step::Field => self.begin(byte),
            Step::Indexed(mut index) => match index.push(byte)? {
                true => self.indexed(index.value),
                false => Ok(Step::Indexed(index)),
            },
            Step::Named(mut index) => match index.push(byte)? {
                true => self.named(index.value),
                false => Ok(Step::Named(index)),
            },
            Step::Length(part) => {
                let coding = if byte & 0x80 == 0 { Coding::Plain } else { Coding::Huffman };
                match byte & 0x7f {
                    0x7f => Ok(Step::LongLength(part, coding, Integer::above(0x7f))),
                    length => self.string(part, coding, u32::from(length)),
                }
            }
            Step::LongLength(part, coding, mut length) => match length.push(byte)? {
                true => self.string(part, coding, length.value),
                false => Ok(Step::LongLength(part, coding, length)),
            },
            Step::String(part, coding, left) => {
                self.byte(part, coding, byte)?;
                match left - 1 {
                    0 => self.end_of_string(part, coding),
                    left => Ok(Step::String(part, coding, left)),
                }
            }
        }
    }

    /// The first byte of a field (RFC 7541 §6).
    fn begin(&mut self, byte: u8) -> Result<Step, Compression> {
        if (0x20..0x40).contains(&byte) {
            return self.size_update(byte & 0x1f);
        }
        self.has_field = true;
        self.add(ENTRY_OVERHEAD);
        match byte {
            // Indexed.
            0x80.. => match byte & 0x7f {
                0x7f => Ok(Step::Indexed(Integer::above(0x7f))),
                index => self.indexed(u32::from(index)),
            },
            // To be remembered, which a table of size 0 does not (§4.4).
            0x40.. => match byte & 0x3f {
                0x3f => Ok(Step::Named(Integer::above(0x3f))),
                index => self.named(u32::from(index)),
            },
            // Not to be remembered, or never.
            _ => match byte & 0x0f {
                0x0f => Ok(Step::Named(Integer::above(0x0f))),
                index => self.named(u32::from(index)),
            },
        }
    }

    /// The server changes the size of our table. It may not be more than what we announced, which is nothing
    /// (§6.3), and it may change only at the start of a block, at most twice (§4.2).
    fn size_update(&mut self, size: u8) -> Result<Step, Compression> {
        self.size_updates += 1;
        if size == 0 && !self.has_field && self.size_updates <= 2 {
            Ok(Step::Field)
        } else {
            Err(Compression)
        }
    }

    fn indexed(&mut self, index: u32) -> Result<Step, Compression> {
        const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
        let name = Name::of_index(index)?;
        self.begin_value(name);
        match name {
            Name::Status => {
                let status = index.checked_sub(8).and_then(|at| STATUSES.get(at as usize));
                self.head.status = *status.ok_or(Compression)?;
            }
            // The values of the others are empty, and this one must not be.
            Name::ContentLength => self.fault(Fault::Malformed),
            _ => {}
        }
        Ok(Step::Field)
    }

    fn named(&mut self, index: u32) -> Result<Step, Compression> {
        Ok(Step::Length(if index == 0 { Part::Name } else { Part::Value(Name::of_index(index)?) }))
    }

    fn string(&mut self, part: Part, coding: Coding, length: u32) -> Result<Step, Compression> {
        self.huffman = huffman::Decoder::START;
        match part {
            Part::Name => self.text = Text::EMPTY,
            Part::Value(name) => self.begin_value(name),
        }
        match length {
            0 => self.end_of_string(part, coding),
            left => Ok(Step::String(part, coding, left)),
        }
    }

    fn byte(&mut self, part: Part, coding: Coding, byte: u8) -> Result<(), Compression> {
        match coding {
            Coding::Plain => self.symbol(part, byte),
            Coding::Huffman => {
                let mut huffman = self.huffman;
                huffman.push(byte, |symbol| self.symbol(part, symbol))?;
                self.huffman = huffman;
            }
        }
        Ok(())
    }

    /// Characters are checked as RFC 9113 §8.2.1 wants it.
    fn symbol(&mut self, part: Part, symbol: u8) {
        self.add(1);
        match part {
            Part::Name => {
                let is_colon_inside = symbol == b':' && self.text.len > 0;
                if symbol <= b' '
                    || symbol >= 0x7f
                    || symbol.is_ascii_uppercase()
                    || is_colon_inside
                {
                    self.fault(Fault::Malformed);
                }
                self.text.push(symbol);
            }
            Part::Value(name) => {
                let is_first = self.last == 0;
                if matches!(symbol, 0 | b'\r' | b'\n') || is_first && matches!(symbol, b' ' | b'\t')
                {
                    self.fault(Fault::Malformed);
                }
                self.last = symbol.max(1);
                self.value(name, symbol);
            }
        }
    }

    fn begin_value(&mut self, name: Name) {
        self.last = 0;
        match name {
            Name::Status if self.has_status || self.has_regular => self.fault(Fault::Malformed),
            Name::Status => {
                self.has_status = true;
                self.head.status = 0;
            }
            Name::Forbidden => self.fault(Fault::Malformed),
            Name::Date => self.head.date = Text::EMPTY,
            Name::RetryAfter => self.head.retry_after = Text::EMPTY,
            Name::ContentType => self.head.content_type = Text::EMPTY,
            // One length, and no list of them: whoever sees two may see two different ones.
            Name::ContentLength if self.head.content_length.is_some() => {
                self.fault(Fault::Malformed)
            }
            Name::ContentLength => self.head.content_length = Some(0),
            Name::Other => {}
        }
        self.has_regular |= name != Name::Status;
    }

    fn value(&mut self, name: Name, symbol: u8) {
        let digit = symbol.is_ascii_digit().then(|| symbol - b'0');
        match name {
            Name::Status => {
                let status = self.head.status;
                let more = |digit: u8| status.checked_mul(10)?.checked_add(u16::from(digit));
                match digit.filter(|digit| status > 0 || *digit > 0).and_then(more) {
                    Some(status) => self.head.status = status,
                    None => self.fault(Fault::Malformed),
                }
            }
            Name::ContentLength => {
                let length = self.head.content_length.unwrap_or(0);
                let more = |digit: u8| length.checked_mul(10)?.checked_add(u64::from(digit));
                match digit.and_then(more) {
                    Some(length) => self.head.content_length = Some(length),
                    None => self.fault(Fault::Malformed),
                }
            }
            Name::Date => self.head.date.push(symbol),
            Name::RetryAfter => self.head.retry_after.push(symbol),
            Name::ContentType => self.head.content_type.push(symbol),
            Name::Forbidden | Name::Other => {}
        }
    }

    fn end_of_string(&mut self, part: Part, coding: Coding) -> Result<Step, Compression> {
        if coding == Coding::Huffman && !self.huffman.may_end() {
            return Err(Compression);
        }
        match part {
            Part::Name => {
                if self.text.len == 0 {
                    self.fault(Fault::Malformed);
                }
                Ok(Step::Length(Part::Value(Name::of_text(&self.text))))
            }
            Part::Value(name) => {
                let is_empty = self.last == 0;
                let must_not_be = matches!(name, Name::Status | Name::ContentLength);
                if matches!(self.last, b' ' | b'\t') || is_empty && must_not_be {
                    self.fault(Fault::Malformed);
                }
                Ok(Step::Field)
            }
        }
    }

    /// Counts towards the size of the head. The names and values of the static table are not counted: they
    /// are not sent either.
    fn add(&mut self, count: u32) {
        self.size = self.size.saturating_add(count);
        if self.size > MAX_HEADER_LIST {
            self.fault(Fault::TooLarge);
        }
    }

    /// The first fault counts.
    fn fault(&mut self, fault: Fault) {
        if self.fault == Fault::None {
            self.fault = fault;
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// A text of up to `N` bytes, or one that was longer and is not kept.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Text<const N: usize> {
    bytes: [u8; N],
    /// More than `N` if there were more.
    len: u8,
}

impl<const N: usize> Text<N> {
    const EMPTY: Self = Self { bytes: [0; N], len: 0 };

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.len)) {
            *place = byte;
        }
        self.len = self.len.saturating_add(1);
    }

    fn get(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::from(self.len)).filter(|text| !text.is_empty())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.get().unwrap_or_default().escape_ascii())
    }
}
