//! What a client asks for.

use crate::hpack::Field;

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The verb.
    pub method: &'a str,
    /// How the server is reached.
    pub scheme: Scheme,
    /// Whom the server is asked as: name and port, as in a URL.
    pub authority: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// All other headers.
    pub fields: &'a [Field<'a>],
    /// Whether a body follows, with [`Connection::send`](crate::Connection::send).
    pub has_body: bool,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Scheme {
    /// Over a connection that is secured.
    #[default]
    Https,
    /// Over one that is not.
    Http,
}

impl<'a> Request<'a> {
    /// All fields in order: pseudo-headers come first (RFC 9113 §8.3).
    ///
    /// There are few methods and one authority, so that they are remembered; paths are not.
    pub(crate) fn all_fields(&self) -> impl Iterator<Item = Field<'a>> + Clone {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
        };
        let pseudo = [
            Field::kept(":method", self.method),
            Field::passing(":scheme", scheme),
            Field::kept(":authority", self.authority),
            Field::passing(":path", self.path),
        ];
        pseudo.into_iter().chain(self.fields.iter().copied())
    }

    /// What the server may compare with the most that it takes (RFC 9113 §6.5.2).
    pub(crate) fn size(&self) -> u32 {
        self.all_fields().fold(0, |sum, field| sum.saturating_add(field.size()))
    }

    /// Whether it is one that may be sent (RFC 9113 §8.2 and §8.3.1).
    pub(crate) fn is_valid(&self) -> bool {
        let is_token = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
        !self.method.is_empty()
            && self.method.bytes().all(is_token)
            && (self.path.starts_with('/') || self.path == "*")
            && self.path.bytes().chain(self.authority.bytes()).all(|byte| byte.is_ascii_graphic())
            && self.fields.iter().all(is_valid)
    }
}

fn is_valid(field: &Field<'_>) -> bool {
    let is_in_name =
        |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && byte != b':';
    let is_about_the_connection = matches!(
        field.name,
        "connection" | "host" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    );
    let is_in_value = |byte: u8| !matches!(byte, 0 | b'\r' | b'\n');
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let value = field.value.as_bytes();
    !field.name.is_empty()
        && field.name.bytes().all(is_in_name)
        && !is_about_the_connection
        && field.value.bytes().all(is_in_value)
        && !is_blank(value.first())
        && !is_blank(value.last())
}
