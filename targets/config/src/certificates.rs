//! Certificates and a key, where they are on the page.

use core::fmt;

/// The most certificates of a sort.
pub const MAX_CERTIFICATES: usize = 4;

/// A few certificates in DER, borrowed from the page. What is in them is not looked at here.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Certificates<'a> {
    list: [&'a [u8]; MAX_CERTIFICATES],
    len: usize,
}

impl<'a> Certificates<'a> {
    /// None.
    pub const NONE: Self = Self { list: [&[]; MAX_CERTIFICATES], len: 0 };

    /// A single one.
    pub const fn one(certificate: &'a [u8]) -> Self {
        Self { list: [certificate, &[], &[], &[]], len: 1 }
    }

    /// These certificates, unless they are too many.
    pub fn of(certificates: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut all = Self::NONE;
        certificates.into_iter().all(|certificate| all.push(certificate)).then_some(all)
    }

    /// All of them.
    pub fn as_slice(&self) -> &[&'a [u8]] {
        self.list.get(..self.len).unwrap_or_default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one. Whether there was room for it.
    pub(crate) fn push(&mut self, certificate: &'a [u8]) -> bool {
        let place = self.list.get_mut(self.len);
        place.map(|place| *place = certificate).map(|()| self.len += 1).is_some()
    }
}

/// Their sizes: nobody reads their bytes in a log.
impl fmt::Debug for Certificates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|certificate| certificate.len())).finish()
    }
}

/// The private key of a certificate: a number of P-256, 32 bytes, the most significant first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClientKey<'a>(pub &'a [u8; 32]);

/// Never what it is.
impl fmt::Debug for ClientKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey")
    }
}
