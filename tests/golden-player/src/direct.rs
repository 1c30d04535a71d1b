//! A server in the same process, in virtual time.
//!
//! Whoever has the server answers [`Call`]s and moves the (paused) clock of the tokio runtime that
//! the scenario is played in.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Something that is asked of the server.
#[derive(Debug)]
pub struct Call {
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The body and its content type, if there is one.
    pub body: Option<(Bytes, String)>,
    /// Where the answer goes.
    pub reply: Reply,
}

/// Where an answer goes.
#[derive(Debug)]
pub enum Reply {
    /// Status and body, in one piece.
    Whole(oneshot::Sender<(u16, Bytes)>),
    /// Whatever the watch brings, line by line. Dropped if there is no watch.
    Lines(mpsc::UnboundedSender<Bytes>),
}

/// The way to a server in the same process.
#[derive(Clone, Debug)]
pub struct Direct {
    calls: mpsc::UnboundedSender<Call>,
    /// Whether the controllers run and know what there is.
    calm: watch::Receiver<bool>,
    /// What the server's wall clock showed, and when.
    began: (Instant, SystemTime),
}

impl Direct {
    /// The way to whoever takes the calls. The server's wall clock shows `wall` now; `calm` tells
    /// whether the controllers run and know what there is: as long as not, no step is done.
    pub fn new(
        calls: mpsc::UnboundedSender<Call>,
        calm: watch::Receiver<bool>,
        wall: SystemTime,
    ) -> Self {
        Self { calls, calm, began: (Instant::now(), wall) }
    }

    pub(super) fn calm(&self) -> watch::Receiver<bool> {
        self.calm.clone()
    }

    pub(super) fn wall(&self) -> SystemTime {
        let (began, wall) = self.began;
        let elapsed = began.elapsed();
        wall + Duration::from_millis(elapsed.as_millis() as u64)
    }

    pub(super) async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<(Bytes, &str)>,
    ) -> Result<(u16, Bytes)> {
        let (sender, answer) = oneshot::channel();
        self.call(method, path, body, Reply::Whole(sender))?;
        answer.await.context("nobody answers")
    }

    pub(super) fn stream(&self, path: &str) -> Result<mpsc::UnboundedReceiver<Bytes>> {
        let (sender, lines) = mpsc::unbounded_channel();
        self.call(&Method::GET, path, None, Reply::Lines(sender))?;
        Ok(lines)
    }

    fn call(
        &self,
        method: &Method,
        path: &str,
        body: Option<(Bytes, &str)>,
        reply: Reply,
    ) -> Result<()> {
        let body = body.map(|(bytes, content_type)| (bytes, content_type.to_owned()));
        let call = Call { method: method.clone(), path: path.to_owned(), body, reply };
        ensure!(self.calls.send(call).is_ok(), "nobody listens");
        Ok(())
    }
}
