//! What people do with kubectl, with a microcontroller as the cluster's only controller: over TLS, by token.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context, Result};
use picokube_tests::firmware::{Device, Shows};
use picokube_tests::picokube::Picokube;
use picokube_tests::workflow::{self, Workflow};
use picokube_tests::workflows;

/// A cluster and its controller, shared by all workflows: a device serves many people at once.
struct Edge {
    cluster: Picokube,
    device: Device,
}

fn edge() -> Result<Arc<Edge>> {
    static RUNNING: Mutex<Weak<Edge>> = Mutex::new(Weak::new());
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(edge) = running.upgrade() {
        return Ok(edge);
    }
    let cluster = Picokube::secure(&["up", "--no-controllers", "--nodes", "3"])?;
    let device = Device::boot_secure(&cluster, Shows::Token)?;
    let edge = Arc::new(Edge { cluster, device });
    *running = Arc::downgrade(&edge);
    Ok(edge)
}

fn run(workflow: Workflow) -> Result<()> {
    let edge = edge()?;
    workflow(&edge.cluster).with_context(|| format!("the device's log:\n{}", edge.device.log()))
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() -> Result<()> {
                run(workflow::$name)
            }
        )*
    };
}
workflows!(tests);
