//! Those who wait for elements: against a model of queues, and through snapshots. Those who wait for entries of streams.

use super::{apply, body, bulk, evaluate, ms, read};
use crate::Engine;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use syros_commands::families::{
    Leave, ListEnd, ScoreEnd, TakeAction, TakeParts, Turns, WaiterId, XAwaitParts, XNews,
};
use syros_commands::{Arguments, Command, Operation, Parsed, Reply, parse};
use syros_types::{Database, Prng};

/// What engines have to pass.
///
/// # Panics
/// If an engine does not.
pub(super) fn test<E: Engine>(make: &impl Fn() -> E, load: &impl Fn(&[Vec<u8>]) -> E, steps: usize) {
    test_order(make);
    test_kinds(make);
    test_those_who_have_gone(make);
    test_limits(make);
    test_readers(make);
    for seed in 0..4 {
        test_at_random(make, load, seed, steps);
    }
}

const LEASE_MS: u64 = 10_000;

const fn waiter(member: u8, life: u64, sequence: u64) -> WaiterId {
    WaiterId { owner: WaiterId::owner(Some(member), life << 8), sequence }
}

fn encoded<'a>(command: impl Into<Command<'a>>) -> Vec<u8> {
    let mut body = Vec::new();
    Operation::new(command).encode(&mut body);
    body
}

/// The body of a command that may wait.
fn take(waiter: WaiterId, is_renewed: bool, action: TakeAction<'_>, keys: &[&str]) -> Vec<u8> {
    take_without(0, waiter, is_renewed, action, keys)
}

/// The same of a node that has lost members.
fn take_without(
    absent: u64,
    waiter: WaiterId,
    is_renewed: bool,
    action: TakeAction<'_>,
    keys: &[&str],
) -> Vec<u8> {
    let names: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let take = TakeParts::new(Arguments::new(&names), action, 0);
    let mut body = Vec::new();
    TakeParts { waiter, is_renewed, absent, lease_ms: LEASE_MS, ..take }
        .encode_in(Database::FIRST, &mut body);
    body
}

fn leave(waiter: WaiterId, keys: &[&str]) -> Vec<u8> {
    let names: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    encoded(Leave { waiter, is_list: true, keys: Arguments::new(&names) })
}

/// How many of an owner wait for a list, and whose turn it is.
fn turns<E: Engine>(engine: &E, now_ms: u64, owner: u64, key: &str) -> Vec<i64> {
    let body = encoded(Turns { owner, absent: 0, is_list: true, key: key.as_bytes() });
    let replies = read(engine, ms(now_ms), &body);
    let [Reply::Array(numbers)] = &replies[..] else { panic!("{replies:?}") };
    let number = |reply: &Reply| match reply {
        Reply::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    };
    numbers.iter().map(number).collect()
}

const POP: TakeAction<'_> = TakeAction::Pop(ListEnd::Left);

fn popped(key: &str, element: &str) -> Vec<Reply> {
    vec![Reply::Array(vec![bulk(key), bulk(element)])]
}

/// Elements go to those who wait in the order in which they came.
fn test_order<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let (first, second, third) = (waiter(0, 1, 1), waiter(1, 1, 1), waiter(0, 1, 2));
    let waits = [Reply::Waits];
    assert_eq!(apply(&mut engine, ms(1), &take(first, false, POP, &["k", "l", "k"])), waits);
    assert_eq!(apply(&mut engine, ms(2), &take(second, false, POP, &["k"])), waits);
    assert_eq!(apply(&mut engine, ms(3), &take(first, true, POP, &["k", "l", "k"])), waits);
    assert_eq!(turns(&engine, 3, first.owner, "k"), [1]);
    for hidden in ["KEYS *", "SCAN 0 COUNT 1000", "RANDOMKEY"] {
        let shown = format!("{:?}", read(&engine, ms(3), &body(&[hidden])));
        assert!(!shown.contains(&format!("{:?}", bulk("k"))) && shown.len() < 60, "{hidden} shows {shown}");
    }
    assert_eq!(apply(&mut engine, ms(4), &body(&["RPUSH k a"])), [Reply::Integer(1)]);
    assert_eq!(turns(&engine, 4, first.owner, "k"), [1, 1]);
    assert_eq!(turns(&engine, 4, second.owner, "k"), [1]);
    // It is not their turn.
    assert_eq!(apply(&mut engine, ms(4), &take(second, true, POP, &["k"])), waits);
    assert_eq!(apply(&mut engine, ms(4), &take(third, false, POP, &["k"])), waits);
    assert_eq!(turns(&engine, 4, first.owner, "k"), [2, 1]);
    // What does not wait does not mind.
    assert_eq!(apply(&mut engine, ms(4), &body(&["BLPOP l k 0", "RPUSH k b"]))[0], popped("k", "a")[0]);
    assert_eq!(apply(&mut engine, ms(5), &take(first, true, POP, &["k", "l", "k"])), popped("k", "b"));
    assert_eq!(turns(&engine, 5, first.owner, "l"), [0]);
    assert_eq!(apply(&mut engine, ms(6), &body(&["RPUSH k c d"])), [Reply::Integer(2)]);
    // The second of two has its turn, too, and leaves one for the first.
    assert_eq!(
        apply(&mut engine, ms(6), &take(third, true, TakeAction::PopSome(ListEnd::Right, Some(5)), &["k"])),
        [Reply::Array(vec![bulk("k"), Reply::Array(vec![bulk("d")])])]
    );
    assert_eq!(apply(&mut engine, ms(7), &leave(second, &["k"])), [Reply::Ok]);
    assert_eq!(apply(&mut engine, ms(7), &leave(second, &["k"])), [Reply::Ok]);
    assert_eq!(turns(&engine, 7, second.owner, "k"), [0]);
    assert_eq!(
        apply(&mut engine, ms(8), &body(&["LLEN k", "DEL k"])),
        [Reply::Integer(1), Reply::Integer(1)]
    );
    assert_eq!(engine.len(), 0, "nobody waits, and nothing is left of queues");
}

/// Lists and sorted sets have queues of their own, and a value of another kind serves nobody.
fn test_kinds<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let (of_list, of_set, mover) = (waiter(0, 1, 1), waiter(0, 1, 2), waiter(0, 1, 3));
    let wrong_type =
        [Reply::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value".to_vec())];
    let waits = [Reply::Waits];
    let lowest = TakeAction::PopMember(ScoreEnd::Min);
    assert_eq!(apply(&mut engine, ms(1), &take(of_list, false, POP, &["k"])), waits);
    assert_eq!(apply(&mut engine, ms(1), &take(of_set, false, lowest, &["k"])), waits);
    apply(&mut engine, ms(2), &body(&["ZADD k 2 b 1 a"]));
    assert_eq!(apply(&mut engine, ms(2), &take(of_list, true, POP, &["k"])), waits);
    assert_eq!(apply(&mut engine, ms(2), &take(of_list, false, POP, &["k"])), wrong_type);
    assert_eq!(
        apply(&mut engine, ms(2), &take(of_set, true, lowest, &["k"])),
        [Reply::Array(vec![bulk("k"), bulk("a"), Reply::Double(syros_commands::Double::new(1.0))])]
    );
    let to_m = TakeAction::Move { to: b"m", from_end: ListEnd::Right, to_end: ListEnd::Left };
    assert_eq!(apply(&mut engine, ms(3), &take(mover, false, to_m, &["l"])), waits);
    apply(&mut engine, ms(3), &body(&["SET m x", "RPUSH l a b"]));
    assert_eq!(apply(&mut engine, ms(4), &take(mover, true, to_m, &["l"])), wrong_type);
    assert_eq!(turns(&engine, 4, mover.owner, "l"), [1, 3], "an error has changed nothing");
    apply(&mut engine, ms(4), &body(&["DEL m"]));
    assert_eq!(apply(&mut engine, ms(4), &take(mover, true, to_m, &["l"])), [bulk("b")]);
    assert_eq!(apply(&mut engine, ms(4), &body(&["LRANGE m 0 -1"])), [Reply::Array(vec![bulk("b")])]);
    // What would wait cannot be told before it is executed if somebody waits; what finds something can.
    let other = waiter(1, 1, 9);
    assert_eq!(evaluate(&engine, &take(other, false, POP, &["m"])), Some(popped("m", "b")));
    assert_eq!(evaluate(&engine, &take(other, false, POP, &["none"])), Some(waits.to_vec()));
}

/// Who has not said in time that it waits, who waits at a node that is lost, and who waited in an earlier life of a node does not
/// count.
fn test_those_who_have_gone<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let (dead, early, late) = (waiter(1, 1, 1), waiter(2, 1, 1), waiter(2, 2, 1));
    for (at, one) in [(1, dead), (2, early), (5_000, late)] {
        apply(&mut engine, ms(at), &take(one, false, POP, &["k"]));
    }
    apply(&mut engine, ms(5_000), &body(&["RPUSH k a b"]));
    assert_eq!(turns(&engine, 5_000, early.owner, "k"), [0], "a later life has taken its places");
    assert_eq!(apply(&mut engine, ms(5_000), &take(waiter(0, 1, 1), false, POP, &["k"])), [Reply::Waits]);
    assert_eq!(
        apply(&mut engine, ms(5_001), &take_without(1 << 1, waiter(0, 1, 1), true, POP, &["k"])),
        popped("k", "a")
    );
    assert_eq!(turns(&engine, 5_001, dead.owner, "k"), [0]);
    assert_eq!(turns(&engine, 14_999, late.owner, "k"), [1, 1]);
    assert_eq!(turns(&engine, 15_000, late.owner, "k"), [0], "it has not said again that it waits");
    assert_eq!(apply(&mut engine, ms(15_000), &take(waiter(0, 1, 2), false, POP, &["k"])), popped("k", "b"));
    apply(&mut engine, ms(16_000), &take(waiter(0, 1, 3), false, POP, &["k"]));
    engine.advance(ms(26_000));
    assert_eq!(engine.len(), 0, "a queue that all have forgotten goes");
}

fn test_limits<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let long = "k".repeat(syros_types::limits::KEY_BYTES_MAX);
    let too_long = "ERR the name of a key is too long to wait for it";
    let replies = apply(&mut engine, ms(1), &take(waiter(0, 1, 1), false, POP, &["short", &long]));
    assert_eq!(replies, [Reply::Error(too_long.as_bytes().to_vec())]);
    assert_eq!(engine.len(), 0, "an error changes nothing");
    apply(&mut engine, ms(1), &body(&[&format!("RPUSH {long} a")]));
    assert_eq!(
        apply(&mut engine, ms(1), &take(waiter(0, 1, 1), false, POP, &["short", &long])),
        popped(&long, "a")
    );
    let many: Vec<String> = (0..1025).map(|number| format!("k{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let replies = apply(&mut engine, ms(1), &take(waiter(0, 1, 1), false, POP, &many));
    assert_eq!(replies, [Reply::Error(b"ERR a command can wait for 1024 keys at most".to_vec())]);
    assert_eq!(apply(&mut engine, ms(1), &take(waiter(0, 1, 1), false, POP, &many[1..])), [Reply::Waits]);
}

/// The body that is submitted for an XREAD which may have to wait, for the first time or again.
fn await_entries(command: &str, is_renewed: bool) -> Vec<u8> {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let Ok(Parsed::Data(Operation { command: Command::XRead(read), .. })) = parse(&words) else {
        panic!("{command} is no XREAD")
    };
    let mut body = Vec::new();
    XAwaitParts { is_renewed, read: read.get() }.encode_in(Database::FIRST, &mut body);
    body
}

/// What a stream has for those who wait, of a group if one is named.
fn news<E: Engine>(engine: &E, key: &str, group: Option<&str>) -> Vec<Reply> {
    let (of_group, group) = (group.is_some(), group.unwrap_or_default().as_bytes());
    read(engine, ms(1), &encoded(XNews { key: key.as_bytes(), of_group, group }))
}

/// XREAD that may have to wait answers from where it goes on, and whether a stream has something can be asked.
fn test_readers<E: Engine>(make: &impl Fn() -> E) {
    let mut engine = make();
    let awaited =
        |engine: &E, command: &str, is_renewed| read(engine, ms(1), &await_entries(command, is_renewed));
    let ids = |ids: &[&str]| vec![Reply::Array(ids.iter().map(|id| bulk(id)).collect())];
    let wrong_type =
        [Reply::Error(b"WRONGTYPE Operation against a key holding the wrong kind of value".to_vec())];
    let state = |number| vec![Reply::Integer(number)];
    assert_eq!(awaited(&engine, "XREAD BLOCK 0 STREAMS s t u $ + 7", false), ids(&["0-0", "0-0", "7-0"]));
    assert_eq!((news(&engine, "s", None), news(&engine, "s", Some("g"))), (vec![Reply::Nil], state(2)));
    apply(&mut engine, ms(1), &body(&["XGROUP CREATE s g $ MKSTREAM", "XADD s 5-1 f v"]));
    assert_eq!((news(&engine, "s", None), news(&engine, "s", Some("g"))), (vec![bulk("5-1")], state(1)));
    assert_eq!(news(&engine, "s", Some("none")), state(2));
    assert_eq!(awaited(&engine, "XREAD BLOCK 0 STREAMS s t $ $", false), ids(&["5-1", "0-0"]));
    for start in ["5-0", "+"] {
        let plain = read(&engine, ms(1), &body(&[&format!("XREAD STREAMS s {start}")]));
        assert_eq!(awaited(&engine, &format!("XREAD BLOCK 0 STREAMS s {start}"), false), plain);
    }
    let delivered = apply(&mut engine, ms(1), &body(&["XREADGROUP GROUP g c BLOCK 0 STREAMS s >"]));
    assert!(matches!(delivered[..], [Reply::Keyed(_)]), "{delivered:?}");
    assert_eq!(news(&engine, "s", Some("g")), state(0));
    let nothing = apply(&mut engine, ms(1), &body(&["XREADGROUP GROUP g c BLOCK 0 STREAMS s >"]));
    assert_eq!(nothing, [Reply::NilArray]);
    // An id outlives its entry.
    apply(&mut engine, ms(1), &body(&["XDEL s 5-1"]));
    assert_eq!(awaited(&engine, "XREAD BLOCK 0 STREAMS s $", false), ids(&["5-1"]));
    assert_eq!((news(&engine, "s", None), news(&engine, "s", Some("g"))), (vec![Reply::Nil], state(0)));
    apply(&mut engine, ms(1), &body(&["SET s x"]));
    assert_eq!((news(&engine, "s", None), news(&engine, "s", Some("g"))), (vec![Reply::Nil], state(2)));
    assert_eq!(awaited(&engine, "XREAD BLOCK 0 STREAMS s t 1 2", false), wrong_type);
    assert_eq!(awaited(&engine, "XREAD BLOCK 0 STREAMS s t 1 2", true), ids(&["1-0", "2-0"]));
}

/// Lists, and queues of those who wait for their elements.
#[derive(Default)]
struct Model {
    lists: BTreeMap<usize, VecDeque<String>>,
    queues: BTreeMap<usize, Vec<WaiterId>>,
}

impl Model {
    /// What a command answers that may wait for these keys.
    fn take(&mut self, waiter: WaiterId, keys: &[usize]) -> Option<(usize, String)> {
        for key in keys {
            let queue = self.queues.entry(*key).or_default();
            let before = queue.iter().position(|one| *one == waiter).unwrap_or(queue.len());
            let list = self.lists.entry(*key).or_default();
            if list.len() > before {
                let element = list.pop_front()?;
                self.leave(waiter, keys);
                return Some((*key, element));
            }
        }
        for key in keys {
            let queue = self.queues.entry(*key).or_default();
            if !queue.contains(&waiter) {
                queue.push(waiter);
            }
        }
        None
    }

    fn leave(&mut self, waiter: WaiterId, keys: &[usize]) {
        for key in keys {
            self.queues.entry(*key).or_default().retain(|one| *one != waiter);
        }
    }

    /// Those of an owner whose turn it is.
    fn turns(&self, owner: u64, key: usize) -> Vec<i64> {
        let queue = self.queues.get(&key).into_iter().flatten();
        let standing = queue.clone().filter(|one| one.owner == owner).count();
        let length = self.lists.get(&key).map_or(0, VecDeque::len);
        let have_turn = queue.take(length).filter(|one| one.owner == owner);
        [standing as i64].into_iter().chain(have_turn.map(|one| one.sequence as i64)).collect()
    }
}

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Nothing is taken twice, nothing is lost, and the order is that of the model, whatever happens and however often the state
/// goes through a snapshot.
fn test_at_random<E: Engine>(
    make: &impl Fn() -> E,
    load: &impl Fn(&[Vec<u8>]) -> E,
    seed: u64,
    steps: usize,
) {
    let mut prng = Prng::new(seed);
    let (mut engine, mut model) = (make(), Model::default());
    let mut waiting: BTreeMap<WaiterId, Vec<usize>> = BTreeMap::new();
    let (mut pushed, mut sequence, mut taken) = (0_u64, 0, BTreeSet::new());
    for step in 0..steps {
        // All wait for less than their leases.
        let now = 1 + step as u64 * LEASE_MS / (2 * steps as u64);
        let below = |prng: &mut Prng, bound: usize| prng.below(bound as u64) as usize;
        match prng.below(10) {
            0..4 => {
                let key = below(&mut prng, KEYS.len());
                for _ in 0..1 + prng.below(3) {
                    pushed += 1;
                    apply(&mut engine, ms(now), &body(&[&format!("RPUSH {} e{pushed}", KEYS[key])]));
                    model.lists.entry(key).or_default().push_back(format!("e{pushed}"));
                }
            }
            4..8 => {
                let is_renewed = prng.chance(2, 3) && !waiting.is_empty();
                let (waiter, keys) = if is_renewed {
                    let at = below(&mut prng, waiting.len());
                    waiting.iter().nth(at).map(|(waiter, keys)| (*waiter, keys.clone())).expect("one waits")
                } else {
                    sequence += 1;
                    let start = below(&mut prng, KEYS.len());
                    let keys = (0..1 + below(&mut prng, 2)).map(|more| (start + more) % KEYS.len()).collect();
                    (waiter(prng.below(3) as u8, 1, sequence), keys)
                };
                let names: Vec<&str> = keys.iter().map(|key| KEYS[*key]).collect();
                let body = take(waiter, is_renewed, POP, &names);
                let evaluated = evaluate(&engine, &body);
                let replies = apply(&mut engine, ms(now), &body);
                assert!(evaluated.is_none_or(|evaluated| evaluated == replies), "seed {seed}, step {step}");
                match model.take(waiter, &keys) {
                    Some((key, element)) => {
                        assert_eq!(replies, popped(KEYS[key], &element), "seed {seed}, step {step}");
                        assert!(taken.insert(element), "seed {seed}, step {step}: taken twice");
                        waiting.remove(&waiter);
                    }
                    None => {
                        assert_eq!(replies, [Reply::Waits], "seed {seed}, step {step}");
                        waiting.insert(waiter, keys);
                    }
                }
            }
            8 => {
                let at = below(&mut prng, waiting.len().max(1));
                if let Some((waiter, keys)) = waiting.iter().nth(at).map(|(one, keys)| (*one, keys.clone())) {
                    let names: Vec<&str> = keys.iter().map(|key| KEYS[*key]).collect();
                    apply(&mut engine, ms(now), &leave(waiter, &names));
                    model.leave(waiter, &keys);
                    waiting.remove(&waiter);
                }
            }
            _ if prng.chance(1, 10) => {
                let digest = engine.digest();
                let (mut blocks, mut more) = (Vec::new(), true);
                engine.begin_snapshot();
                while more {
                    let mut block = Vec::new();
                    more = engine.snapshot_block(100, &mut block);
                    blocks.push(block);
                }
                engine = load(&blocks);
                assert_eq!(engine.digest(), digest, "seed {seed}, step {step}");
            }
            _ => {}
        }
        for (key, name) in KEYS.iter().enumerate() {
            let owner = waiter(prng.below(3) as u8, 1, 0).owner;
            assert_eq!(turns(&engine, now, owner, name), model.turns(owner, key), "seed {seed}, step {step}");
        }
    }
    let left: usize = model.lists.values().map(VecDeque::len).sum();
    assert_eq!(taken.len() + left, pushed as usize);
    assert!(taken.len() > steps / 10, "seed {seed}: only {} have been taken", taken.len());
}
