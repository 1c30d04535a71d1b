//! One image serves many devices: what is on its configuration page makes the difference.

use anyhow::Result;
use picokube_config::Document;
use picokube_tests::firmware::{self, Device};
use picokube_tests::kubectl::Kubectl;
use picokube_tests::picokube::Picokube;

#[test]
fn a_device_without_a_configuration_says_so() -> Result<()> {
    let device = Device::boot_page(firmware::image()?, vec![0xff; 64])?;
    let line = device.wait_for_line("configuration page is empty")?;
    assert!(line.contains("cargo xtask firmware configure"), "{line}");
    Ok(())
}

#[test]
fn a_device_with_a_wrong_configuration_says_what_is_wrong() -> Result<()> {
    let good = Document { server: "10.0.2.2:80", identity: "device", ..Document::default() };
    let mut page = [0xff; picokube_config::PAGE];
    let len = picokube_config::write_page(&good, &mut page)?;
    page[len - 2] ^= 1;
    let device = Device::boot_page(firmware::image()?, page.to_vec())?;
    device.wait_for_line("wrong checksum")?;
    Ok(())
}

#[test]
fn a_static_address_a_token_and_a_namespace_are_honoured() -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let server = format!("10.0.2.2:{}", cluster.address().port());
    let document = Document {
        server: &server,
        identity: "device",
        address: Some("10.0.2.77/24"),
        gateway: Some("10.0.2.2"),
        authorization: Some("Bearer anything"),
        namespace: Some("edge"),
        ..Document::default()
    };
    let device = Device::boot_with(firmware::image()?, &document)?;
    device.wait_for_line("address 10.0.2.77/24")?;
    let kubectl: Kubectl<'_> = cluster.kubectl()?;
    kubectl.ok(&["create", "namespace", "edge"])?;
    for namespace in ["default", "edge"] {
        let namespace = format!("--namespace={namespace}");
        kubectl.ok(&["create", "deployment", "web", "--image=app:1", &namespace])?;
    }
    kubectl.ok(&["rollout", "status", "deployment/web", "--namespace=edge", "--timeout=10m"])?;
    // By then it would have acted on the other one, which is older.
    assert!(!kubectl.has("replicasets")?, "a namespace that is not its own");
    Ok(())
}
