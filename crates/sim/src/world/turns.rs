//! Replicas that take time for what they do: one thread each, which works in turns as a node's event loop does, on a core of
//! its own or on one of those that they share.
//!
//! A turn takes all that has arrived, which takes time; then the core runs, and what it sends leaves, one receiver
//! after the other, when that has taken its time too. What arrives meanwhile waits for the next turn.

use super::{InFlight, SimEvent, World};
use crate::clock::VirtualTime;
use crate::network::NodeIndex;
use crate::process::entries;
use crate::swarm::MILLI;
use core::mem::take;
use core::time::Duration;
use std::collections::BTreeSet;
use syros_protocol::message::{Message, Peer};
use syros_protocol::replica::Event;
use syros_types::ReplicaId;

/// Most messages that wait for a replica. Clients ask for one thing at a time, so far fewer do.
const WAITING_MAX: usize = 100_000;

/// A message that has arrived.
#[derive(Debug)]
struct Arrival {
    from: NodeIndex,
    /// Address of the client, if it is one.
    address: u64,
    message: Message,
}

/// A message that a core wants to send.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) to: NodeIndex,
    /// Requests and entries of the log in it.
    pub(super) entries: u64,
    /// It is the answer to a read.
    pub(super) answers_read: bool,
    pub(super) in_flight: InFlight,
}

/// What a replica is busy with.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Arrived, and not taken yet.
    waiting: Vec<Arrival>,
    /// Taken in the turn that goes on.
    taken: Vec<Arrival>,
    /// A turn goes on, or is about to begin.
    is_planned: bool,
    busy_until: VirtualTime,
    /// Until then the storage fetches what has been read.
    storage_until: VirtualTime,
    /// In all, so far.
    busy: Duration,
    /// It waits for a core since then.
    waits_since: Option<VirtualTime>,
    /// For so long in all.
    waited: Duration,
    /// When the replica was last told how busy it is, and how long it had worked and waited by then.
    told: (VirtualTime, Duration),
}

/// How often a replica is told how busy it is.
const LOAD_INTERVAL: u64 = 20 * MILLI;

impl Turns {
    /// Until then it does nothing new.
    pub(super) const fn busy_until(&self) -> VirtualTime {
        self.busy_until
    }

    /// It is busy for so long from `now` on.
    fn work(&mut self, now: VirtualTime, time: Duration) {
        self.busy += time;
        self.busy_until = self.busy_until.max(now) + time.as_nanos() as u64;
    }

    /// The share of the time since the last one in which it has worked or waited for a core, in thousandths, if it is time to
    /// tell.
    fn load(&mut self, now: VirtualTime) -> Option<u32> {
        let (at, before) = self.told;
        let used = self.busy + self.waited;
        if now < at + LOAD_INTERVAL {
            return None;
        }
        self.told = (now, used);
        let share = (used - before).as_nanos() * 1_000 / u128::from(now - at);
        Some(share.min(1_000) as u32)
    }

    /// When the storage has fetched something that is asked for at `at`, which takes it so long.
    fn fetch(&mut self, at: VirtualTime, time: Duration) -> VirtualTime {
        if time.is_zero() {
            return at;
        }
        self.storage_until = self.storage_until.max(at) + time.as_nanos() as u64;
        self.storage_until
    }
}

impl World {
    /// How long each replica has been busy so far.
    pub(crate) fn busy(&self) -> Vec<Duration> {
        self.replicas.iter().map(|slot| slot.turns.busy).collect()
    }

    /// A message waits for the replica to take it.
    pub(super) fn await_turn(&mut self, from: NodeIndex, to: usize, address: u64, message: Message) {
        let slot = &mut self.replicas[to];
        if slot.process.is_none() {
            return;
        }
        assert!(slot.turns.waiting.len() < WAITING_MAX, "clients wait for answers before they ask for more");
        slot.turns.waiting.push(Arrival { from, address, message });
        self.plan_turn(to);
    }

    /// Has the replica take what has arrived as soon as it can.
    fn plan_turn(&mut self, replica: usize) {
        let slot = &mut self.replicas[replica];
        if !slot.turns.is_planned && !slot.turns.waiting.is_empty() {
            slot.turns.is_planned = true;
            let at = slot.turns.busy_until.max(slot.paused_until);
            let life = slot.life;
            self.scheduler.schedule(at, SimEvent::BeginTurn { replica, life });
        }
    }

    pub(super) fn begin_turn(&mut self, replica: usize, life: u64) {
        let now = self.now();
        let cost = self.cost;
        let slot = &mut self.replicas[replica];
        if slot.life != life {
            return;
        }
        if slot.turns.busy_until.max(slot.paused_until) > now {
            // Something else, such as a timer, came first.
            slot.turns.is_planned = false;
            return self.plan_turn(replica);
        }
        let turns = &mut slot.turns;
        // Strictly after the turn that has the core: that one knows only then how long it takes.
        if let Some(until) = self.cores.iter().copied().min().filter(|until| *until > now) {
            turns.waits_since.get_or_insert(now);
            return self.scheduler.schedule(until + 1, SimEvent::BeginTurn { replica, life });
        }
        let waited = turns.waits_since.take().map_or(0, |since| now - since);
        turns.waited += Duration::from_nanos(waited);
        turns.taken = take(&mut turns.waiting);
        let senders: BTreeSet<NodeIndex> = turns.taken.iter().map(|waiting| waiting.from).collect();
        let entries = turns.taken.iter().map(|waiting| entries(&waiting.message)).sum();
        turns.work(now, cost.messages(cost.receive, senders.len(), entries));
        let at = turns.busy_until;
        let core = (0..self.cores.len()).min_by_key(|core| self.cores[*core]);
        if let Some(core) = core {
            self.cores[core] = at;
        }
        self.scheduler.schedule(at, SimEvent::EndTurn { replica, life, core });
    }

    pub(super) fn end_turn(&mut self, replica: usize, life: u64, core: Option<usize>) {
        let (n, now) = (self.replicas.len(), self.now());
        let slot = &mut self.replicas[replica];
        if slot.life != life {
            return;
        }
        slot.turns.is_planned = false;
        let Some(process) = &mut slot.process else { return };
        process.inbox.extend(take(&mut slot.turns.taken).into_iter().map(
            |Arrival { from, address, message }| {
                let from =
                    if from < n { Peer::Replica(ReplicaId(from as u8)) } else { Peer::Client(address) };
                Event::Message { from, message }
            },
        ));
        process.inbox.extend(slot.turns.load(now).map(Event::Load));
        self.run_replica(replica);
        if let Some(core) = core {
            self.cores[core] = self.cores[core].max(self.replicas[replica].turns.busy_until);
        }
        self.plan_turn(replica);
    }

    /// What a core that has just run wants to send leaves, when what it has executed has been executed.
    pub(super) fn depart(&mut self, replica: usize, executed: u64, departures: Vec<Departure>) {
        let now = self.now();
        let cost = self.cost;
        if cost.is_none() {
            for Departure { to, in_flight, .. } in departures {
                self.transmit(replica, to, now, in_flight);
            }
            return;
        }
        let n = self.replicas.len();
        let reads = departures.iter().filter(|departure| departure.answers_read).count() as u64;
        let times = u32::try_from(executed + reads).unwrap_or(u32::MAX);
        self.replicas[replica].turns.work(now, cost.execute.saturating_mul(times));
        let mut left = departures;
        while let Some(first) = left.first() {
            let receiver = first.to;
            let (together, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|departure| departure.to == receiver);
            left = others;
            // What goes to a client has been counted when it came from it.
            let is_replica = receiver < n;
            let entries = together.iter().filter(|_| is_replica).map(|departure| departure.entries).sum();
            let turns = &mut self.replicas[replica].turns;
            turns.work(now, cost.messages(cost.send, 1, entries));
            let at = turns.busy_until;
            for departure in together {
                let at = if departure.answers_read {
                    self.replicas[replica].turns.fetch(at, cost.fetch)
                } else {
                    at
                };
                self.transmit(replica, receiver, at, departure.in_flight);
            }
        }
    }
}
