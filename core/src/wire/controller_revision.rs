//! `apps/v1` ControllerRevision, of a StatefulSet.

use super::meta::{METADATA, MetaState};
use super::project::{Fault, FieldFault, Value};
use super::table::{Field, FieldTable, Rule};
use super::template::{POD_TEMPLATE, digest_template};
use super::{Meta, Object};
use crate::json::{Digest, Digester, Flow, Token};

/// A ControllerRevision as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct ControllerRevision {
    /// Its metadata.
    pub meta: Meta,
    /// `revision`
    pub revision: i64,
    /// The pod template in `data`, the `$patch` left out: equal to that of the StatefulSet it was made of.
    pub data: Digest,
}

static CONTROLLER_REVISION: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("revision", Rule::Keep(Field::Revision)),
    ("data", Rule::Object(Field::RevisionData, &DATA)),
]);

static DATA: FieldTable = FieldTable::new(&[("spec", Rule::Object(Field::RevisionSpec, &SPEC))]);

static SPEC: FieldTable = FieldTable::new(&[("template", Rule::Stream(Field::RevisionTemplate))]);

/// What reading a ControllerRevision needs beside the ControllerRevision.
#[derive(Clone, Debug)]
pub struct ControllerRevisionState {
    meta: MetaState,
    template: Digester,
}

impl Object for ControllerRevision {
    const KIND: &'static str = "ControllerRevision";
    const TABLE: &'static FieldTable = &CONTROLLER_REVISION;
    type State = ControllerRevisionState;
    const EMPTY: Self = Self { meta: Meta::EMPTY, revision: 0, data: Digest::from_bits(0) };
    const START: ControllerRevisionState =
        ControllerRevisionState { meta: MetaState::START, template: Digester::PLAIN };

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn clear(&mut self, state: &mut ControllerRevisionState) {
        self.meta.clear(&mut state.meta);
        self.revision = 0;
        self.data = Digest::default();
        state.template.restart(&POD_TEMPLATE);
    }

    fn keep(
        &mut self,
        state: &mut ControllerRevisionState,
        field: Field,
        value: Value<'_>,
    ) -> Result<(), Fault> {
        match field {
            Field::Revision => self.revision = value.int()?,
            _ => self.meta.keep(&mut state.meta, field, value)?,
        }
        Ok(())
    }

    fn stream(
        &mut self,
        state: &mut ControllerRevisionState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        if field == Field::RevisionTemplate {
            state.template.push(token);
            return Ok(Flow::Next);
        }
        self.meta.stream_bookmark(&mut state.meta, field, token)
    }

    fn begin(&mut self, state: &mut ControllerRevisionState, field: Field) {
        self.meta.begin(&mut state.meta, field);
    }

    fn end(&mut self, state: &mut ControllerRevisionState, field: Field) {
        self.meta.end(&mut state.meta, field);
    }

    fn finish(&mut self, state: &mut ControllerRevisionState) -> Result<(), FieldFault> {
        self.data = digest_template(&state.template, Field::RevisionTemplate)?;
        self.meta.check()
    }
}
