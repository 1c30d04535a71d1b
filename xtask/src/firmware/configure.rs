//! `firmware configure`: makes the configuration page of one device.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use picokube_config::{Document, PAGE, write_page};
use picokube_provision::{AccessArguments, ElectionArguments};
use picokube_qemu::Image;
use tempfile::NamedTempFile;

/// What is particular about one device.
#[derive(Args)]
pub(crate) struct Configuration {
    #[command(flatten)]
    access: AccessArguments,
    /// Go to the server as the device would, and write nothing unless it lets the device in
    #[arg(long)]
    check: bool,
    /// The name of the API server in requests, if it is not that of its URL
    #[arg(long, value_name = "NAME:PORT")]
    host: Option<String>,
    /// The device's own address; without it, DHCP gives one
    #[arg(long, value_name = "ADDRESS/PREFIX")]
    address: Option<String>,
    /// The way to other networks
    #[arg(long, requires = "address")]
    gateway: Option<String>,
    /// Who this device is: a Kubernetes name, of its own among all that serve the cluster [default:
    /// picokube]
    #[arg(long)]
    identity: Option<String>,
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
    #[command(flatten)]
    election: ElectionArguments,
}

/// The name of a device that was told none.
const NAMELESS: &str = "picokube";

impl Configuration {
    /// What serves for a trial on this machine.
    pub(crate) fn trial(server: String) -> Self {
        Self {
            access: AccessArguments { server: Some(server), ..AccessArguments::default() },
            check: false,
            host: None,
            address: None,
            gateway: None,
            identity: None,
            namespace: None,
            qps: 0,
            burst: None,
            status_lag: 100,
            feature_gates: None,
            election: ElectionArguments::default(),
        }
    }

    /// The bytes of the page, and what whoever writes it should know.
    pub(crate) fn page(&self) -> Result<(Vec<u8>, Vec<String>)> {
        let access = self.access.access()?;
        let document = access.apply(Document {
            host: self.host.as_deref(),
            address: self.address.as_deref(),
            gateway: self.gateway.as_deref(),
            identity: self.identity.as_deref().unwrap_or(NAMELESS),
            namespace: self.namespace.as_deref(),
            qps: Some(self.qps),
            burst: self.burst,
            status_lag: Some(self.status_lag),
            feature_gates: self.feature_gates.as_deref(),
            leader_election: self.election.election(self.identity.is_some())?,
            ..Document::default()
        });
        let mut page = [0xff; PAGE];
        let len = write_page(&document, &mut page)?;
        let mut notes = access.notes.clone();
        if self.check {
            notes.push(access.try_out(self.namespace.as_deref())?);
        }
        Ok((page.get(..len).unwrap_or_default().to_vec(), notes))
    }
}

/// Writes the page as Intel HEX, which says where it belongs, or as plain bytes.
pub(crate) fn write(configuration: &Configuration, image: &Image, out: &Path) -> Result<String> {
    let (page, mut said) = configuration.page()?;
    let address = image.configuration_page()?;
    let name = out.display();
    let bytes = match out.extension().and_then(|extension| extension.to_str()) {
        Some("hex") => hex(address as u32, &page).into_bytes(),
        Some("bin") => page,
        _ => bail!("{name} should end in .hex or .bin"),
    };
    write_secret(out, &bytes).with_context(|| format!("cannot write {name}"))?;
    said.push(format!("{name} goes to address {address:#010x}"));
    Ok(said.join("\n"))
}

/// For the owner only: a page has a token or a key in it.
fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
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
    use picokube_config::read_page;
    use picokube_core::time::Duration;

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
    fn a_device_that_is_told_its_name_takes_part_in_an_election() {
        let trial = Configuration::trial("10.0.2.2:8001".to_owned());
        let identity_of = |page: &[u8]| {
            read_page(page).unwrap().leader_election.map(|election| election.identity.to_owned())
        };
        assert_eq!(identity_of(&trial.page().unwrap().0), None);
        let named = Configuration { identity: Some("gateway-7".to_owned()), ..trial };
        assert_eq!(identity_of(&named.page().unwrap().0).as_deref(), Some("gateway-7"));
    }

    #[test]
    fn what_the_firmware_would_refuse_is_refused_here() {
        let trial = Configuration::trial("10.0.2.2:8001".to_owned());
        trial.page().unwrap();
        let named = Configuration { identity: Some("A".to_owned()), ..trial };
        let error = named.page().unwrap_err();
        assert!(error.to_string().contains("`identity`"), "{error}");
        let election = ElectionArguments {
            leader_elect_lease_duration: Some(Duration::from_secs(10)),
            ..ElectionArguments::default()
        };
        let named = Configuration { identity: Some("gateway-7".to_owned()), election, ..named };
        let error = named.page().unwrap_err();
        let relation = "leaseDuration must be greater than renewDeadline";
        assert!(error.to_string().contains(relation), "{error}");
    }
}
