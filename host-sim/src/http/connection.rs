//! Connections: accepting them, bounding them, and ending them in good order.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use hyper::body::Incoming;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::api::status::Status;
use crate::server::call::Call;
use crate::server::request::{Request, User};
use crate::server::response::{Body, Response};

use super::access::Access;
use super::audit::AuditIds;
use super::body::{Content, ListSending, ResponseBody, WatchBody};
use super::cluster::SharedServer;
use super::connections::{Busy, Connections, Member};
use super::goaway::GoAway;
use super::inflight::{InFlight, InFlightLimits, Place, RequestKind};
use super::metrics::Subject;
use super::record::{Logs, Record};
use super::speaking::speak;
use super::stall::StallGuard;
use super::upload::Upload;

/// Files that are not connections: the listener, the data directory, logs, and clients within this
/// process, such as the controllers.
const OTHER_FILES: u64 = 256;

/// What one client, or all together, may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Watches at the same time.
    pub watches: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// Bytes of request line and headers.
    pub header_bytes: usize,
    /// Requests and bytes of their bodies at the same time.
    pub in_flight: InFlightLimits,
    /// How long a client may take next to nothing of what it is being sent.
    pub stall: Duration,
    /// How long a client may take to send its headers, then its body, and to read a list.
    pub patience: Duration,
    /// How many of the requests of HTTP/2 end their connection in good order, from 0 to 1.
    pub goaway_chance: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            watches: 10_000,
            connections: 20_000,
            header_bytes: 64 << 10,
            in_flight: InFlightLimits::default(),
            stall: Duration::from_secs(30),
            patience: Duration::from_secs(60),
            goaway_chance: 0.0,
        }
    }
}

/// Everything a connection needs.
pub(super) struct Shell {
    pub(super) shared: Arc<SharedServer>,
    access: Access,
    pub(super) limits: Limits,
    pub(super) goaway: GoAway,
    watch_places: Arc<Semaphore>,
    in_flight: Arc<InFlight>,
    logs: Arc<Logs>,
    audit_ids: AuditIds,
    pub(super) stopping: watch::Receiver<bool>,
}

/// Accepts connections until `stopping` becomes true, then lets the open ones finish.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    access: Access,
    shared: Arc<SharedServer>,
    limits: Limits,
    logs: Arc<Logs>,
    stopping: watch::Receiver<bool>,
) {
    let shell = Arc::new(Shell {
        shared,
        access,
        watch_places: Arc::new(Semaphore::new(limits.watches.min(Semaphore::MAX_PERMITS))),
        in_flight: InFlight::new(limits.in_flight),
        logs,
        audit_ids: AuditIds::new(),
        goaway: GoAway::new(limits.goaway_chance),
        limits,
        stopping: stopping.clone(),
    });
    let connections = Connections::new(connections_within(limits.connections));
    // Every connection holds a receiver, so that nobody is left when the last has ended.
    let (all_ended, _) = watch::channel(());
    let mut stop = stopping;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of file descriptors, most likely: let some connections end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Over the limit idle connections make room. If all are at work, the newcomer is turned
        // away, and who is connected is served on.
        let Some(member) = connections.admit() else { continue };
        let _ = stream.set_nodelay(true);
        let (shell, tls, open) = (shell.clone(), tls.clone(), all_ended.subscribe());
        tokio::spawn(async move {
            let _open = open;
            let member = Arc::new(member);
            let mut client =
                Client { member: member.clone(), address: peer.ip(), certificates: None };
            let stream = StallGuard::new(stream, shell.limits.stall);
            let patience = shell.limits.patience;
            let served = async {
                match tls {
                    None => speak(stream, &shell, client).await,
                    Some(tls) => {
                        let handshake = tokio::time::timeout(patience, tls.accept(stream));
                        if let Ok(Ok(stream)) = handshake.await {
                            let (_, session) = stream.get_ref();
                            client.certificates = session.peer_certificates().map(Arc::from);
                            speak(stream, &shell, client).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = served => {}
                () = member.has_to_leave(patience) => {}
            }
        });
    }
    drop(listener);
    // Requests in progress are answered; a client that takes longer is not waited for.
    let _ = tokio::time::timeout(Duration::from_secs(5), all_ended.closed()).await;
}

/// Who is at the other end of a connection.
#[derive(Clone)]
pub(super) struct Client {
    member: Arc<Member>,
    address: IpAddr,
    /// What it has shown of itself in the handshake.
    certificates: Option<Arc<[CertificateDer<'static>]>>,
}

/// So many connections that there are files for them.
fn connections_within(limit: usize) -> usize {
    let Ok((files, _)) = rlimit::Resource::NOFILE.get() else { return limit };
    limit.min(usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX))
}

/// Answers a request.
pub(super) async fn answer(
    shell: Arc<Shell>,
    client: Client,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<ResponseBody>, Infallible> {
    let mut busy = client.member.begin();
    let subject = Subject::of(request.method(), request.uri());
    let audit_id = shell.audit_ids.id(request.headers());
    let mut record = Record::begin(&shell.logs, &request, subject, client.address, &audit_id);
    let (head, body) = request.into_parts();
    let mut upload = Some(Upload::new(&head.headers, body, shell.limits.patience));
    let outcome = match identify(&shell, &client, &head, &mut record) {
        Ok(user) => {
            if is_read(&head.method) {
                // A body says nothing about what is to be read.
                busy = throw_away(upload.take(), &client.member, busy).await;
            }
            let mut outcome = answer_to(&shell, user, &head, subject, upload, &mut record).await;
            busy = throw_away(outcome.unread.take(), &client.member, busy).await;
            outcome
        }
        Err(refusal) => Outcome::of(refusal),
    };
    let to_head = head.method == Method::HEAD;
    let (mut response, content) = content(&shell, outcome, to_head, &mut record);
    shell.shared.metrics.answered(subject, response.status);
    response.headers.push(("audit-id", audit_id));
    Ok(response.to_http(ResponseBody::new(content, record, busy)))
}

/// Reads what nobody wants. That is no work which others should make way for.
async fn throw_away(unread: Option<Upload>, member: &Member, busy: Busy) -> Busy {
    match unread.filter(|unread| !unread.is_empty()) {
        None => busy,
        Some(unread) => {
            drop(busy);
            unread.throw_away().await;
            member.begin()
        }
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// What a request is answered with.
struct Outcome {
    response: Response,
    /// The place of the request, which an answer in pieces needs for longer.
    place: Option<Place>,
    /// A body that the client may be sending still.
    unread: Option<Upload>,
}

impl Outcome {
    fn of(response: impl Into<Response>) -> Self {
        Self { response: response.into(), place: None, unread: None }
    }
}

/// Who asks; a refusal if that one may not.
fn identify(
    shell: &Shell,
    client: &Client,
    head: &Parts,
    record: &mut Option<Box<Record>>,
) -> Result<User, Status> {
    let user = shell.access.user(head, client.certificates.as_deref().unwrap_or_default())?;
    if let Some(record) = record {
        record.user = Some(user.clone());
    }
    Ok(user)
}

async fn answer_to(
    shell: &Shell,
    user: User,
    head: &Parts,
    subject: Subject,
    upload: Option<Upload>,
    record: &mut Option<Box<Record>>,
) -> Outcome {
    let Some(upload) = upload else {
        let place = match is_counted(head, subject) {
            true => shell.in_flight.enter(RequestKind::ReadOnly).map(Some),
            false => Ok(None),
        };
        return match place {
            Ok(place) => look_up(shell, user, head, place, record).await,
            Err(full) => Outcome::of(Status::from(full)),
        };
    };
    let place = match shell.in_flight.enter_with_body(RequestKind::Mutating) {
        Ok(place) => place,
        Err(full) => return Outcome { unread: Some(upload), ..Outcome::of(Status::from(full)) },
    };
    match upload.read(place).await {
        Ok((body, place)) => {
            let request = Request { body, ..Request::of_head(head, user) };
            Outcome { place: Some(place), ..Outcome::of(ask(shell, request, record).await) }
        }
        Err(refused) => Outcome { unread: refused.rest, ..Outcome::of(refused.status) },
    }
}

/// Whether a request takes a place: Kubernetes' long-running ones do not, nor do probes, which say
/// nothing if they are turned away.
fn is_counted(head: &Parts, subject: Subject) -> bool {
    let is_long = subject.verb == "watch" || subject.subresource == "log";
    !is_long && !matches!(head.uri.path(), "/healthz" | "/livez" | "/readyz")
}

async fn look_up(
    shell: &Shell,
    user: User,
    head: &Parts,
    place: Option<Place>,
    record: &mut Option<Box<Record>>,
) -> Outcome {
    if head.uri.path() == "/metrics" {
        let mut text = shell.shared.metrics.render(&shell.shared.read());
        text.push_str(&shell.in_flight.render());
        text.push_str(&shell.logs.render());
        text.push_str(&shell.shared.more_metrics().await);
        return Outcome::of(Response::text(200, text));
    }
    Outcome { place, ..Outcome::of(ask(shell, Request::of_head(head, user), record).await) }
}

async fn ask(shell: &Shell, request: Request, record: &mut Option<Box<Record>>) -> Response {
    let note = |call: &Call| {
        if let Some(record) = record {
            record.note_call(call);
        }
    };
    shell.shared.answer_noting(request, note).await
}

/// What is sent for a response. A place is kept while a list is being sent; what else is sent is
/// shared with the store or small.
fn content(
    shell: &Shell,
    outcome: Outcome,
    to_head: bool,
    record: &mut Option<Box<Record>>,
) -> (Response, Content) {
    let Outcome { mut response, place, .. } = outcome;
    let mut watch_place = None;
    if matches!(response.body, Body::Watch(_)) && !to_head {
        watch_place = shell.watch_places.clone().try_acquire_owned().ok();
        if watch_place.is_none() {
            let message = "too many watches at the same time, please try again later";
            response = Status::too_many_requests(message, 1).into();
        }
    }
    if let Some(record) = record {
        record.note_response(&response);
    }
    let body = std::mem::replace(&mut response.body, Body::Whole(Bytes::new()));
    let content = match (body, watch_place) {
        (Body::Whole(bytes), _) => Content::Whole(Some(bytes)),
        (Body::List(list), _) => {
            Content::List(ListSending::new(list, place, shell.limits.patience))
        }
        (Body::Watch(watch), Some(place)) => {
            let (shared, stopping) = (shell.shared.clone(), shell.stopping.clone());
            Content::Watch(Box::new(WatchBody::new(*watch, shared, stopping, place)))
        }
        (Body::Watch(_), None) => Content::Whole(None),
    };
    (response, content)
}
