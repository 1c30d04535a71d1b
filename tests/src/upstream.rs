//! Upstream's own tests of the controllers and of the server, told anew: what each of them
//! asks of a cluster.
//!
//! The names are those of Kubernetes' integration tests (`test/integration/deployment`,
//! `replicaset` and `statefulset`) and of its conformance tests (`apps`, `apimachinery`, `auth` and
//! `network` in `test/e2e`); of StatefulSets some others of `test/e2e/apps` as well. Each works in a
//! namespace of its own in a cluster that runs, and does not mind who runs the controllers. Where
//! upstream's test plays the kubelet, so does ours; where it needs nodes, the simulated ones run the pods.
//!
//! One thing differs everywhere: upstream's integration tests start the controllers after the
//! objects are there; here they run all the time.

use anyhow::Result;

use crate::picokube::Picokube;

pub mod api_conformance;
pub mod deployment;
pub mod deployment_conformance;
mod kubelet;
mod objects;
pub mod replacement;
pub mod replica_set;
pub mod replica_set_conformance;
pub mod replica_set_pods;
pub mod rollout;
pub mod stateful_set;
pub mod stateful_set_claims;
pub mod stateful_set_conformance;
pub mod stateful_set_pods;
mod stateful_set_tester;
mod tester;

/// One of them.
pub type Scenario = fn(&Picokube) -> Result<()>;

/// Gives the modules and names of all that want no feature gate to a macro.
#[macro_export]
macro_rules! upstream_scenarios {
    ($callback:ident) => {
        $callback! {
            deployment:
                test_new_deployment
                test_deployment_selector_immutability
                test_paused_deployment
                test_scale_paused_deployment
                test_overlapping_deployments
                test_general_replica_set_adoption
                test_deployment_scale_subresource
                test_replica_set_orphaning_and_adoption_when_labels_change;
            rollout:
                test_deployment_rolling_update
                test_deployment_hash_collision
                test_failed_deployment
                test_scaled_rollout_deployment
                test_spec_replicas_change
                test_deployment_available_condition;
            deployment_conformance:
                rolling_update_deployment_should_delete_old_pods_and_create_new_ones
                recreate_deployment_should_delete_old_pods_and_create_new_ones
                deployment_should_delete_old_replica_sets
                deployment_should_support_rollover
                deployment_should_support_proportional_scaling
                deployment_should_have_a_working_scale_subresource
                should_run_the_lifecycle_of_a_deployment
                should_validate_deployment_status_endpoints;
            replica_set:
                test_rs_selector_immutability
                test_spec_replicas_change
                test_overlapping_rss
                test_ready_and_available_replicas
                test_rs_scale_subresource
                test_fully_labeled_replicas
                test_replica_sets_apps_v1_default_gc_policy;
            replica_set_pods:
                test_adoption
                test_deleting_and_failed_pods
                test_pod_deletion_cost
                test_pod_orphaning_and_adoption_when_labels_change
                test_general_pod_adoption
                test_extra_pods_adoption_and_deletion;
            replica_set_conformance:
                should_serve_a_basic_image_on_each_replica_with_a_public_image
                should_adopt_matching_pods_on_creation_and_release_no_longer_matching_pods
                replicaset_should_have_a_working_scale_subresource
                replace_and_patch_tests
                should_list_and_delete_a_collection_of_replica_sets
                should_validate_replicaset_status_endpoints;
            replacement:
                test_terminating_replicas_without_the_gate
                test_terminating_replicas_deployment_status_without_the_gate;
        }
    };
}

/// Gives the modules and names of those about StatefulSets to a macro that want no feature gate.
#[macro_export]
macro_rules! stateful_upstream_scenarios {
    ($callback:ident) => {
        $callback! {
            stateful_set:
                test_volume_template_noop_update
                test_spec_replicas_change
                test_deleting_and_terminating_pods
                test_stateful_set_available
                test_stateful_set_status_with_pod_fail
                test_autodelete_owner_refs
                test_deleting_pod_for_rolling_update_partition
                test_stateful_set_start_ordinal
                test_stateful_set_pod_subdomain;
            stateful_set_conformance:
                should_perform_rolling_updates_and_roll_backs_of_template_modifications
                should_perform_canary_updates_and_phased_rolling_updates_of_template_modifications
                scaling_should_happen_in_predictable_order_and_halt_if_any_stateful_pod_is_unhealthy
                burst_scaling_should_run_to_completion_even_with_unhealthy_pods
                should_recreate_evicted_statefulset
                should_have_a_working_scale_subresource
                should_list_patch_and_delete_a_collection_of_stateful_sets
                should_validate_statefulset_status_endpoints;
            stateful_set_pods:
                should_adopt_matching_orphans_and_release_non_matching_pods
                should_not_deadlock_when_a_pods_predecessor_fails
                should_implement_legacy_replacement_when_the_update_strategy_is_on_delete
                min_ready_seconds_should_be_honored_when_enabled
                increasing_start_ordinal
                decreasing_start_ordinal
                removing_start_ordinal;
            stateful_set_claims:
                should_delete_pvcs_with_a_when_deleted_policy
                should_delete_pvcs_with_a_on_scaledown_policy
                should_not_delete_pvc_with_on_scaledown_policy_if_another_controller_owns_the_pvc
                should_delete_pvcs_after_adopting_pod_when_deleted
                should_delete_pvcs_after_adopting_pod_when_scaled
                should_not_delete_pvcs_when_there_is_another_controller
                pvc_should_be_recreated_when_pod_is_pending_due_to_missing_pvc;
        }
    };
}

/// Gives the modules and names of those to a macro that are about the server and not about the
/// controllers.
#[macro_export]
macro_rules! api_scenarios {
    ($callback:ident) => {
        $callback! {
            api_conformance:
                namespace_deletion_should_delete_pod_first
                should_guarantee_kube_root_ca_crt_exist_in_any_namespace
                should_provide_secure_master_service
                should_return_a_406_for_a_backend_which_does_not_implement_metadata;
        }
    };
}

/// Gives the modules and names of those about StatefulSets to a macro that want a cluster with the feature
/// gate `MaxUnavailableStatefulSet`.
#[macro_export]
macro_rules! gated_stateful_upstream_scenarios {
    ($callback:ident) => {
        $callback! {
            stateful_set_pods:
                should_perform_rolling_updates_with_max_unavailable;
        }
    };
}

/// Gives the modules and names of those to a macro that want a cluster with the feature gate
/// `DeploymentReplicaSetTerminatingReplicas`.
#[macro_export]
macro_rules! gated_upstream_scenarios {
    ($callback:ident) => {
        $callback! {
            replacement:
                test_terminating_replicas
                test_terminating_replicas_deployment_status
                test_recreate_deployment_for_pod_replacement
                test_rolling_update_and_proportional_scaling_for_deployment_pod_replacement;
        }
    };
}

macro_rules! list {
    ($($module:ident: $($name:ident)*;)*) => {
        &[$($((stringify!($name), $module::$name as Scenario)),*),*]
    };
}

/// All that want no feature gate, with their names, for those who run them one after the other.
pub const ALL: &[(&str, Scenario)] = upstream_scenarios!(list);

/// Those that want the feature gate.
pub const GATED: &[(&str, Scenario)] = gated_upstream_scenarios!(list);
