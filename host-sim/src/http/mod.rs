//! The HTTP shell around the API server: sockets, connections and graceful shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

/// Binds `address` and answers requests until the future is dropped.
pub async fn serve(address: SocketAddr) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let connection = auto::Builder::new(TokioExecutor::new());
            // A broken connection concerns its client only.
            let _ = connection.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer<B>(request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, content_type, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz" | "/livez" | "/readyz") => {
            (StatusCode::OK, "text/plain; charset=utf-8", "ok")
        }
        (&Method::GET, "/version") => (
            StatusCode::OK,
            "application/json",
            r#"{"major":"1","minor":"34","gitVersion":"v1.34.0+picokube","platform":"linux/amd64"}"#,
        ),
        _ => (
            StatusCode::NOT_FOUND,
            "application/json",
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#,
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    Ok(response)
}
