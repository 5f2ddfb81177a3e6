//! The Redis clients whose commands wait for elements.
//!
//! They have connections of their own, so that no other command stands behind one that waits, and dice of their own. While
//! things break they wait for keys that all clients use, with and without a timeout; some go in the middle, and some end what
//! others wait for. What they are told is part of the history. When everything has been repaired, all are given elements until
//! none waits, and in the end those who come to a fresh key one after the other are served in that order.

use super::redis::SocketEvent;
use super::{SimEvent, World};
use crate::asked::Asked;
use crate::client::ClientProcess;
use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::process::ReplicaProcess;
use crate::swarm::{MILLI, SECOND, Swarm};
use crate::tally::Occurrence;
use crate::workload::{ClientCommand, WaitAction, WaitCommand, encode};
use std::collections::{BTreeMap, BTreeSet};
use syros_checker::collections::{CollectionOperation, End, ListOperation, SortedSetOperation};
use syros_commands::families::Turns;
use syros_commands::{Operation, Reply};
use syros_protocol::client::Outcome;
use syros_storage::Engine as _;
use syros_types::{Prng, ReplicaId, ReplicaSet};

/// What waits at a node that has died counts for so long: `LEASE` of the front end's commands that wait.
const LEASE: u64 = 60 * SECOND;

/// Commands that wait in one world, for each of its operations.
const WAITS_PER_OPERATION: u64 = 2;

/// Most clients that come one after the other in the end.
const IN_ORDER_MAX: u64 = 4;

/// Everything about commands that wait in a world.
#[derive(Debug)]
pub(crate) struct Waiting {
    dice: Prng,
    /// Connections of the clients of each process that has any.
    waiters: BTreeMap<usize, Vec<Option<u64>>>,
    /// Which client asked for a command that has not ended.
    places: BTreeMap<OperationIndex, usize>,
    /// Commands that have not been asked for.
    left: u64,
    /// Elements that were given to clients in the end.
    fed: u64,
}

impl Waiting {
    pub(super) fn new(swarm: &Swarm) -> Self {
        Self {
            dice: Prng::new(swarm.seed ^ 0x5397_0a11_5eed_0045),
            waiters: BTreeMap::new(),
            places: BTreeMap::new(),
            left: swarm.workload.operations * WAITS_PER_OPERATION,
            fed: 0,
        }
    }

    /// A process has ended, and with it its connections.
    pub(super) fn end(&mut self, slot: usize) {
        self.waiters.remove(&slot);
    }

    /// The connection of a client is gone. False if it is one of another client.
    pub(super) fn forget(&mut self, slot: usize, address: u64) -> bool {
        let waiters = self.waiters.get_mut(&slot).into_iter().flatten();
        let mut of_this = waiters.filter(|waiter| **waiter == Some(address));
        let found = of_this.next();
        let is_waiter = found.is_some();
        if let Some(waiter) = found {
            *waiter = None;
        }
        is_waiter
    }
}

impl World {
    /// Clients of each front end whose commands wait.
    fn waiters(&self) -> usize {
        self.swarm.front_ends.map_or(0, |world| world.waiters)
    }

    /// A front end has started: clients come whose commands wait.
    pub(super) fn begin_waiting(&mut self, slot: usize) {
        let count = self.waiters();
        if count == 0 {
            return;
        }
        self.waiting.waiters.insert(slot, vec![None; count]);
        (0..count).for_each(|place| self.schedule_wait(slot, place));
    }

    fn schedule_wait(&mut self, slot: usize, place: usize) {
        let speed = u64::from(self.swarm.protocol.speed);
        let pause = if self.waiting.dice.chance(1, 2) { MILLI } else { 30 * MILLI };
        let at = self.now() + 1 + self.waiting.dice.below(pause / speed);
        let life = self.clients[slot].life;
        self.scheduler.schedule(at, SimEvent::Wait { slot, life, place });
    }

    /// A replica has executed so many updates, as far as that is known: the front end in its process looks whether they were
    /// waited for, whether clients keep copies of what they change, and what scripts have published.
    pub(super) fn wake_waiters(&mut self, replica: usize, executed_now: u64) {
        let is_known = self.swarm.disk_engine.is_none();
        let has_waiters = self.waiters() > 0 && !(is_known && executed_now == 0);
        // Time changes keys, too.
        let process = self.replicas[replica].process.as_ref();
        let has_hearers =
            (self.keepers() > 0 || self.converses()) && process.is_some_and(ReplicaProcess::has_untold);
        if !(has_waiters || has_hearers) {
            return;
        }
        let at = self.now();
        for slot in 0..self.clients.len() {
            if self.home_of(slot) == Some(replica) {
                self.poke(self.client_node(slot), at);
            }
        }
    }

    /// Such a client asks for something, or goes.
    pub(super) fn wait(&mut self, slot: usize, life: u64, place: usize) {
        if self.clients[slot].life != life || self.clients[slot].process.is_none() || self.is_healed {
            return;
        }
        if self.waiting.places.iter().any(|(number, of)| {
            *of == place && self.history.get(*number).client == ((slot as u64) << 32 | life)
        }) {
            // It waits: it goes, if it is there still.
            if let Some(address) = self.waiter(slot, place) {
                self.socket_event(slot, life, address, SocketEvent::Closes);
            }
            return;
        }
        if self.waiting.left == 0 || self.left_to_issue == 0 {
            return;
        }
        let Some(address) = self.waiter(slot, place).or_else(|| self.connect_waiter(slot, place)) else {
            return self.schedule_wait(slot, place);
        };
        if self.waiting.dice.chance(1, 8) {
            self.disturb_waiter(slot, (place, address));
        }
        self.waiting.left -= 1;
        let longest = 400 / u64::from(self.swarm.protocol.speed);
        let mut dice = self.waiting.dice.clone();
        let wait = self.workload.wait(&mut dice, longest);
        self.waiting.dice = dice;
        let Some(wait) = wait else { return };
        let databases = self.swarm.front_ends.map_or(1, |world| world.databases);
        let database = self.waiting.dice.below(databases);
        let step = ClientCommand::Wait(wait);
        let step = match syros_types::Database::all().nth(database as usize) {
            Some(database) => step.in_database(database),
            None => step,
        };
        let operation = self.ask_to_wait(slot, address, step);
        self.waiting.places.insert(operation, place);
        if self.waiting.dice.chance(1, 10) {
            self.schedule_wait(slot, place);
        }
    }

    fn waiter(&self, slot: usize, place: usize) -> Option<u64> {
        self.waiting.waiters.get(&slot).and_then(|waiters| *waiters.get(place)?)
    }

    fn connect_waiter(&mut self, slot: usize, place: usize) -> Option<u64> {
        let time = self.now();
        let process = self.clients[slot].process.as_mut()?;
        let now = process.clock.now(time);
        let address = process.host()?.connect_waiter(now);
        if let Some(waiter) = self.waiting.waiters.get_mut(&slot).and_then(|waiters| waiters.get_mut(place)) {
            *waiter = address;
        }
        address
    }

    /// A client sends a command that waits.
    fn ask_to_wait(&mut self, slot: usize, address: u64, step: ClientCommand) -> OperationIndex {
        let (now, life) = (self.now(), self.clients[slot].life);
        let operation = self.history.invoke((slot as u64) << 32 | life, vec![step.clone()], now);
        self.trace.line(now, format_args!("client {slot} {address:x} operation {operation}: {step:?}"));
        let connection = life << 44 | (slot as u64) << 40 | (address >> 32) << 8 | (address & 0xff);
        self.history.on_connection(operation, connection, false);
        let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
        let bytes = host.map(|host| host.ask(address, (operation, Asked::single(step)), (false, false)));
        self.send_in_pieces(slot, address, &bytes.unwrap_or_default());
        operation
    }

    /// A client ends what another one of the same process waits for, or its connection.
    fn disturb_waiter(&mut self, slot: usize, (place, address): (usize, u64)) {
        let others = self.waiting.waiters.get(&slot).map_or(0, Vec::len) as u64;
        let other = self.waiting.dice.below(others.max(1)) as usize;
        let Some(target) = self.waiter(slot, other).filter(|_| other != place) else { return };
        let target = target.to_string().into_bytes();
        let words: &[&[u8]] = match self.waiting.dice.below(3) {
            0 => &[b"CLIENT", b"UNBLOCK", &target],
            1 => &[b"CLIENT", b"UNBLOCK", &target, b"ERROR"],
            _ => &[b"CLIENT", b"KILL", b"ID", &target],
        };
        self.trace.line(self.scheduler.now(), format_args!("client {slot} {address:x} disturbs {other}"));
        let host = self.clients[slot].process.as_mut().and_then(ClientProcess::host);
        let bytes = host.map(|host| host.ask_about(address, words));
        self.send_in_pieces(slot, address, &bytes.unwrap_or_default());
    }

    /// A command that may wait has ended.
    pub(super) fn waited(&mut self, slot: usize, operation: OperationIndex) {
        let outcome = self.history.get(operation).finished.as_ref().map(|finished| &finished.outcome);
        let took = |body: &[u8]| {
            !matches!(
                Reply::decode_all(body).as_deref(),
                Ok([Reply::Nil | Reply::NilArray | Reply::Error(_)])
            )
        };
        if matches!(outcome, Some(Outcome::Reply(body)) if took(body)) {
            self.tally.record(Occurrence::Served);
        } else {
            self.tally.record(Occurrence::WaitedInVain);
        }
        let Some(place) = self.waiting.places.remove(&operation) else { return };
        // The process may be about to end, and may have no such client any more.
        if self.waiting.waiters.contains_key(&slot) {
            self.schedule_wait(slot, place);
        }
    }

    // ---- When everything has been repaired.

    /// Gives all who wait elements until none does.
    ///
    /// # Errors
    /// Who waits for a key that has elements.
    pub(crate) fn serve_waiters(&mut self) -> Result<(), String> {
        if self.waiters() == 0 {
            return Ok(());
        }
        let bound = self.liveness_bound() + LEASE;
        let mut in_vain_since: BTreeMap<OperationIndex, VirtualTime> = BTreeMap::new();
        let mut feeding: BTreeMap<OperationIndex, OperationIndex> = BTreeMap::new();
        loop {
            let waiting: Vec<(OperationIndex, WaitCommand)> =
                self.history.waiting().map(|(number, wait)| (number, wait.clone())).collect();
            if waiting.is_empty() {
                return self.nobody_stands();
            }
            for (number, wait) in waiting {
                let length = wait.keys.iter().map(|key| self.length_of(&wait, *key).unwrap_or(0)).max();
                if length.is_some_and(|length| length > 0) {
                    let since = *in_vain_since.entry(number).or_insert(self.now());
                    if self.now() > since + bound {
                        return Err(format!(
                            "operation {number}, {wait:?}, waits though there have been elements for {} ms; {}",
                            (self.now() - since) / MILLI,
                            self.statuses()
                        ));
                    }
                    continue;
                }
                in_vain_since.remove(&number);
                let is_under_way = feeding.get(&number).is_some_and(|feed| {
                    let feed = self.history.get(*feed);
                    feed.finished.is_none() && !feed.is_abandoned
                });
                if !is_under_way {
                    let feed = self.feed(&wait);
                    feeding.insert(number, feed);
                }
            }
            self.advance(5 * MILLI / u64::from(self.swarm.protocol.speed))?;
        }
    }

    /// Some client adds an element to a key that is waited for, or removes what else the key holds.
    fn feed(&mut self, wait: &WaitCommand) -> OperationIndex {
        self.waiting.fed += 1;
        let step = if self.length_of(wait, wait.keys[0]).is_none() {
            ClientCommand::Del { key: wait.keys[0], blind: false }
        } else {
            let operation = wait.feeding(self.waiting.fed);
            ClientCommand::Collection { key: wait.keys[0], operation, blind: false }
        };
        let slot = self.waiting.dice.below(self.clients.len() as u64) as usize;
        self.submit(slot, vec![step])
    }

    /// How many elements a key has that is waited for, when all that has been committed is executed; `None` if it holds a value
    /// of another type.
    fn length_of(&self, wait: &WaitCommand, key: u64) -> Option<i64> {
        let operation = if wait.is_of_lists() {
            CollectionOperation::List(ListOperation::Length)
        } else {
            CollectionOperation::SortedSet(SortedSetOperation::Length)
        };
        let body = encode(&[ClientCommand::Collection { key, operation, blind: false }]);
        match self.look_at_state(&body)? {
            Reply::Integer(length) => Some(length),
            _ => None,
        }
    }

    /// The reply to a read, when all that has been committed is executed.
    pub(super) fn look_at_state(&self, body: &[u8]) -> Option<Reply> {
        let mut reply = Vec::new();
        self.invariants.state()?.read(self.invariants.last_log_time(), body, &mut reply);
        Reply::decode_all(&reply).ok()?.pop()
    }

    /// Waits until nobody stands in a queue who waits no more, and whose process lives.
    ///
    /// # Errors
    /// If somebody does for long.
    fn nobody_stands(&mut self) -> Result<(), String> {
        let deadline = self.now() + self.liveness_bound();
        while let Some(standing) = self.standing() {
            if self.now() > deadline {
                return Err(format!("{standing}; {}", self.statuses()));
            }
            self.advance(10 * MILLI / u64::from(self.swarm.protocol.speed))?;
        }
        Ok(())
    }

    /// Who stands in a queue, in words, of all whose processes live.
    fn standing(&mut self) -> Option<String> {
        let hosts = self.clients.iter_mut().flat_map(|client| &mut client.process);
        let owners: BTreeSet<u64> =
            hosts.filter_map(|process| process.host().map(|host| host.owner_of_waits())).collect();
        let mut keys = BTreeSet::new();
        let steps = self.history.operations().iter().flat_map(|operation| &operation.steps);
        for step in steps.filter(|step| step.waits()) {
            let ClientCommand::Wait(wait) = step else { continue };
            keys.extend(wait.keys.iter().map(|key| (*key, wait.is_of_lists())));
        }
        for owner in owners {
            for (key, is_list) in &keys {
                let name = crate::workload::key_name(*key);
                let turns = Turns { owner, absent: 0, is_list: *is_list, key: &name };
                let database = ClientCommand::Get(*key).database();
                let mut body = Vec::new();
                Operation::new(turns).in_database(database).encode(&mut body);
                if let Some(Reply::Array(numbers)) = self.look_at_state(&body)
                    && !matches!(numbers.first(), Some(Reply::Integer(0)))
                {
                    return Some(format!(
                        "{numbers:?} of {owner:x} stand in the queue of k{key}, and nobody waits"
                    ));
                }
            }
        }
        None
    }

    /// Some clients, at any front end, come to a key that nobody has used, one after the other; then elements come one after the
    /// other.
    ///
    /// # Errors
    /// If they are not served in their order, and at once.
    pub(crate) fn serve_in_order(&mut self) -> Result<(), String> {
        if self.waiters() == 0 {
            return Ok(());
        }
        // Who waits at a front end that others do not reach yet loses his place, as if it were gone.
        let deadline = self.now() + self.liveness_bound();
        while let Some(slot) = self.front_end_that_misses_members() {
            if self.now() > deadline {
                return Err(format!(
                    "the front end of client {slot} does not reach all members; {}",
                    self.statuses()
                ));
            }
            self.advance(MILLI)?;
        }
        let key = self.workload.collection_keys().end;
        let slots: Vec<usize> = self.waiting.waiters.keys().copied().collect();
        let wait = WaitCommand { keys: vec![key], action: WaitAction::Pop(End::Left), millis: 0 };
        let mut operations = Vec::new();
        for _ in 0..2 + self.waiting.dice.below(IN_ORDER_MAX - 1) {
            let slot = slots[self.waiting.dice.below(slots.len() as u64) as usize];
            let place = self.waiting.waiters.get(&slot).map_or(0, Vec::len);
            self.waiting.waiters.entry(slot).or_default().push(None);
            let Some(address) = self.connect_waiter(slot, place) else { return Ok(()) };
            let operation = self.ask_to_wait(slot, address, ClientCommand::Wait(wait.clone()));
            if !self.stands(operation)? {
                return Ok(());
            }
            operations.push(operation);
        }
        let bound = self.liveness_bound();
        for number in 0..operations.len() {
            let feed = self.feed(&wait);
            let deadline = self.now() + bound;
            while self.history.get(feed).finished.is_none() && !self.history.get(feed).is_abandoned {
                if self.now() > deadline {
                    return Err(format!("operation {feed} does not end; {}", self.statuses()));
                }
                self.advance(MILLI)?;
            }
            let outcome = self.history.get(feed).finished.as_ref().map(|finished| finished.outcome.clone());
            if !matches!(outcome, Some(Outcome::Reply(_))) {
                // Whether there is an element is not known.
                return Ok(());
            }
            while operations[number..].iter().all(|it| self.is_waiting(*it)) {
                if self.now() > deadline {
                    return Err(format!("nobody takes the element of operation {feed}; {}", self.statuses()));
                }
                self.advance(MILLI)?;
            }
            let has_answer = |operation: &OperationIndex| {
                let operation = self.history.get(*operation);
                operation.finished.as_ref().is_none_or(|it| matches!(it.outcome, Outcome::Reply(_)))
            };
            if !operations[number..].iter().all(has_answer) {
                // Whether it has taken the element is not known. In some worlds the table of completions is always full.
                return Ok(());
            }
            if self.is_waiting(operations[number]) {
                let before = operations[number];
                return Err(format!(
                    "operation {before} came first, and is not served first: {operations:?}"
                ));
            }
        }
        Ok(())
    }

    /// A front end that does not reach all members. It need not take them for lost yet, and a member may need long to catch up.
    fn front_end_that_misses_members(&mut self) -> Option<usize> {
        // A front end may not have heard yet of those by which the group has shrunk.
        let members = self.replicas.iter().enumerate().filter(|(_, slot)| !slot.is_absent);
        let members: ReplicaSet = members.map(|(replica, _)| ReplicaId(replica as u8)).collect();
        let hosts = self.clients.iter_mut().map(|slot| slot.process.as_mut().and_then(ClientProcess::host));
        hosts.enumerate().find_map(|(slot, host)| host?.misses(members).then_some(slot))
    }

    /// Lets time pass until a command stands in its queue. False if it ends instead.
    fn stands(&mut self, operation: OperationIndex) -> Result<bool, String> {
        let deadline = self.now() + self.liveness_bound();
        while self.is_waiting(operation) {
            let id = self.history.get(operation).id;
            let answer = id.and_then(|id| self.invariants.answer(id));
            if answer.is_some_and(syros_commands::is_waits) {
                return Ok(true);
            }
            if self.now() > deadline {
                return Err(format!("operation {operation} is not put into a queue; {}", self.statuses()));
            }
            self.advance(MILLI)?;
        }
        Ok(false)
    }

    fn is_waiting(&self, operation: OperationIndex) -> bool {
        let operation = self.history.get(operation);
        operation.finished.is_none() && !operation.is_abandoned
    }
}
