//! What is owed to clients when nothing is broken any more: speed, and answers that say what happened.

use crate::clock::VirtualTime;
use crate::history::OperationIndex;
use crate::swarm::{MILLI, SECOND};
use crate::workload::Step;
use crate::world::World;
use syros_protocol::client::Outcome;
use syros_types::WritePolicy;

/// Longest failover where messages and disks take no time, divided by the swarm's speed.
const FAILOVER_BOUND: u64 = SECOND;

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
        if !self.swarm.service_judged || self.swarm.clocks.stay_wrong {
            return Ok(());
        }
        let speed = u64::from(self.swarm.protocol.speed);
        // Clients have connected again, and the last of what they measured while things were broken has come in.
        self.advance(500 * MILLI / speed)?;
        self.judge_round_trips()?;
        self.judge_burst()?;
        self.judge_failover()?;
        self.become_equal()
    }

    /// The longest time a message takes now, with what its receiver needs until it gets round to it.
    fn hop(&self) -> u64 {
        let nodes = self.replicas.len() + self.clients.len();
        let links = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let farthest = links.map(|(from, to)| self.network.delay(from, to)).max().unwrap_or_default();
        farthest + self.swarm.network.jitter + self.swarm.service_delay
    }

    /// The longest time from an update's arrival at a replica to its `Ok`: one sync may be under way.
    const fn vouching(&self) -> u64 {
        2 * self.swarm.disk.sync_delay.1
    }

    /// Every client's next SET is done by the fast quorum.
    fn judge_round_trips(&mut self) -> Result<(), String> {
        let round_trip = 2 * self.hop() + self.vouching();
        if round_trip >= self.swarm.protocol.sync_after.as_nanos() as u64 {
            // By its settings, a client asks the leader before the quorum can have answered.
            return Ok(());
        }
        for slot in 0..self.clients.len() {
            if self.swarm.workload.write_policy_of(slot) == WritePolicy::Leader {
                continue;
            }
            let counts =
                |world: &Self| world.clients[slot].process.as_ref().map(|client| client.core.write_counts());
            let before = counts(self);
            let operation = self.submit(slot, vec![Step::Set(private_key(slot, 0), b"next".to_vec())]);
            self.await_all(&[(slot, operation)], self.liveness_bound())?;
            let after = counts(self);
            if let (Some(before), Some(after)) = (before, after)
                && after.ordered > before.ordered
            {
                return Err(format!(
                    "nothing is broken, and an update of client {slot} takes more than one round trip; {}",
                    self.statuses()
                ));
            }
            self.become_equal()?;
        }
        Ok(())
    }

    /// All clients update one key, several times each: every one hears what became of it.
    fn judge_burst(&mut self) -> Result<(), String> {
        let mut asked = Vec::new();
        for slot in 0..self.clients.len() {
            for _ in 0..self.swarm.workload.in_flight {
                let key = private_key(0, 1);
                asked.push((
                    slot,
                    self.submit(slot, vec![Step::Set(key, asked.len().to_string().into_bytes())]),
                ));
                asked.push((slot, self.submit(slot, vec![Step::IncrBy { key, delta: 1, blind: false }])));
            }
        }
        self.await_all(&asked, self.liveness_bound())
    }

    /// The leader ends, and every client is served soon.
    fn judge_failover(&mut self) -> Result<(), String> {
        let Some(leader) = self.leader().filter(|_| self.group.faults() > 0) else { return Ok(()) };
        let speed = u64::from(self.swarm.protocol.speed);
        // A client looks around when it has waited for `sync_after`, and some worlds have it wait for long.
        let settings = &self.swarm.protocol;
        let bound = FAILOVER_BOUND / speed
            + 3 * settings.sync_after.as_nanos() as u64
            + 3 * settings.client_resend.as_nanos() as u64
            + 20 * self.hop()
            + 10 * self.vouching()
            + 4 * self.swarm.apply_delay
            + self
                .swarm
                .disk_engine
                .as_ref()
                .map_or(0, |engine| 100 * (engine.step_delay + engine.report_delay));
        let least = settings.session_timeout.min(2 * settings.give_up_after).as_nanos() as u64;
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
            asked.push((slot, self.submit(slot, vec![Step::Set(key, b"1".to_vec())])));
            asked.push((slot, self.submit(slot, vec![Step::IncrBy { key, delta: 1, blind: false }])));
            asked.push((slot, self.submit(slot, vec![Step::Get(key)])));
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
            let outcome = self.history.get(*operation).finished.as_ref().map(|finished| &finished.outcome);
            if matches!(outcome, Some(Outcome::Unknown)) {
                return Err(format!(
                    "nothing is broken, and operation {operation} of client {slot} ends as unknown; {}",
                    self.statuses()
                ));
            }
        }
        Ok(())
    }
}
