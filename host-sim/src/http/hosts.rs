//! Which hosts a request may name where no token is asked for.
//!
//! A web page cannot read what another origin answers. But whoever owns a name can let it lead to
//! 127.0.0.1 once the page is loaded (DNS rebinding): then this server is the page's own origin as
//! far as the browser knows. What gives it away is the `Host` header, which has the name.

use std::net::{Ipv4Addr, Ipv6Addr};

use anyhow::{Result, anyhow};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use regex::Regex;

use crate::api::status::Status;

/// The hosts that `kubectl proxy` accepts by default, too.
pub const DEFAULT_ACCEPT_HOSTS: &str = r"^localhost$,^127\.0\.0\.1$,^\[::1\]$";

/// The hosts that requests may name.
#[derive(Clone, Debug)]
pub struct AcceptedHosts(Vec<Regex>);

impl Default for AcceptedHosts {
    /// Those of [`DEFAULT_ACCEPT_HOSTS`].
    fn default() -> Self {
        // Nobody but IP addresses would be left if it were no list of patterns; a test sees to it.
        Self::parse(DEFAULT_ACCEPT_HOSTS).unwrap_or(Self(Vec::new()))
    }
}

impl AcceptedHosts {
    /// Reads regular expressions with commas between. Each has to match a whole host, so that one
    /// without anchors does not let in whoever has a name that contains it.
    pub fn parse(patterns: &str) -> Result<Self> {
        let compile = |pattern: &str| {
            // By itself first: in the frame, some that are none would pass for two.
            Regex::new(pattern)
                .and_then(|_| Regex::new(&format!("^(?:{pattern})$")))
                .map_err(|error| anyhow!("\"{pattern}\" is no regular expression: {error}"))
        };
        let patterns = patterns.split(',').filter(|pattern| !pattern.is_empty());
        Ok(Self(patterns.map(compile).collect::<Result<_>>()?))
    }

    /// Refuses a request that may come from a page which has no business here.
    pub(super) fn check(&self, request: &Parts) -> Result<(), Status> {
        // HTTP/2 has the host in its target, HTTP/1 in a header, and either may have both. A target
        // without a scheme is a path that lacks its slash.
        let target = request.uri.scheme().and(request.uri.authority());
        if let Some(target) = target {
            self.check_host(target.as_str())?;
        }
        for host in request.headers.get_all(header::HOST) {
            self.check_host(&text(host))?;
        }
        if request.method.is_safe() {
            return Ok(());
        }
        // A page may send writes anywhere without asking, it only cannot read the answer.
        for origin in request.headers.get_all(header::ORIGIN) {
            self.check_origin(&text(origin), request)?;
        }
        Ok(())
    }

    fn check_host(&self, host: &str) -> Result<(), Status> {
        match name_of(host) {
            Some(name) if is_address(&name) || self.matches(&name) => Ok(()),
            // No browser leaves it empty.
            _ if host.is_empty() => Ok(()),
            name => Err(refused_host(&name.unwrap_or_else(|| host.to_owned()))),
        }
    }

    /// Other than in `Host`, an address proves nothing here: pages are loaded from addresses, too.
    fn check_origin(&self, origin: &str, request: &Parts) -> Result<(), Status> {
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        let is_own = || {
            let mut hosts = request.headers.get_all(header::HOST).iter().map(text);
            let target = request.uri.authority().map(Authority::as_str);
            target == Some(authority) || hosts.any(|host| host == authority)
        };
        match name_of(authority) {
            Some(name) if self.matches(&name) || is_own() => Ok(()),
            _ => Err(refused_origin(origin)),
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(name))
    }
}

/// The host of `HOST` or `HOST:PORT` in lower case; an IPv6 address has brackets.
fn name_of(host: &str) -> Option<String> {
    let authority: Authority = host.parse().ok()?;
    let rest = host.strip_prefix(authority.host())?;
    let is_port = |rest: &str| rest.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok());
    (rest.is_empty() || is_port(rest)).then(|| authority.host().to_ascii_lowercase())
}

fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn refused_host(host: &str) -> Status {
    Status::forbidden_request(format!(
        "the host \"{host}\" is not accepted, because a web page could otherwise reach this server \
         by a name of its own (DNS rebinding): use localhost or an IP address, or start picokube \
         with --accept-hosts and a regular expression for this host, or with --secure"
    ))
}

fn refused_origin(origin: &str) -> Status {
    Status::forbidden_request(format!(
        "a web page of the origin \"{origin}\" may not write here: if it should, start picokube \
         with --accept-hosts and a regular expression for its host"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_what_kubectl_proxy_has() {
        let hosts = AcceptedHosts::default();
        assert_eq!(hosts.0.len(), 3);
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            assert!(hosts.matches(host), "{host}");
        }
        assert!(!hosts.matches("127a0.0.1"));
    }

    #[test]
    fn patterns_match_whole_hosts() {
        let hosts = AcceptedHosts::parse(r"a|b,.*\.example\.com").unwrap();
        for host in ["a", "b", "x.example.com"] {
            assert!(hosts.matches(host), "{host}");
        }
        for host in ["ab", "xa", "x.example.com.evil.org", "example.com", ""] {
            assert!(!hosts.matches(host), "{host}");
        }
        assert!(!AcceptedHosts::parse("").unwrap().matches(""));
        let error = format!("{:#}", AcceptedHosts::parse("a,(").unwrap_err());
        assert!(error.contains("\"(\" is no regular expression"), "{error}");
        assert!(AcceptedHosts::parse("a)|(?:b").is_err());
    }

    #[test]
    fn hosts_are_taken_apart() {
        for (host, name) in [
            ("localhost", Some("localhost")),
            ("LOCALHOST:80", Some("localhost")),
            ("[::1]:80", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("10.0.2.2:8001", Some("10.0.2.2")),
            ("", None),
            ("a b", None),
            ("a@b", None),
            ("a:b", None),
            ("a:", None),
            ("a:99999", None),
            ("[::1]x", None),
            ("::1", None),
            ("a/b", None),
        ] {
            assert_eq!(name_of(host).as_deref(), name, "{host}");
        }
    }
}
