//! The client of a watched kind.

use core::fmt;
use core::ops::ControlFlow;
use core::pin::pin;

use embassy_futures::select::{Either, select};
use embedded_nal_async::TcpConnect;
use picokube_core::kind::Kind;
use picokube_core::manager::ResponseHead;
use picokube_core::watch::{Command, Input, RequestId};

use super::{Runtime, Trouble};
use crate::{Client, Error, Method, Receiver, Request};

impl Runtime<'_> {
    /// Lists and watches one kind, for ever.
    ///
    /// The client should not back off by itself: the manager knows better when to try again.
    pub async fn watch<'a, N: TcpConnect + 'a>(&self, kind: Kind, client: &mut Client<'a, N>) -> ! {
        let mut next = None;
        loop {
            let before = self.notify.notified();
            let wanted = match next.take() {
                Some(id) => Wanted::Send(id),
                None => self.poll_watch(kind),
            };
            match wanted {
                Wanted::Send(id) => {
                    // Others may have waited for this to be taken care of.
                    self.notify.notify();
                    next = self.exchange_watch(kind, id, client).await;
                    self.notify.notify();
                }
                Wanted::Close(_) => {}
                Wanted::Nothing => {
                    self.until_watch_is_due(kind, before).await;
                }
            }
        }
    }

    /// One request of the watch. Returns the request that the manager wants instead, if it has
    /// lost interest in this one.
    async fn exchange_watch<'a, N: TcpConnect + 'a>(
        &self,
        kind: Kind,
        id: RequestId,
        client: &mut Client<'a, N>,
    ) -> Option<RequestId> {
        let target = &Target { runtime: self, kind, id };
        let request = Request { method: Method::GET, target, headers: &[], body: &[][..] };
        let mut receiver = Feed { runtime: self, kind, id };
        let exchange = pin!(client.exchange(&request, &mut receiver));
        let lost_interest = pin!(self.until_interest_is_lost(kind, id));
        match select(exchange, lost_interest).await {
            Either::First(how) => {
                let end = match how {
                    Ok(()) => Input::End,
                    Err(Error::Leaving) => Input::Left,
                    Err(Error::RequestTooLarge | Error::RequestMalformed) => Input::Cut,
                    Err(error) if error.is_before_sending() => {
                        self.trouble.set(Some(match error {
                            Error::Insecure(why) => Trouble::Insecure(why),
                            _ => Trouble::Unreachable,
                        }));
                        match error {
                            Error::Refused => Input::Refused,
                            _ => Input::Unreachable,
                        }
                    }
                    Err(_) => Input::Cut,
                };
                self.feed(kind, id, end);
                None
            }
            Either::Second(instead) => instead,
        }
    }

    async fn until_interest_is_lost(&self, kind: Kind, id: RequestId) -> Option<RequestId> {
        loop {
            let before = self.notify.notified();
            match self.poll_watch(kind) {
                Wanted::Close(closed) if closed == id => return None,
                Wanted::Close(_) => {}
                Wanted::Send(other) => return Some(other),
                Wanted::Nothing => {
                    self.until_watch_is_due(kind, before).await;
                }
            }
        }
    }

    /// A watch has times of its own: those of requests may have passed while all lanes are busy.
    fn until_watch_is_due(&self, kind: Kind, before: u32) -> impl Future<Output = Either<(), ()>> {
        let at = self.manager.borrow().poll_watch_at(kind);
        self.until_something_happens(before, at)
    }

    fn poll_watch(&self, kind: Kind) -> Wanted {
        self.with(|manager, now| match manager.poll_watch(kind, now) {
            Some(Command::Send(request)) => Wanted::Send(request.id()),
            Some(Command::Close(id)) => Wanted::Close(id),
            // The manager has done it already.
            None => Wanted::Nothing,
        })
    }

    /// Anything but a body, which may have to wait.
    fn feed(&self, kind: Kind, id: RequestId, input: Input<'_>) {
        self.with(|manager, now| manager.handle_watch(kind, now, id, input));
    }
}

/// What the manager wants of a watch's client.
enum Wanted {
    Send(RequestId),
    Close(RequestId),
    Nothing,
}

/// The path and query of a request of a watch. The core keeps to `limits::WATCH_TARGET`, whoever
/// configures it to the longest selector.
struct Target<'r, 'm> {
    runtime: &'r Runtime<'m>,
    kind: Kind,
    id: RequestId,
}

impl fmt::Display for Target<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manager = self.runtime.manager.borrow();
        manager.watch_request(self.kind, self.id).ok_or(fmt::Error)?.fmt(f)
    }
}

/// Hands a response to the manager.
struct Feed<'r, 'm> {
    runtime: &'r Runtime<'m>,
    kind: Kind,
    id: RequestId,
}

impl Receiver for Feed<'_, '_> {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        let status = head.status;
        // Expired is no trouble: a new list follows.
        let is_trouble = status >= 400 && status != 410;
        self.runtime.trouble.set(is_trouble.then_some(Trouble::Refused(status)));
        self.runtime.feed(self.kind, self.id, Input::Head(*head));
        self.runtime.notify.notify();
        ControlFlow::Continue(())
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let Self { kind, id, .. } = *self;
        self.runtime
            .hand_over(bytes, |manager, now, bytes| {
                manager.handle_watch(kind, now, id, Input::Body(bytes))
            })
            .await;
        ControlFlow::Continue(())
    }

    /// A watch, and no list.
    fn is_endless(&self) -> bool {
        let manager = self.runtime.manager.borrow();
        manager.watch_request(self.kind, self.id).is_some_and(|request| request.is_watch())
    }
}
