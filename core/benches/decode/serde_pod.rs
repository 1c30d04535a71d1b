//! The fields of a pod's record, for `serde_json`: borrowed from the text where that can be.

use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Deserialize, PartialEq)]
pub(crate) struct Pod<'a> {
    #[serde(borrow)]
    pub(crate) metadata: Metadata<'a>,
    #[serde(borrow)]
    pub(crate) spec: Spec<'a>,
    #[serde(borrow)]
    pub(crate) status: Status<'a>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
    pub(crate) generation: Option<i64>,
    pub(crate) creation_timestamp: Option<&'a str>,
    pub(crate) deletion_timestamp: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) annotations: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) owner_references: Vec<OwnerReference<'a>>,
    pub(crate) finalizers: Option<Vec<&'a str>>,
}

#[derive(Deserialize, PartialEq)]
pub(crate) struct OwnerReference<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) controller: Option<bool>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec<'a> {
    pub(crate) node_name: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) init_containers: Option<Vec<InitContainer<'a>>>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitContainer<'a> {
    pub(crate) name: &'a str,
    pub(crate) restart_policy: Option<&'a str>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status<'a> {
    pub(crate) phase: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) conditions: Option<Vec<Condition<'a>>>,
    #[serde(borrow)]
    pub(crate) container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(borrow)]
    pub(crate) init_container_statuses: Option<Vec<ContainerStatus<'a>>>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) last_transition_time: Option<&'a str>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerStatus<'a> {
    pub(crate) name: &'a str,
    pub(crate) restart_count: u32,
}
