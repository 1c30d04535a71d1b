//! Label and field selectors over stored entries.

use crate::api::kind::Kind;
use crate::api::selector::{FieldSelector, LabelSelector, Operator, Requirement};
use crate::api::status::Status;
use crate::store::Entry;

use super::options::Options;

/// Which objects a list or watch is about, beyond their namespace.
#[derive(Debug, Default)]
pub struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
    /// The one name that can match, where the path or the field selector says so.
    name: Option<String>,
}

impl Filter {
    /// Parses the selectors of a request to `kind`.
    pub fn parse(kind: &'static Kind, options: &Options) -> Result<Self, Status> {
        let labels = match options.label_selector.trim() {
            "" => LabelSelector::everything(),
            text => LabelSelector::parse(text).map_err(Status::bad_request)?,
        };
        let fields = match options.field_selector.as_str() {
            "" => FieldSelector::everything(),
            text => FieldSelector::parse(kind, text).map_err(Status::bad_request)?,
        };
        let name = fields.required_name().map(str::to_owned);
        Ok(Self { labels, fields, name })
    }

    /// The same filter for one name only.
    pub fn only(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Whether everything matches.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.name.is_none()
    }

    /// Whether an object matches.
    pub fn matches(&self, entry: &Entry) -> bool {
        self.name.as_ref().is_none_or(|name| entry.name() == name)
            && self.labels.requirements().iter().all(|wanted| fulfils(entry, wanted))
            && (self.fields.is_everything() || self.fields.matches(entry.fields()))
    }
}

fn fulfils(entry: &Entry, wanted: &Requirement) -> bool {
    let value = entry.label(&wanted.key);
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = || Some((number(value?)?, number(wanted.values.first()?)?));
    match wanted.operator {
        Operator::Equals | Operator::DoubleEquals | Operator::In => {
            value.is_some_and(|value| wanted.values.contains(value))
        }
        Operator::NotEquals | Operator::NotIn => {
            value.is_none_or(|value| !wanted.values.contains(value))
        }
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::GreaterThan => compared().is_some_and(|(value, bound)| value > bound),
        Operator::LessThan => compared().is_some_and(|(value, bound)| value < bound),
    }
}
