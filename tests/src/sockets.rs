//! The operating system's sockets behind the driver's traits.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::task::{Context, Poll, ready};

use async_io::Async;
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use picokube_driver::Transport;

/// Opens sockets.
#[derive(Debug, Default)]
pub struct Sockets;

impl TcpConnect for Sockets {
    type Error = io::Error;
    type Connection<'a> = Socket;

    async fn connect(&self, remote: SocketAddr) -> io::Result<Socket> {
        let stream = Async::<TcpStream>::connect(remote).await?;
        stream.get_ref().set_nodelay(true)?;
        Ok(Socket(stream))
    }
}

/// An open socket.
#[derive(Debug)]
pub struct Socket(Async<TcpStream>);

impl ErrorType for Socket {
    type Error = io::Error;
}

impl Read for Socket {
    async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.read_with(|mut stream| stream.read(room)).await
    }
}

impl Write for Socket {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_with(|mut stream| stream.write(bytes)).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tries until the operating system does not say that it would have to wait.
fn attempt(
    mut ready: impl FnMut() -> Poll<io::Result<()>>,
    mut act: impl FnMut() -> io::Result<usize>,
) -> Poll<Result<usize, ErrorKind>> {
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done.map_err(|error| error.kind().into())),
        }
        if let Err(error) = ready!(ready()) {
            return Poll::Ready(Err(error.kind().into()));
        }
    }
}

impl Transport for Socket {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        attempt(|| self.0.poll_readable(context), || self.0.get_ref().read(room))
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        attempt(|| self.0.poll_writable(context), || self.0.get_ref().write(bytes))
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<()> {
        // The operating system sends the rest.
        let _ = self.0.get_ref().shutdown(Shutdown::Write);
        Poll::Ready(())
    }
}
