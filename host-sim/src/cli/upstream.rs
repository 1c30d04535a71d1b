//! The controllers that kube-controller-manager has: whoever asks for one that is not here is told so, and
//! is not left to look for a spelling mistake.

/// Name and alias of every controller of kube-controller-manager, 1.18 to 1.36, that is not one of ours.
const OTHERS: [(&str, &str); 47] = [
    ("bootstrap-signer-controller", "bootstrapsigner"),
    ("certificatesigningrequest-approving-controller", "csrapproving"),
    ("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    ("certificatesigningrequest-signing-controller", "csrsigning"),
    ("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    ("cronjob-controller", "cronjob"),
    ("daemonset-controller", "daemonset"),
    ("device-taint-eviction-controller", ""),
    ("disruption-controller", "disruption"),
    ("endpoints-controller", "endpoint"),
    ("endpointslice-controller", "endpointslice"),
    ("endpointslice-mirroring-controller", "endpointslicemirroring"),
    ("ephemeral-volume-controller", "ephemeral-volume"),
    ("garbage-collector-controller", "garbagecollector"),
    ("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling"),
    ("job-controller", "job"),
    ("kube-apiserver-serving-clustertrustbundle-publisher-controller", ""),
    ("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    ("namespace-controller", "namespace"),
    ("node-ipam-controller", "nodeipam"),
    ("node-lifecycle-controller", "nodelifecycle"),
    ("node-route-controller", "route"),
    ("persistentvolume-attach-detach-controller", "attachdetach"),
    ("persistentvolume-binder-controller", "persistentvolume-binder"),
    ("persistentvolume-expander-controller", "persistentvolume-expander"),
    ("persistentvolume-protection-controller", "pv-protection"),
    ("persistentvolumeclaim-protection-controller", "pvc-protection"),
    ("pod-garbage-collector-controller", "podgc"),
    ("podcertificaterequest-cleaner-controller", ""),
    ("podgroup-protection-controller", ""),
    ("resourceclaim-controller", "resource-claim-controller"),
    ("resourcepoolstatusrequest-controller", ""),
    ("resourcequota-controller", "resourcequota"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    ("selinux-warning-controller", ""),
    ("service-cidr-controller", ""),
    ("service-lb-controller", "service"),
    ("serviceaccount-controller", "serviceaccount"),
    ("serviceaccount-token-controller", "serviceaccount-token"),
    ("storage-version-migrator-controller", "svm"),
    ("storageversion-garbage-collector-controller", "storage-version-gc"),
    ("taint-eviction-controller", ""),
    ("token-cleaner-controller", "tokencleaner"),
    ("ttl-after-finished-controller", "ttl-after-finished"),
    ("ttl-controller", "ttl"),
    ("validatingadmissionpolicy-status-controller", ""),
    ("volumeattributesclass-protection-controller", ""),
];

/// The full name of a controller that only kube-controller-manager has, by its name or alias, as an item of
/// `--controllers` has it.
pub(super) fn controller(item: &str) -> Option<&'static str> {
    let wanted = item.strip_prefix('-').unwrap_or(item);
    let is_it = |(name, alias): &&(&str, &str)| *name == wanted || *alias == wanted;
    OTHERS.iter().filter(|_| !wanted.is_empty()).find(is_it).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use picokube_core::manager::ControllerName;

    use super::*;

    #[test]
    fn names_and_aliases_are_found_with_and_without_a_dash() {
        for item in ["nodelifecycle", "-nodelifecycle", "node-lifecycle-controller"] {
            assert_eq!(controller(item), Some("node-lifecycle-controller"), "{item}");
        }
        for item in ["", "-", "*", "--job", "Job", "deployment", "replicaset-controller"] {
            assert_eq!(controller(item), None, "{item}");
        }
    }

    #[test]
    fn no_name_is_there_twice_or_one_of_ours() {
        let ours = ControllerName::ALL.iter().flat_map(|ours| [ours.name(), ours.alias()]);
        let others = OTHERS.iter().flat_map(|(name, alias)| [*name, *alias]);
        let all: Vec<&str> = ours.chain(others).filter(|name| !name.is_empty()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
