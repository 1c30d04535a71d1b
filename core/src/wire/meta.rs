//! `metadata`: what every kind has.

#[cfg(feature = "statefulset")]
use super::annotations::Annotation;
use super::annotations::AnnotationReader;
use super::pairs::Pairs;
use super::project::{Fault, FieldFault, Value};
use super::table::{Field, FieldTable, Rule};
use super::{ResourceVersion, Uid};
use crate::json::{Flow, Token};
use crate::kind::OwnerKind;
use crate::limits;
use crate::text::Labels;
use crate::time::Timestamp;
use heapless::String;

/// The metadata of one object.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// Empty for objects without a namespace.
    pub namespace: String<{ limits::NAMESPACE }>,
    /// The name, unique in the namespace at a time.
    pub name: String<{ limits::NAME }>,
    /// The uid, unique for all time.
    pub uid: Uid,
    /// The version that was read.
    pub resource_version: ResourceVersion,
    /// Counts the changes of the desired state; 0 for kinds without it.
    pub generation: i64,
    /// When the server created it.
    pub creation: Option<Timestamp>,
    /// When its deletion was or will be due, if it is being deleted.
    pub deletion: Option<Timestamp>,
    /// It is being deleted without grace: it goes at once, unless a finalizer holds it.
    pub goes_at_once: bool,
    /// The labels, as fingerprints.
    pub labels: Labels,
    /// The first owner with `controller: true`.
    pub controller: Option<ControllerRef>,
    /// Of a bookmark: the list that came as a stream is complete with it.
    pub ends_initial_events: bool,
}

impl Meta {
    /// No object's metadata.
    pub const EMPTY: Self = Self {
        namespace: String::new(),
        name: String::new(),
        uid: Uid::NIL,
        resource_version: ResourceVersion::ANY,
        generation: 0,
        creation: None,
        deletion: None,
        goes_at_once: false,
        labels: Labels::new(),
        controller: None,
        ends_initial_events: false,
    };
}

/// The owner reference with `controller: true`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerRef {
    /// The kind of the owner.
    pub kind: OwnerKind,
    /// Its name, in the same namespace.
    pub name: String<{ limits::NAME }>,
    /// Its uid.
    pub uid: Uid,
}

/// The members of `metadata` that are read.
pub(crate) static METADATA: FieldTable = FieldTable::new(&[
    ("name", Rule::Keep(Field::Name)),
    ("namespace", Rule::Keep(Field::Namespace)),
    ("uid", Rule::Keep(Field::Uid)),
    ("resourceVersion", Rule::Keep(Field::ResourceVersion)),
    ("generation", Rule::Keep(Field::Generation)),
    ("creationTimestamp", Rule::Keep(Field::CreationTimestamp)),
    ("deletionTimestamp", Rule::Keep(Field::DeletionTimestamp)),
    ("deletionGracePeriodSeconds", Rule::Keep(Field::DeletionGracePeriodSeconds)),
    ("labels", Rule::Stream(Field::Labels)),
    ("annotations", Rule::Stream(Field::Annotations)),
    ("ownerReferences", Rule::Each(Field::OwnerReference, &OWNER_REFERENCE)),
]);

static OWNER_REFERENCE: FieldTable = FieldTable::new(&[
    ("kind", Rule::Keep(Field::OwnerKind)),
    ("name", Rule::Keep(Field::OwnerName)),
    ("uid", Rule::Keep(Field::OwnerUid)),
    ("controller", Rule::Keep(Field::OwnerController)),
]);

/// What reading metadata needs beside the metadata.
#[derive(Clone, Debug)]
pub struct MetaState {
    /// Labels, and whatever map of strings a kind has.
    pub(super) pairs: Pairs,
    pub(super) annotations: AnnotationReader,
    /// The owner reference at hand has `controller: true`.
    is_controller: bool,
    /// The owner reference at hand is of no object that there is here.
    is_foreign: bool,
    /// The owner with `controller: true` has been found.
    has_controller: bool,
}

impl MetaState {
    pub(super) const START: Self = Self {
        pairs: Pairs::START,
        annotations: AnnotationReader::START,
        is_controller: false,
        is_foreign: false,
        has_controller: false,
    };
}

impl Meta {
    pub(super) fn clear(&mut self, state: &mut MetaState) {
        self.namespace.clear();
        self.name.clear();
        self.uid = Uid::NIL;
        self.resource_version = ResourceVersion::ANY;
        self.generation = 0;
        self.creation = None;
        self.deletion = None;
        self.goes_at_once = false;
        self.labels.clear();
        self.controller = None;
        self.ends_initial_events = false;
        state.has_controller = false;
    }

    pub(super) fn keep(
        &mut self,
        state: &mut MetaState,
        field: Field,
        value: Value<'_>,
    ) -> Result<(), Fault> {
        match field {
            Field::Name => value.fit(&mut self.name)?,
            Field::Namespace => value.fit(&mut self.namespace)?,
            Field::Uid => self.uid = parse_uid(value)?,
            Field::ResourceVersion => self.resource_version = parse_resource_version(value)?,
            Field::Generation => self.generation = value.int()?,
            Field::CreationTimestamp => self.creation = Some(value.time()?),
            Field::DeletionTimestamp => self.deletion = Some(value.time()?),
            Field::DeletionGracePeriodSeconds => self.goes_at_once = value.int() == Ok(0),
            _ if state.has_controller => {}
            Field::OwnerController => state.is_controller = value.bool()?,
            _ => {
                let owner = self.controller.get_or_insert_default();
                // The API server lets references be about anything. What cannot be a name or a uid
                // of an object here is somebody else's, and no fault of the object.
                let fits = match field {
                    Field::OwnerKind => {
                        value.text().map(|kind| owner.kind = OwnerKind::parse(kind))
                    }
                    Field::OwnerName => value.fit(&mut owner.name),
                    Field::OwnerUid => parse_uid(value).map(|uid| owner.uid = uid),
                    _ => Ok(()),
                };
                state.is_foreign |= fits.is_err();
            }
        }
        Ok(())
    }

    pub(super) fn stream(
        &mut self,
        state: &mut MetaState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        if field == Field::Labels
            && let Some(label) = state.pairs.push(token)?
        {
            self.labels.insert(label.key, label.value);
        }
        Ok(Flow::Next)
    }

    /// As [`stream`](Self::stream), for a kind whose annotations mean nothing, but for what bookmarks have.
    #[cfg(feature = "statefulset")]
    pub(super) fn stream_bookmark(
        &mut self,
        state: &mut MetaState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        if field != Field::Annotations {
            return self.stream(state, field, token);
        }
        let wanted = |name| name == Annotation::InitialEventsEnd;
        let (step, entry) = state.annotations.push(token, wanted)?;
        self.ends_initial_events |= entry.is_some_and(|entry| entry.is_true());
        Ok(step)
    }

    pub(super) fn begin(&mut self, state: &mut MetaState, field: Field) {
        if field == Field::OwnerReference && !state.has_controller {
            self.controller = None;
            state.is_controller = false;
            state.is_foreign = false;
        }
    }

    pub(super) fn end(&mut self, state: &mut MetaState, field: Field) {
        if field == Field::OwnerReference && !state.has_controller {
            state.has_controller = state.is_controller;
            if !state.has_controller {
                self.controller = None;
            } else if state.is_foreign {
                self.controller.get_or_insert_default().kind = OwnerKind::Other;
            }
        }
    }

    /// Whether the object can be told from others.
    pub(super) fn check(&self) -> Result<(), FieldFault> {
        let too_many = self.labels.as_slice().is_err();
        let owner = self.controller.as_ref().filter(|owner| owner.kind != OwnerKind::Other);
        let missing = |field| FieldFault { field, fault: Fault::Missing };
        match () {
            () if self.name.is_empty() => Err(missing(Field::Name)),
            () if !is_plain(&self.name) => {
                Err(FieldFault { field: Field::Name, fault: Fault::Malformed })
            }
            () if !is_plain(&self.namespace) => {
                Err(FieldFault { field: Field::Namespace, fault: Fault::Malformed })
            }
            () if self.uid == Uid::NIL => Err(missing(Field::Uid)),
            () if self.resource_version == ResourceVersion::ANY => {
                Err(missing(Field::ResourceVersion))
            }
            () if owner.is_some_and(|owner| owner.name.is_empty()) => {
                Err(missing(Field::OwnerName))
            }
            () if owner.is_some_and(|owner| owner.uid == Uid::NIL) => Err(missing(Field::OwnerUid)),
            () if too_many => Err(FieldFault { field: Field::Labels, fault: Fault::TooMany }),
            () => Ok(()),
        }
    }
}

/// Whether a name can stand in a path and in JSON as it is, as the API server has made sure: those of
/// all kinds here are DNS names.
pub(super) fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_'))
}

pub(super) fn parse_uid(value: Value<'_>) -> Result<Uid, Fault> {
    Uid::parse(value.text()?).ok_or(Fault::Malformed)
}

pub(super) fn parse_resource_version(value: Value<'_>) -> Result<ResourceVersion, Fault> {
    ResourceVersion::parse(value.text()?).ok_or(Fault::Malformed)
}
