//! What an elector sends.
//!
//! The Lease is changed by merge patches at the version that was read: the same optimistic lock as
//! client-go's PUT, in fewer bytes, and what others keep in the Lease stays.

use core::fmt::{self, Write};

use crate::json::Escape;
use crate::time::Timestamp;

use super::elector::{Elector, Leadership, Step, Term};
use super::settings::LeaderElection;

/// The component that events name as their source.
const COMPONENT: &str = "picokube";
const API_VERSION: &str = "coordination.k8s.io/v1";

impl Elector {
    /// Writes the path of the request that is under way.
    pub fn write_target(&self, out: &mut dyn Write) -> fmt::Result {
        let LeaderElection { resource_namespace: namespace, resource_name: name, .. } =
            self.settings;
        let step = self.under_way().ok_or(fmt::Error)?;
        if let Step::Announce(_) = step {
            return write!(out, "/api/v1/namespaces/{namespace}/events");
        }
        write!(out, "/apis/{API_VERSION}/namespaces/{namespace}/leases")?;
        match step {
            Step::Create => Ok(()),
            _ => write!(out, "/{name}"),
        }
    }

    /// Writes its body, the same each time.
    pub fn write_body(&self, out: &mut dyn Write) -> fmt::Result {
        let now = self.written_at;
        match self.under_way().ok_or(fmt::Error)? {
            Step::Get => Ok(()),
            Step::Announce(news) => self.write_event(out, news, now),
            Step::Renew => {
                self.write_version(out)?;
                let seconds = self.settings.duration_seconds();
                if self.observed.duration_seconds != seconds {
                    write!(out, "\"leaseDurationSeconds\":{seconds},")?;
                }
                write!(out, "\"renewTime\":\"{}\"}}}}", now.rfc3339_micros())
            }
            Step::Update => {
                self.write_version(out)?;
                self.write_spec(out, now)
            }
            Step::Create => {
                let LeaderElection { resource_namespace: namespace, resource_name: name, .. } =
                    self.settings;
                write!(
                    out,
                    "{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"Lease\",\"metadata\":{{"
                )?;
                write!(out, "\"name\":\"{name}\",\"namespace\":\"{namespace}\"}},\"spec\":{{")?;
                self.write_spec(out, now)
            }
            Step::Release => {
                self.write_version(out)?;
                let now = now.rfc3339_micros();
                out.write_str("\"holderIdentity\":null,\"leaseDurationSeconds\":1,")?;
                write!(out, "\"acquireTime\":\"{now}\",\"renewTime\":\"{now}\"}}}}")
            }
        }
    }

    /// Writes the beginning of a patch that wants the Lease to be as it was read.
    fn write_version(&self, out: &mut dyn Write) -> fmt::Result {
        let version = self.version;
        write!(out, "{{\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"spec\":{{")
    }

    fn write_spec(&self, out: &mut dyn Write, now: Timestamp) -> fmt::Result {
        out.write_str("\"holderIdentity\":\"")?;
        Escape(out).write_str(self.settings.identity)?;
        let (seconds, now) = (self.settings.duration_seconds(), now.rfc3339_micros());
        write!(out, "\",\"leaseDurationSeconds\":{seconds},\"renewTime\":\"{now}\"")?;
        if let Term::New { transitions } = self.term {
            write!(out, ",\"acquireTime\":\"{now}\",\"leaseTransitions\":{transitions}")?;
        }
        out.write_str("}}")
    }

    fn write_event(&self, out: &mut dyn Write, news: Leadership, at: Timestamp) -> fmt::Result {
        let LeaderElection { resource_namespace: namespace, resource_name: name, .. } =
            self.settings;
        // Unix time in nanoseconds, as in the names of all events.
        let nanos = (at.as_micros().max(0) as u64).saturating_mul(1_000);
        let (uid, version, now) = (self.uid, self.version, at.rfc3339());
        out.write_str("{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{")?;
        write!(out, "\"name\":\"{name}.{nanos:x}\",\"namespace\":\"{namespace}\"}},")?;
        write!(out, "\"involvedObject\":{{\"kind\":\"Lease\",\"apiVersion\":\"{API_VERSION}\",")?;
        write!(out, "\"namespace\":\"{namespace}\",\"name\":\"{name}\",\"uid\":\"{uid}\",")?;
        write!(out, "\"resourceVersion\":\"{version}\"}},\"count\":1,\"type\":\"Normal\",")?;
        out.write_str("\"reason\":\"LeaderElection\",\"message\":\"")?;
        Escape(out).write_str(self.settings.identity)?;
        out.write_str(match news {
            Leadership::Gained => " became leader",
            Leadership::Lost => " stopped leading",
        })?;
        write!(out, "\",\"firstTimestamp\":\"{now}\",\"lastTimestamp\":\"{now}\",")?;
        write!(out, "\"source\":{{\"component\":\"{COMPONENT}\"}},")?;
        write!(out, "\"reportingComponent\":\"{COMPONENT}\",\"reportingInstance\":\"\"}}")
    }
}
