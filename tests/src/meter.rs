//! A relay that counts what goes through it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// Nobody pauses for so long within one exchange.
const SILENCE: Duration = Duration::from_millis(60);

/// Stands before a server.
pub struct Meter {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

/// Bytes of all connections, without the headers of TCP and IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// To the server.
    pub sent: u64,
    /// From the server.
    pub received: u64,
}

impl Meter {
    /// Before this server, for as long as the process lives.
    pub fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let counts = Arc::<Counts>::default();
        let of_all = Arc::clone(&counts);
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                // Who is not let in comes again.
                let _ = relay(client, server, &of_all);
            }
        });
        Ok(Self { address, counts })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has been counted, once nothing more comes.
    pub fn bytes_once_silent(&self) -> Bytes {
        let mut last = self.bytes();
        loop {
            thread::sleep(SILENCE);
            let now = self.bytes();
            if now == last {
                return now;
            }
            last = now;
        }
    }

    fn bytes(&self) -> Bytes {
        let read = |count: &AtomicU64| count.load(Ordering::SeqCst);
        Bytes { sent: read(&self.counts.sent), received: read(&self.counts.received) }
    }
}

fn relay(client: TcpStream, server: SocketAddr, counts: &Arc<Counts>) -> Result<()> {
    let server = TcpStream::connect(server)?;
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let (of_client, of_server) = (client.try_clone()?, server.try_clone()?);
    let (sent, received) = (Arc::clone(counts), Arc::clone(counts));
    thread::spawn(move || pass_on(client, server, &sent.sent));
    thread::spawn(move || pass_on(of_server, of_client, &received.received));
    Ok(())
}

/// Until either side hangs up.
fn pass_on(mut from: TcpStream, mut to: TcpStream, count: &AtomicU64) {
    let mut bytes = [0; 16 << 10];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        count.fetch_add(len as u64, Ordering::SeqCst);
        if to.write_all(&bytes[..len]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
