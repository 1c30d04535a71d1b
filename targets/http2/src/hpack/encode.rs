//! Writing header blocks, with what the server remembers.
//!
//! Headers that are the same in many requests go into the server's dynamic table with the first of them and
//! are called by number from then on: a token of a kilobyte is sent once on a connection. Only fingerprints
//! are kept here, so that neither a token nor anything else is stored twice.
//!
//! Which entry of the server's table is still there follows from sizes alone: an entry is evicted if and
//! only if it and all that came after it do not fit (RFC 7541 §4.3 and §4.4). So the newest are known, and
//! the others do not matter.

use core::fmt;

use crate::output::{Full, Output};

use super::{ENTRY_OVERHEAD, STATIC_ENTRIES, huffman};

/// The size of a table until somebody says otherwise (RFC 9113 §6.5.2). More is not used.
const DEFAULT_TABLE: u32 = 4096;
/// How many entries are known: authority, user agent, accept, authorization, four content types, three
/// methods, and one for whatever else.
const KNOWN: usize = 12;

/// A header of a request. What is secret in it is not shown by `Debug`.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Its name, in lower case.
    pub name: &'a str,
    /// Its value.
    pub value: &'a str,
    /// What the server is asked to remember of it.
    pub indexing: Indexing,
}

/// What the server is asked to remember of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Indexing {
    /// Nothing: the next request has another value.
    Passing,
    /// All of it: most requests have the same.
    Kept,
    /// All of it, and nothing else pushes it out; and how many bytes it takes says nothing about its value
    /// but its length. For secrets that are hard to guess and sent to the one server that they are for: see
    /// [the crate's documentation](crate#secrets).
    KeptSecret,
    /// Nothing, and whoever passes it on must not either (RFC 7541 §7.1.3). For secrets that could be
    /// guessed.
    Never,
}

impl<'a> Field<'a> {
    /// A header that most requests have with the same value.
    pub const fn kept(name: &'a str, value: &'a str) -> Self {
        Self { name, value, indexing: Indexing::Kept }
    }

    /// A secret that most requests carry: a token.
    pub const fn secret(name: &'a str, value: &'a str) -> Self {
        Self { name, value, indexing: Indexing::KeptSecret }
    }

    /// A header that is another in each request.
    pub const fn passing(name: &'a str, value: &'a str) -> Self {
        Self { name, value, indexing: Indexing::Passing }
    }

    /// What it counts for in the size of a head (RFC 9113 §6.5.2), and in a table (RFC 7541 §4.1).
    pub(crate) fn size(&self) -> u32 {
        let texts = self.name.len().saturating_add(self.value.len());
        u32::try_from(texts).unwrap_or(u32::MAX).saturating_add(ENTRY_OVERHEAD)
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_secret = matches!(self.indexing, Indexing::KeptSecret | Indexing::Never);
        let value = if is_secret { "…" } else { self.value };
        write!(f, "{}: {value} ({:?})", self.name, self.indexing)
    }
}

/// An entry of the server's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    print: [u32; 2],
    size: u16,
    is_secret: bool,
}

impl Entry {
    const NONE: Self = Self { print: [0; 2], size: 0, is_secret: false };
}

/// Writes header blocks, and knows what the server remembers of them.
#[derive(Clone, Debug)]
pub struct Encoder {
    /// The newest comes first. Those from `count` on are none.
    entries: [Entry; KNOWN],
    count: u8,
    /// The size of the server's table, as we have told it.
    size: u32,
    /// The size that the server allows.
    limit: u32,
    /// The least that it has allowed since the last block.
    lowest: u32,
}

impl Encoder {
    /// Before a connection. All zero.
    pub const fn new() -> Self {
        Self { entries: [Entry::NONE; KNOWN], count: 0, size: 0, limit: 0, lowest: 0 }
    }

    /// A connection begins.
    pub fn open(&mut self) {
        let (size, limit, lowest) = (DEFAULT_TABLE, DEFAULT_TABLE, DEFAULT_TABLE);
        *self = Self { size, limit, lowest, ..Self::new() };
    }

    /// The server says how large its table may be (`SETTINGS_HEADER_TABLE_SIZE`).
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit.min(DEFAULT_TABLE);
        self.lowest = self.lowest.min(self.limit);
    }

    /// Writes a block. Pseudo-headers come first among the fields.
    pub(crate) fn block<'f>(
        &mut self,
        fields: impl Iterator<Item = Field<'f>>,
        out: &mut Output<'_>,
    ) -> Result<(), Full> {
        // Counts only if all of it is written.
        let mut next = self.clone();
        next.size_update(out)?;
        for field in fields {
            next.field(&field, out)?;
        }
        *self = next;
        Ok(())
    }

    /// The least size that was allowed since the last block has to be told, and then the last (RFC 7541
    /// §4.2).
    fn size_update(&mut self, out: &mut Output<'_>) -> Result<(), Full> {
        if self.lowest < self.size {
            integer(out, 0x20, 5, self.lowest)?;
            self.size = self.lowest;
            self.count = self.staying(0);
        }
        if self.limit > self.size {
            integer(out, 0x20, 5, self.limit)?;
            self.size = self.limit;
        }
        self.lowest = self.limit;
        Ok(())
    }

    fn field(&mut self, field: &Field<'_>, out: &mut Output<'_>) -> Result<(), Full> {
        if let Some(index) = static_field(field) {
            return integer(out, 0x80, 7, index);
        }
        let is_secret = field.indexing == Indexing::KeptSecret;
        let first = match field.indexing {
            Indexing::Passing => (0x00, 4),
            Indexing::Never => (0x10, 4),
            Indexing::Kept | Indexing::KeptSecret => {
                let print = print(field);
                let mut known = self.entries.iter().take(usize::from(self.count));
                if let Some(at) = known.position(|entry| entry.print == print) {
                    return integer(out, 0x80, 7, STATIC_ENTRIES + 1 + at as u32);
                }
                match self.insert(print, field.size(), is_secret) {
                    true => (0x40, 6),
                    false if is_secret => (0x10, 4),
                    false => (0x00, 4),
                }
            }
        };
        let (bits, prefix) = first;
        match static_name(field.name) {
            Some(index) => integer(out, bits, prefix, index)?,
            None => {
                integer(out, bits, prefix, 0)?;
                string(out, field.name, true)?;
            }
        }
        // How well a secret compresses would tell of what it is made.
        let may_compress = matches!(field.indexing, Indexing::Passing | Indexing::Kept);
        string(out, field.value, may_compress)
    }

    /// Puts an entry into the server's table, unless it does not fit or would push a secret out: that is sent
    /// again each time, and larger.
    fn insert(&mut self, print: [u32; 2], size: u32, is_secret: bool) -> bool {
        let Ok(entry_size) = u16::try_from(size) else { return false };
        if size > self.size {
            return false;
        }
        let staying = usize::from(self.staying(size)).min(KNOWN - 1);
        let mut leaving = self.entries.iter().take(usize::from(self.count)).skip(staying);
        if !is_secret && leaving.any(|entry| entry.is_secret) {
            return false;
        }
        self.entries.copy_within(..KNOWN - 1, 1);
        if let Some(first) = self.entries.first_mut() {
            *first = Entry { print, size: entry_size, is_secret };
        }
        self.count = staying as u8 + 1;
        true
    }

    /// How many of the known entries stay when `more` bytes are added.
    fn staying(&self, more: u32) -> u8 {
        let known = self.entries.iter().take(usize::from(self.count));
        let sizes = known.scan(more, |sum, entry| {
            *sum += u32::from(entry.size);
            Some(*sum)
        });
        sizes.take_while(|sum| *sum <= self.size).count() as u8
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of a whole field in the static table, of those that requests have.
fn static_field(field: &Field<'_>) -> Option<u32> {
    Some(match (field.name, field.value) {
        (":method", "GET") => 2,
        (":method", "POST") => 3,
        (":path", "/") => 4,
        (":scheme", "http") => 6,
        (":scheme", "https") => 7,
        _ => return None,
    })
}

/// The number of a name in the static table, of those that requests have.
fn static_name(name: &str) -> Option<u32> {
    Some(match name {
        ":authority" => 1,
        ":method" => 2,
        ":path" => 4,
        ":scheme" => 6,
        "accept-encoding" => 16,
        "accept" => 19,
        "authorization" => 23,
        "cache-control" => 24,
        "content-encoding" => 26,
        "content-length" => 28,
        "content-type" => 31,
        "cookie" => 32,
        "if-match" => 39,
        "if-none-match" => 41,
        "user-agent" => 58,
        _ => return None,
    })
}

/// An integer with `prefix` bits in its first byte, after `bits` (§5.1).
fn integer(out: &mut Output<'_>, bits: u8, prefix: u8, value: u32) -> Result<(), Full> {
    let most = (1u32 << prefix) - 1;
    if value < most {
        return out.put(&[bits | value as u8]);
    }
    out.put(&[bits | most as u8])?;
    let mut rest = value - most;
    while rest >= 0x80 {
        out.put(&[rest as u8 | 0x80])?;
        rest >>= 7;
    }
    out.put(&[rest as u8])
}

/// A string, in the Huffman code if that is shorter (§5.2).
fn string(out: &mut Output<'_>, text: &str, may_compress: bool) -> Result<(), Full> {
    let length = |length: usize| u32::try_from(length).map_err(|_| Full);
    let text = text.as_bytes();
    let compressed = huffman::encoded_len(text);
    if may_compress && compressed < text.len() {
        integer(out, 0x80, 7, length(compressed)?)?;
        return huffman::encode(text, |byte| out.put(&[byte]));
    }
    integer(out, 0, 7, length(text.len())?)?;
    out.put(text)
}

/// Tells a field from others: 64 bits, of which two fields that were not made for it have the same once in
/// 2^64.
///
/// Who could make two such fields? Their values are our own: the token, the name of the server. Whoever
/// chooses both of two tokens of ours gains nothing by our sending the first one once more.
fn print(field: &Field<'_>) -> [u32; 2] {
    let mut state = mix(0x9e37_79b9_7f4a_7c15, field.name.len() as u64);
    for text in [field.name, field.value] {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        state = words.iter().fold(state, |state, word| mix(state, u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        for (place, byte) in last.iter_mut().zip(rest) {
            *place = *byte;
        }
        state = mix(state, u64::from_le_bytes(last));
    }
    let state = mix(state, field.value.len() as u64);
    [state as u32, (state >> 32) as u32]
}

/// One to one in `state` for each `word`, and in `word` for each `state`: texts of one length that differ
/// in a single word never have the same print.
fn mix(state: u64, word: u64) -> u64 {
    let product = (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
    product ^ product >> 32
}
