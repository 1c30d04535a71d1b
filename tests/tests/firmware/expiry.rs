//! A certificate that ends soon is told before it does.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use picokube_config::Document;
use picokube_provision::AccessArguments;
use picokube_qemu::HOST_SEEN_BY_GUEST;
use picokube_tests::firmware::{self, Setup};
use picokube_tests::golden::node::rfc3339;
use picokube_tests::picokube::Picokube;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use serde_json::Value;
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn a_server_certificate_that_ends_in_ten_days_is_told() -> Result<()> {
    let directory = TempDir::new()?;
    let ends = SystemTime::now() + 10 * DAY;
    let Files { authority, chain, key } = certificates(directory.path(), ends)?;
    let file = |path: &Path| path.to_str().map(str::to_owned).context("a path that is not UTF-8");
    let (chain, key) = (file(&chain)?, file(&key)?);
    let own = ["--tls-cert-file", &chain, "--tls-private-key-file", &key];
    let cluster =
        Picokube::secure(&[&["up", "--no-controllers", "--nodes", "1"], &own[..]].concat())?;
    let access = AccessArguments {
        server: Some(format!("https://{HOST_SEEN_BY_GUEST}:{}", cluster.address().port())),
        certificate_authority: Some(authority),
        token_file: Some(cluster.token_and_authority().0),
        ..AccessArguments::default()
    };
    let access = access.access()?;
    let document = access.apply(Document { identity: "gateway-7", ..Document::default() });
    let device = Setup::with(firmware::image()?, &document)?.boot()?;

    device.wait_for_line("the server's certificate ends at ")?;
    let told = device.metric("picokube_server_certificate_expiration_timestamp_seconds")?;
    let expected = ends.duration_since(UNIX_EPOCH)?.as_secs();
    ensure!(told.abs_diff(expected) <= DAY.as_secs(), "{told} is not about {expected}");
    let is_told = |event: &Value| {
        event["reason"] == "CertificateExpiresSoon"
            && event["involvedObject"]["kind"] == "Node"
            && event["involvedObject"]["name"] == "gateway-7"
    };
    cluster.wait_until("the event is there", || {
        let events = cluster.get("/api/v1/namespaces/default/events")?.json()?;
        Ok(events["items"].as_array().is_some_and(|items| items.iter().any(is_told)))
    })?;
    // The authority, and nobody else, has years to go.
    ensure!(!device.log().contains("the certificate authority ends"), "{}", device.log());
    Ok(())
}

/// Files in PEM.
struct Files {
    authority: PathBuf,
    chain: PathBuf,
    key: PathBuf,
}

/// An authority, and a server's certificate that ends on the day of `ends`.
fn certificates(directory: &Path, ends: SystemTime) -> Result<Files> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?.pem();
    let names = ["127.0.0.1".to_owned(), HOST_SEEN_BY_GUEST.to_string()];
    let mut server = CertificateParams::new(names)?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let date = rfc3339(ends);
    let mut parts = date.get(..10).context("no date")?.split('-').map(str::parse::<u16>);
    let mut part = || parts.next().context("no date")?.context("no number");
    let (year, month, day) = (part()?, part()?, part()?);
    server.not_after = date_time_ymd(year.into(), month.try_into()?, day.try_into()?);
    let key = KeyPair::generate()?;
    let own = server.signed_by(&key, &Issuer::from_params(&params, &authority_key))?.pem();
    let write = |name: &str, text: &str| -> Result<PathBuf> {
        let path = directory.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    };
    Ok(Files {
        authority: write("ca.crt", &authority)?,
        chain: write("server.crt", &format!("{own}{authority}"))?,
        key: write("server.key", &key.serialize_pem())?,
    })
}
