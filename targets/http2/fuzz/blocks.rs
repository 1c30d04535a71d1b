//! Any bytes as a header block: read as the plain reader of the tests reads them, however they are split;
//! and as a string in the Huffman code.

use picokube_http2::Head;
use picokube_http2::hpack::{Compression, Decoder, Fault, huffman};

use crate::reference::Reference;

/// The first byte chooses how the rest is split.
pub(crate) fn play(input: &[u8]) {
    let Some((choice, block)) = input.split_first() else { return };
    let whole = read(block, usize::MAX);
    assert_eq!(read(block, usize::from(*choice) + 1), whole);
    let fields = Reference::new(0).decode(block);
    assert_eq!(whole.is_ok(), fields.is_some());
    if let (Ok(Ok((head, has_status))), Some(fields)) = (whole, fields) {
        let find = |wanted: &[u8]| {
            let mut pairs = fields.iter().rev().map(|(pair, _)| pair);
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        let status = head.status.to_string().into_bytes();
        assert_eq!(find(b":status"), has_status.then_some(&status));
        let date = find(b"date").filter(|date| (1..=29).contains(&date.len()));
        assert_eq!(head.date(), date.map(|date| &date[..]));
        let length =
            find(b"content-length").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        assert_eq!(head.content_length, length);
    }
    string(block);
}

fn read(block: &[u8], piece: usize) -> Result<Result<(Head, bool), Fault>, Compression> {
    let mut decoder = Decoder::new();
    block.chunks(piece).try_for_each(|piece| decoder.push(piece))?;
    decoder.finish()
}

/// There is one way to write a string.
fn string(bytes: &[u8]) {
    let (mut decoder, mut text) = (huffman::Decoder::START, Vec::new());
    for byte in bytes {
        if decoder.push(*byte, |symbol| text.push(symbol)).is_err() {
            return;
        }
    }
    if decoder.may_end() {
        let mut again = Vec::new();
        let put = |byte| {
            again.push(byte);
            Ok::<(), ()>(())
        };
        huffman::encode(&text, put).unwrap();
        assert_eq!(again, bytes);
    }
}
