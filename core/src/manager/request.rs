//! What the manager asks the driver to send, and what the driver reports back.
//!
//! A request is owned and bounded: it can cross an `await` while the manager goes on with other
//! keys. Its body is one of three: none; a small document that [`Manager::write_body`] writes on
//! demand; or a [`Splice`], which streams a source object into the new body.
//!
//! [`Manager::write_body`]: super::Manager::write_body

use core::fmt;

use heapless::String;

use crate::json::{Digest, ShortHash};
use crate::limits;
use crate::wire::{ResourceVersion, Uid};

/// Longest path and query of a request: an event of the longest name in the longest namespace.
pub const TARGET: usize = 448;

/// A path with its query.
pub type Target = String<TARGET>;

/// The name of an object.
pub type ObjectName = String<{ limits::NAME }>;

const _: () = assert!(TARGET > 64 + limits::NAMESPACE + limits::NAME + 32);

/// Tells which request an answer belongs to. Good for one request: when that has ended, a late
/// answer under the same ticket is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ticket {
    pub(super) lane: u8,
    pub(super) serial: u16,
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Method {
    /// GET
    Get,
    /// POST
    Post,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl Method {
    /// The name of the verb.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// `Content-Type` of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ContentType {
    /// A whole object, or options.
    Json,
    /// A JSON merge patch.
    MergePatch,
    /// A strategic merge patch: lists merge by key.
    StrategicMergePatch,
    /// A list of operations.
    JsonPatch,
}

impl ContentType {
    /// The media type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MergePatch => "application/merge-patch+json",
            Self::StrategicMergePatch => "application/strategic-merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
        }
    }
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number under which everything about this request is reported.
    pub ticket: Ticket,
    /// The verb.
    pub method: Method,
    /// Path and query.
    pub target: Target,
    /// What the body is, if there is one.
    pub content_type: ContentType,
    /// The body.
    pub body: Body,
}

/// The body of a request.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is no allocator to box with")]
pub enum Body {
    /// None.
    Empty,
    /// A small document: [`Manager::write_body`](super::Manager::write_body) writes it, the same
    /// each time, as long as the request has not ended.
    Document,
    /// A document made of another one while that streams by.
    Splice(Splice),
}

/// A body that is made of a source object.
///
/// The driver GETs the source, feeds its bytes to a splicer for this value and sends what comes
/// out. Nothing must be sent to its end unless the source turned out to be the one named here:
/// the splicer checks uid and template. A body once made may be used again for requests that
/// want the same [`Splice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// The object to GET.
    pub source: Target,
    /// Its uid.
    pub uid: Uid,
    /// The digest its pod template must have.
    pub template: Digest,
    /// What to make of it.
    pub make: Make,
}

impl Splice {
    /// Whether the body of `other` would be the same, byte for byte.
    pub fn makes_the_same(&self, other: &Self) -> bool {
        let same_source = self.source == other.source && self.uid == other.uid;
        match (&self.make, &other.make) {
            (Make::Pod { owner: this, .. }, Make::Pod { owner: that, .. }) => {
                same_source && self.template == other.template && this == that
            }
            _ => self == other,
        }
    }
}

/// What a [`Splice`] makes of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Make {
    /// A ReplicaSet of a Deployment.
    ReplicaSet {
        /// Its name.
        name: ObjectName,
        /// The name of the source, which becomes its owner.
        owner: ObjectName,
        /// Value of the `pod-template-hash` label in labels, selector and template.
        hash: ShortHash,
        /// `spec.replicas`
        replicas: i32,
        /// `spec.minReadySeconds`
        min_ready_seconds: i32,
        /// `deployment.kubernetes.io/revision`
        revision: i64,
        /// `deployment.kubernetes.io/desired-replicas`
        desired_replicas: i32,
        /// `deployment.kubernetes.io/max-replicas`
        max_replicas: i32,
    },
    /// A pod of a ReplicaSet, named by the server.
    Pod {
        /// The name of the source, which becomes its owner.
        owner: ObjectName,
        /// Further pods of the same source that are wanted right after this one: worth keeping
        /// the body for.
        more: u16,
    },
    /// A merge patch of a ReplicaSet that takes over its Deployment's annotations.
    Annotations {
        /// uid of the ReplicaSet, as a precondition.
        target_uid: Uid,
        /// Version of the ReplicaSet, as a precondition.
        target_version: ResourceVersion,
        /// `deployment.kubernetes.io/revision`, if that is to change.
        revision: Option<i64>,
        /// `deployment.kubernetes.io/revision-history`, if that is to change.
        revision_history: Option<String<{ limits::REVISION_HISTORY }>>,
        /// `spec.minReadySeconds`
        min_ready_seconds: i32,
    },
    /// A JSON patch of a Deployment that takes over template and annotations of the source, a
    /// ReplicaSet, in place of its own.
    Rollback {
        /// The Deployment to GET before the source: which of its annotations have to go, is only
        /// known from itself.
        target: Target,
        /// uid of the Deployment, as a precondition.
        target_uid: Uid,
        /// Version of the Deployment, as a precondition.
        target_version: ResourceVersion,
    },
}

/// How a request failed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Failure {
    /// Nothing reached the server, or not to its end: the request has had no effect.
    NotSent,
    /// The request was sent but no complete answer came: the server may have acted.
    Ambiguous,
    /// The source of a [`Splice`] could not be read: the server answered with this status.
    Source(u16),
    /// The source of a [`Splice`] is not what it was. Nothing was written.
    SourceChanged,
}

impl Failure {
    /// What happened, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotSent => "the request could not be sent",
            Self::Ambiguous => "no complete answer came",
            Self::Source(_) => "the source object could not be read",
            Self::SourceChanged => "the source object has changed meanwhile",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match self {
            Self::Source(status) => write!(f, ": {status}"),
            Self::NotSent | Self::Ambiguous | Self::SourceChanged => Ok(()),
        }
    }
}
