//! The transport: HTTP/1.0 over plain sockets, where the end of the connection is the end of the
//! answer. A device would have its own.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use picokube_core::manager::Failure;
use picokube_core::time::Timestamp;

/// One exchange.
pub(crate) struct Exchange {
    stream: TcpStream,
    head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl Exchange {
    /// Sends a request.
    pub(crate) fn begin(server: &str, line: &str, kind: &str, body: &[u8]) -> io::Result<Self> {
        let mut stream = TcpStream::connect(server)?;
        write!(stream, "{line} HTTP/1.0\r\nContent-Type: {kind}\r\n")?;
        write!(stream, "Content-Length: {}\r\n\r\n", body.len())?;
        stream.write_all(body)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, head: vec![], body: vec![] })
    }

    /// Reads what has come; 0 is the end.
    pub(crate) fn read(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 4096];
        let len = self.stream.read(&mut bytes)?;
        self.body.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    /// Status and date, when the head has just become complete.
    pub(crate) fn new_head(&mut self) -> Option<(u16, Timestamp)> {
        let end = self.body.windows(4).position(|end| end == b"\r\n\r\n");
        let end = end.filter(|_| self.head.is_empty())? + 4;
        self.head = self.body.drain(..end).collect();
        let head = String::from_utf8_lossy(&self.head).to_lowercase();
        let date = self.head.get(head.find("\r\ndate: ")? + 8..)?.get(..29)?;
        Some((head.split(' ').nth(1)?.parse().ok()?, Timestamp::parse_http_date(date)?))
    }
}

/// Status and body.
pub(crate) type Answer = (u16, Vec<u8>);

/// A whole exchange.
pub(crate) fn exchange(
    server: &str,
    line: &str,
    kind: &str,
    body: &[u8],
) -> Result<Answer, Failure> {
    let mut exchange = Exchange::begin(server, line, kind, body).map_err(not_sent)?;
    let lost = |_| Failure::Ambiguous;
    exchange.stream.set_nonblocking(false).map_err(lost)?;
    while exchange.read().map_err(lost)? > 0 {}
    let (status, _) = exchange.new_head().ok_or(Failure::Ambiguous)?;
    Ok((status, exchange.body))
}

/// Nothing has happened yet.
pub(crate) fn not_sent<E>(_: E) -> Failure {
    Failure::NotSent
}
