//! What the device tells of itself.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use picokube_tests::firmware::Device;
use picokube_tests::http::Client;
use picokube_tests::picokube::Picokube;

#[test]
fn pages_and_log_tell_how_the_device_is() -> Result<()> {
    let mut cluster = Picokube::on_disk(&["up", "--no-controllers", "--nodes", "1"])?;
    cluster.kill()?;
    let device = Device::boot(cluster.address())?;
    device.wait_for_line("or later, when the firmware was made")?;
    device.wait_for_line("address 10.0.2.15/24")?;
    device.wait_for_line("the server cannot be reached")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let made = device.metric("picokube_time_at_least_seconds")?;
    assert!(made <= now, "made in the future: {made}");
    // Alive, but of no use without a server.
    cluster_less(&device)?;
    cluster.restart()?;
    device.wait_for_line("the server is there")?;
    device.wait_for_line("the controllers have started")?;
    device.wait_for_line("status: 0/512 pods, 0/128 ReplicaSets, 0/64 Deployments, 0 refused")?;
    let ready = device.get("/readyz")?;
    assert_eq!((ready.status, ready.text().lines().last()), (200, Some("readyz check passed")));

    let kubectl = cluster.kubectl()?;
    kubectl.ok(&["create", "deployment", "web", "--image=app:1", "--replicas=3"])?;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=10m"])?;
    let metrics = device.get("/metrics")?;
    assert_eq!(metrics.status, 200);
    let metrics = metrics.text();
    let value = |name: &str| -> Result<u64> {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.with_context(|| format!("no {name} in:\n{metrics}"))?.parse()?)
    };
    assert_eq!(value("picokube_cached_objects{kind=\"Pod\"}")?, 3);
    assert_eq!(value("picokube_cache_capacity{kind=\"Pod\"}")?, 512);
    assert_eq!(value("picokube_blind_owners{kind=\"ReplicaSet\"}")?, 0);
    assert_eq!(value("picokube_blind_owners{kind=\"StatefulSet\"}")?, 0);
    let at_least = value("picokube_time_at_least_seconds")?;
    assert!(at_least.abs_diff(now) < 3600, "{at_least} is not about now, {now}");
    assert_eq!(value("picokube_connections_max")?, 9);
    assert!(value("picokube_connections")? >= 6, "six watches are open");
    assert!(value("workqueue_adds_total{name=\"deployment\"}")? > 0);
    let (used, room) = (value("picokube_stack_high_water_bytes")?, value("picokube_stack_bytes")?);
    assert!(used > 1000 && used < room, "{used} of {room}");

    assert_eq!(device.get("/somewhere")?.status, 404);
    assert_eq!(device.get("/healthz/leaderElection")?.status, 404, "there is no election");
    Ok(())
}

#[test]
fn a_client_that_lingers_is_in_nobodys_way() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let device = Device::boot(cluster.address())?;
    device.wait_for_line("the controllers have started")?;
    // It has begun a request and says no more, until the device loses patience.
    let mut lingering = Client::connect(device.status_address())?;
    lingering.write(b"GET /healthz HTTP/1.1\r\n");
    for _ in 0..3 {
        assert_eq!(device.get("/healthz")?.status, 200);
    }
    Ok(())
}

#[test]
fn a_client_that_drips_is_hung_up_on() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let device = Device::boot(cluster.address())?;
    device.wait_for_line("the controllers have started")?;
    let mut dripping = TcpStream::connect(device.status_address())?;
    dripping.set_nodelay(true)?;
    // Never silent for as long as the device would mind.
    dripping.set_read_timeout(Some(Duration::from_millis(500)))?;
    dripping.write_all(b"GET /healthz HTTP/1.1\r\nX-Long: ")?;
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        ensure!(Instant::now() < deadline, "the device is still listening");
        let answer = dripping.write_all(b"x").and_then(|()| dripping.read(&mut [0]));
        match answer {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // Hung up, by an end or a reset.
            Ok(0) | Err(_) => break,
            Ok(_) => bail!("the device has answered half a request"),
        }
    }
    assert_eq!(device.get("/healthz")?.status, 200);
    Ok(())
}

fn cluster_less(device: &Device) -> Result<()> {
    let health = device.get("/healthz")?;
    ensure!(health.status == 200 && health.text() == "ok\n", "{}", health.text());
    let ready = device.get("/readyz")?;
    ensure!(ready.status == 503, "{}", ready.text());
    ensure!(ready.text().contains("[-]pods not listed yet"), "{}", ready.text());
    Ok(())
}
