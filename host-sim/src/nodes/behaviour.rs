//! How simulated pods and claims behave, as image tags, storage class and annotations say.

use serde_json::Value;

/// The annotation of a pod that names its behaviour; it wins over the image tag.
pub const BEHAVIOUR: &str = "sim.picokube.dev/behaviour";
/// The annotation of a pod that says how many seconds it takes to become ready.
pub const READY_AFTER: &str = "sim.picokube.dev/ready-after";
/// The annotation of a pod that says how many seconds it takes to stop.
pub const STOP_AFTER: &str = "sim.picokube.dev/stop-after";
/// The annotation of a pod that says after how many seconds its containers end.
pub const RUN_FOR: &str = "sim.picokube.dev/run-for";
/// The annotation of a claim that says how many seconds it takes to be bound.
pub const BOUND_AFTER: &str = "sim.picokube.dev/bound-after";
/// The storage class whose claims are never bound.
pub const NEVER_BOUND: &str = "never";
/// The annotation of a node that takes it offline.
pub const OFFLINE: &str = "sim.picokube.dev/offline";
/// The annotation of a namespace in which only its user moves pods.
pub const MANUAL: &str = "sim.picokube.dev/manual";

const DEFAULT_READY_MILLIS: i64 = 500;
const DEFAULT_STOP_MILLIS: i64 = 200;
const DEFAULT_RUN_MILLIS: i64 = 1_000;

/// What the containers of a pod do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Run and become ready.
    Run,
    /// Run and never become ready.
    NeverReady,
    /// Never start: the image cannot be pulled.
    NoImage,
    /// End after a while with that exit code; the restart policy decides what follows.
    Exit(i32),
    /// Run for a while, then the node evicts the pod.
    Evict,
}

/// A behaviour with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// What the containers do.
    pub kind: Kind,
    /// From the start until ready.
    pub ready_millis: i64,
    /// From the deletion until gone, if the grace period allows that much.
    pub stop_millis: i64,
    /// From the start until the containers end, if they do.
    pub run_millis: i64,
}

impl Behaviour {
    /// The behaviour of a pod.
    pub fn of(pod: &Value) -> Self {
        let annotations = &pod["metadata"]["annotations"];
        let tags = pod["spec"]["containers"].as_array().into_iter().flatten();
        let tags = tags.filter_map(|container| tag(container["image"].as_str()?));
        let word = annotations[BEHAVIOUR].as_str();
        let kind = word
            .and_then(Kind::parse)
            .or_else(|| tags.filter_map(Kind::parse).next())
            .unwrap_or(Kind::Run);
        let seconds = |name: &str| millis(annotations[name].as_str()?);
        let probe = |field: &str| {
            let containers = pod["spec"]["containers"].as_array()?;
            containers.iter().filter_map(|c| c["readinessProbe"][field].as_i64()).max()
        };
        let probed = probe("initialDelaySeconds").map(|seconds| seconds.clamp(0, 3600) * 1000);
        Self {
            kind,
            ready_millis: seconds(READY_AFTER).or(probed).unwrap_or(DEFAULT_READY_MILLIS),
            stop_millis: seconds(STOP_AFTER).unwrap_or(DEFAULT_STOP_MILLIS),
            run_millis: seconds(RUN_FOR).unwrap_or(DEFAULT_RUN_MILLIS),
        }
    }
}

impl Kind {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "run" => Some(Self::Run),
            "never-ready" => Some(Self::NeverReady),
            "bad" | "no-image" | "404" => Some(Self::NoImage),
            "crash" | "crash-loop" | "fail" => Some(Self::Exit(1)),
            "complete" | "succeed" => Some(Self::Exit(0)),
            "evict" => Some(Self::Evict),
            _ => None,
        }
    }
}

/// The tag of an image reference: what follows the last colon of its last path element.
fn tag(image: &str) -> Option<&str> {
    let image = image.split('@').next()?;
    image.rsplit('/').next()?.split_once(':').map(|(_, tag)| tag)
}

/// Seconds as a decimal number, with or without an `s`.
pub(super) fn millis(text: &str) -> Option<i64> {
    let seconds: f64 = text.trim().trim_end_matches('s').parse().ok()?;
    (0.0..=1_000_000.0).contains(&seconds).then(|| (seconds * 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn behaviour(image: &str, annotations: Value) -> Behaviour {
        Behaviour::of(&json!({
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": image}]},
        }))
    }

    #[test]
    fn the_image_tag_decides() {
        for (image, kind) in [
            ("nginx", Kind::Run),
            ("nginx:1.27", Kind::Run),
            ("registry:5000/nginx", Kind::Run),
            ("registry:5000/nginx:crash", Kind::Exit(1)),
            ("img:bad", Kind::NoImage),
            ("webserver:404", Kind::NoImage),
            ("registry:404/webserver", Kind::Run),
            ("img:never-ready", Kind::NeverReady),
            ("img:complete", Kind::Exit(0)),
            ("img:evict@sha256:00", Kind::Evict),
        ] {
            assert_eq!(behaviour(image, json!({})).kind, kind, "{image}");
        }
    }

    #[test]
    fn annotations_win_and_set_the_times() {
        let annotations = json!({BEHAVIOUR: "run", READY_AFTER: "2.5s", STOP_AFTER: "7"});
        let found = behaviour("img:crash", annotations);
        assert_eq!(found.kind, Kind::Run);
        assert_eq!((found.ready_millis, found.stop_millis), (2_500, 7_000));
        let nonsense = json!({BEHAVIOUR: "dance", READY_AFTER: "soon", STOP_AFTER: "-1"});
        assert_eq!(behaviour("img", nonsense), behaviour("img", json!({})));
    }
}
