//! What breaks.
//!
//! A fault is part of a plan: it strikes at a moment that is known beforehand, so that a failing
//! run can be repeated with fewer faults. Faults of requests hit the first request after their
//! moment; others hit whatever is there.

use std::fmt;

use picokube_core::kind::Kind;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::random::Random;
use crate::server::response::Response;

use super::device::KINDS;
use super::election::LeaseEdit;
use super::kept::by_name;
use super::mischief::Lie;

/// Something that goes wrong once, or for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The next request never arrives.
    LoseRequest,
    /// The next request is carried out, its answer never arrives.
    LoseAnswer,
    /// The next answer arrives so many seconds late, perhaps when nobody waits for it any more.
    LateAnswer(u32),
    /// The connection is reset after so many percent of the next answer.
    CutAnswer(u8),
    /// The next request is refused with this status; the server does nothing.
    Refuse(u16),
    /// The next request is carried out, and answered with this status as if it had failed.
    FailAfter(u16),
    /// The controller dies before the next request leaves it and boots again.
    KillBeforeRequest,
    /// The controller dies when the next request has been carried out, before it knows.
    KillAfterRequest,
    /// The controller stands still for so many seconds.
    Freeze(u32),
    /// A second controller runs for so many seconds.
    SecondController(u32),
    /// The server ends a watch in good order.
    EndWatch(#[serde(with = "by_name")] Kind),
    /// A watch is reset after so many percent of its next event.
    CutWatch(#[serde(with = "by_name")] Kind, u8),
    /// A watch brings nothing for so many seconds, then everything.
    StallWatch(#[serde(with = "by_name")] Kind, u32),
    /// A watch brings its last events once more.
    RepeatEvents(#[serde(with = "by_name")] Kind, u8),
    /// A watch is cut and what it would have brought is forgotten: the list has to tell.
    ForgetEvents(#[serde(with = "by_name")] Kind),
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
    /// The controller's token is no longer good: it reads the new one so many seconds later.
    ChangeToken(u32),
    /// So many versions go to objects that nobody here looks at.
    SkipVersions(u64),
    /// The next thing that a user does never arrives.
    LoseAction,
    /// The next thing that a user does is done once more, so many seconds later.
    RepeatAction(u32),
    /// Scheduler and kubelets do and tell nothing for so many seconds, then everything.
    HoldKubelets(u32),
    /// What was said about a pod arrives once more.
    RepeatReport {
        /// Which pod.
        pod: u8,
        /// How many reports have overtaken it.
        back: u8,
    },
    /// A pod's status says what is not so.
    Lie {
        /// Which pod.
        pod: u8,
        /// What it says.
        lie: Lie,
        /// How long its kubelet lets it say that.
        seconds: u32,
    },
    /// Nothing gets through in one direction.
    OneWay {
        /// Which: to the server, or from it.
        to_server: bool,
        /// For how long.
        seconds: u32,
    },
    /// A controller stands still just before it sends its next write, for so many seconds.
    FreezeBeforeWrite(u32),
    /// A user does something to the Lease.
    Lease(LeaseEdit),
    /// A controller is ended in an orderly way, and started again.
    OrderlyEnd,
    /// Something happens to real connections, which only the driver that is shipped has.
    Connections(Break),
}

/// What happens to the connections of the driver that is shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Break {
    /// One in so many is reset.
    Reset(u8),
    /// The server closes them in good order, however much is under way.
    Close,
    /// The server has forgotten them, and says so when it is told something.
    Forget,
    /// Nobody listens for so many seconds.
    Refuse(u32),
    /// Nobody answers those who want to connect, for so many seconds.
    Ignore(u32),
    /// The server takes no more requests over them.
    Leave,
    /// The token is not accepted for so many seconds.
    Unknown(u32),
}

impl Break {
    /// One of each sort.
    pub fn one_of_each() -> [Self; 7] {
        [
            Self::Reset(2),
            Self::Close,
            Self::Forget,
            Self::Refuse(5),
            Self::Ignore(5),
            Self::Leave,
            Self::Unknown(5),
        ]
    }
}

impl Fault {
    /// How many sorts of faults there are, each of which a seed may or may not have.
    pub const SORTS: usize = 29;
    /// How many more there are only where there is an election.
    pub const SORTS_OF_ELECTIONS: usize = 4;

    /// Which sorts of faults a run has. One in eight has none at all.
    pub(super) fn draw_sorts(random: &mut Random) -> Vec<usize> {
        let percent = match random.below(8) {
            0 => 0,
            1..=4 => 20,
            5 | 6 => 50,
            _ => 100,
        };
        (0..Self::SORTS).filter(|_| random.below(100) < percent).collect()
    }

    /// A fault of one of the sorts; of watches, those of these kinds.
    pub(super) fn draw(random: &mut Random, sorts: &[usize], kinds: &[Kind]) -> Option<Self> {
        let sort = sorts.get(random.below(sorts.len() as u64) as usize)?;
        let mut below = |bound: u64| random.below(bound) as u32;
        let kind = kinds[below(kinds.len() as u64) as usize];
        Some(match sort {
            0 => Self::LoseRequest,
            1 => Self::LoseAnswer,
            2 => Self::LateAnswer(1 + below(80)),
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
            20 => Self::SlowLink(5 + below(60)),
            21 => Self::FailAfter([500, 500, 502, 503, 504][below(5) as usize]),
            22 => Self::ChangeToken(1 + below(30)),
            23 => Self::SkipVersions([1, 1_000, 5_000_000_000][below(3) as usize]),
            24 => Self::LoseAction,
            25 => Self::RepeatAction(below(20)),
            26 => Self::HoldKubelets(1 + below(40)),
            27 => Self::RepeatReport { pod: below(64) as u8, back: below(4) as u8 },
            _ => {
                let (pod, seconds) = (below(64) as u8, 1 + below(20));
                Self::Lie { pod, lie: Lie::draw(random), seconds }
            }
        })
    }

    /// Its sort, in words.
    pub fn sort(self) -> &'static str {
        match self {
            Self::LoseRequest => "request lost",
            Self::LoseAnswer => "answer lost",
            Self::LateAnswer(_) => "answer late",
            Self::CutAnswer(_) => "answer cut",
            Self::Refuse(_) => "request refused",
            Self::FailAfter(_) => "request said to have failed",
            Self::ChangeToken(_) => "token changed",
            Self::SkipVersions(_) => "versions skipped",
            Self::LoseAction => "user's request lost",
            Self::RepeatAction(_) => "user's request twice",
            Self::HoldKubelets(_) => "kubelets late",
            Self::RepeatReport { .. } => "kubelet's report again",
            Self::Lie { .. } => "pod lies",
            Self::KillBeforeRequest => "controller killed before a request",
            Self::KillAfterRequest => "controller killed after a request",
            Self::Freeze(_) => "controller frozen",
            Self::SecondController(_) => "second controller",
            Self::EndWatch(_) => "watch ended",
            Self::CutWatch(..) => "watch cut in an event",
            Self::StallWatch(..) => "watch stalled",
            Self::RepeatEvents(..) => "events repeated",
            Self::ForgetEvents(_) => "watch cut, history gone",
            Self::NoBookmarks(_) => "no bookmarks",
            Self::OldLists(_) => "lists old",
            Self::RestartServer { .. } => "server restarted",
            Self::WrongClock { .. } => "server's clock wrong",
            Self::LinkDown(_) => "link down",
            Self::Flapping { .. } => "link flapping",
            Self::SlowLink(_) => "link slow",
            Self::OneWay { .. } => "link down one way",
            Self::FreezeBeforeWrite(_) => "controller frozen before a write",
            Self::Lease(_) => "Lease edited",
            Self::OrderlyEnd => "controller ended in good order",
            Self::Connections(Break::Reset(_)) => "connections reset",
            Self::Connections(Break::Close) => "connections closed",
            Self::Connections(Break::Forget) => "connections forgotten",
            Self::Connections(Break::Refuse(_)) => "connections refused",
            Self::Connections(Break::Ignore(_)) => "connections ignored",
            Self::Connections(Break::Leave) => "connections to be left",
            Self::Connections(Break::Unknown(_)) => "token not accepted",
        }
    }

    /// One of each sort that every run may have.
    pub fn one_of_each() -> Vec<Self> {
        let mut random = Random::from_seed(0);
        (0..Self::SORTS).filter_map(|sort| Self::draw(&mut random, &[sort], &KINDS)).collect()
    }

    /// A fault that only real connections have.
    #[cfg(feature = "driver")]
    pub(super) fn draw_of_driver(random: &mut Random) -> Self {
        let mut below = |bound: u64| random.below(bound) as u32;
        Self::Connections(match below(8) {
            0 | 1 => Break::Reset(1 + below(4) as u8),
            2 => Break::Close,
            3 => Break::Forget,
            4 => Break::Refuse(1 + below(30)),
            5 => Break::Ignore(1 + below(40)),
            6 => Break::Leave,
            _ => Break::Unknown(1 + below(20)),
        })
    }

    /// A fault of the sort that elections have.
    pub(super) fn draw_of_election(random: &mut Random) -> Self {
        let mut below = |bound: u64| random.below(bound) as u32;
        match below(10) {
            0 | 1 => Self::OneWay { to_server: below(2) == 0, seconds: 1 + below(40) },
            2 => Self::FreezeBeforeWrite(1 + below(40)),
            3 => Self::Freeze(1 + below(40)),
            4 => Self::LinkDown(1 + below(40)),
            5 => Self::KillAfterRequest,
            6 | 7 => Self::OrderlyEnd,
            _ => Self::Lease(LeaseEdit::draw(random)),
        }
    }

    /// Whether it hits the next request rather than happening at once.
    pub(super) const fn waits_for_request(self) -> bool {
        matches!(
            self,
            Self::LoseRequest
                | Self::LoseAnswer
                | Self::LateAnswer(_)
                | Self::CutAnswer(_)
                | Self::Refuse(_)
                | Self::FailAfter(_)
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
            Self::LateAnswer(seconds) => write!(f, "the next answer comes {seconds} s late"),
            Self::CutAnswer(percent) => write!(f, "the next answer is cut at {percent} %"),
            Self::Refuse(status) => write!(f, "the next request is refused with {status}"),
            Self::FailAfter(status) => {
                write!(f, "the next request is carried out and answered with {status}")
            }
            Self::ChangeToken(seconds) => {
                write!(f, "the controller knows its new token after {seconds} s")
            }
            Self::SkipVersions(count) => write!(f, "{count} versions go to others"),
            Self::LoseAction => f.write_str("a user's request is lost"),
            Self::RepeatAction(seconds) => {
                write!(f, "a user's request comes once more after {seconds} s")
            }
            Self::HoldKubelets(seconds) => write!(f, "kubelets are late by {seconds} s"),
            Self::RepeatReport { pod, back } => {
                write!(f, "a report about pod {pod} comes after {back} later ones")
            }
            Self::Lie { pod, lie, seconds } => {
                write!(f, "pod {pod} lies for {seconds} s: {lie:?}")
            }
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
            Self::OneWay { to_server, seconds } => {
                let way = if *to_server { "to" } else { "from" };
                write!(f, "nothing gets {way} the server for {seconds} s")
            }
            Self::FreezeBeforeWrite(seconds) => {
                write!(f, "the controller is frozen for {seconds} s before its next write")
            }
            Self::Lease(edit) => write!(f, "the Lease: {edit:?}"),
            Self::OrderlyEnd => f.write_str("the controller is asked to end"),
            Self::Connections(how) => match how {
                Break::Reset(of) => write!(f, "one of {of} connections is reset"),
                Break::Close => f.write_str("the server closes all connections"),
                Break::Forget => f.write_str("the server has forgotten all connections"),
                Break::Refuse(seconds) => write!(f, "connections are refused for {seconds} s"),
                Break::Ignore(seconds) => write!(f, "nobody answers for {seconds} s"),
                Break::Leave => f.write_str("the server wants all connections to be left"),
                Break::Unknown(seconds) => {
                    write!(f, "the token is not accepted for {seconds} s")
                }
            },
        }
    }
}

/// What a server in trouble answers without having done anything.
pub(super) fn refusal(code: u16, random: &mut Random) -> Response {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Timeout",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "simulated", "reason": reason, "code": code,
    });
    let response = Response::value(code, &status);
    let says_when = code == 429 || code >= 500 && random.below(2) == 0;
    match says_when {
        true => response.with_header("retry-after", (1 + random.below(5)).to_string()),
        false => response,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_can_be_drawn_and_told() {
        let mut random = Random::from_seed(3);
        let mut seen = std::collections::HashSet::new();
        for sort in 0..Fault::SORTS {
            let fault = Fault::draw(&mut random, &[sort], &KINDS).expect("a fault");
            seen.insert(std::mem::discriminant(&fault));
            assert!(!fault.to_string().is_empty());
        }
        assert_eq!(seen.len(), Fault::SORTS);
        assert_eq!(Fault::draw(&mut random, &[], &KINDS), None);
    }
}
