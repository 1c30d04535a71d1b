//! Percent-encoding of paths and queries.

/// Decodes one path segment or query part; `None` if it is not valid or not UTF-8.
/// In queries a plus sign stands for a space.
pub fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                (high * 16 + low) as u8
            }
            b'+' if plus_is_space => b' ',
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

/// Encodes text so that it can stand anywhere in a query or path segment.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_can_be_undone() {
        let text = "app in (a,b),tier!=ü /%+";
        assert_eq!(decode(&encode(text), true).as_deref(), Some(text));
    }

    #[test]
    fn a_plus_is_a_space_only_in_queries() {
        assert_eq!(decode("a+b", true).as_deref(), Some("a b"));
        assert_eq!(decode("a+b", false).as_deref(), Some("a+b"));
    }

    #[test]
    fn broken_sequences_are_refused() {
        for text in ["%", "%2", "%g0", "%ff"] {
            assert_eq!(decode(text, true), None, "{text}");
        }
    }
}
