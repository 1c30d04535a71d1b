//! Two controllers at once, as while one version takes the place of another: both act, and put right what the
//! other one does not know yet.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use picokube_tests::following::Following;
use picokube_tests::lab::{Lab, text};
use picokube_tests::picokube::{Picokube, binary};
use picokube_tests::rollouts::{Rollouts, WORKLOADS};

/// Names a `picokube` of another version. Without, both are of this one.
const OTHER: &str = "PICOKUBE_OTHER";

/// Each is killed three times in the midst of a rollout.
const UPDATES: u32 = 6;

/// For how long nothing may be written once all is done.
const SILENCE: Duration = Duration::from_secs(2);

#[test]
fn two_versions_side_by_side_come_to_the_same_end_and_fall_silent() -> Result<()> {
    let cluster = Picokube::with_nodes(2)?;
    let this = binary()?.to_path_buf();
    let other = std::env::var_os(OTHER).map_or_else(|| this.clone(), PathBuf::from);
    println!("beside each other: {} and {}", this.display(), other.display());
    let programs = [this, other];
    let mut controllers = Vec::new();
    for program in &programs {
        controllers.push(Some(without_election(program, &cluster)?));
    }
    let lab = Lab::new(&cluster, "versions")?;
    let mut rollouts = Rollouts::start(&lab)?;
    for version in 1..=UPDATES {
        let resized = (version % WORKLOADS) as usize;
        rollouts.update(version, Some((resized, 1 + i64::from(version % 4))))?;
        lab.wait("some pod has the new image", || {
            let image = format!("app:{version}");
            let pods = lab.list("pods")?;
            Ok(pods.iter().any(|pod| pod["spec"]["containers"][0]["image"] == *image))
        })?;
        let turn = version as usize % programs.len();
        // SIGKILL.
        controllers[turn] = None;
        controllers[turn] = Some(without_election(&programs[turn], &cluster)?);
        rollouts.wait()?;
    }
    let (mut version, mut since) = (String::new(), Instant::now());
    lab.wait("nothing is written any more", || {
        let list = cluster.get("/api/v1/pods?limit=1")?.json()?;
        let now = text(&list["metadata"]["resourceVersion"]);
        if now != version {
            (version, since) = (now.to_owned(), Instant::now());
        }
        Ok(since.elapsed() > SILENCE)
    })
}

/// Controllers that act whoever leads, once they run. The first versions had no election.
fn without_election(program: &Path, cluster: &Picokube) -> Result<Following> {
    let help = Command::new(program).args(["run", "--help"]).output()?.stdout;
    let mut command = Command::new(program);
    command.args(["run", "--server", &cluster.base()]);
    if String::from_utf8_lossy(&help).contains("--leader-elect") {
        command.arg("--leader-elect=false");
    }
    let controllers = Following::start(command)?;
    controllers.line_with(&["controllers run against"])?;
    Ok(controllers)
}
