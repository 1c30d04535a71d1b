//! The digest against a plain model: equal digests exactly for values that are semantically equal.

use picokube_core::json::{Digest, Digester, Shape, Tokenizer};
use std::collections::{BTreeMap, HashMap};

/// A value with more than one spelling.
#[derive(Clone, Debug)]
enum Tree {
    Null,
    Bool(bool),
    /// digits · 10^exponent
    Number(i64, i32),
    Text(&'static str),
    Array(Vec<Tree>),
    Object(Vec<(&'static str, Tree)>),
}

/// The root has a map under `map`, a quantity under `q`, one that may be unset under `q0` and
/// something that does not count under `no`.
static SHAPE: Shape = Shape::object(&[
    ("map", &Shape::map(&Shape::QUANTITY)),
    ("q", &Shape::QUANTITY),
    ("q0", &Shape::QUANTITY_OR_ZERO),
    ("t", &Shape::TIME),
    ("no", &Shape::OMITTED),
    ("e", &Shape::embedded(&[("map", &Shape::MAP)])),
]);

#[test]
fn digests_are_equal_exactly_when_the_values_are() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut digest_of: HashMap<String, Digest> = HashMap::new();
    let mut value_of: HashMap<Digest, String> = HashMap::new();
    let (mut operations, mut repeats) = (0, 0);
    while operations < 120_000 {
        let tree = random.object(3, true);
        let canonical = canonical(&tree, Some(&SHAPE)).unwrap();
        for _ in 0..3 {
            let mut text = String::new();
            random.spell(&tree, &mut text);
            let digest = digest(text.as_bytes(), 1 + random.below(40), &SHAPE);
            operations += 1;
            if let Some(known) = digest_of.insert(canonical.clone(), digest) {
                assert_eq!(known, digest, "{text} is {canonical}");
                repeats += 1;
            }
            let value = value_of.entry(digest).or_insert_with(|| canonical.clone());
            assert_eq!(*value, canonical, "two values, one digest: {text}");
        }
    }
    assert!(digest_of.len() > 10_000, "only {} different values", digest_of.len());
    assert!(repeats > 80_000, "only {repeats} repeats");
}

#[test]
fn semantic_equality_is_kubernetes() {
    for (one, other, equal) in [
        (r#"{"a":null}"#, "{}", true),
        (r#"{"a":[]}"#, "{}", true),
        (r#"{"a":{}}"#, "{}", false),
        (r#"{"map":{}}"#, "{}", true),
        (r#"{"e":{"map":{}}}"#, "{}", true),
        (r#"{"a":[{}]}"#, r#"{"a":[]}"#, false),
        (r#"{"a":[null]}"#, r#"{"a":[]}"#, false),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
        (r#"{"a":[[1],[2]]}"#, r#"{"a":[[1,2]]}"#, false),
        (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true),
        (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#, false),
        (r#"{"a":1}"#, r#"{"a":1.0}"#, true),
        (r#"{"a":10}"#, r#"{"a":1e1}"#, true),
        (r#"{"a":1}"#, r#"{"a":"1"}"#, false),
        (r#"{"a":"x"}"#, r#"{"a":"\u0078"}"#, true),
        (r#"{"\u0061":"x"}"#, r#"{"a":"x"}"#, true),
        (r#"{"a":true}"#, r#"{"a":false}"#, false),
        (r#"{"a":false}"#, "{}", false),
        (r#"{"a":""}"#, "{}", false),
        (r#"{"ab":"c"}"#, r#"{"a":"bc"}"#, false),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":"c","b":"c"}"#, false),
        (r#"{"q":"1"}"#, r#"{"q":"1000m"}"#, true),
        (r#"{"q":"1"}"#, r#"{"q":1}"#, true),
        (r#"{"q":"1Gi"}"#, r#"{"q":"1024Mi"}"#, true),
        (r#"{"q":"1G"}"#, r#"{"q":"1Gi"}"#, false),
        (r#"{"q":"0"}"#, "{}", false),
        (r#"{"q0":"0"}"#, "{}", true),
        (r#"{"q0":"0.000"}"#, r#"{"q0":"0Mi"}"#, true),
        (r#"{"q":"one"}"#, r#"{"q":"two"}"#, false),
        (r#"{"map":{"cpu":"500m"}}"#, r#"{"map":{"cpu":"0.5"}}"#, true),
        (r#"{"x":"500m"}"#, r#"{"x":"0.5"}"#, false),
        (r#"{"t":"2026-01-01T00:00:00Z"}"#, r#"{"t":"2026-01-01T01:00:00+01:00"}"#, true),
        (r#"{"t":"2026-01-01T00:00:00Z"}"#, r#"{"t":"2026-01-01T00:00:01Z"}"#, false),
        (r#"{"no":{"a":[1,{"b":2}]},"z":1}"#, r#"{"z":1,"no":"x"}"#, true),
        (r#"{"no":1}"#, "{}", true),
    ] {
        for chunk in 1..one.len().max(other.len()) {
            let verdict = digest(one.as_bytes(), chunk, &SHAPE)
                == digest(other.as_bytes(), 1 + other.len() - chunk.min(other.len()), &SHAPE);
            assert_eq!(verdict, equal, "{one} and {other}");
        }
    }
}

#[test]
fn long_texts_and_numbers_count_to_their_last_byte() {
    let long = "9".repeat(5_000);
    for (one, other) in [
        (format!("[\"{long}\"]"), format!("[\"{long}8\"]")),
        (format!("[0.{long}]"), format!("[0.{long}8]")),
        (format!("{{\"{long}\":1}}"), format!("{{\"{long}8\":1}}")),
        (format!("{{\"q\":\"0.{long}\"}}"), format!("{{\"q\":\"0.{long}8\"}}")),
    ] {
        for chunk in [1, 47, 48, 49, 10_000] {
            let one = digest(one.as_bytes(), chunk, &SHAPE);
            assert_ne!(one, digest(other.as_bytes(), chunk, &SHAPE));
        }
        assert_eq!(digest(one.as_bytes(), 7, &SHAPE), digest(one.as_bytes(), 10_000, &SHAPE));
    }
}

fn digest(text: &[u8], chunk: usize, shape: &'static Shape) -> Digest {
    let mut tokenizer = Tokenizer::new();
    let mut digester = Digester::new(shape);
    for chunk in text.chunks(chunk) {
        assert_eq!(tokenizer.feed(chunk, &mut digester), Ok(chunk.len()));
    }
    tokenizer.finish(&mut digester).unwrap();
    digester.finish().unwrap()
}

/// The text that stands for all equal values; `None` for absence.
fn canonical(tree: &Tree, shape: Option<&Shape>) -> Option<String> {
    let plain = Shape::PLAIN;
    let shape = shape.unwrap_or(&plain);
    let kind = format!("{:?}", shape.meaning);
    let quantity = |value: (i64, i32)| match value.0 {
        0 if kind.contains("zero_is_absent: true") => None,
        _ => Some(format!("q{value:?}")),
    };
    match tree {
        _ if kind == "Omitted" => None,
        Tree::Null => None,
        Tree::Bool(value) => Some(value.to_string()),
        Tree::Number(digits, exponent) if kind.starts_with("Quantity") => {
            quantity(normal(*digits, *exponent))
        }
        Tree::Number(digits, exponent) => Some(format!("{:?}", normal(*digits, *exponent))),
        Tree::Text(text) if kind.starts_with("Quantity") => match *text {
            "" | "a" => Some(format!("{text:?}")),
            text => quantity(normal(text.trim_end_matches('m').parse().unwrap(), {
                if text.ends_with('m') { -3 } else { 0 }
            })),
        },
        Tree::Text(text) => Some(format!("{text:?}")),
        Tree::Array(elements) if elements.is_empty() => None,
        Tree::Array(elements) => {
            let all: Vec<_> = elements.iter().map(|e| canonical(e, shape.rest)).collect();
            Some(format!("{all:?}"))
        }
        Tree::Object(members) => {
            let known = |name: &str| {
                let member = shape.members.iter().find(|(member, _)| *member == name);
                member.map(|(_, shape)| *shape).or(shape.rest)
            };
            let all: BTreeMap<_, _> = members
                .iter()
                .filter_map(|(name, value)| Some((name, canonical(value, known(name))?)))
                .collect();
            (!all.is_empty() || !shape.empty_is_absent).then(|| format!("{all:?}"))
        }
    }
}

fn normal(mut digits: i64, mut exponent: i32) -> (i64, i32) {
    if digits == 0 {
        return (0, 0);
    }
    while digits % 10 == 0 {
        digits /= 10;
        exponent += 1;
    }
    (digits, exponent)
}

/// Small and repeatable (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn tree(&mut self, depth: usize) -> Tree {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Tree::Null,
            1 => Tree::Bool(self.below(2) == 0),
            2 => Tree::Number(self.below(4) as i64 * 5, self.below(3) as i32 - 1),
            3 | 4 => Tree::Text(self.pick(&["", "a", "1", "1000m", "5", "0", "0m"])),
            5 => Tree::Array((0..self.below(3)).map(|_| self.tree(depth - 1)).collect()),
            _ => self.object(depth - 1, false),
        }
    }

    fn object(&mut self, depth: usize, root: bool) -> Tree {
        let mut members = Vec::new();
        let size = self.below(if root { 6 } else { 4 });
        for name in ["map", "a", "q", "q0", "no", "e", "b"] {
            if members.len() < size && self.below(2) == 0 {
                members.push((name, self.tree(depth)));
            }
        }
        Tree::Object(members)
    }

    fn spell(&mut self, tree: &Tree, text: &mut String) {
        text.push_str(self.pick(&["", "", " ", "\n"]));
        match tree {
            Tree::Null => text.push_str("null"),
            Tree::Bool(value) => text.push_str(&value.to_string()),
            Tree::Number(digits, exponent) => self.spell_number(*digits, *exponent, text),
            Tree::Text(value) => self.spell_text(value, text),
            Tree::Array(elements) => {
                text.push('[');
                for (position, element) in elements.iter().enumerate() {
                    text.push_str(if position > 0 { "," } else { "" });
                    self.spell(element, text);
                }
                text.push(']');
            }
            Tree::Object(members) => {
                let mut members = members.clone();
                for last in (1..members.len()).rev() {
                    members.swap(last, self.below(last + 1));
                }
                if self.below(4) == 0 {
                    members.push(("absent", Tree::Null));
                }
                text.push('{');
                for (position, (name, value)) in members.iter().enumerate() {
                    text.push_str(if position > 0 { "," } else { "" });
                    self.spell_text(name, text);
                    text.push(':');
                    self.spell(value, text);
                }
                text.push('}');
            }
        }
    }

    fn spell_number(&mut self, digits: i64, exponent: i32, text: &mut String) {
        let zeros = self.below(4);
        text.push_str(&digits.to_string());
        match self.below(3) {
            0 => text.push_str(&format!("e{exponent}")),
            1 => text.push_str(&format!(".{}E{exponent:+}", "0".repeat(zeros + 1))),
            _ if digits == 0 => {}
            _ => text.push_str(&format!("{}e{}", "0".repeat(zeros), exponent - zeros as i32)),
        }
    }

    fn spell_text(&mut self, value: &str, text: &mut String) {
        text.push('"');
        for character in value.chars() {
            match self.below(5) {
                0 => text.push_str(&format!("\\u{:04x}", character as u32)),
                _ => text.push(character),
            }
        }
        text.push('"');
    }
}
