//! A push tokenizer: fed with whatever bytes have arrived, it tells a [`Handler`] what they mean.
//!
//! Its state has a fixed size, whatever the size of the document: one bit per open array or
//! object, and where in a token the last chunk ended. It accepts exactly what RFC 8259 allows,
//! also within values that the handler skips.

use super::number::Number;
use super::scan::{self, Utf8};
use super::{Error, Event, Fragment, Handler, Reason, Step};

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
    value: Option<bool>,
    /// What is still to come of its text.
    rest: &'static [u8],
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
            literal: Literal { value: None, rest: b"" },
            offset: 0,
        }
    }

    /// Reads on, at most to the end of the document, and returns how many bytes were read.
    ///
    /// Fewer than all of `input` are read when the document ends or the handler
    /// [pauses](Step::Pause). After the end of the document only white space may follow, until
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
            _ => Err(Reason::UnexpectedEnd),
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

    /// Bytes read so far, all documents of the stream together.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Gets ready for the next document of the same stream.
    pub fn restart(&mut self) {
        *self = Self { offset: self.offset, ..Self::new() };
    }

    fn run<H>(&mut self, rest: &mut &[u8], handler: &mut H) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        loop {
            if self.skipping {
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
                        return Err(Reason::ExpectedColon);
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
                        if self.close(byte == b'}', rest, tail, handler)? == Step::Pause {
                            return Ok(());
                        }
                    }
                    _ => return Err(Reason::ExpectedCommaOrEnd),
                },
                State::Value => self.value(byte, rest, tail, handler)?,
                State::FirstKeyOrEnd if byte != b'}' => self.key(byte, rest, tail, handler)?,
                State::FirstElementOrEnd if byte != b']' => {
                    self.value(byte, rest, tail, handler)?
                }
                State::FirstKeyOrEnd | State::FirstElementOrEnd => {
                    if self.close(self.in_object, rest, tail, handler)? == Step::Pause {
                        return Ok(());
                    }
                }
                State::Done => return Err(Reason::TrailingData),
            }
            if self.state == State::Done {
                return Ok(());
            }
        }
    }

    /// Passes over as much as possible of a value that nobody wants to know about. The same rules
    /// as elsewhere, in a loop that has nothing else to do. What it cannot do in one go (a token
    /// that is cut by the end of the input, white space, an error) is left to the others.
    fn skip_structure(&mut self, rest: &mut &[u8]) {
        let Self { mut state, mut depth, mut in_object, .. } = *self;
        let mut input = *rest;
        while let [byte, tail @ ..] = input {
            match state {
                State::Key | State::FirstKeyOrEnd if *byte == b'"' => {
                    let Some(after) = scan::after_simple_string(tail) else { break };
                    (state, input) = match after {
                        // What `managedFields` is made of.
                        [b':', b'{', b'}', b',', after @ ..] if usize::from(depth) < MAX_DEPTH => {
                            (State::Key, after)
                        }
                        [b':', after @ ..] => (State::Value, after),
                        _ => (State::Colon, after),
                    };
                    continue;
                }
                State::Value | State::FirstElementOrEnd => match byte {
                    b'"' => {
                        let Some(after) = scan::after_simple_string(tail) else { break };
                        input = after;
                    }
                    b'{' | b'[' if usize::from(depth) < MAX_DEPTH => {
                        in_object = *byte == b'{';
                        self.set_kind(depth, in_object);
                        depth += 1;
                        input = tail;
                        state = match in_object {
                            true => State::FirstKeyOrEnd,
                            false => State::FirstElementOrEnd,
                        };
                        continue;
                    }
                    b'0'..=b'9' | b'-' => {
                        let mut number = Number::START;
                        let Ok(run) = number.run(input) else { break };
                        match input.get(run..) {
                            Some(after @ [_, ..]) if number.finish().is_ok() => input = after,
                            _ => break,
                        }
                    }
                    b't' | b'f' | b'n' => match input {
                        [b't', b'r', b'u', b'e', after @ ..]
                        | [b'n', b'u', b'l', b'l', after @ ..]
                        | [b'f', b'a', b'l', b's', b'e', after @ ..] => input = after,
                        _ => break,
                    },
                    b']' if state == State::FirstElementOrEnd => {
                        input = tail;
                        depth -= 1;
                        in_object = depth > 0 && self.is_object(depth - 1);
                    }
                    _ => break,
                },
                State::CommaOrEnd if *byte == b',' => {
                    input = tail;
                    state = if in_object { State::Key } else { State::Value };
                    continue;
                }
                State::CommaOrEnd | State::FirstKeyOrEnd => {
                    if *byte != if in_object { b'}' } else { b']' } {
                        break;
                    }
                    input = tail;
                    depth -= 1;
                    in_object = depth > 0 && self.is_object(depth - 1);
                }
                State::Colon if *byte == b':' => {
                    input = tail;
                    state = State::Value;
                    continue;
                }
                _ => break,
            }
            // A value is over.
            state = State::CommaOrEnd;
            if depth == self.skip_depth {
                self.skipping = false;
                break;
            }
        }
        *rest = input;
        self.depth = depth;
        self.in_object = in_object;
        self.state = if !self.skipping && depth == 0 { State::Done } else { state };
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
    ) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        if byte != b'"' {
            return Err(Reason::ExpectedKey);
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
    ) -> Result<(), Reason>
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
            _ => return Err(Reason::ExpectedValue),
        }
        *rest = tail;
        Ok(())
    }

    fn open<H>(&mut self, object: bool, handler: &mut H) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        if usize::from(self.depth) == MAX_DEPTH {
            return Err(Reason::TooDeep);
        }
        self.set_kind(self.depth, object);
        self.depth += 1;
        self.in_object = object;
        self.state = if object { State::FirstKeyOrEnd } else { State::FirstElementOrEnd };
        if !self.skipping {
            let event = if object { Event::ObjectStart } else { Event::ArrayStart };
            if handler.event(event) == Step::Skip {
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
    ) -> Result<Step, Reason>
    where
        H: Handler + ?Sized,
    {
        if self.in_object != object {
            return Err(Reason::ExpectedCommaOrEnd);
        }
        *rest = tail;
        self.depth -= 1;
        self.in_object = self.depth > 0 && self.is_object(self.depth - 1);
        let mut step = Step::Next;
        if !self.skipping {
            step = handler.event(if object { Event::ObjectEnd } else { Event::ArrayEnd });
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

    /// A quote has come: reads on to the next if that is possible in one go.
    #[inline]
    fn begin_string<'a, H>(
        &mut self,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        let run = scan::plain_run(tail);
        if let Some((text, [b'"', after @ ..])) = tail.split_at_checked(run) {
            *rest = after;
            self.end_string(Fragment::whole(text), handler);
            if let (State::Colon, [b':', after @ ..]) = (self.state, after) {
                *rest = after;
                self.state = State::Value;
            }
            return Ok(());
        }
        *rest = tail;
        self.begun = false;
        self.utf8 = Utf8::BOUNDARY;
        self.escape = Escape::START;
        self.state = State::String;
        Ok(())
    }

    fn string<H>(&mut self, rest: &mut &[u8], handler: &mut H) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        let bytes = *rest;
        let run = match self.utf8.string_run(bytes) {
            Ok(run) => run,
            Err((run, reason)) => {
                self.pair_is_whole()?;
                *rest = bytes.get(run..).unwrap_or_default();
                return Err(reason);
            }
        };
        let (text, after) = bytes.split_at_checked(run).unwrap_or((bytes, b""));
        if !text.is_empty() || after.first() == Some(&b'"') {
            self.pair_is_whole()?;
        }
        match after.split_first() {
            Some((b'"', after)) => {
                *rest = after;
                self.end_string(Fragment { bytes: text, first: !self.begun, last: true }, handler);
            }
            Some((_, after)) => {
                *rest = after;
                self.tell_text(text, handler);
                self.state = State::Escape;
            }
            None => {
                *rest = after;
                self.tell_text(text, handler);
            }
        }
        Ok(())
    }

    fn pair_is_whole(&self) -> Result<(), Reason> {
        if self.escape.high == 0 { Ok(()) } else { Err(Reason::LoneSurrogate) }
    }

    fn escape<H>(&mut self, byte: u8, handler: &mut H) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        if self.escape.digits > 0 {
            return self.unicode_digit(byte, handler);
        }
        if byte == b'u' {
            self.escape.digits = 4;
            self.escape.code = 0;
            return Ok(());
        }
        let character = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => return Err(Reason::InvalidEscape),
        };
        self.pair_is_whole()?;
        self.state = State::String;
        self.tell_text(&[character], handler);
        Ok(())
    }

    fn unicode_digit<H>(&mut self, byte: u8, handler: &mut H) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        let digit = char::from(byte).to_digit(16).ok_or(Reason::InvalidEscape)?;
        self.escape.code = self.escape.code << 4 | digit as u16;
        self.escape.digits -= 1;
        if self.escape.digits > 0 {
            return Ok(());
        }
        self.state = State::String;
        let Escape { code, high, .. } = self.escape;
        match (high, code) {
            (0, 0xd800..0xdc00) => self.escape.high = code,
            _ => {
                self.escape.high = 0;
                let character = decode(high, code).ok_or(Reason::LoneSurrogate)?;
                self.tell_text(character.encode_utf8(&mut [0; 4]).as_bytes(), handler);
            }
        }
        Ok(())
    }

    /// Tells a part of a string that goes on.
    fn tell_text<H>(&mut self, bytes: &[u8], handler: &mut H)
    where
        H: Handler + ?Sized,
    {
        if !bytes.is_empty() && !self.skipping {
            let fragment = Fragment { bytes, first: !self.begun, last: false };
            self.begun = true;
            handler.event(if self.is_key { Event::Key(fragment) } else { Event::String(fragment) });
        }
    }

    #[inline]
    fn end_string<H>(&mut self, fragment: Fragment<'_>, handler: &mut H)
    where
        H: Handler + ?Sized,
    {
        if !self.is_key {
            if !self.skipping {
                handler.event(Event::String(fragment));
            }
            return self.end_value();
        }
        self.state = State::Colon;
        if !self.skipping && handler.event(Event::Key(fragment)) == Step::Skip {
            self.skipping = true;
            self.skip_depth = self.depth;
        }
    }

    fn number<H>(&mut self, rest: &mut &[u8], handler: &mut H) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        let bytes = *rest;
        let run = match self.number.run(bytes) {
            Ok(run) => run,
            Err((run, reason)) => {
                *rest = bytes.get(run..).unwrap_or_default();
                return Err(reason);
            }
        };
        let (text, after) = bytes.split_at_checked(run).unwrap_or((bytes, b""));
        *rest = after;
        if !after.is_empty() {
            return self.end_number(text, handler);
        }
        if !self.skipping {
            handler.event(Event::Number(Fragment { bytes: text, first: !self.begun, last: false }));
        }
        self.begun = true;
        Ok(())
    }

    fn end_number<H>(&mut self, bytes: &[u8], handler: &mut H) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        self.number.finish()?;
        if !self.skipping {
            handler.event(Event::Number(Fragment { bytes, first: !self.begun, last: true }));
        }
        self.end_value();
        Ok(())
    }

    fn begin_literal<'a, H>(
        &mut self,
        first: u8,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        let (value, text): (_, &[u8]) = match first {
            b't' => (Some(true), b"rue"),
            b'f' => (Some(false), b"alse"),
            _ => (None, b"ull"),
        };
        self.literal = Literal { value, rest: text };
        match tail.strip_prefix(text) {
            Some(after) => {
                *rest = after;
                self.end_literal(handler);
            }
            None => {
                *rest = tail;
                self.state = State::Literal;
            }
        }
        Ok(())
    }

    fn end_literal<H>(&mut self, handler: &mut H)
    where
        H: Handler + ?Sized,
    {
        if !self.skipping {
            handler.event(self.literal.value.map_or(Event::Null, Event::Bool));
        }
        self.end_value();
    }

    fn literal<'a, H>(
        &mut self,
        byte: u8,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), Reason>
    where
        H: Handler + ?Sized,
    {
        let Some((expected, remaining)) = self.literal.rest.split_first() else {
            return Err(Reason::InvalidLiteral);
        };
        if byte != *expected {
            return Err(Reason::InvalidLiteral);
        }
        *rest = tail;
        self.literal.rest = remaining;
        if remaining.is_empty() {
            self.end_literal(handler);
        }
        Ok(())
    }
}

/// The character of one UTF-16 unit, or of two if there is a `high` one.
fn decode(high: u16, code: u16) -> Option<char> {
    match (high, code) {
        (0, _) => char::from_u32(code.into()),
        (0xd800..0xdc00, 0xdc00..0xe000) => {
            let pair = (u32::from(high) - 0xd800) << 10 | (u32::from(code) - 0xdc00);
            char::from_u32(0x10000 + pair)
        }
        _ => None,
    }
}
