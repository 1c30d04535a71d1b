//! Flow control against the server of the `h2` crate, with readers that take their time, give up, or want
//! more.

use std::collections::BTreeMap;

use picokube_http2::StreamKey;
use proptest::prelude::*;

use crate::interop::{Client, SERVER, STREAMS, connect, pattern};

/// What may happen next.
#[derive(Clone, Debug)]
enum Act {
    /// A body of so many bytes is asked for.
    Ask { length: usize },
    /// The client reads, if the server has anything to say.
    Read,
    /// A reader deals with some of what it holds.
    Drain { stream: usize, count: usize },
    /// A reader gives up.
    Cancel { stream: usize },
    /// A reader wants more at a time.
    Widen { stream: usize, by: u32 },
}

fn act() -> impl Strategy<Value = Act> {
    let stream = 0..STREAMS;
    prop_oneof![
        3 => (0..60_000usize).prop_map(|length| Act::Ask { length }),
        9 => Just(Act::Read),
        6 => (stream.clone(), 1..3000usize).prop_map(|(stream, count)| Act::Drain { stream, count }),
        1 => stream.clone().prop_map(|stream| Act::Cancel { stream }),
        1 => (stream, 1..5000u32).prop_map(|(stream, by)| Act::Widen { stream, by }),
    ]
}

/// A reader.
struct Reader {
    key: StreamKey,
    length: usize,
    /// The window of its stream: what it can hold.
    window: usize,
}

/// What readers know.
struct Model {
    client: Client,
    readers: BTreeMap<u32, Reader>,
    window: u32,
}

impl Model {
    async fn act(&mut self, act: &Act) {
        match *act {
            Act::Ask { length } if self.readers.len() < STREAMS - 1 => {
                let key = self.client.ask("GET", &format!("/long?{length}"), None).await;
                let window = self.window as usize;
                self.readers.insert(key.id(), Reader { key, length, window });
            }
            Act::Ask { .. } | Act::Read => self.client.try_turn().await.expect("an honest server"),
            Act::Drain { stream, count } => {
                let Some(reader) = self.readers.values().nth(stream) else { return };
                let Some(answer) = self.client.answers.get_mut(&reader.key.id()) else { return };
                let count = count.min(answer.held);
                answer.held -= count;
                self.client.connection.release(reader.key, count);
            }
            Act::Cancel { stream } => {
                let Some(id) = self.readers.keys().nth(stream).copied() else { return };
                let Some(reader) = self.readers.remove(&id) else { return };
                self.client.connection.cancel(reader.key);
            }
            Act::Widen { stream, by } => {
                let Some(reader) = self.readers.values_mut().nth(stream) else { return };
                reader.window += by as usize;
                self.client.connection.widen(reader.key, by);
            }
        }
    }

    fn check(&self) {
        for (id, reader) in &self.readers {
            let Some(answer) = self.client.answers.get(id) else { continue };
            assert!(answer.held <= reader.window, "{} in {}", answer.held, reader.window);
            assert!(pattern(reader.length).starts_with(&answer.body), "what was asked for");
        }
    }

    /// From now on all readers are fast: each gets all of its body, however the windows were left.
    async fn finish(mut self) {
        self.client.holds = false;
        for (id, reader) in &self.readers {
            if let Some(answer) = self.client.answers.get_mut(id) {
                let held = std::mem::take(&mut answer.held);
                self.client.connection.release(reader.key, held);
            }
        }
        for reader in self.readers.into_values() {
            let answer = self.client.end_of(reader.key).await;
            assert!(answer.body == pattern(reader.length) && answer.end == Some(Ok(())));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn readers_hold_no_more_than_they_can_and_get_all_in_the_end(
        window in 20..5000u32,
        piece in 1..3000usize,
        acts in prop::collection::vec(act(), 1..150),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut client = connect(SERVER, window, piece).await;
            client.holds = true;
            let mut model = Model { client, readers: BTreeMap::new(), window };
            for act in &acts {
                model.act(act).await;
                model.check();
            }
            model.finish().await;
        });
    }
}
