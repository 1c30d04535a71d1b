//! `v1` ReplicationController, read as a ReplicaSet: only its selector is written otherwise.

use crate::json::{Digest, Flow, Token};
use crate::store::{self, Condense, RefusalReason};
use crate::text::Interner;
use crate::wire::meta::METADATA;
use crate::wire::replicaset::{STATUS, TEMPLATE};
use crate::wire::{Fault, Field, FieldFault, FieldTable, Meta, Object, ReplicaSet, Rule, Value};

/// A ReplicationController as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct ReplicationController(pub ReplicaSet);

static REPLICATION_CONTROLLER: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
    ("status", Rule::Object(Field::Status, &STATUS)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("replicas", Rule::Keep(Field::Replicas)),
    ("minReadySeconds", Rule::Keep(Field::MinReadySeconds)),
    // What a ReplicaSet has under `matchLabels`.
    ("selector", Rule::Stream(Field::MatchLabels)),
    ("template", Rule::Tee(Field::Template, &TEMPLATE)),
]);

type State = <ReplicaSet as Object>::State;

impl Object for ReplicationController {
    const KIND: &'static str = "ReplicationController";
    const TABLE: &'static FieldTable = &REPLICATION_CONTROLLER;
    type State = State;
    const EMPTY: Self = Self(ReplicaSet::EMPTY);
    const START: State = ReplicaSet::START;

    fn meta(&self) -> &Meta {
        self.0.meta()
    }

    fn clear(&mut self, state: &mut State) {
        self.0.clear(state);
    }

    fn keep(&mut self, state: &mut State, field: Field, value: Value<'_>) -> Result<(), Fault> {
        self.0.keep(state, field, value)
    }

    fn stream(&mut self, state: &mut State, field: Field, token: Token<'_>) -> Result<Flow, Fault> {
        self.0.stream(state, field, token)
    }

    fn begin(&mut self, state: &mut State, field: Field) {
        self.0.begin(state, field);
    }

    fn end(&mut self, state: &mut State, field: Field) {
        self.0.end(state, field);
    }

    fn recalled_template(state: &mut State, template: Digest) {
        ReplicaSet::recalled_template(state, template);
    }

    fn finish(&mut self, state: &mut State) -> Result<(), FieldFault> {
        self.0.finish(state)
    }
}

impl Condense for ReplicationController {
    type Record = store::ReplicaSet;
    const HAS_TEMPLATE: bool = true;

    fn condense(&self, texts: &mut Interner) -> Result<store::ReplicaSet, RefusalReason> {
        self.0.condense(texts)
    }

    fn recall_template(&mut self, record: &store::ReplicaSet, texts: &Interner) -> Option<Digest> {
        self.0.recall_template(record, texts)
    }
}

#[cfg(test)]
mod tests {
    use crate::text::{Cell, Fingerprint, Label, LabelSet, Labels};
    use crate::wire::{Answer, Decoder};

    use super::*;

    #[test]
    fn its_selector_is_a_map() {
        let text = r#"{"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"web",
            "namespace":"shop","uid":"6e5a2e6c-2f0b-4b7b-8f1c-0d6a5d0f1a2b","resourceVersion":"7",
            "generation":3},"spec":{"replicas":2,"minReadySeconds":5,"selector":{"app":"web"},
            "template":{"metadata":{"labels":{"app":"web","tier":"front"}},"spec":{}}},
            "status":{"replicas":2,"observedGeneration":3}}"#;
        let mut decoder = std::boxed::Box::new(Decoder::<ReplicationController>::new());
        decoder.feed_answer(text.as_bytes(), None).unwrap();
        let Ok(Answer::Object(ReplicationController(read))) = decoder.answer() else { panic!() };
        assert_eq!((read.replicas, read.min_ready_seconds), (2, 5));
        assert_eq!((read.status.replicas, read.status.observed_generation), (2, 3));
        let mut texts = Interner::<[Cell; 64]>::new();
        let texts: &mut Interner = &mut texts;
        let record = read.condense(texts).unwrap();
        let mut matches = |app| {
            let mut labels = Labels::new();
            labels.insert_text("app", app);
            let set = LabelSet::intern(texts, labels.as_slice().unwrap()).unwrap();
            record.selector.matches(texts, set)
        };
        assert!(matches("web") && !matches("other"));
        assert!(record.selector.validate().is_ok());
        let front = Label { key: Fingerprint::of("tier"), value: Fingerprint::of("front") };
        assert!(read.template_labels.as_slice().unwrap().contains(&front));
    }
}
