//! Every size that is not a capacity of the `resources!` macro, in one place.
//!
//! Capacities of stores are chosen by the firmware; the limits here follow from Kubernetes' own
//! rules or bound what one object may cost while it passes through. Relations between them are
//! checked at compile time at the foot of this file.

/// Longest object name (a DNS subdomain).
pub const NAME: usize = 253;
/// Longest namespace name (a DNS label).
pub const NAMESPACE: usize = 63;
/// Longest label key: a DNS subdomain as prefix, a slash and a name.
pub const LABEL_KEY: usize = 253 + 1 + LABEL_VALUE;
/// Longest label value, and longest name part of a label key.
pub const LABEL_VALUE: usize = 63;

/// Labels (or annotations that matter) of one object. Kubernetes sets no limit; an object with
/// more is refused like one that finds its store full.
pub const LABELS: usize = 64;
/// Requirements of one selector that come from `matchExpressions`.
pub const EXPRESSIONS: usize = 16;
/// Values of all `matchExpressions` of one selector together.
pub const EXPRESSION_VALUES: usize = 32;

/// What is kept of a condition's reason; those of Kubernetes' controllers have at most 28 bytes.
pub const REASON: usize = 48;
/// What is kept of a message for people; more is cut off.
pub const MESSAGE: usize = 256;
/// What is kept of a `revision-history` annotation; Kubernetes lets it grow to 2000 bytes.
pub const REVISION_HISTORY: usize = 128;
/// Init containers of one pod whose restarts are counted.
pub const INIT_CONTAINERS: usize = 32;
/// Annotations of one object that are told apart; all are covered by one digest.
pub const ANNOTATIONS: usize = 32;

/// Longest name of a ControllerRevision that can stand in the label `controller-revision-hash`: a longer one
/// the server refuses there, whatever is cut off.
pub const REVISION_NAME: usize = LABEL_VALUE + 1;
/// Names of the claim templates of one StatefulSet together, with commas between.
pub const CLAIM_TEMPLATES: usize = 128;

/// Longest `continue` token of a list that is followed, as it stands in a URL; with a longer one
/// the list is read whole. A token names the last object, in base64: one whose namespace and name
/// have more than a hundred characters leads to a longer one.
pub const CONTINUE: usize = 240;
/// Longest label selector of a watch, as it stands in a URL.
pub const SELECTOR: usize = 128;
/// The longest that a server may ask for by `Retry-After`, in seconds: a request that waits takes a place,
/// and a server that means it can say so again.
pub const RETRY_AFTER: u32 = 300;
/// Longest path and query of a request: an event of the longest name in the longest namespace.
pub const TARGET: usize = 448;
/// Longest path and query of a list or watch.
pub const WATCH_TARGET: usize = 512;

const PATH: usize = "/apis/apps/v1/namespaces//replicasets".len() + NAMESPACE;
const QUERY: usize = "?labelSelector=&limit=500&continue=".len() + SELECTOR + CONTINUE;
const _: () = assert!(PATH + QUERY <= WATCH_TARGET);
const _: () = assert!(LABEL_KEY == 317);
const _: () = assert!(NAMESPACE <= NAME);
const _: () = assert!(LABELS <= u8::MAX as usize);
const _: () = assert!(EXPRESSION_VALUES <= u8::MAX as usize);
const _: () = assert!(EXPRESSIONS <= EXPRESSION_VALUES);
const _: () = assert!(TARGET > 64 + NAMESPACE + NAME + 32);

/// A path with its query.
pub type Target = heapless::String<TARGET>;

/// The name of an object.
pub type ObjectName = heapless::String<NAME>;
