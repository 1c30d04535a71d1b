//! Which connections are open, and which of them leave when others need the room.
//!
//! A connection without a request in progress is idle. When all places are taken, those that have
//! been idle longest are closed, so that whoever only holds connections keeps nobody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// So many idle connections are closed at once: looking for them means looking at all.
const CLOSED_AT_ONCE: usize = 64;

/// All open connections.
#[derive(Debug)]
pub(super) struct Connections {
    limit: usize,
    open: Mutex<BTreeMap<u64, Arc<Link>>>,
}

/// What is known about a connection.
#[derive(Debug)]
struct Link {
    activity: Mutex<Activity>,
    leave: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Activity {
    requests: usize,
    ever: bool,
    idle_since: Instant,
}

impl Connections {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), open: Mutex::default() })
    }

    /// Lets a connection in; `None` if all others are at work.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Member> {
        let mut open = lock(&self.open);
        if open.len() >= self.limit {
            close_idle(&mut open);
        }
        if open.len() >= self.limit {
            return None;
        }
        let activity = Activity { requests: 0, ever: false, idle_since: Instant::now() };
        let link = Arc::new(Link { activity: Mutex::new(activity), leave: Notify::new() });
        let number = open.last_key_value().map_or(0, |(last, _)| last + 1);
        open.insert(number, link.clone());
        Some(Member { all: self.clone(), number, link })
    }
}

fn close_idle(open: &mut BTreeMap<u64, Arc<Link>>) {
    let activities = open.iter().map(|(number, link)| (*number, *lock(&link.activity)));
    let idle = activities.filter(|(_, activity)| activity.requests == 0);
    let mut idle: Vec<_> = idle.map(|(number, activity)| (activity.idle_since, number)).collect();
    idle.sort_unstable();
    for (_, number) in idle.into_iter().take(CLOSED_AT_ONCE) {
        if let Some(link) = open.remove(&number) {
            link.leave.notify_one();
        }
    }
}

/// An open connection; its place is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Member {
    all: Arc<Connections>,
    number: u64,
    link: Arc<Link>,
}

impl Member {
    /// Says that a request is in progress, for as long as what this gives is kept.
    pub(super) fn begin(&self) -> Busy {
        let mut activity = lock(&self.link.activity);
        activity.requests += 1;
        activity.ever = true;
        Busy(self.link.clone())
    }

    /// Resolves when the connection has to be closed: others need its place, or nothing has come
    /// over it for as long as `patience`. Who has asked for something may then be idle for longer.
    pub(super) async fn has_to_leave(&self, patience: Duration) {
        let silent = async {
            tokio::time::sleep(patience).await;
            if lock(&self.link.activity).ever {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.link.leave.notified() => {}
            () = silent => {}
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        lock(&self.all.open).remove(&self.number);
    }
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Busy(Arc<Link>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        activity.requests = activity.requests.saturating_sub(1);
        activity.idle_since = Instant::now();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_was_idle_longest_makes_room() {
        let all = Connections::new(3);
        let members: Vec<Member> = (0..3).map(|_| all.admit().unwrap()).collect();
        let working = members[0].begin();
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(members[1].begin());
        let newcomer = all.admit().expect("two are idle");
        members[1].has_to_leave(PATIENCE * 9).await;
        members[2].has_to_leave(PATIENCE * 9).await;
        let stays = tokio::time::timeout(PATIENCE * 5, members[0].has_to_leave(PATIENCE)).await;
        assert!(stays.is_err(), "it has a request in progress");

        let _requests = (newcomer.begin(), all.admit().unwrap());
        let busy = all.admit();
        assert!(busy.is_some(), "one was idle");
        let _other = busy.as_ref().map(Member::begin);
        assert_eq!(lock(&all.open).len(), 3);
        drop(working);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_at_work_is_sent_away() {
        let all = Connections::new(2);
        let members = [all.admit().unwrap(), all.admit().unwrap()];
        let requests = members.each_ref().map(Member::begin);
        assert!(all.admit().is_none());
        drop(requests);
        assert!(all.admit().is_some());
        drop(members);
        assert!(lock(&all.open).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_says_anything_leaves_after_a_while() {
        let all = Connections::new(2);
        let member = all.admit().unwrap();
        member.has_to_leave(PATIENCE).await;
    }
}
