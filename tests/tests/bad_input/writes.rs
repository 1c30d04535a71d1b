//! Objects that can be read but break a rule, and deletions that cannot be meant.

use serde_json::{Value, json};

use super::case::Case;
use super::{CONFIG_MAPS, DEPLOYMENTS, LEASES, PODS, STATEFUL_SETS, deployment, pod};

/// A create of a changed Deployment that is invalid.
fn invalid(name: &'static str, change: impl FnOnce(&mut Value)) -> Case {
    let mut object = deployment("new");
    change(&mut object);
    Case::new(name, "POST", DEPLOYMENTS, 422, "Invalid").json(object)
}

/// A create of a changed pod that is invalid.
fn invalid_pod(name: &'static str, change: impl FnOnce(&mut Value)) -> Case {
    let mut object = pod("new");
    change(&mut object);
    Case::new(name, "POST", PODS, 422, "Invalid").json(object)
}

/// A PUT of a changed Deployment.
fn put(
    name: &'static str,
    code: u16,
    reason: &'static str,
    change: impl FnOnce(&mut Value),
) -> Case {
    let mut object = deployment("web");
    change(&mut object);
    Case::new(name, "PUT", format!("{DEPLOYMENTS}/web"), code, reason).json(object)
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = creates();
    cases.extend(updates());
    cases.extend(deletions());
    cases.extend(subresources());
    cases
}

fn creates() -> Vec<Case> {
    let container = |pod: &mut Value, field: &str, value: Value| {
        pod["spec"]["containers"][0][field] = value;
    };
    let owner = |uid: &str, controller: bool| {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": uid,
            "controller": controller})
    };
    let mut set = deployment("new");
    set["kind"] = json!("StatefulSet");
    set["metadata"]["name"] = json!("n".repeat(64));
    if let Some(spec) = set["spec"].as_object_mut() {
        spec.remove("strategy");
    }
    vec![
        invalid("no name", |d| d["metadata"]["name"] = json!("")),
        invalid("name in capitals", |d| d["metadata"]["name"] = json!("Web")),
        invalid("name too long", |d| d["metadata"]["name"] = json!("n".repeat(254))),
        invalid("name with a slash", |d| d["metadata"]["name"] = json!("a/b")),
        invalid("name of two dots", |d| d["metadata"]["name"] = json!("..")),
        invalid("name with a percent sign", |d| d["metadata"]["name"] = json!("%2e")),
        invalid("name with a zero byte", |d| d["metadata"]["name"] = json!("a\0b")),
        Case::new("name too long for a StatefulSet", "POST", STATEFUL_SETS, 422, "Invalid")
            .json(set),
        invalid("negative replicas", |d| d["spec"]["replicas"] = json!(-1)),
        invalid("no selector", |d| d["spec"]["selector"] = Value::Null),
        invalid("empty selector", |d| d["spec"]["selector"] = json!({})),
        invalid("selector of others", |d| {
            d["spec"]["selector"]["matchLabels"]["app"] = json!("other");
        }),
        invalid("selector with an unknown operator", |d| {
            d["spec"]["selector"]["matchExpressions"] = json!([{"key": "a", "operator": "Near"}]);
        }),
        invalid("no template", |d| d["spec"]["template"] = json!({})),
        invalid("template that ends", |d| {
            d["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
        }),
        invalid("nothing may be added nor taken", |d| {
            d["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 0, "maxUnavailable": 0});
        }),
        invalid("more than all unavailable", |d| {
            d["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] = json!("101%");
        }),
        invalid("percentage that is none", |d| {
            d["spec"]["strategy"]["rollingUpdate"]["maxSurge"] = json!("a few");
        }),
        invalid("unknown strategy", |d| d["spec"]["strategy"] = json!({"type": "Hope"})),
        invalid("deadline before readiness", |d| {
            d["spec"]["minReadySeconds"] = json!(600);
            d["spec"]["progressDeadlineSeconds"] = json!(600);
        }),
        invalid("label key with two slashes", |d| d["metadata"]["labels"] = json!({"a/b/c": "x"})),
        invalid("label value too long", |d| {
            d["metadata"]["labels"]["x"] = json!("v".repeat(64));
        }),
        invalid("annotations beyond 256 KiB", |d| {
            d["metadata"]["annotations"] = json!({"x": "v".repeat(256 << 10)});
        }),
        invalid("owner without uid", |d| {
            d["metadata"]["ownerReferences"] = json!([owner("", true)])
        }),
        invalid("two controllers", |d| {
            d["metadata"]["ownerReferences"] = json!([owner("1", true), owner("2", true)]);
        }),
        invalid("finalizers that exclude each other", |d| {
            d["metadata"]["finalizers"] = json!(["orphan", "foregroundDeletion"]);
        }),
        invalid_pod("no containers", |p| p["spec"]["containers"] = json!([])),
        invalid_pod("two containers of one name", |p| {
            p["spec"]["containers"] =
                json!([{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]);
        }),
        invalid_pod("container without an image", |p| container(p, "image", json!(""))),
        invalid_pod("port of zero", |p| container(p, "ports", json!([{"containerPort": 0}]))),
        invalid_pod("port too high", |p| container(p, "ports", json!([{"containerPort": 65536}]))),
        invalid_pod("unknown pull policy", |p| container(p, "imagePullPolicy", json!("Maybe"))),
        invalid_pod("probe without an action", |p| container(p, "livenessProbe", json!({}))),
        invalid_pod("more requested than allowed", |p| {
            let resources = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}});
            container(p, "resources", resources);
        }),
        invalid_pod("volume that is not there", |p| {
            container(p, "volumeMounts", json!([{"name": "v", "mountPath": "/v"}]));
        }),
        invalid_pod("environment without a name", |p| container(p, "env", json!([{"value": "x"}]))),
        invalid_pod("unknown restart policy", |p| p["spec"]["restartPolicy"] = json!("Sometimes")),
        Case::new("key that is no file name", "POST", CONFIG_MAPS, 422, "Invalid")
            .json(json!({"metadata": {"name": "c"}, "data": {"a/b": "x"}})),
        Case::new(
            "data that is no base64",
            "POST",
            "/api/v1/namespaces/default/secrets",
            400,
            "BadRequest",
        )
        .json(json!({"metadata": {"name": "s"}, "data": {"a": "not base64!"}})),
        Case::new(
            "quota below zero",
            "POST",
            "/api/v1/namespaces/default/resourcequotas",
            422,
            "Invalid",
        )
        .json(json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "-1"}}})),
        Case::new(
            "namespace that is not there",
            "POST",
            "/api/v1/namespaces/nowhere/configmaps",
            404,
            "NotFound",
        )
        .json(json!({"metadata": {"name": "c"}})),
        Case::new("another namespace in the object", "POST", CONFIG_MAPS, 400, "BadRequest")
            .json(json!({"metadata": {"name": "c", "namespace": "kube-system"}})),
        Case::new("name that is taken", "POST", DEPLOYMENTS, 409, "AlreadyExists")
            .json(deployment("web")),
        Case::new("create with a version", "POST", CONFIG_MAPS, 400, "BadRequest")
            .json(json!({"metadata": {"name": "c", "resourceVersion": "7"}})),
    ]
}

fn updates() -> Vec<Case> {
    vec![
        put("name of another path", 400, "BadRequest", |d| d["metadata"]["name"] = json!("other")),
        put("uid of another object", 409, "Conflict", |d| d["metadata"]["uid"] = json!("not-mine")),
        put("version that is not the latest", 409, "Conflict", |d| {
            d["metadata"]["resourceVersion"] = json!("1");
        }),
        put("version that is none", 422, "Invalid", |d| {
            d["metadata"]["resourceVersion"] = json!("latest");
        }),
        put("version from the future", 409, "Conflict", |d| {
            d["metadata"]["resourceVersion"] = json!("18446744073709551615");
        }),
        put("version beyond 64 bits", 422, "Invalid", |d| {
            d["metadata"]["resourceVersion"] = json!("99999999999999999999999");
        }),
        put("changed selector", 422, "Invalid", |d| {
            d["spec"]["selector"]["matchLabels"] = json!({"app": "new"});
            d["spec"]["template"]["metadata"]["labels"] = json!({"app": "new"});
        }),
        Case::new(
            "update of what is not there",
            "PUT",
            format!("{DEPLOYMENTS}/none"),
            404,
            "NotFound",
        )
        .json(deployment("none")),
        Case::new(
            "pod that changes its containers",
            "PUT",
            format!("{PODS}/bound"),
            422,
            "Invalid",
        )
        .json({
            let mut pod = pod("bound");
            pod["spec"]["containers"][0]["name"] = json!("other");
            pod
        }),
        Case::new("lease without a version", "PUT", format!("{LEASES}/lock"), 422, "Invalid")
            .json(json!({"metadata": {"name": "lock"}, "spec": {"holderIdentity": "b"}})),
    ]
}

fn deletions() -> Vec<Case> {
    let delete = |name, code, reason, options: Value| {
        Case::new(name, "DELETE", format!("{DEPLOYMENTS}/web"), code, reason).json(options)
    };
    vec![
        delete(
            "deletion of another uid",
            409,
            "Conflict",
            json!({"preconditions": {"uid": "not-mine"}}),
        ),
        delete(
            "deletion of another version",
            409,
            "Conflict",
            json!({"preconditions": {"resourceVersion": "1"}}),
        ),
        delete("unknown propagation", 422, "Invalid", json!({"propagationPolicy": "Sideways"})),
        delete(
            "two propagations",
            422,
            "Invalid",
            json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
        ),
        delete("grace period as text", 400, "BadRequest", json!({"gracePeriodSeconds": "soon"})),
        delete(
            "options of another kind",
            400,
            "BadRequest",
            json!({"kind": "Pod", "apiVersion": "v1"}),
        ),
        delete("options as a list", 400, "BadRequest", json!([])),
        delete("deletion as an unknown dry run", 422, "Invalid", json!({"dryRun": ["Some"]})),
        Case::new(
            "options that are no JSON",
            "DELETE",
            format!("{DEPLOYMENTS}/web"),
            400,
            "BadRequest",
        )
        .json("now"),
        Case::new(
            "deletion of what is not there",
            "DELETE",
            format!("{PODS}/none"),
            404,
            "NotFound",
        ),
        Case::new(
            "deletion of a system namespace",
            "DELETE",
            "/api/v1/namespaces/kube-system",
            403,
            "Forbidden",
        ),
        Case::new(
            "unknown propagation in the query",
            "DELETE",
            format!("{DEPLOYMENTS}/web?propagationPolicy=Sideways"),
            422,
            "Invalid",
        ),
        Case::new(
            "grace period that is none",
            "DELETE",
            format!("{PODS}/bound?gracePeriodSeconds=soon"),
            400,
            "BadRequest",
        ),
        Case::new(
            "deletion of a selection that is none",
            "DELETE",
            format!("{PODS}?labelSelector=a==="),
            400,
            "BadRequest",
        ),
    ]
}

fn subresources() -> Vec<Case> {
    let post = |name, path: &str, code, reason, body: Value| {
        Case::new(name, "POST", format!("{PODS}/{path}"), code, reason).json(body)
    };
    let scale = |name, code, reason, body: Value| {
        Case::new(name, "PUT", format!("{DEPLOYMENTS}/web/scale"), code, reason).json(body)
    };
    let status = |name, code, reason, status: Value| {
        let mut object = deployment("web");
        object["status"] = status;
        Case::new(name, "PUT", format!("{DEPLOYMENTS}/web/status"), code, reason).json(object)
    };
    let target = json!({"kind": "Node", "name": "node-2"});
    vec![
        post("binding to nowhere", "bound/binding", 422, "Invalid", json!({"target": {}})),
        post(
            "binding of what is not there",
            "none/binding",
            404,
            "NotFound",
            json!({"target": target}),
        ),
        post("binding twice", "bound/binding", 409, "Conflict", json!({"target": target})),
        post("binding of another kind", "bound/binding", 400, "BadRequest", pod("bound")),
        post(
            "eviction of another name",
            "bound/eviction",
            400,
            "BadRequest",
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}),
        ),
        post("eviction of what is not there", "none/eviction", 404, "NotFound", json!({})),
        post("eviction of another kind", "bound/eviction", 400, "BadRequest", pod("bound")),
        scale(
            "scale below zero",
            422,
            "Invalid",
            json!({"metadata": {"name": "web"}, "spec": {"replicas": -1}}),
        ),
        scale("scale of another kind", 400, "BadRequest", deployment("web")),
        scale(
            "scale of another version",
            409,
            "Conflict",
            json!({"metadata": {"name": "web", "resourceVersion": "1"}, "spec": {"replicas": 1}}),
        ),
        scale(
            "scale with text",
            400,
            "BadRequest",
            json!({"metadata": {"name": "web"}, "spec": {"replicas": "1"}}),
        ),
        status("status below zero", 422, "Invalid", json!({"replicas": -1})),
        status(
            "more ready than there are",
            422,
            "Invalid",
            json!({"replicas": 1, "readyReplicas": 2}),
        ),
        status("status of the wrong type", 400, "BadRequest", json!({"replicas": []})),
    ]
}
