//! Leadership on a PC: who leads is told on standard error, and given back at an orderly end.

use picokube_core::leader_election::Elector;
use picokube_core::manager::Manager;
use picokube_driver::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

/// What can be seen of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    leads: bool,
    holder: String,
}

impl Seen {
    fn of(manager: &Manager<'_>) -> Option<Self> {
        let elector = manager.elector()?;
        Some(Self { leads: elector.leads(), holder: elector.holder().to_owned() })
    }
}

/// Tells who leads whenever that changes.
pub(super) async fn tell_who_leads(runtime: &Runtime<'_>) {
    let mut told = None;
    loop {
        runtime.until(|manager| Seen::of(manager) != told).await;
        let seen = runtime.inspect(Seen::of);
        let (Some(now), Some(lease)) = (&seen, runtime.inspect(|it| it.elector().map(lease)))
        else {
            return;
        };
        match (now.leads, now.holder.as_str()) {
            (true, me) => eprintln!("picokube: leads as {me}, by the Lease {lease}"),
            // Nobody has looked yet.
            (false, "") if told.is_none() => {}
            (false, "") => eprintln!("picokube: stands by; nobody leads by the Lease {lease}"),
            (false, other) => eprintln!("picokube: stands by; {other} leads by the Lease {lease}"),
        }
        told = seen;
    }
}

fn lease(elector: &Elector) -> String {
    let settings = elector.settings();
    format!("{}/{}", settings.resource_namespace, settings.resource_name)
}

/// Gives leadership back when somebody asks for it, and says when that is done.
pub(super) async fn release(
    runtime: &Runtime<'_>,
    mut wanted: mpsc::Receiver<oneshot::Sender<()>>,
) {
    while let Some(asked) = wanted.recv().await {
        runtime.release_leadership().await;
        // Who has asked may have gone.
        let _ = asked.send(());
    }
}
