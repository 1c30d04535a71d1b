//! `picokube run`: the controllers alone, against a cluster that another process runs.

mod choices;
mod complaints;
mod election;
mod secured;
mod stalling;
mod survival;
mod versions;

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;
use picokube_tests::following::Following;
use picokube_tests::lab::{self, Lab, number};
use picokube_tests::picokube::{Picokube, binary};
use serde_json::Value;

/// `picokube run` with these arguments.
fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.arg("run").args(arguments);
    // This may itself be a pod somewhere.
    command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBERNETES_SERVICE_PORT");
    Ok(command)
}

/// Controllers for a cluster, with further arguments, once they run.
fn controllers(cluster: &Picokube, arguments: &[&str]) -> Result<Following> {
    let base = cluster.base();
    let controllers = Following::start(run([&["--server", &base], arguments].concat())?)?;
    controllers.line_with(&["controllers run against"])?;
    Ok(controllers)
}

/// A Deployment of two replicas.
fn deployment(name: &str) -> Value {
    lab::deployment(name, 2)
}

fn wait_until_available(lab: &Lab<'_>, name: &str) -> Result<()> {
    lab.wait_for(&format!("deployments/{name}"), "two are available", |deployment| {
        number(&deployment["status"]["availableReplicas"]) == 2
    })?;
    Ok(())
}
