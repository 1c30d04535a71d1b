//! The kube client, as Rust controllers use it, against the real server.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{
    Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
    WatchEvent, WatchParams,
};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, Config, ResourceExt};
use picokube_tests::picokube::{PATIENCE, Picokube};
use serde_json::{Value, json};

fn client(server: &Picokube) -> Result<Client> {
    let url = format!("http://{}", server.address());
    let mut config = Config::new(url.parse()?);
    config.default_namespace = "default".to_owned();
    Ok(Client::try_from(config)?)
}

/// An object of a kind from JSON.
fn object<K: serde::de::DeserializeOwned>(value: Value) -> Result<K> {
    Ok(serde_json::from_value(value)?)
}

fn config_map(name: &str, value: &str) -> Result<ConfigMap> {
    object(json!({"metadata": {"name": name, "labels": {"app": "test"}}, "data": {"key": value}}))
}

/// The objects of a test; there are others that a cluster has by itself.
const OURS: &str = "app=test";

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

fn pod(name: &str) -> Result<Pod> {
    object(json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    }))
}

/// The code and the reason of a refusal.
fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> Result<(u16, String)> {
    match result {
        Err(kube::Error::Api(status)) => Ok((status.code, status.reason.clone())),
        other => bail!("expected a refusal, got {other:?}"),
    }
}

async fn next<T>(stream: &mut (impl Stream<Item = T> + Unpin)) -> Result<T> {
    let next = tokio::time::timeout(PATIENCE, stream.next()).await;
    next.context("nothing comes")?.context("the stream has ended")
}

#[tokio::test]
async fn objects_go_through_their_lives() -> Result<()> {
    let server = Picokube::server()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
    let created = maps.create(&PostParams::default(), &config_map("c", "1")?).await?;
    ensure!(created.uid().is_some() && created.creation_timestamp().is_some(), "{created:?}");
    let again = maps.create(&PostParams::default(), &config_map("c", "2")?).await;
    assert_eq!(refusal(again)?, (409, "AlreadyExists".to_owned()));
    assert_eq!(maps.get("c").await?, created);
    assert_eq!(maps.get_metadata("c").await?.metadata, created.metadata);
    assert_eq!(maps.get_opt("none").await?, None);

    let mut generated = config_map("", "3")?;
    generated.metadata.name = None;
    generated.metadata.generate_name = Some("made-".to_owned());
    let generated = maps.create(&PostParams::default(), &generated).await?;
    ensure!(generated.name_any().starts_with("made-"), "{generated:?}");

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &config_map("dry", "1")?).await?;
    assert_eq!(maps.get_opt("dry").await?, None);
    maps.delete("c", &DeleteParams::default()).await?;
    assert_eq!(refusal(maps.get("c").await)?, (404, "NotFound".to_owned()));
    let ours = ListParams::default().labels(OURS);
    maps.delete_collection(&DeleteParams::default(), &ours).await?;
    ensure!(maps.list(&ours).await?.items.is_empty(), "some are left");
    Ok(())
}

#[tokio::test]
async fn lists_come_in_pages() -> Result<()> {
    let server = Picokube::server()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
    for number in 0..25 {
        maps.create(&PostParams::default(), &config_map(&format!("c{number:02}"), "1")?).await?;
    }
    let (mut names, mut token, mut versions) = (Vec::new(), None, Vec::new());
    loop {
        let mut parameters = ListParams::default().labels(OURS).limit(10);
        parameters.continue_token = token;
        let page = maps.list(&parameters).await?;
        ensure!(page.items.len() <= 10, "a page of {}", page.items.len());
        names.extend(page.iter().map(ResourceExt::name_any));
        versions.push(page.metadata.resource_version.clone());
        // What is created meanwhile is not part of the snapshot.
        let late = config_map(&format!("c24-late-{}", names.len()), "1")?;
        maps.create(&PostParams::default(), &late).await?;
        token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    let expected: Vec<_> = (0..25).map(|number| format!("c{number:02}")).collect();
    assert_eq!(names, expected);
    versions.dedup();
    assert_eq!(versions.len(), 1, "all pages are of one snapshot: {versions:?}");
    Ok(())
}

#[tokio::test]
async fn writers_with_an_old_version_lose() -> Result<()> {
    let server = Picokube::server()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
    let first = maps.create(&PostParams::default(), &config_map("c", "1")?).await?;
    let mut mine = first.clone();
    mine.data = Some([("key".to_owned(), "mine".to_owned())].into());
    let mut theirs = first.clone();
    theirs.data = Some([("key".to_owned(), "theirs".to_owned())].into());
    let stored = maps.replace("c", &PostParams::default(), &mine).await?;
    ensure!(stored.resource_version() != first.resource_version(), "the version stays");
    let lost = maps.replace("c", &PostParams::default(), &theirs).await;
    assert_eq!(refusal(lost)?, (409, "Conflict".to_owned()));
    let conditional = json!({
        "metadata": {"resourceVersion": first.resource_version()},
        "data": {"key": "theirs"},
    });
    let lost = maps.patch("c", &PatchParams::default(), &Patch::Merge(conditional)).await;
    assert_eq!(refusal(lost)?, (409, "Conflict".to_owned()));
    let old = DeleteParams {
        preconditions: Some(kube::api::Preconditions {
            resource_version: first.resource_version(),
            uid: None,
        }),
        ..DeleteParams::default()
    };
    ensure!(maps.delete("c", &old).await.is_err(), "deleted at an old version");
    assert_eq!(maps.get("c").await?, stored);
    Ok(())
}

#[tokio::test]
async fn each_type_of_patch_merges_in_its_way() -> Result<()> {
    let server = Picokube::server()?;
    let deployments: Api<Deployment> = Api::default_namespaced(client(&server)?);
    deployments.create(&PostParams::default(), &object(deployment())?).await?;
    let images = |deployment: &Deployment| -> Vec<String> {
        let template = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        let containers = template.into_iter().flat_map(|spec| &spec.containers);
        let mut images: Vec<_> = containers.filter_map(|c| c.image.clone()).collect();
        images.sort();
        images
    };
    let sidecar = json!({"spec": {"template": {"spec": {
        "containers": [{"name": "side", "image": "side:1"}],
    }}}});
    let plain = PatchParams::default();
    let patched = deployments.patch("web", &plain, &Patch::Strategic(&sidecar)).await?;
    assert_eq!(images(&patched), ["app:1", "side:1"]);
    let patched = deployments.patch("web", &plain, &Patch::Merge(&sidecar)).await?;
    assert_eq!(images(&patched), ["side:1"]);
    let operations = json!([
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "side:2"},
    ]);
    let operations = Patch::Json::<()>(serde_json::from_value(operations)?);
    let patched = deployments.patch("web", &plain, &operations).await?;
    assert_eq!(images(&patched), ["side:2"]);
    let fails = json!([{"op": "test", "path": "/spec/replicas", "value": 7}]);
    let fails = Patch::Json::<()>(serde_json::from_value(fails)?);
    assert_eq!(refusal(deployments.patch("web", &plain, &fails).await)?.0, 422);

    // Spec and status have doors of their own.
    let both = json!({"spec": {"replicas": 9}, "status": {"replicas": 5, "observedGeneration": 1}});
    let patched = deployments.patch_status("web", &plain, &Patch::Merge(&both)).await?;
    assert_eq!(patched.spec.and_then(|spec| spec.replicas), Some(2));
    assert_eq!(patched.status.and_then(|status| status.replicas), Some(5));
    let scale = deployments.get_scale("web").await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
    let more = json!({"spec": {"replicas": 4}});
    deployments.patch_scale("web", &plain, &Patch::Merge(&more)).await?;
    let scaled = deployments.get("web").await?;
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(4));
    deployments.restart("web").await?;
    Ok(())
}

#[tokio::test]
async fn server_side_apply_keeps_owners_apart() -> Result<()> {
    let server = Picokube::server()?;
    let deployments: Api<Deployment> = Api::default_namespaced(client(&server)?);
    let apply = |manager: &'static str, force: bool, value: Value| {
        let deployments = deployments.clone();
        async move {
            let mut parameters = PatchParams::apply(manager);
            parameters.force = force;
            deployments.patch("web", &parameters, &Patch::Apply(value)).await
        }
    };
    let replicas = |deployment: &Deployment| deployment.spec.as_ref().and_then(|s| s.replicas);
    apply("owner", false, deployment()).await?;
    let scaler = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}});
    let lost = apply("scaler", false, scaler.clone()).await;
    let Err(kube::Error::Api(status)) = &lost else { bail!("expected a conflict: {lost:?}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let causes = status.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!(causes[0].field, ".spec.replicas");
    assert_eq!(causes[0].reason, "FieldManagerConflict");

    let forced = apply("scaler", true, scaler).await?;
    assert_eq!(replicas(&forced), Some(5));
    // The owner lets go of the field by not naming it any more; the scaler's value stays.
    let mut without = deployment();
    without["spec"].as_object_mut().context("no spec")?.remove("replicas");
    without["metadata"]["labels"] = json!({"tier": "frontend"});
    let kept = apply("owner", false, without.clone()).await?;
    assert_eq!(replicas(&kept), Some(5));
    without["metadata"]["labels"] = json!({});
    let removed = apply("owner", false, without).await?;
    ensure!(!removed.labels().contains_key("tier"), "what nobody names has to go: {removed:?}");
    let managers: Vec<_> = removed.managed_fields().iter().map(|f| f.manager.clone()).collect();
    ensure!(managers.contains(&Some("owner".into())), "{managers:?}");
    ensure!(managers.contains(&Some("scaler".into())), "{managers:?}");
    Ok(())
}

#[tokio::test]
async fn a_watcher_sees_every_change_in_order() -> Result<()> {
    let server = Picokube::server()?;
    let client = client(&server)?;
    for streaming in [false, true] {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.create(&PostParams::default(), &config_map("before", "0")?).await?;
        let mut config = watcher::Config::default().labels(OURS);
        if streaming {
            config = config.streaming_lists();
        }
        let mut events = std::pin::pin!(watcher(maps.clone(), config));
        let init = next(&mut events).await??;
        ensure!(matches!(init, watcher::Event::Init), "{init:?}");
        let listed = next(&mut events).await??;
        ensure!(
            matches!(&listed, watcher::Event::InitApply(c) if c.name_any() == "before"),
            "{listed:?}"
        );
        let done = next(&mut events).await??;
        ensure!(matches!(done, watcher::Event::InitDone), "{done:?}");

        maps.create(&PostParams::default(), &config_map("c", "0")?).await?;
        for number in 1..=5 {
            let change = json!({"data": {"key": number.to_string()}});
            maps.patch("c", &PatchParams::default(), &Patch::Merge(change)).await?;
        }
        maps.delete("c", &DeleteParams::default()).await?;
        let (mut seen, mut last) = (Vec::new(), 0);
        loop {
            let event = next(&mut events).await??;
            let (word, map) = match event {
                watcher::Event::Apply(map) => ("apply", map),
                watcher::Event::Delete(map) => ("delete", map),
                other => bail!("the watch began anew: {other:?}"),
            };
            let version: u64 = map.resource_version().unwrap_or_default().parse()?;
            ensure!(version > last, "{version} after {last}");
            last = version;
            let value = map.data.and_then(|data| data.get("key").cloned()).unwrap_or_default();
            seen.push(format!("{word} {value}"));
            if word == "delete" {
                break;
            }
        }
        let expected =
            ["apply 0", "apply 1", "apply 2", "apply 3", "apply 4", "apply 5", "delete 5"];
        assert_eq!(seen, expected);
        maps.delete("before", &DeleteParams::default()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_selection_is_entered_and_left() -> Result<()> {
    let server = Picokube::server()?;
    let pods: Api<Pod> = Api::default_namespaced(client(&server)?);
    let created = pods.create(&PostParams::default(), &pod("a")?).await?;
    let version = created.resource_version().context("no version")?;
    let parameters = WatchParams::default().labels("stage=live").timeout(60);
    let mut events = pods.watch(&parameters, &version).await?.boxed();
    for stage in [json!("live"), json!("dead"), json!("live")] {
        let label = json!({"metadata": {"labels": {"stage": stage}}});
        pods.patch("a", &PatchParams::default(), &Patch::Merge(label)).await?;
    }
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match next(&mut events).await?? {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => bail!("{error:?}"),
        });
    }
    assert_eq!(seen, ["added", "deleted", "added"]);
    Ok(())
}

#[tokio::test]
async fn a_reflector_has_what_the_server_has() -> Result<()> {
    let server = Picokube::server()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
    for number in 0..20 {
        maps.create(&PostParams::default(), &config_map(&format!("c{number}"), "1")?).await?;
    }
    let (store, writer) = reflector::store();
    let ours = watcher::Config::default().labels(OURS).page_size(7);
    let stream = reflector(writer, watcher(maps.clone(), ours));
    let feeding = tokio::spawn(stream.default_backoff().applied_objects().for_each(|_| async {}));
    tokio::time::timeout(PATIENCE, store.wait_until_ready()).await??;
    assert_eq!(store.len(), 20);
    for number in 0..10 {
        maps.delete(&format!("c{number}"), &DeleteParams::default()).await?;
    }
    let change = json!({"data": {"key": "changed"}});
    maps.patch("c19", &PatchParams::default(), &Patch::Merge(change)).await?;
    maps.create(&PostParams::default(), &config_map("last", "1")?).await?;
    let last = ObjectRef::new("last").within("default");
    tokio::time::timeout(PATIENCE, async {
        while store.get(&last).is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await?;
    let mut mirrored: Vec<ConfigMap> = store.state().iter().map(|map| (**map).clone()).collect();
    let mut stored = maps.list(&ListParams::default().labels(OURS)).await?.items;
    mirrored.sort_by_key(ResourceExt::name_any);
    stored.sort_by_key(ResourceExt::name_any);
    assert_eq!(mirrored, stored);
    feeding.abort();
    Ok(())
}

#[tokio::test]
async fn an_eviction_ends_a_running_pod() -> Result<()> {
    let server = Picokube::with_nodes(1)?;
    let client = client(&server)?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nodes: Api<Node> = Api::all(client);
    let created = pods.create(&PostParams::default(), &pod("a")?).await?;
    let running = await_condition(pods.clone(), "a", conditions::is_pod_running());
    tokio::time::timeout(PATIENCE, running).await??;
    let bound = pods.get("a").await?.spec.and_then(|spec| spec.node_name).unwrap_or_default();
    ensure!(nodes.get_opt(&bound).await?.is_some(), "no node {bound:?}");
    let status = pods.evict("a", &EvictParams::default()).await?;
    ensure!(status.is_success(), "{status:?}");
    let uid = created.uid().context("no uid")?;
    let gone = await_condition(pods.clone(), "a", conditions::is_deleted(&uid));
    tokio::time::timeout(PATIENCE, gone).await??;
    let none = pods.evict("a", &EvictParams::default()).await;
    assert_eq!(refusal(none)?, (404, "NotFound".to_owned()));
    Ok(())
}

#[tokio::test]
async fn owners_take_their_dependents_along() -> Result<()> {
    let server = Picokube::server()?;
    let client = client(&server)?;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let sets: Api<ReplicaSet> = Api::default_namespaced(client);
    for policy in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let owner = deployments.create(&PostParams::default(), &object(deployment())?).await?;
        let mut set: ReplicaSet = object(json!({
            "metadata": {"name": "web-1"},
            "spec": {"selector": deployment()["spec"]["selector"],
                "template": deployment()["spec"]["template"]},
        }))?;
        let reference = kube::Resource::controller_owner_ref(&owner, &());
        set.metadata.owner_references = reference.map(|reference| vec![reference]);
        let set = sets.create(&PostParams::default(), &set).await?;
        let parameters =
            DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        deployments.delete("web", &parameters).await?;
        for (uid, is_set) in [(set.uid(), true), (owner.uid(), false)] {
            let uid = uid.context("no uid")?;
            if is_set {
                let gone = await_condition(sets.clone(), "web-1", conditions::is_deleted(&uid));
                tokio::time::timeout(PATIENCE, gone).await??;
            } else {
                let gone =
                    await_condition(deployments.clone(), "web", conditions::is_deleted(&uid));
                tokio::time::timeout(PATIENCE, gone).await??;
            }
        }
    }
    Ok(())
}
