//! The decoder: bytes in, one object after the other out.

use super::envelope::{EventType, KnownObjects, ListMeta, ObjectFault, Reader};
use super::project::FieldFault;
use super::{Meta, Object, ResourceVersion, Status};
use crate::json;

/// Reads objects of one kind out of answers, lists or watches, in the memory of one object.
///
/// What comes first says what follows: after [`reset`](Self::reset), all bytes go to
/// [`feed_answer`](Self::feed_answer), or all to [`feed_list`](Self::feed_list), or all to
/// [`feed_watch`](Self::feed_watch).
pub struct Decoder<K: Object>(Reader<K>);

/// What is remembered of a list between two of its items, so that the decoder can read something else.
#[derive(Clone, Debug)]
pub struct PausedList {
    /// Its metadata, as far as that was read.
    pub meta: ListMeta,
    fault: Option<FieldFault>,
}

impl PausedList {
    /// Nothing of a list.
    pub const EMPTY: Self = Self { meta: ListMeta::EMPTY, fault: None };
}

/// What an answer holds.
#[derive(Debug)]
pub enum Answer<'a, K> {
    /// The object.
    Object(&'a K),
    /// An object whose metadata suffices.
    Metadata(&'a Meta),
    /// A Status: an error, or the confirmation of a deletion.
    Status(&'a Status),
    /// An object that cannot be used.
    Faulty(ObjectFault<'a>),
}

/// What comes in a list.
#[derive(Debug)]
pub enum ListEvent<'a, K> {
    /// An item.
    Item(&'a K),
    /// An item that cannot be used. The list goes on.
    Faulty(ObjectFault<'a>),
    /// The page is complete.
    End(&'a ListMeta),
    /// The page is complete, but its metadata cannot be used.
    FaultyEnd(FieldFault),
    /// A Status came instead.
    Status(&'a Status),
}

/// What comes in a watch.
#[derive(Debug)]
pub enum WatchEvent<'a, K> {
    /// The object is new to this watch.
    Added(&'a K),
    /// The object has changed.
    Modified(&'a K),
    /// What has happened to an object whose metadata suffices.
    Metadata(EventType, &'a Meta),
    /// The object is gone; this is its last state, at the version of the deletion.
    Deleted(&'a K),
    /// Everything up to this version has been told.
    Bookmark {
        /// The version.
        resource_version: ResourceVersion,
        /// The list that came as a stream is complete.
        ends_initial_events: bool,
    },
    /// The watch has failed.
    Error(&'a Status),
    /// An object that cannot be used, and what happened to it. The watch goes on.
    Faulty(EventType, ObjectFault<'a>),
    /// An event of a type that is not known.
    Unknown,
}

impl<K: Object> Decoder<K> {
    /// A decoder before the first byte.
    pub const fn new() -> Self {
        Self(Reader::new())
    }

    /// Gets ready for another body.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// The next bytes begin a document, whatever came before. What was read last stays until then.
    pub fn restart(&mut self) {
        self.0.tokenizer.restart();
    }

    /// Takes the next bytes of an answer that holds one object, or the Status that came instead. What
    /// is known already is not read.
    pub fn feed_answer(
        &mut self,
        bytes: &[u8],
        memory: Option<&dyn KnownObjects<K>>,
    ) -> Result<(), json::Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = self.0.feed(Reader::<K>::ANSWER, rest, memory)?;
            rest = rest.get(read..).unwrap_or_default();
        }
        Ok(())
    }

    /// The answer is over: what it holds.
    pub fn answer(&mut self) -> Result<Answer<'_, K>, json::Error> {
        let handler: &mut dyn json::Handler = &mut |_: json::Token<'_>| json::Flow::Next;
        self.0.tokenizer.finish(handler)?;
        if self.0.envelope.status.is_present {
            return Ok(Answer::Status(&self.0.envelope.status));
        }
        if self.0.envelope.metadata_only {
            return Ok(Answer::Metadata(self.0.metadata()));
        }
        Ok(match self.0.object() {
            Ok(object) => Answer::Object(object),
            Err(fault) => Answer::Faulty(fault),
        })
    }

    /// Reads on in a page of a list, to the next event or the end of `bytes`; returns how many bytes it
    /// took. The rest has to be fed again.
    pub fn feed_list(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, Option<ListEvent<'_, K>>), json::Error> {
        self.0.feed_list(bytes)
    }

    /// Reads on in a watch, to the next event or the end of `bytes`; returns how many bytes it took. The
    /// rest has to be fed again. After an error the watch cannot be read on. What is known already is
    /// not read.
    pub fn feed_watch(
        &mut self,
        bytes: &[u8],
        memory: Option<&dyn KnownObjects<K>>,
    ) -> Result<(usize, Option<WatchEvent<'_, K>>), json::Error> {
        self.0.feed_watch(bytes, memory)
    }

    /// How the page ended that was read last; `None` if it did not end yet.
    pub fn list_end(&mut self) -> Option<ListEvent<'_, K>> {
        self.0.tokenizer.is_done().then(|| self.0.list_end())
    }

    /// The Status that came instead of something else, as far as it was read.
    pub fn status(&self) -> &Status {
        &self.0.envelope.status
    }

    /// Whether the document is complete: an answer, or a page of a list.
    pub fn is_done(&self) -> bool {
        self.0.tokenizer.is_done()
    }

    /// Whether the last event of a watch is complete and no other has begun: a watch that ends
    /// elsewhere was cut off.
    pub fn is_between_events(&self) -> bool {
        self.0.tokenizer.is_done() || self.0.tokenizer.is_at_start()
    }

    /// Whether an item of a list is complete and no other has begun.
    pub fn is_between_items(&self) -> bool {
        self.0.is_between_items()
    }

    /// Lets go of a list, if it is between two items: what [`resume_list`](Self::resume_list) needs goes
    /// to `paused`.
    pub fn pause_list(&mut self, paused: &mut PausedList) -> bool {
        let can_pause = self.0.is_between_items();
        if can_pause {
            paused.fault = self.0.list_fault();
            paused.meta.clone_from(&self.0.envelope.list);
        }
        can_pause
    }

    /// Reads a list on that was let go.
    pub fn resume_list(&mut self, paused: &PausedList) {
        self.0.resume_between_items();
        self.0.envelope.list.clone_from(&paused.meta);
        self.0.envelope.list_fault = paused.fault;
    }
}

impl<K: Object> Default for Decoder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> Reader<K> {
    fn feed_list(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, Option<ListEvent<'_, K>>), json::Error> {
        let was_done = self.tokenizer.is_done();
        let read = self.feed(Self::LIST, bytes, None)?;
        if core::mem::take(&mut self.envelope.has_item) {
            let event = match self.object() {
                Ok(object) => ListEvent::Item(object),
                Err(fault) => ListEvent::Faulty(fault),
            };
            return Ok((read, Some(event)));
        }
        if was_done || !self.tokenizer.is_done() {
            return Ok((read, None));
        }
        Ok((read, Some(self.list_end())))
    }

    /// What is wrong with the list itself: between items, no other fault is left.
    fn list_fault(&mut self) -> Option<FieldFault> {
        let fault = self.take_fault();
        self.envelope.list_fault.or(fault)
    }

    fn list_end(&mut self) -> ListEvent<'_, K> {
        let fault = self.list_fault();
        let envelope = &self.envelope;
        let fault = fault.or_else(|| envelope.list.check().err());
        match fault {
            _ if envelope.status.is_present => ListEvent::Status(&envelope.status),
            Some(fault) => ListEvent::FaultyEnd(fault),
            None => ListEvent::End(&envelope.list),
        }
    }

    fn feed_watch(
        &mut self,
        bytes: &[u8],
        memory: Option<&dyn KnownObjects<K>>,
    ) -> Result<(usize, Option<WatchEvent<'_, K>>), json::Error> {
        if self.tokenizer.is_done() {
            self.tokenizer.restart();
        }
        let read = self.feed(Self::WATCH_EVENT, bytes, memory)?;
        let event = if self.tokenizer.is_done() { Some(self.event()) } else { None };
        Ok((read, event))
    }

    fn event(&mut self) -> WatchEvent<'_, K> {
        let change = match self.envelope.change {
            None => return WatchEvent::Unknown,
            Some(EventType::Error) => return WatchEvent::Error(&self.envelope.status),
            Some(EventType::Bookmark) => return self.bookmark(),
            Some(change) if self.envelope.metadata_only => {
                return WatchEvent::Metadata(change, self.metadata());
            }
            Some(change) => change,
        };
        match (self.object(), change) {
            (Err(fault), _) => WatchEvent::Faulty(change, fault),
            (Ok(object), EventType::Added) => WatchEvent::Added(object),
            (Ok(object), EventType::Deleted) => WatchEvent::Deleted(object),
            (Ok(object), _) => WatchEvent::Modified(object),
        }
    }

    /// A bookmark has a version and nothing else that an object must have.
    fn bookmark(&mut self) -> WatchEvent<'_, K> {
        let resource_version = self.envelope.object.meta().resource_version;
        let ends_initial_events = self.envelope.object.meta().ends_initial_events;
        if resource_version != ResourceVersion::ANY {
            self.take_fault();
            return WatchEvent::Bookmark { resource_version, ends_initial_events };
        }
        match self.object() {
            Err(fault) => WatchEvent::Faulty(EventType::Bookmark, fault),
            Ok(_) => WatchEvent::Unknown,
        }
    }
}

impl<K: Object> Reader<K> {
    /// The metadata of an object of which nothing else is wanted. What was wrong with the object, if
    /// anything, is old news.
    fn metadata(&mut self) -> &Meta {
        self.take_fault();
        self.envelope.object.meta()
    }
}
