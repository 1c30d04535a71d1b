//! A client for the manager's requests.

use core::cell::Cell;
use core::future::pending;
use core::ops::ControlFlow;

use embassy_futures::select::{Either, select};
use embedded_io_async::Write;
use embedded_nal_async::TcpConnect;
use picokube_core::manager::{self, Body, Failure, ResponseHead, Splice, Ticket};
use reqwless::request::RequestBody;

use super::body_buffer::{BodyBuffers, FromBuffer, Ready};
use super::document::{Document, write_at_once};
use super::{InFlight, Runtime, now};
use crate::{Client, Error, Method, Receiver, Request};

/// What serves one request at a time.
pub struct Lane<'a, N: TcpConnect + 'a> {
    /// Where requests are sent.
    pub requests: Client<'a, N>,
    /// Where spliced bodies are made, those of other lanes as well.
    pub buffers: &'a BodyBuffers<'a>,
    /// Where documents are written. Those that do not fit are sent in pieces, which needs no room
    /// but takes longer.
    pub page: &'a mut [u8],
}

impl Runtime<'_> {
    /// Carries out the manager's requests, one after the other, for ever.
    pub async fn serve<'a, N: TcpConnect + 'a>(&self, lane: &mut Lane<'a, N>) -> ! {
        // One place for the request: what lives across an await is static memory in firmware.
        let mut place = None;
        let mut was_heard = false;
        loop {
            let before = self.notify.notified();
            self.step();
            self.with(|manager, now| manager.poll_into(now, &mut place));
            let may_be_heard = self.manager.borrow().may_be_heard();
            if was_heard && !may_be_heard {
                // Somebody else may lead soon, who must not meet what was sent before.
                lane.requests.sever();
            }
            was_heard = may_be_heard;
            let Some(request) = &place else {
                let at = self.manager.borrow().poll_at();
                self.until_something_happens(before, at).await;
                continue;
            };
            // There may be more, for others.
            self.notify.notify();
            // Looked at first whenever this task goes on, however late that is.
            let end = match select(self.until_expired(request), self.carry_out(request, lane)).await
            {
                Either::First(()) => Err(Failure::Ambiguous),
                Either::Second(end) => end,
            };
            self.manager.borrow_mut().response_end(request.ticket, now(), end);
            self.notify.notify();
        }
    }

    /// Waits until a request has to be given up, if it ever has to.
    async fn until_expired(&self, request: &manager::Request) {
        if self.manager.borrow().elector().is_none() {
            return pending().await;
        }
        loop {
            let before = self.notify.notified();
            let at = self.manager.borrow().expires_at(request.ticket);
            if at.is_some_and(|at| at <= now()) {
                return;
            }
            self.until_something_happens(before, at).await;
        }
    }

    async fn carry_out<'a, N: TcpConnect + 'a>(
        &self,
        request: &manager::Request,
        lane: &mut Lane<'a, N>,
    ) -> Result<(), Failure> {
        match &request.body {
            Body::Empty => self.send(request, Outgoing::Bytes(&[]), &mut lane.requests).await,
            Body::Document => {
                if let Some(bytes) = write_at_once(self, request.ticket, lane.page) {
                    return self.send(request, Outgoing::Bytes(bytes), &mut lane.requests).await;
                }
                let document = Document::new(self, request.ticket).ok_or(Failure::NotSent)?;
                self.send(request, Outgoing::Document(document), &mut lane.requests).await
            }
            Body::Splice(splice) => self.send_spliced(request, splice, lane).await,
        }
    }

    async fn send<'a, N: TcpConnect + 'a>(
        &self,
        request: &manager::Request,
        body: Outgoing<'_, '_>,
        client: &mut Client<'a, N>,
    ) -> Result<(), Failure> {
        let content_type = [("content-type", request.content_type.name())];
        let has_body = body.len() != Some(0);
        let http = Request {
            method: method(request.method),
            target: &request.target,
            headers: if has_body { &content_type } else { &[] },
            body,
        };
        let mut answer = Answer { runtime: self, ticket: request.ticket };
        let _counted = Counted::new(&self.in_flight);
        client.exchange(&http, &mut answer).await.map_err(failure)
    }

    /// Sends a body when it has been made, or while it is made if it does not fit its buffer.
    async fn send_spliced<'a, N: TcpConnect + 'a>(
        &self,
        request: &manager::Request,
        splice: &Splice,
        lane: &mut Lane<'a, N>,
    ) -> Result<(), Failure> {
        let taken = lane.buffers.take(splice).await;
        let buffer = taken.buffer;
        let len = match buffer.ready().await {
            Ready::Whole(len) => Some(len),
            Ready::InPieces => None,
            Ready::No(failure) => return Err(failure),
        };
        let body = Outgoing::Buffered(FromBuffer::new(buffer, len));
        let sending = self.send(request, body, &mut lane.requests);
        match select(sending, buffer.until_spoilt()).await {
            Either::First(end) => end,
            // A request that has begun is given up unfinished, with its connection or its stream.
            Either::Second(failure) => Err(failure),
        }
    }
}

/// A body on its way out. One type for all: each would be another copy of all that sends.
#[derive(Clone, Copy)]
enum Outgoing<'b, 'm> {
    Bytes(&'b [u8]),
    Document(Document<'b, 'm>),
    Buffered(FromBuffer<'b, 'b>),
}

impl RequestBody for Outgoing<'_, '_> {
    fn len(&self) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => RequestBody::len(bytes),
            Self::Document(document) => document.len(),
            Self::Buffered(body) => body.len(),
        }
    }

    async fn write<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        match self {
            Self::Bytes(bytes) => writer.write_all(bytes).await,
            Self::Document(document) => document.write(writer).await,
            Self::Buffered(body) => body.write(writer).await,
        }
    }
}

/// A request in flight, also if it is given up.
struct Counted<'r>(&'r Cell<InFlight>);

impl<'r> Counted<'r> {
    fn new(in_flight: &'r Cell<InFlight>) -> Self {
        let InFlight { now, most } = in_flight.get();
        let now = now.saturating_add(1);
        in_flight.set(InFlight { now, most: most.max(now) });
        Self(in_flight)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let InFlight { now, most } = self.0.get();
        self.0.set(InFlight { now: now.saturating_sub(1), most });
    }
}

/// Hands the answer to the manager.
struct Answer<'r, 'm> {
    runtime: &'r Runtime<'m>,
    ticket: Ticket,
}

impl Receiver for Answer<'_, '_> {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.runtime.step();
        self.runtime.with(|manager, now| manager.response_head(self.ticket, now, *head));
        ControlFlow::Continue(())
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.runtime.step();
        let ticket = self.ticket;
        self.runtime
            .hand_over(bytes, |manager, now, bytes| manager.response_body(ticket, now, bytes))
            .await;
        ControlFlow::Continue(())
    }
}

fn method(method: manager::Method) -> Method {
    match method {
        manager::Method::Get => Method::GET,
        manager::Method::Post => Method::POST,
        manager::Method::Patch => Method::PATCH,
        manager::Method::Delete => Method::DELETE,
    }
}

/// What a failed exchange means for the request.
pub(super) fn failure(error: Error) -> Failure {
    if error.is_without_effect() { Failure::NotSent } else { Failure::Ambiguous }
}
