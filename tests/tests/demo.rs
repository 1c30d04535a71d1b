//! `picokube up --demo`, as somebody sees it who pipes it into a file.

use std::process::Command;

use anyhow::Result;
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
        &["The cluster stays up until Ctrl-C"],
    ] {
        demo.line_with(words)?;
    }
    Ok(())
}
