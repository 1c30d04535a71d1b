//! As much of DER (X.690) as is needed to find fields in certificates and keys.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;

/// A row of elements.
#[derive(Clone, Copy)]
pub(super) struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element: its tag, and what is in it.
    pub(super) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match first {
            ..=0x7f => (usize::from(first), rest),
            0x81 => {
                let (&length, rest) = rest.split_first()?;
                // The shortest form is the only one.
                if length < 0x80 {
                    return None;
                }
                (usize::from(length), rest)
            }
            0x82 => {
                let (length, rest) = rest.split_first_chunk()?;
                let length = u16::from_be_bytes(*length);
                if length < 0x100 {
                    return None;
                }
                (usize::from(length), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The next element, which has to have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// What is in the next element, which has to be a sequence.
    pub(super) fn sequence(&mut self) -> Option<Self> {
        self.expect(SEQUENCE).map(Self)
    }

    /// The next element, if it has this tag.
    pub(super) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.0.first() == Some(&tag) { self.expect(tag) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_form() {
        let mut long = [7; 300];
        long[..4].copy_from_slice(&[0x04, 0x82, 0x01, 0x00]);
        assert_eq!(Der::new(&long).next(), Some((4, &long[4..260])));
        for wrong in
            [&[4, 0x81, 0x01, 0][..], &[4, 0x82, 0, 1, 0], &[4, 0x80, 0, 0], &[4, 2, 0], &[4]]
        {
            assert_eq!(Der::new(wrong).next(), None, "{wrong:?}");
        }
    }
}
