//! Frames as a server would write them, and as it would read them.

use picokube_http2::ErrorCode;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;

/// A header block with status 200 and nothing else, and such with others.
pub(crate) const OK: &[u8] = &[0x88];
pub(crate) const NO_CONTENT: &[u8] = &[0x89];

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(crate) fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = settings
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

pub(crate) fn head(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, block)
}

pub(crate) fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, bytes)
}

pub(crate) fn last_data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, bytes)
}

pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn rst_stream(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

pub(crate) fn goaway(last: u32, code: ErrorCode) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.0.to_be_bytes()].concat())
}

pub(crate) fn ping(payload: &[u8; 8]) -> Vec<u8> {
    frame(PING, 0, 0, payload)
}

/// A header that is spelt out and not remembered.
pub(crate) fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        integer(&mut bytes, text.len());
        bytes.extend_from_slice(text);
    }
    bytes
}

fn integer(bytes: &mut Vec<u8>, value: usize) {
    match value.checked_sub(127) {
        None => bytes.push(value as u8),
        Some(mut rest) => {
            bytes.push(127);
            while rest >= 128 {
                bytes.push(rest as u8 | 128);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
    }
}

/// A frame that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The payload of a WINDOW_UPDATE or RST_STREAM.
    pub(crate) fn number(&self) -> u32 {
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }
}

/// All that a client sent, without its preface. Whole frames, or this fails.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    bytes = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(bytes);
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        let stream = u32::from_be_bytes(bytes[5..9].try_into().unwrap());
        let payload = bytes[9..9 + length].to_vec();
        frames.push(Frame { kind: bytes[3], flags: bytes[4], stream, payload });
        bytes = &bytes[9 + length..];
    }
    frames
}
