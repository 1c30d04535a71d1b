//! The page's bytes: a header, then parts, each with its kind and its length in front.

use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

use crate::{ClientKey, Configuration, Document, Field, PageError};

/// The most that a page takes of the flash that a board sets aside for it.
pub const PAGE: usize = 8192;
/// Bytes in front of the parts.
pub const HEADER: usize = 12;

const MAGIC: [u8; 4] = *b"PKUB";
/// Raised when a page of before would be misunderstood.
pub(crate) const VERSION: u16 = 2;
/// Had JSON and nothing else behind the header.
const JSON_ONLY: u16 = 1;
/// What flash reads that was never written.
const ERASED: [u8; 4] = [0xff; 4];
/// The same in an emulator.
const ZERO: [u8; 4] = [0; 4];
// Without a table: it is used once a boot.
const CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// What is in a part.
mod kind {
    /// The [`Document`](crate::Document).
    pub(super) const JSON: u8 = 1;
    pub(super) const AUTHORITY: u8 = 2;
    pub(super) const CLIENT_CERTIFICATE: u8 = 3;
    pub(super) const CLIENT_KEY: u8 = 4;
}

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
    if !(JSON_ONLY..=VERSION).contains(&version) {
        return Err(PageError::Version(version));
    }
    let len = u16::from_le_bytes(*len);
    let fits = usize::from(len) <= PAGE - HEADER;
    let content = rest.get(..usize::from(len)).filter(|_| fits).ok_or(PageError::Length(len))?;
    if CRC.checksum(content) != u32::from_le_bytes(*checksum) {
        return Err(PageError::Checksum);
    }
    let document = if version == JSON_ONLY { read_json(content)? } else { read_parts(content)? };
    Configuration::check(&document)
}

fn read_parts(mut content: &[u8]) -> Result<Document<'_>, PageError> {
    let (first, json) = take_part(&mut content)?;
    if first != kind::JSON {
        return Err(PageError::Parts);
    }
    let mut document = read_json(json)?;
    while !content.is_empty() {
        let (kind, part) = take_part(&mut content)?;
        let has_room = match kind {
            kind::AUTHORITY => document.authorities.push(part),
            kind::CLIENT_CERTIFICATE => document.client_certificates.push(part),
            kind::CLIENT_KEY if document.client_key.is_none() => {
                let key =
                    part.try_into().map_err(|_| PageError::Value(Field::ClientCertificate))?;
                document.client_key = Some(ClientKey(key));
                true
            }
            _ => false,
        };
        if !has_room {
            return Err(PageError::Parts);
        }
    }
    Ok(document)
}

/// Splits the first part off: its kind, and what is in it.
fn take_part<'a>(content: &mut &'a [u8]) -> Result<(u8, &'a [u8]), PageError> {
    let (&[kind, low, high], rest) = content.split_first_chunk().ok_or(PageError::Parts)?;
    let len = usize::from(u16::from_le_bytes([low, high]));
    let (part, rest) = rest.split_at_checked(len).ok_or(PageError::Parts)?;
    *content = rest;
    Ok((kind, part))
}

fn read_json(json: &[u8]) -> Result<Document<'_>, PageError> {
    serde_json_core::from_slice(json).map(|(document, _)| document).map_err(PageError::Json)
}

/// Writes a page and returns its length. A document that the firmware would refuse is refused.
pub fn write_page(document: &Document<'_>, page: &mut [u8; PAGE]) -> Result<usize, PageError> {
    Configuration::check(document)?;
    let (header, content) = page.split_at_mut(HEADER);
    let mut len = put_json(content, document).ok_or(PageError::TooLarge)?;
    let authorities = document.authorities.as_slice().iter().map(|part| (kind::AUTHORITY, *part));
    let certificates = document.client_certificates.as_slice().iter();
    let certificates = certificates.map(|part| (kind::CLIENT_CERTIFICATE, *part));
    let key = document.client_key.iter().map(|key| (kind::CLIENT_KEY, &key.0[..]));
    for (kind, part) in authorities.chain(certificates).chain(key) {
        let room = content.get_mut(len..).unwrap_or_default();
        len += put_part(room, kind, part).ok_or(PageError::TooLarge)?;
    }
    let checksum = CRC.checksum(content.get(..len).unwrap_or_default());
    let (version, size) = (VERSION.to_le_bytes(), (len as u16).to_le_bytes());
    let fields = [&MAGIC[..], &version, &size, &checksum.to_le_bytes()];
    for (to, from) in header.iter_mut().zip(fields.into_iter().flatten()) {
        *to = *from;
    }
    Ok(HEADER + len)
}

fn put_json(room: &mut [u8], document: &Document<'_>) -> Option<usize> {
    let (head, body) = room.split_first_chunk_mut()?;
    let len = serde_json_core::to_slice(document, body).ok()?;
    *head = part_head(kind::JSON, len);
    Some(head.len() + len)
}

fn put_part(room: &mut [u8], kind: u8, part: &[u8]) -> Option<usize> {
    let (head, body) = room.split_first_chunk_mut()?;
    body.get_mut(..part.len())?.copy_from_slice(part);
    *head = part_head(kind, part.len());
    Some(head.len() + part.len())
}

/// What stands in front of a part, which is no longer than a page.
fn part_head(kind: u8, len: usize) -> [u8; 3] {
    let [low, high] = (len as u16).to_le_bytes();
    [kind, low, high]
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::{Certificates, Election, MAX_CERTIFICATES};

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
        leader_election: Some(Election {
            lease_duration: Some(60_000),
            renew_deadline: None,
            retry_period: Some(1_000),
            resource_name: Some("gateways"),
            resource_namespace: None,
        }),
        tls_server_name: Some("kubernetes"),
        authorities: Certificates::one(&[0x30; 900]),
        client_certificates: Certificates::one(&[0x31; 700]),
        client_key: Some(ClientKey(&[0x32; 32])),
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

    #[test]
    fn a_page_of_version_1_is_still_read() {
        let json = br#"{"server":"192.168.1.10:8001","identity":"gateway-7"}"#;
        let mut page = [0xff; PAGE];
        page[..8].copy_from_slice(&[b'P', b'K', b'U', b'B', 1, 0, json.len() as u8, 0]);
        page[8..12].copy_from_slice(&CRC.checksum(json).to_le_bytes());
        page[HEADER..][..json.len()].copy_from_slice(json);
        let document =
            Document { server: "192.168.1.10:8001", identity: "gateway-7", ..Document::default() };
        assert_eq!(read_page(&page), Configuration::check(&document));
        page[4] = 3;
        assert_eq!(read_page(&page), Err(PageError::Version(3)));
    }

    #[test]
    fn parts_must_add_up() {
        const JSON: &[u8] = br#"{"server":"192.168.1.10:6443","identity":"a"}"#;
        let read = |parts: &[(u8, &[u8])]| {
            let mut content = std::vec::Vec::new();
            for (kind, part) in parts {
                content.extend(part_head(*kind, part.len()));
                content.extend(*part);
            }
            read_page(&page_of(&content)).err()
        };
        let (json, authority) = ((kind::JSON, JSON), (kind::AUTHORITY, &[0x30][..]));
        let (own, key) =
            ((kind::CLIENT_CERTIFICATE, &[0x30][..]), (kind::CLIENT_KEY, &[1; 32][..]));
        assert_eq!(read(&[json, authority, own, key]), None);
        for wrong in [
            &[authority, json][..],
            &[json, json],
            &[json, (9, &[1])],
            &[json, authority, own, key, key],
            &[json, authority, authority, authority, authority, authority],
        ] {
            assert_eq!(read(wrong), Some(PageError::Parts), "{wrong:?}");
        }
        for wrong in
            [&[json, authority, own, (kind::CLIENT_KEY, &[1; 31])][..], &[json, authority, key]]
        {
            assert_eq!(read(wrong), Some(PageError::Value(Field::ClientCertificate)));
        }
        assert_eq!(read(&[json, own, key]), Some(PageError::Value(Field::CertificateAuthority)));
        assert_eq!(read_page(&page_of(&[kind::JSON, 200, 0, b'{'])), Err(PageError::Parts));
        assert_eq!(read_page(&page_of(&[])), Err(PageError::Parts));
    }

    /// A page with this behind its header.
    fn page_of(content: &[u8]) -> std::vec::Vec<u8> {
        let mut page = std::vec::Vec::from(MAGIC);
        page.extend(VERSION.to_le_bytes());
        page.extend((content.len() as u16).to_le_bytes());
        page.extend(CRC.checksum(content).to_le_bytes());
        page.extend(content);
        page
    }

    fn certificates() -> impl Strategy<Value = std::vec::Vec<std::vec::Vec<u8>>> {
        vec(vec(any::<u8>(), 0..2500), 0..=MAX_CERTIFICATES)
    }

    fn borrowed(certificates: &[std::vec::Vec<u8>]) -> Certificates<'_> {
        Certificates::of(certificates.iter().map(|certificate| &certificate[..])).unwrap()
    }

    proptest! {
        /// Whatever can be written is read as it was written; what does not fit is refused.
        #[test]
        fn any_certificates_come_back(
            authorities in certificates(), own in certificates(), key in any::<[u8; 32]>(),
        ) {
            let client_key = (!own.is_empty()).then_some(ClientKey(&key));
            let (authorities, client_certificates) = (borrowed(&authorities), borrowed(&own));
            let document = Document { authorities, client_certificates, client_key, ..DOCUMENT };
            let expected = Configuration::check(&document);
            let mut page = [0xff; PAGE];
            match write_page(&document, &mut page) {
                Ok(len) => {
                    prop_assert_eq!(read_page(&page), expected);
                    prop_assert_eq!(read_page(&page[..len]), expected);
                }
                Err(PageError::TooLarge) => {
                    let parts = authorities.as_slice().iter().chain(client_certificates.as_slice());
                    prop_assert!(parts.map(|part| part.len()).sum::<usize>() > PAGE - 600);
                }
                Err(error) => prop_assert_eq!(Err(error), expected),
            }
        }

        /// No bytes make it panic, with a checksum that is right and without; least of all those that look
        /// like a page.
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in vec(any::<u8>(), 0..300),
            parts in vec((0..6_u8, vec(any::<u8>(), 0..40)), 0..6),
            places in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let _ = read_page(&bytes);
            let _ = read_page(&page_of(&bytes));
            let mut content = std::vec::Vec::new();
            for (kind, part) in &parts {
                content.extend(part_head(*kind, part.len()));
                content.extend(part);
            }
            let _ = read_page(&page_of(&content));
            let (good, len) = page();
            let mut content = good[HEADER..len].to_vec();
            for (place, byte) in &places {
                let place = place.index(content.len());
                content[place] = *byte;
            }
            // Whatever is taken, TLS without an authority is none.
            if let Ok(configuration) = read_page(&page_of(&content)) {
                prop_assert!(configuration.tls.is_none_or(|tls| !tls.authorities.is_empty()));
            }
        }
    }
}
