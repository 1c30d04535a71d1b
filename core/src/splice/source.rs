//! What is looked at in a source.

use super::Make;
use crate::wire::{Field, FieldTable, Rule};

impl Make {
    /// The members that matter of the source it is made of.
    pub(super) fn source(&self) -> &'static FieldTable {
        match self {
            #[cfg(feature = "statefulset")]
            Self::StatefulSetPod { .. } => &REVISION,
            #[cfg(feature = "statefulset")]
            Self::Claim { .. } => &CLAIMING,
            _ => &SOURCE,
        }
    }
}

/// Of whatever has a pod template.
static SOURCE: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
]);

static METADATA: FieldTable = FieldTable::new(&[
    ("uid", Rule::Keep(Field::Uid)),
    ("resourceVersion", Rule::Keep(Field::ResourceVersion)),
    ("annotations", Rule::Stream(Field::Annotations)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("selector", Rule::Tee(Field::Selector, &SELECTOR)),
    ("template", Rule::Tee(Field::Template, &TEMPLATE)),
]);

static SELECTOR: FieldTable = FieldTable::new(&[("matchLabels", Rule::Stream(Field::MatchLabels))]);

static TEMPLATE: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::TemplateMetadata, &TEMPLATE_METADATA)),
    ("spec", Rule::Stream(Field::TemplateSpec)),
]);

static TEMPLATE_METADATA: FieldTable = FieldTable::new(&[
    ("labels", Rule::Stream(Field::TemplateLabels)),
    ("annotations", Rule::Stream(Field::TemplateAnnotations)),
    ("finalizers", Rule::Stream(Field::TemplateFinalizers)),
]);

/// Of a ControllerRevision, whose data is a patch of its StatefulSet.
#[cfg(feature = "statefulset")]
static REVISION: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("data", Rule::Object(Field::RevisionData, &DATA)),
]);

#[cfg(feature = "statefulset")]
static DATA: FieldTable = FieldTable::new(&[("spec", Rule::Object(Field::Spec, &SPEC))]);

/// Of a StatefulSet whose claims are made. The templates of these are to them as a pod template is
/// to a pod, so that their parts go by the same names.
#[cfg(feature = "statefulset")]
static CLAIMING: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &CLAIMING_SPEC)),
]);

#[cfg(feature = "statefulset")]
static CLAIMING_SPEC: FieldTable = FieldTable::new(&[
    ("selector", Rule::Object(Field::Selector, &SELECTOR)),
    ("volumeClaimTemplates", Rule::Each(Field::ClaimTemplate, &TEMPLATE)),
]);
