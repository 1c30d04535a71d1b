//! HTTP itself, broken. What hyper refuses by itself has a code and no Status.

use super::CONFIG_MAPS;
use super::case::Case;

const LIMIT: usize = 3 << 20;

fn post(headers: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    );
    format!("{head}{headers}\r\n{body}").into_bytes()
}

fn get(headers: &str) -> Vec<u8> {
    format!("GET /readyz HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n").into_bytes()
}

pub(crate) fn cases() -> Vec<Case> {
    let object = r#"{"metadata":{"name":"framed"}}"#;
    let length = object.len();
    let chunked = "transfer-encoding: chunked\r\n";
    let bad = "BadRequest";
    let large = "RequestEntityTooLarge";
    let flood: String = (0..500).map(|n| format!("x-header-{n}: {n}\r\n")).collect();
    let wide = format!("x-wide: {}\r\n", "w".repeat(200 << 10));
    // One chunk up to the limit and another one beyond it.
    let over = format!("{LIMIT:x}\r\n{}\r\n1\r\nx\r\n", "x".repeat(LIMIT));
    vec![
        Case::raw("chunk of no size", post(chunked, "zz\r\n"), 400, bad),
        Case::raw("chunk of negative size", post(chunked, "-1\r\nx\r\n0\r\n\r\n"), 400, bad),
        Case::raw("chunk beyond all sizes", post(chunked, "fffffffffffffffff\r\nx\r\n"), 400, bad),
        Case::raw(
            "chunk that is longer than it says",
            post(chunked, "1\r\nxx\r\n0\r\n\r\n"),
            400,
            bad,
        ),
        Case::raw("chunk that ends early", post(chunked, "10\r\nabc"), 400, bad),
        Case::raw("chunks without an end", post(chunked, "1\r\nx\r\n"), 400, bad),
        Case::raw("body that ends early", post("content-length: 100\r\n", "{"), 400, bad),
        Case::raw("chunks beyond the limit", post(chunked, &over), 413, large),
        Case::raw("length beyond the limit", post("content-length: 3145729\r\n", ""), 413, large),
        Case::raw(
            "length of an exabyte",
            post("content-length: 1000000000000000000\r\n", ""),
            413,
            large,
        ),
        Case::raw("length below zero", post("content-length: -1\r\n", object), 400, ""),
        Case::raw("length that is none", post("content-length: some\r\n", object), 400, ""),
        Case::raw(
            "two lengths",
            post(&format!("content-length: {length}\r\ncontent-length: 3\r\n"), object),
            400,
            "",
        ),
        Case::raw(
            "unknown transfer encoding",
            post("transfer-encoding: gzip\r\n", object),
            400,
            "",
        ),
        Case::raw("too many headers", get(&flood), 431, ""),
        Case::raw("header too large", get(&wide), 431, ""),
        Case::raw("header without a colon", get("nonsense\r\n"), 400, ""),
        Case::raw("header with a space in its name", get("a b: c\r\n"), 400, ""),
        Case::raw("header with a zero byte", get("a: b\0c\r\n"), 400, ""),
        Case::raw(
            "target without a slash",
            "GET readyz HTTP/1.1\r\nhost: localhost\r\n\r\n",
            404,
            "NotFound",
        ),
        Case::raw(
            "target with a zero byte",
            "GET /\0 HTTP/1.1\r\nhost: localhost\r\n\r\n",
            400,
            "",
        ),
        Case::raw(
            "target too long",
            format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(65_530)),
            431,
            "",
        ),
        Case::raw("no version", "GET /readyz\r\n\r\n", 400, ""),
        Case::raw("unknown version", "GET /readyz HTTP/9.9\r\nhost: localhost\r\n\r\n", 400, ""),
        Case::raw(
            "no HTTP at all",
            "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03\r\n\r\n",
            400,
            "",
        ),
    ]
}
