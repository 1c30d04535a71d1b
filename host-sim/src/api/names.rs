//! Syntax of names, labels, keys and ports, with upstream's complaints. An empty list means: fine.

use super::kind::NameRule;

const LABEL_REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_MUST: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
    and end with an alphanumeric character";

/// Problems with an object's name. A generateName may end in `-`, as more characters follow.
pub fn object_name(rule: NameRule, name: &str, is_prefix: bool) -> Vec<String> {
    let checked = if is_prefix && name.ends_with('-') && name.len() > 1 {
        // What follows the dash is alphanumeric; stand in for it.
        format!("{}a", name.trim_end_matches('-'))
    } else {
        name.to_owned()
    };
    match rule {
        NameRule::Subdomain => dns_subdomain(&checked),
        NameRule::Label => dns_label(&checked),
        NameRule::Rfc1035Label => dns_1035_label(&checked),
        NameRule::PathSegment => path_segment(name, is_prefix),
    }
}

/// RFC 1123 subdomain: `web.example-1`.
pub fn dns_subdomain(name: &str) -> Vec<String> {
    let mut problems = max_length(name, 253);
    if !is_subdomain(name) {
        problems.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_REGEX,
            &["example.com"],
        ));
    }
    problems
}

/// RFC 1123 label: a subdomain without dots, at most 63 characters.
pub fn dns_label(name: &str) -> Vec<String> {
    let mut problems = max_length(name, 63);
    if !is_label(name) {
        problems.push(if is_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character",
                LABEL_REGEX,
                &["my-name", "123-abc"],
            )
        });
    }
    problems
}

/// RFC 1035 label: begins with a letter.
pub fn dns_1035_label(name: &str) -> Vec<String> {
    let mut problems = max_length(name, 63);
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        problems.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// Label and annotation keys, finalizers: an optional DNS prefix, `/`, a name of at most 63.
pub fn qualified_name(key: &str) -> Vec<String> {
    let examples = &["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(dns_subdomain(prefix).iter().map(|p| format!("prefix part {p}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')",
                regex_error(KEY_MUST, KEY_REGEX, examples)
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 characters".to_owned());
    }
    if !is_key_name(name) {
        problems.push(format!("name part {}", regex_error(KEY_MUST, KEY_REGEX, examples)));
    }
    problems
}

/// Label values: empty, or like the name of a key.
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = max_length(value, 63);
    if !value.is_empty() && !is_key_name(value) {
        problems.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

/// Names of container and service ports.
pub fn port_name(name: &str) -> Vec<String> {
    let mut problems = max_length(name, 15);
    let mut check = |ok: bool, problem: &str| {
        if !ok {
            problems.push(problem.to_owned());
        }
    };
    let lower = |c: char| c.is_ascii_lowercase();
    check(
        !name.is_empty() && name.chars().all(|c| lower(c) || c.is_ascii_digit() || c == '-'),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    check(name.contains(lower), "must contain at least one letter (a-z)");
    check(!name.contains("--"), "must not contain consecutive hyphens");
    check(!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with a hyphen");
    problems
}

/// Port numbers.
pub fn port_number(port: i64) -> Vec<String> {
    if (1..=65535).contains(&port) {
        Vec::new()
    } else {
        vec!["must be between 1 and 65535, inclusive".to_owned()]
    }
}

/// Names of environment variables: printable ASCII without `=`.
pub fn env_var_name(name: &str) -> Vec<String> {
    if name.chars().all(|c| (' '..='~').contains(&c) && c != '=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters \
          other than '='"
            .to_owned(),
    ]
}

/// Keys of config maps and secrets.
pub fn config_key(key: &str) -> Vec<String> {
    let mut problems = max_length(key, 253);
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if key.is_empty() || !key.chars().all(allowed) {
        problems.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match key {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// Percentages such as `25%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or("");
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![regex_error(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

fn path_segment(name: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%']
        .iter()
        .filter(|c| name.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| alphanumeric(*b))
        && bytes.last().is_some_and(|b| alphanumeric(*b))
        && bytes.iter().all(|b| alphanumeric(*b) || *b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn max_length(text: &str, limit: usize) -> Vec<String> {
    if text.len() > limit {
        vec![format!("must be no more than {limit} characters")]
    } else {
        Vec::new()
    }
}

fn regex_error(message: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&str) -> Vec<String>;

    #[test]
    fn names_are_judged_as_upstream_judges_them() {
        let long = "a".repeat(64);
        let fine: &[(Rule, &[&str])] = &[
            (dns_subdomain, &["a", "web-1", "a.b.c", "1", &long]),
            (dns_label, &["a", "web-1", "1a"]),
            (dns_1035_label, &["a", "web-1"]),
            (qualified_name, &["a", "A_b.c-1", "example.com/My.Name", "kubernetes.io/x"]),
            (label_value, &["", "a", "A_b.c-1"]),
            (port_name, &["http", "a-1", "1a"]),
            (env_var_name, &["A", "my.env", "1A", "a b"]),
            (config_key, &["a", "A.b_c-1", ".a"]),
            (percent, &["0%", "25%", "1000%"]),
        ];
        for (rule, names) in fine {
            for name in *names {
                assert_eq!(rule(name), Vec::<String>::new(), "{name}");
            }
        }
        let bad: &[(Rule, &[&str])] = &[
            (dns_subdomain, &["", "A", "-a", "a-", "a..b", "a_b", "ä"]),
            (dns_label, &["", "a.b", "A", &long]),
            (dns_1035_label, &["1a", "a.b", ""]),
            (qualified_name, &["", "a/b/c", "/a", "a/", "-a", "A.com/x", "a b"]),
            (label_value, &["-a", "a b", "a/b", &long]),
            (port_name, &["", "1", "a--b", "-a", "A", "averyveryverylongname"]),
            (env_var_name, &["a=b", "ä"]),
            (config_key, &["", "..", ".", "..a", "a b", "a/b"]),
            (percent, &["", "%", "1", "-1%", "a%", "1.5%"]),
        ];
        for (rule, names) in bad {
            for name in *names {
                assert_ne!(rule(name), Vec::<String>::new(), "{name}");
            }
        }
    }

    #[test]
    fn complaints_are_upstreams_words() {
        assert_eq!(
            dns_subdomain("Web"),
            ["a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
              '-' or '.', and must start and end with an alphanumeric character (e.g. \
              'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]
        );
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            label_value("a b"),
            ["a valid label must be an empty string or consist of alphanumeric characters, '-', \
              '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  \
              or 'my_value',  or '12345', regex used for validation is \
              '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"]
        );
    }

    #[test]
    fn a_generated_names_prefix_may_end_in_a_dash() {
        assert!(object_name(NameRule::Subdomain, "web-", true).is_empty());
        assert!(!object_name(NameRule::Subdomain, "web-", false).is_empty());
        assert!(!object_name(NameRule::Subdomain, "-", true).is_empty());
    }
}
