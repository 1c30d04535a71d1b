//! The server's end: hyper, as the real server has it, and what it hands to the simulated cluster.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Sleep, Timer};
use hyper::service::service_fn;

use crate::api::status::Status;
use crate::server::request::{Request, User};
use crate::server::response::{ListBody, Response};
use crate::speaking::{Bounds, builder};

use super::attempts::Attempts;
use super::executor::Spawner;
use super::net::Net;
use super::streams::ServerSocket;

/// As `picokube up` has them.
const BOUNDS: Bounds = Bounds {
    header_bytes: 64 << 10,
    patience: Duration::from_secs(60),
    stall: Duration::from_secs(30),
};

/// A request that has arrived as a whole.
pub(super) struct Call {
    pub(super) device: usize,
    /// The connection over which it has come.
    pub(super) connection: u64,
    pub(super) request: Request,
    /// Which attempt it is, if it carried the right token.
    pub(super) attempt: Option<u64>,
    pub(super) reply: Reply,
}

/// Requests that nobody has answered yet.
pub(super) type Calls = Rc<RefCell<VecDeque<Call>>>;

/// Where an answer is put.
#[derive(Clone, Default)]
pub(super) struct Reply(Rc<RefCell<(Option<Answer>, Option<Waker>)>>);

type Answer = http::Response<AnswerBody>;

impl Reply {
    pub(super) fn give(&self, answer: Answer) {
        let mut place = self.0.borrow_mut();
        place.0 = Some(answer);
        place.1.take().into_iter().for_each(Waker::wake);
    }

    async fn wait(self) -> Answer {
        poll_fn(|context| {
            let mut place = self.0.borrow_mut();
            match place.0.take() {
                Some(answer) => Poll::Ready(answer),
                None => {
                    place.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Accepts connections for ever.
pub(super) async fn accept(net: Net, spawner: Spawner, calls: Calls) {
    loop {
        let (number, device) = poll_fn(|context| net.poll_accept(context)).await;
        spawner.spawn(serve(net.clone(), number, device, spawner.clone(), calls.clone()));
    }
}

/// Serves a client until it goes, or until it has to.
async fn serve(net: Net, number: u64, device: usize, spawner: Spawner, calls: Calls) {
    let service = service_fn(|request| answer(calls.clone(), number, device, request));
    let socket = ServerSocket::new(net.clone(), number);
    let builder = builder(spawner, VirtualTimer, &BOUNDS);
    let mut connection = pin!(builder.serve_connection(socket, service));
    let mut is_told = false;
    poll_fn(|context| {
        if !is_told && net.poll_leave(number, context).is_ready() {
            is_told = true;
            connection.as_mut().graceful_shutdown();
        }
        // A broken connection concerns its client only.
        connection.as_mut().poll(context).map(|_| ())
    })
    .await;
}

async fn answer(
    calls: Calls,
    connection: u64,
    device: usize,
    request: hyper::Request<Incoming>,
) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    // As the real server says it; nothing is carried out.
    let Ok(body) = body.collect().await else {
        let refusal: Response = Status::bad_request("the body cannot be read").into();
        return Ok(refusal.to_http(AnswerBody::Whole(None)));
    };
    let authorization = head.headers.get(http::header::AUTHORIZATION);
    let attempt = authorization.and_then(|value| Attempts::of_token(value.to_str().ok()?));
    let request = Request { body: body.to_bytes(), ..Request::of_head(&head, User::default()) };
    let reply = Reply::default();
    calls.borrow_mut().push_back(Call {
        device,
        connection,
        request,
        attempt,
        reply: reply.clone(),
    });
    Ok(reply.wait().await)
}

/// What is sent.
pub(super) enum AnswerBody {
    /// All of it at once.
    Whole(Option<Bytes>),
    /// A list, chunk by chunk.
    List(Box<ListBody>),
    /// A watch, for as long as the client stays.
    Watch(Rc<RefCell<Pipe>>),
}

/// What a watch has to send.
#[derive(Default)]
pub(super) struct Pipe {
    pub(super) chunks: VecDeque<Bytes>,
    pub(super) end: PipeEnd,
    /// All that there was has been taken.
    pub(super) is_hungry: bool,
    waker: Option<Waker>,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PipeEnd {
    #[default]
    NotYet,
    InOrder,
    /// Before its end: over HTTP/1.1 the connection closes, over HTTP/2 the stream is reset.
    Broken,
}

impl Pipe {
    pub(super) fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

/// An answer that breaks off.
#[derive(Debug)]
pub(super) struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer breaks off")
    }
}

impl std::error::Error for BrokenOff {}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let chunk = match self.get_mut() {
            Self::Whole(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()),
            Self::List(list) => list.next_chunk(),
            Self::Watch(pipe) => {
                let mut pipe = pipe.borrow_mut();
                match (pipe.chunks.pop_front(), pipe.end) {
                    (Some(chunk), _) => Some(chunk),
                    (None, PipeEnd::InOrder) => None,
                    (None, PipeEnd::Broken) => return Poll::Ready(Some(Err(BrokenOff))),
                    (None, PipeEnd::NotYet) => {
                        pipe.is_hungry = true;
                        pipe.waker = Some(context.waker().clone());
                        return Poll::Pending;
                    }
                }
            }
        };
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            _ => SizeHint::default(),
        }
    }
}

/// hyper's time, by the clock of the server.
#[derive(Clone, Copy, Debug)]
struct VirtualTimer;

/// What virtual time counts from; any moment will do.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

struct VirtualSleep(embassy_time::Timer);

impl Future for VirtualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl Sleep for VirtualSleep {}

impl Timer for VirtualTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let at = deadline.saturating_duration_since(*ORIGIN).as_micros() as u64;
        Box::pin(VirtualSleep(embassy_time::Timer::at(embassy_time::Instant::from_micros(at))))
    }

    fn now(&self) -> Instant {
        *ORIGIN + Duration::from_micros(embassy_time::Instant::now().as_micros())
    }
}
