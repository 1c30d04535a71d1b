//! Builds `serde_json` values out of the tokenizer's events.

use picokube_core::json::{Error, Flow, Fragment, Handler, Token, Tokenizer};
use serde_json::{Map, Value};

/// Reads one document that arrives in `chunks`.
pub(crate) fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Value, Error> {
    let mut tokenizer = Tokenizer::new();
    let mut builder = Builder::default();
    for chunk in chunks {
        feed_all(&mut tokenizer, chunk, &mut builder)?;
    }
    tokenizer.finish(&mut builder)?;
    Ok(builder.root.expect("a finished document has a value"))
}

/// The same verdict with everything skipped that can be.
pub(crate) fn skip<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Error> {
    let mut tokenizer = Tokenizer::new();
    let mut handler = |_: Token<'_>| Flow::Skip;
    for chunk in chunks {
        feed_all(&mut tokenizer, chunk, &mut handler)?;
    }
    tokenizer.finish(&mut handler)
}

fn feed_all(
    tokenizer: &mut Tokenizer,
    chunk: &[u8],
    handler: &mut impl Handler,
) -> Result<(), Error> {
    let mut rest = chunk;
    while !rest.is_empty() {
        let read = tokenizer.feed(rest, handler)?;
        assert!(read > 0 || tokenizer.is_done(), "no progress at {}", tokenizer.offset());
        rest = &rest[read..];
    }
    Ok(())
}

/// Collects events into a value, and checks that they come in a sensible order.
#[derive(Default)]
struct Builder {
    open: Vec<(Value, Option<String>)>,
    text: Option<Vec<u8>>,
    root: Option<Value>,
}

impl Builder {
    fn text(&mut self, fragment: Fragment<'_>) -> Option<String> {
        assert_eq!(fragment.first, self.text.is_none(), "`first` is wrong");
        let text = self.text.get_or_insert_default();
        text.extend_from_slice(fragment.bytes);
        let complete = fragment.last.then(|| self.text.take())??;
        Some(String::from_utf8(complete).expect("the tokenizer checks UTF-8"))
    }

    fn value(&mut self, value: Value) {
        match self.open.last_mut() {
            None => assert!(self.root.replace(value).is_none(), "two documents"),
            Some((Value::Array(elements), _)) => elements.push(value),
            Some((Value::Object(members), key)) => {
                members.insert(key.take().expect("a key before the value"), value);
            }
            Some(_) => unreachable!("only arrays and objects are opened"),
        }
    }

    fn close(&mut self) {
        let (value, _) = self.open.pop().expect("an open array or object");
        self.value(value);
    }
}

impl Handler for Builder {
    fn token(&mut self, token: Token<'_>) -> Flow {
        match token {
            Token::ObjectStart => self.open.push((Value::Object(Map::new()), None)),
            Token::ArrayStart => self.open.push((Value::Array(Vec::new()), None)),
            Token::ObjectEnd | Token::ArrayEnd => self.close(),
            Token::Key(fragment) => {
                if let Some(key) = self.text(fragment) {
                    self.open.last_mut().expect("an open object").1 = Some(key);
                }
            }
            Token::String(fragment) => {
                if let Some(text) = self.text(fragment) {
                    self.value(Value::String(text));
                }
            }
            Token::Number(fragment) => {
                if let Some(text) = self.text(fragment) {
                    self.value(serde_json::from_str(&text).expect("the tokenizer checks numbers"));
                }
            }
            Token::Bool(value) => self.value(Value::Bool(value)),
            Token::Null => self.value(Value::Null),
        }
        Flow::Next
    }
}
