//! The election that the device takes part in, and what its log tells of it.

use core::fmt::Write;

use heapless::String;
use picokube_config::Configuration;
use picokube_core::leader_election::{Elector, LeaderElection};
use picokube_core::manager::Manager;
use static_cell::StaticCell;

use crate::Entropy;

/// A name, and what tells one boot from another.
type Identity = String<{ 63 + 1 + 16 }>;

/// What the configuration says. As in kube-controller-manager, the identity has a random number: two devices
/// that were given one name are two, and so is a device before and after a reset, since nobody knows what is
/// still under way of what it sent before. Without a generator that works, the number is zero.
#[inline(never)]
pub(crate) fn settings(
    configuration: &'static Configuration<'static>,
    entropy: Entropy,
) -> Option<LeaderElection<'static>> {
    static IDENTITY: StaticCell<Identity> = StaticCell::new();
    let election = configuration.leader_election?;
    let random = entropy();
    let number = random.as_ref().and_then(|bytes| bytes.first_chunk()).copied();
    let number = u64::from_ne_bytes(number.unwrap_or_default());
    let identity = IDENTITY.init(String::new());
    // It fits: a name has 63 characters at most.
    let _ = write!(identity, "{}_{number:016x}", election.identity);
    Some(LeaderElection { identity, ..election })
}

/// Who leads, as far as it takes to see that this has changed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    leads: bool,
    /// A checksum of the leader's name; zero is nobody.
    holder: u32,
}

impl Seen {
    pub(crate) fn of(manager: &Manager<'_>) -> Self {
        manager.elector().map_or(Self::default(), |elector| Self {
            leads: elector.leads(),
            holder: elector.holder().bytes().fold(0, |sum, byte| {
                (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193).wrapping_add(1)
            }),
        })
    }
}

/// Tells the log who leads.
pub(crate) fn tell(elector: &Elector) {
    let LeaderElection { resource_namespace: namespace, resource_name: name, .. } =
        elector.settings();
    match (elector.leads(), elector.holder()) {
        (true, me) => {
            defmt::info!("leads as {=str}, by the Lease {=str}/{=str}", me, namespace, name);
        }
        (false, "") => {
            defmt::info!("stands by; nobody leads by the Lease {=str}/{=str}", namespace, name);
        }
        (false, other) => defmt::info!(
            "stands by; {=str} leads by the Lease {=str}/{=str}",
            other,
            namespace,
            name
        ),
    }
}
