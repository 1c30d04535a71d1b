//! What objects come in: an answer, a list, a watch.

use super::meta::parse_resource_version;
use super::project::{Fault, FieldFault, FieldSink, Projection, Projector, Value};
use super::status::STATUS;
use super::table::{Field, FieldTable, Rule};
use super::{Meta, Object, ResourceVersion, Status};
use crate::json::{self, Digest, Flow, Token, Tokenizer};
use crate::limits;
use core::fmt;
use heapless::String;

/// Reads objects of one kind out of one sort of envelope, one object at a time.
///
/// Made for static memory: it holds one object at Kubernetes' full limits, and is a constant.
pub(super) struct Reader<K: Object> {
    pub(super) tokenizer: Tokenizer,
    projector: Projector,
    pub(super) envelope: Envelope<K>,
}

/// The object and what is around it.
pub(super) struct Envelope<K: Object> {
    pub(super) object: K,
    state: K::State,
    pub(super) status: Status,
    pub(super) change: Option<EventType>,
    pub(super) list: ListMeta,
    pub(super) list_fault: Option<FieldFault>,
    /// An item of a list is complete and waits to be taken.
    pub(super) has_item: bool,
    /// The metadata of the object suffices: no more was read.
    pub(super) metadata_only: bool,
    /// The pod template was recalled: it is not read.
    has_template: bool,
}

/// What is known of objects before they are read. It is asked once their metadata is there.
pub trait KnownObjects<K> {
    /// Whether the metadata of an object suffices, because the object is known already, or gone, so
    /// that the rest need not be read. The change is what a watch says has happened to it, if it has
    /// said so yet.
    fn suffices(&self, change: Option<EventType>, meta: &Meta) -> bool;

    /// The digest of the object's pod template, if that is known, so that it need not be read. What
    /// else is kept of a template is filled in.
    fn recall_template(&self, object: &mut K) -> Option<Digest> {
        let _ = object;
        None
    }
}

/// `type` of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EventType {
    /// `ADDED`
    Added = 1,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
    /// `BOOKMARK`
    Bookmark,
    /// `ERROR`
    Error,
}

/// `metadata` of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListMeta {
    /// The version of the list; a watch goes on from there.
    pub resource_version: ResourceVersion,
    /// What to ask for to get the next page; empty after the last.
    pub continue_token: String<{ limits::CONTINUE }>,
    /// How many more objects there are, if the server says so.
    pub remaining: Option<u64>,
}

impl ListMeta {
    /// What is known before a list has come.
    pub const EMPTY: Self = Self {
        resource_version: ResourceVersion::ANY,
        continue_token: String::new(),
        remaining: None,
    };

    fn clear(&mut self) {
        self.resource_version = ResourceVersion::ANY;
        self.continue_token.clear();
        self.remaining = None;
    }

    fn keep(&mut self, field: Field, value: Value<'_>) -> Result<(), Fault> {
        match field {
            Field::ListResourceVersion => self.resource_version = parse_resource_version(value)?,
            // Only a hint, so not worth a fault.
            _ => self.remaining = value.int().ok(),
        }
        Ok(())
    }

    /// A continue token is longer than any text that is kept as a whole, and may come in pieces.
    fn continue_token(&mut self, token: Token<'_>) -> Result<(), Fault> {
        match token {
            Token::String(fragment) => {
                let text = core::str::from_utf8(fragment.bytes).map_err(|_| Fault::Malformed)?;
                self.continue_token.push_str(text).map_err(|_| Fault::TooLong)
            }
            Token::Null => Ok(()),
            _ => Err(Fault::WrongType),
        }
    }

    /// Without a version, no watch can follow.
    pub(super) fn check(&self) -> Result<(), FieldFault> {
        if self.resource_version == ResourceVersion::ANY {
            return Err(FieldFault { field: Field::ListResourceVersion, fault: Fault::Missing });
        }
        Ok(())
    }
}

/// An object that cannot be used, because of one of its fields.
#[derive(Clone, Copy, Debug)]
pub struct ObjectFault<'a> {
    /// Its kind.
    pub kind: &'static str,
    /// Its metadata, as far as that could be read.
    pub meta: &'a Meta,
    /// The field, and what is wrong with it.
    pub fault: FieldFault,
}

impl fmt::Display for ObjectFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, meta: Meta { namespace, name, .. }, fault } = self;
        write!(f, "{kind} {namespace}/{name}: {fault}")
    }
}

impl<K: Object> Reader<K> {
    pub(super) const fn new() -> Self {
        Self {
            tokenizer: Tokenizer::new(),
            projector: Projector::new(),
            envelope: Envelope {
                object: K::EMPTY,
                state: K::START,
                status: Status::EMPTY,
                change: None,
                list: ListMeta::EMPTY,
                list_fault: None,
                has_item: false,
                metadata_only: false,
                has_template: false,
            },
        }
    }

    /// Reads on, at most to the end of an item or of the document, which `root` describes. What is
    /// known of an object by its metadata is not read, if that comes first, as Kubernetes writes it,
    /// but checked to be JSON.
    pub(super) fn feed(
        &mut self,
        root: &'static FieldTable,
        bytes: &[u8],
        memory: Option<&dyn KnownObjects<K>>,
    ) -> Result<usize, json::Error> {
        if self.tokenizer.is_at_start() {
            self.projector.start(root);
            self.envelope.clear();
        }
        let Self { tokenizer, projector, envelope } = self;
        let record = &mut Recorder { envelope, memory };
        tokenizer.feed(bytes, &mut Projection { projector, record })
    }

    /// Forgets the object at hand and all that was to come.
    pub(super) fn reset(&mut self) {
        self.tokenizer = Tokenizer::new();
        self.projector = Projector::new();
        self.envelope.clear();
    }

    /// Whether a list is between two items, and nothing else is known of it than its metadata.
    pub(super) fn is_between_items(&self) -> bool {
        self.tokenizer.is_after_element_of_member()
            && self.projector.is_in_array(Field::Item)
            && !self.envelope.status.is_present
    }

    /// Goes on between two items of a list.
    pub(super) fn resume_between_items(&mut self) {
        self.envelope.clear();
        self.tokenizer = Tokenizer::after_element_of_member();
        self.projector.start_in_array(Self::LIST, Field::Item, K::TABLE);
    }

    /// The object that is complete.
    pub(super) fn object(&mut self) -> Result<&K, ObjectFault<'_>> {
        let Envelope { object, state, list_fault, .. } = &mut self.envelope;
        let complete = object.finish(state);
        // An item that is no object is a fault of the list, not of the item that follows it.
        let (of_list, of_object) = match self.projector.take_fault() {
            Some(fault) if matches!(fault.field, Field::Item | Field::ListMetadata) => {
                (Some(fault), None)
            }
            fault => (None, fault),
        };
        *list_fault = list_fault.or(of_list);
        let object = &self.envelope.object;
        match of_object.or(complete.err()) {
            None => Ok(object),
            Some(fault) => Err(ObjectFault { kind: K::KIND, meta: object.meta(), fault }),
        }
    }

    pub(super) fn take_fault(&mut self) -> Option<FieldFault> {
        self.projector.take_fault()
    }
}

impl<K: Object> Reader<K> {
    /// An object, or the Status that came instead.
    pub(super) const ANSWER: &'static FieldTable =
        &FieldTable { members: K::TABLE.members, or: Some(&STATUS) };

    /// A watch event.
    pub(super) const WATCH_EVENT: &'static FieldTable = &FieldTable::new(&[
        ("type", Rule::Keep(Field::EventType)),
        ("object", Rule::Object(Field::EventObject, Self::ANSWER)),
    ]);

    /// A list, or the Status that came instead.
    pub(super) const LIST: &'static FieldTable = &FieldTable {
        members: &[
            ("metadata", Rule::Object(Field::ListMetadata, &LIST_METADATA)),
            ("items", Rule::Each(Field::Item, K::TABLE)),
        ],
        or: Some(&STATUS),
    };
}

static LIST_METADATA: FieldTable = FieldTable::new(&[
    ("resourceVersion", Rule::Keep(Field::ListResourceVersion)),
    ("continue", Rule::Stream(Field::ListContinue)),
    ("remainingItemCount", Rule::Keep(Field::ListRemaining)),
]);

impl<K: Object> Envelope<K> {
    fn clear(&mut self) {
        self.object.clear(&mut self.state);
        self.status.clear();
        self.change = None;
        self.list.clear();
        self.list_fault = None;
        self.has_item = false;
        self.metadata_only = false;
        self.has_template = false;
    }

    /// Faults of the list must not be taken for faults of an item.
    fn note_list_fault(&mut self, field: Field, kept: Result<(), Fault>) {
        if let Err(fault) = kept {
            self.list_fault.get_or_insert(FieldFault { field, fault });
        }
    }
}

/// Takes what is read, and asks what is known of it.
struct Recorder<'a, K: Object> {
    envelope: &'a mut Envelope<K>,
    memory: Option<&'a dyn KnownObjects<K>>,
}

impl<K: Object> Recorder<'_, K> {
    /// The metadata is complete. What is known of the object by that need not be read.
    fn recall(&mut self) -> Flow {
        let Self { envelope, memory } = self;
        let Some(memory) = memory else { return Flow::Next };
        envelope.metadata_only = memory.suffices(envelope.change, envelope.object.meta());
        if envelope.metadata_only {
            return Flow::Skip;
        }
        if let Some(template) = memory.recall_template(&mut envelope.object) {
            envelope.has_template = true;
            K::recalled_template(&mut envelope.state, template);
        }
        Flow::Next
    }
}

impl<K: Object> FieldSink for Recorder<'_, K> {
    fn keep(&mut self, field: Field, value: Value<'_>) -> Result<(), Fault> {
        match field {
            Field::EventType => {
                self.envelope.change = match value {
                    Value::Text { text: "ADDED", .. } => Some(EventType::Added),
                    Value::Text { text: "MODIFIED", .. } => Some(EventType::Modified),
                    Value::Text { text: "DELETED", .. } => Some(EventType::Deleted),
                    Value::Text { text: "BOOKMARK", .. } => Some(EventType::Bookmark),
                    Value::Text { text: "ERROR", .. } => Some(EventType::Error),
                    _ => None,
                };
                Ok(())
            }
            Field::ListResourceVersion | Field::ListRemaining => {
                let kept = self.envelope.list.keep(field, value);
                self.envelope.note_list_fault(field, kept);
                Ok(())
            }
            _ => match self.envelope.status.keep(field, value) {
                Some(kept) => kept,
                None => self.envelope.object.keep(&mut self.envelope.state, field, value),
            },
        }
    }

    fn stream(&mut self, field: Field, token: Token<'_>) -> Result<Flow, Fault> {
        if field == Field::ListContinue {
            let kept = self.envelope.list.continue_token(token);
            self.envelope.note_list_fault(field, kept);
            return Ok(Flow::Next);
        }
        self.envelope.object.stream(&mut self.envelope.state, field, token)
    }

    fn knows(&self, field: Field) -> bool {
        self.envelope.has_template && field == Field::Template
    }

    fn begin(&mut self, field: Field) {
        match field {
            Field::Item => self.envelope.object.clear(&mut self.envelope.state),
            _ => self.envelope.object.begin(&mut self.envelope.state, field),
        }
    }

    fn end(&mut self, field: Field) -> Flow {
        if field == Field::Item {
            self.envelope.has_item = true;
            return Flow::Pause;
        }
        self.envelope.object.end(&mut self.envelope.state, field);
        if field == Field::Metadata { self.recall() } else { Flow::Next }
    }
}
