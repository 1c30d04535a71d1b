//! A server with one Lease, a clock, and an elector between them.

use picokube_core::leader_election::{Elector, LeaderElection, Step};
use picokube_core::request::{Failure, Method};
use picokube_core::time::{Duration, Instant, Timestamp};
use serde_json::{Value, json};

pub(crate) const ME: &str = "me";
pub(crate) const OTHER: &str = "other";
/// What a server's clock shows when that of the elector begins.
const EPOCH_SECS: i64 = 1_772_438_400;

/// All there is.
pub(crate) struct Election {
    pub(crate) elector: Elector,
    pub(crate) now: Instant,
    /// The Lease, if there is one.
    pub(crate) lease: Option<Value>,
    version: u64,
    /// What was asked for so far, and what came of it.
    pub(crate) told: Vec<(Step, u16)>,
    /// What becomes of the next requests; all that follow are answered.
    pub(crate) fates: Vec<Fate>,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// The server refuses it.
    Refused(u16),
    /// It does not arrive.
    Lost,
    /// It is carried out, and the answer does not arrive.
    AnswerLost,
    /// Somebody changes the Lease just before.
    Overtaken,
}

impl Election {
    /// An elector that has not begun, and a Lease of this holder that was renewed at second 0 for so many
    /// seconds.
    pub(crate) fn of(lease: Option<(&str, i32)>) -> Self {
        let settings = LeaderElection { identity: ME, ..LeaderElection::DEFAULT };
        assert_eq!(settings.check(), Ok(()));
        let mut election = Self {
            elector: Elector::new(settings),
            now: Instant::ZERO + Duration::from_secs(100),
            lease: None,
            version: 7,
            told: Vec::new(),
            fates: Vec::new(),
        };
        if let Some((holder, seconds)) = lease {
            election.write(holder, seconds);
        }
        election
    }

    /// Somebody else writes the Lease, with a new time of renewal.
    pub(crate) fn write(&mut self, holder: &str, seconds: i32) {
        let transitions = self.spec()["leaseTransitions"].as_i64().unwrap_or(3);
        let time = self.wall().rfc3339_micros().to_string();
        let mut spec = json!({
            "leaseDurationSeconds": seconds, "leaseTransitions": transitions,
            "acquireTime": "2026-03-02T08:00:00.000001Z", "renewTime": time,
        });
        if !holder.is_empty() {
            spec["holderIdentity"] = json!(holder);
        }
        self.store(spec);
    }

    fn store(&mut self, spec: Value) {
        self.version += 1;
        self.lease = Some(json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {
                "name": "picokube", "namespace": "kube-system",
                "uid": "1b2c3d4e-5f60-4718-8293-a4b5c6d7e8f9",
                "resourceVersion": self.version.to_string(),
                "labels": {"kept": "by others"},
            },
            "spec": spec,
        }));
    }

    /// The server's time.
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::from_secs(EPOCH_SECS).saturating_add(self.now.since(Instant::ZERO))
    }

    pub(crate) fn spec(&self) -> Value {
        self.lease.as_ref().map_or(Value::Null, |lease| lease["spec"].clone())
    }

    pub(crate) fn holder(&self) -> String {
        self.spec()["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    /// One request and its answer, if there is something to send.
    pub(crate) fn step(&mut self) -> Option<Step> {
        let wall = Some(self.wall());
        let step = self.elector.poll(self.now, wall, 0, false)?;
        let (mut target, mut body) = (String::new(), String::new());
        self.elector.write_target(&mut target).unwrap();
        self.elector.write_body(&mut body).unwrap();
        let fate = if self.fates.is_empty() { Fate::Answered } else { self.fates.remove(0) };
        let (status, answer) = match fate {
            Fate::Lost => (0, Value::Null),
            Fate::Refused(status) => (status, json!({"kind": "Status", "code": status})),
            Fate::Overtaken => {
                let spec = self.spec();
                self.store(spec);
                self.serve(step, &target, &body)
            }
            Fate::Answered => self.serve(step, &target, &body),
            Fate::AnswerLost => (0, self.serve(step, &target, &body).1),
        };
        self.told.push((step, status));
        if status == 0 {
            self.elector.answered(Err(Failure::Ambiguous), self.now, 0);
        } else {
            // In two pieces, as it may come.
            let text = answer.to_string();
            let (first, second) = text.as_bytes().split_at(text.len() / 2);
            self.elector.body(first);
            self.elector.body(second);
            self.elector.answered(Ok(status), self.now, 0);
        }
        Some(step)
    }

    /// All that is to be sent now.
    pub(crate) fn steps(&mut self) -> Vec<Step> {
        std::iter::from_fn(|| self.step()).collect()
    }

    /// One whole try, events not included: what was sent for it.
    pub(crate) fn try_once(&mut self) -> Vec<Step> {
        let mut steps = self.steps();
        steps.retain(|step| !matches!(step, Step::Announce(_)));
        steps
    }

    /// What a server does.
    fn serve(&mut self, step: Step, target: &str, body: &str) -> (u16, Value) {
        if let Step::Announce(_) = step {
            assert_eq!(target, "/api/v1/namespaces/kube-system/events");
            return (201, serde_json::from_str(body).unwrap());
        }
        let collection = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        let object = format!("{collection}/picokube");
        let refusal = |code: u16| (code, json!({"kind": "Status", "code": code}));
        let (method, content_type) = step.method();
        match (method, self.lease.clone()) {
            (Method::Get, lease) => {
                assert_eq!(target, object);
                lease.map_or(refusal(404), |lease| (200, lease))
            }
            (Method::Post, None) => {
                assert_eq!(target, collection);
                let lease: Value = serde_json::from_str(body).unwrap();
                assert_eq!(lease["metadata"]["name"], "picokube");
                self.store(lease["spec"].clone());
                (201, self.lease.clone().unwrap())
            }
            (Method::Post, Some(_)) => refusal(409),
            (Method::Patch, None) => refusal(404),
            (Method::Patch, Some(lease)) => {
                assert_eq!(
                    (target, content_type.name()),
                    (&*object, "application/merge-patch+json")
                );
                let patch: Value = serde_json::from_str(body).unwrap();
                if patch["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
                    return refusal(409);
                }
                let mut spec = lease["spec"].clone();
                for (name, value) in patch["spec"].as_object().unwrap() {
                    match value {
                        Value::Null => drop(spec.as_object_mut().unwrap().remove(name)),
                        value => spec[name] = value.clone(),
                    }
                }
                self.store(spec);
                (200, self.lease.clone().unwrap())
            }
            (Method::Delete, _) => unreachable!("nobody deletes a Lease"),
        }
    }

    /// An elector that leads, and has told so.
    pub(crate) fn led() -> Self {
        let mut election = Self::of(None);
        while !election.elector.leads() || election.elector.poll_at() <= Some(election.now) {
            assert!(election.step().is_some(), "nothing more to do: {:?}", election.told);
        }
        election.told.clear();
        election
    }
}
