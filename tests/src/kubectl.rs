//! The real kubectl, as a user at a shell runs it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::following::Following;
use crate::picokube::Picokube;

/// kubectl, pointed at a cluster. Whatever it remembers stays in the cluster's directory.
pub struct Kubectl<'a> {
    cluster: &'a Picokube,
    namespace: String,
    minor: u32,
}

/// What became of a command.
#[derive(Debug)]
pub struct Outcome {
    /// Whether it ended with 0.
    pub success: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl<'a> Kubectl<'a> {
    /// The kubectl in the PATH, or the one that `PICOKUBE_KUBECTL` names.
    pub(crate) fn new(cluster: &'a Picokube) -> Result<Self> {
        Self::in_namespace(cluster, "default")
    }

    /// The same, at work in a namespace.
    pub(crate) fn in_namespace(cluster: &'a Picokube, namespace: &str) -> Result<Self> {
        let mut kubectl = Self { cluster, namespace: namespace.to_owned(), minor: 0 };
        let version = kubectl.json(&["version", "--client", "--output=json"])?;
        let minor = version["clientVersion"]["minor"].as_str().unwrap_or_default();
        let minor = minor.trim_end_matches(|c: char| !c.is_ascii_digit());
        kubectl.minor = minor.parse().with_context(|| format!("what version is {version}?"))?;
        Ok(kubectl)
    }

    /// The minor version: the oldest one that the tests know is 20.
    pub fn minor(&self) -> u32 {
        self.minor
    }

    /// Runs a command that has to work; gives what it printed.
    pub fn ok(&self, arguments: &[&str]) -> Result<String> {
        self.ok_with(arguments, "")
    }

    /// Runs a command that reads `input` and has to work; gives what it printed.
    pub fn ok_with(&self, arguments: &[&str], input: &str) -> Result<String> {
        let outcome = self.run(arguments, input)?;
        ensure!(
            outcome.success,
            "`kubectl {}` failed:\n{}{}",
            arguments.join(" "),
            outcome.stdout,
            outcome.stderr
        );
        Ok(outcome.stdout)
    }

    /// Runs a command that has to be refused; gives what it complained about.
    pub fn refused(&self, arguments: &[&str], input: &str) -> Result<String> {
        let outcome = self.run(arguments, input)?;
        ensure!(
            !outcome.success,
            "`kubectl {}` should have failed:\n{}",
            arguments.join(" "),
            outcome.stdout
        );
        Ok(outcome.stderr)
    }

    /// Runs a command that has to print JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.ok(arguments)?;
        serde_json::from_str(&text)
            .with_context(|| format!("`kubectl {}` printed no JSON: {text}", arguments.join(" ")))
    }

    /// A field of an object, by a JSON path without braces.
    pub fn field(&self, object: &str, path: &str) -> Result<String> {
        self.ok(&["get", object, &format!("--output=jsonpath={{{path}}}")])
    }

    /// Whether there is such an object.
    pub fn has(&self, object: &str) -> Result<bool> {
        Ok(!self.ok(&["get", object, "--ignore-not-found", "--output=name"])?.is_empty())
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str], input: &str) -> Result<Outcome> {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().context("is there a kubectl?")?;
        let mut stdin = child.stdin.take().context("kubectl has no input")?;
        // A kubectl that does not read its input has other things to say.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output()?;
        Ok(Outcome {
            success: output.status.success(),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Starts a command that goes on printing.
    pub fn follow(&self, arguments: &[&str]) -> Result<Following> {
        Following::start(self.command(arguments))
    }

    /// A command with an editor, as `kubectl edit` wants one.
    pub fn edit(&self, arguments: &[&str], editor: &str) -> Result<String> {
        let output = self.command(arguments).env("KUBE_EDITOR", editor).output()?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`kubectl {}`: {complaints}", arguments.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let directory = self.cluster.directory();
        let kubectl = std::env::var_os("PICOKUBE_KUBECTL").unwrap_or("kubectl".into());
        let mut command = Command::new(kubectl);
        command
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("HOME", directory)
            .env("KUBECACHEDIR", directory.join("cache"))
            .env_remove("KUBECTL_EXTERNAL_DIFF")
            .args((self.namespace != "default").then(|| format!("--namespace={}", self.namespace)))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Whether `text` has these words on one line, in this order.
pub fn has_row(text: &str, words: &[&str]) -> bool {
    text.lines().any(|line| {
        let mut cells = line.split_whitespace();
        words.iter().all(|word| cells.any(|cell| cell == *word))
    })
}
