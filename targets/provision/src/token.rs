//! Tokens, and how long they last.

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use crate::identity::SOON;
use crate::material::span;

/// The header for a token. A device cannot renew it, so its end is looked at.
pub(crate) fn header(text: &str, now: u64, notes: &mut Vec<String>) -> Result<String> {
    let token = text.trim();
    ensure!(!token.is_empty(), "the token is empty");
    let is_plain =
        token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'"');
    ensure!(is_plain, "the token has spaces or other characters that no token has");
    if let Some(end) = end(token) {
        ensure!(now < end, "the token ended {} ago. {ADVICE}", span(now.saturating_sub(end)));
        if end - now < SOON {
            notes.push(format!(
                "the token ends in {}, and the device cannot renew it. {ADVICE}",
                span(end - now)
            ));
        }
    }
    Ok(format!("Bearer {token}"))
}

const ADVICE: &str = "A token that lasts is that of a Secret of type kubernetes.io/service-account-token \
                      (docs/porting.md)";

/// When a token of a service account ends, in seconds since 1970. Others do not say.
fn end(token: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Claims {
        exp: Option<u64>,
    }
    let mut parts = token.split('.');
    let (_, claims, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    serde_json::from_slice::<Claims>(&claims).ok()?.exp
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_end(exp: u64) -> String {
        let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"sub":"picokube","exp":{exp}}}"#));
        format!("e30.{claims}.c2ln")
    }

    #[test]
    fn the_end_of_a_token_is_seen() {
        let mut notes = Vec::new();
        let now = 1_800_000_000;
        let error = header(&with_end(now - 7200), now, &mut notes).unwrap_err();
        assert!(error.to_string().starts_with("the token ended 2 hours ago"), "{error}");
        assert!(notes.is_empty());
        header(&with_end(now + 3600), now, &mut notes).unwrap();
        assert!(notes[0].starts_with("the token ends in 60 minutes"), "{notes:?}");
        notes.clear();
        for lasting in [&with_end(now + SOON), "secret", "a.b.c", "e30.e30.c2ln"] {
            assert_eq!(header(lasting, now, &mut notes).unwrap(), format!("Bearer {lasting}"));
        }
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for wrong in ["", " \n", "two words", "a\\u0041", "\"quoted\""] {
            header(wrong, 0, &mut Vec::new()).unwrap_err();
        }
    }
}
