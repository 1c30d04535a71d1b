//! Objects that kubectl makes up from its arguments.

use anyhow::{Result, ensure};
use picokube_tests::picokube::Picokube;

#[test]
fn create_deployment_sends_protobuf() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let said =
        kubectl.ok(&["create", "deployment", "made", "--image=nginx:1.27", "--replicas=4"])?;
    assert_eq!(said.trim(), "deployment.apps/made created");
    let made = kubectl.json(&["get", "deployment", "made", "--output=json"])?;
    assert_eq!(made["spec"]["replicas"], 4);
    assert_eq!(made["spec"]["selector"]["matchLabels"]["app"], "made");
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "nginx:1.27");
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(made["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    let complaint = kubectl.refused(&["create", "deployment", "made", "--image=nginx"], "")?;
    ensure!(complaint.contains("deployments.apps \"made\" already exists"), "{complaint}");
    Ok(())
}

#[test]
fn autoscale_makes_an_autoscaler() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "deployment", "made", "--image=nginx"])?;
    let autoscale = ["autoscale", "deployment/made", "--min=2", "--max=7", "--cpu-percent=80"];
    let said = kubectl.ok(&autoscale)?;
    assert_eq!(said.trim(), "horizontalpodautoscaler.autoscaling/made autoscaled");
    let name = "horizontalpodautoscaler/made";
    assert_eq!(kubectl.field(name, ".spec.scaleTargetRef.kind")?, "Deployment");
    assert_eq!(kubectl.field(name, ".spec.minReplicas")?, "2");
    assert_eq!(kubectl.field(name, ".spec.maxReplicas")?, "7");
    Ok(())
}

#[test]
fn can_i_asks_for_a_review() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    assert_eq!(kubectl.ok(&["auth", "can-i", "create", "deployments"])?.trim(), "yes");
    assert_eq!(kubectl.ok(&["auth", "can-i", "*", "*"])?.trim(), "yes");
    if kubectl.minor() >= 28 {
        let whoami = kubectl.json(&["auth", "whoami", "--output=json"])?;
        assert_eq!(whoami["kind"], "SelfSubjectReview");
        ensure!(!whoami["status"]["userInfo"]["username"].is_null(), "{whoami}");
    }
    Ok(())
}

#[test]
fn the_generators_make_what_they_say() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "namespace", "other"])?;
    kubectl.ok(&[
        "create",
        "configmap",
        "c",
        "--from-literal=key=value",
        "--from-file=small.yaml",
    ])?;
    assert_eq!(kubectl.field("configmap/c", ".data.key")?, "value");
    let file = std::fs::read_to_string("manifests/small.yaml")?;
    assert_eq!(kubectl.field("configmap/c", ".data.small\\.yaml")?, file);
    kubectl.ok(&["create", "secret", "generic", "s", "--from-literal=password=secret"])?;
    assert_eq!(kubectl.field("secret/s", ".data.password")?, "c2VjcmV0");
    assert_eq!(kubectl.field("secret/s", ".type")?, "Opaque");
    kubectl.ok(&["create", "serviceaccount", "robot"])?;
    kubectl.ok(&["create", "quota", "few", "--hard=pods=1"])?;
    kubectl.ok(&["create", "service", "clusterip", "svc", "--tcp=80:8080"])?;
    assert_eq!(kubectl.field("service/svc", ".spec.ports[0].targetPort")?, "8080");
    kubectl.ok(&["create", "job", "once", "--image=busybox", "--", "true"])?;
    assert_eq!(kubectl.field("job/once", ".spec.template.spec.containers[0].command[0]")?, "true");

    let said =
        kubectl.ok(&["run", "lone", "--image=nginx", "--env=A=b", "--labels=x=y", "--port=80"])?;
    assert_eq!(said.trim(), "pod/lone created");
    assert_eq!(kubectl.field("pod/lone", ".spec.containers[0].env[0].value")?, "b");
    assert_eq!(kubectl.field("pod/lone", ".spec.containers[0].imagePullPolicy")?, "Always");
    // The quota from above allows one pod.
    let complaint = kubectl.refused(&["run", "second", "--image=nginx"], "")?;
    ensure!(complaint.contains("exceeded quota: few"), "{complaint}");

    kubectl.ok(&["create", "deployment", "d", "--image=nginx"])?;
    kubectl.ok(&["expose", "deployment/d", "--port=80", "--target-port=8080"])?;
    assert_eq!(kubectl.field("service/d", ".spec.selector.app")?, "d");
    assert_eq!(kubectl.field("service/d", ".spec.ports[0].targetPort")?, "8080");
    Ok(())
}

#[test]
fn a_namespace_that_is_missing_is_named() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let complaint = kubectl.refused(&["--namespace=nowhere", "create", "configmap", "c"], "")?;
    ensure!(complaint.contains("namespaces \"nowhere\" not found"), "{complaint}");
    Ok(())
}
