//! Measures what a cached pod, ReplicaSet and Deployment cost: record, indices, names, label
//! sets, selectors, and the share of owners and namespaces. One line per kind, for tools.
//!
//! The cluster is typical: names of 40 characters, three labels, a selector of one label, two
//! annotations, three ReplicaSets to a Deployment, ten pods to a ReplicaSet, eight nodes, four
//! namespaces. Sizes of records are the same on 32-bit targets: the core asserts them when it is
//! compiled.

use picokube_core::expect::Expected;
use picokube_core::queue::Item;
use picokube_core::store::{Applied, Cache, Deployment, Group, Pod, ReplicaSet, TableMemory};
use picokube_core::text::{Cell, Fingerprint};
use picokube_core::wire::{self, ControllerRef, Meta, OwnerKind, ResourceVersion, Uid};

const DEPLOYMENTS: usize = 40;
const SETS_EACH: usize = 3;
const PODS_EACH: usize = 10;
const NAME: usize = 40;

type Memory = picokube_core::resources! {
    pods: DEPLOYMENTS * SETS_EACH * PODS_EACH,
    replica_sets: DEPLOYMENTS * SETS_EACH,
    deployments: DEPLOYMENTS,
    groups: 1000,
    texts: 4000,
};

fn main() {
    // Each kind is measured with its own names 40 long: those of the others follow from them.
    let [_, _, pods] = measure(NAME - 1 - 5 - 1 - 10);
    let [_, replica_sets, _] = measure(NAME - 1 - 10);
    let [deployments, _, _] = measure(NAME);
    let queue = size_of::<Item>();
    let replica_set_state = queue + size_of::<Expected>();
    pods.print("pod", TableMemory::<Pod, 1>::PER_OBJECT, 0);
    replica_sets.print("replicaset", TableMemory::<ReplicaSet, 1>::PER_OBJECT, replica_set_state);
    deployments.print("deployment", TableMemory::<Deployment, 1>::PER_OBJECT, queue);
}

/// What objects of a kind took beside their entries.
struct Share {
    objects: usize,
    texts: usize,
    groups: usize,
}

impl Share {
    fn print(&self, kind: &str, entry: usize, control: usize) {
        let per = |bytes: usize| bytes.div_ceil(self.objects);
        let (texts, groups) = (per(self.texts), per(self.groups));
        let bytes = entry + texts + groups;
        println!(
            "kind={kind} bytes={bytes} entry={entry} texts={texts} groups={groups} \
             control={control}"
        );
    }
}

/// Fills a cache kind by kind: Deployments, ReplicaSets, pods.
fn measure(deployment_name: usize) -> [Share; 3] {
    let mut memory = Box::new(Memory::new());
    let mut cache = memory.parts().cache;
    let names: Vec<String> = (0..DEPLOYMENTS)
        .map(|number| format!("{number:0>8}-payments-gateway-frontend-for-edge-sites"))
        .map(|name| name[..deployment_name].trim_end_matches('-').to_owned())
        .map(|name| format!("{name:x<deployment_name$}"))
        .collect();
    let mut uid = 0;
    let deployments = share(&mut cache, DEPLOYMENTS, |cache| {
        for (number, name) in names.iter().enumerate() {
            let mut d = wire::Deployment {
                meta: meta(&mut uid, number, name, None, None),
                ..wire::Deployment::default()
            };
            d.selector.match_label(Fingerprint::of("app"), Fingerprint::of(name));
            annotate(&mut d.annotations, name);
            stored(cache.apply(&d));
        }
    });
    let replica_sets = share(&mut cache, DEPLOYMENTS * SETS_EACH, |cache| {
        for (number, name) in names.iter().enumerate() {
            for set in 0..SETS_EACH {
                let (hash, rs_name) = rs_name(name, number, set);
                let owner = (OwnerKind::Deployment, name.as_str(), number as u64 + 1);
                let labels = Some((name.as_str(), hash.as_str()));
                let mut rs = wire::ReplicaSet {
                    meta: meta(&mut uid, number, &rs_name, labels, Some(owner)),
                    ..wire::ReplicaSet::default()
                };
                rs.template_labels = rs.meta.labels.clone();
                let value = Fingerprint::of(name);
                rs.selector.match_label(Fingerprint::of("app"), value);
                let (key, value) = (Fingerprint::of("pod-template-hash"), Fingerprint::of(&hash));
                rs.selector.match_label(key, value);
                annotate(&mut rs.annotations, name);
                stored(cache.apply(&rs));
            }
        }
    });
    let pods = share(&mut cache, DEPLOYMENTS * SETS_EACH * PODS_EACH, |cache| {
        for (number, name) in names.iter().enumerate() {
            for set in 0..SETS_EACH {
                let (hash, rs_name) = rs_name(name, number, set);
                let rs_uid = (DEPLOYMENTS + number * SETS_EACH + set) as u64 + 1;
                for pod in 0..PODS_EACH {
                    let owner = (OwnerKind::ReplicaSet, rs_name.as_str(), rs_uid);
                    let labels = Some((name.as_str(), hash.as_str()));
                    let pod_name = format!("{rs_name}-{pod:b<5}");
                    let mut object = wire::Pod {
                        meta: meta(&mut uid, number, &pod_name, labels, Some(owner)),
                        ..wire::Pod::default()
                    };
                    let node = format!("gateway-node-{}.edge.example.net", uid % 8);
                    object.node = node.as_str().try_into().expect("a short name");
                    stored(cache.apply(&object));
                }
            }
        }
    });
    [deployments, replica_sets, pods]
}

fn share(cache: &mut Cache<'_>, objects: usize, fill: impl FnOnce(&mut Cache<'_>)) -> Share {
    let (texts, groups) = (cache.texts.used(), cache.groups.used());
    fill(cache);
    Share {
        objects,
        texts: (cache.texts.used() - texts) * size_of::<Cell>(),
        groups: (cache.groups.used() - groups) * size_of::<Group>(),
    }
}

fn rs_name(deployment: &str, number: usize, set: usize) -> (String, String) {
    let hash = format!("{:0>10}", (number * SETS_EACH + set) * 7_919_777 % 1_000_000_007);
    let name = format!("{deployment}-{hash}");
    (hash, name)
}

fn meta(
    uid: &mut u64,
    namespace: usize,
    name: &str,
    labels: Option<(&str, &str)>,
    owner: Option<(OwnerKind, &str, u64)>,
) -> Meta {
    *uid += 1;
    let mut meta = Meta {
        namespace: format!("team-{}", namespace % 4).as_str().try_into().expect("a short name"),
        name: name.try_into().expect("a short name"),
        uid: number_as_uid(*uid),
        resource_version: ResourceVersion::new(*uid),
        ..Meta::default()
    };
    if let Some((app, hash)) = labels {
        meta.labels.insert_text("app", app);
        meta.labels.insert_text("app.kubernetes.io/managed-by", "Helm");
        meta.labels.insert_text("pod-template-hash", hash);
    }
    meta.controller = owner.map(|(kind, name, number)| ControllerRef {
        kind,
        name: name.try_into().expect("a short name"),
        uid: number_as_uid(number),
    });
    meta
}

fn annotate(annotations: &mut wire::SharedAnnotations, name: &str) {
    for key in ["description", "contact"] {
        let print = Fingerprint::of(&format!("{key}={name}"));
        annotations.prints.push(print).expect("two annotations");
    }
}

fn number_as_uid(number: u64) -> Uid {
    Uid::from_bytes(u128::from(number).to_be_bytes())
}

fn stored(applied: Applied) {
    assert!(matches!(applied, Applied::Changed(_)), "{applied:?}");
}
