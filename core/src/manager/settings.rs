//! What can be chosen when the controllers start.

use crate::control::Rate;
use crate::leader_election::LeaderElection;
use crate::time::Duration;

use crate::registry::Enabled;

/// The settings of a manager.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which controllers run.
    pub controllers: Enabled,
    /// The only namespaces to look at; none are all. One is asked for by name. Of several, the
    /// API has no list or watch: the whole cluster is watched, and what is elsewhere passed over.
    pub namespaces: &'static [&'static str],
    /// The only Deployments, ReplicaSets and pods to look at, as a `labelSelector`.
    pub label_selector: Option<&'static str>,
    /// The feature gate `DeploymentReplicaSetTerminatingReplicas`: whether
    /// `status.terminatingReplicas` is kept.
    pub terminating_replicas: bool,
    /// The feature gate `MaxUnavailableStatefulSet`: whether `maxUnavailable` of a StatefulSet counts.
    pub max_unavailable_stateful_set: bool,
    /// How fast each controller may send; `None` is as fast as it can.
    pub rate: Option<Rate>,
    /// How often every object is looked at again without a cause; `None` is never.
    pub resync: Option<Duration>,
    /// How long a status that only tells how far things are may wait for more of the sort: pods
    /// that become ready within that time share one write. What has begun, failed or been
    /// completed is told at once. None at all is what kube-controller-manager does.
    pub status_lag: Duration,
    /// The election this manager takes part in, whose settings have been
    /// [checked](LeaderElection::check): it writes only while it leads. `None` is to write always.
    pub leader_election: Option<LeaderElection<'static>>,
}

impl Settings {
    /// A [`status_lag`](Self::status_lag) that saves a third of the requests of a rollout and that
    /// nobody notices: what `picokube` and the firmware use unless told otherwise, or unless there
    /// are no nodes and somebody moves every pod by hand.
    pub const STATUS_LAG: Duration = Duration::from_millis(100);

    /// The defaults of kube-controller-manager 1.34; resync at the shortest time it draws.
    pub const DEFAULT: Self = Self {
        controllers: Enabled::ALL,
        namespaces: &[],
        label_selector: None,
        terminating_replicas: false,
        max_unavailable_stateful_set: false,
        rate: Some(Rate::KUBERNETES),
        resync: Some(Duration::from_secs(12 * 3600)),
        status_lag: Duration::ZERO,
        leader_election: None,
    };
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
