//! The interner against a plain map of counted strings.

use std::collections::BTreeMap;

use crate::support::Rng;
use picokube_core::text::{Interner, Text, TextFull};

fn text_of(texts: &Interner, text: Text) -> Vec<u8> {
    texts.pieces(text).flatten().copied().collect()
}

/// Cells that a set of texts needs: one per distinct beginning of whole pieces.
fn cells_needed<'a>(all: impl Iterator<Item = &'a Vec<u8>>) -> usize {
    let beginnings = all.flat_map(|text| {
        let ends = (1..=text.len()).filter(|end| end % 16 == 0 || *end == text.len());
        ends.map(|end| text[..end].to_vec()).collect::<Vec<_>>()
    });
    beginnings.collect::<std::collections::BTreeSet<_>>().len()
}

fn random_text(rng: &mut Rng) -> Vec<u8> {
    let len = *rng.pick(&[0, 1, 5, 15, 16, 17, 31, 32, 33, 40, 63, 100, 253]);
    // Few letters and few changes, so that beginnings are often shared.
    let mut text = vec![b'a'; len];
    for _ in 0..rng.below(3) {
        if len > 0 {
            let at = rng.below(len);
            text[at] = b'a' + rng.below(3) as u8;
        }
    }
    text
}

#[test]
fn behaves_as_a_map_of_counted_strings() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut memory = Interner::<[_; 160]>::new();
        let texts: &mut Interner = &mut memory;
        texts.seed(rng.next());
        let mut model: BTreeMap<Vec<u8>, (Text, usize)> = BTreeMap::new();
        for _ in 0..2_000 {
            let text = random_text(&mut rng);
            assert_eq!(texts.find(&text).is_some(), text.is_empty() || knows(&model, &text));
            if rng.chance(2) {
                let others = model.keys().chain(std::iter::once(&text));
                let fits = cells_needed(others) <= texts.capacity();
                let before = texts.used();
                match texts.intern(&text) {
                    Ok(handle) => {
                        assert!(fits);
                        let entry = model.entry(text.clone()).or_insert((handle, 0));
                        assert_eq!(entry.0, handle, "equal texts have equal handles");
                        entry.1 += 1;
                        assert_eq!(text_of(texts, handle), text);
                        assert!(texts.is(handle, &text));
                        assert!(!texts.is(handle, &[&text[..], b"x"].concat()));
                    }
                    Err(TextFull) => {
                        assert!(!fits, "refused although it fits");
                        assert_eq!(texts.used(), before, "a refused text leaves no trace");
                    }
                }
            } else if !model.is_empty() {
                let at = rng.below(model.len());
                let key = model.keys().nth(at).unwrap().clone();
                let (handle, count) = model.get_mut(&key).unwrap();
                texts.release(*handle);
                *count -= 1;
                if *count == 0 {
                    model.remove(&key);
                }
            }
            assert_eq!(texts.used(), cells_needed(model.keys()));
        }
        for (text, (handle, count)) in model {
            assert_eq!(text_of(texts, handle), text);
            (0..count).for_each(|_| texts.release(handle));
        }
        assert_eq!(texts.used(), 0);
    }
}

/// Whether a text is stored: as itself or as the beginning of another in whole pieces.
fn knows(model: &BTreeMap<Vec<u8>, (Text, usize)>, text: &[u8]) -> bool {
    model
        .keys()
        .any(|known| known == text || (text.len().is_multiple_of(16) && known.starts_with(text)))
}

#[test]
fn holds_exactly_its_capacity() {
    for extra in 0..3 {
        let mut memory = Interner::<[_; 8]>::new();
        let texts: &mut Interner = &mut memory;
        let count = 7 + extra;
        let fitted = (0..count).filter(|i| texts.intern(&[*i as u8; 3]).is_ok()).count();
        assert_eq!(fitted, count.min(8));
        // A text that needs no new cell still fits.
        assert!(texts.intern(&[0; 3]).is_ok());
    }
}

#[test]
fn the_longest_names_and_keys_fit() {
    let mut memory = Interner::<[_; 36]>::new();
    let texts: &mut Interner = &mut memory;
    for len in [picokube_core::limits::NAME, picokube_core::limits::LABEL_KEY] {
        let long: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
        let handle = texts.intern(&long).unwrap();
        assert_eq!(text_of(texts, handle), long);
    }
}
