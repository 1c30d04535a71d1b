//! The peer of the driver's test cases: an HTTP/1.1 server that misbehaves on request.
//!
//! | target | what happens |
//! |---|---|
//! | `/echo` | the request comes back as one line of text |
//! | `/turn` | how many requests this connection has seen |
//! | `/turn-then-close` | the same, then the connection is closed, as announced |
//! | `/turn-then-leave` | the same, then the connection is closed without notice |
//! | `/count` | how many bytes the request's body had |
//! | `/stream?bytes=&chunk=&fixed=&then=` | a patterned body that ends as told |
//! | `/huge-head?bytes=` | a head of that size |
//! | `/mute`, `/not-http` | no answer; an answer that is not HTTP |
//! | `/reset-after?bytes=` | the connection is reset after so much of the request's body |
//! | `/outage-when-streams-are-held?streams=&ms=` | nothing is left of the server for a while |

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use picokube_first_light::pattern;
use socket2::{Domain, SockRef, Socket, Type};

use crate::port::Port;

/// A running peer. It stops when dropped.
pub struct Peer {
    shared: Arc<Shared>,
    port: Port,
    black_hole: BlackHole,
}

impl Peer {
    /// Starts one on a free port of the loopback.
    pub fn start() -> io::Result<Self> {
        let port = Port::free()?;
        let listener = TcpListener::bind(port.address())?;
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        thread::spawn(move || serve(listener, &serving));
        Ok(Self { shared, port, black_hole: BlackHole::open()? })
    }

    /// Where it serves HTTP.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// A port at which connections are neither accepted nor refused.
    pub fn black_hole_port(&self) -> u16 {
        self.black_hole.port
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.state().stopped = true;
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address());
        self.shared.close_all();
    }
}

/// A listener whose queue is full: the kernel drops every further attempt to connect.
pub struct BlackHole {
    /// Where it listens.
    pub port: u16,
    _listener: Socket,
    _waiting: Vec<Socket>,
}

impl BlackHole {
    /// Opens one on a free port of the loopback.
    pub fn open() -> io::Result<Self> {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        listener.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into())?;
        listener.listen(0)?;
        let address = listener.local_addr()?;
        let port = address.as_socket().map_or(0, |address| address.port());
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            // "In progress" is all that is wanted.
            let _ = socket.connect(&address);
            waiting.push(socket);
        }
        Ok(Self { port, _listener: listener, _waiting: waiting })
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    connections: Vec<TcpStream>,
    /// Streams that wait for the outage.
    held: usize,
    /// How long the outage that is being asked for lasts.
    outage: Option<Duration>,
    /// The outage has been, so streams are held no more.
    outage_over: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What a killed process leaves: every connection ends at once.
    fn close_all(&self) {
        for connection in self.state().connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        let guard = self.state();
        self.changed.wait_while(guard, condition).unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn serve(mut listener: TcpListener, shared: &Arc<Shared>) {
    let Ok(address) = listener.local_addr() else { return };
    loop {
        let accepted = listener.accept();
        if shared.state().stopped {
            return;
        }
        let outage = shared.state().outage.take();
        if let Some(length) = outage {
            drop(listener);
            shared.close_all();
            thread::sleep(length);
            {
                let mut state = shared.state();
                state.held = 0;
                state.outage_over = true;
            }
            shared.changed.notify_all();
            listener = match listen_again(address) {
                Ok(listener) => listener,
                Err(_) => return,
            };
            continue;
        }
        let Ok((stream, _)) = accepted else { continue };
        if let Ok(clone) = stream.try_clone() {
            shared.state().connections.push(clone);
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A client that goes away, or is sent away, ends its thread: nothing to report.
            let _ = Conversation::new(stream, &shared).and_then(|mut talk| talk.run());
        });
    }
}

/// Takes the old port back while its last connections are still in TIME-WAIT.
pub fn listen_again(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(64)?;
    Ok(socket.into())
}

/// How a `/stream` ends (`then=`).
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// As it should.
    End,
    /// As it should, with a short pause before every chunk.
    Gap,
    /// The connection is closed between two chunks, half-way.
    BetweenChunks,
    /// The connection is closed in the middle of a chunk.
    InsideChunk,
    /// A chunk has a length that is no number.
    BadChunk,
    /// The connection is reset half-way.
    Reset,
    /// Nothing more comes half-way, and the connection stays open.
    Stall,
    /// Half-way, the rest begins to come byte by byte, and never ends.
    Drip,
    /// Waits half-way until the outage has been, after which streams end as they should.
    Hold,
}

impl Then {
    fn parse(text: &str) -> Self {
        match text {
            "gap" => Self::Gap,
            "between-chunks" => Self::BetweenChunks,
            "inside-chunk" => Self::InsideChunk,
            "bad-chunk" => Self::BadChunk,
            "reset" => Self::Reset,
            "stall" => Self::Stall,
            "drip" => Self::Drip,
            "hold" => Self::Hold,
            _ => Self::End,
        }
    }
}

struct Call {
    method: String,
    target: String,
    headers: HashMap<String, String>,
}

impl Call {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn query(&self, name: &str) -> &str {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    fn number(&self, name: &str) -> usize {
        self.query(name).parse().unwrap_or(0)
    }
}

/// One connection.
struct Conversation<'s> {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    turn: usize,
    shared: &'s Shared,
}

/// The connection is over; how it ended has been taken care of.
fn over() -> io::Error {
    ErrorKind::ConnectionAborted.into()
}

impl<'s> Conversation<'s> {
    fn new(stream: TcpStream, shared: &'s Shared) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Self { reader, writer: stream, turn: 0, shared })
    }

    fn run(&mut self) -> io::Result<()> {
        while let Some(call) = self.read_head()? {
            self.turn += 1;
            self.answer(&call)?;
        }
        Ok(())
    }

    fn read_head(&mut self) -> io::Result<Option<Call>> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(ErrorKind::InvalidData.into());
        };
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        Ok(Some(Call { method, target, headers }))
    }

    fn read_body(&mut self, call: &Call) -> io::Result<Vec<u8>> {
        let mut body = vec![0; call.header("content-length").parse().unwrap_or(0)];
        self.reader.read_exact(&mut body)?;
        Ok(body)
    }

    fn answer(&mut self, call: &Call) -> io::Result<()> {
        let path = call.target.split('?').next().unwrap_or_default();
        if path == "/reset-after" {
            let mut part = vec![0; call.number("bytes")];
            self.reader.read_exact(&mut part)?;
            return self.reset();
        }
        let body = self.read_body(call)?;
        match path {
            "/echo" => {
                let Call { method, target, .. } = call;
                let turn = self.turn;
                let authorization = call.header("authorization");
                let kind = call.header("content-type");
                let custom = call.header("x-picokube");
                let body = String::from_utf8_lossy(&body);
                self.reply(&format!(
                    "{method} {target} turn={turn} authorization={authorization} type={kind} \
                     x-picokube={custom} body={body}"
                ))
            }
            "/turn" => self.reply(&self.turn.to_string()),
            "/turn-then-leave" => {
                self.reply(&self.turn.to_string())?;
                self.writer.shutdown(Shutdown::Both)?;
                Err(over())
            }
            "/turn-then-close" => {
                self.reply_with("Connection: close\r\n", &self.turn.to_string())?;
                self.writer.shutdown(Shutdown::Both)?;
                Err(over())
            }
            "/count" => self.reply(&body.len().to_string()),
            "/stream" => self.stream(call),
            "/huge-head" => {
                let filler = "x".repeat(call.number("bytes"));
                self.reply_with(&format!("X-Filler: {filler}\r\n"), "")
            }
            "/mute" => self.until_the_client_leaves(),
            "/not-http" => {
                self.writer.write_all(b"220 mail.example ESMTP ready\r\n\r\n")?;
                self.until_the_client_leaves()
            }
            "/outage-when-streams-are-held" => self.outage(call),
            _ => self.reply("no such test"),
        }
    }

    fn reply(&mut self, body: &str) -> io::Result<()> {
        self.reply_with("", body)
    }

    fn reply_with(&mut self, headers: &str, body: &str) -> io::Result<()> {
        let len = body.len();
        let head = format!("{HEAD}{headers}Content-Length: {len}\r\n\r\n");
        self.writer.write_all(format!("{head}{body}").as_bytes())
    }

    fn stream(&mut self, call: &Call) -> io::Result<()> {
        let total = call.number("bytes");
        let step = call.number("chunk").max(1);
        let then = Then::parse(call.query("then"));
        let fixed = call.number("fixed") == 1;
        let bytes: Vec<u8> = (0..total).map(pattern).collect();
        if fixed {
            write!(self.writer, "{HEAD}Content-Length: {total}\r\n\r\n")?;
            if then != Then::End {
                self.writer.write_all(bytes.get(..total / 2).unwrap_or_default())?;
                return self.misbehave(then);
            }
            return self.writer.write_all(&bytes);
        }
        write!(self.writer, "{HEAD}Transfer-Encoding: chunked\r\n\r\n")?;
        let half = total / 2 / step;
        // Chunks leave in batches, as they would from a busy server.
        let mut batch = Vec::new();
        for (n, chunk) in bytes.chunks(step).enumerate() {
            if n == half && !matches!(then, Then::End | Then::Gap) {
                self.writer.write_all(&batch)?;
                batch.clear();
                self.misbehave(then)?;
            }
            if then == Then::Gap {
                self.writer.write_all(&batch)?;
                batch.clear();
                thread::sleep(Duration::from_millis(2));
            }
            write!(batch, "{:x}\r\n", chunk.len())?;
            batch.extend_from_slice(chunk);
            batch.extend_from_slice(b"\r\n");
        }
        batch.extend_from_slice(b"0\r\n\r\n");
        self.writer.write_all(&batch)
    }

    fn misbehave(&mut self, then: Then) -> io::Result<()> {
        match then {
            Then::End | Then::Gap => Ok(()),
            Then::BetweenChunks => {
                self.writer.shutdown(Shutdown::Both)?;
                Err(over())
            }
            Then::InsideChunk => {
                self.writer.write_all(b"400\r\ncut off here")?;
                self.writer.shutdown(Shutdown::Both)?;
                Err(over())
            }
            Then::BadChunk => {
                self.writer.write_all(b"lots\r\n")?;
                self.until_the_client_leaves()
            }
            Then::Reset => {
                // QEMU's network passes a reset on as such only if it has passed all data on.
                thread::sleep(Duration::from_millis(100));
                self.reset()
            }
            Then::Stall => self.until_the_client_leaves(),
            Then::Drip => loop {
                // A chunk of one byte. Of a body with a length, it is a few of many.
                self.writer.write_all(b"1\r\nx\r\n")?;
                thread::sleep(Duration::from_millis(50));
            },
            Then::Hold => {
                self.shared.state().held += 1;
                self.shared.changed.notify_all();
                drop(self.shared.wait_while(|state| !state.outage_over && !state.stopped));
                Ok(())
            }
        }
    }

    fn reset(&mut self) -> io::Result<()> {
        // A close with a linger time of zero makes the kernel send RST. The list of connections
        // holds a second handle, which would keep the socket open.
        SockRef::from(&self.writer).set_linger(Some(Duration::ZERO))?;
        let own = self.writer.peer_addr()?;
        self.shared.state().connections.retain(|other| other.peer_addr().ok() != Some(own));
        Err(over())
    }

    fn outage(&mut self, call: &Call) -> io::Result<()> {
        let streams = call.number("streams");
        drop(self.shared.wait_while(|state| state.held < streams && !state.stopped));
        self.shared.state().outage = Some(Duration::from_millis(call.number("ms") as u64));
        // The thread that accepts connections carries it out; a connection wakes it.
        let _ = TcpStream::connect(self.writer.local_addr()?);
        self.until_the_client_leaves()
    }

    fn until_the_client_leaves(&mut self) -> io::Result<()> {
        io::copy(&mut self.reader, &mut io::sink())?;
        Err(over())
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nDate: Mon, 16 Nov 2026 12:00:00 GMT\r\n\
                    Content-Type: text/plain\r\n";
