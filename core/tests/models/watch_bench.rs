//! A reflector on a bench: a source that understands one word per line, and what is sent.

use picokube_core::manager::ResponseHead;
use picokube_core::time::{Duration, Instant};
use picokube_core::watch::{
    BodyShape, Command, Input, ListEnd, Malformed, More, RequestId, Resource, Seen, Source, Watch,
};
use picokube_core::wire::{ResourceVersion, Status, StatusReason};

/// Understands lines such as `item 5`, `added 5`, `changed 5`, `bookmark 5`, `error 410`,
/// `foreign 0`, `end 5 token`, `cause`.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) line: String,
    pub(crate) status: Status,
    pub(crate) end: Option<(u64, String)>,
    pub(crate) log: Vec<String>,
}

impl Source for Words {
    fn begin(&mut self, shape: BodyShape) {
        self.line.clear();
        self.status = Status::default();
        self.end = None;
        self.log.push(format!("{shape:?}"));
    }

    fn push(&mut self, bytes: &[u8], seen: &mut dyn FnMut(Seen<'_>)) -> Result<usize, Malformed> {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(char::from(*byte));
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let words: Vec<_> = line.split(' ').collect();
            let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or_default();
            let version = ResourceVersion::new(number);
            match words[0] {
                "item" => seen(Seen::Listed(version)),
                "added" => seen(Seen::Added(version)),
                "changed" => seen(Seen::Changed(version)),
                "bookmark" => seen(Seen::Bookmark(version)),
                "foreign" => seen(Seen::Foreign),
                "error" => {
                    let status = Status { code: number as u16, ..Status::default() };
                    seen(Seen::Error(&status));
                }
                "end" => self.end = Some((number, (*words.get(2).unwrap_or(&"")).to_owned())),
                "expired" => self.status.reason = StatusReason::Expired,
                "cause" => self.status.resource_version_too_large = true,
                _ => return Err(Malformed),
            }
        }
        Ok(bytes.len())
    }

    fn end_page(&mut self) -> Result<ListEnd<'_>, Malformed> {
        let (version, token) = self.end.as_ref().ok_or(Malformed)?;
        let more = match token.as_str() {
            "" => More::None,
            "unreadable" => More::Unreadable,
            token => More::Token(token),
        };
        Ok(ListEnd { version: Some(ResourceVersion::new(*version)), more })
    }

    fn status(&self) -> Option<&Status> {
        Some(&self.status)
    }

    fn replace(&mut self, _version: ResourceVersion) {
        self.log.push("replace".to_owned());
    }

    fn rewind(&mut self) {
        self.log.push("rewind".to_owned());
    }
}

pub(crate) struct Bench {
    pub(crate) watch: Watch,
    pub(crate) source: Words,
    pub(crate) now: Instant,
    pub(crate) id: Option<RequestId>,
    pub(crate) closed: usize,
    pub(crate) resyncs: usize,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Resource::PODS, None)
    }

    pub(crate) fn with(resource: Resource, resync: Option<Duration>) -> Self {
        let watch = Watch::new(resource, resync);
        let (source, now) = (Words::default(), Instant::ZERO + Duration::from_secs(1000));
        Self { watch, source, now, id: None, closed: 0, resyncs: 0 }
    }

    /// What the machine wants sent now.
    pub(crate) fn sent(&mut self) -> Option<String> {
        let mut sent = None;
        self.resyncs += usize::from(self.watch.take_resync(self.now));
        // A fixed number makes jitter and time-out known: half of what is possible.
        while let Some(command) = self.watch.poll(self.now, 1 << 31) {
            match command {
                Command::Send(request) => {
                    assert!(sent.is_none(), "one request at a time");
                    self.id = Some(request.id());
                    sent = Some(request.to_string());
                }
                Command::Close(_) => self.closed += 1,
            }
        }
        sent
    }

    pub(crate) fn wants(&mut self, path: &str) {
        assert_eq!(self.sent().as_deref(), Some(path));
    }

    /// Sends nothing for now, and this after so many milliseconds.
    pub(crate) fn wants_after(&mut self, millis: u64, path: &str) {
        assert_eq!(self.sent(), None);
        let at = self.now + Duration::from_millis(millis);
        assert_eq!(self.watch.poll_at(), at);
        self.now = Instant::from_micros(at.as_micros() - 1);
        assert_eq!(self.sent(), None);
        self.now = at;
        self.wants(path);
    }

    pub(crate) fn gets(&mut self, input: Input<'_>) {
        let id = self.id.expect("nothing was sent");
        self.watch.handle(self.now, 1 << 31, id, input, &mut self.source);
    }

    pub(crate) fn head(&mut self, status: u16) {
        self.gets(Input::Head(ResponseHead::of_status(status)));
    }

    pub(crate) fn answers(&mut self, status: u16, body: &str) {
        self.head(status);
        body.bytes().for_each(|byte| self.gets(Input::Body(&[byte])));
        self.gets(Input::End);
    }

    pub(crate) fn passes(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    /// A machine that has listed at 10 and watches.
    pub(crate) fn watching() -> Self {
        let mut bench = Self::new();
        bench.wants(FIRST);
        bench.answers(200, "item 4\nend 10\n");
        bench.wants(&watch_at(10));
        bench.head(200);
        bench
    }
}

pub(crate) const FIRST: &str = "/api/v1/pods?limit=500&resourceVersion=0";
pub(crate) const LATEST: &str = "/api/v1/pods?limit=500";

pub(crate) fn watch_at(version: u64) -> String {
    format!(
        "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion={version}\
         &timeoutSeconds=450"
    )
}

pub(crate) fn list_at(version: u64) -> String {
    format!("/api/v1/pods?resourceVersion={version}")
}
