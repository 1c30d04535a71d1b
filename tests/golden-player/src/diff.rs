//! A readable difference of two values: what was expected, what came instead, and where.

use serde_json::Value;

use super::object::text;

/// How many lines are worth reading.
const MOST_LINES: usize = 60;
/// How much of a value is worth reading.
const MOST_CHARACTERS: usize = 600;

/// The differences, a line each: `-` was expected, `+` came instead. Empty if there are none.
pub fn diff(expected: &Value, got: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", expected, got, &mut lines);
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("  … and {more} lines more"));
    }
    lines
}

fn compare(path: &str, expected: &Value, got: &Value, lines: &mut Vec<String>) {
    match (expected, got) {
        _ if expected == got => {}
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => compare(&path, left, right, lines),
                    (Some(left), None) => lines.push(format!("- {path}: {}", brief(left))),
                    (None, Some(right)) => lines.push(format!("+ {path}: {}", brief(right))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(left), Value::Array(right)) => compare_lists(path, left, right, lines),
        _ => {
            lines.push(format!("- {path}: {}", brief(expected)));
            lines.push(format!("+ {path}: {}", brief(got)));
        }
    }
}

/// Members that are the same on both sides are aligned; between them, members of the same kind and
/// name are compared in detail, others told whole.
fn compare_lists(path: &str, left: &[Value], right: &[Value], lines: &mut Vec<String>) {
    let mut gap = (0, 0);
    let mut ends = common(left, right);
    ends.push((left.len(), right.len()));
    for (at_left, at_right) in ends {
        let (expected, got) = (&left[gap.0..at_left], &right[gap.1..at_right]);
        let paired = expected.len().min(got.len());
        for (index, (a, b)) in expected.iter().zip(got).enumerate() {
            let path = format!("{path}[{}]{}", gap.0 + index, title(a));
            if is_same_thing(a, b) {
                compare(&path, a, b, lines);
            } else {
                lines.push(format!("- {path}: {}", brief(a)));
                lines.push(format!("+ {path}: {}", brief(b)));
            }
        }
        for (index, member) in expected.iter().enumerate().skip(paired) {
            lines.push(format!("- {path}[{}]: {}", gap.0 + index, brief(member)));
        }
        for (index, member) in got.iter().enumerate().skip(paired) {
            lines.push(format!("+ {path}[{}]: {}", gap.1 + index, brief(member)));
        }
        gap = (at_left + 1, at_right + 1);
    }
}

/// The positions of a longest common subsequence.
fn common(left: &[Value], right: &[Value]) -> Vec<(usize, usize)> {
    let width = right.len() + 1;
    let mut longest = vec![0u32; (left.len() + 1) * width];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            longest[i * width + j] = if left[i] == right[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut positions) = (0, 0, Vec::new());
    while i < left.len() && j < right.len() {
        if left[i] == right[j] {
            positions.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    positions
}

fn is_same_thing(a: &Value, b: &Value) -> bool {
    a.is_object() && b.is_object() && a["kind"] == b["kind"] && a["name"] == b["name"]
}

fn title(value: &Value) -> String {
    match (value.get("kind"), value.get("name")) {
        (Some(kind), Some(name)) => format!(" {}/{}", text(kind), text(name)),
        (Some(kind), None) => format!(" {}", text(kind)),
        _ => String::new(),
    }
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_the_same_is_not_told() {
        assert!(diff(&json!([1, {"a": 2}]), &json!([1, {"a": 2}])).is_empty());
    }

    #[test]
    fn fields_are_named() {
        let expected = json!([{"kind": "Pod", "name": "a", "ready": true, "node": "n"}]);
        let got = json!([{"kind": "Pod", "name": "a", "ready": false, "phase": "x"}]);
        let lines = diff(&expected, &got);
        let wanted = [
            "- [0] Pod/a.node: \"n\"",
            "+ [0] Pod/a.phase: \"x\"",
            "- [0] Pod/a.ready: true",
            "+ [0] Pod/a.ready: false",
        ];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn lists_are_aligned() {
        let lines = diff(&json!([1, 2, 3, 4]), &json!([1, 3, 4, 5]));
        assert_eq!(lines, ["- [1]: 2", "+ [3]: 5"]);
    }

    #[test]
    fn long_differences_are_cut() {
        let many: Vec<u32> = (0..1000).collect();
        let lines = diff(&json!(many), &json!([]));
        assert_eq!(lines.len(), MOST_LINES + 1);
        assert!(lines[MOST_LINES].contains("940 lines more"));
    }
}
