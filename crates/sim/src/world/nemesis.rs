//! What breaks in the safety phase, and how it is put together again.

use super::{InFlight, ReplicaSlot, SimEvent, World};
use crate::adapter;
use crate::network::{Hold, NodeIndex};
use crate::swarm::MILLI;
use crate::tally::Occurrence;
use syros_protocol::message::{Advice, Advised, Message, Peer};
use syros_protocol::replica::{self, Durability};
use syros_types::{FastQuorum, OpNumber, ReplicaId, SessionId};

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Crash,
    LoseDisk,
    CrashAll,
    Partition,
    Isolate,
    OneWay,
    Creep,
    Pause,
    ClockJump,
    EndSessions,
    ClientCrash,
    Disconnect,
    Slow,
    HoldKind,
    HandOver,
    ChangeMode,
    CopySnapshot,
    Advice,
    Rot,
    SlowDisk,
    FillDisk,
    Stranger,
    BrokenClient,
    Bootstrap,
    ReplaceNode,
    Resize,
    /// A crash when a configuration has just been adopted, after which the replica is soon there again.
    BriefCrash,
}

impl Fault {
    const fn occurrence(self) -> Occurrence {
        match self {
            Self::Crash | Self::BriefCrash => Occurrence::Crash,
            Self::LoseDisk => Occurrence::LoseDisk,
            Self::CrashAll => Occurrence::CrashAll,
            Self::Partition => Occurrence::Partition,
            Self::Isolate => Occurrence::Isolate,
            Self::OneWay => Occurrence::OneWay,
            Self::Creep => Occurrence::Creep,
            Self::Pause => Occurrence::Pause,
            Self::ClockJump => Occurrence::ClockJump,
            Self::EndSessions => Occurrence::EndSessions,
            Self::ClientCrash => Occurrence::ClientCrash,
            Self::Disconnect => Occurrence::Disconnect,
            Self::Slow => Occurrence::Slow,
            Self::HoldKind => Occurrence::HoldKind,
            Self::HandOver => Occurrence::HandOver,
            Self::ChangeMode => Occurrence::ChangeMode,
            Self::CopySnapshot => Occurrence::CopySnapshot,
            Self::Advice => Occurrence::Advice,
            Self::Rot => Occurrence::Rot,
            Self::SlowDisk => Occurrence::SlowDisk,
            Self::FillDisk => Occurrence::FillDisk,
            Self::Stranger => Occurrence::Stranger,
            Self::BrokenClient => Occurrence::TwoBodies,
            Self::Bootstrap => Occurrence::Bootstrap,
            Self::ReplaceNode => Occurrence::ReplaceNode,
            Self::Resize => Occurrence::Resize,
        }
    }
}

impl World {
    /// Schedules the next fault, if there are to be any.
    pub(crate) fn schedule_strike(&mut self) {
        let interval = self.swarm.nemesis.interval;
        if interval > 0 {
            let at = self.now() + 1 + self.dice.nemesis.below(2 * interval);
            self.scheduler.schedule(at, SimEvent::Strike { fault: None, again: true });
        }
    }

    /// Perhaps schedules a fault for the time just after something happened that is to be disturbed: there had
    /// been as many such moments `before` this one.
    pub(crate) fn strike_at_moments(&mut self, before: [u64; 4]) {
        let settings = &self.swarm.nemesis;
        let (snapshots, endings, resends, adoptions) = (
            settings.per_snapshot_percent,
            settings.per_ending_percent,
            settings.per_resend_percent,
            settings.per_adoption_percent,
        );
        let order_delay = self.swarm.protocol.replica.order_delay.as_nanos() as u64;
        let [snapshot, ending, resend, adoption] = {
            let now = self.tally.moments();
            [0, 1, 2, 3].map(|kind| before[kind] < now[kind])
        };
        if snapshot {
            self.strike_within(0, snapshots, None);
        }
        if ending {
            self.strike_within(order_delay, endings, Some(Fault::Crash));
        }
        if resend {
            self.strike_within(order_delay, resends, Some(Fault::Crash));
        }
        if adoption {
            // In a few messages' time the first view of the configuration has begun.
            self.strike_within(0, adoptions, Some(Fault::BriefCrash));
        }
    }

    /// Perhaps schedules a fault for the time in which an operation just issued is under way.
    pub(crate) fn strike_soon(&mut self) {
        // While it is being vouched for, or until it is ordered as well.
        let percent = self.swarm.nemesis.per_operation_percent;
        if percent > 0 {
            let until_ordered = self.dice.nemesis.chance(1, 2);
            let order_delay = self.swarm.protocol.replica.order_delay.as_nanos() as u64;
            self.strike_within(if until_ordered { order_delay } else { 0 }, percent, None);
        }
    }

    /// Schedules a fault in `percent` of a hundred cases, for some time before a few messages and syncs, and
    /// `longer`, have passed.
    fn strike_within(&mut self, longer: u64, percent: u64, fault: Option<Fault>) {
        if percent > 0 && self.dice.nemesis.chance(percent, 100) {
            let (_, message) = self.swarm.network.delay;
            let (_, sync) = self.swarm.disk.sync_delay;
            let at = self.now() + self.dice.nemesis.below(4 * message + 2 * sync + longer + 1);
            self.scheduler.schedule(at, SimEvent::Strike { fault, again: false });
        }
    }

    /// How long the next fault lasts.
    pub(crate) fn fault_duration(&mut self) -> u64 {
        1 + self.dice.nemesis.below(self.swarm.nemesis.duration.max(1))
    }

    /// The kind of the next fault; `None` if all are switched off.
    fn draw_fault(&mut self) -> Option<Fault> {
        let settings = &self.swarm.nemesis;
        let weights = [
            (Fault::Crash, settings.crash),
            (Fault::LoseDisk, settings.lose_disk),
            (Fault::CrashAll, settings.crash_all),
            (Fault::Partition, settings.partition),
            (Fault::Isolate, settings.isolate),
            (Fault::OneWay, settings.one_way),
            (Fault::Creep, settings.creep),
            (Fault::Pause, settings.pause),
            (Fault::ClockJump, settings.clock_jump),
            (Fault::EndSessions, settings.end_sessions),
            (Fault::ClientCrash, settings.client_crash),
            (Fault::Disconnect, settings.disconnect),
            (Fault::Slow, settings.slow),
            (Fault::HandOver, settings.hand_over),
            (Fault::ChangeMode, settings.change_mode),
            (Fault::Advice, settings.advice),
            (Fault::Rot, settings.rot),
            (Fault::SlowDisk, settings.slow_disk),
            (Fault::CopySnapshot, settings.copy_snapshot),
            (Fault::FillDisk, settings.fill_disk),
            (Fault::Stranger, settings.stranger),
            (Fault::BrokenClient, settings.broken_client),
            (Fault::Bootstrap, settings.bootstrap),
            (Fault::ReplaceNode, settings.replace_node),
            (Fault::Resize, settings.resize),
            (Fault::HoldKind, settings.hold_kind),
        ];
        let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
        let mut at = self.dice.nemesis.below(total);
        for (fault, weight) in weights {
            match at.checked_sub(weight) {
                Some(rest) => at = rest,
                None => return Some(fault),
            }
        }
        None
    }

    /// A replica to suffer: the leader, as often as the swarm says.
    fn victim(&mut self) -> usize {
        if let Some(wrong) = self.swarm.clocks.wrong {
            return self.dice.nemesis.below(wrong as u64) as usize;
        }
        let any = self.dice.nemesis.below(self.replicas.len() as u64) as usize;
        if self.dice.nemesis.chance(self.swarm.nemesis.leader_percent, 100) {
            self.leader().unwrap_or(any)
        } else {
            any
        }
    }

    /// Something breaks.
    pub(crate) fn strike(&mut self, fault: Option<Fault>, again: bool) {
        if self.is_healed {
            return;
        }
        if again {
            self.schedule_strike();
        }
        // One that was chosen is for the leader, unless it is for anybody.
        let (fault, victim) = match fault {
            Some(Fault::BriefCrash) => (fault, Some(self.victim())),
            Some(fault) => (Some(fault), self.leader()),
            None => (self.draw_fault(), Some(self.victim())),
        };
        let (Some(fault), Some(victim)) = (fault, victim) else { return };
        let now = self.now();
        self.trace.fold(fault as u64);
        self.trace.line(now, format_args!("fault: {fault:?}, replica {victim}"));
        if self.inflict(fault, victim) {
            self.tally.record(fault.occurrence());
        }
    }

    /// Has a fault happen. False if the group cannot bear it just now, or there is nothing to break.
    fn inflict(&mut self, fault: Fault, victim: usize) -> bool {
        let runs = self.replicas[victim].process.is_some();
        match fault {
            Fault::Crash | Fault::BriefCrash => {
                let possible = runs && self.may_crash();
                if possible {
                    let power = self.dice.nemesis.chance(1, 2);
                    let (_, message) = self.swarm.network.delay;
                    let down = match fault {
                        Fault::BriefCrash => self.dice.nemesis.below(4 * message + 1),
                        _ => self.fault_duration(),
                    };
                    self.crash_for(victim, power, down);
                }
                return possible;
            }
            Fault::LoseDisk => {
                let possible = runs && self.may_forget();
                if possible {
                    self.crash_for_a_while(victim, true);
                    self.replicas[victim].lost_disk = true;
                }
                return possible;
            }
            Fault::CrashAll => {
                if self.swarm.durability == Durability::Replicated {
                    return self.lose_directories();
                }
                (0..self.replicas.len()).for_each(|replica| self.crash_for_a_while(replica, true));
            }
            Fault::Partition => {
                let pieces = 2 + self.dice.nemesis.below(2);
                self.partition_at_random(pieces);
                self.mend_later();
            }
            Fault::Isolate => {
                let with_clients = self.dice.nemesis.chance(self.swarm.nemesis.cut_clients_percent, 100);
                self.isolate(victim, with_clients);
                self.mend_later();
            }
            Fault::OneWay => {
                self.cut_one_way(victim);
                self.mend_later();
            }
            Fault::Creep => self.creep(victim),
            Fault::Pause => {
                let duration = self.fault_duration();
                self.pause(victim, duration);
            }
            Fault::ClockJump => self.jump_a_clock(victim),
            Fault::EndSessions => {
                let timeout = self.swarm.protocol.replica.session_timeout.as_micros() as i64;
                self.jump_replica_clock(victim, timeout);
            }
            Fault::ClientCrash => return self.replace_a_client(),
            Fault::Disconnect => {
                let slot = self.dice.nemesis.below(self.clients.len().max(1) as u64) as usize;
                return slot < self.clients.len() && self.break_connection(slot, victim);
            }
            Fault::Slow => self.slow_down(victim),
            Fault::HoldKind => return self.hold_a_kind(victim),
            Fault::SlowDisk => {
                // Long enough for a leader to notice, more often than not.
                let delay = self.dice.nemesis.below(3_000 * MILLI) / u64::from(self.swarm.protocol.speed);
                let duration = self.fault_duration();
                self.slow_disk(victim, delay, duration);
            }
            Fault::FillDisk => self.fill_disks(victim),
            Fault::HandOver => self.hand_over(victim),
            Fault::ChangeMode => {
                let is_mixed = self.dice.nemesis.chance(1, 2);
                self.change_mode(victim, if is_mixed { FastQuorum::Mixed } else { FastQuorum::Majority });
            }
            Fault::CopySnapshot => return self.copy_snapshot(victim),
            Fault::Advice => return self.advise(victim),
            Fault::BrokenClient => return self.send_two_bodies(),
            Fault::Stranger => return self.take_over_a_session(),
            Fault::Bootstrap => {
                // If all are wiped, nobody is left who knows better.
                let is_left =
                    |(index, slot): (usize, &ReplicaSlot)| index != victim && !slot.membership.is_forming();
                let possible = runs && self.may_crash() && self.replicas.iter().enumerate().any(is_left);
                if possible {
                    self.tally.record(Occurrence::Killed);
                    self.crash(victim, false);
                    self.bootstrap(victim);
                }
                return possible;
            }
            Fault::ReplaceNode => return self.lose_node(victim),
            Fault::Resize => return self.resize(),
            Fault::Rot => return runs && self.may_forget() && self.rot(victim),
        }
        true
    }

    /// A node loses its disk for good, and a new one is to take its place. False if the group cannot bear it just now.
    fn lose_node(&mut self, victim: usize) -> bool {
        // One place at a time.
        let is_settled =
            |slot: &ReplicaSlot| !slot.membership.is_contested() && !slot.membership.is_forming();
        let mut slots = self.replicas.iter().enumerate();
        let is_quiet = slots.all(|(index, slot)| index == victim || is_settled(slot));
        let lost = self.without_memory() - usize::from(!is_settled(&self.replicas[victim]));
        // A configuration is to be settled before there is another one.
        let is_settled = self.swarm.sizes.is_none() || self.is_settled();
        let possible =
            is_quiet && is_settled && !self.replicas[victim].is_absent && lost < self.group.faults();
        if possible {
            let power = self.dice.replacements.chance(1, 2);
            self.crash(victim, power);
            self.begin_replacement(victim);
            self.plan_exchanges(victim);
        }
        possible
    }

    /// True if one more replica may crash. Without fsync the copies in memory are the durability: more
    /// than `f` replicas at a time may not be without.
    pub(crate) fn may_crash(&self) -> bool {
        match self.swarm.durability {
            Durability::Fsync => true,
            Durability::Replicated => self.may_forget(),
        }
    }

    /// True if one more replica may lose all it knows but its view.
    fn may_forget(&self) -> bool {
        self.without_memory() < self.group.faults()
    }

    /// Crashes a replica and starts it again some time later.
    pub(crate) fn crash_for_a_while(&mut self, replica: usize, power: bool) {
        if self.replicas[replica].process.is_some() {
            let down = self.fault_duration();
            self.crash_for(replica, power, down);
        }
    }

    /// Crashes a replica and starts it again when so much time has passed.
    fn crash_for(&mut self, replica: usize, power: bool, down: u64) {
        self.tally.record(if power { Occurrence::PowerFailed } else { Occurrence::Killed });
        self.crash(replica, power);
        let (at, life) = (self.now() + down, self.replicas[replica].life);
        self.scheduler.schedule(at, SimEvent::Restart { replica, life });
    }

    /// Takes the disks of more replicas than the group can do without. What they alone knew is lost for
    /// good: nobody may act as if it had never been.
    pub(crate) fn ruin(&mut self) {
        let f = self.group.faults() as u64;
        let mut left: Vec<usize> = (0..self.replicas.len()).collect();
        let victims = f + 1 + self.dice.rot.below(left.len() as u64 - f);
        self.tally.record(Occurrence::Ruin);
        self.ruined_after = Some(self.history.operations().len());
        for _ in 0..victims {
            let victim = left.swap_remove(self.dice.rot.below(left.len() as u64) as usize);
            let now = self.now();
            self.trace.line(now, format_args!("replica {victim} loses its disk in the ruin"));
            self.crash_for_a_while(victim, true);
            self.replicas[victim].lost_disk = true;
        }
    }

    /// Crashes a replica, and damages its disk while it is down. False if there was nothing to damage.
    fn rot(&mut self, replica: usize) -> bool {
        self.crash_for_a_while(replica, true);
        let other = self.dice.rot.below(self.replicas.len() as u64 - 1) as usize;
        let other = if other < replica { other } else { other + 1 };
        let mut source = self.replicas[other].disk.data();
        let disk = &mut self.replicas[replica].disk;
        let in_store = self.swarm.disk_engine.is_some() && self.dice.engine.chance(1, 3);
        let done = if in_store { disk.rot_store() } else { disk.rot(&mut source, &mut self.dice.rot) };
        let Some(done) = done else { return false };
        let now = self.now();
        self.trace.line(now, format_args!("replica {replica}, on disk: {}", done.what));
        self.tally.record(done.occurrence);
        true
    }

    fn mend_later(&mut self) {
        let at = self.now() + self.fault_duration();
        self.scheduler.schedule(at, SimEvent::Mend);
    }

    /// Every process falls into one of `pieces` pieces; half of the clients still reach everybody.
    fn partition_at_random(&mut self, pieces: u64) {
        let nodes = self.replicas.len() + self.clients.len();
        let place: Vec<Option<u64>> = (0..nodes)
            .map(|node| {
                let everywhere = node >= self.replicas.len() && self.dice.nemesis.chance(1, 2);
                let piece = self.dice.nemesis.below(pieces);
                (!everywhere).then_some(piece)
            })
            .collect();
        for from in 0..nodes {
            for to in 0..nodes {
                if let (Some(a), Some(b)) = (place[from], place[to])
                    && a != b
                {
                    self.network.set_cut(from, to, true);
                }
            }
        }
    }

    /// Cuts a replica off from the others, and from clients too if `with_clients`.
    pub fn isolate(&mut self, replica: NodeIndex, with_clients: bool) {
        let nodes = if with_clients { self.replicas.len() + self.clients.len() } else { self.replicas.len() };
        for other in (0..nodes).filter(|other| *other != replica) {
            self.network.set_cut(replica, other, true);
            self.network.set_cut(other, replica, true);
        }
    }

    /// Cuts the replicas into these pieces; clients reach everybody.
    pub fn partition(&mut self, pieces: &[&[usize]]) {
        for (index, piece) in pieces.iter().enumerate() {
            for (other_index, other) in pieces.iter().enumerate() {
                if index != other_index {
                    for from in *piece {
                        other.iter().for_each(|to| self.network.set_cut(*from, *to, true));
                    }
                }
            }
        }
    }

    /// Holds one kind of message back for a while, or loses all of it: what a replica sends or is sent, or everybody. Each
    /// kind that there has been is as likely as any other, however rare it is. False if there has been none.
    fn hold_a_kind(&mut self, replica: usize) -> bool {
        // A client shows whose session it is on the connection on which its request follows: it has it sent again for every
        // refusal until that arrives, which TCP sees to, and copies of refusals would multiply.
        let shows = Message::Attach { session: SessionId(0), nonce: 0 };
        let excluded = adapter::encode_message(&shows).first().copied();
        let kinds: Vec<u8> =
            self.network.kinds().iter().copied().filter(|kind| Some(*kind) != excluded).collect();
        let dice = &mut self.dice.holds;
        let Some(kind) = kinds.get(dice.below(kinds.len().max(1) as u64) as usize).copied() else {
            return false;
        };
        let other = dice.below(self.replicas.len() as u64) as usize;
        let (from, to) = match dice.below(4) {
            0 => (None, None),
            1 => (Some(replica), None),
            2 => (None, Some(replica)),
            _ => (Some(replica), Some(other)),
        };
        let drops = dice.chance(1, 4);
        let now = self.now();
        let until = now + self.fault_duration();
        self.trace
            .line(now, format_args!("kind {kind} from {from:?} to {to:?}, lost: {drops}, until {until}"));
        self.network.hold(Hold { from, to, kind, until, drops });
        true
    }

    /// Cuts a replica off from the others one after the other, and mends everything later.
    fn creep(&mut self, replica: usize) {
        let duration = self.fault_duration();
        let now = self.now();
        for other in (0..self.replicas.len()).filter(|other| *other != replica) {
            let at = now + self.dice.nemesis.below(duration);
            for (from, to) in [(replica, other), (other, replica)] {
                self.scheduler.schedule(at, SimEvent::Cut { from, to });
            }
        }
        let end = now + duration + self.fault_duration();
        self.scheduler.schedule(end, SimEvent::Mend);
    }

    /// Cuts one direction: from a replica to one other or to all, or from all to it.
    fn cut_one_way(&mut self, replica: usize) {
        let n = self.replicas.len();
        let kind = self.dice.nemesis.below(3);
        let peer = self.dice.nemesis.below(n as u64) as usize;
        for other in (0..n).filter(|other| *other != replica) {
            match kind {
                0 if other == peer => self.network.set_cut(replica, other, true),
                1 => self.network.set_cut(replica, other, true),
                2 => self.network.set_cut(other, replica, true),
                _ => {}
            }
        }
    }

    /// The wall clock of a replica or of a client jumps.
    fn jump_a_clock(&mut self, replica: usize) {
        const HOUR: u64 = 3_600_000_000;
        let reach = if self.swarm.clocks.wrong.is_some() {
            [2_000, 300_000, 3_000_000, HOUR, 24 * HOUR, 10 * 365 * 24 * HOUR]
                [self.dice.nemesis.below(6) as usize]
        } else {
            [2_000, 300_000, 3_000_000][self.dice.nemesis.below(3) as usize]
        };
        let micros = self.dice.nemesis.below(2 * reach) as i64 - reach as i64;
        let client = self.dice.nemesis.below(2 * self.clients.len() as u64) as usize;
        if client < self.clients.len() {
            self.jump_client_clock(client, micros);
        } else {
            self.jump_replica_clock(replica, micros);
        }
    }

    /// The wall clock of a client's machine moves by `micros`.
    pub(crate) fn jump_client_clock(&mut self, client: usize, micros: i64) {
        let slot = &mut self.clients[client];
        slot.wall_offset += micros;
        if let Some(process) = &mut slot.process {
            process.clock.jump(micros);
        }
    }

    /// The wall clock of a replica's machine moves by `micros`.
    pub(crate) fn jump_replica_clock(&mut self, replica: usize, micros: i64) {
        let slot = &mut self.replicas[replica];
        slot.wall_offset += micros;
        if let Some(process) = &mut slot.process {
            process.clock.jump(micros);
        }
    }

    /// A client dies; another takes its place. False if there is none just now.
    fn replace_a_client(&mut self) -> bool {
        let slot = self.dice.nemesis.below(self.clients.len().max(1) as u64) as usize;
        let runs = self.clients.get(slot).is_some_and(|slot| slot.process.is_some());
        // A front end in the process of a replica ends with that.
        let runs = runs && self.home_of(slot).is_none();
        if runs {
            self.crash_client(slot);
            let at = self.now() + self.fault_duration();
            let life = self.clients[slot].life;
            self.scheduler.schedule(at, SimEvent::Respawn { slot, life });
        }
        runs
    }

    /// Asks a replica to let another one lead.
    pub fn hand_over(&mut self, replica: usize) {
        let to = ReplicaId(self.dice.nemesis.below(self.replicas.len() as u64) as u8);
        let (replica, to) = match self.swarm.clocks.wrong {
            // A replica whose clock is wrong is to lead.
            Some(_) => (self.leader().unwrap_or(replica), ReplicaId(replica as u8)),
            None => (replica, to),
        };
        let life = self.replicas[replica].life;
        let message = Message::HandOver { to };
        self.tell(replica, life, replica::Event::Message { from: Peer::Client(u64::MAX), message });
    }

    /// Asks a replica to let the group go by another mode.
    pub fn change_mode(&mut self, replica: usize, mode: FastQuorum) {
        let life = self.replicas[replica].life;
        let message = Message::ChangeMode { mode };
        self.tell(replica, life, replica::Event::Message { from: Peer::Client(u64::MAX), message });
    }

    /// Somebody wants to copy a snapshot of a replica, as a backup does, and asks for a part of one. False if it does not run.
    fn copy_snapshot(&mut self, replica: usize) -> bool {
        let Some(process) = &self.replicas[replica].process else { return false };
        let (applied, life) = (process.core().applied(), self.replicas[replica].life);
        let op_number = if self.dice.nemesis.chance(1, 4) { OpNumber(0) } else { applied };
        let from = Peer::Client(u64::MAX - self.dice.nemesis.below(6));
        for message in [Message::WantSnapshot { op_number }, Message::GetSnapshot { op_number, offset: 0 }] {
            self.tell(replica, life, replica::Event::Message { from, message });
        }
        true
    }

    /// A replica asks the clients for updates, or reads, to their leader alone, or for no more such, as if its cores were busy, or were
    /// not any more; whether it leads or not. False if it does not take part in a view that it would remember: clients go by
    /// what it says of that.
    fn advise(&mut self, replica: usize) -> bool {
        let Some(process) = &self.replicas[replica].process else { return false };
        let core = process.core();
        if !core.is_normal() || core.awaited().is_some() {
            return false;
        }
        let view = core.view();
        let advice = if self.dice.nemesis.chance(2, 3) { Advice::Leader } else { Advice::Free };
        let of = if self.dice.nemesis.chance(1, 2) { Advised::Updates } else { Advised::Reads };
        let bytes = adapter::encode_message(&Message::Advise { view, of, advice });
        let (now, life) = (self.now(), self.replicas[replica].life);
        for slot in 0..self.clients.len() {
            let client = self.clients[slot].process.as_ref();
            if let Some(address) = client.and_then(|client| client.connections[replica]) {
                let bytes = bytes.clone();
                let in_flight = InFlight { address, executed: OpNumber(0), life, nodes: None, bytes };
                self.transmit(replica, self.client_node(slot), now, in_flight);
            }
        }
        true
    }

    /// For `duration` nanoseconds, every sync of a replica's disk takes `delay` nanoseconds longer.
    pub fn slow_disk(&mut self, replica: usize, delay: u64, duration: u64) {
        let until = self.now() + duration;
        self.replicas[replica].slow_disk = (delay, until);
    }

    /// The disk of a replica is full for a while, and often those of others too, as where all have the same size.
    fn fill_disks(&mut self, victim: usize) {
        let until = self.now() + self.fault_duration();
        for replica in 0..self.replicas.len() {
            if replica == victim || self.dice.nemesis.chance(1, 3) {
                self.fill_disk(replica, until);
            }
        }
    }

    /// All links of a replica become slow.
    fn slow_down(&mut self, replica: usize) {
        let delay = self.dice.nemesis.below(30 * MILLI) / u64::from(self.swarm.protocol.speed);
        for other in (0..self.replicas.len() + self.clients.len()).filter(|other| *other != replica) {
            self.network.set_delay(replica, other, delay);
            self.network.set_delay(other, replica, delay);
        }
    }
}
