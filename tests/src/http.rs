//! An HTTP client that can be as rude as a test needs it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::picokube::PATIENCE;

/// A connection.
pub struct Client {
    stream: TcpStream,
    /// What was received and belongs to the next answer.
    buffer: Vec<u8>,
    /// What has come of a watch and is no whole event yet.
    events: Vec<u8>,
}

/// What a server answered.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, without chunks.
    pub body: Vec<u8>,
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: Vec::new(), events: Vec::new() })
    }

    /// Sends a well-formed request and reads the answer.
    pub fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || !matches!(method, "GET" | "HEAD") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.write(&[head.as_bytes(), body].concat());
        self.answer(method == "HEAD")
    }

    /// Asks for a watch, whose [events](Self::event) come from now on.
    pub fn watch(&mut self, target: &str) -> Result<()> {
        self.write(format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes());
        let head = self.head()?;
        ensure!(head.contains(" 200 "), "{target}: {head}");
        Ok(())
    }

    /// The next event of a watch.
    pub fn event(&mut self) -> Result<Value> {
        loop {
            if let Some(end) = self.events.iter().position(|byte| *byte == b'\n') {
                let rest = self.events.split_off(end + 1);
                let line = std::mem::replace(&mut self.events, rest);
                return Ok(serde_json::from_slice(&line)?);
            }
            let chunk = self.chunk()?.context("the watch has ended")?;
            self.events.extend(chunk);
        }
    }

    /// Sends bytes. A server may answer and hang up before it has read all of them.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads an answer; the one to HEAD has no body.
    pub fn answer(&mut self, to_head: bool) -> Result<Answer> {
        let head = self.head()?;
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.context("no status line")?.parse()?;
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        let mut answer = Answer { status, headers: headers.collect(), body: Vec::new() };
        if to_head || matches!(status, 204 | 304) {
            return Ok(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                answer.body.extend(chunk);
            }
        } else {
            let length = answer.header("content-length").unwrap_or("0").parse()?;
            answer.body = self.take(length)?;
        }
        Ok(answer)
    }

    /// Reads the head of an answer.
    fn head(&mut self) -> Result<String> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at;
            }
            ensure!(self.receive()?, "the server hung up without an answer");
        };
        let rest = self.buffer.split_off(end + 4);
        Ok(String::from_utf8(std::mem::replace(&mut self.buffer, rest))?)
    }

    fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                break at;
            }
            ensure!(self.receive()?, "the server hung up between chunks");
        };
        let line = self.take(end + 2)?;
        let length = usize::from_str_radix(std::str::from_utf8(&line)?.trim(), 16)?;
        let chunk = self.take(length + 2)?;
        Ok((length > 0).then(|| chunk[..length].to_vec()))
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.buffer.len() < length {
            ensure!(self.receive()?, "the server hung up within an answer");
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// Reads more; false at the end of the stream.
    fn receive(&mut self) -> Result<bool> {
        let mut bytes = [0; 64 << 10];
        let length = self.stream.read(&mut bytes)?;
        self.buffer.extend_from_slice(&bytes[..length]);
        Ok(length > 0)
    }
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} is answered without JSON: {}", self.status, self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
