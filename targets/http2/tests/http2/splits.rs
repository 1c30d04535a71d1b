//! However the bytes come, the same is told.

use picokube_http2::ErrorCode;
use proptest::prelude::*;

use crate::client::{Client, Told};
use crate::wire::*;

/// Whole frames that mean something, some that do not, and garbage.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop::sample::select(vec![0, 1, 1, 3, 3, 5, 2, 7]);
    let flags = prop_oneof![Just(0), Just(END_STREAM), Just(PADDED | END_HEADERS), any::<u8>()];
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let block = prop::sample::select(vec![
        OK.to_vec(),
        NO_CONTENT.to_vec(),
        literal(b":status", b"103"),
        [OK, &literal(b"content-length", b"7")].concat(),
        literal(b"x", b"y"),
        vec![0x20, 0x88],
        vec![0xbe],
    ]);
    prop_oneof![
        6 => (stream.clone(), block).prop_map(|(stream, block)| head(stream, &block)),
        6 => (stream.clone(), bytes.clone()).prop_map(|(stream, bytes)| data(stream, &bytes)),
        2 => (stream.clone(), bytes.clone()).prop_map(|(stream, bytes)| last_data(stream, &bytes)),
        2 => (stream.clone(), any::<u32>()).prop_map(|(stream, by)| window_update(stream, by >> 8)),
        1 => (stream.clone(), 0..14u32).prop_map(|(stream, code)| rst_stream(stream, ErrorCode(code))),
        1 => Just(ping(b"12345678")),
        1 => (0..8u32).prop_map(|last| goaway(last, ErrorCode::NO_ERROR)),
        1 => (0..8u16, any::<u32>()).prop_map(|(name, value)| settings(&[(name, value >> 4)])),
        2 => (0..12u8, flags, stream, bytes.clone()).prop_map(|(kind, flags, stream, bytes)| {
            frame(kind, flags, stream, &bytes)
        }),
        1 => bytes,
    ]
}

fn client() -> Client {
    let mut client = Client::of(&[]);
    client.get();
    client.post();
    client.get();
    client
}

fn told_of(pieces: impl Iterator<Item = Vec<u8>>) -> (Vec<Told>, Option<picokube_http2::Error>) {
    let mut client = client();
    let mut all = Vec::new();
    let mut error = None;
    for piece in pieces {
        let (told, result) = client.feed_all(&piece);
        all.extend(told);
        if let Err(why) = result {
            error = Some(why);
            break;
        }
    }
    (merged(all), error)
}

/// Data of one stream that comes in several events is the same as in one.
fn merged(told: Vec<Told>) -> Vec<Told> {
    let mut merged: Vec<Told> = Vec::new();
    for event in told {
        match (merged.last_mut(), event) {
            (Some(Told::Data(id, before)), Told::Data(of, bytes)) if *id == of => {
                before.extend(bytes)
            }
            (_, event) => merged.push(event),
        }
    }
    merged
}

proptest! {
    #[test]
    fn any_split_tells_the_same(
        pieces in prop::collection::vec(piece(), 0..20),
        sizes in prop::collection::vec(1..30usize, 1..20),
    ) {
        let bytes = pieces.concat();
        let whole = told_of(std::iter::once(bytes.clone()));
        prop_assert_eq!(&told_of(bytes.iter().map(|byte| vec![*byte])), &whole);
        let mut rest = &bytes[..];
        let split = sizes.iter().cycle().map_while(|size| {
            let piece = rest.split_off(..rest.len().min(*size))?;
            (!piece.is_empty()).then(|| piece.to_vec())
        });
        prop_assert_eq!(&told_of(split), &whole);
    }
}
