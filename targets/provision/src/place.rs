//! Where a server is: from a URL to an address that a device without DNS can use.

use std::net::{IpAddr, SocketAddr, SocketAddrV4, ToSocketAddrs};

use anyhow::{Context, Result, bail, ensure};

/// Where a server is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: SocketAddrV4,
    /// Host and port, as clients write them.
    pub(crate) authority: String,
    /// The host alone.
    pub(crate) host: String,
    /// Whether it speaks TLS.
    pub(crate) is_secure: bool,
}

impl Place {
    /// The server at a URL; at `HOST:PORT`, it speaks plain HTTP.
    pub(crate) fn find(url: &str) -> Result<Self> {
        let (is_secure, default_port, rest) = match url.split_once("://") {
            Some(("https", rest)) => (true, 443, rest),
            Some(("http", rest)) => (false, 80, rest),
            Some((scheme, _)) => {
                bail!("{url}: a server has https:// or http:// in front, not {scheme}://")
            }
            None => (false, 80, url),
        };
        let authority = rest.trim_end_matches('/');
        ensure!(
            !authority.contains('/'),
            "{url}: a path is not supported; picokube asks at the root"
        );
        // Without the URL, which has the password in it.
        ensure!(
            !authority.contains('@'),
            "a server with a name and password is not supported; give a token"
        );
        ensure!(
            !authority.contains(['[', ']']),
            "{url}: the device speaks IPv4 only; give an IPv4 address of the server"
        );
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (
                host,
                port.parse()
                    .with_context(|| format!("{url}: the port is no number up to 65535"))?,
            ),
            None => (authority, default_port),
        };
        ensure!(!host.is_empty(), "{url}: the host is missing; give https://HOST:PORT");
        let address =
            find(host, port).with_context(|| format!("{url}: cannot find the server's address"))?;
        let ip = address.ip();
        ensure!(
            !ip.is_loopback() && !ip.is_unspecified(),
            "{url} leads to {ip}, which to the device is the device itself: give the address by which \
             others reach the server, with --server https://ADDRESS:{port}"
        );
        let authority =
            if authority == host { format!("{host}:{port}") } else { authority.to_owned() };
        Ok(Self { address, authority, host: host.to_owned(), is_secure })
    }

    /// The name that had to be looked up.
    pub(crate) fn resolved_name(&self) -> Option<&str> {
        self.host.parse::<IpAddr>().is_err().then_some(&self.host)
    }
}

fn find(host: &str, port: u16) -> Result<SocketAddrV4> {
    let mut found = (host, port)
        .to_socket_addrs()
        .context("is the name right, and does this machine have DNS?")?;
    found
        .find_map(|address| match address {
            SocketAddr::V4(address) => Some(address),
            SocketAddr::V6(_) => None,
        })
        .context("it has no IPv4 address, and the device speaks nothing else")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lead_to_addresses() {
        let found = |url| {
            let Place { address, authority, host, is_secure } = Place::find(url).unwrap();
            (address.to_string(), authority, host, is_secure)
        };
        let of = |address: &str, host: &str, is_secure| {
            (address.to_owned(), address.to_owned(), host.to_owned(), is_secure)
        };
        assert_eq!(
            found("https://192.168.1.10:6443"),
            of("192.168.1.10:6443", "192.168.1.10", true)
        );
        assert_eq!(found("https://192.168.1.10/"), of("192.168.1.10:443", "192.168.1.10", true));
        assert_eq!(found("http://192.168.1.10"), of("192.168.1.10:80", "192.168.1.10", false));
        assert_eq!(found("192.168.1.10:8001"), of("192.168.1.10:8001", "192.168.1.10", false));
        assert_eq!(Place::find("https://192.168.1.10").unwrap().resolved_name(), None);
    }

    #[test]
    fn what_no_device_can_reach_is_refused() {
        for (url, said) in [
            ("ftp://192.168.1.10", "https:// or http:// in front"),
            ("https://192.168.1.10:6443/k8s/clusters/c-1", "a path is not supported"),
            ("https://me:secret@192.168.1.10", "name and password is not supported"),
            ("https://[fd00::1]:6443", "IPv4 only"),
            ("https://192.168.1.10:99999", "the port is no number"),
            ("https://:6443", "the host is missing"),
            ("", "the host is missing"),
            ("https://127.0.0.1:6443", "--server https://ADDRESS:6443"),
            ("https://localhost:6443", "is the device itself"),
            ("https://0.0.0.0:6443", "is the device itself"),
            ("https://no such name:6443", "cannot find the server's address"),
        ] {
            let error = format!("{:#}", Place::find(url).unwrap_err());
            assert!(error.contains(said), "{url}: {error}");
        }
    }
}
