//! A small client for an API server, over HTTP or in the same process.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::direct::Direct;

/// No request of a scenario takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a request is tried when the server is busy or a connection breaks.
const ATTEMPTS: usize = 5;

const JSON: &str = "application/json";

/// Where an API server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Such as `http://127.0.0.1:8001`.
    pub base: String,
    /// The bearer token it wants to see, if any.
    pub token: Option<String>,
}

impl Server {
    /// A server that lets everybody in.
    pub fn new(base: impl Into<String>) -> Self {
        Self { base: base.into(), token: None }
    }
}

/// Talks to one API server.
#[derive(Clone, Debug)]
pub struct Client {
    way: Way,
}

/// How the server is reached.
#[derive(Clone, Debug)]
enum Way {
    Http(Box<Http>),
    Direct(Direct),
}

#[derive(Clone, Debug)]
struct Http {
    connections: Connections<HttpConnector, Full<Bytes>>,
    server: Server,
}

/// What a server said.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The object, list or Status; null if there was none.
    pub body: Value,
}

impl Answer {
    /// Whether the server did what it was asked.
    pub fn is_success(&self) -> bool {
        self.status < 300
    }
}

impl Client {
    /// A client of `server`. Connections are made when they are needed.
    pub fn new(server: &Server) -> Result<Self> {
        let base = server.base.trim_end_matches('/');
        ensure!(
            base.starts_with("http://"),
            "{base}: only http:// is spoken; put `kubectl proxy` in front of a server with TLS"
        );
        let server = Server { base: base.to_owned(), ..server.clone() };
        let connections = Connections::builder(TokioExecutor::new()).build_http();
        let way = Way::Http(Box::new(Http { connections, server }));
        Ok(Self { way })
    }

    /// A client of a server in the same process.
    pub fn direct(way: Direct) -> Self {
        Self { way: Way::Direct(way) }
    }

    /// The wall clock, which is about that of the server.
    pub fn wall(&self) -> SystemTime {
        match &self.way {
            Way::Http(_) => SystemTime::now(),
            Way::Direct(direct) => direct.wall(),
        }
    }

    /// Whether time passes by itself.
    pub fn is_in_real_time(&self) -> bool {
        matches!(self.way, Way::Http(_))
    }

    /// Tells whether the controllers run and know what there is, where anybody knows.
    pub fn disturbances(&self) -> Option<watch::Receiver<bool>> {
        match &self.way {
            Way::Http(_) => None,
            Way::Direct(direct) => Some(direct.calm()),
        }
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, None).await
    }

    /// Creates.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::POST, path, Some((body, JSON))).await
    }

    /// Replaces.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::PUT, path, Some((body, JSON))).await
    }

    /// Patches, in the way the content type says.
    pub async fn patch(&self, path: &str, body: &Value, content_type: &str) -> Result<Answer> {
        self.send(Method::PATCH, path, Some((body, content_type))).await
    }

    /// Deletes, with DeleteOptions.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Answer> {
        self.send(Method::DELETE, path, Some((options, JSON))).await
    }

    /// Opens a stream of lines, such as a watch.
    pub async fn stream(&self, path: &str) -> Result<Lines> {
        let http = match &self.way {
            Way::Http(http) => http,
            Way::Direct(direct) => return Ok(Lines(Source::Direct(direct.stream(path)?))),
        };
        let request = http.request(&Method::GET, path, None);
        let response = timeout(PATIENCE, request).await??;
        let status = response.status();
        ensure!(status.is_success(), "GET {path}: {status}");
        Ok(Lines(Source::Http { body: response.into_body(), pending: Vec::new() }))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&Value, &str)>,
    ) -> Result<Answer> {
        let mut attempt = 1;
        loop {
            let answered = timeout(PATIENCE, self.exchange(&method, path, body)).await;
            let what = || format!("{method} {path}");
            match answered.with_context(|| format!("{}: no answer", what()))? {
                Ok((answer, None)) => return Ok(answer),
                Ok((_, Some(wait))) if attempt < ATTEMPTS => sleep(wait).await,
                Ok((answer, Some(_))) => return Ok(answer),
                // Only what the server cannot have acted on twice is safe to send again.
                Err(_) if attempt < ATTEMPTS && method == Method::GET => {}
                Err(error) => return Err(error).with_context(what),
            }
            attempt += 1;
        }
    }

    /// One attempt. A busy server also says when to come again.
    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<(&Value, &str)>,
    ) -> Result<(Answer, Option<Duration>)> {
        let body = match body {
            Some((body, content_type)) => {
                Some((Bytes::from(serde_json::to_vec(body)?), content_type))
            }
            None => None,
        };
        let http = match &self.way {
            Way::Http(http) => http,
            Way::Direct(direct) => {
                let (status, bytes) = direct.exchange(method, path, body).await?;
                return Ok((Answer { status, body: parsed(&bytes) }, None));
            }
        };
        let response = http.request(method, path, body).await?;
        let status = response.status().as_u16();
        let pause = (status == 429).then(|| {
            let seconds = response.headers().get(RETRY_AFTER);
            let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
            Duration::from_secs_f64(seconds.unwrap_or(0.2))
        });
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((Answer { status, body: parsed(&bytes) }, pause))
    }
}

fn parsed(bytes: &[u8]) -> Value {
    match serde_json::from_slice(bytes) {
        Ok(body) => body,
        Err(_) if bytes.is_empty() => Value::Null,
        Err(_) => serde_json::json!({"message": String::from_utf8_lossy(bytes)}),
    }
}

impl Http {
    async fn request(
        &self,
        method: &Method,
        path: &str,
        body: Option<(Bytes, &str)>,
    ) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server.base))
            .header(ACCEPT, JSON)
            .header(USER_AGENT, "picokube-golden");
        if let Some(token) = &self.server.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let bytes = match body {
            Some((bytes, content_type)) => {
                request = request.header(CONTENT_TYPE, content_type);
                bytes
            }
            None => Bytes::new(),
        };
        Ok(self.connections.request(request.body(Full::new(bytes))?).await?)
    }
}

/// A response that is read line by line.
#[derive(Debug)]
pub struct Lines(Source);

#[derive(Debug)]
enum Source {
    Http { body: Incoming, pending: Vec<u8> },
    Direct(mpsc::UnboundedReceiver<Bytes>),
}

impl Lines {
    /// The next line, read as JSON; none when the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        let (body, pending) = match &mut self.0 {
            Source::Http { body, pending } => (body, pending),
            Source::Direct(lines) => {
                let line = lines.recv().await;
                return Ok(line.map(|line| serde_json::from_slice(&line)).transpose()?);
            }
        };
        loop {
            if let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            match body.frame().await {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        pending.extend_from_slice(&data);
                    }
                }
                None if pending.is_empty() => return Ok(None),
                None => bail!("the stream ended in the middle of a line"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_http_are_refused() {
        for base in ["https://127.0.0.1:6443", "127.0.0.1:8001", ""] {
            assert!(Client::new(&Server::new(base)).is_err(), "{base}");
        }
        assert!(Client::new(&Server::new("http://127.0.0.1:8001/")).is_ok());
    }
}
