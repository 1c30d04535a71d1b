//! What reads the bodies that come back: one decoder for all watches and answers, which goes from one to
//! the other between objects.
//!
//! It holds an object at Kubernetes' full limits, of whatever kind, which is much on a device: one for
//! each connection would take several times the memory. Whoever comes while it is in the midst of
//! something waits; whoever has it, and does not go on with it while others wait, loses it.

use crate::control::{Reply, Verdict};
use crate::kind::{Kind, kinds};
use crate::planted::{Bug, planted};
use crate::request::{Failure, Ticket};
use crate::store::{Applied, Cache, Cached};
use crate::time::{Duration, Instant};
use crate::watch::{Feed, Handler, Place, RequestId, Source};
use crate::wire::{Answer, Decoder, ResourceVersion, Status};

use super::Manager;
use super::workspace::Lane;

/// How long the rest of an object may take to come while others wait for the decoder.
const SILENCE: Duration = Duration::from_secs(5);

/// The decoder, and who has it.
pub(super) struct SharedDecoder {
    decoder: AnyDecoder,
    holder: Option<Holder>,
    /// Somebody wanted the decoder and did not get it.
    is_wanted: bool,
    /// Where the watches are, by the numbers of their kinds.
    places: [Place; Kind::COUNT],
}

/// Who has the decoder, in the midst of something.
#[derive(Clone, Copy, Debug)]
struct Holder {
    body: ResponseBody,
    /// When bytes came last.
    heard: Instant,
}

/// What bytes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ResponseBody {
    /// The response to a request of the watch of a kind.
    Watch(Kind, RequestId) = 1,
    /// The answer to a request.
    Answer(Ticket),
}

impl SharedDecoder {
    pub(super) const NEW: Self = Self {
        decoder: AnyDecoder::NEW,
        holder: None,
        is_wanted: false,
        places: [const { Place::NEW }; Kind::COUNT],
    };

    fn is_held_by(&self, body: ResponseBody) -> bool {
        self.holder.is_some_and(|holder| holder.body == body)
    }

    /// Hands on where the bodies of a watch go: to the decoder, if the watch has it, and to the cache.
    pub(super) fn with_watch(
        &mut self,
        kind: Kind,
        id: RequestId,
        cache: &mut Cache<'_>,
        handler: &mut dyn Handler,
        namespaces: &[&str],
        then: &mut dyn FnMut(&mut dyn Source),
    ) {
        let is_held = self.is_held_by(ResponseBody::Watch(kind, id));
        // Others have their turn after the object at hand.
        let shares = is_held && core::mem::take(&mut self.is_wanted);
        let Self { decoder, places, .. } = self;
        let Some(place) = places.get_mut(kind as usize) else { return };
        decoder.with_source(kind, is_held, place, cache, handler, namespaces, shares, then);
        if is_held && !place.is_amid() {
            self.holder = None;
        } else if is_held {
            self.is_wanted |= shares;
        }
    }

    /// Takes bytes of an answer; whether the body makes sense so far.
    pub(super) fn feed_answer(&mut self, cache: &Cache<'_>, bytes: &[u8]) -> bool {
        self.decoder.feed_answer(cache, bytes)
    }

    /// Reads what an answer says. An object in it that is newer than what the watch has told so far goes
    /// to the cache at once: own writes count. A deletion shows its object as it was last: one that goes at
    /// once has gone by now, or waits for a finalizer, and the watch tells which.
    pub(super) fn read_answer(
        &mut self,
        ticket: Ticket,
        lane: &Lane,
        end: Result<(), Failure>,
        cache: &mut Cache<'_>,
        handler: &mut dyn Handler,
        seen: ResourceVersion,
    ) -> Reply<'_> {
        let code = lane.status;
        if let Err(failure) = end {
            return Reply {
                verdict: Verdict::Failed(failure),
                message: failure.text(),
                meta: None,
            };
        }
        if lane.is_unreadable || !self.is_held_by(ResponseBody::Answer(ticket)) {
            return unreadable(code);
        }
        self.holder = None;
        let deletes = lane.write.is_some_and(|write| write.is_delete());
        self.decoder.read_answer(code, deletes, cache, handler, seen)
    }
}

impl Manager<'_> {
    /// When the decoder is free for others at the latest, though nothing comes in before: then whoever
    /// has bytes that were not taken should hand them over again. `None` if it is free now.
    pub fn decoder_free_at(&self) -> Option<Instant> {
        let holder = self.decoder.holder.filter(|holder| self.is_being_read(holder.body))?;
        Some(holder.heard + SILENCE)
    }

    /// Whether a body has the decoder now, which it gets if it can.
    pub(super) fn takes_decoder(&mut self, body: ResponseBody, now: Instant) -> bool {
        if self.decoder.is_held_by(body) {
            self.decoder.holder = Some(Holder { body, heard: now });
            return true;
        }
        if self.decoder_free_at().is_some_and(|at| at > now) {
            self.decoder.is_wanted = true;
            return false;
        }
        if let Some(silent) = self.decoder.holder.filter(|holder| self.is_being_read(holder.body)) {
            self.give_up(silent.body, now);
        }
        let kind = match body {
            ResponseBody::Watch(kind, _) => Some(kind),
            ResponseBody::Answer(ticket) => {
                self.lane(ticket).and_then(|lane| lane.write).map(|write| write.kind)
            }
        };
        let Some(kind) = kind else { return false };
        self.decoder.decoder.prepare(kind);
        self.decoder.holder = Some(Holder { body, heard: now });
        true
    }

    /// Whether more of a body is expected.
    fn is_being_read(&self, body: ResponseBody) -> bool {
        match body {
            ResponseBody::Watch(kind, id) => self.watch_request(kind, id).is_some(),
            ResponseBody::Answer(ticket) => {
                self.lane(ticket).is_some_and(|lane| !lane.is_unreadable)
            }
        }
    }

    /// The rest of a body does not come, and others wait.
    fn give_up(&mut self, body: ResponseBody, now: Instant) {
        self.metrics.stalled = self.metrics.stalled.wrapping_add(1);
        match body {
            ResponseBody::Watch(kind, _) => {
                let random = self.random.draw();
                if let Some(watch) = self.watch_mut(kind) {
                    watch.give_up(now, random);
                }
            }
            ResponseBody::Answer(ticket) => {
                if let Some(lane) = self.lane_mut(ticket.lane) {
                    lane.is_unreadable = true;
                }
            }
        }
    }
}

macro_rules! define {
    ($(
        $(#[$meta:meta])*
        $kind:ident $doc:literal $table:ident $capacity:ident ($record:ty, $object:ty) $info:tt
    )*) => {
        /// A decoder of one kind at a time: the largest takes all of its memory, and the others would
        /// stand idle beside it.
        #[allow(clippy::large_enum_variant, reason = "one memory for all of them is the point")]
        enum AnyDecoder {
            $($(#[$meta])* $kind(Decoder<$object>),)*
        }

        $($(#[$meta])*
        const _: () = assert!(size_of::<Decoder<$object>>() <= AnyDecoder::LARGEST);)*

        impl AnyDecoder {
            /// Gets ready for a body, or the rest of one, with objects of this kind.
            fn prepare(&mut self, kind: Kind) {
                match (self, kind) {
                    $($(#[$meta])* (Self::$kind(decoder), Kind::$kind) => decoder.reset(),)*
                    (other, kind) => other.turn_into(kind),
                }
            }

            /// Fills the memory in its place, and not by way of the stack, which may be small.
            #[inline(never)]
            fn turn_into(&mut self, kind: Kind) {
                match kind {
                    $($(#[$meta])* Kind::$kind => {
                        *self = Self::$kind(const { Decoder::new() });
                    })*
                }
            }

            #[expect(clippy::too_many_arguments, reason = "they are what a feed is made of")]
            fn with_source(
                &mut self,
                kind: Kind,
                is_held: bool,
                place: &mut Place,
                cache: &mut Cache<'_>,
                handler: &mut dyn Handler,
                namespaces: &[&str],
                shares: bool,
                then: &mut dyn FnMut(&mut dyn Source),
            ) {
                match kind {
                    $($(#[$meta])* Kind::$kind => {
                        let decoder = match self {
                            Self::$kind(decoder) if is_held => Some(decoder),
                            _ => None,
                        };
                        then(&mut Feed { decoder, place, cache, handler, namespaces, shares });
                    })*
                }
            }

            fn feed_answer(&mut self, cache: &Cache<'_>, bytes: &[u8]) -> bool {
                // The watch may have been faster, and a status leaves the template as it was.
                match self {
                    $($(#[$meta])* Self::$kind(decoder) => {
                        decoder.feed_answer(bytes, Some(cache)).is_ok()
                    })*
                }
            }

            fn read_answer(
                &mut self,
                code: u16,
                deletes: bool,
                cache: &mut Cache<'_>,
                handler: &mut dyn Handler,
                seen: ResourceVersion,
            ) -> Reply<'_> {
                match self {
                    $($(#[$meta])* Self::$kind(decoder) => {
                        read_answer(decoder, code, deletes, cache, handler, seen)
                    })*
                }
            }
        }
    };
}
kinds!(define);

impl AnyDecoder {
    /// The largest one: what marks the others is zero in it.
    const NEW: Self = Self::ReplicaSet(Decoder::new());
    const LARGEST: usize = size_of::<Decoder<crate::wire::ReplicaSet>>();
}

fn read_answer<'d, K: Cached>(
    decoder: &'d mut Decoder<K>,
    code: u16,
    deletes: bool,
    cache: &mut Cache<'_>,
    handler: &mut dyn Handler,
    seen: ResourceVersion,
) -> Reply<'d> {
    match decoder.answer().ok() {
        Some(Answer::Object(object)) => {
            let meta = object.meta();
            let is_news = meta.resource_version > seen && !planted(Bug::NoExpectations);
            let may_be_gone = deletes && meta.goes_at_once;
            if (200..300).contains(&code) && is_news && !may_be_gone {
                match cache.apply_answer(object) {
                    Applied::Changed(change) => handler.changed(cache, K::CACHED, &change),
                    Applied::Refused(refusal) => {
                        handler.refused(cache, K::CACHED, meta, &refusal);
                    }
                    Applied::Foreign | Applied::Older => {}
                }
            }
            Reply { verdict: Verdict::of(code, None), message: "", meta: Some(meta) }
        }
        Some(Answer::Metadata(meta)) => {
            Reply { verdict: Verdict::of(code, None), message: "", meta: Some(meta) }
        }
        Some(Answer::Status(status)) => {
            let verdict = Verdict::of(code, Some(status));
            Reply { verdict, message: text_of(status), meta: None }
        }
        Some(Answer::Faulty(_)) | None => unreadable(code),
    }
}

fn unreadable(code: u16) -> Reply<'static> {
    Reply { verdict: Verdict::of(code, None), message: "unreadable answer", meta: None }
}

fn text_of(status: &Status) -> &str {
    if status.message.is_empty() { "unknown error" } else { &status.message }
}
