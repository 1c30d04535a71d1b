//! What the controllers ask for and what `deploy/rbac.yaml` grants are the same.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use picokube::controllers::{self, Capacity, Credentials, Endpoint};
use picokube::http::{AcceptedHosts, Access, Cluster, Limits, SharedServer, serve};
use picokube::server::request::Request;
use picokube::store::HistoryLimits;
use picokube_core::leader_election::LeaderElection;
use picokube_core::manager::Settings;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Nothing takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// A verb on a resource.
type Permission = (String, String, String);

const NAMESPACE: &str = "/apis/apps/v1/namespaces/default";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn manifest(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name);
    let text = std::fs::read_to_string(&path).expect("the manifest is there");
    text.split("\n---\n").map(|part| serde_saphyr::from_str(part).expect("YAML")).collect()
}

fn rules(documents: &[Value]) -> &Value {
    let roles = ["Role", "ClusterRole"];
    let mut documents = documents.iter();
    let role = documents.find(|document| roles.iter().any(|kind| document["kind"] == *kind));
    &role.expect("a role")["rules"]
}

fn granted(rules: &Value) -> BTreeSet<Permission> {
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().expect("a list").iter();
        words.map(|word| word.as_str().expect("a word").to_owned()).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in rules.as_array().expect("rules") {
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                for verb in words(&rule["verbs"]) {
                    granted.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    granted
}

/// A cluster in this process. What is asked here is not counted as a request.
struct Site {
    shared: Arc<SharedServer>,
}

impl Site {
    async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let media_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::new(method.clone(), path).with_body(media_type, body.to_string());
        let answer = self.shared.answer(request).await;
        let status = answer.status;
        let value = answer.into_value();
        assert!(status < 300, "{method} {path}: {value}");
        value
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, Value::Null).await
    }

    /// Looks at an object until it is as it should be.
    async fn wait(&self, path: &str, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let seen = self.get(path).await;
            if condition(&seen) {
                return seen;
            }
            assert!(Instant::now() < give_up, "waited in vain until {what}: {seen:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn wait_for_rollout(&self) {
        self.wait(&format!("{NAMESPACE}/deployments/web"), "it is rolled out", |deployment| {
            let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
            status["observedGeneration"] == deployment["metadata"]["generation"]
                && ["replicas", "updatedReplicas", "availableReplicas"]
                    .iter()
                    .all(|count| status[count] == *wanted)
        })
        .await;
    }

    /// Waits until all pods of the StatefulSet are of its latest template and ready.
    async fn wait_for_stateful_set(&self) {
        self.wait(&format!("{NAMESPACE}/statefulsets/db"), "it is rolled out", |set| {
            let (status, wanted) = (&set["status"], &set["spec"]["replicas"]);
            status["observedGeneration"] == set["metadata"]["generation"]
                && status["currentRevision"] == status["updateRevision"]
                && ["replicas", "updatedReplicas", "availableReplicas"]
                    .iter()
                    .all(|count| status[count] == *wanted)
        })
        .await;
    }

    /// Deletes an object without what it owns, and waits until it is gone.
    async fn orphan(&self, collection: &str, name: &str) {
        let options = json!({"propagationPolicy": "Orphan"});
        self.ask(Method::DELETE, &format!("{collection}/{name}"), options).await;
        self.wait(collection, "it is gone", |all| {
            all["items"].as_array().is_none_or(Vec::is_empty)
        })
        .await;
    }

    /// What was asked over connections.
    fn used(&self) -> BTreeSet<Permission> {
        let counts = self.shared.request_counts();
        let resources = counts.keys().filter(|(subject, _)| !subject.resource.is_empty());
        let permission = resources.map(|(subject, _)| {
            let resource = match subject.subresource {
                "" => subject.resource.to_owned(),
                subresource => format!("{}/{subresource}", subject.resource),
            };
            (subject.group.to_owned(), resource, subject.verb.to_owned())
        });
        permission.collect()
    }
}

/// Does everything for which the StatefulSet controller needs something.
async fn use_stateful_sets(site: &Site) {
    let sets = format!("{NAMESPACE}/statefulsets");
    let set = format!("{sets}/db");
    let template = |image: &str| {
        json!({
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "app", "image": image}]},
        })
    };
    let claim =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let wanted = json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2,
            "revisionHistoryLimit": 1,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template("app:1"),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
            // Claims change hands.
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        },
    });
    site.ask(Method::POST, &sets, wanted.clone()).await;
    site.wait_for_stateful_set().await;
    // Rollouts and a rollback: pods go, revisions come, go, and get another number.
    let revisions = format!("{NAMESPACE}/controllerrevisions");
    for image in ["app:2", "app:3", "app:2"] {
        site.ask(Method::PATCH, &set, json!({"spec": {"template": template(image)}})).await;
        site.wait_for_stateful_set().await;
        site.wait(&revisions, "history was cleaned up", |revisions| {
            revisions["items"].as_array().is_some_and(|revisions| revisions.len() == 2)
        })
        .await;
    }
    // A pod is told apart by its labels again.
    let (pod, label) = (format!("{PODS}/db-0"), "statefulset.kubernetes.io/pod-name");
    site.ask(Method::PATCH, &pod, json!({"metadata": {"labels": {label: null}}})).await;
    site.wait(&pod, "it has its label", |pod| pod["metadata"]["labels"][label] == "db-0").await;
    // Pods and revisions are left behind and adopted.
    site.orphan(&sets, "db").await;
    site.ask(Method::POST, &sets, wanted).await;
    site.wait_for_stateful_set().await;
}

/// Does everything for which controllers need something.
async fn use_everything(site: &Site) {
    let deployment = format!("{NAMESPACE}/deployments/web");
    let template = |image: &str| {
        json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": image}]},
        })
    };
    let wanted = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template("app:1"),
        },
    });
    site.ask(Method::POST, &format!("{NAMESPACE}/deployments"), wanted.clone()).await;
    site.wait_for_rollout().await;
    // Rollouts: pods go, and old ReplicaSets.
    for image in ["app:2", "app:3"] {
        let patch = json!({"spec": {"template": template(image)}});
        site.ask(Method::PATCH, &deployment, patch).await;
        site.wait_for_rollout().await;
    }
    let sets = format!("{NAMESPACE}/replicasets");
    site.wait(&sets, "history was cleaned up", |sets| {
        sets["items"].as_array().is_some_and(|sets| sets.len() == 2)
    })
    .await;
    // A rollback, in the way of extensions/v1beta1.
    let rollback = json!({"deprecated.deployment.rollback.to": "0"});
    site.ask(Method::PATCH, &deployment, json!({"metadata": {"annotations": rollback}})).await;
    site.wait(&deployment, "it was rolled back", |deployment| {
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"
            && deployment["metadata"]["annotations"]["deprecated.deployment.rollback.to"].is_null()
    })
    .await;
    site.wait_for_rollout().await;
    // A pod is released and adopted again.
    let pods = site.get(&format!("{PODS}?labelSelector=app%3Dweb")).await;
    let pod = pods["items"][0]["metadata"]["name"].as_str().expect("a pod").to_owned();
    let pod = format!("{PODS}/{pod}");
    for (app, owners) in [("none", 0), ("web", 1)] {
        let labels = json!({"metadata": {"labels": {"app": app}}});
        site.ask(Method::PATCH, &pod, labels).await;
        site.wait(&pod, "its owner has changed", |pod| {
            pod["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len) == owners
        })
        .await;
    }
    site.wait_for_rollout().await;
    // ReplicaSets are left behind and adopted.
    let deployments = format!("{NAMESPACE}/deployments");
    site.orphan(&deployments, "web").await;
    site.ask(Method::POST, &deployments, wanted).await;
    site.wait_for_rollout().await;
    // A ReplicationController adopts a pod, which it looks at itself for first.
    let pod = json!({
        "metadata": {"name": "old", "labels": {"app": "old"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    site.ask(Method::POST, PODS, pod).await;
    let controllers = "/api/v1/namespaces/default/replicationcontrollers";
    let controller = json!({
        "metadata": {"name": "old"},
        "spec": {"replicas": 2, "selector": {"app": "old"}, "template": {
            "metadata": {"labels": {"app": "old"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        }},
    });
    site.ask(Method::POST, controllers, controller).await;
    site.wait(&format!("{controllers}/old"), "its pods are available", |controller| {
        controller["status"]["availableReplicas"] == 2
    })
    .await;
    use_stateful_sets(site).await;
    // So many similar events that they are counted in one.
    for replicas in (1..=3).cycle().take(15) {
        site.ask(Method::PATCH, &deployment, json!({"spec": {"replicas": replicas}})).await;
        site.wait_for_rollout().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_granted_is_what_is_used() {
    let cluster = Cluster::start(HistoryLimits::default(), None).expect("a cluster");
    cluster.start_nodes(2);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (_stop, stopping) = watch::channel(false);
    let shared = cluster.shared().clone();
    let access = Access::Open(AcceptedHosts::default());
    let limits = Limits::default();
    tokio::spawn(serve(listener, None, access, shared, limits, Arc::default(), stopping));
    let endpoint = Endpoint::new(&url, None, &Credentials::default()).expect("an endpoint");
    let leader_election = Some(LeaderElection { identity: "me", ..LeaderElection::DEFAULT });
    let settings = Settings { rate: None, leader_election, ..Settings::DEFAULT };
    let capacity = Capacity::Tiny;
    controllers::start(controllers::Options { endpoint, capacity, settings }).expect("a start");
    let site = Site { shared: cluster.shared().clone() };
    use_everything(&site).await;

    let documents = manifest("rbac.yaml");
    let mut granted = granted(rules(&documents));
    // Needed by an admission plugin, without a request.
    for (group, resource) in [
        ("apps", "deployments/finalizers"),
        ("apps", "replicasets/finalizers"),
        ("apps", "statefulsets/finalizers"),
        ("", "replicationcontrollers/finalizers"),
        ("", "pods/finalizers"),
    ] {
        let permission = (group.to_owned(), resource.to_owned(), "update".to_owned());
        assert!(granted.remove(&permission), "{resource}");
    }
    // The last event may still be under way.
    let give_up = Instant::now() + PATIENCE;
    while site.used() != granted && Instant::now() < give_up {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let used = site.used();
    let missing: Vec<_> = used.difference(&granted).collect();
    let needless: Vec<_> = granted.difference(&used).collect();
    assert!(missing.is_empty(), "asked for and not granted: {missing:?}");
    assert!(needless.is_empty(), "granted and never asked for: {needless:?}");
}

#[test]
fn one_namespace_grants_the_same() {
    let (all, one) = (manifest("rbac.yaml"), manifest("rbac-one-namespace.yaml"));
    assert_eq!(rules(&all), rules(&one));
    let kinds = |documents: &[Value]| -> Vec<String> {
        documents.iter().map(|d| d["kind"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(kinds(&all), ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);
    assert_eq!(kinds(&one), ["ServiceAccount", "Role", "RoleBinding"]);
}
