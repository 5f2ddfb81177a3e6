//! What disks do in virtual time: syncs, steps of snapshots, and their failures.

use super::{SimEvent, World};
use crate::journal::{DiskFault, DiskTrouble};
use crate::process::ReplicaProcess;
use crate::swarm::MILLI;
use crate::tally::Occurrence;
use syros_node::DiskState;
use syros_protocol::record::Ticket;
use syros_protocol::replica;
use syros_types::{Prng, ReplicaId};

impl World {
    /// Perhaps plans a stop of the machine at one of its next disk operations, `times` as likely as the
    /// swarm says for one operation. True if it did.
    pub(super) fn draw_stop(&mut self, replica: usize, times: u64) -> bool {
        let ppm = self.swarm.disk.crash_ppm * times;
        if ppm == 0 || !self.dice.disk.chance(ppm, 1_000_000) || !self.may_crash() {
            return false;
        }
        // The first operation most of the time; a new segment takes several.
        let after = if self.dice.disk.chance(3, 4) { 0 } else { self.dice.disk.below(8) };
        self.replicas[replica].disk.plan(DiskFault::Stop(after));
        true
    }

    /// Perhaps plans that the disk refuses the next write or sync.
    pub(super) fn draw_failure(&mut self, replica: usize, fault: impl Fn(&mut Prng) -> DiskFault) {
        let ppm = self.swarm.disk.fail_ppm;
        if ppm == 0 || !self.dice.disk.chance(ppm, 1_000_000) {
            return;
        }
        let fault = if self.may_crash() {
            fault(&mut self.dice.disk)
        } else if self.outlives_log(replica) {
            // After any other failure the replica would lose its memory.
            DiskFault::Append(self.dice.disk.below(200) as usize)
        } else {
            return;
        };
        self.replicas[replica].disk.plan(fault);
    }

    /// A disk operation of the replica's process did not succeed; `occurrence` is what that counts as if the
    /// machine is still up.
    pub(super) fn in_trouble(&mut self, replica: usize, trouble: DiskTrouble, occurrence: Occurrence) {
        match trouble {
            DiskTrouble::Stopped => {
                self.tally.record(Occurrence::DiskStopped);
                self.crash_for_a_while(replica, true);
            }
            DiskTrouble::Failed(state) => self.fail_disk(replica, state, occurrence),
            DiskTrouble::Alone => self.fail_disk(replica, DiskState::Failed, occurrence),
        }
    }

    fn fail_disk(&mut self, replica: usize, state: DiskState, occurrence: Occurrence) {
        self.tally.record(occurrence);
        let now = self.now();
        self.trace.line(now, format_args!("the disk of replica {replica} fails"));
        let slot = &mut self.replicas[replica];
        slot.disk_state = state;
        let life = slot.life;
        let at = now + self.fault_duration();
        self.scheduler.schedule(at, SimEvent::Replace { replica, life });
        self.tell(replica, life, replica::Event::PersistFailed);
    }

    /// The data directories of some replicas, or of all, are away for a while. False if there is none that has not failed.
    pub(crate) fn lose_directories(&mut self) -> bool {
        let all = self.dice.nemesis.chance(1, 2);
        let mut has_lost = false;
        for replica in 0..self.replicas.len() {
            let is_hit = (all || self.dice.nemesis.chance(2, 3)) && self.outlives_log(replica);
            if is_hit && self.replicas[replica].disk_state == DiskState::Works {
                has_lost = true;
                self.fail_disk(replica, DiskState::Missing, Occurrence::DirectoryMissing);
            }
        }
        has_lost
    }

    /// True if it is sure that the process of a replica keeps its memory when its disk refuses a write and then takes writes
    /// again. An engine on disk may fail meanwhile.
    pub(crate) fn outlives_log(&self, replica: usize) -> bool {
        let is_sure = |process: &ReplicaProcess| process.outlives_log() && !process.has_engine_on_disk();
        self.replicas[replica].process.as_ref().is_some_and(is_sure)
    }

    /// True if a replica is about to lose its memory because its disk has failed.
    pub(crate) fn is_lost_with_disk(&self, replica: usize) -> bool {
        let state = self.replicas[replica].disk_state;
        state != DiskState::Works && !(state.may_return() && self.outlives_log(replica))
    }

    /// The disk of a replica that has failed takes writes again, or is replaced.
    pub(crate) fn disk_returns(&mut self, replica: usize) {
        let (now, slot) = (self.now(), &self.replicas[replica]);
        if slot.disk_state == DiskState::Works {
            return;
        }
        let goes_on =
            slot.disk_state.may_return() && slot.process.as_ref().is_some_and(ReplicaProcess::outlives_log);
        if !goes_on {
            self.crash(replica, false);
            return self.start_replica(replica);
        }
        if slot.paused_until > now {
            let (life, at) = (slot.life, slot.paused_until);
            return self.scheduler.schedule(at, SimEvent::Replace { replica, life });
        }
        self.draw_stop(replica, 1);
        self.draw_failure(replica, |prng| DiskFault::Write(prng.below(200) as usize));
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let reopened = process.reopen_log(&slot.disk, now);
        match slot.disk.end_faults(reopened) {
            Ok(()) => {
                slot.disk_state = DiskState::Works;
                self.trace.line(now, format_args!("replica {replica} opens its log again"));
                self.tally.record(Occurrence::LogReopened);
                self.run_replica(replica);
            }
            Err(trouble) => self.in_trouble(replica, trouble, Occurrence::WriteFailed),
        }
    }

    /// Writes what the process wants on disk, unless a sync is under way.
    pub(super) fn begin_sync(&mut self, replica: usize) {
        let slot = &self.replicas[replica];
        if !slot.process.as_ref().is_some_and(|process| process.journal.wants_sync()) {
            return;
        }
        self.draw_stop(replica, 1);
        self.draw_failure(replica, |prng| DiskFault::Write(prng.below(200) as usize));
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let written = process.journal.write();
        match slot.disk.end_faults(written) {
            Ok(ticket) => {
                let (life, log) = (slot.life, process.journal.reopened);
                let (shortest, longest) = self.swarm.disk.sync_delay;
                let mut at = self.now() + shortest + self.dice.disk.below(longest - shortest + 1);
                let (delay, until) = self.replicas[replica].slow_disk;
                if !self.is_healed && self.now() < until {
                    at += delay;
                    self.lingers_until = self.lingers_until.max(at);
                }
                self.scheduler.schedule(at, SimEvent::Synced { replica, life, log, ticket });
            }
            Err(trouble) => self.in_trouble(replica, trouble, Occurrence::WriteFailed),
        }
    }

    /// Lets a replica's work on snapshots go on after a while.
    pub(super) fn plan_snapshot_step(&mut self, replica: usize) {
        let (_, longest) = self.swarm.disk.sync_delay;
        let mut at = self.now() + 1 + self.dice.snapshots.below(longest + MILLI / 10);
        if self.replicas[replica].process.as_ref().is_some_and(ReplicaProcess::loads_next) {
            at += self.dice.snapshots.below(self.swarm.load_delay + 1);
        }
        let life = self.replicas[replica].life;
        self.scheduler.schedule(at, SimEvent::StepSnapshots { replica, life });
    }

    pub(super) fn step_snapshots(&mut self, replica: usize, life: u64) {
        if self.replicas[replica].life != life {
            return;
        }
        let resumes_at = self.replicas[replica].paused_until;
        if resumes_at > self.now() {
            return self.scheduler.schedule(resumes_at, SimEvent::StepSnapshots { replica, life });
        }
        self.draw_stop(replica, 1);
        self.draw_failure(replica, |prng| DiskFault::Write(prng.below(200) as usize));
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let has_report = process.step_snapshots();
        let again = process.wants_step();
        process.step_planned = again;
        // The worker goes on without what failed; a machine that has stopped does not.
        if let Err(trouble) = slot.disk.end_faults(Ok(())) {
            return self.in_trouble(replica, trouble, Occurrence::SnapshotFailed);
        }
        if again {
            self.plan_snapshot_step(replica);
        }
        if has_report {
            self.rouse(replica);
        }
    }

    pub(super) fn synced(&mut self, replica: usize, (life, log): (u64, u64), ticket: Ticket) {
        let is_open = |process: &ReplicaProcess| process.journal.reopened == log;
        let slot = &self.replicas[replica];
        if slot.life != life || !slot.process.as_ref().is_some_and(is_open) {
            return;
        }
        let resumes_at = self.replicas[replica].paused_until;
        if resumes_at > self.now() {
            return self.scheduler.schedule(resumes_at, SimEvent::Synced { replica, life, log, ticket });
        }
        self.draw_stop(replica, 1);
        self.draw_failure(replica, |_| DiskFault::Sync);
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let result = process.journal.sync();
        match slot.disk.end_faults(result) {
            Ok(()) => {
                let mut effects = Vec::new();
                let wakes = process.on_synced(ticket, &mut effects);
                self.invariants.keeps_without_room(ReplicaId(replica as u8), process.kept_without_room());
                self.carry_out(replica, 0, &mut effects);
                if wakes {
                    self.rouse(replica);
                }
                self.begin_sync(replica);
            }
            Err(trouble) => self.in_trouble(replica, trouble, Occurrence::SyncFailed),
        }
    }
}
