//! Extensions (§4.2): which there are, and what may stand where.

use crate::bytes::Reader;
use crate::error::{Error, Violation};

pub(crate) const SERVER_NAME: u16 = 0;
pub(crate) const SUPPORTED_GROUPS: u16 = 10;
pub(crate) const SIGNATURE_ALGORITHMS: u16 = 13;
pub(crate) const ALPN: u16 = 16;
pub(crate) const PRE_SHARED_KEY: u16 = 41;
pub(crate) const EARLY_DATA: u16 = 42;
pub(crate) const SUPPORTED_VERSIONS: u16 = 43;
pub(crate) const COOKIE: u16 = 44;
pub(crate) const PSK_KEY_EXCHANGE_MODES: u16 = 45;
pub(crate) const KEY_SHARE: u16 = 51;
/// What is said by a bit each (draft-ietf-tls-tlsflags).
pub(crate) const TLS_FLAGS: u16 = 62;

/// Every extension that a hello of ours may have, and early data, which one never has.
const KNOWN: [u16; 10] = [
    SERVER_NAME,
    SUPPORTED_GROUPS,
    SIGNATURE_ALGORITHMS,
    ALPN,
    PRE_SHARED_KEY,
    EARLY_DATA,
    SUPPORTED_VERSIONS,
    COOKIE,
    PSK_KEY_EXCHANGE_MODES,
    KEY_SHARE,
];

/// A block of extensions, none of which stands there twice.
pub(crate) struct Extensions<'a> {
    all: Reader<'a>,
    rest: Reader<'a>,
}

impl<'a> Extensions<'a> {
    /// Reads the block that a message ends with.
    pub(crate) fn last(mut message: Reader<'a>) -> Result<Self, Error> {
        let all = message.list16()?;
        message.finish()?;
        Ok(Self { all, rest: all })
    }

    /// The same block from its beginning.
    pub(crate) fn again(&self) -> Self {
        Self { all: self.all, rest: self.all }
    }

    /// How many bytes have not been read.
    pub(crate) fn unread(&self) -> usize {
        self.rest.rest().len()
    }

    /// The next extension.
    pub(crate) fn next(&mut self) -> Result<Option<(u16, Reader<'a>)>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let before = self.all.rest().len() - self.rest.rest().len();
        let kind = self.rest.u16()?;
        let content = self.rest.list16()?;
        // §4.2: at most one of a kind. Blocks are short, so looking back at each is cheap.
        let mut seen = Reader::new(self.all.rest().get(..before).unwrap_or_default());
        while !seen.is_empty() {
            if seen.u16()? == kind {
                return Err(Violation::DuplicateExtension.into());
            }
            seen.list16()?;
        }
        Ok(Some((kind, content)))
    }
}

/// What is wrong with an extension that a server answers with and that is not for this message (§4.2): we
/// know it, but it has no place here, or nobody has asked for it.
pub(crate) fn out_of_place(kind: u16) -> Error {
    match kind {
        EARLY_DATA => Violation::UnsolicitedExtension.into(),
        kind if KNOWN.contains(&kind) => Violation::MisplacedExtension.into(),
        _ => Violation::UnsolicitedExtension.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_stands_there_once() {
        let block = [0, 12, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0];
        let mut extensions = Extensions::last(Reader::new(&block)).unwrap();
        assert_eq!(extensions.next().unwrap().map(|(kind, _)| kind), Some(1));
        assert_eq!(extensions.next().unwrap().map(|(kind, _)| kind), Some(2));
        assert_eq!(extensions.next().err(), Some(Violation::DuplicateExtension.into()));
        assert!(Extensions::last(Reader::new(&[0, 0, 0])).is_err());
    }
}
