//! What must hold of StatefulSets in the end, told from the server's objects alone.

use std::collections::BTreeSet;

use super::checks::names::{POD_INDEX, POD_NAME, REVISION};
use super::checks::{Facts, Model, Verdict};
use super::converge::wrong;

impl Model {
    pub(super) fn stateful_sets_are_complete(&self) -> Verdict {
        let sets = self.all("statefulsets").filter(|set| !set.deleting);
        sets.into_iter().try_for_each(|set| {
            let owned = |plural: &'static str| -> Vec<&Facts> {
                self.controlled_by(&set.uid).filter(|it| it.plural == plural).collect()
            };
            let end = End {
                model: self,
                set,
                pods: owned("pods"),
                revisions: owned("controllerrevisions"),
            };
            end.has_its_pods()?;
            end.has_its_revisions()?;
            end.pods_are_of_their_revisions()?;
            end.has_its_claims()?;
            end.tells_the_truth()
        })
    }
}

/// A StatefulSet in the end.
struct End<'e> {
    model: &'e Model,
    set: &'e Facts,
    pods: Vec<&'e Facts>,
    revisions: Vec<&'e Facts>,
}

impl End<'_> {
    /// Exactly those of its ordinals, all of them up.
    fn has_its_pods(&self) -> Verdict {
        let wanted: BTreeSet<String> =
            self.set.ordinals().map(|ordinal| self.set.pod_key(ordinal)).collect();
        let there: BTreeSet<String> = self.pods.iter().map(|pod| pod.key.clone()).collect();
        if wanted != there {
            return wrong(format!("{}: {there:?} are there, not {wanted:?}", self.set.key));
        }
        for (pod, ordinal) in self.pods.iter().map(|pod| (pod, self.ordinal(pod))) {
            let has_identity = pod.label(POD_NAME) == Some(pod.name())
                && pod.label(POD_INDEX) == Some(&ordinal.to_string());
            if !pod.is_up() || !has_identity {
                return wrong(format!("{}: it is {}", pod.key, pod.object));
            }
        }
        Ok(())
    }

    fn ordinal(&self, pod: &Facts) -> i64 {
        self.set.ordinals().find(|it| self.set.pod_key(*it) == pod.key).unwrap_or(-1)
    }

    /// One per template, the newest that of the set, and not more history than is wanted.
    fn has_its_revisions(&self) -> Verdict {
        let Self { set, revisions, .. } = self;
        for (at, one) in revisions.iter().enumerate() {
            let mut others = revisions[..at].iter();
            if others.any(|other| one.revised_template() == other.revised_template()) {
                return wrong(format!("{}: there is another one of the same template", one.key));
            }
        }
        // One that was left behind, and is found late, may have the same number.
        let age = |revision: &Facts| {
            let created = revision.object["metadata"]["creationTimestamp"].as_str();
            (revision.object["revision"].as_i64(), created.map(str::to_owned))
        };
        let newest = revisions.iter().map(|revision| age(revision)).max();
        let told = set.object["status"]["updateRevision"].as_str();
        let is_right = revisions.iter().any(|it| {
            it.revised_template() == *set.template()
                && Some(it.name()) == told
                && Some(age(it)) == newest
        });
        if !is_right {
            return wrong(format!("{}: its newest revision is not that of its template", set.key));
        }
        let current = set.object["status"]["currentRevision"].as_str();
        let is_live = |revision: &Facts| {
            let name = Some(revision.name());
            name == told || name == current || self.pods.iter().any(|it| it.label(REVISION) == name)
        };
        let history = revisions.iter().filter(|revision| !is_live(revision)).count();
        let limit = set.object["spec"]["revisionHistoryLimit"].as_i64().unwrap_or(10);
        if limit >= 0 && history as i64 > limit {
            return wrong(format!("{}: {history} old revisions, {limit} allowed", set.key));
        }
        Ok(())
    }

    /// Within reach of updates, of the set's template; else of that of the revision that they name.
    fn pods_are_of_their_revisions(&self) -> Verdict {
        for pod in &self.pods {
            let first = self.set.first_updated();
            let is_reached = first.is_some_and(|first| self.ordinal(pod) >= first);
            if is_reached && !pod.is_made_of(self.set.template()) {
                return wrong(format!("{}: it is not made of its set's template", pod.key));
            }
            // What a user has made names none.
            let Some(name) = pod.label(REVISION).or(is_reached.then_some("")) else { continue };
            // It may have been adopted when that revision had gone with the set that had it.
            let key = format!("{}/{name}", pod.namespace());
            let is_own = |it: &Facts| it.controller.as_ref() == Some(&self.set.uid);
            if !is_reached && !self.model.past.ever("controllerrevisions", &key, is_own) {
                continue;
            }
            // Or that revision may have gone as history while the pod was nobody's: no pod was of it then.
            let is_of_set = |it: &Facts| it.is_of(&self.set.uid);
            let past = &self.model.past;
            if !is_reached && past.gone_while_not(("controllerrevisions", &key), pod, is_of_set) {
                continue;
            }
            let revision = self.revisions.iter().find(|it| it.name() == name);
            if revision.is_none_or(|it| !pod.is_made_of(&it.revised_template())) {
                return wrong(format!("{}: it is not made of the revision {name:?}", pod.key));
            }
        }
        Ok(())
    }

    /// What its pods use is there, bound, and belongs to whom the policy says.
    fn has_its_claims(&self) -> Verdict {
        for pod in &self.pods {
            let volumes = pod.object["spec"]["volumes"].as_array().into_iter().flatten();
            let names = volumes.filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str());
            for name in names {
                let key = format!("{}/{name}", pod.namespace());
                let claim = self.model.all("persistentvolumeclaims").find(|it| it.key == key);
                let Some(claim) = claim.filter(|it| it.object["status"]["phase"] == "Bound") else {
                    return wrong(format!("{key}: it is not there, or not bound"));
                };
                // A pod that was adopted may have others.
                if self.set.claim_of(name).is_none() {
                    continue;
                }
                let owners = claim.object["metadata"]["ownerReferences"].as_array();
                let owners: Vec<&str> =
                    owners.into_iter().flatten().filter_map(|it| it["uid"].as_str()).collect();
                let with_set = self.set.deletes_claims("whenDeleted");
                let wanted: &[&str] = if with_set { &[&self.set.uid] } else { &[] };
                if owners != wanted {
                    return wrong(format!("{key}: it belongs to {owners:?}, not to {wanted:?}"));
                }
            }
        }
        Ok(())
    }

    /// The status is a plain count.
    fn tells_the_truth(&self) -> Verdict {
        let Self { set, pods, .. } = self;
        let status = &set.object["status"];
        let of = |field: &str| {
            let named = |pod: &&&Facts| status[field].as_str() == pod.label(REVISION);
            pods.iter().filter(named).count() as i64
        };
        let all = pods.len() as i64;
        let counts = [
            ("replicas", all),
            ("readyReplicas", all),
            ("availableReplicas", all),
            ("currentReplicas", of("currentRevision")),
            ("updatedReplicas", of("updateRevision")),
            ("observedGeneration", set.object["metadata"]["generation"].as_i64().unwrap_or(0)),
        ];
        for (field, count) in counts {
            if set.status(field) != count {
                return wrong(format!("{}: {field} is {count}, told {status}", set.key));
            }
        }
        let is_done = set.first_updated().is_some() && of("updateRevision") == all;
        if is_done && status["currentRevision"] != status["updateRevision"] {
            return wrong(format!("{}: its update has not ended, told {status}", set.key));
        }
        Ok(())
    }
}
