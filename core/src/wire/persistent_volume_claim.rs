//! `v1` PersistentVolumeClaim: whom it belongs to.

use super::meta::{METADATA, MetaState, parse_uid};
use super::project::{Fault, FieldFault, Value};
use super::table::{Field, FieldTable, Rule};
use super::{Meta, Object, OwnerKind, Uid};
use crate::json::{Flow, Token};
use crate::text::Fingerprint;
use heapless::Vec;

/// A PersistentVolumeClaim as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct PersistentVolumeClaim {
    /// Its metadata.
    pub meta: Meta,
    /// Its references to StatefulSets and pods. A claim of a StatefulSet needs no more of them.
    pub references: Vec<OwnerReference, { PersistentVolumeClaim::REFERENCES }>,
    /// Another reference has `controller: true`, or there are too many to tell.
    pub has_other_controller: bool,
}

impl PersistentVolumeClaim {
    /// References to StatefulSets and pods that are told apart.
    pub const REFERENCES: usize = 2;
}

/// A reference to a StatefulSet or a pod, which need not be the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerReference {
    /// The kind of the owner.
    pub kind: OwnerKind,
    /// Its name.
    pub name: Fingerprint,
    /// Its uid; [`Uid::NIL`] if that is none that a server hands out.
    pub uid: Uid,
    /// `controller: true`
    pub is_controller: bool,
}

impl OwnerReference {
    const START: Self = Self {
        kind: OwnerKind::Other,
        name: Fingerprint::from_bits(0),
        uid: Uid::NIL,
        is_controller: false,
    };
}

static PERSISTENT_VOLUME_CLAIM: FieldTable =
    FieldTable::new(&[("metadata", Rule::Object(Field::Metadata, &METADATA))]);

/// What reading a PersistentVolumeClaim needs beside the PersistentVolumeClaim.
#[derive(Clone, Debug)]
pub struct PersistentVolumeClaimState {
    meta: MetaState,
    /// The owner reference at hand.
    reference: OwnerReference,
}

impl Object for PersistentVolumeClaim {
    const KIND: &'static str = "PersistentVolumeClaim";
    const TABLE: &'static FieldTable = &PERSISTENT_VOLUME_CLAIM;
    type State = PersistentVolumeClaimState;
    const EMPTY: Self =
        Self { meta: Meta::EMPTY, references: Vec::new(), has_other_controller: false };
    const START: PersistentVolumeClaimState =
        PersistentVolumeClaimState { meta: MetaState::START, reference: OwnerReference::START };

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn clear(&mut self, state: &mut PersistentVolumeClaimState) {
        self.meta.clear(&mut state.meta);
        self.references.clear();
        self.has_other_controller = false;
    }

    fn keep(
        &mut self,
        state: &mut PersistentVolumeClaimState,
        field: Field,
        value: Value<'_>,
    ) -> Result<(), Fault> {
        let reference = &mut state.reference;
        match field {
            // As in the metadata: what cannot be of an object here is somebody else's.
            Field::OwnerKind => {
                reference.kind = value.text().map_or(OwnerKind::Other, OwnerKind::parse);
            }
            Field::OwnerName => {
                reference.name = value.text().map_or(OwnerReference::START.name, Fingerprint::of);
            }
            Field::OwnerUid => reference.uid = parse_uid(value).unwrap_or(Uid::NIL),
            Field::OwnerController => reference.is_controller = value.bool()?,
            _ => {}
        }
        self.meta.keep(&mut state.meta, field, value)
    }

    fn stream(
        &mut self,
        state: &mut PersistentVolumeClaimState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        self.meta.stream_bookmark(&mut state.meta, field, token)
    }

    fn begin(&mut self, state: &mut PersistentVolumeClaimState, field: Field) {
        if field == Field::OwnerReference {
            state.reference = OwnerReference::START;
        }
        self.meta.begin(&mut state.meta, field);
    }

    fn end(&mut self, state: &mut PersistentVolumeClaimState, field: Field) {
        if field == Field::OwnerReference {
            let reference = state.reference;
            self.has_other_controller |= match reference.kind {
                OwnerKind::StatefulSet | OwnerKind::Pod => self.references.push(reference).is_err(),
                _ => reference.is_controller,
            };
        }
        self.meta.end(&mut state.meta, field);
    }

    fn finish(&mut self, _: &mut PersistentVolumeClaimState) -> Result<(), FieldFault> {
        self.meta.check()
    }
}
