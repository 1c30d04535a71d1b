//! What applying a list item or a watch event to the cache came to.

use core::fmt;

use crate::kind::Kind;
use crate::link::Slot;
use crate::text::{StoreSelectorError, Text, TextFull, TooManyLabels};
use crate::wire::{FieldFault, Uid};

/// The outcome of applying an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The cache holds the new state.
    Changed(Change),
    /// Some other controller's pod, which is not cached.
    Foreign,
    /// The cache holds a later state: that of an own write whose answer came before the watch told
    /// of it.
    Older,
    /// The object did not fit; its owner is blind now.
    Refused(Refusal),
}

/// How an object changed, in the terms that event handlers ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The object's place. After a deletion: where it was.
    pub slot: Slot,
    /// What happened.
    pub event: ChangeType,
    /// The version is the cached one: a replay, which most handlers ignore.
    pub same_version: bool,
    /// The object was deleted and recreated between two observations.
    pub uid_changed: bool,
    /// Its labels changed.
    pub labels_changed: bool,
    /// Its controller reference changed.
    pub owner_changed: bool,
    /// The controller before the change.
    pub old_owner: Owner,
    /// The controller after the change; of a deleted object, the last one.
    pub new_owner: Owner,
    /// The uid before the change.
    pub old_uid: Uid,
    /// The object has a deletion timestamp now.
    pub deleting: bool,
    /// The object went from not ready to ready.
    pub became_ready: bool,
    /// The old owner awaited this object's deletion, which is now under way, done, or no longer
    /// its business. Reported once.
    pub was_expected: bool,
    /// The namespace of a deleted object, to be compared with those of others: it may be given back.
    pub gone_from: Text,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    /// It was not cached before.
    Added,
    /// It was cached before.
    Updated,
    /// It is gone, or became some other controller's.
    Deleted,
}

/// The controller of an object, looked up as Kubernetes does: by kind, namespace, name and uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The object is an orphan.
    None,
    /// The object has a controller that is not cached here.
    Unresolved,
    /// The cached controller.
    Resolved(Kind, Slot),
}

impl Owner {
    /// The cached controller, if it is of this kind.
    pub fn of(self, kind: Kind) -> Option<Slot> {
        match self {
            Self::Resolved(of, slot) if of == kind => Some(slot),
            _ => None,
        }
    }
}

/// An object did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// The controller that is blind because of it.
    pub owner: Owner,
}

/// Why an object could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RefusalReason {
    /// The table of its kind is full.
    TableFull,
    /// The table of texts is full.
    TextFull,
    /// The table of owners and namespaces is full.
    GroupsFull,
    /// It has too many labels.
    TooManyLabels,
    /// Its selector has too many requirements.
    SelectorTooLarge,
    /// One of its fields cannot be used.
    Faulty(FieldFault),
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faulty(fault) => return fault.fmt(f),
            Self::TableFull => "the table of its kind is full",
            Self::TextFull => "the table of names and labels is full",
            Self::GroupsFull => "the table of owners and namespaces is full",
            Self::TooManyLabels => "it has more labels than the controller can hold",
            Self::SelectorTooLarge => {
                "its selector has more requirements than the controller can hold"
            }
        })
    }
}

impl From<TextFull> for RefusalReason {
    fn from(TextFull: TextFull) -> Self {
        Self::TextFull
    }
}

impl From<TooManyLabels> for RefusalReason {
    fn from(TooManyLabels: TooManyLabels) -> Self {
        Self::TooManyLabels
    }
}

impl From<StoreSelectorError> for RefusalReason {
    fn from(error: StoreSelectorError) -> Self {
        match error {
            StoreSelectorError::TooLarge => Self::SelectorTooLarge,
            StoreSelectorError::Full => Self::TextFull,
        }
    }
}
