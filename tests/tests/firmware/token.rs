//! Who the device is to a server that asks: by token, by certificate, by a new one.

use anyhow::{Result, ensure};
use picokube_config::Document;
use picokube_tests::firmware::{self, Device, Setup, Shows};
use picokube_tests::picokube::Picokube;

const WITH_NODES: [&str; 4] = ["up", "--no-controllers", "--nodes", "1"];

#[test]
fn a_new_token_needs_a_new_page_and_no_new_image() -> Result<()> {
    let cluster = Picokube::secure(&WITH_NODES)?;
    let access = firmware::access(&cluster, Shows::Token)?;
    let document = access.apply(Document { identity: "device", ..Document::default() });
    let wrong = Document { authorization: Some("Bearer of-good-news"), ..document };
    let mut device = Setup::with(firmware::image()?, &wrong)?.boot()?;
    device.wait_for_line("the server does not accept the token")?;
    ensure!(device.get("/readyz")?.status == 503, "of no use without the token");

    device.configure(&document)?;
    device.wait_for_line("the controllers have started")?;
    roll_out(&cluster, &device)
}

#[test]
fn a_certificate_is_as_good_as_a_token() -> Result<()> {
    let cluster = Picokube::secure(&WITH_NODES)?;
    let mut device = Device::boot_secure(&cluster, Shows::Certificate)?;
    device.wait_for_line("the controllers have started")?;
    roll_out(&cluster, &device)?;
    // It is good for a year, and the authority for longer.
    let ends =
        |which: &str| device.metric(&format!("picokube_{which}_expiration_timestamp_seconds"));
    let (own, authority) = (ends("client_certificate")?, ends("certificate_authority")?);
    ensure!(own < authority && ends("server_certificate")? > 0, "{own} is not before {authority}");
    ensure!(!device.log().contains("renew it"), "{}", device.log());

    // The same device without any: the server knows nobody.
    let access = firmware::access(&cluster, Shows::Certificate)?;
    let document = access.apply(Document { identity: "device", ..Document::default() });
    let nobody = Document { client_certificates: Default::default(), client_key: None, ..document };
    device.configure(&nobody)?;
    device.wait_for_line("the server does not accept the token")?;
    Ok(())
}

fn roll_out(cluster: &Picokube, device: &Device) -> Result<()> {
    let kubectl = cluster.kubectl()?;
    kubectl.ok(&["create", "deployment", "web", "--image=app:1", "--replicas=2"])?;
    let rolled_out = kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=10m"]);
    rolled_out.map_err(|error| error.context(format!("the device's log:\n{}", device.log())))?;
    Ok(())
}
