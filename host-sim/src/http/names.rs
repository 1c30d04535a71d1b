//! Under which names and addresses a server is reached.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context, Result};
use rustls::pki_types::ServerName;

/// Names that every server has: those of its own machine, and those within a cluster.
const USUAL: [&str; 8] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster",
    "kubernetes.default.svc.cluster.local",
];

/// The names and addresses that a server certificate is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNames {
    names: Vec<String>,
    /// What others reach the server by.
    outside: String,
}

impl ServerNames {
    /// The names of a server that listens at `address`: that address, or all addresses of this
    /// machine and its name; and before these whatever was given.
    pub fn of(address: IpAddr, given: &[String]) -> Result<Self> {
        for name in given {
            check(name).with_context(|| {
                format!("--tls-san {name}: this is neither an IP address nor a DNS name")
            })?;
        }
        let mut names: Vec<String> = given.iter().map(|name| unbracketed(name)).collect();
        if address.is_unspecified() {
            let own = addresses().into_iter().filter(|own| fits(*own, address));
            names.extend(own.map(|address| address.to_string()));
            names.extend(host_name());
        } else {
            names.push(address.to_string());
        }
        // A wildcard is no name to ask for.
        let first = given.iter().map(|name| unbracketed(name)).find(|name| !name.starts_with('*'));
        let outside = first.unwrap_or_else(|| match address.is_unspecified() {
            true => outward(address).to_string(),
            false => address.to_string(),
        });
        names.extend(USUAL.map(str::to_owned));
        names.push(outside.clone());
        names.sort();
        names.dedup();
        Ok(Self { names, outside })
    }

    /// All of them.
    pub fn all(&self) -> &[String] {
        &self.names
    }

    /// `host:port` for clients on other machines.
    pub fn authority(&self, port: u16) -> String {
        match self.outside.parse() {
            Ok(address) => SocketAddr::new(address, port).to_string(),
            Err(_) => format!("{}:{port}", self.outside),
        }
    }
}

/// A name as TLS clients ask for it; the star of a wildcard counts as a name.
pub fn server_name(name: &str) -> Result<ServerName<'static>> {
    Ok(ServerName::try_from(name.replacen("*.", "any.", 1))?)
}

fn check(name: &str) -> Result<()> {
    let name = unbracketed(name);
    anyhow::ensure!(!name.is_empty(), "it is empty");
    server_name(&name).map(drop)
}

/// IPv6 addresses may be given as URLs have them.
fn unbracketed(name: &str) -> String {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(name).to_owned()
}

/// Whether a server that listens at a wildcard is reached by an address of this machine: `[::]`
/// stands for both families.
fn fits(own: IpAddr, wildcard: IpAddr) -> bool {
    own.is_ipv4() || wildcard.is_ipv6()
}

/// The address from which this machine would speak to others; loopback if there are none. Nothing
/// is sent: a UDP socket that is connected only looks for a route.
fn outward(wildcard: IpAddr) -> IpAddr {
    // Addresses that were set aside for documentation stand for the rest of the world.
    let v4: (IpAddr, SocketAddr) = ([0, 0, 0, 0].into(), ([192, 0, 2, 255], 9).into());
    let v6 = ([0; 16].into(), ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9).into());
    let ways = if wildcard.is_ipv6() { vec![v4, v6] } else { vec![v4] };
    let routed = ways.into_iter().find_map(|(from, to): (IpAddr, SocketAddr)| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect(to).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_unspecified() && !address.is_loopback()).then_some(address)
    });
    let mut own = addresses().into_iter().filter(|own| fits(*own, wildcard) && !own.is_loopback());
    routed.or_else(|| own.next()).unwrap_or(match wildcard {
        IpAddr::V4(_) => [127, 0, 0, 1].into(),
        IpAddr::V6(_) => [0, 0, 0, 0, 0, 0, 0, 1].into(),
    })
}

/// The addresses of all interfaces, but for those that need to be told the interface as well.
#[cfg(unix)]
fn addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.filter(|address| !is_link_local(*address)).collect()
}

#[cfg(not(unix))]
fn addresses() -> Vec<IpAddr> {
    Vec::new()
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80)
}

/// The name of this machine, if it can stand in a certificate.
fn host_name() -> Option<String> {
    #[cfg(unix)]
    let name = nix::unistd::gethostname().ok()?.into_string().ok()?;
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").ok()?;
    check(&name).is_ok().then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_concrete_address_is_named_and_led_to() {
        let names = ServerNames::of([127, 0, 0, 2].into(), &[]).unwrap();
        assert!(names.all().contains(&"127.0.0.2".to_owned()));
        assert_eq!(names.authority(6443), "127.0.0.2:6443");
        let names = ServerNames::of("2001:db8::7".parse().unwrap(), &[]).unwrap();
        assert_eq!(names.authority(6443), "[2001:db8::7]:6443");
    }

    #[test]
    fn the_first_given_name_is_led_to() {
        let wildcard = [0, 0, 0, 0].into();
        let names = given(&["*.example.test", "ci.example.test", "192.0.2.7", "[2001:db8::7]"]);
        let names = ServerNames::of(wildcard, &names).unwrap();
        assert_eq!(names.authority(1), "ci.example.test:1");
        for name in ["*.example.test", "192.0.2.7", "2001:db8::7", "127.0.0.1", "localhost"] {
            assert!(names.all().contains(&name.to_owned()), "{name}");
        }
        for wrong in ["", "a b", "http://x", "-x", "x:6443", "*"] {
            let error = ServerNames::of(wildcard, &given(&[wrong])).unwrap_err();
            assert!(format!("{error:#}").contains("--tls-san"), "{wrong}: {error:#}");
        }
    }

    #[test]
    fn a_wildcard_stands_for_every_address_of_this_machine() {
        let names = ServerNames::of([0, 0, 0, 0].into(), &[]).unwrap();
        for address in addresses().into_iter().filter(IpAddr::is_ipv4) {
            assert!(names.all().contains(&address.to_string()), "{address}");
        }
        let outside = names.authority(1);
        let others = addresses().into_iter().any(|own| own.is_ipv4() && !own.is_loopback());
        assert!(!others || !outside.starts_with("127."), "{outside} leads nobody here");
    }
}
