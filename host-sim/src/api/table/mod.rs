//! Tables (`meta.k8s.io/v1`): the columns `kubectl get` prints, made by the server.

mod age;
mod columns;
mod other;
mod pod;
mod workload;

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::object::at;
use super::schema;
use super::selector::LabelSelector;
use crate::time::Timestamp;

pub(super) use columns::*;
pub(super) use other::{
    config_map, controller_revision, event, horizontal_pod_autoscaler, lease, name_and_age,
    namespace, node, persistent_volume_claim, resource_quota, secret, service, service_account,
};
pub(super) use pod::pod;
pub(super) use workload::{
    daemon_set, deployment, job, replica_set, replication_controller, stateful_set,
};

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// `string` or `integer`.
    pub kind: &'static str,
    /// Whether it is shown only with `-o wide`.
    pub wide: bool,
    /// What it says.
    pub description: &'static str,
}

/// How a kind fills a row: the cells of its columns.
pub type Row = fn(&Value, Timestamp) -> Vec<Value>;

/// What each row carries besides its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// The object's metadata.
    #[default]
    Metadata,
    /// The object.
    Object,
    /// Nothing.
    None,
}

impl IncludeObject {
    /// Reads the `includeObject` option.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            "None" => Some(Self::None),
            _ => None,
        }
    }
}

/// A table of objects of a kind. `metadata` is that of the list (or of the object); watches leave
/// the column definitions out after their first event.
pub fn table<'a>(
    kind: &Kind,
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: Value,
    include: IncludeObject,
    with_columns: bool,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = objects.into_iter().map(|o| row(kind, o, include, now)).collect();
    let columns = if with_columns { column_definitions(kind) } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// One row of a table.
pub fn row(kind: &Kind, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
    let mut row = Map::new();
    row.insert("cells".to_owned(), Value::Array((kind.row)(object, now)));
    if kind.kind == "Pod"
        && let Some(conditions) = pod::row_conditions(object)
    {
        row.insert("conditions".to_owned(), conditions);
    }
    let carried = match include {
        IncludeObject::Metadata => partial_metadata(object),
        IncludeObject::Object => object.clone(),
        IncludeObject::None => Value::Null,
    };
    row.insert("object".to_owned(), carried);
    Value::Object(row)
}

/// The headings of a kind's table.
pub fn column_definitions(kind: &Kind) -> Value {
    let definition = |column: &Column| {
        let is_name = column.name == "Name" && !column.wide;
        json!({
            "name": column.name,
            "type": column.kind,
            "format": if is_name { "name" } else { "" },
            "description": described(column),
            "priority": i32::from(column.wide),
        })
    };
    kind.columns.iter().map(definition).collect()
}

/// Labels in a cell, as upstream's FormatLabels writes them.
fn labels(labels: &Value) -> String {
    pod::or_none(&LabelSelector::of_labels(labels).to_string()).to_owned()
}

fn described(column: &Column) -> &str {
    const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    match column.name {
        "Name" => schema::description(METADATA, "name"),
        "Age" => schema::description(METADATA, "creationTimestamp"),
        _ => column.description,
    }
}

/// An object's metadata alone, as `PartialObjectMetadata`.
pub fn partial_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": at(object, &["metadata"]),
    })
}

/// The metadata of many objects, as `PartialObjectMetadataList`.
pub fn partial_metadata_list<'a>(
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: Value,
) -> Value {
    let items: Vec<Value> = objects.into_iter().map(partial_metadata).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "items": items,
    })
}

#[cfg(test)]
mod tests;
