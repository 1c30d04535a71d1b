//! All memory of the controllers in one value.

use crate::control::OrderedPod;
use crate::kind::{Kind, kinds};
use crate::registry::{ControllerParts, controllers};
use crate::store::{Cache, Group, Groups, TableMemory};
use crate::text::{Cell, Interner};

macro_rules! define {
    ({$(
        $(#[$of_kind:meta])*
        $kind:ident $doc:literal $table:ident $capacity:ident ($record:ty, $object:ty) $info:tt
    )*} $(
        $(#[$of_controller:meta])*
        $controller:ident $of:literal $module:ident $runner:ident $field:ident $keys:ident
    )*) => {
        /// Objects of each kind that there is room for, owners and namespaces, and texts.
        #[derive(Clone, Copy, Debug)]
        pub struct Capacities {
            $(#[doc = $doc] pub $table: usize,)*
            /// Owners and namespaces; 0 is as many as such a cluster is likely to have: one group per
            /// controller and kind that it controls, some orphans, a few namespaces.
            pub groups: usize,
            /// Pieces of names, labels and selectors; 0 is as many as such a cluster is likely to
            /// need.
            pub texts: usize,
        }

        impl Capacities {
            /// Nothing.
            pub const NONE: Self = Self { $($table: 0,)* groups: 0, texts: 0 };

            /// With numbers of groups and texts, and only of kinds that there are.
            pub const fn complete(self) -> Self {
                let (mut groups, mut texts) = (16, 32);
                let mut of_kinds = 0;
                $(
                    $(#[$of_kind])*
                    {
                        let info = Kind::$kind.info();
                        groups += self.$table * Kind::$kind.kinds_of_members();
                        groups += if info.is_key { 0 } else { self.$table / 32 };
                        texts += self.$table * info.texts_of_eight / 8;
                        of_kinds += self.$table;
                    }
                )*
                assert!(of_kinds == 0 $(+ self.$table)*, "a kind that this build does not have");
                Self {
                    groups: if self.groups > 0 { self.groups } else { groups },
                    texts: if self.texts > 0 { self.texts } else { texts },
                    ..self
                }
            }
        }

        /// The memory of the controllers. The [`resources!`](crate::resources!) macro names its type.
        #[derive(Debug)]
        pub struct Resources<
            $(const $capacity: usize,)*
            const GROUPS: usize,
            const TEXTS: usize,
        > {
            texts: Interner<[Cell; TEXTS]>,
            groups: Groups<[Group; GROUPS]>,
            tables: Tables<$($capacity),*>,
            keys: KeysOfControllers<$($capacity),*>,
            pods_in_order: [OrderedPod; PODS],
        }

        #[derive(Debug)]
        struct Tables<$(const $capacity: usize),*> {
            $($(#[$of_kind])* $table: TableMemory<$record, $capacity>,)*
        }

        #[derive(Debug)]
        struct KeysOfControllers<$(const $capacity: usize),*> {
            $($(#[$of_controller])* $field: crate::$module::Memory<$keys>,)*
        }

        impl<$(const $capacity: usize,)* const GROUPS: usize, const TEXTS: usize>
            Resources<$($capacity,)* GROUPS, TEXTS>
        {
            /// Empty memory: all bits zero.
            pub const fn new() -> Self {
                Self {
                    texts: Interner::new(),
                    groups: Groups::new(),
                    tables: Tables { $($(#[$of_kind])* $table: TableMemory::NEW,)* },
                    keys: KeysOfControllers {
                        $($(#[$of_controller])* $field: crate::$module::Memory::NEW,)*
                    },
                    pods_in_order: [OrderedPod::NONE; PODS],
                }
            }

            /// The parts, in the form that all logic works on.
            pub fn parts(&mut self) -> Parts<'_> {
                Parts {
                    cache: Cache {
                        texts: &mut self.texts,
                        groups: &mut self.groups,
                        $($(#[$of_kind])* $table: self.tables.$table.table(Kind::$kind),)*
                    },
                    controllers: ControllerParts {
                        $($(#[$of_controller])*
                        $field: self.keys.$field.parts(&crate::$module::INFO),)*
                    },
                    pods_in_order: &mut self.pods_in_order,
                }
            }
        }

        impl<$(const $capacity: usize,)* const GROUPS: usize, const TEXTS: usize> Default
            for Resources<$($capacity,)* GROUPS, TEXTS>
        {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}
macro_rules! define_with_controllers {
    ($($kinds:tt)*) => { controllers! { define { $($kinds)* } } };
}
kinds!(define_with_controllers);

macro_rules! define_macro {
    ($d:tt $(
        $(#[$meta:meta])*
        $kind:ident $doc:literal $table:ident $capacity:ident ($record:ty, $object:ty) $info:tt
    )*) => {
        /// The type of [`Resources`](crate::resources::Resources) with the
        /// [`Capacities`](crate::resources::Capacities) given, for example
        /// `resources! { pods: 512, replica_sets: 64, deployments: 32 }`. What is left out is nothing
        /// of a kind, and as much as needed of `groups` and `texts`.
        ///
        /// ```
        /// use std::sync::Mutex;
        /// type Memory = picokube_core::resources! { pods: 64, replica_sets: 8, deployments: 4 };
        /// // All zero: takes no room in flash, and is never built on a stack.
        /// static MEMORY: Mutex<Memory> = Mutex::new(Memory::new());
        /// assert_eq!(MEMORY.lock().unwrap().parts().cache.pods.capacity(), 64);
        /// ```
        #[macro_export]
        macro_rules! resources {
            ($d($d name:ident: $d value:expr),* $d(,)?) => {
                $crate::resources::Resources<
                    $({ $crate::capacities!($d($d name: $d value),*).$table },)*
                    { $crate::capacities!($d($d name: $d value),*).groups },
                    { $crate::capacities!($d($d name: $d value),*).texts },
                >
            };
        }
    };
}
kinds!(define_macro $);

/// The complete [`Capacities`] of [`resources!`](crate::resources!).
#[doc(hidden)]
#[macro_export]
macro_rules! capacities {
    ($($name:ident: $value:expr),*) => {{
        let mut capacities = $crate::resources::Capacities::NONE;
        $(capacities.$name = $value;)*
        capacities.complete()
    }};
}

/// Views of the parts of [`Resources`], whatever their capacities.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The cached cluster.
    pub cache: Cache<'a>,
    /// The keys of the controllers.
    pub controllers: ControllerParts<'a>,
    /// Room to put the pods of one owner in order.
    pub pods_in_order: &'a mut [OrderedPod],
}

/// Memory for tests of what does not depend on its size.
#[cfg(test)]
pub(crate) type Tiny = resources! { pods: 1, replica_sets: 1, deployments: 1 };

/// Memory for tests of what looks at a few objects.
#[cfg(test)]
pub(crate) type Few = resources! {
    pods: 12,
    replica_sets: 6,
    deployments: 1,
    stateful_sets: if cfg!(feature = "statefulset") { 1 } else { 0 },
    controller_revisions: if cfg!(feature = "statefulset") { 6 } else { 0 },
};
