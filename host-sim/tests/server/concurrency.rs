//! Many clients at once: no increment is lost, and everybody sees the same order.

use std::sync::{Arc, Barrier};

use crate::support::{CONFIG_MAPS, Server, Watch, config_map};
use serde_json::json;

#[test]
fn sixty_four_clients_lose_no_increment() {
    const CLIENTS: usize = 64;
    const INCREMENTS: usize = 40;
    let server = Server::start(&[]);
    assert_eq!(server.client().post(CONFIG_MAPS, &config_map("counter", "0")).0, 201);
    let path = format!("{CONFIG_MAPS}/counter");
    let start = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (mut client, path, start) = (server.client(), path.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                let mut conflicts = 0_usize;
                for _ in 0..INCREMENTS {
                    loop {
                        let (status, mut object) = client.get(&path);
                        assert_eq!(status, 200);
                        let value: u64 = object["data"]["value"]
                            .as_str()
                            .expect("text")
                            .parse()
                            .expect("number");
                        object["data"]["value"] = json!((value + 1).to_string());
                        match client.put(&path, &object).0 {
                            200 => break,
                            409 => conflicts += 1,
                            status => panic!("answered {status}"),
                        }
                    }
                }
                conflicts
            })
        })
        .collect();
    let conflicts: usize = clients.into_iter().map(|c| c.join().expect("no panic")).sum();
    let (_, counter) = server.client().get(&path);
    assert_eq!(counter["data"]["value"], (CLIENTS * INCREMENTS).to_string());
    assert!(conflicts > 0, "without conflicts nothing was tested");
}

#[test]
fn a_thousand_watchers_see_the_same_order() {
    const WATCHERS: usize = 1000;
    const WRITERS: usize = 4;
    const WRITES: usize = 50;
    let server = Server::start(&[]);
    let (_, list) = server.client().get(CONFIG_MAPS);
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}");
    let ready = Arc::new(Barrier::new(WATCHERS + 1));
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let (address, path, ready) = (server.address.clone(), path.clone(), ready.clone());
            std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn(move || {
                    let mut watch = Watch::open(&address, &path);
                    ready.wait();
                    let mut seen = Vec::new();
                    while seen.len() < WRITERS * WRITES * 2 {
                        let event = watch.next().expect("the watch goes on");
                        let object = &event["object"]["metadata"];
                        seen.push(format!(
                            "{} {} {}",
                            event["type"], object["name"], object["resourceVersion"]
                        ));
                    }
                    seen
                })
                .expect("a thread")
        })
        .collect();
    ready.wait();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let mut client = server.client();
            std::thread::spawn(move || {
                for index in 0..WRITES {
                    let name = format!("c-{writer}-{index}");
                    let (status, mut object) = client.post(CONFIG_MAPS, &config_map(&name, "1"));
                    assert_eq!(status, 201);
                    object["data"]["value"] = json!("2");
                    assert_eq!(client.put(&format!("{CONFIG_MAPS}/{name}"), &object).0, 200);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    let mut orders = watchers.into_iter().map(|watcher| watcher.join().expect("no panic"));
    let first = orders.next().expect("a watcher");
    assert!(orders.all(|order| order == first));
}
