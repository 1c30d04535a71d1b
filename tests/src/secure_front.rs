//! HTTPS in front of a server without it, so that tests can look at the server while a device speaks TLS to
//! it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use picokube_config::{Certificates, ClientKey, Document};
use picokube_qemu::HOST_SEEN_BY_GUEST;
use rustls::HandshakeKind;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::secure_peer::{Options, certificates};

/// Passes on what comes by TLS. It stops when dropped.
pub struct Front {
    address: SocketAddr,
    host: String,
    name: String,
    authority: Vec<u8>,
    client: Option<(Vec<u8>, [u8; 32])>,
    handshakes: Arc<Handshakes>,
    hang_up: watch::Sender<()>,
    _runtime: tokio::runtime::Runtime,
}

/// What a front has counted.
#[derive(Debug, Default)]
struct Handshakes {
    full: AtomicUsize,
    resumed: AtomicUsize,
}

impl Front {
    /// In front of the server at `server`. Who asks for certificates lets nobody in without.
    pub fn of(server: SocketAddr, asks_for_certificate: bool) -> Result<Self> {
        let options = Options { asks_for_certificate, ..Options::default() };
        let (config, authority, client) = certificates(&options)?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let handshakes = Arc::<Handshakes>::default();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let hang_up = watch::Sender::new(());
        let shared = (Arc::clone(&handshakes), hang_up.clone());
        runtime.spawn(serve(listener, acceptor, server, shared));
        let host = format!("{HOST_SEEN_BY_GUEST}:{}", address.port());
        let client = asks_for_certificate.then_some(client);
        let name = options.name;
        Ok(Self { address, host, name, authority, client, handshakes, hang_up, _runtime: runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The page of an emulated device that is to come this way.
    pub fn document(&self) -> Document<'_> {
        let (chain, key) = match &self.client {
            Some((certificate, key)) => (Certificates::one(certificate), Some(ClientKey(key))),
            None => (Certificates::NONE, None),
        };
        Document {
            server: &self.host,
            identity: "device-under-test",
            qps: Some(0),
            tls_server_name: Some(&self.name),
            authorities: Certificates::one(&self.authority),
            client_certificates: chain,
            client_key: key,
            ..Document::default()
        }
    }

    /// Ends all connections without a word.
    pub fn hang_up(&self) {
        self.hang_up.send_replace(());
    }

    /// How often it has proved who it is.
    pub fn full_handshakes(&self) -> usize {
        self.handshakes.full.load(Ordering::SeqCst)
    }

    /// How often a ticket has spared it that.
    pub fn resumed_handshakes(&self) -> usize {
        self.handshakes.resumed.load(Ordering::SeqCst)
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    server: SocketAddr,
    (handshakes, hang_up): (Arc<Handshakes>, watch::Sender<()>),
) {
    while let Ok((outside, _)) = listener.accept().await {
        let (acceptor, handshakes) = (acceptor.clone(), Arc::clone(&handshakes));
        let mut hung_up = hang_up.subscribe();
        tokio::spawn(async move {
            // Where nobody is, there is nobody to speak for.
            let Ok(mut inside) = TcpStream::connect(server).await else { return };
            let _ = (inside.set_nodelay(true), outside.set_nodelay(true));
            let Ok(mut outside) = acceptor.accept(outside).await else { return };
            let count = match outside.get_ref().1.handshake_kind() {
                Some(HandshakeKind::Resumed) => &handshakes.resumed,
                _ => &handshakes.full,
            };
            count.fetch_add(1, Ordering::SeqCst);
            // Either side may hang up.
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut outside, &mut inside) => {}
                _ = hung_up.changed() => {}
            }
        });
    }
}
