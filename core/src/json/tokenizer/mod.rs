//! A push tokenizer: fed with whatever bytes have arrived, it tells a [`Handler`] what they mean.
//!
//! Its state has a fixed size, whatever the size of the document: one bit per open array or
//! object, and where in a token the last chunk ended. It accepts exactly what RFC 8259 allows,
//! also within values that the handler skips.

mod compact;
mod kinds;
mod number;
mod scan;
mod skip;
mod text;

use super::{Error, ErrorReason, Flow, Handler, Token};
use kinds::Kinds;
pub use kinds::MAX_DEPTH;
use number::Number;
use scan::Utf8;

/// Reads JSON documents from chunks of bytes.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    state: State,
    /// Text of the current string or number has been told already.
    begun: bool,
    /// The string being read is the name of a member.
    is_key: bool,
    /// Nothing is told until fewer arrays and objects than this are open and a value ends.
    skipped: u8,
    /// How many arrays and objects are open, and of what kind they are.
    depth: u8,
    kinds: Kinds,
    utf8: Utf8,
    escape: Escape,
    number: Number,
    literal: Literal,
    offset: u64,
}

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

    /// The one that has this first letter, which has been read.
    fn begun_by(letter: u8) -> Option<Self> {
        let value = match letter {
            b'n' => LiteralValue::Null,
            b't' => LiteralValue::True,
            b'f' => LiteralValue::False,
            _ => return None,
        };
        Some(Self { value, read: 1 })
    }

    /// What is still to come of its text.
    fn rest(self) -> &'static [u8] {
        let text: &[u8] = match self.value {
            LiteralValue::Null => b"null",
            LiteralValue::True => b"true",
            LiteralValue::False => b"false",
        };
        text.get(self.read.into()..).unwrap_or_default()
    }

    /// What follows a literal, unless it is cut or wrong.
    fn after(input: &[u8]) -> Option<&[u8]> {
        match input {
            [b't', b'r', b'u', b'e', after @ ..]
            | [b'n', b'u', b'l', b'l', after @ ..]
            | [b'f', b'a', b'l', b's', b'e', after @ ..] => Some(after),
            _ => None,
        }
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
            skipped: 0,
            depth: 0,
            kinds: Kinds::NONE,
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
    pub fn feed(&mut self, input: &[u8], handler: &mut dyn Handler) -> Result<usize, Error> {
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
    pub fn finish(&mut self, handler: &mut dyn Handler) -> Result<(), Error> {
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
        Self { depth: 2, kinds: Kinds::ARRAY_IN_OBJECT, state: State::CommaOrEnd, ..Self::new() }
    }

    /// Whether that is where it is.
    pub(crate) fn is_after_element_of_member(&self) -> bool {
        let is_there = self.state == State::CommaOrEnd && !self.is_skipping();
        is_there && self.kinds == Kinds::ARRAY_IN_OBJECT
    }

    /// Bytes read so far, all documents of the stream together.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Gets ready for the next document of the same stream.
    pub fn restart(&mut self) {
        *self = Self { offset: self.offset, ..Self::new() };
    }

    fn run(&mut self, rest: &mut &[u8], handler: &mut dyn Handler) -> Result<(), ErrorReason> {
        loop {
            if self.depth > 0 && !self.state.is_within_token() {
                let is_told = self.skip_compact(rest);
                let paused = is_told && self.read_compact(rest, handler) == Flow::Pause;
                if paused || self.state == State::Done {
                    return Ok(());
                }
            }
            let Some((&byte, tail)) = rest.split_first() else { return Ok(()) };
            match self.state {
                State::String => self.string(rest, handler)?,
                State::Number => self.number(rest, handler)?,
                _ => {
                    let flow = self.byte(byte, handler)?;
                    // The first byte of a number belongs to its text.
                    if self.state != State::Number {
                        *rest = tail;
                    }
                    if flow == Flow::Pause {
                        return Ok(());
                    }
                }
            }
            if self.state == State::Done {
                return Ok(());
            }
        }
    }

    /// Reads a byte outside of numbers and of plain text.
    fn byte(&mut self, byte: u8, handler: &mut dyn Handler) -> Result<Flow, ErrorReason> {
        match self.state {
            State::Escape => self.escape(byte, handler)?,
            State::Literal => self.literal(byte, handler)?,
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {}
            State::Colon if byte == b':' => self.state = State::Value,
            State::Colon => return Err(ErrorReason::ExpectedColon),
            State::FirstKeyOrEnd if byte == b'}' => return Ok(self.close(handler)),
            State::FirstElementOrEnd if byte == b']' => return Ok(self.close(handler)),
            State::Key | State::FirstKeyOrEnd if byte == b'"' => self.begin_string(true),
            State::Key | State::FirstKeyOrEnd => return Err(ErrorReason::ExpectedKey),
            State::CommaOrEnd => match byte {
                b',' => {
                    self.state = if self.kinds.ends_in_object() { State::Key } else { State::Value }
                }
                b'}' | b']' if (byte == b'}') == self.kinds.ends_in_object() => {
                    return Ok(self.close(handler));
                }
                _ => return Err(ErrorReason::ExpectedCommaOrEnd),
            },
            State::Value | State::FirstElementOrEnd => self.value(byte, handler)?,
            State::String | State::Number | State::Done => return Err(ErrorReason::TrailingData),
        }
        Ok(Flow::Next)
    }

    /// A value begins with this byte.
    fn value(&mut self, byte: u8, handler: &mut dyn Handler) -> Result<(), ErrorReason> {
        match byte {
            b'"' => self.begin_string(false),
            b'{' | b'[' => self.open(byte == b'{', handler)?,
            b'-' | b'0'..=b'9' => self.begin_number(),
            _ => {
                self.literal = Literal::begun_by(byte).ok_or(ErrorReason::ExpectedValue)?;
                self.state = State::Literal;
            }
        }
        Ok(())
    }

    fn open(&mut self, object: bool, handler: &mut dyn Handler) -> Result<(), ErrorReason> {
        if usize::from(self.depth) == MAX_DEPTH {
            return Err(ErrorReason::TooDeep);
        }
        self.kinds = self.kinds.and(object);
        self.depth += 1;
        self.state = if object { State::FirstKeyOrEnd } else { State::FirstElementOrEnd };
        if !self.is_skipping() {
            let token = if object { Token::ObjectStart } else { Token::ArrayStart };
            if handler.token(token) == Flow::Skip {
                self.skipped = self.depth;
            }
        }
        Ok(())
    }

    /// The innermost array or object ends.
    fn close(&mut self, handler: &mut dyn Handler) -> Flow {
        let token = if self.kinds.ends_in_object() { Token::ObjectEnd } else { Token::ArrayEnd };
        self.kinds = self.kinds.without_last(1);
        self.depth -= 1;
        let flow = self.tell(token, handler);
        self.end_value();
        flow
    }

    fn is_skipping(&self) -> bool {
        self.skipped != 0
    }

    /// Whether an array or object is open that nobody wants to know about.
    fn is_within_skipped(&self) -> bool {
        self.is_skipping() && self.depth >= self.skipped
    }

    /// Tells of a token that is not skipped.
    fn tell(&self, token: Token<'_>, handler: &mut dyn Handler) -> Flow {
        if self.is_skipping() { Flow::Next } else { handler.token(token) }
    }

    /// A value is over.
    fn end_value(&mut self) {
        if self.depth < self.skipped {
            self.skipped = 0;
        }
        self.state = if self.depth == 0 { State::Done } else { State::CommaOrEnd };
    }
}
