//! Queries and headers that ask for what cannot be had.

use super::case::Case;
use super::{CONFIG_MAPS, DEPLOYMENTS, PODS, pod};

fn list(name: &'static str, query: &str, code: u16, reason: &'static str) -> Case {
    Case::get(name, format!("{PODS}?{query}"), code, reason)
}

fn create(name: &'static str, query: &str, code: u16, reason: &'static str) -> Case {
    Case::new(name, "POST", format!("{PODS}?{query}"), code, reason).json(pod("new"))
}

fn accept(name: &'static str, accept: &str) -> Case {
    Case::get(name, PODS, 406, "NotAcceptable").header("accept", accept)
}

pub(crate) fn cases() -> Vec<Case> {
    let bad = "BadRequest";
    let long = format!("labelSelector=a%3D{}", "v".repeat(64));
    // {"v":"meta.k8s.io/v1","rv":1,"start":"kube-system/x"} and others, as base64.
    let foreign =
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJrdWJlLXN5c3RlbS94In0";
    let zero = "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJkZWZhdWx0L3gifQ";
    let version = "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjkiLCJydiI6MSwic3RhcnQiOiJkZWZhdWx0L3gifQ";
    let deep = format!("continue={}", "W1tb".repeat(2000));
    vec![
        list("selector with three signs", "labelSelector=a%3D%3D%3Db", 400, bad),
        list("selector without a key", "labelSelector=%3Db", 400, bad),
        list("selector with an open set", "labelSelector=a+in+(b", 400, bad),
        list("selector without a set", "labelSelector=a+in+b", 400, bad),
        list("selector with an empty set", "labelSelector=a+in+()", 200, ""),
        list("selector that ends early", "labelSelector=a+notin", 400, bad),
        list("selector of a comma", "labelSelector=,", 400, bad),
        list("selector that goes on", "labelSelector=a%3Db,", 400, bad),
        list("selector with two words", "labelSelector=a%3Db+c", 400, bad),
        list("selector that only denies", "labelSelector=!", 400, bad),
        list("selector with a bad key", "labelSelector=a%2Fb%2Fc", 400, bad),
        list("selector with a bad value", "labelSelector=a%3D-b-", 400, bad),
        list("selector with a long value", &long, 400, bad),
        list("selector with a zero byte", "labelSelector=a%00", 400, bad),
        list("field that cannot be selected", "fieldSelector=spec.image%3Dx", 400, bad),
        list("field without a value", "fieldSelector=metadata.name", 400, bad),
        list("field without a name", "fieldSelector=%3Dx", 400, bad),
        list("limit that is none", "limit=few", 400, bad),
        list("limit beyond 64 bits", "limit=99999999999999999999", 400, bad),
        list("timeout that is none", "watch=1&timeoutSeconds=soon", 400, bad),
        list("token of signs", "continue=!!!", 400, bad),
        list("token of nothing", "continue=e30", 400, bad),
        list("token of another namespace", foreign, 400, bad),
        list("token of version zero", zero, 400, bad),
        list("token of an unknown form", version, 400, bad),
        list("token that is deep", &deep, 400, bad),
        list("token and version", "continue=e30&resourceVersion=5", 400, bad),
        list("list at no version", "resourceVersion=latest", 422, "Invalid"),
        list("list at a negative version", "resourceVersion=-1", 422, "Invalid"),
        list("list from the future", "resourceVersion=999999999", 504, "Timeout"),
        list("match without a version", "resourceVersionMatch=Exact", 422, "Invalid"),
        list("unknown match", "resourceVersion=1&resourceVersionMatch=Near", 422, "Invalid"),
        list("exactly any version", "resourceVersion=0&resourceVersionMatch=Exact", 422, "Invalid"),
        list("initial events of a list", "sendInitialEvents=true", 422, "Invalid"),
        list("initial events without a match", "watch=1&sendInitialEvents=true", 422, "Invalid"),
        list("watch at no version", "watch=1&resourceVersion=latest", 422, "Invalid"),
        list("watch from the future", "watch=1&resourceVersion=999999999", 504, "Timeout"),
        list("watch of a selection that is none", "watch=1&labelSelector=a%3D%3D%3Db", 400, bad),
        list("broken escape", "labelSelector=%zz", 400, bad),
        list("escape that is no text", "labelSelector=%ff", 400, bad),
        create("dry run of an unknown kind", "dryRun=Some", 422, "Invalid"),
        create("unknown validation", "fieldValidation=Loose", 422, "Invalid"),
        create("manager too long", &format!("fieldManager={}", "m".repeat(129)), 422, "Invalid"),
        create("manager that cannot be printed", "fieldManager=%07", 422, "Invalid"),
        Case::get(
            "table of unknown objects",
            format!("{CONFIG_MAPS}?includeObject=Some"),
            400,
            bad,
        )
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
        accept("answer as HTML", "text/html"),
        accept("answer as protobuf only", "application/vnd.kubernetes.protobuf"),
        accept("table of an unknown version", "application/json;as=Table;v=v9;g=meta.k8s.io"),
        accept("answer in no form", ";;;,,,"),
        Case::get("object that is not there", format!("{DEPLOYMENTS}/none"), 404, "NotFound"),
    ]
}
