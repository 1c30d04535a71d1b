//! Responses that have no end of their own: watches.

use core::ops::ControlFlow;

use embedded_nal_async::TcpConnect;
use heapless::String;

use crate::{Connection, Error, Head, Method, Receiver, Request};

/// The longest request target that [`follow()`] can ask for.
pub const MAX_TARGET: usize = 512;

/// What is done with a stream that is opened again whenever it ends.
pub trait Follower: Receiver {
    /// Writes path and query of the next request. It may say where the last stream got to.
    fn target(&mut self, target: &mut String<MAX_TARGET>);
    /// A stream has ended: on time (`Ok`), or broken off. `Break` ends the following.
    fn ended(&mut self, how: Result<(), Error>) -> ControlFlow<()>;
}

/// Follows a stream until the follower has had enough.
///
/// A stream that the server ends in an orderly way is opened again at once. One that breaks, or
/// that ends without having brought anything, is opened again after a back-off delay.
pub async fn follow<'a, N: TcpConnect + 'a, F: Follower>(
    connection: &mut Connection<'a, N>,
    follower: &mut F,
) {
    let mut target = String::new();
    loop {
        target.clear();
        follower.target(&mut target);
        let request = Request { method: Method::GET, target: &target, headers: &[], body: &[] };
        let mut counted = Counted { follower, pieces: 0 };
        let how = connection.exchange(&request, &mut counted).await;
        if how.is_ok() && counted.pieces == 0 {
            connection.delay_next_connect();
        }
        if follower.ended(how).is_break() {
            return;
        }
    }
}

/// Tells a stream that brought something from one that did not.
struct Counted<'f, F> {
    follower: &'f mut F,
    pieces: usize,
}

impl<F: Follower> Receiver for Counted<'_, F> {
    fn head(&mut self, head: &Head<'_>) -> ControlFlow<()> {
        self.follower.head(head)
    }

    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.pieces = self.pieces.saturating_add(1);
        self.follower.body(bytes)
    }
}
