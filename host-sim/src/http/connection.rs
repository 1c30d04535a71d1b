//! Connections: accepting them, bounding them, and ending them in good order.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::api::status::{MAX_BODY_BYTES, Status};
use crate::server::request::Request;
use crate::server::response::{Body, Response};

use super::access::Access;
use super::body::{ResponseBody, WatchBody};
use super::cluster::SharedServer;
use super::metrics::Subject;
use super::stall::StallGuard;

/// How much of a body is read only to be thrown away.
const MAX_THROWN_AWAY_BYTES: usize = 16 << 20;

/// What one client, or all together, may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Watches at the same time.
    pub watches: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// Bytes of request line and headers.
    pub header_bytes: usize,
    /// How long a client may take none of what it is being sent.
    pub stall: Duration,
    /// How long a client may take to send its headers, and then its body.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            watches: 10_000,
            connections: 20_000,
            header_bytes: 64 << 10,
            stall: Duration::from_secs(30),
            patience: Duration::from_secs(60),
        }
    }
}

/// Everything a connection needs.
struct Shell {
    shared: Arc<SharedServer>,
    access: Access,
    limits: Limits,
    watch_places: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

/// Accepts connections until `stopping` becomes true, then lets the open ones finish.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    access: Access,
    shared: Arc<SharedServer>,
    limits: Limits,
    stopping: watch::Receiver<bool>,
) {
    let shell = Arc::new(Shell {
        shared,
        access,
        watch_places: Arc::new(Semaphore::new(limits.watches)),
        limits,
        stopping: stopping.clone(),
    });
    let connections = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut stop = stopping;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely: let some connections end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Over the limit the newcomer is turned away; who is connected is served on.
        let Ok(place) = connections.clone().try_acquire_owned() else { continue };
        let _ = stream.set_nodelay(true);
        let (shell, tls, watcher) = (shell.clone(), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            let stream = StallGuard::new(stream, shell.limits.stall);
            match tls {
                None => speak(stream, &shell, watcher).await,
                Some(tls) => {
                    let handshake = tokio::time::timeout(shell.limits.patience, tls.accept(stream));
                    if let Ok(Ok(stream)) = handshake.await {
                        speak(stream, &shell, watcher).await;
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    // Requests in progress are answered; a client that takes longer is not waited for.
    let _ = tokio::time::timeout(Duration::from_secs(5), graceful.shutdown()).await;
}

async fn speak<S>(stream: S, shell: &Arc<Shell>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(shell.limits.patience)
        .max_buf_size(shell.limits.header_bytes.max(8 << 10))
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(shell.limits.header_bytes as u32)
        .max_concurrent_streams(250);
    let service = service_fn(|request| answer(shell.clone(), request));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    shell.shared.metrics.connections.fetch_add(1, Ordering::Relaxed);
    // A broken connection concerns its client only.
    let _ = watcher.watch(connection.into_owned()).await;
    shell.shared.metrics.connections.fetch_sub(1, Ordering::Relaxed);
}

async fn answer(
    shell: Arc<Shell>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<ResponseBody>, Infallible> {
    let head = request.method() == hyper::Method::HEAD;
    let subject = Subject::of(request.method(), request.uri());
    let response = answer_fully(&shell, request).await;
    shell.shared.metrics.answered(subject, response.status);
    Ok(to_http(&shell, response, head))
}

async fn answer_fully(shell: &Shell, request: hyper::Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    let user = match shell.access.user(&head) {
        Ok(user) => user,
        Err(status) => return status.into(),
    };
    let is_get = matches!(head.method, hyper::Method::GET | hyper::Method::HEAD);
    if is_get && head.uri.path() == "/metrics" {
        let mut text = shell.shared.metrics.render(&shell.shared.read());
        text.push_str(&shell.shared.more_metrics().await);
        return Response::text(200, text);
    }
    // Of those who do not say who they are nothing is kept in memory.
    let body = match user.is_anonymous() {
        true => Bytes::new(),
        false => match read_body(shell, &head, body).await {
            Ok(body) => body,
            Err(status) => return status.into(),
        },
    };
    let header = |name: HeaderName| {
        head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let request = Request {
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        accept: all_values(&head, header::ACCEPT),
        content_type: header(header::CONTENT_TYPE).to_owned(),
        user_agent: header(header::USER_AGENT).to_owned(),
        if_none_match: header(header::IF_NONE_MATCH).to_owned(),
        method: head.method,
        user,
        body,
    };
    shell.shared.answer(request).await
}

async fn read_body(shell: &Shell, head: &Parts, mut body: Incoming) -> Result<Bytes, Status> {
    let waits_for_leave = head.headers.contains_key(header::EXPECT);
    let declared = head.headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let patience = shell.limits.patience;
    if let Some(length) = declared.filter(|length| *length > MAX_BODY_BYTES as u64) {
        if !waits_for_leave && length <= MAX_THROWN_AWAY_BYTES as u64 {
            // However that ends, the answer is the same.
            let _ = tokio::time::timeout(patience, throw_away(&mut body)).await;
        }
        return Err(Status::request_entity_too_large());
    }
    let all = async {
        let collected = Limited::new(&mut body, MAX_BODY_BYTES).collect().await;
        if collected.is_err() {
            throw_away(&mut body).await;
        }
        collected
    };
    match tokio::time::timeout(patience, all).await {
        Err(_) => Err(Status::timeout("request did not complete within the allotted timeout")),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Status::request_entity_too_large())
        }
        Ok(Err(error)) => {
            Err(Status::bad_request(format!("the body of the request cannot be read: {error}")))
        }
    }
}

/// Reads the rest of a body that is too large, within limits: a client that is cut off while it
/// sends sees a broken connection instead of the answer.
async fn throw_away(body: &mut Incoming) {
    let mut left = MAX_THROWN_AWAY_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        let Some(less) = left.checked_sub(size) else { return };
        left = less;
    }
}

fn to_http(shell: &Shell, response: Response, head: bool) -> hyper::Response<ResponseBody> {
    let body = match response.body {
        Body::Whole(bytes) => ResponseBody::Whole(Some(bytes)),
        Body::List(list) => ResponseBody::List(list),
        Body::Watch(_) if head => ResponseBody::Whole(None),
        Body::Watch(watch) => {
            let Ok(place) = shell.watch_places.clone().try_acquire_owned() else {
                let message = "too many watches at the same time, please try again later";
                return to_http(shell, Status::too_many_requests(message, 1).into(), head);
            };
            let (shared, stopping) = (shell.shared.clone(), shell.stopping.clone());
            ResponseBody::Watch(Box::new(WatchBody::new(*watch, shared, stopping, place)))
        }
    };
    let mut http = hyper::Response::new(body);
    *http.status_mut() = hyper::StatusCode::from_u16(response.status)
        .unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = http.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(&response.content_type) {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    for (name, value) in response.headers {
        // A warning may quote what a client sent; what no header can carry is left out.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    http
}

/// Several Accept headers count as one.
fn all_values(head: &Parts, name: HeaderName) -> String {
    let values = head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}
