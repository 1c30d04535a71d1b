//! Servers that break the rules of the handshake: each is refused with its own error and its own alert, and
//! none gets the token.

use picokube_tls::{Alert, Config, Error, Handshake, Step, Time, Violation};

use crate::puppet::{self, AES, CHACHA20, Puppet, Script, hello, message, plain};
use crate::support::authority::{Issued, authority};
use crate::support::{NOW, Options, Peer, TOKEN, attempt, seed};

struct Stage {
    authority: Issued,
    issued: Issued,
    other: Issued,
}

impl Stage {
    fn new() -> Self {
        let authority = authority("ca");
        let (issued, other) = (authority.server(|_| {}), authority.server(|_| {}));
        Self { authority, issued, other }
    }

    /// What a client says to a server with these changes, and what it tells it.
    fn play<'a>(
        &'a self,
        change: impl FnOnce(&mut Script<'a>),
    ) -> (Result<(), Error>, Option<Alert>) {
        let mut script = Script::honest(&self.issued);
        change(&mut script);
        let mut puppet = Puppet::new(script);
        let anchors: [&[u8]; 1] = [&self.authority.der];
        let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
        let result = attempt(&Options::new(&config), &mut puppet);
        assert_eq!(puppet.has_data(), result.is_ok(), "the token is for proven servers");
        (result, puppet.alert().map(Alert))
    }

    fn refused<'a>(&'a self, change: impl FnOnce(&mut Script<'a>)) -> Error {
        let (result, alert) = self.play(change);
        let error = result.unwrap_err();
        assert_eq!(alert, error.alert(), "{error:?}");
        error
    }

    /// A server whose message of this kind is replaced.
    fn replaced<'a>(&'a self, kind: u8, replace: impl Fn(Vec<u8>) -> Vec<Vec<u8>> + 'a) -> Error {
        self.refused(|script| {
            script.message = Box::new(
                move |found, message| {
                    if found == kind { replace(message) } else { vec![message] }
                },
            );
        })
    }

    /// A server whose ServerHello is changed.
    fn with_hello<'a>(&'a self, change: impl Fn(Vec<u8>) -> Vec<u8> + 'a) -> Error {
        self.refused(|script| script.hello = Box::new(change))
    }
}

fn violation(violation: Violation) -> Error {
    Error::Violation(violation)
}

/// A message with another body.
fn with_body(message: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = message[4..].to_vec();
    change(&mut body);
    puppet::message(message[0], &body)
}

#[test]
fn an_honest_one_is_not_refused() {
    let stage = Stage::new();
    for suite in [CHACHA20, AES] {
        for is_coalesced in [true, false] {
            let (result, alert) = stage.play(|script| {
                script.suite = suite;
                script.is_coalesced = is_coalesced;
            });
            assert_eq!((result, alert), (Ok(()), None));
        }
    }
}

const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;
const CERTIFICATE_VERIFY: u8 = 15;
const FINISHED: u8 = 20;

#[test]
fn messages_that_are_missing_doubled_or_out_of_order() {
    let stage = Stage::new();
    for kind in [ENCRYPTED_EXTENSIONS, CERTIFICATE, CERTIFICATE_VERIFY] {
        let error = stage.replaced(kind, |_| vec![]);
        assert_eq!(error, violation(Violation::UnexpectedMessage), "no {kind}");
        let error = stage.replaced(kind, |message| vec![message.clone(), message]);
        assert_eq!(error, violation(Violation::UnexpectedMessage), "{kind} twice");
    }
    let (result, _) = stage.play(|script| {
        script.message =
            Box::new(|kind, message| if kind == FINISHED { vec![] } else { vec![message] });
    });
    // It waits for it in vain; the transport ends.
    assert_eq!(result, Err(Error::Truncated));
    // No message of another time or of another side.
    for kind in [0, 1, 2, 3, 4, 5, 13, 14, 16, 20, 22, 24, 25, 254, 255] {
        let error = stage.replaced(ENCRYPTED_EXTENSIONS, |honest| vec![message(kind, &[]), honest]);
        assert_eq!(error, violation(Violation::UnexpectedMessage), "{kind}");
    }
    // A certificate, but only a Finished for a proof.
    let error = stage.refused(|script| {
        script.message = Box::new(|kind, message| match kind {
            CERTIFICATE | CERTIFICATE_VERIFY => vec![],
            _ => vec![message],
        });
    });
    assert_eq!(error, violation(Violation::UnexpectedMessage));
}

#[test]
fn certificates_that_are_none() {
    let stage = Stage::new();
    let certificate = |body: &[u8]| {
        let body = body.to_vec();
        stage.replaced(CERTIFICATE, move |_| vec![message(CERTIFICATE, &body)])
    };
    assert_eq!(certificate(&[0, 0, 0, 0]), violation(Violation::NoCertificate));
    assert_eq!(certificate(&[]), violation(Violation::Malformed));
    assert_eq!(certificate(&[0, 0, 0, 5, 0, 0, 0, 0, 0]), violation(Violation::Malformed));
    assert_eq!(certificate(&[0, 0, 0, 0, 1]), violation(Violation::Malformed));
    assert_eq!(certificate(&[1, 7, 0, 0, 0]), violation(Violation::CertificateContext));
    let extended = [0, 0, 0, 10, 0, 0, 1, 7, 0, 4, 0, 5, 0, 0];
    assert_eq!(certificate(&extended), violation(Violation::UnsolicitedExtension));
    let error = certificate(&[0, 0, 0, 6, 0, 0, 1, 7, 0, 0]);
    assert!(matches!(error, Error::Certificate(picokube_tls::Refusal::Malformed)), "{error:?}");
}

#[test]
fn proofs_that_are_none() {
    let stage = Stage::new();
    // Another key, also of a certificate that would have been good.
    let error = stage.refused(|script| script.signer = &stage.other);
    assert_eq!(error, Error::NotTheKey);
    // Over something else.
    let error = stage.replaced(CERTIFICATE_VERIFY, |honest| {
        let mut changed = honest.clone();
        let last = changed.len() - 1;
        changed[last] ^= 1;
        vec![changed]
    });
    assert_eq!(error, Error::NotTheKey);
    // Schemes that were not offered, or not for this, or not of this key.
    for scheme in [0x0401u16, 0x0501, 0x0503, 0x0603, 0x0807, 0x0203, 0x0201, 0x0809, 0x0804, 0] {
        let error = stage.replaced(CERTIFICATE_VERIFY, |honest| {
            vec![with_body(&honest, |body| body[..2].copy_from_slice(&scheme.to_be_bytes()))]
        });
        assert_eq!(error, violation(Violation::SignatureScheme), "{scheme:04x}");
    }
    let error =
        stage.replaced(CERTIFICATE_VERIFY, |honest| vec![with_body(&honest, |body| body.push(0))]);
    assert_eq!(error, violation(Violation::Malformed));
    // A Finished that is none, in every byte.
    for at in [0, 1, 16, 31] {
        let error =
            stage.replaced(FINISHED, |honest| vec![with_body(&honest, |body| body[at] ^= 0x80)]);
        assert_eq!(error, Error::NotTheHandshake);
    }
    for length in [0, 31, 33] {
        let error = stage
            .replaced(FINISHED, |honest| vec![with_body(&honest, |body| body.resize(length, 0))]);
        assert_eq!(error, violation(Violation::Malformed));
    }
    let error = stage.replaced(FINISHED, |honest| vec![honest, message(4, &[])]);
    assert_eq!(error, violation(Violation::SpansKeyChange));
}

#[test]
fn extensions_that_were_not_asked_for() {
    let stage = Stage::new();
    let extended = |extensions: &[u8]| {
        let body = [&(extensions.len() as u16).to_be_bytes()[..], extensions].concat();
        stage.replaced(ENCRYPTED_EXTENSIONS, move |_| vec![message(8, &body)])
    };
    assert_eq!(extended(&[]), Error::NoApplicationProtocol);
    assert_eq!(extended(&[0, 16, 0, 5, 0, 3, 2, b'h', b'3']), Error::NoApplicationProtocol);
    // Two answers, none, and one that was not offered beside the right one.
    let two = [0, 16, 0, 8, 0, 6, 2, b'h', b'2', 2, b'h', b'3'];
    assert_eq!(extended(&two), violation(Violation::Malformed));
    assert_eq!(extended(&[0, 16, 0, 2, 0, 0]), violation(Violation::Malformed));
    assert_eq!(extended(&[0, 16, 0, 3, 0, 1, 0]), violation(Violation::Answer));
    assert_eq!(extended(&[0, 0, 0, 1, 0]), violation(Violation::Answer));
    assert_eq!(extended(&[0, 0, 0, 0, 0, 0, 0, 0]), violation(Violation::DuplicateExtension));
    for kind in [1, 5, 14, 15, 18, 19, 20, 21, 22, 23, 35, 42, 48, 49, 50, 57, 0xff01u16] {
        let [high, low] = kind.to_be_bytes();
        let error = extended(&[high, low, 0, 0]);
        assert_eq!(error, violation(Violation::UnsolicitedExtension), "{kind}");
    }
    for kind in [13, 41, 43, 44, 45, 51] {
        assert_eq!(extended(&[0, kind, 0, 0]), violation(Violation::MisplacedExtension), "{kind}");
    }
    assert_eq!(extended(&[0, 10, 0, 3, 0, 1, 0]), violation(Violation::Malformed));
    assert_eq!(extended(&[0, 10, 0]), violation(Violation::Malformed));
    // Names of groups, and that the name was understood, are fine.
    let fine = [0, 0, 0, 0, 0, 10, 0, 4, 0, 2, 0, 29, 0, 16, 0, 5, 0, 3, 2, b'h', b'2'];
    let (result, _) = stage.play(|script| {
        script.message = Box::new(move |kind, honest| {
            let fine = message(8, &[&(fine.len() as u16).to_be_bytes()[..], &fine].concat());
            if kind == ENCRYPTED_EXTENSIONS { vec![fine] } else { vec![honest] }
        });
    });
    assert_eq!(result, Ok(()));
}

/// Where in a ServerHello is what.
const SUITE: usize = 4 + 2 + 32 + 1 + 32;
const EXTENSIONS: usize = SUITE + 2 + 1 + 2;

fn session_of(hello: &[u8]) -> Vec<u8> {
    hello[39..71].to_vec()
}

#[test]
fn hellos_that_were_not_asked_for() {
    let stage = Stage::new();
    let set = |at: usize, value: u8| {
        stage.with_hello(move |mut hello| {
            hello[at] = value;
            hello
        })
    };
    // TLS_AES_256_GCM_SHA384, and others
    for suite in [0x02, 0x04, 0x05, 0x00] {
        assert_eq!(set(SUITE + 1, suite), violation(Violation::CipherSuite));
    }
    assert_eq!(set(SUITE + 2, 1), violation(Violation::Compression));
    assert_eq!(set(50, 0xee), violation(Violation::Session));
    assert_eq!(set(5, 4), violation(Violation::LegacyVersion));
    assert_eq!(set(5, 2), Error::OldVersion);
    let empty = |hello: Vec<u8>| {
        let extensions = hello[EXTENSIONS..].to_vec();
        puppet::hello([7; 32], &[], CHACHA20, &extensions)
    };
    assert_eq!(stage.with_hello(empty), violation(Violation::Session));
    // The share of another curve, of no point, compressed, at infinity, missing.
    let share = EXTENSIONS + 6 + 4;
    assert_eq!(set(share + 1, 29), violation(Violation::Group));
    assert_eq!(set(share + 20, 0xaa), violation(Violation::KeyShare));
    assert_eq!(set(share + 4, 2), violation(Violation::KeyShare));
    let shares = [[&[4][..], &[0; 64]].concat(), vec![0], vec![2; 33], vec![]];
    for point in shares {
        let error = stage.with_hello(move |honest| {
            let mut extensions = vec![0, 43, 0, 2, 3, 4, 0, 51, 0, point.len() as u8 + 4, 0, 23, 0];
            extensions.push(point.len() as u8);
            extensions.extend(&point);
            hello([7; 32], &session_of(&honest), CHACHA20, &extensions)
        });
        assert_eq!(error, violation(Violation::KeyShare));
    }
    let error = stage
        .with_hello(|honest| hello([7; 32], &session_of(&honest), CHACHA20, &[0, 43, 0, 2, 3, 4]));
    assert_eq!(error, violation(Violation::MissingExtension));
    // More than was asked for, twice, and what belongs elsewhere.
    for (more, wrong) in [
        (vec![0, 43, 0, 2, 3, 4], Violation::DuplicateExtension),
        (vec![0, 41, 0, 2, 0, 0], Violation::UnsolicitedExtension),
        (vec![0, 5, 0, 0], Violation::UnsolicitedExtension),
        (vec![0, 42, 0, 0], Violation::UnsolicitedExtension),
        (vec![0, 16, 0, 5, 0, 3, 2, b'h', b'2'], Violation::MisplacedExtension),
        (vec![0, 44, 0, 3, 0, 1, 7], Violation::MisplacedExtension),
    ] {
        let error = stage.with_hello(move |honest| {
            let extensions = [&honest[EXTENSIONS..], &more].concat();
            hello([7; 32], &session_of(&honest), CHACHA20, &extensions)
        });
        assert_eq!(error, violation(wrong));
    }
    // What follows has another key, and must be in another record.
    let error = stage.with_hello(|honest| [honest, vec![8, 0, 0, 2, 0, 0]].concat());
    assert_eq!(error, violation(Violation::SpansKeyChange));
}

#[test]
fn older_versions() {
    let stage = Stage::new();
    let old = |random: [u8; 32], extensions: &'static [u8]| {
        stage.with_hello(move |honest| hello(random, &session_of(&honest), 0xc02b, extensions))
    };
    assert_eq!(old([7; 32], &[]), Error::OldVersion);
    assert_eq!(old([7; 32], &[0, 23, 0, 0]), Error::OldVersion);
    for mark in [b"DOWNGRD\x01", b"DOWNGRD\x00"] {
        let mut random = [7; 32];
        random[24..].copy_from_slice(mark);
        assert_eq!(old(random, &[0, 23, 0, 0]), Error::Downgrade);
    }
    // Without any extensions, as SSL 3 and many old servers answer.
    let error = stage.with_hello(|honest| {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(32);
        body.extend(session_of(&honest));
        body.extend([0xc0, 0x2b, 0]);
        message(2, &body)
    });
    assert_eq!(error, Error::OldVersion);
    // One that chose a version that was not offered.
    for version in [[3, 3], [3, 5], [0x7f, 0x1c]] {
        let error = stage.with_hello(move |honest| {
            let extensions = [0, 43, 0, 2, version[0], version[1]];
            hello([7; 32], &session_of(&honest), CHACHA20, &extensions)
        });
        assert_eq!(error, violation(Violation::LegacyVersion));
    }
}

#[test]
fn requests_for_another_hello() {
    let stage = Stage::new();
    let version = [0, 43, 0, 2, 3, 4];
    let cookie = [0, 44, 0, 7, 0, 5, b'c', b'o', b'o', b'k', b'y'];
    let asked = |suite: u16, extensions: &[&[u8]]| {
        let extensions = extensions.concat();
        stage.play(move |script| {
            script.retry =
                Some(Box::new(move |session| puppet::retry(session, suite, &extensions)));
        })
    };
    // The one that may be: with a cookie, which is echoed.
    assert_eq!(asked(CHACHA20, &[&version, &cookie]).0, Ok(()));
    assert_eq!(asked(CHACHA20, &[&cookie, &version]).0, Ok(()));
    let refused = |extensions: &[&[u8]]| asked(CHACHA20, extensions).0.unwrap_err();
    // For nothing new: P-256 was offered, with a share.
    assert_eq!(refused(&[&version]), violation(Violation::Retry));
    let p256 = [0, 51, 0, 2, 0, 23];
    assert_eq!(refused(&[&version, &p256]), violation(Violation::Retry));
    assert_eq!(refused(&[&version, &cookie, &p256]), violation(Violation::Retry));
    // For a group that was not offered.
    assert_eq!(refused(&[&version, &[0, 51, 0, 2, 0, 29]]), violation(Violation::Retry));
    let empty = [0, 44, 0, 2, 0, 0];
    assert_eq!(refused(&[&version, &empty]), violation(Violation::Malformed));
    assert_eq!(refused(&[&version, &cookie, &cookie]), violation(Violation::DuplicateExtension));
    let ticket = [0, 41, 0, 2, 0, 0];
    assert_eq!(refused(&[&version, &cookie, &ticket]), violation(Violation::MisplacedExtension));
    assert_eq!(refused(&[&cookie]), Error::OldVersion);
    // Another cipher suite in the end than was announced.
    assert_eq!(asked(AES, &[&version, &cookie]).0, Err(violation(Violation::CipherSuite)));
    assert_eq!(asked(0x1302, &[&version, &cookie]).0, Err(violation(Violation::CipherSuite)));
    // Once more.
    let again = [&version[..], &cookie].concat();
    let error = stage.refused(|script| {
        let second = again.clone();
        script.retry = Some(Box::new(move |session| puppet::retry(session, CHACHA20, &again)));
        script.hello =
            Box::new(move |honest| puppet::retry(&session_of(&honest), CHACHA20, &second));
    });
    assert_eq!(error, violation(Violation::UnexpectedMessage));
}

#[test]
fn the_second_hello_is_the_first_with_a_cookie() {
    let stage = Stage::new();
    let mut script = Script::honest(&stage.issued);
    let extensions = [0, 43, 0, 2, 3, 4, 0, 44, 0, 7, 0, 5, b'c', b'o', b'o', b'k', b'y'];
    script.retry = Some(Box::new(move |session| puppet::retry(session, CHACHA20, &extensions)));
    let mut puppet = Puppet::new(script);
    let anchors: [&[u8]; 1] = [&stage.authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    attempt(&Options::new(&config), &mut puppet).unwrap();
    let [first, second] = &puppet.client_hellos[..] else { panic!("two hellos") };
    let at = second.windows(5).position(|bytes| bytes == b"cooky").unwrap();
    let mut without = second.clone();
    without.drain(at - 6..at + 5);
    without[3] -= 11;
    // The length of the extensions: behind suites and compression.
    let extensions = 4 + 2 + 32 + 33 + 6 + 2;
    without[extensions + 1] -= 11;
    assert_eq!(*first, without);
    // One change_cipher_spec, before the second hello (§D.4).
    let kinds: Vec<u8> = puppet.seen.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [22, 20, 22, 22, 23]);
    assert_eq!(puppet.seen.last().unwrap().1, TOKEN);
}

#[test]
fn records_that_do_not_belong_into_a_handshake() {
    let stage = Stage::new();
    let first = |bytes: Vec<u8>| stage.play(|script| script.first = bytes);
    // What old middleboxes want to see, also twice.
    assert_eq!(first(plain(20, &[1])).0, Ok(()));
    assert_eq!(first([plain(20, &[1]), plain(20, &[1])].concat()).0, Ok(()));
    for wrong in [vec![], vec![2], vec![1, 1]] {
        assert_eq!(first(plain(20, &wrong)).0, Err(violation(Violation::UnexpectedRecord)));
    }
    assert_eq!(first(plain(20, &[1]).repeat(33)).0, Err(Error::Flood));
    assert_eq!(first(plain(21, &[1, 90]).repeat(5)).0, Err(Error::Flood));
    assert_eq!(first(plain(21, &[1, 90]).repeat(4)).0, Ok(()));
    assert_eq!(first(plain(22, &[])).0, Err(violation(Violation::EmptyRecord)));
    assert_eq!(first(plain(23, b"data")).0, Err(violation(Violation::UnexpectedRecord)));
    assert_eq!(first(plain(24, &[1])).0, Err(violation(Violation::NotTls)));
    assert_eq!(
        first(b"HTTP/1.1 400 Bad Request\r\n".to_vec()).0,
        Err(violation(Violation::NotTls))
    );
    assert_eq!(first(plain(22, &[2; 16_385])).0, Err(Error::RecordOverflow));
    // Alerts: what they say counts, and not how they say it.
    assert_eq!(
        first(plain(21, &[1, 0])),
        (Err(Error::ClosedInHandshake), Some(Alert::CLOSE_NOTIFY))
    );
    for (level, description) in [(1, 40), (2, 40), (0, 112), (2, 255)] {
        let (result, answer) = first(plain(21, &[level, description]));
        assert_eq!((result, answer), (Err(Error::Alert(Alert(description))), None));
    }
    // A message in pieces with something between.
    let (result, _) = first([plain(22, &[2]), plain(21, &[1, 90])].concat());
    assert_eq!(result, Err(violation(Violation::UnexpectedRecord)));
}

/// A server that asks for certificates in ways that are not allowed, or allowed.
#[test]
fn requests_for_certificates() {
    let stage = Stage::new();
    let asked = |body: &[u8]| {
        let request = message(13, body);
        stage.play(move |script| {
            script.message = Box::new(move |kind, honest| {
                if kind == CERTIFICATE { vec![request.clone(), honest] } else { vec![honest] }
            });
        })
    };
    let schemes = [0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3];
    assert_eq!(asked(&schemes).0, Ok(()));
    // One that could not check ours is told that there is none.
    assert_eq!(asked(&[0, 0, 8, 0, 13, 0, 4, 0, 2, 8, 7]).0, Ok(()));
    // What is not known is ignored.
    assert_eq!(asked(&[0, 0, 12, 0x12, 0x34, 0, 0, 0, 13, 0, 4, 0, 2, 4, 3]).0, Ok(()));
    let refused = |body: &[u8]| asked(body).0.unwrap_err();
    assert_eq!(refused(&[0, 0, 0]), violation(Violation::MissingExtension));
    assert_eq!(refused(&[1, 7, 0, 0]), violation(Violation::CertificateContext));
    assert_eq!(refused(&[0, 0, 6, 0, 13, 0, 2, 0, 0]), violation(Violation::Malformed));
    assert_eq!(refused(&[0, 0, 4, 0, 51, 0, 0]), violation(Violation::MisplacedExtension));
    let error = stage
        .replaced(CERTIFICATE, |honest| vec![message(13, &schemes), message(13, &schemes), honest]);
    assert_eq!(error, violation(Violation::UnexpectedMessage));
    let error = stage.replaced(CERTIFICATE_VERIFY, |honest| vec![message(13, &schemes), honest]);
    assert_eq!(error, violation(Violation::UnexpectedMessage));
}

/// Also before an alert that is protected (§D.4): a middlebox that has seen none would stop it.
#[test]
fn a_refusal_looks_like_an_older_version() {
    let stage = Stage::new();
    let mut script = Script::honest(&stage.issued);
    script.signer = &stage.other;
    let mut puppet = Puppet::new(script);
    let anchors: [&[u8]; 1] = [&stage.authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    assert_eq!(attempt(&Options::new(&config), &mut puppet), Err(Error::NotTheKey));
    let kinds: Vec<u8> = puppet.seen.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [22, 20, 21]);
    assert_eq!(puppet.alert(), Some(51));
}

/// Whatever the client gets after its hello, it sends nothing that a listener could make use of.
#[test]
fn a_server_that_only_listens_learns_nothing() {
    struct Silent(Vec<u8>);
    impl Peer for Silent {
        fn take(&mut self, bytes: &[u8]) {
            self.0.extend(bytes);
        }
        fn give(&mut self, _: &mut [u8]) -> usize {
            0
        }
    }
    let authority = authority("ca");
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap();
    let mut silent = Silent(Vec::new());
    assert_eq!(attempt(&Options::new(&config), &mut silent), Err(Error::Truncated));
    assert_eq!(silent.0[..5], [22, 3, 1, 0, (silent.0.len() - 5) as u8]);
    assert!(!silent.0.windows(6).any(|bytes| bytes == &TOKEN[..6]));
}

/// A caller that gives up says so, and nothing else (§6.1).
#[test]
fn a_handshake_that_is_given_up() {
    let authority = authority("ca");
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap();
    let (mut buffer, mut out) = ([0; 2048], [0; 1024]);
    let mut handshake = Handshake::new(&config, seed(1), Time::Exactly(NOW), &mut buffer).unwrap();
    assert_eq!(handshake.farewell(&mut out), None, "there is nobody to tell");
    let mut handshake = Handshake::new(&config, seed(1), Time::Exactly(NOW), &mut buffer).unwrap();
    assert!(matches!(handshake.step(&mut out), Ok(Step::Send(_))));
    let count = handshake.farewell(&mut out).unwrap();
    assert_eq!(out[..count], [plain(21, &[1, 90]), plain(21, &[1, 0])].concat());
    assert_eq!(handshake.step(&mut out), Err(Error::Closed));
    assert_eq!(handshake.finish().err(), Some(Error::Closed));
    let handshake = Handshake::new(&config, seed(1), Time::Exactly(NOW), &mut buffer).unwrap();
    assert_eq!(handshake.finish().err(), Some(Error::NotConnected));
}
