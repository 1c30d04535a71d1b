//! Any bytes as the source of a body: no panic, the same bytes and verdict however source and
//! output are cut, and a body that is complete is JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picokube_core::kind::Kind;
use picokube_core::manager::{Make, Splice};
use picokube_core::splice::{SpliceError, Splicer};
use picokube_core::json::{Digest, Digester, Tokenizer};
use picokube_core::wire::{Answer, Decoder, POD_TEMPLATE, ReplicaSet, ResourceVersion, Uid};
use serde_json::Value;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (choice, cut, text) = input;
    let mut decoder = Box::new(Decoder::<ReplicaSet>::new());
    // A source that can be read is expected to be as it is, so that the body gets completed.
    let expected = match decoder.feed_answer(text, None).and_then(|()| decoder.answer()) {
        Ok(Answer::Object(rs)) => Some((rs.meta.uid, rs.meta.resource_version, rs.template)),
        _ => None,
    };
    let (uid, version, template) = expected.or_else(|| revision(text)).unwrap_or_default();
    let (source, kind, make) = (Default::default(), Kind::ReplicaSet, make(choice, uid, version));
    let splice = Splice { source, kind, uid, template, make };
    let whole = body(&splice, text, text.len().max(1), 1 << 16);
    let cut = body(&splice, text, usize::from(cut) + 1, usize::from(cut % 64) + 1);
    assert_eq!(cut, whole);
    if let Ok(body) = whole {
        serde_json::from_slice::<Value>(&body).expect("a complete body is JSON");
    }
});

/// A source whose template is in its data.
fn revision(text: &[u8]) -> Option<(Uid, ResourceVersion, Digest)> {
    let source: Value = serde_json::from_slice(text).ok()?;
    let uid = Uid::parse(source.pointer("/metadata/uid")?.as_str()?)?;
    let mut tokenizer = Tokenizer::new();
    let mut digester = Digester::new(&POD_TEMPLATE);
    let template = source.pointer("/data/spec/template")?.to_string();
    tokenizer.feed(template.as_bytes(), &mut digester).ok()?;
    Some((uid, ResourceVersion::default(), digester.finish().ok()?))
}

fn make(choice: u8, uid: Uid, version: ResourceVersion) -> Make {
    match choice % 7 {
        0 => Make::ReplicaSet {
            name: "n".try_into().unwrap(),
            owner: "o".try_into().unwrap(),
            hash: "h".try_into().unwrap(),
            replicas: i32::MAX,
            min_ready_seconds: i32::MAX,
            revision: i64::MAX,
            desired_replicas: i32::MAX,
            max_replicas: i32::MAX,
        },
        1 => Make::Pod { owner: "o".try_into().unwrap(), more: 0 },
        2 => Make::Annotations {
            target_uid: uid,
            target_version: version,
            revision: Some(i64::MIN),
            revision_history: Some("1,2,3".try_into().unwrap()),
            min_ready_seconds: 0,
        },
        3 => Make::Rollback {
            target: Default::default(),
            target_uid: uid,
            target_version: version,
        },
        4 => Make::ControllerRevision {
            name: "n".try_into().unwrap(),
            owner: "o".try_into().unwrap(),
            hash: "h".try_into().unwrap(),
            revision: i64::MAX,
        },
        5 => Make::StatefulSetPod {
            owner: "o".try_into().unwrap(),
            owner_uid: uid,
            ordinal: i32::from(choice),
            revision: "r".try_into().unwrap(),
            subdomain: if choice < 128 { "s" } else { "" }.try_into().unwrap(),
            claims: ["", "a", "a,data"][usize::from(choice / 7 % 3)].try_into().unwrap(),
        },
        _ => Make::Claim { name: "n".try_into().unwrap(), index: u16::from(choice / 7 % 2) },
    }
}

fn body(splice: &Splice, text: &[u8], chunk: usize, out: usize) -> Result<Vec<u8>, SpliceError> {
    let mut splicer = Box::new(Splicer::new(splice));
    let mut out = vec![0; out];
    let mut body = Vec::new();
    while splicer.source().is_some() {
        for mut chunk in text.chunks(chunk) {
            while !chunk.is_empty() {
                let left = chunk.len();
                let written = splicer.push(&mut chunk, &mut out)?;
                assert!(written > 0 || chunk.len() < left, "no progress");
                body.extend_from_slice(&out[..written]);
            }
        }
        splicer.end_of_source()?;
    }
    while let Some(written) = splicer.finish(&mut out)? {
        assert!(written > 0, "no progress");
        body.extend_from_slice(&out[..written]);
    }
    Ok(body)
}
