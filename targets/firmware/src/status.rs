//! How the device is doing: pages over HTTP, and a line in the log every minute.

use core::fmt;
use core::pin::pin;

use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_net::tcp::TcpSocket;
use embassy_time::{Duration, Instant, Timer, with_timeout};
use picokube_config::Configuration;
use picokube_core::kind::Kind;
use picokube_core::manager::Manager;
use picokube_core::metrics::Exposition;
use picokube_driver::SessionCounts;
use picokube_driver::runtime::{InFlight, Runtime, Trouble};
use picokube_driver::status::Pages;

use crate::certificates::{self, Teller};
use crate::transport::Network;
use crate::{clock, election, stack};

/// Where the pages are.
const PORT: u16 = 80;
/// How long a client may have a place: from its connection until it has its answer and has closed, however
/// steadily it sends and takes. Prometheus would not wait for longer either.
const TURN: Duration = Duration::from_secs(10);
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Clients of the pages at a time. Two, so that one who comes while another is served, or lingers,
/// is not turned away.
pub(crate) const CLIENTS: usize = 2;

/// Says how long the processor has worked.
type Busy = Option<fn() -> Duration>;

/// Serves the pages, one client after the other, for ever.
#[embassy_executor::task(pool_size = CLIENTS)]
pub(crate) async fn serve(
    stack: Stack<'static>,
    network: Network,
    runtime: &'static Runtime<'static>,
    configuration: &'static Configuration<'static>,
    busy: Busy,
) {
    let (mut rx, mut tx) = ([0; 128], [0; 256]);
    let mut socket = TcpSocket::new(stack, &mut rx, &mut tx);
    socket.set_timeout(Some(TURN));
    let platform =
        |out: &mut dyn fmt::Write| write_platform(network, runtime, configuration, busy, out);
    let pages = Pages { runtime, platform: &platform };
    loop {
        if socket.accept(PORT).await.is_ok() {
            // Who is not done by then gets a reset.
            let _ = with_timeout(TURN, pin!(take_turn(&pages, &mut socket))).await;
        }
        socket.abort();
        let _ = socket.flush().await;
    }
}

/// Answers a client.
async fn take_turn(pages: &Pages<'_, '_>, socket: &mut TcpSocket<'_>) {
    if pages.answer(socket).await.is_ok() {
        socket.close();
        // A reset would take the answer from a client that has not read it yet.
        while socket.read(&mut [0; 16]).await.is_ok_and(|len| len > 0) {}
    }
}

/// Tells the log when the controllers begin, who leads, when the server is of no use, when something does
/// not fit, and how things are.
#[embassy_executor::task]
pub(crate) async fn log(
    network: Network,
    runtime: &'static Runtime<'static>,
    configuration: &'static Configuration<'static>,
    busy: Busy,
) {
    let mut known = Known::default();
    let mut teller = Teller::default();
    let mut next = Instant::now() + LINE_EVERY;
    loop {
        let changed = runtime.until(|manager| Known::of(runtime, manager) != known);
        let event = select(changed, Timer::at(next)).await;
        if let Some(time) = runtime.wall_time() {
            clock::keep(time);
        }
        let ends = certificates::ends(configuration, network.server_certificate_expires());
        teller.look(&ends, configuration, runtime);
        match event {
            Either::First(()) => {
                let now = runtime.inspect(|manager| Known::of(runtime, manager));
                now.tell(&known, runtime, busy);
                if now.started != known.started {
                    report(network, runtime);
                }
                known = now;
            }
            Either::Second(()) => {
                report(network, runtime);
                next += LINE_EVERY;
            }
        }
    }
}

/// What the log tells when it changes.
#[derive(Default, PartialEq, Eq)]
struct Known {
    started: bool,
    trouble: Option<Trouble>,
    refusals: u32,
    election: election::Seen,
}

impl Known {
    fn of(runtime: &Runtime<'_>, manager: &Manager<'_>) -> Self {
        let (started, refusals) = (manager.has_started(), refusals(manager));
        let election = election::Seen::of(manager);
        Self { started, trouble: runtime.trouble(), refusals, election }
    }

    fn tell(&self, before: &Self, runtime: &Runtime<'_>, busy: Busy) {
        if self.trouble != before.trouble {
            match self.trouble {
                None => defmt::info!("the server is there"),
                Some(Trouble::Unreachable) => defmt::warn!("the server cannot be reached"),
                Some(Trouble::Insecure(why)) => defmt::warn!("{}", why),
                Some(Trouble::Refused(401)) => defmt::warn!(
                    "the server does not accept the token of the configuration page (401)"
                ),
                Some(Trouble::Refused(status)) => {
                    defmt::warn!("the server refuses lists and watches: {=u16}", status)
                }
            }
        }
        if self.started && !before.started {
            defmt::info!("the controllers have started");
            #[cfg(feature = "trouble")]
            crate::trouble::note_start();
            if let Some(busy) = busy {
                defmt::info!("the processor has worked for {=u64} us", busy().as_micros());
            }
        }
        if self.election != before.election {
            runtime.inspect(|manager| manager.elector().into_iter().for_each(election::tell));
        }
        match self.refusals {
            refusals if refusals == before.refusals => {}
            0 => defmt::info!("everything fits again"),
            refusals => defmt::warn!(
                "objects do not fit, {=u32} refusals: their owners are blind",
                refusals
            ),
        }
    }
}

/// The status line.
fn report(network: Network, runtime: &Runtime<'_>) {
    let (used, room) = stack::high_water();
    runtime.inspect(|manager| {
        let cache = manager.cache();
        defmt::info!(
            "status: {=usize}/{=usize} pods, {=usize}/{=usize} ReplicaSets, \
             {=usize}/{=usize} Deployments, {=u32} refused; {=usize}/{=usize} connections; \
             stack {=usize}/{=usize}; {}",
            cache.pods.taken(),
            cache.pods.capacity(),
            cache.replica_sets.taken(),
            cache.replica_sets.capacity(),
            cache.deployments.taken(),
            cache.deployments.capacity(),
            refusals(manager),
            network.in_use(),
            network.most(),
            used,
            room,
            manager.metrics(),
        );
    });
}

/// How often objects did not fit since the last complete lists.
fn refusals(manager: &Manager<'_>) -> u32 {
    Kind::ALL.iter().map(|kind| manager.cache().refused(*kind)).sum()
}

/// The metrics of the device itself.
fn write_platform(
    network: Network,
    runtime: &Runtime<'_>,
    configuration: &Configuration<'_>,
    busy: Busy,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let mut page = Exposition::new(out);
    let (used, room) = stack::high_water();
    let InFlight { now, most } = runtime.in_flight();
    for (name, help, value) in [
        ("picokube_uptime_seconds", "Time since the boot.", Instant::now().as_secs()),
        ("picokube_time_at_least_seconds", "The earliest that it can be.", clock::at_least()),
        ("picokube_stack_bytes", "Room for the stack.", room as u64),
        ("picokube_stack_high_water_bytes", "The deepest the stack has been.", used as u64),
        ("picokube_connections", "Connections to the API server.", network.in_use() as u64),
        ("picokube_connections_max", "The most there can be.", network.most() as u64),
        ("picokube_requests_in_flight", "Requests without an answer yet.", now.into()),
        ("picokube_requests_in_flight_high_water", "The most there have been.", most.into()),
    ] {
        page.single(name, "gauge", help, value)?;
    }
    let ends = certificates::ends(configuration, network.server_certificate_expires());
    certificates::write_metrics(&ends, &mut page)?;
    if let Some(session) = network.session() {
        write_session(session.counts(), &mut page)?;
        let open = session.open_streams() as u64;
        page.single("picokube_http2_streams", "gauge", "Open streams.", open)?;
    }
    if let Some(busy) = busy {
        let help = "How long the processor has not slept.";
        page.single("picokube_busy_microseconds_total", "counter", help, busy().as_micros())?;
    }
    Ok(())
}

/// What is counted of the one connection over TLS.
fn write_session(counts: SessionCounts, page: &mut Exposition<'_>) -> fmt::Result {
    for (name, help, value) in [
        ("picokube_tls_connections_total", "Servers that proved themselves.", counts.connections),
        ("picokube_tls_resumptions_total", "Those that did by a ticket.", counts.resumed),
        ("picokube_tls_failures_total", "Connections that did not come about.", counts.failures),
        ("picokube_http2_cancelled_total", "Streams that were given up.", counts.cancelled),
    ] {
        page.single(name, "counter", help, value.into())?;
    }
    Ok(())
}
