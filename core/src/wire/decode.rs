//! The decoders: bytes in, one object after the other out.

use super::envelope::{Change, ListMeta, ListPart, Memory, NoList, ObjectFault, Reader};
use super::project::FieldFault;
use super::{Meta, Object, ResourceVersion, Status};
use crate::json;

/// Reads an answer that holds one object, or the Status that came instead.
pub struct AnswerDecoder<K: Object>(Reader<K, NoList>);

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

impl<K: Object> AnswerDecoder<K> {
    /// A decoder before the first byte.
    pub const fn new() -> Self {
        Self(Reader::new())
    }

    /// Takes the next bytes of the body.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), json::Error> {
        self.feed_all(bytes, None)
    }

    /// The same, but does not read what is known already.
    pub fn feed_news(&mut self, bytes: &[u8], memory: &dyn Memory<K>) -> Result<(), json::Error> {
        self.feed_all(bytes, Some(memory))
    }

    fn feed_all(
        &mut self,
        bytes: &[u8],
        memory: Option<&dyn Memory<K>>,
    ) -> Result<(), json::Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = self.0.feed(Reader::<K>::ANSWER, rest, memory)?;
            rest = rest.get(read..).unwrap_or_default();
        }
        Ok(())
    }

    /// The body is over: what it holds.
    pub fn finish(&mut self) -> Result<Answer<'_, K>, json::Error> {
        let handler: &mut dyn json::Handler = &mut |_: json::Event<'_>| json::Step::Next;
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

    /// Gets ready for another answer.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

/// Reads a page of a list.
pub struct ListDecoder<K: Object>(Reader<K>);

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

impl<K: Object> ListDecoder<K> {
    /// A decoder before the first byte.
    pub const fn new() -> Self {
        Self(Reader::new())
    }

    /// Reads on to the next event or the end of `bytes`; returns how many bytes it took. The rest
    /// has to be fed again.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<ListEvent<'_, K>>), json::Error> {
        self.0.feed_list(bytes)
    }

    /// Whether the page came to its end.
    pub fn is_done(&self) -> bool {
        self.0.tokenizer.is_done()
    }

    /// Gets ready for another page.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

/// Reads a watch.
pub struct WatchDecoder<K: Object>(Reader<K>);

/// What comes in a watch.
#[derive(Debug)]
pub enum WatchEvent<'a, K> {
    /// The object is new to this watch.
    Added(&'a K),
    /// The object has changed.
    Modified(&'a K),
    /// What has happened to an object whose metadata suffices.
    Metadata(Change, &'a Meta),
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
    Faulty(Change, ObjectFault<'a>),
    /// An event of a type that is not known.
    Unknown,
}

impl<K: Object> WatchDecoder<K> {
    /// A decoder before the first byte.
    pub const fn new() -> Self {
        Self(Reader::new())
    }

    /// Reads on to the next event or the end of `bytes`; returns how many bytes it took. The rest
    /// has to be fed again. After an error the watch cannot be read on.
    pub fn feed(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, Option<WatchEvent<'_, K>>), json::Error> {
        self.0.feed_watch(bytes, None)
    }

    /// Whether the last event is complete and no other has begun: a watch that ends elsewhere was
    /// cut off.
    pub fn is_between_events(&self) -> bool {
        self.0.tokenizer.is_done() || self.0.tokenizer.is_at_start()
    }

    /// Gets ready for another watch.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

/// Lists and watches of one kind, one after the other, in the memory of one object.
pub struct FeedDecoder<K: Object>(Reader<K>);

impl<K: Object> FeedDecoder<K> {
    /// A decoder before the first byte.
    pub const fn new() -> Self {
        Self(Reader::new())
    }

    /// Gets ready for another page of a list, or for another watch.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// As [`ListDecoder::feed`].
    pub fn feed_list(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, Option<ListEvent<'_, K>>), json::Error> {
        self.0.feed_list(bytes)
    }

    /// As [`WatchDecoder::feed`], but does not read what is known already.
    pub fn feed_watch(
        &mut self,
        bytes: &[u8],
        memory: &dyn Memory<K>,
    ) -> Result<(usize, Option<WatchEvent<'_, K>>), json::Error> {
        self.0.feed_watch(bytes, Some(memory))
    }

    /// How the page ended that was read last; `None` if it did not end yet.
    pub fn list_end(&mut self) -> Option<ListEvent<'_, K>> {
        self.0.tokenizer.is_done().then(|| self.0.list_end())
    }

    /// The Status that came instead of a list, as far as it was read.
    pub fn status(&self) -> &Status {
        &self.0.envelope.status
    }
}

impl<K: Object> Default for FeedDecoder<K> {
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

    fn list_end(&mut self) -> ListEvent<'_, K> {
        let fault = self.take_fault();
        let envelope = &self.envelope;
        let fault = envelope.list_fault.or(fault).or_else(|| envelope.list.check().err());
        match fault {
            _ if envelope.status.is_present => ListEvent::Status(&envelope.status),
            Some(fault) => ListEvent::FaultyEnd(fault),
            None => ListEvent::End(&envelope.list),
        }
    }

    fn feed_watch(
        &mut self,
        bytes: &[u8],
        memory: Option<&dyn Memory<K>>,
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
            Some(Change::Error) => return WatchEvent::Error(&self.envelope.status),
            Some(Change::Bookmark) => return self.bookmark(),
            Some(change) if self.envelope.metadata_only => {
                return WatchEvent::Metadata(change, self.metadata());
            }
            Some(change) => change,
        };
        match (self.object(), change) {
            (Err(fault), _) => WatchEvent::Faulty(change, fault),
            (Ok(object), Change::Added) => WatchEvent::Added(object),
            (Ok(object), Change::Deleted) => WatchEvent::Deleted(object),
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
            Err(fault) => WatchEvent::Faulty(Change::Bookmark, fault),
            Ok(_) => WatchEvent::Unknown,
        }
    }
}

impl<K: Object, L: ListPart> Reader<K, L> {
    /// The metadata of an object of which nothing else is wanted. What was wrong with the object, if
    /// anything, is old news.
    fn metadata(&mut self) -> &Meta {
        self.take_fault();
        self.envelope.object.meta()
    }
}

impl<K: Object> Default for AnswerDecoder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> Default for ListDecoder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> Default for WatchDecoder<K> {
    fn default() -> Self {
        Self::new()
    }
}
