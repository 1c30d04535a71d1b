//! The tokenizer against `serde_json`: the same verdicts and values, however the text is split.

mod support;

use picokube_core::json::ErrorReason;
use proptest::prelude::*;
use serde_json::Value;
use support::{read, skip};

/// Both readers, and both ways of reading, must agree on `text` split like this.
fn agree<'a>(text: &[u8], chunks: impl Iterator<Item = &'a [u8]> + Clone) -> Result<(), String> {
    let expected: Result<Value, _> = serde_json::from_slice(text);
    let ours = read(chunks.clone());
    let skipped = skip(chunks);
    match (&expected, &ours, &skipped) {
        (Ok(expected), Ok(value), Ok(())) if expected == value => Ok(()),
        (Err(_), Err(read), Err(skipped)) if read == skipped => Ok(()),
        _ => Err(format!(
            "{:?}: serde_json {expected:?}, read {ours:?}, skipped {skipped:?}",
            String::from_utf8_lossy(text)
        )),
    }
}

fn agree_at_every_split(text: &[u8]) -> Result<(), String> {
    agree(text, std::iter::once(text))?;
    agree(text, text.chunks(1))?;
    for position in 1..text.len() {
        let (left, right) = text.split_at(position);
        agree(text, [left, right].into_iter())?;
    }
    Ok(())
}

#[test]
fn documents_of_every_sort_are_judged_alike() {
    for text in DOCUMENTS {
        agree_at_every_split(text).unwrap();
    }
}

/// Valid and invalid documents, two of each trap.
const DOCUMENTS: &[&[u8]] = &[
    b"",
    b" ",
    b"null",
    b" null ",
    b"nul",
    b"nulll",
    b"nulL",
    b"true",
    b"false",
    b"tru e",
    b"truefalse",
    b"0",
    b"-0",
    b"00",
    b"01",
    b"-",
    b"-01",
    b"1.",
    b".5",
    b"1.5",
    b"1.5.2",
    b"1e",
    b"1e+",
    b"1e5",
    b"1E-5",
    b"1e5.5",
    b"+1",
    b"0x10",
    b"1_000",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1a",
    b"1 2",
    b"[1,2",
    b"[1 2]",
    b"[1,]",
    b"[,1]",
    b"[]",
    b"[ ]",
    b"[[]",
    b"[]]",
    b"[}",
    b"{]",
    b"{}",
    b"{ }",
    b"{\"a\"}",
    b"{\"a\":}",
    b"{\"a\":1,}",
    b"{,}",
    b"{a:1}",
    b"{'a':1}",
    b"{\"a\":1 \"b\":2}",
    b"{\"a\":1,\"a\":2}",
    b"{\"a\" : [ 1 , { \"b\" : null } ] }",
    b"{\"a\":1}}",
    b"{1:2}",
    b"{\"\":\"\"}",
    b"\"",
    b"\"a",
    b"\"a\"",
    b"\"a\"b",
    b"\"\\",
    b"\"\\\"",
    b"\"\\\"\"",
    b"\"\\x\"",
    b"\"\\u\"",
    b"\"\\u00\"",
    b"\"\\u00e9\"",
    b"\"\\u00E9\\n\\t\\r\\b\\f\\/\\\\\"",
    b"\"\\uD83D\\uDE00\"",
    b"\"\\ud83d\"",
    b"\"\\ude00\"",
    b"\"\\ud83dx\"",
    b"\"\\ud83d\\n\"",
    b"\"\\ud83d\\ud83d\\ude00\"",
    b"\"\\ud83d\\u0041\"",
    b"\"\\ud83d \\ude00\"",
    b"\"\\u0000\"",
    b"\"\0\"",
    b"\"\n\"",
    b"\"\x1f\"",
    b"\"\x7f\"",
    b"\"\xc3\xa9\"",
    b"\"\xc3\"",
    b"\"\xc3x\"",
    b"\"\xff\"",
    b"\"\xed\xa0\x80\"",
    b"\"\xf0\x9f\x98\x80\"",
    b"\"\xf0\x9f\x98\"",
    b"\"\xc0\x80\"",
    b"\"\xf5\x80\x80\x80\"",
    b"{\"\xc3\xa9\":1}",
    b"{\"\xff\":1}",
    b"\xef\xbb\xbf1",
    b"1\0",
    b"\0",
    b"[1]\n\t\r ",
    b"[1]x",
    b"\x0b1",
    b"\xc2\xa01",
    b"1e308",
    b"1e309",
    b"-1e309",
    b"0e999999999999",
    b"0.0e999999999999",
    b"1e-999999999999",
    b"1e999999999999",
    b"1.7976931348623157e308",
    b"1.7976931348623159e308",
    b"17976931348623157e292",
    b"17976931348623159e292",
    b"0.00000000000000000000000000000000000000001e349",
    b"0.00000000000000000000000000000000000000001e350",
    b"123456789012345678901234567890",
    b"0.123456789012345678901234567890123456789",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"[\"\\\\\\\"\", \"a\\u0062c\", {\"k\\u0065y\": \"v\"}]",
];

#[test]
fn a_number_of_any_length_is_judged_alike() {
    let digits = "9".repeat(400);
    for text in [
        digits.clone(),
        digits[..309].to_owned(),
        digits[..308].to_owned(),
        format!("0.{}1", "0".repeat(400)),
        format!("1{}e-100", "0".repeat(400)),
        format!("1{}e-92", "0".repeat(400)),
        format!("0.{}1e709", "0".repeat(400)),
    ] {
        agree_at_every_split(text.as_bytes()).unwrap();
    }
}

#[test]
fn depth_is_limited_as_in_serde_json() {
    for depth in [1, 31, 32, 33, 64, 126, 127, 128, 129, 1000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            agree(text.as_bytes(), text.as_bytes().chunks(7)).unwrap();
            let mixed = format!("{}1{}", "[{\"a\":".repeat(depth), "}]".repeat(depth));
            agree(mixed.as_bytes(), mixed.as_bytes().chunks(5)).unwrap();
        }
    }
    let error = read([&b"[".repeat(128)[..]]).unwrap_err();
    assert_eq!((error.offset, error.reason), (127, ErrorReason::TooDeep));
    assert_eq!(error.to_string(), "invalid JSON at byte 127: nested too deeply");
}

#[test]
fn errors_tell_the_place_and_the_reason() {
    for (text, offset, reason) in [
        (&b"{\"a\": tru}"[..], 9, ErrorReason::InvalidLiteral),
        (b"{\"a\" 1}", 5, ErrorReason::ExpectedColon),
        (b"{\"a\":1 1}", 7, ErrorReason::ExpectedCommaOrEnd),
        (b"[1}", 2, ErrorReason::ExpectedCommaOrEnd),
        (b"{1", 1, ErrorReason::ExpectedKey),
        (b"[1,]", 3, ErrorReason::ExpectedValue),
        (b"[-x]", 2, ErrorReason::InvalidNumber),
        (b"[1e400]", 6, ErrorReason::NumberOutOfRange),
        (b"\"ab\ncd\"", 3, ErrorReason::ControlCharacter),
        (b"\"ab\\xcd\"", 4, ErrorReason::InvalidEscape),
        (b"\"ab\\ud800cd\"", 9, ErrorReason::LoneSurrogate),
        (b"\"\\ud800cd\xff\"", 7, ErrorReason::LoneSurrogate),
        (b"\"ab\xffcd\"", 3, ErrorReason::InvalidUtf8),
        (b"[] []", 3, ErrorReason::TrailingData),
        (b"[1, 2", 5, ErrorReason::UnexpectedEnd),
    ] {
        for chunk in 1..=text.len() {
            let error = read(text.chunks(chunk)).unwrap_err();
            let text = String::from_utf8_lossy(text);
            assert_eq!(error.reason, reason, "{text:?} in chunks of {chunk}");
            assert_eq!(error.offset, offset, "{text:?} in chunks of {chunk}");
        }
    }
}

/// JSON text as no printer would write it: white space anywhere, escapes where none are needed.
fn json_text() -> impl Strategy<Value = String> {
    let space = || "[ \t\r\n]{0,2}";
    let character = prop_oneof![
        6 => "[ -!#-\\[\\]-~]",
        1 => "[\u{80}-\u{10ffff}]",
        1 => any::<u16>().prop_filter("surrogate", |unit| !(0xd800..0xe000).contains(unit))
            .prop_map(|unit| format!("\\u{unit:04x}")),
        1 => any::<char>().prop_map(|c| {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect()
        }),
        1 => "\\\\[\"\\\\/bfnrt]",
    ];
    let string = prop::collection::vec(character, 0..20)
        .prop_map(|characters| format!("\"{}\"", characters.concat()))
        .boxed();
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        string.clone(),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let element = (space(), inner.clone(), space()).prop_map(|(a, v, b)| format!("{a}{v}{b}"));
        let member = (space(), string.clone(), space(), space(), inner, space())
            .prop_map(|(a, k, b, c, v, d)| format!("{a}{k}{b}:{c}{v}{d}"));
        prop_oneof![
            prop::collection::vec(element, 0..6).prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec(member, 0..6).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_document_reads_alike(text in json_text(), chunk in 1_usize..40) {
        agree(text.as_bytes(), text.as_bytes().chunks(chunk)).map_err(TestCaseError::fail)?;
    }

    /// One byte changed, inserted or removed makes most documents invalid, in every way there is.
    #[test]
    fn any_damaged_document_is_judged_alike(
        text in json_text(),
        place in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), prop::sample::select(&b"{}[],:\"\\0123456789-+.eEtfnul "[..])],
        action in 0..3,
        chunk in 1_usize..20,
    ) {
        let mut text = text.into_bytes();
        let place = place.index(text.len());
        match action {
            0 => text[place] = byte,
            1 => text.insert(place, byte),
            _ => { text.remove(place); }
        }
        agree(&text, text.chunks(chunk)).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_document_reads_alike_at_every_split(text in json_text()) {
        agree_at_every_split(text.as_bytes()).map_err(TestCaseError::fail)?;
    }
}
