//! The real binary on a free port, and a small HTTP client.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Nothing takes so long, on however busy a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// A server in a process of its own.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts `picokube server` with further arguments and waits until it listens.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// The same, at an address.
    pub(crate) fn start_at(listen: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_picokube"))
            .args(["server", "--listen", listen])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let address = loop {
            let line = lines.next().expect("the server says where it listens").expect("text");
            if let Some((_, address)) = line.split_once("listening on http") {
                break address.trim_start_matches('s').trim_start_matches("://").to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }

    /// Starts a server that keeps its cluster in `directory`.
    pub(crate) fn on_disk(directory: &Path) -> Self {
        Self::start(&["--data", directory.to_str().expect("UTF-8")])
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Presses Ctrl-C and waits for an end in good order.
    pub(crate) fn interrupt(mut self) {
        let sent = Command::new("kill").args(["-INT", &self.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        assert!(self.process.wait().expect("it ends").success());
    }

    /// Ends the process the hard way (SIGKILL).
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A keep-alive connection.
pub(crate) struct Client {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        Self { address: address.to_owned(), stream: None }
    }

    pub(crate) fn get(&mut self, path: &str) -> (u16, Value) {
        self.request("GET", path, "", b"").expect("an answer")
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        self.request("POST", path, "application/json", body.as_bytes()).expect("an answer")
    }

    pub(crate) fn put(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        self.request("PUT", path, "application/json", body.as_bytes()).expect("an answer")
    }

    /// One request; fails if the server goes away in the middle of it.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> std::io::Result<(u16, Value)> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                BufReader::new(stream)
            }
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        stream.get_mut().write_all(&message)?;
        let (status, body) = read_response(&mut stream)?;
        self.stream = Some(stream);
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

/// Reads one whole answer.
pub(crate) fn read_response(stream: &mut impl BufRead) -> std::io::Result<(u16, Vec<u8>)> {
    let (status, chunked, length) = read_head(stream)?;
    let mut body = Vec::new();
    if chunked {
        while let Some(chunk) = read_chunk(stream)? {
            body.extend_from_slice(&chunk);
        }
    } else {
        body.resize(length, 0);
        stream.read_exact(&mut body)?;
    }
    Ok((status, body))
}

/// Reads status line and headers: status, whether the body is chunked, its length if not.
pub(crate) fn read_head(stream: &mut impl BufRead) -> std::io::Result<(u16, bool, usize)> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let (mut chunked, mut length) = (false, 0);
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            return Ok((status, chunked, length));
        }
        chunked |= header == "transfer-encoding: chunked";
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap_or(0);
        }
    }
}

/// Reads one chunk; `None` at the end of the body.
pub(crate) fn read_chunk(stream: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let bad = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
    let length = usize::from_str_radix(line.trim_end(), 16).map_err(bad)?;
    let mut chunk = vec![0; length + 2];
    stream.read_exact(&mut chunk)?;
    chunk.truncate(length);
    Ok((length > 0).then_some(chunk))
}

/// A watch over a connection of its own.
pub(crate) struct Watch {
    stream: BufReader<TcpStream>,
    pending: Vec<u8>,
}

impl Watch {
    pub(crate) fn open(address: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("settable");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut stream = BufReader::new(stream);
        let (status, _, _) = read_head(&mut stream).expect("an answer");
        assert_eq!(status, 200, "{path}");
        Self { stream, pending: Vec::new() }
    }

    /// The next event; `None` when the server ends the watch.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event"));
            }
            let chunk = read_chunk(&mut self.stream).ok()??;
            self.pending.extend_from_slice(&chunk);
        }
    }
}

/// Tries until something is there, for as long as a slow machine may need.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < give_up, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name}, "data": {"value": value},
    })
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
