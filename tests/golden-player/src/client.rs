//! A small client for an API server, over HTTP or in the same process.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::Method;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::direct::Direct;
#[cfg(feature = "over-http")]
use super::over_http::{Http, HttpLines};

/// No request of a scenario takes so long, on however busy a machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How often a request is tried when the server is busy or a connection breaks.
const ATTEMPTS: usize = 5;

pub(super) const JSON: &str = "application/json";

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
    #[cfg(feature = "over-http")]
    Http(Box<Http>),
    Direct(Direct),
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
    #[cfg(feature = "over-http")]
    pub fn new(server: &Server) -> Result<Self> {
        Ok(Self { way: Way::Http(Box::new(Http::new(server)?)) })
    }

    /// A client of a server in the same process.
    pub fn direct(way: Direct) -> Self {
        Self { way: Way::Direct(way) }
    }

    /// The wall clock, which is about that of the server.
    pub fn wall(&self) -> SystemTime {
        match &self.way {
            #[cfg(feature = "over-http")]
            Way::Http(_) => SystemTime::now(),
            Way::Direct(direct) => direct.wall(),
        }
    }

    /// Whether time passes by itself.
    pub fn is_in_real_time(&self) -> bool {
        !matches!(self.way, Way::Direct(_))
    }

    /// Tells whether the controllers run and know what there is, where anybody knows.
    pub fn disturbances(&self) -> Option<watch::Receiver<bool>> {
        match &self.way {
            #[cfg(feature = "over-http")]
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
        let source = match &self.way {
            #[cfg(feature = "over-http")]
            Way::Http(http) => Source::Http(http.stream(path).await?),
            Way::Direct(direct) => Source::Direct(direct.stream(path)?),
        };
        Ok(Lines(source))
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
        let (status, bytes, pause) = match &self.way {
            #[cfg(feature = "over-http")]
            Way::Http(http) => http.exchange(method, path, body).await?,
            Way::Direct(direct) => {
                let (status, bytes) = direct.exchange(method, path, body).await?;
                (status, bytes, None)
            }
        };
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

/// A response that is read line by line.
#[derive(Debug)]
pub struct Lines(Source);

#[derive(Debug)]
enum Source {
    #[cfg(feature = "over-http")]
    Http(HttpLines),
    Direct(mpsc::UnboundedReceiver<Bytes>),
}

impl Lines {
    /// The next line, read as JSON; none when the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        match &mut self.0 {
            #[cfg(feature = "over-http")]
            Source::Http(lines) => lines.next().await,
            Source::Direct(lines) => {
                let line = lines.recv().await;
                Ok(line.map(|line| serde_json::from_slice(&line)).transpose()?)
            }
        }
    }
}
