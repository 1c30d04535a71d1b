//! Bodies that are no objects, or objects of the wrong shape.

use serde_json::{Value, json};

use super::case::Case;
use super::{CONFIG_MAPS, DEPLOYMENTS, deployment};

/// A create of a Deployment that cannot be decoded.
fn undecodable(name: &'static str, body: impl ToString) -> Case {
    Case::new(name, "POST", DEPLOYMENTS, 400, "BadRequest").json(body)
}

/// A create of a Deployment in which one field has the wrong type.
fn mistyped(name: &'static str, pointer: &str, value: Value) -> Case {
    let mut object = deployment("new");
    *object.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    undecodable(name, object)
}

pub(crate) fn cases() -> Vec<Case> {
    let good = deployment("new");
    let text = good.to_string();
    let kind = |kind: &str, version: &str| {
        let mut object = good.clone();
        (object["kind"], object["apiVersion"]) = (json!(kind), json!(version));
        object
    };
    let strict = |name, body: String| {
        let path = format!("{DEPLOYMENTS}?fieldValidation=Strict");
        Case::new(name, "POST", path, 400, "BadRequest").json(body)
    };
    let typed = |name, media_type: &'static str, body: &[u8], code, reason| {
        Case::new(name, "POST", CONFIG_MAPS, code, reason).body(media_type, body)
    };
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
        c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
        e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
        g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n\
        data: {k: *h}\n";
    let protobuf = "application/vnd.kubernetes.protobuf";
    vec![
        undecodable("empty body", ""),
        undecodable("white space for a body", " \n\t "),
        undecodable("no JSON", "replicas please"),
        undecodable("null", "null"),
        undecodable("an array for an object", "[]"),
        undecodable("a string for an object", "\"Deployment\""),
        undecodable("a number for an object", "42"),
        undecodable("two documents", format!("{text}{text}")),
        undecodable("a document and garbage", format!("{text}}}")),
        undecodable("deep arrays", "[".repeat(200_000)),
        undecodable("deep objects", "{\"a\":".repeat(200_000)),
        undecodable("deep but complete", "[".repeat(5000) + &"]".repeat(5000)),
        undecodable("byte order mark", format!("\u{feff}{text}")),
        undecodable("trailing comma", text.replace("\"replicas\":3", "\"replicas\":3,,")),
        undecodable("single quotes", text.replace('"', "'")),
        undecodable("comment", format!("{text}// done")),
        undecodable("NaN", text.replace("\"replicas\":3", "\"replicas\":NaN")),
        undecodable("number beyond floats", text.replace("\"replicas\":3", "\"replicas\":1e999")),
        undecodable("leading zero", text.replace("\"replicas\":3", "\"replicas\":03")),
        undecodable("lone surrogate", text.replace("app:1", "\\ud800")),
        undecodable("unknown escape", text.replace("app:1", "\\x")),
        mistyped("replicas as text", "/spec/replicas", json!("3")),
        mistyped("replicas with a fraction", "/spec/replicas", json!(1.5)),
        mistyped("replicas beyond 32 bits", "/spec/replicas", json!(4_294_967_296_i64)),
        mistyped("replicas as a list", "/spec/replicas", json!([3])),
        mistyped("labels as a list", "/metadata/labels", json!(["app"])),
        mistyped("label with a number", "/metadata/labels/app", json!(1)),
        mistyped("metadata as text", "/metadata", json!("web")),
        mistyped("spec as a list", "/spec", json!([])),
        mistyped("name as a number", "/metadata/name", json!(7)),
        mistyped("kind as a number", "/kind", json!(1)),
        mistyped("containers as an object", "/spec/template/spec/containers", json!({"a": 1})),
        mistyped("container as text", "/spec/template/spec/containers/0", json!("app")),
        mistyped(
            "port as text",
            "/spec/template/spec/containers/0/ports/0/containerPort",
            json!("8080"),
        ),
        mistyped("surge as a boolean", "/spec/strategy/rollingUpdate/maxSurge", json!(true)),
        mistyped(
            "broken quantity",
            "/spec/template/spec/containers/0/resources/limits/cpu",
            json!("12 apples"),
        ),
        mistyped(
            "quantity as an object",
            "/spec/template/spec/containers/0/resources/limits/cpu",
            json!({}),
        ),
        undecodable("time that is none", {
            let mut object = good.clone();
            object["metadata"]["creationTimestamp"] = json!("yesterday");
            object
        }),
        undecodable("unknown kind", kind("Deploymint", "apps/v1")),
        undecodable("kind of another resource", kind("ConfigMap", "v1")),
        undecodable("version that is not served", kind("Deployment", "apps/v1beta1")),
        undecodable("version with too many slashes", kind("Deployment", "a/b/c")),
        undecodable("version of another group", kind("Deployment", "v1")),
        strict("unknown field, strictly", text.replace("\"replicas\"", "\"replicaz\"")),
        strict("unknown nested field, strictly", text.replace("\"image\"", "\"imago\"")),
        strict("field twice, strictly", text.replace("\"spec\":", "\"spec\":{},\"spec\":")),
        strict("case of a field, strictly", text.replace("\"replicas\"", "\"Replicas\"")),
        typed("text", "text/plain", b"hello", 415, "UnsupportedMediaType"),
        typed("XML", "application/xml", b"<a/>", 415, "UnsupportedMediaType"),
        typed("CBOR", "application/cbor", b"\xa0", 415, "UnsupportedMediaType"),
        typed("a form", "multipart/form-data; boundary=x", b"x", 415, "UnsupportedMediaType"),
        typed("media type that is none", ";;;///", b"{}", 415, "UnsupportedMediaType"),
        typed("broken YAML", "application/yaml", b"a: [1\nb: }", 400, "BadRequest"),
        typed("YAML with tabs", "application/yaml", b"a:\n\t- b", 400, "BadRequest"),
        typed("YAML bomb", "application/yaml", bomb.as_bytes(), 400, "BadRequest"),
        typed("two YAML documents", "application/yaml", b"a: 1\n---\nb: 1\n", 400, "BadRequest"),
        typed("YAML that is no UTF-8", "application/yaml", b"a: \xff\xfe", 400, "BadRequest"),
        typed("JSON sent as protobuf", protobuf, b"{\"kind\":\"ConfigMap\"}", 400, "BadRequest"),
        typed("protobuf without a message", protobuf, b"k8s\0", 400, "BadRequest"),
        typed(
            "protobuf with an endless varint",
            protobuf,
            b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            400,
            "BadRequest",
        ),
        typed("protobuf longer than it is", protobuf, b"k8s\0\x0a\x7fabc", 400, "BadRequest"),
        typed("protobuf of no kind", protobuf, b"k8s\0\x12\x02\x0a\x00", 400, "BadRequest"),
    ]
}
