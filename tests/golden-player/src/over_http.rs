//! The way to a server over HTTP.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use super::client::{JSON, PATIENCE, Server};

/// Connections to one server.
#[derive(Clone, Debug)]
pub(super) struct Http {
    connections: Connections<HttpConnector, Full<Bytes>>,
    server: Server,
}

impl Http {
    pub(super) fn new(server: &Server) -> Result<Self> {
        let base = server.base.trim_end_matches('/');
        ensure!(
            base.starts_with("http://"),
            "{base}: only http:// is spoken; put `kubectl proxy` in front of a server with TLS"
        );
        let server = Server { base: base.to_owned(), ..server.clone() };
        let connections = Connections::builder(TokioExecutor::new()).build_http();
        Ok(Self { connections, server })
    }

    /// Status and body. A busy server also says when to come again.
    pub(super) async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<(Bytes, &str)>,
    ) -> Result<(u16, Bytes, Option<Duration>)> {
        let response = self.request(method, path, body).await?;
        let status = response.status().as_u16();
        let pause = (status == 429).then(|| {
            let seconds = response.headers().get(RETRY_AFTER);
            let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
            Duration::from_secs_f64(seconds.unwrap_or(0.2))
        });
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((status, bytes, pause))
    }

    /// Opens a stream of lines.
    pub(super) async fn stream(&self, path: &str) -> Result<HttpLines> {
        let response = timeout(PATIENCE, self.request(&Method::GET, path, None)).await??;
        let status = response.status();
        ensure!(status.is_success(), "GET {path}: {status}");
        Ok(HttpLines { body: response.into_body(), pending: Vec::new() })
    }

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
pub(super) struct HttpLines {
    body: Incoming,
    pending: Vec<u8>,
}

impl HttpLines {
    /// The next line, read as JSON; none when the stream has ended.
    pub(super) async fn next(&mut self) -> Result<Option<Value>> {
        let Self { body, pending } = self;
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
            assert!(Http::new(&Server::new(base)).is_err(), "{base}");
        }
        assert!(Http::new(&Server::new("http://127.0.0.1:8001/")).is_ok());
    }
}
