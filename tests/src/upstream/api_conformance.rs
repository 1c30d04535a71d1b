//! Conformance tests of the API server and of what keeps namespaces (`[sig-api-machinery]`,
//! `[sig-auth]`, `[sig-network]`), with simulated nodes.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, condition, name, text};
use crate::picokube::Picokube;

const ROOT_CA: &str = "configmaps/kube-root-ca.crt";

/// OrderedNamespaceDeletion namespace deletion should delete pod first
pub fn namespace_deletion_should_delete_pod_first(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "nsdeletetest")?;
    let namespace = "/api/v1/namespaces/nsdeletetest";
    lab.create(
        "pods",
        &json!({
            "metadata": {"name": "test-pod", "finalizers": ["e2e.example.com/finalizer"]},
            "spec": {"containers": [{"name": "nginx", "image": "pause:3"}]},
        }),
    )?;
    lab.wait_for("pods/test-pod", "it runs", |pod| pod["status"]["phase"] == "Running")?;
    let data = json!({"key": "value"});
    lab.create("configmaps", &json!({"metadata": {"name": "test-configmap"}, "data": data}))?;
    let deleted = cluster.send_json("DELETE", namespace, &json!({}))?;
    assert_eq!(deleted.status, 200, "{}", deleted.text());

    let mut seen = Value::Null;
    lab.wait("the namespace was looked at", || {
        seen = cluster.get(namespace)?.json()?;
        Ok(!condition(&seen, "NamespaceDeletionContentFailure").is_null())
    })?;
    assert_eq!(seen["status"]["phase"], "Terminating");
    for (kind, status, reason, message) in [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: pods. has 1 resource instances",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: e2e.example.com/finalizer in \
             1 resource instances",
        ),
    ] {
        let found = condition(&seen, kind);
        assert_eq!((text(&found["status"]), text(&found["reason"])), (status, reason), "{kind}");
        assert_eq!(text(&found["message"]), message, "{kind}");
    }
    let pod = lab.get("pods/test-pod")?;
    ensure!(!pod["metadata"]["deletionTimestamp"].is_null(), "the pod was left alone: {pod:#}");
    // Its containers stop; only the finalizer holds it now. Nothing else has begun to go.
    lab.wait_for("pods/test-pod", "it has stopped", |pod| pod["status"]["phase"] == "Failed")?;
    for other in ["configmaps/test-configmap", ROOT_CA, "serviceaccounts/default"] {
        let object = lab.get(other)?;
        ensure!(object["metadata"]["deletionTimestamp"].is_null(), "{other} went before the pod");
    }

    lab.update("pods/test-pod", |pod| pod["metadata"]["finalizers"] = json!([]))?;
    lab.wait("the namespace is gone", || Ok(cluster.get(namespace)?.status == 404))
}

/// ServiceAccounts should guarantee kube-root-ca.crt exist in any namespace
pub fn should_guarantee_kube_root_ca_crt_exist_in_any_namespace(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "svcaccounts")?;
    let has_it = || lab.has(ROOT_CA);
    lab.wait("the authority is published", has_it)?;
    let first = lab.get(ROOT_CA)?;
    let published = text(&first["data"]["ca.crt"]).to_owned();
    ensure!(!published.is_empty(), "{first:#}");

    lab.delete(ROOT_CA, "Background")?;
    lab.wait("it was published again", has_it)?;
    let again = lab.get(ROOT_CA)?;
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);

    lab.update(ROOT_CA, |map| map["data"] = json!({"ca.crt": "", "more": "of it"}))?;
    lab.wait_for(ROOT_CA, "it was mended", |map| map["data"] == json!({"ca.crt": published}))?;
    Ok(())
}

/// Services should provide secure master service
pub fn should_provide_secure_master_service(cluster: &Picokube) -> Result<()> {
    let path = "/api/v1/namespaces/default/services/kubernetes";
    let service = cluster.get(path)?.json()?;
    assert_eq!(name(&service), "kubernetes");
    let spec = &service["spec"];
    assert_eq!((&spec["clusterIP"], &spec["type"]), (&json!("10.96.0.1"), &json!("ClusterIP")));
    let port = json!({"name": "https", "port": 443, "protocol": "TCP",
        "targetPort": cluster.address().port()});
    assert_eq!(spec["ports"], json!([port]));
    assert_eq!(
        service["metadata"]["labels"],
        json!({"component": "apiserver", "provider": "kubernetes"})
    );
    let deleted = cluster.send_json("DELETE", path, &json!({}))?;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    cluster.wait_until("the service is back", || {
        let answer = cluster.get(path)?;
        Ok(answer.status == 200 && answer.json()?["metadata"]["uid"] != service["metadata"]["uid"])
    })?;
    assert_eq!(cluster.get(path)?.json()?["spec"]["clusterIP"], "10.96.0.1");
    Ok(())
}

/// Servers with support for Table transformation should return a 406 for a backend which does not
/// implement metadata
pub fn should_return_a_406_for_a_backend_which_does_not_implement_metadata(
    cluster: &Picokube,
) -> Result<()> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "version": "v1"}},
    });
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let ask = |accept: &str| {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        cluster.client()?.send("POST", path, &headers, review.to_string().as_bytes())
    };
    let refused = ask(table)?;
    assert_eq!(refused.status, 406, "{}", refused.text());
    let status = refused.json()?;
    assert_eq!(status["reason"], "NotAcceptable");
    ensure!(text(&status["message"]).contains("application/json"), "{status:#}");
    // As kubectl asks: it takes the object where there is no table.
    let answer = ask(&format!("{table},application/json"))?;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let answer = answer.json()?;
    assert_eq!(answer["kind"], "SelfSubjectAccessReview");
    assert_eq!(answer["status"]["allowed"], true);
    Ok(())
}
