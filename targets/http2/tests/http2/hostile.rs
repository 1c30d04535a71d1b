//! Servers that mean no good: floods, bombs, and what must not be at any state; and connections that break
//! off.

use picokube_http2::{Breach, Error, ErrorCode, Flood, Reset};

use crate::client::{Client, Told};
use crate::wire::*;

/// More than any budget.
const MANY: usize = 400;

/// A server that says the same again and again is left, however often we answer, and within a bounded
/// number of frames. Before that, nothing grows: what is owed is answered after each frame.
fn flood(frame: &[u8], what: Flood) {
    let (mut client, id) = Client::asking();
    client.post();
    client.feed(&head(id, OK)).unwrap();
    for count in 0..MANY {
        match client.feed(frame) {
            Ok(_) => drop(client.written()),
            Err(error) => {
                assert_eq!(error, Error::Flood(what), "{frame:?}");
                assert!(count >= 100, "{count} of {what:?} are no flood");
                assert_eq!(client.written()[0].payload[7], ErrorCode::ENHANCE_YOUR_CALM.0 as u8);
                return;
            }
        }
    }
    panic!("{MANY} times {frame:?} is no flood");
}

#[test]
fn floods_are_noticed() {
    flood(&settings(&[]), Flood::Settings);
    flood(&settings(&[(INITIAL_WINDOW_SIZE, 1), (INITIAL_WINDOW_SIZE, 70_000)]), Flood::Settings);
    flood(&frame(SETTINGS, ACK, 0, &[]), Flood::Settings);
    flood(&ping(b"12345678"), Flood::Ping);
    flood(&frame(PING, ACK, 0, b"12345678"), Flood::Ping);
    flood(&data(1, b""), Flood::EmptyData);
    flood(&frame(DATA, PADDED, 1, &[3, 0, 0, 0]), Flood::EmptyData);
    flood(&window_update(0, 1), Flood::WindowUpdate);
    flood(&window_update(3, 1), Flood::WindowUpdate);
    flood(&frame(PRIORITY, 0, 3, &[0; 5]), Flood::Unknown);
    flood(&frame(0xbe, 0, 0, &[]), Flood::Unknown);
    flood(&goaway(3, ErrorCode::NO_ERROR), Flood::Unknown);
    // Heads that announce another one.
    flood(&head(3, &literal(b":status", b"100")), Flood::Headers);
}

#[test]
fn floods_about_streams_that_are_over_are_noticed() {
    let over = |frame: Vec<u8>| {
        let (mut client, id) = Client::asking();
        client.feed(&rst_stream(id, ErrorCode::CANCEL)).unwrap();
        let errors = (0..MANY).map(|_| {
            let told = client.feed(&frame);
            client.written();
            told.err()
        });
        let errors: Vec<Option<Error>> = errors.collect();
        let before = errors.iter().take_while(|error| error.is_none()).count();
        assert!(before >= 100, "{before}");
        assert_eq!(errors.last(), Some(&Some(Error::Flood(Flood::ClosedStreams))));
    };
    over(rst_stream(1, ErrorCode::CANCEL));
    over(data(1, b"x"));
    over(data(1, b""));
    over(head(1, OK));
}

/// What was on its way when a stream was given up is no flood, in however small frames it comes; more is.
#[test]
fn data_on_its_way_is_no_flood() {
    let (mut client, id) = Client::asking();
    let key = client.get();
    client.connection.widen(key, 49_000);
    client.written();
    client.feed(&head(key.id(), OK)).unwrap();
    client.connection.cancel(key);
    client.written();
    for _ in 0..10_000 {
        client.feed(&data(key.id(), b"5byte")).unwrap();
        client.written();
    }
    let error = (0..MANY).find_map(|_| client.feed(&data(key.id(), b"x")).err());
    assert_eq!(error, Some(Error::Flood(Flood::ClosedStreams)));
    assert!(id < key.id());
}

/// Some servers widen the windows for every few hundred bytes that they read.
#[test]
fn windows_that_grow_in_small_steps_are_no_flood() {
    let mut client = Client::of(&[]);
    let key = client.post();
    for _ in 0..100 {
        let (sent, _) = client.send(key, &[0; 16_384], false);
        for _ in 0..sent.bytes / 512 {
            client.feed(&[window_update(0, 512), window_update(key.id(), 512)].concat()).unwrap();
        }
    }
}

/// Requests that are all refused: each costs the server as much as us.
#[test]
fn resets_of_requests_are_no_flood() {
    let mut client = Client::of(&[]);
    for _ in 0..10 * MANY {
        let id = client.get().id();
        let told = client.feed(&rst_stream(id, ErrorCode::REFUSED_STREAM)).unwrap();
        assert_eq!(told, [Told::Reset(id, Reset::Unprocessed)]);
        client.feed(&rst_stream(id, ErrorCode::REFUSED_STREAM)).unwrap();
    }
}

/// What servers do between useful things may go on for ever.
#[test]
fn useful_traffic_pays_for_the_rest() {
    let (mut client, id) = Client::asking();
    client.feed(&head(id, OK)).unwrap();
    for _ in 0..MANY {
        let bytes = [
            data(id, b"x"),
            ping(b"12345678"),
            ping(b"abcdefgh"),
            window_update(0, 1),
            settings(&[]),
        ];
        client.feed(&bytes.concat()).unwrap();
        client.written();
    }
    // And an idle connection is forgiven.
    let mut client = Client::of(&[]);
    for _ in 0..MANY {
        client.feed(&ping(b"12345678")).unwrap();
        client.written();
        client.connection.forgive();
    }
}

/// Whoever does not wait for answers gets none.
#[test]
fn pings_without_end_are_not_kept() {
    let mut client = Client::of(&[]);
    client.feed(&ping(b"12345678").repeat(4)).unwrap();
    assert_eq!(client.feed(&ping(b"12345678")), Err(Error::Flood(Flood::Ping)));
    let mut client = Client::of(&[]);
    assert_eq!(client.feed(&settings(&[]).repeat(MANY)), Err(Error::Flood(Flood::Settings)));
}

/// CVE-2024-27316 and its kin: a header block that does not end, in frames with and without content.
#[test]
fn header_blocks_without_end_are_left() {
    for (payload, most) in [(0, MANY), (1, MANY), (16_384, 6)] {
        let (mut client, id) = Client::asking();
        client
            .feed(&frame(HEADERS, 0, id, &[0x00, 0x01, b'x', 0x7f, 0xff, 0xff, 0xff, 0x7f]))
            .unwrap();
        let more = frame(CONTINUATION, 0, id, &vec![b'x'; payload]);
        let error = (0..most).find_map(|_| client.feed(&more).err());
        assert_eq!(error, Some(Error::Flood(Flood::Headers)), "{payload}");
    }
}

/// Bombs: few bytes that mean many. Without a table of ours, a byte means at most one field of the static
/// one, and nothing of it is kept.
#[test]
fn header_bombs_do_not_go_off() {
    for block in [vec![0x90; 16_000], [literal(b"x", &[b'x'; 4000]), vec![0x90; 8000]].concat()] {
        let (mut client, id) = Client::asking();
        let bytes = head(id, &[OK, &block].concat());
        assert_eq!(client.feed(&bytes), Ok(vec![Told::Reset(id, Reset::HeadTooLarge)]));
    }
    // The classical one: a large entry, called by number again and again.
    let (mut client, id) = Client::asking();
    let entry = [&[0x40][..], &literal(b"x", &[b'x'; 4000])[1..], &[0xbe; 8000]].concat();
    assert_eq!(client.feed(&head(id, &entry)), Err(Error::Compression));
    // A string that says it is 256 MB long.
    let (mut client, id) = Client::asking();
    let huge = [0x88, 0x00, 0x01, b'x', 0x7f, 0xff, 0xff, 0xff, 0x7f];
    assert_eq!(client.feed(&head(id, &huge)), Err(Error::Compression));
}

/// A client in every state that matters, with what has to come of it later.
fn states() -> Vec<(&'static str, Client)> {
    let mut states = Vec::new();
    let mut add = |name, prepare: &dyn Fn(&mut Client)| {
        let mut client = Client::of(&[]);
        prepare(&mut client);
        states.push((name, client));
    };
    add("idle", &|_| {});
    add("asked", &|client| {
        client.get();
    });
    add("sending", &|client| {
        client.post();
    });
    add("head", &|client| {
        let id = client.get().id();
        client.feed(&head(id, OK)).unwrap();
    });
    add("data", &|client| {
        let id = client.get().id();
        client.feed(&[head(id, OK), data(id, b"x")].concat()).unwrap();
    });
    add("informed", &|client| {
        let id = client.get().id();
        client.feed(&head(id, &literal(b":status", b"100"))).unwrap();
    });
    add("cancelled", &|client| {
        let key = client.get();
        client.connection.cancel(key);
    });
    add("reset", &|client| {
        let id = client.get().id();
        client.feed(&rst_stream(id, ErrorCode::CANCEL)).unwrap();
    });
    add("done", &|client| {
        let id = client.get().id();
        client.feed(&[head(id, OK), last_data(id, b"x")].concat()).unwrap();
    });
    add("going", &|client| {
        client.get();
        client.feed(&goaway(1, ErrorCode::NO_ERROR)).unwrap();
    });
    add("leaving", &|client| {
        client.get();
        client.connection.leave();
    });
    states
}

#[test]
fn a_push_is_refused_at_every_state() {
    for (name, mut client) in states() {
        for stream in [0, 1, 2] {
            let promise = frame(PUSH_PROMISE, END_HEADERS, stream, &[0, 0, 0, 2, 0x82]);
            assert_eq!(
                client.connection.clone().receive(&mut &promise[..]).err(),
                push(),
                "{name}"
            );
        }
        // Nor may the pushed stream itself come, with or without its promise.
        for pushed in [head(2, OK), data(2, b"x")] {
            let error = client.feed(&pushed);
            assert!(error.is_err(), "{name}");
        }
    }
    let mut client = Client::silent();
    let promise = frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]);
    assert_eq!(client.feed(&promise), Err(Error::NotHttp2));
}

fn push() -> Option<Error> {
    Some(Error::Protocol(Breach::Push))
}

/// A GOAWAY at every state: what was not looked at is told, what goes on goes on, no more is begun.
#[test]
fn a_goaway_is_followed_at_every_state() {
    for (name, mut client) in states() {
        let open = client.connection.open_streams();
        let told = client.feed(&goaway(0, ErrorCode::NO_ERROR)).unwrap();
        let mut expected = vec![Told::GoAway(ErrorCode::NO_ERROR)];
        expected.extend((open == 1).then_some(Told::Reset(1, Reset::Unprocessed)));
        assert_eq!(told, expected, "{name}");
        assert_eq!(client.connection.open_streams(), 0);
        assert!(client.connection.check_ready().is_err());
        assert!(client.written().iter().all(|frame| frame.kind != RST_STREAM), "{name}");
        assert_eq!(client.connection.end_of_input(), Ok(()), "{name}");
    }
    for (name, mut client) in states() {
        let open = client.connection.open_streams();
        client.feed(&goaway(1, ErrorCode::ENHANCE_YOUR_CALM)).unwrap();
        assert_eq!(client.connection.open_streams(), open, "{name}");
        assert!(client.connection.check_ready().is_err());
    }
}

/// A whole conversation, cut off after every byte: what was told is a beginning of what is told of all of
/// it, and the end of the input is an error unless nothing is missing.
#[test]
fn truncation_at_every_byte_is_noticed() {
    let talk = [
        settings(&[(INITIAL_WINDOW_SIZE, 100)]),
        ping(b"12345678"),
        head(1, &[OK, &literal(b"content-length", b"5")].concat()),
        frame(DATA, PADDED, 1, &[2, b'h', b'e', b'l', 0, 0]),
        frame(HEADERS, 0, 3, &[0x88]),
        frame(CONTINUATION, END_HEADERS, 3, &literal(b"date", b"x")),
        last_data(1, b"lo"),
        window_update(3, 10),
        frame(DATA, END_STREAM, 3, b""),
        goaway(3, ErrorCode::NO_ERROR),
    ]
    .concat();
    let whole = {
        let (mut client, _) = two_requests();
        let told = client.feed(&talk).unwrap();
        assert_eq!(client.connection.end_of_input(), Ok(()));
        told
    };
    assert_eq!(whole.len(), 7);
    let end_of_streams = talk.len() - goaway(3, ErrorCode::NO_ERROR).len();
    for end in 0..talk.len() {
        let (mut client, _) = two_requests();
        let told = client.feed(&talk[..end]).unwrap();
        let begins = told.iter().zip(&whole).all(|(told, all)| match (told, all) {
            (Told::Data(id, part), Told::Data(of, all)) => id == of && all.starts_with(part),
            _ => told == all,
        });
        assert!(begins && told.len() <= whole.len(), "{end}: {told:?}");
        let is_in_order = end == end_of_streams;
        assert_eq!(client.connection.end_of_input().is_ok(), is_in_order, "{end}");
        assert_eq!(client.connection.error().is_none(), is_in_order);
        assert!(!client.connection.owes(), "nobody is there to be told");
    }
}

fn two_requests() -> (Client, [u32; 2]) {
    let mut client = Client::of(&[]);
    let ids = [client.get().id(), client.get().id()];
    client.written();
    (client, ids)
}

/// Every byte of a good response replaced by every other value: no panic, and never more than a broken
/// connection or stream.
#[test]
fn any_single_wrong_byte_is_survived() {
    let talk = [
        head(1, &[OK, &literal(b"date", b"Mon"), &[0x5f, 0x01, b'x']].concat()),
        frame(DATA, PADDED, 1, &[1, b'x', 0]),
        window_update(1, 5),
        last_data(1, b"lo"),
    ]
    .concat();
    for at in 0..talk.len() {
        for value in 0..=255 {
            let mut wrong = talk.clone();
            wrong[at] = value;
            let (mut client, _) = two_requests();
            let _ = client.feed_all(&wrong);
            let _ = client.connection.end_of_input();
            client.written();
        }
    }
}
