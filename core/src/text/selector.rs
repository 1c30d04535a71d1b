//! A label selector while its object passes through.
//!
//! Built piece by piece as the JSON streams: the members of one `matchExpressions` entry may come
//! in any order. A selector that cannot be parsed is kept as such, because controllers react to
//! it (a ReplicaSet is left alone, a Deployment's sync fails).

use core::fmt;

use heapless::Vec;

use super::{Fingerprint, Label, Labels, TooManyLabels};
use crate::limits;

/// The operator of a `matchExpressions` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Operator {
    /// The label exists and has one of the values.
    In = 1,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl Operator {
    /// The operator of that name; names are exact.
    pub fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"In" => Some(Self::In),
            b"NotIn" => Some(Self::NotIn),
            b"Exists" => Some(Self::Exists),
            b"DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }

    /// Whether a label with this value (`None`: no such label) satisfies the operator.
    pub fn is_satisfied(self, value: Option<Fingerprint>, values: &[Fingerprint]) -> bool {
        match self {
            Self::In => value.is_some_and(|value| values.contains(&value)),
            Self::NotIn => value.is_none_or(|value| !values.contains(&value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }

    const fn takes_values(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }
}

/// Why a selector cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum InvalidSelector {
    /// An expression without a key.
    KeyMissing = 1,
    /// An operator that is none of the four.
    UnknownOperator,
    /// `In` or `NotIn` without values.
    ValuesMissing,
    /// `Exists` or `DoesNotExist` with values.
    ValuesForbidden,
    /// More labels, expressions or values than the limits allow. Kubernetes would accept it.
    TooLarge,
}

impl fmt::Display for InvalidSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeyMissing => "matchExpressions: key: must be specified",
            Self::UnknownOperator => {
                "matchExpressions: operator: must be one of In, NotIn, Exists, DoesNotExist"
            }
            Self::ValuesMissing => {
                "matchExpressions: values: must be specified when operator is In or NotIn"
            }
            Self::ValuesForbidden => {
                "matchExpressions: values: may not be specified when operator is Exists or \
                 DoesNotExist"
            }
            Self::TooLarge => "selector: more requirements than the controller can hold",
        })
    }
}

/// One parsed entry of `matchExpressions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression<'a> {
    /// The label it speaks about.
    pub key: Fingerprint,
    /// What it asks of the label.
    pub operator: Operator,
    /// The values of `In` and `NotIn`.
    pub values: &'a [Fingerprint],
}

/// A label selector: all labels of `matchLabels` and all `matchExpressions` must hold.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    present: bool,
    match_labels: Labels,
    heads: Vec<Head, { limits::EXPRESSIONS }>,
    values: Vec<Fingerprint, { limits::EXPRESSION_VALUES }>,
    pending: Pending,
    invalid: Option<InvalidSelector>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    key: Fingerprint,
    operator: Operator,
    values: u8,
}

/// The expression that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    key: Option<Fingerprint>,
    operator: Option<Operator>,
    values: u8,
}

impl Selector {
    /// The selector of an object that has none: it matches nothing.
    pub const fn new() -> Self {
        Self {
            present: false,
            match_labels: Labels::new(),
            heads: Vec::new(),
            values: Vec::new(),
            pending: Pending { key: None, operator: None, values: 0 },
            invalid: None,
        }
    }

    /// Back to [`new`](Self::new), for the next object.
    pub fn clear(&mut self) {
        self.present = false;
        self.match_labels.clear();
        self.heads.clear();
        self.values.clear();
        self.pending = Pending::default();
        self.invalid = None;
    }

    /// The selector field is there (and not null); so far it is the empty selector `{}`.
    pub fn begin(&mut self) {
        self.present = true;
    }

    /// An entry of `matchLabels`.
    pub fn match_label(&mut self, key: Fingerprint, value: Fingerprint) {
        self.present = true;
        self.match_labels.insert(key, value);
    }

    /// An entry of `matchExpressions` begins.
    pub fn begin_expression(&mut self) {
        self.present = true;
        self.pending = Pending::default();
    }

    /// The `key` of the expression.
    pub fn expression_key(&mut self, key: Fingerprint) {
        self.pending.key = Some(key);
    }

    /// The `operator` of the expression, as text.
    pub fn expression_operator(&mut self, text: &[u8]) {
        self.pending.operator = Operator::parse(text);
    }

    /// One of the `values` of the expression.
    pub fn expression_value(&mut self, value: Fingerprint) {
        if self.values.push(value).is_ok() {
            self.pending.values = self.pending.values.saturating_add(1);
        } else {
            self.reject(InvalidSelector::TooLarge);
        }
    }

    /// The entry of `matchExpressions` ends. The first fault found is the one reported.
    pub fn end_expression(&mut self) {
        let Pending { key, operator, values } = core::mem::take(&mut self.pending);
        let Some(operator) = operator else {
            return self.reject(InvalidSelector::UnknownOperator);
        };
        let Some(key) = key else {
            return self.reject(InvalidSelector::KeyMissing);
        };
        if operator.takes_values() && values == 0 {
            return self.reject(InvalidSelector::ValuesMissing);
        }
        if !operator.takes_values() && values > 0 {
            return self.reject(InvalidSelector::ValuesForbidden);
        }
        if self.heads.push(Head { key, operator, values }).is_err() {
            self.reject(InvalidSelector::TooLarge);
        }
    }

    /// Whether the object has a selector at all. One that has none matches nothing.
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Whether the selector is there and has no requirement (`{}`). Kubernetes lets it match
    /// everything; the ReplicaSet and Deployment controllers refuse to act on it.
    pub fn is_empty(&self) -> bool {
        self.present
            && self.invalid.is_none()
            && self.heads.is_empty()
            && self.match_labels.as_slice().is_ok_and(<[Label]>::is_empty)
    }

    /// Why the selector cannot be used, if so.
    pub fn validate(&self) -> Result<(), InvalidSelector> {
        match (self.invalid, self.match_labels.as_slice()) {
            (Some(reason), _) => Err(reason),
            (None, Err(TooManyLabels)) => Err(InvalidSelector::TooLarge),
            (None, Ok(_)) => Ok(()),
        }
    }

    /// The `matchLabels`.
    pub fn match_labels(&self) -> &Labels {
        &self.match_labels
    }

    /// The `matchExpressions`, in the order they came.
    pub fn expressions(&self) -> impl Iterator<Item = Expression<'_>> {
        let mut rest: &[Fingerprint] = &self.values;
        self.heads.iter().map(move |head| {
            let (values, after) =
                rest.split_at_checked(usize::from(head.values)).unwrap_or((rest, &[]));
            rest = after;
            Expression { key: head.key, operator: head.operator, values }
        })
    }

    fn reject(&mut self, reason: InvalidSelector) {
        self.invalid.get_or_insert(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn fp(text: &str) -> Fingerprint {
        Fingerprint::of(text)
    }

    fn expression(operator: &str, values: &[&str]) -> Selector {
        let mut selector = Selector::new();
        selector.begin_expression();
        values.iter().for_each(|value| selector.expression_value(fp(value)));
        selector.expression_operator(operator.as_bytes());
        selector.expression_key(fp("tier"));
        selector.end_expression();
        selector
    }

    #[test]
    fn absent_and_empty_are_different() {
        let mut selector = Selector::new();
        assert!(!selector.is_present() && !selector.is_empty());
        selector.begin();
        assert!(selector.is_present() && selector.is_empty());
        selector.match_label(fp("a"), fp("b"));
        assert!(selector.is_present() && !selector.is_empty());
        selector.clear();
        assert!(!selector.is_present());
    }

    #[test]
    fn values_are_checked_against_the_operator() {
        use InvalidSelector::*;
        for (operator, values, verdict) in [
            ("In", vec!["a"], Ok(())),
            ("In", vec![], Err(ValuesMissing)),
            ("NotIn", vec!["a", "b"], Ok(())),
            ("NotIn", vec![], Err(ValuesMissing)),
            ("Exists", vec![], Ok(())),
            ("Exists", vec!["a"], Err(ValuesForbidden)),
            ("DoesNotExist", vec![], Ok(())),
            ("DoesNotExist", vec!["a"], Err(ValuesForbidden)),
            ("in", vec!["a"], Err(UnknownOperator)),
            ("", vec![], Err(UnknownOperator)),
        ] {
            assert_eq!(expression(operator, &values).validate(), verdict, "{operator} {values:?}");
        }
    }

    #[test]
    fn each_expression_keeps_its_own_values() {
        let mut selector = expression("In", &["x", "y"]);
        selector.begin_expression();
        selector.expression_key(fp("zone"));
        selector.expression_operator(b"NotIn");
        selector.expression_value(fp("z"));
        selector.end_expression();
        let all: vec::Vec<_> = selector.expressions().map(|e| (e.operator, e.values)).collect();
        assert_eq!(
            all,
            [(Operator::In, &[fp("x"), fp("y")][..]), (Operator::NotIn, &[fp("z")][..])]
        );
    }

    #[test]
    fn limits_hold_and_one_more_is_too_large() {
        let many = |count: usize| {
            let mut selector = Selector::new();
            for _ in 0..count {
                selector.begin_expression();
                selector.expression_key(fp("k"));
                selector.expression_operator(b"Exists");
                selector.end_expression();
            }
            selector.validate()
        };
        assert_eq!(many(limits::EXPRESSIONS), Ok(()));
        assert_eq!(many(limits::EXPRESSIONS + 1), Err(InvalidSelector::TooLarge));

        let values = |count: usize| expression("In", &vec!["v"; count]).validate();
        assert_eq!(values(limits::EXPRESSION_VALUES), Ok(()));
        assert_eq!(values(limits::EXPRESSION_VALUES + 1), Err(InvalidSelector::TooLarge));
    }
}
