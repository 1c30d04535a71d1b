//! What a service is given when it is stored: addresses and node ports. Who hands them out decides which.

use serde_json::{Value, json};

use super::object::{at, child, default, int, list, list_mut, set, text};

/// What a service still lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// An address inside the cluster.
    pub cluster_ip: bool,
    /// How many ports on the nodes.
    pub node_ports: usize,
}

/// What has to be handed out before a service can be stored.
pub fn needs(service: &Value) -> Needs {
    let spec = at(service, &["spec"]);
    let kind = text(spec, "type");
    let opened = match kind {
        "NodePort" => true,
        "LoadBalancer" => at(spec, &["allocateLoadBalancerNodePorts"]).as_bool().unwrap_or(true),
        _ => false,
    };
    let lacking = list(spec, "ports").iter().filter(|p| int(p, "nodePort").unwrap_or(0) == 0);
    Needs {
        cluster_ip: kind != "ExternalName" && text(spec, "clusterIP").is_empty(),
        node_ports: if opened { lacking.count() } else { 0 },
    }
}

/// Gives a service its address (if it lacks one) and its node ports, in order, and completes what
/// follows from them.
pub fn allocate(service: &mut Value, cluster_ip: &str, node_ports: &[i64]) {
    let needed = needs(service);
    let spec = child(service, "spec");
    if text(spec, "type") == "ExternalName" {
        return;
    }
    if needed.cluster_ip && !cluster_ip.is_empty() {
        set(spec, "clusterIP", json!(cluster_ip));
    }
    let address = text(spec, "clusterIP").to_owned();
    if !address.is_empty() {
        default(spec, "clusterIPs", json!([address]));
    }
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    default(spec, "ipFamilies", json!([family]));
    default(spec, "ipFamilyPolicy", "SingleStack");
    if needed.node_ports > 0 {
        let lacking =
            list_mut(spec, "ports").iter_mut().filter(|p| int(p, "nodePort").unwrap_or(0) == 0);
        for (port, number) in lacking.zip(node_ports) {
            set(port, "nodePort", json!(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_get_what_their_type_needs() {
        let service = |spec: Value| json!({"spec": spec});
        let ports = json!([{"port": 80}, {"port": 81, "nodePort": 30001}]);
        let cases = [
            (json!({"type": "ClusterIP", "ports": ports}), (true, 0)),
            (json!({"type": "NodePort", "ports": ports}), (true, 1)),
            (json!({"type": "LoadBalancer", "ports": ports}), (true, 1)),
            (json!({"type": "ClusterIP", "clusterIP": "None"}), (false, 0)),
            (json!({"type": "ExternalName"}), (false, 0)),
        ];
        for (spec, (cluster_ip, node_ports)) in cases {
            assert_eq!(needs(&service(spec)), Needs { cluster_ip, node_ports });
        }
        let mut given = service(json!({"type": "NodePort", "ports": ports}));
        allocate(&mut given, "10.96.0.7", &[30_500]);
        assert_eq!(
            given["spec"],
            json!({"type": "NodePort", "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"],
                   "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                   "ports": [{"port": 80, "nodePort": 30500}, {"port": 81, "nodePort": 30001}]})
        );
        assert_eq!(needs(&given), Needs::default());
        let mut headless = service(json!({"type": "ClusterIP", "clusterIP": "None"}));
        allocate(&mut headless, "10.96.0.8", &[]);
        assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    }
}
