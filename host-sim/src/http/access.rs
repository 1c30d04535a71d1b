//! Who may come in.

use crate::server::request::User;

/// The rule for requests.
#[derive(Clone, Debug)]
pub enum Access {
    /// Everybody who can reach the socket; only for loopback addresses.
    Open,
    /// Only those who know the token.
    Token(String),
}

impl Access {
    /// The user behind an Authorization header; `None` if there is none.
    pub fn user(&self, authorization: Option<&str>) -> Option<User> {
        match self {
            Self::Open => Some(User::default()),
            Self::Token(expected) => {
                let (scheme, given) = authorization?.split_once(' ')?;
                let known = scheme.eq_ignore_ascii_case("bearer")
                    && same(given.trim().as_bytes(), expected.as_bytes());
                known.then(User::default)
            }
        }
    }
}

/// Compares in a time that does not depend on how much is right.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let different = given.iter().zip(expected).fold(0, |all, (a, b)| all | (a ^ b));
    different == 0 && given.len() == expected.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_to_be_right() {
        let access = Access::Token("secret".into());
        assert!(access.user(Some("Bearer secret")).is_some());
        assert!(access.user(Some("bearer secret")).is_some());
        for wrong in [
            None,
            Some(""),
            Some("secret"),
            Some("Bearer"),
            Some("Bearer secre"),
            Some("Bearer secrets"),
            Some("Basic secret"),
        ] {
            assert!(access.user(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn open_access_asks_nothing() {
        assert!(Access::Open.user(None).is_some());
    }
}
