//! The file with which kubectl finds the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::tls::Identity;

/// How whoever has a kubeconfig says who it is.
pub enum Credential {
    /// Not at all.
    Nothing,
    /// By the server's token.
    Token(String),
    /// By a certificate.
    Certificate(Identity),
}

/// A kubeconfig with one cluster, one user and one context, all named `picokube`.
/// It is JSON, which every reader of YAML takes.
pub fn kubeconfig(server: &str, authority_pem: Option<&str>, credential: &Credential) -> String {
    let mut cluster = serde_json::json!({"server": server});
    if let Some(pem) = authority_pem {
        cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
    }
    let user = match credential {
        Credential::Nothing => serde_json::json!({}),
        Credential::Token(token) => serde_json::json!({"token": token}),
        Credential::Certificate(identity) => serde_json::json!({
            "client-certificate-data": STANDARD.encode(&identity.certificate_pem),
            "client-key-data": STANDARD.encode(&identity.key_pem),
        }),
    };
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "picokube", "cluster": cluster}],
        "users": [{"name": "picokube", "user": user}],
        "contexts": [{
            "name": "picokube",
            "context": {"cluster": "picokube", "user": "picokube", "namespace": "default"},
        }],
        "current-context": "picokube",
    });
    let mut text = serde_json::to_string_pretty(&config).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_server_and_how_to_trust_it() {
        let text =
            kubeconfig("https://192.0.2.7:6443", Some("pem"), &Credential::Token("secret".into()));
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://192.0.2.7:6443");
        assert_eq!(config["clusters"][0]["cluster"]["certificate-authority-data"], "cGVt");
        assert_eq!(config["users"][0]["user"]["token"], "secret");
    }
}
