//! Text as part of a JSON string.

use core::fmt;

/// Escapes what is written to it, so that it can stand between the quotes of a JSON string.
pub struct Escape<'a>(pub &'a mut dyn fmt::Write);

impl fmt::Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            let (plain, from) = rest.split_at_checked(at).ok_or(fmt::Error)?;
            self.0.write_str(plain)?;
            let mut characters = from.chars();
            match characters.next() {
                Some('"') => self.0.write_str("\\\"")?,
                Some('\\') => self.0.write_str("\\\\")?,
                Some('\n') => self.0.write_str("\\n")?,
                Some('\t') => self.0.write_str("\\t")?,
                Some('\r') => self.0.write_str("\\r")?,
                Some(other) => write!(self.0, "\\u{:04x}", u32::from(other))?,
                None => {}
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;
    use std::string::String;

    #[test]
    fn reads_back_as_it_was_written() {
        for text in ["", "plain", "\"quoted\"", "back\\slash", "\u{0}\u{1f}\n\r\t", "äöü €\u{7f}"]
        {
            let mut out = String::from("\"");
            write!(Escape(&mut out), "{text}").unwrap();
            out.push('"');
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
