//! Copying a map of strings entry by entry, leaving some out.

use crate::json::{Fragment, Token, Writer};
use crate::wire::Annotation;
use heapless::Vec;

/// How the entries of a map are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As members of an object.
    Member,
    /// Each as an operation of a JSON patch that adds the annotation.
    Add,
    /// Each as an operation of a JSON patch that removes the annotation.
    Remove,
}

/// Where in an entry the copy is.
///
/// The start of a key is held back until it is clear whether the entry is wanted. A key that is
/// longer than any that is left out passes in fragments.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    held: Vec<u8, { Annotation::KEY_LEN }>,
    passing: bool,
    dropping: bool,
}

/// The value of an entry is no string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoString;

impl Entries {
    pub(super) const START: Self = Self { held: Vec::new(), passing: false, dropping: false };

    /// Takes the next token within the map, not its start or end.
    pub(super) fn push(
        &mut self,
        token: Token<'_>,
        form: Form,
        wanted: impl Fn(&[u8]) -> bool,
        writer: &mut Writer<'_>,
    ) -> Result<(), NoString> {
        match token {
            Token::Key(fragment) => self.key(fragment, form, wanted, writer),
            Token::String(_) if self.dropping => {}
            Token::String(fragment) => {
                writer.token(token);
                if fragment.last && form == Form::Add {
                    writer.end_object();
                }
            }
            _ => return Err(NoString),
        }
        Ok(())
    }

    /// The key of the entry at hand, if that is left out.
    #[cfg(feature = "statefulset")]
    pub(super) fn left_out(&self) -> Option<&[u8]> {
        self.dropping.then_some(&*self.held)
    }

    fn key(
        &mut self,
        fragment: Fragment<'_>,
        form: Form,
        wanted: impl Fn(&[u8]) -> bool,
        writer: &mut Writer<'_>,
    ) {
        if fragment.first {
            self.held.clear();
            self.passing = false;
        }
        if !self.passing && self.held.extend_from_slice(fragment.bytes).is_err() {
            self.passing = true;
            begin_key(form, writer);
            write_key(&self.held, form, writer);
        }
        if self.passing {
            write_key(fragment.bytes, form, writer);
        }
        if fragment.last {
            self.dropping = !self.passing && !wanted(&self.held);
            if self.dropping {
                return;
            }
            if !self.passing {
                begin_key(form, writer);
                write_key(&self.held, form, writer);
            }
            end_key(form, writer);
            self.dropping = form == Form::Remove;
        }
    }
}

fn begin_key(form: Form, writer: &mut Writer<'_>) {
    let operation = match form {
        Form::Member => {
            writer.token(Token::Key(Fragment { bytes: b"", first: true, last: false }));
            return;
        }
        Form::Add => "add",
        Form::Remove => "remove",
    };
    writer.object().key("op").string(operation).key("path");
    let path = Fragment { bytes: b"/metadata/annotations/", first: true, last: false };
    writer.token(Token::String(path));
}

fn write_key(bytes: &[u8], form: Form, writer: &mut Writer<'_>) {
    let part = |bytes| Fragment { bytes, first: false, last: false };
    if form == Form::Member {
        writer.token(Token::Key(part(bytes)));
        return;
    }
    // A JSON pointer has escapes of its own.
    for run in bytes.chunk_by(|a, b| !matches!(a, b'~' | b'/') && !matches!(b, b'~' | b'/')) {
        let run = match run {
            b"~" => b"~0",
            b"/" => b"~1",
            plain => plain,
        };
        writer.token(Token::String(part(run)));
    }
}

fn end_key(form: Form, writer: &mut Writer<'_>) {
    let end = Fragment { bytes: b"", first: false, last: true };
    match form {
        Form::Member => writer.token(Token::Key(end)),
        Form::Add => writer.token(Token::String(end)).key("value"),
        Form::Remove => writer.token(Token::String(end)).end_object(),
    };
}
