//! The peer of the driver's test cases, over HTTPS: hyper's HTTP/2 on rustls, which misbehaves on request.
//!
//! It knows the targets of [`peer`](crate::peer), but for those that only HTTP/1.1 has a meaning for, and
//!
//! | target | what happens |
//! |---|---|
//! | `/turn-then-close` | the answer to `/turn`, then a GOAWAY: what is under way goes on |
//! | `/turn-then-leave` | the same; the next request finds the connection closed |
//! | `/refuse?times=` | so many times REFUSED_STREAM, then the answer to `/count` |
//! | `/give-up` | RST_STREAM with INTERNAL_ERROR |
//! | `/garbage` | bytes that are no frames |

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use picokube_first_light::pattern;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, server::WebPkiClientVerifier};
use socket2::{SockRef, Socket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::peer::{BlackHole, listen_again};
use crate::port::Port;

/// What a peer is like.
#[derive(Debug, Clone)]
pub struct Options {
    /// What its certificate is for.
    pub name: String,
    /// The protocols it speaks (ALPN).
    pub protocols: Vec<Vec<u8>>,
    /// When its certificate is over, as a year.
    pub until: i32,
    /// Whether it asks for a client certificate that its own authority has issued.
    pub asks_for_certificate: bool,
}

impl Default for Options {
    fn default() -> Self {
        let protocols = vec![b"h2".to_vec()];
        let name = "peer.test".to_owned();
        Self { name, protocols, until: 2040, asks_for_certificate: false }
    }
}

/// A running peer. It stops when dropped.
pub struct Peer {
    port: Port,
    /// The certificate of its authority, in DER.
    pub authority: Vec<u8>,
    /// A client certificate of that authority, in DER, and its key, a number of P-256.
    pub client: (Vec<u8>, [u8; 32]),
    /// What it has seen.
    pub seen: Arc<Seen>,
    black_hole: BlackHole,
    _runtime: tokio::runtime::Runtime,
}

/// What a peer has seen.
#[derive(Default)]
pub struct Seen {
    /// TCP connections.
    pub connections: AtomicUsize,
    /// Handshakes that came to their end with a full proof.
    pub full_handshakes: AtomicUsize,
    /// Handshakes by a ticket.
    pub resumed_handshakes: AtomicUsize,
    /// Requests that the client has given up, with their stream or with the connection.
    pub given_up: AtomicUsize,
    /// Requests that it has looked at, by path.
    pub requests: Mutex<HashMap<String, usize>>,
    refused: AtomicUsize,
}

impl Seen {
    /// How many requests for `path` it has answered or let hang.
    pub fn requests_for(&self, path: &str) -> usize {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.get(path).copied().unwrap_or(0)
    }
}

impl Peer {
    /// Starts one on a free port of the loopback.
    pub fn start(options: &Options) -> anyhow::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (config, authority, client) = certificates(options)?;
        let port = Port::free()?;
        let listener = runtime.block_on(TcpListener::bind(port.address()))?;
        let seen = Arc::<Seen>::default();
        runtime.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&seen)));
        let black_hole = BlackHole::open()?;
        Ok(Self { port, authority, client, seen, black_hole, _runtime: runtime })
    }

    /// Where it serves HTTPS.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// A port at which connections are neither accepted nor refused.
    pub fn black_hole_port(&self) -> u16 {
        self.black_hole.port
    }
}

pub(crate) type Client = (Vec<u8>, [u8; 32]);

/// A server's configuration, the certificate of its authority, and a client of that.
pub(crate) fn certificates(options: &Options) -> anyhow::Result<(ServerConfig, Vec<u8>, Client)> {
    let mut authority = CertificateParams::new([])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.not_after = rcgen::date_time_ymd(2040, 1, 1);
    let key = KeyPair::generate()?;
    let own = authority.self_signed(&key)?;
    let issuer = Issuer::new(authority, key);
    let issue = |mut params: CertificateParams, usage| -> anyhow::Result<_> {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(options.until, 1, 1);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &issuer)?, key))
    };
    let params = CertificateParams::new([options.name.clone()])?;
    let (server, server_key) = issue(params, ExtendedKeyUsagePurpose::ServerAuth)?;
    let (client, client_key) =
        issue(CertificateParams::new([])?, ExtendedKeyUsagePurpose::ClientAuth)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(own.der().clone())?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let builder = match options.asks_for_certificate {
        false => builder.with_no_client_auth(),
        true => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?,
        ),
    };
    let key = PrivatePkcs8KeyDer::from(server_key.serialize_der()).into();
    let mut config = builder.with_single_cert(vec![server.der().clone()], key)?;
    config.alpn_protocols = options.protocols.clone();
    // In PKCS #8, the private number follows the head of an octet string of 32 bytes.
    let der = client_key.serialize_der();
    let at = der.windows(2).position(|bytes| bytes == [4, 32]).unwrap_or(0);
    let number = der[at + 2..at + 34].try_into()?;
    Ok((config, own.der().to_vec(), (client.der().to_vec(), number)))
}

/// What the conversations share.
struct Shared {
    seen: Arc<Seen>,
    held: watch::Sender<usize>,
    /// How long the outage that is asked for lasts.
    outage: watch::Sender<Duration>,
    outage_is_over: watch::Sender<bool>,
}

async fn serve(mut listener: TcpListener, acceptor: TlsAcceptor, seen: Arc<Seen>) {
    let Ok(address) = listener.local_addr() else { return };
    let shared = Arc::new(Shared {
        seen,
        held: watch::Sender::new(0),
        outage: watch::Sender::new(Duration::ZERO),
        outage_is_over: watch::Sender::new(false),
    });
    let mut outages = shared.outage.subscribe();
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                shared.seen.connections.fetch_add(1, Ordering::SeqCst);
                conversations.spawn(converse(stream, acceptor.clone(), Arc::clone(&shared)));
            }
            Ok(()) = outages.changed() => {
                let length = *outages.borrow_and_update();
                drop(listener);
                conversations.shutdown().await;
                tokio::time::sleep(length).await;
                shared.outage_is_over.send_replace(true);
                listener = match listen_again(address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    TcpListener::from_std(listener)
                }) {
                    Ok(listener) => listener,
                    Err(_) => return,
                };
            }
        }
    }
}

/// A connection whose bytes turn into garbage when that is asked for.
struct Wire {
    stream: TlsStream<TcpStream>,
    garbage: Arc<AtomicBool>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let garbage = vec![b'?'; bytes.len()];
        let bytes = if self.garbage.load(Ordering::SeqCst) { &garbage } else { bytes };
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// One connection.
struct Talk {
    shared: Arc<Shared>,
    socket: Socket,
    garbage: Arc<AtomicBool>,
    turn: AtomicUsize,
    is_leaving: AtomicBool,
    /// Everything of it is to be closed at once.
    close: Notify,
}

async fn converse(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let Ok(socket) = SockRef::from(&stream).try_clone() else { return };
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let handshakes = match stream.get_ref().1.handshake_kind() {
        Some(HandshakeKind::Resumed) => &shared.seen.resumed_handshakes,
        _ => &shared.seen.full_handshakes,
    };
    handshakes.fetch_add(1, Ordering::SeqCst);
    let garbage = Arc::<AtomicBool>::default();
    let wire = Wire { stream, garbage: Arc::clone(&garbage) };
    let turn = AtomicUsize::new(0);
    let (is_leaving, close) = (AtomicBool::new(false), Notify::new());
    let talk = Arc::new(Talk { shared, socket, garbage, turn, is_leaving, close });
    let Ok(mut connection) = h2::server::handshake(wire).await else { return };
    let mut answers = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = talk.close.notified() => return,
        };
        let Some(Ok((request, respond))) = accepted else { break };
        if talk.is_leaving.load(Ordering::SeqCst) {
            let _ = talk.socket.shutdown(Shutdown::Both);
            return;
        }
        talk.turn.fetch_add(1, Ordering::SeqCst);
        match request.uri().path() {
            "/turn-then-close" => connection.graceful_shutdown(),
            "/turn-then-leave" => talk.is_leaving.store(true, Ordering::SeqCst),
            _ => {}
        }
        answers.spawn(answer(Arc::clone(&talk), request, respond));
    }
    // What is under way is given up with the connection.
    answers.abort_all();
}

struct Call {
    method: String,
    target: String,
    headers: HeaderMap,
}

impl Call {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn query(&self, name: &str) -> &str {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    fn number(&self, name: &str) -> usize {
        self.query(name).parse().unwrap_or(0)
    }
}

async fn answer(talk: Arc<Talk>, request: Request<h2::RecvStream>, respond: SendResponse<Bytes>) {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let path = parts.uri.path().to_owned();
    if let Ok(mut requests) = talk.shared.seen.requests.lock() {
        *requests.entry(path.clone()).or_default() += 1;
    }
    let call = Call { method: parts.method.to_string(), target, headers: parts.headers };
    if talk.respond(&path, &call, body, respond).await.is_err() {
        talk.shared.seen.given_up.fetch_add(1, Ordering::SeqCst);
    }
}

impl Talk {
    async fn respond(
        &self,
        path: &str,
        call: &Call,
        mut body: h2::RecvStream,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let turn = self.turn.load(Ordering::SeqCst);
        let limit = if path == "/reset-after" { call.number("bytes") } else { usize::MAX };
        let seen = &self.shared.seen;
        if path == "/refuse" && seen.refused.fetch_add(1, Ordering::SeqCst) < call.number("times") {
            respond.send_reset(h2::Reason::REFUSED_STREAM);
            return Ok(());
        }
        let mut bytes = Vec::new();
        while bytes.len() < limit
            && let Some(piece) = body.data().await
        {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            bytes.extend_from_slice(&piece);
        }
        let text = match path {
            "/echo" => {
                let Call { method, target, .. } = call;
                let authorization = call.header("authorization");
                let kind = call.header("content-type");
                let custom = call.header("x-picokube");
                let body = String::from_utf8_lossy(&bytes);
                format!(
                    "{method} {target} turn={turn} authorization={authorization} type={kind} \
                     x-picokube={custom} body={body}"
                )
            }
            "/turn" | "/turn-then-close" | "/turn-then-leave" => turn.to_string(),
            "/count" | "/refuse" => bytes.len().to_string(),
            "/stream" => return self.stream(call, respond).await,
            "/mute" => return self.until_reset(|context| respond.poll_reset(context)).await,
            "/give-up" => {
                respond.send_reset(h2::Reason::INTERNAL_ERROR);
                return Ok(());
            }
            "/garbage" => {
                self.garbage.store(true, Ordering::SeqCst);
                String::new()
            }
            "/reset-after" => return self.reset().await,
            "/outage-when-streams-are-held" => {
                let streams = call.number("streams");
                let _ = self.shared.held.subscribe().wait_for(|held| *held >= streams).await;
                let length = Duration::from_millis(call.number("ms") as u64);
                self.shared.outage.send_replace(length);
                return pending().await;
            }
            _ => "no such test".to_owned(),
        };
        let mut send = respond.send_response(head(), false)?;
        send.send_data(text.into(), true)
    }

    async fn stream(&self, call: &Call, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
        let total = call.number("bytes");
        let step = call.number("chunk").max(1);
        let mut head = head();
        if call.number("fixed") == 1 {
            head.headers_mut().insert("content-length", total.into());
        }
        let mut send = respond.send_response(head, false)?;
        let bytes: Vec<u8> = (0..total).map(pattern).collect();
        let step = if call.number("fixed") == 1 { total.max(1) / 2 + 1 } else { step };
        for (n, chunk) in bytes.chunks(step).enumerate() {
            let is_half = n == total.div_ceil(step) / 2;
            match call.query("then") {
                "between-chunks" if is_half => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let _ = self.socket.shutdown(Shutdown::Both);
                    return pending().await;
                }
                "reset" if is_half => return self.reset().await,
                "stall" if is_half => {
                    return self.until_reset(|context| send.poll_reset(context)).await;
                }
                "drip" if is_half => loop {
                    send_all(&mut send, &chunk[..1]).await?;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                },
                "hold" if is_half && !*self.shared.outage_is_over.borrow() => {
                    self.shared.held.send_modify(|held| *held += 1);
                    return pending().await;
                }
                "gap" => tokio::time::sleep(Duration::from_millis(2)).await,
                _ => {}
            }
            send_all(&mut send, chunk).await?;
        }
        send.send_data(Bytes::new(), true)
    }

    async fn until_reset(
        &self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<h2::Reason, h2::Error>>,
    ) -> Result<(), h2::Error> {
        Err(poll_fn(&mut poll).await?.into())
    }

    async fn reset(&self) -> Result<(), h2::Error> {
        // As with the other peer: what was sent before is to arrive.
        tokio::time::sleep(Duration::from_millis(100)).await;
        // With a linger time of zero, closing makes the kernel send RST.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
        self.close.notify_one();
        // Ending here would give the stream up, which may be told before the connection closes.
        pending().await
    }
}

async fn send_all(send: &mut h2::SendStream<Bytes>, bytes: &[u8]) -> Result<(), h2::Error> {
    let mut left = Bytes::copy_from_slice(bytes);
    while !left.is_empty() {
        send.reserve_capacity(left.len());
        let room = match poll_fn(|context| send.poll_capacity(context)).await {
            Some(room) => room?,
            None => return Err(h2::Reason::CANCEL.into()),
        };
        send.send_data(left.split_to(room.min(left.len())), false)?;
    }
    Ok(())
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    let date = http::HeaderValue::from_static("Mon, 16 Nov 2026 12:00:00 GMT");
    response.headers_mut().insert("date", date);
    response
}
