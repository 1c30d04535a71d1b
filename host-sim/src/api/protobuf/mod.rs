//! Protobuf request bodies (`application/vnd.kubernetes.protobuf`), turned into JSON by the type table.
//!
//! Some commands of kubectl send nothing else: `create deployment`, `autoscale`, `auth can-i`.
//! Answers are JSON, which
//! every client takes.

pub(in crate::api) mod wire;

use serde_json::{Map, Number, Value, json};

use self::wire::{Field, Malformed, Reader};
use super::body::Parsed;
use super::defaults::base64;
use super::kind::split_api_version;
use super::schema::{self, ObjectType, Type};
use crate::time::Timestamp;

/// The content type of such bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";

/// Messages nest at most this deep; no type of the API comes near.
const MAX_DEPTH: usize = 64;

/// Reads a body. The error is what is wrong with it, for a message.
pub fn parse(body: &[u8]) -> Result<Parsed, String> {
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        return Err("provided data does not appear to be a protobuf message, expected prefix \
                    [107 56 115 0]"
            .to_owned());
    };
    let envelope = Envelope::read(envelope).map_err(|_| unreadable("runtime.Unknown"))?;
    let Envelope { api_version, kind, raw } = envelope;
    let (group, version) = split_api_version(&api_version);
    let name = match kind.as_str() {
        "DeleteOptions" | "Status" => schema::model_name("meta.k8s.io", "v1", &kind),
        _ => schema::model_name(group, version, &kind),
    };
    let ty = schema::object_type(&name)
        .ok_or_else(|| format!("no kind \"{kind}\" is registered for version \"{api_version}\""))?;
    let mut fields = Map::new();
    message(ty, raw, &mut fields, 0).map_err(|_| unreadable(&ty.go_name()))?;
    fields.insert("apiVersion".to_owned(), json!(api_version));
    fields.insert("kind".to_owned(), json!(kind));
    Ok(Parsed { value: Value::Object(fields), duplicates: Vec::new() })
}

fn unreadable(what: &str) -> String {
    format!("proto: malformed message of type {what}")
}

/// `runtime.Unknown`: what the message is, and the message.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut envelope = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        for field in Reader::new(bytes) {
            match field? {
                (1, Field::Bytes(type_meta)) => {
                    for field in Reader::new(type_meta) {
                        match field? {
                            (1, Field::Bytes(text)) => envelope.api_version = utf8(text)?,
                            (2, Field::Bytes(text)) => envelope.kind = utf8(text)?,
                            _ => {}
                        }
                    }
                }
                (2, Field::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// Reads the fields of a message into a JSON object; unknown numbers are skipped.
fn message(
    ty: &ObjectType,
    bytes: &[u8],
    fields: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), Malformed> {
    if depth > MAX_DEPTH {
        return Err(Malformed);
    }
    for field in Reader::new(bytes) {
        let (number, content) = field?;
        let inlined = ty.inlined.iter().find(|(n, _)| *n == number);
        if let (Some((_, id)), Field::Bytes(inner)) = (inlined, content) {
            if let Some(ty) = id.get() {
                message(ty, inner, fields, depth + 1)?;
            }
            continue;
        }
        let known = ty.fields.iter().find(|f| f.number == Some(number) && !f.inlined);
        let Some(known) = known else { continue };
        let slot = fields.entry(known.name).or_insert(Value::Null);
        match &known.ty {
            Type::List(element) => {
                let items = into_list(slot);
                match (&**element, content) {
                    (Type::Int32 | Type::Int64 | Type::Bool, Field::Bytes(packed)) => {
                        packed_numbers(packed, items)?;
                    }
                    (element, content) => items.push(value(element, content, depth)?),
                }
            }
            Type::Map(element) => {
                let (key, entry) = map_entry(element, content, depth)?;
                into_map(slot).insert(key, entry);
            }
            ty => *slot = value(ty, content, depth)?,
        }
    }
    Ok(())
}

fn into_list(slot: &mut Value) -> &mut Vec<Value> {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    match slot {
        Value::Array(items) => items,
        _ => unreachable!("an array was just put here"),
    }
}

fn into_map(slot: &mut Value) -> &mut Map<String, Value> {
    super::object::fields(slot)
}

fn packed_numbers(bytes: &[u8], items: &mut Vec<Value>) -> Result<(), Malformed> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| b & 0x80 == 0).ok_or(Malformed)?;
        let (number, after) = rest.split_at(end + 1);
        let bits = number.iter().rev().fold(0u64, |n, b| n << 7 | u64::from(b & 0x7f));
        items.push(json!(bits as i64));
        rest = after;
    }
    Ok(())
}

fn map_entry(
    element: &Type,
    content: Field<'_>,
    depth: usize,
) -> Result<(String, Value), Malformed> {
    let Field::Bytes(entry) = content else { return Err(Malformed) };
    let (mut key, mut found) = (String::new(), Value::Null);
    for field in Reader::new(entry) {
        match field? {
            (1, Field::Bytes(text)) => key = utf8(text)?,
            (2, content) => {
                found = match (element, content) {
                    // A named list inside a map is a message with its items.
                    (Type::List(element), Field::Bytes(items)) => {
                        let mut list = Vec::new();
                        for item in Reader::new(items) {
                            list.push(value(element, item?.1, depth + 1)?);
                        }
                        Value::Array(list)
                    }
                    (element, content) => value(element, content, depth + 1)?,
                }
            }
            _ => {}
        }
    }
    Ok((key, found))
}

fn value(ty: &Type, content: Field<'_>, depth: usize) -> Result<Value, Malformed> {
    match (ty, content) {
        (Type::String, Field::Bytes(text)) => Ok(json!(utf8(text)?)),
        (Type::Bool, Field::Varint(bits)) => Ok(json!(bits != 0)),
        (Type::Int32 | Type::Int64, Field::Varint(bits)) => Ok(json!(bits as i64)),
        (Type::Float64, Field::Fixed64(bytes)) => {
            let number = Number::from_f64(f64::from_le_bytes(bytes));
            Ok(number.map_or(Value::Null, Value::Number))
        }
        (Type::Bytes, Field::Bytes(bytes)) => Ok(json!(base64(bytes))),
        (Type::Time, Field::Bytes(inner)) => time(inner, Timestamp::to_rfc3339),
        (Type::MicroTime, Field::Bytes(inner)) => time(inner, Timestamp::to_rfc3339_micros),
        (Type::Duration, Field::Bytes(inner)) => {
            let nanos = numbers(inner)?[0];
            Ok(json!(format!("{}s", nanos as f64 / 1e9)))
        }
        (Type::Quantity, Field::Bytes(inner)) => Ok(json!(text_of(inner, 1)?)),
        (Type::IntOrString, Field::Bytes(inner)) => {
            let [kind, number] = numbers(inner)?;
            if kind == 0 { Ok(json!(number)) } else { Ok(json!(text_of(inner, 3)?)) }
        }
        (Type::Raw, Field::Bytes(inner)) => {
            let raw = text_of(inner, 1)?;
            if raw.is_empty() {
                return Ok(Value::Null);
            }
            serde_json::from_str(&raw).map_err(|_| Malformed)
        }
        (Type::Object(id), Field::Bytes(inner)) => {
            let mut fields = Map::new();
            if let Some(ty) = id.get() {
                message(ty, inner, &mut fields, depth + 1)?;
            }
            Ok(Value::Object(fields))
        }
        _ => Err(Malformed),
    }
}

/// A time is seconds and nanoseconds since the epoch; without either it is no time.
fn time(inner: &[u8], written: fn(Timestamp) -> String) -> Result<Value, Malformed> {
    let [seconds, nanos] = numbers(inner)?;
    if inner.is_empty() {
        return Ok(Value::Null);
    }
    let millis = seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000);
    Ok(json!(written(Timestamp::from_unix_millis(millis))))
}

/// The numbers in fields 1 and 2.
fn numbers(message: &[u8]) -> Result<[i64; 2], Malformed> {
    let mut found = [0; 2];
    for field in Reader::new(message) {
        match field? {
            (1, Field::Varint(bits)) => found[0] = bits as i64,
            (2, Field::Varint(bits)) => found[1] = bits as i64,
            _ => {}
        }
    }
    Ok(found)
}

fn text_of(message: &[u8], number: u32) -> Result<String, Malformed> {
    for field in Reader::new(message) {
        match field? {
            (n, Field::Bytes(text)) if n == number => return utf8(text),
            _ => {}
        }
    }
    Ok(String::new())
}

fn utf8(bytes: &[u8]) -> Result<String, Malformed> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::wire::Writer;
    use super::*;
    use crate::api::decode::{FieldValidation, decode_object};
    use crate::api::kind;

    fn enveloped(api_version: &str, kind: &str, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.message(1, |meta| {
            meta.text(1, api_version);
            meta.text(2, kind);
        });
        writer.message(2, write);
        [MAGIC, &writer.finish()].concat()
    }

    fn number(writer: &mut Writer, field: u32, value: u64) {
        writer.varint(u64::from(field) << 3);
        writer.varint(value);
    }

    /// What `kubectl create deployment web --image=img:v1 --replicas=2` sends, by hand.
    fn deployment() -> Vec<u8> {
        let label = |w: &mut Writer| {
            w.text(1, "app");
            w.text(2, "web");
        };
        enveloped("apps/v1", "Deployment", |d| {
            d.message(1, |meta| {
                meta.text(1, "web");
                meta.message(8, |_| {});
                meta.message(11, label);
            });
            d.message(2, |spec| {
                number(spec, 1, 2);
                spec.message(2, |selector| selector.message(1, label));
                spec.message(3, |template| {
                    template.message(1, |meta| meta.message(11, label));
                    template.message(2, |pod| {
                        pod.message(1, |volume| {
                            volume.text(1, "v");
                            volume.message(2, |source| source.message(2, |_| {}));
                        });
                        pod.message(2, |container| {
                            container.text(1, "img");
                            container.text(2, "img:v1");
                            container.message(8, |resources| {
                                resources.message(1, |limit| {
                                    limit.text(1, "cpu");
                                    limit.message(2, |quantity| quantity.text(1, "500m"));
                                });
                            });
                            container.message(11, |probe| {
                                probe.message(1, |handler| {
                                    handler.message(2, |get| {
                                        get.message(2, |port| {
                                            number(port, 1, 1);
                                            number(port, 2, 0);
                                            port.text(3, "http");
                                        })
                                    });
                                });
                                number(probe, 3, u64::MAX);
                            });
                        });
                    });
                });
                spec.message(4, |_| {});
            });
            d.message(3, |status| number(status, 2, 0));
        })
    }

    #[test]
    fn a_deployment_is_read_as_json() {
        let parsed = parse(&deployment()).unwrap();
        let value = &parsed.value;
        assert_eq!(
            (&value["apiVersion"], &value["kind"]),
            (&json!("apps/v1"), &json!("Deployment"))
        );
        assert_eq!(value["metadata"]["labels"], json!({"app": "web"}));
        assert_eq!(value["spec"]["replicas"], 2);
        let pod = &value["spec"]["template"]["spec"];
        assert_eq!(pod["volumes"], json!([{"name": "v", "emptyDir": {}}]));
        let container = &pod["containers"][0];
        assert_eq!(container["resources"]["limits"], json!({"cpu": "500m"}));
        assert_eq!(container["readinessProbe"]["httpGet"]["port"], "http");
        assert_eq!(container["readinessProbe"]["timeoutSeconds"], -1);
        let kind = kind::find("apps", "v1", "deployments").unwrap();
        let decoded = decode_object(kind, parsed, FieldValidation::Strict).unwrap();
        assert!(decoded.object["metadata"].get("creationTimestamp").is_none());
    }

    #[test]
    fn a_replication_controller_is_read_as_json() {
        let label = |w: &mut Writer| {
            w.text(1, "app");
            w.text(2, "web");
        };
        let body = enveloped("v1", "ReplicationController", |controller| {
            controller.message(1, |meta| meta.text(1, "web"));
            controller.message(2, |spec| {
                number(spec, 1, 2);
                spec.message(2, label);
                spec.message(3, |template| template.message(1, |meta| meta.message(11, label)));
                number(spec, 4, 5);
            });
            controller.message(3, |status| {
                for field in 1..=5 {
                    number(status, field, u64::from(field) + 10);
                }
                status.message(6, |condition| condition.text(1, "ReplicaFailure"));
            });
        });
        let value = parse(&body).unwrap().value;
        assert_eq!(value["kind"], "ReplicationController");
        let spec = &value["spec"];
        assert_eq!((&spec["replicas"], &spec["minReadySeconds"]), (&json!(2), &json!(5)));
        assert_eq!(spec["selector"], json!({"app": "web"}));
        assert_eq!(spec["template"]["metadata"]["labels"], json!({"app": "web"}));
        let status = &value["status"];
        for (field, count) in [
            ("replicas", 11),
            ("fullyLabeledReplicas", 12),
            ("observedGeneration", 13),
            ("readyReplicas", 14),
            ("availableReplicas", 15),
        ] {
            assert_eq!(status[field], count, "{field}");
        }
        assert_eq!(status["conditions"][0]["type"], "ReplicaFailure");
    }

    #[test]
    fn other_bodies_are_refused() {
        assert!(parse(b"{}").unwrap_err().contains("expected prefix"));
        assert!(parse(b"k8s\0\xff").unwrap_err().contains("malformed"));
        let unknown = enveloped("x/v1", "Foo", |_| {});
        assert_eq!(
            parse(&unknown).unwrap_err(),
            "no kind \"Foo\" is registered for version \"x/v1\""
        );
        let truncated = deployment();
        assert!(parse(&truncated[..truncated.len() - 1]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let _ = parse(&bytes);
            let _ = parse(&[MAGIC, &bytes].concat());
            let mut changed = deployment();
            let index = at.index(changed.len());
            changed[index] = byte;
            let _ = parse(&changed);
        }
    }
}
