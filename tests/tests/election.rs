//! Several controllers of one cluster, of which one writes: two devices, or a device and a PC.
//!
//! `PICOKUBE_KILLS` says how often a leader is killed (20 is the full course, see CONTRIBUTING.md);
//! `PICOKUBE_SEED` repeats a run whose seed was printed.

use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use picokube_config::{Document, Election};
use picokube_core::time::Timestamp;
use picokube_tests::census::Census;
use picokube_tests::firmware::{Device, Setup, Shows, image};
use picokube_tests::following::Following;
use picokube_tests::lab::{Lab, deployment, number, text};
use picokube_tests::lease::Journal;
use picokube_tests::picokube::{Picokube, binary};
use picokube_tests::rollouts::{Random, Rollouts, fresh_seed};
use serde_json::{Value, json};

/// Without `PICOKUBE_KILLS`: one of each way.
const KILLS: u32 = 3;
/// The longest from the beginning of a rollout to a kill.
const LONGEST: u64 = 3_000;
/// Of what devices write as the server's time: it tells whole seconds.
const RESOLUTION: Duration = Duration::from_secs(1);
/// With a retry period of a second.
const PLANNED: Duration = Duration::from_secs(3);
const NAMES: [&str; 2] = ["gateway-1", "gateway-2"];

/// An election in which nobody waits for long, and nobody loses the lease because the machine is busy; on the
/// page and on the command line.
const FAST: Election<'_> = Election {
    lease_duration: Some(10_000),
    renew_deadline: Some(9_000),
    retry_period: Some(500),
    resource_name: None,
    resource_namespace: None,
};
const FAST_FLAGS: [&str; 3] = [
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=9s",
    "--leader-elect-retry-period=500ms",
];

/// A device's page.
fn document(number: usize, election: Election<'static>) -> Document<'static> {
    let leader_election = Some(election);
    Document { identity: NAMES[number], qps: Some(0), leader_election, ..Document::default() }
}

fn plain_device(cluster: &Picokube, number: usize, election: Election<'static>) -> Result<Device> {
    let server = format!("10.0.2.2:{}", cluster.address().port());
    let document = Document { server: &server, ..document(number, election) };
    Setup::with(image()?, &document)?.number(number as u8).boot()
}

/// Which device has an identity.
fn number_of(identity: &str) -> Result<usize> {
    let named = |name: &&str| identity.strip_prefix(*name).is_some_and(|it| it.starts_with('_'));
    NAMES.iter().position(named).with_context(|| format!("{identity} is none of the devices"))
}

fn time(value: &Value) -> Result<Timestamp> {
    Timestamp::parse_rfc3339(text(value).as_bytes()).with_context(|| format!("no time: {value}"))
}

/// From one time that devices wrote to another.
fn between(earlier: &Value, later: &Value) -> Result<Duration> {
    let micros = time(later)?.as_micros() - time(earlier)?.as_micros();
    Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

/// How a leader goes, and what it takes for it to be back.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Its power goes, and comes again when somebody else leads.
    Power,
    /// Its power goes for a moment.
    Blink,
    /// Its network cable is pulled until somebody else leads.
    Cable,
}

#[test]
fn leaders_that_are_killed_are_replaced_and_every_rollout_ends() -> Result<()> {
    let kills = env::var("PICOKUBE_KILLS").map_or(Ok(KILLS), |kills| kills.parse())?;
    let seed = env::var("PICOKUBE_SEED").map_or(Ok(fresh_seed()), |seed| seed.parse())?;
    println!("{kills} kills; PICOKUBE_SEED={seed} repeats them");
    let mut random = Random(seed);
    let cluster = Picokube::secure(&["up", "--no-controllers", "--nodes", "3"])?;
    let mut journal = Journal::of(&cluster)?;
    let device = |number| -> Result<Device> {
        let document = document(number, Election::default());
        let setup = Setup::of_with(image()?, &cluster, Shows::Token, document)?;
        setup.number(number as u8).boot()
    };
    let devices = [device(0)?, device(1)?];
    let lab = Lab::new(&cluster, "kills")?;
    let census = Census::of(&lab)?;
    let mut rollouts = Rollouts::start(&lab)?;
    let logs = || format!("{}\n\n{}", devices[0].log(), devices[1].log());
    let told = |context: &str| format!("PICOKUBE_SEED={seed}; {context}; logs:\n{}", logs());
    let (_, spec) = journal.until_led(|_| true)?;
    let mut leader = text(&spec["holderIdentity"]).to_owned();
    rollouts.wait().with_context(|| told("the beginning"))?;
    let mut failovers = Vec::new();
    for round in 1..=kills {
        let end = [End::Power, End::Blink, End::Cable][round as usize % 3];
        let context = format!("round {round}, {end:?}, {leader} led");
        let before = number_of(&leader)?;
        rollouts.update(round, None)?;
        thread::sleep(Duration::from_millis(random.below(LONGEST)));
        match end {
            End::Power => devices[before].switch_off(),
            End::Blink => devices[before].cut_power()?,
            End::Cable => devices[before].set_link(false)?,
        }
        let (last, first) = journal.until_led(|holder| holder != leader)?;
        // Told, not judged: the simulation holds how long that may take, with clocks that no machine slows.
        failovers.push(between(&last["renewTime"], &first["acquireTime"])?);
        leader = text(&first["holderIdentity"]).to_owned();
        let now = number_of(&leader)?;
        devices[now]
            .wait_for_line(&format!("leads as {leader}, by the Lease kube-system/picokube"))?;
        match end {
            End::Power => devices[before].cut_power()?,
            End::Blink => {}
            End::Cable => devices[before].set_link(true)?,
        }
        rollouts.wait().with_context(|| told(&context))?;
        devices[1 - now].wait_for_line(&format!("stands by; {leader} leads"))?;
    }
    failovers.sort();
    println!("from the last renewal to the next leader: {failovers:?}");
    let surplus = census.surplus(&lab)?;
    println!("{surplus:?}");
    // Nobody wants more than the surge, whoever leads. How many pods there are is up to when ReplicaSets that
    // have become smaller get to deleting: on a slow machine, their successors may be quicker.
    ensure!(surplus.wanted.count <= 0, "{surplus:?}: {}", told("the end"));
    ensure!(surplus.created.count <= 1, "{surplus:?}: {}", told("the end"));
    for (number, device) in devices.iter().enumerate() {
        let leads = device.metric("leader_election_master_status{name=\"picokube\"}")? == 1;
        ensure!(leads == (number == number_of(&leader)?), "{}", told("who leads"));
        ensure!(device.get("/healthz/leaderElection")?.text() == "ok\n");
        let holder = format!("picokube_leader_info{{holder=\"{leader}\"}}");
        ensure!(device.metric(&holder)? == 1);
    }
    Ok(())
}

#[test]
fn a_planned_reset_hands_leadership_over_in_three_seconds() -> Result<()> {
    let cluster = Picokube::with_nodes(2)?;
    let mut journal = Journal::of(&cluster)?;
    let election = Election { retry_period: Some(1_000), ..Election::default() };
    let device = |number| plain_device(&cluster, number, election);
    let devices = [device(0)?, device(1)?];
    let (_, spec) = journal.until_led(|_| true)?;
    let leader = text(&spec["holderIdentity"]).to_owned();
    let before = number_of(&leader)?;
    devices[1 - before].wait_for_line(&format!("stands by; {leader} leads"))?;
    let lab = Lab::new(&cluster, "planned")?;
    lab.create("deployments", &deployment("web", 4))?;
    lab.wait_for("deployments/web", "all are ready", |web| {
        number(&web["status"]["readyReplicas"]) == 4
    })?;
    lab.patch("deployments/web", &image_patch("app:2"))?;

    devices[before].ask_for_end()?;
    let asked = seconds(&devices[before].wait_for_line("a reset was asked for")?)?;
    let reset = seconds(&devices[before].wait_for_line("nothing is under way any more: reset")?)?;
    let (_, released) = journal.until(|spec| spec["holderIdentity"].is_null())?;
    let (_, taken) = journal.until_led(|_| true)?;
    ensure!(number_of(text(&taken["holderIdentity"]))? == 1 - before, "{taken}");
    assert_eq!(number(&released["leaseDurationSeconds"]), 1);
    let took = Duration::from_secs_f64(reset - asked)
        + between(&released["renewTime"], &taken["acquireTime"])?;
    println!("the next one leads {took:?} after the reset was asked for");
    ensure!(took <= PLANNED + RESOLUTION, "{took:?}: {asked} s, {reset} s, {released}, {taken}");

    lab.wait_for("deployments/web", "it is rolled out", |web| {
        let status = &web["status"];
        status["observedGeneration"] == web["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|count| number(&status[count]) == 4)
    })?;
    devices[before].cut_power()?;
    devices[before].wait_for_line("stands by; ")?;
    let events = cluster.get("/api/v1/namespaces/kube-system/events")?.json()?.to_string();
    ensure!(events.contains(&format!("{leader} stopped leading")), "{events}");
    // A device alone is back before a standby has looked.
    devices[1 - before].ask_for_reset()?;
    let (released, taken) = journal.until_led(|holder| holder != taken["holderIdentity"])?;
    ensure!(released["holderIdentity"].is_null(), "{released}, {taken}");
    Ok(())
}

#[test]
fn a_device_and_a_pc_stand_in_for_each_other() -> Result<()> {
    let cluster = Picokube::with_nodes(2)?;
    let mut journal = Journal::of(&cluster)?;
    let pc = || -> Result<Following> {
        let mut command = Command::new(binary()?);
        command.args(["run", "--server", &cluster.base()]).args(FAST_FLAGS);
        Following::start(command)
    };
    let first = pc()?;
    let (_, spec) = journal.until_led(|_| true)?;
    let name_of_pc = text(&spec["holderIdentity"]).to_owned();
    let device = plain_device(&cluster, 0, FAST)?;
    device.wait_for_line(&format!("stands by; {name_of_pc} leads by the Lease"))?;
    cluster.wait_until("its caches are warm", || Ok(device.get("/readyz")?.status == 200))?;
    let lab = Lab::new(&cluster, "both")?;
    lab.create("deployments", &deployment("web", 2))?;
    wait_until_ready(&lab, "app:1")?;
    for verb in ["POST", "PATCH", "DELETE"] {
        let sent = device.metric(&format!("picokube_requests_total{{verb=\"{verb}\"}}"))?;
        ensure!(sent == 0, "who stands by has sent {sent} {verb}");
    }

    // SIGKILL: nothing is given back.
    drop(first);
    let (_, spec) = journal.until_led(|holder| holder != name_of_pc)?;
    ensure!(number_of(text(&spec["holderIdentity"]))? == 0, "{spec}");
    lab.patch("deployments/web", &image_patch("app:2"))?;
    wait_until_ready(&lab, "app:2")?;

    let second = pc()?;
    second.line_with(&["stands by; ", NAMES[0]])?;
    device.ask_for_end()?;
    second.line_with(&["leads as"])?;
    lab.patch("deployments/web", &image_patch("app:3"))?;
    wait_until_ready(&lab, "app:3")?;
    device.cut_power()?;
    device.wait_for_line("stands by; ")?;
    Ok(())
}

fn image_patch(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}})
}

/// Waits until all pods that are left have this image and are ready.
fn wait_until_ready(lab: &Lab<'_>, image: &str) -> Result<()> {
    lab.wait(&format!("all run {image}"), || {
        let pods = lab.list("pods")?;
        let ready = lab.get("deployments/web")?["status"]["readyReplicas"].clone();
        let all_run = pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == *image);
        Ok(pods.len() == 2 && all_run && number(&ready) == 2)
    })
}

/// The time in front of a line of a device's log.
fn seconds(line: &str) -> Result<f64> {
    let time = line.split_whitespace().next().context("an empty line")?;
    let mut parts = time.split(':').map(str::parse::<f64>);
    parts.try_fold(0.0, |sum, part| Ok(sum * 60.0 + part?))
}
