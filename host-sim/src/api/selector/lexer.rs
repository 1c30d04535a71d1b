//! The tokens of label selector strings.

/// A token and the text it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Lexeme,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lexeme {
    End,
    Error,
    Identifier,
    Comma,
    Bang,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Open,
    Close,
    In,
    NotIn,
}

/// Splits a selector into tokens; the last one is always `End`.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else {
            found.push(Token { kind: Lexeme::End, text: String::new() });
            return found;
        };
        let length = if is_symbol(first) {
            rest.find(|c| !is_symbol(c)).unwrap_or(rest.len()).min(symbol_length(rest))
        } else {
            rest.find(|c| is_symbol(c) || c.is_ascii_whitespace()).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        found.push(Token { kind: classify(token), text: token.to_owned() });
        rest = after;
    }
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

/// Two characters only where they are one operator.
fn symbol_length(rest: &str) -> usize {
    if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 }
}

fn classify(token: &str) -> Lexeme {
    match token {
        "," => Lexeme::Comma,
        "!" => Lexeme::Bang,
        "=" => Lexeme::Equals,
        "==" => Lexeme::DoubleEquals,
        "!=" => Lexeme::NotEquals,
        ">" => Lexeme::Greater,
        "<" => Lexeme::Less,
        "(" => Lexeme::Open,
        ")" => Lexeme::Close,
        "in" => Lexeme::In,
        "notin" => Lexeme::NotIn,
        "" => Lexeme::Error,
        _ => Lexeme::Identifier,
    }
}
