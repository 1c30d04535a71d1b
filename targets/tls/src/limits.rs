//! Sizes and limits, in one place.

/// What stands before every record: kind, version, length (§5.1).
pub const RECORD_HEADER: usize = 5;

/// The most data that one record carries (§5.1).
pub const MAX_DATA: usize = 1 << 14;

/// The tag of both ciphers.
pub(crate) const TAG: usize = 16;

/// What one record of ours takes beside its data: header, kind and tag.
pub const OVERHEAD: usize = RECORD_HEADER + 1 + TAG;

/// A buffer that any record of any server fits. TLS has room for ciphers that add more than ours do (§5.2);
/// with ours, a longer record would carry more than a record may (§5.4).
pub const ANY_RECORD: usize = MAX_DATA + OVERHEAD;

/// The smallest buffer that a handshake is tried with.
pub const MIN_BUFFER: usize = 1024;

/// The certificates that a server may send: its own and four between it and an authority.
pub(crate) const MAX_CHAIN: usize = 5;

/// The authorities that a configuration may name.
pub(crate) const MAX_ANCHORS: usize = 8;

/// How many records in a row may bring no data: empty ones, tickets, new keys, warnings. Servers send two
/// tickets, some ten; more in a row than this only keep us busy.
pub(crate) const MAX_IDLE_RECORDS: u8 = 32;

/// As how many of them a warning counts: it says that the end will come, which needs no fifth one in a row.
pub(crate) const WARNING: u8 = 7;

/// The records after which AES-GCM gets a new key: below the 2^24.5 of §5.5.
pub(crate) const AES_GCM_RECORDS: u64 = 1 << 24;

/// The same for ChaCha20-Poly1305, whose only bound is the sequence number (§5.5): far below it.
pub(crate) const CHACHA20_RECORDS: u64 = 1 << 48;

/// The longest that a ticket may be kept: seven days (§4.6.1).
pub(crate) const MAX_TICKET_SECONDS: u32 = 604_800;

/// The longest ticket that is kept. Those of Go take 105 bytes, 560 with a client certificate in them.
pub(crate) const MAX_TICKET: usize = 1024;

const _: () = assert!(ANY_RECORD == 16_406);
const _: () = assert!(4 * WARNING <= MAX_IDLE_RECORDS && 5 * WARNING > MAX_IDLE_RECORDS);
const _: () = assert!(MAX_TICKET < 0xffff - 64);
// The record that announces a new key needs room before the hard limit.
const _: () = assert!(AES_GCM_RECORDS < 23_726_566);
