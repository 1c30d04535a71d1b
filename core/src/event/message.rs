//! What events say, kept as what they are made of.

use core::fmt;

use crate::kind::Kind;
use crate::store::RefusalReason;
use crate::text::{Interner, Name, Text};
use crate::time::Timestamp;
use crate::wire::{ResourceVersion, Uid};

/// `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EventType {
    /// Something went as it should.
    Normal,
    /// Something did not.
    Warning,
}

impl EventType {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object an event is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What sort of object.
    pub about: About,
    /// Which component says so.
    pub component: &'static str,
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Name,
    /// Its uid.
    pub uid: Uid,
    /// The version that was looked at.
    pub version: ResourceVersion,
}

/// What sort of object an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// One that is watched.
    Object(Kind),
    /// The Node on which the controllers run. Its uid and version are not known.
    Node,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// A Deployment scaled one of its ReplicaSets.
    Scaled {
        /// The ReplicaSet.
        set: Name,
        /// Its size before.
        from: i32,
        /// Its size after.
        to: i32,
    },
    /// A ReplicaSet created a pod.
    CreatedPod(Name),
    /// A ReplicaSet deleted a pod.
    DeletedPod(Name),
    /// A ReplicaSet could not create a pod.
    CreateFailed(Text),
    /// A ReplicaSet could not delete a pod.
    DeleteFailed(Text),
    /// A Deployment could not create a ReplicaSet.
    SetCreateFailed {
        /// The ReplicaSet's name.
        set: Name,
        /// Why.
        error: Text,
    },
    /// A Deployment was rolled back.
    RolledBack(i64),
    /// A rollback changes nothing.
    TemplateUnchanged,
    /// There is no such revision.
    RevisionNotFound,
    /// There is no revision before.
    LastRevisionNotFound,
    /// The selector of a Deployment is empty.
    SelectingAll,
    /// A StatefulSet created, updated or deleted a pod, or could not.
    #[cfg(feature = "statefulset")]
    StatefulSetPod {
        /// What it did.
        verb: PodVerb,
        /// The pod.
        pod: Name,
        /// Why it could not.
        error: Option<Text>,
    },
    /// A StatefulSet created a claim for a pod, or could not.
    #[cfg(feature = "statefulset")]
    CreatedClaim {
        /// The claim.
        claim: Name,
        /// The pod.
        pod: Name,
        /// Why it could not.
        error: Option<Text>,
    },
    /// A claim of a StatefulSet's pod belongs to somebody else.
    #[cfg(feature = "statefulset")]
    ConflictingController(Name),
    /// A certificate by which the controllers speak to the server is about to end.
    CertificateEnds {
        /// Which one.
        which: &'static str,
        /// When.
        at: Timestamp,
    },
    /// Objects did not fit into the controller's memory.
    Blind(Kind),
    /// One of the objects could not be kept.
    Refused {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: Name,
        /// Why.
        reason: RefusalReason,
    },
}

/// What a StatefulSet does to a pod.
#[cfg(feature = "statefulset")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodVerb {
    /// Create it.
    Create = 1,
    /// Update it.
    Update,
    /// Delete it.
    Delete,
}

impl Message {
    /// `reason` of the event.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Scaled { .. } => "ScalingReplicaSet",
            Self::CreatedPod(_) => "SuccessfulCreate",
            Self::DeletedPod(_) => "SuccessfulDelete",
            Self::CreateFailed(_) => "FailedCreate",
            Self::DeleteFailed(_) => "FailedDelete",
            Self::SetCreateFailed { .. } => "ReplicaSetCreateError",
            Self::RolledBack(_) => "DeploymentRollback",
            Self::TemplateUnchanged => "DeploymentRollbackTemplateUnchanged",
            Self::RevisionNotFound | Self::LastRevisionNotFound => {
                "DeploymentRollbackRevisionNotFound"
            }
            Self::SelectingAll => "SelectingAll",
            #[cfg(feature = "statefulset")]
            Self::StatefulSetPod { verb, error, .. } => match (verb, error) {
                (PodVerb::Create, None) => "SuccessfulCreate",
                (PodVerb::Update, None) => "SuccessfulUpdate",
                (PodVerb::Delete, None) => "SuccessfulDelete",
                (PodVerb::Create, Some(_)) => "FailedCreate",
                (PodVerb::Update, Some(_)) => "FailedUpdate",
                (PodVerb::Delete, Some(_)) => "FailedDelete",
            },
            #[cfg(feature = "statefulset")]
            Self::CreatedClaim { error: None, .. } => "SuccessfulCreate",
            #[cfg(feature = "statefulset")]
            Self::CreatedClaim { .. } => "FailedCreate",
            #[cfg(feature = "statefulset")]
            Self::ConflictingController(_) => "ConflictingController",
            Self::CertificateEnds { .. } => "CertificateExpiresSoon",
            Self::Refused { reason: RefusalReason::Faulty(_), .. } => "FaultyObject",
            Self::Blind(_) | Self::Refused { .. } => "ControllerMemoryFull",
        }
    }

    /// `type` of the event.
    pub const fn event_type(&self) -> EventType {
        match self {
            Self::Scaled { .. }
            | Self::CreatedPod(_)
            | Self::DeletedPod(_)
            | Self::RolledBack(_) => EventType::Normal,
            #[cfg(feature = "statefulset")]
            Self::StatefulSetPod { error: None, .. } | Self::CreatedClaim { error: None, .. } => {
                EventType::Normal
            }
            _ => EventType::Warning,
        }
    }

    pub(super) fn retain(&self, texts: &mut Interner) {
        match *self {
            Self::Scaled { set, .. } | Self::CreatedPod(set) | Self::DeletedPod(set) => {
                set.retain(texts);
            }
            Self::CreateFailed(text) | Self::DeleteFailed(text) => {
                texts.retain(text);
            }
            Self::SetCreateFailed { set, error } => {
                set.retain(texts);
                texts.retain(error);
            }
            Self::Refused { name, .. } => {
                name.retain(texts);
            }
            #[cfg(feature = "statefulset")]
            Self::ConflictingController(name) => {
                name.retain(texts);
            }
            #[cfg(feature = "statefulset")]
            Self::StatefulSetPod { pod, error, .. } => {
                pod.retain(texts);
                texts.retain(error.unwrap_or_default());
            }
            #[cfg(feature = "statefulset")]
            Self::CreatedClaim { claim, pod, error } => {
                claim.retain(texts);
                pod.retain(texts);
                texts.retain(error.unwrap_or_default());
            }
            _ => {}
        }
    }

    pub(super) fn release(&self, texts: &mut Interner) {
        match *self {
            Self::Scaled { set, .. } | Self::CreatedPod(set) | Self::DeletedPod(set) => {
                set.release(texts);
            }
            Self::CreateFailed(text) | Self::DeleteFailed(text) => texts.release(text),
            Self::SetCreateFailed { set, error } => {
                set.release(texts);
                texts.release(error);
            }
            Self::Refused { name, .. } => name.release(texts),
            #[cfg(feature = "statefulset")]
            Self::ConflictingController(name) => name.release(texts),
            #[cfg(feature = "statefulset")]
            Self::StatefulSetPod { pod, error, .. } => {
                pod.release(texts);
                texts.release(error.unwrap_or_default());
            }
            #[cfg(feature = "statefulset")]
            Self::CreatedClaim { claim, pod, error } => {
                claim.release(texts);
                pod.release(texts);
                texts.release(error.unwrap_or_default());
            }
            _ => {}
        }
    }

    /// The text of the event, about the object of this name.
    pub(super) fn write(
        &self,
        out: &mut dyn fmt::Write,
        texts: &Interner,
        subject: &Subject,
    ) -> fmt::Result {
        let subject = subject.name.display(texts);
        match *self {
            Self::Scaled { set, from, to } => {
                let direction = if to > from { "up" } else { "down" };
                let set = set.display(texts);
                write!(out, "Scaled {direction} replica set {set} from {from} to {to}")
            }
            Self::CreatedPod(pod) => write!(out, "Created pod: {}", pod.display(texts)),
            Self::DeletedPod(pod) => write!(out, "Deleted pod: {}", pod.display(texts)),
            Self::CreateFailed(error) => {
                out.write_str("Error creating: ")?;
                write_text(out, texts, error)
            }
            Self::DeleteFailed(error) => {
                out.write_str("Error deleting: ")?;
                write_text(out, texts, error)
            }
            Self::SetCreateFailed { set, error } => {
                write!(out, "Failed to create new replica set \"{}\": ", set.display(texts))?;
                write_text(out, texts, error)
            }
            Self::RolledBack(revision) => {
                write!(out, "Rolled back deployment \"{subject}\" to revision {revision}")
            }
            Self::TemplateUnchanged => write!(
                out,
                "The rollback revision contains the same template as current deployment \
                 \"{subject}\""
            ),
            Self::RevisionNotFound => out.write_str("Unable to find the revision to rollback to."),
            Self::LastRevisionNotFound => out.write_str("Unable to find last revision."),
            Self::SelectingAll => out.write_str(
                "This deployment is selecting all pods. A non-empty selector is required.",
            ),
            #[cfg(feature = "statefulset")]
            Self::StatefulSetPod { verb, pod, error } => {
                let verb = match verb {
                    PodVerb::Create => "create",
                    PodVerb::Update => "update",
                    PodVerb::Delete => "delete",
                };
                let pod = pod.display(texts);
                write!(out, "{verb} Pod {pod} in StatefulSet {subject} ")?;
                write_result(out, texts, "successful", error)
            }
            #[cfg(feature = "statefulset")]
            Self::CreatedClaim { claim, pod, error } => {
                let (claim, pod) = (claim.display(texts), pod.display(texts));
                // The words differ on the wire.
                let link = if error.is_some() { "for " } else { "" };
                write!(out, "create Claim {claim} {link}Pod {pod} in StatefulSet {subject} ")?;
                write_result(out, texts, "success", error)
            }
            #[cfg(feature = "statefulset")]
            Self::ConflictingController(claim) => write!(
                out,
                "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging \
                 controller, the retention policy is ignored for this claim",
                claim.display(texts)
            ),
            Self::CertificateEnds { which, at } => {
                write!(out, "The {which} ends at {}: it has to be renewed before", at.rfc3339())
            }
            Self::Refused { kind, name, reason } => write!(
                out,
                "{} \"{}\" cannot be kept: {reason}; nothing is created or deleted for \"{subject}\" \
                 until it can",
                kind.info().name,
                name.display(texts)
            ),
            Self::Blind(members) => {
                let members = match members {
                    Kind::Pod => "pods",
                    #[cfg(feature = "statefulset")]
                    Kind::ControllerRevision => "controller revisions",
                    #[cfg(feature = "statefulset")]
                    Kind::PersistentVolumeClaim => "persistent volume claims",
                    _ => "replica sets",
                };
                write!(
                    out,
                    "Not all {members} of \"{subject}\" fit into the controller's memory; nothing \
                     is created or deleted until they do"
                )
            }
        }
    }
}

/// Writes how something went.
#[cfg(feature = "statefulset")]
fn write_result(
    out: &mut dyn fmt::Write,
    texts: &Interner,
    good: &str,
    error: Option<Text>,
) -> fmt::Result {
    match error {
        None => out.write_str(good),
        Some(error) => {
            out.write_str("failed error: ")?;
            write_text(out, texts, error)
        }
    }
}

/// Writes an interned text that may have characters of several bytes across its pieces.
pub(crate) fn write_text(out: &mut dyn fmt::Write, texts: &Interner, text: Text) -> fmt::Result {
    let mut pending = [0_u8; 4];
    let mut len = 0;
    for &byte in texts.pieces(text).flatten() {
        if let Some(place) = pending.get_mut(len) {
            *place = byte;
            len += 1;
        }
        let so_far = pending.get(..len).unwrap_or_default();
        match core::str::from_utf8(so_far) {
            Ok(character) => {
                out.write_str(character)?;
                len = 0;
            }
            // Cut off or broken: dropped once it cannot become a character any more.
            Err(error) if error.error_len().is_some() => len = 0,
            Err(_) => {}
        }
    }
    Ok(())
}
