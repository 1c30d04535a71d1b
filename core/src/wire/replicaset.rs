//! `apps/v1` ReplicaSet.

use super::annotations::Annotation;
use super::condition::{CONDITION, ConditionDraft, ConditionType};
use super::meta::{METADATA, MetaState};
use super::project::{Fault, FieldFault, Value};
use super::selector::{self, SELECTOR};
use super::table::{Field, FieldTable, Rule};
use super::template::{POD_TEMPLATE, digest_template};
use super::{Condition, IntAnnotation, Meta, Object, RevisionHistory, SharedAnnotations};
use crate::json::{Digest, Digester, Flow, Token};
use crate::limits;
use crate::text::{Labels, Selector};
use crate::zero::ZeroOption;

/// A ReplicaSet as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct ReplicaSet {
    /// Its metadata.
    pub meta: Meta,
    /// `deployment.kubernetes.io/revision`
    pub revision: IntAnnotation,
    /// `deployment.kubernetes.io/revision-history`
    pub revision_history: Option<RevisionHistory>,
    /// `deployment.kubernetes.io/desired-replicas`
    pub desired_replicas: IntAnnotation,
    /// `deployment.kubernetes.io/max-replicas`
    pub max_replicas: IntAnnotation,
    /// The annotations its Deployment may have copied to it.
    pub annotations: SharedAnnotations,
    /// `spec.replicas`; absent counts as 1, Kubernetes' default.
    pub replicas: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// `spec.selector`
    pub selector: Selector,
    /// The pod template, the `pod-template-hash` label left out.
    pub template: Digest,
    /// The labels of the pod template, the hash label included.
    pub template_labels: Labels,
    /// What was last observed.
    pub status: ReplicaSetStatus,
}

/// `status` of a ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSetStatus {
    /// `replicas`
    pub replicas: i32,
    /// `fullyLabeledReplicas`
    pub fully_labeled_replicas: i32,
    /// `readyReplicas`
    pub ready_replicas: i32,
    /// `availableReplicas`
    pub available_replicas: i32,
    /// `terminatingReplicas`; servers before 1.33 do not keep it.
    pub terminating_replicas: Option<i32>,
    /// `observedGeneration`
    pub observed_generation: i64,
    /// The `ReplicaFailure` condition.
    pub replica_failure: ZeroOption<Condition>,
}

impl ReplicaSetStatus {
    /// The status of a new ReplicaSet.
    pub const EMPTY: Self = Self {
        replicas: 0,
        fully_labeled_replicas: 0,
        ready_replicas: 0,
        available_replicas: 0,
        terminating_replicas: None,
        observed_generation: 0,
        replica_failure: ZeroOption::None,
    };
}

static REPLICA_SET: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
    ("status", Rule::Object(Field::Status, &STATUS)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("replicas", Rule::Keep(Field::Replicas)),
    ("minReadySeconds", Rule::Keep(Field::MinReadySeconds)),
    ("selector", Rule::Object(Field::Selector, &SELECTOR)),
    ("template", Rule::Tee(Field::Template, &TEMPLATE)),
]);

/// What is read of a pod template beside its digest.
pub(crate) static TEMPLATE: FieldTable =
    FieldTable::new(&[("metadata", Rule::Object(Field::TemplateMetadata, &TEMPLATE_METADATA))]);

static TEMPLATE_METADATA: FieldTable =
    FieldTable::new(&[("labels", Rule::Stream(Field::TemplateLabels))]);

/// What is read of a status.
pub(crate) static STATUS: FieldTable = FieldTable::new(&[
    ("replicas", Rule::Keep(Field::StatusReplicas)),
    ("fullyLabeledReplicas", Rule::Keep(Field::FullyLabeledReplicas)),
    ("readyReplicas", Rule::Keep(Field::ReadyReplicas)),
    ("availableReplicas", Rule::Keep(Field::AvailableReplicas)),
    ("terminatingReplicas", Rule::Keep(Field::TerminatingReplicas)),
    ("observedGeneration", Rule::Keep(Field::ObservedGeneration)),
    ("conditions", Rule::Each(Field::Condition, &CONDITION)),
]);

/// What reading a ReplicaSet needs beside the ReplicaSet.
#[derive(Clone, Debug)]
pub struct ReplicaSetState {
    meta: MetaState,
    condition: ConditionDraft<{ limits::MESSAGE }>,
    template: Digester,
}

impl Object for ReplicaSet {
    const KIND: &'static str = "ReplicaSet";
    const TABLE: &'static FieldTable = &REPLICA_SET;
    type State = ReplicaSetState;
    const EMPTY: Self = Self {
        meta: Meta::EMPTY,
        revision: IntAnnotation::Absent,
        revision_history: None,
        desired_replicas: IntAnnotation::Absent,
        max_replicas: IntAnnotation::Absent,
        annotations: SharedAnnotations::EMPTY,
        replicas: 0,
        min_ready_seconds: 0,
        selector: Selector::new(),
        template: Digest::from_bits(0),
        template_labels: Labels::new(),
        status: ReplicaSetStatus::EMPTY,
    };
    const START: ReplicaSetState = ReplicaSetState {
        meta: MetaState::START,
        condition: ConditionDraft::START,
        template: Digester::PLAIN,
    };

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn clear(&mut self, state: &mut ReplicaSetState) {
        self.meta.clear(&mut state.meta);
        self.revision = IntAnnotation::Absent;
        self.revision_history = None;
        self.desired_replicas = IntAnnotation::Absent;
        self.max_replicas = IntAnnotation::Absent;
        self.annotations.clear();
        self.replicas = 1;
        self.min_ready_seconds = 0;
        self.selector.clear();
        self.template = Digest::default();
        self.template_labels.clear();
        self.status = ReplicaSetStatus::EMPTY;
        state.template.restart(&POD_TEMPLATE);
    }

    fn keep(
        &mut self,
        state: &mut ReplicaSetState,
        field: Field,
        value: Value<'_>,
    ) -> Result<(), Fault> {
        let status = &mut self.status;
        match field {
            Field::Replicas => self.replicas = value.int()?,
            Field::MinReadySeconds => self.min_ready_seconds = value.int()?,
            Field::ExpressionOperator => selector::keep(&mut self.selector, value)?,
            Field::StatusReplicas => status.replicas = value.int()?,
            Field::FullyLabeledReplicas => status.fully_labeled_replicas = value.int()?,
            Field::ReadyReplicas => status.ready_replicas = value.int()?,
            Field::AvailableReplicas => status.available_replicas = value.int()?,
            Field::TerminatingReplicas => status.terminating_replicas = Some(value.int()?),
            Field::ObservedGeneration => status.observed_generation = value.int()?,
            Field::ConditionType
            | Field::ConditionStatus
            | Field::ConditionReason
            | Field::ConditionMessage
            | Field::ConditionLastUpdate
            | Field::ConditionLastTransition => state.condition.keep(field, value)?,
            _ => self.meta.keep(&mut state.meta, field, value)?,
        }
        Ok(())
    }

    fn stream(
        &mut self,
        state: &mut ReplicaSetState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        let pairs = &mut state.meta.pairs;
        match field {
            Field::Annotations => return self.annotation(state, token),
            Field::Template => state.template.push(token),
            Field::TemplateLabels => {
                if let Some(label) = pairs.push(token)? {
                    self.template_labels.insert(label.key, label.value);
                }
            }
            Field::MatchLabels | Field::ExpressionKey | Field::ExpressionValues => {
                selector::stream(&mut self.selector, pairs, field, token)?;
            }
            _ => return self.meta.stream(&mut state.meta, field, token),
        }
        Ok(Flow::Next)
    }

    fn begin(&mut self, state: &mut ReplicaSetState, field: Field) {
        match field {
            Field::Condition => state.condition.clear(),
            Field::Selector | Field::MatchExpression => selector::begin(&mut self.selector, field),
            _ => self.meta.begin(&mut state.meta, field),
        }
    }

    fn end(&mut self, state: &mut ReplicaSetState, field: Field) {
        match field {
            Field::Condition if state.condition.kind == ConditionType::ReplicaFailure => {
                self.status.replica_failure = ZeroOption::Some(state.condition.condition.clone());
            }
            Field::Condition => {}
            Field::MatchExpression => selector::end(&mut self.selector, field),
            _ => self.meta.end(&mut state.meta, field),
        }
    }

    fn recalled_template(state: &mut ReplicaSetState, template: Digest) {
        state.template.recall(template);
    }

    fn finish(&mut self, state: &mut ReplicaSetState) -> Result<(), FieldFault> {
        self.template = digest_template(&state.template, Field::Template)?;
        if self.template_labels.as_slice().is_err() {
            return Err(FieldFault { field: Field::TemplateLabels, fault: Fault::TooMany });
        }
        self.meta.check()
    }
}

impl ReplicaSet {
    fn annotation(&mut self, state: &mut ReplicaSetState, token: Token<'_>) -> Result<Flow, Fault> {
        let wanted =
            |name| !matches!(name, Annotation::LastAppliedConfiguration | Annotation::RollbackTo);
        let (step, entry) = state.meta.annotations.push(token, wanted)?;
        let Some(entry) = entry else { return Ok(step) };
        match entry.annotation {
            Annotation::Revision => self.revision = entry.int(),
            Annotation::RevisionHistory => self.revision_history = Some(entry.history()),
            Annotation::DesiredReplicas => self.desired_replicas = entry.int(),
            Annotation::MaxReplicas => self.max_replicas = entry.int(),
            Annotation::InitialEventsEnd if entry.is_true() => {
                self.meta.ends_initial_events = true;
            }
            _ => self.annotations.insert(entry.digest()),
        }
        Ok(step)
    }
}
