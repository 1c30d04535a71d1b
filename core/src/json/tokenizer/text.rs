//! Strings, numbers and literals: the tokens that a chunk may cut.

use super::number::Number;
use super::scan::{self, Utf8};
use super::{Escape, State, Tokenizer};
use crate::json::{ErrorReason, Flow, Fragment, Handler, Token};

impl Tokenizer {
    /// A quote has come: that of the name of a member, or of a value.
    pub(super) fn begin_string(&mut self, is_key: bool) {
        self.is_key = is_key;
        self.begun = false;
        self.utf8 = Utf8::BOUNDARY;
        self.escape = Escape::START;
        self.state = State::String;
    }

    #[inline(never)]
    pub(super) fn string(
        &mut self,
        rest: &mut &[u8],
        handler: &mut dyn Handler,
    ) -> Result<(), ErrorReason> {
        loop {
            // Nobody wants to know the text.
            if self.is_skipping() && self.utf8.is_boundary() && self.escape.high == 0 {
                *rest = scan::after_simple_text(rest);
            }
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

    pub(super) fn escape(
        &mut self,
        byte: u8,
        handler: &mut dyn Handler,
    ) -> Result<(), ErrorReason> {
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

    fn unicode_digit(&mut self, byte: u8, handler: &mut dyn Handler) -> Result<(), ErrorReason> {
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
    fn tell_text(&mut self, bytes: &[u8], handler: &mut dyn Handler) {
        if !bytes.is_empty() && !self.is_skipping() {
            let fragment = Fragment { bytes, first: !self.begun, last: false };
            self.begun = true;
            handler.token(if self.is_key { Token::Key(fragment) } else { Token::String(fragment) });
        }
    }

    fn end_string(&mut self, fragment: Fragment<'_>, handler: &mut dyn Handler) {
        if self.is_key {
            return self.end_key(fragment, handler);
        }
        self.tell(Token::String(fragment), handler);
        self.end_value();
    }

    #[inline]
    pub(super) fn end_key(&mut self, fragment: Fragment<'_>, handler: &mut dyn Handler) {
        self.state = State::Colon;
        if self.tell(Token::Key(fragment), handler) == Flow::Skip {
            self.skipped = self.depth + 1;
        }
    }

    /// A byte of a number has come.
    pub(super) fn begin_number(&mut self) {
        self.number = Number::START;
        self.begun = false;
        self.state = State::Number;
    }

    pub(super) fn number(
        &mut self,
        rest: &mut &[u8],
        handler: &mut dyn Handler,
    ) -> Result<(), ErrorReason> {
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
        let fragment = Fragment { bytes: text, first: !self.begun, last: false };
        self.tell(Token::Number(fragment), handler);
        self.begun = true;
        Ok(())
    }

    pub(super) fn end_number(
        &mut self,
        bytes: &[u8],
        handler: &mut dyn Handler,
    ) -> Result<(), ErrorReason> {
        self.number.finish()?;
        self.tell(Token::Number(Fragment { bytes, first: !self.begun, last: true }), handler);
        self.end_value();
        Ok(())
    }

    pub(super) fn literal(
        &mut self,
        byte: u8,
        handler: &mut dyn Handler,
    ) -> Result<(), ErrorReason> {
        if self.literal.rest().first() != Some(&byte) {
            return Err(ErrorReason::InvalidLiteral);
        }
        self.literal.read += 1;
        if self.literal.rest().is_empty() {
            self.tell(self.literal.token(), handler);
            self.end_value();
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
