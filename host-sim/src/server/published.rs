//! What a cluster tells its pods about its API server: the Service `kubernetes`, and the
//! ConfigMap `kube-root-ca.crt` in every namespace.
//!
//! Upstream's server keeps the Service and its controller manager the ConfigMaps. Both come back
//! when they are deleted. A ConfigMap is mended whenever it changes, the Service at a start.

use http::Method;
use serde_json::{Value, json};

use crate::store::object_key;
use crate::time::Timestamp;

use super::Server;
use super::request::Request;

/// The namespace of the Service.
pub(super) const SERVICE_NAMESPACE: &str = "default";
/// The Service through which pods reach the server.
pub(super) const SERVICE: &str = "kubernetes";
/// The ConfigMap by which pods know the server.
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";
/// The first address of the range from which services get theirs.
const SERVICE_ADDRESS: &str = "10.96.0.1";
const SERVICE_PORT: u16 = 443;
const DESCRIPTION: &str = "kubernetes.io/description";
/// Text before a PEM block is allowed; one that has none says why.
const NO_AUTHORITY: &str =
    "# This API server speaks plain HTTP: there is no certificate to check.\n";

/// Where the server is, and how to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    port: u16,
    root_ca: String,
}

impl Published {
    /// Of a server that listens at this port, with the authority behind its certificate if it
    /// has one.
    pub fn new(port: u16, authority_pem: Option<&str>) -> Self {
        Self { port, root_ca: authority_pem.unwrap_or(NO_AUTHORITY).to_owned() }
    }

    fn ports(&self) -> Value {
        json!([{
            "name": "https", "protocol": "TCP", "port": SERVICE_PORT, "targetPort": self.port,
        }])
    }
}

impl Server {
    /// Publishes where the server is, from now on: whoever reaches it finds it published.
    pub fn publish(&mut self, now: Timestamp, published: Published) {
        let key = object_key(SERVICE_NAMESPACE, SERVICE);
        let services = self.resources.services;
        if let Some(service) = self.store.get(services, &key).cloned() {
            let ports = published.ports();
            self.amend(now, services, &service, |object| {
                object["spec"]["ports"] = ports;
                object["spec"]["type"] = json!("ClusterIP");
            });
        }
        self.published = Some(published);
        self.furnish_all(now);
    }

    /// Puts back what is published in a namespace, as far as it is missing or has been changed.
    pub(super) fn keep_published(&mut self, now: Timestamp, namespace: &str) {
        if namespace == SERVICE_NAMESPACE {
            self.keep_service(now);
        }
        self.keep_root_ca(now, namespace);
    }

    fn keep_service(&mut self, now: Timestamp) {
        let Some(published) = &self.published else { return };
        let key = object_key(SERVICE_NAMESPACE, SERVICE);
        if self.store.get(self.resources.services, &key).is_some() {
            return;
        }
        let service = json!({
            "metadata": {
                "name": SERVICE,
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "type": "ClusterIP",
                "clusterIP": SERVICE_ADDRESS,
                "clusterIPs": [SERVICE_ADDRESS],
                "ports": published.ports(),
                "sessionAffinity": "None",
            },
        });
        self.create_own(now, SERVICE_NAMESPACE, "services", &service);
    }

    fn keep_root_ca(&mut self, now: Timestamp, namespace: &str) {
        let Some(published) = &self.published else { return };
        let data = json!({"ca.crt": published.root_ca});
        let description = "The certificate authority of this cluster's API server.";
        let maps = self.resources.config_maps;
        let Some(found) = self.store.get(maps, &object_key(namespace, ROOT_CA)).cloned() else {
            let map = json!({
                "metadata": {"name": ROOT_CA, "annotations": {DESCRIPTION: description}},
                "data": data,
            });
            return self.create_own(now, namespace, "configmaps", &map);
        };
        self.amend(now, maps, &found, |object| {
            object["data"] = data;
            let described = object["metadata"]["annotations"][DESCRIPTION].as_str();
            if described.unwrap_or_default().is_empty() {
                object["metadata"]["annotations"][DESCRIPTION] = json!(description);
            }
        });
    }

    /// Creates an object that the cluster itself wants to be there. It may be there already, its
    /// namespace may be on its way out, or a quota may be used up: then the next look is due when
    /// that changes.
    pub(super) fn create_own(
        &mut self,
        now: Timestamp,
        namespace: &str,
        plural: &str,
        object: &Value,
    ) {
        let path = format!("/api/v1/namespaces/{namespace}/{plural}");
        let mut request =
            Request::new(Method::POST, &path).with_body("application/json", object.to_string());
        request.user_agent = "picokube".to_owned();
        let _ = self.handle(now, &request);
    }
}
