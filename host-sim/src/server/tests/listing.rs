//! Lists: pages, snapshots and versions.

use super::*;

fn with_pods(count: usize) -> Cluster {
    let mut cluster = Cluster::with_history(HistoryLimits { changes: 30, bytes: 1 << 20 });
    for index in 0..count {
        cluster.make(PODS, pod(&format!("pod-{index:02}")));
    }
    cluster
}

fn token(list: &Value) -> String {
    list["metadata"]["continue"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn pages_belong_to_one_snapshot() {
    let mut cluster = with_pods(10);
    let (_, first) = cluster.get(&format!("{PODS}?limit=4"));
    assert_eq!(first["metadata"]["remainingItemCount"], 6);
    cluster.delete(&format!("{PODS}/pod-05"), json!({}));
    cluster.make(PODS, pod("pod-055"));
    cluster.merge(&format!("{PODS}/pod-06"), json!({"metadata": {"labels": {"new": "1"}}}));
    let (_, second) = cluster.get(&format!("{PODS}?limit=4&continue={}", token(&first)));
    let names: Vec<&str> = second["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["pod-04", "pod-05", "pod-06", "pod-07"]);
    assert!(second["items"][2]["metadata"]["labels"]["new"].is_null());
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let (_, third) = cluster.get(&format!("{PODS}?limit=4&continue={}", token(&second)));
    assert_eq!(third["items"].as_array().map(Vec::len), Some(2));
    assert!(third["metadata"]["continue"].is_null());
}

#[test]
fn an_expired_page_offers_to_go_on_inconsistently() {
    let mut cluster = with_pods(10);
    let (_, first) = cluster.get(&format!("{PODS}?limit=4"));
    for round in 0..40 {
        cluster.merge(
            &format!("{PODS}/pod-09"),
            json!({"metadata": {"labels": {"r": round.to_string()}}}),
        );
    }
    let (status, error) = cluster.get(&format!("{PODS}?limit=4&continue={}", token(&first)));
    assert_eq!((status, error["reason"].as_str()), (410, Some("Expired")));
    let (status, rest) = cluster.get(&format!("{PODS}?continue={}", token(&error)));
    assert_eq!((status, rest["items"].as_array().map(Vec::len)), (200, Some(6)));
}

#[test]
fn a_version_can_be_asked_for_exactly() {
    let mut cluster = with_pods(3);
    let before = cluster.server.store().revision();
    cluster.make(PODS, pod("late"));
    let exact = format!("{PODS}?resourceVersion={before}&resourceVersionMatch=Exact");
    assert_eq!(cluster.names(&exact).len(), 3);
    let newer = format!("{PODS}?resourceVersion={before}&resourceVersionMatch=NotOlderThan");
    assert_eq!(cluster.names(&newer).len(), 4);
    assert_eq!(cluster.names(&format!("{PODS}?resourceVersion=0")).len(), 4);
    cluster.server.store_mut().compact(before + 1);
    assert_eq!(cluster.get(&exact).0, 410);
}

#[test]
fn versions_and_tokens_that_make_no_sense_are_refused() {
    let mut cluster = with_pods(3);
    let (_, list) = cluster.get(&format!("{PODS}?limit=1"));
    let page = token(&list);
    for (query, code) in [
        ("resourceVersionMatch=Exact".to_owned(), 422),
        ("resourceVersion=0&resourceVersionMatch=Exact".to_owned(), 422),
        (format!("continue={page}&resourceVersion=5&resourceVersionMatch=NotOlderThan"), 422),
        (format!("continue={page}&resourceVersion=5"), 400),
        ("continue=rubbish".to_owned(), 400),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(), 422),
        ("resourceVersion=1000000".to_owned(), 504),
        ("labelSelector=a%3D%3D%3Db".to_owned(), 400),
        ("fieldSelector=spec.nonsense%3D1".to_owned(), 400),
    ] {
        let (status, error) = cluster.get(&format!("{PODS}?{query}"));
        assert_eq!(status, code, "{query}: {error}");
    }
    let (_, error) = cluster.get(&format!("{PODS}?resourceVersion=1000000"));
    assert_eq!(error["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[test]
fn selectors_choose() {
    let mut cluster = with_pods(2);
    let mut other = pod("other");
    other["metadata"]["labels"] = json!({"app": "db"});
    cluster.make(PODS, other);
    assert_eq!(cluster.names(&format!("{PODS}?labelSelector=app%3Ddb")), ["other"]);
    assert_eq!(cluster.names(&format!("{PODS}?labelSelector=app+in+(web)&limit=1")), ["pod-00"]);
    assert_eq!(cluster.names(&format!("{PODS}?fieldSelector=metadata.name%3Dpod-01")), ["pod-01"]);
    assert_eq!(cluster.names("/api/v1/pods?fieldSelector=status.phase%3DPending").len(), 3);
    assert_eq!(cluster.names("/api/v1/pods?fieldSelector=spec.nodeName%3Dn").len(), 0);
    let (_, page) = cluster.get(&format!("{PODS}?labelSelector=app%3Dweb&limit=1"));
    assert!(!token(&page).is_empty() && page["metadata"]["remainingItemCount"].is_null());
}

#[test]
fn tables_and_metadata_are_other_forms_of_the_same_list() {
    let mut cluster = with_pods(2);
    let mut request = Request::new(Method::GET, PODS);
    request.accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json".to_owned();
    let (_, table) = cluster.send(&request);
    assert_eq!(
        (&table["kind"], &table["rows"][1]["cells"][0]),
        (&json!("Table"), &json!("pod-01"))
    );
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    request.accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io".to_owned();
    let (_, list) = cluster.send(&request);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert!(list["items"][0]["spec"].is_null());
    request.accept = "application/vnd.kubernetes.protobuf".to_owned();
    assert_eq!(cluster.send(&request).0, 406);
}

/// The parts of a list are what is stored, byte for byte, and no chunk holds much of it: the list is
/// neither serialised again nor built as a whole.
#[test]
fn a_list_is_streamed_from_what_is_stored() {
    let mut cluster = Cluster::new();
    let mut large = config_map("x");
    large["data"]["text"] = json!("y".repeat(10_000));
    for index in 0..50 {
        large["metadata"]["name"] = json!(format!("c-{index:02}"));
        cluster.make(CONFIG_MAPS, large.clone());
    }
    let response = cluster.server.handle(cluster.now, &Request::new(Method::GET, CONFIG_MAPS));
    let Body::List(mut list) = response.body else { panic!("it is not streamed") };
    let chunks: Vec<_> = std::iter::from_fn(|| list.next_chunk()).collect();
    assert!(chunks.len() > 5, "{} chunks", chunks.len());
    let id = cluster.server.resources.id_of(kind::find("", "v1", "configmaps").unwrap()).unwrap();
    let stored: Vec<_> = cluster.server.store().resource(id).range("", None).cloned().collect();
    let longest = stored.iter().map(|entry| entry.json.len()).max().unwrap();
    let bound = crate::server::response::CHUNK_BYTES + longest + 1;
    assert!(chunks.iter().all(|chunk| chunk.len() <= bound));
    let whole = String::from_utf8(chunks.concat()).unwrap();
    let items = stored.iter().map(|entry| std::str::from_utf8(&entry.json).unwrap());
    let items = items.collect::<Vec<_>>().join(",");
    assert!(whole.ends_with(&format!("\"items\":[{items}]}}\n")));
}
