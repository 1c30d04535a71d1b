//! Field selectors: `metadata.name=web,status.phase!=Running`.

use std::fmt;

use serde_json::Value;

use crate::api::Kind;

/// A conjunction of requirements on fields; without any it matches everything.
#[derive(Clone, Debug, Default)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

#[derive(Clone, Debug)]
struct FieldRequirement {
    label: String,
    source: FieldSource,
    equal: bool,
    value: String,
}

/// A field that a kind can be selected by.
#[derive(Clone, Copy, Debug)]
pub struct FieldLabel {
    /// What the selector calls it.
    pub label: &'static str,
    /// Where it is.
    pub source: FieldSource,
}

/// Where the value of a selectable field comes from, and what an absent one stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSource {
    /// A string by its path.
    Text(&'static [&'static str]),
    /// A boolean by its path; absent is `false`.
    Flag(&'static [&'static str]),
    /// A number by its path; absent is `0`.
    Number(&'static [&'static str]),
    /// The first of two strings that is not empty.
    Either(&'static [&'static str], &'static [&'static str]),
}

const NAME: FieldLabel =
    FieldLabel { label: "metadata.name", source: FieldSource::Text(&["metadata", "name"]) };
const NAMESPACE: FieldLabel = FieldLabel {
    label: "metadata.namespace",
    source: FieldSource::Text(&["metadata", "namespace"]),
};

impl FieldSelector {
    /// The selector that matches every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether it matches every object.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Reads a selector for a kind. The error is for the message of a 400.
    pub fn parse(kind: &Kind, text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let bad = || format!("invalid selector: '{text}'; can't understand '{part}'");
            let (label, equal, raw) = split_operator(part).ok_or_else(bad)?;
            let value = unescape(raw).ok_or_else(bad)?;
            let source = find_label(kind, label)?;
            requirements.push(FieldRequirement { label: label.to_owned(), source, equal, value });
        }
        Ok(Self { requirements })
    }

    /// Whether an object fulfils it.
    pub fn matches(&self, object: &Value) -> bool {
        self.requirements.iter().all(|r| r.source.is_value(object, &r.value) == r.equal)
    }

    /// The name an object must have, if the selector fixes one: lists and watches of one object are common.
    pub fn required_name(&self) -> Option<&str> {
        self.required(NAME.source)
    }

    /// The namespace an object must be in, if the selector fixes one.
    pub fn required_namespace(&self) -> Option<&str> {
        self.required(NAMESPACE.source)
    }

    fn required(&self, source: FieldSource) -> Option<&str> {
        let found = self.requirements.iter().find(|r| r.source == source && r.equal);
        found.map(|r| r.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if requirement.equal { "=" } else { "!=" };
            let value = requirement.value.replace('\\', "\\\\").replace(',', "\\,");
            let value = value.replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", requirement.label)?;
        }
        Ok(())
    }
}

impl FieldSource {
    fn is_value(self, object: &Value, wanted: &str) -> bool {
        match self {
            Self::Text(path) => text_at(object, path) == wanted,
            Self::Flag(path) => {
                let on = at(object, path).and_then(Value::as_bool).unwrap_or(false);
                wanted == if on { "true" } else { "false" }
            }
            Self::Number(path) => {
                let number = at(object, path).and_then(Value::as_i64).unwrap_or(0);
                wanted == number.to_string()
            }
            Self::Either(first, second) => {
                let found = text_at(object, first);
                wanted == if found.is_empty() { text_at(object, second) } else { found }
            }
        }
    }
}

fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

fn text_at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or("")
}

fn find_label(kind: &Kind, label: &str) -> Result<FieldSource, String> {
    let own = kind.field_labels.iter().find(|l| l.label == label);
    let common = [NAME, NAMESPACE].into_iter().find(|l| l.label == label);
    match own.copied().or(common) {
        Some(found) => Ok(found.source),
        None if kind.field_labels.is_empty() => Err(format!(
            "\"{label}\" is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        )),
        None => Err(format!("field label not supported: {label}")),
    }
}

/// Splits at commas that are not escaped.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                parts.push(text.get(start..i).unwrap_or(""));
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or(""));
    parts
}

fn split_operator(part: &str) -> Option<(&str, bool, &str)> {
    for (i, _) in part.char_indices() {
        let (label, rest) = part.split_at(i);
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((label, equal, value));
            }
        }
    }
    None
}

/// Takes `\\`, `\,` and `\=` back; anything else after a backslash, and a bare comma or `=`, is wrong.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next().filter(|c| matches!(c, '\\' | ',' | '='))?),
            ',' | '=' => return None,
            c => plain.push(c),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::api::kind;
    use crate::api::testing::any_json;

    fn select(resource: (&str, &str), text: &str) -> Result<FieldSelector, String> {
        FieldSelector::parse(kind::find(resource.0, "v1", resource.1).unwrap(), text)
    }

    #[test]
    fn fields_are_compared_with_what_an_absent_one_stands_for() {
        let pod = json!({"metadata": {"name": "a", "namespace": "n"},
                         "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}});
        let yes = [
            "",
            "metadata.name=a",
            "metadata.name==a,metadata.namespace=n",
            "spec.nodeName!=",
            "status.phase=Running",
            "spec.hostNetwork=false",
            "status.podIP=",
            "spec.nodeName!=b",
        ];
        for text in yes {
            assert!(select(("", "pods"), text).unwrap().matches(&pod), "{text}");
        }
        for text in ["metadata.name!=a", "status.phase=Pending", "spec.hostNetwork=true"] {
            assert!(!select(("", "pods"), text).unwrap().matches(&pod), "{text}");
        }
        assert_eq!(select(("", "pods"), "metadata.name=a").unwrap().required_name(), Some("a"));
    }

    #[test]
    fn events_are_found_by_what_they_are_about() {
        let event = json!({"involvedObject": {"kind": "Pod", "name": "a", "uid": "u"},
                           "source": {"component": "kubelet"}, "type": "Normal"});
        let text = "involvedObject.name=a,involvedObject.kind=Pod,involvedObject.uid=u,\
                    source=kubelet,type=Normal";
        assert!(select(("", "events"), text).unwrap().matches(&event));
        assert!(!select(("", "events"), "involvedObject.name=b").unwrap().matches(&event));
    }

    #[test]
    fn replica_sets_and_replication_controllers_are_found_by_their_size() {
        for resource in [("apps", "replicasets"), ("", "replicationcontrollers")] {
            let matches =
                |text: &str, object: &Value| select(resource, text).unwrap().matches(object);
            let three =
                json!({"metadata": {"name": "a", "namespace": "n"}, "status": {"replicas": 3}});
            assert!(matches("status.replicas=3,metadata.name=a,metadata.namespace=n", &three));
            assert!(!matches("status.replicas=0", &three));
            assert!(matches("status.replicas=0", &json!({})));
            let error = select(resource, "spec.replicas=3").unwrap_err();
            assert_eq!(error, "field label not supported: spec.replicas");
        }
    }

    #[test]
    fn unknown_fields_and_bad_syntax_are_refused() {
        let cases = [
            (("", "pods"), "spec.foo=x", "field label not supported: spec.foo"),
            (
                ("apps", "deployments"),
                "spec.replicas=1",
                "\"spec.replicas\" is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\"",
            ),
            (("", "pods"), "foo", "invalid selector: 'foo'; can't understand 'foo'"),
            (
                ("", "pods"),
                "metadata.name=a=b",
                "invalid selector: 'metadata.name=a=b'; can't understand 'metadata.name=a=b'",
            ),
        ];
        for (resource, text, error) in cases {
            assert_eq!(select(resource, text).unwrap_err(), error);
        }
    }

    proptest! {
        #[test]
        fn any_text_and_object_are_taken_without_panic(
            text in "[a-z.=!,\\\\]{0,30}|\\PC{0,20}",
            object in any_json(),
        ) {
            for kind in kind::ALL {
                if let Ok(selector) = FieldSelector::parse(kind, &text) {
                    selector.matches(&object);
                }
            }
        }
    }
}
