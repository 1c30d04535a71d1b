//! The transport: HTTP/1.0, where the end of the connection is the end of the answer.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use picokube_core::manager::{Failure, ResponseHead};

type Answer = Result<(ResponseHead, Vec<u8>), Failure>;

/// A request that is under way.
pub(crate) struct Exchange {
    pub(crate) stream: TcpStream,
    pub(crate) has_head: bool,
    /// Of the body, what has come and not been taken.
    pub(crate) body: Vec<u8>,
}

impl Exchange {
    /// Sends a request; its answer is read without waiting.
    pub(crate) fn begin(server: &str, line: &str, kind: &str, body: &[u8]) -> io::Result<Self> {
        let mut stream = TcpStream::connect(server)?;
        let len = body.len();
        write!(stream, "{line} HTTP/1.0\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n")?;
        stream.write_all(body)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, has_head: false, body: vec![] })
    }

    /// The head, when it has just become complete.
    pub(crate) fn new_head(&mut self) -> Option<ResponseHead> {
        let end = self.body.windows(4).position(|end| end == b"\r\n\r\n");
        let head: Vec<u8> = self.body.drain(..end.filter(|_| !self.has_head)? + 4).collect();
        self.has_head = true;
        let text = String::from_utf8_lossy(&head).to_lowercase();
        let header = |name: &str| {
            let rest = head.get(text.find(name)? + name.len()..)?;
            rest.split(|end| *end == b'\r').next()
        };
        let (date, retry_after) = (header("\r\ndate: "), header("\r\nretry-after: "));
        Some(ResponseHead::new(text.split(' ').nth(1)?.parse().ok()?, date, retry_after))
    }
}

/// A whole exchange: head and body.
pub(crate) fn exchange(server: &str, line: &str, kind: &str, body: &[u8]) -> Answer {
    let mut exchange = Exchange::begin(server, line, kind, body).map_err(|_| Failure::NotSent)?;
    let Exchange { stream, body, .. } = &mut exchange;
    let read = stream.set_nonblocking(false).and_then(|()| stream.read_to_end(body));
    read.map_err(|_| Failure::Ambiguous)?;
    let head = exchange.new_head().ok_or(Failure::Ambiguous)?;
    Ok((head, exchange.body))
}
