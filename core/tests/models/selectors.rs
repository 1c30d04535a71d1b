//! Selectors against the definition in Kubernetes' API, on plain strings.

use std::collections::BTreeMap;

use crate::support::{Rng, fp};
use picokube_core::text::{Interner, LabelSet, Labels, Selector, StoredSelector};

type Map = BTreeMap<String, String>;

#[derive(Debug, Clone, Default)]
struct Model {
    present: bool,
    match_labels: Map,
    expressions: Vec<(String, &'static str, Vec<String>)>,
}

impl Model {
    fn is_valid(&self) -> bool {
        self.expressions.iter().all(|(_, operator, values)| match *operator {
            "In" | "NotIn" => !values.is_empty(),
            "Exists" | "DoesNotExist" => values.is_empty(),
            _ => false,
        })
    }

    fn is_empty(&self) -> bool {
        self.present && self.match_labels.is_empty() && self.expressions.is_empty()
    }

    fn matches(&self, labels: &Map) -> bool {
        self.present
            && self.is_valid()
            && self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|(key, operator, values)| {
                let value = labels.get(key);
                match *operator {
                    "In" => value.is_some_and(|value| values.contains(value)),
                    "NotIn" => value.is_none_or(|value| !values.contains(value)),
                    "Exists" => value.is_some(),
                    _ => value.is_none(),
                }
            })
    }

    fn build(&self, rng: &mut Rng) -> Selector {
        let mut selector = Selector::new();
        if self.present {
            selector.begin();
        }
        for (key, value) in &self.match_labels {
            selector.match_label(fp(key), fp(value));
        }
        for (key, operator, values) in &self.expressions {
            selector.begin_expression();
            // JSON members come in any order.
            let order = *rng.pick(&[[0, 1, 2], [2, 1, 0], [1, 2, 0]]);
            for member in order {
                match member {
                    0 => selector.expression_key(fp(key)),
                    1 => selector.expression_operator(operator.as_bytes()),
                    _ => values.iter().for_each(|value| selector.expression_value(fp(value))),
                }
            }
            selector.end_expression();
        }
        selector
    }
}

fn random_map(rng: &mut Rng, most: usize) -> Map {
    let entry = |rng: &mut Rng| (format!("k{}", rng.below(4)), format!("v{}", rng.below(3)));
    (0..rng.below(most + 1)).map(|_| entry(rng)).collect()
}

fn random_model(rng: &mut Rng) -> Model {
    let present = !rng.chance(20);
    if !present {
        return Model::default();
    }
    let expressions = (0..rng.below(3))
        .map(|_| {
            let mut operator = *rng.pick(&["In", "NotIn", "Exists", "DoesNotExist"]);
            let mut count = if operator.ends_with("In") { 1 + rng.below(3) } else { 0 };
            if rng.chance(20) {
                count = rng.below(3);
            }
            if rng.chance(40) {
                operator = "Matches";
            }
            let values = (0..count).map(|_| format!("v{}", rng.below(3))).collect();
            (format!("k{}", rng.below(4)), operator, values)
        })
        .collect();
    Model { present, match_labels: random_map(rng, 2), expressions }
}

fn labels_of(map: &Map) -> Labels {
    let mut labels = Labels::new();
    map.iter().for_each(|(key, value)| labels.insert_text(key, value));
    labels
}

#[test]
fn matches_as_the_api_defines() {
    let (mut matched, mut shared) = (0, 0);
    for seed in 0..40 {
        eprintln!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut memory = Interner::<[_; 400]>::new();
        let texts: &mut Interner = &mut memory;
        for _ in 0..300 {
            let model = random_model(&mut rng);
            let selector = model.build(&mut rng);
            // Some are kept as a part of the labels of a template, which they may or may not be.
            let mut template = random_map(&mut rng, 4);
            if rng.chance(2) {
                template.extend(model.match_labels.clone());
            }
            let template = labels_of(&template);
            let template = LabelSet::intern(texts, template.as_slice().unwrap()).unwrap();
            let used = texts.used();
            let stored = StoredSelector::intern_within(texts, &selector, template).unwrap();
            shared += usize::from(texts.used() == used && !model.match_labels.is_empty());
            template.release(texts);
            assert_eq!(stored.validate().is_ok(), model.is_valid(), "{model:?}");
            assert_eq!(selector.validate().is_ok(), model.is_valid(), "{model:?}");
            assert_eq!(stored.is_empty(), model.is_empty() && model.is_valid(), "{model:?}");
            for _ in 0..10 {
                let map = random_map(&mut rng, 4);
                let labels = labels_of(&map);
                let set = LabelSet::intern(texts, labels.as_slice().unwrap()).unwrap();
                let expected = model.matches(&map);
                matched += usize::from(expected);
                assert_eq!(stored.matches(texts, set), expected, "{model:?} {map:?}");
                let orphan = expected && !map.is_empty() && !model.is_empty();
                assert_eq!(stored.matches_orphan(texts, set), orphan, "{model:?} {map:?}");
                assert_eq!(stored.may_match(texts, &labels), orphan, "{model:?} {map:?}");
                set.release(texts);
            }
            stored.release(texts);
        }
        assert_eq!(texts.used(), 0);
    }
    assert!((20_000..100_000).contains(&matched), "{matched} of 120000: both verdicts are common");
    assert!((1_000..10_000).contains(&shared), "{shared} of 12000: both forms are common");
}

#[test]
fn equal_sets_are_one_and_contains_is_inclusion() {
    let mut rng = Rng::new(7);
    let mut memory = Interner::<[_; 100]>::new();
    let texts: &mut Interner = &mut memory;
    for _ in 0..10_000 {
        let (one, other) = (random_map(&mut rng, 4), random_map(&mut rng, 4));
        let intern = |texts: &mut Interner, map: &Map| {
            LabelSet::intern(texts, labels_of(map).as_slice().unwrap()).unwrap()
        };
        let (a, b) = (intern(texts, &one), intern(texts, &other));
        assert_eq!(a == b, one == other);
        let included = other.iter().all(|(key, value)| one.get(key) == Some(value));
        assert_eq!(a.contains(texts, b), included);
        for (key, value) in &one {
            assert_eq!(a.value(texts, fp(key)), Some(fp(value)));
        }
        assert_eq!(a.iter(texts).count(), one.len());
        a.release(texts);
        b.release(texts);
    }
    assert_eq!(texts.used(), 0);
}

#[test]
fn a_selector_that_does_not_fit_leaves_no_trace() {
    for capacity_left in 0..4 {
        let mut memory = Interner::<[_; 8]>::new();
        let texts: &mut Interner = &mut memory;
        for filler in 0..8 - capacity_left {
            texts.intern(&[filler as u8]).unwrap();
        }
        let mut selector = Selector::new();
        selector.match_label(fp("a"), fp("b"));
        selector.begin_expression();
        selector.expression_key(fp("c"));
        selector.expression_operator(b"In");
        selector.expression_value(fp("d"));
        selector.end_expression();
        let used = texts.used();
        let stored = StoredSelector::intern(texts, &selector);
        assert_eq!(stored.is_ok(), capacity_left >= 3);
        if stored.is_err() {
            assert_eq!(texts.used(), used);
        }
    }
}
