//! Copying the wanted parts of a source, and checking that it is the right one.

use super::entry::{Entries, Form};
use super::{Make, Part, Splice, SpliceError, Stage, Text};
use crate::json::{Digester, Flow, Place, Sink, Token, Writer};
use crate::wire::{
    Annotation, Fault, Field, FieldSink, FieldTable, POD_TEMPLATE, POD_TEMPLATE_HASH, Rule, Uid,
    Value,
};
use heapless::Vec;

/// What is looked at in a Deployment or ReplicaSet.
pub(super) static SOURCE: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::Metadata, &METADATA)),
    ("spec", Rule::Object(Field::Spec, &SPEC)),
]);

static METADATA: FieldTable = FieldTable::new(&[
    ("uid", Rule::Keep(Field::Uid)),
    ("resourceVersion", Rule::Keep(Field::ResourceVersion)),
    ("annotations", Rule::Stream(Field::Annotations)),
]);

static SPEC: FieldTable = FieldTable::new(&[
    ("selector", Rule::Tee(Field::Selector, &SELECTOR)),
    ("template", Rule::Tee(Field::Template, &TEMPLATE)),
]);

static SELECTOR: FieldTable = FieldTable::new(&[("matchLabels", Rule::Stream(Field::MatchLabels))]);

static TEMPLATE: FieldTable = FieldTable::new(&[
    ("metadata", Rule::Object(Field::TemplateMetadata, &TEMPLATE_METADATA)),
    ("spec", Rule::Stream(Field::TemplateSpec)),
]);

static TEMPLATE_METADATA: FieldTable = FieldTable::new(&[
    ("labels", Rule::Stream(Field::TemplateLabels)),
    ("annotations", Rule::Stream(Field::TemplateAnnotations)),
    ("finalizers", Rule::Stream(Field::TemplateFinalizers)),
]);

/// Output that waits to be taken. 32 bytes of source become at most five operations of a patch,
/// or add one map of ours, and let go of one key that was held back.
const PENDING: usize = 512;

/// The state of a copy, from one chunk of the source to the next.
#[derive(Clone, Debug)]
pub(super) struct Copier {
    pending: Pending,
    place: Place,
    template: Digester,
    entries: Entries,
    /// Arrays and objects that are open in what streams.
    open: u16,
    /// The token at hand has been written, changed, by who knows that part better.
    is_handled: bool,
    /// Labels or annotations have begun and not ended.
    in_map: bool,
    seen: Seen,
    error: Option<SpliceError>,
}

/// What has come in this reading of the source.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    uid: bool,
    annotations: bool,
    selector: bool,
    match_labels: bool,
    template: bool,
    template_metadata: bool,
    template_labels: bool,
    /// The template has at least one label.
    any_label: bool,
    template_spec: bool,
    template_spec_missed: bool,
}

#[derive(Clone, Debug)]
struct Pending {
    bytes: Vec<u8, PENDING>,
    taken: usize,
    overflowed: bool,
}

impl Sink for Pending {
    fn put(&mut self, bytes: &[u8]) {
        self.overflowed |= self.bytes.extend_from_slice(bytes).is_err();
    }
}

impl Copier {
    pub(super) fn new() -> Self {
        Self {
            pending: Pending { bytes: Vec::new(), taken: 0, overflowed: false },
            place: Place::default(),
            template: Digester::new(&POD_TEMPLATE),
            entries: Entries::START,
            open: 0,
            is_handled: false,
            in_map: false,
            seen: Seen::default(),
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
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Moves output to `out`.
    pub(super) fn take(&mut self, out: &mut [u8]) -> usize {
        let waiting = self.pending.bytes.get(self.pending.taken..).unwrap_or_default();
        out.iter_mut().zip(waiting).for_each(|(place, byte)| *place = *byte);
        let count = out.len().min(waiting.len());
        self.pending.taken += count;
        if self.is_drained() {
            self.pending.bytes.clear();
            self.pending.taken = 0;
        }
        count
    }

    /// Whether no output waits.
    pub(super) fn is_drained(&self) -> bool {
        self.pending.taken >= self.pending.bytes.len()
    }

    /// Lets the tokens of a source in.
    pub(super) fn pass<'a>(&'a mut self, splice: &'a Splice, part: Part) -> Pass<'a> {
        Pass { copier: self, splice, part }
    }

    pub(super) fn error(&self) -> Option<SpliceError> {
        // What comes after an error may overflow as well.
        self.error.or(self.pending.overflowed.then_some(SpliceError::TooLarge))
    }

    /// The source is over: adds what it did not have, and tells what comes next.
    pub(super) fn finish(&mut self, splice: &Splice, part: Part) -> Result<Stage, SpliceError> {
        let template = self.template.finish().map_err(|_| SpliceError::TooLarge)?;
        // Of the Deployment that is rolled back the template is about to go.
        let same_template = template == splice.template || part == Part::RollbackTarget;
        if !self.seen.uid || !same_template {
            return Err(SpliceError::Changed);
        }
        let seen = self.seen;
        let mut pass = self.pass(splice, part);
        let next = match part {
            Part::ReplicaSetMetadata => {
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
                Stage::Text(Text::ReplicaSetSpec)
            }
            Part::ReplicaSetSpec if seen.selector && seen.template => {
                Stage::Text(Text::ReplicaSetTail)
            }
            // As Kubernetes has it, no pod is made of a template without labels.
            Part::PodMetadata if !seen.any_label => return Err(SpliceError::Malformed),
            Part::PodMetadata if seen.template_spec => Stage::Text(Text::PodTail),
            Part::PodMetadata if seen.template_spec_missed => Stage::Text(Text::PodSpec),
            Part::PodSpec if seen.template_spec => Stage::Text(Text::PodTail),
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
    copier: &'a mut Copier,
    splice: &'a Splice,
    part: Part,
}

impl Pass<'_> {
    fn write(&mut self, write: impl for<'w, 's> FnOnce(&'w mut Writer<'s>) -> &'w mut Writer<'s>) {
        let mut writer = Writer::resume(&mut self.copier.pending, self.copier.place);
        write(&mut writer);
        self.copier.place = writer.place();
    }

    fn fail(&mut self, error: SpliceError) {
        self.copier.error.get_or_insert(error);
    }

    fn expect(&mut self, right: bool) {
        if !right {
            self.fail(SpliceError::Changed);
        }
    }

    fn hash_label(&mut self) {
        if let Make::ReplicaSet { hash, .. } = &self.splice.make {
            self.write(|writer| writer.key(POD_TEMPLATE_HASH).string(hash));
        }
    }

    fn own_annotations(&mut self) {
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

    fn empty_annotations(&mut self) {
        self.write(|writer| {
            writer.object().key("op").string("add").key("path").string("/metadata/annotations");
            writer.key("value").object().end_object().end_object()
        });
    }

    /// Passes the entries of a map on in this form. What is around them is up to the caller.
    fn entries(&mut self, token: Token<'_>, form: Form, wanted: impl Fn(&[u8]) -> bool) {
        let mut writer = Writer::resume(&mut self.copier.pending, self.copier.place);
        let pushed = self.copier.entries.push(token, form, wanted, &mut writer);
        self.copier.place = writer.place();
        if pushed.is_err() {
            self.fail(SpliceError::Malformed);
        }
    }

    /// Whether a token belongs to a map of texts, or to `null` in its place: no other value, and
    /// no map or `null` inside of it.
    fn is_of_map(&mut self, token: Token<'_>) -> bool {
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

    fn annotations(&mut self, token: Token<'_>) {
        if !self.is_of_map(token) {
            return;
        }
        let shared = |key: &[u8]| Annotation::parse(key).is_shared();
        match (self.part, token) {
            (_, Token::Null) => {}
            (Part::ReplicaSetMetadata | Part::Annotations, Token::ObjectStart) => {
                self.copier.seen.annotations = true;
                self.write(|writer| writer.key("annotations").object());
            }
            (Part::ReplicaSetMetadata | Part::Annotations, Token::ObjectEnd) => {
                self.own_annotations();
                self.write(|writer| writer.end_object());
            }
            (Part::ReplicaSetMetadata | Part::Annotations, _) => {
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
            _ => self.entries(token, Form::Member, |key| key != POD_TEMPLATE_HASH.as_bytes()),
        }
    }

    fn template_labels(&mut self, token: Token<'_>) {
        let seen = &mut self.copier.seen;
        seen.any_label |= matches!(token, Token::Key(_));
        match self.part {
            Part::ReplicaSetMetadata => {
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
            Part::PodMetadata => self.member("labels", token),
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
        match token {
            Token::ObjectStart | Token::ArrayStart => self.copier.open += 1,
            Token::ObjectEnd | Token::ArrayEnd => {
                self.copier.open = self.copier.open.saturating_sub(1);
            }
            _ => {}
        }
        self.write(|writer| writer.token(token));
        self.copier.open == 0 && token.ends_value()
    }

    fn template_spec(&mut self, token: Token<'_>) {
        let seen = self.copier.seen;
        match self.part {
            Part::PodMetadata if !seen.template_metadata => {
                self.copier.seen.template_spec_missed = true;
            }
            Part::PodMetadata | Part::PodSpec => {
                if self.copier.open == 0 && token == Token::ObjectStart {
                    if self.part == Part::PodMetadata {
                        self.write(|writer| writer.end_object());
                    }
                    self.write(|writer| writer.key("spec"));
                }
                self.copier.seen.template_spec |= self.copy_object(token);
            }
            _ => {}
        }
    }

    /// All tokens of the template, after who knows its parts has had them.
    fn template(&mut self, token: Token<'_>) {
        self.copier.template.push(token);
        let is_handled = core::mem::take(&mut self.copier.is_handled);
        let is_copied = matches!(self.part, Part::ReplicaSetSpec | Part::RollbackSource);
        if is_copied && !is_handled && self.copy_object(token) {
            self.copier.seen.template = true;
            if self.part == Part::RollbackSource {
                self.write(|writer| writer.end_object());
            }
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
            Field::Annotations => self.annotations(token),
            Field::MatchLabels if self.part == Part::ReplicaSetSpec => {
                self.copier.seen.match_labels = true;
                self.copier.is_handled = true;
                self.labels(token);
            }
            Field::Selector => self.selector(token),
            Field::TemplateLabels => self.template_labels(token),
            Field::TemplateAnnotations if self.part == Part::PodMetadata => {
                self.member("annotations", token);
            }
            Field::TemplateFinalizers if self.part == Part::PodMetadata => {
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
            (Part::PodMetadata, Field::TemplateMetadata) => {
                self.copier.seen.template_metadata = true;
            }
            _ => {}
        }
        Flow::Next
    }
}
