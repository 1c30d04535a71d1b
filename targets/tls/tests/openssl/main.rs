//! With OpenSSL at the other end (`openssl s_server`), everything works as well.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use picokube_tls::{ANY_RECORD, Config, Connection, Error, Event, Identity, Suite, Ticket};

#[path = "../support/mod.rs"]
mod support;

use support::authority::{self, Issued, authority, authority_with, rsa, rsa_algorithms};
use support::{Options, Peer, attempt, connect, send};

/// Longer than any answer takes; who waits longer has found a bug.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and the files that it was started with.
struct OpenSsl {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    address: String,
    folder: PathBuf,
}

impl OpenSsl {
    fn start(authority: &Issued, issued: &Issued, options: &[&str]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("picokube-tls-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ca.der"), &authority.der).unwrap();
        std::fs::write(folder.join("cert.der"), &issued.der).unwrap();
        std::fs::write(folder.join("key.pem"), issued.key.serialize_pem()).unwrap();
        // The only one that has to be text.
        let mut convert = Command::new("openssl");
        convert.args(["x509", "-inform", "DER", "-in", "ca.der", "-out", "ca.pem"]);
        let status = convert.current_dir(&folder).status();
        assert!(status.expect("OpenSSL has to be installed (`cargo xtask setup`)").success());
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", "127.0.0.1:0", "-alpn", "h2"]);
        command.args([
            "-certform",
            "DER",
            "-cert",
            "cert.der",
            "-key",
            "key.pem",
            "-CAfile",
            "ca.pem",
        ]);
        // The certificates are of the tests' time, which may be over.
        command.args(["-attime", "1767225600"]).args(options).current_dir(&folder);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, input, output, address: String::new(), folder };
        let line = server.line_with("ACCEPT ");
        server.address = line.trim_start_matches("ACCEPT ").trim().to_owned();
        server
    }

    /// Reads its output up to a line with this in it.
    fn line_with(&mut self, text: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let count = self.output.read_line(&mut line).unwrap();
            assert!(count > 0, "OpenSSL ended without {text:?}");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn connect(&self) -> Socket {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Socket(stream)
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        // It may have ended by itself; the folder is in the temporary one anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Socket(TcpStream);

impl Peer for Socket {
    fn take(&mut self, bytes: &[u8]) {
        // A server that refuses us may be gone already.
        let _ = self.0.write_all(bytes);
    }

    fn give(&mut self, space: &mut [u8]) -> usize {
        match self.0.read(space) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads until so much has come.
fn expect(connection: &mut Connection<'_>, socket: &mut Socket, ticket: &mut Ticket, data: &[u8]) {
    let (mut out, mut came) = ([0; 64], Vec::<u8>::new());
    while came.len() < data.len() {
        match connection.poll(&mut out).unwrap() {
            Event::Send(count) => socket.take(&out[..count]),
            Event::Receive => match socket.give(connection.space()) {
                0 => panic!("the server has ended the connection"),
                count => connection.received(count),
            },
            Event::Data => {
                came.extend(connection.data());
                connection.consume(usize::MAX);
            }
            Event::Ticket => connection.keep_ticket(ticket, 0),
            Event::Closed => panic!("the server has closed"),
        }
    }
    assert!(came == data);
}

/// Reads until the server has asked for a new key, and gives it one.
fn answer_key_update(connection: &mut Connection<'_>, socket: &mut Socket) {
    let mut out = [0; 64];
    loop {
        match connection.poll(&mut out).unwrap() {
            Event::Send(count) => return socket.take(&out[..count]),
            Event::Receive => {
                let count = socket.give(connection.space());
                assert!(count > 0, "the server has ended the connection");
                connection.received(count);
            }
            event => assert_eq!(event, Event::Ticket),
        }
    }
}

/// Has the server send lines back in reverse.
fn converse(config: &Config<'_>, server: &OpenSsl, ticket: &mut Ticket) -> (Suite, bool) {
    let mut socket = server.connect();
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = {
        let options = Options { ticket: Some((ticket, 0)), ..Options::new(config) };
        connect(&options, &mut socket, &mut buffer).unwrap()
    };
    ticket.clear();
    for length in [1, 100, 10_000] {
        let mut line: Vec<u8> = (0..length).map(|index| b'a' + (index % 23) as u8).collect();
        line.push(b'\n');
        send(&mut connection, &mut socket, &line);
        let mut reversed: Vec<u8> = line.iter().rev().skip(1).copied().collect();
        reversed.push(b'\n');
        expect(&mut connection, &mut socket, ticket, &reversed);
    }
    let mut out = [0; 64];
    let count = connection.close(&mut out).unwrap();
    socket.take(&out[..count]);
    (connection.suite(), connection.is_resumed())
}

#[test]
fn ciphers_tickets_and_cookies() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    for (suite, name) in [
        (Suite::ChaCha20Poly1305, "TLS_CHACHA20_POLY1305_SHA256"),
        (Suite::Aes128Gcm, "TLS_AES_128_GCM_SHA256"),
    ] {
        // With `-stateless`, it answers the first hello with a HelloRetryRequest and a cookie.
        for more in [&[][..], &["-stateless"]] {
            let options = [&["-rev", "-ciphersuites", name][..], more].concat();
            let server = OpenSsl::start(&authority, &issued, &options);
            let mut ticket = Ticket::new();
            assert_eq!(converse(&config, &server, &mut ticket), (suite, false));
            // A server that keeps no state may still know its own tickets.
            assert_eq!(converse(&config, &server, &mut ticket), (suite, true));
        }
    }
}

#[test]
fn rsa_certificates() {
    for (bits, algorithm) in [2048, 4096].into_iter().zip(rsa_algorithms()) {
        let authority = authority_with("ca", rsa(bits, algorithm));
        let issued = authority.issue(authority::server(), rsa(bits, algorithm));
        let anchors: [&[u8]; 1] = [&authority.der];
        let config = Config::new("10.0.2.2", &anchors).unwrap().with_protocol(b"h2").unwrap();
        for scheme in ["rsa_pss_rsae_sha256", "rsa_pss_rsae_sha384", "rsa_pss_rsae_sha512"] {
            let server = OpenSsl::start(&authority, &issued, &["-rev", "-sigalgs", scheme]);
            converse(&config, &server, &mut Ticket::new());
        }
    }
}

#[test]
fn client_certificates() {
    let authority = authority("ca");
    let (issued, ours) = (authority.server(|_| {}), authority.client());
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let server =
        OpenSsl::start(&authority, &issued, &["-rev", "-Verify", "2", "-verify_return_error"]);
    let chain: [&[u8]; 1] = [&ours.der];
    let identity = Identity::new(&chain, &ours.scalar()).unwrap();
    let mut ticket = Ticket::new();
    let with_identity = config.clone().with_identity(identity);
    assert!(!converse(&with_identity, &server, &mut ticket).1);
    // Its ticket has our certificate in it.
    assert!(!ticket.is_empty() && converse(&with_identity, &server, &mut ticket).1);
    // Without one, the server does not want to talk.
    let mut socket = server.connect();
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = connect(&Options::new(&config), &mut socket, &mut buffer).unwrap();
    let came = support::read(&mut connection, &mut socket, &mut Ticket::new(), 0);
    assert_eq!((came.data.len(), came.tickets), (0, 0));
    let end = came.end.unwrap().unwrap_err();
    assert!(end.to_string().contains("certificate_required"), "{end}");
}

/// It changes keys when told so on its standard input, and asks us to do so.
#[test]
fn new_keys() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let mut server = OpenSsl::start(&authority, &issued, &[]);
    let mut socket = server.connect();
    let mut buffer = vec![0; ANY_RECORD];
    let mut connection = connect(&Options::new(&config), &mut socket, &mut buffer).unwrap();
    for round in 0..4 {
        let line = format!("round {round}\n");
        server.input.write_all(line.as_bytes()).unwrap();
        expect(&mut connection, &mut socket, &mut Ticket::new(), line.as_bytes());
        let line = format!("answer {round}\n");
        send(&mut connection, &mut socket, line.as_bytes());
        server.line_with(line.trim());
        server.input.write_all(b"K\n").unwrap();
        // A line that came before the change of keys was done would be lost in the same read.
        answer_key_update(&mut connection, &mut socket);
    }
}

#[test]
fn refusals() {
    let authority = authority("ca");
    let issued = authority.server(|_| {});
    let anchors: [&[u8]; 1] = [&authority.der];
    let config = Config::new("kubernetes", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let refused = |options: &[&str]| {
        let server = OpenSsl::start(&authority, &issued, options);
        attempt(&Options::new(&config), &mut server.connect()).unwrap_err()
    };
    for options in
        [&["-tls1_2"][..], &["-groups", "X25519"], &["-ciphersuites", "TLS_AES_256_GCM_SHA384"]]
    {
        let error = refused(options);
        assert!(matches!(error, Error::Alert(_)), "{error:?}");
    }
    let other = Config::new("example.org", &anchors).unwrap().with_protocol(b"h2").unwrap();
    let server = OpenSsl::start(&authority, &issued, &["-rev"]);
    let error = attempt(&Options::new(&other), &mut server.connect()).unwrap_err();
    assert!(matches!(error, Error::Certificate(_)), "{error:?}");
}
