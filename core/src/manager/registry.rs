//! The controllers there are, and which of them run: the meaning of `--controllers`.

use core::fmt;

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Controller {
    /// `deployment-controller`
    Deployment,
    /// `replicaset-controller`
    ReplicaSet,
}

impl Controller {
    /// All controllers.
    pub const ALL: [Self; 2] = [Self::Deployment, Self::ReplicaSet];

    /// Its canonical name; also the source of its events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "deployment-controller",
            Self::ReplicaSet => "replicaset-controller",
        }
    }

    /// Its name before Kubernetes 1.27, which still works.
    pub const fn alias(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::ReplicaSet => "replicaset",
        }
    }

    /// The controller of this name or alias.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|this| name == this.name() || name == this.alias())
    }
}

/// The set of controllers that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Enabled {
    deployment: bool,
    replica_set: bool,
}

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
    pub const ALL: Self = Self { deployment: true, replica_set: true };

    /// Reads the items of `--controllers`: `*` is all, `foo` turns one on, `-foo` off. The first
    /// item that names a controller decides; without one, `*` anywhere turns it on.
    pub fn parse<'a>(
        items: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Self, UnknownController<'a>> {
        let named = |item: &'a str| Controller::parse(item.strip_prefix('-').unwrap_or(item));
        if let Some(item) = items.clone().find(|item| *item != "*" && named(item).is_none()) {
            return Err(UnknownController { item });
        }
        let enabled = |controller| {
            let mut items = items.clone();
            let star = items.clone().any(|item| item == "*");
            items
                .find(|item| *item != "*" && named(item) == Some(controller))
                .map_or(star, |item| !item.starts_with('-'))
        };
        Ok(Self {
            deployment: enabled(Controller::Deployment),
            replica_set: enabled(Controller::ReplicaSet),
        })
    }

    /// Whether a controller runs.
    pub const fn contains(self, controller: Controller) -> bool {
        match controller {
            Controller::Deployment => self.deployment,
            Controller::ReplicaSet => self.replica_set,
        }
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
        Ok((enabled.contains(Controller::Deployment), enabled.contains(Controller::ReplicaSet)))
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
