//! One bad request and the answer it deserves.

use anyhow::{Result, bail, ensure};
use picokube_tests::http::{Answer, Client};
use picokube_tests::picokube::Picokube;

/// A request and what it has to be answered with.
pub(crate) struct Case {
    /// What is bad about it.
    pub(crate) name: &'static str,
    request: Request,
    code: u16,
    /// The reason of the Status; empty where HTTP itself has failed and there is none.
    reason: &'static str,
}

enum Request {
    Proper {
        method: &'static str,
        target: String,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Bytes, after which nothing more is sent.
    Raw(Vec<u8>),
}

impl Case {
    /// A request without a body.
    pub(crate) fn new(
        name: &'static str,
        method: &'static str,
        target: impl Into<String>,
        code: u16,
        reason: &'static str,
    ) -> Self {
        let (target, headers, body) = (target.into(), Vec::new(), Vec::new());
        Self { name, request: Request::Proper { method, target, headers, body }, code, reason }
    }

    /// A GET.
    pub(crate) fn get(
        name: &'static str,
        target: impl Into<String>,
        code: u16,
        reason: &'static str,
    ) -> Self {
        Self::new(name, "GET", target, code, reason)
    }

    /// Bytes on a connection, after which nothing more is sent.
    pub(crate) fn raw(
        name: &'static str,
        bytes: impl Into<Vec<u8>>,
        code: u16,
        reason: &'static str,
    ) -> Self {
        Self { name, request: Request::Raw(bytes.into()), code, reason }
    }

    /// The same request with a JSON body.
    pub(crate) fn json(self, body: impl ToString) -> Self {
        self.body("application/json", body.to_string())
    }

    /// The same request with a body.
    pub(crate) fn body(mut self, media_type: &str, content: impl Into<Vec<u8>>) -> Self {
        if let Request::Proper { headers, body, .. } = &mut self.request {
            headers.push(("content-type", media_type.to_owned()));
            *body = content.into();
        }
        self
    }

    /// The same request with one more header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Request::Proper { headers, .. } = &mut self.request {
            headers.push((name, value.into()));
        }
        self
    }

    /// Sends it.
    pub(crate) fn send(&self, server: &Picokube) -> Result<Answer> {
        let mut client = Client::connect(server.address())?;
        match &self.request {
            Request::Proper { method, target, headers, body } => {
                let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
                client.send(method, target, &headers, body)
            }
            Request::Raw(bytes) => {
                client.write(bytes);
                // Bodies may end before they should. Who hangs up after a whole request, though,
                // may be too quick to be answered: hyper takes that for a lost interest.
                if !bytes.starts_with(b"GET ") {
                    client.finish();
                }
                client.answer(false)
            }
        }
    }

    /// Compares an answer with the expected one.
    pub(crate) fn check(&self, answer: &Answer) -> Result<()> {
        let got = format!("{} {}", answer.status, answer.text());
        ensure!(answer.status == self.code, "expected {} {}, got {got}", self.code, self.reason);
        if self.reason.is_empty() {
            return Ok(());
        }
        check_status(answer)?;
        let status = answer.json()?;
        ensure!(status["reason"] == self.reason, "expected {}, got {got}", self.reason);
        Ok(())
    }
}

/// Checks that an answer is a Status that fits its own code.
pub(crate) fn check_status(answer: &Answer) -> Result<()> {
    let got = format!("{} {}", answer.status, answer.text());
    let status = answer.json()?;
    if answer.header("content-type") != Some("application/json") {
        bail!("the Status is no JSON: {:?}", answer.headers);
    }
    ensure!(status["kind"] == "Status" && status["apiVersion"] == "v1", "no Status: {got}");
    ensure!(status["status"] == "Failure", "no failure: {got}");
    ensure!(status["code"] == answer.status, "another code: {got}");
    let filled = |field: &str| status[field].as_str().is_some_and(|text| !text.is_empty());
    ensure!(filled("message") && filled("reason"), "it does not say why: {got}");
    Ok(())
}
