//! Parallel execution: whatever order the lanes run in, answers and state are those of one thread.

mod common;

use common::Watched;
use std::collections::VecDeque;
use std::sync::Arc;

use syros_commands::families::RecordVersions;
use syros_commands::{Operation, Reply, describe};
use syros_storage::conformance::{Generator, body_if_data, body_of};
use syros_storage::execution::{Dispatcher, ExecutedUpdate, Item, ItemProgress, ReadWay, Task, Worker};
use syros_storage::{DiskEngine, Engine, Lane, MemoryEngine, MemoryStore, Reader};
use syros_types::{Footprint, OpNumber, Prng, WallTime};

/// What is asked for at a barrier: the answer to a read, or that what has expired be removed.
enum BarrierJob {
    Read(Vec<u8>, Vec<u8>),
    Purge,
    Seal(u64),
}

type Bodies = Vec<(WallTime, Vec<u8>)>;

/// Lanes that are run in an order drawn by chance.
struct Lanes {
    dispatcher: Dispatcher<Vec<u8>, BarrierJob>,
    workers: Vec<Worker<MemoryStore>>,
    queues: Vec<VecDeque<Item<Vec<u8>, BarrierJob>>>,
    engine: DiskEngine<MemoryStore>,
    applied: u64,
    replies: Vec<ExecutedUpdate>,
}

impl Lanes {
    fn new(store: MemoryStore, lanes: usize) -> Self {
        let (engine, _) = DiskEngine::open(store).expect("a store in memory");
        let dispatcher = Dispatcher::new(lanes);
        let workers = (0..lanes).map(|_| Worker::new(engine.shared().clone())).collect();
        let queues = (0..lanes).map(|_| VecDeque::new()).collect();
        Self { dispatcher, workers, queues, engine, applied: 0, replies: Vec::new() }
    }

    /// Has one lane do one item; false if no lane has any.
    fn step(&mut self, prng: &mut Prng) -> bool {
        while let Some((lane, item)) = self.dispatcher.next_item() {
            self.queues[lane].push_back(item);
        }
        let busy: Vec<usize> = (0..self.queues.len()).filter(|lane| !self.queues[*lane].is_empty()).collect();
        if busy.is_empty() {
            return false;
        }
        let lane = busy[prng.below(busy.len() as u64) as usize];
        let Some(item) = self.queues[lane].front() else { return true };
        match self.workers[lane].step(item) {
            ItemProgress::Wait => return true,
            ItemProgress::Done => {}
            ItemProgress::Ended(chunk, results) => self.dispatcher.ended(chunk, results),
            ItemProgress::Job(job) => {
                let shared = self.engine.shared();
                match job {
                    BarrierJob::Read(body, expected) => {
                        let mut reply = Vec::new();
                        Reader::new(shared.clone()).read_at(
                            self.dispatcher.time(),
                            WallTime(0),
                            &body,
                            &mut reply,
                        );
                        assert_eq!(reply, expected, "a read of several keys");
                    }
                    BarrierJob::Purge => drop(shared.purge()),
                    BarrierJob::Seal(number) => {
                        shared.seal(&number.to_le_bytes()).expect("a store in memory");
                        shared.flush().expect("a store in memory");
                    }
                }
                if let Item::Barrier(barrier) = item {
                    barrier.close();
                }
            }
        }
        self.queues[lane].pop_front();
        self.on_executed();
        true
    }

    fn on_executed(&mut self) {
        while let Some(executed) = self.dispatcher.next_executed() {
            assert!(executed.through.0 > self.applied, "the applied index goes up");
            self.applied = executed.through.0;
            self.engine.shared().advance(executed.time);
            self.replies.extend(executed.replies);
        }
    }
}

/// Draws bodies; many of several keys.
fn bodies(seed: u64) -> Bodies {
    let mut prng = Prng::new(seed);
    let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
    generator.blind = true;
    generator.has_streams = true;
    generator.has_field_expiry = true;
    let mut now = 0;
    let mut bodies = Vec::new();
    while bodies.len() < 300 {
        now += prng.below(40_000);
        // From some time on versions are recorded.
        if bodies.len() == 50 && seed.is_multiple_of(2) {
            let mut body = Vec::new();
            Operation::new(RecordVersions).encode(&mut body);
            bodies.push((WallTime(now), body));
        }
        // Some are transactions.
        let operations = if prng.chance(1, 6) { 1 + prng.below(5) } else { 1 };
        let mut body = Vec::new();
        for _ in 0..operations {
            let words = if prng.chance(1, 6) { set_several(&mut prng, now) } else { generator.command() };
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            body.extend(body_if_data(&words, generator.database()).unwrap_or_default());
        }
        if !body.is_empty() {
            bodies.push((WallTime(now), body));
        }
    }
    bodies
}

/// An MSET of some keys.
fn set_several(prng: &mut Prng, now: u64) -> Vec<Vec<u8>> {
    let mut words = vec![b"MSET".to_vec()];
    for _ in 0..1 + prng.below(3) {
        words.push(format!("k{}", prng.below(12)).into_bytes());
        words.push(now.to_string().into_bytes());
    }
    words
}

/// Runs one history in parallel and compares it with the same one executed by one thread. An error: they differ.
fn run(seed: u64, plant: bool) -> Result<(), String> {
    let history = bodies(seed);
    let mut prng = Prng::new(!seed);
    let (mut serial, _) = DiskEngine::open(MemoryStore::new()).expect("a store in memory");
    let mut memory = MemoryEngine::new();
    let store = MemoryStore::new();
    let mut lanes = Lanes::new(store.clone(), 1 + prng.below(5) as usize);
    lanes.dispatcher.nobody_meets = plant;
    let (mut expected, mut digests) = (Vec::new(), vec![serial.digest()]);
    let mget = body_of(&[b"MGET", b"k0", b"k1", b"k2", b"k3"]);
    let mut indivisible = Vec::new();
    for (index, (time, body)) in history.iter().enumerate() {
        let number = OpNumber(index as u64 + 1);
        let footprint = describe(body).expect("a body").footprint;
        let mut reply = Vec::new();
        serial.begin_entry(number);
        serial.apply(*time, body, &mut reply);
        digests.push(serial.digest());
        let mut in_memory = Vec::new();
        memory.begin_entry(number);
        memory.apply(*time, body, &mut in_memory);
        let effects = serial.take_effects();
        // Members may have engines of different types.
        assert_eq!(memory.take_effects(), effects, "seed {seed}, entry {}", number.0);
        expected.push(ExecutedUpdate { number, reply, effects });
        let task = Task { number, time: *time, body: body.clone(), wants_reply: true };
        if prng.chance(1, 20) {
            indivisible.push((footprint, task));
            let (footprints, tasks): (Vec<_>, Vec<_>) = indivisible.drain(..).unzip();
            lanes.dispatcher.indivisible(footprints.iter(), tasks);
        } else {
            lanes.dispatcher.task(&footprint, task);
        }
        if index + 1 == history.len() || prng.chance(1, 10) {
            lanes.dispatcher.end_chunk(number, *time);
            if prng.chance(1, 3) {
                let mut answer = Vec::new();
                serial.read(WallTime(0), &mget, &mut answer);
                let footprint = describe(&mget).expect("a body").footprint;
                lanes.dispatcher.job(&footprint, BarrierJob::Read(mget.clone(), answer));
            }
            if prng.chance(1, 5) {
                lanes.dispatcher.job(&Footprint::All, BarrierJob::Purge);
            }
            if prng.chance(1, 5) {
                lanes.dispatcher.job(&Footprint::All, BarrierJob::Seal(number.0));
            }
            for _ in 0..prng.below(30) {
                lanes.step(&mut prng);
            }
        }
    }
    let last = OpNumber(history.len() as u64);
    // Perhaps the process ends in the middle of it.
    let crash = prng.chance(1, 2);
    let steps = if crash { prng.below(60) } else { u64::MAX };
    for _ in 0..steps {
        if !lanes.step(&mut prng) {
            break;
        }
    }
    if crash {
        let (again, head) = DiskEngine::open(store.crash(false)).expect("what was sealed");
        let head = head.map_or(0, |head| u64::from_le_bytes(head.try_into().expect("8 bytes")));
        if again.digest() != digests[head as usize] {
            return Err(format!("seed {seed}: not the state at entry {head}"));
        }
        return Ok(());
    }
    if lanes.applied != last.0 || !lanes.dispatcher.is_idle() || lanes.dispatcher.waiting_bytes() > 0 {
        return Err(format!("seed {seed}: it got stuck after {}", lanes.applied));
    }
    if let Some((wrong, right)) = lanes.replies.iter().zip(&expected).find(|(wrong, right)| wrong != right) {
        return Err(format!("seed {seed}: {wrong:?} instead of {right:?}"));
    }
    assert_eq!(lanes.replies.len(), expected.len());
    if lanes.engine.digest() != serial.digest() {
        return Err(format!("seed {seed}: another state"));
    }
    Ok(())
}

#[test]
fn any_order_of_lanes_gives_the_same_answers_and_the_same_state() {
    for seed in 0..2000 {
        run(seed, false).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

#[test]
fn operations_that_do_not_wait_for_other_lanes_are_found_out() {
    let caught =
        (0..20).filter(|seed| std::panic::catch_unwind(|| run(*seed, true)).map_or(true, |run| run.is_err()));
    assert!(caught.count() >= 10, "the check above sees nothing");
}

#[test]
fn log_time_does_not_overtake_a_checkpoint() {
    let mut prng = Prng::new(1);
    let store = MemoryStore::new();
    let mut lanes = Lanes::new(store.clone(), 3);
    lanes.dispatcher.end_chunk(OpNumber(1), WallTime(1_000));
    lanes.on_executed();
    lanes.dispatcher.job(&Footprint::All, BarrierJob::Seal(1));
    // An entry that changes no key.
    lanes.dispatcher.end_chunk(OpNumber(2), WallTime(2_000));
    lanes.on_executed();
    while lanes.step(&mut prng) {}
    assert_eq!((lanes.applied, lanes.engine.time()), (2, WallTime(2_000)));
    let (again, _) = DiskEngine::open(store.crash(false)).expect("what was sealed");
    assert_eq!(again.time(), WallTime(1_000));
}

/// Whatever a transaction has done so far, nobody else sees any of it before it is committed.
#[test]
fn nobody_sees_half_of_a_transaction() {
    let body = |commands: &[&str]| -> Vec<u8> {
        commands
            .iter()
            .flat_map(|text| body_of(&text.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
            .collect()
    };
    let (engine, _) = DiskEngine::open(MemoryStore::new()).unwrap();
    let shared = engine.into_shared();
    let mut lane = Lane::new(Arc::clone(&shared));
    let mut reader = Reader::new(Arc::clone(&shared));
    let mut seen = |body: &[u8]| {
        let mut reply = Vec::new();
        reader.read(WallTime(1_000), body, &mut reply);
        Reply::decode_all(&reply).expect("replies")
    };
    let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
    let (one, two) = (Reply::Integer(1), Reply::Integer(2));
    let names = |names: &[&str]| Reply::Array(names.iter().map(|name| bulk(name)).collect());
    let question = body(&["GET a", "GET b", "DBSIZE"]);
    for (commands, replies, after) in [
        (
            &["SET a 1", "DBSIZE", "SET a 2", "BLIND APPEND a 3", "KEYS *"][..],
            &[Reply::Ok, one.clone(), Reply::Ok, Reply::Ok, names(&["a"])][..],
            [bulk("23"), Reply::Nil, one.clone()],
        ),
        (
            &["SET b 1", "FLUSHALL", "DBSIZE", "SET b 2", "DBSIZE", "RANDOMKEY"],
            &[Reply::Ok, Reply::Ok, Reply::Integer(0), Reply::Ok, one.clone(), bulk("b")],
            [Reply::Nil, bulk("2"), one.clone()],
        ),
        (
            &["FLUSHALL", "MSET a 1 b 1", "DBSIZE", "FLUSHALL", "MSET a 2 c 3", "DEL c b", "DBSIZE"],
            &[Reply::Ok, Reply::Ok, two, Reply::Ok, Reply::Ok, one.clone(), one.clone()],
            [bulk("2"), Reply::Nil, one.clone()],
        ),
    ] {
        let before = seen(&question);
        let mut reply = Vec::new();
        lane.execute(WallTime(1_000), &body(commands), &mut reply);
        assert_eq!(Reply::decode_all(&reply).expect("replies"), replies, "{commands:?}");
        assert_eq!(seen(&question), before, "{commands:?}");
        lane.commit();
        assert_eq!(seen(&question), after, "{commands:?}");
    }
}

/// A reader sees each key as it is when it looks it up: so only what is looked up once may be read in passing, and `MGET k
/// k` is not, although it concerns one key.
#[test]
fn what_is_looked_up_twice_is_not_read_in_passing() {
    let body = |text: &str| body_of(&text.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    let store = Watched::default();
    let (engine, _) = DiskEngine::open(store.clone()).unwrap();
    let shared = engine.into_shared();
    let mut lane = Lane::new(Arc::clone(&shared));
    let mut set = move |value: &str| {
        lane.execute(WallTime(1_000), &body(&format!("SET k {value}")), &mut Vec::new());
        lane.commit();
    };
    set("old");
    *store.1.meanwhile.lock().unwrap() = Some(Box::new(move || set("new")));
    let twice = body("MGET k k");
    let mut reply = Vec::new();
    Reader::new(shared).read(WallTime(1_000), &twice, &mut reply);
    let text = String::from_utf8_lossy(&reply).into_owned();
    assert!(text.contains("old") && text.contains("new"), "one reply of two moments: {text:?}");

    let keys = describe(&twice).unwrap().footprint;
    assert!(matches!(keys, Footprint::One(_)), "{keys:?}");
    assert_eq!(ReadWay::of(&twice), ReadWay::AtBarrier(keys));
    assert!(matches!(ReadWay::of(&body("EXISTS k k")), ReadWay::AtBarrier(Footprint::One(_))));
    let packed = [body("GET k"), body("STRLEN k")].concat();
    assert!(matches!(ReadWay::of(&packed), ReadWay::AtBarrier(Footprint::One(_))));
    assert!(matches!(ReadWay::of(&body("MGET k l")), ReadWay::AtBarrier(Footprint::Many(_))));
    assert_eq!(ReadWay::of(&body("GET k")), ReadWay::InPassing);
    assert_eq!(ReadWay::of(&body("DBSIZE")), ReadWay::OfReadView);
}
