//! The phase of permanent faults: some replicas stay dead, some links stay cut, and clients must be served all the
//! same, because a majority is alive and connected.

use crate::clock::VirtualTime;
use crate::swarm::{MILLI, RemainingLinks};
use crate::tally::Occurrence;
use crate::world::World;
use syros_protocol::message::RoleName;

/// Longest pause between two deaths of a round, divided by the swarm's speed: about two view changes, so that the
/// second death often meets what the first one started.
const DEATHS_APART: u64 = 800 * MILLI;

/// So long a leader remembers who wanted a place, and somewhat longer.
const WISH_KEPT: VirtualTime = 2_100 * MILLI;

impl World {
    /// Runs the phase of permanent faults, if the swarm has one: several rounds, in each of which everything is
    /// repaired, up to `f` replicas die for the round, and links are cut so that a majority stays connected.
    ///
    /// # Errors
    /// What did not happen in time, in words.
    pub(crate) fn endure(&mut self) -> Result<(), String> {
        // Those whose clocks may be wrong are as many as the group can do without.
        let settings = self.swarm.permanent.clone().filter(|_| self.swarm.clocks.wrong.is_none());
        let Some(settings) = settings else { return Ok(()) };
        for round in 0..settings.rounds {
            self.revive();
            if self.swarm.sizes.is_some() {
                // A leader remembers who wanted a place, though his operator has given up: the group may grow by him yet.
                self.advance(WISH_KEPT)?;
            }
            self.settle_size();
            // In later rounds the deaths often come before those who returned have caught up.
            if round > 0 && self.dice.permanent.chance(1, 2) {
                self.await_memory()?;
            }
            if round > 0 && settings.chases {
                // Those who return have asked it by then, and have not got everything.
                let (_, message) = self.swarm.network.delay;
                let pause = self.dice.permanent.below(16 * message + 1);
                self.advance(pause)?;
                self.kill_for_the_round(self.leader());
            }
            let dead = self.dice.permanent.below(settings.dead_max.min(self.group.faults()) as u64 + 1);
            for death in 0..dead {
                if death > 0 && self.dice.permanent.chance(3, 4) {
                    let pause =
                        self.dice.permanent.below(DEATHS_APART / u64::from(self.swarm.protocol.speed));
                    self.advance(pause)?;
                }
                self.kill_for_the_round(None);
            }
            self.settle_size();
            self.cut_for_good(settings.links);
            // While the size changes, majorities of two configurations are needed.
            let may_fill = self.swarm.nemesis.fill_disk > 0 && !self.may_change_size();
            if settings.links == RemainingLinks::All && may_fill {
                self.fill_for_good();
            }
            let now = self.now();
            let statuses = self.statuses();
            self.trace.line(now, format_args!("permanent faults, round {round}: {statuses}"));
            let all = settings.links == RemainingLinks::All;
            let served = self.serve_everybody();
            let done = served.and_then(|()| if all { self.become_equal() } else { Ok(()) });
            done.map_err(|stuck| {
                format!("with permanent faults, round {round}, links left: {:?}: {stuck}", settings.links)
            })?;
        }
        Ok(())
    }

    /// Brings back who died in the round before, and mends everything.
    fn revive(&mut self) {
        self.heal();
    }

    /// Waits until all replicas have their memory.
    fn await_memory(&mut self) -> Result<(), String> {
        let speed = u64::from(self.swarm.protocol.speed);
        let deadline = self.now() + self.liveness_bound();
        while self.without_memory() > 0 {
            if self.now() >= deadline {
                return Err(format!("replicas do not get their memory back: {}", self.statuses()));
            }
            self.advance(10 * MILLI / speed)?;
        }
        Ok(())
    }

    /// Members of the newest configuration whose operators have given up before it was one; and how many it can do without.
    fn missing_members(&self) -> (usize, usize) {
        let processes = self.replicas.iter().filter_map(|slot| slot.process.as_ref());
        let newest =
            processes.map(|process| process.core().newest_configuration()).max_by_key(|known| known.epoch);
        let Some(newest) = newest.filter(|_| self.swarm.sizes.is_some()) else {
            return (0, self.group.faults());
        };
        let group = newest.roster.group();
        let is_missing = |member: &syros_types::ReplicaId| {
            self.replicas.get(member.index()).is_none_or(|slot| slot.is_absent)
        };
        (group.members().filter(is_missing).count(), group.faults())
    }

    /// Replicas that run and have their memory.
    fn able(&self) -> Vec<usize> {
        let remembers = |replica: &usize| {
            let process = self.replicas[*replica].process.as_ref();
            process.is_some_and(|process| process.core().status().role != RoleName::Recovering)
        };
        (0..self.replicas.len()).filter(remembers).collect()
    }

    /// Ends one more replica for the rest of the round, if as many as are needed still have their memory.
    /// Preferably this one.
    fn kill_for_the_round(&mut self, chosen: Option<usize>) {
        let running: Vec<usize> =
            (0..self.replicas.len()).filter(|replica| self.replicas[*replica].process.is_some()).collect();
        let any = running[self.dice.permanent.below(running.len() as u64) as usize];
        let drawn = if self.dice.permanent.chance(2, 3) { self.leader().unwrap_or(any) } else { any };
        let victim = chosen.unwrap_or(drawn);
        let lost = self.without_memory() + usize::from(self.able().contains(&victim));
        let (missing, faults) = self.missing_members();
        if lost + missing > faults.min(self.group.faults()) {
            return;
        }
        let power = self.dice.permanent.chance(1, 2);
        self.crash(victim, power);
        let slot = &mut self.replicas[victim];
        slot.stays_dead = true;
        // What would have started it again is void.
        slot.life += 1;
        self.tally.record(Occurrence::StaysDead);
    }

    /// Fills disks, the leader's more often than not, but for those of a majority.
    fn fill_for_good(&mut self) {
        let mut able = self.able();
        while able.len() > self.group.majority() {
            let any = self.dice.permanent.below(able.len() as u64) as usize;
            let leader = able.iter().position(|replica| Some(*replica) == self.leader());
            let at = leader.filter(|_| self.dice.permanent.chance(2, 3)).unwrap_or(any);
            self.fill_disk(able.swap_remove(at), VirtualTime::MAX);
            self.tally.record(Occurrence::StaysFull);
        }
    }

    /// Cuts links between replicas, but for those of a majority that stays connected.
    fn cut_for_good(&mut self, links: RemainingLinks) {
        if links == RemainingLinks::All || self.may_change_size() || self.missing_members().0 > 0 {
            return;
        }
        let n = self.replicas.len();
        let mut able = self.able();
        if able.len() < self.group.majority() {
            return;
        }
        let mut connected = Vec::new();
        while connected.len() < self.group.majority() {
            connected.push(able.swap_remove(self.dice.permanent.below(able.len() as u64) as usize));
        }
        // Some cuts take both directions, others one.
        let both_ways = self.dice.permanent.chance(1, 2);
        for from in 0..n {
            for to in 0..n {
                let stays = connected.contains(&from)
                    && connected.contains(&to)
                    && (links == RemainingLinks::Majority || from == connected[0] || to == connected[0]);
                if from != to && !stays && (links == RemainingLinks::Star || self.dice.permanent.chance(2, 3))
                {
                    self.network.set_cut(from, to, true);
                    if both_ways {
                        self.network.set_cut(to, from, true);
                    }
                    self.tally.record(Occurrence::StaysCut);
                }
            }
        }
    }
}
