//! What the tokenizer tells whoever reads a document.

/// One token of a document, in the order of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// The name of a member, or a part of it.
    Key(Fragment<'a>),
    /// A string, or a part of it.
    String(Fragment<'a>),
    /// The text of a number, or a part of it.
    Number(Fragment<'a>),
    /// `true` or `false`
    Bool(bool),
    /// `null`
    Null,
}

/// A part of a string, key or number.
///
/// Text that lies in one chunk and has no escapes comes whole. Otherwise it comes in several
/// fragments, escapes resolved; all fragments in a row are valid UTF-8, but one alone may cut a
/// character. No memory is needed for text of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The bytes of this part; may be empty.
    pub bytes: &'a [u8],
    /// Nothing of this text came before.
    pub first: bool,
    /// Nothing of this text follows.
    pub last: bool,
}

impl<'a> Fragment<'a> {
    /// A text that comes in one piece.
    pub const fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, first: true, last: true }
    }

    /// All of the text, if this is all of it.
    pub const fn as_whole(self) -> Option<&'a [u8]> {
        if self.first && self.last { Some(self.bytes) } else { None }
    }
}

impl Token<'_> {
    /// Whether a value is complete with this token.
    pub const fn ends_value(&self) -> bool {
        match self {
            Self::ObjectEnd | Self::ArrayEnd | Self::Bool(_) | Self::Null => true,
            Self::String(fragment) | Self::Number(fragment) => fragment.last,
            Self::ObjectStart | Self::ArrayStart | Self::Key(_) => false,
        }
    }
}

/// What the tokenizer does after a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Goes on.
    #[default]
    Next,
    /// After the last fragment of a key: checks its value without telling about it. After the
    /// start of an object or array: the same for the rest of it, the end included. Elsewhere as
    /// [`Next`](Self::Next).
    Skip,
    /// After the end of an object or array: returns to the caller, who may feed the rest later.
    /// Elsewhere as [`Next`](Self::Next).
    Pause,
}

/// Someone who reads a document.
pub trait Handler {
    /// Takes the next token and says how to go on.
    fn token(&mut self, token: Token<'_>) -> Flow;
}

impl<F: FnMut(Token<'_>) -> Flow> Handler for F {
    fn token(&mut self, token: Token<'_>) -> Flow {
        self(token)
    }
}
