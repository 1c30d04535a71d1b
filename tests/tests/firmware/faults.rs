//! Power cuts and link cuts at random moments of rollouts: the end is as if nothing had happened.
//!
//! `PICOKUBE_CUTS` says how many of each there are (30 is the full course, see CONTRIBUTING.md);
//! `PICOKUBE_SEED` repeats a run whose seed was printed.

use std::env;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use picokube_tests::firmware::{Device, Shows};
use picokube_tests::lab::Lab;
use picokube_tests::picokube::Picokube;
use picokube_tests::rollouts::{Random, Rollouts, WORKLOADS, fresh_seed};

const RESUMPTIONS: &str = "picokube_tls_resumptions_total";
/// Without `PICOKUBE_CUTS`.
const CUTS: u32 = 6;
/// The longest from the beginning of a rollout to a cut.
const LONGEST: u64 = 3_000;

#[test]
fn power_cuts_during_rollouts() -> Result<()> {
    cut("power-cuts", Shows::Token, |device, _| device.cut_power()).map(drop)
}

#[test]
fn link_cuts_during_rollouts() -> Result<()> {
    let device = cut("link-cuts", Shows::Certificate, |device, random| {
        device.set_link(false)?;
        thread::sleep(Duration::from_millis(random.below(LONGEST)));
        device.set_link(true)
    })?;
    resumes(&device)
}

/// A cable that is out for longer than the device waits costs a connection, but no second proof.
fn resumes(device: &Device) -> Result<()> {
    let (resumed, connections) =
        (device.metric(RESUMPTIONS)?, device.metric("picokube_tls_connections_total")?);
    ensure!(connections <= resumed + 1, "{resumed} of {connections} connections by a ticket");
    Ok(())
}

fn cut(
    namespace: &str,
    shows: Shows,
    cut: impl Fn(&Device, &mut Random) -> Result<()>,
) -> Result<Device> {
    let cuts = env::var("PICOKUBE_CUTS").map_or(Ok(CUTS), |cuts| cuts.parse())?;
    let seed = env::var("PICOKUBE_SEED").map_or(Ok(fresh_seed()), |seed| seed.parse())?;
    println!("{cuts} cuts; PICOKUBE_SEED={seed} repeats them");
    let mut random = Random(seed);
    let cluster = Picokube::secure(&["up", "--no-controllers", "--nodes", "3"])?;
    let device = Device::boot_secure(&cluster, shows)?;
    let lab = Lab::new(&cluster, namespace)?;
    let mut rollouts = Rollouts::start(&lab)?;
    for round in 1..=cuts {
        // Every workload gets a new image, and one of them another size.
        let resized = random.below(u64::from(WORKLOADS)) as usize;
        rollouts.update(round, Some((resized, 1 + random.below(6) as i64)))?;
        thread::sleep(Duration::from_millis(random.below(LONGEST)));
        cut(&device, &mut random)?;
    }
    rollouts
        .wait()
        .with_context(|| format!("PICOKUBE_SEED={seed}; the device's log:\n{}", device.log()))?;
    Ok(device)
}
