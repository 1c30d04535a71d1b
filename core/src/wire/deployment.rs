//! `apps/v1` Deployment.

use super::annotations::Annotation;
use super::condition::{CONDITION, ConditionDraft, ConditionType};
use super::meta::{METADATA, MetaState};
use super::project::{Fault, FieldFault, Value};
use super::selector::{self, SELECTOR};
use super::table::{Field, FieldTable, Rule};
use super::template::{POD_TEMPLATE, digest_template};
use super::{Condition, IntAnnotation, Meta, Object, SharedAnnotations};
use crate::json::{Digest, Digester, Flow, Token};
use crate::text::Selector;
use crate::zero::ZeroOption;

/// A Deployment as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct Deployment {
    /// Its metadata.
    pub meta: Meta,
    /// `deployment.kubernetes.io/revision`
    pub revision: IntAnnotation,
    /// `deprecated.deployment.rollback.to`
    pub rollback_to: IntAnnotation,
    /// The annotations to be copied to its ReplicaSets.
    pub annotations: SharedAnnotations,
    /// `spec.replicas`; absent counts as 1, Kubernetes' default.
    pub replicas: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// `spec.paused`
    pub paused: bool,
    /// `spec.progressDeadlineSeconds`; absent or 2147483647 means no deadline.
    pub progress_deadline_seconds: Option<i32>,
    /// `spec.revisionHistoryLimit`; absent or 2147483647 means no limit.
    pub revision_history_limit: Option<i32>,
    /// `spec.strategy.type`
    pub strategy: Strategy,
    /// `spec.strategy.rollingUpdate.maxSurge`
    pub max_surge: Option<IntOrPercent>,
    /// `spec.strategy.rollingUpdate.maxUnavailable`
    pub max_unavailable: Option<IntOrPercent>,
    /// `spec.selector`
    pub selector: Selector,
    /// The pod template, the `pod-template-hash` label left out.
    pub template: Digest,
    /// What was last observed.
    pub status: DeploymentStatus,
}

/// A condition of a Deployment. Nothing depends on its message: the reason says as much.
pub type DeploymentCondition = Condition<0>;

/// `status` of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentStatus {
    /// `observedGeneration`
    pub observed_generation: i64,
    /// `replicas`
    pub replicas: i32,
    /// `updatedReplicas`
    pub updated_replicas: i32,
    /// `readyReplicas`
    pub ready_replicas: i32,
    /// `availableReplicas`
    pub available_replicas: i32,
    /// `unavailableReplicas`
    pub unavailable_replicas: i32,
    /// `terminatingReplicas`; servers before 1.33 do not keep it.
    pub terminating_replicas: Option<i32>,
    /// `collisionCount`; absent and 0 lead to different hashes.
    pub collision_count: Option<i32>,
    /// The `Available` condition.
    pub available: ZeroOption<DeploymentCondition>,
    /// The `Progressing` condition.
    pub progressing: ZeroOption<DeploymentCondition>,
    /// The `ReplicaFailure` condition.
    pub replica_failure: ZeroOption<DeploymentCondition>,
}

impl DeploymentStatus {
    /// The status of a new Deployment.
    pub const EMPTY: Self = Self {
        observed_generation: 0,
        replicas: 0,
        updated_replicas: 0,
        ready_replicas: 0,
        available_replicas: 0,
        unavailable_replicas: 0,
        terminating_replicas: None,
        collision_count: None,
        available: ZeroOption::None,
        progressing: ZeroOption::None,
        replica_failure: ZeroOption::None,
    };
}

/// How a Deployment replaces old pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Strategy {
    /// `RollingUpdate`, also when the field is absent: Kubernetes' default.
    #[default]
    RollingUpdate,
    /// `Recreate`
    Recreate,
    /// A strategy of a later Kubernetes.
    Other,
}

impl Strategy {
    /// The strategy of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "RollingUpdate" => Self::RollingUpdate,
            "Recreate" => Self::Recreate,
            _ => Self::Other,
        }
    }
}

/// A number of pods, or a share of the desired number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum IntOrPercent {
    /// So many pods.
    Int(i32) = 1,
    /// So many percent.
    Percent(i32),
}

impl IntOrPercent {
    /// Parses `25%`.
    pub fn parse_percent(text: &str) -> Option<Self> {
        text.strip_suffix('%')?.parse().ok().map(Self::Percent)
    }

    pub(super) fn read(value: Value<'_>) -> Result<Self, Fault> {
        match value {
            Value::Number(_) => value.int().map(Self::Int),
            _ => Self::parse_percent(value.text()?).ok_or(Fault::Malformed),
        }
    }
}

static DEPLOYMENT: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
    ("status", Rule::Object(Field::Status, &STATUS)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("replicas", Rule::Keep(Field::Replicas)),
    ("minReadySeconds", Rule::Keep(Field::MinReadySeconds)),
    ("paused", Rule::Keep(Field::Paused)),
    ("progressDeadlineSeconds", Rule::Keep(Field::ProgressDeadlineSeconds)),
    ("revisionHistoryLimit", Rule::Keep(Field::RevisionHistoryLimit)),
    ("strategy", Rule::Object(Field::Strategy, &STRATEGY)),
    ("selector", Rule::Object(Field::Selector, &SELECTOR)),
    ("template", Rule::Stream(Field::Template)),
]);

static STRATEGY: FieldTable = FieldTable::new(&[
    ("type", Rule::Keep(Field::StrategyType)),
    ("rollingUpdate", Rule::Object(Field::RollingUpdate, &ROLLING_UPDATE)),
]);

static ROLLING_UPDATE: FieldTable = FieldTable::new(&[
    ("maxSurge", Rule::Keep(Field::MaxSurge)),
    ("maxUnavailable", Rule::Keep(Field::MaxUnavailable)),
]);

static STATUS: FieldTable = FieldTable::new(&[
    ("observedGeneration", Rule::Keep(Field::ObservedGeneration)),
    ("replicas", Rule::Keep(Field::StatusReplicas)),
    ("updatedReplicas", Rule::Keep(Field::UpdatedReplicas)),
    ("readyReplicas", Rule::Keep(Field::ReadyReplicas)),
    ("availableReplicas", Rule::Keep(Field::AvailableReplicas)),
    ("unavailableReplicas", Rule::Keep(Field::UnavailableReplicas)),
    ("terminatingReplicas", Rule::Keep(Field::TerminatingReplicas)),
    ("collisionCount", Rule::Keep(Field::CollisionCount)),
    ("conditions", Rule::Each(Field::Condition, &CONDITION)),
]);

/// What reading a Deployment needs beside the Deployment.
#[derive(Clone, Debug)]
pub struct DeploymentState {
    meta: MetaState,
    condition: ConditionDraft<0>,
    template: Digester,
}

impl Object for Deployment {
    const KIND: &'static str = "Deployment";
    const TABLE: &'static FieldTable = &DEPLOYMENT;
    type State = DeploymentState;
    const EMPTY: Self = Self {
        meta: Meta::EMPTY,
        revision: IntAnnotation::Absent,
        rollback_to: IntAnnotation::Absent,
        annotations: SharedAnnotations::EMPTY,
        replicas: 0,
        min_ready_seconds: 0,
        paused: false,
        progress_deadline_seconds: None,
        revision_history_limit: None,
        strategy: Strategy::RollingUpdate,
        max_surge: None,
        max_unavailable: None,
        selector: Selector::new(),
        template: Digest::from_bits(0),
        status: DeploymentStatus::EMPTY,
    };
    const START: DeploymentState = DeploymentState {
        meta: MetaState::START,
        condition: ConditionDraft::START,
        template: Digester::PLAIN,
    };

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn clear(&mut self, state: &mut DeploymentState) {
        self.meta.clear(&mut state.meta);
        self.revision = IntAnnotation::Absent;
        self.rollback_to = IntAnnotation::Absent;
        self.annotations.clear();
        self.replicas = 1;
        self.min_ready_seconds = 0;
        self.paused = false;
        self.progress_deadline_seconds = None;
        self.revision_history_limit = None;
        self.strategy = Strategy::default();
        self.max_surge = None;
        self.max_unavailable = None;
        self.selector.clear();
        self.template = Digest::default();
        self.status = DeploymentStatus::EMPTY;
        state.template.restart(&POD_TEMPLATE);
    }

    fn keep(
        &mut self,
        state: &mut DeploymentState,
        field: Field,
        value: Value<'_>,
    ) -> Result<(), Fault> {
        let status = &mut self.status;
        match field {
            Field::Replicas => self.replicas = value.int()?,
            Field::MinReadySeconds => self.min_ready_seconds = value.int()?,
            Field::Paused => self.paused = value.bool()?,
            Field::ProgressDeadlineSeconds => {
                self.progress_deadline_seconds = Some(value.int()?);
            }
            Field::RevisionHistoryLimit => self.revision_history_limit = Some(value.int()?),
            Field::StrategyType => self.strategy = Strategy::parse(value.text()?),
            Field::MaxSurge => self.max_surge = Some(IntOrPercent::read(value)?),
            Field::MaxUnavailable => self.max_unavailable = Some(IntOrPercent::read(value)?),
            Field::ExpressionOperator => selector::keep(&mut self.selector, value)?,
            Field::ObservedGeneration => status.observed_generation = value.int()?,
            Field::StatusReplicas => status.replicas = value.int()?,
            Field::UpdatedReplicas => status.updated_replicas = value.int()?,
            Field::ReadyReplicas => status.ready_replicas = value.int()?,
            Field::AvailableReplicas => status.available_replicas = value.int()?,
            Field::UnavailableReplicas => status.unavailable_replicas = value.int()?,
            Field::TerminatingReplicas => status.terminating_replicas = Some(value.int()?),
            Field::CollisionCount => status.collision_count = Some(value.int()?),
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
        state: &mut DeploymentState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        match field {
            Field::Annotations => return self.annotation(state, token),
            Field::Template => state.template.push(token),
            Field::MatchLabels | Field::ExpressionKey | Field::ExpressionValues => {
                selector::stream(&mut self.selector, &mut state.meta.pairs, field, token)?;
            }
            _ => return self.meta.stream(&mut state.meta, field, token),
        }
        Ok(Flow::Next)
    }

    fn begin(&mut self, state: &mut DeploymentState, field: Field) {
        match field {
            Field::Condition => state.condition.clear(),
            Field::Selector | Field::MatchExpression => selector::begin(&mut self.selector, field),
            _ => self.meta.begin(&mut state.meta, field),
        }
    }

    fn end(&mut self, state: &mut DeploymentState, field: Field) {
        let status = &mut self.status;
        match field {
            Field::Condition => {
                let slot = match state.condition.kind {
                    ConditionType::Available => &mut status.available,
                    ConditionType::Progressing => &mut status.progressing,
                    ConditionType::ReplicaFailure => &mut status.replica_failure,
                    ConditionType::Other => return,
                };
                *slot = ZeroOption::Some(state.condition.condition.clone());
            }
            Field::MatchExpression => selector::end(&mut self.selector, field),
            _ => self.meta.end(&mut state.meta, field),
        }
    }

    fn recalled_template(state: &mut DeploymentState, template: Digest) {
        state.template.recall(template);
    }

    fn finish(&mut self, state: &mut DeploymentState) -> Result<(), FieldFault> {
        self.template = digest_template(&state.template, Field::Template)?;
        self.meta.check()
    }
}

impl Deployment {
    fn annotation(&mut self, state: &mut DeploymentState, token: Token<'_>) -> Result<Flow, Fault> {
        let wanted = |name: Annotation| {
            name.is_shared() || matches!(name, Annotation::Revision | Annotation::RollbackTo)
        };
        let (step, entry) = state.meta.annotations.push(token, wanted)?;
        let Some(entry) = entry else { return Ok(step) };
        match entry.annotation {
            Annotation::Revision => self.revision = entry.int(),
            Annotation::RollbackTo => self.rollback_to = entry.int(),
            Annotation::InitialEventsEnd if entry.is_true() => {
                self.meta.ends_initial_events = true;
            }
            _ => self.annotations.insert(entry.digest()),
        }
        Ok(step)
    }
}
