//! The controllers there are, and which of them run: the meaning of `--controllers`.

use core::fmt;

use crate::control::{Controller, ControllerInfo};

/// Hands the table of controllers to a macro, after what else it is to get, one line a controller:
///
/// - a `#[cfg]` if it can be left out;
/// - its name and documentation, its module and the type that runs it;
/// - the field of its memory, and the capacity of its keys (see [`kinds!`](crate::kind)).
///
/// Those before others come first when there is something to send. What a module has: `INFO`,
/// `Memory` and its `Parts`, `Workers` and their `WorkerParts`, and `start`.
macro_rules! controllers {
    ($with:ident $($first:tt)*) => {
        $with! {
            $($first)*
            Deployment "`deployment-controller`" deployment DeploymentController deployments DEPLOYMENTS
            ReplicaSet "`replicaset-controller`" replicaset ReplicaSetController replica_sets REPLICA_SETS
            #[cfg(feature = "statefulset")]
            StatefulSet "`statefulset-controller`" statefulset StatefulSetController
            stateful_sets STATEFUL_SETS
            #[cfg(feature = "replication-controller")]
            ReplicationController "`replicationcontroller-controller`" replication_controller
            ReplicaSetController replication_controllers REPLICATION_CONTROLLERS
        }
    };
}
pub(crate) use controllers;

macro_rules! define {
    ($($(#[$meta:meta])* $name:ident $doc:literal $module:ident $runner:ident $field:ident $keys:ident)*) => {
        /// A controller. Which there are depends on the features of the build.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum ControllerName {
            $($(#[$meta])* #[doc = $doc] $name,)*
        }

        impl ControllerName {
            /// All controllers, in the order in which they may send.
            pub const ALL: &[Self] = &[$($(#[$meta])* Self::$name,)*];

            /// What is fixed about it.
            pub fn info(self) -> &'static ControllerInfo {
                match self {
                    $($(#[$meta])* Self::$name => &crate::$module::INFO,)*
                }
            }
        }

        /// Views of the memory of the controllers' keys.
        #[derive(Debug)]
        pub struct ControllerParts<'a> {
            $($(#[$meta])* #[doc = $doc] pub $field: crate::$module::Parts<'a>,)*
        }

        /// Memory for syncs: so many at a time of each controller.
        #[derive(Debug)]
        pub(crate) struct Workers<const WORKERS: usize> {
            $($(#[$meta])* $field: crate::$module::Workers<WORKERS>,)*
        }

        /// Views of the memory for syncs.
        #[derive(Debug)]
        pub(crate) struct AllWorkerParts<'a> {
            $($(#[$meta])* $field: crate::$module::WorkerParts<'a>,)*
        }

        impl<const WORKERS: usize> Workers<WORKERS> {
            /// No syncs: all bits zero.
            pub(crate) const NEW: Self =
                Self { $($(#[$meta])* $field: crate::$module::Workers::NEW,)* };

            pub(crate) fn parts(&mut self) -> AllWorkerParts<'_> {
                AllWorkerParts { $($(#[$meta])* $field: self.$field.parts(),)* }
            }
        }

        /// The controllers.
        pub(crate) struct Controllers<'a> {
            $($(#[$meta])* $field: crate::$module::$runner<'a>,)*
        }

        impl<'a> Controllers<'a> {
            pub(crate) fn start(parts: ControllerParts<'a>, workers: AllWorkerParts<'a>) -> Self {
                Self {
                    $($(#[$meta])* $field: crate::$module::start(parts.$field, workers.$field),)*
                }
            }

            pub(crate) fn all(&self) -> [&(dyn Controller<'a> + 'a); ControllerName::COUNT] {
                [$($(#[$meta])* &self.$field,)*]
            }

            pub(crate) fn all_mut(
                &mut self,
            ) -> [&mut (dyn Controller<'a> + 'a); ControllerName::COUNT] {
                [$($(#[$meta])* &mut self.$field,)*]
            }
        }
    };
}
controllers!(define);

impl ControllerName {
    /// The number of controllers.
    pub const COUNT: usize = Self::ALL.len();

    /// Its canonical name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Its name before Kubernetes 1.27, which still works.
    pub fn alias(self) -> &'static str {
        self.info().alias
    }

    /// The controller of this name or alias.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|this| name == this.name() || name == this.alias())
    }
}

/// The set of controllers that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Enabled {
    /// One bit a controller, by its number.
    bits: u8,
}

const _: () = assert!(ControllerName::COUNT <= u8::BITS as usize);

/// A name in `--controllers` that no controller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownController<'a> {
    /// The item of the list.
    pub item: &'a str,
}

impl fmt::Display for UnknownController<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not in the list of known controllers", self.item)
    }
}

impl Enabled {
    /// Every controller.
    pub const ALL: Self = Self { bits: u8::MAX >> (u8::BITS as usize - ControllerName::COUNT) };

    /// Reads the items of `--controllers`: `*` is all, `foo` turns one on, `-foo` off. The first
    /// item that names a controller decides; without one, `*` anywhere turns it on.
    pub fn parse<'a>(
        items: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Self, UnknownController<'a>> {
        let named = |item: &'a str| ControllerName::parse(item.strip_prefix('-').unwrap_or(item));
        if let Some(item) = items.clone().find(|item| *item != "*" && named(item).is_none()) {
            return Err(UnknownController { item });
        }
        let has_star = items.clone().any(|item| item == "*");
        let is_on = |controller| {
            let mut items = items.clone();
            items
                .find(|item| *item != "*" && named(item) == Some(controller))
                .map_or(has_star, |item| !item.starts_with('-'))
        };
        Ok(Self::ALL.filter(is_on))
    }

    /// Those of them that are wanted.
    pub fn filter(self, is_wanted: impl Fn(ControllerName) -> bool) -> Self {
        let both = |it: &&ControllerName| self.contains(**it) && is_wanted(**it);
        let bit = |bits, controller: &ControllerName| bits | 1 << *controller as u8;
        Self { bits: ControllerName::ALL.iter().filter(both).fold(0, bit) }
    }

    /// Whether a controller runs.
    pub const fn contains(self, controller: ControllerName) -> bool {
        self.bits & 1 << controller as u8 != 0
    }
}

impl Default for Enabled {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(list: &str) -> Result<(bool, bool), &str> {
        let enabled = Enabled::parse(list.split(',')).map_err(|unknown| unknown.item)?;
        Ok((
            enabled.contains(ControllerName::Deployment),
            enabled.contains(ControllerName::ReplicaSet),
        ))
    }

    #[test]
    fn the_first_item_that_names_a_controller_decides() {
        for (list, deployment, replica_set) in [
            ("*", true, true),
            ("deployment-controller", true, false),
            ("deployment", true, false),
            ("-deployment,*", false, true),
            ("*,-deployment-controller,deployment", false, true),
            ("deployment,-deployment,*", true, true),
            ("-replicaset", false, false),
            ("replicaset,deployment", true, true),
            ("*,*", true, true),
        ] {
            assert_eq!(enabled(list), Ok((deployment, replica_set)), "{list}");
        }
    }

    #[test]
    fn a_name_nobody_has_is_refused_as_it_was_written() {
        for (list, item) in
            [("*,-foo", "-foo"), ("foo", "foo"), ("--deployment", "--deployment"), ("", "")]
        {
            assert_eq!(enabled(list), Err(item), "{list}");
        }
        let error = Enabled::parse(["-nodelifecycle"].into_iter()).unwrap_err();
        assert_eq!(
            std::format!("{error}"),
            "\"-nodelifecycle\" is not in the list of known controllers"
        );
    }
}
