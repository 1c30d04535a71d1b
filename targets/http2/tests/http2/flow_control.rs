//! Flow control against a model of a server that does all that it may, and nothing that it may not.

use std::collections::BTreeMap;

use picokube_http2::{Event, Output, StreamKey};
use proptest::prelude::*;

use crate::client::{Client, STREAMS, WINDOW};
use crate::wire::*;

/// What may happen next.
#[derive(Clone, Debug)]
enum Act {
    /// The client opens a stream.
    Ask,
    /// The server sends as much as it may, up to this, on some stream, with so much padding.
    Respond { stream: usize, count: usize, padding: Option<u8> },
    /// Whoever reads deals with some of what it holds.
    Drain { stream: usize, count: usize },
    /// The client sends what it owes, if it fits so many bytes.
    Write { room: usize },
    /// The client sends some of a request's body.
    Send { stream: usize, count: usize },
    /// The server allows more on a stream, or on the connection.
    Allow { stream: Option<usize>, by: u32 },
    /// The server changes what streams start with.
    Resize { size: u32 },
    /// The client gives a stream up.
    Cancel { stream: usize },
    /// The client wants more of a stream.
    Widen { stream: usize, by: u32 },
}

fn act() -> impl Strategy<Value = Act> {
    let stream = 0..STREAMS;
    let size = prop_oneof![Just(0), 1..2000u32, 60_000..80_000u32];
    prop_oneof![
        3 => Just(Act::Ask),
        6 => (stream.clone(), 1..3000usize, prop::option::weighted(0.2, any::<u8>()))
            .prop_map(|(stream, count, padding)| Act::Respond { stream, count, padding }),
        5 => (stream.clone(), 1..1500usize).prop_map(|(stream, count)| Act::Drain { stream, count }),
        5 => prop_oneof![Just(13), Just(30), Just(500)].prop_map(|room| Act::Write { room }),
        4 => (stream.clone(), 1..20_000usize).prop_map(|(stream, count)| Act::Send { stream, count }),
        3 => (prop::option::of(stream.clone()), 1..50_000u32)
            .prop_map(|(stream, by)| Act::Allow { stream, by }),
        2 => size.prop_map(|size| Act::Resize { size }),
        1 => stream.clone().prop_map(|stream| Act::Cancel { stream }),
        1 => (stream, 1..5000u32).prop_map(|(stream, by)| Act::Widen { stream, by }),
    ]
}

/// A stream as the server sees it.
struct Seen {
    key: StreamKey,
    /// What the server may send.
    window: i64,
    /// What the client may send.
    allowance: i64,
    /// What the reader holds.
    held: usize,
    has_head: bool,
}

struct Model {
    client: Client,
    streams: BTreeMap<u32, Seen>,
    window: i64,
    allowance: i64,
    initial: i64,
    table_of_sizes: BTreeMap<u32, i64>,
}

impl Model {
    fn new() -> Self {
        let mut client = Client::of(&[]);
        client.is_eager = false;
        Self {
            client,
            streams: BTreeMap::new(),
            window: 65_535,
            allowance: 65_535,
            initial: 65_535,
            table_of_sizes: BTreeMap::new(),
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Ask => self.ask(),
            Act::Respond { stream, count, padding } => self.respond(stream, count, padding),
            Act::Drain { stream, count } => {
                if let Some(seen) = nth(&mut self.streams, stream) {
                    let count = count.min(seen.held);
                    seen.held -= count;
                    self.client.connection.release(seen.key, count);
                }
            }
            Act::Write { room } => self.write(room),
            Act::Send { stream, count } => self.send(stream, count),
            Act::Allow { stream: None, by } => {
                self.allowance += i64::from(by);
                self.client.feed(&window_update(0, by)).unwrap();
            }
            Act::Allow { stream: Some(stream), by } => {
                if let Some(seen) = nth(&mut self.streams, stream) {
                    seen.allowance += i64::from(by);
                    self.client.feed(&window_update(seen.key.id(), by)).unwrap();
                }
            }
            Act::Resize { size } => {
                let change = i64::from(size) - self.initial;
                self.initial = i64::from(size);
                self.streams.values_mut().for_each(|seen| seen.allowance += change);
                self.client.feed(&settings(&[(INITIAL_WINDOW_SIZE, size)])).unwrap();
            }
            Act::Cancel { stream } => {
                if let Some(key) = nth(&mut self.streams, stream).map(|seen| seen.key) {
                    self.client.connection.cancel(key);
                    self.streams.remove(&key.id());
                }
            }
            Act::Widen { stream, by } => {
                if let Some(seen) = nth(&mut self.streams, stream) {
                    *self.table_of_sizes.entry(seen.key.id()).or_default() += i64::from(by);
                    self.client.connection.widen(seen.key, by);
                }
            }
        }
    }

    fn ask(&mut self) {
        let mut buffer = [0; 4096];
        let mut out = Output::new(&mut buffer);
        let request =
            picokube_http2::Request { method: "POST", has_body: true, ..crate::client::get("/") };
        if let Ok(key) = self.client.connection.request(&request, &mut out) {
            let seen = Seen {
                key,
                window: i64::from(WINDOW),
                allowance: self.initial,
                held: 0,
                has_head: false,
            };
            self.streams.insert(key.id(), seen);
            self.table_of_sizes.insert(key.id(), i64::from(WINDOW));
        }
        self.read(out.written());
    }

    fn respond(&mut self, stream: usize, count: usize, padding: Option<u8>) {
        let Some(seen) = nth(&mut self.streams, stream) else { return };
        let id = seen.key.id();
        if !std::mem::replace(&mut seen.has_head, true) {
            self.client.feed(&head(id, OK)).unwrap();
        }
        let extra = padding.map_or(0, |padding| usize::from(padding) + 1);
        let may = usize::try_from(seen.window.min(self.window)).unwrap_or(0);
        let Some(count) =
            may.checked_sub(extra).map(|may| may.min(count)).filter(|count| *count > 0)
        else {
            return;
        };
        let payload = match padding {
            Some(padding) => {
                [&[padding][..], &vec![7; count], &vec![0; usize::from(padding)]].concat()
            }
            None => vec![7; count],
        };
        seen.window -= payload.len() as i64;
        self.window -= payload.len() as i64;
        seen.held += count;
        let flags = if padding.is_some() { PADDED } else { 0 };
        let bytes = frame(DATA, flags, id, &payload);
        let mut rest = &bytes[..];
        let mut come = 0;
        while let Some(event) =
            self.client.connection.receive(&mut rest).expect("within the windows")
        {
            let Event::Data { stream, bytes } = event else { panic!("{event:?}") };
            assert_eq!(stream.id(), id);
            come += bytes.len();
        }
        assert_eq!(come, count);
    }

    fn send(&mut self, stream: usize, count: usize) {
        let Some(seen) = nth(&mut self.streams, stream) else { return };
        let mut buffer = [0; 20_000];
        let mut out = Output::new(&mut buffer);
        let body = vec![1; count];
        let sent = self.client.connection.send(seen.key, &body, false, &mut out).unwrap();
        let may = usize::try_from(seen.allowance.min(self.allowance)).unwrap_or(0);
        assert_eq!(sent.bytes, count.min(may).min(16_384), "as much as the server allows");
        seen.allowance -= sent.bytes as i64;
        self.allowance -= sent.bytes as i64;
        self.read(out.written());
    }

    fn write(&mut self, room: usize) {
        let mut buffer = vec![0; room];
        let mut out = Output::new(&mut buffer);
        self.client.connection.write(&mut out);
        self.read(out.written());
    }

    /// What the client says changes what the server may do.
    fn read(&mut self, bytes: &[u8]) {
        for frame in frames(bytes).iter().filter(|frame| frame.kind == WINDOW_UPDATE) {
            let increment = i64::from(frame.number());
            assert!(increment > 0);
            match self.streams.get_mut(&frame.stream) {
                Some(seen) => {
                    seen.window += increment;
                    let size = self.table_of_sizes[&frame.stream];
                    assert!(
                        seen.window + seen.held as i64 <= size,
                        "more than the reader can hold"
                    );
                }
                None if frame.stream == 0 => {
                    self.window += increment;
                    assert!(self.window <= 65_535);
                }
                None => {}
            }
        }
    }

    fn check(&self) {
        for seen in self.streams.values() {
            let may = seen.allowance.min(self.allowance).max(0) as usize;
            assert_eq!(self.client.connection.sendable(seen.key), Some(may));
            let size = self.table_of_sizes[&seen.key.id()];
            assert!(seen.window + seen.held as i64 <= size, "more than the reader can hold");
        }
    }

    /// When those who read have dealt with all that they hold, and the client has said what it owes, the
    /// server may send on every stream: nothing is stuck. A reader that holds what it has stops nobody else.
    fn check_that_nothing_is_stuck(&mut self) {
        self.write(1000);
        assert!(!self.client.connection.owes());
        assert!(self.window >= 32_768, "{} for all streams", self.window);
        for seen in self.streams.values_mut() {
            let held = std::mem::take(&mut seen.held);
            self.client.connection.release(seen.key, held);
        }
        self.write(1000);
        for seen in self.streams.values() {
            let size = self.table_of_sizes[&seen.key.id()];
            assert!(seen.window >= size / 2, "{} of {size}", seen.window);
        }
    }
}

fn nth(streams: &mut BTreeMap<u32, Seen>, at: usize) -> Option<&mut Seen> {
    streams.values_mut().nth(at)
}

proptest! {
    #[test]
    fn windows_are_what_the_server_thinks_and_never_stuck(acts in prop::collection::vec(act(), 1..120)) {
        let mut model = Model::new();
        for act in &acts {
            model.act(act);
            model.check();
        }
        model.check_that_nothing_is_stuck();
    }
}

/// Readers that never take anything do not stop the others, whatever the windows.
#[test]
fn a_slow_reader_stops_nobody_else() {
    let mut client = Client::of(&[]);
    client.is_eager = false;
    let slow: Vec<StreamKey> = (1..STREAMS).map(|_| client.get()).collect();
    for key in &slow {
        client.connection.widen(*key, 60_000);
    }
    client.written();
    for key in &slow {
        let mut bytes = head(key.id(), OK);
        bytes.extend((0..60).flat_map(|_| data(key.id(), &[0; 1000])));
        client.feed(&bytes).unwrap();
        client.written();
    }
    // 180,000 bytes are held, nearly three times the connection's window.
    let fast = client.get();
    client.is_eager = true;
    client.feed(&head(fast.id(), OK)).unwrap();
    for _ in 0..1000 {
        client.feed(&data(fast.id(), &[0; 1000])).unwrap();
        client.written();
    }
}
