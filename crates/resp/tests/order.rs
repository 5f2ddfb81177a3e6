//! Whatever pieces the input comes in, and whatever the order in which submissions are executed and
//! completed: the replies are those of executing the commands one after the other.

mod common;

use common::{CONTEXT, TestStore, connection, output, request, serve, submissions};
use std::collections::VecDeque;
use syros_resp::{Completion, Connection, Submission};
use syros_types::{Class, Prng};

fn random_command(prng: &mut Prng) -> Vec<u8> {
    let mut key = || ["a", "b", "c", "d", "e"][prng.below(5) as usize];
    let (first, second, third) = (key(), key(), key());
    let value = prng.below(100).to_string();
    match prng.below(28) {
        27 if prng.chance(1, 4) => request(&["UNWATCH"]),
        27 => request(&["WATCH", first, second]),
        24 => request(&["MULTI"]),
        25 => request(&["EXEC"]),
        26 => request(&[if prng.chance(1, 4) { "DISCARD" } else { "EXEC" }]),
        0..=4 => request(&["SET", first, &value]),
        5..=8 => request(&["GET", first]),
        9..=11 => request(&["INCR", first]),
        12 => request(&["APPEND", first, &value]),
        13 => request(&["MSET", first, &value, second, "7"]),
        14 => request(&["MGET", first, second, third]),
        15 => request(&["DEL", first, second]),
        16 => request(&["BLIND", "INCRBY", first, &value]),
        17 => request(&["DBSIZE"]),
        18 => request(&["GETSET", first, &value]),
        19 => match prng.below(4) {
            0 => request(&["FLUSHALL"]),
            1 => request(&["RENAME", first, second]),
            _ => request(&["SET", first, &value, "NX"]),
        },
        20 => request(&["PING"]),
        21 => request(&["ECHO", &value]),
        22 => match prng.below(3) {
            0 => request(&["HELLO", if prng.chance(1, 2) { "2" } else { "3" }]),
            1 => request(&["NOSUCH", first]),
            _ => request(&["GET"]),
        },
        _ => format!("set {first} \"{value}\\x41\"\r\n").into_bytes(),
    }
}

/// The connection under test, and what is under way.
struct Driver {
    connection: Connection,
    store: TestStore,
    buffer: Vec<u8>,
    replies: Vec<u8>,
    submitted: Vec<Submission>,
    executed: VecDeque<(Submission, Completion)>,
    operations: usize,
}

impl Driver {
    fn receive(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        let consumed = self.connection.receive(&self.buffer, &CONTEXT);
        self.buffer.drain(..consumed);
    }

    fn submit(&mut self) {
        for submission in submissions(&mut self.connection) {
            let in_flight =
                self.submitted.iter().chain(self.executed.iter().map(|(submission, _)| submission));
            for other in in_flight {
                let reads = submission.class == Class::Read && other.class == Class::Read;
                assert!(
                    reads || !submission.footprint.overlaps(&other.footprint),
                    "{submission:?} {other:?}"
                );
            }
            self.operations += 1;
            self.submitted.push(submission);
        }
    }

    fn execute_one(&mut self, prng: &mut Prng) {
        if !self.submitted.is_empty() {
            let submission = self.submitted.swap_remove(prng.below(self.submitted.len() as u64) as usize);
            let completion = self.store.run(&submission);
            self.executed.push_back((submission, completion));
        }
    }

    fn complete_one(&mut self, prng: &mut Prng) {
        if !self.executed.is_empty() {
            let index = prng.below(self.executed.len() as u64) as usize;
            let (submission, completion) = self.executed.remove(index).unwrap();
            assert!(self.connection.complete(submission.slot, completion));
        }
    }

    fn send(&mut self, prng: &mut Prng) {
        let bytes = prng.below(self.connection.output().len() as u64 + 1) as usize;
        self.replies.extend_from_slice(&self.connection.output()[..bytes]);
        self.connection.sent(bytes);
    }
}

fn run(seed: u64) -> (usize, usize) {
    let mut prng = Prng::new(seed);
    let commands: Vec<Vec<u8>> = (0..prng.below(200) + 1).map(|_| random_command(&mut prng)).collect();
    let mut driver = Driver {
        connection: connection(9),
        store: TestStore::default(),
        buffer: Vec::new(),
        replies: Vec::new(),
        submitted: Vec::new(),
        executed: VecDeque::new(),
        operations: 0,
    };
    let (mut model, mut model_store, mut expected) = (connection(9), TestStore::default(), Vec::new());
    for command in &commands {
        expected.extend(serve(&mut model, &mut model_store, command).0);
    }
    let input = commands.concat();
    let (mut rest, piece_max, mut steps) = (&input[..], prng.below(400) + 1, 0);
    // The connection may leave input for later, while it waits for what an EXEC depends on.
    while !rest.is_empty()
        || !driver.buffer.is_empty()
        || driver.connection.outstanding() > 0
        || !driver.connection.output().is_empty()
    {
        steps += 1;
        assert!(steps < 1_000_000, "seed {seed} is stuck");
        match prng.below(5) {
            0 => {
                let bytes = (prng.below(piece_max) + 1).min(rest.len() as u64) as usize;
                let (piece, after) = rest.split_at(bytes);
                driver.receive(piece);
                rest = after;
            }
            1 => driver.submit(),
            2 => driver.execute_one(&mut prng),
            3 => driver.complete_one(&mut prng),
            _ => driver.send(&mut prng),
        }
    }
    driver.replies.extend(output(&mut driver.connection));
    let (got, want) = (driver.replies.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(got, want, "seed {seed}");
    assert_eq!(driver.store.0, model_store.0, "seed {seed}");
    (commands.len(), driver.operations)
}

#[test]
fn replies_are_those_of_a_sequential_execution() {
    let (mut commands, mut operations) = (0, 0);
    for seed in 0..1500 {
        let (sent, submitted) = run(seed);
        commands += sent;
        operations += submitted;
    }
    // Random commands on five keys meet all the time: most are packed.
    assert!(operations * 3 < commands * 2, "{operations} submissions of {commands} commands");
}

/// Anything may arrive, be completed in any way, and be asked for at any time.
#[test]
fn garbage_does_no_harm() {
    let mut prng = Prng::new(3);
    for _ in 0..3000 {
        let mut connection = connection(1);
        let mut slots: Vec<u64> = (0..4).collect();
        for _ in 0..prng.below(40) {
            match prng.below(6) {
                0 => {
                    let bytes: Vec<u8> = (0..prng.below(30)).map(|_| prng.next_u64() as u8).collect();
                    connection.receive(&bytes, &CONTEXT);
                }
                1 | 2 => {
                    let mut bytes = random_command(&mut prng);
                    if prng.chance(1, 10) {
                        let index = prng.below(bytes.len() as u64) as usize;
                        bytes[index] = prng.next_u64() as u8;
                    }
                    connection.receive(&bytes, &CONTEXT);
                }
                3 => slots.extend(connection.poll_submit().map(|submission| submission.slot)),
                4 => {
                    let slot = slots[prng.below(slots.len() as u64) as usize];
                    let bytes: Vec<u8> = (0..prng.below(9)).map(|_| prng.below(7) as u8).collect();
                    let completion = [
                        Completion::Done,
                        Completion::Reply(bytes.into()),
                        Completion::Refused("a\r\nb".into()),
                        Completion::Unknown,
                    ];
                    connection.complete(slot, completion[prng.below(4) as usize].clone());
                }
                _ => connection.sent(prng.below(100) as usize),
            }
        }
    }
}
