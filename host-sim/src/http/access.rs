//! Who may come in.

use hyper::Method;
use hyper::header;
use hyper::http::request::Parts;

use rustls::pki_types::CertificateDer;

use super::client_certificates::ClientAuthorities;
use super::hosts::AcceptedHosts;
use crate::api::status::Status;
use crate::server::request::User;

/// What everybody may ask without saying who they are: upstream's `system:public-info-viewer`.
/// Kubelets and load balancers that probe a server have no token for it.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The rule for requests.
#[derive(Clone, Debug)]
pub enum Access {
    /// Everybody who can reach the socket, by one of these hosts; only for loopback addresses.
    Open(AcceptedHosts),
    /// Only those who know the token, or show a certificate of one of the authorities. A web page does
    /// neither, so that it may name any host.
    Known {
        /// The token.
        token: String,
        /// The authorities of clients that have certificates.
        clients: Option<ClientAuthorities>,
    },
}

impl Access {
    /// The user who sends a request over a connection on which these certificates were shown; a refusal
    /// if it may not be answered.
    ///
    /// As in kube-apiserver, a certificate is asked first; whoever shows one that is not good may still
    /// have the token.
    pub(super) fn user(
        &self,
        request: &Parts,
        certificates: &[CertificateDer<'_>],
    ) -> Result<User, Status> {
        let (token, clients) = match self {
            Self::Open(hosts) => return hosts.check(request).map(|()| User::default()),
            Self::Known { token, clients } => (token, clients),
        };
        let named = match clients {
            Some(clients) if !certificates.is_empty() => clients.user(certificates),
            _ => Ok(None),
        };
        if let Ok(Some(user)) = named {
            return Ok(user);
        }
        match bearer(request) {
            Some(given) if same(given, token.as_bytes()) => Ok(User::default()),
            // Who shows something wrong is not taken for somebody who shows nothing.
            None if named.is_ok() && is_public(request) => Ok(User::anonymous()),
            _ => Err(Status::unauthorized()),
        }
    }
}

/// The token that a request shows.
fn bearer(request: &Parts) -> Option<&[u8]> {
    let authorization = request.headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, given) = authorization.split_at_checked("bearer".len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer");
    let is_apart = given.first().is_none_or(|byte| *byte == b' ');
    (is_bearer && is_apart).then(|| given.trim_ascii())
}

fn is_public(request: &Parts) -> bool {
    matches!(request.method, Method::GET | Method::HEAD) && PUBLIC.contains(&request.uri.path())
}

/// Compares in a time that does not depend on how much is right.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let different = given.iter().zip(expected).fold(0, |all, (a, b)| all | (a ^ b));
    different == 0 && given.len() == expected.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, authorization: Option<&str>) -> Parts {
        let mut builder = hyper::Request::builder().method(method).uri(path);
        if let Some(authorization) = authorization {
            builder = builder.header(header::AUTHORIZATION, authorization);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_token_has_to_be_right() {
        let access = Access::Known { token: "secret".into(), clients: None };
        let user = |authorization| access.user(&request("GET", "/api", authorization), &[]);
        assert_eq!(user(Some("Bearer secret")), Ok(User::default()));
        assert_eq!(user(Some("bearer secret")), Ok(User::default()));
        for wrong in [
            None,
            Some(""),
            Some("secret"),
            Some("Bearer"),
            Some("Bearersecret"),
            Some("Bearer secre"),
            Some("Bearer secrets"),
            Some("Basic secret"),
        ] {
            assert_eq!(user(wrong), Err(Status::unauthorized()), "{wrong:?}");
        }
    }

    #[test]
    fn probes_need_no_token_but_no_wrong_one_either() {
        let access = Access::Known { token: "secret".into(), clients: None };
        let user = |method, path, shown| access.user(&request(method, path, shown), &[]).ok();
        for path in ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/version"] {
            assert_eq!(user("GET", path, None), Some(User::anonymous()), "{path}");
            assert_eq!(user("HEAD", path, None), Some(User::anonymous()), "{path}");
            // As upstream has it: other ways to say who one is mean nothing here.
            assert_eq!(user("GET", path, Some("Basic x")), Some(User::anonymous()), "{path}");
            assert_eq!(user("GET", path, Some("Bearer wrong")), None, "{path}");
            assert_eq!(user("GET", path, Some("Bearer ")), None, "{path}");
            assert_eq!(user("POST", path, None), None, "{path}");
            assert_eq!(user("GET", path, Some("Bearer secret")), Some(User::default()), "{path}");
        }
        for path in ["/", "/healthz/ping", "/metrics", "/api", "/healthzz", "//healthz"] {
            assert_eq!(user("GET", path, None), None, "{path}");
        }
    }

    #[test]
    fn open_access_asks_nothing() {
        let access = Access::Open(AcceptedHosts::default());
        assert_eq!(access.user(&request("GET", "/api", None), &[]), Ok(User::default()));
    }
}
