//! Bodies that the manager writes on demand.

use core::fmt;

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
    print: u32,
}

impl<'r, 'm> Document<'r, 'm> {
    /// `None` if what the document is about is gone.
    pub(super) fn new(runtime: &'r Runtime<'m>, ticket: Ticket) -> Option<Self> {
        let mut window = Window::counting();
        runtime.manager.borrow().write_body(ticket, &mut window).ok()?;
        Some(Self { runtime, ticket, len: window.seen(), print: window.print() })
    }
}

/// Writes a document as a whole; `None` if it does not fit, or what it is about is gone.
pub(super) fn write_at_once<'b>(
    runtime: &Runtime<'_>,
    ticket: Ticket,
    room: &'b mut [u8],
) -> Option<&'b [u8]> {
    let mut page = Page { room, len: 0 };
    runtime.manager.borrow().write_body(ticket, &mut page).ok()?;
    let Page { room, len } = page;
    room.get(..len)
}

/// A text as long as there is room.
struct Page<'b> {
    room: &'b mut [u8],
    len: usize,
}

impl fmt::Write for Page<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len.saturating_add(text.len());
        let place = self.room.get_mut(self.len..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
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
            // Another document now, of pieces that do not fit together: the length was announced, so the
            // server will refuse what came so far.
            if written.is_err() || window.bytes().is_empty() || window.print() != self.print {
                break;
            }
            writer.write_all(window.bytes()).await?;
            sent += window.bytes().len();
        }
        Ok(())
    }
}
