//! Replicas' engines: found when a replica starts, and, if they are on disk, executed in virtual time.

use super::{SimEvent, World};
use crate::adapter;
use crate::engine_threads::{EngineThreads, executor};
use crate::journal::{DiskTrouble, FILES, Journal};
use crate::process::Engine;
use crate::sim_stores::SimStores;
use crate::tally::Occurrence;
use syros_node::DiskState;
use syros_node::data::ViewFile;
use syros_node::snapshots::EngineFiles;
use syros_node::{Execution, MemoryExecutor, OnDisk};
use syros_protocol::replica::{Config, PlantedBug, Restored};
use syros_snapshot::{SnapshotFiles, SnapshotStore, Stored, Stores};
use syros_types::{OpNumber, ReplicaId};
use syros_wal::memory_disk::MemoryDisk;

/// What a replica finds on its disk.
pub(super) struct Opened {
    pub(super) journal: Journal,
    pub(super) restored: Restored,
    pub(super) view: ViewFile<MemoryDisk>,
    pub(super) snapshot_store: SnapshotStore<MemoryDisk>,
    pub(super) files: EngineFiles<SnapshotFiles, SimStores>,
    pub(super) engine: Engine,
}

impl World {
    /// Reads back what is on a replica's disk.
    pub(super) fn open(&mut self, replica: usize, config: &Config) -> Result<Opened, DiskTrouble> {
        let slot = &mut self.replicas[replica];
        let up_to = |snapshot: Option<(OpNumber, u64)>| snapshot.map_or(OpNumber(0), |(last, _)| last);
        let Some(settings) = &self.swarm.disk_engine else {
            let (journal, stored, view, _) = Journal::open(&mut slot.disk, config, || FILES)?;
            let Stored { restored, snapshot_store, engine, snapshot, .. } = stored;
            let is_last = replica + 1 == self.group.size();
            let mut executor =
                MemoryExecutor::new(engine.unwrap_or_else(adapter::empty_engine), up_to(snapshot));
            let is_of_one =
                matches!(self.planted, Some(PlantedBug::EngineLosesUpdate | PlantedBug::EngineLosesField));
            executor.plant(self.planted.filter(|_| is_last || !is_of_one));
            let engine = Engine { execution: Execution::InMemory(Box::new(executor)), threads: None };
            let files = EngineFiles::InMemory(FILES);
            return Ok(Opened { journal, restored, view, snapshot_store, files, engine });
        };
        let stores = slot.disk.stores();
        let new_stores = || Stores::new(stores.clone());
        let (journal, stored, view, stores) = Journal::open(&mut slot.disk, config, new_stores)?;
        let Stored { restored, snapshot_store, engine, snapshot, .. } = stored;
        if engine.is_some() {
            self.tally.record(Occurrence::EngineFound);
        }
        let (stores, number, engine) = stores.into_engine(engine).expect("stores in memory work");
        let applied = up_to(snapshot);
        let files = EngineFiles::OnDisk(stores.clone());
        let executor = executor(&engine, applied, settings.lanes, config.planted);
        let threads = EngineThreads::new(stores, (number, engine), &executor);
        self.invariants.holds(ReplicaId(replica as u8), applied, threads.digest(), "as found on disk");
        let execution = Execution::OnDisk(Box::new(OnDisk { executor, store: number }));
        let engine = Engine { execution, threads: Some(threads) };
        Ok(Opened { journal, restored, view, snapshot_store, files, engine })
    }

    /// Lets an engine in memory execute what it was to.
    pub(super) fn execute(&mut self, replica: usize, life: u64) {
        if self.replicas[replica].life != life {
            return;
        }
        if let Some(process) = &mut self.replicas[replica].process {
            process.execute_soon();
            self.run_replica(replica);
        }
    }

    /// Lets the threads of a replica's engine go on after a while.
    pub(super) fn plan_engine_step(&mut self, replica: usize) {
        let Some(settings) = &self.swarm.disk_engine else { return };
        let at = self.now() + 1 + self.dice.engine.below(settings.step_delay + 1);
        let life = self.replicas[replica].life;
        self.scheduler.schedule(at, SimEvent::StepEngine { replica, life });
    }

    pub(super) fn step_engine(&mut self, replica: usize, life: u64) {
        if self.replicas[replica].life != life {
            return;
        }
        let resumes_at = self.replicas[replica].paused_until;
        if resumes_at > self.now() {
            return self.scheduler.schedule(resumes_at, SimEvent::StepEngine { replica, life });
        }
        if self.engine_fails(replica) {
            return;
        }
        let Some(settings) = &self.swarm.disk_engine else { return };
        let (steps, readers) = (1 + self.dice.engine.below(settings.steps_max), settings.readers_one_in);
        let Some(process) = &mut self.replicas[replica].process else { return };
        let mut has_reports = false;
        for _ in 0..steps {
            has_reports |= process.step_engine(&mut self.dice.engine, readers);
        }
        let again = process.engine_has_work();
        process.engine_planned = again;
        if again {
            self.plan_engine_step(replica);
        }
        if has_reports {
            self.report(replica);
        }
    }

    /// Has a process look soon at what its threads have done.
    fn report(&mut self, replica: usize) {
        let delay = self.swarm.disk_engine.as_ref().map_or(0, |settings| settings.report_delay);
        if delay == 0 {
            self.run_replica(replica);
        } else {
            let at = self.now() + self.dice.engine.below(delay);
            self.poke(replica, at);
        }
    }

    /// Perhaps the disk refuses what the engine of a replica writes. True if it does.
    fn engine_fails(&mut self, replica: usize) -> bool {
        let ppm = self.swarm.disk.fail_ppm;
        if ppm == 0 || !self.dice.engine.chance(ppm, 1_000_000) || !self.may_crash() {
            return false;
        }
        if let Some(process) = &mut self.replicas[replica].process {
            process.fail_engine();
        }
        self.in_trouble(replica, DiskTrouble::Failed(DiskState::Full), Occurrence::EngineFailed);
        true
    }

    /// Begins to make a checkpoint of a replica's engine durable.
    pub(super) fn begin_flush(&mut self, replica: usize) {
        let Some(settings) = &self.swarm.disk_engine else { return };
        let (percent, longest) = (settings.refused_percent, settings.flush_delay);
        let is_refused = percent > 0 && self.dice.engine.chance(percent, 100);
        let now = self.now();
        let slot = &mut self.replicas[replica];
        let Some(store) = slot.process.as_mut().and_then(|process| process.begin_flush(is_refused)) else {
            return;
        };
        if is_refused {
            self.tally.record(Occurrence::FlushRefused);
        }
        let mut at = now + 1 + self.dice.engine.below(longest + 1);
        let (delay, until) = slot.slow_disk;
        if !self.is_healed && now < until {
            at += delay;
            self.lingers_until = self.lingers_until.max(at);
        }
        let life = slot.life;
        self.scheduler.schedule(at, SimEvent::Flushed { replica, life, store });
    }

    /// A flush ends, unless the machine goes down just before.
    pub(super) fn flushed(&mut self, replica: usize, life: u64, store: u64) {
        if self.replicas[replica].life != life {
            return;
        }
        let resumes_at = self.replicas[replica].paused_until;
        if resumes_at > self.now() {
            return self.scheduler.schedule(resumes_at, SimEvent::Flushed { replica, life, store });
        }
        let ppm = 5 * self.swarm.disk.crash_ppm;
        if ppm > 0 && self.dice.engine.chance(ppm, 1_000_000) && self.may_crash() {
            return self.in_trouble(replica, DiskTrouble::Stopped, Occurrence::SnapshotFailed);
        }
        if let Some(process) = &mut self.replicas[replica].process {
            process.end_flush(store);
            self.report(replica);
        }
    }
}
