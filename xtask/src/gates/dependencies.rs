//! Licences, bans and duplicate versions, by `deny.toml`.
//!
//! The file has the form that cargo-deny reads, so that whoever has cargo-deny can use that. Here
//! only the parts that we set are read: installing cargo-deny would take longer than all other
//! checks together, and its advisories need a network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::workspace::{self, FIRMWARE_TARGET};

/// What is checked for duplicates: what ends up in flash.
const FIRMWARE_ROOTS: [&str; 1] = [crate::firmware::PACKAGE];

/// Checks all dependencies of the workspace at `root`.
pub(super) fn check(root: &Path) -> Result<String> {
    let rules = fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let rules: Rules = toml::from_str(&rules).context("deny.toml")?;
    let all = Packages::read(&workspace::metadata(root, None)?)?;
    let firmware = workspace::metadata(root, Some(FIRMWARE_TARGET))?;
    let firmware = Packages::read(&firmware)?.reachable_from(&FIRMWARE_ROOTS)?;

    let mut findings = rules.check_licences(&all);
    findings.extend(rules.check_bans(&all));
    findings.extend(rules.check_duplicates(&firmware));
    if findings.is_empty() {
        let (all, firmware) = (all.0.len(), firmware.0.len());
        return Ok(format!("{all} packages are licensed as allowed; {firmware} are in firmware"));
    }
    bail!("{} findings:\n{}", findings.len(), findings.join("\n"))
}

/// The parts of `deny.toml` that we set.
#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// A licence that one crate may have.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
    skip: Vec<Skipped>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

/// A version that may stand beside another of the same crate.
#[derive(Deserialize)]
struct Skipped {
    #[serde(rename = "crate")]
    name_and_version: String,
}

impl Rules {
    fn check_licences(&self, packages: &Packages) -> Vec<String> {
        packages.0.values().filter_map(|package| self.licence_finding(package)).collect()
    }

    fn licence_finding(&self, Package { name, version, licence, .. }: &Package) -> Option<String> {
        let Some(licence) = licence else {
            return Some(format!("{name} {version} does not say how it is licensed"));
        };
        // Some crates still write `/` for `OR`, as was usual.
        let expression = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX);
        let Ok(expression) = expression else {
            return Some(format!("{name} {version}: `{licence}` is no SPDX expression"));
        };
        let allowed = expression.evaluate(|requirement| {
            let requirement = requirement.to_string();
            let exceptions = self.licenses.exceptions.iter().filter(|own| own.name == *name);
            self.licenses.allow.contains(&requirement)
                || exceptions.into_iter().any(|own| own.allow.contains(&requirement))
        });
        (!allowed).then(|| format!("{name} {version}: `{licence}` is not among the allowed"))
    }

    fn check_bans(&self, packages: &Packages) -> Vec<String> {
        let names: BTreeSet<&str> =
            packages.0.values().map(|package| package.name.as_str()).collect();
        let banned = self.bans.deny.iter().filter(|banned| names.contains(banned.name.as_str()));
        banned.map(|Banned { name, reason }| format!("{name} is banned: {reason}")).collect()
    }

    fn check_duplicates(&self, packages: &Packages) -> Vec<String> {
        let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
        for Package { name, version, .. } in packages.0.values() {
            let full = format!("{name}@{version}");
            if !self.bans.skip.iter().any(|skip| skip.name_and_version == full) {
                versions.entry(name).or_default().insert(version);
            }
        }
        versions.retain(|_, versions| versions.len() > 1);
        let describe = |(name, versions): (&&str, &BTreeSet<&str>)| {
            let versions: Vec<&str> = versions.iter().copied().collect();
            format!("firmware has {name} more than once: {}", versions.join(", "))
        };
        versions.iter().map(describe).collect()
    }
}

struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// It runs inside the compiler and leaves nothing of itself in the product.
    is_macro: bool,
    /// Identifiers of what it needs to run, which leaves build and test tools out.
    dependencies: Vec<String>,
}

/// By the identifiers that cargo gives them.
struct Packages(BTreeMap<String, Package>);

impl Packages {
    fn read(metadata: &Value) -> Result<Self> {
        let mut packages = BTreeMap::new();
        for package in metadata["packages"].as_array().context("metadata without packages")? {
            let text = |field: &str| package[field].as_str().map(str::to_owned);
            let id = text("id").context("a package without an id")?;
            let name = text("name").context("a package without a name")?;
            let version = text("version").context("a package without a version")?;
            let licence = text("license");
            let is_macro = package["targets"][0]["kind"][0] == "proc-macro";
            let dependencies = Vec::new();
            packages.insert(id, Package { name, version, licence, is_macro, dependencies });
        }
        for node in metadata["resolve"]["nodes"].as_array().context("metadata without nodes")? {
            let id = node["id"].as_str().unwrap_or_default();
            let Some(package) = packages.get_mut(id) else { continue };
            package.dependencies = run_time_dependencies(node);
        }
        Ok(Self(packages))
    }

    fn reachable_from(mut self, names: &[&str]) -> Result<Self> {
        let root = |(_, package): &(&String, &Package)| names.contains(&package.name.as_str());
        let mut open: Vec<String> = self.0.iter().filter(root).map(|(id, _)| id.clone()).collect();
        if open.is_empty() {
            bail!("none of {names:?} is a package of the workspace");
        }
        let mut reached = BTreeMap::new();
        while let Some(id) = open.pop() {
            if let Some(package) = self.0.remove(&id).filter(|package| !package.is_macro) {
                open.extend(package.dependencies.iter().cloned());
                reached.insert(id, package);
            }
        }
        Ok(Self(reached))
    }
}

fn run_time_dependencies(node: &Value) -> Vec<String> {
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            // The ordinary kind is written as null.
            kinds.into_iter().any(|kind| kind["kind"].is_null())
        })
        .filter_map(|dependency| dependency["pkg"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        toml::from_str(
            r#"
            [licenses]
            allow = ["MIT", "Apache-2.0"]
            exceptions = [{ crate = "tool", allow = ["MPL-2.0"] }]
            [bans]
            deny = [{ crate = "openssl", reason = "rustls does it" }]
            skip = [{ crate = "nb@0.1.3" }]
            "#,
        )
        .expect("valid rules")
    }

    fn packages(list: &[(&str, &str, Option<&str>)]) -> Packages {
        let entry = |(name, version, licence): &(&str, &str, Option<&str>)| {
            let package = Package {
                name: (*name).to_owned(),
                version: (*version).to_owned(),
                licence: licence.map(str::to_owned),
                is_macro: false,
                dependencies: Vec::new(),
            };
            (format!("{name}@{version}"), package)
        };
        Packages(list.iter().map(entry).collect())
    }

    #[test]
    fn only_allowed_licences_pass() {
        let check = |licence| rules().check_licences(&packages(&[("a", "1.0.0", licence)])).len();
        assert_eq!(check(Some("MIT")), 0);
        assert_eq!(check(Some("GPL-3.0-only OR Apache-2.0")), 0);
        assert_eq!(check(Some("MIT/Apache-2.0")), 0);
        assert_eq!(check(Some("GPL-3.0-only")), 1);
        assert_eq!(check(Some("MIT AND GPL-3.0-only")), 1);
        assert_eq!(check(Some("mine")), 1);
        assert_eq!(check(None), 1);
    }

    #[test]
    fn an_exception_is_for_one_crate() {
        let check = |name| rules().check_licences(&packages(&[(name, "1.0.0", Some("MPL-2.0"))]));
        assert_eq!(check("tool").len(), 0);
        assert_eq!(check("other").len(), 1);
    }

    #[test]
    fn banned_crates_are_found() {
        assert_eq!(rules().check_bans(&packages(&[("rustls", "1.0.0", None)])).len(), 0);
        assert_eq!(rules().check_bans(&packages(&[("openssl", "1.0.0", None)])).len(), 1);
    }

    #[test]
    fn duplicates_are_found_unless_skipped() {
        let check = |list: &[_]| rules().check_duplicates(&packages(list)).len();
        assert_eq!(check(&[("a", "1.0.0", None), ("b", "1.0.0", None)]), 0);
        assert_eq!(check(&[("a", "1.0.0", None), ("a", "2.0.0", None)]), 1);
        assert_eq!(check(&[("nb", "0.1.3", None), ("nb", "1.1.0", None)]), 0);
    }
}
