//! `picokube-figures ELF`: what that firmware costs at work, one `name=value` a line.
//!
//! For `cargo xtask sizes`, which gives each profile's image in turn. A Deployment of 10 pods is
//! created and rolled, then 9 more are created, and a StatefulSet is created, updated and scaled down;
//! with all of them there, the device boots twice more in an emulator that counts instructions, without TLS
//! and with.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use picokube_qemu::Image;
use picokube_tests::firmware::{Device, Setup};
use picokube_tests::lab::{Lab, is_observed, number};
use picokube_tests::picokube::Picokube;
use picokube_tests::secure_front::Front;
use picokube_tests::stateful_set;
use serde_json::{Value, json};

const DEPLOYMENTS: usize = 10;
const REPLICAS: i64 = 10;
/// With that clock, an instruction takes a nanosecond.
const INSTRUCTIONS_PER_MICROSECOND: u64 = 1000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let image = std::env::args().nth(1).context("which firmware?")?;
    let image = Arc::new(Image::open(Path::new(&image))?);
    let cluster = Picokube::with_nodes(4)?;
    let front = Front::of(cluster.address(), true)?;
    // Over TLS, which needs most of the stack.
    let device = Setup::with(Arc::clone(&image), &front.document())?.boot()?;
    device.wait_for_line("the controllers have started")?;
    let lab = Lab::new(&cluster, "figures")?;

    let before = requests(&device)?;
    lab.create("deployments", &deployment(0))?;
    wait_for_rollout(&lab, 0)?;
    wait_for_quiet(&lab, &device)?;
    let created = requests(&device)?;
    let containers = json!([{"name": "app", "image": "app:2"}]);
    let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    lab.patch("deployments/deployment-0", &change)?;
    wait_for_rollout(&lab, 0)?;
    wait_for_quiet(&lab, &device)?;
    let rolled = requests(&device)?;
    for number in 1..DEPLOYMENTS {
        lab.create("deployments", &deployment(number))?;
    }
    for number in 1..DEPLOYMENTS {
        wait_for_rollout(&lab, number)?;
    }
    use_stateful_set(&lab)?;
    println!("stack={}", device.metric("picokube_stack_high_water_bytes")?);
    println!("requests_create={}", created - before);
    println!("requests_roll={}", rolled - created);
    device.switch_off();

    let plain = Setup::serving(Arc::clone(&image), cluster.address())?;
    println!("boot_instructions={}", boot_instructions(plain)?);
    let secure = Setup::with(image, &front.document())?;
    println!("boot_instructions_tls={}", boot_instructions(secure)?);
    Ok(())
}

/// What a boot costs until the controllers begin.
fn boot_instructions(setup: Setup) -> Result<u64> {
    let device = setup.with_leaps().boot()?;
    let line = device.wait_for_line("the processor has worked for")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let worked: u64 = words.iter().rev().nth(1).context("no time in the line")?.parse()?;
    Ok(worked * INSTRUCTIONS_PER_MICROSECOND)
}

/// Lets a StatefulSet go through everything that its controller does.
fn use_stateful_set(lab: &Lab<'_>) -> Result<()> {
    let set = "statefulsets/db";
    let wait = |replicas: i64| {
        lab.wait_for(set, "rolled out", |set| {
            let status = &set["status"];
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            is_observed(set)
                && status["currentRevision"] == status["updateRevision"]
                && counts.iter().all(|count| number(&status[count]) == replicas)
        })
    };
    let mut manifest = stateful_set::manifest("app:1");
    manifest["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    lab.create("statefulsets", &manifest)?;
    wait(2)?;
    let template = stateful_set::template("app:2");
    lab.patch(set, &json!({"spec": {"template": template}}))?;
    wait(2)?;
    lab.patch(set, &json!({"spec": {"replicas": 1}}))?;
    wait(1)?;
    Ok(())
}

/// Waits until a Deployment is rolled out.
fn wait_for_rollout(lab: &Lab<'_>, number_of: usize) -> Result<()> {
    lab.wait_for(&format!("deployments/deployment-{number_of}"), "rolled out", |deployment| {
        let status = &deployment["status"];
        let counts = ["replicas", "updatedReplicas", "availableReplicas"];
        is_observed(deployment) && counts.iter().all(|count| number(&status[count]) == REPLICAS)
    })?;
    Ok(())
}

/// Waits until the device has nothing more to say.
fn wait_for_quiet(lab: &Lab<'_>, device: &Device) -> Result<()> {
    let mut last = (0, 0);
    lab.wait("the device is quiet", || {
        let now = requests(device)?;
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        // Looked at every 20 ms at most: no event waits for so long.
        Ok(last.1 == 50)
    })
}

fn requests(device: &Device) -> Result<u64> {
    let of = |verb| device.metric(&format!("picokube_requests_total{{verb=\"{verb}\"}}"));
    Ok(of("GET")? + of("POST")? + of("PATCH")? + of("DELETE")?)
}

fn deployment(number: usize) -> Value {
    let name = format!("deployment-{number}");
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "app", "image": "app:1"}],
                },
            },
        },
    })
}
