//! `v1` Pod: what the controllers count, rank and delete.

use super::annotations::Annotation;
use super::meta::{METADATA, MetaState};
use super::project::{Fault, FieldFault, Value};
use super::table::{Field, FieldTable, Rule};
use super::{ConditionStatus, Meta, Object};
use crate::json::{Flow, Token};
use crate::limits;
use crate::text::Fingerprint;
use crate::time::Timestamp;
use crate::zero::ZeroOption;
use heapless::{String, Vec};

/// A pod as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// Its metadata.
    pub meta: Meta,
    /// `controller.kubernetes.io/pod-deletion-cost`; 0 when absent or invalid.
    pub deletion_cost: i32,
    /// The node it is bound to; empty while unscheduled.
    pub node: String<{ limits::NAME }>,
    /// `status.phase`
    pub phase: PodPhase,
    /// Status of the `Ready` condition; `None` without that condition.
    pub ready: ZeroOption<ConditionStatus>,
    /// When the `Ready` condition last changed.
    pub ready_transition: Option<Timestamp>,
    /// The largest restart count of its containers.
    pub restarts: u32,
    /// The largest restart count of its restartable init containers (sidecars).
    pub sidecar_restarts: u32,
}

impl Pod {
    /// Whether the condition `Ready` exists with status `True`.
    pub fn is_ready(&self) -> bool {
        self.ready == ZeroOption::Some(ConditionStatus::True)
    }
}

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PodPhase {
    /// No phase: the pod is not created yet, or the server sets none.
    #[default]
    Empty,
    /// `Pending`
    Pending,
    /// `Running`
    Running,
    /// `Succeeded`
    Succeeded,
    /// `Failed`
    Failed,
    /// `Unknown`
    Unknown,
    /// A phase of a later Kubernetes.
    Other,
}

impl PodPhase {
    /// The phase with this number, as `phase as u8` gives it.
    pub(crate) const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Empty,
            1 => Self::Pending,
            2 => Self::Running,
            3 => Self::Succeeded,
            4 => Self::Failed,
            5 => Self::Unknown,
            _ => Self::Other,
        }
    }

    /// The phase of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "" => Self::Empty,
            "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            "Unknown" => Self::Unknown,
            _ => Self::Other,
        }
    }

    /// Whether the pod has run to its end: `Failed` or `Succeeded`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Failed | Self::Succeeded)
    }
}

static POD: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
    ("status", Rule::Object(Field::Status, &STATUS)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("nodeName", Rule::Keep(Field::NodeName)),
    ("initContainers", Rule::Each(Field::InitContainer, &INIT_CONTAINER)),
]);

static INIT_CONTAINER: FieldTable = FieldTable::new(&[
    ("name", Rule::Keep(Field::InitContainerName)),
    ("restartPolicy", Rule::Keep(Field::InitContainerRestartPolicy)),
]);

static STATUS: FieldTable = FieldTable::new(&[
    ("phase", Rule::Keep(Field::Phase)),
    ("conditions", Rule::Each(Field::Condition, &CONDITION)),
    ("containerStatuses", Rule::Each(Field::ContainerStatus, &CONTAINER_STATUS)),
    ("initContainerStatuses", Rule::Each(Field::InitContainerStatus, &INIT_CONTAINER_STATUS)),
]);

static CONDITION: FieldTable = FieldTable::new(&[
    ("type", Rule::Keep(Field::ConditionType)),
    ("status", Rule::Keep(Field::ConditionStatus)),
    ("lastTransitionTime", Rule::Keep(Field::ConditionLastTransition)),
]);

static CONTAINER_STATUS: FieldTable =
    FieldTable::new(&[("restartCount", Rule::Keep(Field::ContainerRestarts))]);

static INIT_CONTAINER_STATUS: FieldTable = FieldTable::new(&[
    ("name", Rule::Keep(Field::InitContainerStatusName)),
    ("restartCount", Rule::Keep(Field::InitContainerRestarts)),
]);

/// What reading a pod needs beside the pod.
#[derive(Clone, Debug)]
pub struct PodState {
    meta: MetaState,
    is_ready_condition: bool,
    condition_status: ConditionStatus,
    condition_transition: Option<Timestamp>,
    /// The init container, or the status of one, that is being read.
    init_container: InitContainer,
    /// Init containers by name, to join what `spec` and `status` say of them.
    init_containers: Vec<InitContainer, { limits::INIT_CONTAINERS }>,
}

#[derive(Clone, Copy, Debug)]
struct InitContainer {
    name: Fingerprint,
    is_restartable: bool,
    restarts: u32,
}

impl InitContainer {
    const START: Self =
        Self { name: Fingerprint::from_bits(0), is_restartable: false, restarts: 0 };
}

impl Object for Pod {
    const KIND: &'static str = "Pod";
    const TABLE: &'static FieldTable = &POD;
    type State = PodState;
    const EMPTY: Self = Self {
        meta: Meta::EMPTY,
        deletion_cost: 0,
        node: String::new(),
        phase: PodPhase::Empty,
        ready: ZeroOption::None,
        ready_transition: None,
        restarts: 0,
        sidecar_restarts: 0,
    };
    const START: PodState = PodState {
        meta: MetaState::START,
        is_ready_condition: false,
        condition_status: ConditionStatus::Unknown,
        condition_transition: None,
        init_container: InitContainer::START,
        init_containers: Vec::new(),
    };

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn clear(&mut self, state: &mut PodState) {
        self.meta.clear(&mut state.meta);
        self.deletion_cost = 0;
        self.node.clear();
        self.phase = PodPhase::Empty;
        self.ready = ZeroOption::None;
        self.ready_transition = None;
        self.restarts = 0;
        self.sidecar_restarts = 0;
        state.init_containers.clear();
    }

    fn keep(&mut self, state: &mut PodState, field: Field, value: Value<'_>) -> Result<(), Fault> {
        let container = &mut state.init_container;
        match field {
            Field::NodeName => value.fit(&mut self.node)?,
            Field::InitContainerName | Field::InitContainerStatusName => {
                container.name = Fingerprint::of(value.text()?);
            }
            Field::InitContainerRestartPolicy => {
                container.is_restartable = value.text()? == "Always";
            }
            Field::InitContainerRestarts => container.restarts = value.int()?,
            Field::Phase => self.phase = PodPhase::parse(value.text()?),
            Field::ConditionType => state.is_ready_condition = value.text()? == "Ready",
            Field::ConditionStatus => {
                state.condition_status = ConditionStatus::parse(value.text()?);
            }
            Field::ConditionLastTransition => state.condition_transition = Some(value.time()?),
            Field::ContainerRestarts => self.restarts = self.restarts.max(value.int()?),
            _ => self.meta.keep(&mut state.meta, field, value)?,
        }
        Ok(())
    }

    fn stream(
        &mut self,
        state: &mut PodState,
        field: Field,
        token: Token<'_>,
    ) -> Result<Flow, Fault> {
        if field != Field::Annotations {
            return self.meta.stream(&mut state.meta, field, token);
        }
        let wanted =
            |name| matches!(name, Annotation::PodDeletionCost | Annotation::InitialEventsEnd);
        let (step, entry) = state.meta.annotations.push(token, wanted)?;
        if let Some(entry) = entry {
            match entry.annotation {
                Annotation::InitialEventsEnd => self.meta.ends_initial_events = entry.is_true(),
                _ => self.deletion_cost = entry.deletion_cost(),
            }
        }
        Ok(step)
    }

    fn begin(&mut self, state: &mut PodState, field: Field) {
        match field {
            Field::Condition => {
                state.is_ready_condition = false;
                state.condition_status = ConditionStatus::Unknown;
                state.condition_transition = None;
            }
            Field::InitContainer | Field::InitContainerStatus => {
                state.init_container = InitContainer::START;
            }
            _ => self.meta.begin(&mut state.meta, field),
        }
    }

    fn end(&mut self, state: &mut PodState, field: Field) {
        match field {
            Field::Condition if state.is_ready_condition => {
                self.ready = ZeroOption::Some(state.condition_status);
                self.ready_transition = state.condition_transition;
            }
            Field::InitContainer | Field::InitContainerStatus => state.join_init_container(),
            _ => self.meta.end(&mut state.meta, field),
        }
    }

    fn finish(&mut self, state: &mut PodState) -> Result<(), FieldFault> {
        let sidecars = state.init_containers.iter().filter(|container| container.is_restartable);
        self.sidecar_restarts =
            sidecars.map(|container| container.restarts).max().unwrap_or_default();
        self.meta.check()
    }
}

impl PodState {
    /// Notes an init container or adds to what is known of it. `spec` and `status` may come in
    /// either order. Beyond [`limits::INIT_CONTAINERS`] they no longer count: the number is the
    /// last but two of the criteria by which pods are ranked.
    fn join_init_container(&mut self) {
        let new = self.init_container;
        let mut known = self.init_containers.iter_mut();
        match known.find(|container| container.name == new.name) {
            Some(container) => {
                container.is_restartable |= new.is_restartable;
                container.restarts = container.restarts.max(new.restarts);
            }
            None if new.is_restartable || new.restarts > 0 => {
                self.init_containers.push(new).ok();
            }
            None => {}
        }
    }
}
