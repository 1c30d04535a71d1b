//! Cuts off clients that stop reading, or that read next to nothing.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// What a client has to take at least while something waits for it, per patience.
const LEAST_BYTES: usize = 64 << 10;

/// A stream whose writes fail once the other side has taken next to nothing for a while.
///
/// Only a write that waits counts; a watch on which nothing happens may be idle for ever.
#[derive(Debug)]
pub(super) struct StallGuard<S> {
    stream: S,
    patience: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since the deadline was set.
    taken: usize,
}

impl<S> StallGuard<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, deadline: None, taken: 0 }
    }

    /// Notes what became of a write.
    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.taken = self.taken.saturating_add(bytes);
                if self.taken >= LEAST_BYTES {
                    self.deadline = None;
                }
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => self.wait(context),
        }
    }

    /// Waits for the other side, within its patience.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if self.deadline.is_none() {
            self.taken = 0;
        }
        let patience = self.patience;
        let deadline =
            self.deadline.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + patience)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_pending() {
            return self.wait(context);
        }
        // Nothing waits for the client any more.
        self.deadline = None;
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_is_cut_off() {
        let (near, _far) = tokio::io::duplex(16);
        let mut guarded = StallGuard::new(near, Duration::from_secs(30));
        let error = guarded.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// Writes to a client that reads so many bytes every twenty seconds.
    async fn write_to_reader_of(bytes: usize) -> io::Result<()> {
        let (near, mut far) = tokio::io::duplex(bytes);
        let mut guarded = StallGuard::new(near, Duration::from_secs(30));
        let reader = tokio::spawn(async move {
            let mut buffer = vec![0; bytes];
            loop {
                tokio::time::sleep(Duration::from_secs(20)).await;
                if far.read(&mut buffer).await.is_ok_and(|length| length == 0) {
                    return;
                }
            }
        });
        let written = guarded.write_all(&vec![0; 10 * bytes]).await;
        drop(guarded);
        reader.await.expect("no panic");
        written
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_goes_on_is_not() {
        write_to_reader_of(LEAST_BYTES).await.expect("the reader is slow, not gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_drips_is() {
        let error = write_to_reader_of(16).await.expect_err("it would take for ever");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
