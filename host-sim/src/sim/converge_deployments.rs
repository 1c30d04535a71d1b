//! What must hold of Deployments, ReplicaSets and ReplicationControllers in the end, told from the server's
//! objects alone.

use serde_json::Value;

use super::checks::deployments::words::{HASH, REVISION};
use super::checks::{Facts, Model, Verdict};
use super::converge::wrong;

/// No deadline, and no limit.
const NONE: i64 = i32::MAX as i64;

impl Model {
    /// A Deployment has one ReplicaSet of its template, which has all of its pods.
    pub(super) fn deployments_are_complete(&self) -> Verdict {
        for d in self.all("deployments").filter(|d| !d.deleting) {
            let mut sets: Vec<&Facts> = self.of(d, "replicasets").collect();
            sets.sort_by_key(|set| set.age());
            let end = DeploymentEnd { model: self, d, sets };
            end.has_what_it_selects()?;
            let current = end.current()?;
            end.is_rolled_out(current)?;
            end.has_its_history(current)?;
            end.tells_the_truth(current)?;
        }
        Ok(())
    }

    /// A ReplicaSet or ReplicationController has as many pods as it wants, all of which it selects; and it
    /// tells of them.
    pub(super) fn replica_sets_have_their_pods(&self) -> Verdict {
        let all = self.all("replicasets").chain(self.all("replicationcontrollers"));
        all.filter(|set| !set.deleting).try_for_each(|set| {
            let pods: Vec<&Facts> = self.of(set, "pods").filter(|pod| pod.is_active()).collect();
            self.has_what_it_selects(set, &pods)?;
            let ready = pods.iter().filter(|pod| pod.is_ready()).count();
            let wanted = set.spec("replicas");
            // Nobody puts right the image of one that has lost its Deployment.
            let is_forlorn = set.controller.is_none() && !set.runs();
            let there = pods.len() as i64;
            if there != wanted || (ready as i64 != wanted && !is_forlorn) {
                let detail = format!("{}: {wanted} wanted, {there} there, {ready} ready", set.key);
                return wrong(detail);
            }
            if set.controller.is_some() {
                let stranger = pods.iter().find(|pod| !self.is_right(pod, set.template()));
                if let Some(pod) = stranger {
                    return wrong(format!("{}: it is not made of {}'s template", pod.key, set.key));
                }
            }
            let template = &set.template()["metadata"]["labels"];
            let labelled = pods.iter().filter(|pod| pod.has_labels(template)).count() as i64;
            let counts = [
                ("replicas", there),
                ("fullyLabeledReplicas", labelled),
                ("readyReplicas", ready as i64),
                ("availableReplicas", ready as i64),
                ("observedGeneration", set.generation()),
            ];
            told(set, &counts)
        })
    }

    /// Whether a pod is made of the template of whom it belongs to. What was adopted is as it was: who
    /// selects a pod takes it, whatever it is made of.
    fn is_right(&self, pod: &Facts, template: &Value) -> bool {
        pod.is_made_of_all(template) || self.past.was_anothers(pod)
    }

    /// What a workload owns it selects, and what it selects is somebody's.
    fn has_what_it_selects(&self, owner: &Facts, owned: &[&Facts]) -> Verdict {
        let labels = |it: &Facts| it.object["metadata"]["labels"].clone();
        if let Some(stray) = owned.iter().find(|it| !owner.selects(&labels(it))) {
            return wrong(format!("{} is not let go by {}", stray.key, owner.key));
        }
        let plural = if owner.plural == "deployments" { "replicasets" } else { "pods" };
        let mut orphans = self.all(plural).filter(|it| {
            let is_near = it.namespace() == owner.namespace() && it.controller.is_none();
            is_near && !it.deleting && (plural != "pods" || it.is_active())
        });
        match orphans.find(|it| owner.selects(&labels(it))) {
            Some(orphan) => wrong(format!("{} is not adopted by {}", orphan.key, owner.key)),
            None => Ok(()),
        }
    }

    /// What an object controls, of one resource, and is not on its way out.
    fn of<'m>(&'m self, owner: &'m Facts, plural: &'static str) -> impl Iterator<Item = &'m Facts> {
        self.controlled_by(&owner.uid).filter(move |it| it.plural == plural && !it.deleting)
    }
}

/// A Deployment in the end, and its ReplicaSets, the oldest first.
struct DeploymentEnd<'e> {
    model: &'e Model,
    d: &'e Facts,
    sets: Vec<&'e Facts>,
}

impl<'e> DeploymentEnd<'e> {
    fn has_what_it_selects(&self) -> Verdict {
        self.model.has_what_it_selects(self.d, &self.sets)
    }

    /// The oldest ReplicaSet of its template.
    fn current(&self) -> Result<&'e Facts, (&'static str, String)> {
        let template = self.d.bare_template();
        let current = self.sets.iter().find(|set| set.is_of_template(&template));
        match current {
            Some(current) => Ok(current),
            None => Err(wrong(format!("{}: no ReplicaSet is of its template", self.d.key))
                .err()
                .unwrap_or_default()),
        }
    }

    /// All of its pods are of its template, field by field, and there are no others.
    fn is_rolled_out(&self, current: &Facts) -> Verdict {
        let wanted = self.d.spec("replicas");
        for set in &self.sets {
            let right = if set.uid == current.uid { wanted } else { 0 };
            if set.spec("replicas") != right {
                return wrong(format!("{}: its size should be {right}", set.key));
            }
        }
        if current.spec("minReadySeconds") != self.d.spec("minReadySeconds") {
            return wrong(format!("{}: it does not follow {}", current.key, self.d.key));
        }
        let mut expected = self.d.template().clone();
        // One that was made by hand, and adopted, has none.
        let hash = &current.template()["metadata"]["labels"][HASH];
        if hash.is_string() {
            expected["metadata"]["labels"][HASH] = hash.clone();
        }
        let mut pods = self.model.of(current, "pods").filter(|pod| pod.is_active());
        match pods.find(|pod| !self.model.is_right(pod, &expected)) {
            Some(pod) => wrong(format!("{}: it is not made of {}'s template", pod.key, self.d.key)),
            None => Ok(()),
        }
    }

    /// Its revision is the highest, and there is not more history than is wanted.
    fn has_its_history(&self, current: &Facts) -> Verdict {
        let old = || self.sets.iter().filter(|set| set.uid != current.uid);
        let highest = old().filter_map(|set| set.number(REVISION)).max().unwrap_or(0);
        let revision = current.number(REVISION);
        if revision.is_none_or(|it| it <= highest) || self.d.number(REVISION) != revision {
            let (own, told) = (revision, self.d.number(REVISION));
            return wrong(format!("{}: revision {own:?}, told {told:?}", current.key));
        }
        let limit = self.d.object["spec"]["revisionHistoryLimit"].as_i64().unwrap_or(NONE);
        if old().count() as i64 > limit {
            return wrong(format!("{}: {} old sets, {limit} allowed", self.d.key, old().count()));
        }
        Ok(())
    }

    /// The status is a plain count, and says that all is well.
    fn tells_the_truth(&self, current: &Facts) -> Verdict {
        let pods = || self.model.of(current, "pods").filter(|pod| pod.is_active());
        let all = pods().count() as i64;
        let ready = pods().filter(|pod| pod.is_ready()).count() as i64;
        let counts = [
            ("replicas", all),
            ("updatedReplicas", all),
            ("readyReplicas", ready),
            ("availableReplicas", ready),
            ("unavailableReplicas", 0),
            ("observedGeneration", self.d.generation()),
        ];
        told(self.d, &counts)?;
        let has_deadline = self.d.object["spec"]["progressDeadlineSeconds"].as_i64() != Some(NONE);
        let conditions = self.d.object["status"]["conditions"].as_array();
        let holds = |kind: &str, reason: &str| {
            let mut all = conditions.into_iter().flatten();
            all.any(|it| it["type"] == kind && it["status"] == "True" && it["reason"] == reason)
        };
        let is_available = holds("Available", "MinimumReplicasAvailable");
        if !is_available || (has_deadline && !holds("Progressing", "NewReplicaSetAvailable")) {
            return wrong(format!("{}: its conditions are {conditions:?}", self.d.key));
        }
        Ok(())
    }
}

/// Whether a status has these numbers.
fn told(object: &Facts, counts: &[(&str, i64)]) -> Verdict {
    match counts.iter().find(|(field, count)| object.status(field) != *count) {
        Some((field, count)) => {
            let status = &object.object["status"];
            wrong(format!("{}: {field} is {count}, told {status}", object.key))
        }
        None => Ok(()),
    }
}

impl Facts {
    fn generation(&self) -> i64 {
        self.object["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    pub(super) fn has_labels(&self, labels: &Value) -> bool {
        let mut wanted = labels.as_object().into_iter().flatten();
        wanted.all(|(name, value)| self.label(name) == value.as_str())
    }
}
