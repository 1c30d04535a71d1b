//! The labels and the spec of a StatefulSet's pod: those of the template, with what makes the pod
//! the one that it is.

use super::copy::Pass;
use super::entry::Form;
use super::{Make, SpliceError, Text};
use crate::json::Token;

/// The label with the pod's own name.
pub(super) const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// The label with the pod's ordinal.
pub(super) const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
/// The label with the name of the pod's revision.
pub(super) const REVISION_LABEL: &str = "controller-revision-hash";

/// Whether a label of the template gives way to one of ours.
pub(super) fn is_own_label(key: &[u8]) -> bool {
    [POD_NAME_LABEL, POD_INDEX_LABEL, REVISION_LABEL].iter().any(|own| own.as_bytes() == key)
}

/// The member of a spec that holds the volumes.
pub(super) const VOLUMES: &[u8] = b"volumes";

impl Pass<'_> {
    /// Copies a token of the template's spec; tells whether the spec is over with it. What is ours
    /// comes where the volumes begin, and at the end if they never do.
    pub(super) fn stateful_set_pod_spec(&mut self, token: Token<'_>) -> bool {
        let Make::StatefulSetPod { claims, .. } = &self.splice.make else { return false };
        let depth = self.depth(token);
        match (depth, token) {
            (0, Token::ObjectStart) => self.write(|writer| writer.token(token)),
            (0, Token::ObjectEnd) => {
                if !self.copier.seen.pod_identity {
                    self.pod_identity();
                    if !claims.is_empty() {
                        self.write(|writer| writer.end_array());
                    }
                }
                self.write(|writer| writer.token(token));
                return true;
            }
            // Not an object: whoever needs one will notice.
            (0, _) => {}
            (1, Token::Key(_)) => self.entries(token, Form::Member, |key| match key {
                b"hostname" | b"subdomain" => false,
                VOLUMES => claims.is_empty(),
                _ => true,
            }),
            _ => match self.copier.entries.left_out() {
                None => self.write(|writer| writer.token(token)),
                Some(VOLUMES) => self.volumes(token, depth),
                Some(_) => {}
            },
        }
        false
    }

    fn volumes(&mut self, token: Token<'_>, depth: u16) {
        match (depth, token) {
            (1, Token::Null) => {}
            (1, Token::ArrayStart) => self.pod_identity(),
            (1, Token::ArrayEnd) => self.write(|writer| writer.end_array()),
            (1, _) => self.fail(SpliceError::Malformed),
            _ => {
                if !self.copier.volumes.is_replaced() {
                    self.write(|writer| writer.token(token));
                }
                self.copier.volumes.pass(token, depth);
            }
        }
    }

    fn pod_identity(&mut self) {
        let copier = &mut *self.copier;
        // Volumes that come twice are no pod's.
        let is_first = !core::mem::replace(&mut copier.seen.pod_identity, true);
        let place = copier.pending.insert(Text::PodIdentity, self.splice, copier.place);
        match place.filter(|_| is_first) {
            Some(place) => copier.place = place,
            None => self.fail(SpliceError::Malformed),
        }
    }
}
