//! Pods of StatefulSets: which come, in which order, of what; and which go.

use super::super::model::{Change, Facts, Model};
use super::super::past::View;
use super::super::{Basis, Verdict};
use super::names::{POD_INDEX, POD_NAME, REVISION, member};
use super::{Rules, sets, wrong};

pub(super) const IDENTITY: &str = "one pod per identity";
pub(super) const RANGE: &str = "no pod beyond the range of ordinals is created";
pub(super) const ORDER: &str = "with OrderedReady, pods come one after the other";
pub(super) const TEMPLATE: &str = "pods are made of the revision that is their turn";
pub(super) const OWN: &str = "only own pods of a StatefulSet are touched";
pub(super) const REASON: &str = "pods of a StatefulSet go for a reason, and in order";
pub(super) const CLAIMED: &str = "a StatefulSet adopts its members and lets others go";

/// Judges what a controller has done to a pod.
pub(super) fn check(view: View<'_>, rules: Rules, model: &Model, change: &Change) -> Verdict {
    match (&change.before, &change.after) {
        (None, Some(pod)) if pod.kind_of_controller() == Some("StatefulSet") => {
            created(view, model, pod)
        }
        (Some(pod), None) if pod.deleting => killed(pod),
        (Some(pod), None) => killed(pod).and_then(|()| deleted(view, rules, pod)),
        (Some(pod), Some(after)) if !pod.deleting && after.deleting => deleted(view, rules, pod),
        (Some(before), Some(after)) if before.controller != after.controller => {
            claimed(view, before, after)
        }
        (Some(before), Some(after)) => changed(view, before, after),
        _ => Ok(()),
    }
}

fn created(view: View<'_>, model: &Model, pod: &Facts) -> Verdict {
    let uid = pod.controller.as_deref().unwrap_or_default();
    let Some((name, ordinal)) = member(pod.name()) else {
        return wrong(IDENTITY, pod, "it has the name of nobody's pod");
    };
    let exact = format!("{name}-{ordinal}");
    let mut twins = model.all("pods").filter(|other| other.namespace() == pod.namespace());
    if let Some(twin) = twins.find(|twin| {
        twin.uid != pod.uid && twin.is_of(uid) && member(twin.name()) == Some((name, ordinal))
    }) {
        return wrong(IDENTITY, pod, &format!("{} is still there", twin.key));
    }
    if pod.name() != exact
        || pod.label(POD_NAME) != Some(&exact)
        || pod.label(POD_INDEX) != Some(&ordinal.to_string())
        || pod.object["spec"]["hostname"] != exact
    {
        return wrong(IDENTITY, pod, "name, labels and host name are not those of its ordinal");
    }
    let mut sets = sets(view, &format!("{}/{name}", pod.namespace()), uid);
    if sets.is_empty() {
        return wrong(OWN, pod, "its StatefulSet is not there, or on its way out");
    }
    sets.retain(|set| set.ordinals().contains(&ordinal));
    if sets.is_empty() {
        return wrong(RANGE, pod, "its ordinal is not wanted");
    }
    sets.retain(|set| are_up(view, set, set.start()..ordinal));
    if sets.is_empty() {
        return wrong(ORDER, pod, "one below it is not ready");
    }
    sets.retain(|set| is_its_turn(view, set, pod, ordinal));
    if sets.is_empty() {
        return wrong(TEMPLATE, pod, "it is made of another template");
    }
    let revision = pod.label(REVISION).unwrap_or_default();
    let is_it = |it: &Facts| it.is_of(uid) && pod.is_made_of(&it.revised_template());
    if !view.may_be("controllerrevisions", &format!("{}/{revision}", pod.namespace()), is_it) {
        return wrong(TEMPLATE, pod, "the revision that it names says something else");
    }
    Ok(())
}

/// Whether a StatefulSet waits for pods, and these have come up; or whether it does not wait.
fn are_up(view: View<'_>, set: &Facts, mut ordinals: std::ops::Range<i64>) -> bool {
    !set.is_ordered() || ordinals.all(|ordinal| may_be_up(view, set, ordinal))
}

/// Whether the pod of an ordinal may have been up for long enough.
fn may_be_up(view: View<'_>, set: &Facts, ordinal: i64) -> bool {
    let is_up = |pod: &Facts| pod.is_up() && is_available(view.basis, set, pod);
    view.may_be("pods", &set.pod_key(ordinal), is_up)
}

/// Whether it may have been available.
fn may_be_available(view: View<'_>, set: &Facts, ordinal: i64) -> bool {
    view.may_be("pods", &set.pod_key(ordinal), |pod| is_available(view.basis, set, pod))
}

/// Ready for long enough, whatever its phase: an update asks for no more, as in Kubernetes.
fn is_available(basis: &Basis, set: &Facts, pod: &Facts) -> bool {
    let seconds = set.spec("minReadySeconds");
    let long = || {
        let since = pod.ready_since().map(|since| since.plus_seconds(seconds));
        since.is_some_and(|since| since <= basis.wall)
    };
    pod.is_of(&set.uid) && pod.is_ready() && !pod.deleting && (seconds == 0 || long())
}

/// Whether the template that a pod is made of is that of its turn: below the partition the current
/// revision's, else the set's.
fn is_its_turn(view: View<'_>, set: &Facts, pod: &Facts, ordinal: i64) -> bool {
    if set.first_updated().is_none_or(|first| ordinal >= first) {
        return pod.is_made_of(set.template());
    }
    let current = set.object["status"]["currentRevision"].as_str().unwrap_or_default();
    let key = format!("{}/{current}", set.namespace());
    let is_it = |it: &Facts| it.is_of(&set.uid) && pod.is_made_of(&it.revised_template());
    let is_lost = |it: Option<&Facts>| it.is_none_or(|it| !it.is_of(&set.uid));
    view.may_be("controllerrevisions", &key, is_it)
        || (view.versions("controllerrevisions", &key).any(is_lost)
            && pod.is_made_of(set.template()))
}

fn deleted(view: View<'_>, rules: Rules, pod: &Facts) -> Verdict {
    // It may have lost its owner while the request was under way, and got another.
    let same = |it: &&Facts| it.uid == pod.uid;
    let versions: Vec<&Facts> = view.versions("pods", &pod.key).flatten().filter(same).collect();
    let owner = versions.iter().rev().find(|it| it.controller.is_some());
    let Some(owner) = owner else {
        return wrong(OWN, pod, "it belongs to nobody");
    };
    if owner.kind_of_controller() != Some("StatefulSet") {
        return Ok(());
    }
    let Some((name, ordinal)) = member(pod.name()) else {
        return wrong(OWN, pod, "it is no member of the set");
    };
    let key = format!("{}/{name}", pod.namespace());
    let mut owners: Vec<&str> = versions.iter().filter_map(|it| it.controller.as_deref()).collect();
    owners.dedup();
    let sets: Vec<&Facts> = owners.iter().flat_map(|uid| sets(view, &key, uid)).collect();
    if sets.is_empty() {
        return wrong(OWN, pod, "its StatefulSet is not there, or on its way out");
    }
    let going = Going { view, rules, pod, versions, ordinal };
    if sets.iter().any(|set| {
        going.has_ended(set)
            || going.is_condemned(set)
            || going.is_broken(set)
            || going.is_outdated(set)
    }) {
        return Ok(());
    }
    wrong(REASON, pod, "it has not ended, is wanted, and is not the next to be updated")
}

/// A pod that is gone at once may still run on its node when its successor comes.
fn killed(pod: &Facts) -> Verdict {
    let is_on_a_node = pod.object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let is_of_set = pod.kind_of_controller() == Some("StatefulSet");
    if is_on_a_node && is_of_set && !pod.has_ended() {
        return wrong(IDENTITY, pod, "it is gone while its containers may run");
    }
    Ok(())
}

/// A pod that is deleted.
struct Going<'g> {
    view: View<'g>,
    rules: Rules,
    pod: &'g Facts,
    versions: Vec<&'g Facts>,
    ordinal: i64,
}

impl Going<'_> {
    fn may_be(&self, is: impl Fn(&Facts) -> bool) -> bool {
        self.versions.iter().any(|version| is(version))
    }

    fn are_up(&self, set: &Facts, ordinals: std::ops::Range<i64>) -> bool {
        are_up(self.view, set, ordinals)
    }

    /// Another is to take its place.
    fn has_ended(&self, set: &Facts) -> bool {
        self.may_be(Facts::has_ended)
            && set.ordinals().contains(&self.ordinal)
            && self.are_up(set, set.start()..self.ordinal)
    }

    /// Out of range; with `OrderedReady`, when all others are up and none above it is left.
    fn is_condemned(&self, set: &Facts) -> bool {
        let Self { view, ordinal, .. } = *self;
        let is_left = |key: &str| {
            let above =
                key.split('/').nth(1).and_then(member).filter(|(name, _)| *name == set.name());
            above.is_some_and(|(_, above)| above > ordinal && !set.ordinals().contains(&above))
                && view.must_be("pods", key, |pod| pod.is_of(&set.uid))
        };
        !set.ordinals().contains(&ordinal)
            && self.are_up(set, set.ordinals())
            && (!set.is_ordered() || !view.past.keys("pods", set.namespace()).any(is_left))
    }

    /// Of another template than the set's, and within reach of the update.
    fn is_to_be_updated(&self, set: &Facts) -> bool {
        set.first_updated().is_some_and(|first| self.ordinal >= first)
            && set.ordinals().contains(&self.ordinal)
            && (!self.is_updated(set, self.pod) || self.has_twin(set))
    }

    /// Whether there is another revision of the same template than the pod's: two controllers that do not
    /// know of each other may make one each, and take each other's pods for outdated.
    fn has_twin(&self, set: &Facts) -> bool {
        let own = self.pod.label(REVISION);
        let is_it = |it: &Facts| it.is_of(&set.uid) && it.revised_template() == *set.template();
        let mut revisions = self.view.past.keys("controllerrevisions", set.namespace());
        revisions.any(|key| {
            key.split('/').nth(1) != own && self.view.may_be("controllerrevisions", key, is_it)
        })
    }

    fn is_updated(&self, set: &Facts, pod: &Facts) -> bool {
        let key = format!("{}/{}", set.namespace(), pod.label(REVISION).unwrap_or_default());
        let is_it = |it: &Facts| it.is_of(&set.uid) && it.revised_template() == *set.template();
        pod.is_made_of(set.template()) && self.view.may_be("controllerrevisions", &key, is_it)
    }

    /// Not ready, of another template, and somebody has asked for its replacement.
    fn is_broken(&self, set: &Facts) -> bool {
        set.annotation("picokube.dev/replace-broken-pods") == Some("true")
            && self.is_to_be_updated(set)
            && self.may_be(|pod| !pod.is_up())
            && (!set.is_ordered() || self.view.basis.deleted.is_empty())
    }

    /// The next to be updated: all above it are, and not more are missing than may be.
    fn is_outdated(&self, set: &Facts) -> bool {
        let Self { view, rules, ordinal, .. } = *self;
        if !self.is_to_be_updated(set) || !self.are_up(set, set.ordinals()) {
            return false;
        }
        let is_done = |above: i64| {
            let is_done =
                |pod: &Facts| is_available(view.basis, set, pod) && self.is_updated(set, pod);
            view.may_be("pods", &set.pod_key(above), is_done)
        };
        if !rules.honours_max_unavailable {
            return (ordinal + 1..set.ordinals().end).all(is_done);
        }
        // Whether a pod was up for long enough cannot be told to the second.
        let is_vague = set.spec("minReadySeconds") > 0;
        let is_missing = |pod: &Facts| !pod.is_ready() || pod.deleting;
        let costs_nothing = !set.is_ordered() && (is_vague || self.may_be(is_missing));
        let others = || set.ordinals().filter(|other| *other != ordinal);
        let missing = others().filter(|other| !may_be_available(view, set, *other)).count();
        let is_taken = |other: &i64| {
            let key = set.pod_key(*other);
            let name = key.split('/').nth(1).unwrap_or_default();
            view.basis.deleted.iter().any(|deleted| deleted == name)
                && !is_vague
                && may_be_available(view, set, *other)
                && view.must_have_been_ready(set, *other)
        };
        let taken = others().filter(is_taken).count();
        costs_nothing || missing + taken < most_unavailable(set)
    }
}

impl View<'_> {
    /// Whether the pod of an ordinal was ready until it was asked to go.
    fn must_have_been_ready(self, set: &Facts, ordinal: i64) -> bool {
        let mut versions = self.versions("pods", &set.pod_key(ordinal)).flatten();
        versions.all(|pod| pod.is_ready() || pod.deleting)
    }
}

/// `maxUnavailable` in pods.
fn most_unavailable(set: &Facts) -> usize {
    let many = &set.object["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    let percent = many.as_str().and_then(|many| many.strip_suffix('%')?.parse::<i64>().ok());
    let pods = percent.map(|percent| set.spec("replicas") * percent / 100).or(many.as_i64());
    pods.unwrap_or(1).max(1) as usize
}

/// Judges a change of a pod's controller.
fn claimed(view: View<'_>, before: &Facts, after: &Facts) -> Verdict {
    let (is_adoption, owner) = match (&before.controller, &after.controller) {
        (None, Some(_)) => (true, after),
        (Some(_), None) => (false, before),
        _ => return Ok(()),
    };
    if owner.kind_of_controller() != Some("StatefulSet") {
        return Ok(());
    }
    let uid = owner.controller.as_deref().unwrap_or_default();
    let name = owner.object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let name = name.into_iter().find(|it| it["uid"] == uid).and_then(|it| it["name"].as_str());
    let name = name.unwrap_or_default();
    let is_member = member(after.name()).is_some_and(|(set, _)| set == name);
    let selects = |labels: &serde_json::Value, set: &&Facts| set.selects(labels);
    let sets = sets(view, &format!("{}/{name}", after.namespace()), uid);
    let is_selected = |pod: &Facts| {
        let labels = &pod.object["metadata"]["labels"];
        sets.iter().any(|set| is_member && selects(labels, set)) == is_adoption
    };
    if sets.is_empty() || !view.may_be("pods", &after.key, is_selected) {
        let what = if is_adoption { "it is adopted" } else { "it is let go" };
        return wrong(CLAIMED, after, what);
    }
    Ok(())
}

/// Judges a change that leaves a pod with its owner: of a StatefulSet's, labels that tell it.
fn changed(view: View<'_>, before: &Facts, after: &Facts) -> Verdict {
    let may_be = |pod: &Facts| pod.uid == after.uid && pod.kind_of_controller().is_some();
    let without = |pod: &Facts| {
        let mut object = pod.object.clone();
        for field in ["resourceVersion", "managedFields"] {
            object["metadata"][field] = serde_json::Value::Null;
        }
        for label in [POD_NAME, POD_INDEX] {
            object["metadata"]["labels"][label] = serde_json::Value::Null;
        }
        object
    };
    if !view.may_be("pods", &after.key, may_be) || without(before) != without(after) {
        return wrong(OWN, after, "somebody else's pod is changed, or something else of it");
    }
    Ok(())
}

impl Facts {
    /// Since when a pod is ready.
    fn ready_since(&self) -> Option<crate::time::Timestamp> {
        let conditions = self.object["status"]["conditions"].as_array()?;
        let ready = conditions.iter().find(|it| it["type"] == "Ready" && it["status"] == "True")?;
        crate::time::Timestamp::parse(ready["lastTransitionTime"].as_str()?)
    }
}
