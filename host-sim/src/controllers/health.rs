//! What running controllers tell about themselves: metrics and health, by call and over HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use picokube_core::manager::{ControllerName, Settings};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::http::MetricsSource;

/// A handle on controllers that run. They run on when it is dropped.
#[derive(Clone, Debug)]
pub struct Controllers {
    pub(super) metrics: MetricsSource,
    pub(super) health: mpsc::Sender<oneshot::Sender<Health>>,
    pub(super) release: mpsc::Sender<oneshot::Sender<()>>,
}

/// How controllers are.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// Their settings.
    pub settings: Settings,
    /// Whether they have seen the whole cluster, and act if they lead.
    pub started: bool,
    /// Not if they lead, and their lease ended long ago.
    pub is_leader_healthy: bool,
    /// ReplicaSets that nothing is done for, because not all of their pods fit into memory.
    pub blind_replica_sets: usize,
    /// Deployments that nothing is done for, because not all of their ReplicaSets fit.
    pub blind_deployments: usize,
}

impl Controllers {
    /// Where to ask for their metrics.
    pub fn metrics_source(&self) -> MetricsSource {
        self.metrics.clone()
    }

    /// Their metrics in Prometheus' text format; `None` if they do not answer any more.
    pub async fn metrics(&self) -> Option<String> {
        ask(&self.metrics).await
    }

    /// How they are; `None` if they do not answer any more.
    pub async fn health(&self) -> Option<Health> {
        ask(&self.health).await
    }

    /// Has them write nothing any more and give leadership back, so that others lead before long.
    pub async fn release_leadership(&self) {
        // Who has ended by itself has nothing to give back.
        let _ = ask(&self.release).await;
    }

    /// Serves `/metrics`, `/healthz`, `/livez` and `/readyz` until the process ends; gives the
    /// address, with the port that was chosen if none was given.
    pub async fn serve(&self, address: SocketAddr) -> Result<SocketAddr> {
        let listener = TcpListener::bind(address).await;
        let listener = listener
            .with_context(|| format!("--metrics-bind-address: cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        let controllers = self.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let controllers = controllers.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| controllers.answer(request));
                    let mut builder = hyper::server::conn::http1::Builder::new();
                    // A broken connection concerns its client only.
                    let _ = builder
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(address)
    }

    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
    ) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
        let verbose = request.uri().query().is_some_and(|query| query.contains("verbose"));
        let path = request.uri().path().trim_end_matches('/').to_owned();
        let (status, text) = match path.as_str() {
            "/metrics" => match self.metrics().await {
                Some(text) => (200, text),
                None => (500, "the controllers do not answer\n".to_owned()),
            },
            "/healthz" | "/livez" => verdict(&path, &live(self.health().await), "", verbose),
            path if path.starts_with("/healthz/") => one(path, &live(self.health().await), verbose),
            "/readyz" => {
                let health = self.health().await;
                verdict(&path, &ready(health), &note(health), verbose)
            }
            _ => (404, "try /metrics, /healthz, /livez or /readyz\n".to_owned()),
        };
        let mut response = hyper::Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
        let plain = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(hyper::header::CONTENT_TYPE, plain);
        Ok(response)
    }
}

async fn ask<T>(whom: &mpsc::Sender<oneshot::Sender<T>>) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    whom.send(sender).await.ok()?;
    receiver.await.ok()
}

/// The name of a check, and what is wrong if it fails.
type Check = (&'static str, Result<(), String>);

/// As in kube-controller-manager, every controller that runs has a check of its name.
fn live(health: Option<Health>) -> Vec<Check> {
    let Some(health) = health else {
        return vec![("controllers", Err("they do not answer".to_owned()))];
    };
    let enabled = ControllerName::ALL
        .iter()
        .filter(|controller| health.settings.controllers.contains(**controller));
    let mut checks: Vec<Check> = enabled.map(|controller| (controller.name(), Ok(()))).collect();
    if let Some(election) = health.settings.leader_election {
        let complaint =
            || format!("failed election to renew leadership on lease {}", election.resource_name);
        let verdict = if health.is_leader_healthy { Ok(()) } else { Err(complaint()) };
        checks.insert(0, ("leaderElection", verdict));
    }
    checks
}

/// The answer about one check.
fn one(path: &str, checks: &[Check], verbose: bool) -> (u16, String) {
    let name = path.trim_start_matches("/healthz/");
    match checks.iter().find(|(check, _)| *check == name) {
        Some(check) => verdict(path, std::slice::from_ref(check), "", verbose),
        None => (404, format!("there is no check {name}\n")),
    }
}

fn ready(health: Option<Health>) -> Vec<Check> {
    let mut checks = live(health);
    let Some(health) = health else { return checks };
    let synced = health.started.then_some(()).ok_or("not all objects were seen yet".to_owned());
    checks.push(("caches", synced));
    checks
}

/// Full memory is told, but no failure: everybody else is served as usual, and a restart would
/// not help.
fn note(health: Option<Health>) -> String {
    match health.map(|health| (health.blind_replica_sets, health.blind_deployments)) {
        None | Some((0, 0)) => String::new(),
        Some((sets, deployments)) => format!(
            "[!]memory is full: nothing is done for {sets} ReplicaSets and {deployments} \
             Deployments\n"
        ),
    }
}

/// The answer in kube-controller-manager's form.
fn verdict(path: &str, checks: &[Check], note: &str, verbose: bool) -> (u16, String) {
    let name = path.trim_start_matches('/');
    let failed = checks.iter().any(|(_, result)| result.is_err());
    if !failed && !verbose {
        return (200, "ok".to_owned());
    }
    let mut text = String::new();
    for (check, result) in checks {
        text.push_str(&match result {
            Ok(()) => format!("[+]{check} ok\n"),
            Err(reason) => format!("[-]{check} failed: {reason}\n"),
        });
    }
    text.push_str(note);
    text.push_str(&format!("{name} check {}\n", if failed { "failed" } else { "passed" }));
    (if failed { 500 } else { 200 }, text)
}

#[cfg(test)]
mod tests {
    use picokube_core::leader_election::LeaderElection;

    use super::*;

    const HEALTH: Health = Health {
        settings: Settings::DEFAULT,
        started: true,
        is_leader_healthy: true,
        blind_replica_sets: 0,
        blind_deployments: 0,
    };

    #[test]
    fn health_is_told_as_kubernetes_tells_it() {
        assert_eq!(verdict("/healthz", &live(Some(HEALTH)), "", false), (200, "ok".to_owned()));
        let (status, text) = verdict("/readyz", &ready(Some(HEALTH)), &note(Some(HEALTH)), true);
        assert_eq!(status, 200);
        assert_eq!(
            text,
            "[+]deployment-controller ok\n[+]replicaset-controller ok\n\
             [+]statefulset-controller ok\n[+]replicationcontroller-controller ok\n\
             [+]caches ok\nreadyz check passed\n"
        );
    }

    #[test]
    fn who_has_not_seen_everything_is_not_ready_but_lives() {
        let starting = Health { started: false, ..HEALTH };
        assert_eq!(verdict("/livez", &live(Some(starting)), "", false).0, 200);
        let (status, text) = verdict("/readyz", &ready(Some(starting)), "", false);
        assert_eq!(status, 500);
        assert!(text.contains("[-]caches failed: not all objects were seen yet"), "{text}");
    }

    #[test]
    fn full_memory_is_told() {
        let full = Health { blind_replica_sets: 2, blind_deployments: 1, ..HEALTH };
        let (status, text) = verdict("/readyz", &ready(Some(full)), &note(Some(full)), true);
        assert_eq!(status, 200);
        assert!(text.contains("nothing is done for 2 ReplicaSets and 1 Deployments"), "{text}");
    }

    #[test]
    fn a_leader_whose_lease_ended_long_ago_is_ill_and_has_a_check_of_its_own() {
        let election = Some(LeaderElection::DEFAULT);
        let settings = Settings { leader_election: election, ..Settings::DEFAULT };
        let well = Health { settings, ..HEALTH };
        let path = "/healthz/leaderElection";
        assert_eq!(one(path, &live(Some(well)), false), (200, "ok".to_owned()));
        let ill = Health { is_leader_healthy: false, ..well };
        let (status, text) = one(path, &live(Some(ill)), false);
        assert_eq!(status, 500);
        let reason = "failed election to renew leadership on lease picokube";
        assert!(text.starts_with(&format!("[-]leaderElection failed: {reason}\n")), "{text}");
        assert_eq!(verdict("/healthz", &live(Some(ill)), "", false).0, 500);
        assert_eq!(one(path, &live(Some(HEALTH)), false).0, 404, "there is no election");
    }

    #[test]
    fn who_does_not_answer_is_not_alive() {
        assert_eq!(verdict("/livez", &live(None), "", false).0, 500);
    }
}
