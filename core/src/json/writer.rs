//! Writing JSON into any sink of bytes, without a buffer of its own.

use super::{Fragment, Token};
use core::fmt;

/// Something that takes bytes.
pub trait Sink {
    /// Takes the next bytes.
    fn put(&mut self, bytes: &[u8]);
}

/// A sink that shows a part of what is written to it: the bytes from `skip` on, as far as they fit.
///
/// A text that is larger than the buffer is rendered once per buffer, each time with a larger
/// `skip`. With an empty buffer it merely counts.
#[derive(Debug)]
pub struct Window<'a> {
    buffer: &'a mut [u8],
    skip: usize,
    total: usize,
}

impl<'a> Window<'a> {
    /// A window onto the bytes from `skip` on.
    pub fn new(buffer: &'a mut [u8], skip: usize) -> Self {
        Self { buffer, skip, total: 0 }
    }

    /// How many bytes of the buffer are filled.
    pub fn written(&self) -> usize {
        self.total.saturating_sub(self.skip).min(self.buffer.len())
    }

    /// How many bytes were written in all, seen or not.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether nothing was written beyond the end of the window.
    pub fn is_complete(&self) -> bool {
        self.total <= self.skip + self.buffer.len()
    }

    /// How many more bytes fit.
    pub fn room(&self) -> usize {
        (self.skip + self.buffer.len()).saturating_sub(self.total)
    }
}

impl Sink for Window<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let unseen = self.skip.saturating_sub(self.total);
        let start = self.total.saturating_sub(self.skip);
        self.total += bytes.len();
        let visible = bytes.get(unseen..).unwrap_or_default();
        let room = self.buffer.get_mut(start..).unwrap_or_default();
        room.iter_mut().zip(visible).for_each(|(place, byte)| *place = *byte);
    }
}

/// Where in a document a writer is: all that has to be known to set the commas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    after_value: bool,
}

/// Writes compact JSON.
///
/// It sets commas and quotes; that objects and arrays are closed again is up to its user.
pub struct Writer<'a> {
    sink: &'a mut dyn Sink,
    place: Place,
}

impl<'a> Writer<'a> {
    /// A writer at the start of a document.
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        Self::resume(sink, Place::default())
    }

    /// A writer that goes on where another one was.
    pub fn resume(sink: &'a mut dyn Sink, place: Place) -> Self {
        Self { sink, place }
    }

    /// Where the writer is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Writes what the tokenizer has read.
    pub fn token(&mut self, token: Token<'_>) -> &mut Self {
        match token {
            Token::ObjectStart => self.open(b"{"),
            Token::ArrayStart => self.open(b"["),
            Token::ObjectEnd => self.close(b"}"),
            Token::ArrayEnd => self.close(b"]"),
            Token::Key(fragment) => {
                self.text(fragment);
                if fragment.last {
                    self.sink.put(b":");
                    self.place.after_value = false;
                }
                self
            }
            Token::String(fragment) => self.text(fragment),
            Token::Number(fragment) => {
                if fragment.first {
                    self.comma();
                }
                self.sink.put(fragment.bytes);
                self.place.after_value = true;
                self
            }
            Token::Bool(true) => self.scalar(b"true"),
            Token::Bool(false) => self.scalar(b"false"),
            Token::Null => self.scalar(b"null"),
        }
    }

    /// Opens an object.
    pub fn object(&mut self) -> &mut Self {
        self.open(b"{")
    }

    /// Closes an object.
    pub fn end_object(&mut self) -> &mut Self {
        self.close(b"}")
    }

    /// Opens an array.
    pub fn array(&mut self) -> &mut Self {
        self.open(b"[")
    }

    /// Closes an array.
    pub fn end_array(&mut self) -> &mut Self {
        self.close(b"]")
    }

    /// Writes the name of a member.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.token(Token::Key(Fragment::whole(name.as_bytes())))
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) -> &mut Self {
        self.token(Token::String(Fragment::whole(text.as_bytes())))
    }

    /// Writes a string of several parts, or of something that prints itself.
    pub fn display(&mut self, text: fmt::Arguments<'_>) -> &mut Self {
        self.comma();
        self.sink.put(b"\"");
        // Escaping never fails, so neither does this.
        let _ = fmt::write(&mut Escaping(self.sink), text);
        self.sink.put(b"\"");
        self.place.after_value = true;
        self
    }

    /// Writes a whole number.
    pub fn int(&mut self, number: i64) -> &mut Self {
        self.comma();
        let _ = fmt::write(&mut Escaping(self.sink), format_args!("{number}"));
        self.place.after_value = true;
        self
    }

    /// Writes `true` or `false`.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.token(Token::Bool(value))
    }

    /// Writes `null`.
    pub fn null(&mut self) -> &mut Self {
        self.token(Token::Null)
    }

    fn open(&mut self, bracket: &[u8]) -> &mut Self {
        self.comma();
        self.sink.put(bracket);
        self.place.after_value = false;
        self
    }

    fn close(&mut self, bracket: &[u8]) -> &mut Self {
        self.sink.put(bracket);
        self.place.after_value = true;
        self
    }

    fn scalar(&mut self, text: &[u8]) -> &mut Self {
        self.comma();
        self.sink.put(text);
        self.place.after_value = true;
        self
    }

    fn text(&mut self, fragment: Fragment<'_>) -> &mut Self {
        if fragment.first {
            self.comma();
            self.sink.put(b"\"");
        }
        put_escaped(self.sink, fragment.bytes);
        if fragment.last {
            self.sink.put(b"\"");
            self.place.after_value = true;
        }
        self
    }

    fn comma(&mut self) {
        if self.place.after_value {
            self.sink.put(b",");
        }
    }
}

/// What is printed to it ends up in a string.
struct Escaping<'a>(&'a mut dyn Sink);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        put_escaped(self.0, text.as_bytes());
        Ok(())
    }
}

/// Escapes what must be, in the shortest way. So what was read is never longer when written.
fn put_escaped(sink: &mut dyn Sink, text: &[u8]) {
    for run in text.chunk_by(|a, b| escape(*a).is_none() && escape(*b).is_none()) {
        match run.first().and_then(|byte| escape(*byte)) {
            None => sink.put(run),
            Some(Escape::Short(letter)) => sink.put(&[b'\\', letter]),
            Some(Escape::Unicode(byte)) => {
                let digit =
                    |value: u8| char::from_digit(value.into(), 16).map_or(b'0', |d| d as u8);
                sink.put(b"\\u00");
                sink.put(&[digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

enum Escape {
    Short(u8),
    Unicode(u8),
}

fn escape(byte: u8) -> Option<Escape> {
    Some(match byte {
        b'"' | b'\\' => Escape::Short(byte),
        0x08 => Escape::Short(b'b'),
        0x0c => Escape::Short(b'f'),
        b'\n' => Escape::Short(b'n'),
        b'\r' => Escape::Short(b'r'),
        b'\t' => Escape::Short(b't'),
        0x00..=0x1f => Escape::Unicode(byte),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Flow, Tokenizer};
    use std::string::String;
    use std::vec::Vec;

    impl Sink for Vec<u8> {
        fn put(&mut self, bytes: &[u8]) {
            self.extend_from_slice(bytes);
        }
    }

    fn written(write: impl Fn(&mut Writer<'_>)) -> String {
        let mut sink = Vec::new();
        write(&mut Writer::new(&mut sink));
        String::from_utf8(sink).unwrap()
    }

    #[test]
    fn sets_commas_and_quotes() {
        let text = written(|writer| {
            writer.object().key("a").int(-5).key("b").array().string("x").null().bool(true);
            writer.object().end_object().end_array().key("c");
            writer.display(format_args!("{}-{}", "n\"", 7)).end_object();
        });
        assert_eq!(text, r#"{"a":-5,"b":["x",null,true,{}],"c":"n\"-7"}"#);
    }

    #[test]
    fn escapes_what_must_be_and_nothing_else() {
        let all: String = (0..0x80_u8).map(char::from).chain("é☕😀".chars()).collect();
        let text = written(|writer| {
            writer.string(&all);
        });
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), all);
        assert_eq!(text, serde_json::to_string(&all).unwrap());
    }

    #[test]
    fn what_is_read_in_any_split_is_written_the_same() {
        let text = r#"{"a\n":[1,-2.5e3,"x\u0001y\\",true,{"":null}],"b":{},"é":[]}"#;
        for chunk in 1..=text.len() {
            let mut sink = Vec::new();
            let mut place = Place::default();
            let mut tokenizer = Tokenizer::new();
            for chunk in text.as_bytes().chunks(chunk) {
                let handler = &mut |token: Token<'_>| {
                    let mut writer = Writer::resume(&mut sink, place);
                    writer.token(token);
                    place = writer.place();
                    Flow::Next
                };
                tokenizer.feed(chunk, handler).unwrap();
            }
            assert_eq!(String::from_utf8(sink).unwrap(), text);
        }
    }

    #[test]
    fn windows_of_any_size_show_all_of_a_text() {
        let whole: Vec<u8> = (0..100).collect();
        for size in 1..=101 {
            let mut seen = Vec::new();
            loop {
                let mut buffer = std::vec![0; size];
                let mut window = Window::new(&mut buffer, seen.len());
                whole.chunks(7).for_each(|chunk| window.put(chunk));
                assert_eq!(window.total(), 100);
                let (count, complete) = (window.written(), window.is_complete());
                seen.extend_from_slice(&buffer[..count]);
                if complete {
                    break;
                }
            }
            assert_eq!(seen, whole, "in windows of {size}");
        }
    }
}
