//! Processes are woken and run, and what they ask for is carried out.

use super::turns::Departure;
use super::{Connection, InFlight, SimEvent, World};
use crate::clock::VirtualTime;
use crate::journal::DiskTrouble;
use crate::network::NodeIndex;
use crate::process::{Effect, ProcessContext};
use crate::tally::Occurrence;
use core::time::Duration;
use std::rc::Rc;
use syros_protocol::client;
use syros_protocol::message::Peer;
use syros_protocol::replica;
use syros_types::{OpNumber, ReplicaId};

/// Bytes of updates for which a disk that was full has room in a turn: some turns have more.
const NEARLY_FULL_ROOM: u64 = 1_000;

impl World {
    /// Hands an event to a replica process, if it is still the one it was meant for.
    pub(crate) fn tell(&mut self, replica: usize, life: u64, event: replica::Event) {
        let slot = &mut self.replicas[replica];
        let Some(process) = slot.process.as_mut().filter(|_| slot.life == life) else { return };
        process.inbox.push(event);
        self.rouse(replica);
    }

    /// Has a process look soon at what has come for it.
    pub(super) fn rouse(&mut self, replica: usize) {
        let delay = self.swarm.service_delay;
        if delay == 0 {
            self.run_replica(replica);
        } else {
            let at = self.now() + self.dice.service.below(delay);
            self.poke(replica, at);
        }
    }

    /// Has a process run at `at`, unless it will before.
    pub(super) fn poke(&mut self, node: NodeIndex, at: VirtualTime) {
        let n = self.replicas.len();
        let (wake_at, life) = if node < n {
            let slot = &mut self.replicas[node];
            let Some(process) = &mut slot.process else { return };
            (&mut process.wake_at, slot.life)
        } else {
            let slot = &mut self.clients[node - n];
            let Some(process) = &mut slot.process else { return };
            (&mut process.wake_at, slot.life)
        };
        if wake_at.is_none_or(|planned| at < planned) {
            let at = at.max(self.scheduler.now());
            *wake_at = Some(at);
            self.scheduler.schedule(at, SimEvent::Wake { node, life });
        }
    }

    pub(super) fn wake(&mut self, node: NodeIndex, life: u64) {
        let now = self.now();
        let n = self.replicas.len();
        if node < n {
            let slot = &mut self.replicas[node];
            let Some(process) = slot.process.as_mut().filter(|_| slot.life == life) else { return };
            if process.wake_at == Some(now) {
                process.wake_at = None;
                self.run_replica(node);
            }
        } else {
            let still_until = self.stands_still_until(node - n);
            let slot = &mut self.clients[node - n];
            let Some(process) = slot.process.as_mut().filter(|_| slot.life == life) else { return };
            if process.wake_at == Some(now)
                && let Some(until) = still_until
            {
                process.wake_at = None;
                self.poke(node, until);
            } else if process.wake_at == Some(now) {
                process.wake_at = None;
                process.handle(now, client::Event::Tick);
                self.drain_client(node - n);
            }
        }
    }

    /// The disk of a replica is nearly full until then.
    pub(crate) fn fill_disk(&mut self, replica: usize, until: VirtualTime) {
        self.replicas[replica].disk_full_until = until;
        self.run_replica(replica);
    }

    /// Lets a replica process do what there is to do.
    pub(crate) fn run_replica(&mut self, replica: usize) {
        let time = self.now();
        let before = self.tally.moments();
        let disk = &self.swarm.disk;
        let may_crash = (disk.crash_ppm > 0 || disk.fail_ppm > 0) && self.may_crash();
        let may_refuse = may_crash || (disk.fail_ppm > 0 && self.outlives_log(replica));
        let slot = &mut self.replicas[replica];
        let Some(process) = &mut slot.process else { return };
        let until = slot.paused_until.max(slot.turns.busy_until());
        if until > time {
            self.poke(replica, until);
            return;
        }
        process.disk_room = match slot.disk_full_until {
            0 => u64::MAX,
            until if until > time => 0,
            _ => NEARLY_FULL_ROOM,
        };
        let mut effects = core::mem::take(&mut self.effects);
        let crash_ppm = if may_crash { self.swarm.disk.crash_ppm } else { 0 };
        let fail_ppm = if may_refuse { self.swarm.disk.fail_ppm } else { 0 };
        let mut context = ProcessContext {
            time,
            invariants: &mut self.invariants,
            trace: &mut self.trace,
            tally: &mut self.tally,
            effects: &mut effects,
            apply_at_once: self.swarm.apply_delay == 0,
            execution_time: Duration::from_nanos(self.swarm.execution_time),
            entries_per_turn: self.swarm.entries_per_turn(),
            executed: 0,
            compare_every: self.swarm.compare_every,
            disk: &slot.disk,
            view_faults: &mut self.dice.view,
            view_faults_ppm: (20 * crash_ppm, 20 * fail_ppm),
            syncs_fail: may_crash,
        };
        process.run(&mut context);
        context.invariants.keeps_without_room(ReplicaId(replica as u8), process.kept_without_room());
        let executed_now = context.executed;
        let noted = process.take_trouble().map_or(Ok(()), Err);
        let trouble = slot.disk.end_faults(noted).err();
        if let Some(configuration) = process.take_configuration() {
            self.note_configuration(replica, &configuration);
        }
        if trouble == Some(DiskTrouble::Stopped) {
            // What it was about to send when the machine went down has not left.
            effects.clear();
        }
        self.carry_out(replica, executed_now, &mut effects);
        self.effects = effects;
        if let Some(trouble) = trouble {
            return self.in_trouble(replica, trouble, Occurrence::NoteFailed);
        }
        self.strike_at_moments(before);
        self.wake_waiters(replica, executed_now);
        self.begin_sync(replica);
        if let Some(process) = &self.replicas[replica].process
            && let Some(at) = process.deadline()
        {
            self.poke(replica, at);
        }
    }

    /// Does what a replica process wants, which has just executed so many updates.
    pub(super) fn carry_out(&mut self, replica: usize, executed_now: u64, effects: &mut Vec<Effect>) {
        let (time, life) = (self.now(), self.replicas[replica].life);
        let mut departures = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, kind, binds, executed, entries, answers_read, bytes } => {
                    if let Some(view) = binds {
                        self.invariants.told_view(ReplicaId(replica as u8), view);
                    }
                    if let Some(counts) = &mut self.counts {
                        *counts.entry(kind).or_default() += 1;
                    }
                    if let Peer::Client(address) = to {
                        self.overhear(address, replica, &bytes);
                        self.overhear_entries(address, &bytes);
                    }
                    if let Some((to, in_flight)) = self.address(replica, to, (executed, life), bytes) {
                        departures.push(Departure { to, entries, answers_read, in_flight });
                    }
                }
                Effect::Execute => {
                    let delay = self.dice.service.below(self.swarm.apply_delay + 1);
                    self.scheduler.schedule(time + 1 + delay, SimEvent::Execute { replica, life });
                }
                Effect::Snapshots => self.plan_snapshot_step(replica),
                Effect::ReadEntries => self.plan_entries_step(replica),
                Effect::Engine => self.plan_engine_step(replica),
                Effect::Flush => self.begin_flush(replica),
            }
        }
        self.depart(replica, executed_now, departures);
    }

    /// Where a replica's message goes, unless nobody is there any more.
    pub(super) fn address(
        &self,
        from: usize,
        to: Peer,
        (executed, life): (OpNumber, u64),
        bytes: Rc<[u8]>,
    ) -> Option<(NodeIndex, InFlight)> {
        let (to, address) = match to {
            Peer::Replica(id) => (id.index(), 0),
            Peer::Client(address) => {
                let Connection { slot, life, .. } = *self.addresses.get(address as usize)?;
                if self.clients[slot].life != life {
                    return None;
                }
                (self.client_node(slot), address)
            }
        };
        let nodes = self.nodes_of(from, to);
        Some((to, InFlight { address, executed, life, nodes, bytes }))
    }
}
