//! HTTP/1.1 or HTTP/2 over one connection, from its first byte to an end in good order.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use crate::speaking::{Bounds, builder};

use super::cluster::SharedServer;
use super::connection::{Client, Limits, Shell, answer};

/// Serves a client until it goes, or until it has to: because the server stops, or by the lot of
/// `--goaway-chance`. It is told so first (GOAWAY, or `connection: close`), and what is under way is
/// finished.
pub(super) async fn speak<S>(stream: S, shell: &Arc<Shell>, client: Client)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let farewell = Arc::new(Notify::new());
    let service = service_fn(|request: hyper::Request<_>| {
        if shell.goaway.strikes(request.version()) {
            farewell.notify_one();
        }
        answer(shell.clone(), client.clone(), request)
    });
    let Limits { header_bytes, patience, stall, .. } = shell.limits;
    let bounds = Bounds { header_bytes, patience, stall };
    let builder = builder(TokioExecutor::new(), TokioTimer::new(), &bounds);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let _open = Open::new(shell.shared.clone());
    let mut stopping = shell.stopping.clone();
    // A broken connection concerns its client only.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = farewell.notified() => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Counts a connection for as long as it is open, however it ends.
struct Open(Arc<SharedServer>);

impl Open {
    fn new(shared: Arc<SharedServer>) -> Self {
        shared.metrics.connections.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
