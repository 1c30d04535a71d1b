//! Who sends a manager's requests, over whichever transport the server wants.

use embedded_nal_async::TcpConnect;
use reqwless::request::RequestBody;

use crate::{Connection, Error, Receiver, Request, Stream};

/// Sends one request at a time. Which kind it is depends on the server's URL, and so is known only when the
/// device has read its configuration: whoever works with clients is compiled once for both.
pub enum Client<'a, N: TcpConnect + 'a> {
    /// For `http://`: HTTP/1.1 on a connection of its own.
    Connection(Connection<'a, N>),
    /// For `https://`: a stream at a time of the HTTP/2 connection that all clients share.
    Stream(Stream<'a>),
}

impl<'a, N: TcpConnect + 'a> Client<'a, N> {
    /// Sends `request` and hands the response to `receiver`, piece by piece.
    ///
    /// Dropping the future gives the request up: with its connection over HTTP/1.1, with its stream over
    /// HTTP/2. The next exchange opens another one.
    pub async fn exchange(
        &mut self,
        request: &Request<'_, impl RequestBody + Copy>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        match self {
            Self::Connection(connection) => connection.exchange(request, receiver).await,
            Self::Stream(stream) => stream.exchange(request, receiver).await,
        }
    }

    /// Sees that nothing that was sent and given up goes on to the server, not even what the network stack
    /// holds: over HTTP/1.1 it has gone with its connection, over HTTP/2 the connection goes now.
    pub(crate) fn sever(&self) {
        if let Self::Stream(stream) = self {
            stream.sever();
        }
    }
}
