//! The liveness phase: faults end, and the group has to get going again within a bounded time.

use crate::client::ClientProcess;
use crate::history::OperationIndex;
use crate::swarm::{MICRO, MILLI, SECOND};
use crate::tally::Occurrence;
use crate::verdict::Lifetimes;
use crate::workload::ClientCommand;
use crate::world::World;
use syros_protocol::client::Outcome;
use syros_protocol::message::RoleName;
use syros_types::OpNumber;

/// Longest time after the last fault until every client has had its operations done, and again until
/// all replicas are equal; divided by the swarm's speed.
const LIVENESS_BOUND: u64 = 30 * SECOND;

/// A limit of the data's memory, in bytes, that nothing in a world comes near.
const MEMORY_AMPLE: usize = 1 << 40;

/// A client's probe: what it asks for, and whether that is under way.
#[derive(Debug)]
struct Probe {
    slot: usize,
    steps: Vec<Vec<ClientCommand>>,
    under_way: Option<OperationIndex>,
    not_before: u64,
}

impl World {
    /// Ends all faults and repairs everything.
    pub fn heal(&mut self) {
        self.is_healed = true;
        self.healed_at = self.now();
        self.left_to_issue = 0;
        self.network.calm();
        self.swarm.disk.crash_ppm = 0;
        self.swarm.disk.fail_ppm = 0;
        if let Some(engine) = &mut self.swarm.disk_engine {
            engine.refused_percent = 0;
        }
        for slot in 0..self.clients.len() {
            let wall = self.clients[slot].wall_offset.clamp(-50_000, 50_000);
            let place = &mut self.clients[slot];
            place.wall_offset = wall;
            match &mut place.process {
                Some(process) => process.clock.set_wall_offset(wall),
                None => self.start_client(slot),
            }
        }
        self.correct_settings();
        // An operator gives the data more memory.
        self.swarm.maxmemory = self.swarm.maxmemory.map(|_| MEMORY_AMPLE);
        let (n, clocks) = (self.replicas.len(), self.swarm.clocks.clone());
        for replica in 0..n {
            let slot = &mut self.replicas[replica];
            slot.stays_dead = false;
            if !(clocks.stay_wrong && clocks.wrong.is_some_and(|wrong| replica < wrong)) {
                slot.wall_offset = slot.wall_offset.clamp(-50_000, 50_000);
            }
            // What a disk or a worker had done for a process that stood still comes when it was to come.
            self.lingers_until = self.lingers_until.max(slot.paused_until);
            slot.paused_until = 0;
            slot.disk_full_until = 0;
            if let Some(process) = &mut slot.process {
                process.maxmemory = self.swarm.maxmemory;
                process.clock.set_wall_offset(slot.wall_offset);
            }
            self.settle_replacement(replica);
            self.give_up_joining(replica);
            self.start_replica(replica);
            self.disk_returns(replica);
            self.run_replica(replica);
        }
    }

    /// Runs the liveness phase.
    ///
    /// # Errors
    /// What did not happen in time, in words.
    pub fn liveness_phase(&mut self) -> Result<(), String> {
        self.heal();
        self.serve_everybody()?;
        self.serve_waiters()?;
        self.serve_in_order()?;
        self.let_clients_go()?;
        self.users_phase()?;
        self.become_equal()
    }

    /// Waits until no process holds a connection whose client has gone: whatever it still did for it would be lost.
    fn let_clients_go(&mut self) -> Result<(), String> {
        let held = |world: &mut Self| -> usize {
            let processes = world.clients.iter_mut().filter_map(|slot| slot.process.as_mut());
            processes.filter_map(ClientProcess::host).map(|host| host.ending()).sum()
        };
        let (mut deadline, mut last) = (0, usize::MAX);
        loop {
            let held = held(self);
            if held == 0 {
                return Ok(());
            }
            // Where a session may have one completion at a time, one after the other gives up what it has yet to ask for.
            if held < last {
                last = held;
                deadline = self.now() + self.liveness_bound();
            }
            if self.now() >= deadline {
                return Err(format!(
                    "{held} connections are not closed though their clients have gone; {}",
                    self.statuses()
                ));
            }
            self.advance(MILLI / u64::from(self.swarm.protocol.speed))?;
        }
    }

    /// Longest time until every client has been served, and until replicas are equal.
    pub(crate) fn liveness_bound(&self) -> u64 {
        // Who fetches one entry at a time, and is the only one that can lead, gets so many of them in each view that it is to
        // lead.
        let protocol = &self.swarm.protocol;
        let entry_by_entry =
            protocol.replica.transfer_entries_max == 1 || protocol.replica.transfer_bytes_max <= 150;
        let times = if entry_by_entry { 4 } else { 1 };
        // Where one member alone reaches all others, nothing goes on until a view is its to lead: of nine views, one.
        let rounds = if self.replicas.len() > 7 { 2 } else { 1 };
        rounds * times * protocol.slowness() * LIVENESS_BOUND / u64::from(protocol.speed)
    }

    /// Has every client read, update and write, each again until it succeeds.
    ///
    /// # Errors
    /// If that takes too long, in words.
    pub(crate) fn serve_everybody(&mut self) -> Result<(), String> {
        let mut probes: Vec<Probe> = Vec::new();
        for slot in 0..self.clients.len() {
            let key = slot as u64 % self.swarm.workload.keys;
            let mut steps = vec![
                vec![ClientCommand::Get(key)],
                vec![ClientCommand::IncrBy { key, delta: 1, blind: false }],
                vec![ClientCommand::Set(key, format!("{}", 9_000_000 + slot).into_bytes())],
            ];
            steps.extend((slot == 0).then(|| vec![ClientCommand::Set(0, b"9999999".to_vec())]));
            probes.push(Probe { slot, steps, under_way: None, not_before: 0 });
        }
        self.probe(&mut probes)?;
        if self.clients.is_empty() {
            return Ok(());
        }
        let mut last = vec![vec![ClientCommand::MGet((0..self.swarm.workload.keys).collect())]];
        if self.swarm.workload.all_keys_percent > 0 {
            last.extend([vec![ClientCommand::DbSize], vec![ClientCommand::Keys]]);
        }
        last.extend(self.workload.keys_of_shared_part().map(|key| vec![ClientCommand::Get(key)]));
        let collections = self.workload.collection_keys();
        last.extend(
            collections.clone().flat_map(|key| self.workload.reads_of_all(key)).map(|step| vec![step]),
        );
        let of_collections = self.swarm.workload.collections;
        let have_lifetimes = of_collections.is_some_and(|settings| settings.lifetime_percent > 0);
        if self.swarm.workload.expiring_read || have_lifetimes {
            // Long enough for keys with short lives to be gone.
            self.advance(self.late_max() + 200 * MILLI)?;
            if self.swarm.workload.expiring_read {
                last.extend(self.workload.expiring_keys().map(|key| vec![ClientCommand::Get(key)]));
            }
            last.extend(collections.flat_map(|key| self.workload.reads_of_all(key)).map(|step| vec![step]));
        }
        self.probe(&mut [Probe { slot: 0, steps: last, under_way: None, not_before: 0 }])?;
        Ok(())
    }

    /// Waits until all replicas that are not dead for good have the same state.
    ///
    /// # Errors
    /// If that takes too long, in words.
    pub(crate) fn become_equal(&mut self) -> Result<(), String> {
        let speed = u64::from(self.swarm.protocol.speed);
        let deadline = self.now() + self.liveness_bound();
        while let Some(difference) = self.difference() {
            for replica in 0..self.replicas.len() {
                self.give_up_joining(replica);
            }
            if self.now() >= deadline {
                return Err(format!("replicas do not become equal: {difference}"));
            }
            self.advance(10 * MILLI / speed)?;
        }
        Ok(())
    }

    /// How late, by true time, a lifetime may end where most clocks are right and nothing is broken: replicas' and
    /// clients' clocks differ, an update is ordered some time after it is answered, and log time moves on when the
    /// leader looks.
    fn late_max(&self) -> u64 {
        let speed = u64::from(self.swarm.protocol.speed);
        let order = self.swarm.protocol.replica.order_delay.as_nanos() as u64;
        2 * MICRO * self.swarm.clocks.skew_micros + order + SECOND / speed + 20 * MILLI
    }

    /// What can be said of when lifetimes end; `None` if any clock jumps.
    pub(crate) fn lifetimes(&self) -> Option<Lifetimes> {
        self.swarm.clocks.wrong?;
        // A clock that was heard of before a view change is known less well.
        let early_max = self.late_max();
        Some(Lifetimes { early_max, late_max: self.late_max(), healed_at: self.healed_at })
    }

    /// True if too many replicas have lost their disks.
    pub(crate) const fn is_ruined(&self) -> bool {
        self.ruined_after.is_some()
    }

    /// Replicas that have their memory.
    fn with_memory(&self) -> usize {
        let processes = self.replicas.iter().flat_map(|slot| &slot.process);
        processes.filter(|process| process.core().status().role != RoleName::Recovering).count()
    }

    /// Runs the last phase of a group that has been ruined. If so few replicas have their memory that no
    /// majority can be asked, it must refuse to go on, for good: it has done no update since, and when all
    /// leases have ended it answers no read either. What it did answer is judged with the rest.
    ///
    /// # Errors
    /// What it should not have done, in words.
    pub(crate) fn ruined_phase(&mut self) -> Result<(), String> {
        self.heal();
        let speed = u64::from(self.swarm.protocol.speed);
        self.advance(LIVENESS_BOUND / speed / 10)?;
        let probes_after = self.history.operations().len();
        for slot in 0..self.clients.len() {
            let key = slot as u64 % self.swarm.workload.keys;
            self.submit(slot, vec![ClientCommand::Get(key)]);
            self.submit(slot, vec![ClientCommand::Set(key, format!("{}", 9_000_000 + slot).into_bytes())]);
            self.submit(slot, vec![ClientCommand::IncrBy { key, delta: 1, blind: false }]);
        }
        self.advance(LIVENESS_BOUND / speed)?;
        if self.with_memory() >= self.group.majority() {
            // Some had said all they knew before they lost it, to a new leader: nothing is missing.
            self.tally.record(Occurrence::RuinSurvived);
            return self.liveness_phase();
        }
        let ruined_after = self.ruined_after.unwrap_or_default();
        let since = self.history.operations().iter().enumerate().skip(ruined_after);
        for (number, operation) in since {
            let outcome = operation.finished.as_ref().map(|finished| &finished.outcome);
            let answered = matches!(outcome, Some(Outcome::Done | Outcome::Reply(_)));
            let is_read = operation.steps.iter().all(ClientCommand::is_read);
            if answered && (!is_read || number >= probes_after) {
                return Err(format!(
                    "operation {number}, {:?}, ended as {outcome:?} after most disks were lost; {}",
                    operation.steps,
                    self.statuses()
                ));
            }
        }
        Ok(())
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, duration: u64) -> Result<(), String> {
        self.run_until(self.now() + duration);
        self.violation().map_or(Ok(()), Err)
    }

    /// Has every client do its operations, each again until it succeeds.
    fn probe(&mut self, probes: &mut [Probe]) -> Result<(), String> {
        let speed = u64::from(self.swarm.protocol.speed);
        let within = self.liveness_bound() + self.until_disks_have_room();
        let deadline = self.now() + within;
        loop {
            let mut unfinished = None;
            for probe in probes.iter_mut() {
                if let Some(operation) = probe.under_way
                    && self.history.get(operation).is_abandoned
                {
                    // The connection of a Redis client is gone.
                    probe.under_way = None;
                }
                if let Some(operation) = probe.under_way
                    && let Some(finished) = &self.history.get(operation).finished
                {
                    probe.under_way = None;
                    if matches!(finished.outcome, Outcome::Done | Outcome::Reply(_)) {
                        probe.steps.pop();
                    } else {
                        probe.not_before = self.now() + 50 * MILLI / speed;
                    }
                }
                let Some(steps) = probe.steps.last() else { continue };
                unfinished = Some(probe.slot);
                if probe.under_way.is_none() && self.now() >= probe.not_before {
                    probe.under_way = Some(self.submit(probe.slot, steps.clone()));
                }
            }
            let Some(slot) = unfinished else { return Ok(()) };
            if self.now() >= deadline {
                return Err(format!(
                    "client {slot} gets nothing done {} ms after the last fault; {}",
                    within / MILLI,
                    self.statuses(),
                ));
            }
            self.advance(MILLI)?;
        }
    }

    /// How the replicas differ; `None` if all are equal and have nothing left to do.
    fn difference(&self) -> Option<String> {
        let mut states: Vec<(OpNumber, u64)> = Vec::new();
        for (replica, slot) in self.replicas.iter().enumerate() {
            if slot.stays_dead || slot.is_absent || self.waits_for_dead(replica) {
                continue;
            }
            let Some(process) = &slot.process else { return Some(self.statuses()) };
            let status = process.core().status();
            let busy =
                status.dlog_length > 0 || status.applied < status.op_number || !process.core().is_normal();
            if busy || process.core().applied() != process.state().0 {
                return Some(self.statuses());
            }
            states.push(process.state());
        }
        states.windows(2).any(|pair| pair[0] != pair[1]).then(|| self.statuses())
    }

    /// One line on every replica.
    #[must_use]
    pub fn statuses(&self) -> String {
        let mut text = String::new();
        for (index, slot) in self.replicas.iter().enumerate() {
            let part = match &slot.process {
                None if slot.is_absent => continue,
                None => format!("[{index} down] "),
                Some(process) => format!("[{index} {}] ", process.summary()),
            };
            text.push_str(&part);
        }
        text
    }
}
