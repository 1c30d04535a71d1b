//! The device over HTTPS: one verified connection that carries everything, by token or by certificate.

use anyhow::{Result, ensure};
use picokube_config::{Certificates, Document};
use picokube_tests::firmware::{self, Device};
use picokube_tests::lab::{Lab, deployment, number};
use picokube_tests::picokube::Picokube;
use picokube_tests::secure_front::Front;

/// A device that comes by TLS rolls out a Deployment.
fn rolls_out(cluster: &Picokube, device: &Device, namespace: &str) -> Result<()> {
    device.wait_for_line("the controllers have started")?;
    let lab = Lab::new(cluster, namespace)?;
    lab.create("deployments", &deployment("web", 10))?;
    lab.wait_for("deployments/web", "all pods are ready", |deployment| {
        number(&deployment["status"]["readyReplicas"]) == 10
    })?;
    ensure!(device.metric("picokube_connections")? == 1, "one connection carries everything");
    let stack = |what: &str| device.metric(&format!("picokube_stack{what}_bytes"));
    println!("{} of {} bytes of stack", stack("_high_water")?, stack("")?);
    Ok(())
}

#[test]
fn by_certificate() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let front = Front::of(cluster.address(), true)?;
    let device = Device::boot_with(firmware::image()?, &front.document())?;
    rolls_out(&cluster, &device, "certified")?;

    let nobody =
        Document { client_certificates: Certificates::NONE, client_key: None, ..front.document() };
    let nobody = Device::boot_with(firmware::image()?, &nobody)?;
    nobody.wait_for_line("does not accept the client certificate, or wants one")?;
    ensure!(nobody.get("/readyz")?.status == 503, "of no use without a certificate");
    Ok(())
}

#[test]
fn a_server_of_another_authority_is_refused_and_gets_no_token() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let (front, other) =
        (Front::of(cluster.address(), false)?, Front::of(cluster.address(), false)?);
    let Document { authorities, .. } = other.document();
    let authorization = Some("Bearer of-a-secret");
    let document = Document { authorities, authorization, ..front.document() };
    let device = Device::boot_with(firmware::image()?, &document)?;
    device.wait_for_line("not from a configured authority")?;
    ensure!(front.full_handshakes() == 0, "the handshake must not come to its end");
    Ok(())
}

#[test]
fn after_a_link_cut_a_ticket_makes_the_handshake_cheap() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let front = Front::of(cluster.address(), false)?;
    let device = Device::boot_with(firmware::image()?, &front.document())?;
    rolls_out(&cluster, &device, "resumed")?;
    ensure!(front.full_handshakes() == 1, "the first one");
    let before = device.metric("picokube_tls_resumptions_total")?;
    ensure!(before == 0, "there was no ticket yet");
    // While the cable is out, the server gives the connection up: the device cannot hear of it.
    device.set_link(false)?;
    device.wait_for_line("link down")?;
    front.hang_up();
    device.set_link(true)?;
    cluster.wait_until("the device is back by its ticket", || {
        Ok(device.metric("picokube_tls_resumptions_total")? == 1)
    })?;
    ensure!((front.full_handshakes(), front.resumed_handshakes()) == (1, 1), "by a ticket");
    let lab = Lab::new(&cluster, "afterwards")?;
    lab.create("deployments", &deployment("web", 3))?;
    lab.wait_for("deployments/web", "all pods are ready", |deployment| {
        number(&deployment["status"]["readyReplicas"]) == 3
    })?;
    Ok(())
}
