//! `apps/v1` StatefulSet.

use super::annotations::Annotation;
use super::meta::{METADATA, MetaState, is_plain};
use super::project::{Fault, FieldFault, Value};
use super::selector::{self, SELECTOR};
use super::table::{Field, FieldTable, Rule};
use super::template::{POD_TEMPLATE, digest_template};
use super::{IntOrPercent, Meta, Object};
use crate::json::{Digest, Digester, Flow, Token};
use crate::limits::{self, ObjectName};
use crate::statefulset::retention::Policy;
use crate::statefulset::{Counts, Facts, PodManagementPolicy};
use crate::text::Selector;
use heapless::String;

/// A StatefulSet as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct StatefulSet {
    /// Its metadata.
    pub meta: Meta,
    /// `picokube.dev/replace-broken-pods` is `true`.
    pub replaces_broken_pods: bool,
    /// `spec.replicas`; absent counts as 1, Kubernetes' default.
    pub replicas: i32,
    /// `spec.ordinals.start`
    pub start: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// `spec.revisionHistoryLimit`
    pub revision_history_limit: Option<i32>,
    /// `spec.podManagementPolicy`; what is not known is `OrderedReady`, as in Kubernetes.
    pub policy: PodManagementPolicy,
    /// `spec.updateStrategy.type`
    pub strategy: UpdateStrategyType,
    /// `spec.updateStrategy.rollingUpdate.partition`; `None` without `rollingUpdate`.
    pub partition: Option<i32>,
    /// `spec.updateStrategy.rollingUpdate.maxUnavailable`
    pub max_unavailable: Option<IntOrPercent>,
    /// `spec.persistentVolumeClaimRetentionPolicy`
    pub retention: Policy,
    /// `spec.selector`
    pub selector: Selector,
    /// The pod template.
    pub template: Digest,
    /// The names of `spec.volumeClaimTemplates`, with commas between.
    pub claim_templates: String<{ limits::CLAIM_TEMPLATES }>,
    /// `spec.serviceName`
    pub service_name: ObjectName,
    /// What was last observed.
    pub status: StatefulSetStatus,
}

/// `status` of a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatefulSetStatus {
    /// Its numbers.
    pub counts: Counts,
    /// `collisionCount`; absent and 0 lead to different hashes.
    pub collision_count: Option<i32>,
    /// `currentRevision`
    pub current_revision: ObjectName,
    /// `updateRevision`
    pub update_revision: ObjectName,
}

/// `spec.updateStrategy.type`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UpdateStrategyType {
    /// `RollingUpdate`, also when the field is absent: Kubernetes' default.
    #[default]
    RollingUpdate,
    /// `OnDelete`
    OnDelete,
    /// A strategy of a later Kubernetes.
    Other,
}

impl UpdateStrategyType {
    /// The strategy of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "RollingUpdate" => Self::RollingUpdate,
            "OnDelete" => Self::OnDelete,
            _ => Self::Other,
        }
    }
}

static STATEFUL_SET: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
    ("status", Rule::Object(Field::Status, &STATUS)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("replicas", Rule::Keep(Field::Replicas)),
    ("ordinals", Rule::Object(Field::Ordinals, &ORDINALS)),
    ("minReadySeconds", Rule::Keep(Field::MinReadySeconds)),
    ("revisionHistoryLimit", Rule::Keep(Field::RevisionHistoryLimit)),
    ("podManagementPolicy", Rule::Keep(Field::PodManagementPolicy)),
    ("updateStrategy", Rule::Object(Field::UpdateStrategy, &UPDATE_STRATEGY)),
    (
        "persistentVolumeClaimRetentionPolicy",
        Rule::Object(Field::RetentionPolicy, &RETENTION_POLICY),
    ),
    ("serviceName", Rule::Keep(Field::ServiceName)),
    ("selector", Rule::Object(Field::Selector, &SELECTOR)),
    ("template", Rule::Stream(Field::Template)),
    ("volumeClaimTemplates", Rule::Each(Field::ClaimTemplate, &CLAIM_TEMPLATE)),
]);

static ORDINALS: FieldTable = FieldTable::new(&[("start", Rule::Keep(Field::OrdinalsStart))]);

static UPDATE_STRATEGY: FieldTable = FieldTable::new(&[
    ("type", Rule::Keep(Field::UpdateStrategyType)),
    ("rollingUpdate", Rule::Object(Field::UpdateStrategyRollingUpdate, &ROLLING_UPDATE)),
]);

static ROLLING_UPDATE: FieldTable = FieldTable::new(&[
    ("partition", Rule::Keep(Field::Partition)),
    ("maxUnavailable", Rule::Keep(Field::UpdateStrategyMaxUnavailable)),
]);

static RETENTION_POLICY: FieldTable = FieldTable::new(&[
    ("whenDeleted", Rule::Keep(Field::WhenDeleted)),
    ("whenScaled", Rule::Keep(Field::WhenScaled)),
]);

static CLAIM_TEMPLATE: FieldTable = FieldTable::new(&[(
    "metadata",
    Rule::Object(Field::ClaimTemplateMetadata, &CLAIM_TEMPLATE_METADATA),
)]);

static CLAIM_TEMPLATE_METADATA: FieldTable =
    FieldTable::new(&[("name", Rule::Keep(Field::ClaimTemplateName))]);

static STATUS: FieldTable = FieldTable::new(&[
    ("observedGeneration", Rule::Keep(Field::ObservedGeneration)),
    ("replicas", Rule::Keep(Field::StatusReplicas)),
    ("readyReplicas", Rule::Keep(Field::ReadyReplicas)),
    ("availableReplicas", Rule::Keep(Field::AvailableReplicas)),
    ("currentReplicas", Rule::Keep(Field::CurrentReplicas)),
    ("updatedReplicas", Rule::Keep(Field::UpdatedReplicas)),
    ("currentRevision", Rule::Keep(Field::CurrentRevision)),
    ("updateRevision", Rule::Keep(Field::UpdateRevision)),
    ("collisionCount", Rule::Keep(Field::CollisionCount)),
]);

/// What reading a StatefulSet needs beside the StatefulSet.
#[derive(Clone, Debug)]
pub struct StatefulSetState {
    meta: MetaState,
    template: Digester,
    /// Bytes of the names of the claim templates before the one at hand.
    names_before: usize,
    /// What is wrong with the claim templates together.
    claim_fault: Option<FieldFault>,
}

impl Object for StatefulSet {
    const KIND: &'static str = "StatefulSet";
    const TABLE: &'static FieldTable = &STATEFUL_SET;
    type State = StatefulSetState;
    const EMPTY: Self = Self {
        meta: Meta::EMPTY,
        replaces_broken_pods: false,
        replicas: 0,
        start: 0,
        min_ready_seconds: 0,
        revision_history_limit: None,
        policy: PodManagementPolicy::OrderedReady,
        strategy: UpdateStrategyType::RollingUpdate,
        partition: None,
        max_unavailable: None,
        retention: Policy { deletes_with_set: false, deletes_with_pod: false },
        selector: Selector::new(),
        template: Digest::from_bits(0),
        claim_templates: String::new(),
        service_name: ObjectName::new(),
        status: StatefulSetStatus {
            counts: Facts::EMPTY.status,
            collision_count: None,
            current_revision: ObjectName::new(),
            update_revision: ObjectName::new(),
        },
    };
    const START: StatefulSetState = StatefulSetState {
        meta: MetaState::START,
        template: Digester::PLAIN,
        names_before: 0,
        claim_fault: None,
    };

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn clear(&mut self, state: &mut StatefulSetState) {
        self.meta.clear(&mut state.meta);
        self.replaces_broken_pods = false;
        self.replicas = 1;
        self.start = 0;
        self.min_ready_seconds = 0;
        self.revision_history_limit = None;
        self.policy = PodManagementPolicy::default();
        self.strategy = UpdateStrategyType::default();
        self.partition = None;
        self.max_unavailable = None;
        self.retention = Policy::default();
        self.selector.clear();
        self.template = Digest::default();
        self.claim_templates.clear();
        self.service_name.clear();
        self.status.counts = Counts::default();
        self.status.collision_count = None;
        self.status.current_revision.clear();
        self.status.update_revision.clear();
        state.template.restart(&POD_TEMPLATE);
        state.names_before = 0;
        state.claim_fault = None;
    }

    fn keep(
        &mut self,
        state: &mut StatefulSetState,
        field: Field,
        value: Value<'_>,
    ) -> Result<(), Fault> {
        let StatefulSetStatus { counts, collision_count, current_revision, update_revision } =
            &mut self.status;
        match field {
            Field::Replicas => self.replicas = value.int()?,
            Field::OrdinalsStart => self.start = value.int()?,
            Field::MinReadySeconds => self.min_ready_seconds = value.int()?,
            Field::RevisionHistoryLimit => self.revision_history_limit = Some(value.int()?),
            Field::PodManagementPolicy => {
                self.policy = match value.text()? {
                    "Parallel" => PodManagementPolicy::Parallel,
                    _ => PodManagementPolicy::OrderedReady,
                }
            }
            Field::UpdateStrategyType => self.strategy = UpdateStrategyType::parse(value.text()?),
            Field::Partition => self.partition = Some(value.int()?),
            Field::UpdateStrategyMaxUnavailable => {
                self.max_unavailable = Some(IntOrPercent::read(value)?);
            }
            Field::WhenDeleted => self.retention.deletes_with_set = value.text()? == "Delete",
            Field::WhenScaled => self.retention.deletes_with_pod = value.text()? == "Delete",
            Field::ServiceName => value.fit(&mut self.service_name)?,
            Field::ClaimTemplateName => self.claim_template(state, value.text()?)?,
            Field::ExpressionOperator => selector::keep(&mut self.selector, value)?,
            Field::ObservedGeneration => counts.observed_generation = value.int()?,
            Field::StatusReplicas => counts.replicas = value.int()?,
            Field::ReadyReplicas => counts.ready = value.int()?,
            Field::AvailableReplicas => counts.available = value.int()?,
            Field::CurrentReplicas => counts.current = value.int()?,
            Field::UpdatedReplicas => counts.updated = value.int()?,
            Field::CurrentRevision => value.fit(current_revision)?,
            Field::UpdateRevision => value.fit(update_revision)?,
            Field::CollisionCount => *collision_count = Some(value.int()?),
            _ => self.meta.keep(&mut state.meta, field, value)?,
        }
        Ok(())
    }

    fn stream(
        &mut self,
        state: &mut StatefulSetState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        match field {
            Field::Annotations => return self.annotation(state, token),
            Field::Template => state.template.push(token),
            Field::MatchLabels | Field::ExpressionKey | Field::ExpressionValues => {
                selector::stream(&mut self.selector, &mut state.meta.pairs, field, token)?;
            }
            // It is `null`.
            Field::ClaimTemplate => return Err(Fault::Missing),
            _ => return self.meta.stream(&mut state.meta, field, token),
        }
        Ok(Flow::Next)
    }

    fn begin(&mut self, state: &mut StatefulSetState, field: Field) {
        match field {
            // Kubernetes' default, once there is a `rollingUpdate`.
            Field::UpdateStrategyRollingUpdate => self.partition = self.partition.or(Some(0)),
            Field::ClaimTemplate => state.names_before = self.claim_templates.len(),
            Field::Selector | Field::MatchExpression => selector::begin(&mut self.selector, field),
            _ => self.meta.begin(&mut state.meta, field),
        }
    }

    fn end(&mut self, state: &mut StatefulSetState, field: Field) {
        match field {
            Field::ClaimTemplate if self.claim_templates.len() == state.names_before => {
                let field = Field::ClaimTemplateName;
                state.claim_fault.get_or_insert(FieldFault { field, fault: Fault::Missing });
            }
            Field::MatchExpression => selector::end(&mut self.selector, field),
            _ => self.meta.end(&mut state.meta, field),
        }
    }

    fn recalled_template(state: &mut StatefulSetState, template: Digest) {
        state.template.recall(template);
    }

    fn finish(&mut self, state: &mut StatefulSetState) -> Result<(), FieldFault> {
        self.template = digest_template(&state.template, Field::Template)?;
        if let Some(fault) = state.claim_fault {
            return Err(fault);
        }
        self.meta.check()
    }
}

impl StatefulSet {
    /// Adds the name of a claim template, in place of what it was called before.
    fn claim_template(&mut self, state: &mut StatefulSetState, name: &str) -> Result<(), Fault> {
        // The API server lets it be anything, but then no claim can have the name that comes of it.
        if !is_plain(name) {
            return Err(Fault::Malformed);
        }
        let names = &mut self.claim_templates;
        while names.len() > state.names_before {
            names.pop();
        }
        let comma = if names.is_empty() { "" } else { "," };
        if name.is_empty() {
            return Ok(());
        }
        if names.push_str(comma).and_then(|()| names.push_str(name)).is_err() {
            let field = Field::ClaimTemplate;
            state.claim_fault = Some(FieldFault { field, fault: Fault::TooMany });
        }
        Ok(())
    }

    fn annotation(
        &mut self,
        state: &mut StatefulSetState,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        let wanted =
            |name| matches!(name, Annotation::ReplaceBrokenPods | Annotation::InitialEventsEnd);
        let (step, entry) = state.meta.annotations.push(token, wanted)?;
        if let Some(entry) = entry {
            match entry.annotation {
                Annotation::InitialEventsEnd => self.meta.ends_initial_events = entry.is_true(),
                _ => self.replaces_broken_pods = entry.is_true(),
            }
        }
        Ok(step)
    }
}
