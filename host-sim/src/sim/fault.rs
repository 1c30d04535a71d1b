//! What breaks.
//!
//! A fault is part of a plan: it strikes at a moment that is known beforehand, so that a failing
//! run can be repeated with fewer faults. Faults of requests hit the first request after their
//! moment; others hit whatever is there.

use std::fmt;

use picokube_core::kind::Kind;

use crate::random::Random;

/// Something that goes wrong once, or for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next request never arrives.
    LoseRequest,
    /// The next request is carried out, its answer never arrives.
    LoseAnswer,
    /// The next answer arrives when nobody waits for it any more.
    LateAnswer,
    /// The connection is reset after so many percent of the next answer.
    CutAnswer(u8),
    /// The next request is refused with this status; the server does nothing.
    Refuse(u16),
    /// The controller dies before the next request leaves it and boots again.
    KillBeforeRequest,
    /// The controller dies when the next request has been carried out, before it knows.
    KillAfterRequest,
    /// The controller stands still for so many seconds.
    Freeze(u32),
    /// A second controller runs for so many seconds.
    SecondController(u32),
    /// The server ends a watch in good order.
    EndWatch(Kind),
    /// A watch is reset after so many percent of its next event.
    CutWatch(Kind, u8),
    /// A watch brings nothing for so many seconds, then everything.
    StallWatch(Kind, u32),
    /// A watch brings its last events once more.
    RepeatEvents(Kind, u8),
    /// A watch is cut and what it would have brought is forgotten: the list has to tell.
    ForgetEvents(Kind),
    /// There are no bookmarks for so many seconds.
    NoBookmarks(u32),
    /// For so many seconds, lists that may be of any version are old.
    OldLists(u32),
    /// The server is gone for so many seconds; with or without its history afterwards.
    RestartServer {
        /// How long nobody listens.
        seconds: u32,
        /// Whether old versions cannot be watched any more.
        forgets: bool,
    },
    /// The server's wall clock is wrong by so many days for so many seconds.
    WrongClock {
        /// How wrong.
        days: i32,
        /// For how long.
        seconds: u32,
    },
    /// Nothing passes the link for so many seconds.
    LinkDown(u32),
    /// The link goes down and up with this period in milliseconds, for so many seconds.
    Flapping {
        /// Down for the first half of it, up for the second.
        period_millis: u32,
        /// For how long.
        seconds: u32,
    },
    /// The link carries 1 kbit/s with a delay of 5 s, for so many seconds.
    SlowLink(u32),
}

/// The kinds whose watches break; the last three are watched for StatefulSets.
const WATCHED: [Kind; 6] = [
    Kind::Pod,
    Kind::ReplicaSet,
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::ControllerRevision,
    Kind::PersistentVolumeClaim,
];

/// The kinds of faults, each of which a seed may or may not have.
const SORTS: usize = 21;

impl Fault {
    /// Which sorts of faults a run has. One in eight has none at all.
    pub(super) fn draw_sorts(random: &mut Random) -> Vec<usize> {
        let percent = match random.below(8) {
            0 => 0,
            1..=4 => 20,
            5 | 6 => 50,
            _ => 100,
        };
        (0..SORTS).filter(|_| random.below(100) < percent).collect()
    }

    /// A fault of one of the sorts; of watches, those of the first so many kinds.
    pub(super) fn draw(random: &mut Random, sorts: &[usize], kinds: usize) -> Option<Self> {
        let sort = sorts.get(random.below(sorts.len() as u64) as usize)?;
        let mut below = |bound: u64| random.below(bound) as u32;
        let kind = WATCHED[below(kinds as u64) as usize];
        Some(match sort {
            0 => Self::LoseRequest,
            1 => Self::LoseAnswer,
            2 => Self::LateAnswer,
            3 => Self::CutAnswer(below(100) as u8),
            4 => {
                // Conflicts are what happens most.
                let codes = [409, 409, 409, 410, 429, 500, 503, 504, 403, 422];
                Self::Refuse(codes[below(10) as usize])
            }
            5 => Self::KillBeforeRequest,
            6 => Self::KillAfterRequest,
            7 => Self::Freeze(1 + below(60)),
            8 => Self::SecondController(1 + below(60)),
            9 => Self::EndWatch(kind),
            10 => Self::CutWatch(kind, below(100) as u8),
            11 => Self::StallWatch(kind, 1 + below(40)),
            12 => Self::RepeatEvents(kind, 1 + below(8) as u8),
            13 => Self::ForgetEvents(kind),
            14 => Self::NoBookmarks(1 + below(300)),
            15 => Self::OldLists(10 + below(120)),
            16 => Self::RestartServer { seconds: 1 + below(20), forgets: below(2) == 0 },
            17 => {
                let days = [-18_262, 18_262, -1, 1, 365][below(5) as usize];
                Self::WrongClock { days, seconds: 5 + below(60) }
            }
            18 => Self::LinkDown(1 + below(90)),
            19 => Self::Flapping { period_millis: 1000 + below(29_000), seconds: 10 + below(60) },
            _ => Self::SlowLink(5 + below(60)),
        })
    }

    /// Whether it hits the next request rather than happening at once.
    pub(super) const fn waits_for_request(self) -> bool {
        matches!(
            self,
            Self::LoseRequest
                | Self::LoseAnswer
                | Self::LateAnswer
                | Self::CutAnswer(_)
                | Self::Refuse(_)
                | Self::KillBeforeRequest
                | Self::KillAfterRequest
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoseRequest => f.write_str("the next request is lost"),
            Self::LoseAnswer => f.write_str("the next answer is lost"),
            Self::LateAnswer => f.write_str("the next answer comes too late"),
            Self::CutAnswer(percent) => write!(f, "the next answer is cut at {percent} %"),
            Self::Refuse(status) => write!(f, "the next request is refused with {status}"),
            Self::KillBeforeRequest => f.write_str("the controller dies before its next request"),
            Self::KillAfterRequest => f.write_str("the controller dies after its next request"),
            Self::Freeze(seconds) => write!(f, "the controller is frozen for {seconds} s"),
            Self::SecondController(seconds) => {
                write!(f, "a second controller runs for {seconds} s")
            }
            Self::EndWatch(kind) => write!(f, "the watch of {kind:?} ends"),
            Self::CutWatch(kind, percent) => {
                write!(f, "the watch of {kind:?} is cut at {percent} % of an event")
            }
            Self::StallWatch(kind, seconds) => {
                write!(f, "the watch of {kind:?} stalls for {seconds} s")
            }
            Self::RepeatEvents(kind, count) => {
                write!(f, "the watch of {kind:?} repeats {count} events")
            }
            Self::ForgetEvents(kind) => {
                write!(f, "the watch of {kind:?} is cut, and its events are forgotten")
            }
            Self::NoBookmarks(seconds) => write!(f, "no bookmarks for {seconds} s"),
            Self::OldLists(seconds) => write!(f, "lists are old for {seconds} s"),
            Self::RestartServer { seconds, forgets } => {
                let how = if *forgets { "without" } else { "with" };
                write!(f, "the server restarts, gone for {seconds} s, {how} its history")
            }
            Self::WrongClock { days, seconds } => {
                write!(f, "the server's clock is wrong by {days} days for {seconds} s")
            }
            Self::LinkDown(seconds) => write!(f, "the link is down for {seconds} s"),
            Self::Flapping { period_millis, seconds } => {
                write!(f, "the link flaps every {period_millis} ms for {seconds} s")
            }
            Self::SlowLink(seconds) => write!(f, "the link is slow for {seconds} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_can_be_drawn_and_told() {
        let mut random = Random::from_seed(3);
        let mut seen = std::collections::HashSet::new();
        for sort in 0..SORTS {
            let fault = Fault::draw(&mut random, &[sort], WATCHED.len()).expect("a fault");
            seen.insert(std::mem::discriminant(&fault));
            assert!(!fault.to_string().is_empty());
        }
        assert_eq!(seen.len(), SORTS);
        assert_eq!(Fault::draw(&mut random, &[], WATCHED.len()), None);
    }
}
