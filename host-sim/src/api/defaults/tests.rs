//! Defaults against the words of the specification.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::api::conform::conform;
use crate::api::kind::{self, Kind};
use crate::api::testing::any_json;

fn kind_of(group: &str, plural: &str) -> &'static Kind {
    kind::find(group, "v1", plural).unwrap()
}

fn defaulted(group: &str, plural: &str, mut object: Value) -> Value {
    let kind = kind_of(group, plural);
    conform(kind.object_type().unwrap(), &mut object).unwrap();
    (kind.rules.defaults)(&mut object);
    object
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
           "spec": {"containers": [{"name": "app", "image": "img:v1"}]}})
}

fn defaulted_template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{
                "name": "app", "image": "img:v1", "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst", "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    })
}

#[test]
fn a_deployment_gets_what_a_real_server_gives_it() {
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template()});
    let object = defaulted("apps", "deployments", json!({"spec": spec}));
    assert_eq!(
        object["spec"],
        json!({
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": defaulted_template(),
            "strategy": {"type": "RollingUpdate",
                         "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        })
    );
}

#[test]
fn a_stateful_set_keeps_an_explicit_strategy_without_rolling_update() {
    let set = |strategy: Value| {
        let spec = json!({"template": template(), "updateStrategy": strategy});
        defaulted("apps", "statefulsets", json!({"spec": spec}))["spec"]["updateStrategy"].clone()
    };
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
    assert_eq!(set(json!({})), rolling);
    assert_eq!(set(json!({"type": "RollingUpdate"})), json!({"type": "RollingUpdate"}));
    assert_eq!(set(json!({"type": "RollingUpdate", "rollingUpdate": {}})), rolling);
    assert_eq!(set(json!({"type": "OnDelete"})), json!({"type": "OnDelete"}));
}

#[test]
fn replica_sets_default_their_template_like_deployments() {
    let object = defaulted("apps", "replicasets", json!({"spec": {"template": template()}}));
    assert_eq!(object["spec"]["template"], defaulted_template());
    assert_eq!(object["spec"]["replicas"], 1);
}

#[test]
fn a_replication_controller_takes_labels_and_selector_from_its_template() {
    let own = json!({"tier": "front"});
    let template_labels = json!({"app": "web"});
    let unlabelled = json!({"spec": {"containers": [{"name": "app", "image": "img:v1"}]}});
    // Given labels, selector and template; labels and selector afterwards.
    let cases = [
        (Value::Null, Value::Null, template(), template_labels.clone(), template_labels.clone()),
        (json!({}), json!({}), template(), template_labels.clone(), template_labels.clone()),
        (own.clone(), Value::Null, template(), own.clone(), template_labels.clone()),
        (Value::Null, own.clone(), template(), template_labels.clone(), own.clone()),
        (Value::Null, Value::Null, unlabelled, Value::Null, Value::Null),
        (Value::Null, Value::Null, Value::Null, Value::Null, Value::Null),
    ];
    for (labels, selector, template, wanted_labels, wanted_selector) in cases {
        let given = json!({"metadata": {"labels": labels},
                           "spec": {"selector": selector, "template": template}});
        let object = defaulted("", "replicationcontrollers", given.clone());
        assert_eq!(object["metadata"]["labels"], wanted_labels, "{given}");
        assert_eq!(object["spec"]["selector"], wanted_selector, "{given}");
    }
}

#[test]
fn a_replication_controller_is_completed_like_a_replica_set() {
    let given = json!({"spec": {"template": template()}});
    let object = defaulted("", "replicationcontrollers", given);
    assert_eq!(
        object["spec"],
        json!({"replicas": 1, "selector": {"app": "web"}, "template": defaulted_template()})
    );
    let given = json!({"spec": {"replicas": 0, "minReadySeconds": 5}});
    let object = defaulted("", "replicationcontrollers", given.clone());
    assert_eq!(object["spec"], given["spec"], "an absent template stays absent");
}

#[test]
fn pods_get_requests_from_limits_and_templates_do_not() {
    let container = json!({"name": "a", "image": "i:1",
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}});
    let pod = defaulted("", "pods", json!({"spec": {"containers": [container]}}));
    assert_eq!(
        pod["spec"]["containers"][0]["resources"]["requests"],
        json!({"cpu": "100m", "memory": "1Gi"})
    );
    assert_eq!(pod["spec"]["enableServiceLinks"], true);
    assert_eq!(pod["status"]["phase"], "Pending");
    let spec = json!({"template": {"spec": {"containers": [container]}}});
    let deployment = defaulted("apps", "deployments", json!({"spec": spec}));
    let resources = &deployment["spec"]["template"]["spec"]["containers"][0]["resources"];
    assert_eq!(resources["requests"], json!({"cpu": "100m"}));
}

#[test]
fn probes_ports_env_and_volumes_are_completed() {
    let pod = defaulted(
        "",
        "pods",
        json!({"spec": {
            "containers": [{"name": "a", "image": "nginx",
                "ports": [{"containerPort": 80}],
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "readinessProbe": {"httpGet": {"port": 80}}}],
            "volumes": [{"name": "s", "secret": {"secretName": "x"}}, {"name": "e"},
                        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
            "serviceAccountName": "robot",
        }}),
    );
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["ports"][0]["protocol"], "TCP");
    assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    assert_eq!(
        container["readinessProbe"],
        json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
               "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
    );
    assert_eq!(pod["spec"]["volumes"][0]["secret"]["defaultMode"], 420);
    assert_eq!(pod["spec"]["volumes"][1]["emptyDir"], json!({}));
    let token = &pod["spec"]["volumes"][2]["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!(token["expirationSeconds"], 3600);
    assert_eq!(pod["spec"]["serviceAccount"], "robot");
}

#[test]
fn images_without_a_fixed_tag_are_pulled_always() {
    let cases = [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
        ("", "Always"),
    ];
    for (image, policy) in cases {
        let pod = json!({"spec": {"containers": [{"name": "a", "image": image}]}});
        let pod = defaulted("", "pods", pod);
        assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], policy, "{image}");
    }
}

#[test]
fn services_secrets_claims_and_jobs_are_completed() {
    let service = defaulted("", "services", json!({"spec": {"ports": [{"port": 80}]}}));
    assert_eq!(service["spec"]["type"], "ClusterIP");
    assert_eq!(
        service["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "targetPort": 80}])
    );
    // Go's clients send a target port that nobody has set as 0.
    for (given, target) in
        [(json!(0), json!(80)), (json!(""), json!(80)), (json!("web"), json!("web"))]
    {
        let ports = json!([{"port": 80, "targetPort": given}]);
        let service = defaulted("", "services", json!({"spec": {"ports": ports}}));
        assert_eq!(service["spec"]["ports"][0]["targetPort"], target, "{given}");
    }
    let secret = defaulted("", "secrets", json!({"stringData": {"a": "hi", "b": "hey", "c": ""}}));
    assert_eq!(secret["data"], json!({"a": "aGk=", "b": "aGV5", "c": ""}));
    assert_eq!(secret["type"], "Opaque");
    assert!(secret.get("stringData").is_none());
    let claim = defaulted("", "persistentvolumeclaims", json!({"spec": {}}));
    assert_eq!(claim["spec"]["volumeMode"], "Filesystem");
    assert_eq!(claim["status"]["phase"], "Pending");
    let job = defaulted("batch", "jobs", json!({"spec": {"template": template()}}));
    assert_eq!(job["spec"]["completions"], 1);
    assert_eq!(job["spec"]["backoffLimit"], 6);
    assert_eq!(job["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
}

proptest! {
    /// A server that defaults its own output differently makes controllers loop for ever.
    #[test]
    fn defaulting_twice_changes_nothing(value in any_json()) {
        for kind in kind::ALL {
            let ty = kind.object_type().unwrap();
            let mut once = value.clone();
            if conform(ty, &mut once).is_ok() {
                (kind.rules.defaults)(&mut once);
                let mut twice = once.clone();
                prop_assert_eq!(conform(ty, &mut twice), Ok(vec![]));
                (kind.rules.defaults)(&mut twice);
                prop_assert_eq!(&once, &twice, "{}", kind.kind);
            }
        }
    }

    #[test]
    fn any_value_is_defaulted_without_panic(value in any_json()) {
        for kind in kind::ALL {
            (kind.rules.defaults)(&mut value.clone());
        }
    }
}
