//! Bodies made of other objects while those stream by, in constant memory.
//!
//! A template is never in memory. To create a ReplicaSet, a ControllerRevision, a pod, a claim, or a
//! patch that takes over annotations or a template, the source object is read again and its parts
//! are copied into the new body as they come, with what is ours before, between and after them. On
//! the way uid and template are checked; the last bytes of the body are only released when all was
//! as expected, so a body that is complete is right.
//!
//! Members may come in any order. Where the order of the source is not that of the body (a
//! ReplicaSet has the labels of its template outside and inside of it), the source is read once
//! more: [`Splicer::source`] says what to read next, until there is nothing left.

mod annotations;
#[cfg(feature = "statefulset")]
mod claim;
mod copy;
mod entry;
mod order;
mod pending;
mod source;
#[cfg(feature = "statefulset")]
mod stateful_set_pod;
mod text;
#[cfg(feature = "statefulset")]
mod volumes;

pub use order::{Make, Splice};

use crate::json::{Place, Tokenizer, Window, Writer};
use crate::limits::Target;
use crate::wire::{Projection, Projector};
use copy::Copier;
use core::borrow::Borrow;
use core::fmt;

/// Why a body cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SpliceError {
    /// The source is not the object that the decision was about: its uid, version or template is
    /// another.
    Changed,
    /// The source is no such object at all, or lacks what has to be copied.
    Malformed,
    /// The source is nested more deeply than can be followed, or has too many volumes.
    TooLarge,
}

impl fmt::Display for SpliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "the source object has changed meanwhile",
            Self::Malformed => "the source object lacks what has to be copied from it",
            Self::TooLarge => "the source object is nested too deeply or has too many volumes",
        })
    }
}

impl core::error::Error for SpliceError {}

/// What is being written: text of ours, or what is copied from one reading of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Text(Text),
    Copy(Part),
    Done,
}

/// A piece of text between what is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    /// Of what has a spec: the end of its metadata, where that was not copied together with it.
    MetadataEnd,
    /// The end of the body.
    End,
    ReplicaSetHead,
    ReplicaSetSpec,
    ReplicaSetTail,
    PodHead,
    AnnotationsHead,
    AnnotationsTail,
    RollbackHead,
    RollbackTail,
    #[cfg(feature = "statefulset")]
    ControllerRevisionHead,
    #[cfg(feature = "statefulset")]
    ControllerRevisionData,
    #[cfg(feature = "statefulset")]
    ControllerRevisionTail,
    /// Up to and with the labels that are ours.
    #[cfg(feature = "statefulset")]
    StatefulSetPodHead,
    #[cfg(feature = "statefulset")]
    LabelsEnd,
    /// What is ours in the spec of a StatefulSet's pod, up to the volumes that are not. It is
    /// put into what is copied.
    #[cfg(feature = "statefulset")]
    PodIdentity,
    /// Up to the labels.
    #[cfg(feature = "statefulset")]
    ClaimHead,
}

/// What is copied in one reading of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Annotations, and the labels of the template.
    Metadata,
    /// Selector and template.
    ReplicaSetSpec,
    /// Metadata of the template, and its spec if that comes later.
    TemplateMetadata,
    /// The spec of the template.
    TemplateSpec,
    Annotations,
    /// Removal of the Deployment's annotations.
    RollbackTarget,
    /// Annotations and template of the ReplicaSet.
    RollbackSource,
    /// The template, as it stands.
    #[cfg(feature = "statefulset")]
    RevisionTemplate,
    /// The labels of the template. Its spec is looked at, for what comes later.
    #[cfg(feature = "statefulset")]
    Labels,
    /// The labels of the selector; metadata and spec of the template as far as they come later.
    #[cfg(feature = "statefulset")]
    MatchLabels,
}

/// Makes one body, of a [`Splice`] that it owns or borrows.
pub struct Splicer<S = Splice> {
    splice: S,
    stage: Stage,
    /// Bytes of the current text that are out already, and where the writer was before it.
    text_done: usize,
    tokenizer: Tokenizer,
    projector: Projector,
    copier: Copier,
    failed: Option<SpliceError>,
}

/// How much of the source is read before the output is looked after. What 32 bytes become fits
/// the buffer of the copier whatever they are.
const STRIDE: usize = 32;

impl Splicer {
    /// A splicer before the first byte.
    pub fn new(splice: &Splice) -> Self {
        Self::of(splice.clone())
    }
}

impl<'s> Splicer<&'s Splice> {
    /// As [`source`](Self::source), for as long as the splice lives.
    pub fn borrowed_source(&self) -> Option<&'s Target> {
        self.stage.source(self.splice)
    }
}

impl<S: Borrow<Splice>> Splicer<S> {
    /// A splicer before the first byte.
    pub fn of(splice: S) -> Self {
        let head = match splice.borrow().make {
            Make::ReplicaSet { .. } => Text::ReplicaSetHead,
            Make::Pod { .. } => Text::PodHead,
            Make::Annotations { .. } => Text::AnnotationsHead,
            Make::Rollback { .. } => Text::RollbackHead,
            #[cfg(feature = "statefulset")]
            Make::ControllerRevision { .. } => Text::ControllerRevisionHead,
            #[cfg(feature = "statefulset")]
            Make::StatefulSetPod { .. } => Text::StatefulSetPodHead,
            #[cfg(feature = "statefulset")]
            Make::Claim { .. } => Text::ClaimHead,
        };
        Self {
            splice,
            stage: Stage::Text(head),
            text_done: 0,
            tokenizer: Tokenizer::new(),
            projector: Projector::new(),
            copier: Copier::new(),
            failed: None,
        }
    }

    /// The object to GET next, from its first byte; `None` when all has been read.
    pub fn source(&self) -> Option<&Target> {
        self.stage.source(self.splice.borrow())
    }

    /// Takes bytes from the front of `source` and writes to `out`; returns how many bytes it
    /// wrote. To be repeated until `source` is empty. `out` may be of any size.
    pub fn push(&mut self, source: &mut &[u8], out: &mut [u8]) -> Result<usize, SpliceError> {
        self.check()?;
        let mut written = 0;
        loop {
            let room = out.get_mut(written..).unwrap_or_default();
            written += match self.stage {
                Stage::Text(text) => self.write_text(text, room),
                Stage::Copy(_) | Stage::Done => self.copier.take(self.splice.borrow(), room),
            };
            let ready = matches!(self.stage, Stage::Copy(_)) && self.copier.is_drained();
            if source.is_empty() || (!ready && written == out.len()) {
                return Ok(written);
            }
            if ready {
                let (next, rest) = source.split_at_checked(STRIDE).unwrap_or((source, b""));
                self.feed(next)?;
                *source = rest;
            } else if self.stage == Stage::Done {
                return Err(self.fail(SpliceError::Malformed));
            }
        }
    }

    /// The answer with the source is complete: checks that it was the right object.
    pub fn end_of_source(&mut self) -> Result<(), SpliceError> {
        self.check()?;
        let Stage::Copy(part) = self.stage else {
            return Err(self.fail(SpliceError::Malformed));
        };
        if !self.tokenizer.is_done() {
            return Err(self.fail(SpliceError::Malformed));
        }
        let next = match self.copier.finish(self.splice.borrow(), part) {
            Ok(next) => next,
            Err(error) => return Err(self.fail(error)),
        };
        self.text_done = 0;
        match next {
            Stage::Copy(part) => self.start_copy(Some(part), self.copier.place()),
            _ => self.stage = next,
        }
        Ok(())
    }

    /// Writes what comes after the last source; `None` when the body is complete. To be repeated
    /// until then.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<Option<usize>, SpliceError> {
        self.check()?;
        if self.source().is_some() {
            return Err(self.fail(SpliceError::Malformed));
        }
        let mut written = self.copier.take(self.splice.borrow(), out);
        if self.copier.is_drained()
            && let Stage::Text(text) = self.stage
        {
            written += self.write_text(text, out.get_mut(written..).unwrap_or_default());
        }
        let complete = written == 0 && self.stage == Stage::Done && self.copier.is_drained();
        Ok(if complete { None } else { Some(written) })
    }

    fn check(&self) -> Result<(), SpliceError> {
        self.failed.map_or(Ok(()), Err)
    }

    /// After an error nothing more comes out, whatever is called.
    fn fail(&mut self, error: SpliceError) -> SpliceError {
        *self.failed.get_or_insert(error)
    }

    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), SpliceError> {
        let Stage::Copy(part) = self.stage else { return Ok(()) };
        let Self { splice, tokenizer, projector, copier, .. } = self;
        let mut pass = copier.pass((*splice).borrow(), part);
        let mut result = Ok(());
        let mut projection = Projection { projector, record: &mut pass };
        while !bytes.is_empty() && result.is_ok() {
            match tokenizer.feed(bytes, &mut projection) {
                Ok(read) => bytes = bytes.get(read..).unwrap_or_default(),
                Err(error) => result = Err(error.into()),
            }
        }
        if let Some(error) = self.copier.error() {
            result = Err(error);
        }
        if self.projector.take_fault().is_some() {
            result = result.and(Err(SpliceError::Malformed));
        }
        result.map_err(|error| self.fail(error))
    }

    /// Writes as much as fits of a text of ours, after what was copied before it.
    fn write_text(&mut self, text: Text, out: &mut [u8]) -> usize {
        let before = self.copier.take(self.splice.borrow(), out);
        if !self.copier.is_drained() {
            return before;
        }
        let room = out.get_mut(before..).unwrap_or_default();
        let mut window = Window::new(room, self.text_done);
        let place =
            text.write(self.splice.borrow(), Writer::resume(&mut window, self.copier.place()));
        let (written, complete) = (window.written(), window.is_complete());
        self.text_done += written;
        if complete {
            self.start_copy(text.followed_by(), place);
        }
        before + written
    }

    fn start_copy(&mut self, part: Option<Part>, place: Place) {
        self.copier.start(place);
        self.tokenizer = Tokenizer::new();
        self.projector.start(self.splice.borrow().make.source());
        self.stage = part.map_or(Stage::Done, Stage::Copy);
    }
}

impl Stage {
    /// What has to be read for it.
    fn source(self, splice: &Splice) -> Option<&Target> {
        let part = match self {
            Self::Copy(part) => part,
            Self::Text(text) => text.followed_by()?,
            Self::Done => return None,
        };
        match (&splice.make, part) {
            (Make::Rollback { target, .. }, Part::RollbackTarget) => Some(target),
            _ => Some(&splice.source),
        }
    }
}

impl Text {
    /// What is copied after this text.
    fn followed_by(self) -> Option<Part> {
        match self {
            Self::ReplicaSetHead => Some(Part::Metadata),
            Self::ReplicaSetSpec => Some(Part::ReplicaSetSpec),
            Self::PodHead => Some(Part::TemplateMetadata),
            Self::MetadataEnd => Some(Part::TemplateSpec),
            Self::AnnotationsHead => Some(Part::Annotations),
            Self::RollbackHead => Some(Part::RollbackTarget),
            #[cfg(feature = "statefulset")]
            Self::ControllerRevisionHead => Some(Part::Metadata),
            #[cfg(feature = "statefulset")]
            Self::ControllerRevisionData => Some(Part::RevisionTemplate),
            #[cfg(feature = "statefulset")]
            Self::StatefulSetPodHead | Self::ClaimHead => Some(Part::Labels),
            #[cfg(feature = "statefulset")]
            Self::LabelsEnd => Some(Part::TemplateMetadata),
            #[cfg(feature = "statefulset")]
            Self::ControllerRevisionTail | Self::PodIdentity => None,
            Self::ReplicaSetTail | Self::End | Self::AnnotationsTail | Self::RollbackTail => None,
        }
    }
}

impl From<crate::json::Error> for SpliceError {
    fn from(error: crate::json::Error) -> Self {
        match error.reason {
            crate::json::ErrorReason::TooDeep => Self::TooLarge,
            _ => Self::Malformed,
        }
    }
}
