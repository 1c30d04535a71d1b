//! Bodies that the manager writes on demand.

use embedded_io_async::Write;
use picokube_core::manager::Ticket;
use reqwless::request::RequestBody;

use super::Runtime;
use crate::window;

/// How much of a document is in memory at a time.
type Window = window::Window<256>;

/// A document of the manager's, sent through a small window: the manager writes it anew for every
/// window, which costs time only for the few that are longer.
#[derive(Clone, Copy)]
pub(super) struct Document<'r, 'm> {
    runtime: &'r Runtime<'m>,
    ticket: Ticket,
    len: usize,
}

impl<'r, 'm> Document<'r, 'm> {
    /// `None` if what the document is about is gone.
    pub(super) fn new(runtime: &'r Runtime<'m>, ticket: Ticket) -> Option<Self> {
        let mut window = Window::counting();
        runtime.manager.borrow().write_body(ticket, &mut window).ok()?;
        Some(Self { runtime, ticket, len: window.seen() })
    }
}

impl RequestBody for Document<'_, '_> {
    fn len(&self) -> Option<usize> {
        Some(self.len)
    }

    async fn write<W: Write>(&self, writer: &mut W) -> Result<(), W::Error> {
        let mut sent = 0;
        while sent < self.len {
            let mut window = Window::after(sent);
            let written = self.runtime.manager.borrow().write_body(self.ticket, &mut window);
            if written.is_err() || window.bytes().is_empty() {
                // Too short now: the length was announced, so the request will be refused.
                break;
            }
            writer.write_all(window.bytes()).await?;
            sent += window.bytes().len();
        }
        Ok(())
    }
}
