//! rustls, as a server in the same process.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CipherSuite, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
};

use crate::support::authority::Issued;
use crate::support::{NOW, Peer};

/// What a server is like.
pub(crate) struct Setup {
    pub(crate) suite: Option<CipherSuite>,
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
    pub(crate) protocols: Vec<Vec<u8>>,
    /// Whose certificates clients are to have.
    pub(crate) clients: Option<CertificateDer<'static>>,
    pub(crate) largest_record: Option<usize>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            suite: None,
            versions: vec![&rustls::version::TLS13],
            protocols: vec![b"h2".to_vec()],
            clients: None,
            largest_record: None,
        }
    }
}

impl Setup {
    /// With a certificate, those between it and an authority, and the key of `signer`, which may be
    /// another's.
    pub(crate) fn config(&self, chain: &[&Issued], signer: &Issued) -> Arc<ServerConfig> {
        let mut provider = default_provider();
        if let Some(suite) = self.suite {
            provider.cipher_suites.retain(|known| known.suite() == suite);
        }
        let key = provider.key_provider.load_private_key(private_key(signer)).unwrap();
        let chain = chain.iter().map(|issued| issued.der.clone()).collect();
        let provider = Arc::new(provider);
        let builder = ServerConfig::builder_with_details(provider.clone(), Arc::new(Clock))
            .with_protocol_versions(&self.versions)
            .unwrap();
        let builder = match &self.clients {
            Some(authority) => {
                builder.with_client_cert_verifier(clients(authority.clone(), &provider))
            }
            None => builder.with_no_client_auth(),
        };
        let certified = Arc::new(CertifiedKey::new(chain, key));
        let mut config = builder.with_cert_resolver(Arc::new(Always(certified)));
        config.alpn_protocols = self.protocols.clone();
        config.max_fragment_size = self.largest_record;
        Arc::new(config)
    }
}

fn clients(
    authority: CertificateDer<'static>,
    provider: &Arc<CryptoProvider>,
) -> Arc<dyn ClientCertVerifier> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).unwrap();
    let roots = Arc::new(roots);
    WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build().unwrap()
}

fn private_key(issued: &Issued) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(issued.key.serialize_der()).into()
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// The time of the tests' certificates.
#[derive(Debug)]
struct Clock;

impl rustls::time_provider::TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW)))
    }
}

/// A connection at the server's end.
pub(crate) struct Server {
    pub(crate) tls: ServerConnection,
    /// What the application at the server's has got.
    pub(crate) got: Vec<u8>,
    pub(crate) error: Option<rustls::Error>,
    waiting: VecDeque<u8>,
    /// All that was ever given to the client.
    pub(crate) given: Vec<u8>,
    /// The most bytes that the transport delivers at once.
    pub(crate) piece: usize,
}

impl Server {
    pub(crate) fn new(config: &Arc<ServerConfig>) -> Self {
        let tls = ServerConnection::new(config.clone()).unwrap();
        let (got, given, waiting) = Default::default();
        Self { tls, got, error: None, waiting, given, piece: usize::MAX }
    }

    pub(crate) fn write(&mut self, data: &[u8]) {
        self.tls.set_buffer_limit(None);
        self.tls.writer().write_all(data).unwrap();
    }
}

impl Peer for Server {
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.error.is_none() {
            self.tls.read_tls(&mut bytes).unwrap();
            self.error = self.tls.process_new_packets().err();
            // That there is nothing at the moment is an error, too.
            let _ = self.tls.reader().read_to_end(&mut self.got);
        }
    }

    fn give(&mut self, space: &mut [u8]) -> usize {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.waiting).unwrap();
        }
        let count = space.len().min(self.waiting.len()).min(self.piece);
        let from = self.given.len();
        self.given.extend(self.waiting.drain(..count));
        space[..count].copy_from_slice(&self.given[from..]);
        count
    }
}
