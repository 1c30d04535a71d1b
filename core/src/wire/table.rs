//! The tables that say what is kept of an object, and the fields they name.

/// The members of an object that matter. All others are skipped.
#[derive(Debug)]
pub struct FieldTable {
    /// What becomes of each member, by name.
    pub members: &'static [(&'static str, Rule)],
    /// Where to look for members that are not named here.
    pub or: Option<&'static FieldTable>,
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Rule {
    /// A string, number or boolean is kept.
    Keep(Field) = 1,
    /// An object is looked into.
    Object(Field, &'static FieldTable),
    /// Each element of an array is looked into.
    Each(Field, &'static FieldTable),
    /// Any value is passed on event by event: to be hashed, counted or copied.
    Stream(Field),
    /// Any value is passed on event by event, and if it is an object, it is looked into as well.
    Tee(Field, &'static FieldTable),
}

impl FieldTable {
    /// A table of nothing.
    pub const EMPTY: Self = Self::new(&[]);

    /// A table of these members.
    pub const fn new(members: &'static [(&'static str, Rule)]) -> Self {
        Self { members, or: None }
    }

    pub(super) fn rule(&self, name: &[u8]) -> Option<Rule> {
        let mut table = self;
        loop {
            for (known, rule) in table.members {
                if known.as_bytes() == name {
                    return Some(*rule);
                }
            }
            table = table.or?;
        }
    }
}

macro_rules! fields {
    ($first:ident $first_path:literal, $($(#[$meta:meta])* $name:ident $path:literal,)*) => {
        /// A field of some kind that a table mentions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum Field {
            #[doc = concat!("`", $first_path, "`")]
            $first = 1,
            $($(#[$meta])* #[doc = concat!("`", $path, "`")] $name,)*
        }

        impl Field {
            /// The path of the field in its object, as people write it.
            pub const fn path(self) -> &'static str {
                match self {
                    Self::$first => $first_path,
                    $($(#[$meta])* Self::$name => $path,)*
                }
            }
        }
    };
}

fields! {
    // Envelopes
    Root "",
    EventType "type",
    EventObject "object",
    ListMetadata "metadata",
    ListResourceVersion "metadata.resourceVersion",
    ListContinue "metadata.continue",
    ListRemaining "metadata.remainingItemCount",
    Item "items[]",
    // Every kind
    Kind "kind",
    Metadata "metadata",
    Namespace "metadata.namespace",
    Name "metadata.name",
    Uid "metadata.uid",
    ResourceVersion "metadata.resourceVersion",
    Generation "metadata.generation",
    CreationTimestamp "metadata.creationTimestamp",
    DeletionTimestamp "metadata.deletionTimestamp",
    DeletionGracePeriodSeconds "metadata.deletionGracePeriodSeconds",
    Labels "metadata.labels",
    Annotations "metadata.annotations",
    OwnerReference "metadata.ownerReferences[]",
    OwnerKind "metadata.ownerReferences[].kind",
    OwnerName "metadata.ownerReferences[].name",
    OwnerUid "metadata.ownerReferences[].uid",
    OwnerController "metadata.ownerReferences[].controller",
    Spec "spec",
    Status "status",
    Condition "status.conditions[]",
    ConditionType "status.conditions[].type",
    ConditionStatus "status.conditions[].status",
    ConditionReason "status.conditions[].reason",
    ConditionMessage "status.conditions[].message",
    ConditionLastUpdate "status.conditions[].lastUpdateTime",
    ConditionLastTransition "status.conditions[].lastTransitionTime",
    // Pod
    NodeName "spec.nodeName",
    InitContainer "spec.initContainers[]",
    InitContainerName "spec.initContainers[].name",
    InitContainerRestartPolicy "spec.initContainers[].restartPolicy",
    Phase "status.phase",
    ContainerStatus "status.containerStatuses[]",
    ContainerRestarts "status.containerStatuses[].restartCount",
    InitContainerStatus "status.initContainerStatuses[]",
    InitContainerStatusName "status.initContainerStatuses[].name",
    InitContainerRestarts "status.initContainerStatuses[].restartCount",
    // ReplicaSet and Deployment
    Replicas "spec.replicas",
    MinReadySeconds "spec.minReadySeconds",
    Selector "spec.selector",
    MatchLabels "spec.selector.matchLabels",
    MatchExpression "spec.selector.matchExpressions[]",
    ExpressionKey "spec.selector.matchExpressions[].key",
    ExpressionOperator "spec.selector.matchExpressions[].operator",
    ExpressionValues "spec.selector.matchExpressions[].values",
    Template "spec.template",
    TemplateMetadata "spec.template.metadata",
    TemplateLabels "spec.template.metadata.labels",
    TemplateAnnotations "spec.template.metadata.annotations",
    TemplateFinalizers "spec.template.metadata.finalizers",
    TemplateSpec "spec.template.spec",
    Paused "spec.paused",
    ProgressDeadlineSeconds "spec.progressDeadlineSeconds",
    RevisionHistoryLimit "spec.revisionHistoryLimit",
    Strategy "spec.strategy",
    StrategyType "spec.strategy.type",
    RollingUpdate "spec.strategy.rollingUpdate",
    MaxSurge "spec.strategy.rollingUpdate.maxSurge",
    MaxUnavailable "spec.strategy.rollingUpdate.maxUnavailable",
    StatusReplicas "status.replicas",
    FullyLabeledReplicas "status.fullyLabeledReplicas",
    UpdatedReplicas "status.updatedReplicas",
    ReadyReplicas "status.readyReplicas",
    AvailableReplicas "status.availableReplicas",
    UnavailableReplicas "status.unavailableReplicas",
    TerminatingReplicas "status.terminatingReplicas",
    ObservedGeneration "status.observedGeneration",
    CollisionCount "status.collisionCount",
    // StatefulSet
    #[cfg(feature = "statefulset")]
    Ordinals "spec.ordinals",
    #[cfg(feature = "statefulset")]
    OrdinalsStart "spec.ordinals.start",
    #[cfg(feature = "statefulset")]
    PodManagementPolicy "spec.podManagementPolicy",
    #[cfg(feature = "statefulset")]
    ServiceName "spec.serviceName",
    #[cfg(feature = "statefulset")]
    UpdateStrategy "spec.updateStrategy",
    #[cfg(feature = "statefulset")]
    UpdateStrategyType "spec.updateStrategy.type",
    #[cfg(feature = "statefulset")]
    UpdateStrategyRollingUpdate "spec.updateStrategy.rollingUpdate",
    #[cfg(feature = "statefulset")]
    Partition "spec.updateStrategy.rollingUpdate.partition",
    #[cfg(feature = "statefulset")]
    UpdateStrategyMaxUnavailable "spec.updateStrategy.rollingUpdate.maxUnavailable",
    #[cfg(feature = "statefulset")]
    RetentionPolicy "spec.persistentVolumeClaimRetentionPolicy",
    #[cfg(feature = "statefulset")]
    WhenDeleted "spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
    #[cfg(feature = "statefulset")]
    WhenScaled "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
    ClaimTemplate "spec.volumeClaimTemplates[]",
    #[cfg(feature = "statefulset")]
    ClaimTemplateMetadata "spec.volumeClaimTemplates[].metadata",
    #[cfg(feature = "statefulset")]
    ClaimTemplateName "spec.volumeClaimTemplates[].metadata.name",
    #[cfg(feature = "statefulset")]
    CurrentReplicas "status.currentReplicas",
    #[cfg(feature = "statefulset")]
    CurrentRevision "status.currentRevision",
    #[cfg(feature = "statefulset")]
    UpdateRevision "status.updateRevision",
    // ControllerRevision
    #[cfg(feature = "statefulset")]
    Revision "revision",
    RevisionData "data",
    #[cfg(feature = "statefulset")]
    RevisionSpec "data.spec",
    #[cfg(feature = "statefulset")]
    RevisionTemplate "data.spec.template",
    // Status
    Code "code",
    Reason "reason",
    Message "message",
    Details "details",
    RetryAfterSeconds "details.retryAfterSeconds",
    Cause "details.causes[]",
    CauseType "details.causes[].reason",
}
