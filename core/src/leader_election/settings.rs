//! What can be chosen about leader election.

use core::fmt;

use crate::limits;
use crate::time::Duration;

/// Who takes part in an election, about which Lease, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderElection<'a> {
    /// Tells this manager from all others, also from itself before its last start.
    pub identity: &'a str,
    /// The namespace of the Lease.
    pub resource_namespace: &'a str,
    /// Its name.
    pub resource_name: &'a str,
    /// How long others wait after the last sign of life of the leader before they take over.
    pub lease_duration: Duration,
    /// How long the leader tries to renew the Lease before it gives up. It writes for no longer than that
    /// after its last renewal.
    pub renew_deadline: Duration,
    /// How long everybody waits between tries.
    pub retry_period: Duration,
}

/// Settings of an election that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum InvalidLeaderElection {
    /// There is no identity.
    NoIdentity,
    /// The identity has more than 253 bytes.
    IdentityTooLong,
    /// The namespace cannot be one.
    ResourceNamespace,
    /// The name cannot be one.
    ResourceName,
    /// The lease duration is less than the second that a Lease counts in.
    LeaseDuration,
    /// The renew deadline is zero.
    RenewDeadline,
    /// The retry period is zero.
    RetryPeriod,
    /// The lease duration is not greater than the renew deadline.
    LeaseEndsBeforeDeadline,
    /// The renew deadline is not greater than the longest wait between two tries.
    DeadlineBeforeRetry,
}

/// The longest wait between two tries of who stands by, in tenths of the retry period beyond it.
const JITTER_TENTHS: u64 = 12;

impl LeaderElection<'_> {
    /// What is waited for in Kubernetes if nothing else is said, and the Lease of picokube.
    pub const DEFAULT: Self = Self {
        identity: "",
        resource_namespace: "kube-system",
        resource_name: "picokube",
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    /// What an edge wants whose bytes cost money: a sixth of the renewals, four times the wait.
    pub const EDGE: Self = Self {
        lease_duration: Duration::from_secs(60),
        renew_deadline: Duration::from_secs(40),
        retry_period: Duration::from_secs(10),
        ..Self::DEFAULT
    };

    /// Whether these settings can work, by the rules of client-go.
    pub fn check(&self) -> Result<(), InvalidLeaderElection> {
        use InvalidLeaderElection as Invalid;
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        let most_retries = retry_period.as_micros().saturating_mul(JITTER_TENTHS) / 10;
        match () {
            () if self.identity.is_empty() => Err(Invalid::NoIdentity),
            () if self.identity.len() > limits::NAME => Err(Invalid::IdentityTooLong),
            () if !is_name(self.resource_namespace, limits::NAMESPACE) => {
                Err(Invalid::ResourceNamespace)
            }
            () if !is_name(self.resource_name, limits::NAME) => Err(Invalid::ResourceName),
            () if lease_duration < Duration::from_secs(1) => Err(Invalid::LeaseDuration),
            () if renew_deadline == Duration::ZERO => Err(Invalid::RenewDeadline),
            () if retry_period == Duration::ZERO => Err(Invalid::RetryPeriod),
            () if lease_duration <= renew_deadline => Err(Invalid::LeaseEndsBeforeDeadline),
            () if renew_deadline.as_micros() <= most_retries => Err(Invalid::DeadlineBeforeRetry),
            () => Ok(()),
        }
    }

    /// The lease duration as a Lease has it.
    pub(super) fn duration_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }

    /// How long a request may take: of several in a row, the first must not use up the whole deadline.
    pub(super) fn request_timeout(&self) -> Duration {
        let half = Duration::from_micros(self.renew_deadline.as_micros() / 2);
        half.max(Duration::from_secs(1))
    }

    /// How long who stands by waits after a try. `random` is a fresh uniform number.
    pub(super) fn jittered_retry(&self, random: u32) -> Duration {
        let most = self.retry_period.as_millis().saturating_mul(JITTER_TENTHS) / 10;
        let jitter = (u128::from(most) * u128::from(random)) >> 32;
        self.retry_period + Duration::from_millis(jitter as u64)
    }
}

/// Whether the API server takes this for a name, and a path can have it as it is.
fn is_name(name: &str, most: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| is_plain(byte) || matches!(byte, b'-' | b'.');
    let ends =
        name.bytes().next().is_some_and(is_plain) && name.bytes().last().is_some_and(is_plain);
    ends && name.len() <= most && name.bytes().all(inner)
}

impl fmt::Display for InvalidLeaderElection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoIdentity => "the identity is empty",
            Self::IdentityTooLong => "the identity has more than 253 bytes",
            Self::ResourceNamespace => "resourceNamespace is not the name of a namespace",
            Self::ResourceName => "resourceName is not the name of a Lease",
            Self::LeaseDuration => "leaseDuration must be at least a second",
            Self::RenewDeadline => "renewDeadline must be greater than zero",
            Self::RetryPeriod => "retryPeriod must be greater than zero",
            Self::LeaseEndsBeforeDeadline => "leaseDuration must be greater than renewDeadline",
            Self::DeadlineBeforeRetry => "renewDeadline must be greater than retryPeriod*1.2",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_relations_are_refused_as_upstream_does() {
        let good = LeaderElection { identity: "a", ..LeaderElection::DEFAULT };
        let with = |lease, renew, retry| LeaderElection {
            lease_duration: Duration::from_millis(lease),
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
            ..good
        };
        use InvalidLeaderElection as Invalid;
        for (settings, verdict) in [
            (good, Ok(())),
            (LeaderElection { identity: "a", ..LeaderElection::EDGE }, Ok(())),
            (with(15_000, 14_999, 12_000), Ok(())),
            (with(15_000, 15_000, 2_000), Err(Invalid::LeaseEndsBeforeDeadline)),
            (with(10_000, 15_000, 2_000), Err(Invalid::LeaseEndsBeforeDeadline)),
            (with(15_000, 2_400, 2_000), Err(Invalid::DeadlineBeforeRetry)),
            (with(15_000, 2_401, 2_000), Ok(())),
            (with(0, 10_000, 2_000), Err(Invalid::LeaseDuration)),
            (with(15_000, 0, 2_000), Err(Invalid::RenewDeadline)),
            (with(15_000, 10_000, 0), Err(Invalid::RetryPeriod)),
            (LeaderElection { identity: "", ..good }, Err(Invalid::NoIdentity)),
            (LeaderElection { resource_name: "", ..good }, Err(Invalid::ResourceName)),
            (LeaderElection { resource_name: "a/b", ..good }, Err(Invalid::ResourceName)),
            (LeaderElection { resource_namespace: "", ..good }, Err(Invalid::ResourceNamespace)),
        ] {
            assert_eq!(settings.check(), verdict, "{settings:?}");
        }
    }

    #[test]
    fn who_stands_by_waits_for_one_to_two_and_a_fifth_of_a_period() {
        let settings = LeaderElection::DEFAULT;
        assert_eq!(settings.jittered_retry(0), Duration::from_secs(2));
        let longest = settings.jittered_retry(u32::MAX);
        assert!(longest > Duration::from_millis(4_398) && longest < Duration::from_millis(4_400));
    }
}
