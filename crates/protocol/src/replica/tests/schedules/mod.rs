//! Random schedules of a few replicas and real clients. Each step of a schedule is one number, which says by itself what
//! happens: so schedules that fail are made shorter by leaving steps out. `SYROS_SCHEDULES=100000` runs more of them,
//! from `SYROS_SCHEDULES_FROM` on; `SYROS_SCHEDULE=17` runs one and tells what happens.
//!
//! What a real network or disk cannot do is left out:
//!
//! - Between a client and a replica there is one connection at a time, which keeps the order of messages. One that loses a
//!   message is closed, and both ends hear of that: Attach and Request do not change places.
//! - What was sent to a process does not reach the next one of the same replica, which has connections of its own. What was sent
//!   by a process is not taken after something of the next one: members refuse earlier incarnations.
//! - A disk loses what it has not reported, from some record on, and nothing else.
//! - Of replicas with `replicated`, and of those that are replaced, no more than `f` are without memory at a time.
//! - In half of the worlds clocks run as they like. A lease means nothing there, so nobody reads.
//! - A file of a snapshot is written, sent and read as a whole, and what is executed is executed at once: engines are for other
//!   tests. The replica hears of both at any later step.
//! - Nodes are connected if each knows the other; if not, they compare configurations, as in a handshake.

mod hostile_stars;
mod network;
mod processes;
mod stars;
mod steps;

use super::sizes::{node, roster_of};
use super::*;
use crate::client::{self, Client, Outcome, Token};
use crate::record::SnapshotHead;
use alloc::format;
use core::time::Duration;
use std::collections::HashSet;
use std::{println, thread_local};
use syros_types::{NodeId, ReadPolicy};

/// The most members that a group has here.
const MOST: usize = 9;

/// The most members that random schedules draw.
const DRAWN: usize = 5;

/// A file of a snapshot is a number that says which one it is.
const FILE_BYTES: u64 = 8;

/// What the state machine holds: of each of two keys, which operations have written it.
type State = [Vec<u8>; 2];

/// An operation: a letter of a class, a key, and its own number. `w` writes both keys.
type Operation = [u8; 3];

fn describe_schedule(body: &[u8]) -> Option<Description> {
    match body.first()? {
        b'w' => {
            let footprint = Footprint::of(vec![0, 1]);
            Some(Description { class: Class::Merge, footprint, growth: body.len() })
        }
        _ => Some(Description { footprint: Footprint::One(u64::from(*body.get(1)?)), ..describe(body)? }),
    }
}

fn execute(state: &mut State, body: &[u8]) -> Vec<u8> {
    let [class, key, number] = body[..3].try_into().unwrap();
    let key = usize::from(key);
    match class {
        b'o' => state[key] = vec![number],
        b'w' => state.iter_mut().for_each(|written| written.push(number)),
        b'm' | b'u' => state[key].push(number),
        _ => {}
    }
    match class {
        b'u' | b'r' => state[key].clone(),
        _ => Vec::new(),
    }
}

/// An operation of a client, from one moment to another.
#[derive(Clone, Debug)]
struct Invoked {
    body: Operation,
    began: u64,
    /// And what it returned.
    ended: Option<(u64, Vec<u8>)>,
}

/// True if the operations could have taken place one after the other: those that ended all, and any of the others.
fn is_linearizable(ops: &[Invoked], done: u64, state: &State, seen: &mut HashSet<(u64, State)>) -> bool {
    let open = || ops.iter().enumerate().filter(|(at, _)| done & 1 << at == 0);
    let Some(first_end) = open().filter_map(|(_, op)| op.ended.as_ref().map(|ended| ended.0)).min() else {
        return true;
    };
    seen.insert((done, state.clone()))
        && open().filter(|(_, op)| op.began < first_end).any(|(at, op)| {
            let mut next = state.clone();
            let returned = execute(&mut next, &op.body);
            op.ended.as_ref().is_none_or(|(_, reply)| *reply == returned)
                && is_linearizable(ops, done | 1 << at, &next, seen)
        })
}

/// What may happen in a step, and how often it does, compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Deliver,
    DeliverOldest,
    Lose,
    Duplicate,
    Write,
    TellWritten,
    Report,
    Tick,
    TickClient,
    Submit,
    Rush,
    Crash,
    Restart,
    Cut,
    Part,
    Without,
    Mend,
    Calm,
    HandOver,
    ChangeMode,
    Shrink,
    Grow,
    Replace,
}

const STEPS: [(Step, u64); 23] = [
    (Step::Deliver, 40),
    (Step::DeliverOldest, 30),
    (Step::Lose, 1),
    (Step::Duplicate, 2),
    (Step::Write, 15),
    (Step::TellWritten, 10),
    (Step::Report, 10),
    (Step::Tick, 12),
    (Step::TickClient, 3),
    (Step::Submit, 9),
    (Step::Rush, 4),
    (Step::Crash, 2),
    (Step::Restart, 4),
    (Step::Cut, 2),
    (Step::Part, 4),
    (Step::Without, 1),
    (Step::Mend, 3),
    (Step::Calm, 6),
    (Step::HandOver, 1),
    (Step::ChangeMode, 1),
    (Step::Shrink, 2),
    (Step::Grow, 2),
    (Step::Replace, 1),
];

/// What a snapshot holds.
type Snapshot = (Box<SnapshotHead>, State);

/// The place of a member: its process, if it runs, and its disk.
struct Place {
    replica: Option<Replica>,
    /// With the configuration that its directory says.
    config: Config,
    /// Counts processes.
    life: u64,
    /// How far its monotonic clock is ahead, and its wall clock.
    ahead: (u64, u64),
    disk: Vec<Record>,
    /// So many of its records are not needed any more.
    removed: usize,
    /// So many there were when the process began.
    found: usize,
    /// What is to be kept once a record is there.
    keeps: Option<(OpNumber, Ticket)>,
    snapshots: BTreeMap<OpNumber, Snapshot>,
    /// One that is being taken, and the record that goes with it.
    taking: Option<(Snapshot, Ticket)>,
    /// One that has been received.
    received: Option<Snapshot>,
    unwritten: VecDeque<Record>,
    written: Ticket,
    /// What waits for the disk.
    waiting: Vec<(Ticket, Peer, Message)>,
    state: State,
    /// The state is that after this entry.
    executed: OpNumber,
    /// What has been done, and is to be reported.
    reports: VecDeque<Event>,
    /// Has never been a member.
    learns: bool,
    /// There is no node, or none any more.
    is_gone: bool,
    /// A node that is to take this place, whose own was lost.
    wanted: Option<NodeId>,
    /// The last process of each other replica that it has heard of.
    heard: [u64; MOST],
    /// What was compared with all others.
    checked: u64,
}

impl Place {
    /// What its disk says of everything.
    fn restored(&self) -> Option<Restored> {
        if self.config.durability == Durability::Replicated {
            return None;
        }
        let mut restored = Restored::new(&self.config, self.snapshots.keys().copied());
        for (number, record) in (1..).zip(&self.disk).skip(self.removed) {
            restored.replay(number, record.clone()).unwrap();
        }
        restored.check_beginning(self.removed as u64 + 1).unwrap();
        if let Some(base) = restored.needed_snapshot().unwrap() {
            restored.attach((*self.snapshots[&base].0).clone(), FILE_BYTES).unwrap();
        }
        Some(restored)
    }

    /// The last view on its disk, as the file of the view has it.
    fn noted_view(&self) -> View {
        let views = self.disk.iter().filter_map(|record| match record {
            Record::View { view, .. } => Some(*view),
            _ => None,
        });
        views.max().unwrap_or_default()
    }

    fn clear_disk(&mut self) {
        self.disk.clear();
        self.snapshots.clear();
        self.removed = 0;
    }

    /// What the log on disk says of entries, read from its beginning on, or from that of what was kept.
    fn read_entries(&self, wanted: &EntriesWanted, from: usize) -> Option<ScannedEntries> {
        let mut scan = LogScan::new(describe_schedule);
        self.disk[from..].iter().try_for_each(|record| scan.take(record.clone())).ok()?;
        Some(scan.entries(wanted, self.unwritten.is_empty()))
    }
}

struct User {
    client: Client,
    ahead: (u64, u64),
    /// Its connections to replicas.
    connections: [Option<u64>; MOST],
    /// What it waits for.
    tokens: Vec<(Token, usize)>,
}

/// A message on its way. Ends are the numbers of replicas and connections, with the lives of replicas.
#[derive(Clone, Debug)]
struct Packet {
    from: (Peer, u64),
    to: (Peer, u64),
    node: Option<NodeId>,
    message: Message,
}

struct World {
    places: Vec<Place>,
    users: Vec<User>,
    wire: Vec<Packet>,
    /// The user and the replica of each connection, from 0 on.
    connections: Vec<(usize, usize)>,
    cut: BTreeSet<(usize, usize)>,
    now: Now,
    clocks_agree: bool,
    durability: Durability,
    weights: Vec<(Step, u64)>,
    ops: Vec<Invoked>,
    moments: u64,
    /// Every entry that some replica has committed.
    committed: BTreeMap<u64, LogEntry>,
    /// Every part of a snapshot that was sent.
    files: Vec<Snapshot>,
    nodes: u64,
    wrong: Option<String>,
}

thread_local! {
    static TELLS: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

fn tell(what: impl FnOnce() -> String) {
    if TELLS.get() {
        println!("{}", what());
    }
}

const fn member(replica: usize) -> ReplicaId {
    ReplicaId(replica as u8)
}

impl World {
    fn new(seed: u64, bug: Option<PlantedBug>) -> Self {
        Self::of(seed, bug, None)
    }

    /// One of so many members, in this mode, with this durability, or what is drawn.
    fn of(seed: u64, bug: Option<PlantedBug>, wanted: Option<(usize, FastQuorum, Durability)>) -> Self {
        let mut prng = Prng::new(seed);
        let n = if prng.chance(1, 2) { 3 } else { 5 };
        let modes = [FastQuorum::Majority, FastQuorum::Mixed, FastQuorum::Mixed, FastQuorum::Supermajority];
        let mode = modes[prng.below(4) as usize];
        let durability = if prng.chance(2, 3) { Durability::Fsync } else { Durability::Replicated };
        let (n, mode, durability) = wanted.unwrap_or((n, mode, durability));
        let clocks_agree = prng.chance(1, 2);
        let mut weights = STEPS.to_vec();
        weights.iter_mut().for_each(|(_, weight)| *weight *= [0, 1, 1, 1, 5][prng.below(5) as usize]);
        let now = Now { instant: Instant(1_000_000_000), wall: WallTime(1_000_000) };
        let mut configuration = Configuration::first(Group::new(n).unwrap(), mode);
        configuration.roster = roster_of(n);
        let overwrites = |newer: &[u8], older: &[u8]| newer[1] == older[1];
        let mut skewed = prng.fork();
        let (takes_snapshots, snapshot_bytes) = (prng.chance(1, 2), 1 + prng.below(2_000) as usize);
        let places = (0..MOST).map(|at| {
            let mut config = Config::new(configuration, member(at), describe_schedule, overwrites);
            config.durability = durability;
            if takes_snapshots {
                (config.settings.log_keep_bytes, config.settings.snapshot_log_bytes) = (0, snapshot_bytes);
            }
            planted(bug)(&mut config);
            Place {
                replica: None,
                config,
                life: 0,
                ahead: (0, skewed.below(50_000)),
                disk: Vec::new(),
                removed: 0,
                found: 0,
                keeps: None,
                snapshots: BTreeMap::new(),
                taking: None,
                received: None,
                unwritten: VecDeque::new(),
                written: Ticket(0),
                waiting: Vec::new(),
                state: State::default(),
                executed: OpNumber(0),
                reports: VecDeque::new(),
                learns: false,
                is_gone: at >= n,
                wanted: None,
                heard: [0; MOST],
                checked: 0,
            }
        });
        let users = (0..3).map(|at| {
            let mut config = client::Config::new(configuration, seed * 10 + at);
            #[cfg(feature = "planted-bugs")]
            (config.planted = bug);
            if prng.chance(1, 2) {
                config.settings.write_policy = syros_types::WritePolicy::Fast;
            }
            User {
                client: Client::new(config, now),
                ahead: (0, prng.below(50_000)),
                connections: [None; MOST],
                tokens: Vec::new(),
            }
        });
        let mut world = Self {
            places: places.collect(),
            users: users.collect(),
            wire: Vec::new(),
            connections: Vec::new(),
            cut: BTreeSet::new(),
            now,
            clocks_agree,
            durability,
            weights,
            ops: Vec::new(),
            moments: 0,
            committed: BTreeMap::new(),
            files: Vec::new(),
            nodes: 100,
            wrong: None,
        };
        tell(|| format!("{n} {mode} {durability}, clocks agree: {clocks_agree}"));
        (0..n).for_each(|replica| world.start(replica, Boot::Fresh));
        world.connect();
        world
    }

    /// Everything that is there is connected again. True if all that must happen then happens in time.
    fn recover(&mut self) -> Result<(), String> {
        self.cut.clear();
        for replica in 0..MOST {
            self.restart(replica);
        }
        for (one, other) in (0..MOST).flat_map(|one| (0..one).map(move |other| (one, other))) {
            self.shake_hands(one, other);
        }
        self.connect();
        (0..2).for_each(|key| self.submit(0, b'u', key));
        let end = self.now.instant.after(Duration::from_secs(100));
        while self.now.instant < end && self.wrong.is_none() {
            self.calm();
            self.connect();
            if !self.users[0].tokens.is_empty() {
                continue;
            }
            let is_whole = self.is_whole();
            if is_whole {
                return Ok(());
            }
        }
        let views = self.places.iter().map(|place| {
            let core = place.replica.as_ref();
            core.map(|it| (it.view(), it.role(), it.commit(), it.configuration().size(), place.learns))
        });
        let views: Vec<_> = views.collect();
        Err(format!("it stands still: {views:?} {:?}", self.users[0].tokens))
    }

    /// Every member of the newest configuration takes part, and has what is committed.
    fn is_whole(&self) -> bool {
        let cores = || self.places.iter().filter_map(|place| place.replica.as_ref());
        let Some(leader) = cores().filter(|it| it.is_leader()).max_by_key(|it| it.view()) else {
            return false;
        };
        let is_there = |at: ReplicaId| {
            let core = self.places[at.index()].replica.as_ref();
            core.is_some_and(|it| {
                it.is_normal() && it.view() == leader.view() && it.commit() == leader.commit()
            })
        };
        leader.configuration().members().all(is_there)
    }

    fn judge(&self) -> Result<(), String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let ops: Vec<Invoked> = self.ops.iter().filter(|op| op.began < u64::MAX).cloned().collect();
        if is_linearizable(&ops, 0, &State::default(), &mut HashSet::new()) {
            return Ok(());
        }
        Err(format!("it is not linearizable: {ops:#?}"))
    }
}

/// The first node of each place.
fn node_of(replica: usize) -> Option<NodeId> {
    Some(node(replica as u64 + 1))
}

fn steps_of(seed: u64) -> Vec<u64> {
    let mut prng = Prng::new(seed ^ 0x5EED);
    (0..100 + prng.below(300)).map(|_| prng.next_u64()).collect()
}

/// What is wrong after these steps, if anything is.
fn run(seed: u64, steps: &[u64], bug: Option<PlantedBug>) -> Result<World, String> {
    let schedule = || {
        let mut world = World::new(seed, bug);
        (0..3).for_each(|user| world.submit(user, b'u', 0));
        (0..40).for_each(|_| world.calm());
        for step in steps {
            world.take_step(*step);
            if world.wrong.is_some() {
                break;
            }
        }
        world.go_on_without(&mut Prng::new(seed));
        let recovered = world.recover();
        // What was lost is said first: a group may stand still for the same reason.
        world.judge().and(recovered).map(|()| world)
    };
    let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(schedule));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default()))
    })
}

/// The steps without those that it fails without.
fn shorter(seed: u64, mut steps: Vec<u64>, bug: Option<PlantedBug>) -> Vec<u64> {
    let mut length = steps.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + length).min(steps.len()));
            if run(seed, &fewer, bug).is_err() {
                steps = fewer;
            } else {
                at += length;
            }
        }
        length /= 2;
    }
    steps
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// The first of so many schedules that fails.
fn first_failure(from: u64, count: u64, bug: Option<PlantedBug>) -> Option<(u64, String)> {
    (from..from + count).find_map(|seed| Some((seed, run(seed, &steps_of(seed), bug).err()?)))
}

/// Fails with the shortest schedule that fails as one of these does.
fn search(from: u64, count: u64, bug: Option<PlantedBug>) {
    if let Some((seed, wrong)) = first_failure(from, count, bug) {
        let steps = shorter(seed, steps_of(seed), bug);
        TELLS.set(true);
        _ = run(seed, &steps, bug);
        panic!("seed {seed}, {} steps: {wrong}", steps.len());
    }
}

#[test]
fn random_schedules() {
    match number("SYROS_SCHEDULE", u64::MAX) {
        u64::MAX => search(number("SYROS_SCHEDULES_FROM", 0), number("SYROS_SCHEDULES", 300), None),
        only => search(only, 1, None),
    }
}

/// How much happens in them.
#[test]
fn schedules_get_somewhere() {
    let (mut ended, mut fast, mut views, mut epochs, mut lost) = (0, 0, 0, 0, 0);
    let count = number("SYROS_SCHEDULES_COUNTED", 60);
    for seed in 0..count {
        let world = run(seed, &steps_of(seed), None).unwrap();
        ended += world.ops.iter().filter(|op| op.ended.is_some()).count();
        fast += world.users.iter().map(|user| user.client.write_counts().fast).sum::<u64>();
        lost += world.places.iter().map(|place| place.life.saturating_sub(1)).sum::<u64>();
        let view = |place: &Place| place.replica.as_ref().map(Replica::view).unwrap_or_default();
        let view = world.places.iter().map(view).max().unwrap();
        views += view.number();
        epochs += view.epoch().0;
    }
    println!(
        "of {count}: {ended} operations ended, {fast} fast; {views} views, {epochs} epochs, {lost} restarts"
    );
    assert!(ended as u64 > 5 * count && fast > count && views > count && epochs > count / 4 && lost > count);
}

/// `SYROS_PLANTED=view-change-before-persist,commit-too-early` looks for these.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_are_found() {
    const USUAL: &str = "commit-too-early,quorum-skips-dlog,recovery-threshold-too-high,old-quorum-skipped,\
        established-early,shrunk-by-those-that-go";
    let names = std::env::var("SYROS_PLANTED").unwrap_or_else(|_| USUAL.into());
    let count = number("SYROS_SCHEDULES", 300);
    std::panic::set_hook(Box::new(|_| {}));
    let missed: Vec<&str> = names
        .split(',')
        .filter(|name| {
            let bug = PlantedBug::ALL.iter().copied().find(|bug| bug.name() == *name);
            let found = first_failure(0, count, Some(bug.expect("there is such a bug")));
            std::eprintln!(
                "{name}: {}",
                found.as_ref().map_or("not found".into(), |(seed, wrong)| {
                    format!("after {} schedules: {}", seed + 1, wrong.lines().next().unwrap_or_default())
                })
            );
            found.is_none()
        })
        .collect();
    _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
