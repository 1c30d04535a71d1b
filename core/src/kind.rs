//! The kinds that are cached: one table, from which everything that depends on the kind is made.

/// Hands the table of kinds to a macro, one line a kind:
///
/// - a `#[cfg]` if it can be left out;
/// - its name and documentation, the field of its table and the name of its capacity;
/// - what is kept of it, and what it is read as;
/// - its [`Info`].
///
/// The first one is what decoders of any kind begin as; it is the largest, so that they are zero then.
macro_rules! kinds {
    ($with:ident $($first:tt)*) => {
        $with! {
            $($first)*
            ReplicaSet "`apps/v1` ReplicaSet" replica_sets REPLICA_SETS
            (crate::store::ReplicaSet, crate::wire::ReplicaSet) {
                api_version: "apps/v1",
                api: "/apis/apps/v1",
                plural: "replicasets",
                texts_of_eight: 32,
                owners: &[Kind::Deployment],
                is_only_of_owners: false,
                is_key: true,
                has_generated_names: false,
            }
            Deployment "`apps/v1` Deployment" deployments DEPLOYMENTS
            (crate::store::Deployment, crate::wire::Deployment) {
                api_version: "apps/v1",
                api: "/apis/apps/v1",
                plural: "deployments",
                texts_of_eight: 64,
                owners: &[],
                is_only_of_owners: false,
                is_key: true,
                has_generated_names: false,
            }
            Pod "`v1` Pod" pods PODS
            (crate::store::Pod, crate::wire::Pod) {
                api_version: "v1",
                api: "/api/v1",
                plural: "pods",
                texts_of_eight: 1,
                owners: &[
                    Kind::ReplicaSet,
                    #[cfg(feature = "replication-controller")]
                    Kind::ReplicationController,
                    #[cfg(feature = "statefulset")]
                    Kind::StatefulSet,
                ],
                is_only_of_owners: true,
                is_key: false,
                has_generated_names: true,
            }
            #[cfg(feature = "replication-controller")]
            ReplicationController "`v1` ReplicationController"
            replication_controllers REPLICATION_CONTROLLERS
            (crate::store::ReplicaSet, crate::replication_controller::ReplicationController) {
                api_version: "v1",
                api: "/api/v1",
                plural: "replicationcontrollers",
                texts_of_eight: 32,
                owners: &[],
                is_only_of_owners: false,
                is_key: true,
                has_generated_names: false,
            }
            #[cfg(feature = "statefulset")]
            StatefulSet "`apps/v1` StatefulSet" stateful_sets STATEFUL_SETS
            (crate::store::StatefulSet, crate::wire::StatefulSet) {
                api_version: "apps/v1",
                api: "/apis/apps/v1",
                plural: "statefulsets",
                // Of each: its name 3, which its service often has too, its labels 4, its claim templates 1,
                // and 7 for the labels that tell three pods apart.
                texts_of_eight: 120,
                owners: &[],
                is_only_of_owners: false,
                is_key: true,
                has_generated_names: false,
            }
            #[cfg(feature = "statefulset")]
            ControllerRevision "`apps/v1` ControllerRevision"
            controller_revisions CONTROLLER_REVISIONS
            (crate::store::ControllerRevision, crate::wire::ControllerRevision) {
                api_version: "apps/v1",
                api: "/apis/apps/v1",
                plural: "controllerrevisions",
                // Of each: the end of its name 2, which the set's status has too, and the hash label 1.
                texts_of_eight: 24,
                owners: &[Kind::StatefulSet],
                is_only_of_owners: true,
                is_key: false,
                has_generated_names: false,
            }
            #[cfg(feature = "statefulset")]
            PersistentVolumeClaim "`v1` PersistentVolumeClaim"
            persistent_volume_claims PERSISTENT_VOLUME_CLAIMS
            (crate::store::PersistentVolumeClaim, crate::wire::PersistentVolumeClaim) {
                api_version: "v1",
                api: "/api/v1",
                plural: "persistentvolumeclaims",
                // Three claims of a template share the stem of their names, which has 3, and their labels.
                texts_of_eight: 8,
                owners: &[Kind::StatefulSet],
                // Without a retention policy, nobody controls the claims of a StatefulSet.
                is_only_of_owners: false,
                is_key: false,
                has_generated_names: true,
            }
        }
    };
}
pub(crate) use kinds;

macro_rules! define {
    ($(
        $(#[$meta:meta])*
        $kind:ident $doc:literal $table:ident $capacity:ident
        $types:tt { $($info:tt)* }
    )*) => {
        /// A kind that is cached. Which there are depends on the features of the build.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum Kind {
            $($(#[$meta])* #[doc = $doc] $kind,)*
        }

        /// The kind of an owner, as far as that matters here. As in Kubernetes, only the kind is
        /// compared, not the group.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum OwnerKind {
            /// Some other controller's business.
            #[default]
            Other = 1,
            $($(#[$meta])* #[doc = $doc] $kind,)*
        }

        impl Kind {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$($(#[$meta])* Self::$kind,)*];

            /// What is fixed about the kind.
            pub const fn info(self) -> &'static Info {
                match self {
                    $($(#[$meta])* Self::$kind => {
                        &const { Info { name: stringify!($kind), $($info)* } }
                    })*
                }
            }
        }

        impl From<Kind> for OwnerKind {
            fn from(kind: Kind) -> Self {
                match kind {
                    $($(#[$meta])* Kind::$kind => Self::$kind,)*
                }
            }
        }
    };
}
kinds!(define);

/// What is fixed about a kind.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// `kind`
    pub name: &'static str,
    /// `apiVersion`
    pub api_version: &'static str,
    /// The path of its API group and version.
    pub api: &'static str,
    /// The resource in the plural.
    pub plural: &'static str,
    /// Pieces of text that eight such objects are likely to need, with names of 40 characters and four
    /// labels.
    pub texts_of_eight: usize,
    /// The kinds of controllers that such an object may have here.
    pub owners: &'static [Kind],
    /// Whether objects of other controllers are nobody's business here, and not cached.
    pub is_only_of_owners: bool,
    /// Whether a controller's queue has such objects for keys: their slots stay taken until it lets go.
    pub is_key: bool,
    /// Whether names are many variations of few stems.
    pub has_generated_names: bool,
}

impl Kind {
    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// The kinds of objects that one of this kind may control.
    pub fn members(self) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |kind| kind.info().owners.contains(&self))
    }

    /// How many kinds of objects one of this kind may control.
    pub(crate) const fn kinds_of_members(self) -> usize {
        let (mut count, mut kinds) = (0, Self::ALL);
        while let [kind, others @ ..] = kinds {
            let mut owners = kind.info().owners;
            while let [owner, rest @ ..] = owners {
                count += (*owner as u8 == self as u8) as usize;
                owners = rest;
            }
            kinds = others;
        }
        count
    }

    /// Whether an object of this kind with such a controller is some other controller's business,
    /// and not cached.
    pub fn is_foreign(self, controller: Option<OwnerKind>) -> bool {
        let is_ours = |owner| self.info().owners.iter().any(|kind| OwnerKind::from(*kind) == owner);
        self.info().is_only_of_owners && controller.is_some_and(|owner| !is_ours(owner))
    }
}

impl OwnerKind {
    /// The kind of this name.
    pub fn parse(name: &str) -> Self {
        let known = Kind::ALL.iter().find(|kind| kind.info().name == name);
        known.map_or(Self::Other, |kind| (*kind).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_whose() {
        assert!(Kind::ReplicaSet.members().eq([Kind::Pod]));
        assert!(Kind::Deployment.members().eq([Kind::ReplicaSet]));
        assert!(Kind::Pod.members().eq([]));
        #[cfg(feature = "statefulset")]
        {
            let members = [Kind::Pod, Kind::ControllerRevision, Kind::PersistentVolumeClaim];
            assert!(Kind::StatefulSet.members().eq(members));
        }
        for kind in Kind::ALL {
            assert_eq!(kind.members().count(), kind.kinds_of_members());
            assert_eq!(OwnerKind::parse(kind.info().name), OwnerKind::from(*kind));
        }
        assert_eq!(OwnerKind::parse("Job"), OwnerKind::Other);
    }

    #[test]
    fn only_pods_and_revisions_of_strangers_are_left_out() {
        assert!(Kind::Pod.is_foreign(Some(OwnerKind::Other)));
        assert!(Kind::Pod.is_foreign(Some(OwnerKind::Deployment)));
        assert!(!Kind::Pod.is_foreign(Some(OwnerKind::ReplicaSet)));
        assert!(!Kind::Pod.is_foreign(None));
        assert!(!Kind::ReplicaSet.is_foreign(Some(OwnerKind::Other)));
        #[cfg(feature = "statefulset")]
        for (kind, owner, is_foreign) in [
            (Kind::Pod, Some(OwnerKind::StatefulSet), false),
            (Kind::ControllerRevision, Some(OwnerKind::StatefulSet), false),
            (Kind::ControllerRevision, None, false),
            // Of a DaemonSet, say.
            (Kind::ControllerRevision, Some(OwnerKind::Other), true),
            (Kind::PersistentVolumeClaim, Some(OwnerKind::Other), false),
            (Kind::PersistentVolumeClaim, Some(OwnerKind::Pod), false),
        ] {
            assert_eq!(kind.is_foreign(owner), is_foreign, "{kind:?} {owner:?}");
        }
    }
}
