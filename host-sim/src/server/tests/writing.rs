//! Creating, replacing and patching.

use super::*;

#[test]
fn a_created_object_has_what_the_server_gives_it() {
    let mut cluster = Cluster::new();
    let object = cluster.make(DEPLOYMENTS, deployment("web"));
    let metadata = &object["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["creationTimestamp"], "2025-11-16T00:40:00Z");
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
    assert_eq!(object["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    let (status, read) = cluster.get(&format!("{DEPLOYMENTS}/web"));
    assert_eq!((status, read), (200, object));
}

#[test]
fn a_name_can_be_taken_only_once() {
    let mut cluster = Cluster::new();
    cluster.make(PODS, pod("a"));
    let (status, error) = cluster.post(PODS, pod("a"));
    assert_eq!((status, error["reason"].as_str()), (409, Some("AlreadyExists")));
    assert_eq!(error["message"], "pods \"a\" already exists");
}

#[test]
fn generated_names_have_five_letters_and_differ() {
    let mut cluster = Cluster::new();
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let mut body = pod("x");
        body["metadata"] = json!({"generateName": "web-"});
        let name = cluster.make(PODS, body)["metadata"]["name"].as_str().unwrap().to_owned();
        let suffix = name.strip_prefix("web-").expect("the prefix").to_owned();
        assert!(
            suffix.len() == 5 && suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
        );
        assert!(names.insert(name));
    }
}

#[test]
fn the_namespace_of_the_path_counts() {
    let mut cluster = Cluster::new();
    let mut body = pod("a");
    body["metadata"]["namespace"] = json!("kube-system");
    let (status, error) = cluster.post(PODS, body);
    assert_eq!(status, 400);
    let expected =
        "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(error["message"], expected);
}

#[test]
fn an_old_version_cannot_overwrite_a_new_one() {
    let mut cluster = Cluster::new();
    let first = cluster.make(CONFIG_MAPS, config_map("c"));
    let path = format!("{CONFIG_MAPS}/c");
    let mut second = first.clone();
    second["data"]["a"] = json!("2");
    assert_eq!(cluster.put(&path, second.clone()).0, 200);
    let (status, error) = cluster.put(&path, second.clone());
    assert_eq!((status, error["reason"].as_str()), (409, Some("Conflict")));
    second["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    second["data"]["a"] = json!("3");
    assert_eq!(cluster.put(&path, second.clone()).0, 200, "without a version it is unconditional");
    second["metadata"]["uid"] = json!("0000");
    assert_eq!(cluster.put(&path, second).0, 409);
}

#[test]
fn a_write_that_changes_nothing_is_none() {
    let mut cluster = Cluster::new();
    let object = cluster.make(DEPLOYMENTS, deployment("web"));
    let path = format!("{DEPLOYMENTS}/web");
    let before = cluster.server.store().revision();
    assert_eq!(cluster.put(&path, object.clone()), (200, object.clone()));
    assert_eq!(cluster.merge(&path, json!({"spec": {"replicas": 3}})), (200, object.clone()));
    assert_eq!(cluster.merge(&format!("{path}/status"), json!({"status": {}})), (200, object));
    assert_eq!(cluster.server.store().revision(), before);
}

#[test]
fn spec_and_status_are_written_through_their_own_doors() {
    let mut cluster = Cluster::new();
    let mut object = cluster.make(DEPLOYMENTS, deployment("web"));
    let path = format!("{DEPLOYMENTS}/web");
    object["status"] = json!({"replicas": 7});
    object["spec"]["replicas"] = json!(5);
    let (_, updated) = cluster.put(&path, object.clone());
    assert!(updated["status"]["replicas"].is_null());
    assert_eq!(
        (&updated["spec"]["replicas"], &updated["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
    object = updated;
    object["status"] = json!({"replicas": 7});
    object["spec"]["replicas"] = json!(9);
    object["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    let (_, updated) = cluster.put(&format!("{path}/status"), object);
    assert_eq!(
        (&updated["spec"]["replicas"], &updated["status"]["replicas"]),
        (&json!(5), &json!(7))
    );
    assert_eq!(updated["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(updated["metadata"]["generation"], 2);
}

#[test]
fn dry_run_changes_nothing() {
    let mut cluster = Cluster::new();
    let before = cluster.server.store().revision();
    assert_eq!(cluster.post(&format!("{PODS}?dryRun=All"), pod("a")).0, 201);
    assert_eq!(cluster.get(&format!("{PODS}/a")).0, 404);
    assert_eq!(cluster.server.store().revision(), before);
    cluster.make(CONFIG_MAPS, config_map("c"));
    let before = cluster.server.store().revision();
    let path = format!("{CONFIG_MAPS}/c");
    let (_, patched) = cluster.merge(&format!("{path}?dryRun=All"), json!({"data": {"b": "2"}}));
    assert_eq!(patched["data"]["b"], "2");
    cluster.delete(&path, json!({"dryRun": ["All"]}));
    assert!(cluster.get(&path).1["data"]["b"].is_null());
    assert_eq!(cluster.server.store().revision(), before);
}

#[test]
fn unknown_fields_are_refused_when_asked_to_be_strict() {
    let mut cluster = Cluster::new();
    let mut body = deployment("web");
    body["spec"]["replicaz"] = json!(2);
    let (status, error) = cluster.post(&format!("{DEPLOYMENTS}?fieldValidation=Strict"), body);
    assert_eq!(status, 400);
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("strict decoding error: unknown field \"spec.replicaz\""),
        "{message}"
    );
}

#[test]
fn a_lease_can_be_made_by_put_and_wants_a_version_afterwards() {
    let mut cluster = Cluster::new();
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader";
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "leader", "namespace": "kube-system"},
        "spec": {"holderIdentity": "a"},
    });
    let (status, made) = cluster.put(path, lease.clone());
    assert_eq!(status, 201, "{made}");
    let (status, error) = cluster.put(path, lease);
    assert_eq!((status, error["reason"].as_str()), (422, Some("Invalid")));
    let mut next = made;
    next["spec"]["holderIdentity"] = json!("b");
    assert_eq!(cluster.put(path, next.clone()).0, 200);
    assert_eq!(cluster.put(path, next).0, 409);
}

#[test]
fn scale_reads_and_writes_replicas() {
    let mut cluster = Cluster::new();
    for (collection, object) in [
        (DEPLOYMENTS, deployment("web")),
        (REPLICA_SETS, replica_set("web")),
        (CONTROLLERS, replication_controller("web")),
        (STATEFUL_SETS, stateful_set("web")),
    ] {
        cluster.make(collection, object);
        let path = format!("{collection}/web/scale");
        let (_, scale) = cluster.get(&path);
        assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
        assert_eq!(scale["apiVersion"], "autoscaling/v1");
        assert_eq!(scale["status"]["selector"], "app=web", "{collection}");
        let (status, scaled) = cluster.merge(&path, json!({"spec": {"replicas": 0}}));
        assert_eq!((status, scaled["spec"].clone()), (200, json!({})));
        let (_, object) = cluster.get(&format!("{collection}/web"));
        assert_eq!(
            (&object["spec"]["replicas"], &object["metadata"]["generation"]),
            (&json!(0), &json!(2))
        );
        assert_eq!(cluster.put(&path, scale).0, 409, "the scale that was read first is old");
        assert_eq!(cluster.merge(&path, json!({"spec": {"replicas": -1}})).0, 422);
        let (_, mut scale) = cluster.get(&path);
        scale["spec"]["replicas"] = json!(5);
        let (status, scaled) = cluster.put(&path, scale);
        assert_eq!((status, &scaled["spec"]["replicas"]), (200, &json!(5)));
    }
}

#[test]
fn a_scale_tells_every_label_that_a_replication_controller_selects_by() {
    let mut cluster = Cluster::new();
    let mut object = replication_controller("web");
    let labels = json!({"tier": "front", "app": "web", "matchLabels": "x"});
    object["spec"]["template"]["metadata"]["labels"] = labels.clone();
    object["spec"]["selector"] = labels;
    cluster.make(CONTROLLERS, object);
    let (_, scale) = cluster.get(&format!("{CONTROLLERS}/web/scale"));
    assert_eq!(scale["status"]["selector"], "app=web,matchLabels=x,tier=front");
}

#[test]
fn a_pod_is_bound_once() {
    let mut cluster = Cluster::new();
    cluster.make(PODS, pod("a"));
    let binding = |node: &str| json!({"metadata": {"name": "a"}, "target": {"name": node}});
    let path = format!("{PODS}/a/binding");
    assert_eq!(cluster.post(&path, binding("node-1")).0, 201);
    assert_eq!(cluster.post(&path, binding("node-2")).0, 409);
    let (_, bound) = cluster.get(&format!("{PODS}/a"));
    assert_eq!(bound["spec"]["nodeName"], "node-1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
}

#[test]
fn a_quota_limits_amounts_and_numbers_of_other_kinds() {
    let mut cluster = Cluster::new();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let hard = json!({
        "requests.cpu": "1", "limits.memory": "1Gi", "count/configmaps": "1",
        "services": "0", "requests.storage": "5Gi", "count/deployments.apps": "1",
    });
    cluster.make(quotas, json!({"metadata": {"name": "lab"}, "spec": {"hard": hard}}));
    let with = |name: &str, resources: Value| {
        let mut pod = pod(name);
        pod["spec"]["containers"][0]["resources"] = resources;
        pod
    };
    let (status, error) = cluster.post(PODS, pod("silent"));
    assert_eq!(status, 403);
    assert_eq!(
        error["message"],
        "pods \"silent\" is forbidden: failed quota: lab: must specify limits.memory for: app; \
         requests.cpu for: app"
    );
    let fits = json!({"requests": {"cpu": "600m"}, "limits": {"memory": "512Mi"}});
    cluster.make(PODS, with("one", fits.clone()));
    let (status, error) = cluster.post(PODS, with("two", fits));
    assert_eq!(status, 403);
    assert_eq!(
        error["message"],
        "pods \"two\" is forbidden: exceeded quota: lab, requested: requests.cpu=600m, \
         used: requests.cpu=600m, limited: requests.cpu=1"
    );
    cluster.make(CONFIG_MAPS, config_map("one"));
    let (_, error) = cluster.post(CONFIG_MAPS, config_map("two"));
    assert_eq!(
        error["message"],
        "configmaps \"two\" is forbidden: exceeded quota: lab, requested: count/configmaps=1, \
         used: count/configmaps=1, limited: count/configmaps=1"
    );
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(cluster.post("/api/v1/namespaces/default/services", service).0, 403);
    cluster.make(DEPLOYMENTS, deployment("one"));
    assert_eq!(cluster.post(DEPLOYMENTS, deployment("two")).0, 403);
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |name: &str, size: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}},
        }})
    };
    cluster.make(claims, claim("a", "3Gi"));
    assert_eq!(cluster.post(claims, claim("b", "3Gi")).0, 403);
    cluster.settle();
    let (_, quota) = cluster.get(&format!("{quotas}/lab"));
    assert_eq!(
        quota["status"]["used"],
        json!({
            "requests.cpu": "600m", "limits.memory": "512Mi", "count/configmaps": "1",
            "services": "0", "requests.storage": "3Gi", "count/deployments.apps": "1",
        })
    );
}

#[test]
fn a_quota_limits_replication_controllers_by_both_names() {
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    for resource in ["replicationcontrollers", "count/replicationcontrollers"] {
        let mut cluster = Cluster::new();
        let quota = json!({"metadata": {"name": "lab"}, "spec": {"hard": {resource: "1"}}});
        cluster.make(quotas, quota);
        cluster.make(CONTROLLERS, replication_controller("one"));
        let (status, error) = cluster.post(CONTROLLERS, replication_controller("two"));
        assert_eq!(status, 403);
        assert_eq!(
            error["message"],
            format!(
                "replicationcontrollers \"two\" is forbidden: exceeded quota: lab, requested: \
                 {resource}=1, used: {resource}=1, limited: {resource}=1"
            )
        );
        cluster.settle();
        let (_, quota) = cluster.get(&format!("{quotas}/lab"));
        assert_eq!(quota["status"]["used"], json!({resource: "1"}));
    }
}

#[test]
fn a_quota_counts_pods_that_have_not_ended() {
    let mut cluster = Cluster::new();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = json!({"metadata": {"name": "lab-quota"}, "spec": {"hard": {"pods": "2"}}});
    cluster.make(quotas, quota);
    cluster.make(PODS, pod("a"));
    cluster.make(PODS, pod("b"));
    let (status, error) = cluster.post(PODS, pod("c"));
    assert_eq!(status, 403);
    let expected = "pods \"c\" is forbidden: exceeded quota: lab-quota, requested: pods=1, \
        used: pods=2, limited: pods=2";
    assert_eq!(error["message"], expected);
    cluster.settle();
    let (_, quota) = cluster.get(&format!("{quotas}/lab-quota"));
    assert_eq!(quota["status"], json!({"hard": {"pods": "2"}, "used": {"pods": "2"}}));
    cluster.merge(&format!("{PODS}/a/status"), json!({"status": {"phase": "Succeeded"}}));
    cluster.make(PODS, pod("c"));
}

#[test]
fn services_get_addresses_of_their_own() {
    let mut cluster = Cluster::new();
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str, kind: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"app": "web"}},
        })
    };
    let first = cluster.make(services, service("a", "ClusterIP"));
    let second = cluster.make(services, service("b", "NodePort"));
    assert_ne!(first["spec"]["clusterIP"], second["spec"]["clusterIP"]);
    assert!(first["spec"]["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10.")));
    let port = second["spec"]["ports"][0]["nodePort"].as_u64().unwrap_or(0);
    assert!((30_000..32_768).contains(&port), "{port}");
    let mut headless = service("c", "ClusterIP");
    headless["spec"]["clusterIP"] = json!("None");
    assert_eq!(cluster.make(services, headless)["spec"]["clusterIP"], "None");
    let patched =
        cluster.merge(&format!("{services}/a"), json!({"spec": {"sessionAffinity": "ClientIP"}}));
    assert_eq!((patched.0, &patched.1["spec"]["clusterIP"]), (200, &first["spec"]["clusterIP"]));
}

#[test]
fn events_of_both_groups_are_the_same_events() {
    let mut cluster = Cluster::new();
    let event = json!({
        "metadata": {"name": "e"}, "reason": "Test", "type": "Normal", "message": "hello",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    });
    cluster.make("/api/v1/namespaces/default/events", event);
    let other = "/apis/events.k8s.io/v1/namespaces/default/events";
    let (_, read) = cluster.get(&format!("{other}/e"));
    assert_eq!((&read["note"], &read["regarding"]["name"]), (&json!("hello"), &json!("p")));
    assert_eq!(read["apiVersion"], "events.k8s.io/v1");
    let mut request = Request::new(Method::GET, other);
    request.accept = "application/json;as=Table;v=v1;g=meta.k8s.io".to_owned();
    let (_, table) = cluster.send(&request);
    let cells = table["rows"][0]["cells"].as_array().expect("a row");
    assert!(cells.contains(&json!("hello")), "{table}");
}

#[test]
fn an_apply_creates_and_then_conflicts_with_others() {
    let mut cluster = Cluster::new();
    let path = format!("{CONFIG_MAPS}/c");
    let apply = |cluster: &mut Cluster, query: &str, value: &str| {
        let mut body = config_map("c");
        body["data"]["a"] = json!(value);
        let request = Request::new(Method::PATCH, &format!("{path}?{query}"));
        let request = request.with_body("application/apply-patch+yaml", body.to_string());
        cluster.send(&request)
    };
    assert_eq!(apply(&mut cluster, "force=false", "1").0, 422, "somebody has to own it");
    let (status, made) = apply(&mut cluster, "fieldManager=one", "1");
    assert_eq!((status, &made["metadata"]["managedFields"][0]["manager"]), (201, &json!("one")));
    let before = cluster.server.store().revision();
    assert_eq!(apply(&mut cluster, "fieldManager=one", "1").0, 200);
    assert_eq!(cluster.server.store().revision(), before, "nothing has changed");
    let (status, error) = apply(&mut cluster, "fieldManager=two", "2");
    assert_eq!(status, 409);
    assert_eq!(error["details"]["causes"][0]["reason"], "FieldManagerConflict");
    let (status, forced) = apply(&mut cluster, "fieldManager=two&force=true", "2");
    assert_eq!((status, &forced["data"]["a"]), (200, &json!("2")));
}

#[test]
fn events_live_for_an_hour_after_they_were_last_written() {
    let mut cluster = Cluster::new();
    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str| {
        json!({
            "metadata": {"name": name}, "reason": "Test", "type": "Normal", "message": "m",
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        })
    };
    cluster.make(events, event("once"));
    cluster.make(events, event("again"));
    cluster.advance(1800);
    assert_eq!(cluster.merge(&format!("{events}/again"), json!({"count": 2})).0, 200);
    cluster.advance(1801);
    cluster.settle();
    assert_eq!(cluster.names(events), ["again"]);
    cluster.advance(1801);
    cluster.settle();
    assert!(cluster.names(events).is_empty());
}
