//! `spec.selector`, read into a [`Selector`].

use super::pairs::Pairs;
use super::project::{Fault, Value};
use super::table::{Field, Rule, Table};
use crate::json::Event;
use crate::text::Selector;

pub(super) static SELECTOR: Table = Table::new(&[
    ("matchLabels", Rule::Stream(Field::MatchLabels)),
    ("matchExpressions", Rule::Each(Field::MatchExpression, &MATCH_EXPRESSION)),
]);

static MATCH_EXPRESSION: Table = Table::new(&[
    ("key", Rule::Stream(Field::ExpressionKey)),
    ("operator", Rule::Keep(Field::ExpressionOperator)),
    ("values", Rule::Stream(Field::ExpressionValues)),
]);

pub(super) fn keep(selector: &mut Selector, value: Value<'_>) -> Result<(), Fault> {
    // One that is cut is no operator either.
    let Value::Text { text, .. } = value else { return Err(Fault::WrongType) };
    selector.expression_operator(text.as_bytes());
    Ok(())
}

pub(super) fn stream(
    selector: &mut Selector,
    pairs: &mut Pairs,
    field: Field,
    event: Event<'_>,
) -> Result<(), Fault> {
    match (field, event) {
        (Field::MatchLabels, _) => {
            if let Some(label) = pairs.push(event)? {
                selector.match_label(label.key, label.value);
            }
        }
        (Field::ExpressionKey, Event::String(fragment)) => {
            if let Some(key) = pairs.text(fragment) {
                selector.expression_key(key);
            }
        }
        (Field::ExpressionValues, Event::String(fragment)) => {
            if let Some(value) = pairs.text(fragment) {
                selector.expression_value(value);
            }
        }
        (Field::ExpressionValues, Event::ArrayStart | Event::ArrayEnd) | (_, Event::Null) => {}
        _ => return Err(Fault::WrongType),
    }
    Ok(())
}

pub(super) fn begin(selector: &mut Selector, field: Field) {
    match field {
        Field::Selector => selector.begin(),
        Field::MatchExpression => selector.begin_expression(),
        _ => {}
    }
}

pub(super) fn end(selector: &mut Selector, field: Field) {
    if field == Field::MatchExpression {
        selector.end_expression();
    }
}
