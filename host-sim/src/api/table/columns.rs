//! The columns of each kind.

use super::Column;

const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", wide: false, description }
}

const fn number(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "integer", wide: false, description }
}

const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", wide: true, description }
}

const NAME: Column = text("Name", "");
const AGE: Column = text("Age", "");
const CONTAINERS: Column = wide("Containers", "Names of each container in the template.");
const IMAGES: Column = wide("Images", "Images referenced by each container in the template.");
const SELECTOR: Column = wide("Selector", "Labels by which the pods are selected.");

pub(in crate::api) const NAME_AND_AGE: &[Column] = &[NAME, AGE];

pub(in crate::api) const POD: &[Column] = &[
    NAME,
    text("Ready", "How many of the containers are ready."),
    text("Status", "What the pod is doing or why it is not."),
    text("Restarts", "How often containers were restarted, and when last."),
    AGE,
    wide("IP", "Address of the pod."),
    wide("Node", "Node the pod runs on."),
    wide("Nominated Node", "Node on which room is being made for the pod."),
    wide("Readiness Gates", "How many of the readiness gates are open."),
];

pub(in crate::api) const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", "Number of ready pods of the desired ones."),
    number("Up-to-date", "Number of pods of the latest template."),
    number("Available", "Number of pods that have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// Of ReplicaSets, and of ReplicationControllers.
pub(in crate::api) const REPLICA_SET: &[Column] = &[
    NAME,
    number("Desired", "Number of desired pods."),
    number("Current", "Number of pods."),
    number("Ready", "Number of ready pods."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(in crate::api) const STATEFUL_SET: &[Column] =
    &[NAME, text("Ready", "Number of ready pods of the desired ones."), AGE, CONTAINERS, IMAGES];

pub(in crate::api) const DAEMON_SET: &[Column] = &[
    NAME,
    number("Desired", "Number of nodes that should run the pod."),
    number("Current", "Number of nodes that should run the pod and do."),
    number("Ready", "Number of nodes where the pod is ready."),
    number("Up-to-date", "Number of nodes with a pod of the latest template."),
    number("Available", "Number of nodes where the pod has been ready for long enough."),
    text("Node Selector", "Labels of the nodes meant."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(in crate::api) const JOB: &[Column] = &[
    NAME,
    text("Status", "Whether the job runs, is done or has failed."),
    text("Completions", "Number of finished pods of the desired ones."),
    text("Duration", "How long the job has taken."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(in crate::api) const SERVICE: &[Column] = &[
    NAME,
    text("Type", "How the service is exposed."),
    text("Cluster-IP", "Address inside the cluster."),
    text("External-IP", "Address outside the cluster."),
    text("Port(s)", "Ports of the service."),
    AGE,
    wide("Selector", "Labels of the pods that serve."),
];

pub(in crate::api) const NAMESPACE: &[Column] =
    &[NAME, text("Status", "Whether the namespace is in use or going away."), AGE];

pub(in crate::api) const NODE: &[Column] = &[
    NAME,
    text("Status", "Whether the node is ready and takes pods."),
    text("Roles", "What the node is for."),
    AGE,
    text("Version", "Version of the kubelet."),
    wide("Internal-IP", "Address inside the cluster."),
    wide("External-IP", "Address outside the cluster."),
    wide("OS-Image", "Operating system."),
    wide("Kernel-Version", "Version of the kernel."),
    wide("Container-Runtime", "What runs the containers."),
];

pub(in crate::api) const CONFIG_MAP: &[Column] = &[NAME, text("Data", "Number of entries."), AGE];

pub(in crate::api) const SECRET: &[Column] =
    &[NAME, text("Type", "What the secret is for."), text("Data", "Number of entries."), AGE];

pub(in crate::api) const SERVICE_ACCOUNT: &[Column] =
    &[NAME, text("Secrets", "Number of secrets."), AGE];

pub(in crate::api) const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status", "Whether the claim is bound."),
    text("Volume", "The volume it is bound to."),
    text("Capacity", "Size of the volume."),
    text("Access Modes", "How the volume can be mounted."),
    text("StorageClass", "Where the volume comes from."),
    text("VolumeAttributesClass", "What the volume is like."),
    AGE,
    wide("VolumeMode", "Whether it is a file system or a block device."),
];

pub(in crate::api) const RESOURCE_QUOTA: &[Column] = &[
    NAME,
    text("Request", "Used of allowed, for counts and requests."),
    text("Limit", "Used of allowed, for limits."),
    AGE,
];

pub(in crate::api) const CONTROLLER_REVISION: &[Column] = &[
    NAME,
    text("Controller", "Whose state it keeps."),
    text("Revision", "Its number in the history."),
    AGE,
];

pub(in crate::api) const LEASE: &[Column] = &[NAME, text("Holder", "Who holds the lease."), AGE];

pub(in crate::api) const EVENT: &[Column] = &[
    text("Last Seen", "When it happened last."),
    text("Type", "Normal or Warning."),
    text("Reason", "What happened, in a word."),
    text("Object", "What it happened to."),
    wide("Subobject", "Which part of it."),
    wide("Source", "Who reports it."),
    text("Message", "What happened."),
    wide("First Seen", "When it happened first."),
    wide("Count", "How often it happened."),
    wide("Name", "Name of the event."),
];

pub(in crate::api) const HORIZONTAL_POD_AUTOSCALER: &[Column] = &[
    NAME,
    text("Reference", "What is scaled."),
    text("Targets", "Measured and wanted."),
    text("MinPods", "The fewest pods."),
    text("MaxPods", "The most pods."),
    text("Replicas", "Number of pods."),
    AGE,
];
