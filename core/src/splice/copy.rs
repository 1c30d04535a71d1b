//! Copying the wanted parts of a source, and checking that it is the right one.

use super::entry::{Entries, Form};
use super::pending::Pending;
use super::{Make, Part, Splice, SpliceError, Stage, Text};
#[cfg(feature = "statefulset")]
use super::{claim::ClaimTemplates, volumes::Volumes};
use crate::json::{Digester, Flow, Place, Token, Writer};
use crate::wire::{Fault, Field, FieldSink, POD_TEMPLATE, POD_TEMPLATE_HASH, Uid, Value};

/// The label with the hash of a revision's data.
#[cfg(feature = "statefulset")]
const CONTROLLER_REVISION_HASH: &str = "controller.kubernetes.io/hash";

/// The state of a copy, from one chunk of the source to the next.
#[derive(Clone, Debug)]
pub(super) struct Copier {
    pub(super) pending: Pending,
    pub(super) place: Place,
    template: Digester,
    pub(super) entries: Entries,
    /// Arrays and objects that are open in what streams.
    open: u16,
    /// The token at hand has been written, changed, by who knows that part better.
    is_handled: bool,
    /// Labels or annotations have begun and not ended.
    in_map: bool,
    pub(super) seen: Seen,
    #[cfg(feature = "statefulset")]
    pub(super) volumes: Volumes,
    #[cfg(feature = "statefulset")]
    pub(super) claim_templates: ClaimTemplates,
    error: Option<SpliceError>,
}

/// What has come in this reading of the source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    uid: bool,
    pub(super) annotations: bool,
    selector: bool,
    pub(super) match_labels: bool,
    template: bool,
    template_metadata: bool,
    template_labels: bool,
    /// The template has at least one label.
    any_label: bool,
    template_spec: bool,
    template_spec_missed: bool,
    /// What is ours in the spec of a StatefulSet's pod has been written.
    #[cfg(feature = "statefulset")]
    pub(super) pod_identity: bool,
}

impl Copier {
    pub(super) fn new() -> Self {
        Self {
            pending: Pending::NONE,
            place: Place::default(),
            template: Digester::new(&POD_TEMPLATE),
            entries: Entries::START,
            open: 0,
            is_handled: false,
            in_map: false,
            seen: Seen::default(),
            #[cfg(feature = "statefulset")]
            volumes: Volumes::START,
            #[cfg(feature = "statefulset")]
            claim_templates: ClaimTemplates::START,
            error: None,
        }
    }

    /// Gets ready for a reading of a source.
    pub(super) fn start(&mut self, place: Place) {
        self.place = place;
        self.template.restart(&POD_TEMPLATE);
        self.open = 0;
        self.is_handled = false;
        self.in_map = false;
        self.seen = Seen::default();
        #[cfg(feature = "statefulset")]
        {
            self.volumes.restart();
            self.claim_templates.restart();
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Moves output to `out`.
    pub(super) fn take(&mut self, splice: &Splice, out: &mut [u8]) -> usize {
        self.pending.take(splice, out)
    }

    /// Whether no output waits.
    pub(super) fn is_drained(&self) -> bool {
        self.pending.is_drained()
    }

    /// Lets the tokens of a source in.
    pub(super) fn pass<'a>(&'a mut self, splice: &'a Splice, part: Part) -> Pass<'a> {
        Pass { copier: self, splice, part }
    }

    pub(super) fn error(&self) -> Option<SpliceError> {
        // What comes after an error may overflow as well.
        self.error.or(self.pending.has_overflowed().then_some(SpliceError::TooLarge))
    }

    /// The source is over: adds what it did not have, and tells what comes next.
    pub(super) fn finish(&mut self, splice: &Splice, part: Part) -> Result<Stage, SpliceError> {
        let template = self.template.finish().map_err(|_| SpliceError::TooLarge)?;
        let is_same = match splice.make {
            // The template is about to go.
            Make::Rollback { .. } if part == Part::RollbackTarget => true,
            // A claim outlives the pod template it was first made for.
            #[cfg(feature = "statefulset")]
            Make::Claim { .. } => true,
            _ => template == splice.template,
        };
        if !self.seen.uid || !is_same {
            return Err(SpliceError::Changed);
        }
        let seen = self.seen;
        let mut pass = self.pass(splice, part);
        let next = match part {
            Part::Metadata => {
                if !seen.annotations {
                    pass.write(|writer| writer.key("annotations").object());
                    pass.own_annotations();
                    pass.write(|writer| writer.end_object());
                }
                if !seen.template_labels {
                    pass.write(|writer| writer.key("labels").object());
                    pass.hash_label();
                    pass.write(|writer| writer.end_object());
                }
                Stage::Text(match splice.make {
                    #[cfg(feature = "statefulset")]
                    Make::ControllerRevision { .. } => Text::ControllerRevisionData,
                    _ => Text::ReplicaSetSpec,
                })
            }
            Part::ReplicaSetSpec if seen.selector && seen.template => {
                Stage::Text(Text::ReplicaSetTail)
            }
            #[cfg(feature = "statefulset")]
            Part::RevisionTemplate if seen.template => Stage::Text(Text::ControllerRevisionTail),
            #[cfg(feature = "statefulset")]
            Part::Labels => match splice.make {
                Make::Claim { .. } => Stage::Copy(Part::MatchLabels),
                _ => Stage::Text(Text::LabelsEnd),
            },
            #[cfg(feature = "statefulset")]
            Part::MatchLabels if !seen.template_spec && !seen.template_spec_missed => {
                if !seen.match_labels {
                    pass.write(|writer| writer.end_object());
                }
                Stage::Copy(Part::TemplateMetadata)
            }
            // As Kubernetes has it, a ReplicaSet makes no pod of a template without labels.
            Part::TemplateMetadata
                if matches!(splice.make, Make::Pod { .. }) && !seen.any_label =>
            {
                return Err(SpliceError::Malformed);
            }
            _ if seen.template_spec => Stage::Text(Text::End),
            _ if seen.template_spec_missed => Stage::Text(Text::MetadataEnd),
            Part::Annotations => {
                if !seen.annotations {
                    pass.write(|writer| writer.key("annotations").object());
                    pass.own_annotations();
                    pass.write(|writer| writer.end_object());
                }
                Stage::Text(Text::AnnotationsTail)
            }
            Part::RollbackTarget => {
                if !seen.annotations {
                    pass.empty_annotations();
                }
                Stage::Copy(Part::RollbackSource)
            }
            Part::RollbackSource if seen.template => Stage::Text(Text::RollbackTail),
            _ => return Err(SpliceError::Malformed),
        };
        match self.error() {
            Some(error) => Err(error),
            None => Ok(next),
        }
    }
}

/// One reading of a source.
pub(super) struct Pass<'a> {
    pub(super) copier: &'a mut Copier,
    pub(super) splice: &'a Splice,
    pub(super) part: Part,
}

impl Pass<'_> {
    pub(super) fn write(
        &mut self,
        write: impl for<'w, 's> FnOnce(&'w mut Writer<'s>) -> &'w mut Writer<'s>,
    ) {
        let mut writer = Writer::resume(&mut self.copier.pending, self.copier.place);
        write(&mut writer);
        self.copier.place = writer.place();
    }

    pub(super) fn fail(&mut self, error: SpliceError) {
        self.copier.error.get_or_insert(error);
    }

    fn expect(&mut self, right: bool) {
        if !right {
            self.fail(SpliceError::Changed);
        }
    }

    /// The label with the hash of the template: one that the template may have is not copied.
    fn hash_key(&self) -> &'static str {
        match self.splice.make {
            #[cfg(feature = "statefulset")]
            Make::ControllerRevision { .. } => CONTROLLER_REVISION_HASH,
            _ => POD_TEMPLATE_HASH,
        }
    }

    fn hash_label(&mut self) {
        let hash = match &self.splice.make {
            Make::ReplicaSet { hash, .. } => hash,
            #[cfg(feature = "statefulset")]
            Make::ControllerRevision { hash, .. } => hash,
            _ => return,
        };
        let key = self.hash_key();
        self.write(|writer| writer.key(key).string(hash));
    }

    /// Passes the entries of a map on in this form. What is around them is up to the caller.
    pub(super) fn entries(&mut self, token: Token<'_>, form: Form, wanted: impl Fn(&[u8]) -> bool) {
        let mut writer = Writer::resume(&mut self.copier.pending, self.copier.place);
        let pushed = self.copier.entries.push(token, form, wanted, &mut writer);
        self.copier.place = writer.place();
        if pushed.is_err() {
            self.fail(SpliceError::Malformed);
        }
    }

    /// Whether a token belongs to a map of texts, or to `null` in its place: no other value, and
    /// no map or `null` inside of it.
    pub(super) fn is_of_map(&mut self, token: Token<'_>) -> bool {
        let is_right = match token {
            Token::ObjectStart => !core::mem::replace(&mut self.copier.in_map, true),
            Token::ObjectEnd => core::mem::take(&mut self.copier.in_map),
            Token::Null => !self.copier.in_map,
            _ => self.copier.in_map,
        };
        if !is_right {
            self.fail(SpliceError::Malformed);
        }
        is_right
    }

    /// Labels with the hash label in them, instead of one they may have. A `null` is replaced.
    fn labels(&mut self, token: Token<'_>) {
        if !self.is_of_map(token) {
            return;
        }
        match token {
            Token::ObjectStart => self.write(|writer| writer.object()),
            Token::ObjectEnd => {
                self.hash_label();
                self.write(|writer| writer.end_object());
            }
            Token::Null => {
                self.write(|writer| writer.object());
                self.hash_label();
                self.write(|writer| writer.end_object());
            }
            _ => {
                let hash = self.hash_key().as_bytes();
                self.entries(token, Form::Member, |key| key != hash);
            }
        }
    }

    fn template_labels(&mut self, token: Token<'_>) {
        let seen = &mut self.copier.seen;
        seen.any_label |= matches!(token, Token::Key(_));
        match self.part {
            Part::Metadata => {
                if !seen.template_labels {
                    self.write(|writer| writer.key("labels"));
                }
                self.copier.seen.template_labels = true;
                self.labels(token);
            }
            Part::ReplicaSetSpec | Part::RollbackSource => {
                seen.template_labels = true;
                self.copier.is_handled = true;
                self.labels(token);
            }
            #[cfg(feature = "statefulset")]
            Part::Labels => self.labels_of_template(token),
            Part::TemplateMetadata if matches!(self.splice.make, Make::Pod { .. }) => {
                self.member("labels", token);
            }
            _ => {}
        }
    }

    /// Copies a member of the template's metadata into that of a pod. `null` is absence.
    fn member(&mut self, name: &str, token: Token<'_>) {
        if self.copier.open == 0 {
            match token {
                Token::ObjectStart | Token::ArrayStart => self.write(|writer| writer.key(name)),
                Token::Null => return,
                _ => return self.fail(SpliceError::Malformed),
            }
        }
        self.copy(token);
    }

    /// Copies a token of an object that streams; tells whether the object is over with it.
    /// Anything but an object is left out, which whoever needs it will notice.
    fn copy_object(&mut self, token: Token<'_>) -> bool {
        if self.copier.open == 0 && token != Token::ObjectStart {
            return false;
        }
        self.copy(token)
    }

    /// Copies a token; tells whether a value that streams is over with it.
    fn copy(&mut self, token: Token<'_>) -> bool {
        let depth = self.depth(token);
        self.write(|writer| writer.token(token));
        depth == 0 && token.ends_value()
    }

    /// How many arrays and objects of what streams are around the token.
    pub(super) fn depth(&mut self, token: Token<'_>) -> u16 {
        let before = self.copier.open;
        match token {
            Token::ObjectStart | Token::ArrayStart => self.copier.open += 1,
            Token::ObjectEnd | Token::ArrayEnd => self.copier.open = before.saturating_sub(1),
            _ => {}
        }
        before.min(self.copier.open)
    }

    /// Whether the metadata of the template is wanted when it comes.
    fn wants_metadata(&self) -> bool {
        match self.part {
            #[cfg(feature = "statefulset")]
            Part::MatchLabels => self.copier.seen.match_labels,
            part => part == Part::TemplateMetadata,
        }
    }

    fn template_spec(&mut self, token: Token<'_>) {
        let seen = self.copier.seen;
        match self.part {
            #[cfg(feature = "statefulset")]
            Part::Labels => self.find_replaced_volumes(token),
            _ if self.wants_metadata() && !seen.template_metadata => {
                self.copier.seen.template_spec_missed = true;
            }
            // One spec is copied, and the metadata ends before it.
            _ if seen.template_spec => self.fail(SpliceError::Malformed),
            _ if self.wants_metadata() || self.part == Part::TemplateSpec => {
                if self.copier.open == 0 && token == Token::ObjectStart {
                    if self.part != Part::TemplateSpec {
                        self.write(|writer| writer.end_object());
                    }
                    self.write(|writer| writer.key("spec"));
                }
                let is_over = match self.splice.make {
                    #[cfg(feature = "statefulset")]
                    Make::StatefulSetPod { .. } => self.stateful_set_pod_spec(token),
                    _ => self.copy_object(token),
                };
                self.copier.seen.template_spec |= is_over;
            }
            _ => {}
        }
    }

    /// All tokens of the template, after who knows its parts has had them.
    fn template(&mut self, token: Token<'_>) {
        self.copier.template.push(token);
        let is_handled = core::mem::take(&mut self.copier.is_handled);
        let is_copied = match self.part {
            #[cfg(feature = "statefulset")]
            Part::RevisionTemplate => true,
            part => matches!(part, Part::ReplicaSetSpec | Part::RollbackSource),
        };
        #[cfg(feature = "statefulset")]
        let is_start = self.part == Part::RevisionTemplate && self.copier.open == 0;
        if is_copied && !is_handled && self.copy_object(token) {
            self.copier.seen.template = true;
            if self.part == Part::RollbackSource {
                self.write(|writer| writer.end_object());
            }
        }
        #[cfg(feature = "statefulset")]
        if is_start && token == Token::ObjectStart {
            self.write(|writer| writer.key("$patch").string("replace"));
        }
    }

    fn selector(&mut self, token: Token<'_>) {
        let is_handled = core::mem::take(&mut self.copier.is_handled);
        if self.part == Part::ReplicaSetSpec && !is_handled && self.copy_object(token) {
            self.copier.seen.selector = true;
        }
    }
}

impl FieldSink for Pass<'_> {
    fn keep(&mut self, field: Field, value: Value<'_>) -> Result<(), Fault> {
        let text = value.text()?;
        let target = match (&self.splice.make, self.part) {
            (Make::Rollback { target_uid, target_version, .. }, Part::RollbackTarget) => {
                Some((*target_uid, *target_version))
            }
            _ => None,
        };
        match field {
            Field::Uid => {
                let uid = target.map_or(self.splice.uid, |(uid, _)| uid);
                self.expect(Uid::parse(text) == Some(uid));
                self.copier.seen.uid = true;
            }
            Field::ResourceVersion => {
                let right = target.is_none_or(|(_, version)| {
                    crate::wire::ResourceVersion::parse(text) == Some(version)
                });
                self.expect(right);
            }
            _ => {}
        }
        Ok(())
    }

    fn stream(&mut self, field: Field, token: Token<'_>) -> Result<Flow, Fault> {
        match field {
            #[cfg(feature = "statefulset")]
            _ if !self.is_of_template(field) => {}
            // `null` in place of a claim template.
            #[cfg(feature = "statefulset")]
            Field::ClaimTemplate => self.copier.claim_templates.next(),
            #[cfg(feature = "statefulset")]
            Field::MatchLabels if matches!(self.splice.make, Make::Claim { .. }) => {
                self.match_labels(token);
            }
            Field::Annotations => self.annotations(token),
            Field::MatchLabels if self.part == Part::ReplicaSetSpec => {
                self.copier.seen.match_labels = true;
                self.copier.is_handled = true;
                self.labels(token);
            }
            Field::Selector => self.selector(token),
            Field::TemplateLabels => self.template_labels(token),
            Field::TemplateAnnotations if self.wants_metadata() => {
                self.member("annotations", token);
            }
            Field::TemplateFinalizers if self.wants_metadata() => {
                self.member("finalizers", token);
            }
            Field::TemplateSpec => self.template_spec(token),
            // `null` in place of the metadata.
            Field::TemplateMetadata if self.part == Part::ReplicaSetSpec => {
                self.copier.seen.template_metadata = true;
                self.copier.is_handled = true;
                self.write(|writer| writer.object().key("labels"));
                self.labels(token);
                self.write(|writer| writer.end_object());
            }
            Field::Template => self.template(token),
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn begin(&mut self, field: Field) {
        match (self.part, field) {
            (Part::ReplicaSetSpec, Field::Selector) => {
                self.write(|writer| writer.key("selector"));
            }
            (Part::ReplicaSetSpec, Field::Template) => {
                self.write(|writer| writer.key("template"));
            }
            (Part::RollbackSource, Field::Template) => self.write(|writer| {
                writer.object().key("op").string("replace").key("path").string("/spec/template");
                writer.key("value")
            }),
            (Part::ReplicaSetSpec, Field::TemplateMetadata) => {
                self.copier.seen.template_metadata = true;
            }
            #[cfg(feature = "statefulset")]
            (Part::RevisionTemplate, Field::Template) => {
                self.write(|writer| writer.key("template"))
            }
            #[cfg(feature = "statefulset")]
            (_, Field::ClaimTemplate) => self.copier.claim_templates.next(),
            _ => {}
        }
    }

    fn end(&mut self, field: Field) -> Flow {
        let seen = self.copier.seen;
        match (self.part, field) {
            (Part::ReplicaSetSpec, Field::Selector) if !seen.match_labels => {
                self.write(|writer| writer.key("matchLabels"));
                self.labels(Token::Null);
            }
            (Part::ReplicaSetSpec, Field::TemplateMetadata) if !seen.template_labels => {
                self.write(|writer| writer.key("labels"));
                self.labels(Token::Null);
            }
            (Part::ReplicaSetSpec, Field::Template) if !seen.template_metadata => {
                self.write(|writer| writer.key("metadata").object().key("labels"));
                self.labels(Token::Null);
                self.write(|writer| writer.end_object());
            }
            #[cfg(feature = "statefulset")]
            _ if !self.is_of_template(field) => {}
            (_, Field::TemplateMetadata) if self.wants_metadata() => {
                self.copier.seen.template_metadata = true;
            }
            _ => {}
        }
        Flow::Next
    }
}
