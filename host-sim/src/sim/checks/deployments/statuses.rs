//! What statuses tell: numbers that may have been true of late. What a write leaves as it was is not told.

use super::super::Verdict;
use super::super::model::Facts;
use super::{Act, wrong};

pub(super) const TRUTH: &str = "a status tells of what there is";

/// A field, which pods it counts, and whether there is a least that it may tell.
type Count<'a> = (&'a str, &'a dyn Fn(&Facts) -> bool, bool);

/// Judges the status of a ReplicaSet: each count lies between the pods that were so all the time and
/// those that may have been so.
pub(super) fn of_replica_set(act: Act<'_>, before: &Facts, after: &Facts) -> Verdict {
    let late = Act { view: act.view.lately(), ..act };
    let template = &after.object["spec"]["template"]["metadata"]["labels"];
    let counts = |pod: &Facts| {
        let labels = &pod.object["metadata"]["labels"];
        pod.is_of(&after.uid) && pod.is_active() && after.selects(labels)
    };
    let is_ready = |pod: &Facts| counts(pod) && pod.is_ready();
    let is_labelled = |pod: &Facts| counts(pod) && pod.has_labels(template);
    let fields: [Count<'_>; 4] = [
        ("replicas", &counts, true),
        ("fullyLabeledReplicas", &is_labelled, true),
        ("readyReplicas", &is_ready, true),
        // How long a pod has been ready is a matter of clocks.
        ("availableReplicas", &is_ready, false),
    ];
    let pods: Vec<Vec<Option<&Facts>>> = late.siblings("pods", after).collect();
    for (field, is, has_least) in fields {
        let told = after.status(field);
        let least = pods.iter().filter(|it| it.iter().all(|it| it.is_some_and(is))).count();
        let most = pods.iter().filter(|it| it.iter().flatten().any(|it| is(it))).count();
        let least = if has_least { least as i64 } else { 0 };
        if told != before.status(field) && !(least..=most as i64).contains(&told) {
            let detail = format!("{field} is told to be {told}, it was {least} to {most}");
            return wrong(TRUTH, after, &detail);
        }
    }
    Ok(())
}

/// Judges the status of a Deployment: each count lies between the sums of the least and of the most that
/// its ReplicaSets may have told; that of updated pods is of one ReplicaSet of its template.
pub(super) fn of_deployment(act: Act<'_>, before: &Facts, after: &Facts) -> Verdict {
    let late = Act { view: act.view.lately(), ..act };
    let versions = late.view.versions("deployments", &after.key).flatten();
    let mut templates: Vec<_> =
        versions.filter(|it| it.uid == after.uid).map(Facts::bare_template).collect();
    templates.dedup();
    let is_new = |set: &Facts| templates.iter().any(|template| set.is_of_template(template));
    let sets: Vec<Vec<Option<&Facts>>> = late.siblings("replicasets", after).collect();
    for (field, of_sets) in [
        ("replicas", "replicas"),
        ("readyReplicas", "readyReplicas"),
        ("availableReplicas", "availableReplicas"),
        ("updatedReplicas", "replicas"),
    ] {
        let is_updated = field == "updatedReplicas";
        let told = |it: &Option<&Facts>| {
            let own = it.filter(|it| it.is_of(&after.uid) && (!is_updated || is_new(it)));
            own.map_or(0, |it| it.status(of_sets))
        };
        let may_count = |it: &&Vec<Option<&Facts>>| {
            let mut own = it.iter().flatten().filter(|it| it.is_of(&after.uid));
            own.any(|it| !is_updated || is_new(it))
        };
        let least = sets.iter().filter(may_count).filter_map(|it| it.iter().map(told).min());
        let most = sets.iter().filter(may_count).filter_map(|it| it.iter().map(told).max());
        // Of several of the template the oldest counts, whichever that was.
        let (least, most): (i64, i64) = match is_updated {
            true => (least.min().unwrap_or(0), most.max().unwrap_or(0)),
            false => (least.sum(), most.sum()),
        };
        // Which of the templates was meant is not known.
        let least = if is_updated && templates.len() > 1 { 0 } else { least };
        let told = after.status(field);
        if told != before.status(field) && !(least..=most).contains(&told) {
            let detail = format!("{field} is told to be {told}, it was {least} to {most}");
            return wrong(TRUTH, after, &detail);
        }
    }
    Ok(())
}
