//! A write that a controller wants to be sent, and gets back with the answer.

use core::fmt;

use crate::event::write_text;
use crate::kind::Kind;
use crate::limits::Target;
use crate::link::Slot;
use crate::request::{ContentType, Method};
use crate::store::Head;
use crate::text::{Interner, Name, Text};
use crate::time::Timestamp;
use crate::wire::{ResourceVersion, Uid};

/// A request of a controller; most change something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) purpose: Purpose,
    pub(crate) method: Method,
    pub(crate) content_type: ContentType,
    pub(crate) body: BodySource,
    pub(crate) subresource: Subresource,
    /// The kind of object in the answer.
    pub(crate) kind: Kind,
    /// Which of its controller's workers waits for the answer.
    pub(crate) worker: u8,
    /// The object it is about; that of a creation is the one it is created for.
    pub(crate) slot: Slot,
    pub(crate) namespace: Text,
    pub(crate) name: Name,
    pub(crate) uid: Uid,
    pub(crate) version: ResourceVersion,
    /// When it was sent: what its body says does not change with time.
    pub(crate) at: Timestamp,
}

/// What a write is for, in the words of those who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To look whether the key's object is as the cache has it, before something is adopted.
    Recheck = 1,
    /// To adopt an orphan.
    Adopt,
    /// To release what is no longer selected.
    Release,
    /// To create an object.
    Create,
    /// To delete one.
    Delete,
    /// To tell the status.
    Status,
    /// Whatever the plan at hand says.
    Step,
}

impl Purpose {
    /// Whether it is that of a request for claiming.
    pub(crate) const fn is_claiming(self) -> bool {
        matches!(self, Self::Recheck | Self::Adopt | Self::Release)
    }
}

/// The part of an object that a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    /// All but its status.
    None = 1,
    /// `/status`
    Status,
}

/// Where the body of a write comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodySource {
    /// There is none.
    None = 1,
    /// The controller writes it.
    Document,
    /// It is made of another object.
    Splice,
}

impl Write {
    /// A GET of an object.
    pub(crate) fn get(kind: Kind, slot: Slot, head: &Head) -> Self {
        Self {
            purpose: Purpose::Recheck,
            method: Method::Get,
            content_type: ContentType::Json,
            body: BodySource::None,
            subresource: Subresource::None,
            kind,
            worker: 0,
            slot,
            namespace: head.namespace(),
            name: head.name(),
            uid: head.uid(),
            version: head.version(),
            at: Timestamp::EPOCH,
        }
    }

    /// A PATCH of an object.
    pub(crate) fn patch(
        purpose: Purpose,
        content_type: ContentType,
        kind: Kind,
        slot: Slot,
        head: &Head,
    ) -> Self {
        let (method, body) = (Method::Patch, BodySource::Document);
        Self { purpose, method, content_type, body, ..Self::get(kind, slot, head) }
    }

    /// A PATCH of an object's status.
    pub(crate) fn status(purpose: Purpose, kind: Kind, slot: Slot, head: &Head) -> Self {
        let content_type = ContentType::StrategicMergePatch;
        Self {
            subresource: Subresource::Status,
            ..Self::patch(purpose, content_type, kind, slot, head)
        }
    }

    /// A DELETE of an object.
    pub(crate) fn delete(purpose: Purpose, kind: Kind, slot: Slot, head: &Head) -> Self {
        let (method, body) = (Method::Delete, BodySource::Document);
        Self { purpose, method, body, ..Self::get(kind, slot, head) }
    }

    /// A POST of an object that is made of the one it is for.
    pub(crate) fn create(purpose: Purpose, kind: Kind, source: Slot, head: &Head) -> Self {
        let (method, body) = (Method::Post, BodySource::Splice);
        Self { purpose, method, body, ..Self::get(kind, source, head) }
    }

    /// Whether it tells the status of its object.
    pub(crate) fn is_status(&self) -> bool {
        self.subresource == Subresource::Status
    }

    /// Whether it deletes its object.
    pub(crate) fn is_delete(&self) -> bool {
        self.method == Method::Delete
    }

    /// Whether it changes the object that another one is about, too.
    pub(crate) fn collides(&self, other: &Self) -> bool {
        let changes = |write: &Self| matches!(write.method, Method::Patch | Method::Delete);
        changes(self) && changes(other) && self.kind == other.kind && self.uid == other.uid
    }

    /// Writes the path.
    pub(crate) fn write_target(&self, texts: &Interner, target: &mut Target) -> fmt::Result {
        use fmt::Write;
        match self.method {
            Method::Post => write_collection(target, texts, self.kind, self.namespace),
            _ => write_object(target, texts, self.kind, self.namespace, self.name),
        }?;
        match self.subresource {
            Subresource::None => Ok(()),
            Subresource::Status => target.write_str("/status"),
        }
    }

    /// Writes the beginning of a merge patch that wants the object to be as it was read.
    pub(crate) fn write_preconditions(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let Self { uid, version, .. } = self;
        write!(out, "{{\"metadata\":{{\"uid\":\"{uid}\",\"resourceVersion\":\"{version}\"")
    }

    /// Writes the options of a DELETE: of no other object of that name.
    pub(crate) fn write_delete_options(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{{\"preconditions\":{{\"uid\":\"{}\"}}}}", self.uid)
    }
}

/// The path of an object.
pub(crate) fn object_target(
    texts: &Interner,
    kind: Kind,
    namespace: Text,
    name: Name,
) -> Option<Target> {
    let mut target = Target::new();
    write_object(&mut target, texts, kind, namespace, name).ok()?;
    Some(target)
}

fn write_object(
    target: &mut Target,
    texts: &Interner,
    kind: Kind,
    namespace: Text,
    name: Name,
) -> fmt::Result {
    use fmt::Write;
    write_collection(target, texts, kind, namespace)?;
    write!(target, "/{}", name.display(texts))
}

/// Writes a path such as `/apis/apps/v1/namespaces/default/replicasets`.
fn write_collection(
    target: &mut Target,
    texts: &Interner,
    kind: Kind,
    namespace: Text,
) -> fmt::Result {
    use fmt::Write;
    let info = kind.info();
    write!(target, "{}/namespaces/", info.api)?;
    write_text(target, texts, namespace)?;
    write!(target, "/{}", info.plural)
}

/// Writes `terminatingReplicas`, where it is kept or has to go.
pub(crate) fn write_terminating(
    out: &mut dyn fmt::Write,
    count: Option<i32>,
    is_stored: bool,
) -> fmt::Result {
    match count {
        Some(count) => write!(out, ",\"terminatingReplicas\":{count}"),
        None if is_stored => out.write_str(",\"terminatingReplicas\":null"),
        None => Ok(()),
    }
}
