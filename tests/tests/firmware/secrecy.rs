//! The token goes to the server that has proved who it is, and to nobody else; without randomness, nothing
//! goes anywhere.

use std::net::TcpListener;

use anyhow::{Context, Result, ensure};
use picokube_config::{Certificates, Document};
use picokube_qemu::HOST_SEEN_BY_GUEST;
use picokube_tests::firmware::{self, Setup};
use picokube_tests::impostors::{Authority, Flaw, NAME, SECRET};
use picokube_tests::picokube::PATIENCE;

/// What the log says of each. It does not say the same twice in a row.
const IMPOSTORS: [(Flaw, &str); 9] = [
    (Flaw::NoTls, "is this its HTTPS port?"),
    (Flaw::OtherAuthority, "is not from a configured authority"),
    (Flaw::OtherName, "the server's certificate is for other names"),
    (Flaw::Expired, "the server's certificate is over or has not begun"),
    (Flaw::Authority, "the server's certificate is not acceptable"),
    (Flaw::OldProtocol, "the server does not speak HTTP/2"),
    (Flaw::OtherKey, "the server's certificate is not acceptable"),
    (Flaw::OldVersion, "the server does not speak TLS 1.3"),
    (Flaw::ForClients, "the server's certificate is not acceptable"),
];

#[test]
fn only_a_server_that_has_proved_itself_gets_the_token() -> Result<()> {
    let authority = Authority::new()?;
    let flaws: Vec<Flaw> = IMPOSTORS.iter().map(|(flaw, _)| *flaw).chain([Flaw::None]).collect();
    let (address, heard) = authority.serve(&flaws)?;
    let server = format!("{HOST_SEEN_BY_GUEST}:{}", address.port());
    let authorization = format!("Bearer {SECRET}");
    let document = Document {
        server: &server,
        identity: "device",
        authorization: Some(&authorization),
        tls_server_name: Some(NAME),
        authorities: Certificates::one(&authority.der),
        ..Document::default()
    };
    let device = Setup::with(firmware::image()?, &document)?.boot()?;
    for (flaw, told) in IMPOSTORS {
        let heard = heard.recv_timeout(PATIENCE).context("the device does not come")?;
        heard.check_that_nothing_was_told().with_context(|| format!("{flaw:?}"))?;
        device.wait_for_line(told)?;
    }
    let heard = heard.recv_timeout(PATIENCE).context("the device does not come")?;
    ensure!(heard.has_secret(), "the server did not get it");
    Ok(())
}

#[test]
fn without_true_randomness_no_tls_is_spoken() -> Result<()> {
    let authority = Authority::new()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let server = format!("{HOST_SEEN_BY_GUEST}:{}", listener.local_addr()?.port());
    let authorization = format!("Bearer {SECRET}");
    let document = Document {
        server: &server,
        identity: "device",
        authorization: Some(&authorization),
        authorities: Certificates::one(&authority.der),
        ..Document::default()
    };
    let setup = Setup::with(firmware::trouble_image()?, &document)?.words(&["no-entropy"]);
    let device = setup.boot()?;
    device.wait_for_line("no true random numbers: TLS cannot be spoken")?;
    ensure!(device.get("/healthz")?.status == 200, "it goes on all the same");
    ensure!(device.get("/readyz")?.status == 503, "of no use without a server");
    let came = listener.accept();
    ensure!(came.is_err(), "the device came to the server: {came:?}");
    Ok(())
}
