//! From the bytes of a body to the cache and its handlers.

use crate::json::Digest;
use crate::kind::Kind;
use crate::store::{Applied, Cache, Cached, Change, Owner, Refusal};
use crate::wire::{
    self, FeedDecoder, Field, ListEvent, Memory, Meta, ObjectFault, ResourceVersion, Status,
    WatchEvent,
};

use super::{ListEnd, Malformed, More, Seen, Shape, Source};

/// What one kind's list or watch is decoded with, from one body to the next. Made for static
/// memory.
pub struct Decoder<K: Cached> {
    decoder: FeedDecoder<K>,
    shape: Shape,
    /// The page came to its end, and its metadata is in order.
    page_ended: bool,
    token_too_long: bool,
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
    /// Decodes the body.
    pub decoder: &'a mut Decoder<K>,
    /// Takes the objects.
    pub cache: &'a mut Cache<'c>,
    /// Is told of changes.
    pub handler: &'a mut dyn Handler,
    /// The only namespaces whose objects count; none are all.
    pub namespaces: &'a [&'a str],
}

impl<K: Cached> Decoder<K> {
    /// A decoder before its first body.
    pub const fn new() -> Self {
        Self {
            decoder: FeedDecoder::new(),
            shape: Shape::FirstPage,
            page_ended: false,
            token_too_long: false,
        }
    }
}

impl<K: Cached> Default for Decoder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Cached> Source for Feed<'_, '_, K> {
    fn begin(&mut self, shape: Shape) {
        self.decoder.shape = shape;
        self.decoder.page_ended = false;
        self.decoder.token_too_long = false;
        self.decoder.decoder.reset();
        if shape == Shape::FirstPage {
            self.cache.begin_relist(K::CACHED);
        }
    }

    fn push(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<(), Malformed> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = match self.decoder.shape {
                Shape::Watch => self.watch(rest, seen)?,
                Shape::FirstPage | Shape::NextPage | Shape::Status => self.list(rest, seen)?,
            };
            rest = rest.get(read..).unwrap_or_default();
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<ListEnd<'_>, Malformed> {
        let Decoder { decoder, page_ended, token_too_long, .. } = &mut *self.decoder;
        if *token_too_long {
            return Ok(ListEnd { version: None, more: More::Unreadable });
        }
        match decoder.list_end() {
            Some(ListEvent::End(meta)) if *page_ended => {
                let token = meta.continue_token.as_str();
                let more = if token.is_empty() { More::None } else { More::Token(token) };
                Ok(ListEnd { version: Some(meta.resource_version), more })
            }
            _ => Err(Malformed),
        }
    }

    fn status(&self) -> Option<&Status> {
        Some(self.decoder.decoder.status())
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
    fn list(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<usize, Malformed> {
        let Decoder { decoder, page_ended, token_too_long, .. } = &mut *self.decoder;
        let (read, event) = decoder.feed_list(bytes).map_err(|_| Malformed)?;
        match event {
            None | Some(ListEvent::Status(_)) => {}
            Some(ListEvent::Item(object)) => {
                if !is_elsewhere(self.namespaces, object.meta()) {
                    apply(self.cache, self.handler, object);
                }
                seen(Seen::Listed(object.meta().resource_version));
            }
            Some(ListEvent::Faulty(fault)) if is_elsewhere(self.namespaces, fault.meta) => {}
            Some(ListEvent::Faulty(fault)) => refuse::<K>(self.cache, self.handler, &fault),
            Some(ListEvent::End(_)) => *page_ended = true,
            Some(ListEvent::FaultyEnd(fault)) => {
                *token_too_long = fault.field == Field::ListContinue;
            }
        }
        Ok(read)
    }

    fn watch(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<usize, Malformed> {
        let namespaces = self.namespaces;
        let memory = Watched { cache: self.cache, namespaces };
        let fed = self.decoder.decoder.feed_watch(bytes, &memory);
        let (read, event) = fed.map_err(|_| Malformed)?;
        match event {
            None => {}
            // However much of what is gone was read, and whatever is wrong with it.
            Some(
                WatchEvent::Metadata(wire::Change::Deleted, meta)
                | WatchEvent::Faulty(wire::Change::Deleted, ObjectFault { meta, .. }),
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
            Some(WatchEvent::Metadata(wire::Change::Added, meta)) => {
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
                let is_object = matches!(change, wire::Change::Added | wire::Change::Modified);
                if is_object && !is_elsewhere(namespaces, fault.meta) {
                    refuse::<K>(self.cache, self.handler, &fault);
                }
                seen(changed(fault.meta));
            }
        }
        Ok(read)
    }
}

impl<K: Cached> Memory<K> for Cache<'_> {
    fn suffices(&self, _: Option<wire::Change>, meta: &Meta) -> bool {
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

impl<K: Cached> Memory<K> for Watched<'_, '_> {
    /// What is gone has no more to say. The echo of an own write, whose answer came first, is not
    /// read again, and what is elsewhere is nobody's business here.
    fn suffices(&self, change: Option<wire::Change>, meta: &Meta) -> bool {
        match change {
            Some(wire::Change::Deleted) => true,
            Some(wire::Change::Added | wire::Change::Modified) => {
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
