//! A `coordination.k8s.io/v1` Lease, as far as an election is about it, read as its bytes come.
//!
//! It does not go through the decoder that watches share: a renewal must not wait for the rest of somebody
//! else's object.

use heapless::Vec;

use crate::json::{Flow, Fragment, Handler, Token, Tokenizer};
use crate::limits;
use crate::time::Timestamp;
use crate::wire::{ResourceVersion, Uid};

/// What a Lease says of leadership: Kubernetes' `LeaderElectionRecord`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `spec.holderIdentity`; empty when released. What is beyond a name's length is cut off.
    holder: Vec<u8, { limits::NAME }>,
    is_holder_cut: bool,
    /// `spec.leaseDurationSeconds`
    pub duration_seconds: i32,
    /// `spec.acquireTime`
    pub acquired: Option<Timestamp>,
    /// `spec.renewTime`
    pub renewed: Option<Timestamp>,
    /// `spec.leaseTransitions`
    pub transitions: i32,
}

/// A Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What it says.
    pub record: Record,
    /// `metadata.resourceVersion`
    pub version: ResourceVersion,
    /// `metadata.uid`
    pub uid: Uid,
}

/// Reads one Lease at a time, from bytes that are cut anywhere.
#[derive(Debug)]
pub struct LeaseReader {
    tokenizer: Tokenizer,
    fields: Fields,
    is_malformed: bool,
}

impl Record {
    /// Nobody's.
    pub const EMPTY: Self = Self {
        holder: Vec::new(),
        is_holder_cut: false,
        duration_seconds: 0,
        acquired: None,
        renewed: None,
        transitions: 0,
    };

    /// Who holds the Lease; empty for nobody.
    pub fn holder(&self) -> &str {
        match core::str::from_utf8(&self.holder) {
            Ok(text) => text,
            // Cut in the midst of a character.
            Err(error) => self
                .holder
                .get(..error.valid_up_to())
                .and_then(|good| core::str::from_utf8(good).ok())
                .unwrap_or_default(),
        }
    }

    /// Whether this one holds it.
    pub fn is_held_by(&self, identity: &str) -> bool {
        !self.is_holder_cut && self.holder == identity.as_bytes()
    }

    /// Whether nobody holds it.
    pub fn is_free(&self) -> bool {
        self.holder.is_empty()
    }

    pub(super) fn set_holder(&mut self, identity: &str) {
        self.holder.clear();
        self.is_holder_cut = self.holder.extend_from_slice(identity.as_bytes()).is_err();
    }

    /// Whether two look the same: client-go keeps times in whole seconds.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let seconds = |time: Option<Timestamp>| time.map(Timestamp::as_secs);
        let rest = |it: &Self| {
            (it.duration_seconds, seconds(it.acquired), seconds(it.renewed), it.transitions)
        };
        self.holder == other.holder && rest(self) == rest(other)
    }

    /// Whether both are of one term of one holder.
    pub(super) fn is_same_term(&self, other: &Self) -> bool {
        let acquired = |it: &Self| it.acquired.map(Timestamp::as_secs);
        self.holder == other.holder
            && self.transitions == other.transitions
            && acquired(self) == acquired(other)
    }
}

impl LeaseReader {
    /// A reader before the first byte.
    pub const fn new() -> Self {
        Self { tokenizer: Tokenizer::new(), fields: Fields::START, is_malformed: false }
    }

    /// Gets ready for another Lease.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_malformed {
            match self.tokenizer.feed(rest, &mut self.fields) {
                Ok(read) => rest = rest.get(read..).unwrap_or_default(),
                Err(_) => self.is_malformed = true,
            }
        }
    }

    /// The Lease, if all of it has come and makes sense.
    pub fn lease(&self) -> Option<&Lease> {
        let Fields { lease, is_sound, .. } = &self.fields;
        let is_whole = self.tokenizer.is_done() && !self.is_malformed;
        (is_whole && *is_sound && lease.version != ResourceVersion::ANY).then_some(lease)
    }
}

impl Default for LeaseReader {
    fn default() -> Self {
        Self::new()
    }
}

/// Members that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Metadata = 1,
    ResourceVersion,
    Uid,
    Spec,
    Holder,
    Duration,
    Acquired,
    Renewed,
    Transitions,
}

/// The members that an object has, by the member that it is.
fn member(of: Option<Member>, name: &[u8]) -> Option<Member> {
    Some(match (of, name) {
        (None, b"metadata") => Member::Metadata,
        (None, b"spec") => Member::Spec,
        (Some(Member::Metadata), b"resourceVersion") => Member::ResourceVersion,
        (Some(Member::Metadata), b"uid") => Member::Uid,
        (Some(Member::Spec), b"holderIdentity") => Member::Holder,
        (Some(Member::Spec), b"leaseDurationSeconds") => Member::Duration,
        (Some(Member::Spec), b"acquireTime") => Member::Acquired,
        (Some(Member::Spec), b"renewTime") => Member::Renewed,
        (Some(Member::Spec), b"leaseTransitions") => Member::Transitions,
        _ => return None,
    })
}

/// The longest text that is looked at, but for the holder: a uid, a name of a member, a time.
const TEXT: usize = 36;

#[derive(Debug)]
struct Fields {
    lease: Lease,
    /// How many objects are open.
    depth: u8,
    /// The member of the document that is open.
    section: Option<Member>,
    /// Whose value comes.
    member: Option<Member>,
    /// The name or value at hand.
    text: Vec<u8, TEXT>,
    is_text_cut: bool,
    is_sound: bool,
}

impl Fields {
    const START: Self = Self {
        lease: Lease { record: Record::EMPTY, version: ResourceVersion::ANY, uid: Uid::NIL },
        depth: 0,
        section: None,
        member: None,
        text: Vec::new(),
        is_text_cut: false,
        is_sound: true,
    };

    fn gather(&mut self, fragment: Fragment<'_>) {
        if fragment.first {
            self.text.clear();
            self.is_text_cut = false;
        }
        for byte in fragment.bytes {
            self.is_text_cut |= self.text.push(*byte).is_err();
        }
    }

    fn gather_holder(&mut self, fragment: Fragment<'_>) {
        let record = &mut self.lease.record;
        if fragment.first {
            record.set_holder("");
        }
        for byte in fragment.bytes {
            record.is_holder_cut |= record.holder.push(*byte).is_err();
        }
    }

    /// A value is complete; whether it makes sense.
    fn keep(&mut self) -> Option<()> {
        let text = core::str::from_utf8(&self.text).ok().filter(|_| !self.is_text_cut)?;
        let Lease { record, version, uid } = &mut self.lease;
        let time = |text: &str| Timestamp::parse_rfc3339(text.as_bytes());
        match self.member? {
            Member::ResourceVersion => *version = ResourceVersion::parse(text)?,
            Member::Uid => *uid = Uid::parse(text)?,
            Member::Duration => record.duration_seconds = text.parse().ok()?,
            Member::Transitions => record.transitions = text.parse().ok()?,
            Member::Acquired => record.acquired = Some(time(text)?),
            Member::Renewed => record.renewed = Some(time(text)?),
            Member::Metadata | Member::Spec | Member::Holder => return None,
        }
        Some(())
    }
}

impl Handler for Fields {
    fn token(&mut self, token: Token<'_>) -> Flow {
        match token {
            Token::ObjectStart if self.depth == 0 => self.depth = 1,
            Token::ObjectStart if self.depth == 1 => {
                self.depth = 2;
                self.section = self.member;
            }
            Token::ObjectEnd => {
                self.depth = self.depth.saturating_sub(1);
                self.section = None;
            }
            Token::Key(name) => {
                self.gather(name);
                if name.last {
                    let name = if self.is_text_cut { &[][..] } else { &self.text };
                    self.member = member(self.section, name);
                    return if self.member.is_some() { Flow::Next } else { Flow::Skip };
                }
            }
            Token::String(text) if self.member == Some(Member::Holder) => self.gather_holder(text),
            Token::String(text) | Token::Number(text) => {
                self.gather(text);
                self.is_sound &= !text.last || self.keep().is_some();
            }
            Token::Null => {}
            // None of the members is anything of the sort.
            Token::ObjectStart | Token::ArrayStart | Token::Bool(_) => {
                self.is_sound = false;
                return Flow::Skip;
            }
            Token::ArrayEnd => {}
        }
        Flow::Next
    }
}
