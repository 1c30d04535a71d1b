//! The rules of RFC 9113, each broken once: which of them end the connection, and which only a stream.

use picokube_http2::{Breach, Error, ErrorCode, Flood, Refusal, Reset};

use crate::client::{Client, Told, get};
use crate::wire::*;

const STREAM: Error = Error::Protocol(Breach::Stream);
const BLOCK: Error = Error::Protocol(Breach::HeaderBlock);
const SETTING: Error = Error::Protocol(Breach::Setting);
const PADDING: Error = Error::Protocol(Breach::Padding);

/// After these bytes the connection is over: the caller is told once and for all, and the server why.
fn refused(bytes: &[u8], error: Error) {
    let (mut client, id) = Client::asking();
    client.post();
    client.feed(&head(id, OK)).unwrap();
    client.written();
    assert_eq!(client.feed(bytes), Err(error), "{bytes:?}");
    assert_eq!(client.feed(&ping(b"12345678")), Err(error));
    assert_eq!(client.connection.error(), Some(error));
    assert_eq!(client.try_request(&get("/")), Err(Refusal::Closed));
    let said = client.written();
    assert_eq!((said.len(), said[0].kind), (1, GOAWAY), "{bytes:?}");
    assert_eq!(said[0].payload[4..], error.code().0.to_be_bytes());
    assert_eq!(client.connection.end_of_input(), Err(error));
    assert!(error.to_string().starts_with("the server "), "{error}");
}

/// After these bytes, stream 1 is over, and the server is told why; stream 3 goes on.
fn reset(bytes: &[u8], reason: Reset, code: ErrorCode) {
    let (mut client, id) = Client::asking();
    client.get();
    let told = client.feed(bytes).unwrap();
    assert_eq!(told.last(), Some(&Told::Reset(id, reason)), "{bytes:?}");
    let said = client.written();
    assert_eq!((said.len(), said[0].kind, said[0].stream), (1, RST_STREAM, id), "{bytes:?}");
    assert_eq!(said[0].number(), code.0);
    let told = client.feed(&[head(3, OK), last_data(3, b"x")].concat()).unwrap();
    assert_eq!(told.last(), Some(&Told::End(3)));
}

/// §3.4.
#[test]
fn the_first_frame_is_settings() {
    let first = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        frame(SETTINGS, ACK, 0, &[]),
        ping(b"12345678"),
        goaway(0, ErrorCode::NO_ERROR),
        window_update(0, 1),
    ];
    for bytes in first {
        let mut client = Client::silent();
        assert_eq!(client.feed(&bytes), Err(Error::NotHttp2), "{bytes:?}");
        // The one who has not heard our preface would not understand anything else.
        assert_eq!(client.written(), []);
    }
    assert!(Error::NotHttp2.to_string().contains("ALPN"));
}

/// §4.2.
#[test]
fn frames_have_16_kib_at_most() {
    refused(&[0, 0x40, 1, DATA, 0, 0, 0, 0, 1], Error::FrameSize);
    refused(&[0xff, 0xff, 0xff, 0xbe, 0, 0, 0, 0, 0], Error::FrameSize);
    let (mut client, id) = Client::asking();
    assert_eq!(client.feed(&frame(0xbe, 0xff, id, &[0; 16_384])), Ok(vec![]));
}

/// §6: sizes of frames.
#[test]
fn sizes_of_frames_are_checked() {
    for (kind, flags, stream, length) in [
        (PRIORITY, 0, 1, 4),
        (RST_STREAM, 0, 1, 3),
        (RST_STREAM, 0, 1, 5),
        (SETTINGS, 0, 0, 5),
        (SETTINGS, ACK, 0, 6),
        (PING, 0, 0, 7),
        (PING, ACK, 0, 9),
        (GOAWAY, 0, 0, 7),
        (WINDOW_UPDATE, 0, 0, 3),
        (WINDOW_UPDATE, 0, 1, 5),
        (DATA, PADDED, 1, 0),
        (HEADERS, PADDED | END_HEADERS, 3, 0),
        (HEADERS, WITH_PRIORITY | END_HEADERS, 3, 4),
        (HEADERS, WITH_PRIORITY | PADDED | END_HEADERS, 3, 5),
    ] {
        refused(&frame(kind, flags, stream, &vec![0; length]), Error::FrameSize);
    }
}

/// §5.1 and §6: frames are about the connection, or about a stream that we have opened.
#[test]
fn frames_are_about_what_they_can_be_about() {
    for (kind, length) in [(SETTINGS, 0), (PING, 8), (GOAWAY, 8)] {
        refused(&frame(kind, 0, 1, &vec![0; length]), STREAM);
    }
    for (kind, length) in [(DATA, 1), (HEADERS, 1), (RST_STREAM, 4), (PRIORITY, 5)] {
        refused(&frame(kind, 0, 0, &vec![0; length]), STREAM);
    }
    for stream in [2, 5, 0x7fff_ffff] {
        for (kind, length) in [(DATA, 1), (HEADERS, 1), (RST_STREAM, 4), (WINDOW_UPDATE, 4)] {
            refused(&frame(kind, 0, stream, &vec![1; length]), STREAM);
        }
    }
}

/// §6.1 and §6.2.
#[test]
fn padding_fits() {
    refused(&frame(DATA, PADDED, 1, &[1]), PADDING);
    refused(&frame(DATA, PADDED, 1, &[3, 0, 0]), PADDING);
    refused(&frame(HEADERS, PADDED | END_HEADERS, 3, &[2, 0x88]), PADDING);
    let all = PADDED | WITH_PRIORITY | END_HEADERS;
    refused(&frame(HEADERS, all, 3, &[1, 0, 0, 0, 0, 0]), PADDING);
    let (mut client, id) = Client::asking();
    client.feed(&head(id, OK)).unwrap();
    assert_eq!(
        client.feed(&frame(DATA, PADDED | END_STREAM, id, &[2, 0, 0])),
        Ok(vec![Told::End(id)])
    );
}

/// §6.2 and §6.10: nothing comes between the frames of a header block.
#[test]
fn header_blocks_are_not_interrupted() {
    let begin = frame(HEADERS, 0, 3, &[]);
    let others = [
        ping(b"12345678"),
        settings(&[]),
        data(1, b"x"),
        head(1, OK),
        window_update(0, 1),
        rst_stream(3, ErrorCode::CANCEL),
        frame(0xbe, 0, 3, b"unknown"),
        frame(PRIORITY, 0, 3, &[0; 5]),
        frame(CONTINUATION, END_HEADERS, 1, OK),
        goaway(3, ErrorCode::NO_ERROR),
    ];
    for other in others {
        refused(&[&begin[..], &other].concat(), BLOCK);
    }
    refused(&frame(CONTINUATION, END_HEADERS, 3, OK), BLOCK);
    let whole = [frame(HEADERS, END_HEADERS, 1, &[]), frame(CONTINUATION, END_HEADERS, 1, &[])];
    refused(&whole.concat(), BLOCK);
}

#[test]
fn header_blocks_go_on_in_further_frames() {
    let (mut client, id) = Client::asking();
    let block = [OK, &literal(b"date", b"Mon, 21 Oct 2013 20:13:21 GMT")].concat();
    let mut bytes = frame(HEADERS, END_STREAM, id, &[]);
    for byte in &block {
        bytes.extend(frame(CONTINUATION, 0, id, &[*byte]));
    }
    bytes.extend(frame(CONTINUATION, END_HEADERS, id, &[]));
    assert_eq!(client.feed(&bytes), Ok(vec![Told::Head(id, 200), Told::End(id)]));
}

/// §4.3.
#[test]
fn headers_that_cannot_be_decoded_end_the_connection() {
    for block in [&[0xbe][..], &[0x3f, 0x01], &[0x00, 0x81, 0xff], &[0x48, 0x03, b'2'], &[0x80]] {
        refused(&head(3, block), Error::Compression);
    }
}

/// §6.4, §6.9: zero is no increment.
#[test]
fn windows_grow_by_something() {
    refused(&window_update(0, 0), Error::Protocol(Breach::Increment));
    refused(&window_update(0, 0x8000_0000), Error::Protocol(Breach::Increment));
    reset(&window_update(1, 0), Reset::FlowControl, ErrorCode::PROTOCOL_ERROR);
}

/// §6.9.1: a window has 2^31 - 1 bytes at most.
#[test]
fn windows_do_not_overflow() {
    refused(&window_update(0, 0x7fff_ffff), Error::FlowControl);
    refused(&[window_update(0, 0x7fff_0000), window_update(0, 1)].concat(), Error::FlowControl);
    reset(&window_update(1, 0x7fff_ffff), Reset::FlowControl, ErrorCode::FLOW_CONTROL_ERROR);
    let too_large = settings(&[(INITIAL_WINDOW_SIZE, 0x8000_0000)]);
    refused(&too_large, Error::FlowControl);
    // Also while there is no stream whose window it could be.
    assert_eq!(Client::of(&[]).feed(&too_large), Err(Error::FlowControl));
    let grown = [window_update(3, 1), settings(&[(INITIAL_WINDOW_SIZE, 0x7fff_ffff)])].concat();
    refused(&grown, Error::FlowControl);
}

/// §6.9: a server keeps to our windows. Both count all of a frame, padding included.
#[test]
fn a_server_keeps_to_our_windows() {
    refused(&data(1, &[0; 1001]), Error::FlowControl);
    refused(&frame(DATA, PADDED, 1, &[&[255][..], &[0; 1000]].concat()), Error::FlowControl);
    // That of the connection, by data of streams that are over.
    let (mut client, id) = Client::asking();
    client.feed(&rst_stream(id, ErrorCode::CANCEL)).unwrap();
    for _ in 0..3 {
        client.feed(&data(id, &[0; 16_384])).unwrap();
    }
    assert_eq!(client.feed(&data(id, &[0; 16_384])), Err(Error::FlowControl));
    // Given back whatever the stream is.
    let (mut client, id) = Client::asking();
    client.feed(&rst_stream(id, ErrorCode::CANCEL)).unwrap();
    for _ in 0..100 {
        client.feed(&data(id, &[0; 16_384])).unwrap();
        client.written();
    }
}

/// §6.5.2.
#[test]
fn settings_have_bounds() {
    refused(&settings(&[(ENABLE_PUSH, 1)]), SETTING);
    refused(&settings(&[(ENABLE_PUSH, 2)]), SETTING);
    refused(&settings(&[(MAX_FRAME_SIZE, 16_383)]), SETTING);
    refused(&settings(&[(MAX_FRAME_SIZE, 16_777_216)]), SETTING);
    let (mut client, _) = Client::asking();
    let fine = [(ENABLE_PUSH, 0), (MAX_FRAME_SIZE, 16_777_215), (0xbabe, 0xffff_ffff), (0, 0)];
    assert_eq!(client.feed(&settings(&fine)), Ok(vec![]));
    let said = client.written();
    assert_eq!((said.len(), said[0].kind, said[0].flags), (1, SETTINGS, ACK));
}

/// §6.6: we have forbidden it.
#[test]
fn a_push_ends_the_connection() {
    refused(
        &frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
        Error::Protocol(Breach::Push),
    );
}

/// §6.8.
#[test]
fn a_goaway_is_not_taken_back() {
    let raised = [goaway(1, ErrorCode::NO_ERROR), goaway(3, ErrorCode::NO_ERROR)].concat();
    refused(&raised, Error::Protocol(Breach::GoAway));
}

/// §8.1: what is wrong with a response ends its stream.
#[test]
fn malformed_responses_end_their_streams() {
    let malformed = |bytes: &[u8]| reset(bytes, Reset::Malformed, ErrorCode::PROTOCOL_ERROR);
    malformed(&data(1, b"before the head"));
    malformed(&head(1, &literal(b"date", b"no status")));
    malformed(&head(1, &literal(b":status", b"99")));
    malformed(&head(1, &literal(b":status", b"101")));
    malformed(&head(1, &literal(b":status", b"600")));
    malformed(&[head(1, OK), head(1, OK)].concat());
    malformed(&[head(1, OK), head(1, &literal(b"x", b"trailers that do not end"))].concat());
    malformed(&[head(1, OK), head(1, &[0x88])].concat());
    malformed(&head(1, &[OK, &literal(b"Upper", b"x")].concat()));
    let length = [OK, &literal(b"content-length", b"3")].concat();
    malformed(&[head(1, &length), data(1, b"1234")].concat());
    let large = [OK, &literal(b"x", &[b'x'; 16_300])].concat();
    let bytes = [
        frame(HEADERS, 0, 1, &large),
        frame(CONTINUATION, END_HEADERS, 1, &literal(b"y", &[b'y'; 99])),
    ];
    reset(&bytes.concat(), Reset::HeadTooLarge, ErrorCode::CANCEL);
}

/// §5.1: when both sides have ended a stream, nothing more is said about it.
#[test]
fn a_malformed_end_is_not_answered() {
    for bytes in [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &literal(b":status", b"100")),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &literal(b"x", b"y")),
        last_data(1, b"before the head"),
        last_data(1, b""),
    ] {
        let (mut client, id) = Client::asking();
        assert_eq!(client.feed(&bytes), Ok(vec![Told::Reset(id, Reset::Malformed)]));
        assert_eq!(client.written(), []);
        let mut client = Client::of(&[]);
        let key = client.post();
        assert_eq!(client.feed(&bytes), Ok(vec![Told::Reset(key.id(), Reset::Malformed)]));
        assert_eq!(client.written()[0].kind, RST_STREAM);
    }
}

/// §5.1 and §5.4.2: what comes for a stream that is over is ignored.
#[test]
fn streams_that_are_over_are_over() {
    let late = [
        data(1, b"x"),
        last_data(1, b"x"),
        head(1, OK),
        rst_stream(1, ErrorCode::CANCEL),
        window_update(1, 1),
        window_update(1, 0),
        frame(PRIORITY, 0, 1, &[0; 5]),
    ];
    for bytes in late {
        let (mut client, id) = Client::asking();
        client.feed(&[head(id, OK), last_data(id, b"x")].concat()).unwrap();
        assert_eq!(client.feed(&bytes), Ok(vec![]), "{bytes:?}");
        assert_eq!(client.written(), []);
    }
}

/// §4.1, §5.3 and §5.5.
#[test]
fn what_is_unknown_or_obsolete_is_ignored() {
    let (mut client, id) = Client::asking();
    let bytes = [
        frame(PRIORITY, 0, id, &[0x80, 0, 0, 1, 255]),
        frame(PRIORITY, 0, 4712, &[0; 5]),
        frame(0x0a, 0xff, 0, b"ALTSVC"),
        frame(0x0c, 0, 0, b"ORIGIN"),
        frame(0xff, 0xff, 0x7fff_ffff, &[1; 300]),
        head(id, OK),
    ];
    assert_eq!(client.feed(&bytes.concat()), Ok(vec![Told::Head(id, 200)]));
}

/// A frame with more settings than anybody has.
#[test]
fn a_settings_frame_has_an_end() {
    refused(&frame(SETTINGS, 0, 0, &[0; 33 * 6]), Error::Flood(Flood::Settings));
}
