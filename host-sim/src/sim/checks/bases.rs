//! What a request about a Deployment, a ReplicaSet or one of its pods may have been decided on.
//!
//! A Deployment's plan is looked at again before each of its steps: a step is decided on when it
//! leaves. A ReplicaSet decides once to create or to delete some pods, and carries that out: all of them
//! are decided on when the first one leaves. What is sent again because the server has asked for it was
//! decided on when it left for the first time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::clock::Moment;
use super::super::device::Told;
use super::super::operation::Verb;
use super::past::Basis;
use super::{Instant, Issued, Model};

/// A status tells of what was counted before the pods of its sync came and went: so long before, and
/// as much longer as requests of the controller have taken meanwhile.
const LATELY_SECS: u64 = 90;

/// What was decided on longer ago counts only as far as it still is right: 30 seconds of a clock that may be
/// a tenth slow.
const BURST_SECS: u64 = 34;

/// What each controller has been told of late, and the bursts that it has begun.
#[derive(Debug, Default)]
pub(super) struct Bases {
    told: BTreeMap<usize, VecDeque<(Moment, Told)>>,
    /// When requests ended, and how many seconds they had taken.
    took: BTreeMap<usize, Vec<(Moment, u64)>>,
    bursts: BTreeMap<(usize, String), Burst>,
}

/// Pods that are created, or deleted, one after the other.
#[derive(Debug)]
struct Burst {
    verb: Verb,
    /// What was known when each of its requests left, of those of late.
    known: VecDeque<(Moment, Told, BTreeSet<String>)>,
}

impl Bases {
    /// A controller has forgotten everything.
    pub(super) fn forget(&mut self, device: usize) {
        self.told.remove(&device);
        self.took.remove(&device);
        self.bursts.retain(|(of, _), _| *of != device);
    }

    /// How far a controller had been told a while ago, or when it first sent something.
    pub(super) fn lately(&mut self, device: usize, told: &Told, now: Moment) -> Told {
        let history = self.told.entry(device).or_default();
        history.push_back((now, *told));
        let mut from = now.minus_secs(LATELY_SECS);
        for (ended, seconds) in self.took.get(&device).into_iter().flatten().rev() {
            if *ended >= from {
                from = from.minus_secs(*seconds);
            }
        }
        let after = history.partition_point(|(at, _)| *at <= from);
        // A watch may tell old versions again.
        let since = history.iter().skip(after.saturating_sub(1));
        since.map(|(_, told)| *told).fold(*told, Told::least)
    }

    /// A request of a controller has ended.
    pub(super) fn ended(&mut self, device: usize, sent: Moment, now: Moment) {
        let seconds = now.micros_since(sent) / 1_000_000;
        if seconds > 0 {
            self.took.entry(device).or_default().push((now, seconds));
        }
    }

    /// A request leaves that is not about a StatefulSet.
    pub(super) fn issued(
        &mut self,
        model: &Model,
        issued: &Issued<'_, '_>,
        told: &Told,
        there_again: BTreeSet<String>,
        at: Instant,
    ) -> Basis {
        let mut basis = Basis {
            told: *told,
            until: at.version,
            wall: at.wall,
            deleted: Vec::new(),
            there_again,
            answered: 0,
            lately: *told,
        };
        let operation = issued.operation;
        if operation.status {
            // Its burst is over.
            let key = format!("{}/{}", operation.namespace, operation.name);
            let object = model.all(&operation.resource).find(|object| object.key == key);
            let uid = object.map_or("", |object| &object.uid);
            self.bursts.remove(&(issued.device, uid.to_owned()));
        }
        let burst =
            [Verb::Create, Verb::Delete].into_iter().find(|verb| operation.is(*verb, "pods"));
        let Some((verb, owner)) = burst.zip(issued.owner()) else { return basis };
        let key = (issued.device, owner.to_string());
        let begun = || Burst { verb, known: VecDeque::new() };
        let burst = self.bursts.entry(key).or_insert_with(begun);
        if burst.verb != verb {
            *burst = begun();
        }
        burst.known.push_back((issued.now, *told, std::mem::take(&mut basis.there_again)));
        let from = issued.now.minus_secs(BURST_SECS);
        burst.known.retain(|(at, ..)| *at >= from);
        if let Some((_, told, _)) = burst.known.front() {
            basis.told = *told;
        }
        basis.there_again = burst.known.iter().flat_map(|(.., again)| again).cloned().collect();
        basis
    }
}
