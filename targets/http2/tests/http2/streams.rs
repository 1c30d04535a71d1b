//! What a client does with streams, and what it is told about them.

use picokube_http2::{
    Config, Connection, Error, ErrorCode, Field, Gone, Output, Refusal, Request, Reset, Sent,
};

use crate::client::{Client, STREAMS, Told, get};
use crate::wire::{
    ACK, END_HEADERS, END_STREAM, Frame, HEADERS, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE, OK, PADDED, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    WITH_PRIORITY, data, frame, frames, goaway, head, last_data, ping, rst_stream, settings,
    window_update,
};

/// RFC 9113 §3.4: the preface and our settings, before anything else.
#[test]
fn a_client_introduces_itself() {
    let mut client = Client::silent();
    let mut buffer = [0; 256];
    let mut out = Output::new(&mut buffer);
    client.connection.write(&mut out);
    assert!(out.written().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00"));
    let said = frames(out.written());
    let [Frame { kind: SETTINGS, flags: 0, stream: 0, payload }] = &said[..] else {
        panic!("{said:?}");
    };
    // No table, no push, a window of 1000, heads of 16 KiB.
    let settings =
        [[0, 1, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0], [0, 4, 0, 0, 3, 232], [0, 6, 0, 0, 64, 0]];
    assert_eq!(payload, &settings.concat());
    assert!(!client.connection.owes());
}

#[test]
fn what_has_no_room_is_written_later() {
    let mut client = Client::silent();
    for room in [0, 10, 56] {
        let mut buffer = vec![0; room];
        let mut out = Output::new(&mut buffer);
        client.connection.write(&mut out);
        assert!(out.is_empty() && client.connection.owes(), "{room}");
    }
    client.feed(&settings(&[])).unwrap();
    client.feed(&[ping(b"12345678"), ping(b"abcdefgh")].concat()).unwrap();
    let mut all = Vec::new();
    while client.connection.owes() {
        let mut buffer = [0; 64];
        let mut out = Output::new(&mut buffer);
        client.connection.write(&mut out);
        all.extend_from_slice(out.written());
    }
    let said = frames(&all);
    let kinds: Vec<(u8, u8)> = said.iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(kinds, [(SETTINGS, 0), (SETTINGS, ACK), (PING, ACK), (PING, ACK)]);
    assert_eq!((&said[2].payload[..], &said[3].payload[..]), (&b"12345678"[..], &b"abcdefgh"[..]));
}

#[test]
fn a_response_is_told_in_order() {
    let (mut client, id) = Client::asking();
    let bytes = [head(id, OK), data(id, b"hello "), last_data(id, b"world")].concat();
    let told = [Told::Head(id, 200), Told::Data(id, b"hello world".to_vec()), Told::End(id)];
    assert_eq!(client.feed(&bytes), Ok(told.to_vec()));
    assert_eq!(client.connection.open_streams(), 0);
    assert_eq!(client.written(), []);
}

#[test]
fn a_response_may_be_a_head_alone() {
    let (mut client, id) = Client::asking();
    let bytes = frame(HEADERS, END_HEADERS | END_STREAM, id, &[0x89]);
    assert_eq!(client.feed(&bytes), Ok(vec![Told::Head(id, 204), Told::End(id)]));
}

/// RFC 9113 §8.1: informational heads come first, trailers last.
#[test]
fn informational_heads_are_skipped_and_trailers_accepted() {
    let (mut client, id) = Client::asking();
    let early = crate::wire::literal(b":status", b"103");
    let trailers = crate::wire::literal(b"x-checksum", b"1");
    let bytes = [
        head(id, &early),
        head(id, &early),
        head(id, OK),
        data(id, b"x"),
        frame(HEADERS, END_HEADERS | END_STREAM, id, &trailers),
    ];
    let told = [Told::Head(id, 200), Told::Data(id, b"x".to_vec()), Told::End(id)];
    assert_eq!(client.feed(&bytes.concat()), Ok(told.to_vec()));
}

/// RFC 9113 §6.1 and §6.2: padding is no data, but it counts, and is given back at once.
#[test]
fn padding_and_priority_are_skipped() {
    let (mut client, id) = Client::asking();
    let flags = END_HEADERS | PADDED | WITH_PRIORITY;
    let padded_head = frame(HEADERS, flags, id, &[3, 0, 0, 0, 0, 9, 0x88, 1, 2, 3]);
    let padded = [&[200][..], b"abc", &[0; 200]].concat();
    let mut bytes = padded_head;
    for _ in 0..3 {
        bytes.extend(frame(0, PADDED, id, &padded));
    }
    client.is_eager = false;
    let told = client.feed(&bytes).unwrap();
    assert_eq!(told, [Told::Head(id, 200), Told::Data(id, b"abcabcabc".to_vec())]);
    let said = client.written();
    assert_eq!((said.len(), said[0].kind, said[0].number()), (1, WINDOW_UPDATE, 3 * 201));
}

#[test]
fn streams_end_by_themselves() {
    let mut client = Client::of(&[]);
    let keys: Vec<_> = (0..STREAMS).map(|_| client.get()).collect();
    let ids: Vec<u32> = keys.iter().map(|key| key.id()).collect();
    assert_eq!(ids, [1, 3, 5, 7]);
    assert_eq!(client.try_request(&get("/")), Err(Refusal::Busy));
    assert_eq!(client.connection.check_ready(), Err(Refusal::Busy));
    let bytes =
        [head(5, OK), head(1, OK), data(5, b"x"), last_data(1, b"y"), data(5, b"z")].concat();
    let told = client.feed(&bytes).unwrap();
    assert_eq!(told[4], Told::End(1));
    let next = client.get();
    assert_eq!((next.id(), next.slot()), (9, 0));
    // An old key means nothing.
    client.connection.cancel(keys[0]);
    client.connection.release(keys[0], 100);
    assert_eq!(client.connection.open_streams(), STREAMS);
}

#[test]
fn a_stream_that_is_given_up_is_reset_and_leaves_the_others_alone() {
    let mut client = Client::of(&[]);
    let (first, second) = (client.get(), client.post());
    client.feed(&[head(1, OK), head(3, OK), data(1, b"x")].concat()).unwrap();
    client.connection.cancel(first);
    client.connection.cancel(first);
    let said = client.written();
    assert_eq!((said.len(), said[0].kind, said[0].stream, said[0].number()), (1, RST_STREAM, 1, 8));
    // What was on its way.
    let bytes =
        [data(1, &[0; 900]), data(3, b"y"), last_data(1, b"z"), rst_stream(1, ErrorCode::CANCEL)];
    assert_eq!(client.feed(&bytes.concat()), Ok(vec![Told::Data(3, b"y".to_vec())]));
    assert_eq!(client.send(second, b"body", true).0, Sent { bytes: 4, is_ended: true });
}

/// In the midst of a frame, which may have been read in part.
#[test]
fn a_stream_is_given_up_in_the_midst_of_its_data() {
    let mut client = Client::of(&[]);
    let (first, second) = (client.get(), client.get());
    let bytes = [head(1, OK), last_data(1, b"hello world"), head(3, OK)].concat();
    let (begin, rest) = bytes.split_at(10 + 9 + 5);
    let told = client.feed(begin).unwrap();
    assert_eq!(told, [Told::Head(1, 200), Told::Data(1, b"hello".to_vec())]);
    client.connection.cancel(first);
    // Its place is taken before the rest comes.
    client.written();
    let third = client.get();
    assert_eq!((third.slot(), third.id()), (first.slot(), 5));
    assert_eq!(client.feed(rest), Ok(vec![Told::Head(second.id(), 200)]));
}

/// RFC 9113 §6.5.3: settings are acknowledged before what they allow is used.
#[test]
fn settings_are_acknowledged_before_the_next_request() {
    let mut client = Client::of(&[(crate::wire::HEADER_TABLE_SIZE, 0)]);
    client.get();
    client.feed(&settings(&[(crate::wire::HEADER_TABLE_SIZE, 4096)])).unwrap();
    let mut buffer = [0; 600];
    let mut out = Output::new(&mut buffer);
    client.connection.request(&get("/"), &mut out).unwrap();
    let said = frames(out.written());
    assert_eq!((said[0].kind, said[0].flags, said[1].kind), (SETTINGS, ACK, HEADERS));
    // 4096 again.
    assert_eq!(said[1].payload[..3], [0x3f, 0xe1, 0x1f]);
}

/// A reset takes no place of another stream, and is sent before a stream that would need its place.
#[test]
fn resets_make_room() {
    let mut client = Client::of(&[(MAX_CONCURRENT_STREAMS, 1)]);
    for round in 0..10 {
        let key = client.get();
        assert_eq!(client.try_request(&get("/")), Err(Refusal::Busy));
        client.connection.cancel(key);
        assert_eq!(client.connection.check_ready(), Ok(()));
        let mut buffer = [0; 512];
        let mut out = Output::new(&mut buffer);
        let next = client.connection.request(&get("/"), &mut out).unwrap();
        let kinds: Vec<u8> = frames(out.written()).iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [RST_STREAM, HEADERS], "{round}");
        client.connection.cancel(next);
    }
}

/// RFC 9113 §8.1: a server may answer before it has all of the request. The answer counts, and the rest of
/// the request is not sent.
#[test]
fn an_early_answer_ends_the_request() {
    let mut client = Client::of(&[]);
    let key = client.post();
    client.send(key, b"begin", false);
    let bytes = [head(1, &crate::wire::literal(b":status", b"413")), last_data(1, b"no")].concat();
    let told = [Told::Head(1, 413), Told::Data(1, b"no".to_vec()), Told::End(1)];
    assert_eq!(client.feed(&bytes), Ok(told.to_vec()));
    let mut out = [0; 100];
    assert_eq!(client.connection.send(key, b"x", true, &mut Output::new(&mut out)), Err(Gone));
    let said = client.written();
    assert_eq!((said.len(), said[0].kind, said[0].number()), (1, RST_STREAM, 8));
}

/// RFC 9113 §8.7 and §6.8: what the server did not look at may be sent again, whatever it is.
#[test]
fn what_was_not_processed_is_told() {
    let mut client = Client::of(&[]);
    for _ in 0..3 {
        client.post();
    }
    let told = client.feed(&rst_stream(3, ErrorCode::REFUSED_STREAM)).unwrap();
    assert_eq!(told, [Told::Reset(3, Reset::Unprocessed)]);
    assert!(Reset::Unprocessed.is_unprocessed());
    let told = client.feed(&goaway(1, ErrorCode::NO_ERROR)).unwrap();
    assert_eq!(told, [Told::GoAway(ErrorCode::NO_ERROR), Told::Reset(5, Reset::Unprocessed)]);
    assert_eq!(client.try_request(&get("/")), Err(Refusal::Leaving));
    assert!(client.connection.is_leaving());
    // The first goes on.
    let told = client.feed(&[head(1, OK), last_data(1, b"x")].concat()).unwrap();
    assert_eq!(told.last(), Some(&Told::End(1)));
    // However often it is said.
    assert_eq!(client.connection.end_of_input(), Ok(()));
    assert_eq!(client.connection.end_of_input(), Ok(()));
    assert_eq!(client.try_request(&get("/")), Err(Refusal::Closed));
}

#[test]
fn other_resets_are_ambiguous() {
    for code in [ErrorCode::INTERNAL_ERROR, ErrorCode::NO_ERROR, ErrorCode(4711)] {
        let (mut client, id) = Client::asking();
        let told = client.feed(&rst_stream(id, code)).unwrap();
        assert_eq!(told, [Told::Reset(id, Reset::ByServer(code))]);
        assert_eq!(client.written(), []);
    }
}

/// RFC 9113 §6.8: a server first says that it will go, then from where on it did not look.
#[test]
fn a_server_goes_in_two_steps() {
    let mut client = Client::of(&[]);
    let (_, _) = (client.get(), client.get());
    let told = client.feed(&goaway(0x7fff_ffff, ErrorCode::NO_ERROR)).unwrap();
    assert_eq!(told, [Told::GoAway(ErrorCode::NO_ERROR)]);
    assert_eq!(client.connection.open_streams(), 2);
    let told = client.feed(&goaway(1, ErrorCode::NO_ERROR)).unwrap();
    assert_eq!(told, [Told::GoAway(ErrorCode::NO_ERROR), Told::Reset(3, Reset::Unprocessed)]);
    assert_eq!(client.connection.end_of_input(), Err(Error::Truncated));
}

#[test]
fn a_body_is_sent_as_far_as_windows_and_frames_allow() {
    let mut client = Client::of(&[(INITIAL_WINDOW_SIZE, 30_000)]);
    let key = client.post();
    let body = vec![7; 40_000];
    // §4.2: no frame is larger than the server takes.
    let (sent, said) = client.send(key, &body, true);
    assert_eq!((sent, said[0].payload.len()), (Sent { bytes: 16_384, is_ended: false }, 16_384));
    assert_eq!(client.connection.sendable(key), Some(30_000 - 16_384));
    let (sent, _) = client.send(key, &body[16_384..], true);
    assert_eq!(sent, Sent { bytes: 13_616, is_ended: false });
    assert_eq!(client.connection.sendable(key), Some(0));
    assert_eq!(client.send(key, &body[30_000..], true).0, Sent { bytes: 0, is_ended: false });
    // §6.9.2: a smaller window makes it less than nothing, and it has to grow back first.
    client.feed(&settings(&[(INITIAL_WINDOW_SIZE, 10_000), (MAX_FRAME_SIZE, 20_000)])).unwrap();
    client.feed(&window_update(key.id(), 20_000)).unwrap();
    assert_eq!(client.connection.sendable(key), Some(0));
    client.feed(&window_update(key.id(), 20_000)).unwrap();
    assert_eq!(client.connection.sendable(key), Some(20_000));
    let (sent, said) = client.send(key, &body[30_000..], true);
    assert_eq!(sent, Sent { bytes: 10_000, is_ended: true });
    // The settings were acknowledged before what they allow was used.
    assert_eq!((said[0].kind, said[1].flags), (SETTINGS, END_STREAM));
    let mut out = [0; 100];
    assert_eq!(client.connection.send(key, b"", true, &mut Output::new(&mut out)), Err(Gone));
}

/// RFC 9113 §6.9.1: the connection's window is for all streams.
#[test]
fn streams_share_the_connections_window() {
    let mut client = Client::of(&[(INITIAL_WINDOW_SIZE, 60_000), (MAX_FRAME_SIZE, 100_000)]);
    let (first, second) = (client.post(), client.post());
    assert_eq!(client.send(first, &[0; 60_000], false).0.bytes, 60_000);
    assert_eq!(client.send(second, &[0; 60_000], false).0.bytes, 5_535);
    assert_eq!(client.send(second, b"", true).0, Sent { bytes: 0, is_ended: true });
    client.feed(&window_update(0, 1000)).unwrap();
    client.feed(&window_update(first.id(), 500)).unwrap();
    assert_eq!(client.connection.sendable(first), Some(500));
}

#[test]
fn a_small_rest_of_the_output_is_not_worth_a_frame() {
    let mut client = Client::of(&[]);
    let key = client.post();
    let mut buffer = [0; 40];
    let mut out = Output::new(&mut buffer);
    assert_eq!(
        client.connection.send(key, &[1; 10], false, &mut out),
        Ok(Sent { bytes: 10, is_ended: false })
    );
    assert_eq!(
        client.connection.send(key, &[1; 30], true, &mut out),
        Ok(Sent { bytes: 0, is_ended: false })
    );
    assert_eq!(
        client.connection.send(key, &[1; 5], true, &mut out),
        Ok(Sent { bytes: 5, is_ended: true })
    );
    assert_eq!(frames(out.written()).len(), 2);
}

#[test]
fn requests_that_cannot_be_sent_are_refused_before_anything_is_written() {
    let mut connection = Connection::<1>::new();
    let mut buffer = [0; 600];
    assert_eq!(connection.request(&get("/"), &mut Output::new(&mut buffer)), Err(Refusal::Closed));
    connection.open(Config::SMALL);
    assert_eq!(
        connection.request(&get("/"), &mut Output::new(&mut buffer)),
        Err(Refusal::NotReady)
    );

    let mut client = Client::of(&[(MAX_HEADER_LIST_SIZE, 1000)]);
    let long = "/x".repeat(400);
    assert_eq!(client.try_request(&get(&long)), Err(Refusal::TooLarge));
    let malformed = [
        Request { method: "", ..get("/") },
        Request { method: "get", ..get("/") },
        Request { path: "", ..get("/") },
        Request { path: "x", ..get("/") },
        Request { path: "/a b", ..get("/") },
        Request { path: "/\r\n", ..get("/") },
        Request { authority: "a b", ..get("/") },
        Request { fields: &[Field::kept("Accept", "x")], ..get("/") },
        Request { fields: &[Field::kept("", "x")], ..get("/") },
        Request { fields: &[Field::kept(":path", "x")], ..get("/") },
        Request { fields: &[Field::kept("a", "x\r\nb: y")], ..get("/") },
        Request { fields: &[Field::kept("a", " x")], ..get("/") },
        Request { fields: &[Field::kept("connection", "close")], ..get("/") },
        Request { fields: &[Field::kept("host", "x")], ..get("/") },
    ];
    for request in malformed {
        assert_eq!(client.try_request(&request), Err(Refusal::Malformed), "{request:?}");
    }
    // Neither numbers nor the table have changed.
    let mut small = [0; 60];
    let mut out = Output::new(&mut small);
    assert_eq!(client.connection.request(&get("/"), &mut out), Err(Refusal::TooLarge));
    assert!(out.is_empty());
    client.feed(&ping(b"12345678")).unwrap();
    let mut room = vec![0; 10 + length_of_first_request()];
    let mut out = Output::new(&mut room);
    client.connection.write(&mut out);
    assert_eq!(client.connection.request(&get("/"), &mut out), Err(Refusal::NoRoom));
    assert_eq!(frames(out.written()).len(), 1);
    out.clear();
    assert_eq!(client.connection.request(&get("/"), &mut out).map(|key| key.id()), Ok(1));
}

fn length_of_first_request() -> usize {
    let mut buffer = [0; 600];
    let mut out = Output::new(&mut buffer);
    Client::of(&[]).connection.request(&get("/"), &mut out).unwrap();
    out.written().len()
}

/// RFC 9113 §5.1.2.
#[test]
fn no_more_streams_are_opened_than_the_server_allows() {
    let mut client = Client::of(&[(MAX_CONCURRENT_STREAMS, 2)]);
    let first = client.get();
    client.get();
    assert_eq!(client.try_request(&get("/")), Err(Refusal::Busy));
    client.feed(&settings(&[(MAX_CONCURRENT_STREAMS, 0)])).unwrap();
    client.connection.cancel(first);
    client.written();
    assert_eq!(client.try_request(&get("/")), Err(Refusal::Busy));
    client.feed(&settings(&[(MAX_CONCURRENT_STREAMS, 2)])).unwrap();
    client.get();
}

/// RFC 9110 §6.4.1 and RFC 9113 §8.1.1.
#[test]
fn bodies_are_as_long_as_their_heads_say() {
    let length = |length: &[u8]| [OK, &crate::wire::literal(b"content-length", length)].concat();
    let cases = [
        ("GET", length(b"3"), &b"abc"[..], true),
        ("GET", length(b"3"), b"ab", false),
        ("GET", length(b"3"), b"abcd", false),
        ("GET", length(b"0"), b"", true),
        ("HEAD", length(b"3"), b"", true),
        ("HEAD", OK.to_vec(), b"a", false),
        ("GET", vec![0x89], b"a", false),
        ("GET", vec![0x8b], b"", true),
    ];
    for (method, block, body, is_right) in cases {
        let mut client = Client::of(&[]);
        let id = client.try_request(&Request { method, ..get("/") }).unwrap().id();
        let told = client.feed(&[head(id, &block), last_data(id, body)].concat()).unwrap();
        let end = if is_right { Told::End(id) } else { Told::Reset(id, Reset::Malformed) };
        assert_eq!(told.last(), Some(&end), "{method} {body:?}");
        // Both sides have ended it already.
        assert_eq!(client.written(), []);
    }
}

#[test]
fn a_server_is_asked_for_a_sign_of_life() {
    let mut client = Client::of(&[]);
    client.connection.ping();
    client.connection.ping();
    let said = client.written();
    assert_eq!((said.len(), said[0].kind, said[0].flags), (1, PING, 0));
    client.connection.ping();
    assert_eq!(client.written(), []);
    assert_eq!(client.feed(&frame(PING, ACK, 0, b"another!")), Ok(vec![]));
    assert_eq!(client.feed(&frame(PING, ACK, 0, &said[0].payload)), Ok(vec![Told::Pong]));
    assert_eq!(client.feed(&frame(PING, ACK, 0, &said[0].payload)), Ok(vec![]));
}

#[test]
fn a_client_leaves() {
    let mut client = Client::of(&[]);
    let key = client.get();
    client.connection.leave();
    client.connection.leave();
    let said = client.written();
    assert_eq!(
        (said.len(), said[0].kind, &said[0].payload[..]),
        (1, crate::wire::GOAWAY, &[0; 8][..])
    );
    assert_eq!(client.try_request(&get("/")), Err(Refusal::Leaving));
    let told = client.feed(&[head(key.id(), OK), last_data(key.id(), b"x")].concat()).unwrap();
    assert_eq!(told.len(), 3);
}

/// A stream of its own gets more than the others.
#[test]
fn a_window_is_widened() {
    let mut client = Client::of(&[]);
    client.is_eager = false;
    let key = client.get();
    client.connection.widen(key, 3000);
    let said = client.written();
    assert_eq!((said[0].kind, said[0].stream, said[0].number()), (WINDOW_UPDATE, key.id(), 3000));
    assert!(client.feed(&[head(key.id(), OK), data(key.id(), &[0; 4000])].concat()).is_ok());
    assert_eq!(client.feed(&data(key.id(), b"x")), Err(Error::FlowControl));
}

/// A connection is used again and again, for one transport after the other.
#[test]
fn a_connection_begins_anew() {
    let (mut client, id) = Client::asking();
    let stale = client.get();
    client.feed(&head(id, OK)).unwrap();
    client.feed(b"garbage that is no frame").unwrap_err();
    assert!(client.connection.error().is_some());
    client.connection.open(Config::SMALL);
    assert_eq!((client.connection.error(), client.connection.open_streams()), (None, 0));
    assert_eq!(client.connection.sendable(stale), None);
    assert_eq!(client.feed(&settings(&[])), Ok(vec![Told::Ready]));
    assert_eq!(client.get().id(), 1);
}
