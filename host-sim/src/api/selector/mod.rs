//! Selectors: which objects a list, a watch or a workload means.

mod field;
mod label;
mod lexer;

pub use field::{FieldLabel, FieldSelector, FieldSource};
pub use label::{LabelSelector, Operator, Requirement};
