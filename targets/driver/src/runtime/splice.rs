//! Making spliced bodies: their sources are read into buffers.

use core::ops::ControlFlow;

use embassy_futures::select::{Either, select};
use embedded_nal_async::TcpConnect;
use picokube_core::manager::{Failure, ResponseHead, Splice, Target};
use picokube_core::splice::{SpliceError, Splicer};

use super::Runtime;
use super::body_buffer::{BodyBuffer, BodyBuffers};
use super::serve::failure;
use crate::{Client, Method, Receiver, Request};

/// How much of the output is in hand at a time.
const WINDOW: usize = 256;

impl Runtime<'_> {
    /// Makes the bodies that lanes want, one after the other, for ever.
    ///
    /// One of these is enough for any number of lanes; with more, several bodies are made at a
    /// time.
    pub async fn make_bodies<'a, N: TcpConnect + 'a>(
        &self,
        sources: &mut Client<'a, N>,
        buffers: &BodyBuffers<'_>,
    ) -> ! {
        loop {
            let order = buffers.next_order().await;
            let made = match order.splice() {
                Some(splice) => {
                    let making = self.make(splice, sources, order.buffer);
                    match select(making, order.until_nobody_wants_it()).await {
                        Either::First(made) => made,
                        // The source that is being read is given up.
                        Either::Second(()) => Err(Failure::NotSent),
                    }
                }
                None => Err(Failure::NotSent),
            };
            order.end(made);
        }
    }

    /// Makes the body that `splice` describes.
    async fn make<'a, N: TcpConnect + 'a>(
        &self,
        splice: &Splice,
        sources: &mut Client<'a, N>,
        buffer: &BodyBuffer<'_>,
    ) -> Result<(), Failure> {
        let mut splicer = Splicer::of(splice);
        while let Some(target) = splicer.borrowed_source() {
            self.read(target, &mut splicer, sources, buffer).await?;
        }
        let mut window = [0; WINDOW];
        while let Some(len) = splicer.finish(&mut window).map_err(spoilt)? {
            buffer.fill(window.get(..len).unwrap_or_default()).await;
        }
        Ok(())
    }

    /// Reads one source to its end.
    async fn read<'a, N: TcpConnect + 'a>(
        &self,
        target: &Target,
        splicer: &mut Splicer<&Splice>,
        sources: &mut Client<'a, N>,
        buffer: &BodyBuffer<'_>,
    ) -> Result<(), Failure> {
        let request = Request { method: Method::GET, target, headers: &[], body: &[][..] };
        let mut reader = Reader { runtime: self, splicer, buffer, status: 0, error: None };
        let exchanged = sources.exchange(&request, &mut reader).await;
        let Reader { status, error, .. } = reader;
        match (exchanged, error) {
            (Err(error), _) if error.is_without_effect() => Err(failure(error)),
            // Only a source was asked for: whatever happened to that, nothing was written.
            (Err(_), _) => Err(Failure::NotSent),
            (Ok(()), Some(error)) => Err(spoilt(error)),
            (Ok(()), None) if status != 200 => Err(Failure::Source(status)),
            (Ok(()), None) => splicer.end_of_source().map_err(spoilt),
        }
    }
}

fn spoilt(error: SpliceError) -> Failure {
    match error {
        SpliceError::Changed => Failure::SourceChanged,
        SpliceError::Malformed | SpliceError::TooLarge => Failure::NotSent,
    }
}

/// Passes a source through the splicer into the buffer.
struct Reader<'r, 'm, 's, 'b> {
    runtime: &'r Runtime<'m>,
    splicer: &'r mut Splicer<&'s Splice>,
    buffer: &'r BodyBuffer<'b>,
    status: u16,
    error: Option<SpliceError>,
}

impl Receiver for Reader<'_, '_, '_, '_> {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.runtime.step();
        self.status = head.status;
        ControlFlow::Continue(())
    }

    async fn body(&mut self, mut bytes: &[u8]) -> ControlFlow<()> {
        self.runtime.step();
        if self.status != 200 {
            return ControlFlow::Continue(());
        }
        let mut window = [0; WINDOW];
        while !bytes.is_empty() {
            match self.splicer.push(&mut bytes, &mut window) {
                Ok(len) => self.buffer.fill(window.get(..len).unwrap_or_default()).await,
                Err(error) => {
                    self.error = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }
}
