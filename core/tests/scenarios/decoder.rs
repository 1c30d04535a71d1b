//! One decoder for all that comes in: whoever has it in the midst of an object, others wait.

use picokube_core::kind::Kind;
use picokube_core::manager::{Method, Request, ResponseHead, Settings};
use picokube_core::time::Duration;
use picokube_core::watch::{Command, Input, RequestId};
use serde_json::json;

use crate::cluster::{Cluster, Memory, Space};
use crate::user::deployment;

/// A cluster that has come to rest, with a Deployment in it.
fn with_quiet_cluster(then: impl Fn(&mut Cluster<'_>)) {
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let settings = Settings { rate: None, ..Settings::DEFAULT };
    let mut cluster = Cluster::with(&mut memory, &mut space, 7, settings);
    cluster.create("deployments", deployment("web", 1));
    cluster.rollout();
    then(&mut cluster);
}

/// What a watch tells of a pod that nobody owns.
fn news_of_a_pod(cluster: &Cluster<'_>) -> Vec<u8> {
    let mut pod = cluster.server.of("pods").next().expect("a pod").clone();
    pod["metadata"]["name"] = json!("stranger");
    pod["metadata"]["uid"] = json!("00000000-0000-0000-0000-00000000aaaa");
    pod["metadata"]["ownerReferences"] = json!([]);
    pod["metadata"]["labels"] = json!({"app": "stranger"});
    pod["metadata"]["resourceVersion"] = json!((cluster.server.version + 1).to_string());
    json!({"type": "ADDED", "object": pod}).to_string().into_bytes()
}

fn watch_of(cluster: &Cluster<'_>, kind: Kind) -> RequestId {
    cluster.watch_id(kind).expect("an open watch")
}

fn feed(cluster: &mut Cluster<'_>, kind: Kind, id: RequestId, bytes: &[u8]) -> usize {
    cluster.manager.handle_watch(kind, cluster.now, id, Input::Body(bytes))
}

/// The next request of the manager, which creates a pod.
fn request(cluster: &mut Cluster<'_>) -> Request {
    cluster.scale("web", 2);
    cluster
        .until_sent(|request| request.method == Method::Post && request.target.ends_with("/pods"))
}

fn knows(cluster: &Cluster<'_>, pod: &str) -> bool {
    cluster.manager.cache().find(Kind::Pod, "default", pod).is_some()
}

fn stalled(cluster: &Cluster<'_>) -> u32 {
    cluster.manager.metrics().stalled
}

#[test]
fn an_answer_waits_for_the_rest_of_an_event() {
    with_quiet_cluster(|cluster| {
        let request = request(cluster);
        let event = news_of_a_pod(cluster);
        let pods = watch_of(cluster, Kind::Pod);
        let (start, rest) = event.split_at(event.len() / 2);
        assert_eq!(feed(cluster, Kind::Pod, pods, start), start.len());
        let (ticket, now) = (request.ticket, cluster.now);
        cluster.manager.response_head(ticket, now, ResponseHead::of_status(201));
        let answer = br#"{"kind":"Status","status":"Success"}"#;
        assert_eq!(cluster.manager.response_body(ticket, now, answer), 0);
        assert!(cluster.manager.decoder_free_at().is_some_and(|at| at > now));
        // An event, and the start of the next one: that has to wait now.
        let both = [rest, start].concat();
        assert_eq!(feed(cluster, Kind::Pod, pods, &both), rest.len());
        assert_eq!(cluster.manager.decoder_free_at(), None);
        assert!(knows(cluster, "stranger"));
        assert_eq!(cluster.manager.response_body(ticket, now, answer), answer.len());
        assert_eq!(feed(cluster, Kind::Pod, pods, start), 0, "not before the answer is over");
        cluster.manager.response_end(ticket, now, Ok(()));
        assert_eq!(feed(cluster, Kind::Pod, pods, start), start.len());
        assert_eq!(stalled(cluster), 0);
    });
}

#[test]
fn a_watch_that_stops_in_the_midst_of_an_event_is_opened_again_if_others_wait() {
    with_quiet_cluster(|cluster| {
        let request = request(cluster);
        let event = news_of_a_pod(cluster);
        let pods = watch_of(cluster, Kind::Pod);
        let start = &event[..event.len() / 2];
        assert_eq!(feed(cluster, Kind::Pod, pods, start), start.len());
        // As long as nobody waits, it may take its time.
        cluster.now = cluster.now + Duration::from_secs(20);
        assert_eq!(feed(cluster, Kind::Pod, pods, b" "), 1);
        let free_at = cluster.manager.decoder_free_at().expect("held");
        assert_eq!(free_at, cluster.now + Duration::from_secs(5));
        let ticket = request.ticket;
        cluster.manager.response_head(ticket, cluster.now, ResponseHead::of_status(201));
        let answer = br#"{"kind":"Status","status":"Success"}"#;
        assert_eq!(cluster.manager.response_body(ticket, cluster.now, answer), 0);
        cluster.now = free_at;
        assert_eq!(cluster.manager.response_body(ticket, cluster.now, answer), answer.len());
        assert_eq!(stalled(cluster), 1);
        let close = cluster.manager.poll_watch(Kind::Pod, cluster.now);
        assert!(matches!(close, Some(Command::Close(id)) if id == pods));
        let again = cluster.manager.poll_watch(Kind::Pod, cluster.now);
        let Some(Command::Send(again)) = again else { panic!("{again:?}") };
        assert!(again.to_string().contains("watch=true"), "{again}");
        assert!(!knows(cluster, "stranger"));
        // What comes late of the old one is dropped.
        assert_eq!(
            feed(cluster, Kind::Pod, pods, &event[event.len() / 2..]),
            event.len() - start.len()
        );
    });
}

#[test]
fn an_answer_that_stops_in_its_midst_is_unreadable_if_others_wait() {
    with_quiet_cluster(|cluster| {
        let request = request(cluster);
        let (ticket, now) = (request.ticket, cluster.now);
        cluster.manager.response_head(ticket, now, ResponseHead::of_status(201));
        assert_eq!(cluster.manager.response_body(ticket, now, b"{\"kind\":"), 8);
        let event = news_of_a_pod(cluster);
        let pods = watch_of(cluster, Kind::Pod);
        assert_eq!(feed(cluster, Kind::Pod, pods, &event), 0);
        cluster.now = cluster.manager.decoder_free_at().expect("held");
        assert_eq!(feed(cluster, Kind::Pod, pods, &event), event.len());
        assert!(knows(cluster, "stranger"));
        assert_eq!(stalled(cluster), 1);
        // The rest is not read, and the sync that waits for it goes on when it is over.
        assert_eq!(cluster.manager.response_body(ticket, cluster.now, b"\"Pod\"}"), 6);
        cluster.manager.response_end(ticket, cluster.now, Ok(()));
        assert_eq!(cluster.manager.decoder_free_at(), None);
    });
}

#[test]
fn whoever_goes_away_in_the_midst_of_something_leaves_the_decoder() {
    with_quiet_cluster(|cluster| {
        let event = news_of_a_pod(cluster);
        let (pods, sets) = (watch_of(cluster, Kind::Pod), watch_of(cluster, Kind::ReplicaSet));
        let start = &event[..event.len() / 2];
        assert_eq!(feed(cluster, Kind::Pod, pods, start), start.len());
        assert_eq!(feed(cluster, Kind::ReplicaSet, sets, b"{"), 0);
        cluster.manager.handle_watch(Kind::Pod, cluster.now, pods, Input::Cut);
        assert_eq!(feed(cluster, Kind::ReplicaSet, sets, b"{"), 1);
        assert_eq!(stalled(cluster), 0);
    });
}
