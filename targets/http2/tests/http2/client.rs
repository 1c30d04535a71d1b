//! A client whose bytes go nowhere.

use picokube_http2::{
    Config, Connection, Error, ErrorCode, Event, Field, Output, Refusal, Request, Reset, Scheme,
    Sent, StreamKey,
};

use crate::wire::{Frame, frames, settings};

pub(crate) const STREAMS: usize = 4;
pub(crate) const WINDOW: u32 = 1000;

/// An event that outlives its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Ready,
    Head(u32, u16),
    Data(u32, Vec<u8>),
    End(u32),
    Reset(u32, Reset),
    GoAway(ErrorCode),
    Pong,
}

pub(crate) struct Client {
    pub(crate) connection: Connection<STREAMS>,
    /// Gives data back as it comes.
    pub(crate) is_eager: bool,
}

impl Client {
    /// Before the server has said anything.
    pub(crate) fn silent() -> Self {
        let mut connection = Connection::new();
        connection.open(Config { stream_window: WINDOW, connection_window: 65_535 });
        Self { connection, is_eager: true }
    }

    /// Of a server with these settings.
    pub(crate) fn of(server: &[(u16, u32)]) -> Self {
        let mut client = Self::silent();
        assert_eq!(client.feed(&settings(server)), Ok(vec![Told::Ready]));
        client.written();
        client
    }

    /// With a GET under way.
    pub(crate) fn asking() -> (Self, u32) {
        let mut client = Self::of(&[]);
        let id = client.get().id();
        (client, id)
    }

    pub(crate) fn get(&mut self) -> StreamKey {
        self.try_request(&get("/")).unwrap()
    }

    /// A request whose body is still to be sent.
    pub(crate) fn post(&mut self) -> StreamKey {
        self.try_request(&Request { method: "POST", has_body: true, ..get("/") }).unwrap()
    }

    pub(crate) fn try_request(&mut self, request: &Request<'_>) -> Result<StreamKey, Refusal> {
        self.connection.request(request, &mut Output::new(&mut [0; 4096]))
    }

    /// Sends what it can of a body.
    pub(crate) fn send(
        &mut self,
        key: StreamKey,
        bytes: &[u8],
        is_last: bool,
    ) -> (Sent, Vec<Frame>) {
        let mut buffer = vec![0; 100_000];
        let mut out = Output::new(&mut buffer);
        let sent = self.connection.send(key, bytes, is_last, &mut out).unwrap();
        (sent, frames(out.written()))
    }

    /// What the client has to say.
    pub(crate) fn written(&mut self) -> Vec<Frame> {
        let mut buffer = [0; 4096];
        let mut out = Output::new(&mut buffer);
        self.connection.write(&mut out);
        assert!(!self.connection.owes(), "all of it has room");
        frames(out.written())
    }

    /// What follows from these bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Told>, Error> {
        let (told, result) = self.feed_all(bytes);
        result.map(|()| told)
    }

    /// The same, up to an error.
    pub(crate) fn feed_all(&mut self, mut bytes: &[u8]) -> (Vec<Told>, Result<(), Error>) {
        let mut told = Vec::new();
        loop {
            let event = match self.connection.receive(&mut bytes) {
                Ok(Some(event)) => event,
                Ok(None) => {
                    assert!(bytes.is_empty(), "all of it is taken");
                    return (told, Ok(()));
                }
                Err(error) => return (told, Err(error)),
            };
            if let (Event::Data { stream, bytes }, true) = (event, self.is_eager) {
                self.connection.release(stream, bytes.len());
            }
            add(&mut told, event);
        }
    }
}

/// Adds an event; data that follows data of the same stream is one.
pub(crate) fn add(told: &mut Vec<Told>, event: Event<'_>) {
    let new = match event {
        Event::Ready => Told::Ready,
        Event::Head { stream, head } => Told::Head(stream.id(), head.status),
        Event::Data { stream, bytes } => {
            assert!(!bytes.is_empty());
            if let Some(Told::Data(id, before)) = told.last_mut()
                && *id == stream.id()
            {
                before.extend_from_slice(bytes);
                return;
            }
            Told::Data(stream.id(), bytes.to_vec())
        }
        Event::End { stream } => Told::End(stream.id()),
        Event::Reset { stream, reason } => Told::Reset(stream.id(), reason),
        Event::GoAway { code } => Told::GoAway(code),
        Event::Pong => Told::Pong,
    };
    told.push(new);
}

pub(crate) const TOKEN: &str = "Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.e30.c2lnbmF0dXJl";

pub(crate) fn get(path: &str) -> Request<'_> {
    const FIELDS: &[Field<'_>] = &[
        Field::kept("user-agent", "picokube/0.1.0"),
        Field::kept("accept", "application/json"),
        Field::secret("authorization", TOKEN),
    ];
    Request {
        method: "GET",
        scheme: Scheme::Https,
        authority: "kubernetes:6443",
        path,
        fields: FIELDS,
        has_body: false,
    }
}
