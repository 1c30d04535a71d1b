//! `firmware configure`: makes the configuration page of one device.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use picokube_config::{Document, PAGE, write_page};
use picokube_qemu::Image;

/// What is particular about one device.
#[derive(Args)]
pub(crate) struct Configuration {
    /// The API server
    #[arg(long, value_name = "ADDRESS:PORT")]
    server: String,
    /// The name of the API server in requests, if it is not its address
    #[arg(long, value_name = "NAME:PORT")]
    host: Option<String>,
    /// A file with the token that the API server wants
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The device's own address; without it, DHCP gives one
    #[arg(long, value_name = "ADDRESS/PREFIX")]
    address: Option<String>,
    /// The way to other networks
    #[arg(long, requires = "address")]
    gateway: Option<String>,
    /// Who this device is: a Kubernetes name
    #[arg(long, default_value = "picokube")]
    identity: String,
    /// The only namespace to look at
    #[arg(long)]
    namespace: Option<String>,
    /// Requests a second of each controller; 0 is no limit
    #[arg(long, default_value_t = 20)]
    qps: u32,
    /// Requests at once of each controller; without it, half as many again as a second
    #[arg(long)]
    burst: Option<u32>,
    /// Milliseconds that statuses may wait for each other while a rollout goes on
    #[arg(long, default_value_t = 100)]
    status_lag: u32,
    /// Kubernetes' feature gates, such as DeploymentReplicaSetTerminatingReplicas=true
    #[arg(long, value_name = "NAME=BOOL,…")]
    feature_gates: Option<String>,
}

impl Configuration {
    /// What serves for a trial on this machine.
    pub(crate) fn trial(server: String) -> Self {
        Self {
            server,
            host: None,
            token_file: None,
            address: None,
            gateway: None,
            identity: "picokube".to_owned(),
            namespace: None,
            qps: 0,
            burst: None,
            status_lag: 100,
            feature_gates: None,
        }
    }

    /// The bytes of the page.
    pub(crate) fn page(&self) -> Result<Vec<u8>> {
        let authorization = self.token_file.as_deref().map(authorization).transpose()?;
        let document = Document {
            server: &self.server,
            host: self.host.as_deref(),
            authorization: authorization.as_deref(),
            address: self.address.as_deref(),
            gateway: self.gateway.as_deref(),
            identity: &self.identity,
            namespace: self.namespace.as_deref(),
            qps: Some(self.qps),
            burst: self.burst,
            status_lag: Some(self.status_lag),
            feature_gates: self.feature_gates.as_deref(),
        };
        let mut page = [0xff; PAGE];
        let len = write_page(&document, &mut page)?;
        Ok(page.get(..len).unwrap_or_default().to_vec())
    }
}

fn authorization(token_file: &Path) -> Result<String> {
    let name = token_file.display();
    let token = fs::read_to_string(token_file).with_context(|| format!("cannot read {name}"))?;
    match token.trim() {
        "" => bail!("{name} is empty"),
        token => Ok(format!("Bearer {token}")),
    }
}

/// Writes the page as Intel HEX, which says where it belongs, or as plain bytes.
pub(crate) fn write(configuration: &Configuration, image: &Image, out: &Path) -> Result<String> {
    let page = configuration.page()?;
    let address = image.configuration_page()?;
    let name = out.display();
    let bytes = match out.extension().and_then(|extension| extension.to_str()) {
        Some("hex") => hex(address as u32, &page).into_bytes(),
        Some("bin") => page,
        _ => bail!("{name} should end in .hex or .bin"),
    };
    fs::write(out, bytes).with_context(|| format!("cannot write {name}"))?;
    Ok(format!("{name} goes to address {address:#010x}"))
}

/// Bytes in the form that every tool that writes flash understands.
fn hex(address: u32, bytes: &[u8]) -> String {
    let mut text = record(0, 4, &((address >> 16) as u16).to_be_bytes());
    let mut at = address;
    for line in bytes.chunks(16) {
        if at & 0xffff == 0 && at != address {
            text += &record(0, 4, &((at >> 16) as u16).to_be_bytes());
        }
        text += &record(at as u16, 0, line);
        at += line.len() as u32;
    }
    text + &record(0, 1, &[])
}

/// One line of Intel HEX.
fn record(offset: u16, kind: u8, data: &[u8]) -> String {
    let mut bytes = vec![data.len() as u8];
    bytes.extend(offset.to_be_bytes());
    bytes.push(kind);
    bytes.extend(data);
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes.push(sum.wrapping_neg());
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!(":{digits}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intel_hex_has_addresses_and_sums() {
        let text = hex(0x0007_f000, &[0x50, 0x4b, 0x55, 0x42]);
        assert_eq!(text, ":020000040007F3\n:04F00000504B5542DA\n:00000001FF\n");
    }

    #[test]
    fn a_page_that_crosses_a_block_says_so() {
        let text = hex(0x0001_fff0, &[0; 32]);
        assert_eq!(text.lines().filter(|line| line.starts_with(":02000004")).count(), 2, "{text}");
    }

    #[test]
    fn what_the_firmware_would_refuse_is_refused_here() {
        let error = Configuration::trial("somewhere".to_owned()).page().unwrap_err();
        assert!(error.to_string().contains("`server`"), "{error}");
    }
}
