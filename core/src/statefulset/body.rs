//! What the requests of a StatefulSet say.

use core::fmt::{self, Write as _};

use heapless::String;

use crate::control::{Look, Purpose, Write, object_target};
use crate::event::write_text;
use crate::json::template_hash;
use crate::kind::Kind;
use crate::link::Slot;
use crate::splice::{Make, Splice};
use crate::store::{Cache, Entry, StatefulSet};
use crate::wire::Uid;

use super::claims::SetClaims;
use super::facts::{POD_INDEX_LABEL, POD_NAME_LABEL, new_revision_name, revisions};
use super::plan::{NewRevision, Step};
use super::retention::Verdict;
use super::revisions::{UpdateRevision, update_revision};
use super::view::Counts;
use super::worker::{StepPart, Worker};

/// What the bodies of a sync's requests are made of.
pub(super) struct RequestBodies<'s, 'a> {
    cache: &'s Cache<'a>,
    worker: &'s Worker,
    /// The uid of the StatefulSet that the sync is about.
    uid: Uid,
    key: Slot,
}

impl<'s, 'a> RequestBodies<'s, 'a> {
    /// Those of a sync.
    pub(super) fn of(look: &Look<'s, 'a, ()>, worker: &'s Worker) -> Self {
        Self { cache: look.cache, worker, uid: look.run.uid, key: look.key }
    }

    /// Writes the document of a write.
    pub(super) fn write(&self, write: &Write, out: &mut dyn fmt::Write) -> fmt::Result {
        match (write.purpose, write.kind) {
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
        write_reference(out, set, "apps/v1", "StatefulSet", claims.set_name(), self.uid)?;
        if let Some(owner) = owner {
            out.write_str(",")?;
            write_reference(out, pod, "v1", "Pod", &pod_name, owner.uid())?;
        }
        out.write_str("]}}")
    }

    /// What the body of a creation is made of. `None` if that is gone.
    pub(super) fn splice(&self, write: &Write) -> Option<Splice> {
        match write.kind {
            Kind::ControllerRevision => self.revision(),
            Kind::PersistentVolumeClaim => self.claim(),
            Kind::Pod => self.pod(),
            _ => None,
        }
    }

    // None of these is inlined: what they hold on the way must not be in one frame.

    #[inline(never)]
    fn revision(&self) -> Option<Splice> {
        let set = self.set()?;
        // One that is sent again may be there by now, and the template another one: that gets another number.
        let wanted = update_revision(revisions(self.cache, self.key, None, None));
        if wanted != (UpdateRevision::Create { revision: self.worker.revision }) {
            return None;
        }
        let collisions = self.worker.collisions.unwrap_or(0);
        self.of_set(Make::ControllerRevision {
            name: new_revision_name(self.cache, set, collisions),
            owner: set.name().to_object_name(self.cache.texts),
            hash: template_hash(set.record.template(), Some(collisions)),
            revision: self.worker.revision,
        })
    }

    #[inline(never)]
    fn claim(&self) -> Option<Splice> {
        let StepPart::Claims(at) = self.worker.part else { return None };
        let ordinal = self.worker.step()?.ordinal();
        let name = {
            let claims = SetClaims::of(self.cache, self.key)?;
            claims.claim_name(claims.templates().nth(usize::from(at))?, ordinal)
        };
        self.of_set(Make::Claim { name, index: at.into() })
    }

    #[inline(never)]
    fn pod(&self) -> Option<Splice> {
        let Self { cache, worker, .. } = *self;
        let Step::Create { ordinal, revision } = worker.step()? else { return None };
        let held = match revision {
            NewRevision::Current => worker.current?,
            NewRevision::Update => worker.update?,
        };
        let (kind, set) = (Kind::ControllerRevision, self.set()?);
        let revision = cache.controller_revisions.get(held.slot(cache)?)?;
        let mut subdomain = String::new();
        write_text(&mut subdomain, cache.texts, set.record.service_name).ok()?;
        let mut claims = String::new();
        write_text(&mut claims, cache.texts, set.record.claim_templates).ok()?;
        let mut name = String::new();
        // What is cut off is refused by the server, as the whole would be.
        let _ = write!(name, "{}", revision.name().display(cache.texts));
        Some(Splice {
            source: object_target(cache.texts, kind, revision.namespace(), revision.name())?,
            kind,
            uid: revision.uid(),
            template: revision.record.data(),
            make: Make::StatefulSetPod {
                owner: set.name().to_object_name(cache.texts),
                owner_uid: set.uid(),
                ordinal,
                revision: name,
                subdomain,
                claims,
            },
        })
    }

    /// Something that is made of the set itself.
    fn of_set(&self, make: Make) -> Option<Splice> {
        let (kind, set) = (Kind::StatefulSet, self.set()?);
        Some(Splice {
            source: object_target(self.cache.texts, kind, set.namespace(), set.name())?,
            kind,
            uid: set.uid(),
            template: set.record.template(),
            make,
        })
    }

    /// The set, unless it is another one of the same name by now.
    fn set(&self) -> Option<Entry<'_, StatefulSet>> {
        let set = self.cache.stateful_sets.get(self.key);
        set.filter(|set| set.uid() == self.uid)
    }
}

fn write_reference(
    out: &mut dyn fmt::Write,
    is_wanted: bool,
    api_version: &str,
    kind: &str,
    name: &str,
    uid: Uid,
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
