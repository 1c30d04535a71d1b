//! The memory of work in progress: answers being decoded, syncs, events.

use crate::control::Write;
use crate::event::{Event, Recorder};
use crate::kind::Kind;
use crate::leader_election::Elector;
use crate::registry::{AllWorkerParts, Workers};
use crate::time::Instant;
use crate::watch::Watch;
use crate::zero::ZeroOption;

use super::decoders::SharedDecoder;

/// Memory that work in progress takes, whatever the size of the cluster.
///
/// `LANES` requests can be under way at a time, events apart; `WORKERS` keys of each controller are
/// processed at a time; `EVENTS` events wait, and so many are remembered.
pub struct Workspace<const LANES: usize, const WORKERS: usize, const EVENTS: usize> {
    lanes: [[Lane; REQUESTS]; LANES],
    workers: Workers<WORKERS>,
    recorder: Recorder<[Event; EVENTS]>,
    decoder: SharedDecoder,
    watches: Watches,
    elector: ZeroOption<Elector>,
}

/// The watches, by the numbers of their kinds.
pub(super) type Watches = [ZeroOption<Watch>; Kind::COUNT];

/// Requests per lane: one is under way, the others wait until the server wants to see them again.
const REQUESTS: usize = 3;

/// Views of the parts of a [`Workspace`], whatever its capacities.
pub struct WorkspaceParts<'a> {
    pub(super) lanes: Lanes<'a>,
    pub(super) workers: AllWorkerParts<'a>,
    pub(super) recorder: &'a mut Recorder,
    pub(super) decoder: &'a mut SharedDecoder,
    pub(super) watches: &'a mut Watches,
    pub(super) elector: &'a mut ZeroOption<Elector>,
}

/// Requests.
pub(super) struct Lanes<'a> {
    pub(super) lanes: &'a mut [Lane],
    /// How many may be under way at a time.
    most: usize,
}

impl<const LANES: usize, const WORKERS: usize, const EVENTS: usize>
    Workspace<LANES, WORKERS, EVENTS>
{
    /// A workspace in which nothing happens yet.
    pub const fn new() -> Self {
        const { assert!(LANES > 0 && WORKERS > 0 && WORKERS < 256) };
        const { assert!(LANES * REQUESTS < 254) };
        Self {
            lanes: [[Lane::FREE; REQUESTS]; LANES],
            workers: Workers::NEW,
            recorder: Recorder::new(),
            decoder: SharedDecoder::NEW,
            watches: [const { ZeroOption::None }; Kind::COUNT],
            elector: ZeroOption::None,
        }
    }

    /// The parts, in the form that the manager works on.
    pub fn parts(&mut self) -> WorkspaceParts<'_> {
        WorkspaceParts {
            lanes: Lanes { lanes: self.lanes.as_flattened_mut(), most: LANES },
            workers: self.workers.parts(),
            recorder: &mut self.recorder,
            decoder: &mut self.decoder,
            watches: &mut self.watches,
            elector: &mut self.elector,
        }
    }
}

impl<const LANES: usize, const WORKERS: usize, const EVENTS: usize> Default
    for Workspace<LANES, WORKERS, EVENTS>
{
    fn default() -> Self {
        Self::new()
    }
}

impl Lanes<'_> {
    /// Whether a write can be sent now: there is a lane for it, and nobody else writes to the same
    /// object. Both would be refused that do not know of each other.
    pub(super) fn has_room(&self, write: &Write) -> bool {
        let mut others = self.lanes.iter().filter_map(|lane| lane.write.as_ref());
        self.free().is_some() && !others.any(|other| other.collides(write))
    }

    /// The lane in which another request can begin.
    pub(super) fn free(&self) -> Option<usize> {
        let free = self.lanes.iter().position(|lane| lane.write.is_none());
        free.filter(|_| self.may_send())
    }

    /// Whether another request may be under way.
    pub(super) fn may_send(&self) -> bool {
        self.lanes.iter().filter(|lane| lane.is_under_way()).count() < self.most
    }

    /// Whether a request is under way.
    pub(super) fn is_anything_under_way(&self) -> bool {
        self.lanes.iter().any(Lane::is_under_way)
    }
}

/// A request of a controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) write: Option<Write>,
    /// The number of its controller.
    pub(super) controller: u8,
    pub(super) serial: u16,
    /// HTTP status of the answer; 0 before its head.
    pub(super) status: u16,
    pub(super) retry_after: Option<u32>,
    pub(super) retries: u8,
    /// The body does not make sense.
    pub(super) is_unreadable: bool,
    /// The request is to be sent again, not before this.
    pub(super) resend_at: Option<Instant>,
    /// When it has to be given up.
    pub(super) expires_at: Option<Instant>,
}

impl Lane {
    pub(super) const FREE: Self = Self {
        write: None,
        controller: 0,
        serial: 0,
        status: 0,
        retry_after: None,
        retries: 0,
        is_unreadable: false,
        resend_at: None,
        expires_at: None,
    };

    fn is_under_way(&self) -> bool {
        self.write.is_some() && self.resend_at.is_none()
    }
}
