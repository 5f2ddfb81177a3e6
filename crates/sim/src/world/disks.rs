//! Which node is who: groups that are formed, and disks that are wiped and started as new ones.
//!
//! In most worlds the group has been formed before time begins. What a member that is not in it yet hears of the
//! others, it hears here by looking: a connection and two handshakes take no part in what could go wrong.

use crate::journal::Disk;
use crate::network::NodeIndex;
use crate::swarm::MILLI;
use crate::tally::Occurrence;
use crate::world::{SimEvent, World};
use syros_protocol::agreement::{EngineName, SharedSettings};
use syros_protocol::formation::{Decision, Declaration, Formation, Stage};
use syros_protocol::replica::{Config, PlantedBug};
use syros_types::{Group, NodeId, ReplicaId, Roster};

/// A member whose group is being formed looks around this often; divided by the swarm's speed.
const GREET_INTERVAL: u64 = 20 * MILLI;

/// What a replica knows of nodes, durably.
#[derive(Debug)]
pub(crate) struct Membership {
    /// Which node it is, for as long as it has this disk.
    node: NodeId,
    /// The roster that it acts with.
    roster: Roster,
    /// It does not act yet: its disk is new.
    forming: Option<Formation>,
    /// The disk that was taken away, with its node and roster.
    away: Option<Box<(Disk, NodeId, Roster)>>,
}

impl Membership {
    /// Of a group that has been formed.
    pub(crate) fn formed(group: Group, replica: ReplicaId) -> Self {
        let node = |member: ReplicaId| NodeId::new(1 + u64::from(member.0)).expect("it is above 0");
        let roster =
            group.members().fold(Roster::unknown(group), |roster, member| roster.with(member, node(member)));
        Self { node: node(replica), roster, forming: None, away: None }
    }

    /// True if the replica does not act yet.
    pub(crate) const fn is_forming(&self) -> bool {
        self.forming.is_some()
    }
}

impl World {
    /// All members begin with new disks; the last `late` of them some time later.
    pub(crate) fn begin_unformed(&mut self, late: usize) {
        for replica in 0..self.replicas.len() {
            self.begin_forming(replica);
            let is_late = replica + late >= self.replicas.len();
            // Long enough for the others to be served, if they were.
            let delay = if is_late { self.dice.formation.below(2_000 * MILLI) } else { 0 };
            if !(is_late && self.swarm.formation.late_on_demand) {
                let life = self.replicas[replica].life;
                let at = self.now() + delay / u64::from(self.swarm.protocol.speed);
                self.scheduler.schedule(at, SimEvent::Greet { replica, life });
            }
        }
    }

    /// The replica has a new disk, and knows nothing of the others.
    fn begin_forming(&mut self, replica: usize) {
        let id = ReplicaId(replica as u8);
        let node = NodeId::new(self.dice.formation.next_u64() | 1 << 32).expect("it is above 0");
        let formation = Formation::new(self.group, id, node, None).plant(self.planted);
        let slot = &mut self.replicas[replica];
        slot.life += 1;
        slot.membership.node = node;
        slot.membership.forming = Some(formation);
    }

    /// A process that is not running is started with a new disk and `--bootstrap`, as if it never had another one.
    pub(crate) fn bootstrap(&mut self, replica: usize) {
        let now = self.now();
        self.trace.line(now, format_args!("replica {replica} is wiped, and started with --bootstrap"));
        let slot = &mut self.replicas[replica];
        let fresh = Disk::new(slot.disk.sizes());
        let old = std::mem::replace(&mut slot.disk, fresh);
        let Membership { node, roster, .. } = slot.membership;
        slot.membership.away = Some(Box::new((old, node, roster)));
        self.begin_forming(replica);
        self.greet_soon(replica);
    }

    /// A member whose first start was put off is started.
    pub(crate) fn greet_soon(&mut self, replica: usize) {
        let (at, life) = (self.now(), self.replicas[replica].life);
        self.scheduler.schedule(at, SimEvent::Greet { replica, life });
    }

    /// What a replica says of itself to one that connects, if it runs.
    fn declaration(&self, replica: usize) -> Option<Declaration> {
        let slot = &self.replicas[replica];
        let Membership { node, roster, forming, .. } = &slot.membership;
        match forming {
            Some(formation) => slot.is_greeting.then(|| formation.declaration()),
            None => slot.process.as_ref().map(|_| Declaration {
                replica: ReplicaId(replica as u8),
                node: *node,
                stage: Stage::Acting(*roster),
            }),
        }
    }

    /// A member whose group is being formed looks who is there.
    pub(crate) fn greet(&mut self, replica: usize, life: u64) {
        if self.replicas[replica].life != life {
            return;
        }
        self.replicas[replica].is_greeting = true;
        let others: Vec<(usize, Option<Declaration>)> = (0..self.replicas.len())
            .filter(|other| *other != replica)
            .map(|other| {
                let is_cut = self.network.is_cut(replica, other) || self.network.is_cut(other, replica);
                (other, if is_cut { None } else { self.declaration(other) })
            })
            .collect();
        let Some(formation) = &mut self.replicas[replica].membership.forming else { return };
        for (other, declaration) in others {
            formation.lost(ReplicaId(other as u8));
            if let Some(theirs) = declaration
                && (formation.objection(&theirs).is_some() || formation.check(&theirs).is_ok())
            {
                formation.hear(&theirs);
            }
        }
        let decision = loop {
            match formation.decide() {
                Decision::Vote(roster) => formation.voted(roster),
                decision => break decision,
            }
        };
        let now = self.now();
        match decision {
            Decision::Act(roster) => {
                self.trace.line(now, format_args!("replica {replica} is in the group: {roster:?}"));
                self.tally.record(Occurrence::Joined);
                let slot = &mut self.replicas[replica];
                slot.membership.roster = roster;
                slot.membership.forming = None;
                slot.membership.away = None;
                self.start_replica(replica);
            }
            Decision::Refuse(mismatch) => {
                self.trace.line(now, format_args!("replica {replica} is refused: {mismatch}"));
                self.tally.record(Occurrence::DiskRefused);
                self.put_back(replica);
            }
            Decision::Wait(_) | Decision::Vote(_) => {
                let at = now + GREET_INTERVAL / u64::from(self.swarm.protocol.speed);
                self.scheduler.schedule(at, SimEvent::Greet { replica, life });
            }
        }
    }

    /// The operator puts back the disk that was taken away, and starts the replica. False if there is none.
    fn put_back(&mut self, replica: usize) -> bool {
        let slot = &mut self.replicas[replica];
        let Some(away) = slot.membership.away.take() else { return false };
        slot.life += 1;
        slot.is_greeting = false;
        let (disk, node, roster) = *away;
        slot.disk = disk;
        slot.membership = Membership { node, roster, forming: None, away: None };
        self.start_replica(replica);
        true
    }

    /// What a replica that starts will say of its settings.
    pub(crate) fn set_settings(&mut self, replica: usize, config: &Config) {
        let engine = EngineName::new("simulated").expect("it is a name");
        self.replicas[replica].settings = Some(SharedSettings::of(config, engine));
    }

    /// True if both are replicas, and do not agree on what they must agree on: they are not connected.
    pub(crate) fn refuse_each_other(&self, from: NodeIndex, to: NodeIndex) -> bool {
        // The bug is that of a time when settings were not compared.
        let may_differ = self.swarm.odd_lease.is_some() || self.swarm.lease_change.is_some();
        if !may_differ || self.planted == Some(PlantedBug::PromiseByOwnLease) {
            return false;
        }
        let settings = |node: NodeIndex| self.replicas.get(node).and_then(|slot| slot.settings.as_ref());
        let (Some(ours), Some(theirs)) = (settings(to), settings(from)) else { return false };
        ours.check(theirs).is_err()
    }

    /// The replica with the odd lease gets the right one, and is started again; so are those that have the lease of before.
    pub(crate) fn correct_settings(&mut self) {
        if self.swarm.odd_lease.take().is_some() {
            self.crash(0, false);
        }
        if self.swarm.lease_change.take().is_some() {
            for replica in 0..self.replicas.len() {
                if !self.replicas[replica].is_reconfigured {
                    self.crash(replica, false);
                }
            }
        }
    }

    /// Has every replica started again with the shorter lease, one soon after the other or long after it.
    pub(crate) fn change_leases(&mut self) {
        let Some(change) = self.swarm.lease_change else { return };
        self.tally.record(Occurrence::LeaseShortened);
        let span = self.swarm.nemesis.duration.max(1) * u64::from(change.times);
        for replica in 0..self.replicas.len() {
            let at = self.now() + self.dice.nemesis.below(span);
            self.scheduler.schedule(at, SimEvent::Reconfigure { replica });
        }
    }

    /// Ends a replica, if it runs, and starts it again with the lease that it is to have from now on.
    pub(crate) fn reconfigure(&mut self, replica: usize) {
        // When everything is repaired, so is this.
        if self.swarm.lease_change.is_some() && !self.is_healed {
            self.crash(replica, false);
            self.replicas[replica].is_reconfigured = true;
            self.start_replica(replica);
        }
    }

    /// Ends what keeps a replica from starting whose disk is new: the old one is put back, or it is started at last.
    pub(crate) fn end_forming(&mut self, replica: usize) {
        if !self.put_back(replica) && !self.replicas[replica].is_greeting {
            self.greet_soon(replica);
        }
    }
}
