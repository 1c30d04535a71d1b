//! The table of served kinds. Adding a kind is an entry here plus its defaults and validation.

use super::kind::{Generation, Kind, NameRule, Storage, Subresource};
use super::rules::{Rules, StatusMetadata};
use super::{defaults, field_labels, strategy, table, validation};

const FULL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];
const ALL_CATEGORY: &[&str] = &["all"];

/// Every served kind.
pub static ALL: &[Kind] = &[
    Kind {
        singular: "binding",
        verbs: CREATE,
        storage: Storage::Virtual,
        list_kind: "",
        ..core("Binding", "BindingList", "bindings")
    },
    Kind {
        singular: "configmap",
        short_names: &["cm"],
        rules: Rules {
            validate: validation::config_map,
            validate_update: validation::config_map_update,
            ..PLAIN
        },
        columns: table::CONFIG_MAP,
        row: table::config_map,
        ..core("ConfigMap", "ConfigMapList", "configmaps")
    },
    Kind {
        field_labels: field_labels::CORE_EVENT,
        singular: "event",
        short_names: &["ev"],
        rules: Rules { validate: validation::event, ..PLAIN },
        columns: table::EVENT,
        row: table::event,
        ..core("Event", "EventList", "events")
    },
    Kind {
        field_labels: field_labels::NAMESPACE,
        singular: "namespace",
        short_names: &["ns"],
        namespaced: false,
        name_rule: NameRule::Label,
        // Namespaces have no deletecollection upstream: emptying a cluster by accident is too easy.
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[
            Subresource {
                name: "finalize",
                group: "",
                version: "v1",
                kind: "Namespace",
                verbs: &["update"],
            },
            status("", "v1", "Namespace"),
        ],
        rules: Rules {
            defaults: defaults::namespace,
            prepare_create: strategy::namespace_create,
            prepare_update: strategy::namespace_update,
            validate: validation::namespace,
            ..PLAIN
        },
        columns: table::NAMESPACE,
        row: table::namespace,
        ..core("Namespace", "NamespaceList", "namespaces")
    },
    Kind {
        field_labels: field_labels::NODE,
        singular: "node",
        short_names: &["no"],
        namespaced: false,
        subresources: &[status("", "v1", "Node")],
        rules: Rules { status_on_create: true, ..PLAIN },
        columns: table::NODE,
        row: table::node,
        ..core("Node", "NodeList", "nodes")
    },
    Kind {
        singular: "persistentvolumeclaim",
        short_names: &["pvc"],
        subresources: &[status("", "v1", "PersistentVolumeClaim")],
        rules: Rules {
            defaults: defaults::persistent_volume_claim,
            prepare_create: strategy::claim_create,
            validate: validation::persistent_volume_claim,
            validate_update: validation::persistent_volume_claim_update,
            ..PLAIN
        },
        columns: table::PERSISTENT_VOLUME_CLAIM,
        row: table::persistent_volume_claim,
        ..core("PersistentVolumeClaim", "PersistentVolumeClaimList", "persistentvolumeclaims")
    },
    Kind {
        field_labels: field_labels::POD,
        singular: "pod",
        short_names: &["po"],
        categories: ALL_CATEGORY,
        generation: Generation::Spec,
        graceful_deletion: true,
        subresources: &[
            Subresource {
                name: "binding",
                group: "",
                version: "v1",
                kind: "Binding",
                verbs: CREATE,
            },
            Subresource {
                name: "eviction",
                group: "policy",
                version: "v1",
                kind: "Eviction",
                verbs: CREATE,
            },
            Subresource { name: "log", group: "", version: "v1", kind: "Pod", verbs: &["get"] },
            status("", "v1", "Pod"),
        ],
        rules: Rules {
            defaults: defaults::pod,
            prepare_create: strategy::pod_create,
            prepare_update: strategy::pod_update,
            status_metadata: StatusMetadata::NotOwners,
            validate: validation::pod,
            validate_update: validation::pod_update,
            validate_status: validation::pod_status,
            ..PLAIN
        },
        columns: table::POD,
        row: table::pod,
        ..core("Pod", "PodList", "pods")
    },
    Kind {
        field_labels: field_labels::REPLICA_SET,
        singular: "replicationcontroller",
        short_names: &["rc"],
        categories: ALL_CATEGORY,
        generation: Generation::Spec,
        orphans_by_default: true,
        subresources: &[SCALE, status("", "v1", "ReplicationController")],
        rules: Rules {
            defaults: defaults::replication_controller,
            validate: validation::replication_controller,
            validate_status: validation::replica_set_status,
            ..PLAIN
        },
        columns: table::REPLICA_SET,
        row: table::replication_controller,
        ..core("ReplicationController", "ReplicationControllerList", "replicationcontrollers")
    },
    Kind {
        singular: "resourcequota",
        short_names: &["quota"],
        subresources: &[status("", "v1", "ResourceQuota")],
        rules: Rules { validate: validation::resource_quota, ..PLAIN },
        columns: table::RESOURCE_QUOTA,
        row: table::resource_quota,
        ..core("ResourceQuota", "ResourceQuotaList", "resourcequotas")
    },
    Kind {
        field_labels: field_labels::SECRET,
        singular: "secret",
        rules: Rules {
            defaults: defaults::secret,
            validate: validation::secret,
            validate_update: validation::secret_update,
            ..PLAIN
        },
        columns: table::SECRET,
        row: table::secret,
        ..core("Secret", "SecretList", "secrets")
    },
    Kind {
        singular: "serviceaccount",
        short_names: &["sa"],
        columns: table::SERVICE_ACCOUNT,
        row: table::service_account,
        ..core("ServiceAccount", "ServiceAccountList", "serviceaccounts")
    },
    Kind {
        field_labels: field_labels::SERVICE,
        singular: "service",
        short_names: &["svc"],
        categories: ALL_CATEGORY,
        name_rule: NameRule::Rfc1035Label,
        subresources: &[status("", "v1", "Service")],
        rules: Rules {
            defaults: defaults::service,
            prepare_update: strategy::service_update,
            validate: validation::service,
            validate_update: validation::service_update,
            ..PLAIN
        },
        columns: table::SERVICE,
        row: table::service,
        ..core("Service", "ServiceList", "services")
    },
    Kind {
        singular: "controllerrevision",
        rules: Rules {
            validate: validation::controller_revision,
            validate_create: validation::controller_revision_create,
            validate_update: validation::controller_revision_update,
            ..PLAIN
        },
        columns: table::CONTROLLER_REVISION,
        row: table::controller_revision,
        ..apps("ControllerRevision", "ControllerRevisionList", "controllerrevisions")
    },
    Kind {
        singular: "daemonset",
        short_names: &["ds"],
        categories: ALL_CATEGORY,
        generation: Generation::Spec,
        subresources: &[status("apps", "v1", "DaemonSet")],
        rules: Rules {
            defaults: defaults::daemon_set,
            prepare_create: strategy::daemon_set_create,
            prepare_update: strategy::daemon_set_update,
            validate: validation::daemon_set,
            validate_update: validation::daemon_set_update,
            ..PLAIN
        },
        columns: table::DAEMON_SET,
        row: table::daemon_set,
        ..apps("DaemonSet", "DaemonSetList", "daemonsets")
    },
    Kind {
        singular: "deployment",
        short_names: &["deploy"],
        categories: ALL_CATEGORY,
        generation: Generation::SpecOrAnnotations,
        subresources: &[SCALE, status("apps", "v1", "Deployment")],
        rules: Rules {
            defaults: defaults::deployment,
            status_metadata: StatusMetadata::NotLabels,
            validate: validation::deployment,
            validate_update: validation::deployment_update,
            validate_status: validation::deployment_status,
            ..PLAIN
        },
        columns: table::DEPLOYMENT,
        row: table::deployment,
        ..apps("Deployment", "DeploymentList", "deployments")
    },
    Kind {
        field_labels: field_labels::REPLICA_SET,
        singular: "replicaset",
        short_names: &["rs"],
        categories: ALL_CATEGORY,
        generation: Generation::Spec,
        subresources: &[SCALE, status("apps", "v1", "ReplicaSet")],
        rules: Rules {
            defaults: defaults::replica_set,
            validate: validation::replica_set,
            validate_update: validation::replica_set_update,
            validate_status: validation::replica_set_status,
            ..PLAIN
        },
        columns: table::REPLICA_SET,
        row: table::replica_set,
        ..apps("ReplicaSet", "ReplicaSetList", "replicasets")
    },
    Kind {
        singular: "statefulset",
        short_names: &["sts"],
        categories: ALL_CATEGORY,
        generation: Generation::Spec,
        name_rule: NameRule::Label,
        subresources: &[SCALE, status("apps", "v1", "StatefulSet")],
        rules: Rules {
            defaults: defaults::stateful_set,
            validate: validation::stateful_set,
            validate_create: validation::stateful_set_create,
            validate_update: validation::stateful_set_update,
            validate_status: validation::stateful_set_status,
            ..PLAIN
        },
        columns: table::STATEFUL_SET,
        row: table::stateful_set,
        ..apps("StatefulSet", "StatefulSetList", "statefulsets")
    },
    Kind {
        singular: "selfsubjectreview",
        namespaced: false,
        verbs: CREATE,
        storage: Storage::Virtual,
        ..entry("authentication.k8s.io", "v1", "SelfSubjectReview", "", "selfsubjectreviews")
    },
    Kind {
        singular: "selfsubjectaccessreview",
        namespaced: false,
        verbs: CREATE,
        storage: Storage::Virtual,
        ..entry(
            "authorization.k8s.io",
            "v1",
            "SelfSubjectAccessReview",
            "",
            "selfsubjectaccessreviews",
        )
    },
    Kind {
        singular: "selfsubjectrulesreview",
        namespaced: false,
        verbs: CREATE,
        storage: Storage::Virtual,
        ..entry(
            "authorization.k8s.io",
            "v1",
            "SelfSubjectRulesReview",
            "",
            "selfsubjectrulesreviews",
        )
    },
    Kind {
        singular: "horizontalpodautoscaler",
        short_names: &["hpa"],
        categories: ALL_CATEGORY,
        subresources: &[status("autoscaling", "v2", "HorizontalPodAutoscaler")],
        rules: Rules {
            defaults: defaults::horizontal_pod_autoscaler,
            validate: validation::horizontal_pod_autoscaler,
            ..PLAIN
        },
        columns: table::HORIZONTAL_POD_AUTOSCALER,
        row: table::horizontal_pod_autoscaler,
        ..autoscaler("v2")
    },
    Kind {
        singular: "horizontalpodautoscaler",
        short_names: &["hpa"],
        categories: ALL_CATEGORY,
        storage: Storage::SharedWith { group: "autoscaling", version: "v2" },
        subresources: &[status("autoscaling", "v1", "HorizontalPodAutoscaler")],
        rules: Rules {
            defaults: defaults::horizontal_pod_autoscaler_v1,
            validate: validation::horizontal_pod_autoscaler,
            ..PLAIN
        },
        columns: table::HORIZONTAL_POD_AUTOSCALER,
        row: table::horizontal_pod_autoscaler,
        ..autoscaler("v1")
    },
    Kind {
        field_labels: field_labels::JOB,
        singular: "job",
        categories: ALL_CATEGORY,
        generation: Generation::Spec,
        subresources: &[status("batch", "v1", "Job")],
        rules: Rules {
            defaults: defaults::job,
            prepare_create: strategy::job_create,
            validate: validation::job,
            validate_update: validation::job_update,
            ..PLAIN
        },
        columns: table::JOB,
        row: table::job,
        ..entry("batch", "v1", "Job", "JobList", "jobs")
    },
    Kind {
        singular: "lease",
        create_on_update: true,
        unconditional_update: false,
        rules: Rules { validate: validation::lease, ..PLAIN },
        columns: table::LEASE,
        row: table::lease,
        ..entry("coordination.k8s.io", "v1", "Lease", "LeaseList", "leases")
    },
    Kind {
        field_labels: field_labels::EVENT,
        singular: "event",
        short_names: &["ev"],
        storage: Storage::SharedWith { group: "", version: "v1" },
        columns: table::EVENT,
        row: table::event,
        ..entry("events.k8s.io", "v1", "Event", "EventList", "events")
    },
];

const SCALE: Subresource = Subresource {
    name: "scale",
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
    verbs: READ_WRITE,
};

const fn status(group: &'static str, version: &'static str, kind: &'static str) -> Subresource {
    Subresource { name: "status", group, version, kind, verbs: READ_WRITE }
}

const fn core(kind: &'static str, list_kind: &'static str, plural: &'static str) -> Kind {
    entry("", "v1", kind, list_kind, plural)
}

const fn apps(kind: &'static str, list_kind: &'static str, plural: &'static str) -> Kind {
    entry("apps", "v1", kind, list_kind, plural)
}

const fn autoscaler(version: &'static str) -> Kind {
    entry(
        "autoscaling",
        version,
        "HorizontalPodAutoscaler",
        "HorizontalPodAutoscalerList",
        "horizontalpodautoscalers",
    )
}

/// Nothing special.
const PLAIN: Rules = Rules {
    defaults: defaults::none,
    prepare_create: strategy::nothing_on_create,
    prepare_update: strategy::nothing_on_update,
    status_metadata: StatusMetadata::Everything,
    validate: validation::nothing,
    validate_create: validation::nothing,
    validate_update: validation::nothing_on_update,
    validate_status: validation::nothing_on_update,
    status_on_create: false,
};

/// An ordinary namespaced kind; the table overrides what is special.
const fn entry(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    list_kind: &'static str,
    plural: &'static str,
) -> Kind {
    Kind {
        group,
        version,
        kind,
        list_kind,
        plural,
        singular: "",
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: FULL,
        subresources: &[],
        storage: Storage::Own,
        generation: Generation::None,
        name_rule: NameRule::Subdomain,
        graceful_deletion: false,
        orphans_by_default: false,
        create_on_update: false,
        unconditional_update: true,
        field_labels: &[],
        rules: PLAIN,
        columns: table::NAME_AND_AGE,
        row: table::name_and_age,
    }
}
