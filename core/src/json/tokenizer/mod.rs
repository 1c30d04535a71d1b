//! A push tokenizer: fed with whatever bytes have arrived, it tells a [`Handler`] what they mean.
//!
//! Its state has a fixed size, whatever the size of the document: one bit per open array or
//! object, and where in a token the last chunk ended. It accepts exactly what RFC 8259 allows,
//! also within values that the handler skips.

mod number;
mod scan;
mod skip;
mod text;

use super::{Error, ErrorReason, Flow, Handler, Token};
use number::Number;
use scan::Utf8;

/// How many arrays and objects may be open at once. The same as `serde_json` allows.
pub const MAX_DEPTH: usize = 127;

/// Reads JSON documents from chunks of bytes.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    state: State,
    /// Text of the current string or number has been told already.
    begun: bool,
    /// The string being read is the name of a member.
    is_key: bool,
    /// Nothing is told until the value at `skip_depth` is over.
    skipping: bool,
    skip_depth: u8,
    depth: u8,
    /// Whether the innermost open container is an object.
    in_object: bool,
    /// The same for all open containers, one bit each.
    kinds: [u32; KIND_WORDS],
    utf8: Utf8,
    escape: Escape,
    number: Number,
    literal: Literal,
    offset: u64,
}

const KIND_WORDS: usize = MAX_DEPTH.div_ceil(32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    FirstElementOrEnd,
    FirstKeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
    String,
    Escape,
    Number,
    Literal,
    Done,
}

impl State {
    /// Whether the last chunk ended within a string, number or literal.
    fn is_within_token(self) -> bool {
        matches!(self, Self::String | Self::Escape | Self::Number | Self::Literal)
    }
}

/// Where in an escape sequence a string is, after the backslash.
#[derive(Clone, Copy, Debug)]
struct Escape {
    /// Hexadecimal digits of `\u` still to come.
    digits: u8,
    code: u16,
    /// The first half of a surrogate pair, waiting for the second.
    high: u16,
}

impl Escape {
    const START: Self = Self { digits: 0, code: 0, high: 0 };
}

/// A literal that is being read.
#[derive(Clone, Copy, Debug)]
struct Literal {
    value: LiteralValue,
    /// How many letters of its text have been read.
    read: u8,
}

/// The values that have names.
#[derive(Clone, Copy, Debug)]
enum LiteralValue {
    Null,
    True,
    False,
}

impl Literal {
    const START: Self = Self { value: LiteralValue::Null, read: 0 };

    /// What is still to come of its text.
    fn rest(self) -> &'static [u8] {
        let text: &[u8] = match self.value {
            LiteralValue::Null => b"null",
            LiteralValue::True => b"true",
            LiteralValue::False => b"false",
        };
        text.get(self.read.into()..).unwrap_or_default()
    }

    fn token(self) -> Token<'static> {
        match self.value {
            LiteralValue::Null => Token::Null,
            LiteralValue::True => Token::Bool(true),
            LiteralValue::False => Token::Bool(false),
        }
    }
}

impl Default for Tokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokenizer {
    /// A tokenizer at the start of a document.
    pub const fn new() -> Self {
        Self {
            state: State::Value,
            begun: false,
            is_key: false,
            skipping: false,
            skip_depth: 0,
            depth: 0,
            in_object: false,
            kinds: [0; KIND_WORDS],
            utf8: Utf8::BOUNDARY,
            escape: Escape::START,
            number: Number::START,
            literal: Literal::START,
            offset: 0,
        }
    }

    /// Reads on, at most to the end of the document, and returns how many bytes were read.
    ///
    /// Fewer than all of `input` are read when the document ends or the handler
    /// [pauses](Flow::Pause). After the end of the document only white space may follow, until
    /// [`restart`](Self::restart). After an error the tokenizer is of no more use.
    pub fn feed<H>(&mut self, input: &[u8], handler: &mut H) -> Result<usize, Error>
    where
        H: Handler + ?Sized,
    {
        let mut rest = input;
        let result = self.run(&mut rest, handler);
        let read = input.len() - rest.len();
        self.offset += read as u64;
        match result {
            Ok(()) => Ok(read),
            Err(reason) => Err(Error { offset: self.offset, reason }),
        }
    }

    /// The input is over: tells a number that only this ends, and whether the document is whole.
    pub fn finish<H>(&mut self, handler: &mut H) -> Result<(), Error>
    where
        H: Handler + ?Sized,
    {
        let result = match self.state {
            State::Number if self.depth == 0 => self.end_number(b"", handler),
            State::Done => Ok(()),
            _ => Err(ErrorReason::UnexpectedEnd),
        };
        result.map_err(|reason| Error { offset: self.offset, reason })
    }

    /// Whether the document is complete.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether nothing of a document has come yet.
    pub fn is_at_start(&self) -> bool {
        self.state == State::Value && self.depth == 0
    }

    /// A tokenizer that has read an element of an array, which is a member of the document's object, and
    /// nothing after it.
    pub(crate) fn after_element_of_member() -> Self {
        let mut tokenizer = Self { depth: 2, state: State::CommaOrEnd, ..Self::new() };
        tokenizer.set_kind(0, true);
        tokenizer
    }

    /// Whether that is where it is.
    pub(crate) fn is_after_element_of_member(&self) -> bool {
        let is_there = self.state == State::CommaOrEnd && self.depth == 2 && !self.skipping;
        is_there && !self.in_object && self.is_object(0)
    }

    /// Bytes read so far, all documents of the stream together.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Gets ready for the next document of the same stream.
    pub fn restart(&mut self) {
        *self = Self { offset: self.offset, ..Self::new() };
    }

    fn run<H>(&mut self, rest: &mut &[u8], handler: &mut H) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        loop {
            if self.skipping && !self.state.is_within_token() {
                self.skip_structure(rest);
                if self.state == State::Done {
                    return Ok(());
                }
            }
            let Some((&byte, tail)) = rest.split_first() else { return Ok(()) };
            match self.state {
                State::String => self.string(rest, handler)?,
                State::Escape => {
                    self.escape(byte, handler)?;
                    *rest = tail;
                }
                State::Number => self.number(rest, handler)?,
                State::Literal => self.literal(byte, rest, tail, handler)?,
                _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => *rest = tail,
                State::Key => self.key(byte, rest, tail, handler)?,
                State::Colon => {
                    if byte != b':' {
                        return Err(ErrorReason::ExpectedColon);
                    }
                    *rest = tail;
                    self.state = State::Value;
                }
                State::CommaOrEnd => match byte {
                    b',' => {
                        *rest = tail;
                        self.state = if self.in_object { State::Key } else { State::Value };
                    }
                    b'}' | b']' => {
                        if self.close(byte == b'}', rest, tail, handler)? == Flow::Pause {
                            return Ok(());
                        }
                    }
                    _ => return Err(ErrorReason::ExpectedCommaOrEnd),
                },
                State::Value => self.value(byte, rest, tail, handler)?,
                State::FirstKeyOrEnd if byte != b'}' => self.key(byte, rest, tail, handler)?,
                State::FirstElementOrEnd if byte != b']' => {
                    self.value(byte, rest, tail, handler)?
                }
                State::FirstKeyOrEnd | State::FirstElementOrEnd => {
                    if self.close(self.in_object, rest, tail, handler)? == Flow::Pause {
                        return Ok(());
                    }
                }
                State::Done => return Err(ErrorReason::TrailingData),
            }
            if self.state == State::Done {
                return Ok(());
            }
        }
    }

    #[inline]
    fn set_kind(&mut self, level: u8, object: bool) {
        let bit = 1 << (level % 32);
        if let Some(word) = self.kinds.get_mut(usize::from(level / 32)) {
            *word = if object { *word | bit } else { *word & !bit };
        }
    }

    #[inline]
    fn key<'a, H>(
        &mut self,
        byte: u8,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        if byte != b'"' {
            return Err(ErrorReason::ExpectedKey);
        }
        self.is_key = true;
        self.begin_string(rest, tail, handler)
    }

    #[inline]
    fn value<'a, H>(
        &mut self,
        byte: u8,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        match byte {
            b'"' => {
                self.is_key = false;
                return self.begin_string(rest, tail, handler);
            }
            b'{' | b'[' => {
                self.open(byte == b'{', handler)?;
            }
            b'-' | b'0'..=b'9' => {
                self.number = Number::START;
                self.begun = false;
                self.state = State::Number;
                return self.number(rest, handler);
            }
            b't' | b'f' | b'n' => return self.begin_literal(byte, rest, tail, handler),
            _ => return Err(ErrorReason::ExpectedValue),
        }
        *rest = tail;
        Ok(())
    }

    fn open<H>(&mut self, object: bool, handler: &mut H) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        if usize::from(self.depth) == MAX_DEPTH {
            return Err(ErrorReason::TooDeep);
        }
        self.set_kind(self.depth, object);
        self.depth += 1;
        self.in_object = object;
        self.state = if object { State::FirstKeyOrEnd } else { State::FirstElementOrEnd };
        if !self.skipping {
            let token = if object { Token::ObjectStart } else { Token::ArrayStart };
            if handler.token(token) == Flow::Skip {
                self.skipping = true;
                self.skip_depth = self.depth - 1;
            }
        }
        Ok(())
    }

    #[inline]
    fn close<'a, H>(
        &mut self,
        object: bool,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<Flow, ErrorReason>
    where
        H: Handler + ?Sized,
    {
        if self.in_object != object {
            return Err(ErrorReason::ExpectedCommaOrEnd);
        }
        *rest = tail;
        self.depth -= 1;
        self.in_object = self.depth > 0 && self.is_object(self.depth - 1);
        let mut step = Flow::Next;
        if !self.skipping {
            step = handler.token(if object { Token::ObjectEnd } else { Token::ArrayEnd });
        }
        self.end_value();
        Ok(step)
    }

    fn is_object(&self, level: u8) -> bool {
        let word = self.kinds.get(usize::from(level / 32)).copied().unwrap_or_default();
        word >> (level % 32) & 1 != 0
    }

    /// A value is over.
    #[inline]
    fn end_value(&mut self) {
        if self.skipping && self.depth == self.skip_depth {
            self.skipping = false;
        }
        self.state = if self.depth == 0 { State::Done } else { State::CommaOrEnd };
    }
}
