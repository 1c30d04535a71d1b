//! Label selectors: the string form of queries and the object form of workloads.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::lexer::{Lexeme, Token, tokens};
use crate::api::field::{FieldErrors, Path};
use crate::api::kind::Kind;
use crate::api::names;
use crate::api::object::at;
use crate::api::schema::Type;

/// A conjunction of requirements on labels; without any it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    matches_nothing: bool,
}

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How its value is judged.
    pub operator: Operator,
    /// By what.
    pub values: BTreeSet<String>,
}

/// How a label's value is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `k=v`
    Equals,
    /// `k==v`, the same in another spelling.
    DoubleEquals,
    /// `k!=v`; also true without the label.
    NotEquals,
    /// `k in (a,b)`
    In,
    /// `k notin (a,b)`; also true without the label.
    NotIn,
    /// `k`
    Exists,
    /// `!k`
    DoesNotExist,
    /// `k>1`
    GreaterThan,
    /// `k<1`
    LessThan,
}

impl LabelSelector {
    /// The selector that matches every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector that matches no object (an absent selector of a workload).
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), matches_nothing: true }
    }

    /// Whether it matches every object.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.matches_nothing
    }

    /// Its requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Reads the string form. The error is for the message of a 400.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Parser { tokens: tokens(text), next: 0 }.parse()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements, matches_nothing: false })
    }

    /// Reads a `LabelSelector` object; an absent one matches nothing, an empty one everything.
    pub fn of_object(selector: &Value) -> Result<Self, String> {
        let Value::Object(fields) = selector else {
            return Ok(Self::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in
            fields.get("matchLabels").and_then(Value::as_object).into_iter().flatten()
        {
            let value = value.as_str().unwrap_or("").to_owned();
            requirements.push(requirement(key, Operator::Equals, vec![value])?);
        }
        let expressions = fields.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let operator = match expression["operator"].as_str().unwrap_or("") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("\"{other}\" is not a valid label selector operator")),
            };
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.map(|v| v.as_str().unwrap_or("").to_owned()).collect();
            let key = expression["key"].as_str().unwrap_or("");
            requirements.push(requirement(key, operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements, matches_nothing: false })
    }

    /// Reads `spec.selector` of a workload: a `LabelSelector` object, or labels, as its type has it.
    pub fn of_workload(kind: &Kind, object: &Value) -> Result<Self, String> {
        let spec = kind.object_type().and_then(|ty| ty.field("spec")?.ty.object());
        let selector = spec.and_then(|ty| ty.field("selector"));
        let given = at(object, &["spec", "selector"]);
        match selector.map(|field| &field.ty) {
            Some(Type::Map(_)) => Ok(Self::of_labels(given)),
            _ => Self::of_object(given),
        }
    }

    /// The selector that wants just these labels (a JSON map): without any it matches everything.
    pub fn of_labels(labels: &Value) -> Self {
        let equals = |(key, value): (&String, &Value)| Requirement {
            key: key.clone(),
            operator: Operator::Equals,
            values: BTreeSet::from([value.as_str().unwrap_or("").to_owned()]),
        };
        let mut requirements: Vec<Requirement> =
            labels.as_object().into_iter().flatten().map(equals).collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements, matches_nothing: false }
    }

    /// Whether an object's labels (a JSON map, or nothing) fulfil it.
    pub fn matches(&self, labels: &Value) -> bool {
        !self.matches_nothing
            && self
                .requirements
                .iter()
                .all(|r| r.matches(labels.get(&r.key).and_then(Value::as_str)))
    }

    /// Whether an object fulfils it.
    pub fn matches_object(&self, object: &Value) -> bool {
        self.is_everything() || self.matches(&object["metadata"]["labels"])
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => {
                value.is_some_and(|v| self.values.contains(v))
            }
            Operator::NotEquals | Operator::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let number = |text: &str| text.parse::<i64>().ok();
                let bound = self.values.first().and_then(|v| number(v));
                match (value.and_then(number), bound) {
                    (Some(value), Some(bound)) if self.operator == Operator::GreaterThan => {
                        value > bound
                    }
                    (Some(value), Some(bound)) => value < bound,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values = self.values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

fn requirement(key: &str, operator: Operator, values: Vec<String>) -> Result<Requirement, String> {
    let mut errors = FieldErrors::new();
    let key_problems = names::qualified_name(key);
    if !key_problems.is_empty() {
        errors.invalid(&Path::new("key"), key, &key_problems.join("; "));
    }
    let at = Path::new("values");
    if matches!(operator, Operator::In | Operator::NotIn) && values.is_empty() {
        let detail = "for 'in', 'notin' operators, values set can't be empty";
        errors.invalid(&at, values.clone(), detail);
    }
    if matches!(operator, Operator::Exists | Operator::DoesNotExist) && !values.is_empty() {
        let detail = "values set must be empty for exists and does not exist";
        errors.invalid(&at, values.clone(), detail);
    }
    for (i, value) in values.iter().enumerate() {
        let numeric = matches!(operator, Operator::GreaterThan | Operator::LessThan);
        if numeric && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.invalid(&at.index(i), value.as_str(), detail);
        }
        let problems = names::label_value(value);
        if !problems.is_empty() {
            errors.invalid(&at.index(i).key(key), value.as_str(), &problems.join("; "));
        }
    }
    if errors.is_empty() {
        Ok(Requirement { key: key.to_owned(), operator, values: values.into_iter().collect() })
    } else {
        Err(errors.message())
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

/// What a token is taken for: inside value lists `in` and `notin` are plain words.
#[derive(Clone, Copy, PartialEq)]
enum Context {
    KeyAndOperator,
    Values,
}

impl Parser {
    fn parse(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let token = self.look(Context::Values);
            match token.kind {
                Lexeme::Identifier | Lexeme::Bang => {
                    let parsed = self.requirement();
                    requirements
                        .push(parsed.map_err(|e| format!("unable to parse requirement: {e}"))?);
                    let after = self.take(Context::Values);
                    match after.kind {
                        Lexeme::End => return Ok(requirements),
                        Lexeme::Comma => {
                            let next = self.look(Context::Values);
                            if !matches!(next.kind, Lexeme::Identifier | Lexeme::Bang) {
                                let found = next.text;
                                return Err(format!(
                                    "found '{found}', expected: identifier after ','"
                                ));
                            }
                        }
                        _ => {
                            let found = after.text;
                            return Err(format!(
                                "found '{found}', expected: ',' or 'end of string'"
                            ));
                        }
                    }
                }
                Lexeme::End => return Ok(requirements),
                _ => {
                    let found = token.text;
                    return Err(format!(
                        "found '{found}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.look(Context::Values).kind == Lexeme::Bang;
        if negated {
            self.take(Context::Values);
        }
        let key = self.take(Context::Values);
        if key.kind != Lexeme::Identifier {
            return Err(format!("found '{}', expected: identifier", key.text));
        }
        if negated {
            return requirement(&key.text, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.look(Context::Values).kind, Lexeme::End | Lexeme::Comma) {
            return requirement(&key.text, Operator::Exists, Vec::new());
        }
        let token = self.take(Context::KeyAndOperator);
        let operator = match token.kind {
            Lexeme::In => Operator::In,
            Lexeme::NotIn => Operator::NotIn,
            Lexeme::Equals => Operator::Equals,
            Lexeme::DoubleEquals => Operator::DoubleEquals,
            Lexeme::NotEquals => Operator::NotEquals,
            Lexeme::Greater => Operator::GreaterThan,
            Lexeme::Less => Operator::LessThan,
            _ => {
                let found = token.text;
                return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.value_list()?,
            _ => vec![self.exact_value()?],
        };
        requirement(&key.text, operator, values)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.look(Context::Values).kind, Lexeme::End | Lexeme::Comma) {
            return Ok(String::new());
        }
        let token = self.take(Context::Values);
        if token.kind == Lexeme::Identifier {
            Ok(token.text)
        } else {
            Err(format!("found '{}', expected: identifier", token.text))
        }
    }

    fn value_list(&mut self) -> Result<Vec<String>, String> {
        let open = self.take(Context::Values);
        if open.kind != Lexeme::Open {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let mut values = Vec::new();
        let mut expects_value = true;
        loop {
            let token = self.take(Context::Values);
            match (token.kind, expects_value) {
                (Lexeme::Identifier, true) => {
                    values.push(token.text);
                    expects_value = false;
                }
                (Lexeme::Comma, true) => values.push(String::new()),
                (Lexeme::Comma, false) => expects_value = true,
                (Lexeme::Close, true) => {
                    values.push(String::new());
                    return Ok(values);
                }
                (Lexeme::Close, false) => return Ok(values),
                (_, true) => {
                    return Err(format!(
                        "found '{}', expected: ',', ')' or identifier",
                        token.text
                    ));
                }
                (_, false) => {
                    return Err(format!("found '{}', expected: ',' or ')'", token.text));
                }
            }
        }
    }

    fn look(&self, context: Context) -> Token {
        let end = Token { kind: Lexeme::End, text: String::new() };
        let mut token = self.tokens.get(self.next).cloned().unwrap_or(end);
        if context == Context::Values && matches!(token.kind, Lexeme::In | Lexeme::NotIn) {
            token.kind = Lexeme::Identifier;
        }
        token
    }

    fn take(&mut self, context: Context) -> Token {
        let token = self.look(context);
        self.next += 1;
        token
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::api::testing::any_json;

    fn matches(selector: &str, labels: Value) -> bool {
        LabelSelector::parse(selector).unwrap().matches(&labels)
    }

    #[test]
    fn each_operator_selects_what_it_says() {
        let labels = json!({"app": "web", "tier": "front", "n": "5", "empty": ""});
        let yes = [
            "",
            "app=web",
            "app==web",
            "app!=db",
            "zone!=x",
            "app in (web, db)",
            "app in (web)",
            "app notin (db)",
            "zone notin (a)",
            "app",
            "!zone",
            "app=web,tier=front",
            "n>4",
            "n<6",
            " app = web , tier ",
            "empty=",
            "empty in (,a)",
            "in!=x",
            "notin notin (in)",
        ];
        let no = [
            "app=db",
            "app!=web",
            "app in (db)",
            "app notin (web,db)",
            "zone",
            "!app",
            "app=web,tier=back",
            "n>5",
            "app>4",
            "zone=",
            "in",
        ];
        for selector in yes {
            assert!(matches(selector, labels.clone()), "{selector}");
        }
        for selector in no {
            assert!(!matches(selector, labels.clone()), "{selector}");
        }
    }

    #[test]
    fn broken_selectors_are_refused_in_upstreams_words() {
        let cases = [
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("a,", "found '', expected: identifier after ','"),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' \
                 operators, the value must be an integer",
            ),
        ];
        for (text, error) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap_err(), error, "{text}");
        }
        assert!(LabelSelector::parse("-a=b").unwrap_err().contains("key: Invalid value: \"-a\""));
    }

    #[test]
    fn selector_objects_render_as_strings() {
        let object = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "d", "operator": "DoesNotExist"},
        ]});
        let selector = LabelSelector::of_object(&object).unwrap();
        assert_eq!(selector.to_string(), "a=1,b=2,c in (x,y),!d");
        assert!(LabelSelector::of_object(&json!({})).unwrap().is_everything());
        assert!(!LabelSelector::of_object(&Value::Null).unwrap().matches(&json!({})));
    }

    #[test]
    fn plain_labels_are_a_selector_too() {
        let selector = LabelSelector::of_labels(&json!({"b": "2", "a": "1", "matchLabels": ""}));
        assert_eq!(selector.to_string(), "a=1,b=2,matchLabels=");
        assert!(selector.matches(&json!({"a": "1", "b": "2", "matchLabels": "", "c": "3"})));
        assert!(!selector.matches(&json!({"a": "1", "b": "1", "matchLabels": ""})));
        assert!(!selector.matches(&json!({"a": "1", "b": "2"})));
        for nothing in [json!({}), Value::Null] {
            assert!(LabelSelector::of_labels(&nothing).is_everything());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_without_panic(text in "[a-z(),!=<> \
         ]{0,30}|\\PC{0,20}", labels in any_json()) {
            if let Ok(selector) = LabelSelector::parse(&text) {
                selector.matches(&labels);
                prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
            }
        }

        #[test]
        fn any_value_is_taken_as_selector_object(value in any_json()) {
            let _ = LabelSelector::of_object(&value);
            let _ = LabelSelector::of_labels(&value);
        }
    }
}
