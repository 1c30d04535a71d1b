//! Reading the sources of a spliced body into a tank.

use core::ops::ControlFlow;

use embedded_nal_async::TcpConnect;
use picokube_core::manager::{Failure, Splice, Target};
use picokube_core::splice::{SpliceError, Splicer};

use super::serve::failure;
use super::tank::Tank;
use crate::{Connection, Head, Method, Receiver, Request};

/// How much of the output is in hand at a time.
const WINDOW: usize = 256;

/// Makes the body that `splice` describes. An error is final: the tank is spoilt.
pub(super) async fn make<'a, N: TcpConnect + 'a>(
    splice: &Splice,
    sources: &mut Connection<'a, N>,
    tank: &Tank<'_>,
) -> Result<(), Failure> {
    let mut splicer = Splicer::new(splice);
    while let Some(target) = splicer.source().cloned() {
        if let Err(failure) = read(&target, &mut splicer, sources, tank).await {
            tank.spoil();
            return Err(failure);
        }
    }
    let mut window = [0; WINDOW];
    loop {
        match splicer.finish(&mut window) {
            Ok(Some(len)) => tank.fill(window.get(..len).unwrap_or_default()).await,
            Ok(None) => break,
            Err(error) => {
                tank.spoil();
                return Err(spoilt(error));
            }
        }
    }
    tank.finish();
    Ok(())
}

/// Reads one source to its end.
async fn read<'a, N: TcpConnect + 'a>(
    target: &Target,
    splicer: &mut Splicer,
    sources: &mut Connection<'a, N>,
    tank: &Tank<'_>,
) -> Result<(), Failure> {
    let request = Request { method: Method::GET, target, headers: &[], body: &[][..] };
    let mut reader = Reader { splicer, tank, status: 0, error: None };
    let exchanged = sources.exchange(&request, &mut reader).await;
    let Reader { status, error, .. } = reader;
    match (exchanged, error) {
        (Err(error), _) if error.is_before_sending() => Err(failure(error)),
        // Only a source was asked for: whatever happened to that, nothing was written.
        (Err(_), _) => Err(Failure::NotSent),
        (Ok(()), Some(error)) => Err(spoilt(error)),
        (Ok(()), None) if status != 200 => Err(Failure::Source(status)),
        (Ok(()), None) => splicer.end_of_source().map_err(spoilt),
    }
}

fn spoilt(error: SpliceError) -> Failure {
    match error {
        SpliceError::Changed => Failure::SourceChanged,
        SpliceError::Malformed | SpliceError::TooLarge => Failure::NotSent,
    }
}

/// Passes a source through the splicer into the tank.
struct Reader<'r, 'b> {
    splicer: &'r mut Splicer,
    tank: &'r Tank<'b>,
    status: u16,
    error: Option<SpliceError>,
}

impl Receiver for Reader<'_, '_> {
    fn head(&mut self, head: &Head<'_>) -> ControlFlow<()> {
        self.status = head.status;
        ControlFlow::Continue(())
    }

    async fn body(&mut self, mut bytes: &[u8]) -> ControlFlow<()> {
        if self.status != 200 {
            return ControlFlow::Continue(());
        }
        let mut window = [0; WINDOW];
        while !bytes.is_empty() {
            match self.splicer.push(&mut bytes, &mut window) {
                Ok(len) => self.tank.fill(window.get(..len).unwrap_or_default()).await,
                Err(error) => {
                    self.error = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }
}
