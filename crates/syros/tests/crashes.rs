//! kill -9 of a node whose engine is on disk, at random moments: what it has then is what the acknowledged operations
//! lead to. `SYROS_CRASHES` says how often (default 15).

mod common;

use common::{Redis, Scratch, engine, free_ports, kill, syros, wait_for, wait_for_end};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use syros_types::Prng;

const WRITERS: u64 = 4;
const KEYS: u64 = 60;

/// What a writer's keys hold.
type State = BTreeMap<String, String>;

/// One writer: it alone writes its keys, one operation after the other.
struct Writer {
    id: u64,
    prng: Prng,
    /// What all acknowledged operations have led to.
    state: State,
    /// What it is if the last operation, of which nothing was heard, took place.
    uncertain: Option<State>,
    acknowledged: u64,
}

impl Writer {
    fn new(id: u64, seed: u64) -> Self {
        Self { id, prng: Prng::new(seed ^ id), state: State::new(), uncertain: None, acknowledged: 0 }
    }

    fn key(&mut self) -> String {
        format!("w{}:{}", self.id, self.prng.below(KEYS))
    }

    /// Draws an operation, and what it makes of the state.
    fn draw(&mut self) -> (Vec<String>, State) {
        let (key, other) = (self.key(), self.key());
        let mut state = self.state.clone();
        let long = if self.prng.chance(1, 2) { 4000 } else { 1 };
        let value = self.prng.below(1_000_000).to_string().repeat(long);
        let command = match self.prng.below(9) {
            0 => {
                // Of a number, or nothing.
                let old = state.get(&key).map_or(Some(0), |old| old.parse::<i64>().ok());
                match old {
                    Some(old) => {
                        state.insert(key.clone(), (old + 7).to_string());
                        vec!["INCRBY".into(), key, "7".into()]
                    }
                    None => vec!["STRLEN".into(), key],
                }
            }
            1 => {
                state.entry(key.clone()).or_default().push_str("ab");
                vec!["APPEND".into(), key, "ab".into()]
            }
            2 => {
                state.remove(&key);
                vec!["DEL".into(), key]
            }
            3 => {
                state.remove(&key);
                state.remove(&other);
                vec!["DEL".into(), key, other]
            }
            4 => {
                state.insert(key.clone(), value.clone());
                state.insert(other.clone(), value.clone());
                vec!["MSET".into(), key, value.clone(), other, value]
            }
            5 if state.contains_key(&key) && key != other => {
                let moved = state.remove(&key).unwrap_or_default();
                state.insert(other.clone(), moved);
                vec!["RENAME".into(), key, other]
            }
            6 => {
                state.entry(key.clone()).or_default().push('c');
                vec!["BLIND".into(), "APPEND".into(), key, "c".into()]
            }
            _ => {
                state.insert(key.clone(), value.clone());
                vec!["SET".into(), key, value]
            }
        };
        (command, state)
    }

    /// Writes until the node is gone, or until it is told to stop.
    fn write(&mut self, port: u16, stop: &AtomicBool) {
        let Ok(mut redis) = Redis::try_connect(port) else { return };
        while !stop.load(Ordering::Relaxed) {
            let (command, state) = self.draw();
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            match redis.try_ask(&words) {
                // It does not take place: the state stays as it is.
                Ok(reply) if reply.starts_with("-TRYAGAIN") && reply.ends_with("this node is stopping") => {
                    return;
                }
                Ok(reply) if reply.starts_with('-') => {
                    // It may yet take place.
                    assert!(reply.starts_with("-UNKNOWN"), "{words:?}: {reply}");
                    self.uncertain = Some(state);
                    return;
                }
                Ok(_) => {
                    self.acknowledged += 1;
                    self.state = state;
                }
                Err(_) => {
                    self.uncertain = Some(state);
                    return;
                }
            }
        }
    }

    /// Compares what the node has with what it should have.
    fn verify(&mut self, redis: &mut Redis) {
        let mut found = State::new();
        for number in 0..KEYS {
            let key = format!("w{}:{number}", self.id);
            let value = redis.ask(&["GET", &key]);
            if value != "nil" {
                found.insert(key, value);
            }
        }
        let uncertain = self.uncertain.take();
        if found != self.state {
            let differs = |expected: &State| {
                let keys = expected.keys().chain(found.keys());
                let mut wrong = keys.filter(|key| expected.get(*key) != found.get(*key));
                wrong.next().map(|key| {
                    let short =
                        |value: Option<&String>| value.map(|v| v.chars().take(40).collect::<String>());
                    format!("{key}: {:?} instead of {:?}", short(found.get(key)), short(expected.get(key)))
                })
            };
            assert!(
                uncertain.as_ref() == Some(&found),
                "writer {}: after {} acknowledged operations {:?}",
                self.id,
                self.acknowledged,
                differs(&self.state)
            );
            self.state = found;
        }
    }
}

fn start(directory: &Path, bootstrap: bool) -> Child {
    let mut command = syros();
    command.arg("server").arg("--config").arg(directory.join("node.toml"));
    if bootstrap {
        command.arg("--bootstrap");
    }
    let log = File::options().create(true).append(true).open(directory.join("log")).unwrap();
    command.stderr(Stdio::from(log)).spawn().unwrap()
}

#[test]
fn after_kill_9_the_state_is_that_of_acknowledged_operations() {
    let crashes: u64 = std::env::var("SYROS_CRASHES").map_or(15, |text| text.parse().expect("a number"));
    let scratch = Scratch::new("crashes");
    let port = free_ports();
    let text = format!(
        "cluster = 7\nreplica = 0\nreplicas = [\"127.0.0.1:{}\"]\ndirectory = \"data\"\nengine = \"{}\"\n\
         [listen]\nredis = \"127.0.0.1:{port}\"\n[disk]\nwal-segment = \"64KiB\"\n\
         [disk-engine]\nmemtable = \"1MiB\"\ncache = \"1MiB\"\nexecution-threads = 3\n[log]\nlevel = \"debug\"\n",
        port + 100,
        // Not the one in memory.
        if engine() == "rocksdb" { "rocksdb" } else { "disk" }
    );
    std::fs::write(scratch.0.join("node.toml"), text).unwrap();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|id| Writer::new(id, seed)).collect();
    for round in 0..=crashes {
        let mut node = start(&scratch.0, round == 0);
        let mut redis = wait_for("a node that answers", || {
            let mut redis = Redis::try_connect(port).ok()?;
            (!redis.try_ask(&["GET", "x"]).ok()?.starts_with('-')).then_some(redis)
        });
        writers.iter_mut().for_each(|writer| writer.verify(&mut redis));
        let stop = AtomicBool::new(round == crashes);
        let signal = if prng.chance(1, 10) { Signal::TERM } else { Signal::KILL };
        let pause = Duration::from_millis(20 + prng.below(400));
        std::thread::scope(|scope| {
            for writer in &mut writers {
                scope.spawn(|| writer.write(port, &stop));
            }
            std::thread::sleep(pause);
            kill(node.id().try_into().unwrap(), signal);
            wait_for_end(&mut node);
        });
    }
    let acknowledged: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
    let log = std::fs::read_to_string(scratch.0.join("log")).unwrap();
    let checkpoints = log.matches("has a checkpoint").count();
    println!("{crashes} crashes, {acknowledged} acknowledged operations, {checkpoints} checkpoints");
    assert!(acknowledged > 20 * crashes, "too little was written: {acknowledged} operations");
    assert!(checkpoints as u64 > crashes / 4, "too few checkpoints: {checkpoints}");
}
