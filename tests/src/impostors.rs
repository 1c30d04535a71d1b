//! Servers that are not the one that a client looks for, each in its way, and keep all that they are told.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, Stream, SupportedProtocolVersion};

/// The name of the server that clients look for.
pub const NAME: &str = "kubernetes";
/// What nobody but that server may be told.
pub const SECRET: &str = "nobody-else-may-know";

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It speaks HTTP without TLS.
    NoTls,
    /// It speaks TLS 1.2.
    OldVersion,
    /// It does not say which protocol it speaks.
    NoProtocol,
    /// It speaks HTTP/1.1 only.
    OldProtocol,
    /// Its certificate is of another authority.
    OtherAuthority,
    /// Its certificate is of an authority that has the right name and another key.
    ForgedAuthority,
    /// Its certificate is that of the authority itself.
    Authority,
    /// Its certificate is signed by that of a client of the right authority.
    SignedByLeaf,
    /// Its certificate is for another name.
    OtherName,
    /// Its certificate is over.
    Expired,
    /// Its certificate is for clients.
    ForClients,
    /// The key of its certificate may not sign.
    MayNotSign,
    /// It does not have the key of its certificate.
    OtherKey,
    /// None.
    None,
}

impl Flaw {
    /// All there are.
    pub const ALL: [Self; 13] = [
        Self::NoTls,
        Self::OldVersion,
        Self::NoProtocol,
        Self::OldProtocol,
        Self::OtherAuthority,
        Self::ForgedAuthority,
        Self::Authority,
        Self::SignedByLeaf,
        Self::OtherName,
        Self::Expired,
        Self::ForClients,
        Self::MayNotSign,
        Self::OtherKey,
    ];
}

/// An authority, and what it issues.
pub struct Authority {
    params: CertificateParams,
    key: KeyPair,
    /// Its certificate.
    pub der: Vec<u8>,
}

impl Authority {
    /// The one that clients are to trust.
    pub fn new() -> Result<Self> {
        Self::named("the cluster's")
    }

    fn named(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new([NAME.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let der = params.self_signed(&key)?.der().to_vec();
        Ok(Self { params, key, der })
    }

    /// A certificate for a server, its own first, and its key.
    fn issue(&self, change: impl Fn(&mut CertificateParams)) -> Result<Shown> {
        let mut params = CertificateParams::new([NAME.to_owned()])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_params(&self.params, &self.key);
        Ok(Shown { chain: vec![params.signed_by(&key, &issuer)?.der().clone()], params, key })
    }

    /// What a server with this flaw shows.
    fn shown(&self, flaw: Flaw) -> Result<Shown> {
        match flaw {
            Flaw::OtherAuthority => Self::named("another")?.issue(|_| {}),
            Flaw::ForgedAuthority => Self::new()?.issue(|_| {}),
            Flaw::Authority => Ok(Shown {
                chain: vec![CertificateDer::from(self.der.clone())],
                params: self.params.clone(),
                key: KeyPair::from_pkcs8_der_and_sign_algo(
                    &PrivatePkcs8KeyDer::from(self.key.serialize_der()),
                    &rcgen::PKCS_ECDSA_P256_SHA256,
                )?,
            }),
            Flaw::SignedByLeaf => {
                let leaf = self.issue(for_clients)?;
                let forger = Self { params: leaf.params, key: leaf.key, der: Vec::new() };
                let mut forged = forger.issue(|_| {})?;
                forged.chain.extend(leaf.chain);
                Ok(forged)
            }
            Flaw::OtherName => self.issue(|params| {
                params.subject_alt_names.truncate(0);
                let name = "example.org".try_into();
                params.subject_alt_names.extend(name.map(rcgen::SanType::DnsName));
            }),
            Flaw::Expired => self.issue(|params| params.not_after = date_time_ymd(2025, 1, 1)),
            Flaw::ForClients => self.issue(for_clients),
            Flaw::MayNotSign => {
                self.issue(|params| params.key_usages = vec![KeyUsagePurpose::KeyEncipherment])
            }
            Flaw::OtherKey => Ok(Shown { key: KeyPair::generate()?, ..self.issue(|_| {})? }),
            Flaw::NoTls | Flaw::OldVersion | Flaw::NoProtocol | Flaw::OldProtocol | Flaw::None => {
                self.issue(|_| {})
            }
        }
    }

    /// How a server with this flaw speaks TLS, if it does.
    fn server(&self, flaw: Flaw) -> Result<Option<Arc<ServerConfig>>> {
        if flaw == Flaw::NoTls {
            return Ok(None);
        }
        let Shown { chain, key, .. } = self.shown(flaw)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        // Not looked at: the key may be somebody else's.
        let certified = CertifiedKey::new(chain, any_supported_type(&key)?);
        let versions: &[&SupportedProtocolVersion] = match flaw {
            Flaw::OldVersion => &[&rustls::version::TLS12],
            _ => &[&rustls::version::TLS13],
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(Arc::new(certified))));
        config.alpn_protocols = match flaw {
            Flaw::NoProtocol => Vec::new(),
            Flaw::OldProtocol => vec![b"http/1.1".to_vec()],
            _ => vec![b"h2".to_vec()],
        };
        Ok(Some(Arc::new(config)))
    }

    /// One server for each connection, in this order, all at one address. What each was told comes when its
    /// connection has ended, or when it was told the secret.
    pub fn serve(&self, flaws: &[Flaw]) -> Result<(SocketAddr, Receiver<Heard>)> {
        let servers: Vec<_> = flaws.iter().map(|flaw| self.server(*flaw)).collect::<Result<_>>()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for server in servers {
                let Ok((socket, _)) = listener.accept() else { return };
                // The test has ended.
                if hear(server, socket, &sender).is_err() {
                    return;
                }
            }
        });
        Ok((address, receiver))
    }
}

fn for_clients(params: &mut CertificateParams) {
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
}

/// What a server shows, and the key with which it signs.
struct Shown {
    chain: Vec<CertificateDer<'static>>,
    params: CertificateParams,
    key: KeyPair,
}

/// Shows one certificate to everybody.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// What a server was told: on the wire, and behind TLS.
#[derive(Default)]
pub struct Heard {
    wire: Vec<u8>,
    plain: Vec<u8>,
}

impl Heard {
    /// Whether the secret was among it.
    pub fn has_secret(&self) -> bool {
        let has = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        has(&self.wire) || has(&self.plain)
    }

    /// Fails unless a client has spoken to the server, and has told it nothing behind TLS, and no secret.
    pub fn check_that_nothing_was_told(&self) -> Result<()> {
        ensure!(!self.wire.is_empty(), "the client has said nothing at all");
        let told = String::from_utf8_lossy(&self.plain);
        ensure!(self.plain.is_empty(), "told to an impostor: {told}");
        ensure!(!self.has_secret(), "the secret went to an impostor");
        Ok(())
    }
}

fn hear(tls: Option<Arc<ServerConfig>>, socket: TcpStream, sender: &Sender<Heard>) -> Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let wire = Arc::new(Mutex::new(Vec::new()));
    let mut socket = Recorded { socket, wire: Arc::clone(&wire) };
    let mut plain = Vec::new();
    match tls {
        None => {
            // All that it says is on the wire.
            let _ = socket.read(&mut [0; 1024]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            let _ = socket.read_to_end(&mut Vec::new());
        }
        Some(config) => {
            let mut tls = ServerConnection::new(config)?;
            let mut stream = Stream::new(&mut tls, &mut socket);
            // The settings of HTTP/2, which clients wait for before they ask anything.
            let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
            let mut bytes = [0; 1024];
            // Until the client hangs up, which it has to, or has said enough.
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                plain.extend(&bytes[..count]);
                if (Heard { plain: plain.clone(), ..Heard::default() }).has_secret() {
                    break;
                }
            }
        }
    }
    let wire = std::mem::take(&mut *wire.lock().unwrap_or_else(PoisonError::into_inner));
    sender.send(Heard { wire, plain })?;
    Ok(())
}

/// A connection of which everything is kept that comes.
struct Recorded {
    socket: TcpStream,
    wire: Arc<Mutex<Vec<u8>>>,
}

impl Read for Recorded {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let count = self.socket.read(room)?;
        self.wire.lock().unwrap_or_else(PoisonError::into_inner).extend(&room[..count]);
        Ok(count)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}
