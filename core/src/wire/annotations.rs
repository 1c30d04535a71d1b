//! Annotations: those that controllers read by name, and the rest as fingerprints.

use super::project::Fault;
use crate::json::{Collected, Collector, Digest, Flow, Fragment, Token};
use crate::limits;
use crate::text::Fingerprint;
use core::hash::Hasher;
use heapless::{String, Vec};
use siphasher::sip128::{Hasher128, SipHasher13};

/// An annotation with a meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Annotation {
    Other,
    LastAppliedConfiguration,
    Revision,
    RevisionHistory,
    DesiredReplicas,
    MaxReplicas,
    RollbackTo,
    PodDeletionCost,
    InitialEventsEnd,
    #[cfg(feature = "statefulset")]
    ReplaceBrokenPods,
}

impl Annotation {
    /// The annotation with this key.
    pub(crate) fn parse(key: &[u8]) -> Self {
        match key {
            b"kubectl.kubernetes.io/last-applied-configuration" => Self::LastAppliedConfiguration,
            b"deployment.kubernetes.io/revision" => Self::Revision,
            b"deployment.kubernetes.io/revision-history" => Self::RevisionHistory,
            b"deployment.kubernetes.io/desired-replicas" => Self::DesiredReplicas,
            b"deployment.kubernetes.io/max-replicas" => Self::MaxReplicas,
            b"deprecated.deployment.rollback.to" => Self::RollbackTo,
            b"controller.kubernetes.io/pod-deletion-cost" => Self::PodDeletionCost,
            b"k8s.io/initial-events-end" => Self::InitialEventsEnd,
            #[cfg(feature = "statefulset")]
            b"picokube.dev/replace-broken-pods" => Self::ReplaceBrokenPods,
            _ => Self::Other,
        }
    }

    /// The longest key with a meaning.
    pub(crate) const KEY_LEN: usize = "kubectl.kubernetes.io/last-applied-configuration".len();

    /// Whether a Deployment and its ReplicaSets copy it from each other.
    pub(crate) const fn is_shared(self) -> bool {
        match self {
            Self::PodDeletionCost | Self::InitialEventsEnd | Self::Other => true,
            // It means nothing to a Deployment.
            #[cfg(feature = "statefulset")]
            Self::ReplaceBrokenPods => true,
            Self::LastAppliedConfiguration
            | Self::Revision
            | Self::RevisionHistory
            | Self::DesiredReplicas
            | Self::MaxReplicas
            | Self::RollbackTo => false,
        }
    }
}

/// An annotation that holds a whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum IntAnnotation {
    /// The object does not have it.
    #[default]
    Absent,
    /// It is there but no number.
    Invalid,
    /// Its value.
    Value(i64),
}

impl IntAnnotation {
    /// The number, if there is one.
    pub const fn value(self) -> Option<i64> {
        match self {
            Self::Value(number) => Some(number),
            Self::Absent | Self::Invalid => None,
        }
    }

    /// The number if it is there and fits 32 bits, as Kubernetes reads replica annotations.
    pub fn as_i32(self) -> Option<i32> {
        self.value().and_then(|number| i32::try_from(number).ok())
    }

    fn parse(text: Collected<'_>) -> Self {
        match text.text().parse() {
            Ok(number) if !text.cut => Self::Value(number),
            _ => Self::Invalid,
        }
    }
}

/// The annotations that a Deployment and its ReplicaSets share: all but
/// `kubectl.kubernetes.io/last-applied-configuration`, those of `deployment.kubernetes.io` and
/// `deprecated.deployment.rollback.to`.
#[derive(Clone, Debug, Default)]
pub struct SharedAnnotations {
    /// Over all of them, whatever their order.
    pub digest: Digest,
    /// One fingerprint per annotation, of key and value together.
    pub prints: Vec<Fingerprint, { limits::ANNOTATIONS }>,
    /// There were more than [`limits::ANNOTATIONS`]; only the digest covers them all.
    pub overflowed: bool,
}

impl SharedAnnotations {
    /// No annotations.
    pub const EMPTY: Self =
        Self { digest: Digest::from_bits(0), prints: Vec::new(), overflowed: false };

    pub(super) fn clear(&mut self) {
        self.digest = Digest::default();
        self.prints.clear();
        self.overflowed = false;
    }

    pub(super) fn insert(&mut self, entry: Digest) {
        self.digest.add(entry);
        let print = Fingerprint::from_bits(entry.to_bits() as u64);
        self.overflowed |= self.prints.push(print).is_err();
    }
}

/// `deployment.kubernetes.io/revision-history`: revisions a ReplicaSet served before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevisionHistory {
    /// The annotation as far as it fits.
    pub text: String<{ limits::REVISION_HISTORY }>,
    /// Length of the annotation on the server, in bytes.
    pub len: u32,
}

impl RevisionHistory {
    /// Whether [`text`](Self::text) is all of it.
    pub fn is_complete(&self) -> bool {
        self.text.len() == self.len as usize
    }
}

/// Reads the annotations of one object after the other.
#[derive(Clone, Debug)]
pub(super) struct AnnotationReader {
    key: Collector<{ Annotation::KEY_LEN }>,
    annotation: Annotation,
    hasher: Option<SipHasher13>,
    value: Collector<{ limits::REVISION_HISTORY }>,
    value_len: u32,
}

/// An annotation that has been read.
pub(super) struct Entry<'a> {
    pub(super) annotation: Annotation,
    value: Collected<'a>,
    value_len: u32,
    digest: Digest,
}

impl AnnotationReader {
    pub(super) const START: Self = Self {
        key: Collector::new(),
        annotation: Annotation::Other,
        hasher: None,
        value: Collector::new(),
        value_len: 0,
    };

    /// Takes the next token of the annotations. `wanted` tells which ones are worth reading;
    /// [`Flow::Skip`] passes over the others.
    pub(super) fn push<'a>(
        &'a mut self,
        token: Token<'a>,
        wanted: impl Fn(Annotation) -> bool,
    ) -> Result<(Flow, Option<Entry<'a>>), Fault> {
        match token {
            Token::Key(fragment) => {
                self.key(fragment);
                let skip = fragment.last && !wanted(self.annotation);
                Ok((if skip { Flow::Skip } else { Flow::Next }, None))
            }
            Token::String(fragment) => Ok((Flow::Next, self.value(fragment))),
            Token::ObjectStart | Token::ObjectEnd | Token::Null => Ok((Flow::Next, None)),
            Token::ArrayStart | Token::ArrayEnd | Token::Number(_) | Token::Bool(_) => {
                Err(Fault::WrongType)
            }
        }
    }

    fn key(&mut self, fragment: Fragment<'_>) {
        if fragment.first {
            self.hasher = None;
        }
        let hasher = self.hasher.get_or_insert_default();
        hasher.write(fragment.bytes);
        if let Some(key) = self.key.push(fragment) {
            self.annotation = key.whole().map_or(Annotation::Other, Annotation::parse);
            // No key has this byte in it: where it ends and the value begins is beyond doubt.
            hasher.write(&[0xff]);
            self.value_len = 0;
        }
    }

    fn value<'a>(&'a mut self, fragment: Fragment<'a>) -> Option<Entry<'a>> {
        let hasher = self.hasher.get_or_insert_default();
        hasher.write(fragment.bytes);
        self.value_len = self.value_len.saturating_add(fragment.bytes.len() as u32);
        let value = self.value.push(fragment)?;
        let digest = Digest::from_bits(hasher.finish128().as_u128());
        Some(Entry { annotation: self.annotation, value, value_len: self.value_len, digest })
    }
}

impl Entry<'_> {
    pub(super) fn int(&self) -> IntAnnotation {
        IntAnnotation::parse(self.value)
    }

    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    pub(super) fn is_true(&self) -> bool {
        self.value.bytes == b"true"
    }

    pub(super) fn history(&self) -> RevisionHistory {
        let text = String::try_from(self.value.text()).unwrap_or_default();
        RevisionHistory { text, len: self.value_len }
    }

    /// The deletion cost of a pod. As in Kubernetes, what has a plus or a superfluous zero in
    /// front is invalid, and what is invalid counts as 0.
    pub(super) fn deletion_cost(&self) -> i32 {
        let text = self.value.text();
        let plain = text == "0" || text.starts_with(|first| matches!(first, '-' | '1'..='9'));
        if plain && !self.value.cut { text.parse().unwrap_or_default() } else { 0 }
    }
}
