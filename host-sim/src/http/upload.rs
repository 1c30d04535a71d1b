//! Reading the body of a request: bounded in size, in time, and in what all of them hold.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header;

use crate::api::status::{MAX_BODY_BYTES, Status};

use super::inflight::Place;

/// How much of a body is read only to be thrown away.
const MAX_THROWN_AWAY_BYTES: usize = 16 << 20;

/// Memory for a body grows from this on, twofold each time.
const FIRST_BYTES: usize = 4 << 10;

/// A body that has not been read yet.
pub(super) struct Upload {
    body: Incoming,
    declared: Option<usize>,
    waits_for_leave: bool,
    patience: Duration,
}

impl Upload {
    /// The body of a request with these headers, which has to be here within `patience`.
    pub(super) fn new(headers: &HeaderMap, body: Incoming, patience: Duration) -> Self {
        let declared = headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|value| value.to_str().ok()?.parse().ok());
        Self { body, declared, waits_for_leave: headers.contains_key(header::EXPECT), patience }
    }

    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Reads all of it into the room of `place`, which is free again if that does not work.
    pub(super) async fn read(mut self, mut place: Place) -> Result<(Bytes, Place), Refused> {
        let too_large = self.declared.is_some_and(|length| length > MAX_BODY_BYTES);
        let collected = if too_large {
            Err(Trouble::TooLarge)
        } else {
            let all = collect(&mut self.body, self.declared, &mut place);
            tokio::time::timeout(self.patience, all).await.unwrap_or(Err(Trouble::TimedOut))
        };
        let trouble = match collected {
            Ok(bytes) => return Ok((bytes, place)),
            Err(trouble) => trouble,
        };
        let sends_on = matches!(trouble, Trouble::TooLarge | Trouble::NoRoom);
        Err(Refused { status: trouble.into(), rest: sends_on.then_some(self) })
    }

    /// Reads it, within limits, and keeps nothing: a client that is cut off while it sends sees a
    /// broken connection instead of the answer.
    pub(super) async fn throw_away(mut self) {
        let declared = self.declared.unwrap_or_default();
        if self.is_empty() || self.waits_for_leave || declared > MAX_THROWN_AWAY_BYTES {
            return;
        }
        let all = async {
            let mut left = MAX_THROWN_AWAY_BYTES;
            while let Some(Ok(frame)) = self.body.frame().await {
                let size = frame.data_ref().map_or(0, Bytes::len);
                let Some(less) = left.checked_sub(size) else { return };
                left = less;
            }
        };
        // However that ends, the answer is the same.
        let _ = tokio::time::timeout(self.patience, all).await;
    }
}

/// A body that could not be read.
pub(super) struct Refused {
    pub(super) status: Status,
    /// What the client may be sending still.
    pub(super) rest: Option<Upload>,
}

/// Why a body could not be read.
enum Trouble {
    TooLarge,
    /// There is no room for more of it.
    NoRoom,
    /// It took long, and somebody else needs the place.
    GaveWay,
    TimedOut,
    Broken(hyper::Error),
}

impl From<Trouble> for Status {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::TooLarge => Self::request_entity_too_large(),
            Trouble::NoRoom | Trouble::GaveWay => super::inflight::Full.into(),
            Trouble::TimedOut => {
                Self::timeout("request did not complete within the allotted timeout")
            }
            Trouble::Broken(error) => {
                Self::bad_request(format!("the body of the request cannot be read: {error}"))
            }
        }
    }
}

/// Copies what arrives into memory of its own, which is asked for in advance: the pieces that
/// come from the connection may hold a buffer each.
async fn collect(
    body: &mut Incoming,
    declared: Option<usize>,
    place: &mut Place,
) -> Result<Bytes, Trouble> {
    let largest = declared.unwrap_or(MAX_BODY_BYTES).min(MAX_BODY_BYTES);
    let mut bytes = Vec::new();
    loop {
        let frame = tokio::select! {
            biased;
            () = place.has_to_give_way() => return Err(Trouble::GaveWay),
            frame = body.frame() => frame,
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(Trouble::Broken)?;
        let Some(data) = frame.data_ref() else { continue };
        let length = bytes.len() + data.len();
        if length > MAX_BODY_BYTES {
            return Err(Trouble::TooLarge);
        }
        let reserved: usize = bytes.capacity();
        if length > reserved {
            let wanted = (2 * reserved).max(FIRST_BYTES).min(largest).max(length);
            place.grow(wanted - reserved, wanted).map_err(|_| Trouble::NoRoom)?;
            bytes.reserve_exact(wanted - bytes.len());
        }
        bytes.extend_from_slice(data);
    }
    place.arrived().map_err(|_| Trouble::GaveWay)?;
    Ok(Bytes::from(bytes))
}
