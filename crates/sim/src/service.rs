//! What is owed to clients when nothing is broken any more: speed, and answers that say what happened.

use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::swarm::{MILLI, SECOND};
use crate::workload::ClientCommand;
use crate::world::World;
use core::time::Duration;
use syros_protocol::client::Outcome;
use syros_protocol::replica::Replica;
use syros_protocol::sessions::COMPLETIONS_MAX;
use syros_types::{FastQuorum, ReplicaId, ReplicaSet, WritePolicy};

/// Longest failover where messages and disks take no time, divided by the swarm's speed.
const FAILOVER_BOUND: u64 = SECOND;

/// About as many bytes of log as a small update takes.
const UPDATE_BYTES: usize = 100;

/// More than the replies take that this phase asks for.
const REPLY_BYTES: usize = 1 << 20;

/// A key that only this client touches, and only now.
const fn private_key(slot: usize, round: u64) -> u64 {
    1_000 + 100 * round + slot as u64
}

impl World {
    /// Judges the service of a group that has been repaired, if the swarm says so: the next update that may be fast takes one round trip,
    /// a failover is over soon, and a burst of updates on one key leaves no client without an answer.
    ///
    /// # Errors
    /// What a client had to wait for, or was told, in words.
    pub(crate) fn judge_service(&mut self) -> Result<(), String> {
        // Clocks that stay wrong are broken. (And with one replica more that is dead, most would not be right.)
        // Redis clients may be slow for reasons of their own.
        let has_front_ends = self.swarm.front_ends.is_some();
        if !self.swarm.service_judged || self.swarm.clocks.stay_wrong || has_front_ends {
            return Ok(());
        }
        // A session table that is full refuses updates.
        if self.swarm.protocol.replica.completions_max < COMPLETIONS_MAX {
            return Ok(());
        }
        let speed = u64::from(self.swarm.protocol.speed);
        // What slow disks and links had begun is over, and so are promises of earlier lives; clients have connected again, and the last of what they measured
        // while things were broken has come in.
        self.advance(self.lingers_until.saturating_sub(self.now()) + 500 * MILLI / speed)?;
        self.finish_operations()?;
        self.await_room()?;
        self.await_active_members()?;
        self.tell_clocks()?;
        self.judge_round_trips()?;
        self.judge_burst()?;
        self.judge_failover()?;
        self.become_equal()
    }

    /// Waits until no client waits for what it asked for while things were broken. By what a client measured then, it may
    /// be a while until it asks again.
    fn finish_operations(&mut self) -> Result<(), String> {
        let deadline = self.now() + self.liveness_bound();
        while !self.history.all_finished() {
            if self.now() >= deadline {
                let open = self.history.open();
                return Err(format!("{open} operations do not end; {}", self.statuses()));
            }
            self.advance(MILLI / u64::from(self.swarm.protocol.speed))?;
        }
        Ok(())
    }

    /// Waits until all replicas take updates again: a disk that has refused an engine's checkpoint counts as full until one has
    /// succeeded, and the next is tried a while later. Then all of them have to forget what they were told of full disks.
    fn await_room(&mut self) -> Result<(), String> {
        let within = self.until_disks_have_room() + self.liveness_bound();
        self.await_each(
            within,
            |core| core.disk_room() != 0,
            "disks have room, and replicas do not know it",
        )?;
        // A leader counts what a follower told it for so long, by a clock that may be a little slow. Until the end of that it
        // tells all followers, which count its word as long.
        let word_counts = self.longest_suspicion() + self.longest_suspicion() / 64 + self.hop();
        let problem = "all disks have room, and replicas take those of a majority for full";
        self.await_each(2 * word_counts, Replica::majority_has_space, problem)
    }

    /// How long replicas may take to notice that their disks have room: one that an engine's flush was refused by counts as full
    /// until a flush has succeeded.
    pub(crate) fn until_disks_have_room(&self) -> u64 {
        // `URGENT` of the replica's `snapshots.rs`, and some time to write.
        const UNTIL_TRIED_AGAIN: u64 = 11 * SECOND;
        let processes = self.replicas.iter().filter_map(|slot| slot.process.as_ref());
        if processes.map(|process| process.core().disk_room()).any(|room| room == 0) {
            UNTIL_TRIED_AGAIN
        } else {
            0
        }
    }

    /// Waits until this is true of all replicas that run.
    fn await_each(
        &mut self,
        within: u64,
        is_true: impl Fn(&Replica) -> bool,
        problem: &str,
    ) -> Result<(), String> {
        let deadline = self.now() + within;
        while !self.replicas.iter().filter_map(|slot| slot.process.as_ref()).all(|it| is_true(it.core())) {
            if self.now() >= deadline {
                return Err(format!("{problem}; {}", self.statuses()));
            }
            self.advance(10 * MILLI / u64::from(self.swarm.protocol.speed))?;
        }
        Ok(())
    }

    /// The longest time that it takes a replica to suspect its leader.
    fn longest_suspicion(&self) -> u64 {
        let processes = self.replicas.iter().filter_map(|slot| slot.process.as_ref());
        let suspected = processes.map(|process| process.core().suspect_after().as_nanos() as u64);
        suspected.max().unwrap_or_default()
    }

    /// Waits until the leader has taken back all members that it had left out, but for those that are still far from it: each
    /// such change takes a view change. A member that has come and gone often has to answer for long before that.
    fn await_active_members(&mut self) -> Result<(), String> {
        // In times that it takes to suspect a leader (`DOUBLINGS_MAX` of the replica's `active.rs`).
        const LONGEST_ABSENCE: u64 = 4 * 64;
        let is_whole = |world: &Self| {
            let Some(leader) = world.leader() else { return false };
            let process = world.replicas[leader].process.as_ref();
            process.is_some_and(|process| {
                process.core().rule().active.and(world.far_members(leader)) == ReplicaSet::of(world.group)
            })
        };
        let deadline = self.now() + LONGEST_ABSENCE * self.longest_suspicion() + self.liveness_bound();
        while !is_whole(self) {
            if self.now() >= deadline {
                return Err(format!("members that have come back are not active; {}", self.statuses()));
            }
            self.advance(10 * MILLI / u64::from(self.swarm.protocol.speed))?;
        }
        // The view has only just begun for some.
        self.become_equal()
    }

    /// Members whose links make them answer this leader later than it takes to commit something: it need not wait for them.
    fn far_members(&self, leader: usize) -> ReplicaSet {
        // Half of what a member may be slower by (`SLOW_BY` of the replica's `active.rs`): one that is out must be clearly faster.
        const LATER: u64 = MILLI;
        let trip = |other: usize| self.network.delay(leader, other) + self.network.delay(other, leader);
        let others = || (0..self.replicas.len()).filter(|other| *other != leader);
        let mut trips: Vec<u64> = others().map(trip).collect();
        trips.sort_unstable();
        let Some(ordered) = self.group.faults().checked_sub(1).map(|last| trips[last]) else {
            return ReplicaSet::default();
        };
        others().filter(|other| trip(*other) > ordered + LATER).map(|other| ReplicaId(other as u8)).collect()
    }

    /// Has every client update something where wall clocks jump: they have been set right, and by the answers to its next
    /// updates a client finds out. Its timestamps were too far ahead until then, so those updates may take longer. The first
    /// may go to the leader alone, whose clock is one of several; the second goes to all.
    fn tell_clocks(&mut self) -> Result<(), String> {
        if self.swarm.nemesis.clock_jump + self.swarm.nemesis.end_sessions == 0 {
            return Ok(());
        }
        for turn in 0..2 * self.clients.len() {
            let slot = turn / 2;
            let operation =
                self.submit(slot, vec![ClientCommand::Set(private_key(slot, 3), b"time".to_vec())]);
            self.await_all(&[(slot, operation)], self.liveness_bound())?;
            self.become_equal()?;
        }
        Ok(())
    }

    /// The shortest and the longest delay of all links.
    fn delays(&self) -> (u64, u64) {
        let nodes = self.replicas.len() + self.clients.len();
        let links = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let delays = || links.clone().map(|(from, to)| self.network.delay(from, to));
        (delays().min().unwrap_or_default(), delays().max().unwrap_or_default())
    }

    /// The longest time a message takes now, with what its receiver needs until it gets round to it.
    fn hop(&self) -> u64 {
        let (_, farthest) = self.delays();
        farthest + self.swarm.network.jitter + self.swarm.service_delay
    }

    /// The longest time from an update's arrival at a replica to its `Ok`: one sync may be under way.
    const fn vouching(&self) -> u64 {
        2 * self.swarm.disk.sync_delay.1
    }

    /// More than engines take to execute what few updates leave them to.
    fn executing(&self) -> u64 {
        let engine = self.swarm.disk_engine.as_ref();
        4 * self.swarm.apply_delay
            + engine.map_or(0, |engine| 100 * (engine.step_delay + engine.report_delay))
    }

    /// Every client's next SET is done by the fast quorum.
    fn judge_round_trips(&mut self) -> Result<(), String> {
        let round_trip = 2 * self.hop() + self.vouching();
        let settings = self.swarm.protocol.clone();
        if round_trip >= settings.sync_after.min(settings.client_resend).as_nanos() as u64 {
            // By its settings, a client asks the leader, or asks again, before the quorum can have answered.
            return Ok(());
        }
        // A client's first update may reach a follower before what shows that the session is the client's, or before the
        // leader's word of the session: the next update is judged where messages are not equally fast, if the session lasts
        // so long.
        let (nearest, farthest) = self.delays();
        let may_be_early = self.swarm.network.jitter > 0 || nearest < farthest;
        if may_be_early && settings.replica.session_timeout.as_nanos() as u64 / 4 <= 2 * round_trip {
            return Ok(());
        }
        for slot in 0..self.clients.len() {
            if self.swarm.workload.write_policy_of(slot) == WritePolicy::Leader {
                continue;
            }
            if may_be_early {
                let shown =
                    self.submit(slot, vec![ClientCommand::Set(private_key(slot, 4), b"shown".to_vec())]);
                self.await_all(&[(slot, shown)], self.liveness_bound())?;
                let shown_at = self.now();
                // A follower that has not read of the session yet refuses its updates.
                self.become_equal()?;
                if self.now() - shown_at >= settings.replica.session_timeout.as_nanos() as u64 / 4 {
                    // The next update begins another session.
                    continue;
                }
            }
            let key = private_key(slot, 0);
            let mut steps = vec![ClientCommand::Set(key, b"7".to_vec())];
            let leader = self.leader().and_then(|leader| self.replicas[leader].process.as_ref());
            if leader.is_some_and(|leader| leader.core().rule().mode == FastQuorum::Mixed) {
                steps.extend([true, false].map(|blind| ClientCommand::IncrBy { key, delta: 1, blind }));
            }
            for step in steps {
                self.judge_round_trip(slot, &step, round_trip)?;
            }
        }
        Ok(())
    }

    /// This update of a client is done by the fast quorum. (For one that needs all active members the leader is asked when
    /// one of them, or the leader's engine, takes much longer than usual: then it takes no longer than two round trips and what
    /// the engine takes.)
    fn judge_round_trip(&mut self, slot: usize, step: &ClientCommand, round_trip: u64) -> Result<(), String> {
        let counts =
            |world: &Self| world.clients[slot].process.as_ref().map(|client| client.core().write_counts());
        let before = counts(self);
        let operation = self.submit(slot, vec![step.clone()]);
        self.await_all(&[(slot, operation)], self.liveness_bound())?;
        let after = counts(self);
        if let (Some(before), Some(after)) = (before, after)
            && after.ordered > before.ordered
            && !self.is_answered_directly(slot, operation, round_trip)
            && (matches!(step, ClientCommand::Set(..))
                || self.took(operation) > Some(2 * round_trip + self.executing()))
        {
            return Err(format!(
                "nothing is broken, and {step:?} of client {slot} takes more than one round trip; {}",
                self.statuses()
            ));
        }
        self.become_equal()
    }

    /// True if a client's own replica can have answered before the fast quorum: where the leader's disk is the slowest,
    /// the logs of a majority of the others commit an update before the leader's `Ok` leaves.
    fn is_answered_directly(&self, slot: usize, operation: OperationIndex, round_trip: u64) -> bool {
        self.own_replica_of(slot).is_some() && self.took(operation).is_some_and(|took| took <= round_trip)
    }

    /// How long an operation took that has ended.
    fn took(&self, operation: OperationIndex) -> Option<u64> {
        let invocation = self.history.get(operation);
        invocation.finished.as_ref().map(|finished| finished.at - invocation.invoked_at)
    }

    /// True if the leader has room for so few updates at a time, or followers fetch so few entries at a time, that, by their
    /// settings, clients give up or sessions end before `updates` of them are committed. (An update that was refused for want of
    /// room keeps no session alive.)
    fn is_too_tight_for(&self, updates: usize) -> bool {
        let settings = &self.swarm.protocol;
        let room = settings.replica.uncommitted_bytes_max.min(settings.replica.unexecuted_bytes_max);
        let rounds = updates.div_ceil((room / UPDATE_BYTES).max(1)) as u64;
        // One that was refused for want of room comes back after a while.
        let backoff = (2 * settings.sync_after).min(settings.client_resend).as_nanos() as u64;
        let round = 2 * self.hop() + self.vouching() + self.swarm.apply_delay + backoff;
        let fetching = 2 * self.hop() * self.fetches_of(updates + self.clients.len());
        let is_refused = rounds > 1;
        let session_ends = if is_refused { settings.replica.session_timeout } else { Duration::MAX };
        let patience = settings.give_up_after.min(session_ends);
        2 * (rounds * round + fetching) >= patience.as_nanos() as u64
    }

    /// How often followers ask the leader for so many entries, beyond the one time that is to be expected. Where messages of one
    /// link overtake each other, a follower misses an entry of a burst, drops those after it, and fetches them all: each part
    /// after the one before it has come.
    fn fetches_of(&self, entries: usize) -> u64 {
        let network = &self.swarm.network;
        if network.in_order || network.jitter == 0 {
            return 0;
        }
        let settings = &self.swarm.protocol.replica;
        let in_bytes = settings.transfer_bytes_max.div_ceil(UPDATE_BYTES) as u64;
        let part = settings.transfer_entries_max.min(in_bytes).max(1);
        (entries as u64).div_ceil(part).saturating_sub(1)
    }

    /// All clients update one key, several times each: every one hears what became of it.
    fn judge_burst(&mut self) -> Result<(), String> {
        if self.is_too_tight_for(2 * self.clients.len() * self.swarm.workload.in_flight) {
            return Ok(());
        }
        let mut asked = Vec::new();
        for slot in 0..self.clients.len() {
            for _ in 0..self.swarm.workload.in_flight {
                let key = private_key(0, 1);
                asked.push((
                    slot,
                    self.submit(slot, vec![ClientCommand::Set(key, asked.len().to_string().into_bytes())]),
                ));
                asked.push((
                    slot,
                    self.submit(slot, vec![ClientCommand::IncrBy { key, delta: 1, blind: false }]),
                ));
            }
        }
        self.await_all(&asked, self.liveness_bound())
    }

    /// The leader ends, and every client is served soon.
    fn judge_failover(&mut self) -> Result<(), String> {
        if self.swarm.protocol.replica.log_keep_bytes != usize::MAX {
            // Logs are trimmed so soon that a follower which is a little behind needs a snapshot before it can lead, and it
            // takes a while to write one: the followers catch up first.
            self.become_equal()?;
        }
        let Some(leader) = self.leader().filter(|_| self.group.faults() > 0) else { return Ok(()) };
        let speed = u64::from(self.swarm.protocol.speed);
        // A client looks around when it has waited for `sync_after`, and some worlds have it wait for long.
        let settings = &self.swarm.protocol;
        let bound = settings.slowness() * FAILOVER_BOUND / speed
            + 3 * settings.sync_after.as_nanos() as u64
            + 3 * settings.client_resend.as_nanos() as u64
            + 20 * self.hop()
            + 10 * self.vouching()
            + self.executing();
        let least = settings.replica.session_timeout.min(2 * settings.give_up_after).as_nanos() as u64;
        if least <= 2 * bound {
            // By its settings, sessions may end or clients give up while nobody leads.
            return Ok(());
        }
        self.crash(leader, false);
        let now = self.now();
        self.trace.line(now, format_args!("judged: a failover from replica {leader}"));
        let mut asked = Vec::new();
        for slot in 0..self.clients.len() {
            let key = private_key(slot, 2);
            asked.push((slot, self.submit(slot, vec![ClientCommand::Set(key, b"1".to_vec())])));
            asked
                .push((slot, self.submit(slot, vec![ClientCommand::IncrBy { key, delta: 1, blind: false }])));
            asked.push((slot, self.submit(slot, vec![ClientCommand::Get(key)])));
        }
        let done = self.await_all(&asked, bound);
        self.start_replica(leader);
        done.map_err(|why| format!("after the leader {leader} has ended, {why}"))
    }

    /// Waits until these operations of clients have ended, each with an answer.
    fn await_all(&mut self, asked: &[(usize, OperationIndex)], within: u64) -> Result<(), String> {
        let deadline: VirtualTime = self.now() + within;
        let speed = u64::from(self.swarm.protocol.speed);
        for (slot, operation) in asked {
            while self.history.get(*operation).finished.is_none() {
                if self.now() >= deadline {
                    let waits = within / MILLI;
                    return Err(format!("client {slot} waits for {waits} ms; {}", self.statuses()));
                }
                self.advance(MILLI / speed)?;
            }
            let invocation = self.history.get(*operation);
            let outcome = invocation.finished.as_ref().map(|finished| &finished.outcome);
            // Where the session table keeps few replies, one may be gone when its client asks again.
            let keeps_replies = self.swarm.protocol.replica.reply_bytes_max >= REPLY_BYTES
                || invocation.steps.iter().all(|step| matches!(step, ClientCommand::Set(..)));
            if keeps_replies && matches!(outcome, Some(Outcome::Unknown)) {
                return Err(format!(
                    "nothing is broken, and operation {operation} of client {slot} ends as unknown; {}",
                    self.statuses()
                ));
            }
        }
        Ok(())
    }
}
