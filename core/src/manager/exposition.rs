//! The metrics of the whole, for Prometheus.

use core::fmt::{self, Write};

use crate::metrics::Exposition;
use crate::store::Kind;

use super::{Controller, Manager};

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
        let runs = |controller| {
            u64::from(self.has_started() && self.settings.controllers.contains(controller))
        };
        page.labelled(
            "running_managed_controllers",
            "gauge",
            "Controllers that run.",
            "manager=\"picokube\",name",
            Controller::ALL.map(|controller| (controller.name(), runs(controller))),
        )?;
        let deployments = &self.parts.deployment_queue;
        let sets = &self.parts.replica_set_queue;
        let queues = |of: fn(&crate::queue::Queue) -> u64| {
            [("deployment", of(deployments)), ("replicaset", of(sets))]
        };
        page.labelled(
            "workqueue_depth",
            "gauge",
            "Keys that wait.",
            "name",
            queues(|queue| queue.depth() as u64),
        )?;
        page.labelled(
            "workqueue_adds_total",
            "counter",
            "Adds that made a key wait.",
            "name",
            queues(|queue| u64::from(queue.metrics().adds)),
        )?;
        page.labelled(
            "workqueue_retries_total",
            "counter",
            "Delayed adds.",
            "name",
            queues(|queue| u64::from(queue.metrics().retries)),
        )?;
        page.labelled(
            "picokube_syncs_total",
            "counter",
            "Syncs begun.",
            "controller",
            [
                ("deployment", u64::from(metrics.deployment_syncs)),
                ("replicaset", u64::from(metrics.replica_set_syncs)),
            ],
        )?;
        for (name, help, value) in [
            ("picokube_conflicts_total", "Writes refused as conflicts.", metrics.conflicts),
            ("picokube_refusals_total", "Requests refused otherwise.", metrics.refusals),
            ("picokube_failures_total", "Requests without an answer.", metrics.failures),
            ("picokube_retries_after_total", "Requests sent again later.", metrics.retries_after),
            ("picokube_objects_refused_total", "Times an object did not fit.", metrics.refused),
            ("picokube_objects_faulty_total", "Objects that cannot be read.", metrics.faulty),
            ("picokube_events_dropped_total", "Events dropped.", self.desk.recorder.dropped()),
        ] {
            page.single(name, "counter", help, u64::from(value))?;
        }
        self.write_cache(&mut page)
    }

    fn write_cache(&self, page: &mut Exposition<'_>) -> fmt::Result {
        let cache = &self.parts.cache;
        page.labelled(
            "picokube_cached_objects",
            "gauge",
            "Objects in the cache.",
            "kind",
            [
                ("Pod", cache.pods.taken() as u64),
                ("ReplicaSet", cache.replica_sets.taken() as u64),
                ("Deployment", cache.deployments.taken() as u64),
            ],
        )?;
        page.labelled(
            "picokube_cache_capacity",
            "gauge",
            "Objects the cache has room for.",
            "kind",
            [
                ("Pod", cache.pods.capacity() as u64),
                ("ReplicaSet", cache.replica_sets.capacity() as u64),
                ("Deployment", cache.deployments.capacity() as u64),
            ],
        )?;
        let sets = cache.replica_sets.iter().map(|(slot, _)| slot);
        let deployments = cache.deployments.iter().map(|(slot, _)| slot);
        let blind_sets = sets.filter(|slot| cache.is_blind(Kind::Pod, *slot)).count();
        let blind = deployments.filter(|slot| cache.is_blind(Kind::ReplicaSet, *slot)).count();
        page.labelled(
            "picokube_blind_owners",
            "gauge",
            "Owners that nothing is created or deleted for, because objects did not fit.",
            "kind",
            [("ReplicaSet", blind_sets as u64), ("Deployment", blind as u64)],
        )
    }
}
