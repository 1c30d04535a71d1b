//! Responses that have no end of their own: watches.

use core::ops::ControlFlow;

use embedded_nal_async::TcpConnect;
use heapless::String;
use picokube_core::backoff::Backoff;

use crate::{Connection, Error, Head, Method, Receiver, Request};

/// The longest request target that [`follow()`] can ask for.
pub const MAX_TARGET: usize = picokube_core::limits::WATCH_TARGET;

/// What is done with a stream that is opened again whenever it ends.
pub trait Follower: Receiver {
    /// Writes path and query of the next request. It may say where the last stream got to.
    fn target(&mut self, target: &mut String<MAX_TARGET>);
    /// A stream has ended: on time (`Ok`), or broken off. `Break` ends the following.
    fn ended(&mut self, how: Result<(), Error>) -> ControlFlow<()>;
}

/// Follows a stream until the follower has had enough.
///
/// A stream that the server ends in an orderly way is opened again at once. After one that broke,
/// was refused, or ended without having brought anything, there is a back-off delay first.
pub async fn follow<'a, N: TcpConnect + 'a, F: Follower>(
    connection: &mut Connection<'a, N>,
    follower: &mut F,
) {
    // Of answers that lead to nothing; failures of the connection are its own business.
    let mut backoff = Backoff::new(connection.policy());
    let mut target = String::new();
    loop {
        target.clear();
        follower.target(&mut target);
        let request = Request { method: Method::GET, target: &target, headers: &[], body: &[][..] };
        let mut judged = Judged { follower, accepted: false, brought_something: false };
        let how = connection.exchange(&request, &mut judged).await;
        let useless = !(judged.accepted && judged.brought_something);
        if follower.ended(how).is_break() {
            return;
        }
        if how.is_ok() && useless {
            connection.wait(&mut backoff).await;
        }
    }
}

/// Tells a stream that was worth opening from one that was not.
struct Judged<'f, F> {
    follower: &'f mut F,
    accepted: bool,
    brought_something: bool,
}

impl<F: Follower> Receiver for Judged<'_, F> {
    fn head(&mut self, head: &Head<'_>) -> ControlFlow<()> {
        self.accepted = head.status == 200;
        self.follower.head(head)
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.brought_something = true;
        self.follower.body(bytes).await
    }
}
