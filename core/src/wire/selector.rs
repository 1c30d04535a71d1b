//! `spec.selector`, read into a [`Selector`].

use super::pairs::Pairs;
use super::project::{Fault, Value};
use super::table::{Field, FieldTable, Rule};
use crate::json::Token;
use crate::text::Selector;

pub(super) static SELECTOR: FieldTable = FieldTable::new(&[
    ("matchLabels", Rule::Stream(Field::MatchLabels)),
    ("matchExpressions", Rule::Each(Field::MatchExpression, &MATCH_EXPRESSION)),
]);

static MATCH_EXPRESSION: FieldTable = FieldTable::new(&[
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
    token: Token<'_>,
) -> Result<(), Fault> {
    match (field, token) {
        (Field::MatchLabels, _) => {
            if let Some(label) = pairs.push(token)? {
                selector.match_label(label.key, label.value);
            }
        }
        (Field::ExpressionKey, Token::String(fragment)) => {
            if let Some(key) = pairs.text(fragment) {
                selector.expression_key(key);
            }
        }
        (Field::ExpressionValues, Token::String(fragment)) => {
            if let Some(value) = pairs.text(fragment) {
                selector.expression_value(value);
            }
        }
        (Field::ExpressionValues, Token::ArrayStart | Token::ArrayEnd) | (_, Token::Null) => {}
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
