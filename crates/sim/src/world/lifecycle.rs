//! Replicas start, crash, pause and come back, with what they find on their disks.

use super::engines::Opened;
use super::turns::Turns;
use super::{ReplicaSlot, SimEvent, World, offset};
use crate::clock::Clock;
use crate::journal::DiskTrouble;
use crate::process::ReplicaProcess;
use crate::swarm::MILLI;
use crate::tally::Occurrence;
use syros_node::DiskState;
use syros_node::data::boot;
use syros_node::snapshots::SnapshotSizes;
use syros_protocol::message::RoleName;
use syros_protocol::replica::{Boot, Durability};
use syros_types::{ConfigurationEpoch, ReplicaId};

impl World {
    pub(super) fn clock(&mut self, wall_offset: i64) -> Clock {
        let drift = offset(&mut self.dice.clocks, u64::from(self.swarm.clocks.drift_ppm));
        let origin = 1 + self.dice.clocks.below(1 << 40);
        Clock::new(self.now(), origin, drift as i32, wall_offset)
    }

    /// Starts a replica, if it does not run, from what its disk holds.
    pub(crate) fn start_replica(&mut self, replica: usize) {
        if self.replicas[replica].process.is_some() || self.replicas[replica].is_absent {
            return;
        }
        if self.replicas[replica].membership.is_forming() {
            if self.restart_learner(replica) {
                return;
            }
            if self.is_healed {
                self.end_forming(replica);
            }
            return;
        }
        self.boot_replica(replica);
    }

    /// Starts a replica from what its disk holds.
    pub(super) fn boot_replica(&mut self, replica: usize) {
        let config = self.replica_config(replica);
        self.set_settings(replica, &config);
        if std::mem::take(&mut self.replicas[replica].lost_disk) {
            let view = self.invariants.told(ReplicaId(replica as u8));
            self.replicas[replica].disk.replace(&config, view);
        }
        let strike = self.draw_stop(replica, 20);
        let is_new = !self.replicas[replica].disk.is_used();
        let opened = self.open(replica, &config);
        let opened = self.replicas[replica].disk.end_faults(opened);
        let Opened { journal, restored, view, snapshot_store, files, engine } = match opened {
            Ok(opened) => opened,
            // Its operator would have to put back a copy.
            Err(DiskTrouble::Alone) => return,
            Err(trouble) => {
                assert!(strike, "only a planned fault keeps a replica from starting: {trouble:?}");
                return self.stopped_while_starting(replica);
            }
        };
        let id = ReplicaId(replica as u8);
        if config.durability == Durability::Fsync {
            // A node that takes the place of another one has none of its memory; one that the group grows by never had any.
            let grown_by = config.configuration.before.is_some_and(|before| !before.group().has(id));
            let learns = self.replicas[replica].membership.learns;
            let is_later = config.configuration.id.epoch > ConfigurationEpoch::FIRST;
            let comes_in = is_new && is_later && !grown_by && !learns;
            // A learner has never had any, and nobody depends on what it says.
            let is_amnesiac = comes_in || (restored.is_amnesiac() && !learns);
            self.invariants.remembers(id, is_amnesiac, restored.last_normal());
        }
        self.invariants.noted(id, view.view());
        let boot = boot(config.durability, is_new, restored, view.view());
        let settings = &self.swarm.protocol;
        // Where no snapshots are drawn, one is taken all the same when a disk is full.
        let of_full_disks = settings.snapshot_part_bytes == 0;
        let block_bytes = if of_full_disks { 100 } else { settings.snapshot_block_bytes };
        let sizes = SnapshotSizes {
            block_bytes,
            part_bytes: if of_full_disks { 1_000 } else { settings.snapshot_part_bytes },
            // A few blocks: the disk is what takes the time.
            unwritten_max: 2 * block_bytes + 1,
            hurry_bytes: 4 * block_bytes,
            ..SnapshotSizes::SERVER
        };
        if matches!(boot, Boot::Amnesiac { .. }) {
            self.tally.record(Occurrence::MemoryLost);
        }
        let clock = self.clock(self.replicas[replica].wall_offset);
        let now = self.now();
        let mut process = ReplicaProcess::new(
            config,
            boot,
            (journal, view, snapshot_store),
            (files, sizes),
            engine,
            clock,
            now,
        );
        process.maxmemory = self.swarm.maxmemory;
        process.eviction = self.swarm.eviction;
        self.trace.fold(0x5741_5254 + replica as u64);
        self.trace.line(now, format_args!("replica {replica} starts: {}", process.summary()));
        self.invariants.started(ReplicaId(replica as u8), process.core());
        let slot = &mut self.replicas[replica];
        slot.life += 1;
        slot.paused_until = 0;
        slot.turns = Turns::default();
        slot.disk_state = DiskState::Works;
        slot.process = Some(process);
        self.run_replica(replica);
        if !self.replicas[replica].membership.learns {
            self.start_front_ends(replica);
        }
    }

    /// The machine went down while the replica read its log back; it tries again later.
    pub(super) fn stopped_while_starting(&mut self, replica: usize) {
        self.tally.record(Occurrence::StoppedStarting);
        let now = self.now();
        self.trace.line(now, format_args!("replica {replica} crashes while it starts"));
        let slot = &mut self.replicas[replica];
        slot.disk.crash(&mut self.dice.disk);
        slot.disk.stores().crash(&mut self.dice.engine);
        let life = slot.life;
        self.scheduler.schedule(now + MILLI, SimEvent::Restart { replica, life });
    }

    /// Ends a replica process: with `power`, as a power failure does, and what was not synced may be
    /// lost or torn; without, as `kill -9` does.
    pub fn crash(&mut self, replica: usize, power: bool) {
        let now = self.now();
        let slot = &mut self.replicas[replica];
        if slot.process.take().is_none() {
            return;
        }
        slot.promised.end(now);
        if power {
            slot.disk.crash(&mut self.dice.disk);
        }
        // What an engine has not flushed is in the memory of the process.
        slot.disk.stores().crash(&mut self.dice.engine);
        slot.life += 1;
        self.trace.fold(0xc4a5_0000 + replica as u64);
        self.trace.line(now, format_args!("replica {replica} crashes, power {power}"));
        self.end_front_ends(replica);
        for index in 0..self.clients.len() {
            let life = self.clients[index].life;
            let Some(client) = &self.clients[index].process else { continue };
            if let Some(address) = client.connections[replica] {
                let at = now + self.network.delay(replica, self.place_of(self.client_node(index)));
                let broken = SimEvent::Disconnect { slot: index, life, replica, address };
                self.scheduler.schedule(at, broken);
            }
        }
        self.tell_learner_gone(replica);
    }

    /// Starts a crashed replica.
    pub fn restart(&mut self, replica: usize) {
        self.start_replica(replica);
    }

    /// Stops a replica process for a while, as SIGSTOP does: what arrives waits for it.
    pub fn pause(&mut self, replica: usize, duration: u64) {
        let until = self.now() + duration;
        let slot = &mut self.replicas[replica];
        slot.paused_until = slot.paused_until.max(until);
        self.trace.line(self.scheduler.now(), format_args!("replica {replica} stops for {duration} ns"));
    }

    /// Members that are down, have not got their memory back, or are about to lose it because their
    /// disk failed.
    pub(crate) fn without_memory(&self) -> usize {
        let fsync = self.swarm.durability == Durability::Fsync;
        let recovering = |process: &ReplicaProcess| {
            process.core().status().role == RoleName::Recovering || (fsync && !process.journal.remembers())
        };
        let lost = |(replica, slot): &(usize, &ReplicaSlot)| {
            slot.membership.is_contested()
                || self.is_lost_with_disk(*replica)
                || slot.process.as_ref().is_none_or(recovering)
        };
        let present = self.replicas.iter().enumerate().filter(|(_, slot)| !slot.is_absent);
        present.filter(lost).count()
    }
}
