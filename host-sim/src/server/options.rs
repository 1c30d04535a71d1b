//! Query options of requests: list, watch and write options, parsed once and checked.

use crate::api::decode::FieldValidation;
use crate::api::field::{FieldErrors, Path};
use crate::api::status::Status;
use crate::api::table::IncludeObject;

use super::url;

/// Everything a query can say. Options that a verb does not know are ignored, as upstream does.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// labelSelector, unparsed.
    pub label_selector: String,
    /// fieldSelector, unparsed.
    pub field_selector: String,
    /// watch
    pub watch: bool,
    /// allowWatchBookmarks
    pub allow_watch_bookmarks: bool,
    /// sendInitialEvents
    pub send_initial_events: Option<bool>,
    /// resourceVersion; `None` if absent or empty.
    pub resource_version: Option<u64>,
    /// resourceVersionMatch
    pub resource_version_match: Option<VersionMatch>,
    /// timeoutSeconds
    pub timeout_seconds: Option<u64>,
    /// limit; 0 is no limit.
    pub limit: u64,
    /// continue; empty if absent.
    pub continue_token: String,
    /// dryRun=All
    pub dry_run: bool,
    /// fieldManager; empty if absent.
    pub field_manager: String,
    /// force
    pub force: bool,
    /// fieldValidation; `None` if absent.
    pub field_validation: Option<FieldValidation>,
    /// gracePeriodSeconds
    pub grace_period_seconds: Option<i64>,
    /// propagationPolicy; empty if absent.
    pub propagation_policy: String,
    /// orphanDependents
    pub orphan_dependents: Option<bool>,
    /// pretty
    pub pretty: bool,
    /// includeObject, for tables.
    pub include_object: IncludeObject,
}

/// How a list's resourceVersion is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// That snapshot and no other.
    Exact,
    /// That version or any later one.
    NotOlderThan,
}

impl Options {
    /// Reads a query string.
    pub fn parse(query: &str) -> Result<Self, Status> {
        let mut options = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = url::decode(name, true).zip(url::decode(value, true));
            let (name, value) = decoded.ok_or_else(|| {
                Status::bad_request(format!("invalid URL escape in query parameter {pair:?}"))
            })?;
            options.set(&name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Status> {
        match name {
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "watch" => self.watch = boolean(&value),
            "allowWatchBookmarks" => self.allow_watch_bookmarks = boolean(&value),
            "sendInitialEvents" => self.send_initial_events = Some(boolean(&value)),
            "resourceVersion" => self.resource_version = version(&value)?,
            "resourceVersionMatch" => self.resource_version_match = version_match(&value)?,
            "timeoutSeconds" => {
                self.timeout_seconds = integer(name, &value)?.map(|s| s.max(0) as u64);
            }
            "limit" => self.limit = integer(name, &value)?.unwrap_or(0).max(0) as u64,
            "continue" => self.continue_token = value,
            "dryRun" => {
                one_of("dryRun", &value, &["All"])?;
                self.dry_run = true;
            }
            "fieldManager" => {
                check_manager(&value)?;
                self.field_manager = value;
            }
            "force" => self.force = boolean(&value),
            "fieldValidation" => {
                one_of("fieldValidation", &value, &["", "Ignore", "Strict", "Warn"])?;
                self.field_validation = match value.as_str() {
                    "Ignore" => Some(FieldValidation::Ignore),
                    "Strict" => Some(FieldValidation::Strict),
                    "Warn" => Some(FieldValidation::Warn),
                    _ => None,
                };
            }
            "gracePeriodSeconds" => self.grace_period_seconds = integer(name, &value)?,
            "propagationPolicy" => self.propagation_policy = value,
            "orphanDependents" => self.orphan_dependents = Some(boolean(&value)),
            "pretty" => self.pretty = boolean(&value),
            "includeObject" => {
                self.include_object = IncludeObject::parse(&value).ok_or_else(|| {
                    Status::bad_request(format!("unrecognized includeObject value: {value:?}"))
                })?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Managers are shown to people.
fn check_manager(manager: &str) -> Result<(), Status> {
    let at = Path::new("fieldManager");
    let mut errors = FieldErrors::default();
    if manager.len() > 128 {
        errors.too_long(&at, 128);
    }
    if let Some((position, _)) = manager.char_indices().find(|(_, c)| c.is_control()) {
        let why = format!("should only contain printable characters (at position {position})");
        errors.invalid(&at, manager, &why);
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid_kind("meta.k8s.io", "PatchOptions", "", &errors))
}

/// As upstream reads booleans of a query: everything but `false`, `0` and nothing is true.
fn boolean(value: &str) -> bool {
    !(value.eq_ignore_ascii_case("false") || value == "0")
}

fn integer(name: &str, value: &str) -> Result<Option<i64>, Status> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| {
        Status::bad_request(format!("{name}: strconv.ParseInt: parsing {value:?}: invalid syntax"))
    })
}

fn version(value: &str) -> Result<Option<u64>, Status> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| {
        let mut errors = FieldErrors::default();
        let why = "must be a decimal number without sign";
        errors.invalid(&Path::new("resourceVersion"), value, why);
        Status::invalid_kind("meta.k8s.io", "ListOptions", "", &errors)
    })
}

fn version_match(value: &str) -> Result<Option<VersionMatch>, Status> {
    match value {
        "" => Ok(None),
        "Exact" => Ok(Some(VersionMatch::Exact)),
        "NotOlderThan" => Ok(Some(VersionMatch::NotOlderThan)),
        other => {
            let mut errors = FieldErrors::default();
            let path = Path::new("resourceVersionMatch");
            errors.not_supported(&path, other, &["Exact", "NotOlderThan", ""]);
            Err(Status::invalid_kind("meta.k8s.io", "ListOptions", "", &errors))
        }
    }
}

fn one_of(field: &str, value: &str, allowed: &[&str]) -> Result<(), Status> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    errors.not_supported(&Path::new(field), value, allowed);
    Err(Status::invalid_kind("meta.k8s.io", "CreateOptions", "", &errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubectl_sends() {
        let query = "allowWatchBookmarks=true&fieldSelector=metadata.name%3Dweb\
            &resourceVersion=17&timeoutSeconds=42&watch=true&labelSelector=a+in+(b)";
        let options = Options::parse(query).unwrap();
        assert!(options.watch && options.allow_watch_bookmarks);
        assert_eq!(options.field_selector, "metadata.name=web");
        assert_eq!(options.label_selector, "a in (b)");
        assert_eq!((options.resource_version, options.timeout_seconds), (Some(17), Some(42)));
    }

    #[test]
    fn empty_values_count_as_absent() {
        let options = Options::parse("resourceVersion=&limit=&resourceVersionMatch=").unwrap();
        assert_eq!((options.resource_version, options.limit), (None, 0));
        assert_eq!(options.resource_version_match, None);
    }

    #[test]
    fn refuses_what_cannot_be_meant() {
        for (query, code) in [
            ("limit=ten", 400),
            ("timeoutSeconds=1s", 400),
            ("resourceVersion=abc", 422),
            ("resourceVersion=-1", 422),
            ("resourceVersionMatch=Newest", 422),
            ("dryRun=Some", 422),
            ("fieldValidation=strict", 422),
            ("labelSelector=%zz", 400),
        ] {
            assert_eq!(Options::parse(query).map_err(|s| s.code()).err(), Some(code), "{query}");
        }
    }
}
