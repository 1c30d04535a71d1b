//! What reads the bodies that come back: one decoder for each watch, and one for each answer that
//! is being read, whatever object is in it.

use crate::control::{Reply, Verdict};
use crate::kind::{Kind, kinds};
use crate::planted::{Bug, planted};
use crate::request::Failure;
use crate::store::{Applied, Cache, Cached};
use crate::watch::{Decoder, Feed, Handler, Source};
use crate::wire::{Answer, AnswerDecoder, ResourceVersion, Status};

use super::workspace::Lane;

macro_rules! define {
    ($(
        $(#[$meta:meta])*
        $kind:ident $doc:literal $table:ident $capacity:ident ($record:ty, $object:ty) $info:tt
    )*) => {
        /// What reads the watches.
        pub(super) struct WatchDecoders {
            $($(#[$meta])* $table: Decoder<$object>,)*
        }

        impl WatchDecoders {
            pub(super) const NEW: Self = Self { $($(#[$meta])* $table: Decoder::new(),)* };

            /// Hands on what reads the watch of a kind, together with where its objects go.
            pub(super) fn with(
                &mut self,
                kind: Kind,
                cache: &mut Cache<'_>,
                handler: &mut dyn Handler,
                namespaces: &[&str],
                then: &mut dyn FnMut(&mut dyn Source),
            ) {
                match kind {
                    $($(#[$meta])* Kind::$kind => {
                        let decoder = &mut self.$table;
                        then(&mut Feed { decoder, cache, handler, namespaces });
                    })*
                }
            }
        }

        /// Reads the answer to one request at a time: the largest kind takes all of its memory, and
        /// the others would stand idle beside it.
        #[allow(clippy::large_enum_variant, reason = "one memory for all of them is the point")]
        pub(super) enum AnswerReader {
            $($(#[$meta])* $kind(AnswerDecoder<$object>),)*
        }

        impl AnswerReader {
            /// Gets ready for an answer with an object of this kind.
            pub(super) fn prepare(&mut self, kind: Kind) {
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
                        *self = Self::$kind(const { AnswerDecoder::new() });
                    })*
                }
            }

            /// Whether the body makes sense so far.
            pub(super) fn feed(&mut self, cache: &Cache<'_>, bytes: &[u8]) -> bool {
                // The watch may have been faster, and a status leaves the template as it was.
                match self {
                    $($(#[$meta])* Self::$kind(decoder) => {
                        decoder.feed_news(bytes, cache).is_ok()
                    })*
                }
            }

            /// Reads what an answer says. An object in it that is newer than what the watch has told
            /// so far goes to the cache at once: own writes count.
            pub(super) fn read(
                &mut self,
                lane: &Lane,
                end: Result<(), Failure>,
                cache: &mut Cache<'_>,
                handler: &mut dyn Handler,
                seen: ResourceVersion,
            ) -> Reply<'_> {
                match self {
                    $($(#[$meta])* Self::$kind(decoder) => {
                        read(decoder, lane, end, cache, handler, seen)
                    })*
                }
            }
        }
    };
}
kinds!(define);

impl AnswerReader {
    /// The largest one: what marks the others is zero in it.
    pub(super) const NEW: Self = Self::ReplicaSet(AnswerDecoder::new());
}

fn read<'d, K: Cached>(
    decoder: &'d mut AnswerDecoder<K>,
    lane: &Lane,
    end: Result<(), Failure>,
    cache: &mut Cache<'_>,
    handler: &mut dyn Handler,
    seen: ResourceVersion,
) -> Reply<'d> {
    if let Err(failure) = end {
        return Reply { verdict: Verdict::Failed(failure), message: failure.text(), meta: None };
    }
    let code = lane.status;
    let answer = if lane.is_unreadable { None } else { decoder.finish().ok() };
    match answer {
        Some(Answer::Object(object)) => {
            let meta = object.meta();
            let is_news = meta.resource_version > seen && !planted(Bug::NoExpectations);
            if (200..300).contains(&code) && is_news {
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
        Some(Answer::Faulty(_)) | None => {
            Reply { verdict: Verdict::of(code, None), message: "unreadable answer", meta: None }
        }
    }
}

fn text_of(status: &Status) -> &str {
    if status.message.is_empty() { "unknown error" } else { &status.message }
}
