//! What is wrong is said at once, with what to do about it.

use anyhow::{Context, Result, ensure};
use picokube_tests::following::Following;
use picokube_tests::picokube::Picokube;
use tempfile::TempDir;

use super::run;

/// Starts with these arguments, which are wrong; what is said has to contain all of `words`.
pub(super) fn complains(arguments: &[&str], words: &[&str]) -> Result<()> {
    let said = Following::start(run(arguments)?)?.fails();
    let said = said.with_context(|| arguments.join(" "))?;
    for word in words {
        ensure!(said.contains(word), "{arguments:?}: no {word:?} in\n{said}");
    }
    ensure!(!said.contains("panicked"), "{said}");
    Ok(())
}

#[test]
fn arguments_that_cannot_be() -> Result<()> {
    complains(&[], &["this is no pod", "--kubeconfig or --server"])?;
    complains(&["--server", "127.0.0.1:1"], &["http://HOST:PORT"])?;
    complains(&["--server", "https://127.0.0.1:1"], &["--certificate-authority"])?;
    let server = ["--server", "http://127.0.0.1:1"];
    let with = |more: &[&'static str]| [&server[..], more].concat();
    complains(
        &with(&["--controllers", "*,-cronjbo"]),
        &["\"-cronjbo\" is not in the list of known controllers"],
    )?;
    complains(
        &with(&["--controllers", "*,-cronjob"]),
        &["kube-controller-manager has a cronjob-controller, picokube does not"],
    )?;
    complains(
        &with(&["--feature-gates", "DeploymentReplicaSetTerminatingReplicas=maybe"]),
        &["neither true nor false"],
    )?;
    complains(&with(&["--feature-gates", "Dreams=true"]), &["Dreams=true", "known are"])?;
    complains(&with(&["--capacity", "endless"]), &["endless", "tiny", "host"])?;
    let long = ["app in (", &"x,".repeat(60), "x)"].concat();
    complains(&[&server[..], &["--selector", &long]].concat(), &["--selector", "128", &long])?;
    complains(&with(&["--kubeconfig", "x"]), &["cannot be used with"])?;
    complains(&with(&["--client-certificate", "x"]), &["--client-key"])?;
    complains(&["--kubeconfig", "x", "--token-file", "y"], &["cannot be used with"])?;
    Ok(())
}

#[test]
fn files_that_are_not_there() -> Result<()> {
    let directory = TempDir::new()?;
    let missing = directory.path().join("missing");
    let missing = missing.to_str().context("not UTF-8")?;
    complains(&["--kubeconfig", missing], &["cannot read", missing])?;
    let server = ["--server", "http://127.0.0.1:1"];
    complains(&[&server[..], &["--token-file", missing]].concat(), &["--token-file", missing])?;
    let server = ["--server", "https://127.0.0.1:1"];
    let authority = [&server[..], &["--certificate-authority", missing]].concat();
    complains(&authority, &["cannot read", missing])?;
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "")?;
    let empty = empty.to_str().context("not UTF-8")?;
    let server = ["--server", "http://127.0.0.1:1"];
    complains(&[&server[..], &["--token-file", empty]].concat(), &["the token is empty"])?;
    complains(&["--kubeconfig", empty], &["it has no current-context: give --context NAME", empty])
}

#[test]
fn servers_that_are_something_else() -> Result<()> {
    let cluster = Picokube::server()?;
    let address = cluster.address().to_string();
    let kubeconfig = cluster.kubeconfig();
    let kubeconfig = kubeconfig.to_str().context("not UTF-8")?;
    complains(
        &["--kubeconfig", kubeconfig, "--context", "other"],
        &["there is no context \"other\"", kubeconfig],
    )?;
    // TLS to a server that speaks none.
    let made = TempDir::new()?;
    let secured = super::secured::secure_cluster(&made)?;
    let authority = made.path().join("ca.crt");
    let authority = authority.to_str().context("not UTF-8")?;
    let url = format!("https://{address}");
    let arguments = ["--server", &url, "--certificate-authority", authority];
    complains(&arguments, &[&address, "no TLS connection"])?;
    // None to a server that wants it.
    let plain = secured.address.replace("https", "http");
    complains(&["--server", &plain], &["no HTTP server", "is it https where http was given?"])
}
