//! The messages of the handshake that a client meets (§4).

pub(crate) const CLIENT_HELLO: u8 = 1;
pub(crate) const SERVER_HELLO: u8 = 2;
pub(crate) const NEW_SESSION_TICKET: u8 = 4;
pub(crate) const ENCRYPTED_EXTENSIONS: u8 = 8;
pub(crate) const CERTIFICATE: u8 = 11;
pub(crate) const CERTIFICATE_REQUEST: u8 = 13;
pub(crate) const CERTIFICATE_VERIFY: u8 = 15;
pub(crate) const FINISHED: u8 = 20;
pub(crate) const KEY_UPDATE: u8 = 24;
/// Stands for the first hello after it was asked for again (§4.4.1).
pub(crate) const MESSAGE_HASH: u8 = 254;

/// What a message has before its body: kind and length.
pub(crate) const HEADER: usize = 4;
