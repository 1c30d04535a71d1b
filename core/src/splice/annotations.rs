//! The annotations of a body: those that are shared with the source, and those that are ours.

use super::copy::Pass;
use super::entry::Form;
use super::{Make, Part};
use crate::json::Token;
use crate::wire::Annotation;

impl Pass<'_> {
    /// Takes over the annotations of the source, or lets go of the target's.
    pub(super) fn annotations(&mut self, token: Token<'_>) {
        if !self.is_of_map(token) {
            return;
        }
        let shared = |key: &[u8]| match self.splice.make {
            #[cfg(feature = "statefulset")]
            Make::ControllerRevision { .. } => true,
            _ => Annotation::parse(key).is_shared(),
        };
        match (self.part, token) {
            (_, Token::Null) => {}
            (Part::Metadata | Part::Annotations, Token::ObjectStart) => {
                self.copier.seen.annotations = true;
                self.write(|writer| writer.key("annotations").object());
            }
            (Part::Metadata | Part::Annotations, Token::ObjectEnd) => {
                self.own_annotations();
                self.write(|writer| writer.end_object());
            }
            (Part::Metadata | Part::Annotations, _) => {
                self.entries(token, Form::Member, shared);
            }
            (_, Token::ObjectStart) => self.copier.seen.annotations = true,
            (_, Token::ObjectEnd) => {}
            (Part::RollbackTarget, _) => {
                let goes =
                    |key: &[u8]| shared(key) || Annotation::parse(key) == Annotation::RollbackTo;
                self.entries(token, Form::Remove, goes);
            }
            (Part::RollbackSource, _) => self.entries(token, Form::Add, shared),
            _ => {}
        }
    }

    /// Annotations that no source has, or not with this value.
    pub(super) fn own_annotations(&mut self) {
        let numbers: [(&str, Option<i64>); 3] = match &self.splice.make {
            Make::ReplicaSet { revision, desired_replicas, max_replicas, .. } => [
                ("deployment.kubernetes.io/revision", Some(*revision)),
                ("deployment.kubernetes.io/desired-replicas", Some((*desired_replicas).into())),
                ("deployment.kubernetes.io/max-replicas", Some((*max_replicas).into())),
            ],
            Make::Annotations { revision, .. } => {
                [("deployment.kubernetes.io/revision", *revision), ("", None), ("", None)]
            }
            _ => return,
        };
        for (name, number) in numbers {
            if let Some(number) = number {
                self.write(|writer| writer.key(name).display(format_args!("{number}")));
            }
        }
        if let Make::Annotations { revision_history: Some(history), .. } = &self.splice.make {
            let name = "deployment.kubernetes.io/revision-history";
            self.write(|writer| writer.key(name).string(history));
        }
    }

    /// Makes room for annotations where there are none.
    pub(super) fn empty_annotations(&mut self) {
        self.write(|writer| {
            writer.object().key("op").string("add").key("path").string("/metadata/annotations");
            writer.key("value").object().end_object().end_object()
        });
    }
}
