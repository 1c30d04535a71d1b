//! Everything that only looks.

use anyhow::{Result, ensure};
use picokube_tests::kubectl::has_row;
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

use super::{DEPLOYMENTS, PODS, REPLICA_SETS, pod, replica_set, set_status};

#[test]
fn get_prints_every_output_form() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let status = json!({"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1,
        "availableReplicas": 1, "observedGeneration": 1});
    set_status(&server, &format!("{DEPLOYMENTS}/small"), status)?;
    let get = |arguments: &[&str]| kubectl.ok(&[&["get", "deployments"], arguments].concat());

    let table = get(&[])?;
    ensure!(has_row(&table, &["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]), "{table}");
    ensure!(has_row(&table, &["small", "1/2", "2", "1"]), "{table}");
    let wide = get(&["--output=wide"])?;
    ensure!(has_row(&wide, &["NAME", "CONTAINERS", "IMAGES", "SELECTOR"]), "{wide}");
    ensure!(has_row(&wide, &["small", "app", "app:1", "app=small"]), "{wide}");
    ensure!(!get(&["--no-headers"])?.contains("NAME"), "there should be no headers");
    ensure!(has_row(&get(&["--show-labels"])?, &["small", "app=small"]), "labels");
    ensure!(has_row(&get(&["--label-columns=app"])?, &["NAME", "APP"]), "label columns");
    ensure!(has_row(&get(&["--all-namespaces"])?, &["default", "small"]), "all namespaces");
    ensure!(get(&["--show-kind"])?.contains("deployment.apps/small"), "kinds");

    let list: Value = serde_json::from_str(&get(&["--output=json"])?)?;
    assert_eq!(list["items"][0]["apiVersion"], "apps/v1");
    assert_eq!(list["items"][0]["kind"], "Deployment");
    let yaml = get(&["small", "--output=yaml"])?;
    ensure!(yaml.contains("kind: Deployment") && yaml.contains("  replicas: 2"), "{yaml}");
    assert_eq!(get(&["--output=name"])?, "deployment.apps/small\n");
    assert_eq!(get(&["--output=jsonpath={.items[*].spec.replicas}"])?, "2");
    let columns = get(&["--output=custom-columns=N:.metadata.name,R:.spec.replicas"])?;
    ensure!(has_row(&columns, &["N", "R"]) && has_row(&columns, &["small", "2"]), "{columns}");
    let template = "--output=go-template={{range .items}}{{.metadata.name}}!{{end}}";
    assert_eq!(get(&[template])?, "small!");
    let as_json = get(&["--output=jsonpath-as-json={.items[0].metadata.labels}"])?;
    assert_eq!(serde_json::from_str::<Value>(&as_json)?, json!([{"app": "small"}]));
    if kubectl.minor() >= 24 {
        assert_eq!(get(&["small", "--subresource=status", "-ojsonpath={.status.replicas}"])?, "2");
    }
    for spelling in ["deploy", "deployment", "deployments.apps", "deployments.v1.apps"] {
        assert_eq!(kubectl.ok(&["get", spelling, "--output=name"])?, "deployment.apps/small\n");
    }
    Ok(())
}

#[test]
fn get_selects_sorts_and_pages() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    for (name, phase) in [("c", "Running"), ("a", "Pending"), ("b", "Running")] {
        server.create(PODS, &pod(name, None))?;
        set_status(&server, &format!("{PODS}/{name}"), json!({"phase": phase}))?;
    }
    kubectl.ok(&["label", "pod", "a", "tier=x"])?;
    kubectl.ok(&["label", "pod", "b", "tier=y"])?;
    let names = |arguments: &[&str]| {
        let text = kubectl.ok(&[&["get", "pods", "--output=name"], arguments].concat())?;
        anyhow::Ok(text.replace("pod/", "").replace('\n', " ").trim().to_owned())
    };
    assert_eq!(names(&["--selector=tier=x"])?, "a");
    assert_eq!(names(&["--selector=tier in (x,y)"])?, "a b");
    assert_eq!(names(&["--selector=tier!=x"])?, "b c");
    assert_eq!(names(&["--selector=!tier"])?, "c");
    assert_eq!(names(&["--field-selector=status.phase=Running"])?, "b c");
    assert_eq!(names(&["--field-selector=status.phase!=Running,metadata.name=a"])?, "a");
    assert_eq!(names(&["--chunk-size=1"])?, "a b c");
    assert_eq!(names(&["--sort-by=.metadata.labels.tier", "--selector=tier"])?, "a b");
    let complaint = kubectl.refused(&["get", "pods", "--selector=a==="], "")?;
    ensure!(complaint.contains("unable to parse"), "{complaint}");
    let complaint = kubectl.refused(&["get", "pods", "--field-selector=spec.nope=1"], "")?;
    ensure!(complaint.contains("field label not supported"), "{complaint}");

    let mixed = kubectl.ok(&["get", "pods,services,deployments", "--output=name"])?;
    assert_eq!(mixed, "pod/a\npod/b\npod/c\nservice/kubernetes\n");
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let all = kubectl.ok(&["get", "all", "--output=name"])?;
    ensure!(all.contains("pod/a\n") && all.contains("deployment.apps/small\n"), "{all}");
    let complaint = kubectl.refused(&["get", "pod", "none"], "")?;
    assert_eq!(complaint.trim(), "Error from server (NotFound): pods \"none\" not found");
    let complaint = kubectl.refused(&["get", "nosuchkind"], "")?;
    ensure!(complaint.contains("the server doesn't have a resource type"), "{complaint}");
    Ok(())
}

#[test]
fn describe_tells_the_story_of_an_object() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=shop"])?;
    let text = kubectl.ok(&["describe", "deployment", "web"])?;
    for words in [
        "RollingUpdateStrategy:  25% max unavailable, 1 max surge",
        "Replicas:               3 desired",
        "registry.example.com/shop/web:1.27.3",
        "http-get http://:http/ready",
        "<set to the key 'password' in secret 'web-secret'>",
    ] {
        ensure!(text.contains(words), "no {words:?} in\n{text}");
    }
    let deployment = server.get(&format!("{DEPLOYMENTS}/web"))?.json()?;
    server.create(REPLICA_SETS, &replica_set("web-1", Some(&deployment)))?;
    let told = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "web.1"},
        "involvedObject": {"kind": "Deployment", "namespace": "default", "name": "web",
            "uid": deployment["metadata"]["uid"], "apiVersion": "apps/v1"},
        "reason": "ScalingReplicaSet", "message": "Scaled up replica set web-1 to 3",
        "type": "Normal", "count": 1, "source": {"component": "deployment-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    server.create("/api/v1/namespaces/default/events", &told)?;
    let text = kubectl.ok(&["describe", "deployment", "web"])?;
    ensure!(text.contains("Scaled up replica set web-1 to 3"), "{text}");
    // Others do not get to see that event.
    let text = kubectl.ok(&["describe", "statefulset", "db"])?;
    ensure!(!text.contains("Scaled up replica set"), "{text}");
    ensure!(text.contains("StorageClass:  fast"), "{text}");
    for kind in ["pods", "services", "configmaps", "secrets", "jobs", "daemonsets", "quota", "pvc"]
    {
        let text = kubectl.ok(&["describe", kind])?;
        ensure!(text.contains("Name:"), "{kind}: {text}");
    }
    Ok(())
}

#[test]
fn events_can_be_listed_in_both_groups() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let event = |name: &str, about: &str, kind: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": about,
                "apiVersion": "v1"},
            "reason": "Tested", "message": format!("told about {about}"), "type": kind,
            "count": 2, "source": {"component": "tester"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        })
    };
    let events = "/api/v1/namespaces/default/events";
    server.create(events, &event("one", "a", "Normal"))?;
    server.create(events, &event("two", "b", "Warning"))?;
    let table = kubectl.ok(&["get", "events"])?;
    ensure!(has_row(&table, &["Normal", "Tested", "pod/a", "told", "about", "a"]), "{table}");
    let warnings = kubectl.ok(&["get", "events", "--field-selector=type=Warning", "-oname"])?;
    assert_eq!(warnings.trim(), "event/two");
    let group = kubectl.ok(&["get", "events.events.k8s.io", "one", "-ojsonpath={.note}"])?;
    assert_eq!(group, "told about a");
    if kubectl.minor() >= 26 {
        let text = kubectl.ok(&["events"])?;
        ensure!(text.contains("told about a") && text.contains("told about b"), "{text}");
        let text = kubectl.ok(&["events", "--types=Warning"])?;
        ensure!(!text.contains("told about a") && text.contains("told about b"), "{text}");
        server.create(PODS, &pod("a", None))?;
        let text = kubectl.ok(&["events", "--for=pod/a"])?;
        ensure!(text.contains("told about a") && !text.contains("told about b"), "{text}");
    }
    Ok(())
}

#[test]
fn discovery_names_every_resource() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let table = kubectl.ok(&["api-resources"])?;
    for row in [
        &["pods", "po", "v1", "true", "Pod"][..],
        &["namespaces", "ns", "v1", "false", "Namespace"],
        &["nodes", "no", "v1", "false", "Node"],
        &["events", "ev", "v1", "true", "Event"],
        &["configmaps", "cm", "v1", "true", "ConfigMap"],
        &["secrets", "v1", "true", "Secret"],
        &["services", "svc", "v1", "true", "Service"],
        &["serviceaccounts", "sa", "v1", "true", "ServiceAccount"],
        &["persistentvolumeclaims", "pvc", "v1", "true", "PersistentVolumeClaim"],
        &["replicationcontrollers", "rc", "v1", "true", "ReplicationController"],
        &["resourcequotas", "quota", "v1", "true", "ResourceQuota"],
        &["deployments", "deploy", "apps/v1", "true", "Deployment"],
        &["replicasets", "rs", "apps/v1", "true", "ReplicaSet"],
        &["statefulsets", "sts", "apps/v1", "true", "StatefulSet"],
        &["daemonsets", "ds", "apps/v1", "true", "DaemonSet"],
        &["controllerrevisions", "apps/v1", "true", "ControllerRevision"],
        &["jobs", "batch/v1", "true", "Job"],
        &["leases", "coordination.k8s.io/v1", "true", "Lease"],
        &["events", "ev", "events.k8s.io/v1", "true", "Event"],
    ] {
        // kubectl 1.20 had only the group where newer ones have the version.
        let row: Vec<_> = row.iter().filter(|cell| !cell.ends_with("v1")).copied().collect();
        ensure!(has_row(&table, &row), "no {row:?} in\n{table}");
    }
    let apps = kubectl.ok(&["api-resources", "--api-group=apps", "--output=name"])?;
    ensure!(apps.lines().any(|line| line == "deployments.apps"), "{apps}");
    let verbs =
        kubectl.ok(&["api-resources", "--verbs=deletecollection,watch", "--output=name"])?;
    ensure!(verbs.lines().any(|line| line == "pods"), "{verbs}");
    let versions = kubectl.ok(&["api-versions"])?;
    for version in ["v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1", "events.k8s.io/v1"] {
        ensure!(versions.lines().any(|line| line == version), "no {version} in\n{versions}");
    }
    Ok(())
}

#[test]
fn explain_knows_the_fields() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    for spec in ["deployment.spec", "rc.spec"] {
        let text = kubectl.ok(&["explain", spec])?;
        for field in ["replicas", "selector", "template", "minReadySeconds"] {
            ensure!(has_row(&text, &[field]), "no {field} in\n{text}");
        }
    }
    let text = kubectl.ok(&["explain", "pod.spec.containers.livenessProbe.httpGet"])?;
    ensure!(has_row(&text, &["port"]) && text.contains("-required-"), "{text}");
    let text = kubectl.ok(&["explain", "statefulset", "--recursive"])?;
    ensure!(has_row(&text, &["volumeClaimTemplates"]), "{text}");
    ensure!(has_row(&text, &["podManagementPolicy"]), "{text}");
    let complaint = kubectl.refused(&["explain", "deployment.spec.nope"], "")?;
    ensure!(complaint.contains("nope"), "{complaint}");
    for kind in ["configmap", "secret", "service", "job", "daemonset", "lease", "node", "event"] {
        let text = kubectl.ok(&["explain", kind])?;
        ensure!(has_row(&text, &["metadata"]), "{kind}: {text}");
    }
    Ok(())
}

#[test]
fn the_server_says_who_it_is() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let version = kubectl.json(&["version", "--output=json"])?;
    assert_eq!(version["serverVersion"]["major"], "1");
    let git = version["serverVersion"]["gitVersion"].as_str().unwrap_or_default();
    ensure!(git.starts_with("v1."), "{version}");
    let info = kubectl.ok(&["cluster-info"])?;
    ensure!(info.contains(&server.address().to_string()), "{info}");
    assert_eq!(kubectl.ok(&["get", "--raw=/healthz"])?, "ok");
    assert_eq!(kubectl.ok(&["get", "--raw=/readyz"])?, "ok");
    let metrics = kubectl.ok(&["get", "--raw=/metrics"])?;
    ensure!(metrics.contains("apiserver_request_total"), "{metrics}");
    let namespaces = kubectl.ok(&["get", "namespaces", "--output=name"])?;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let name = format!("namespace/{namespace}");
        ensure!(namespaces.lines().any(|line| line == name), "{namespaces}");
    }
    Ok(())
}
