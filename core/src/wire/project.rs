//! The projector: walks an object along a table and hands over what the table names.

use super::table::{Field, FieldTable, Rule};
use crate::json::{Collector, Flow, Fragment, Handler, Token};
use core::fmt;
use heapless::Vec;

/// Someone who takes what a table names.
pub(crate) trait FieldSink {
    /// A value to keep. `null` is absence and does not come.
    fn keep(&mut self, field: Field, value: Value<'_>) -> Result<(), Fault>;

    /// The next token of a value that streams, or the `null` that stands for an object.
    /// [`Flow::Skip`] is allowed after a key.
    fn stream(&mut self, field: Field, token: Token<'_>) -> Result<Flow, Fault>;

    /// Whether a value that would stream is known, so that it is passed over.
    fn knows(&self, field: Field) -> bool {
        let _ = field;
        false
    }

    /// An object, or an element of an array, begins.
    fn begin(&mut self, field: Field);

    /// It ends. [`Flow::Pause`] hands control back to whoever feeds the tokenizer; with
    /// [`Flow::Skip`], what follows in the object around it does not matter.
    fn end(&mut self, field: Field) -> Flow;
}

/// A value to keep.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A string.
    Text {
        /// The string, or the start of it.
        text: &'a str,
        /// It was longer than the longest that is kept.
        cut: bool,
    },
    /// The text of a number.
    Number(&'a str),
    /// `true` or `false`
    Bool(bool),
}

/// The longest string that is kept.
const TEXT: usize = 256;
/// Nested objects and arrays that tables look into.
const LEVELS: usize = 10;

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fault {
    /// It is not there, but must be.
    Missing = 1,
    /// A string where a number belongs, or the like.
    WrongType,
    /// The type is right but the value is not: a date that is none, a number out of range.
    Malformed,
    /// A text longer than Kubernetes allows.
    TooLong,
    /// More entries than fit.
    TooMany,
    /// Nested more deeply than the API's types are.
    TooDeep,
}

/// A field and what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FieldFault {
    /// The field.
    pub field: Field,
    /// What is wrong with it.
    pub fault: Fault,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field.path(), self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "is missing",
            Self::WrongType => "has the wrong type",
            Self::Malformed => "is malformed",
            Self::TooLong => "is too long",
            Self::TooMany => "has too many entries",
            Self::TooDeep => "is nested too deeply",
        })
    }
}

/// A projector, and who takes what it hands over.
pub(crate) struct Projection<'a> {
    pub(crate) projector: &'a mut Projector,
    pub(crate) record: &'a mut dyn FieldSink,
}

impl Handler for Projection<'_> {
    fn token(&mut self, token: Token<'_>) -> Flow {
        self.projector.push(token, self.record)
    }
}

/// Where in a table the walk is.
#[derive(Clone, Debug)]
pub(crate) struct Projector {
    levels: Vec<Level, LEVELS>,
    /// What becomes of the value that comes next.
    next: Option<Rule>,
    /// A value that is passed on, and how many of its arrays and objects are open.
    stream: Option<(Field, u16)>,
    tee: Option<(Field, u16)>,
    /// Within a tee, what the tables do not name cannot be skipped by the tokenizer.
    ignored: Option<u16>,
    text: Collector<TEXT>,
    fault: Option<FieldFault>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    field: Field,
    table: &'static FieldTable,
    is_array: bool,
}

impl Projector {
    pub(crate) const fn new() -> Self {
        Self {
            levels: Vec::new(),
            next: None,
            stream: None,
            tee: None,
            ignored: None,
            text: Collector::new(),
            fault: None,
        }
    }

    /// Gets ready for a document whose root this table describes.
    pub(crate) fn start(&mut self, root: &'static FieldTable) {
        self.levels.clear();
        self.next = Some(Rule::Object(Field::Root, root));
        self.stream = None;
        self.tee = None;
        self.ignored = None;
        self.fault = None;
    }

    /// Gets ready for what follows an element of an array, which is a member of the document's root.
    pub(crate) fn start_in_array(
        &mut self,
        root: &'static FieldTable,
        field: Field,
        element: &'static FieldTable,
    ) {
        self.start(root);
        self.open(Level { field: Field::Root, table: root, is_array: false });
        self.open(Level { field, table: element, is_array: true });
    }

    /// Whether it is between elements of an array of this field.
    pub(crate) fn is_in_array(&self, of: Field) -> bool {
        self.levels.last().is_some_and(|level| level.is_array && level.field == of)
    }

    /// The first fault since the last call.
    pub(crate) fn take_fault(&mut self) -> Option<FieldFault> {
        self.fault.take()
    }

    /// Takes the next token of the document.
    #[inline]
    fn push(&mut self, token: Token<'_>, record: &mut dyn FieldSink) -> Flow {
        let step = self.walk(token, record);
        let Some((field, open)) = self.tee else { return step };
        // Whatever the inner walk did not want still belongs to the tee.
        if step == Flow::Skip {
            self.ignored = match token {
                Token::Key(_) => Some(0),
                Token::ObjectStart | Token::ArrayStart => Some(1),
                _ => None,
            };
        }
        let passed = record.stream(field, token);
        self.note(field, passed);
        self.tee = count(token, open).map(|open| (field, open));
        Flow::Next
    }

    fn walk(&mut self, token: Token<'_>, record: &mut dyn FieldSink) -> Flow {
        if let Some(open) = self.ignored {
            self.ignored = count(token, open);
            return Flow::Next;
        }
        if let Some((field, open)) = self.stream {
            self.stream = count(token, open).map(|open| (field, open));
            let passed = record.stream(field, token);
            return self.note(field, passed);
        }
        match token {
            Token::Key(fragment) => self.key(fragment, record),
            Token::ObjectEnd | Token::ArrayEnd => self.close(record),
            _ => self.value(token, record),
        }
    }

    fn key(&mut self, fragment: Fragment<'_>, record: &dyn FieldSink) -> Flow {
        let Some(key) = self.text.push(fragment) else { return Flow::Next };
        let table = self.levels.last().map(|level| level.table);
        self.next = match (key.whole(), table) {
            (Some(name), Some(table)) => table.rule(name),
            _ => None,
        };
        if let Some(Rule::Stream(field) | Rule::Tee(field, _)) = self.next
            && record.knows(field)
        {
            self.next = None;
        }
        if self.next.is_some() { Flow::Next } else { Flow::Skip }
    }

    fn value(&mut self, token: Token<'_>, record: &mut dyn FieldSink) -> Flow {
        let rule = match self.levels.last() {
            Some(&Level { field, table, is_array: true }) => Some(Rule::Object(field, table)),
            _ => self.next,
        };
        let Some(rule) = rule else { return Flow::Skip };
        match (rule, token) {
            (Rule::Stream(field), _) => self.begin_stream(field, token, record),
            (Rule::Tee(field, table), Token::ObjectStart) => {
                self.tee = Some((field, 0));
                record.begin(field);
                self.open(Level { field, table, is_array: false })
            }
            (Rule::Tee(field, _), _) => self.begin_stream(field, token, record),
            (Rule::Object(field, _), Token::Null) => {
                let passed = record.stream(field, token);
                self.note(field, passed)
            }
            (_, Token::Null) => Flow::Next,
            (Rule::Object(field, table), Token::ObjectStart) => {
                record.begin(field);
                self.open(Level { field, table, is_array: false })
            }
            (Rule::Each(field, table), Token::ArrayStart) => {
                self.open(Level { field, table, is_array: true })
            }
            (Rule::Keep(field), Token::Bool(value)) => {
                let kept = record.keep(field, Value::Bool(value));
                self.note(field, kept.map(|()| Flow::Next))
            }
            (Rule::Keep(field), Token::String(fragment)) => {
                let Some(string) = self.text.push(fragment) else { return Flow::Next };
                let value = Value::Text { text: string.text(), cut: string.cut };
                let kept = record.keep(field, value);
                self.note(field, kept.map(|()| Flow::Next))
            }
            (Rule::Keep(field), Token::Number(fragment)) => {
                let Some(number) = self.text.push(fragment) else { return Flow::Next };
                let kept = match number.cut {
                    true => Err(Fault::Malformed),
                    false => record.keep(field, Value::Number(number.text())),
                };
                self.note(field, kept.map(|()| Flow::Next))
            }
            (Rule::Keep(field) | Rule::Object(field, _) | Rule::Each(field, _), _) => {
                self.note(field, Err(Fault::WrongType));
                Flow::Skip
            }
        }
    }

    fn begin_stream(&mut self, field: Field, token: Token<'_>, record: &mut dyn FieldSink) -> Flow {
        self.stream = count(token, 0).map(|open| (field, open));
        let passed = record.stream(field, token);
        self.note(field, passed)
    }

    fn open(&mut self, level: Level) -> Flow {
        // Tables are not deeper than this; should one be, its depth is as good as absent.
        if self.levels.push(level).is_ok() { Flow::Next } else { Flow::Skip }
    }

    fn close(&mut self, record: &mut dyn FieldSink) -> Flow {
        let Some(Level { field, is_array: false, .. }) = self.levels.pop() else {
            return Flow::Next;
        };
        let flow = record.end(field);
        if flow == Flow::Skip {
            if let Some(around) = self.levels.last_mut() {
                around.table = &FieldTable::EMPTY;
            }
            return Flow::Next;
        }
        flow
    }

    /// Remembers the first fault. A field at fault does not keep the others from being read.
    fn note(&mut self, field: Field, result: Result<Flow, Fault>) -> Flow {
        result.unwrap_or_else(|fault| {
            self.fault.get_or_insert(FieldFault { field, fault });
            Flow::Next
        })
    }
}

/// How many arrays and objects of a value are open after `token`; `None` once the value is over.
fn count(token: Token<'_>, open: u16) -> Option<u16> {
    let open = match token {
        Token::ObjectStart | Token::ArrayStart => open.saturating_add(1),
        Token::ObjectEnd | Token::ArrayEnd => open.saturating_sub(1),
        _ => open,
    };
    (open > 0 || !token.ends_value()).then_some(open)
}
