//! What the requests of a ReplicaSet say.

use core::fmt::{self, Write as _};

use crate::control::{Write, object_target, write_terminating};
use crate::json::Escape;
use crate::kind::Kind;
use crate::splice::{Make, Splice};
use crate::store::{Cache, Entry, ReplicaSet};

use super::status::FailureWrite;
use super::worker::Worker;

/// What a pod is made of, the first of several.
pub(super) fn pod_of(
    cache: &Cache<'_>,
    kind: Kind,
    rs: Entry<'_, ReplicaSet>,
    more: u16,
) -> Option<Splice> {
    Some(Splice {
        source: object_target(cache.texts, kind, rs.namespace(), rs.name())?,
        kind,
        uid: rs.uid(),
        template: rs.record.template(),
        make: Make::Pod { owner: rs.name().to_object_name(cache.texts), more },
    })
}

/// Writes a status.
pub(super) fn write_status(
    worker: &Worker,
    error: &str,
    rs: Option<Entry<'_, ReplicaSet>>,
    write: &Write,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let count = &worker.count;
    write!(
        out,
        "{{\"metadata\":{{\"uid\":\"{}\"}},\"status\":{{\"replicas\":{},\
         \"fullyLabeledReplicas\":{},\"readyReplicas\":{},\"availableReplicas\":{},\
         \"observedGeneration\":{}",
        write.uid,
        count.replicas,
        count.fully_labeled,
        count.ready,
        count.available,
        count.observed_generation
    )?;
    let had_terminating = rs.is_some_and(|rs| rs.record.terminating_replicas().is_some());
    write_terminating(out, count.terminating, had_terminating)?;
    match worker.failure {
        FailureWrite::Keep => {}
        FailureWrite::Remove => {
            out.write_str(",\"conditions\":[{\"$patch\":\"delete\",\"type\":\"ReplicaFailure\"}]")?
        }
        FailureWrite::Add(reason) => {
            let (reason, now) = (reason.text(), write.at.rfc3339());
            write!(
                out,
                ",\"conditions\":[{{\"type\":\"ReplicaFailure\",\"status\":\"True\",\
                 \"reason\":\"{reason}\",\"lastTransitionTime\":\"{now}\",\"message\":\""
            )?;
            Escape(out).write_str(error)?;
            out.write_str("\"}]")?;
        }
    }
    out.write_str("}}")
}
