//! The Service `kubernetes` and the ConfigMap `kube-root-ca.crt` are there, and stay.

use super::*;

const ROOT_CA: &str = "kube-root-ca.crt";
const SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";

fn published(port: u16) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.server.publish(cluster.now, Published::new(port, Some("PEM")));
    cluster.settle();
    cluster
}

fn root_ca(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{ROOT_CA}")
}

#[test]
fn every_namespace_has_the_authority_for_as_long_as_it_stays() {
    let mut cluster = published(6443);
    cluster.make("/api/v1/namespaces", json!({"metadata": {"name": "lab"}}));
    cluster.settle();
    for namespace in ["default", "kube-public", "lab"] {
        assert_eq!(cluster.get(&root_ca(namespace)).1["data"], json!({"ca.crt": "PEM"}));
    }
    cluster.delete(&root_ca("lab"), json!({}));
    cluster.settle();
    assert_eq!(cluster.get(&root_ca("lab")).0, 200, "it came back");

    let changed = json!({"data": {"ca.crt": null, "x": "y"}, "immutable": true});
    assert_eq!(cluster.merge(&root_ca("lab"), changed).0, 200);
    cluster.settle();
    let (_, mended) = cluster.get(&root_ca("lab"));
    assert_eq!(mended["data"], json!({"ca.crt": "PEM"}));
    let version = mended["metadata"]["resourceVersion"].clone();
    cluster.settle();
    let (_, quiet) = cluster.get(&root_ca("lab"));
    assert_eq!(quiet["metadata"]["resourceVersion"], version, "nobody writes for nothing");

    cluster.delete("/api/v1/namespaces/lab", json!({}));
    cluster.settle();
    assert_eq!(cluster.get("/api/v1/namespaces/lab").0, 404);
    assert_eq!(cluster.get(&root_ca("lab")).0, 404);
}

#[test]
fn a_quota_counts_the_authority_and_may_keep_it_out_for_a_while() {
    let mut cluster = published(6443);
    cluster.make("/api/v1/namespaces", json!({"metadata": {"name": "lab"}}));
    cluster.settle();
    let quotas = "/api/v1/namespaces/lab/resourcequotas";
    let quota =
        |hard: &str| json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": hard}}});
    cluster.make(quotas, quota("0"));
    cluster.settle();
    let used = cluster.get(&format!("{quotas}/q")).1["status"]["used"]["configmaps"].clone();
    assert_eq!(used, "1");
    cluster.delete(&root_ca("lab"), json!({}));
    cluster.settle();
    assert_eq!(cluster.get(&root_ca("lab")).0, 404, "the quota is used up");
    cluster.merge(&format!("{quotas}/q"), quota("1"));
    cluster.settle();
    assert_eq!(cluster.get(&root_ca("lab")).0, 200);
}

#[test]
fn the_service_comes_back_and_knows_the_port_of_this_start() {
    let mut cluster = published(6443);
    let (status, service) = cluster.get(SERVICE);
    assert_eq!(status, 200, "{service}");
    let spec = &service["spec"];
    assert_eq!(
        (&spec["clusterIP"], &spec["clusterIPs"], &spec["ipFamilies"]),
        (&json!("10.96.0.1"), &json!(["10.96.0.1"]), &json!(["IPv4"]))
    );
    assert_eq!(
        spec["ports"],
        json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}])
    );
    let uid = service["metadata"]["uid"].clone();
    cluster.server.publish(cluster.now, Published::new(8001, None));
    cluster.settle();
    let (_, service) = cluster.get(SERVICE);
    assert_eq!(service["metadata"]["uid"], uid);
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 8001);
    // Without TLS there is no authority, and the file says so.
    let (_, map) = cluster.get(&root_ca("default"));
    let text = map["data"]["ca.crt"].as_str().expect("text");
    assert!(text.starts_with('#') && !text.contains("BEGIN"), "{text}");
    cluster.delete(SERVICE, json!({}));
    cluster.settle();
    let (status, service) = cluster.get(SERVICE);
    assert_eq!((status, &service["spec"]["clusterIP"]), (200, &json!("10.96.0.1")));
    assert_ne!(service["metadata"]["uid"], uid);
}
