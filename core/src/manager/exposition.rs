//! The metrics of the whole, for Prometheus.

use core::fmt::{self, Write};

use crate::kind::Kind;
use crate::metrics::Exposition;
use crate::queue::Queue;
use crate::registry::ControllerName;
use crate::store::Cache;

use super::Manager;

impl Manager<'_> {
    /// Writes all metrics in Prometheus' text format.
    pub fn write_metrics(&self, out: &mut dyn Write) -> fmt::Result {
        let mut page = Exposition::new(out);
        let metrics = &self.metrics;
        let [get, post, patch, delete] = metrics.requests.map(u64::from);
        page.labelled(
            "picokube_requests_total",
            "counter",
            "Requests sent by the controllers, watches not included.",
            "verb",
            [("GET", get), ("POST", post), ("PATCH", patch), ("DELETE", delete)],
        )?;
        let runs =
            |controller: &ControllerName| (controller.name(), u64::from(self.acts(*controller)));
        page.labelled(
            "running_managed_controllers",
            "gauge",
            "Controllers that run.",
            "manager=\"picokube\",name",
            ControllerName::ALL.iter().map(runs),
        )?;
        let controllers = self.controllers.all();
        let of_queues = |of: fn(&Queue) -> u64| {
            controllers.map(|controller| (controller.info().queue, of(controller.keys().queue)))
        };
        page.labelled(
            "workqueue_depth",
            "gauge",
            "Keys that wait.",
            "name",
            of_queues(|queue| queue.depth() as u64),
        )?;
        page.labelled(
            "workqueue_adds_total",
            "counter",
            "Adds that made a key wait.",
            "name",
            of_queues(|queue| u64::from(queue.metrics().adds)),
        )?;
        page.labelled(
            "workqueue_retries_total",
            "counter",
            "Delayed adds.",
            "name",
            of_queues(|queue| u64::from(queue.metrics().retries)),
        )?;
        page.labelled(
            "picokube_syncs_total",
            "counter",
            "Syncs begun.",
            "controller",
            controllers.map(|controller| (controller.info().queue, controller.keys().syncs.into())),
        )?;
        for (name, help, value) in [
            ("picokube_conflicts_total", "Writes refused as conflicts.", metrics.conflicts),
            ("picokube_refusals_total", "Requests refused otherwise.", metrics.refusals),
            ("picokube_failures_total", "Requests without an answer.", metrics.failures),
            ("picokube_retries_after_total", "Requests sent again later.", metrics.retries_after),
            ("picokube_objects_refused_total", "Times an object did not fit.", metrics.refused),
            ("picokube_objects_faulty_total", "Objects that cannot be read.", metrics.faulty),
            (
                "picokube_responses_stalled_total",
                "Responses that stopped in the midst of an object and kept others waiting.",
                metrics.stalled,
            ),
            ("picokube_events_dropped_total", "Events dropped.", self.recorder.dropped()),
        ] {
            page.single(name, "counter", help, u64::from(value))?;
        }
        self.write_election(&mut page)?;
        self.write_cache(&mut page)
    }

    fn write_election(&self, page: &mut Exposition<'_>) -> fmt::Result {
        let Some(elector) = self.elector() else { return Ok(()) };
        let name = elector.settings().resource_name;
        page.labelled(
            "leader_election_master_status",
            "gauge",
            "Whether this one leads.",
            "name",
            [(name, u64::from(elector.leads()))],
        )?;
        page.labelled(
            "leader_election_slowpath_total",
            "counter",
            "Renewals that took more than one request.",
            "name",
            [(name, u64::from(elector.slow_paths()))],
        )?;
        page.labelled(
            "picokube_leader_info",
            "gauge",
            "Who holds the Lease, as far as is known.",
            "holder",
            [(elector.holder(), 1)],
        )
    }

    fn write_cache(&self, page: &mut Exposition<'_>) -> fmt::Result {
        let cache = &self.cache;
        let of_kinds = |of: fn(&Cache<'_>, Kind) -> usize| {
            Kind::ALL.iter().map(move |kind| (kind.info().name, of(cache, *kind) as u64))
        };
        page.labelled(
            "picokube_cached_objects",
            "gauge",
            "Objects in the cache.",
            "kind",
            of_kinds(|cache, kind| cache.taken(kind)),
        )?;
        page.labelled(
            "picokube_cache_capacity",
            "gauge",
            "Objects the cache has room for.",
            "kind",
            of_kinds(|cache, kind| cache.capacity(kind)),
        )?;
        let blind = |kind: Kind| {
            let blind = cache.slots(kind).filter(|slot| cache.is_blind(kind, *slot));
            (kind.info().name, blind.count() as u64)
        };
        page.labelled(
            "picokube_blind_owners",
            "gauge",
            "Owners that nothing is created or deleted for, because objects did not fit.",
            "kind",
            Kind::ALL.iter().copied().filter(|kind| kind.info().is_key).map(blind),
        )
    }
}
