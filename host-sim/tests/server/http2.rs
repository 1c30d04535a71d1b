//! HTTP/2 as a small device sees it: windows, records, pings, and GOAWAY.

use std::io::{Read, Write};
use std::net::TcpStream as BlockingStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::support::{CONFIG_MAPS, PATIENCE, Server, config_map};

/// What a device has room for.
const WINDOW: usize = 4096;

/// All ConfigMaps but the one that every namespace has.
const OURS: &str =
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name!%3Dkube-root-ca.crt";

/// Frames or records: what of their heads tells how they are.
#[derive(Clone, Copy)]
enum Units {
    Frames,
    Records,
}

/// A frame or a record: its type, its flags if it has any, the bytes behind its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    kind: u8,
    flags: u8,
    length: usize,
}

const DATA: u8 = 0;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;

impl Units {
    fn head(self) -> usize {
        match self {
            Self::Frames => 9,
            Self::Records => 5,
        }
    }

    fn unit(self, head: &[u8]) -> Unit {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | usize::from(*byte));
        match self {
            Self::Frames => Unit { kind: head[3], flags: head[4], length: number(&head[..3]) },
            Self::Records => Unit { kind: head[0], flags: 0, length: number(&head[3..5]) },
        }
    }
}

/// A stream that takes note of what comes in.
struct Noting<S> {
    stream: S,
    units: Units,
    noted: watch::Sender<Vec<Unit>>,
    head: Vec<u8>,
    left: usize,
}

impl<S> Noting<S> {
    fn new(stream: S, units: Units) -> (Self, watch::Receiver<Vec<Unit>>) {
        let (noted, notes) = watch::channel(Vec::new());
        (Self { stream, units, noted, head: Vec::new(), left: 0 }, notes)
    }

    fn note(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.left > 0 {
                self.left -= 1;
                continue;
            }
            self.head.push(*byte);
            if self.head.len() == self.units.head() {
                let unit = self.units.unit(&self.head);
                self.head.clear();
                self.left = unit.length;
                self.noted.send_modify(|noted| noted.push(unit));
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noting<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note(&buffer.filled()[before..]);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noting<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A connection with the windows of a device.
struct Device {
    requests: SendRequest<Bytes>,
    frames: watch::Receiver<Vec<Unit>>,
    token: Option<String>,
    /// How the connection ended.
    end: JoinHandle<Result<(), h2::Error>>,
}

impl Device {
    async fn over<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (stream, frames) = Noting::new(stream, Units::Frames);
        let mut builder = Builder::new();
        builder.initial_window_size(WINDOW as u32).enable_push(false);
        let (requests, connection) = builder.handshake(stream).await.expect("HTTP/2");
        Self { requests, frames, token: None, end: tokio::spawn(connection) }
    }

    async fn connect(server: &Server) -> Self {
        Self::over(TcpStream::connect(&server.address).await.expect("connects")).await
    }

    async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<RecvStream, h2::Error> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(()).expect("a request");
        let (response, mut upload) = self.requests.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            upload.send_data(Bytes::copy_from_slice(body.as_bytes()), true)?;
        }
        let response = response.await?;
        assert!(response.status().is_success(), "{method} {path}: {}", response.status());
        Ok(response.into_body())
    }

    async fn watch(&mut self) -> Watch {
        let path = format!("{OURS}&watch=1");
        let stream = self.ask("GET", &path, "").await.expect("a watch");
        Watch { stream, pending: Vec::new() }
    }

    async fn list(&mut self) -> Value {
        let mut body = self.ask("GET", OURS, "").await.expect("an answer");
        let mut text = Vec::new();
        while let Some(bytes) = body.data().await {
            let bytes = bytes.expect("more of it");
            body.flow_control().release_capacity(bytes.len()).expect("taken");
            text.extend_from_slice(&bytes);
        }
        serde_json::from_slice(&text).expect("JSON")
    }

    fn count(&self, is_wanted: impl Fn(&Unit) -> bool) -> usize {
        self.frames.borrow().iter().filter(|unit| is_wanted(unit)).count()
    }

    /// Waits until so many frames have come in.
    async fn wait_for(&mut self, count: usize, is_wanted: impl Fn(&Unit) -> bool) {
        let have_come =
            |frames: &Vec<Unit>| frames.iter().filter(|unit| is_wanted(unit)).count() >= count;
        in_time(self.frames.wait_for(have_come)).await.expect("the connection is open");
    }
}

/// A watch that is read.
struct Watch {
    stream: RecvStream,
    pending: Vec<u8>,
}

impl Watch {
    /// The next event; `None` at the end in good order.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event"));
            }
            let Some(bytes) = self.stream.data().await else {
                assert!(self.pending.is_empty(), "half an event");
                return None;
            };
            let bytes = bytes.expect("the stream is not reset");
            self.stream.flow_control().release_capacity(bytes.len()).expect("taken");
            self.pending.extend_from_slice(&bytes);
        }
    }
}

/// What a test does has to come to its end.
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it never ends")
}

fn connector(kubeconfig: &Path) -> (TlsConnector, String) {
    use base64::Engine;
    let text = std::fs::read_to_string(kubeconfig).expect("written");
    let config: Value = serde_json::from_str(&text).expect("JSON");
    let pem = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
    let pem = base64::engine::general_purpose::STANDARD.decode(pem.expect("PEM")).expect("base64");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("PEM")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config_of_client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config_of_client.alpn_protocols = vec![b"h2".to_vec()];
    let token = config["users"][0]["user"]["token"].as_str().expect("a token").to_owned();
    (TlsConnector::from(Arc::new(config_of_client)), token)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_windows_are_filled_and_bound_the_records_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let server =
        Server::start(&["--secure", "--write-kubeconfig", kubeconfig.to_str().expect("UTF-8")]);
    let (connector, token) = connector(&kubeconfig);
    let stream = TcpStream::connect(&server.address).await.expect("connects");
    let (stream, records) = Noting::new(stream, Units::Records);
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let stream = in_time(connector.connect(name, stream)).await.expect("TLS");
    let mut device = in_time(Device::over(stream)).await;
    device.token = Some(token);
    for number in 0..20 {
        let body = config_map(&format!("c-{number}"), &"x".repeat(10_000)).to_string();
        drop(in_time(device.ask("POST", CONFIG_MAPS, &body)).await.expect("created"));
    }
    let before = device.frames.borrow().len();
    // Several streams at once, each with a window of its own.
    let mut watches = Vec::new();
    for _ in 0..5 {
        watches.push(in_time(device.watch()).await);
    }
    let list = in_time(device.list()).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(20));
    for watch in &mut watches {
        for _ in 0..20 {
            assert_eq!(in_time(watch.next()).await.expect("an event")["type"], "ADDED");
        }
    }
    let frames = device.frames.borrow()[before..].to_vec();
    let data = frames.iter().filter(|unit| unit.kind == DATA).map(|unit| unit.length);
    let data: Vec<usize> = data.collect();
    let total: usize = data.iter().sum();
    assert!(total > 6 * 20 * 10_000, "{total}");
    assert!(data.iter().all(|length| *length <= WINDOW), "{data:?}");
    // The client gives back half a window at a time: that is what frames have, but for last pieces.
    assert!(total / data.len() > WINDOW / 4, "{} frames for {total} bytes", data.len());
    let records = records.borrow();
    let largest = records.iter().map(|record| record.length).max().expect("records");
    // A frame that fills a window goes out by itself, but for small ones that waited beside it.
    assert!(largest <= 2 * WINDOW, "a record of {largest} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_at_once_and_goaway_ends_no_watch() {
    let server = Server::start(&["--goaway-chance", "1"]);
    let mut device = Device::connect(&server).await;
    let mut watch = in_time(device.watch()).await;
    device.wait_for(1, |unit| unit.kind == GOAWAY).await;
    let refused = in_time(device.ask("GET", CONFIG_MAPS, "")).await;
    assert!(refused.is_err(), "a request after GOAWAY was answered");
    // HTTP/1.1 has no GOAWAY: this connection stays. And nothing but the event makes the watch go on.
    let mut client = server.client();
    for number in 0..5 {
        let name = format!("c-{number}");
        assert_eq!(client.post(CONFIG_MAPS, &config_map(&name, "1")).0, 201);
        let event = in_time(watch.next()).await.expect("an event");
        assert_eq!(event["object"]["metadata"]["name"], *name);
    }
    // With the last stream the connection ends, in good order.
    drop(watch);
    in_time(device.end).await.expect("no panic").expect("no error");

    // One that is asked once and waits for the answer hears it.
    let mut device = Device::connect(&server).await;
    assert_eq!(in_time(device.list()).await["items"].as_array().map(Vec::len), Some(5));
    in_time(device.end).await.expect("no panic").expect("no error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_stop_ends_watches_and_says_goaway() {
    let server = Server::start(&[]);
    let mut device = Device::connect(&server).await;
    let mut watch = in_time(device.watch()).await;
    assert_eq!(device.count(|unit| unit.kind == GOAWAY), 0);
    tokio::task::spawn_blocking(|| server.interrupt()).await.expect("no panic");
    assert_eq!(in_time(watch.next()).await, None);
    assert!(device.count(|unit| unit.kind == GOAWAY) > 0);
    let end = in_time(device.end).await.expect("no panic");
    assert!(end.is_ok() || end.is_err_and(|error| error.reason() == Some(Reason::NO_ERROR)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_no_ping_has_gone() {
    // Half of that is what an answer may take: a busy machine may need some of it.
    let server = Server::start(&["--request-timeout", "20s"]);
    let mut device = Device::connect(&server).await;
    let mut watch = in_time(device.watch()).await;

    // One that takes everything and says nothing any more: preface, settings, and a request.
    let mut silent = BlockingStream::connect(&server.address).expect("connects");
    silent.set_read_timeout(Some(PATIENCE)).expect("settable");
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let head = b"\x82\x86\x84\x01\x09localhost";
    let request = [0, 0, head.len() as u8, 1, 5, 0, 0, 0, 1];
    let hello = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings, &request, head];
    silent.write_all(&hello.concat()).expect("sent");
    let heard = tokio::task::spawn_blocking(move || {
        let mut heard = Vec::new();
        // It is cut off, with a reset or without.
        let _ = silent.read_to_end(&mut heard);
        heard
    });
    let heard = in_time(heard).await.expect("no panic");
    let (mut noting, frames) = Noting::new((), Units::Frames);
    noting.note(&heard);
    let is_ping = |unit: &Unit| unit.kind == PING && unit.flags & ACK == 0;
    let frames = frames.borrow().clone();
    assert!(frames.iter().any(|unit| unit.kind == DATA), "it was answered: {frames:?}");
    assert!(frames.iter().any(is_ping), "{frames:?}");

    // One that answers stays, however long nothing happens.
    device.wait_for(3, is_ping).await;
    assert_eq!(server.client().post(CONFIG_MAPS, &config_map("c", "1")).0, 201);
    assert_eq!(in_time(watch.next()).await.expect("an event")["type"], "ADDED");
}
