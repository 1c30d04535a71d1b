//! Where a run is struck, and how.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use picokube::sim::{Counts, Deaths, Fault, Leftover, Timed, When};
use picokube_core::kind::Kind;

/// How long an event is held up. The fake kubelet goes on meanwhile: the controllers act on what
/// is long out of date.
const DELAY_SECS: u32 = 4;
/// How many events are told once more.
const REPEATED: u8 = 8;

/// One thing that goes wrong, at one place of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) blow: Blow,
    /// Which request or event of the fault-free run, from 1 on.
    pub(crate) number: u64,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Blow {
    /// The controller dies before it sends the request.
    KillBefore,
    /// The controller dies when the request has been carried out, before it knows.
    KillAfter,
    /// The watch breaks before the event, which is not to be had any more: a list has to tell.
    Drop,
    /// The event and all later ones of its watch come seconds late.
    Delay,
    /// The watch tells the event and those before it once more.
    Rewind,
}

impl Blow {
    pub(crate) const ALL: [Self; 5] =
        [Self::KillBefore, Self::KillAfter, Self::Drop, Self::Delay, Self::Rewind];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillBefore => "kill-before",
            Self::KillAfter => "kill-after",
            Self::Drop => "drop",
            Self::Delay => "delay",
            Self::Rewind => "rewind",
        }
    }

    /// At how many places it can strike.
    pub(crate) fn places(self, counts: &Counts) -> u64 {
        match self {
            Self::KillBefore | Self::KillAfter => counts.sent,
            Self::Drop | Self::Delay | Self::Rewind => counts.events,
        }
    }
}

impl Point {
    /// Every point of a run in which so much has happened.
    pub(crate) fn all(counts: &Counts) -> impl Iterator<Item = Self> {
        let counts = *counts;
        Blow::ALL.into_iter().flat_map(move |blow| {
            (1..=blow.places(&counts)).map(move |number| Self { blow, number })
        })
    }

    /// What the controller leaves behind, if it dies.
    pub(crate) fn leftover(self, deaths: &Deaths) -> Option<&Leftover> {
        match self.blow {
            Blow::KillBefore => deaths.before_request(self.number),
            Blow::KillAfter => deaths.after_request(self.number),
            Blow::Drop | Blow::Delay | Blow::Rewind => None,
        }
    }

    pub(crate) fn fault(self) -> Timed<Fault> {
        // The watch is the one that brings the event, of whatever kind that is.
        let any = Kind::Pod;
        let (when, what) = match self.blow {
            Blow::KillBefore => (When::Request(self.number), Fault::KillBeforeRequest),
            Blow::KillAfter => (When::Request(self.number), Fault::KillAfterRequest),
            Blow::Drop => (When::Event(self.number), Fault::ForgetEvents(any)),
            Blow::Delay => (When::Event(self.number), Fault::StallWatch(any, DELAY_SECS)),
            Blow::Rewind => (When::Event(self.number), Fault::RepeatEvents(any, REPEATED)),
        };
        Timed { when, what }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.blow.name(), self.number)
    }
}

impl FromStr for Point {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, number) = text.split_once(':').context("a point is BLOW:NUMBER")?;
        let blow = Blow::ALL.into_iter().find(|blow| blow.name() == name);
        let Some(blow) = blow else { bail!("{name:?} is none of {:?}", Blow::ALL.map(Blow::name)) };
        Ok(Self { blow, number: number.parse().with_context(|| format!("{number:?}"))? })
    }
}
