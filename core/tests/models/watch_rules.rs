//! The rules of the reflector, one by one.

use picokube_core::manager::ResponseHead;
use picokube_core::time::Duration;
use picokube_core::watch::{Command, Input, Resource};
use picokube_core::wire::ResourceVersion;

use crate::watch_bench::{Bench, FIRST, LATEST, list_at, watch_at};

#[test]
fn lists_at_any_version_in_pages_then_watches_from_there() {
    let mut bench = Bench::new();
    bench.wants(FIRST);
    assert_eq!(bench.sent(), None);
    bench.head(200);
    bench.gets(Input::Body(b"item 3\nend 10"));
    bench.gets(Input::Body(b"\n"));
    assert!(!bench.watch.has_synced() && bench.watch.version().is_none());
    bench.gets(Input::End);
    assert!(bench.watch.has_synced());
    assert_eq!(bench.source.log, ["FirstPage", "replace"]);
    bench.wants(&watch_at(10));
    bench.head(200);
    bench.gets(Input::Body(b"added 11\nchanged 12\n"));
    assert_eq!(bench.watch.version(), Some(ResourceVersion::new(12)));
    bench.gets(Input::Body(b"bookmark 20\n"));
    assert_eq!(bench.watch.version(), Some(ResourceVersion::new(20)));
}

#[test]
fn follows_pages_and_takes_the_version_of_the_first() {
    let mut bench = Bench::new();
    bench.wants(FIRST);
    bench.answers(200, "item 3\nend 10 a/b+c\n");
    assert!(!bench.watch.has_synced());
    bench.wants("/api/v1/pods?limit=500&continue=a%2Fb%2Bc");
    bench.answers(200, "item 4\nend 11 d\n");
    bench.wants("/api/v1/pods?limit=500&continue=d");
    bench.answers(200, "end 12\n");
    assert_eq!(bench.source.log, ["FirstPage", "NextPage", "NextPage", "replace"]);
    bench.wants(&watch_at(10));
    // The server pages: so it does at the next list, which otherwise would come whole.
    bench.gets(Input::Cut);
    bench.wants_after(1200, "/api/v1/pods?limit=500&resourceVersion=10");
}

#[test]
fn lists_without_limit_once_a_version_is_known() {
    let mut bench = Bench::watching();
    bench.gets(Input::Body(b"changed 15\nerror 500\n"));
    bench.wants_after(1200, &list_at(15));
    assert_eq!(bench.closed, 1);
    bench.answers(200, "end 30\n");
    bench.wants(&watch_at(30));
}

#[test]
fn an_expired_version_is_answered_by_a_consistent_read_at_once() {
    for (code, body) in [(410, ""), (410, "expired\n"), (504, "cause\n")] {
        let mut bench = Bench::watching();
        bench.gets(Input::Body(b"error 410\n"));
        // First at the last version, as it promises data at least as fresh.
        bench.wants_after(1200, &list_at(10));
        bench.answers(code, body);
        bench.wants(LATEST);
        bench.answers(code, body);
        // The consistent read is refused too: back-off, and still a consistent read.
        bench.wants_after(2400, LATEST);
        bench.answers(200, "end 40\n");
        bench.wants(&watch_at(40));
        // Success forgets that the version was unavailable.
        bench.gets(Input::Unreachable);
        bench.wants_after(4800, &list_at(40));
    }
}

#[test]
fn a_timeout_without_the_cause_is_an_error_like_any_other() {
    let mut bench = Bench::watching();
    bench.gets(Input::Body(b"error 410\n"));
    bench.wants_after(1200, &list_at(10));
    bench.answers(504, "");
    bench.wants_after(2400, &list_at(10));
}

#[test]
fn an_expired_page_is_answered_by_the_whole_list_at_the_version_first_asked_for() {
    let mut bench = Bench::new();
    bench.wants(FIRST);
    bench.answers(200, "item 3\nend 10 token\n");
    bench.wants("/api/v1/pods?limit=500&continue=token");
    bench.answers(410, "expired\n");
    bench.wants("/api/v1/pods?resourceVersion=0");
    bench.answers(200, "end 17\n");
    assert_eq!(bench.source.log, ["FirstPage", "Status", "FirstPage", "replace"]);
    bench.wants(&watch_at(17));
}

#[test]
fn a_continue_token_beyond_the_limit_is_answered_by_the_whole_list() {
    let most = picokube_core::limits::CONTINUE;
    // In a URL, the last one is longer than what it stands for.
    for token in ["t".repeat(most + 1), "unreadable".to_owned(), "=".repeat(most / 3 + 1)] {
        let mut bench = Bench::new();
        bench.wants(FIRST);
        bench.answers(200, &format!("end 10 {token}\n"));
        bench.wants("/api/v1/pods?resourceVersion=0");
    }
    let mut bench = Bench::new();
    bench.wants(FIRST);
    let token = "t".repeat(picokube_core::limits::CONTINUE);
    bench.answers(200, &format!("end 10 {token}\n"));
    bench.wants(&format!("/api/v1/pods?limit=500&continue={token}"));
}

#[test]
fn a_watch_that_ends_is_reopened_at_the_last_version_without_a_list() {
    for input in [Input::End, Input::Cut] {
        let mut bench = Bench::watching();
        bench.passes(1000);
        bench.gets(input);
        bench.wants(&watch_at(10));
        bench.head(200);
        bench.gets(Input::Body(b"added 11\nadd"));
        bench.gets(input);
        bench.wants(&watch_at(11));
        assert_eq!(bench.watch.counts().lists, 1);
    }
}

#[test]
fn a_very_short_watch_is_an_error() {
    for (millis, body, short) in [
        (999, "", true),
        (1000, "", false),
        (0, "bookmark 11\n", false),
        (0, "added 11\n", false),
        (0, "foreign 0\n", true),
    ] {
        let mut bench = Bench::watching();
        bench.gets(Input::Body(body.as_bytes()));
        bench.passes(millis);
        bench.gets(Input::End);
        if short {
            bench.wants_after(1200, &list_at(10));
        } else {
            let version = if body.is_empty() { 10 } else { 11 };
            bench.wants(&watch_at(version));
        }
    }
}

/// A server that balances its load asks for that again and again, also right after a connection was opened.
#[test]
fn a_connection_that_is_left_is_no_failure_of_what_was_on_it() {
    let mut bench = Bench::watching();
    for _ in 0..20 {
        // In the midst of the watch, and before its head.
        bench.gets(Input::Left);
        bench.wants(&watch_at(10));
        bench.gets(Input::Left);
        bench.wants(&watch_at(10));
        bench.head(200);
    }
    bench.gets(Input::Body(b"added 11\nadd"));
    bench.gets(Input::Left);
    bench.wants(&watch_at(11));
    assert_eq!((bench.watch.counts().lists, bench.watch.counts().errors), (1, 0));
    // The server has said no: that stands.
    bench.head(500);
    bench.gets(Input::Left);
    bench.wants_after(1200, &list_at(11));
    // A list begins anew, whatever of it has come.
    bench.head(200);
    bench.gets(Input::Body(b"item 12\nite"));
    bench.gets(Input::Left);
    bench.wants(&list_at(12));
    bench.answers(200, "end 20\n");
    bench.wants(&watch_at(20));
}

#[test]
fn refused_and_too_many_requests_reopen_the_watch_after_back_off() {
    let mut bench = Bench::watching();
    bench.passes(5000);
    bench.gets(Input::End);
    bench.wants(&watch_at(10));
    bench.gets(Input::Refused);
    bench.wants_after(1200, &watch_at(10));
    bench.answers(429, "");
    bench.wants_after(2400, &watch_at(10));
    bench.head(200);
    bench.gets(Input::Body(b"added 12\nerror 429\nadded 13\n"));
    bench.wants_after(4800, &watch_at(12));
    assert_eq!(bench.watch.counts().lists, 1);
}

#[test]
fn every_other_failure_to_open_a_watch_leads_to_a_list() {
    for input in [Input::Unreachable, Input::Cut, Input::End] {
        let mut bench = Bench::watching();
        bench.passes(5000);
        bench.gets(Input::End);
        bench.wants(&watch_at(10));
        bench.gets(input);
        bench.wants_after(1200, &list_at(10));
    }
    for code in [400, 401, 403, 404, 410, 500, 503] {
        let mut bench = Bench::watching();
        bench.passes(5000);
        bench.gets(Input::End);
        bench.wants(&watch_at(10));
        bench.answers(code, "");
        bench.wants_after(1200, &list_at(10));
    }
}

#[test]
fn a_list_that_fails_backs_off_and_starts_over() {
    let mut bench = Bench::new();
    bench.wants(FIRST);
    bench.gets(Input::Refused);
    bench.wants_after(1200, FIRST);
    bench.answers(500, "");
    bench.wants_after(2400, FIRST);
    bench.head(200);
    bench.gets(Input::Body(b"item 5\n"));
    bench.gets(Input::Cut);
    bench.wants_after(4800, FIRST);
    bench.answers(200, "nonsense\n");
    bench.wants_after(9600, FIRST);
    bench.answers(200, "item 5\n");
    bench.wants_after(19200, FIRST);
    bench.answers(401, "");
    bench.wants_after(38400, FIRST);
    bench.gets(Input::Unreachable);
    bench.wants_after(45000, FIRST);
    bench.gets(Input::Unreachable);
    bench.wants_after(45000, FIRST);
    assert!(!bench.watch.has_synced());
    assert!(!bench.source.log.contains(&"replace".to_owned()));
    bench.answers(200, "end 8\n");
    bench.wants(&watch_at(8));
    // After two quiet minutes the sequence starts over.
    bench.head(200);
    bench.passes(120_001);
    bench.gets(Input::Body(b"error 500\n"));
    bench.wants_after(1200, &list_at(8));
}

#[test]
fn a_list_cut_in_the_middle_never_lets_the_next_one_be_older() {
    let mut bench = Bench::watching();
    bench.gets(Input::Body(b"error 500\n"));
    bench.wants_after(1200, &list_at(10));
    bench.head(200);
    bench.gets(Input::Body(b"item 7\nitem 25\nitem 9\nite"));
    bench.gets(Input::Cut);
    bench.wants_after(2400, &list_at(25));
    assert_eq!(bench.watch.version(), Some(ResourceVersion::new(10)), "not complete up to 25");
    bench.answers(200, "end 30\n");
    bench.wants(&watch_at(30));
    bench.gets(Input::Unreachable);
    bench.wants_after(4800, &list_at(30));
}

#[test]
fn retry_after_is_obeyed_ten_times() {
    let mut bench = Bench::new();
    bench.wants(FIRST);
    for _ in 0..10 {
        bench.gets(Input::Head(ResponseHead {
            retry_after: Some(3),
            ..ResponseHead::of_status(503)
        }));
        bench.gets(Input::End);
        bench.wants_after(3000, FIRST);
    }
    bench.gets(Input::Head(ResponseHead { retry_after: Some(3), ..ResponseHead::of_status(503) }));
    bench.gets(Input::End);
    bench.wants_after(1200, FIRST);
    bench.answers(200, "end 5\n");
    bench.wants(&watch_at(5));
    bench.gets(Input::Head(ResponseHead { retry_after: Some(7), ..ResponseHead::of_status(429) }));
    bench.gets(Input::End);
    bench.wants_after(7000, &watch_at(5));
    // Not a status that is repeated.
    bench.gets(Input::Head(ResponseHead { retry_after: Some(7), ..ResponseHead::of_status(403) }));
    bench.gets(Input::End);
    bench.wants_after(2400, &list_at(5));
    // No server makes it wait for ever.
    bench.gets(Input::Head(ResponseHead {
        retry_after: Some(u32::MAX),
        ..ResponseHead::of_status(429)
    }));
    bench.gets(Input::End);
    bench.wants_after(300_000, &list_at(5));
}

#[test]
fn a_watch_from_no_version_remembers_none_before_the_initial_events_are_over() {
    let mut bench = Bench::new();
    bench.wants(FIRST);
    bench.answers(200, "end 0\n");
    bench.wants(&watch_at(0));
    bench.head(200);
    bench.gets(Input::Body(b"added 9\nadded 4\n"));
    assert_eq!(bench.watch.version(), Some(ResourceVersion::ANY));
    bench.gets(Input::Body(b"changed 12\nadded 13\n"));
    assert_eq!(bench.watch.version(), Some(ResourceVersion::new(13)));
}

#[test]
fn the_time_out_is_between_five_and_ten_minutes() {
    for (random, seconds) in [(0, 300), (1 << 31, 450), (u32::MAX, 600)] {
        let mut bench = Bench::new();
        bench.wants(FIRST);
        bench.answers(200, "end 1\n");
        let sent = match bench.watch.poll(bench.now, random) {
            Some(Command::Send(request)) => request.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(sent.ends_with(&format!("timeoutSeconds={seconds}")), "{sent}");
    }
}

#[test]
fn a_silent_connection_is_given_up() {
    // Without bookmarks, a quiet watch is only late once the server should have ended it.
    let mut bench = Bench::watching();
    bench.wants_after(480_000, &watch_at(10));
    assert_eq!(bench.closed, 1);
    bench.head(200);
    // A server that sends bookmarks does so every minute.
    bench.gets(Input::Body(b"bookmark 12\n"));
    bench.wants_after(150_000, &watch_at(12));
    assert_eq!(bench.closed, 2);
    // No head at all: not a watch that ended, but one that failed.
    bench.passes(150_000);
    assert_eq!(bench.sent(), None);
    bench.wants_after(1200, &list_at(12));
    // A list that stops.
    bench.head(200);
    bench.gets(Input::Body(b"item 3\n"));
    bench.passes(150_000);
    assert_eq!(bench.sent(), None);
    assert_eq!(bench.closed, 4);
    bench.wants_after(1200, &list_at(12));
}

#[test]
fn late_answers_to_an_earlier_request_are_ignored() {
    let mut bench = Bench::watching();
    let late = bench.id.unwrap();
    bench.passes(5000);
    bench.gets(Input::End);
    bench.wants(&watch_at(10));
    let log = bench.source.log.clone();
    bench.watch.handle(bench.now, 0, late, Input::Body(b"changed 99\n"), &mut bench.source);
    bench.watch.handle(bench.now, 0, late, Input::Cut, &mut bench.source);
    assert_eq!(bench.watch.version(), Some(ResourceVersion::new(10)));
    assert_eq!(bench.source.log, log);
    bench.head(200);
    bench.gets(Input::Body(b"changed 11\n"));
    assert_eq!(bench.watch.version(), Some(ResourceVersion::new(11)));
}

#[test]
fn a_malformed_watch_is_reopened_and_a_malformed_first_event_is_an_error() {
    let mut bench = Bench::watching();
    bench.gets(Input::Body(b"added 11\nnonsense\n"));
    bench.wants(&watch_at(11));
    assert_eq!(bench.closed, 1);
    bench.head(200);
    bench.gets(Input::Body(b"nonsense\n"));
    bench.wants_after(1200, &list_at(11));
}

#[test]
fn room_in_the_cache_leads_to_a_list_but_not_too_often() {
    let mut bench = Bench::watching();
    bench.passes(10_000);
    bench.watch.want_relist();
    bench.wants_after(20_000, &list_at(10));
    assert_eq!(bench.closed, 1);
    bench.answers(200, "end 12\n");
    bench.wants(&watch_at(12));
    bench.head(200);
    bench.passes(100_000);
    assert_eq!(bench.sent(), None, "once is enough");
    bench.watch.want_relist();
    bench.wants(&list_at(12));
}

#[test]
fn resync_comes_after_the_first_list_and_makes_no_request() {
    let hour = Duration::from_secs(3600);
    let mut bench = Bench::with(Resource::PODS, Some(hour));
    bench.wants(FIRST);
    bench.passes(10_000);
    bench.answers(200, "end 5\n");
    bench.wants(&watch_at(5));
    bench.head(200);
    let mut synced_at = bench.now;
    for round in 1..4 {
        while bench.now < synced_at + hour {
            assert_eq!(bench.resyncs, round - 1);
            bench.passes(60_000);
            bench.gets(Input::Body(b"bookmark 6\n"));
            if bench.sent().is_some() {
                bench.head(200);
            }
        }
        assert_eq!(bench.resyncs, round);
        synced_at = synced_at + hour;
    }
    assert_eq!(bench.watch.counts().lists, 1);
}

#[test]
fn a_server_that_went_back_in_time_is_followed() {
    let mut bench = Bench::watching();
    bench.gets(Input::Body(b"error 504\n"));
    bench.wants_after(1200, &list_at(10));
    bench.answers(504, "cause\n");
    bench.wants(LATEST);
    bench.answers(200, "item 6\nend 7\n");
    // What the cache took for older than its own state has to be read again.
    assert_eq!(bench.source.log.last().unwrap(), "rewind");
    bench.wants_after(2400, LATEST);
    bench.answers(200, "item 6\nend 7\n");
    assert_eq!(bench.source.log.last().unwrap(), "replace");
    bench.wants(&watch_at(7));
    assert_eq!(bench.watch.counts().rewinds, 1);
}

#[test]
fn namespace_and_label_selector_are_part_of_every_request() {
    let resource = Resource {
        namespace: Some("edge"),
        label_selector: Some("app in (a,b),!canary"),
        ..Resource::DEPLOYMENTS
    };
    let mut bench = Bench::with(resource, None);
    let base = "/apis/apps/v1/namespaces/edge/deployments\
                ?labelSelector=app%20in%20%28a%2Cb%29%2C%21canary";
    bench.wants(&format!("{base}&limit=500&resourceVersion=0"));
    bench.answers(200, "end 3\n");
    bench.wants(&format!(
        "{base}&watch=true&allowWatchBookmarks=true&resourceVersion=3&timeoutSeconds=450"
    ));
}
