//! Golden scenarios in virtual time: the same player as against a real server, with a simulation
//! in its place.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use picokube::server::request::Request;
use picokube::sim::{
    Fault, Moment, Outcome, Plan, Room, Selectors, Shape, Spectator, Stage, Timed, Violation, stage,
};
use picokube_golden::direct::{Call, Direct, Reply};
use picokube_golden::namespace::Namespace;
use picokube_golden::report::Run;
use picokube_golden::{Client, Detail, Scenario, play_in};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Nothing else in a run has this name, so that it can be told in every text.
const NAMESPACE: &str = "g-in-virtual-time";
const TERMINATING_REPLICAS: &str = "DeploymentReplicaSetTerminatingReplicas";
const MAX_UNAVAILABLE: &str = "MaxUnavailableStatefulSet";

/// Plays a scenario while this goes wrong. A violated property is an error.
pub(crate) fn play(
    scenario: &Arc<Scenario>,
    faults: Vec<Timed<Fault>>,
    detail: Detail,
) -> Result<(Run, Outcome)> {
    let (run, outcome) = perform(scenario, faults, detail, 0)?;
    match &outcome.violation {
        Some(Violation { property, detail, at }) => bail!("{property}: {detail} at {at}"),
        None => Ok((run?, outcome)),
    }
}

/// The same; the last `keep` lines of the trace are remembered.
pub(crate) fn perform(
    scenario: &Arc<Scenario>,
    faults: Vec<Timed<Fault>>,
    detail: Detail,
    keep: usize,
) -> Result<(Result<Run>, Outcome)> {
    perform_after(scenario, faults, detail, keep, || {})
}

/// The same, after something has been done that takes real time.
fn perform_after(
    scenario: &Arc<Scenario>,
    faults: Vec<Timed<Fault>>,
    detail: Detail,
    keep: usize,
    delay: impl FnOnce(),
) -> Result<(Result<Run>, Outcome)> {
    let plan = Plan { seed: 1, shape: shape(scenario), actions: Vec::new(), faults };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build()?;
    Ok(stage(&plan, keep, |stage| {
        delay();
        // Only inside of the runtime is it the paused clock that is read.
        runtime.block_on(async { Theatre::new(stage).play(scenario, detail).await })
    }))
}

/// A cluster like that of the tests over HTTP: pods are moved by the scenario alone.
fn shape(scenario: &Scenario) -> Shape {
    let is_on = |name: &str| scenario.gates.iter().any(|gate| gate == name);
    Shape {
        deployments: 0,
        stateful_sets: 0,
        with_stateful_sets: scenario.name.starts_with('s'),
        replication_controllers: 0,
        namespaces: 1,
        nodes: 0,
        lanes: 4,
        rate: None,
        status_lag_millis: 0,
        terminating_replicas: is_on(TERMINATING_REPLICAS),
        max_unavailable_stateful_set: is_on(MAX_UNAVAILABLE),
        delay_micros: (200, 500),
        clock_rate: 1000,
        election: None,
        shipping: None,
        room: Room::Roomy,
        selectors: Selectors::Labels,
        managed_fields: false,
        // Nobody puts right what the scenario has done.
        horizon: Moment::from_secs(1_000_000),
        silence_secs: 0,
    }
}

/// A simulation, and who asks for what in it.
struct Theatre<'s, 'm> {
    stage: &'s mut Stage<'m>,
    began: Instant,
    spectators: Vec<(Spectator, mpsc::UnboundedSender<hyper::body::Bytes>)>,
}

impl<'s, 'm> Theatre<'s, 'm> {
    fn new(stage: &'s mut Stage<'m>) -> Self {
        Self { stage, began: Instant::now(), spectators: Vec::new() }
    }

    async fn play(mut self, scenario: &Arc<Scenario>, detail: Detail) -> Result<Run> {
        let (calls, mut asked) = mpsc::unbounded_channel();
        let (calm, is_calm) = watch::channel(false);
        let wall = self.stage.now().wall().unix_millis();
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(wall.try_into()?);
        let client = Client::direct(Direct::new(calls, is_calm, wall));
        let scenario = scenario.clone();
        let mut playing = tokio::spawn(async move {
            let namespace = Namespace::named(&client, NAMESPACE.to_owned()).await?;
            play_in(&client, &namespace.name, &scenario, detail, None).await
        });
        loop {
            self.tell();
            let now_calm = self.stage.is_calm();
            calm.send_if_modified(|calm| std::mem::replace(calm, now_calm) != now_calm);
            if self.stage.is_violated() {
                bail!("a property was violated");
            }
            let Some(next) = self.stage.next_at() else { bail!("nothing will ever happen") };
            // The clock of the runtime counts milliseconds.
            let next = self.began + Duration::from_millis(next.as_micros().div_ceil(1000));
            tokio::select! {
                biased;
                Some(call) = asked.recv() => {
                    self.pass();
                    self.answer(call);
                }
                played = &mut playing => {
                    self.stage.check_rest();
                    return played?;
                }
                () = sleep_until(next) => self.pass(),
            }
        }
    }

    /// The clock of the runtime has moved on: so does that of the simulation.
    fn pass(&mut self) {
        let elapsed = self.began.elapsed().as_millis();
        self.stage.pass_until(Moment::from_millis(elapsed as u64));
    }

    fn answer(&mut self, call: Call) {
        let mut request = Request::new(call.method, &call.path);
        request.user_agent = "picokube-golden".to_owned();
        if let Some((body, content_type)) = call.body {
            request = request.with_body(&content_type, body);
        }
        match call.reply {
            Reply::Whole(reply) => {
                let response = self.stage.ask(&request);
                // Whoever has gone does not need it.
                let _ = reply.send((response.status, response.into_bytes()));
            }
            Reply::Lines(lines) => {
                let spectator = self.stage.watch(&request);
                self.spectators.extend(spectator.map(|spectator| (spectator, lines)));
            }
        }
    }

    /// Tells those who watch what has happened.
    fn tell(&mut self) {
        let stage = &mut self.stage;
        self.spectators.retain(|(spectator, lines)| {
            let Some(told) = stage.told(*spectator) else { return false };
            let all = told.split_inclusive(|byte| *byte == b'\n');
            all.into_iter().all(|line| lines.send(line.to_vec().into()).is_ok())
        });
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use picokube_golden::directory;

    use super::*;

    /// On a busy machine, a thread may be kept from going on wherever it is.
    #[test]
    fn a_run_is_the_same_however_long_it_takes_to_begin() -> Result<()> {
        let scenario = Arc::new(Scenario::load(&directory().join("s-adopt-pod"))?);
        let hash = |delay: Duration| -> Result<u64> {
            let pause = || thread::sleep(delay);
            let (run, outcome) = perform_after(&scenario, Vec::new(), Detail::Ending, 0, pause)?;
            run.map(|_| outcome.trace.hash())
        };
        assert_eq!(hash(Duration::ZERO)?, hash(Duration::from_millis(700))?);
        Ok(())
    }
}
