//! The namespace a scenario has for itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::client::Client;
use super::object::{is_deleting, is_set, members, name, text};
use super::resource::Resource;
use super::step::PatchKind;

/// Where nothing tells of changes, how long until the next look.
const POLL: Duration = Duration::from_millis(50);
/// How long pods may take to go.
const PATIENCE: Duration = Duration::from_secs(120);

/// A namespace of its own.
#[derive(Debug)]
pub struct Namespace {
    /// Its name, which no other run has.
    pub name: String,
}

impl Namespace {
    /// Creates one, and asks picokube's simulated nodes to leave its pods alone.
    pub async fn create(client: &Client, scenario: &str) -> Result<Self> {
        Self::named(client, format!("g-{scenario}-{}", unique())).await
    }

    /// Creates one of this name.
    pub async fn named(client: &Client, name: String) -> Result<Self> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "annotations": {"sim.picokube.dev/manual": "true"}},
        });
        let answer = client.post("/api/v1/namespaces", &namespace).await?;
        let message = text(&answer.body["message"]);
        ensure!(answer.is_success(), "cannot create namespace {name}: {message}");
        Ok(Self { name })
    }

    /// Empties it and removes it. Where no namespace controller runs, this is all that cleans up.
    pub async fn remove(&self, client: &Client) -> Result<()> {
        for resource in Resource::ALL {
            let mut options = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            });
            if resource == Resource::Pods {
                options["gracePeriodSeconds"] = 0.into();
            }
            client.delete(&resource.collection(&self.name), &options).await?;
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && self.remove_pods(client).await? > 0 {
            sleep(POLL).await;
        }
        client.delete(&format!("/api/v1/namespaces/{}", self.name), &json!({})).await?;
        Ok(())
    }

    /// Removes every pod, held back or not; says how many there were.
    async fn remove_pods(&self, client: &Client) -> Result<usize> {
        let list = client.get(&Resource::Pods.collection(&self.name)).await?;
        let pods = members(&list.body["items"]);
        for pod in pods {
            let path = Resource::Pods.object(&self.name, name(pod));
            if is_set(&pod["metadata"]["finalizers"]) {
                let patch = json!({"metadata": {"finalizers": Value::Null}});
                client.patch(&path, &patch, PatchKind::Merge.content_type()).await?;
            }
            if is_deleting(pod) {
                client.delete(&path, &json!({"gracePeriodSeconds": 0})).await?;
            }
        }
        Ok(pods.len())
    }
}

/// Six hexadecimal digits that no other run on this machine has at about this time.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = u64::from(std::process::id());
    let mixed = (now.as_millis() as u64).wrapping_add(process << 12).wrapping_add(count << 4);
    format!("{:06x}", mixed % (1 << 24))
}
