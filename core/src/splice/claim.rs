//! The labels of a StatefulSet's claim: those of its template, and those of the selector.
//!
//! A label of the selector wins. Servers tell the selector first, so that the labels of the
//! template that it replaces can be left out; where they cannot, those of the selector are the
//! last ones of that name, which is as good.

use super::copy::{Copier, Pass};
use super::entry::Form;
use super::stateful_set_pod::is_own_label;
use super::{Make, Part, SpliceError};
use crate::json::{Token, Window, Writer};
use crate::text::{Fingerprint, FingerprintHasher};
use crate::wire::Field;
use heapless::Vec;

/// Labels of a selector that are recognized in a claim template.
const MATCH_LABELS: usize = 16;

/// The claim templates of a StatefulSet.
#[derive(Clone, Debug)]
pub(super) struct ClaimTemplates {
    /// How many have begun in this reading.
    begun: u32,
    /// The keys of the selector's labels.
    match_labels: Vec<Fingerprint, MATCH_LABELS>,
}

impl ClaimTemplates {
    pub(super) const START: Self = Self { begun: 0, match_labels: Vec::new() };

    /// Gets ready for another reading.
    pub(super) fn restart(&mut self) {
        self.begun = 0;
        self.match_labels.clear();
    }

    /// Another template begins.
    pub(super) fn next(&mut self) {
        self.begun += 1;
    }
}

impl Pass<'_> {
    /// Whether a field is of the template that the body is made of, if it is of a template at all.
    pub(super) fn is_of_template(&self, field: Field) -> bool {
        let is_of_any = matches!(
            field,
            Field::TemplateMetadata
                | Field::TemplateLabels
                | Field::TemplateAnnotations
                | Field::TemplateFinalizers
                | Field::TemplateSpec
        );
        match self.splice.make {
            Make::Claim { index, .. } if is_of_any => {
                self.copier.claim_templates.begun == u32::from(index) + 1
            }
            _ => true,
        }
    }

    /// Copies the labels of a template into labels that are open, but not those that are ours.
    pub(super) fn labels_of_template(&mut self, token: Token<'_>) {
        if !self.is_of_map(token) || !matches!(token, Token::Key(_) | Token::String(_)) {
            return;
        }
        let Copier { pending, place, entries, claim_templates, .. } = &mut *self.copier;
        let wanted = |key: &[u8]| match self.splice.make {
            Make::Claim { .. } => !claim_templates.match_labels.contains(&fingerprint(key)),
            _ => !is_own_label(key),
        };
        let mut writer = Writer::resume(pending, *place);
        let pushed = entries.push(token, Form::Member, wanted, &mut writer);
        *place = writer.place();
        if pushed.is_err() {
            self.fail(SpliceError::Malformed);
        }
    }

    /// The labels of the selector: looked at before those of the template, and copied after them.
    pub(super) fn match_labels(&mut self, token: Token<'_>) {
        let is_copied = self.part == Part::MatchLabels;
        if is_copied && self.copier.seen.match_labels {
            return self.fail(SpliceError::Malformed);
        }
        if !self.is_of_map(token) {
            return;
        }
        match token {
            Token::ObjectStart => {}
            Token::ObjectEnd | Token::Null if is_copied => {
                self.copier.seen.match_labels = true;
                self.write(|writer| writer.end_object());
            }
            Token::ObjectEnd | Token::Null => {}
            _ if is_copied => self.entries(token, Form::Member, |_| true),
            _ => self.note_match_label(token),
        }
    }

    fn note_match_label(&mut self, token: Token<'_>) {
        self.look_at_entries(token, |_| false);
        let Copier { entries, claim_templates, .. } = &mut *self.copier;
        if let (Token::Key(fragment), Some(key)) = (token, entries.left_out())
            && fragment.last
        {
            // One that has no room is in the body twice.
            let _ = claim_templates.match_labels.push(fingerprint(key));
        }
    }

    /// Takes the entries of a map in and writes nothing.
    pub(super) fn look_at_entries(&mut self, token: Token<'_>, wanted: impl Fn(&[u8]) -> bool) {
        let mut nowhere = Window::new(&mut [], 0);
        let mut writer = Writer::new(&mut nowhere);
        if self.copier.entries.push(token, Form::Member, wanted, &mut writer).is_err() {
            self.fail(SpliceError::Malformed);
        }
    }
}

fn fingerprint(key: &[u8]) -> Fingerprint {
    let mut hasher = FingerprintHasher::new();
    hasher.push(key);
    hasher.finish()
}
