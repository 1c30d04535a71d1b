//! Looking after connections: tokens that change while they are used, and counts of answers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use std::time::Duration;

use picokube_driver::{Error, Method, Observer};

use super::Endpoint;
use super::endpoint::bearer;

/// How often the file of a token is read again. kubelet renews the token of a pod long before the
/// old one expires.
const PERIOD: Duration = Duration::from_secs(10);

/// Looks after all connections to one server.
pub(super) struct ConnectionObserver {
    host: String,
    /// The header, if it comes from a file. Old ones stay in memory, about a kilobyte an hour: a
    /// connection may be using them.
    authorization: Cell<Option<&'static str>>,
    answers: RefCell<BTreeMap<(&'static str, Code), u64>>,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Code {
    Status(u16),
    None,
}

/// As in client-go's metric.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "{code}"),
            Self::None => f.write_str("<error>"),
        }
    }
}

impl ConnectionObserver {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        Self {
            host: endpoint.host.clone(),
            authorization: Cell::new(None),
            answers: RefCell::new(BTreeMap::new()),
        }
    }

    /// Reads the token in `file` again and again.
    pub(super) async fn follow(&self, file: &Path) {
        loop {
            tokio::time::sleep(PERIOD).await;
            self.reload(file);
        }
    }

    /// Reads the token in `file`. A file that is not there or empty is about to be replaced.
    fn reload(&self, file: &Path) {
        let token = std::fs::read_to_string(file).unwrap_or_default();
        let Ok(header) = bearer(&token) else { return };
        if self.authorization.get() != Some(&header) {
            self.authorization.set(Some(header.leak()));
        }
    }

    /// `rest_client_requests_total`, as every client of Kubernetes counts.
    pub(super) fn write_metrics(&self, out: &mut String) {
        let name = "rest_client_requests_total";
        let help = "Requests by status code, method and host, watches included.";
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
        let host = &self.host;
        for ((method, code), count) in &*self.answers.borrow() {
            let labels = format!("code=\"{code}\",host=\"{host}\",method=\"{method}\"");
            let _ = writeln!(out, "{name}{{{labels}}} {count}");
        }
    }
}

impl<'a> Observer<'a> for ConnectionObserver {
    fn authorization(&self) -> Option<&'a str> {
        self.authorization.get()
    }

    fn answered(&self, method: Method, answer: Result<u16, Error>) {
        let code = answer.map_or(Code::None, Code::Status);
        let method = match method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        *self.answers.borrow_mut().entry((method, code)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Credentials;
    use super::*;

    fn observer() -> ConnectionObserver {
        ConnectionObserver::new(
            &Endpoint::new("http://127.0.0.1:1", None, &Credentials::default()).unwrap(),
        )
    }

    #[test]
    fn a_token_that_is_replaced_is_used_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let observer = observer();
        let reloaded = || {
            observer.reload(&file);
            observer.authorization()
        };
        assert_eq!(reloaded(), None);
        std::fs::write(&file, "first\n").unwrap();
        assert_eq!(reloaded(), Some("Bearer first"));
        std::fs::write(&file, "second").unwrap();
        assert_eq!(reloaded(), Some("Bearer second"));
        // In the middle of being replaced.
        std::fs::write(&file, "").unwrap();
        assert_eq!(reloaded(), Some("Bearer second"));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(reloaded(), Some("Bearer second"));
    }

    #[test]
    fn answers_are_counted_as_clients_of_kubernetes_count() {
        let observer = observer();
        observer.answered(Method::GET, Ok(200));
        observer.answered(Method::POST, Ok(201));
        observer.answered(Method::POST, Ok(201));
        observer.answered(Method::PATCH, Err(Error::Refused));
        let mut text = String::new();
        observer.write_metrics(&mut text);
        let host = "host=\"127.0.0.1:1\"";
        for (labels, count) in [
            (format!("code=\"200\",{host},method=\"GET\""), 1),
            (format!("code=\"201\",{host},method=\"POST\""), 2),
            (format!("code=\"<error>\",{host},method=\"PATCH\""), 1),
        ] {
            let line = format!("rest_client_requests_total{{{labels}}} {count}\n");
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }
}
