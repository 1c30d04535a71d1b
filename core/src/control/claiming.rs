//! Claiming one object after the other: what every controller does before it decides.

use core::fmt;

use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::request::ContentType;
use crate::store::{Cache, Record};
use crate::wire::Uid;

use super::claim::{Candidate, Claim, Claimer, claim};
use super::owner::{write_adoption, write_release};
use super::reply::{Reply, Verdict};
use super::write::{Purpose, Write};

/// Which objects are claimed, and by whom.
#[derive(Clone, Copy)]
pub(crate) struct ClaimRule {
    pub(crate) members: Kind,
    pub(crate) claimer: Kind,
    /// Members that have come to their end, or are on their way there, are nobody's business.
    pub(crate) only_active: bool,
    /// What is owned and not selected is released.
    pub(crate) releases: bool,
    /// What a member has to be beside selected.
    pub(crate) is_member: fn(&Cache<'_>, key: Slot, member: Slot) -> bool,
}

impl ClaimRule {
    /// All active members that are selected.
    pub(crate) const fn new(members: Kind, claimer: Kind) -> Self {
        Self { members, claimer, only_active: true, releases: true, is_member: |_, _, _| true }
    }
}

/// How far a sync has come with claiming.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claiming {
    /// Candidates in slots before this one have been claimed or not.
    cursor: u16,
    may_adopt: MayAdopt,
}

/// Whether a claimer may adopt, which its live object tells: in the cache it may be there still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayAdopt {
    /// Nobody has looked.
    Unknown,
    /// It is there, and not being deleted.
    Yes,
    /// It is not, or nobody can tell.
    No,
}

impl Claiming {
    /// Nothing has been claimed.
    pub(crate) const START: Self = Self { cursor: 0, may_adopt: MayAdopt::Unknown };

    /// The next request that claiming needs; `None` when all that could be claimed is. A claimer's
    /// selector is valid.
    pub(crate) fn next(&self, cache: &Cache<'_>, rule: &ClaimRule, key: Slot) -> Option<Write> {
        let ClaimRule { members, claimer, .. } = *rule;
        let head = cache.head(claimer, key)?;
        let (slot, verdict) = self.next_candidate(cache, rule, key)?;
        let patch = |purpose| {
            let member = cache.head(members, slot)?;
            Some(Write::patch(purpose, ContentType::StrategicMergePatch, members, slot, member))
        };
        let knows = self.may_adopt != MayAdopt::Unknown || planted(Bug::AdoptsWithoutLook);
        match verdict {
            Claim::Adopt if !knows => Some(Write::get(claimer, key, head)),
            Claim::Adopt => patch(Purpose::Adopt),
            _ => patch(Purpose::Release),
        }
    }

    fn next_candidate(
        &self,
        cache: &Cache<'_>,
        rule: &ClaimRule,
        key: Slot,
    ) -> Option<(Slot, Claim)> {
        let ClaimRule { members, claimer, .. } = *rule;
        let record = cache.record(claimer, key)?;
        let (selector, deleting) = (record.selector()?, record.is_deleting());
        let verdict = |slot: Slot, member: &dyn Record, owned: Option<bool>| {
            let bug = if owned.is_none() { Bug::AdoptsUnselected } else { Bug::NeverReleases };
            let is_selected = selector.matches(cache.texts, member.labels())
                || (members == Kind::Pod && planted(bug));
            let matches = is_selected && (rule.is_member)(cache, key, slot);
            let candidate = Candidate { owned, matches, deleting: member.is_deleting() };
            claim(Claimer { deleting }, candidate)
        };
        let owned = cache.members_of(members, claimer, key).map(|slot| (slot, Some(true)));
        let namespace = cache.head(claimer, key)?.namespace();
        let orphans = cache.orphans_in(members, namespace).map(|slot| (slot, None));
        owned
            .chain(orphans)
            .filter(|(slot, _)| slot.index() >= usize::from(self.cursor))
            .filter_map(|(slot, owned)| Some((slot, owned, cache.record(members, slot)?)))
            .filter(|(.., member)| !rule.only_active || member.is_active())
            .map(|(slot, owned, member)| (slot, verdict(slot, member, owned)))
            .filter(|(_, claim)| match claim {
                Claim::Adopt => self.may_adopt != MayAdopt::No,
                Claim::Release => rule.releases,
                Claim::Claimed | Claim::Ignored => false,
            })
            .min_by_key(|(slot, _)| *slot)
    }

    /// A request for claiming was answered. Whether that went well: what could not be claimed makes
    /// every decision wrong, but does not keep others from being claimed.
    pub(crate) fn answered(&mut self, claimer: Uid, write: &Write, reply: &Reply<'_>) -> bool {
        if write.purpose == Purpose::Recheck {
            let is_alive = reply.shows_alive(claimer);
            self.may_adopt = if is_alive { MayAdopt::Yes } else { MayAdopt::No };
            return is_alive;
        }
        self.cursor = write.slot.index() as u16 + 1;
        let is_release = write.purpose == Purpose::Release;
        // Gone, or no longer this controller's: nothing is left to do.
        let is_moot =
            reply.verdict == Verdict::NotFound || (is_release && reply.verdict == Verdict::Invalid);
        reply.is_done() || is_moot
    }
}

/// Writes the body of a request for claiming.
pub(crate) fn write_claim(
    cache: &Cache<'_>,
    claimer: Kind,
    key: Slot,
    uid: Uid,
    write: &Write,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    if write.purpose == Purpose::Release {
        return write_release(out, write.uid, uid);
    }
    let head = cache.head(claimer, key).ok_or(fmt::Error)?;
    write_adoption(out, write.uid, claimer, head.display_name(cache.texts), uid)
}
