//! What an election costs a device whose bytes cost money.

use anyhow::{Context, Result, ensure};
use picokube_config::{Document, Election};
use picokube_tests::firmware::{Device, Setup, Shows, access, image};
use picokube_tests::lease::Journal;
use picokube_tests::meter::{Bytes, Meter};
use picokube_tests::picokube::Picokube;

/// Looks that are measured: what else comes now and then (a bookmark, a sign of life) is in few of them.
const LOOKS: usize = 9;
/// In which nobody waits for long; what a look costs does not depend on it.
const FAST: Election<'_> = Election {
    lease_duration: Some(10_000),
    renew_deadline: Some(9_000),
    retry_period: Some(500),
    resource_name: None,
    resource_namespace: None,
};
const MILLIS_A_DAY: u64 = 86_400_000;

#[test]
fn over_http_1_1() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    costs(&cluster, "HTTP/1.1", 1_400, 1_200, |meter, document| {
        let server = format!("10.0.2.2:{}", meter.address().port());
        Setup::with(image()?, &Document { server: &server, ..document })
    })
}

#[test]
fn over_http_2() -> Result<()> {
    let cluster = Picokube::secure(&["up", "--no-controllers", "--nodes", "1"])?;
    costs(&cluster, "HTTP/2", 1_400, 1_200, |meter, document| {
        let mut access = access(&cluster, Shows::Token)?;
        access.server = format!("10.0.2.2:{}", meter.address().port());
        Setup::with(image()?, &access.apply(document))
    })
}

/// Measures a leader and a standby, each of whose looks at the Lease must not cost more than that.
fn costs(
    cluster: &Picokube,
    transport: &str,
    most_of_leader: u64,
    most_of_standby: u64,
    setup: impl Fn(&Meter, Document<'_>) -> Result<Setup>,
) -> Result<()> {
    let start = |identity, number| -> Result<(Meter, Device)> {
        let meter = Meter::before(cluster.address())?;
        let leader_election = Some(FAST);
        let document = Document { identity, qps: Some(0), leader_election, ..Document::default() };
        let device = setup(&meter, document)?.number(number).boot()?;
        Ok((meter, device))
    };
    let (meter, leader) = start("gateway-1", 0)?;
    leader.wait_for_line("leads as gateway-1_")?;
    let mut journal = Journal::of(cluster)?;
    let of_leader = median_of(&meter, || journal.until(|_| true).map(drop))?;
    tell(transport, "a renewal", of_leader, [2_000, 10_000]);

    let (meter, standby) = start("gateway-2", 1)?;
    standby.wait_for_line("stands by; gateway-1_")?;
    let looks = || standby.metric("picokube_requests_total{verb=\"GET\"}");
    let mut seen = looks()?;
    let of_standby = median_of(&meter, || {
        cluster.wait_until("the standby has looked", || Ok(looks()? > seen))?;
        seen = looks()?;
        Ok(())
    })?;
    // A period, and up to 1.2 more: 0.6 in the mean.
    tell(transport, "a look of the standby", of_standby, [3_200, 16_000]);
    let total = |bytes: Bytes| bytes.sent + bytes.received;
    ensure!(total(of_leader) <= most_of_leader, "{of_leader:?}");
    ensure!(total(of_standby) <= most_of_standby, "{of_standby:?}");
    Ok(())
}

/// What passes the meter from one look to the next, in the median.
fn median_of(meter: &Meter, mut next_look: impl FnMut() -> Result<()>) -> Result<Bytes> {
    let mut all = Vec::new();
    next_look()?;
    let mut before = meter.bytes_once_silent();
    for _ in 0..LOOKS {
        next_look()?;
        let now = meter.bytes_once_silent();
        all.push((now.sent - before.sent, now.received - before.received));
        before = now;
    }
    all.sort_by_key(|(sent, received)| sent + received);
    let (sent, received) = *all.get(LOOKS / 2).context("nothing was measured")?;
    Ok(Bytes { sent, received })
}

/// Prints it, with what it makes a day where a look comes every so many milliseconds.
fn tell(transport: &str, what: &str, bytes: Bytes, every: [u64; 2]) {
    let Bytes { sent, received } = bytes;
    let [usual, edge] = every.map(|millis| (sent + received) * (MILLIS_A_DAY / millis) / 1000);
    println!(
        "{transport}: {what} takes {sent} bytes to the server and {received} back; {usual} kB a day, \
         {edge} kB with 60, 40 and 10 s"
    );
}
