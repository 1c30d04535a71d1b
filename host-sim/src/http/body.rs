//! Response bodies that are produced while they are sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::server::response::{CHUNK_BYTES, ListBody};
use crate::server::watch::{Watch, WatchState};
use crate::time::Timestamp;

use super::cluster::SharedServer;
use super::connections::Busy;
use super::inflight::Place;
use super::record::Record;

/// Under load, events of this long go out together: the first one of a burst is not delayed.
const GATHER: Duration = Duration::from_millis(1);

/// What goes out over a connection, and what ends when it has.
#[derive(Debug)]
pub(super) struct ResponseBody {
    content: Content,
    /// What is written to the logs at the end.
    record: Option<Box<Record>>,
    /// The connection has a request in progress for as long.
    _busy: Busy,
}

/// What is sent.
#[derive(Debug)]
pub(super) enum Content {
    /// All of it at once.
    Whole(Option<Bytes>),
    /// A list, chunk by chunk.
    List(ListSending),
    /// A watch, for as long as the client stays.
    Watch(Box<WatchBody>),
}

impl ResponseBody {
    pub(super) fn new(content: Content, record: Option<Box<Record>>, busy: Busy) -> Self {
        Self { content, record, _busy: busy }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Overdue;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Overdue>>> {
        let this = self.get_mut();
        let chunk = match &mut this.content {
            Content::Whole(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()),
            Content::List(list) => match list.next_chunk() {
                Ok(chunk) => chunk,
                Err(overdue) => return Poll::Ready(Some(Err(overdue))),
            },
            Content::Watch(watch) => match watch.poll(context) {
                Poll::Ready(chunk) => chunk,
                Poll::Pending => return Poll::Pending,
            },
        };
        if let (Some(record), Some(chunk)) = (&mut this.record, &chunk) {
            record.note_sent(chunk.len());
        }
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            _ => SizeHint::default(),
        }
    }
}

/// The client has taken too long to read an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overdue;

impl std::fmt::Display for Overdue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the client has taken too long to read the answer")
    }
}

impl std::error::Error for Overdue {}

/// A list that is being sent. It holds the place of its request and old versions of objects, so a
/// client that reads slowly loses both after a while, even if nobody asks for the next chunk.
#[derive(Debug)]
pub(super) struct ListSending {
    rest: Arc<Mutex<Option<Rest>>>,
    patience: Duration,
    reaper: Option<AbortHandle>,
    done: bool,
}

/// What is still to be sent, and the place that it holds.
#[derive(Debug)]
struct Rest {
    list: Box<ListBody>,
    _place: Option<Place>,
}

impl ListSending {
    pub(super) fn new(list: Box<ListBody>, place: Option<Place>, patience: Duration) -> Self {
        let rest = Arc::new(Mutex::new(Some(Rest { list, _place: place })));
        Self { rest, patience, reaper: None, done: false }
    }

    fn next_chunk(&mut self) -> Result<Option<Bytes>, Overdue> {
        if self.done {
            return Ok(None);
        }
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Rest { list, .. }) = rest.as_mut() else { return Err(Overdue) };
        let chunk = list.next_chunk();
        if list.is_done() {
            self.done = true;
            *rest = None;
        } else if self.reaper.is_none() {
            let (rest, patience) = (self.rest.clone(), self.patience);
            let reaper = tokio::spawn(async move {
                tokio::time::sleep(patience).await;
                *rest.lock().unwrap_or_else(PoisonError::into_inner) = None;
            });
            self.reaper = Some(reaper.abort_handle());
        }
        Ok(chunk)
    }
}

impl Drop for ListSending {
    fn drop(&mut self) {
        if let Some(reaper) = &self.reaper {
            reaper.abort();
        }
    }
}

/// A watch that reads on whenever the connection can take more.
pub(super) struct WatchBody {
    watch: Watch,
    shared: Arc<SharedServer>,
    news: watch::Receiver<u64>,
    /// Resolves when there may be something new, or when the watch wants to look again.
    waiting: Option<Pin<Box<dyn Future<Output = watch::Receiver<u64>> + Send>>>,
    stopping: watch::Receiver<bool>,
    last_sent: Instant,
    ended: bool,
    /// One of the places that limit concurrent watches.
    _place: OwnedSemaphorePermit,
}

impl WatchBody {
    pub(super) fn new(
        watch: Watch,
        shared: Arc<SharedServer>,
        stopping: watch::Receiver<bool>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let news = shared.subscribe();
        shared.metrics.watches.fetch_add(1, Ordering::Relaxed);
        Self {
            watch,
            shared,
            news,
            waiting: None,
            stopping,
            last_sent: Instant::now(),
            ended: false,
            _place: place,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(waiting) = &mut self.waiting {
                match waiting.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(news) => {
                        self.news = news;
                        self.waiting = None;
                    }
                }
            }
            if *self.stopping.borrow() {
                return Poll::Ready(None);
            }
            // What comes from here on shows up as a change of `news`.
            self.news.mark_unchanged();
            let mut chunk = Vec::new();
            let now = Timestamp::of_system_clock();
            let state = {
                let server = self.shared.read();
                self.watch.fill(server.store(), now, &mut chunk, CHUNK_BYTES)
            };
            self.ended = state == WatchState::Ended;
            if !chunk.is_empty() {
                self.shared.metrics.watch_bytes(chunk.len());
                self.last_sent = Instant::now();
                return Poll::Ready(Some(Bytes::from(chunk)));
            }
            if !self.ended {
                self.waiting = Some(Box::pin(self.wait(now)));
            }
        }
    }

    fn wait(&self, now: Timestamp) -> impl Future<Output = watch::Receiver<u64>> + Send + 'static {
        let mut news = self.news.clone();
        let mut stopping = self.stopping.clone();
        let pause = self.watch.wake_at().millis_since(now).clamp(1, i64::from(i32::MAX));
        let pause = Duration::from_millis(pause as u64);
        let rested = self.last_sent + GATHER;
        async move {
            tokio::select! {
                _ = news.changed() => tokio::time::sleep_until(rested).await,
                _ = stopping.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
            news
        }
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.shared.metrics.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for WatchBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchBody").field("watch", &self.watch).finish_non_exhaustive()
    }
}
