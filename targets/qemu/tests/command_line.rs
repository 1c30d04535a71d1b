//! What `picokube-qemu` says when it cannot start.

use std::process::Command;

fn said(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_picokube-qemu")).args(arguments).output();
    let output = output.expect("it starts");
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn an_image_that_is_not_there_is_named() {
    let said = said(&["--image", "no/such/image.elf", "--server", "127.0.0.1:1"]);
    assert!(said.contains("there is no firmware at no/such/image.elf"), "{said}");
    assert!(said.contains("`cargo xtask firmware build` builds it"), "{said}");
}

#[test]
fn a_server_that_the_emulated_network_does_not_reach_is_refused() {
    let said = said(&["--image", "Cargo.toml", "--server", "192.0.2.1:8001"]);
    assert!(said.contains("192.0.2.1:8001 is not there"), "{said}");
}

#[test]
fn what_is_no_firmware_is_refused() {
    let said = said(&["--image", "Cargo.toml", "--server", "127.0.0.1:1"]);
    assert!(said.contains("Cargo.toml is no firmware"), "{said}");
}
