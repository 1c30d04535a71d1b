//! `picokube up --demo`: three Deployments, a rollout, one that fails, and an undo, as they happen.
//!
//! In a terminal it is a table that is drawn again and again; elsewhere it is a line for every
//! change.

mod table;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::http::SharedServer;

use super::inside::{DEPLOYMENTS, ask, is_rolled_out, objects};
use super::screen::{CLEAR, RestoreCursor, print};
use table::Table;

/// How often the cluster is looked at.
const GLANCE: Duration = Duration::from_millis(100);
/// Nothing in the demo takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a spectator wants to look at what was achieved.
const PAUSE: Duration = Duration::from_secs(2);

const STEPS: [&str; 4] = [
    "apply three Deployments",
    "roll out web: from app:1 to app:2",
    "roll out api: to an image that does not exist",
    "undo that",
];

/// Plays and shows the demo; then goes on showing the cluster until it is dropped.
pub(super) async fn run(shared: Arc<SharedServer>, url: String) -> Result<()> {
    let (at, step) = watch::channel(0);
    let shown = show(&shared, &url, step);
    let played = async {
        play(&shared, &at).await?;
        std::future::pending().await
    };
    tokio::select! {
        ended = played => ended,
        () = shown => Ok(()),
    }
}

/// Does what a user would do, a step at a time.
async fn play(shared: &SharedServer, at: &watch::Sender<usize>) -> Result<()> {
    // Without a spectator, just so long that what was achieved is told.
    let leisure = if std::io::stdout().is_terminal() { PAUSE } else { 3 * GLANCE };
    for (name, replicas) in [("web", 4), ("api", 3), ("worker", 2)] {
        ask(shared, Method::POST, DEPLOYMENTS, &deployment(name, replicas)).await?;
    }
    until(shared, |all| all.len() == 3 && all.iter().all(is_rolled_out)).await?;
    tokio::time::sleep(leisure).await;

    at.send_replace(1);
    set_image(shared, "web", "app:2").await?;
    until(shared, |all| all.iter().all(is_rolled_out)).await?;
    tokio::time::sleep(leisure).await;

    at.send_replace(2);
    set_image(shared, "api", "app:bad").await?;
    until(shared, |all| all.iter().any(has_failed)).await?;
    tokio::time::sleep(leisure).await;

    at.send_replace(3);
    set_image(shared, "api", "app:1").await?;
    until(shared, |all| all.iter().all(is_rolled_out)).await?;
    at.send_replace(4);
    Ok(())
}

fn deployment(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 5,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

async fn set_image(shared: &SharedServer, name: &str, image: &str) -> Result<()> {
    let containers = json!([{"name": "app", "image": image}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    ask(shared, Method::PATCH, &format!("{DEPLOYMENTS}/{name}"), &patch).await
}

/// Whether the deadline of a rollout has passed.
fn has_failed(deployment: &Value) -> bool {
    let conditions = deployment["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| condition["reason"] == "ProgressDeadlineExceeded")
    })
}

async fn until(shared: &SharedServer, condition: impl Fn(&[Value]) -> bool) -> Result<()> {
    let give_up = Instant::now() + PATIENCE;
    while !condition(&objects(shared, "deployments")) {
        if Instant::now() > give_up {
            bail!("the demo does not go on; does anybody else change its Deployments?");
        }
        tokio::time::sleep(GLANCE).await;
    }
    Ok(())
}

/// Shows how the cluster is, for ever, or until nobody takes it.
async fn show(shared: &SharedServer, url: &str, step: watch::Receiver<usize>) {
    let terminal = std::io::stdout().is_terminal();
    let _restore = terminal.then(RestoreCursor::new);
    let mut said = Vec::new();
    let mut told = None;
    loop {
        let (at, table) = (*step.borrow(), Table::of(shared));
        let mut text = String::new();
        if terminal {
            text = format!("{CLEAR}picokube  {url}\n\n{}\n{table}\n{}", progress(at), hint(at));
        } else {
            if told != Some(at) {
                let begun = STEPS.get(at).map(|step| format!("\n{}. {step}\n", at + 1));
                text.push_str(&begun.unwrap_or(format!("\n{}", hint(at))));
                told = Some(at);
            }
            let lines = table.lines();
            for line in lines.iter().filter(|line| !said.contains(*line)) {
                text.push_str(&format!("   {line}\n"));
            }
            said = lines;
        }
        if !text.is_empty() && !print(&text) {
            return std::future::pending().await;
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// The steps, and how far they are.
fn progress(at: usize) -> String {
    let mut text = String::new();
    for (index, step) in STEPS.iter().enumerate() {
        let mark = match index.cmp(&at) {
            std::cmp::Ordering::Less => "✓",
            std::cmp::Ordering::Equal => "▸",
            std::cmp::Ordering::Greater => " ",
        };
        text.push_str(&format!("  {mark} {step}\n"));
    }
    text
}

fn hint(at: usize) -> &'static str {
    match at == STEPS.len() {
        true => "That was the demo. The cluster stays up until Ctrl-C: try kubectl now.\n",
        false => "● ready   ○ not ready   × going   Ctrl-C ends the cluster\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_marks_what_is_done_and_what_is_not() {
        let text = progress(1);
        let marks: Vec<char> = text.lines().filter_map(|line| line.chars().nth(2)).collect();
        assert_eq!(marks, ['✓', '▸', ' ', ' ']);
    }
}
