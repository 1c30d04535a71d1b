//! `coordination.k8s.io/v1` Lease: the lock of leader election.

use super::meta::{METADATA, MetaState};
use super::project::{Fault, FieldFault, Value};
use super::table::{Field, FieldTable, Rule};
use super::{Meta, Object};
use crate::json::{Flow, Token};
use crate::limits;
use crate::time::Timestamp;
use heapless::String;

/// A Lease.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// Its metadata.
    pub meta: Meta,
    /// `spec.holderIdentity`; empty when released.
    pub holder: String<{ limits::NAME }>,
    /// `spec.leaseDurationSeconds`
    pub duration_seconds: i32,
    /// `spec.acquireTime`
    pub acquire_time: Option<Timestamp>,
    /// `spec.renewTime`
    pub renew_time: Option<Timestamp>,
    /// `spec.leaseTransitions`
    pub transitions: i32,
    /// Whether `spec.preferredHolder` is set: coordinated election has ended this term.
    pub has_preferred_holder: bool,
}

static LEASE: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("holderIdentity", Rule::Keep(Field::HolderIdentity)),
    ("leaseDurationSeconds", Rule::Keep(Field::LeaseDurationSeconds)),
    ("acquireTime", Rule::Keep(Field::AcquireTime)),
    ("renewTime", Rule::Keep(Field::RenewTime)),
    ("leaseTransitions", Rule::Keep(Field::LeaseTransitions)),
    ("preferredHolder", Rule::Keep(Field::PreferredHolder)),
]);

impl Object for Lease {
    const KIND: &'static str = "Lease";
    const TABLE: &'static FieldTable = &LEASE;
    type State = MetaState;
    const EMPTY: Self = Self {
        meta: Meta::EMPTY,
        holder: String::new(),
        duration_seconds: 0,
        acquire_time: None,
        renew_time: None,
        transitions: 0,
        has_preferred_holder: false,
    };
    const START: MetaState = MetaState::START;

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn clear(&mut self, state: &mut MetaState) {
        self.meta.clear(state);
        self.holder.clear();
        self.duration_seconds = 0;
        self.acquire_time = None;
        self.renew_time = None;
        self.transitions = 0;
        self.has_preferred_holder = false;
    }

    fn keep(&mut self, state: &mut MetaState, field: Field, value: Value<'_>) -> Result<(), Fault> {
        match field {
            Field::HolderIdentity => value.fit(&mut self.holder)?,
            Field::LeaseDurationSeconds => self.duration_seconds = value.int()?,
            Field::AcquireTime => self.acquire_time = Some(value.time()?),
            Field::RenewTime => self.renew_time = Some(value.time()?),
            Field::LeaseTransitions => self.transitions = value.int()?,
            Field::PreferredHolder => {
                self.has_preferred_holder = !matches!(value, Value::Text { text: "", .. });
            }
            _ => self.meta.keep(state, field, value)?,
        }
        Ok(())
    }

    fn stream(
        &mut self,
        state: &mut MetaState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        match (field, token) {
            (Field::Annotations, Token::Key(_)) => Ok(Flow::Skip),
            _ => self.meta.stream(state, field, token),
        }
    }

    fn begin(&mut self, state: &mut MetaState, field: Field) {
        self.meta.begin(state, field);
    }

    fn end(&mut self, state: &mut MetaState, field: Field) {
        self.meta.end(state, field);
    }

    fn finish(&mut self, _: &mut MetaState) -> Result<(), FieldFault> {
        self.meta.check()
    }
}
