//! Commands that change what is there.

use anyhow::{Result, ensure};
use picokube_tests::picokube::Picokube;

const SMALL: &str = "deployment/small";

#[test]
fn scale_goes_through_the_subresource() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    assert_eq!(
        kubectl.ok(&["scale", SMALL, "--replicas=7"])?.trim(),
        "deployment.apps/small scaled"
    );
    assert_eq!(kubectl.field(SMALL, ".spec.replicas")?, "7");
    assert_eq!(kubectl.field(SMALL, ".metadata.generation")?, "2");
    let complaint =
        kubectl.refused(&["scale", SMALL, "--current-replicas=2", "--replicas=3"], "")?;
    ensure!(complaint.contains("7"), "{complaint}");
    kubectl.ok(&["scale", SMALL, "--current-replicas=7", "--replicas=0"])?;
    assert_eq!(kubectl.field(SMALL, ".spec.replicas")?, "0");
    let complaint = kubectl.refused(&["scale", "deployment/none", "--replicas=3"], "")?;
    ensure!(complaint.contains("deployments.apps \"none\" not found"), "{complaint}");
    if kubectl.minor() >= 24 {
        let scale = kubectl.json(&["get", SMALL, "--subresource=scale", "--output=json"])?;
        assert_eq!(scale["kind"], "Scale");
        assert_eq!(scale["status"]["selector"], "app=small");
    }
    Ok(())
}

#[test]
fn set_changes_the_template() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let said = kubectl.ok(&["set", "image", SMALL, "app=app:9"])?;
    assert_eq!(said.trim(), "deployment.apps/small image updated");
    assert_eq!(kubectl.field(SMALL, ".spec.template.spec.containers[*].image")?, "app:9");
    kubectl.ok(&["set", "env", SMALL, "A=1", "B=2"])?;
    kubectl.ok(&["set", "env", SMALL, "A-", "C=3"])?;
    let names = kubectl.field(SMALL, ".spec.template.spec.containers[0].env[*].name")?;
    assert_eq!(names, "B C");
    kubectl.ok(&["set", "resources", SMALL, "--limits=cpu=200m,memory=64Mi"])?;
    let limits = kubectl.field(SMALL, ".spec.template.spec.containers[0].resources.limits.cpu")?;
    assert_eq!(limits, "200m");
    kubectl.ok(&["set", "serviceaccount", SMALL, "robot"])?;
    assert_eq!(kubectl.field(SMALL, ".spec.template.spec.serviceAccountName")?, "robot");
    assert_eq!(kubectl.field(SMALL, ".metadata.generation")?, "6");
    let complaint = kubectl.refused(&["set", "image", SMALL, "nope=app:9"], "")?;
    ensure!(complaint.contains("unable to find container named \"nope\""), "{complaint}");
    Ok(())
}

#[test]
fn labels_and_annotations_come_and_go() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    kubectl.ok(&["label", SMALL, "tier=backend"])?;
    let complaint = kubectl.refused(&["label", SMALL, "tier=frontend"], "")?;
    ensure!(complaint.contains("'tier' already has a value (backend)"), "{complaint}");
    kubectl.ok(&["label", SMALL, "tier=frontend", "--overwrite"])?;
    assert_eq!(
        kubectl.ok(&["get", "deployments", "-ltier=frontend", "-oname"])?.trim(),
        "deployment.apps/small"
    );
    kubectl.ok(&["label", SMALL, "tier-"])?;
    assert_eq!(kubectl.field(SMALL, ".metadata.labels.tier")?, "");
    assert_eq!(kubectl.field(SMALL, ".metadata.generation")?, "1", "labels are not the spec");

    kubectl.ok(&["annotate", SMALL, "example.com/text=some words, \"quoted\""])?;
    let text = kubectl.field(SMALL, ".metadata.annotations.example\\.com/text")?;
    assert_eq!(text, "some words, \"quoted\"");
    kubectl.ok(&["annotate", SMALL, "example.com/text-"])?;
    assert_eq!(kubectl.field(SMALL, ".metadata.annotations.example\\.com/text")?, "");
    let complaint = kubectl.refused(&["label", SMALL, "bad=not valid!"], "")?;
    ensure!(complaint.contains("not valid!"), "{complaint}");
    Ok(())
}

#[test]
fn patches_of_all_types_do_what_their_type_says() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let patch = |kind: &str, patch: &str| {
        kubectl.run(&["patch", SMALL, &format!("--type={kind}"), "--patch", patch], "")
    };
    let images = || kubectl.field(SMALL, ".spec.template.spec.containers[*].image");
    let sidecar =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}"#;
    // A strategic patch merges containers by name, a merge patch replaces the list.
    ensure!(patch("strategic", sidecar)?.success, "strategic");
    let mut merged: Vec<_> = images()?.split(' ').map(str::to_owned).collect();
    merged.sort();
    assert_eq!(merged, ["app:1", "side:1"]);
    ensure!(patch("merge", sidecar)?.success, "merge");
    assert_eq!(images()?, "side:1");
    let json = r#"[{"op":"test","path":"/spec/replicas","value":2},
        {"op":"replace","path":"/spec/template/spec/containers/0/image","value":"side:2"}]"#;
    ensure!(patch("json", json)?.success, "json");
    assert_eq!(images()?, "side:2");

    let failed = patch("json", r#"[{"op":"test","path":"/spec/replicas","value":9}]"#)?;
    ensure!(!failed.success, "{}", failed.stdout);
    let delete =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}"#;
    let failed = patch("strategic", delete)?;
    ensure!(failed.stderr.contains("spec.template.spec.containers: Required value"), "{failed:?}");
    let unchanged = patch("merge", r#"{"spec":{"replicas":2}}"#)?;
    assert_eq!(unchanged.stdout.trim(), "deployment.apps/small patched (no change)");
    Ok(())
}

#[test]
fn edit_sends_what_the_editor_left() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let edited = kubectl.edit(&["edit", SMALL], "sed -i s/app:1/app:edited/")?;
    assert_eq!(edited.trim(), "deployment.apps/small edited");
    assert_eq!(kubectl.field(SMALL, ".spec.template.spec.containers[0].image")?, "app:edited");
    let untouched = kubectl.edit(&["edit", SMALL], "true")?;
    ensure!(!untouched.contains("edited"), "{untouched}");
    Ok(())
}

#[test]
fn rollout_commands_write_what_the_controller_reads() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    kubectl.ok(&["rollout", "pause", SMALL])?;
    assert_eq!(kubectl.field(SMALL, ".spec.paused")?, "true");
    kubectl.refused(&["rollout", "restart", SMALL], "")?;
    kubectl.ok(&["rollout", "resume", SMALL])?;
    ensure!(kubectl.field(SMALL, ".spec.paused")? != "true", "it is still paused");
    kubectl.ok(&["rollout", "restart", SMALL])?;
    let template = kubectl.field(SMALL, ".spec.template.metadata.annotations")?;
    ensure!(template.contains("kubectl.kubernetes.io/restartedAt"), "{template}");
    Ok(())
}
