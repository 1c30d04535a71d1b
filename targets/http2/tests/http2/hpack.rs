//! RFC 7541: its examples, and both directions against the reference.

use picokube_http2::hpack::{Compression, Decoder, Fault};
use picokube_http2::{Field, Head, Indexing, Request, Scheme};
use proptest::prelude::*;

use crate::client::{Client, TOKEN, get};
use crate::reference::{Pair, Reference};
use crate::wire::{self, END_HEADERS, Frame, HEADER_TABLE_SIZE, HEADERS, literal};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn read(block: &[u8]) -> Result<Result<(Head, bool), Fault>, Compression> {
    let mut decoder = Decoder::new();
    decoder.push(block)?;
    decoder.finish()
}

fn head(block: &[u8]) -> Head {
    read(block).unwrap().unwrap().0
}

fn text(fields: &[(&str, &str)]) -> Option<Vec<(Pair, bool)>> {
    let bytes = |text: &&str| text.as_bytes().to_vec();
    Some(fields.iter().map(|(name, value)| ((bytes(name), bytes(value)), false)).collect())
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

/// Appendix C.3 and C.4: three requests, without and with Huffman code.
#[test]
fn the_reference_reads_the_examples_of_requests() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let huffman = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, huffman] {
        let mut reference = Reference::new(4096);
        for (block, fields) in blocks.iter().zip(REQUESTS) {
            assert_eq!(reference.decode(&hex(block)), text(fields));
        }
        assert_eq!(reference.table_size(), 164);
    }
}

/// Appendix C.5 and C.6: three responses of a server whose table has 256 bytes and evicts.
#[test]
fn responses_are_read_as_far_as_they_need_no_table() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
         6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
         3d31",
    ];
    let huffman = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [plain, huffman] {
        let mut reference = Reference::new(256);
        for block in blocks {
            assert!(reference.decode(&hex(block)).is_some());
        }
        assert_eq!(reference.table_size(), 215);
        let first = head(&hex(blocks[0]));
        assert_eq!(first.status, 302);
        assert_eq!(first.date(), Some(&b"Mon, 21 Oct 2013 20:13:21 GMT"[..]));
        // They call by number what we were never going to remember.
        assert_eq!(read(&hex(blocks[1])), Err(Compression));
        assert_eq!(read(&hex(blocks[2])), Err(Compression));
    }
}

/// Appendix C.2: one field each.
#[test]
fn single_fields_are_read() {
    let custom = hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572");
    assert!(!read(&custom).unwrap().unwrap().1);
    let password = hex("1008 7061 7373 776f 7264 0673 6563 7265 74");
    assert!(read(&password).unwrap().is_ok());
    // Requests' own, which no response has.
    assert_eq!(read(&hex("040c 2f73 616d 706c 652f 7061 7468")), Ok(Err(Fault::Malformed)));
    assert_eq!(read(&hex("82")), Ok(Err(Fault::Malformed)));
}

/// Appendix C.1: 10 and 1337 in five bits, 42 in eight, here as lengths and indices.
#[test]
fn integers_are_read_however_long_they_are() {
    // 1337 bytes of a value: 127 + 1210.
    let mut block = vec![0x88, 0x0f, 0x2b - 0x0f, 0x7f, 0xba, 0x09];
    block.extend([b'x'; 1337]);
    assert_eq!(head(&block).status, 200);
    // The same length with zeros in front of it, and with more of them than an integer may have.
    let padded = [&[0x88, 0x0f, 0x1c, 0x7f, 0xba, 0x89, 0x00][..], &[b'x'; 1337]].concat();
    assert_eq!(head(&padded).status, 200);
    for integer in
        [&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00][..], &[0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f]]
    {
        assert_eq!(read(&[&[0x88, 0x0f, 0x1c], integer].concat()), Err(Compression));
    }
}

#[test]
fn what_matters_is_kept_and_the_rest_forgotten() {
    let block = [
        &[0x88][..],
        &literal(b"x-kubernetes-pf-flowschema-uid", &[b'f'; 300]),
        &literal(b"retry-after", b"120"),
        &literal(b"content-type", b"application/json"),
        &literal(b"content-length", b"18446744073709551615"),
    ]
    .concat();
    let head = head(&block);
    assert_eq!((head.status, head.retry_after()), (200, Some(&b"120"[..])));
    assert_eq!(head.content_type(), Some(&b"application/json"[..]));
    assert_eq!((head.content_length, head.date()), (Some(u64::MAX), None));
}

#[test]
fn texts_that_are_too_long_are_as_good_as_none() {
    for (name, most) in [(&b"date"[..], 29), (b"retry-after", 29), (b"content-type", 64)] {
        for (length, is_kept) in [(most, true), (most + 1, false), (most + 300, false)] {
            let head = head(&[OK, &literal(name, &vec![b'1'; length])].concat());
            let kept = [head.date(), head.retry_after(), head.content_type()];
            assert_eq!(kept.iter().flatten().any(|text| text.len() == length), is_kept);
        }
    }
}

const OK: &[u8] = &[0x88];

/// RFC 7541 §2.3.3 and §6.1: there is no field 0, and our dynamic table is empty.
#[test]
fn illegal_indices_are_errors() {
    for block in
        [&[0x80][..], &[0xbe], &[0xff, 0x00], &[0xff, 0xff, 0xff, 0x7f], &[0x7e, 0x01, b'x']]
    {
        assert_eq!(read(block), Err(Compression), "{block:x?}");
    }
    for block in
        [&[0x7f, 0x00, 0x01, b'x'][..], &[0x0f, 0x2f, 0x01, b'x'], &[0x1f, 0x30, 0x01, b'x']]
    {
        assert_eq!(read(block), Err(Compression), "{block:x?}");
    }
    // 61 is the last.
    assert!(read(&[0xbd]).unwrap().is_ok());
}

/// RFC 7541 §4.2 and §6.3.
#[test]
fn the_table_stays_empty() {
    assert_eq!(head(&[0x20, 0x88]).status, 200);
    assert_eq!(head(&[0x20, 0x20, 0x88]).status, 200);
    for block in [&[0x20, 0x20, 0x20, 0x88][..], &[0x21, 0x88], &[0x3f, 0x00, 0x88], &[0x88, 0x20]]
    {
        assert_eq!(read(block), Err(Compression), "{block:x?}");
    }
    // Each block by itself.
    let mut decoder = Decoder::new();
    for _ in 0..5 {
        decoder.push(&[0x20, 0x88]).unwrap();
        assert_eq!(decoder.finish().unwrap().unwrap().0.status, 200);
    }
}

#[test]
fn a_block_that_breaks_off_is_an_error() {
    let block =
        [OK, &literal(b"date", b"Mon, 21 Oct 2013 20:13:21 GMT"), &[0x0f, 0x0d, 0x01, b'5']]
            .concat();
    let ends = [1, 36 + 1, block.len()];
    for end in 1..=block.len() {
        let is_whole = ends.contains(&end);
        assert_eq!(read(&block[..end]).is_ok(), is_whole, "{end} of {}", block.len());
    }
}

/// RFC 9113 §8.2.1, §8.2.2 and §8.3.
#[test]
fn malformed_heads_are_told_from_others() {
    let malformed = [
        [OK, &literal(b"Date", b"x")].concat(),
        [OK, &literal(b"", b"x")].concat(),
        [OK, &literal(b"a b", b"x")].concat(),
        [OK, &literal(b"a\x7f", b"x")].concat(),
        [OK, &literal(b"a:b", b"x")].concat(),
        [OK, &literal(b"\xff", b"x")].concat(),
        [OK, &literal(b"a", b"x\ny")].concat(),
        [OK, &literal(b"a", b"x\ry")].concat(),
        [OK, &literal(b"a", b"x\0y")].concat(),
        [OK, &literal(b"a", b" x")].concat(),
        [OK, &literal(b"a", b"x\t")].concat(),
        [OK, &literal(b"a", b" ")].concat(),
        [OK, &literal(b"connection", b"close")].concat(),
        [OK, &literal(b"keep-alive", b"1")].concat(),
        [OK, &literal(b"proxy-connection", b"1")].concat(),
        [OK, &literal(b"transfer-encoding", b"chunked")].concat(),
        [OK, &[0x0f, 57 - 15, 1, b'x']].concat(),
        [OK, &literal(b"upgrade", b"h2c")].concat(),
        [OK, &literal(b":unknown", b"x")].concat(),
        [OK, &literal(b":unknown-and-longer-than-any-name-that-is-kept", b"x")].concat(),
        [OK, OK].concat(),
        [&literal(b"date", b"x"), OK].concat(),
        literal(b":status", b""),
        literal(b":status", b"2x0"),
        literal(b":status", b"0200"),
        literal(b":status", b"200000"),
        [OK, &literal(b"content-length", b"")].concat(),
        [OK, &[0x9c]].concat(),
        [OK, &literal(b"content-length", b"-1")].concat(),
        [OK, &literal(b"content-length", b"1, 1")].concat(),
        [OK, &literal(b"content-length", b"1"), &literal(b"content-length", b"1")].concat(),
        [OK, &literal(b"content-length", b"18446744073709551616")].concat(),
    ];
    for block in malformed {
        assert_eq!(
            read(&block),
            Ok(Err(Fault::Malformed)),
            "{:?}",
            String::from_utf8_lossy(&block)
        );
    }
    assert!(
        read(&[OK, &literal(b"a", b""), &literal(b"b", b"x y\tz\xff")].concat()).unwrap().is_ok()
    );
}

/// A server cannot make us count more than this, and it is told so.
#[test]
fn a_head_may_have_16_kib() {
    let of = |length: usize| [OK, &literal(b"a", &vec![b'x'; length])].concat();
    let rest = 2 * 32 + 1;
    assert!(read(&of(16_384 - rest)).unwrap().is_ok());
    assert_eq!(read(&of(16_384 - rest + 1)), Ok(Err(Fault::TooLarge)));
    // One byte each, for which a table would hand out 32 and more.
    assert!(read(&[0x90; 511]).unwrap().is_ok());
    assert_eq!(read(&[0x90; 513]), Ok(Err(Fault::TooLarge)));
}

fn fields_of(frame: &Frame) -> &[u8] {
    assert_eq!((frame.kind, frame.flags & END_HEADERS), (HEADERS, END_HEADERS));
    &frame.payload
}

fn sent(client: &mut Client, request: &Request<'_>) -> Vec<u8> {
    let mut buffer = [0; 20_000];
    let mut out = picokube_http2::Output::new(&mut buffer);
    let key = client.connection.request(request, &mut out).unwrap();
    let frames = wire::frames(out.written());
    // Makes room for the next.
    client.connection.cancel(key);
    fields_of(frames.last().unwrap()).to_vec()
}

fn pairs(request: &Request<'_>) -> Vec<Pair> {
    let scheme = if request.scheme == Scheme::Https { "https" } else { "http" };
    let pseudo = [
        (":method", request.method),
        (":scheme", scheme),
        (":authority", request.authority),
        (":path", request.path),
    ];
    let fields = request.fields.iter().map(|field| (field.name, field.value));
    let bytes = |(name, value): (&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    pseudo.into_iter().chain(fields).map(bytes).collect()
}

/// The first request of appendix C.4, but for the order of its last two fields.
#[test]
fn a_request_is_written_as_in_the_examples() {
    let mut client = Client::of(&[]);
    let request = Request {
        method: "GET",
        scheme: Scheme::Http,
        authority: "www.example.com",
        path: "/",
        fields: &[],
        has_body: false,
    };
    assert_eq!(sent(&mut client, &request), hex("8286 418c f1e3 c2e5 f23a 6ba0 ab90 f4ff 84"));
    assert_eq!(sent(&mut client, &request), hex("8286 be84"));
}

#[test]
fn a_token_is_sent_once_and_as_it_is() {
    let mut client = Client::of(&[]);
    let contains = |block: &[u8]| block.windows(TOKEN.len()).any(|bytes| bytes == TOKEN.as_bytes());
    let path = "/apis/apps/v1/namespaces/default/deployments/web/status";
    let request = Request { method: "PATCH", ..get(path) };
    assert!(contains(&sent(&mut client, &request)));
    for _ in 0..3 {
        let block = sent(&mut client, &request);
        // With the frame's header, less than 60.
        assert!(!contains(&block) && block.len() < 51, "{} bytes", block.len());
    }
}

/// A token that changes takes the place of the old one in time, however often it changes, and is never
/// mixed up.
#[test]
fn tokens_change() {
    let mut client = Client::of(&[]);
    let mut reference = Reference::new(4096);
    for round in 0..20 {
        let token = format!("Bearer {}", format!("{round:04}").repeat(300));
        let fields = [Field::kept("user-agent", "x/1"), Field::secret("authorization", &token)];
        let request = Request { fields: &fields, ..get("/") };
        let sizes: Vec<usize> = (0..4)
            .map(|_| {
                let block = sent(&mut client, &request);
                let read = reference.decode(&block).unwrap();
                assert_eq!(
                    read.into_iter().map(|(pair, _)| pair).collect::<Vec<_>>(),
                    pairs(&request)
                );
                block.len()
            })
            .collect();
        assert!(sizes[0] > 1200 && sizes[3] < 10, "{sizes:?}");
    }
}

/// Nothing else pushes the token out, and a secret that cannot be remembered must not be by others.
#[test]
fn a_token_stays_in_a_table_that_is_too_small_for_the_rest() {
    let mut client = Client::of(&[(HEADER_TABLE_SIZE, 200)]);
    let mut reference = Reference::new(4096);
    reference.set_limit(200);
    for round in 0..20 {
        let agent = format!("agent/{round}");
        let fields = [Field::secret("authorization", TOKEN), Field::kept("user-agent", &agent)];
        let request = Request { fields: &fields, ..get("/") };
        let block = sent(&mut client, &request);
        let is_spelt_out = block.windows(TOKEN.len()).any(|bytes| bytes == TOKEN.as_bytes());
        assert_eq!(is_spelt_out, round == 0, "{round}");
        let read = reference.decode(&block).unwrap();
        assert_eq!(read.into_iter().map(|(pair, _)| pair).collect::<Vec<_>>(), pairs(&request));
    }
    let long = "x".repeat(200);
    let request = Request { fields: &[Field::secret("authorization", &long)], ..get("/") };
    let read = reference.decode(&sent(&mut client, &request)).unwrap();
    assert!(read.iter().any(|((_, value), is_never)| value == long.as_bytes() && *is_never));
}

/// A table that is full to the last byte holds what it holds.
#[test]
fn a_table_may_be_full() {
    let request = Request { fields: &[Field::kept("accept", "*/*")], ..get("/") };
    let size = (":authority".len() + request.authority.len() + 32) + ("accept".len() + 3 + 32);
    for (size, length) in [(size, 5), (size - 1, 9)] {
        let mut client = Client::of(&[(HEADER_TABLE_SIZE, u32::try_from(size).unwrap())]);
        let mut reference = Reference::new(4096);
        reference.set_limit(size);
        for _ in 0..2 {
            assert!(reference.decode(&sent(&mut client, &request)).is_some());
        }
        let block = sent(&mut client, &request);
        assert!(reference.decode(&block).is_some());
        assert_eq!(block.len() <= 5, length == 5, "{size}: {block:x?}");
    }
}

/// A request that turns out to be too large has put nothing into the table.
#[test]
fn what_was_not_sent_is_not_remembered() {
    let mut client = Client::of(&[]);
    let mut reference = Reference::new(4096);
    let large = "x".repeat(20_000);
    let agent = Field::kept("user-agent", "x/1");
    let request = Request { fields: &[agent, Field::passing("cookie", &large)], ..get("/") };
    let mut buffer = [0; 40_000];
    let mut out = picokube_http2::Output::new(&mut buffer);
    let refused = client.connection.request(&request, &mut out);
    assert_eq!((refused, out.is_empty()), (Err(picokube_http2::Refusal::TooLarge), true));
    let request = Request { fields: &[agent], ..get("/") };
    let read = reference.decode(&sent(&mut client, &request)).unwrap();
    assert_eq!(read.into_iter().map(|(pair, _)| pair).collect::<Vec<_>>(), pairs(&request));
}

#[test]
fn a_field_that_must_never_be_indexed_says_so() {
    let mut client = Client::of(&[]);
    let pin = Field { name: "x-pin", value: "1234", indexing: Indexing::Never };
    let mut reference = Reference::new(4096);
    for _ in 0..2 {
        let read =
            reference.decode(&sent(&mut client, &Request { fields: &[pin], ..get("/") })).unwrap();
        assert_eq!(read.last(), Some(&((b"x-pin".to_vec(), b"1234".to_vec()), true)));
    }
    assert_eq!(format!("{pin:?}"), "x-pin: … (Never)");
}

/// What a server or a request does.
#[derive(Clone, Debug)]
enum Act {
    Resize(Vec<u32>),
    Ask { method: usize, path: u8, fields: Vec<(usize, u8, usize)> },
}

fn act() -> impl Strategy<Value = Act> {
    let size = prop_oneof![Just(0), 0..300u32, 0..5000u32, any::<u32>()];
    let field = (0..6usize, 0..4u8, 0..4usize);
    prop_oneof![
        1 => prop::collection::vec(size, 1..4).prop_map(Act::Resize),
        4 => (0..4usize, 0..3u8, prop::collection::vec(field, 0..6))
            .prop_map(|(method, path, fields)| Act::Ask { method, path, fields }),
    ]
}

proptest! {
    /// Whatever a server does to its table, it reads what we wrote, and the newest entries are what we think.
    #[test]
    fn a_server_understands_every_request(acts in prop::collection::vec(act(), 1..40)) {
        const METHODS: [&str; 4] = ["GET", "POST", "PATCH", "DELETE"];
        const NAMES: [&str; 6] =
            ["authorization", "accept", "user-agent", "content-type", "x-other", "cookie"];
        const KINDS: [Indexing; 4] =
            [Indexing::Passing, Indexing::Kept, Indexing::KeptSecret, Indexing::Never];
        let mut client = Client::of(&[]);
        let mut reference = Reference::new(4096);
        for act in acts {
            match act {
                Act::Resize(sizes) => {
                    for size in sizes {
                        client.feed(&wire::settings(&[(HEADER_TABLE_SIZE, size)])).unwrap();
                        reference.set_limit(size as usize);
                    }
                }
                Act::Ask { method, path, fields } => {
                    let values: Vec<String> =
                        fields.iter().map(|(_, value, _)| "v".repeat(usize::from(*value) * 77)).collect();
                    let fields: Vec<Field<'_>> = fields.iter().zip(&values)
                        .map(|((name, _, kind), value)| {
                            Field { name: NAMES[*name], value, indexing: KINDS[*kind] }
                        })
                        .collect();
                    let path = format!("/{path}");
                    let request = Request { method: METHODS[method], fields: &fields, ..get(&path) };
                    let read = reference.decode(&sent(&mut client, &request));
                    let read: Vec<_> = read.expect("a block").into_iter().map(|(pair, _)| pair).collect();
                    prop_assert_eq!(read, pairs(&request));
                    prop_assert!(reference.table_size() <= reference.limit());
                }
            }
        }
    }

    /// Any bytes are read as the reference reads them, with a table of size 0.
    #[test]
    fn any_block_is_read_as_by_the_reference(block in block()) {
        let read = read(&block);
        let fields = Reference::new(0).decode(&block);
        prop_assert_eq!(read.is_ok(), fields.is_some());
        if let (Ok(Ok((head, true))), Some(fields)) = (read, fields) {
            let of = |wanted: &[u8]| {
                let mut pairs = fields.iter().rev().map(|(pair, _)| pair);
                pairs.find(|(name, _)| name == wanted).map(|(_, value)| value)
            };
            let status = head.status.to_string().into_bytes();
            prop_assert_eq!(of(b":status"), Some(&status));
            for (name, most, kept) in [
                (&b"date"[..], 29, head.date()),
                (b"retry-after", 29, head.retry_after()),
                (b"content-type", 64, head.content_type()),
            ] {
                let expected = of(name).filter(|value| (1..=most).contains(&value.len()));
                prop_assert_eq!(kept, expected.map(|value| &value[..]));
            }
        }
    }
}

/// Bytes that often are a header block.
fn block() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec![
        ":status",
        "date",
        "retry-after",
        "content-type",
        "x",
        "content-length",
    ]);
    let value = prop_oneof!["[0-9]{0,4}", "[ -~]{0,80}"];
    let field = prop_oneof![
        4 => (name, value).prop_map(|(name, value)| literal(name.as_bytes(), value.as_bytes())),
        2 => prop::sample::select(vec![vec![0x88], vec![0x89], vec![0x20], vec![0xff, 0x00], vec![0xbe]]),
        1 => prop::collection::vec(any::<u8>(), 0..8),
        1 => (0x40..0x7eu8, prop::collection::vec(b'0'..=b'9', 0..60)).prop_map(|(first, value)| {
            [&[first, value.len() as u8][..], &value].concat()
        }),
    ];
    prop::collection::vec(field, 0..8).prop_map(|fields| fields.concat())
}
