//! Which node is who: groups that are formed, and disks that are wiped and started as new ones.
//!
//! In most worlds the group has been formed before time begins. What a member that is not in it yet hears of the
//! others, it hears here by looking: a connection and two handshakes take no part in what could go wrong.

use super::PromisedLeases;
use crate::journal::Disk;
use crate::network::NodeIndex;
use crate::swarm::MILLI;
use crate::tally::Occurrence;
use crate::world::{SimEvent, World};
use syros_protocol::agreement::{EngineName, SharedSettings};
use syros_protocol::formation::{Decision, Declaration, Formation, Stage};
use syros_protocol::message::{Message, Peer};
use syros_protocol::replica::{Config, Event, PlantedBug};
use syros_types::{ConfigurationEpoch, Group, NodeId, Reconfiguration, ReplicaId, Roster, View};

/// A member whose group is being formed looks around this often; divided by the swarm's speed.
const GREET_INTERVAL: u64 = 20 * MILLI;

/// What a replica knows of nodes, durably.
#[derive(Debug)]
pub(crate) struct Membership {
    /// Which node it is, for as long as it has this disk.
    pub(super) node: NodeId,
    /// The configuration that it acts in.
    pub(super) configuration: Reconfiguration,
    /// It does not act yet: its disk is new.
    pub(super) forming: Option<Formation>,
    /// It copies what the group holds that it is to come into, or was stopped while it did.
    pub(super) learns: bool,
    /// It was stopped while it did, and has begun anew.
    pub(super) learned_anew: bool,
    /// The disk that was taken away, with what it knows.
    pub(super) away: Option<Box<Away>>,
    /// This node is to take the place, and another one may be started there meanwhile.
    pub(super) newcomer: Option<NodeId>,
}

/// A disk that is not at its place, with what it knows, and what its node has told others.
#[derive(Debug)]
pub(crate) struct Away {
    pub(super) disk: Disk,
    pub(super) node: NodeId,
    pub(super) configuration: Reconfiguration,
    pub(super) forming: Option<Formation>,
    pub(super) told: View,
    pub(super) forgot: Option<View>,
    pub(super) promised: PromisedLeases,
}

impl Away {
    /// The disk of a node that has told nobody anything.
    pub(super) fn new(
        disk: Disk,
        node: NodeId,
        configuration: Reconfiguration,
        forming: Option<Formation>,
    ) -> Self {
        let promised = PromisedLeases::default();
        Self { disk, node, configuration, forming, told: View(0), forgot: None, promised }
    }
}

impl Membership {
    /// Of a group that has been formed.
    pub(crate) fn formed(group: Group, replica: ReplicaId) -> Self {
        let node = |member: ReplicaId| NodeId::new(1 + u64::from(member.0)).expect("it is above 0");
        let roster =
            group.members().fold(Roster::unknown(group), |roster, member| roster.with(member, node(member)));
        let configuration = Reconfiguration { epoch: ConfigurationEpoch::FIRST, roster, before: None };
        Self::acting(node(replica), configuration)
    }

    /// Of a node that acts in this configuration, whose disk nobody has taken away.
    const fn acting(node: NodeId, configuration: Reconfiguration) -> Self {
        Self {
            node,
            configuration,
            forming: None,
            learns: false,
            learned_anew: false,
            away: None,
            newcomer: None,
        }
    }

    /// Which node it is.
    pub(crate) const fn node(&self) -> NodeId {
        self.node
    }

    /// True if it is not decided which node is at the place in the end.
    pub(crate) const fn is_contested(&self) -> bool {
        self.newcomer.is_some()
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
        let Membership { node, configuration, .. } = slot.membership;
        slot.membership.away = Some(Box::new(Away::new(old, node, configuration, None)));
        self.begin_forming(replica);
        self.greet_soon(replica);
    }

    /// A member whose first start was put off is started.
    /// A place where the group has no member gets a new disk, and a node that wants to be one.
    pub(super) fn begin_joining(&mut self, replica: usize, group: Group, node: NodeId) {
        let id = ReplicaId(replica as u8);
        let formation = Formation::new(group, id, node, None).joining().plant(self.planted);
        let is_older_build =
            self.dice.sizes.chance(1, 4) || self.swarm.sizes.is_some_and(|sizes| sizes.older_builds);
        let formation = if is_older_build { formation.without_learning() } else { formation };
        let slot = &mut self.replicas[replica];
        let fresh = Disk::new(slot.disk.sizes());
        slot.disk = fresh;
        slot.life += 1;
        slot.is_absent = false;
        slot.lost_disk = false;
        slot.is_greeting = false;
        slot.promised = PromisedLeases::default();
        slot.membership.node = node;
        slot.membership.forming = Some(formation);
        (slot.membership.learns, slot.membership.learned_anew) = (false, false);
        self.invariants.exchange(id, &mut View(0), &mut None);
        self.greet_soon(replica);
    }

    pub(crate) fn greet_soon(&mut self, replica: usize) {
        let (at, life) = (self.now(), self.replicas[replica].life);
        self.scheduler.schedule(at, SimEvent::Greet { replica, life });
    }

    /// What a replica says of itself to one that connects, if it runs.
    fn declaration(&self, replica: usize) -> Option<Declaration> {
        let slot = &self.replicas[replica];
        let Membership { node, forming, .. } = &slot.membership;
        match forming {
            Some(formation) => slot.is_greeting.then(|| formation.declaration()),
            None => slot.process.as_ref().map(|process| {
                let known = process.core().declared_configuration();
                Declaration::acting(ReplicaId(replica as u8), *node, known)
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
        let asks = formation.replaces().then(|| formation.declaration().node);
        let is_learner = formation.declaration().stage == Stage::Learning;
        for (other, declaration) in &others {
            formation.lost(ReplicaId(*other as u8));
            if let Some(theirs) = *declaration
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
            // It hears of that as it would when it connects.
            Decision::Act(configuration) if self.replicas[replica].process.is_some() => {
                let teller = others.iter().find_map(|(other, declaration)| {
                    let known = declaration.and_then(|declaration| declaration.configuration());
                    known.is_some_and(|known| known == configuration).then_some(*other)
                });
                if let Some(teller) = teller {
                    let (from, message) = (
                        Peer::Replica(ReplicaId(teller as u8)),
                        Message::Configuration(Box::new(configuration)),
                    );
                    self.tell(replica, life, Event::Message { from, message });
                }
                let life = self.replicas[replica].life;
                self.greet_again(replica, life);
            }
            Decision::Act(configuration) => {
                let Reconfiguration { epoch, roster, .. } = configuration;
                self.trace.line(now, format_args!("replica {replica} is in the group: {epoch:?} {roster:?}"));
                self.tally.record(if asks.is_some() { Occurrence::Replaced } else { Occurrence::Joined });
                let slot = &mut self.replicas[replica];
                slot.membership.configuration = configuration;
                slot.membership.forming = None;
                if asks.is_none() {
                    slot.membership.away = None;
                }
                let may_fail = self.swarm.sizes.is_none() || self.may_crash();
                let fails =
                    asks.is_some() && !self.is_healed && may_fail && self.dice.replacements.chance(1, 3);
                self.start_replica(replica);
                self.look_whether_it_votes(replica);
                if fails {
                    // Before anything that it has written is on its disk, more often than not.
                    self.crash_for_a_while(replica, true);
                }
            }
            Decision::Refuse(mismatch) => {
                self.trace.line(now, format_args!("replica {replica} is refused: {mismatch}"));
                self.tally.record(Occurrence::DiskRefused);
                self.put_back(replica);
            }
            Decision::Learn(configuration) => {
                if self.replicas[replica].process.is_none() {
                    self.start_learner(replica, configuration);
                }
                let life = self.replicas[replica].life;
                self.greet_again(replica, life);
            }
            Decision::Wait(_) | Decision::Vote(_) => {
                if let Some(node) = asks.filter(|_| !is_learner) {
                    self.ask_for_place(replica, node, &others);
                }
                self.greet_again(replica, life);
            }
        }
    }

    fn greet_again(&mut self, replica: usize, life: u64) {
        let at = self.now() + GREET_INTERVAL / u64::from(self.swarm.protocol.speed);
        self.scheduler.schedule(at, SimEvent::Greet { replica, life });
    }

    /// A node that is to come into a group of this configuration starts to copy what that holds, with nothing.
    fn start_learner(&mut self, replica: usize, configuration: Reconfiguration) {
        self.tally.record(Occurrence::Learning);
        let slot = &mut self.replicas[replica];
        slot.membership.configuration = configuration;
        slot.membership.learns = true;
        self.boot_replica(replica);
    }

    /// A learner that was stopped begins anew, with nothing: it may hear next that it is in the group. False if the replica was none.
    pub(crate) fn restart_learner(&mut self, replica: usize) -> bool {
        let slot = &mut self.replicas[replica];
        let was_learner = std::mem::take(&mut slot.membership.learns);
        if was_learner {
            // If its disk was lost, nobody misses what was on it.
            slot.disk = Disk::new(slot.disk.sizes());
            slot.lost_disk = false;
            slot.life += 1;
            slot.membership.learned_anew = true;
            self.tally.record(Occurrence::LearnerRestarted);
            self.greet_soon(replica);
        }
        was_learner
    }

    /// True if the replica may be at the other end of a connection of a member, though it is none: it has the next place.
    pub(super) fn is_newcomer_to(&self, member: usize, replica: usize) -> bool {
        let group = self.newest_configuration(member).roster.group();
        self.replicas[replica].membership.learns && group.grows_by(ReplicaId(replica as u8))
    }

    /// The operator puts back the disk that was taken away, and starts the replica. False if there is none.
    fn put_back(&mut self, replica: usize) -> bool {
        let slot = &mut self.replicas[replica];
        let Some(away) = slot.membership.away.take() else { return false };
        slot.life += 1;
        slot.is_greeting = false;
        let Away { disk, node, configuration, .. } = *away;
        slot.disk = disk;
        slot.membership = Membership::acting(node, configuration);
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
        if self.replicas[replica].membership.forming.as_ref().is_some_and(Formation::replaces) {
            // What would have had it look around again may be void.
            self.replicas[replica].life += 1;
            return self.greet_soon(replica);
        }
        if !self.put_back(replica) && !self.replicas[replica].is_greeting {
            self.greet_soon(replica);
        }
    }
}
