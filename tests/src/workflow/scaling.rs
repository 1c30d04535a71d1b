//! Scaling by hand, and as an autoscaler does it.

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

use crate::lab::{Lab, deployment, is_observed, number};
use crate::picokube::Picokube;

use super::Web;

/// A Deployment is scaled in the middle of a rollout: both ReplicaSets grow in proportion.
pub fn a_rollout_is_scaled_in_proportion(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "scale-rollout", 10)?;
    web.set_image("app:bad")?;
    // 25% of 10: three more, two fewer.
    web.lab.wait("the rollout is stuck half-way", || {
        Ok(web.replicas_of("app:1")? == Some(8) && web.replicas_of("app:bad")? == Some(5))
    })?;
    let is_stuck =
        |object: &Value| is_observed(object) && number(&object["status"]["replicas"]) == 13;
    web.lab.wait_for("deployments/web", "13 pods are counted", is_stuck)?;
    web.kubectl.ok(&["scale", "deployment/web", "--replicas=15"])?;
    // 15 and 4 more make 19: 8 of 13 grow by 4 (3.69, rounded), 5 of 13 by the 2 that are left.
    web.lab.wait("both have grown", || {
        let both = (web.replicas_of("app:1")?, web.replicas_of("app:bad")?);
        ensure!(both.0 >= Some(8) && both.1 >= Some(5), "neither may shrink: {both:?}");
        Ok(both == (Some(12), Some(7)))
    })?;
    web.kubectl.ok(&["rollout", "undo", "deployment/web"])?;
    web.rolled_out()?;
    assert_eq!(web.images()?, ["app:1"; 15]);
    Ok(())
}

/// An autoscaler reads and writes the scale subresource, and reads the selector to find the pods.
pub fn an_autoscaler_scales(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "scale-auto", 2)?;
    let lab = &web.lab;
    let is_at = |wanted: i64| {
        move |scale: &Value| {
            number(&scale["spec"]["replicas"]) == wanted
                && number(&scale["status"]["replicas"]) == wanted
        }
    };
    let mut scale = lab.wait_for("deployments/web/scale", "it is at 2", is_at(2))?;
    assert_eq!(scale["apiVersion"], "autoscaling/v1");
    assert_eq!(scale["status"]["selector"], "app=web");
    // The horizontal pod autoscaler writes the whole Scale with a version.
    scale["spec"]["replicas"] = json!(5);
    lab.ask("PUT", "deployments/web/scale", &scale)?;
    let refused = lab.send("PUT", "deployments/web/scale", &scale)?;
    assert_eq!(refused.status, 409, "an old version: {}", refused.text());
    lab.wait_for("deployments/web/scale", "it is at 5", is_at(5))?;
    // Others patch it.
    lab.patch("deployments/web/scale", &json!({"spec": {"replicas": 3}}))?;
    lab.wait_for("deployments/web/scale", "it is at 3", is_at(3))?;
    if web.kubectl.minor() >= 24 {
        let patch = ["patch", "deployment/web", "--subresource=scale", "--type=merge"];
        web.kubectl.ok(&[&patch[..], &["--patch={\"spec\":{\"replicas\":0}}"]].concat())?;
        lab.wait_for("deployments/web/scale", "it is at 0", is_at(0))?;
        lab.wait("its pods are gone", || Ok(lab.list("pods")?.is_empty()))?;
    }
    web.kubectl.ok(&["scale", "deployment/web", "--replicas=4"])?;
    web.rolled_out()?;
    assert_eq!(lab.list("replicasets")?.len(), 1, "scaling makes no revision");
    assert_eq!(web.revision()?, "1");
    Ok(())
}

/// Whatever somebody else has in a namespace of theirs, as far as the API server takes it.
pub fn a_stranger_is_in_nobodys_way(cluster: &Picokube) -> Result<()> {
    let web = Web::new(cluster, "scale-beside", 2)?;
    let stranger = Lab::new(cluster, "stranger")?;
    let uid = "5e8f1a20-3b4c-4d5e-8f70-a1b2c3d4e5f6";
    let odd_names = [("Foo", "x", "abc"), ("ReplicaSet", "x", "abc"), ("Foo", "x", uid)];
    let mut objects: Vec<Value> = odd_names
        .into_iter()
        .flat_map(|(kind, name, uid)| [None, Some(false), Some(true)].map(|c| (kind, name, uid, c)))
        .map(|(kind, name, uid, controller)| {
            let reference = json!({
                "apiVersion": "v1", "kind": kind, "name": name, "uid": uid,
                "controller": controller,
            });
            json!({"ownerReferences": [reference]})
        })
        .collect();
    let labels: Map<String, Value> =
        (0..1_000).map(|number| (format!("label-{number}"), json!("x"))).collect();
    objects.push(json!({"labels": labels}));
    objects.push(json!({"annotations": {"example.org/large": "x".repeat(200_000)}}));
    for (number, metadata) in objects.iter().enumerate() {
        let containers = json!([{"name": "app", "image": "app:1"}]);
        let mut pod = json!({"metadata": metadata, "spec": {"containers": containers}});
        pod["metadata"]["name"] = json!(format!("odd-{number}"));
        stranger.create("pods", &pod)?;
        let mut set = deployment("odd", 1)["spec"].take();
        set["replicas"] = json!(0);
        let mut set = json!({"metadata": metadata, "spec": set});
        set["metadata"]["name"] = json!(format!("odd-{number}"));
        stranger.create("replicasets", &set)?;
    }
    web.kubectl.ok(&["scale", "deployment/web", "--replicas=4"])?;
    web.rolled_out()?;
    web.set_image("app:2")?;
    web.rolled_out()?;
    assert_eq!(web.images()?, ["app:2"; 4]);
    let told = web.lab.list("events")?;
    let is_blind = |event: &&Value| {
        event["reason"] == "ControllerMemoryFull" || event["reason"] == "FaultyObject"
    };
    let blind = told.iter().find(is_blind);
    assert!(blind.is_none(), "{blind:?}");
    Ok(())
}
