//! Any bytes as what a server sends: no panic, always progress, whole frames in answer, and the same is
//! told however they are split.

use picokube_http2::{Config, Connection, Event, Field, Output, Request, Scheme, StreamKey};

/// The first byte chooses how the rest is split, and whether the server has greeted us before.
pub(crate) fn play(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else { return };
    let is_greeted = choice & 0x80 == 0;
    let piece = usize::from(choice & 0x7f) + 1;
    assert_eq!(told(bytes, piece, is_greeted), told(bytes, usize::MAX, is_greeted));
}

struct Client {
    connection: Connection<4>,
    /// One whose body is being sent.
    sending: Option<StreamKey>,
    told: Vec<String>,
    /// Of a stream, and not told yet: data that comes in several pieces is told as one.
    data: (u32, Vec<u8>),
}

fn told(bytes: &[u8], piece: usize, is_greeted: bool) -> Vec<String> {
    let mut client = Client {
        connection: Connection::new(),
        sending: None,
        told: Vec::new(),
        data: (0, Vec::new()),
    };
    client.connection.open(Config { stream_window: 600, connection_window: 65_535 });
    if is_greeted {
        client.feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        client.ask("GET", false);
        client.sending = client.ask("POST", true);
        client.ask("HEAD", false);
    }
    for piece in bytes.chunks(piece) {
        client.feed(piece);
    }
    let end = client.connection.end_of_input();
    client.tell(format!("{end:?}"));
    client.write();
    client.told
}

impl Client {
    fn ask(&mut self, method: &str, has_body: bool) -> Option<StreamKey> {
        let fields = [Field::secret("authorization", "Bearer x"), Field::kept("accept", "*/*")];
        let request = Request {
            method,
            scheme: Scheme::Https,
            authority: "kubernetes",
            path: "/api",
            fields: &fields,
            has_body,
        };
        let mut buffer = [0; 256];
        let key = self.connection.request(&request, &mut Output::new(&mut buffer));
        self.tell(format!("{key:?}"));
        key.ok()
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        loop {
            let before = bytes.len();
            match self.connection.receive(&mut bytes) {
                Ok(Some(event)) => self.handle(event),
                Ok(None) => {
                    assert!(bytes.is_empty(), "no progress after {before} bytes");
                    return;
                }
                Err(error) => {
                    assert_eq!(self.connection.error(), Some(error));
                    // Told once.
                    let error = format!("{error:?}");
                    if self.told.last() != Some(&error) {
                        self.tell(error);
                    }
                    return;
                }
            }
        }
    }

    fn handle(&mut self, event: Event<'_>) {
        if let Event::Data { stream, bytes } = event {
            if self.data.0 != stream.id() {
                self.tell_data();
                self.data.0 = stream.id();
            }
            self.data.1.extend_from_slice(bytes);
            // The others have slow readers.
            if stream.id() == 1 {
                self.connection.release(stream, bytes.len());
            }
            return;
        }
        self.tell(format!("{event:?}"));
        match event {
            Event::Head { stream, head } if head.status == 404 => self.connection.cancel(stream),
            Event::Head { stream, .. } => self.connection.widen(stream, 100),
            Event::End { .. } | Event::Reset { .. } => drop(self.ask("GET", false)),
            Event::GoAway { .. } => self.connection.ping(),
            _ => {}
        }
        if let Some(key) = self.sending {
            let mut buffer = [0; 64];
            let mut out = Output::new(&mut buffer);
            let sent = self.connection.send(key, &[7; 50], false, &mut out);
            check(out.written());
            self.tell(format!("{sent:?} {:?}", self.connection.sendable(key)));
        }
        self.write();
    }

    fn write(&mut self) {
        // Room for as many acknowledgements as a budget pays for.
        let mut buffer = [0; 4096];
        let mut out = Output::new(&mut buffer);
        self.connection.write(&mut out);
        assert!(!self.connection.owes());
        check(out.written());
        self.tell(format!("{:?}", out.written()));
    }

    fn tell(&mut self, what: String) {
        self.tell_data();
        self.told.push(what);
    }

    fn tell_data(&mut self) {
        let (stream, bytes) = std::mem::take(&mut self.data);
        if !bytes.is_empty() {
            self.told.push(format!("{stream}: {bytes:?}"));
        }
    }
}

/// Whole frames of ours, none of which could be an error to a server.
fn check(mut bytes: &[u8]) {
    bytes = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(bytes);
    while let [a, b, c, kind, _, d, e, f, g, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let stream = u32::from_be_bytes([*d, *e, *f, *g]);
        let (payload, rest) = rest.split_at(length);
        let number = payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        match kind {
            0 => assert!(stream % 2 == 1),
            3 => assert!(stream % 2 == 1 && length == 4),
            4 => assert!(stream == 0 && length.is_multiple_of(6)),
            6 => assert!(stream == 0 && length == 8),
            7 => assert!(stream == 0 && length == 8),
            8 => assert!(stream % 2 < 2 && number.is_some_and(|by| by > 0 && by < 1 << 31)),
            kind => panic!("a frame of kind {kind}"),
        }
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a frame that is not whole");
}
