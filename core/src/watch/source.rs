//! What the watch machine needs of those who decode and store.

use crate::wire::{ResourceVersion, Status};

/// What a response body is going to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BodyShape {
    /// A list from its beginning: what is not in it, or in the pages that follow, is gone.
    FirstPage,
    /// A further page of the same list.
    NextPage,
    /// A stream of watch events.
    Watch,
    /// A Status.
    Status,
}

/// What was found in a body.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An object of a list, applied.
    Listed(ResourceVersion),
    /// An ADDED event, applied.
    Added(ResourceVersion),
    /// A MODIFIED or DELETED event, applied; or one of a type unknown here, skipped.
    Changed(ResourceVersion),
    /// A BOOKMARK.
    Bookmark(ResourceVersion),
    /// An event about something that is not of this kind, skipped.
    Foreign,
    /// An ERROR, which ends the watch.
    Error(&'a Status),
}

/// The end of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListEnd<'a> {
    /// `metadata.resourceVersion`; `None` if there is none or it is no number.
    pub version: Option<ResourceVersion>,
    /// `metadata.continue`
    pub more: More<'a>,
}

/// What follows a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More<'a> {
    /// Nothing: it is the last one.
    None,
    /// The page that this token asks for.
    Token(&'a str),
    /// A page whose token is too long to be kept.
    Unreadable,
}

/// The body is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Malformed;

/// Decodes bodies and applies the objects in them to the cache.
pub trait Source {
    /// A body begins. At [`BodyShape::FirstPage`], marks of an earlier list are to be cleared.
    fn begin(&mut self, shape: BodyShape);

    /// Bytes of the body. Objects and events are applied as they come, then reported. Returns how many
    /// were taken: not all of them if the decoder is wanted elsewhere; the rest is to come again.
    fn push(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<usize, Malformed>;

    /// The body of a page is complete.
    fn end_page(&mut self) -> Result<ListEnd<'_>, Malformed>;

    /// The [`BodyShape::Status`] that was read, as far as it came.
    fn status(&self) -> Option<&Status>;

    /// The list is complete: what was not in it is to be removed, unless it is newer than the
    /// list.
    fn replace(&mut self, version: ResourceVersion);

    /// The server has gone back in time, as after a restore from a backup: versions that are
    /// known mean nothing any more. A list from the beginning follows, and holds whatever its
    /// versions are.
    fn rewind(&mut self) {}
}
