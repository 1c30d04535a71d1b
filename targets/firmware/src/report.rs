//! Tells the cluster why the device was reset.

use core::fmt::{self, Write};
use core::ops::ControlFlow;
use core::pin::pin;

use embassy_time::{Duration, Timer, with_timeout};
use heapless::String;
use picokube_config::Configuration;
use picokube_core::manager::{Escape, Manager};
use picokube_driver::runtime::Runtime;
use picokube_driver::{Method, Receiver, Request, ResponseHead};

use crate::crash::Crash;
use crate::transport::RequestClient;

/// The controllers wait until the event is sent, but not for longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends an event about the reset. Without it, the client is as it was.
pub(crate) async fn send(
    crash: &Crash,
    configuration: &Configuration<'static>,
    runtime: &Runtime<'_>,
    client: &mut RequestClient,
) {
    // By then the server has told the time.
    runtime.until(Manager::has_started).await;
    let mut event = Event { body: String::new(), target: String::new() };
    if event.write(crash, configuration, runtime).is_err() {
        defmt::warn!("the event about the last reset is too long");
        return;
    }
    let headers = &[("content-type", "application/json")];
    let body = event.body.as_bytes();
    let request = Request { method: Method::POST, target: &event.target, headers, body };
    // Pinned where it is made: moved into the time-out, it would go over the stack.
    let answered = pin!(until_answered(&request, client));
    let sent = with_timeout(PATIENCE, answered).await;
    if !sent.is_ok_and(|status| status < 300) {
        defmt::warn!("the server does not take the event about the last reset");
    }
}

/// Sends a request until the server has answered, and says how.
async fn until_answered(request: &Request<'_>, client: &mut RequestClient) -> u16 {
    loop {
        let mut answer = Answer { status: 0 };
        match client.exchange(request, &mut answer).await {
            Ok(()) if answer.status < 500 => return answer.status,
            // The client itself waits before it tries again; a server in trouble is waited
            // for in the same way.
            Ok(()) => Timer::after_secs(5).await,
            Err(_) => {}
        }
    }
}

struct Event {
    body: String<768>,
    target: String<128>,
}

impl Event {
    fn write(
        &mut self,
        crash: &Crash,
        configuration: &Configuration<'_>,
        runtime: &Runtime<'_>,
    ) -> fmt::Result {
        let Configuration { identity, namespace, .. } = *configuration;
        let namespace = namespace.unwrap_or("default");
        let time = runtime.wall_time().unwrap_or_default();
        let time = time.rfc3339();
        write!(self.target, "/api/v1/namespaces/{namespace}/events")?;
        let out = &mut self.body;
        write!(
            out,
            "{{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"type\":\"Warning\",\"reason\":\"Rebooted\",\
             \"metadata\":{{\"generateName\":\"{identity}-\",\"namespace\":\"{namespace}\"}},\
             \"involvedObject\":{{\"kind\":\"Node\",\"name\":\"{identity}\"}},\
             \"source\":{{\"component\":\"picokube\",\"host\":\"{identity}\"}},\
             \"firstTimestamp\":\"{time}\",\"lastTimestamp\":\"{time}\",\"count\":1,\
             \"message\":\"picokube was reset: "
        )?;
        write!(Escape(out), "{crash}")?;
        out.write_str("\"}")
    }
}

struct Answer {
    status: u16,
}

impl Receiver for Answer {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        self.status = head.status;
        ControlFlow::Continue(())
    }

    async fn body(&mut self, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
