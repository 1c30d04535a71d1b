//! The tokenizer against itself: however a text comes, whole or byte by byte, its handler is told
//! the same, and so is whoever asks for the verdict.

use picokube_core::json::{Error, Flow, Fragment, Token, Tokenizer};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// What a handler is told, each text as a whole, and how that ends.
type Told = (Vec<String>, Result<(), Error>);

/// Reads `text` in pieces of this size. The bits say what the handler does after each token: skip
/// what it begins, or pause.
fn told(text: &[u8], piece: usize, skips: u64, pauses: u64) -> Told {
    let mut told: Vec<String> = Vec::new();
    let mut is_whole = true;
    let mut handler = |token: Token<'_>| {
        let (kind, Fragment { bytes, first, last }) = match token {
            Token::Key(fragment) => ("key", fragment),
            Token::String(fragment) => ("string", fragment),
            Token::Number(fragment) => ("number", fragment),
            whole => {
                told.push(format!("{whole:?}"));
                ("", Fragment { bytes: b"", first: false, last: true })
            }
        };
        if first {
            told.push(kind.to_owned());
        }
        let text = told.last_mut().expect("a text has a first fragment");
        bytes.iter().for_each(|byte| *text += &format!(" {byte:02x}"));
        is_whole = last;
        let bit = 1 << (told.len() % 64);
        match () {
            () if last && skips & bit != 0 => Flow::Skip,
            () if pauses & bit != 0 => Flow::Pause,
            () => Flow::Next,
        }
    };
    let mut tokenizer = Tokenizer::new();
    let mut read_all = || {
        for mut piece in text.chunks(piece) {
            while !piece.is_empty() {
                piece = &piece[tokenizer.feed(piece, &mut handler)?..];
            }
        }
        tokenizer.finish(&mut handler)
    };
    let result = read_all();
    if !is_whole {
        // How much of it was told before the error depends on where it was cut.
        told.pop();
    }
    (told, result)
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        4 => "[ -~]{0,30}",
        1 => "[a-z\"\\\\\n\u{1}\u{e9}\u{20ac}\u{1f600}]{0,30}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u32..100).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        let member = (text.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            prop::collection::vec(member, 0..6).prop_map(|all| Value::from(Map::from_iter(all))),
        ]
    })
}

/// A byte somewhere that is changed, inserted or removed.
fn damage() -> impl Strategy<Value = (prop::sample::Index, u8, u8)> {
    let byte =
        prop_oneof![any::<u8>(), prop::sample::select(&b"{}[],:\"\\0123456789-+.eEtfnul \n"[..])];
    (any::<prop::sample::Index>(), byte, 0_u8..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn pieces_of_any_size_tell_the_same(
        value in value(),
        damages in prop::collection::vec(damage(), 0..3),
        piece in 2_usize..50,
        skips in prop_oneof![Just(0), any::<u64>()],
        pauses in any::<u64>(),
    ) {
        let mut text = value.to_string().into_bytes();
        for (place, byte, action) in damages {
            let place = place.index(text.len().max(1));
            match action {
                0 if place < text.len() => text[place] = byte,
                1 if place < text.len() => drop(text.remove(place)),
                _ => text.insert(place, byte),
            }
        }
        let by_bytes = told(&text, 1, skips, pauses);
        let in_pieces = told(&text, piece, skips, pauses);
        prop_assert_eq!(&in_pieces, &by_bytes, "by {}: {}", piece, String::from_utf8_lossy(&text));
        let whole = told(&text, text.len().max(1), skips, pauses);
        prop_assert_eq!(&whole, &by_bytes, "whole: {}", String::from_utf8_lossy(&text));
    }
}
