//! Manifests as users write them.

use anyhow::{Context, Result, ensure};
use picokube_tests::picokube::Picokube;

/// Everything in `manifests/shop`, as kubectl names it.
const OBJECTS: [&str; 12] = [
    "configmap/web-config",
    "daemonset.apps/agent",
    "deployment.apps/web",
    "job.batch/import",
    "persistentvolumeclaim/scratch",
    "pod/toolbox",
    "resourcequota/pods",
    "secret/db-credentials",
    "service/db",
    "service/web",
    "serviceaccount/robot",
    "statefulset.apps/db",
];

/// What kubectl said about each object, in the order of the names.
fn outcomes(said: &str) -> Vec<(String, String)> {
    let lines = said.lines().filter_map(|line| line.split_once(' '));
    let mut outcomes: Vec<_> = lines.map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
    outcomes.sort();
    outcomes
}

fn all(word: &str) -> Vec<(String, String)> {
    OBJECTS.iter().map(|object| ((*object).to_owned(), word.to_owned())).collect()
}

#[test]
fn ordinary_manifests_are_created_kept_and_removed() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let apply = ["apply", "--filename=shop"];
    assert_eq!(outcomes(&kubectl.ok(&apply)?), all("created"));
    // What comes back after defaulting must still be what was asked for. kubectl compares claim
    // templates as a whole and always finds the defaults in them; the server then finds no change.
    let mut unchanged = all("unchanged");
    unchanged.retain(|(object, _)| object != "statefulset.apps/db");
    let again = outcomes(&kubectl.ok(&apply)?);
    let (set, others): (Vec<_>, Vec<_>) =
        again.into_iter().partition(|(object, _)| object == "statefulset.apps/db");
    assert_eq!(set.len(), 1);
    assert_eq!(others, unchanged);
    assert_eq!(kubectl.field("statefulset/db", ".metadata.generation")?, "1");
    let diff = kubectl.run(&["diff", "--filename=shop"], "")?;
    ensure!(diff.success && diff.stdout.is_empty(), "{}{}", diff.stdout, diff.stderr);

    assert_eq!(
        kubectl.field("deployment/web", ".spec.template.spec.containers[*].image")?,
        "registry.example.com/shop/web:1.27.3 registry.example.com/exporter"
    );
    assert_eq!(
        kubectl.field("statefulset/db", ".spec.volumeClaimTemplates[0].spec.storageClassName")?,
        "fast"
    );
    assert_eq!(kubectl.field("secret/db-credentials", ".data.password")?, "c2VjcmV0");
    // Limits are also requests where none are given.
    assert_eq!(kubectl.field("pod/toolbox", ".spec.containers[0].resources.requests.cpu")?, "1");

    let deleted = outcomes(&kubectl.ok(&["delete", "--filename=shop"])?);
    assert_eq!(deleted.len(), OBJECTS.len(), "{deleted:?}");
    for object in OBJECTS {
        ensure!(!kubectl.has(object)?, "{object} is still there");
    }
    Ok(())
}

#[test]
fn ordinary_manifests_can_be_applied_by_the_server() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let apply = ["apply", "--server-side", "--filename=shop"];
    assert_eq!(outcomes(&kubectl.ok(&apply)?), all("serverside-applied"));
    let versions = || {
        let mut versions = Vec::new();
        for object in OBJECTS {
            versions.push(kubectl.field(object, ".metadata.resourceVersion")?);
        }
        anyhow::Ok(versions)
    };
    let before = versions()?;
    assert_eq!(outcomes(&kubectl.ok(&apply)?), all("serverside-applied"));
    assert_eq!(versions()?, before, "an apply of the same changes nothing");
    Ok(())
}

#[test]
fn what_kubectl_reads_it_can_write_back() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=shop"])?;
    for object in OBJECTS {
        let yaml = kubectl.ok(&["get", object, "--output=yaml"])?;
        let version = kubectl.field(object, ".metadata.resourceVersion")?;
        let said = kubectl
            .ok_with(&["replace", "--filename=-"], &yaml)
            .with_context(|| format!("{object} cannot be written back:\n{yaml}"))?;
        assert_eq!(said.trim(), format!("{object} replaced"));
        let after = kubectl.field(object, ".metadata.resourceVersion")?;
        assert_eq!(after, version, "{object} changed by being written back:\n{yaml}");
    }
    Ok(())
}
