//! What the requests of a StatefulSet say.

use core::fmt::{self, Write as _};

use heapless::String;

use crate::control::{Purpose, Write, object_target, write_claim};
use crate::event::write_text;
use crate::json::template_hash;
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::splice::{Make, Splice};
use crate::store::Cache;

use super::claims::SetClaims;
use super::facts::{POD_INDEX_LABEL, POD_NAME_LABEL, new_revision_name};
use super::plan::{NewRevision, Step};
use super::retention::Verdict;
use super::view::Counts;
use super::worker::{StepPart, Worker};

/// What the bodies of a sync's requests are made of.
pub(super) struct RequestBodies<'s, 'a> {
    cache: &'s Cache<'a>,
    worker: &'s Worker,
    key: Slot,
}

impl<'s, 'a> RequestBodies<'s, 'a> {
    /// Those of a worker that has work.
    pub(super) fn of(cache: &'s Cache<'a>, worker: &'s Worker) -> Option<Self> {
        Some(Self { cache, worker, key: worker.key? })
    }

    /// Writes the document of a write.
    pub(super) fn write(&self, write: &Write, out: &mut dyn fmt::Write) -> fmt::Result {
        match (write.purpose, write.kind) {
            (Purpose::Adopt | Purpose::Release, _) => {
                write_claim(self.cache, Kind::StatefulSet, self.key, self.worker.uid, write, out)
            }
            (Purpose::Delete, _) if planted(Bug::PodsKilled) => {
                out.write_str("{\"gracePeriodSeconds\":0}")
            }
            (Purpose::Delete, _) => write.write_delete_options(out),
            // Of the history.
            (Purpose::Step, Kind::ControllerRevision) if write.is_delete() => {
                write.write_delete_options(out)
            }
            (Purpose::Step, Kind::ControllerRevision) => {
                write.write_preconditions(out)?;
                write!(out, "}},\"revision\":{}}}", self.worker.revision)
            }
            (Purpose::Step, Kind::Pod) => self.write_identity(write, out),
            (Purpose::Step, Kind::PersistentVolumeClaim) => self.write_references(write, out),
            (Purpose::Status, _) => self.write_status(write, out),
            _ => Err(fmt::Error),
        }
    }

    fn write_status(&self, write: &Write, out: &mut dyn fmt::Write) -> fmt::Result {
        let status = &self.worker.plan.status;
        let Counts { observed_generation, replicas, ready, available, current, updated } =
            status.counts;
        write!(
            out,
            "{{\"metadata\":{{\"uid\":\"{}\"}},\"status\":{{\"observedGeneration\":{observed_generation},\
             \"replicas\":{replicas},\"readyReplicas\":{ready},\"availableReplicas\":{available},\
             \"currentReplicas\":{current},\"updatedReplicas\":{updated},\"collisionCount\":{}",
            write.uid,
            self.worker.collisions.unwrap_or(0)
        )?;
        let now_current = if status.is_complete { self.worker.update } else { self.worker.current };
        for (name, revision) in
            [("currentRevision", now_current), ("updateRevision", self.worker.update)]
        {
            let slot = revision.and_then(|held| held.slot(self.cache)).ok_or(fmt::Error)?;
            let head = self.cache.head(Kind::ControllerRevision, slot).ok_or(fmt::Error)?;
            write!(out, ",\"{name}\":\"{}\"", head.display_name(self.cache.texts))?;
        }
        out.write_str("}}")
    }

    /// The labels by which a pod can be told.
    fn write_identity(&self, write: &Write, out: &mut dyn fmt::Write) -> fmt::Result {
        let ordinal = self.worker.step().ok_or(fmt::Error)?.ordinal();
        let name = SetClaims::of(self.cache, self.key).ok_or(fmt::Error)?.pod_name(ordinal);
        write!(
            out,
            "{{\"metadata\":{{\"uid\":\"{}\",\"labels\":{{\"{POD_NAME_LABEL}\":\"{name}\",\
             \"{POD_INDEX_LABEL}\":\"{ordinal}\"}}}}}}",
            write.uid
        )
    }

    /// Owner references of a claim: those that the retention policy wants, in place of those it had.
    fn write_references(&self, write: &Write, out: &mut dyn fmt::Write) -> fmt::Result {
        let ordinal = self.worker.step().ok_or(fmt::Error)?.ordinal();
        let claims = SetClaims::of(self.cache, self.key).ok_or(fmt::Error)?;
        let (set, pod) = match self.worker.verdict {
            Some(Verdict::Write { set, pod }) => (set, pod),
            Some(Verdict::Conflict { .. }) => (false, false),
            _ => return Err(fmt::Error),
        };
        let owner = claims.pod(ordinal).and_then(|pod| self.cache.head(Kind::Pod, pod));
        let pod_name = claims.pod_name(ordinal);
        // A claim that has changed since may have been let go of: what is given to a set that is gone, goes.
        write.write_preconditions(out)?;
        out.write_str(",\"ownerReferences\":[")?;
        write_reference(out, set, "apps/v1", "StatefulSet", claims.set_name(), self.worker.uid)?;
        if let Some(owner) = owner {
            out.write_str(",")?;
            write_reference(out, pod, "v1", "Pod", &pod_name, owner.uid())?;
        }
        out.write_str("]}}")
    }

    /// What the body of a creation is made of. `None` if that is gone.
    pub(super) fn splice(&self, write: &Write) -> Option<Splice> {
        let Self { cache, worker, key } = *self;
        // Another set of the same name is not what this sync is about.
        let set = cache.stateful_sets.get(key).filter(|set| set.uid() == worker.uid)?;
        let source = object_target(cache.texts, Kind::StatefulSet, set.namespace(), set.name())?;
        let of_set = |make| Splice {
            source,
            kind: Kind::StatefulSet,
            uid: set.uid(),
            template: set.record.template(),
            make,
        };
        let claims = SetClaims::of(cache, key)?;
        match write.kind {
            Kind::ControllerRevision => {
                let collisions = worker.collisions.unwrap_or(0);
                Some(of_set(Make::ControllerRevision {
                    name: new_revision_name(cache, set, collisions),
                    owner: claims.set_name().clone(),
                    hash: template_hash(set.record.template(), Some(collisions)),
                    revision: worker.revision,
                }))
            }
            Kind::PersistentVolumeClaim => {
                let StepPart::Claims(at) = worker.part else { return None };
                let template = claims.templates().nth(usize::from(at))?;
                let name = claims.claim_name(template, worker.step()?.ordinal());
                Some(of_set(Make::Claim { name, index: at.into() }))
            }
            Kind::Pod => {
                let Step::Create { ordinal, revision } = worker.step()? else { return None };
                let held = match revision {
                    NewRevision::Current => worker.current?,
                    NewRevision::Update => worker.update?,
                };
                let slot = held.slot(cache)?;
                let kind = Kind::ControllerRevision;
                let revision = cache.controller_revisions.get(slot)?;
                let mut subdomain = String::new();
                write_text(&mut subdomain, cache.texts, set.record.service_name).ok()?;
                let mut name = String::new();
                // What is cut off is refused by the server, as the whole would be.
                let _ = write!(name, "{}", revision.name().display(cache.texts));
                Some(Splice {
                    source: object_target(
                        cache.texts,
                        kind,
                        revision.namespace(),
                        revision.name(),
                    )?,
                    kind,
                    uid: revision.uid(),
                    template: revision.record.data(),
                    make: Make::StatefulSetPod {
                        owner: claims.set_name().clone(),
                        owner_uid: set.uid(),
                        ordinal,
                        revision: name,
                        subdomain,
                        claims: claims.all_templates().clone(),
                    },
                })
            }
            _ => None,
        }
    }
}

fn write_reference(
    out: &mut dyn fmt::Write,
    is_wanted: bool,
    api_version: &str,
    kind: &str,
    name: &str,
    uid: crate::wire::Uid,
) -> fmt::Result {
    if !is_wanted {
        return write!(out, "{{\"$patch\":\"delete\",\"uid\":\"{uid}\"}}");
    }
    write!(
        out,
        "{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",\"name\":\"{name}\",\"uid\":\"{uid}\",\
         \"controller\":true,\"blockOwnerDeletion\":true}}"
    )
}
