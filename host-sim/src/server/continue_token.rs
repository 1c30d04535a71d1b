//! Continue tokens: where a list in pages goes on, and in which snapshot.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::api::status::Status;

const VERSION: &str = "meta.k8s.io/v1";

/// The contents of a token. Opaque to clients, so the format may change between versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContinueToken {
    v: String,
    /// Revision of the snapshot; -1 goes on with whatever is there now.
    rv: i64,
    /// The last key that was sent.
    start: String,
}

impl ContinueToken {
    /// Goes on after `key` in the snapshot at `revision`.
    pub(super) fn after(key: &str, revision: u64) -> Self {
        Self { v: VERSION.to_owned(), rv: revision as i64, start: key.to_owned() }
    }

    /// The same place without consistency, for when the snapshot is gone.
    pub(super) fn inconsistent(&self) -> Self {
        Self { rv: -1, ..self.clone() }
    }

    /// The snapshot to read; `None` for the current state.
    pub(super) fn revision(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    /// The last key that was sent.
    pub(super) fn last_key(&self) -> &str {
        &self.start
    }

    /// The token as clients see it.
    pub(super) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a token; `prefix` is the namespace prefix of the list it has to belong to.
    pub(super) fn decode(text: &str, prefix: &str) -> Result<Self, Status> {
        let bad = |why: &str| Status::bad_request(format!("continue key is not valid: {why}"));
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|error| bad(&error.to_string()))?;
        let token: Self = serde_json::from_slice(&json).map_err(|_| bad("unknown format"))?;
        if token.v != VERSION {
            return Err(bad("unknown version"));
        }
        if token.rv == 0 || token.rv < -1 {
            return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        if !token.start.starts_with(prefix) {
            return Err(bad("it belongs to a list of another namespace"));
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        let token = ContinueToken::after("ns/pod-499", 77);
        assert_eq!(ContinueToken::decode(&token.encode(), "ns/"), Ok(token.clone()));
        assert_eq!((token.revision(), token.inconsistent().revision()), (Some(77), None));
    }

    #[test]
    fn forged_tokens_are_refused() {
        let forged = |rv| ContinueToken { rv, ..ContinueToken::after("ns/x", 1) }.encode();
        for token in ["", "!", "e30", &forged(0), &forged(-2)] {
            let refused = ContinueToken::decode(token, "ns/").map_err(|status| status.code());
            assert_eq!(refused, Err(400), "{token}");
        }
        let foreign = ContinueToken::after("other/x", 3).encode();
        assert!(ContinueToken::decode(&foreign, "ns/").is_err());
    }
}
