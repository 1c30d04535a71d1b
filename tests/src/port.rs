//! Ports of the loopback that stay a test's while nobody listens at them: for programs that have to be told
//! theirs, and for servers that go and come back.

use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Not those that the system hands out to whoever asks for any, or connects to anybody: one of these could
/// not be listened at again.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A TCP port that no other test gets as long as this lives, whether or not somebody listens at it.
///
/// Whoever has the UDP port of the same number has it: between looking and listening, and while a device is
/// off, the TCP port itself is anybody's.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _claim: UdpSocket,
}

impl Port {
    /// One at which nobody listens.
    pub fn free() -> Result<Self> {
        static TRIED: AtomicU32 = AtomicU32::new(0);
        let count = u32::from(PORTS.end - PORTS.start);
        // Test programs that run at a time begin far from each other.
        let first = std::process::id().wrapping_mul(7_919);
        for _ in PORTS {
            let tried = TRIED.fetch_add(1, Ordering::Relaxed);
            let number = PORTS.start + (first.wrapping_add(tried) % count) as u16;
            if let Some(port) = Self::claim((Ipv4Addr::LOCALHOST, number).into()) {
                return Ok(port);
            }
        }
        Err(Error::new(ErrorKind::AddrNotAvailable, format!("no port of {PORTS:?} is free")))
    }

    fn claim(address: SocketAddr) -> Option<Self> {
        let claim = UdpSocket::bind(address).ok()?;
        TcpListener::bind(address).ok()?;
        Some(Self { address, _claim: claim })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_one_test_s_until_it_is_given_back() {
        let port = Port::free().expect("a port");
        let address = port.address();
        assert!(Port::claim(address).is_none(), "somebody else's");
        let listener = TcpListener::bind(address).expect("its owner may listen");
        drop(port);
        assert!(Port::claim(address).is_none(), "somebody listens");
        drop(listener);
        assert!(Port::claim(address).is_some(), "nobody's any more");
    }
}
