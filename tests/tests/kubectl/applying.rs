//! `kubectl apply` on either side, `diff`, `replace` and dry runs.

use anyhow::{Result, ensure};
use picokube_tests::picokube::Picokube;

const REPLICAS: &str = ".spec.replicas";
const IMAGE: &str = ".spec.template.spec.containers[0].image";

#[test]
fn apply_creates_then_patches_then_leaves_alone() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let apply = |file: &str| kubectl.ok(&["apply", &format!("--filename={file}")]);
    assert_eq!(apply("small.yaml")?.trim(), "deployment.apps/small created");
    assert_eq!(apply("small.yaml")?.trim(), "deployment.apps/small unchanged");
    assert_eq!(kubectl.field("deployment/small", ".metadata.generation")?, "1");
    assert_eq!(apply("small-changed.yaml")?.trim(), "deployment.apps/small configured");
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "5");
    assert_eq!(kubectl.field("deployment/small", IMAGE)?, "app:2");
    assert_eq!(kubectl.field("deployment/small", ".metadata.generation")?, "2");
    // What others have set and the manifest never named stays.
    kubectl.ok(&["annotate", "deployment/small", "example.com/note=kept"])?;
    apply("small.yaml")?;
    assert_eq!(
        kubectl.field("deployment/small", ".metadata.annotations.example\\.com/note")?,
        "kept"
    );
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "2");
    Ok(())
}

#[test]
fn a_field_left_out_of_the_next_manifest_goes_away() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let with = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: \"1\", b: \"2\"}\n";
    let without = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: \"1\"}\n";
    for side in ["--server-side=false", "--server-side=true"] {
        kubectl.ok_with(&["apply", side, "--filename=-"], with)?;
        assert_eq!(kubectl.field("configmap/c", ".data.b")?, "2", "{side}");
        kubectl.ok_with(&["apply", side, "--filename=-"], without)?;
        assert_eq!(
            kubectl.json(&["get", "cm", "c", "-o", "json"])?["data"].to_string(),
            r#"{"a":"1"}"#
        );
        kubectl.ok(&["delete", "configmap/c"])?;
    }
    Ok(())
}

#[test]
fn server_side_apply_guards_what_others_own() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let said = kubectl.ok(&["apply", "--server-side", "--filename=small.yaml"])?;
    assert_eq!(said.trim(), "deployment.apps/small serverside-applied");
    let managers = kubectl.field("deployment/small", ".metadata.managedFields[*].manager")?;
    assert_eq!(managers, "kubectl");
    let other =
        ["apply", "--server-side", "--field-manager=other", "--filename=small-changed.yaml"];
    let complaint = kubectl.refused(&other, "")?;
    ensure!(complaint.contains("conflicts with \"kubectl\""), "{complaint}");
    ensure!(complaint.contains(REPLICAS), "{complaint}");
    ensure!(complaint.contains("containers[name=\"app\"].image"), "{complaint}");
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "2");

    kubectl.ok(&[&other[..], &["--force-conflicts"]].concat())?;
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "5");
    // Now the first manager is the one that has lost the field.
    let complaint = kubectl.refused(&["apply", "--server-side", "--filename=small.yaml"], "")?;
    ensure!(complaint.contains("conflicts with \"other\""), "{complaint}");
    Ok(())
}

#[test]
fn apply_can_move_from_the_client_to_the_server() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["apply", "--filename=small.yaml"])?;
    kubectl.ok(&[
        "apply",
        "--server-side",
        "--force-conflicts",
        "--filename=small-changed.yaml",
    ])?;
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "5");
    kubectl.ok(&["apply", "--server-side", "--force-conflicts", "--filename=small.yaml"])?;
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "2");
    assert_eq!(kubectl.field("deployment/small", IMAGE)?, "app:1");
    Ok(())
}

#[test]
fn a_typo_is_refused_by_the_name_of_the_field() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    for command in ["apply", "create"] {
        let complaint = kubectl.refused(&[command, "--filename=typo.yaml"], "")?;
        ensure!(complaint.contains("replicaz"), "{command}: {complaint}");
        ensure!(complaint.contains("imagePullPolice"), "{command}: {complaint}");
    }
    ensure!(!kubectl.has("deployment/typo")?, "the manifest with the typo was stored");
    // Older kubectls check on their own side and name only the field.
    if kubectl.minor() >= 27 {
        let complaint = kubectl.refused(&["apply", "--filename=typo.yaml"], "")?;
        ensure!(complaint.contains("strict decoding error"), "{complaint}");
        ensure!(complaint.contains("unknown field \"spec.replicaz\""), "{complaint}");
        let place = "unknown field \"spec.template.spec.containers[0].imagePullPolice\"";
        ensure!(complaint.contains(place), "{complaint}");
        let warned = kubectl.run(&["apply", "--validate=warn", "--filename=typo.yaml"], "")?;
        ensure!(warned.success, "{}", warned.stderr);
        ensure!(warned.stderr.contains("Warning: unknown field \"spec.replicaz\""), "{warned:?}");
    } else {
        kubectl.ok(&["apply", "--validate=false", "--filename=typo.yaml"])?;
    }
    // Without the misspelt field, its default holds.
    assert_eq!(kubectl.field("deployment/typo", REPLICAS)?, "1");
    Ok(())
}

#[test]
fn what_breaks_a_rule_is_refused_with_the_field_and_the_rule() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let manifest = std::fs::read_to_string("manifests/small.yaml")?;
    let wrong = manifest.replace("labels: {app: small}\n    spec", "labels: {app: big}\n    spec");
    let complaint = kubectl.refused(&["apply", "--filename=-"], &wrong)?;
    ensure!(complaint.contains("The Deployment \"small\" is invalid"), "{complaint}");
    ensure!(complaint.contains("spec.template.metadata.labels"), "{complaint}");
    ensure!(complaint.contains("`selector` does not match template `labels`"), "{complaint}");

    kubectl.ok_with(&["apply", "--filename=-"], &manifest)?;
    let moved = manifest.replace("app: small", "app: big");
    let complaint = kubectl.refused(&["apply", "--filename=-"], &moved)?;
    ensure!(complaint.contains("spec.selector"), "{complaint}");
    ensure!(complaint.contains("field is immutable"), "{complaint}");
    Ok(())
}

#[test]
fn diff_shows_what_would_change_and_changes_nothing() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["apply", "--filename=small.yaml"])?;
    let version = kubectl.field("deployment/small", ".metadata.resourceVersion")?;
    for side in ["--server-side=false", "--server-side=true"] {
        let mut diff = vec!["diff", side, "--filename=small-changed.yaml"];
        if side.ends_with("true") {
            diff.push("--force-conflicts");
        }
        let outcome = kubectl.run(&diff, "")?;
        ensure!(!outcome.success, "a difference has to end with 1");
        let lines: Vec<_> = outcome.stdout.lines().map(str::trim_end).collect();
        for line in ["-  replicas: 2", "+  replicas: 5", "-      - image: app:1"] {
            ensure!(lines.contains(&line), "no {line:?} in\n{}{}", outcome.stdout, outcome.stderr);
        }
    }
    for dry in ["--dry-run=server", "--dry-run=client"] {
        let said = kubectl.ok(&["apply", dry, "--filename=small-changed.yaml"])?;
        ensure!(said.contains("configured") && said.contains("dry run"), "{said}");
    }
    assert_eq!(kubectl.field("deployment/small", ".metadata.resourceVersion")?, version);
    let said = kubectl.ok(&["create", "cm", "none", "--dry-run=server"])?;
    assert_eq!(said.trim(), "configmap/none created (server dry run)");
    ensure!(!kubectl.has("configmap/none")?, "a dry run was stored");
    Ok(())
}

#[test]
fn replace_swaps_the_whole_object() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let complaint = kubectl.refused(&["replace", "--filename=small.yaml"], "")?;
    ensure!(complaint.contains("(NotFound)"), "{complaint}");
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let complaint = kubectl.refused(&["create", "--filename=small.yaml"], "")?;
    ensure!(complaint.contains("(AlreadyExists)"), "{complaint}");
    ensure!(complaint.contains("deployments.apps \"small\" already exists"), "{complaint}");
    let uid = kubectl.field("deployment/small", ".metadata.uid")?;
    kubectl.ok(&["replace", "--filename=small-changed.yaml"])?;
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "5");
    assert_eq!(kubectl.field("deployment/small", ".metadata.uid")?, uid);
    kubectl.ok(&["replace", "--force", "--filename=small.yaml"])?;
    assert_eq!(kubectl.field("deployment/small", REPLICAS)?, "2");
    ensure!(kubectl.field("deployment/small", ".metadata.uid")? != uid, "it is the old one");
    Ok(())
}
