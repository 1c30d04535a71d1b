//! Who kubectl is to a server that knows client certificates.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use picokube_tests::following::Following;
use picokube_tests::picokube::binary;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user and an authority as administrators make them, with the openssl of this machine.
const SCRIPT: &str = r#"
set -eu
openssl ecparam -genkey -name prime256v1 -noout -out ca.key
openssl req -x509 -new -key ca.key -subj /CN=clients -days 1 -out ca.crt
openssl ecparam -genkey -name prime256v1 -noout -out alice.key
openssl req -new -key alice.key -subj /CN=alice/O=developers/O=operators -out alice.csr
echo extendedKeyUsage=clientAuth > usage
openssl x509 -req -in alice.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -extfile usage -out alice.crt
"#;

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn kubectl(directory: &Path, arguments: &[&str]) -> Result<String> {
    let kubectl = std::env::var_os("PICOKUBE_KUBECTL").unwrap_or("kubectl".into());
    let output = Command::new(kubectl)
        .env("KUBECONFIG", directory.join("kubeconfig"))
        .env("HOME", directory)
        .current_dir(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {arguments:?}: {complaint}");
    Ok(String::from_utf8(output.stdout)?)
}

/// What the server says who asks: by kubectl's own command where it has one.
fn who_am_i(directory: &Path, arguments: &[&str]) -> Result<Value> {
    let version = kubectl(directory, &["version", "--client", "--output=json"])?;
    let version: Value = serde_json::from_str(&version)?;
    let minor = version["clientVersion"]["minor"].as_str().unwrap_or_default();
    let minor: u32 = minor.trim_end_matches('+').parse().context("a version")?;
    std::fs::write(directory.join("review.json"), "{}")?;
    let command: &[&str] = match minor {
        28.. => &["auth", "whoami", "--output=json"],
        _ => &["create", "--filename=review.json", "--raw", REVIEWS],
    };
    let review = kubectl(directory, &[command, arguments].concat())?;
    let review: Value = serde_json::from_str(&review)?;
    let user = &review["status"]["userInfo"];
    Ok(json!([user["username"], user["groups"]]))
}

fn server(directory: &Path, arguments: &[&str]) -> Result<Following> {
    let mut command = Command::new(binary()?);
    command.args(["server", "--listen", "127.0.0.1:0"]).args(arguments);
    command.arg("--write-kubeconfig").arg(directory.join("kubeconfig"));
    command.current_dir(directory);
    let server = Following::start(command)?;
    server.line_with(&["listening on https://"])?;
    Ok(server)
}

#[test]
fn kubectl_is_whoever_its_certificate_names() -> Result<()> {
    let directory = TempDir::new()?;
    let path = directory.path();
    let made = Command::new("sh").args(["-c", SCRIPT]).current_dir(path).output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let _server = server(path, &["--client-ca-file", "ca.crt"])?;

    let admin = json!(["kubernetes-admin", ["system:masters", "system:authenticated"]]);
    assert_eq!(who_am_i(path, &[])?, admin, "the kubeconfig has the token");
    let files = ["--client-certificate=alice.crt", "--client-key=alice.key", "--embed-certs"];
    kubectl(path, &[&["config", "set-credentials", "alice"], &files[..]].concat())?;
    let alice = json!(["alice", ["developers", "operators", "system:authenticated"]]);
    assert_eq!(who_am_i(path, &["--user=alice"])?, alice);
    kubectl(path, &["get", "namespaces", "--user=alice"])?;
    Ok(())
}

#[test]
fn kubectl_takes_the_kubeconfig_of_a_user_as_it_is() -> Result<()> {
    let directory = TempDir::new()?;
    let path = directory.path();
    let user = ["--kubeconfig-user", "edge-7", "--kubeconfig-group", "gateways"];
    let _server = server(path, &user)?;
    let edge = json!(["edge-7", ["gateways", "system:authenticated"]]);
    assert_eq!(who_am_i(path, &[])?, edge);
    Ok(())
}
