//! What the requests of a StatefulSet say.

use core::fmt::{self, Write as _};

use heapless::String;

use crate::control::{Purpose, Write, object_target, write_claim};
use crate::event::write_text;
use crate::json::template_hash;
use crate::kind::Kind;
use crate::link::Slot;
use crate::splice::{Make, Splice};
use crate::store::Cache;

use super::claims::SetClaims;
use super::facts::{POD_INDEX_LABEL, POD_NAME_LABEL, new_revision_name};
use super::plan::{NewRevision, Step};
use super::retention::Verdict;
use super::view::Counts;
use super::worker::{StepPart, Worker};

/// Writes the document of a write.
pub(super) fn write(
    cache: &Cache<'_>,
    worker: &Worker,
    write: &Write,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let key = worker.key.ok_or(fmt::Error)?;
    match (write.purpose, write.kind) {
        (Purpose::Adopt | Purpose::Release, _) => {
            write_claim(cache, Kind::StatefulSet, key, worker.uid, write, out)
        }
        (Purpose::Delete, _) => write.write_delete_options(out),
        // Of the history.
        (Purpose::Step, Kind::ControllerRevision) if write.is_delete() => {
            write.write_delete_options(out)
        }
        (Purpose::Step, Kind::ControllerRevision) => {
            write.write_preconditions(out)?;
            write!(out, "}},\"revision\":{}}}", worker.revision)
        }
        (Purpose::Step, Kind::Pod) => write_identity(cache, worker, key, write, out),
        (Purpose::Step, Kind::PersistentVolumeClaim) => {
            write_references(cache, worker, key, write, out)
        }
        (Purpose::Status, _) => write_status(cache, worker, key, write, out),
        _ => Err(fmt::Error),
    }
}

fn write_status(
    cache: &Cache<'_>,
    worker: &Worker,
    key: Slot,
    write: &Write,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let status = &worker.plan.status;
    let Counts { observed_generation, replicas, ready, available, current, updated } =
        status.counts;
    write!(
        out,
        "{{\"metadata\":{{\"uid\":\"{}\"}},\"status\":{{\"observedGeneration\":{observed_generation},\
         \"replicas\":{replicas},\"readyReplicas\":{ready},\"availableReplicas\":{available},\
         \"currentReplicas\":{current},\"updatedReplicas\":{updated},\"collisionCount\":{}",
        write.uid,
        worker.collisions.unwrap_or(0)
    )?;
    let now_current = if status.is_complete { worker.update } else { worker.current };
    for (name, revision) in [("currentRevision", now_current), ("updateRevision", worker.update)] {
        let slot = revision.and_then(|held| held.slot(cache)).ok_or(fmt::Error)?;
        let head = cache.head(Kind::ControllerRevision, slot).ok_or(fmt::Error)?;
        write!(out, ",\"{name}\":\"{}\"", head.display_name(cache.texts))?;
    }
    let is_known = cache.stateful_sets.get(key).is_some();
    if is_known { out.write_str("}}") } else { Err(fmt::Error) }
}

/// The labels by which a pod can be told.
fn write_identity(
    cache: &Cache<'_>,
    worker: &Worker,
    key: Slot,
    write: &Write,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let ordinal = worker.step().ok_or(fmt::Error)?.ordinal();
    let name = SetClaims::of(cache, key).ok_or(fmt::Error)?.pod_name(ordinal);
    write!(
        out,
        "{{\"metadata\":{{\"uid\":\"{}\",\"labels\":{{\"{POD_NAME_LABEL}\":\"{name}\",\
         \"{POD_INDEX_LABEL}\":\"{ordinal}\"}}}}}}",
        write.uid
    )
}

/// Owner references of a claim: those that the retention policy wants, in place of those it had.
fn write_references(
    cache: &Cache<'_>,
    worker: &Worker,
    key: Slot,
    write: &Write,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let ordinal = worker.step().ok_or(fmt::Error)?.ordinal();
    let claims = SetClaims::of(cache, key).ok_or(fmt::Error)?;
    let (set, pod) = match worker.verdict {
        Some(Verdict::Write { set, pod }) => (set, pod),
        Some(Verdict::Conflict { .. }) => (false, false),
        _ => return Err(fmt::Error),
    };
    let owner = claims.pod(ordinal).and_then(|pod| cache.head(Kind::Pod, pod));
    let pod_name = claims.pod_name(ordinal);
    write!(out, "{{\"metadata\":{{\"uid\":\"{}\",\"ownerReferences\":[", write.uid)?;
    write_reference(out, set, "apps/v1", "StatefulSet", claims.set_name(), worker.uid)?;
    if let Some(owner) = owner {
        out.write_str(",")?;
        write_reference(out, pod, "v1", "Pod", &pod_name, owner.uid())?;
    }
    out.write_str("]}}")
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

/// What the body of a creation is made of. `None` if that is gone.
pub(super) fn splice(cache: &Cache<'_>, worker: &Worker, write: &Write) -> Option<Splice> {
    let key = worker.key?;
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
                source: object_target(cache.texts, kind, revision.namespace(), revision.name())?,
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
