//! Writing objects out in the form a client asked for.

use serde_json::{Value, json};

use crate::api::kind::{Kind, Storage};
use crate::api::table::{self, IncludeObject, partial_metadata};
use crate::store::Entry;
use crate::time::Timestamp;

use super::media::Form;
use super::rules;

const META_V1: &str = "meta.k8s.io/v1";

/// Writes entries of one kind in one form.
#[derive(Debug)]
pub struct Renderer {
    kind: &'static Kind,
    form: Form,
    now: Timestamp,
    include: IncludeObject,
    /// A table watch describes its columns only once.
    columns_sent: bool,
}

impl Renderer {
    /// A renderer for entries that are stored for `kind`.
    pub fn new(kind: &'static Kind, form: Form, now: Timestamp, include: IncludeObject) -> Self {
        Self { kind, form, now, include, columns_sent: false }
    }

    /// Tables say how old objects are; a watch goes on for a while.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Everything of a list up to the opening bracket of its items.
    pub fn list_head(&self, metadata: &Value) -> Vec<u8> {
        let (kind, api_version) = match self.form {
            Form::Table => {
                let columns = table::column_definitions(self.stored_kind());
                let head =
                    format!(r#"{{"kind":"Table","apiVersion":"{META_V1}","metadata":{metadata},"#);
                let head = format!(r#"{head}"columnDefinitions":{columns},"rows":["#);
                return head.into_bytes();
            }
            Form::Metadata => ("PartialObjectMetadataList", META_V1.to_owned()),
            _ => (self.kind.list_kind, self.kind.api_version()),
        };
        let head = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#
        );
        head.into_bytes()
    }

    /// One item of a list.
    pub fn item(&self, entry: &Entry, out: &mut Vec<u8>) {
        match self.form {
            Form::Table => {
                let row = table::row(self.stored_kind(), &entry.parse(), self.include, self.now);
                write(&row, out);
            }
            Form::Metadata => write(&partial_metadata(&entry.parse()), out),
            _ => self.object_json(entry, out),
        }
    }

    /// Whether an entry's own JSON is what was asked for.
    pub fn is_plain(&self) -> bool {
        self.form == Form::Object && self.kind.storage == Storage::Own
    }

    /// A single stored object as the answer to a request.
    pub fn single(&self, object: Value) -> Value {
        match self.form {
            Form::Table => self.table(&object, true),
            Form::Metadata => partial_metadata(&object),
            _ => self.converted(object),
        }
    }

    /// One event of a watch.
    pub fn event(&mut self, event: &[u8], entry: &Entry, out: &mut Vec<u8>) {
        let untouched = self.form == Form::Object;
        if untouched {
            open_event(event, out);
            self.object_json(entry, out);
            out.extend_from_slice(b"}\n");
        } else {
            self.event_value(event, entry.parse(), out);
        }
    }

    /// The end of an object that no longer matches: its previous state under the new revision.
    pub fn departed(&mut self, previous: &Entry, revision: u64, out: &mut Vec<u8>) {
        let mut object = previous.parse();
        object["metadata"]["resourceVersion"] = Value::String(revision.to_string());
        self.event_value(b"DELETED", object, out);
    }

    /// A bookmark.
    pub fn bookmark(&self, object: &Value, out: &mut Vec<u8>) {
        write_event(b"BOOKMARK", object, out);
    }

    /// The Status with which a watch ends.
    pub fn error(&self, status: &Value, out: &mut Vec<u8>) {
        write_event(b"ERROR", status, out);
    }

    fn event_value(&mut self, event: &[u8], object: Value, out: &mut Vec<u8>) {
        let object = match self.form {
            Form::Table => {
                let first = !std::mem::replace(&mut self.columns_sent, true);
                self.table(&object, first)
            }
            Form::Metadata => partial_metadata(&object),
            _ => self.converted(object),
        };
        write_event(event, &object, out);
    }

    fn object_json(&self, entry: &Entry, out: &mut Vec<u8>) {
        if self.kind.storage == Storage::Own {
            out.extend_from_slice(&entry.json);
        } else {
            write(&self.converted(entry.parse()), out);
        }
    }

    fn converted(&self, object: Value) -> Value {
        if self.kind.storage == Storage::Own {
            object
        } else {
            rules::from_storage(self.kind, object)
        }
    }

    fn table(&self, object: &Value, with_columns: bool) -> Value {
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let kind = self.stored_kind();
        table::table(kind, [object], metadata, self.include, with_columns, self.now)
    }

    /// Tables are made from the stored form, whatever form was asked for.
    fn stored_kind(&self) -> &'static Kind {
        self.kind.stored_as().unwrap_or(self.kind)
    }
}

fn open_event(event: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(event);
    out.extend_from_slice(br#"","object":"#);
}

fn write_event(event: &[u8], object: &Value, out: &mut Vec<u8>) {
    open_event(event, out);
    write(object, out);
    out.extend_from_slice(b"}\n");
}

fn write(value: &Value, out: &mut Vec<u8>) {
    // Serialising a Value into memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}
