//! Rules on StatefulSets: what they must fulfil, and what of them may change.

use serde_json::{Value, json};

use super::numbers::{at_most_all, is_zero, not_negative, number_or_percent};
use super::template::selector_and_template;
use super::{claim, pod};
use crate::api::field::{FieldErrors, Path, go_quote};
use crate::api::names;
use crate::api::object::{at, int, list, name, remove, set, text};

const FORBIDDEN: &str = "updates to statefulset spec for fields other than 'replicas', \
    'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
    'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// The fields of the spec that may change.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// A `revisionHistoryLimit` may be negative, unlike a Deployment's: then all revisions are kept.
pub(in crate::api) fn stateful_set(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    match text(spec, "podManagementPolicy") {
        "" => errors.required(&here.child("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.invalid(&here.child("podManagementPolicy"), other, detail);
        }
    }
    update_strategy(at(spec, &["updateStrategy"]), &here.child("updateStrategy"), errors);
    let retention = at(spec, &["persistentVolumeClaimRetentionPolicy"]);
    let retention_at = here.child("persistentVolumeClaimRetentionPolicy");
    for when in ["whenDeleted", "whenScaled"] {
        let policy = text(retention, when);
        if !matches!(policy, "Retain" | "Delete") {
            errors.not_supported(&retention_at.child(when), policy, &["Retain", "Delete"]);
        }
    }
    not_negative(spec, "replicas", &here, errors);
    not_negative(spec, "minReadySeconds", &here, errors);
    not_negative(at(spec, &["ordinals"]), "start", &here.child("ordinals"), errors);
    selector_and_template(spec, "statefulset", errors);
}

/// What can only be wrong with a new StatefulSet, because it does not change later; and its pods.
pub(in crate::api) fn stateful_set_create(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    for (i, template) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let here = here.child("volumeClaimTemplates").index(i).child("spec");
        claim::claim_spec(at(template, &["spec"]), &here, errors);
    }
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        errors.invalid_all(&here.child("serviceName"), service, &names::dns_label(service));
    }
    pod_spec(spec, errors);
}

pub(in crate::api) fn stateful_set_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    // A set with impossible pods can still be scaled and deleted.
    let mut before = FieldErrors::new();
    pod_spec(at(old, &["spec"]), &mut before);
    if before.is_empty() {
        pod_spec(at(new, &["spec"]), errors);
    }
    let fixed = |object: &Value| {
        let mut spec = at(object, &["spec"]).clone();
        if let Value::Object(fields) = &mut spec {
            fields.retain(|name, _| !CHANGEABLE.contains(&name.as_str()));
        }
        spec
    };
    if fixed(new) != fixed(old) {
        errors.forbidden(&Path::new("spec"), FORBIDDEN);
    }
}

/// The pods as the controller will make them: claims are volumes under the names of their
/// templates, and host name and subdomain are the set's, whatever the template says.
fn pod_spec(spec: &Value, errors: &mut FieldErrors) {
    let mut pod = at(spec, &["template", "spec"]).clone();
    if !pod.is_object() {
        return;
    }
    remove(&mut pod, "hostname");
    remove(&mut pod, "subdomain");
    let mut claims: Vec<&str> = list(spec, "volumeClaimTemplates").iter().map(name).collect();
    claims.sort_unstable();
    claims.dedup();
    let claimed =
        |claim: &&str| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    let own = list(&pod, "volumes").iter().filter(|volume| !claims.contains(&text(volume, "name")));
    let volumes: Vec<Value> = claims.iter().map(claimed).chain(own.cloned()).collect();
    set(&mut pod, "volumes", volumes.into());
    pod::spec(&pod, &Path::new("spec").child("template").child("spec"), errors);
}

fn update_strategy(strategy: &Value, here: &Path, errors: &mut FieldErrors) {
    let rolling = at(strategy, &["rollingUpdate"]);
    let rolling_at = here.child("rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" => {
            if !rolling.is_null() {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push_shown(&rolling_at, &go_rolling_update(rolling), detail);
            }
        }
        "RollingUpdate" => {
            not_negative(rolling, "partition", &rolling_at, errors);
            let unavailable = at(rolling, &["maxUnavailable"]);
            let at = rolling_at.child("maxUnavailable");
            number_or_percent(unavailable, &at, errors);
            if is_zero(unavailable) {
                errors.invalid(&at, unavailable.clone(), "cannot be 0");
            }
            at_most_all(unavailable, &at, errors);
        }
        other => {
            let rolling = go_rolling_update(rolling);
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", go_quote(other));
            errors.push_shown(here, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

/// Upstream shows its own form of the strategy, whose fields have Go's names.
fn go_rolling_update(rolling: &Value) -> String {
    if rolling.is_null() {
        return "null".to_owned();
    }
    let partition = int(rolling, "partition").unwrap_or(0);
    let unavailable = at(rolling, &["maxUnavailable"]);
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":{unavailable}}}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{changed, prepared, put, refusal, refusal_of, stateful_set};
    use super::*;
    use crate::api::kind;

    #[test]
    fn stateful_sets_are_refused_as_upstream_refuses_them() {
        let strategy = "/spec/updateStrategy";
        let rolling = |value: Value| json!({"type": "RollingUpdate", "rollingUpdate": value});
        let retention = "/spec/persistentVolumeClaimRetentionPolicy";
        let cases = [
            (
                "/spec/podManagementPolicy",
                json!("x"),
                "spec.podManagementPolicy: Invalid value: \"x\": must be 'OrderedReady' or 'Parallel'",
            ),
            (
                strategy,
                json!({"type": "Recreate"}),
                "spec.updateStrategy: Invalid value: {\"Type\":\"Recreate\",\"RollingUpdate\":null}: \
                 must be 'RollingUpdate' or 'OnDelete'",
            ),
            (
                strategy,
                json!({"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
                "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\
                 \"MaxUnavailable\":null}: only allowed for updateStrategy 'RollingUpdate'",
            ),
            (
                strategy,
                rolling(json!({"partition": -1})),
                "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater \
                 than or equal to 0",
            ),
            (
                strategy,
                rolling(json!({"maxUnavailable": 0})),
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
            ),
            (
                strategy,
                rolling(json!({"maxUnavailable": "0%"})),
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": cannot be 0",
            ),
            (
                strategy,
                rolling(json!({"maxUnavailable": "101%"})),
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must \
                 not be greater than 100%",
            ),
            (
                retention,
                json!({"whenScaled": "Recycle"}),
                "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: \
                 \"Recycle\": supported values: \"Retain\", \"Delete\"",
            ),
            (
                "/spec/minReadySeconds",
                json!(-1),
                "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                "/spec/ordinals",
                json!({"start": -1}),
                "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                "/spec/serviceName",
                json!("a.b"),
                "spec.serviceName: Invalid value: \"a.b\": must not contain dots",
            ),
            (
                "/spec/selector",
                json!({}),
                "spec.selector: Invalid value: {}: empty selector is invalid for statefulset",
            ),
            (
                "/spec/template/spec/restartPolicy",
                json!("Never"),
                "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \
                 \"Always\"",
            ),
            (
                "/metadata/name",
                json!("a.b"),
                "metadata.name: Invalid value: \"a.b\": must not contain dots",
            ),
        ];
        for (pointer, value, message) in cases {
            let said = refusal_of("apps", "statefulsets", &stateful_set(), pointer, value);
            assert_eq!(said, message, "{pointer}");
        }
        assert_eq!(refusal("apps", "statefulsets", stateful_set()), "");
        let base = stateful_set();
        for (pointer, value) in [
            ("/spec/revisionHistoryLimit", json!(-1)),
            ("/spec/serviceName", json!("")),
            ("/spec/template/spec/hostname", json!("A_B")),
            ("/spec/template/spec/subdomain", json!("A_B")),
            (strategy, rolling(json!({"maxUnavailable": "100%"}))),
        ] {
            assert_eq!(refusal_of("apps", "statefulsets", &base, pointer, value), "", "{pointer}");
        }
    }

    #[test]
    fn pods_are_judged_with_the_volumes_of_the_claim_templates() {
        let mut set = stateful_set();
        put(
            &mut set,
            "/spec/template/spec/containers/0/volumeMounts",
            json!([{"name": "data", "mountPath": "/data"}]),
        );
        let said = refusal("apps", "statefulsets", set.clone());
        assert!(said.contains("volumeMounts[0].name: Not found: \"data\""), "{said}");
        let spec = json!({"accessModes": ["ReadWriteOnce"],
                          "resources": {"requests": {"storage": "1Gi"}}});
        let templates = "/spec/volumeClaimTemplates";
        let claimed =
            |claim: Value| refusal_of("apps", "statefulsets", &set, templates, json!([claim]));
        assert_eq!(claimed(json!({"metadata": {"name": "data"}, "spec": spec})), "");
        assert_eq!(
            claimed(json!({"metadata": {"name": "data"}, "spec": {}})),
            "[spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access \
             mode is required, spec.volumeClaimTemplates[0].spec.resources[storage]: Required value]"
        );
        let said = claimed(json!({"spec": spec}));
        assert!(said.contains("spec.template.spec.volumes[0].name: Required value"), "{said}");
        // The claim takes the place of a volume of the same name, which then may be anything.
        put(&mut set, "/spec/template/spec/volumes", json!([{"name": "data", "hostPath": {}}]));
        let claim = json!([{"metadata": {"name": "data"}, "spec": spec}]);
        assert_eq!(refusal_of("apps", "statefulsets", &set, templates, claim), "");
    }

    #[test]
    fn only_seven_fields_of_the_spec_change() {
        let mut set = stateful_set();
        set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        let old = prepared(kind::find("apps", "v1", "statefulsets").unwrap(), set);
        for (pointer, value) in [
            ("/spec/replicas", json!(7)),
            ("/spec/ordinals", json!({"start": 5})),
            ("/spec/template/spec/containers/0/image", json!("img:v2")),
            ("/spec/updateStrategy", json!({"type": "OnDelete"})),
            ("/spec/revisionHistoryLimit", json!(1)),
            ("/spec/persistentVolumeClaimRetentionPolicy/whenScaled", json!("Delete")),
            ("/spec/minReadySeconds", json!(1)),
        ] {
            assert_eq!(changed("statefulsets", &old, pointer, value), "", "{pointer}");
        }
        let forbidden = format!("spec: Forbidden: {FORBIDDEN}");
        for (pointer, value) in [
            ("/spec/serviceName", json!("not a name")),
            ("/spec/podManagementPolicy", json!("Parallel")),
            ("/spec/volumeClaimTemplates/0/spec/resources/requests/storage", json!("0")),
            ("/spec/selector/matchExpressions", json!([{"key": "app", "operator": "Exists"}])),
        ] {
            assert_eq!(changed("statefulsets", &old, pointer, value), forbidden, "{pointer}");
        }
        let image = "/spec/template/spec/containers/0/image";
        let required = "spec.template.spec.containers[0].image: Required value";
        assert_eq!(changed("statefulsets", &old, image, json!("")), required);
        let mut broken = old.clone();
        put(&mut broken, image, json!(""));
        assert_eq!(changed("statefulsets", &broken, "/spec/replicas", json!(0)), "");
    }
}
