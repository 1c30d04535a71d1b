//! What StatefulSets say, in plain words: names, ordinals, templates.

use serde_json::Value;

use super::super::Facts;

/// The labels that tell a pod of a StatefulSet from others.
pub(in crate::sim) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
pub(in crate::sim) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
pub(in crate::sim) const REVISION: &str = "controller-revision-hash";

/// The set and the ordinal that the name of a pod tells.
pub(in crate::sim) fn member(name: &str) -> Option<(&str, i64)> {
    let at = name.rfind('-')?;
    let digits = &name[at + 1..];
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit());
    if !is_number {
        return None;
    }
    Some((&name[..at], digits.parse().ok()?))
}

impl Facts {
    pub(in crate::sim) fn namespace(&self) -> &str {
        self.key.split('/').next().unwrap_or_default()
    }

    pub(in crate::sim) fn name(&self) -> &str {
        self.key.split('/').nth(1).unwrap_or_default()
    }

    pub(in crate::sim) fn label(&self, name: &str) -> Option<&str> {
        self.object["metadata"]["labels"][name].as_str()
    }

    /// Whether somebody of this kind and uid is its controller.
    pub(in crate::sim) fn is_of(&self, uid: &str) -> bool {
        self.controller.as_deref() == Some(uid)
    }

    /// The kind of its controller.
    pub(in crate::sim) fn kind_of_controller(&self) -> Option<&str> {
        let owners = self.object["metadata"]["ownerReferences"].as_array()?;
        owners.iter().find(|owner| owner["controller"] == true)?["kind"].as_str()
    }

    // Of StatefulSets.

    pub(in crate::sim) fn start(&self) -> i64 {
        self.object["spec"]["ordinals"]["start"].as_i64().unwrap_or(0)
    }

    /// The ordinals that there are to be.
    pub(in crate::sim) fn ordinals(&self) -> std::ops::Range<i64> {
        self.start()..self.start() + self.spec("replicas")
    }

    pub(in crate::sim) fn is_ordered(&self) -> bool {
        self.object["spec"]["podManagementPolicy"] != "Parallel"
    }

    /// The first ordinal that an update reaches; nothing if it reaches none.
    pub(in crate::sim) fn first_updated(&self) -> Option<i64> {
        let strategy = &self.object["spec"]["updateStrategy"];
        let partition = strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0);
        (strategy["type"] == "RollingUpdate").then(|| self.start() + partition)
    }

    /// The template of a workload.
    pub(in crate::sim) fn template(&self) -> &Value {
        &self.object["spec"]["template"]
    }

    /// The template in a ControllerRevision.
    pub(in crate::sim) fn revised_template(&self) -> Value {
        let mut template = self.object["data"]["spec"]["template"].clone();
        if let Some(members) = template.as_object_mut() {
            members.remove("$patch");
        }
        template
    }

    /// The pod of an ordinal, by namespace and name.
    pub(in crate::sim) fn pod_key(&self, ordinal: i64) -> String {
        format!("{}-{ordinal}", self.key)
    }

    /// The names of its claim templates.
    pub(in crate::sim) fn claim_templates(&self) -> impl Iterator<Item = &Value> {
        self.object["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten()
    }

    /// The claim template and the ordinal of a claim of this name, if it is one of this set's.
    pub(in crate::sim) fn claim_of(&self, claim: &str) -> Option<(&Value, i64)> {
        self.claim_templates().find_map(|template| {
            let stem = format!("{}-{}", template["metadata"]["name"].as_str()?, self.name());
            let (set, ordinal) = member(claim)?;
            (set == stem).then_some((template, ordinal))
        })
    }

    /// What is to become of its claims: `whenDeleted` or `whenScaled` is `Delete`.
    pub(in crate::sim) fn deletes_claims(&self, when: &str) -> bool {
        self.object["spec"]["persistentVolumeClaimRetentionPolicy"][when] == "Delete"
    }

    // Of pods.

    /// Running, ready, and not going.
    pub(in crate::sim) fn is_up(&self) -> bool {
        self.object["status"]["phase"] == "Running" && self.is_ready() && !self.deleting
    }

    pub(in crate::sim) fn has_ended(&self) -> bool {
        matches!(self.object["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
    }

    /// Whether a pod is made of that template: all that the template says is true of the pod, and
    /// it has no labels but those and its own.
    pub(in crate::sim) fn is_made_of(&self, template: &Value) -> bool {
        let metadata = &self.object["metadata"];
        let labels = |labels: &Value| -> Vec<(String, Value)> {
            let all = labels.as_object().into_iter().flatten();
            let all = all.filter(|(name, _)| ![POD_NAME, POD_INDEX, REVISION].contains(&&***name));
            all.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        labels(&metadata["labels"]) == labels(&template["metadata"]["labels"])
            && says(&metadata["annotations"], &template["metadata"]["annotations"])
            && says(&self.object["spec"], &template["spec"])
    }

    /// Whether a pod is made of that template in every field, and has no other labels.
    pub(in crate::sim) fn is_made_of_all(&self, template: &Value) -> bool {
        let metadata = &self.object["metadata"];
        metadata.get("labels") == template["metadata"].get("labels")
            && says_but(&metadata["annotations"], &template["metadata"]["annotations"], &[])
            && says_but(&self.object["spec"], &template["spec"], &[])
    }

    /// A pod without what tells whose it is.
    pub(in crate::sim) fn without_owner(&self) -> Value {
        let mut object = self.object.clone();
        for field in ["ownerReferences", "resourceVersion", "managedFields"] {
            object["metadata"][field] = Value::Null;
        }
        object
    }
}

/// Whether a document says all that another one does, field by field, but for what a StatefulSet says
/// of its pods itself.
pub(in crate::sim) fn says(document: &Value, wanted: &Value) -> bool {
    says_but(document, wanted, &["hostname", "subdomain", "volumes"])
}

/// Whether a document says all that another one does, field by field, but for these fields.
fn says_but(document: &Value, wanted: &Value, but: &[&str]) -> bool {
    match wanted {
        Value::Null => true,
        Value::Object(wanted) => wanted.iter().all(|(name, wanted)| match &document[name] {
            _ if but.contains(&name.as_str()) => true,
            // The server adds some, behind those.
            Value::Array(told) if name == "tolerations" => {
                wanted.as_array().is_none_or(|wanted| told.starts_with(wanted))
            }
            told => says_but(told, wanted, but),
        }),
        Value::Array(wanted) => document.as_array().is_some_and(|document| {
            document.len() == wanted.len()
                && document.iter().zip(wanted).all(|(one, other)| says_but(one, other, but))
        }),
        wanted => document == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_tell_sets_and_ordinals() {
        assert_eq!(member("s0-1"), Some(("s0", 1)));
        assert_eq!(member("s0-1-12"), Some(("s0-1", 12)));
        assert_eq!(member("s0-01"), Some(("s0", 1)));
        for other in ["s0", "s0-", "s0-a", "s0-1a", "d0-7d9f-x2x4z"] {
            assert_eq!(member(other), None, "{other}");
        }
    }

    #[test]
    fn a_pod_is_made_of_what_it_says() {
        let template = json!({
            "metadata": {"labels": {"app": "s0"}},
            "spec": {"containers": [{"name": "c", "image": "img:v1"}], "restartPolicy": "Always"},
        });
        let mut pod = template.clone();
        pod["metadata"]["labels"][POD_INDEX] = "1".into();
        pod["spec"]["nodeName"] = "node-1".into();
        let is_made_of =
            |pod: &Value| Facts { object: pod.clone(), ..Facts::default() }.is_made_of(&template);
        assert!(is_made_of(&pod));
        for (path, value) in [
            ("/spec/containers/0/image", json!("img:v2")),
            ("/spec/restartPolicy", json!("Never")),
            ("/metadata/labels", json!({"app": "s0", "more": "x"})),
            ("/spec/containers", json!([])),
        ] {
            let mut other = pod.clone();
            if let Some(place) = other.pointer_mut(path) {
                *place = value;
            }
            assert!(!is_made_of(&other), "{path}");
        }
    }
}
