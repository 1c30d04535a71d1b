//! The pod template: where its semantic equality differs from that of its text.
//!
//! What is not mentioned here is plain. Quantities compare by value, times as instants, empty maps
//! and embedded structs equal absent ones, and the `pod-template-hash` label does not count. Nor does
//! `$patch`, which a template has in the data of a ControllerRevision.

use super::project::{Fault, FieldFault};
use super::table::Field;
use crate::json::{Digest, Digester, Shape};

/// The label that ties a ReplicaSet and its pods to a template.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// `spec.template` of a ReplicaSet, Deployment or StatefulSet, and `data.spec.template` of a
/// ControllerRevision.
pub static POD_TEMPLATE: Shape =
    Shape::embedded(&[("metadata", &METADATA), ("spec", &POD_SPEC), ("$patch", &Shape::OMITTED)]);

static METADATA: Shape = Shape::embedded(&[
    ("labels", &LABELS),
    ("annotations", &Shape::MAP),
    ("creationTimestamp", &Shape::TIME),
    ("deletionTimestamp", &Shape::TIME),
]);

static LABELS: Shape = Shape::embedded(&[(POD_TEMPLATE_HASH, &Shape::OMITTED)]);

static POD_SPEC: Shape = Shape::embedded(&[
    ("volumes", &VOLUMES),
    ("initContainers", &CONTAINERS),
    ("containers", &CONTAINERS),
    ("ephemeralContainers", &CONTAINERS),
    ("nodeSelector", &Shape::MAP),
    ("affinity", &AFFINITY),
    ("overhead", &QUANTITIES),
    ("topologySpreadConstraints", &TERMS),
    ("resources", &RESOURCES_POINTER),
]);

static CONTAINERS: Shape =
    Shape::array(&Shape::object(&[("env", &ENVIRONMENT), ("resources", &RESOURCES)]));

static ENVIRONMENT: Shape = Shape::array(&Shape::object(&[("valueFrom", &FIELD_SOURCE)]));

static FIELD_SOURCE: Shape = Shape::object(&[(
    "resourceFieldRef",
    &Shape::object(&[("divisor", &Shape::QUANTITY_OR_ZERO)]),
)]);

static RESOURCES: Shape = Shape::embedded(&[("limits", &QUANTITIES), ("requests", &QUANTITIES)]);
static RESOURCES_POINTER: Shape =
    Shape::object(&[("limits", &QUANTITIES), ("requests", &QUANTITIES)]);
static QUANTITIES: Shape = Shape::map(&Shape::QUANTITY);

static VOLUMES: Shape = Shape::array(&Shape::object(&[
    ("emptyDir", &Shape::object(&[("sizeLimit", &Shape::QUANTITY)])),
    ("downwardAPI", &DOWNWARD_API),
    ("projected", &Shape::object(&[("sources", &PROJECTIONS)])),
    ("csi", &Shape::object(&[("volumeAttributes", &Shape::MAP)])),
    ("flexVolume", &Shape::object(&[("options", &Shape::MAP)])),
    ("ephemeral", &Shape::object(&[("volumeClaimTemplate", &VOLUME_CLAIM_TEMPLATE)])),
]));

static DOWNWARD_API: Shape = Shape::object(&[("items", &Shape::array(&FIELD_SOURCE))]);
static PROJECTIONS: Shape = Shape::array(&Shape::object(&[("downwardAPI", &DOWNWARD_API)]));

static VOLUME_CLAIM_TEMPLATE: Shape = Shape::object(&[
    ("metadata", &CLAIM_METADATA),
    ("spec", &Shape::embedded(&[("resources", &RESOURCES), ("selector", &LABEL_SELECTOR)])),
]);

/// Like a template's, but here the hash label is a label like any other.
static CLAIM_METADATA: Shape = Shape::embedded(&[
    ("labels", &Shape::MAP),
    ("annotations", &Shape::MAP),
    ("creationTimestamp", &Shape::TIME),
    ("deletionTimestamp", &Shape::TIME),
]);

static AFFINITY: Shape =
    Shape::object(&[("podAffinity", &POD_AFFINITY), ("podAntiAffinity", &POD_AFFINITY)]);

static POD_AFFINITY: Shape = Shape::object(&[
    ("requiredDuringSchedulingIgnoredDuringExecution", &TERMS),
    ("preferredDuringSchedulingIgnoredDuringExecution", &WEIGHTED_TERMS),
]);

static WEIGHTED_TERMS: Shape = Shape::array(&Shape::object(&[("podAffinityTerm", &TERM)]));
static TERMS: Shape = Shape::array(&TERM);
static TERM: Shape =
    Shape::embedded(&[("labelSelector", &LABEL_SELECTOR), ("namespaceSelector", &LABEL_SELECTOR)]);

/// An empty selector matches everything, none matches nothing; an empty map in it changes neither.
static LABEL_SELECTOR: Shape = Shape::object(&[("matchLabels", &Shape::MAP)]);

/// The digest of a template that is this field.
pub(super) fn digest_template(template: &Digester, field: Field) -> Result<Digest, FieldFault> {
    template.finish().map_err(|_| FieldFault { field, fault: Fault::TooDeep })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tokenizer;

    fn digest(template: &str) -> Digest {
        let mut tokenizer = Tokenizer::new();
        let mut digester = Digester::new(&POD_TEMPLATE);
        tokenizer.feed(template.as_bytes(), &mut digester).unwrap();
        digest_template(&digester, Field::Template).unwrap()
    }

    #[test]
    fn the_template_of_a_revision_is_that_of_its_set() {
        let template = r#"{"spec":{"containers":[{"name":"a"}]}}"#;
        let patch = r#"{"$patch":"replace","spec":{"containers":[{"name":"a"}]}}"#;
        let inside = r#"{"spec":{"$patch":"replace","containers":[{"name":"a"}]}}"#;
        assert_eq!(digest(template), digest(patch));
        assert_ne!(digest(template), digest(inside));
    }
}
