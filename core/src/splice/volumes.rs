//! Which volumes of a template give way to those of a StatefulSet's claims.
//!
//! Whether one does is known when its name has come, which may be at its end. So the volumes are
//! looked at in one reading and copied in the next.

use super::copy::Pass;
use super::stateful_set_pod::VOLUMES;
use super::{Make, SpliceError};
use crate::json::{Fragment, Token};

/// The volumes of a template, in order.
#[derive(Clone, Debug)]
pub(super) struct Volumes {
    /// Those that give way, one bit each.
    replaced: u64,
    /// How many are over in this reading.
    passed: u32,
    comparison: Comparison,
    /// The string that comes next is the name of a volume.
    is_name: bool,
}

impl Volumes {
    pub(super) const START: Self =
        Self { replaced: 0, passed: 0, comparison: Comparison::START, is_name: false };

    /// Gets ready for another reading.
    pub(super) fn restart(&mut self) {
        self.passed = 0;
        self.is_name = false;
    }

    /// Whether the volume at hand gives way.
    pub(super) fn is_replaced(&self) -> bool {
        self.bit().is_some_and(|bit| self.replaced & bit != 0)
    }

    /// Counts a volume that is over with this token, so many arrays and objects into the spec.
    pub(super) fn pass(&mut self, token: Token<'_>, depth: u16) {
        if depth == 2 && token.ends_value() {
            self.passed += 1;
            self.is_name = false;
        }
    }

    fn bit(&self) -> Option<u64> {
        1_u64.checked_shl(self.passed)
    }
}

impl Pass<'_> {
    /// Looks for volumes that are called as a claim template is.
    pub(super) fn find_replaced_volumes(&mut self, token: Token<'_>) {
        let Make::StatefulSetPod { claims, .. } = &self.splice.make else { return };
        if claims.is_empty() {
            return;
        }
        let depth = self.depth(token);
        if let (1, Token::Key(_)) = (depth, token) {
            return self.look_at_entries(token, |key| key != VOLUMES);
        }
        if depth == 0 || self.copier.entries.left_out() != Some(VOLUMES) {
            return;
        }
        let volumes = &mut self.copier.volumes;
        match (depth, token) {
            (3, Token::Key(fragment)) => {
                volumes.is_name = volumes.comparison.push(fragment, ["name"].into_iter());
            }
            (3, Token::String(fragment))
                if volumes.is_name && volumes.comparison.push(fragment, claims.split(',')) =>
            {
                match volumes.bit() {
                    Some(bit) => volumes.replaced |= bit,
                    None => self.fail(SpliceError::TooLarge),
                }
            }
            _ => volumes.pass(token, depth),
        }
    }
}

/// Tells whether a text that comes in fragments is one of up to 64 others, and keeps none of it.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    compared: usize,
    /// The texts that are equal up to there, one bit each.
    equal: u64,
}

impl Comparison {
    const START: Self = Self { compared: 0, equal: u64::MAX };

    /// Takes the next fragment; whether it was the last one of such a text.
    fn push<'t>(&mut self, fragment: Fragment<'_>, texts: impl Iterator<Item = &'t str>) -> bool {
        if fragment.first {
            *self = Self::START;
        }
        let end = self.compared.saturating_add(fragment.bytes.len());
        let mut is_one = false;
        for (index, text) in texts.enumerate().take(64) {
            let bit = 1 << index;
            if text.as_bytes().get(self.compared..end) != Some(fragment.bytes) {
                self.equal &= !bit;
            }
            is_one |= self.equal & bit != 0 && text.len() == end;
        }
        self.compared = end;
        fragment.last && is_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart_however_they_are_cut() {
        let claims = "data,data-2,d,wal";
        for (text, is_claim) in [
            ("data", true),
            ("data-2", true),
            ("d", true),
            ("wal", true),
            ("data-", false),
            ("dat", false),
            ("data-23", false),
            ("al", false),
            ("", false),
            ("data,data-2", false),
        ] {
            for cut in 0..=text.len() {
                let (start, end) = text.as_bytes().split_at(cut);
                let mut comparison = Comparison::START;
                let start = Fragment { bytes: start, first: true, last: false };
                let end = Fragment { bytes: end, first: false, last: true };
                assert!(!comparison.push(start, claims.split(',')));
                assert_eq!(comparison.push(end, claims.split(',')), is_claim, "{text} at {cut}");
            }
        }
    }
}
