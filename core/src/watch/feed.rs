//! From the bytes of a body to the cache and its handlers.

use crate::json::Digest;
use crate::kind::Kind;
use crate::store::{Applied, Cache, Cached, Change, Owner, Refusal};
use crate::wire::{
    self, Decoder, Field, KnownObjects, ListEvent, Meta, ObjectFault, PausedList, ResourceVersion,
    Status, WatchEvent,
};

use super::{BodyShape, ListEnd, Malformed, More, Seen, Source};

/// Where a list or watch is: what has to be remembered of it while its decoder reads something else.
#[derive(Debug)]
pub struct Place {
    shape: BodyShape,
    /// The decoder has read a part of something, and must not read anything else before the rest.
    is_amid: bool,
    /// A list is between two items, and remembered in `list`.
    is_paused: bool,
    list: PausedList,
    page: Page,
}

/// How much of a page has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    /// Not all of it.
    Open,
    /// All of it, and its metadata is in order.
    Ended,
    /// All of it, but the token that asks for the next one is too long.
    TokenTooLong,
    /// All of it, and it is no list.
    Faulty,
}

/// Who is told of changes. The cache is up to date when a handler is called.
pub trait Handler {
    /// An object was added, updated or deleted.
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change);

    /// An object did not fit into the cache.
    fn refused(&mut self, cache: &mut Cache<'_>, kind: Kind, meta: &Meta, refusal: &Refusal);

    /// An object cannot be used. It is counted as refused, too.
    fn faulty(&mut self, fault: &ObjectFault<'_>);

    /// An owner that was blind sees again.
    fn healed(&mut self, cache: &mut Cache<'_>, members: Kind, owner: Owner);
}

/// A [`Source`] made of a decoder, the cache and a handler, for as long as one input takes.
pub struct Feed<'a, 'c, K: Cached> {
    /// Decodes the body; `None` while it reads something else.
    pub decoder: Option<&'a mut Decoder<K>>,
    /// Where the body is.
    pub place: &'a mut Place,
    /// Takes the objects.
    pub cache: &'a mut Cache<'c>,
    /// Is told of changes.
    pub handler: &'a mut dyn Handler,
    /// The only namespaces whose objects count; none are all.
    pub namespaces: &'a [&'a str],
    /// Others want the decoder, too: it is let go after each object.
    pub shares: bool,
}

impl Place {
    /// Before the first body.
    pub const NEW: Self = Self {
        shape: BodyShape::FirstPage,
        is_amid: false,
        is_paused: false,
        list: PausedList::EMPTY,
        page: Page::Open,
    };

    /// Whether the decoder must not read anything else now.
    pub fn is_amid(&self) -> bool {
        self.is_amid
    }
}

impl<K: Cached> Source for Feed<'_, '_, K> {
    fn begin(&mut self, shape: BodyShape) {
        self.place.shape = shape;
        self.place.is_amid = false;
        self.place.is_paused = false;
        self.place.page = Page::Open;
        if shape == BodyShape::FirstPage {
            self.cache.begin_relist(K::CACHED);
        }
    }

    fn push(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<usize, Malformed> {
        if self.place.page != Page::Open {
            let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
            return if is_blank { Ok(bytes.len()) } else { Err(Malformed) };
        }
        let Some(decoder) = self.decoder.as_deref_mut() else { return Ok(0) };
        match self.place {
            Place { is_amid: true, .. } => {}
            Place { is_paused: true, list, .. } => decoder.resume_list(list),
            _ => decoder.restart(),
        }
        self.place.is_paused = false;
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = match self.place.shape {
                BodyShape::Watch => self.watch(rest, seen)?,
                BodyShape::FirstPage | BodyShape::NextPage | BodyShape::Status => {
                    self.list(rest, seen)?
                }
            };
            rest = rest.get(read..).unwrap_or_default();
            self.place.is_amid = self.is_amid();
            if self.shares && !self.place.is_amid {
                break;
            }
        }
        if !self.place.is_amid
            && self.place.shape != BodyShape::Watch
            && self.place.page == Page::Open
        {
            let Some(decoder) = self.decoder.as_deref_mut() else { return Err(Malformed) };
            self.place.is_paused = decoder.pause_list(&mut self.place.list);
        }
        Ok(bytes.len() - rest.len())
    }

    fn end_page(&mut self) -> Result<ListEnd<'_>, Malformed> {
        match self.place.page {
            Page::TokenTooLong => Ok(ListEnd { version: None, more: More::Unreadable }),
            Page::Ended => {
                let meta = &self.place.list.meta;
                let token = meta.continue_token.as_str();
                let more = if token.is_empty() { More::None } else { More::Token(token) };
                Ok(ListEnd { version: Some(meta.resource_version), more })
            }
            Page::Open | Page::Faulty => Err(Malformed),
        }
    }

    fn status(&self) -> Option<&Status> {
        let decoder = self.decoder.as_deref().filter(|_| self.place.is_amid)?;
        Some(decoder.status())
    }

    fn replace(&mut self, version: ResourceVersion) {
        let mut sweep = self.cache.sweep_until(K::CACHED, version);
        while let Some(change) = self.cache.sweep_next(&mut sweep) {
            self.handler.changed(self.cache, K::CACHED, &change);
        }
        while let Some(owner) = self.cache.heal_next(&mut sweep) {
            self.handler.healed(self.cache, K::CACHED, owner);
        }
    }

    fn rewind(&mut self) {
        self.cache.rewind(K::CACHED);
    }
}

impl<K: Cached> Feed<'_, '_, K> {
    /// Whether something of this body is read in part.
    fn is_amid(&self) -> bool {
        let Some(decoder) = self.decoder.as_deref() else { return false };
        match self.place.shape {
            BodyShape::Watch => !decoder.is_between_events(),
            BodyShape::FirstPage | BodyShape::NextPage => {
                self.place.page == Page::Open && !decoder.is_between_items()
            }
            // It is asked for when the body is over.
            BodyShape::Status => true,
        }
    }

    fn list(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<usize, Malformed> {
        let Some(decoder) = self.decoder.as_deref_mut() else { return Err(Malformed) };
        let (read, event) = decoder.feed_list(bytes).map_err(|_| Malformed)?;
        let Place { page, list, shape, .. } = &mut *self.place;
        let is_list = *shape != BodyShape::Status;
        match event {
            None => {}
            Some(ListEvent::Item(object)) => {
                if !is_elsewhere(self.namespaces, object.meta()) {
                    apply(self.cache, self.handler, object);
                }
                seen(Seen::Listed(object.meta().resource_version));
            }
            Some(ListEvent::Faulty(fault)) if is_elsewhere(self.namespaces, fault.meta) => {}
            Some(ListEvent::Faulty(fault)) => refuse::<K>(self.cache, self.handler, &fault),
            Some(ListEvent::End(meta)) if is_list => {
                list.meta.clone_from(meta);
                *page = Page::Ended;
            }
            Some(ListEvent::FaultyEnd(fault)) if is_list && fault.field == Field::ListContinue => {
                *page = Page::TokenTooLong;
            }
            Some(ListEvent::Status(_) | ListEvent::FaultyEnd(_)) if is_list => *page = Page::Faulty,
            Some(ListEvent::Status(_) | ListEvent::End(_) | ListEvent::FaultyEnd(_)) => {}
        }
        Ok(read)
    }

    fn watch(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<usize, Malformed> {
        let namespaces = self.namespaces;
        let memory = Watched { cache: self.cache, namespaces };
        let Some(decoder) = self.decoder.as_deref_mut() else { return Err(Malformed) };
        let fed = decoder.feed_watch(bytes, Some(&memory));
        let (read, event) = fed.map_err(|_| Malformed)?;
        match event {
            None => {}
            // However much of what is gone was read, and whatever is wrong with it.
            Some(
                WatchEvent::Metadata(wire::EventType::Deleted, meta)
                | WatchEvent::Faulty(wire::EventType::Deleted, ObjectFault { meta, .. }),
            ) => {
                if !is_elsewhere(namespaces, meta) {
                    delete::<K>(self.cache, self.handler, meta);
                }
                seen(changed(meta));
            }
            Some(WatchEvent::Added(object)) => {
                if !is_elsewhere(namespaces, object.meta()) {
                    apply(self.cache, self.handler, object);
                }
                seen(Seen::Added(object.meta().resource_version));
            }
            Some(WatchEvent::Modified(object)) => {
                if !is_elsewhere(namespaces, object.meta()) {
                    apply(self.cache, self.handler, object);
                }
                seen(Seen::Changed(object.meta().resource_version));
            }
            Some(WatchEvent::Metadata(wire::EventType::Added, meta)) => {
                seen(Seen::Added(meta.resource_version));
            }
            Some(WatchEvent::Metadata(_, meta)) => seen(Seen::Changed(meta.resource_version)),
            // The server has written what happened after what it happened to.
            Some(WatchEvent::Deleted(object)) => {
                if !is_elsewhere(namespaces, object.meta()) {
                    delete::<K>(self.cache, self.handler, object.meta());
                }
                seen(Seen::Changed(object.meta().resource_version));
            }
            Some(WatchEvent::Bookmark { resource_version, .. }) => {
                seen(Seen::Bookmark(resource_version));
            }
            Some(WatchEvent::Error(status)) => seen(Seen::Error(status)),
            Some(WatchEvent::Unknown) => seen(Seen::Foreign),
            Some(WatchEvent::Faulty(change, fault)) => {
                let is_object =
                    matches!(change, wire::EventType::Added | wire::EventType::Modified);
                if is_object && !is_elsewhere(namespaces, fault.meta) {
                    refuse::<K>(self.cache, self.handler, &fault);
                }
                seen(changed(fault.meta));
            }
        }
        Ok(read)
    }
}

impl<K: Cached> KnownObjects<K> for Cache<'_> {
    fn suffices(&self, _: Option<wire::EventType>, meta: &Meta) -> bool {
        self.has(K::CACHED, meta)
    }

    fn recall_template(&self, object: &mut K) -> Option<Digest> {
        Cache::recall_template(self, object)
    }
}

/// What is known of the objects that a watch tells of.
struct Watched<'a, 'c> {
    cache: &'a Cache<'c>,
    namespaces: &'a [&'a str],
}

impl<K: Cached> KnownObjects<K> for Watched<'_, '_> {
    /// What is gone has no more to say. The echo of an own write, whose answer came first, is not
    /// read again, and what is elsewhere is nobody's business here.
    fn suffices(&self, change: Option<wire::EventType>, meta: &Meta) -> bool {
        match change {
            Some(wire::EventType::Deleted) => true,
            Some(wire::EventType::Added | wire::EventType::Modified) => {
                is_elsewhere(self.namespaces, meta) || self.cache.has(K::CACHED, meta)
            }
            _ => false,
        }
    }

    fn recall_template(&self, object: &mut K) -> Option<Digest> {
        self.cache.recall_template(object)
    }
}

/// What a change that may be faulty tells of versions.
fn changed(meta: &Meta) -> Seen<'static> {
    match meta.resource_version {
        ResourceVersion::ANY => Seen::Foreign,
        version => Seen::Changed(version),
    }
}

/// An object without a namespace is at fault, which has to be told.
fn is_elsewhere(namespaces: &[&str], meta: &Meta) -> bool {
    let namespace = meta.namespace.as_str();
    !namespaces.is_empty() && !namespace.is_empty() && !namespaces.contains(&namespace)
}

fn apply<K: Cached>(cache: &mut Cache<'_>, handler: &mut dyn Handler, object: &K) {
    match cache.apply(object) {
        Applied::Changed(change) => handler.changed(cache, K::CACHED, &change),
        Applied::Foreign | Applied::Older => {}
        Applied::Refused(refusal) => {
            handler.refused(cache, K::CACHED, object.meta(), &refusal);
        }
    }
}

fn delete<K: Cached>(cache: &mut Cache<'_>, handler: &mut dyn Handler, meta: &Meta) {
    if let Some(change) = cache.delete(K::CACHED, meta) {
        handler.changed(cache, K::CACHED, &change);
    }
}

fn refuse<K: Cached>(cache: &mut Cache<'_>, handler: &mut dyn Handler, fault: &ObjectFault<'_>) {
    if K::CACHED.is_foreign(fault.meta.controller.as_ref().map(|owner| owner.kind)) {
        return delete::<K>(cache, handler, fault.meta);
    }
    handler.faulty(fault);
    let refusal = cache.refuse_faulty(K::CACHED, fault);
    handler.refused(cache, K::CACHED, fault.meta, &refusal);
}
