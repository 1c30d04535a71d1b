//! The v2 document in the protobuf encoding of gnostic, for kubectl before 1.27.

use serde_json::{Map, Value};

use crate::api::object::{at, flag, list, text};
use crate::api::protobuf::wire::Writer;

/// Encodes an OpenAPI v2 document as an `openapi.v2.Document` message.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.text(1, text(document, "swagger"));
    writer.message(2, |info| {
        info.text(1, text(at(document, &["info"]), "title"));
        info.text(2, text(at(document, &["info"]), "version"));
    });
    writer.message(8, |paths| {
        for (path, item) in map(at(document, &["paths"])) {
            paths.message(2, |entry| {
                entry.text(1, path);
                entry.message(2, |w| path_item(item, w));
            });
        }
    });
    writer.message(9, |definitions| named_schemas(1, at(document, &["definitions"]), definitions));
    writer.finish()
}

fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn named_schemas(number: u32, schemas: &Value, writer: &mut Writer) {
    for (name, body) in map(schemas) {
        writer.message(number, |entry| {
            entry.text(1, name);
            entry.message(2, |w| schema(body, w));
        });
    }
}

fn path_item(item: &Value, writer: &mut Writer) {
    for (method, number) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if let Some(body) = item.get(method) {
            writer.message(number, |w| operation(body, w));
        }
    }
}

fn operation(operation: &Value, writer: &mut Writer) {
    for media_type in list(operation, "consumes").iter().filter_map(Value::as_str) {
        writer.text(7, media_type);
    }
    for parameter in list(operation, "parameters") {
        // ParametersItem.parameter, then either a body or a query parameter.
        writer.message(8, |item| item.message(1, |p| self::parameter(parameter, p)));
    }
    writer.message(9, |responses| {
        for (code, response) in map(at(operation, &["responses"])) {
            responses.message(1, |entry| {
                entry.text(1, code);
                entry.message(2, |value| value.message(1, |r| self::response(response, r)));
            });
        }
    });
    extensions(13, operation, writer);
}

fn parameter(parameter: &Value, writer: &mut Writer) {
    if text(parameter, "in") == "body" {
        writer.message(1, |body| {
            body.text(2, text(parameter, "name"));
            body.text(3, "body");
            body.flag(4, flag(parameter, "required"));
            body.message(5, |w| schema(at(parameter, &["schema"]), w));
        });
        return;
    }
    writer.message(2, |other| {
        other.message(3, |query| {
            query.text(2, "query");
            query.text(4, text(parameter, "name"));
            query.text(6, text(parameter, "type"));
            query.flag(20, flag(parameter, "uniqueItems"));
        });
    });
}

fn response(response: &Value, writer: &mut Writer) {
    writer.text(1, text(response, "description"));
    writer.message(2, |item| item.message(1, |w| schema(at(response, &["schema"]), w)));
}

fn schema(body: &Value, writer: &mut Writer) {
    writer.text(1, text(body, "$ref"));
    writer.text(2, text(body, "format"));
    writer.text(4, text(body, "description"));
    if let Some(default) = body.get("default") {
        writer.message(5, |w| any(default, w));
    }
    for name in list(body, "required").iter().filter_map(Value::as_str) {
        writer.text(19, name);
    }
    for value in list(body, "enum") {
        writer.message(20, |w| any(value, w));
    }
    if let Some(values) = body.get("additionalProperties") {
        writer.message(21, |item| item.message(1, |w| schema(values, w)));
    }
    if let Some(kind) = body.get("type").and_then(Value::as_str) {
        writer.message(22, |item| item.text(1, kind));
    }
    if let Some(items) = body.get("items") {
        writer.message(23, |item| item.message(1, |w| schema(items, w)));
    }
    if let Some(properties) = body.get("properties") {
        writer.message(25, |w| named_schemas(1, properties, w));
    }
    extensions(31, body, writer);
}

fn extensions(number: u32, body: &Value, writer: &mut Writer) {
    let empty = Map::new();
    let own = body.as_object().unwrap_or(&empty);
    for (name, value) in own.iter().filter(|(name, _)| name.starts_with("x-")) {
        writer.message(number, |entry| {
            entry.text(1, name);
            entry.message(2, |w| any(value, w));
        });
    }
}

/// A value as YAML text, of which JSON is a part.
fn any(value: &Value, writer: &mut Writer) {
    writer.text(2, &value.to_string());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::protobuf::wire::{Field, Reader};

    fn sub<'a>(message: &'a [u8], number: u32) -> Vec<&'a [u8]> {
        let bytes = |field: (u32, Field<'a>)| match field {
            (n, Field::Bytes(bytes)) if n == number => Some(bytes),
            _ => None,
        };
        Reader::new(message).filter_map(|f| bytes(f.unwrap())).collect()
    }

    #[test]
    fn the_document_reads_back() {
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "t", "version": "v"},
            "paths": {"/a": {"patch": {"parameters": [{"name": "dryRun", "in": "query", "type": "string"}],
                                       "responses": {}, "x-kubernetes-action": "patch"}}},
            "definitions": {"T": {"type": "object", "properties": {"f": {"type": "string"}}}},
        });
        let bytes = encode(&document);
        assert_eq!(sub(&bytes, 1), [b"2.0"]);
        let path = sub(sub(&bytes, 8)[0], 2)[0];
        assert_eq!(sub(path, 1), [b"/a"]);
        let patch = sub(sub(path, 2)[0], 8)[0];
        let query = sub(sub(sub(sub(patch, 8)[0], 1)[0], 2)[0], 3)[0];
        assert_eq!(sub(query, 4), [b"dryRun"]);
        let extension = sub(patch, 13)[0];
        assert_eq!(sub(sub(extension, 2)[0], 2), [b"\"patch\""]);
        let definition = sub(sub(&bytes, 9)[0], 1)[0];
        assert_eq!(sub(definition, 1), [b"T"]);
        let property = sub(sub(sub(definition, 2)[0], 25)[0], 1)[0];
        assert_eq!(sub(property, 1), [b"f"]);
    }
}
