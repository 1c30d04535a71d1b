//! The live status: one screen in a terminal, a line now and then elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::http::SharedServer;
use crate::server::Server;
use crate::store::Entry;

use super::firmware::Devices;

const REFRESH: Duration = Duration::from_millis(500);
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Clears the screen.
pub(super) const CLEAR: &str = "\x1b[2J\x1b[H";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// Shows what the cluster is doing, until it is dropped.
pub(super) async fn show(shared: Arc<SharedServer>, url: String, devices: &Devices) {
    if std::io::stdout().is_terminal() {
        let _restore = RestoreCursor::new();
        let mut before = shared.read().store().revision();
        loop {
            let summary = Summary::of(&shared.read());
            let writes = (summary.revision - before) as f64 / REFRESH.as_secs_f64();
            before = summary.revision;
            let mut screen = summary.screen(&url, shared.open_watches(), writes);
            screen += &devices.screen();
            if !print(&format!("{CLEAR}{screen}")) {
                return std::future::pending().await;
            }
            tokio::time::sleep(REFRESH).await;
        }
    }
    let mut said = String::new();
    let mut shown_of_log = 0;
    let mut next = Instant::now();
    loop {
        for line in devices.lines_after(&mut shown_of_log) {
            print(&format!("{line}\n"));
        }
        if Instant::now() < next {
            tokio::time::sleep(REFRESH).await;
            continue;
        }
        next = Instant::now() + LOG_EVERY;
        let line = Summary::of(&shared.read()).line();
        if line != said && !print(&format!("{line}\n")) {
            // Nobody reads any more; the server goes on.
            return std::future::pending().await;
        }
        said = line;
    }
}

/// Hides the cursor, and shows it again whatever happens.
pub(super) struct RestoreCursor;

impl RestoreCursor {
    pub(super) fn new() -> Self {
        print(HIDE_CURSOR);
        Self
    }
}

impl Drop for RestoreCursor {
    fn drop(&mut self) {
        print(SHOW_CURSOR);
    }
}

/// Prints at once; says whether anybody takes it.
pub(super) fn print(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// The numbers worth showing.
struct Summary {
    revision: u64,
    objects: Vec<(String, usize)>,
    phases: BTreeMap<String, usize>,
    nodes: Vec<(String, usize)>,
    /// Who holds which Lease of controllers.
    leaders: Vec<String>,
}

impl Summary {
    fn of(server: &Server) -> Self {
        let mut summary = Self {
            revision: server.store().revision(),
            objects: Vec::new(),
            phases: BTreeMap::new(),
            nodes: Vec::new(),
            leaders: Vec::new(),
        };
        let mut per_node: BTreeMap<String, usize> = BTreeMap::new();
        for (id, kind) in server.stored_kinds().iter().enumerate() {
            let resource = server.store().resource(crate::store::ResourceId(id as u16));
            if !resource.is_empty() {
                summary.objects.push((kind.plural.to_owned(), resource.len()));
            }
            match (kind.group, kind.plural) {
                ("", "pods") => {
                    for pod in resource.range("", None) {
                        let fields = pod.fields();
                        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
                        let phase = if pod.deletion.is_some() {
                            "Terminating".to_owned()
                        } else {
                            text(&fields["status"]["phase"]).unwrap_or_default()
                        };
                        *summary.phases.entry(phase).or_default() += 1;
                        if let Some(node) = text(&fields["spec"]["nodeName"]) {
                            *per_node.entry(node).or_default() += 1;
                        }
                    }
                }
                ("", "nodes") => {
                    summary.nodes =
                        resource.range("", None).map(|node| (node.name().to_owned(), 0)).collect();
                }
                ("coordination.k8s.io", "leases") => {
                    // Others are of nodes.
                    let of_controllers = resource.range("kube-system/", None);
                    summary.leaders = of_controllers.filter_map(leader).collect();
                }
                _ => {}
            }
        }
        for (name, count) in &mut summary.nodes {
            *count = per_node.get(name).copied().unwrap_or(0);
        }
        summary
    }

    fn screen(&self, url: &str, watches: usize, writes_per_second: f64) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "picokube  {url}   version {}", self.revision);
        let _ = writeln!(text, "{watches} watches, {writes_per_second:.0} writes/s\n");
        let _ = writeln!(text, "PODS     {}", join(self.phases.iter()));
        let _ = writeln!(text, "OBJECTS  {}", join(self.objects.iter().map(|(k, v)| (k, v))));
        for leader in &self.leaders {
            let _ = writeln!(text, "LEADER   {leader}");
        }
        text.push('\n');
        let _ = writeln!(text, "NODE              PODS");
        for (name, count) in self.nodes.iter().take(20) {
            let _ = writeln!(text, "{name:<17} {count}");
        }
        if self.nodes.len() > 20 {
            let _ = writeln!(text, "and {} more", self.nodes.len() - 20);
        }
        let _ = writeln!(text, "\nCtrl-C ends the cluster");
        text
    }

    fn line(&self) -> String {
        let pods = join(self.phases.iter());
        let pods = if pods.is_empty() { "none".to_owned() } else { pods };
        let leaders = self.leaders.iter().map(|leader| format!("; leader: {leader}"));
        format!("nodes: {}; pods: {pods}{}", self.nodes.len(), leaders.collect::<String>())
    }
}

/// Who holds a Lease, and which, if anybody does.
fn leader(lease: &Arc<Entry>) -> Option<String> {
    let fields = lease.fields();
    let holder = fields["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    Some(format!("{holder} ({})", lease.name()))
}

fn join<'a>(counts: impl Iterator<Item = (&'a String, &'a usize)>) -> String {
    let parts = counts.map(|(name, count)| format!("{count} {name}"));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::server::request::Request;
    use crate::store::HistoryLimits;
    use crate::time::Timestamp;

    fn server() -> Server {
        let now = Timestamp::from_unix_millis(0);
        let mut server = Server::new(1, HistoryLimits::default());
        let mut post = |path: &str, body: String| {
            let request = Request::new(Method::POST, path).with_body("application/json", body);
            assert_eq!(server.handle(now, &request).status, 201, "{path}");
        };
        post("/api/v1/namespaces", r#"{"metadata":{"name":"default"}}"#.to_owned());
        for node in 1..=22 {
            post("/api/v1/nodes", format!(r#"{{"metadata":{{"name":"node-{node:02}"}}}}"#));
        }
        for (name, node) in [("a", r#","nodeName":"node-02""#), ("b", "")] {
            let spec = format!(r#"{{"containers":[{{"name":"c","image":"i"}}]{node}}}"#);
            let body = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#);
            post("/api/v1/namespaces/default/pods", body);
        }
        let delete = Request::new(Method::DELETE, "/api/v1/namespaces/default/pods/a");
        assert_eq!(server.handle(now, &delete).status, 200);
        server
    }

    #[test]
    fn the_screen_shows_pods_objects_and_nodes() {
        let summary = Summary::of(&server());
        let screen = summary.screen("http://127.0.0.1:8001", 7, 2.6);
        let lines: Vec<&str> = screen.lines().collect();
        let version = summary.revision;
        assert_eq!(
            lines[..8],
            [
                format!("picokube  http://127.0.0.1:8001   version {version}").as_str(),
                "7 watches, 3 writes/s",
                "",
                "PODS     1 Pending, 1 Terminating",
                "OBJECTS  1 namespaces, 22 nodes, 2 pods",
                "",
                "NODE              PODS",
                "node-01           0",
            ]
        );
        assert_eq!(lines[8], "node-02           1");
        assert_eq!(lines[lines.len() - 3..], ["and 2 more", "", "Ctrl-C ends the cluster"]);
        assert_eq!(summary.line(), "nodes: 22; pods: 1 Pending, 1 Terminating");
    }

    #[test]
    fn who_leads_is_shown() {
        let mut server = server();
        let now = Timestamp::from_unix_millis(0);
        let mut post = |path: &str, body: String| {
            let request = Request::new(Method::POST, path).with_body("application/json", body);
            assert_eq!(server.handle(now, &request).status, 201, "{path}");
        };
        for namespace in ["kube-system", "kube-node-lease"] {
            let body = format!(r#"{{"metadata":{{"name":"{namespace}"}}}}"#);
            post("/api/v1/namespaces", body);
        }
        let mut lease = |namespace: &str, name: &str, holder: &str| {
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
            let spec = format!(r#"{{"holderIdentity":"{holder}"}}"#);
            post(&path, format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#));
        };
        lease("kube-system", "picokube", "gateway-1_7");
        lease("kube-system", "nobodys", "");
        lease("kube-node-lease", "node-01", "node-01");
        let summary = Summary::of(&server);
        let screen = summary.screen("http://127.0.0.1:8001", 7, 2.6);
        let leaders = screen.lines().filter(|line| line.starts_with("LEADER"));
        assert_eq!(leaders.collect::<Vec<_>>(), ["LEADER   gateway-1_7 (picokube)"], "{screen}");
        assert!(summary.line().ends_with("; leader: gateway-1_7 (picokube)"), "{}", summary.line());
    }

    #[test]
    fn an_empty_cluster_has_a_line_too() {
        let server = Server::new(1, HistoryLimits::default());
        assert_eq!(Summary::of(&server).line(), "nodes: 0; pods: none");
    }
}
