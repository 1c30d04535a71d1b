//! What makes a record a kind that can be read.

use super::project::{Fault, FieldFault, Value};
use super::table::{Field, FieldTable};
use super::{Meta, Uid};
use crate::json::{Digest, Flow, Token};

/// A kind of object: a record, and the table that says how to fill it.
///
/// The methods take what the projector finds; `State` is what reading needs beside the record.
/// Both start from a constant, so that decoders can live in static memory from the start.
pub trait Object: Sized {
    /// The name of the kind.
    const KIND: &'static str;
    /// What is read of it.
    const TABLE: &'static FieldTable;
    /// What reading needs beside the record.
    type State;
    /// The record before anything was read.
    const EMPTY: Self;
    /// The state before anything was read.
    const START: Self::State;

    /// The metadata.
    fn meta(&self) -> &Meta;

    /// Gets ready for the next object.
    fn clear(&mut self, state: &mut Self::State);

    /// A value to keep.
    fn keep(
        &mut self,
        state: &mut Self::State,
        field: Field,
        value: Value<'_>,
    ) -> Result<(), Fault>;

    /// The next token of a value that streams.
    fn stream(
        &mut self,
        state: &mut Self::State,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault>;

    /// An object or an element of an array begins.
    fn begin(&mut self, state: &mut Self::State, field: Field);

    /// It ends.
    fn end(&mut self, state: &mut Self::State, field: Field);

    /// The pod template is known and will not come.
    fn recalled_template(state: &mut Self::State, template: Digest) {
        let _ = (state, template);
    }

    /// All of the object has come: puts together what only now is known, and checks it.
    fn finish(&mut self, state: &mut Self::State) -> Result<(), FieldFault>;

    /// The uid, which tells an object from its namesakes of other times.
    fn uid(&self) -> Uid {
        self.meta().uid
    }
}
