//! The page's bytes: a header, then JSON.

use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

use crate::{Configuration, Document, PageError};

/// The most that a page takes of the flash that a board sets aside for it.
pub const PAGE: usize = 4096;
/// Bytes in front of the JSON.
pub const HEADER: usize = 12;

const MAGIC: [u8; 4] = *b"PKUB";
/// Raised when a page of before would be misunderstood.
pub(crate) const VERSION: u16 = 1;
/// What flash reads that was never written.
const ERASED: [u8; 4] = [0xff; 4];
/// The same in an emulator.
const ZERO: [u8; 4] = [0; 4];
// Without a table: it is used once a boot.
const CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// Reads the page that begins at `bytes`, which may be longer than it.
pub fn read_page(bytes: &[u8]) -> Result<Configuration<'_>, PageError> {
    let (magic, rest) = bytes.split_first_chunk::<4>().ok_or(PageError::NotAPage)?;
    match *magic {
        MAGIC => {}
        ERASED | ZERO => return Err(PageError::Missing),
        _ => return Err(PageError::NotAPage),
    }
    let (version, rest) = rest.split_first_chunk().ok_or(PageError::NotAPage)?;
    let (len, rest) = rest.split_first_chunk().ok_or(PageError::NotAPage)?;
    let (checksum, rest) = rest.split_first_chunk().ok_or(PageError::NotAPage)?;
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        return Err(PageError::Version(version));
    }
    let len = u16::from_le_bytes(*len);
    let fits = usize::from(len) <= PAGE - HEADER;
    let json = rest.get(..usize::from(len)).filter(|_| fits).ok_or(PageError::Length(len))?;
    if CRC.checksum(json) != u32::from_le_bytes(*checksum) {
        return Err(PageError::Checksum);
    }
    let (document, _) = serde_json_core::from_slice(json).map_err(PageError::Json)?;
    Configuration::check(&document)
}

/// Writes a page and returns its length. A document that the firmware would refuse is refused.
pub fn write_page(document: &Document<'_>, page: &mut [u8; PAGE]) -> Result<usize, PageError> {
    Configuration::check(document)?;
    let (header, body) = page.split_at_mut(HEADER);
    let len = serde_json_core::to_slice(document, body).map_err(|_| PageError::TooLarge)?;
    let checksum = CRC.checksum(body.get(..len).unwrap_or_default());
    let version = VERSION.to_le_bytes();
    let size = (len as u16).to_le_bytes();
    let fields = [&MAGIC[..], &version, &size, &checksum.to_le_bytes()];
    for (to, from) in header.iter_mut().zip(fields.into_iter().flatten()) {
        *to = *from;
    }
    Ok(HEADER + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: Document<'_> = Document {
        server: "192.168.1.10:6443",
        host: Some("kubernetes.default"),
        authorization: Some("Bearer abc.def"),
        address: Some("192.168.1.7/24"),
        gateway: Some("192.168.1.1"),
        identity: "gateway-7",
        namespace: Some("edge"),
        qps: Some(5),
        burst: Some(10),
        status_lag: Some(0),
        feature_gates: None,
    };

    fn page() -> ([u8; PAGE], usize) {
        let mut page = [0xff; PAGE];
        let len = write_page(&DOCUMENT, &mut page).unwrap();
        (page, len)
    }

    #[test]
    fn what_was_written_is_read() {
        let (page, _) = page();
        assert_eq!(read_page(&page), Configuration::check(&DOCUMENT));
    }

    #[test]
    fn flash_without_a_page_is_told_from_a_bad_one() {
        assert_eq!(read_page(&[0xff; PAGE]), Err(PageError::Missing));
        assert_eq!(read_page(&[0; PAGE]), Err(PageError::Missing));
        assert_eq!(read_page(&[7; PAGE]), Err(PageError::NotAPage));
        assert_eq!(read_page(b"PKUB"), Err(PageError::NotAPage));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let (good, len) = page();
        for position in 0..len * 8 {
            let mut page = good;
            page[position / 8] ^= 1 << (position % 8);
            assert!(read_page(&page).is_err(), "bit {position}");
        }
    }

    #[test]
    fn a_page_that_is_cut_short_is_noticed() {
        let (page, len) = page();
        for cut in 0..len {
            assert!(read_page(&page[..cut]).is_err(), "{cut}");
        }
        assert!(read_page(&page[..len]).is_ok());
    }

    #[test]
    fn a_document_must_fit() {
        let long = std::string::String::from_utf8(std::vec![b'a'; PAGE]).unwrap();
        let document = Document { authorization: Some(&long), ..DOCUMENT };
        assert_eq!(write_page(&document, &mut [0; PAGE]), Err(PageError::TooLarge));
    }
}
