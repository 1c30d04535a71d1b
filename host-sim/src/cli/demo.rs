//! `picokube up --demo`: three Deployments, a rollout, one that fails, and an undo; a StatefulSet and a
//! canary; as they happen.
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

const STEPS: [&str; 7] = [
    "apply three Deployments",
    "roll out web: from app:1 to app:2",
    "roll out api: to an image that does not exist",
    "undo that",
    "apply a StatefulSet: db, whose pods come one by one, with a claim each",
    "update db: the last pod only, a canary",
    "update the others",
];

const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const DB: &str = "/apis/apps/v1/namespaces/default/statefulsets/db";
/// The ordinal of its last pod.
const LAST: u64 = 2;

/// Plays and shows the demo; then goes on showing the cluster until it is dropped.
pub(super) async fn run(shared: Arc<SharedServer>, url: String) -> Result<()> {
    let terminal = std::io::stdout().is_terminal();
    let _restore = terminal.then(RestoreCursor::new);
    // Whether anybody takes what is printed makes no difference: the cluster stays up.
    let print = |text: &str| _ = print(text);
    let mut show = Show { shared: &shared, url: &url, terminal, print, at: 0, said: Vec::new() };
    play(&mut show).await?;
    loop {
        tokio::time::sleep(GLANCE).await;
        show.glance();
    }
}

/// Does what a user would do, a step at a time.
async fn play<P: FnMut(&str)>(show: &mut Show<'_, P>) -> Result<()> {
    let shared = show.shared;
    show.begin(0);
    for (name, replicas) in [("web", 4), ("api", 3), ("worker", 2)] {
        ask(shared, Method::POST, DEPLOYMENTS, &deployment(name, replicas)).await?;
    }
    show.until(|all| all.len() == 3 && all.iter().all(is_rolled_out)).await?;

    show.begin(1);
    set_image(shared, "web", "app:2").await?;
    show.until(|all| all.iter().all(is_rolled_out)).await?;

    show.begin(2);
    set_image(shared, "api", "app:bad").await?;
    show.until(|all| all.iter().any(has_failed)).await?;

    show.begin(3);
    set_image(shared, "api", "app:1").await?;
    show.until(|all| all.iter().all(is_rolled_out)).await?;

    show.begin(4);
    ask(shared, Method::POST, STATEFUL_SETS, &stateful_set("db", LAST + 1)).await?;
    show.until_sets(is_rolled_out).await?;

    show.begin(5);
    let strategy = |partition: u64| json!({"rollingUpdate": {"partition": partition}});
    ask(shared, Method::PATCH, DB, &json!({"spec": {"updateStrategy": strategy(LAST)}})).await?;
    set_image_of(shared, DB, "app:2").await?;
    show.until_sets(|db| is_rolled_out_to(db, 1)).await?;

    show.begin(6);
    ask(shared, Method::PATCH, DB, &json!({"spec": {"updateStrategy": strategy(0)}})).await?;
    show.until_sets(|db| is_rolled_out_to(db, LAST + 1)).await?;
    show.begin(STEPS.len());
    Ok(())
}

/// Whether so many pods of a StatefulSet are of the latest template, and all are available.
fn is_rolled_out_to(set: &Value, updated: u64) -> bool {
    let mut set = set.clone();
    let is_updated = set["status"]["updatedReplicas"] == updated;
    set["status"]["updatedReplicas"] = set["spec"]["replicas"].clone();
    is_updated && is_rolled_out(&set)
}

fn stateful_set(name: &str, replicas: u64) -> Value {
    let request = json!({"requests": {"storage": "1Gi"}});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": request});
    let mut set = deployment(name, replicas);
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!(name);
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
    if let Some(spec) = set["spec"].as_object_mut() {
        spec.remove("progressDeadlineSeconds");
    }
    set
}

fn deployment(name: &str, replicas: u64) -> Value {
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
    set_image_of(shared, &format!("{DEPLOYMENTS}/{name}"), image).await
}

async fn set_image_of(shared: &SharedServer, path: &str, image: &str) -> Result<()> {
    let containers = json!([{"name": "app", "image": image}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    ask(shared, Method::PATCH, path, &patch).await
}

/// Whether the deadline of a rollout has passed.
fn has_failed(deployment: &Value) -> bool {
    let conditions = deployment["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| condition["reason"] == "ProgressDeadlineExceeded")
    })
}

/// What the spectator sees. What a step achieves is always told before the next one begins.
struct Show<'a, P> {
    shared: &'a SharedServer,
    url: &'a str,
    terminal: bool,
    print: P,
    /// The step that is played.
    at: usize,
    /// The lines last told, outside a terminal.
    said: Vec<String>,
}

impl<P: FnMut(&str)> Show<'_, P> {
    /// Goes on to a step.
    fn begin(&mut self, at: usize) {
        self.at = at;
        if !self.terminal {
            let step = STEPS.get(at).map(|step| format!("\n{}. {step}\n", at + 1));
            (self.print)(&step.unwrap_or(format!("\n{}", hint(at))));
        }
    }

    /// Shows the cluster as it is.
    fn glance(&mut self) {
        let table = Table::of(self.shared);
        if self.terminal {
            let (url, at) = (self.url, self.at);
            let screen =
                format!("{CLEAR}picokube  {url}\n\n{}\n{table}\n{}", progress(at), hint(at));
            (self.print)(&screen);
            return;
        }
        let lines = table.lines();
        for line in lines.iter().filter(|line| !self.said.contains(*line)) {
            (self.print)(&format!("   {line}\n"));
        }
        self.said = lines;
    }

    /// Shows the cluster until its Deployments are as the step wants them, and a while longer.
    async fn until(&mut self, achieved: impl Fn(&[Value]) -> bool) -> Result<()> {
        self.until_objects("deployments", achieved).await
    }

    /// Likewise, for StatefulSets.
    async fn until_sets(&mut self, achieved: impl Fn(&Value) -> bool) -> Result<()> {
        let all = |sets: &[Value]| !sets.is_empty() && sets.iter().all(&achieved);
        self.until_objects("statefulsets", all).await
    }

    async fn until_objects(
        &mut self,
        plural: &str,
        achieved: impl Fn(&[Value]) -> bool,
    ) -> Result<()> {
        let give_up = Instant::now() + PATIENCE;
        while !achieved(&objects(self.shared, plural)) {
            if Instant::now() > give_up {
                bail!("the demo does not go on; does anybody else change its {plural}?");
            }
            self.glance();
            tokio::time::sleep(GLANCE).await;
        }
        self.glance();
        let look_until = Instant::now() + PAUSE;
        while self.terminal && Instant::now() < look_until {
            tokio::time::sleep(GLANCE).await;
            self.glance();
        }
        Ok(())
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
    use crate::http::Cluster;
    use crate::store::HistoryLimits;

    #[tokio::test]
    async fn what_was_achieved_is_told_before_the_next_step() -> Result<()> {
        let cluster = Cluster::start(HistoryLimits::default(), None)?;
        let shared = cluster.shared();
        ask(shared, Method::POST, DEPLOYMENTS, &deployment("web", 1)).await?;
        let mut set = deployment("web-1", 1);
        let uid = &objects(shared, "deployments")[0]["metadata"]["uid"];
        set["kind"] = json!("ReplicaSet");
        set["spec"]["progressDeadlineSeconds"].take();
        set["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid}]);
        ask(shared, Method::POST, "/apis/apps/v1/namespaces/default/replicasets", &set).await?;
        let mut told = String::new();
        let print = |text: &str| told.push_str(text);
        let mut show = Show { shared, url: "", terminal: false, print, at: 3, said: Vec::new() };
        // Achieved before anybody has looked.
        show.until(|all| all.len() == 1).await?;
        show.begin(STEPS.len());
        let (achieved, end) = (told.find("in progress"), told.find("That was the demo"));
        assert!(achieved.is_some() && achieved < end, "{told}");
        Ok(())
    }

    #[test]
    fn progress_marks_what_is_done_and_what_is_not() {
        let text = progress(1);
        let marks: Vec<char> = text.lines().filter_map(|line| line.chars().nth(2)).collect();
        assert_eq!(marks, ['✓', '▸', ' ', ' ', ' ', ' ', ' ']);
    }
}
