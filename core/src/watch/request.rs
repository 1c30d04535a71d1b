//! The request a watch machine wants sent: always a GET.

use core::fmt::{self, Write};

use super::list::At;
use super::{Next, Phase, RequestId, Watch};

/// Objects in a page of a list.
const PAGE: u32 = 500;

/// What is listed and watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The path of the API group and version, such as `/apis/apps/v1`.
    pub api: &'static str,
    /// The resource in the plural, such as `replicasets`.
    pub plural: &'static str,
    /// The only namespace to look at.
    pub namespace: Option<&'static str>,
    /// The only labels to look at, in the form of the API's `labelSelector`.
    pub label_selector: Option<&'static str>,
}

impl Resource {
    /// All pods.
    pub const PODS: Self = Self::all("/api/v1", "pods");
    /// All ReplicaSets.
    pub const REPLICA_SETS: Self = Self::all("/apis/apps/v1", "replicasets");
    /// All Deployments.
    pub const DEPLOYMENTS: Self = Self::all("/apis/apps/v1", "deployments");

    const fn all(api: &'static str, plural: &'static str) -> Self {
        Self { api, plural, namespace: None, label_selector: None }
    }
}

/// A request to be sent. Shows as its path and query.
#[derive(Debug)]
pub struct WatchRequest<'a> {
    pub(super) watch: &'a Watch,
    pub(super) id: RequestId,
}

impl WatchRequest<'_> {
    /// The number under which answers are handed in.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// Whether the response is a stream that stays open for minutes.
    pub fn is_watch(&self) -> bool {
        matches!(self.watch.phase, Phase::Open { next: Next::Watch, .. })
    }
}

impl fmt::Display for WatchRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resource { api, plural, namespace, label_selector } = &self.watch.resource;
        f.write_str(api)?;
        if let Some(namespace) = namespace {
            write!(f, "/namespaces/{namespace}")?;
        }
        write!(f, "/{plural}")?;
        let mut query = Query { out: f, empty: true };
        if let Some(selector) = label_selector {
            query.text("labelSelector", selector)?;
        }
        if self.is_watch() {
            let version = self.watch.version.unwrap_or_default();
            query.text("watch", "true")?;
            query.text("allowWatchBookmarks", "true")?;
            query.number("resourceVersion", version.number())?;
            return query.number("timeoutSeconds", u64::from(self.watch.stream.timeout));
        }
        if self.watch.list.paged {
            query.number("limit", u64::from(PAGE))?;
        }
        if self.watch.list.pages > 0 {
            return query.text("continue", &self.watch.continue_token);
        }
        match self.watch.list.at {
            At::Any => query.number("resourceVersion", 0),
            At::NotOlderThan(version) => query.number("resourceVersion", version.number()),
            At::Latest => Ok(()),
        }
    }
}

/// How long a text is in a URL.
pub fn length_in_url(text: &str) -> usize {
    text.bytes().map(|byte| if is_plain(byte) { 1 } else { "%00".len() }).sum()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

struct Query<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    empty: bool,
}

impl Query<'_, '_> {
    fn number(&mut self, name: &str, value: u64) -> fmt::Result {
        self.name(name)?;
        write!(self.out, "{value}")
    }

    fn text(&mut self, name: &str, value: &str) -> fmt::Result {
        self.name(name)?;
        for byte in value.bytes() {
            if is_plain(byte) {
                self.out.write_char(char::from(byte))?;
            } else {
                write!(self.out, "%{byte:02X}")?;
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> fmt::Result {
        self.out.write_str(if core::mem::take(&mut self.empty) { "?" } else { "&" })?;
        write!(self.out, "{name}=")
    }
}
