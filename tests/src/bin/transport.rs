//! `picokube-transport ELF`: what HTTPS costs the emulated board in instructions, one `name=value` a line.
//!
//! For `cargo xtask sizes`. The firmware is that of `targets/mps2-an386/src/bin/transport.rs`, in an emulator
//! that counts instructions; the server is hyper's HTTP/2 on rustls, which takes the cipher that the device
//! offers first, ChaCha20. Sometimes the device shows nothing but a token, once a certificate.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use picokube_qemu::{HOST_SEEN_BY_GUEST, Image, Machine, Start};
use picokube_tests::picokube::PATIENCE;
use picokube_tests::secure_peer::{Options, Peer};

/// How often the device comes by token.
const ROUNDS: usize = 5;

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
    // To wait for an answer costs something, too, and the machine may have much else to do: that only adds.
    let mut least = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (name, value) in measure(&image, false)? {
            let before = least.entry(name).or_insert(value);
            *before = value.min(*before);
        }
    }
    least.iter().for_each(|(name, value)| println!("{name}={value}"));
    for (name, value) in measure(&image, true)? {
        println!("{name}_with_certificate={value}");
    }
    Ok(())
}

/// What the device says that things cost.
fn measure(image: &Arc<Image>, asks_for_certificate: bool) -> Result<BTreeMap<String, u64>> {
    let peer = Peer::start(&Options { asks_for_certificate, ..Options::default() })?;
    let mut words = vec![format!("{HOST_SEEN_BY_GUEST}:{}", peer.address().port())];
    words.push(hex(&peer.authority));
    if asks_for_certificate {
        let (certificate, key) = &peer.client;
        words.extend([hex(certificate), hex(key)]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let start = Start { words: &words, count_instructions: true, ..Start::default() };
    let mut machine = Machine::boot(image, start)?;
    let (mut figures, mut log) = (BTreeMap::new(), String::new());
    while let Some(line) = machine.next_line(PATIENCE)? {
        let line = line.to_string();
        let figure = line.rsplit(' ').next().and_then(|word| word.split_once('='));
        if let Some((name, value)) = figure {
            figures.insert(name.to_owned(), value.parse()?);
        }
        log += &line;
        log.push('\n');
    }
    ensure!(machine.wait(PATIENCE)?.success(), "the device has given up:\n{log}");
    Ok(figures)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
