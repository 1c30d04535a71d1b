//! A PC and a device, each the controller of a namespace of one cluster, over TLS, while their Deployments
//! come, change and go without end: neither loses a stream, a connection or memory over it.
//!
//! `PICOKUBE_CHURN` says for how many seconds (3600 is the full course, see CONTRIBUTING.md).

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use picokube_config::Document;
use picokube_tests::firmware::{self, Device, Setup, Shows};
use picokube_tests::following::Following;
use picokube_tests::http::Client;
use picokube_tests::lab::{Lab, deployment, is_observed, number};
use picokube_tests::picokube::{Picokube, binary};
use serde_json::{Value, json};

/// Without `PICOKUBE_CHURN`.
const SECONDS: u64 = 20;
/// Deployments of a round, in each namespace.
const DEPLOYMENTS: usize = 4;
const REPLICAS: usize = 4;
/// Rounds before memory is looked at for the first time: until then it is being filled.
const WARM: usize = 3;
/// How much more memory a process may have at the end than when it was warm: caches of allocators breathe.
const BREATH: u64 = 2 << 20;

#[test]
fn nothing_leaks_and_nothing_gets_stuck() -> Result<()> {
    let seconds = env::var("PICOKUBE_CHURN").map_or(Ok(SECONDS), |seconds| seconds.parse())?;
    let cluster = Picokube::secure(&["up", "--no-controllers", "--nodes", "2"])?;
    let document = Document {
        identity: "device-under-test",
        qps: Some(0),
        namespace: Some("device"),
        ..Document::default()
    };
    let setup = Setup::of_with(firmware::image()?, &cluster, Shows::Certificate, document)?;
    let device = setup.boot()?;
    device.wait_for_line("the controllers have started")?;
    let pc = Pc::start(&cluster, "pc")?;
    let labs = [Lab::new(&cluster, "device")?, Lab::new(&cluster, "pc")?];
    wait_for_quiet(&labs[0], &device, &pc)?;
    let before = [streams(&device)?, pc.metric("picokube_http2_streams")?];

    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut warm) = (0, None);
    while rounds <= WARM || Instant::now() < end {
        round(&labs, rounds)
            .with_context(|| format!("round {rounds}; the device's log:\n{}", device.log()))?;
        rounds += 1;
        if rounds == WARM {
            warm = Some(pc.memory()?);
        }
    }
    wait_for_quiet(&labs[0], &device, &pc)?;
    println!("{rounds} rounds in {seconds} s");

    let warm = warm.context("no round has warmed it up")?;
    // The last question of its metrics may still be on its way out.
    labs[1].wait("no more files are open than before", || Ok(pc.memory()?.1 <= warm.1))?;
    let (memory, _) = pc.memory()?;
    println!("PC: {} KiB, after {} KiB", memory >> 10, warm.0 >> 10);
    ensure!(memory <= warm.0 + BREATH, "{memory} bytes, after {}", warm.0);
    // What is open is what was: a stream for each watch, and nothing that waits for an answer.
    let after = [streams(&device)?, pc.metric("picokube_http2_streams")?];
    ensure!(after == before, "{after:?} open streams, after {before:?}");
    // What was given up, as on a machine that is much too busy, has left nothing behind and cost its stream
    // only; and another connection came by a ticket.
    for (who, metric) in [
        ("device", &(|name: &str| device.metric(name)) as &dyn Fn(&str) -> Result<u64>),
        ("PC", &|name: &str| pc.metric(name)),
    ] {
        let connections = metric("picokube_tls_connections_total")?;
        let resumed = metric("picokube_tls_resumptions_total")?;
        let given_up = metric("picokube_http2_cancelled_total")?;
        println!("{who}: {connections} connections, {given_up} streams given up");
        ensure!(connections <= resumed + 1, "{who}: {resumed} of {connections} by a ticket");
    }
    ensure!(device.metric("picokube_requests_in_flight")? == 0, "requests without an answer");
    Ok(())
}

/// Everything is created, updated, scaled and deleted, in both namespaces.
fn round(labs: &[Lab<'_>; 2], number_of: usize) -> Result<()> {
    let image = |version: usize| {
        let containers = json!([{"name": "app", "image": format!("app:{version}")}]);
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    let names = || (0..DEPLOYMENTS).map(|n| format!("web-{number_of}-{n}"));
    for lab in labs {
        for name in names() {
            lab.create("deployments", &deployment(&name, REPLICAS))?;
        }
    }
    let wait = |replicas: usize| -> Result<()> {
        for lab in labs {
            for name in names() {
                lab.wait_for(&format!("deployments/{name}"), "it is rolled out", |deployment| {
                    is_rolled_out(deployment, replicas as i64)
                })?;
            }
        }
        Ok(())
    };
    wait(REPLICAS)?;
    for change in [image(2), json!({"spec": {"replicas": REPLICAS + 2}})] {
        for lab in labs {
            for name in names() {
                lab.patch(&format!("deployments/{name}"), &change)?;
            }
        }
    }
    wait(REPLICAS + 2)?;
    for lab in labs {
        for name in names() {
            lab.delete(&format!("deployments/{name}"), "Background")?;
        }
    }
    for lab in labs {
        for resource in ["deployments", "replicasets", "pods"] {
            lab.wait("everything has gone", || Ok(lab.list(resource)?.is_empty()))?;
        }
    }
    Ok(())
}

fn is_rolled_out(deployment: &Value, replicas: i64) -> bool {
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    is_observed(deployment)
        && counts.iter().all(|count| number(&deployment["status"][count]) == replicas)
}

fn streams(device: &Device) -> Result<u64> {
    device.metric("picokube_http2_streams")
}

/// Waits until neither has asked for anything for a while.
fn wait_for_quiet(lab: &Lab<'_>, device: &Device, pc: &Pc) -> Result<()> {
    let mut last = ([0; 2], Instant::now());
    lab.wait("nobody asks for anything", || {
        let asked = [
            device.metrics("picokube_requests_total{")?,
            pc.metrics("rest_client_requests_total{")?,
        ];
        if asked != last.0 {
            last = (asked, Instant::now());
        }
        Ok(last.1.elapsed() >= Duration::from_secs(2))
    })
}

/// `picokube run` for one namespace.
struct Pc {
    process: Following,
    address: String,
}

impl Pc {
    fn start(cluster: &Picokube, namespace: &str) -> Result<Self> {
        let mut command = std::process::Command::new(binary()?);
        command.args([
            "run",
            "--namespace",
            namespace,
            "--leader-elect=false",
            "--kube-api-qps",
            "0",
        ]);
        command.args(["--metrics-bind-address", "127.0.0.1:0", "--kubeconfig"]);
        command.arg(cluster.kubeconfig());
        let process = Following::start(command)?;
        let line = process.line_with(&["metrics and health on http://"])?;
        let address = line.rsplit('/').next().context("no address")?.to_owned();
        Ok(Self { process, address })
    }

    fn page(&self) -> Result<String> {
        Ok(Client::connect(self.address.parse()?)?.send("GET", "/metrics", &[], b"")?.text())
    }

    /// The value of one of its metrics.
    fn metric(&self, name: &str) -> Result<u64> {
        let page = self.page()?;
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no {name} in:\n{page}"))?.parse()?)
    }

    /// The sum of all metrics that begin so.
    fn metrics(&self, name: &str) -> Result<u64> {
        Ok(firmware::sum_of_metrics(&self.page()?, name))
    }

    /// Its own memory in bytes, and the files that it has open.
    fn memory(&self) -> Result<(u64, usize)> {
        let process = format!("/proc/{}", self.process.process_id());
        let rollup = std::fs::read_to_string(format!("{process}/smaps_rollup"))?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).context("no memory")?;
        let kib: u64 = kib.parse()?;
        Ok((kib << 10, std::fs::read_dir(format!("{process}/fd"))?.count()))
    }
}
