//! A TLS 1.3 server that does whatever a test wants, and remembers all that a client has sent.
//!
//! It computes with ring, so that a mistake of the client's cannot hide behind the same one here.

use std::collections::VecDeque;

use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::SystemRandom;

use crate::support::Peer;
use crate::support::authority::Issued;

pub(crate) const CHACHA20: u16 = 0x1303;
pub(crate) const AES: u16 = 0x1301;

type Replace<'a, T> = Box<dyn Fn(u8, Vec<u8>) -> T + 'a>;
type Make<'a> = Box<dyn Fn(&[u8]) -> Vec<u8> + 'a>;

/// What a test changes. Each is called with what an honest server would send.
pub(crate) struct Script<'a> {
    pub(crate) suite: u16,
    pub(crate) certificates: Vec<&'a Issued>,
    pub(crate) signer: &'a Issued,
    /// The ServerHello.
    pub(crate) hello: Box<dyn Fn(Vec<u8>) -> Vec<u8> + 'a>,
    /// Each other message of the handshake, by its kind: what is sent in its place.
    pub(crate) message: Replace<'a, Vec<Vec<u8>>>,
    /// What is sent before everything else, as it is.
    pub(crate) first: Vec<u8>,
    /// The first hello is answered with this message, and the second with a ServerHello.
    pub(crate) retry: Option<Make<'a>>,
    /// The records, of kind and content, that follow a handshake at once, all in the connection's key.
    pub(crate) afterwards: Vec<(u8, Vec<u8>)>,
    /// Whether all messages after ServerHello are in one record.
    pub(crate) is_coalesced: bool,
}

impl<'a> Script<'a> {
    pub(crate) fn honest(issued: &'a Issued) -> Self {
        Self {
            suite: CHACHA20,
            certificates: vec![issued],
            signer: issued,
            hello: Box::new(|hello| hello),
            message: Box::new(|_, message| vec![message]),
            first: Vec::new(),
            retry: None,
            afterwards: Vec::new(),
            is_coalesced: true,
        }
    }
}

pub(crate) struct Puppet<'a> {
    script: Script<'a>,
    incoming: Vec<u8>,
    outgoing: VecDeque<u8>,
    transcript: Vec<u8>,
    hellos: usize,
    handshake: Option<[Direction; 2]>,
    application: Option<[Direction; 2]>,
    /// Kind and content of all records from the client, deciphered where they were not plain; of kind 0, and
    /// whole, where that is not possible.
    pub(crate) seen: Vec<(u8, Vec<u8>)>,
    /// The client's hellos.
    pub(crate) client_hellos: Vec<Vec<u8>>,
    is_finished: bool,
}

/// What protects one direction.
#[derive(Clone)]
struct Direction {
    suite: u16,
    secret: Vec<u8>,
    number: u64,
}

impl<'a> Puppet<'a> {
    pub(crate) fn new(script: Script<'a>) -> Self {
        Self {
            script,
            incoming: Vec::new(),
            outgoing: VecDeque::new(),
            transcript: Vec::new(),
            hellos: 0,
            handshake: None,
            application: None,
            seen: Vec::new(),
            client_hellos: Vec::new(),
            is_finished: false,
        }
    }

    /// Whether the client has sent anything of its application's, or that could be: a record that cannot be
    /// opened and is longer than an alert.
    pub(crate) fn has_data(&self) -> bool {
        const ALERT: usize = 5 + 2 + 1 + 16;
        self.seen.iter().any(|(kind, content)| *kind == 23 || *kind == 0 && content.len() != ALERT)
    }

    /// The last alert of the client's.
    pub(crate) fn alert(&self) -> Option<u8> {
        self.seen.iter().rev().find(|(kind, _)| *kind == 21).map(|(_, content)| content[1])
    }

    /// Sends bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.outgoing.extend(bytes);
    }

    /// Sends a protected record.
    pub(crate) fn send(&mut self, kind: u8, content: &[u8]) {
        let mut inner = content.to_vec();
        inner.push(kind);
        self.send_inner(&inner);
    }

    /// Sends a protected record whose kind, and padding, is in it already.
    pub(crate) fn send_inner(&mut self, inner: &[u8]) {
        let [server, _] = self.application.as_mut().unwrap();
        let record = server.seal(inner);
        self.outgoing.extend(record);
    }

    /// Goes on with the next key.
    pub(crate) fn change_key(&mut self) {
        let [server, _] = self.application.as_mut().unwrap();
        *server = server.next();
    }

    fn take_record(&mut self) -> Option<(u8, Vec<u8>)> {
        let [kind, _, _, high, low] = *self.incoming.first_chunk()?;
        let end = 5 + usize::from(u16::from_be_bytes([high, low]));
        let record: Vec<u8> = self.incoming.get(..end)?.to_vec();
        self.incoming.drain(..end);
        let keys = if self.is_finished { &mut self.application } else { &mut self.handshake };
        match (kind, keys) {
            (23, Some([_, client])) => Some(client.open(&record).unwrap_or((0, record))),
            _ => Some((kind, record[5..].to_vec())),
        }
    }

    fn client_hello(&mut self, message: &[u8]) {
        self.client_hellos.push(message.to_vec());
        self.hellos += 1;
        if let (1, Some(retry)) = (self.hellos, &self.script.retry) {
            let retry = retry(&session(message));
            self.transcript = [&[254, 0, 0, 32][..], &sha256(message)].concat();
            self.transcript.extend(&retry);
            self.outgoing.extend(plain(22, &retry));
            return;
        }
        self.transcript.extend(message);
        let key = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        let share = key.compute_public_key().unwrap();
        let hello = server_hello(self.script.suite, &session(message), share.as_ref());
        let hello = (self.script.hello)(hello);
        self.transcript.extend(&hello);
        let first = std::mem::take(&mut self.script.first);
        self.outgoing.extend(first);
        self.outgoing.extend(plain(22, &hello));
        let theirs = key_share(message);
        let shared =
            agree_ephemeral(key, &UnparsedPublicKey::new(&ECDH_P256, theirs), <[u8]>::to_vec);
        self.flight(&shared.unwrap());
    }

    fn flight(&mut self, shared: &[u8]) {
        let suite = self.script.suite;
        let empty = sha256(&[]);
        let early = mac(&[0; 32], &[0; 32]);
        let secret = mac(&expand(&early, b"derived", &empty, 32), shared);
        let said = sha256(&self.transcript);
        let direction = |secret: &[u8], label: &[u8], said: &[u8]| Direction {
            suite,
            secret: expand(secret, label, said, 32),
            number: 0,
        };
        let mut server = direction(&secret, b"s hs traffic", &said);
        let client = direction(&secret, b"c hs traffic", &said);
        let mut messages = Vec::new();
        for kind in [8, 11, 15, 20] {
            let honest = match kind {
                8 => message(8, &[0, 9, 0, 16, 0, 5, 0, 3, 2, b'h', b'2']),
                11 => certificate(&self.script.certificates),
                15 => self.certificate_verify(),
                _ => {
                    let key = expand(&server.secret, b"finished", &[], 32);
                    message(20, &mac(&key, &sha256(&self.transcript)))
                }
            };
            for message in (self.script.message)(kind, honest) {
                self.transcript.extend(&message);
                messages.push(message);
            }
        }
        if self.script.is_coalesced {
            messages = vec![messages.concat()];
        }
        for message in messages {
            for piece in message.chunks(16_384) {
                let inner = [piece, &[22]].concat();
                self.outgoing.extend(server.seal(&inner));
            }
        }
        let said = sha256(&self.transcript);
        let master = mac(&expand(&secret, b"derived", &empty, 32), &[0; 32]);
        self.handshake = Some([server, client]);
        let server = direction(&master, b"s ap traffic", &said);
        let client = direction(&master, b"c ap traffic", &said);
        self.application = Some([server, client]);
        for (kind, content) in std::mem::take(&mut self.script.afterwards) {
            self.send(kind, &content);
        }
    }

    fn certificate_verify(&self) -> Vec<u8> {
        use rcgen::SigningKey;
        let mut signed = vec![0x20; 64];
        signed.extend(b"TLS 1.3, server CertificateVerify\0");
        signed.extend(sha256(&self.transcript));
        let signature = self.script.signer.key.sign(&signed).unwrap();
        let length = (signature.len() as u16).to_be_bytes();
        message(15, &[&[4, 3][..], &length, &signature].concat())
    }
}

impl Peer for Puppet<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.incoming.extend(bytes);
        while let Some((kind, content)) = self.take_record() {
            self.seen.push((kind, content.clone()));
            match (kind, content.first()) {
                (22, Some(1)) => self.client_hello(&content),
                (22, Some(20)) => self.is_finished = true,
                (22, Some(24)) => {
                    let [_, client] = self.application.as_mut().unwrap();
                    *client = client.next();
                }
                _ => {}
            }
        }
    }

    fn give(&mut self, space: &mut [u8]) -> usize {
        let count = space.len().min(self.outgoing.len());
        space.iter_mut().zip(self.outgoing.drain(..count)).for_each(|(place, byte)| *place = byte);
        count
    }
}

impl Direction {
    fn next(&self) -> Self {
        Self { secret: expand(&self.secret, b"traffic upd", &[], 32), number: 0, ..*self }
    }

    fn cipher(&self) -> (LessSafeKey, Nonce) {
        let (algorithm, length) =
            if self.suite == AES { (&AES_128_GCM, 16) } else { (&CHACHA20_POLY1305, 32) };
        let key = expand(&self.secret, b"key", &[], length);
        let mut nonce: [u8; 12] = expand(&self.secret, b"iv", &[], 12).try_into().unwrap();
        nonce
            .iter_mut()
            .skip(4)
            .zip(self.number.to_be_bytes())
            .for_each(|(place, byte)| *place ^= byte);
        let key = LessSafeKey::new(UnboundKey::new(algorithm, &key).unwrap());
        (key, Nonce::assume_unique_for_key(nonce))
    }

    fn seal(&mut self, inner: &[u8]) -> Vec<u8> {
        let (key, nonce) = self.cipher();
        self.number += 1;
        let [high, low] = ((inner.len() + 16) as u16).to_be_bytes();
        let header = [23, 3, 3, high, low];
        let mut body = inner.to_vec();
        key.seal_in_place_append_tag(nonce, Aad::from(header), &mut body).unwrap();
        [&header[..], &body].concat()
    }

    fn open(&mut self, record: &[u8]) -> Option<(u8, Vec<u8>)> {
        let (key, nonce) = self.cipher();
        self.number += 1;
        let mut body = record[5..].to_vec();
        let inner = key.open_in_place(nonce, Aad::from(&record[..5]), &mut body).ok()?;
        let last = inner.iter().rposition(|byte| *byte != 0).unwrap();
        Some((inner[last], inner[..last].to_vec()))
    }
}

/// A record that is not protected.
pub(crate) fn plain(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[kind, 3, 3, high, low][..], content].concat()
}

/// A message of the handshake.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = (body.len() as u32).to_be_bytes();
    [&[kind, high, middle, low][..], body].concat()
}

/// A Certificate.
pub(crate) fn certificate(chain: &[&Issued]) -> Vec<u8> {
    let length = |length: usize| (length as u32).to_be_bytes()[1..].to_vec();
    let entry = |issued: &&Issued| [&length(issued.der.len())[..], &issued.der, &[0, 0]].concat();
    let entries: Vec<u8> = chain.iter().flat_map(entry).collect();
    message(11, &[&[0][..], &length(entries.len()), &entries].concat())
}

/// A ServerHello with these extensions.
pub(crate) fn hello(random: [u8; 32], session: &[u8], suite: u16, extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend(random);
    body.push(session.len() as u8);
    body.extend(session);
    body.extend(suite.to_be_bytes());
    body.push(0);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    message(2, &body)
}

/// A HelloRetryRequest with these extensions.
pub(crate) fn retry(session: &[u8], suite: u16, extensions: &[u8]) -> Vec<u8> {
    hello(sha256(b"HelloRetryRequest").try_into().unwrap(), session, suite, extensions)
}

fn server_hello(suite: u16, session: &[u8], share: &[u8]) -> Vec<u8> {
    let mut extensions = vec![0, 43, 0, 2, 3, 4, 0, 51, 0, 69, 0, 23, 0, 65];
    extensions.extend(share);
    hello([7; 32], session, suite, &extensions)
}

/// The session in a ClientHello.
fn session(hello: &[u8]) -> Vec<u8> {
    hello[39..39 + usize::from(hello[38])].to_vec()
}

/// The point in a ClientHello, which stands behind group and length.
fn key_share(hello: &[u8]) -> &[u8] {
    let at = hello.windows(5).position(|bytes| bytes == [0, 23, 0, 65, 4]).unwrap();
    &hello[at + 4..at + 69]
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA256, bytes).as_ref().to_vec()
}

fn mac(key: &[u8], content: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, key), content).as_ref().to_vec()
}

fn expand(secret: &[u8], label: &[u8], context: &[u8], length: u8) -> Vec<u8> {
    let label = [b"tls13 ", label].concat();
    let mut info = vec![0, length, label.len() as u8];
    info.extend(&label);
    info.push(context.len() as u8);
    info.extend(context);
    info.push(1);
    let mut output = mac(secret, &info);
    output.truncate(length.into());
    output
}
