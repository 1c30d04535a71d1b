//! What a request is answered with.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};
use serde_json::Value;

use crate::api::status::Status;
use crate::store::Entry;

use super::render::Renderer;
use super::watch::Watch;

/// Bytes after which a streamed body makes a chunk of its own.
pub const CHUNK_BYTES: usize = 64 << 10;

const JSON: &str = "application/json";

/// An answer. It may be sent once everything up to `revision` is durable.
#[derive(Debug)]
pub struct Response {
    /// HTTP status code.
    pub status: u16,
    /// The Content-Type header.
    pub content_type: Cow<'static, str>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Body,
    /// The revision that this answer gives away.
    pub revision: u64,
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// All of it.
    Whole(Bytes),
    /// A list that is written out while it is sent.
    List(Box<ListBody>),
    /// A stream of events.
    Watch(Box<Watch>),
}

impl Response {
    /// JSON that is already serialised.
    pub fn json(status: u16, body: Bytes) -> Self {
        Self {
            status,
            content_type: Cow::Borrowed(JSON),
            headers: Vec::new(),
            body: Body::Whole(body),
            revision: 0,
        }
    }

    /// JSON from a value.
    pub fn value(status: u16, value: &Value) -> Self {
        Self::json(status, Bytes::from(serde_json::to_vec(value).unwrap_or_default()))
    }

    /// Plain text.
    pub fn text(status: u16, text: impl Into<Bytes>) -> Self {
        let content_type = Cow::Borrowed("text/plain; charset=utf-8");
        Self { content_type, ..Self::json(status, text.into()) }
    }

    /// The same answer with one more header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same answer with warnings, which kubectl prints.
    pub fn with_warnings(mut self, warnings: &[String]) -> Self {
        for warning in warnings {
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            self.headers.push(("warning", format!("299 - \"{text}\"")));
        }
        self
    }

    /// Its head as HTTP has it, with whatever sends its body.
    pub fn to_http<B>(&self, body: B) -> http::Response<B> {
        let mut http = http::Response::new(body);
        *http.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = http.headers_mut();
        if let Ok(content_type) = HeaderValue::from_str(&self.content_type) {
            headers.insert(header::CONTENT_TYPE, content_type);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        for (name, value) in &self.headers {
            // A warning may quote what a client sent; what no header can carry is left out.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        http
    }

    /// The whole body; for watches nothing, since they have no end.
    pub fn into_bytes(self) -> Bytes {
        match self.body {
            Body::Whole(bytes) => bytes,
            Body::List(mut list) => {
                let mut all = Vec::new();
                while let Some(chunk) = list.next_chunk() {
                    all.extend_from_slice(&chunk);
                }
                Bytes::from(all)
            }
            Body::Watch(_) => Bytes::new(),
        }
    }

    /// The whole body as JSON; null if it is none.
    pub fn into_value(self) -> Value {
        serde_json::from_slice(&self.into_bytes()).unwrap_or_default()
    }
}

impl From<Status> for Response {
    fn from(status: Status) -> Self {
        let response = Self::value(status.code(), &status.to_value());
        match status.retry_after() {
            Some(seconds) => response.with_header("retry-after", seconds.to_string()),
            None => response,
        }
    }
}

/// A list over a snapshot: the items' JSON is copied out chunk by chunk, never built as a whole.
#[derive(Debug)]
pub struct ListBody {
    head: Option<Vec<u8>>,
    items: std::vec::IntoIter<Arc<Entry>>,
    renderer: Renderer,
    first: bool,
    done: bool,
}

impl ListBody {
    /// `head` ends with the opening bracket of the items.
    pub fn new(head: Vec<u8>, items: Vec<Arc<Entry>>, renderer: Renderer) -> Self {
        Self { head: Some(head), items: items.into_iter(), renderer, first: true, done: false }
    }

    /// Whether the document is complete.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The next piece of the document.
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let mut chunk = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
        chunk.extend_from_slice(&self.head.take().unwrap_or_default());
        while chunk.len() < CHUNK_BYTES {
            let Some(entry) = self.items.next() else {
                chunk.extend_from_slice(b"]}\n");
                self.done = true;
                break;
            };
            if !self.first {
                chunk.push(b',');
            }
            self.first = false;
            self.renderer.item(&entry, &mut chunk);
        }
        Some(Bytes::from(chunk))
    }
}
