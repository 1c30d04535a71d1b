//! The example of docs/embedding.md does what it promises.

use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Result, ensure};
use picokube_tests::cargo::program;
use picokube_tests::picokube::Picokube;

/// The example as a process. It ends when it is dropped.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        // It never ends by itself; should it have, the test notices.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_loop_of_ones_own_rolls_out_and_back() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (file, lines) in [("main.rs", 150), ("http.rs", 60)] {
        let source = std::fs::read_to_string(root.join("core/examples/embed").join(file))?;
        ensure!(source.lines().count() < lines, "{file} is short enough to be read");
    }
    let example = program("picokube-core", &["--example", "embed"], "embed")?;
    let cluster = Picokube::with_nodes(2)?;
    let address = cluster.address().to_string();
    let _example = Example(Command::new(example).arg(address).spawn()?);

    let kubectl = cluster.kubectl()?;
    kubectl.ok(&["create", "deployment", "web", "--image=app:1", "--replicas=3"])?;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=10m"])?;
    kubectl.ok(&["set", "image", "deployment/web", "app=app:2"])?;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=10m"])?;
    kubectl.ok(&["rollout", "undo", "deployment/web"])?;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=10m"])?;
    ensure!(kubectl.field("deployment/web", ".spec.template.spec.containers[0].image")? == "app:1");
    Ok(())
}
