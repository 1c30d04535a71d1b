//! What `picokube` says, as somebody sees it who pipes it into a file or into `head`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use picokube_tests::following::Following;
use picokube_tests::picokube::binary;

#[test]
fn the_demo_plays_to_its_end_and_the_cluster_stays() -> Result<()> {
    let mut command = Command::new(binary()?);
    command.args(["up", "--demo", "--listen", "127.0.0.1:0"]);
    let demo = Following::start(command)?;
    for words in [
        &["1. apply three Deployments"][..],
        &["web", "app:1", "4 wanted", "●●●●", "complete"],
        &["2. roll out web"],
        &["web", "app:2", "in progress"],
        &["3. roll out api"],
        &["api", "app:bad", "○", "in progress"],
        &["api", "app:1", "●●", "failed: deadline exceeded"],
        &["4. undo that"],
        &["api", "app:1", "3 wanted", "●●●", "complete"],
        &["5. apply a StatefulSet"],
        &["db", "3/3 ready", "db-0 ● app:1", "db-1 ● app:1", "db-2 ● app:1"],
        &["6. update db"],
        &["db", "3/3 ready", "db-0 ● app:1", "db-1 ● app:1", "db-2 ● app:2"],
        &["7. update the others"],
        &["db", "3/3 ready", "db-0 ● app:2", "db-1 ● app:2", "db-2 ● app:2"],
        &["The cluster stays up until Ctrl-C"],
    ] {
        demo.line_with(words)?;
    }
    Ok(())
}

#[test]
fn a_cluster_does_not_need_anybody_who_reads_what_it_says() -> Result<()> {
    let mut command = Command::new(binary()?);
    command.args(["up", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut cluster = command.spawn()?;
    let mut lines = BufReader::new(cluster.stdout.take().context("no output")?).lines();
    let is_last = |line: &std::io::Result<String>| {
        line.as_ref().is_ok_and(|line| line.starts_with("controllers:"))
    };
    ensure!(lines.any(|line| is_last(&line)), "it does not say that it runs");
    drop(lines);
    let process = cluster.id().to_string();
    ensure!(Command::new("kill").args(["-INT", &process]).status()?.success(), "not interrupted");
    let ended = cluster.wait_with_output()?;
    ensure!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}

#[test]
fn a_check_does_not_need_anybody_who_reads_what_it_says() -> Result<()> {
    for arguments in [&["check", "--seed", "1", "--trace"][..], &["check", "--seeds", "1"]] {
        let mut command = Command::new(binary()?);
        let mut check =
            command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // Before it has anything to say.
        drop(check.stdout.take());
        let ended = check.wait_with_output()?;
        ensure!(
            ended.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
    Ok(())
}
