//! Strings, numbers and literals: the tokens that a chunk may cut.

use super::scan::{self, Utf8};
use super::{Escape, Literal, LiteralValue, State, Tokenizer};
use crate::json::{ErrorReason, Flow, Fragment, Handler, Token};

impl Tokenizer {
    /// A quote has come: reads on to the next if that is possible in one go.
    #[inline]
    pub(super) fn begin_string<'a, H>(
        &mut self,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), ErrorReason>
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

    pub(super) fn string<H>(&mut self, rest: &mut &[u8], handler: &mut H) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        loop {
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
            // Most escapes are of one letter; those within one chunk need no state.
            let escaped = match after {
                [_, letter, ..] if self.escape.high == 0 => simple_escape(*letter),
                _ => None,
            };
            match (after, escaped) {
                ([b'"', after @ ..], _) => {
                    *rest = after;
                    let fragment = Fragment { bytes: text, first: !self.begun, last: true };
                    self.end_string(fragment, handler);
                    return Ok(());
                }
                ([_, _, after @ ..], Some(character)) => {
                    *rest = after;
                    self.tell_text(text, handler);
                    self.tell_text(&[character], handler);
                }
                ([_, after @ ..], _) => {
                    *rest = after;
                    self.tell_text(text, handler);
                    self.state = State::Escape;
                    return Ok(());
                }
                ([], _) => {
                    *rest = after;
                    self.tell_text(text, handler);
                    return Ok(());
                }
            }
        }
    }

    fn pair_is_whole(&self) -> Result<(), ErrorReason> {
        if self.escape.high == 0 { Ok(()) } else { Err(ErrorReason::LoneSurrogate) }
    }

    pub(super) fn escape<H>(&mut self, byte: u8, handler: &mut H) -> Result<(), ErrorReason>
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
        let character = simple_escape(byte).ok_or(ErrorReason::InvalidEscape)?;
        self.pair_is_whole()?;
        self.state = State::String;
        self.tell_text(&[character], handler);
        Ok(())
    }

    fn unicode_digit<H>(&mut self, byte: u8, handler: &mut H) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        let digit = char::from(byte).to_digit(16).ok_or(ErrorReason::InvalidEscape)?;
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
                let character = decode(high, code).ok_or(ErrorReason::LoneSurrogate)?;
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
            handler.token(if self.is_key { Token::Key(fragment) } else { Token::String(fragment) });
        }
    }

    #[inline]
    fn end_string<H>(&mut self, fragment: Fragment<'_>, handler: &mut H)
    where
        H: Handler + ?Sized,
    {
        if !self.is_key {
            if !self.skipping {
                handler.token(Token::String(fragment));
            }
            return self.end_value();
        }
        self.state = State::Colon;
        if !self.skipping && handler.token(Token::Key(fragment)) == Flow::Skip {
            self.skipping = true;
            self.skip_depth = self.depth;
        }
    }

    pub(super) fn number<H>(&mut self, rest: &mut &[u8], handler: &mut H) -> Result<(), ErrorReason>
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
            handler.token(Token::Number(Fragment { bytes: text, first: !self.begun, last: false }));
        }
        self.begun = true;
        Ok(())
    }

    pub(super) fn end_number<H>(&mut self, bytes: &[u8], handler: &mut H) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        self.number.finish()?;
        if !self.skipping {
            handler.token(Token::Number(Fragment { bytes, first: !self.begun, last: true }));
        }
        self.end_value();
        Ok(())
    }

    pub(super) fn begin_literal<'a, H>(
        &mut self,
        first: u8,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        let value = match first {
            b't' => LiteralValue::True,
            b'f' => LiteralValue::False,
            _ => LiteralValue::Null,
        };
        self.literal = Literal { value, read: 1 };
        match tail.strip_prefix(self.literal.rest()) {
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
            handler.token(self.literal.token());
        }
        self.end_value();
    }

    pub(super) fn literal<'a, H>(
        &mut self,
        byte: u8,
        rest: &mut &'a [u8],
        tail: &'a [u8],
        handler: &mut H,
    ) -> Result<(), ErrorReason>
    where
        H: Handler + ?Sized,
    {
        if self.literal.rest().first() != Some(&byte) {
            return Err(ErrorReason::InvalidLiteral);
        }
        *rest = tail;
        self.literal.read += 1;
        if self.literal.rest().is_empty() {
            self.end_literal(handler);
        }
        Ok(())
    }
}

/// The character that a letter after a backslash stands for.
fn simple_escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
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
