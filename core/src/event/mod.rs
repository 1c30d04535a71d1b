//! The event recorder: tells people what the controllers did, in fixed memory, and never keeps a
//! controller waiting.
//!
//! [`Recorder::record`] puts an event into a short queue; when that is full, the event is dropped
//! and counted. From there, one at a time goes through Kubernetes' correlator: similar events are
//! aggregated, repeated ones counted, and whoever has too many is silenced for a while.

mod correlate;
mod message;
mod recorder;
mod write;

pub use correlate::Remembered;
#[cfg(feature = "statefulset")]
pub use message::PodVerb;
pub(crate) use message::write_text;
pub use message::{About, EventType, Message, Subject};
pub use recorder::{Event, Recorder, Sending};
