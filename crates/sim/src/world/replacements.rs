//! Nodes that lose their disks for good, and others that take their places; and operators who start the old node all the
//! same, whatever has become of its place.

use super::World;
use super::disks::Away;
use crate::journal::Disk;
use crate::world::SimEvent;
use syros_protocol::formation::{Declaration, Formation, Stage};
use syros_protocol::message::{Message, Peer};
use syros_protocol::replica::{Event, PlantedBug};
use syros_types::{Configuration, NodeId, Reconfiguration, ReplicaId};

impl World {
    /// A process that is not running is started with a new disk, as a node that is to take the place of the one it was. If that
    /// is one that was to take the place of another one, and has not been told that it has, nobody hears of it any more.
    pub(crate) fn begin_replacement(&mut self, replica: usize) {
        let now = self.now();
        let node = NodeId::new(self.dice.replacements.next_u64() | 1 << 32).expect("it is above 0");
        self.trace.line(now, format_args!("node {node} is to take the place of replica {replica}"));
        let id = ReplicaId(replica as u8);
        let formation = Formation::new(self.group, id, node, None).replacing().plant(self.planted);
        if self.replicas[replica].membership.is_forming() {
            self.exchange_nodes(replica);
            self.crash(replica, false);
        }
        let slot = &mut self.replicas[replica];
        let fresh = Disk::new(slot.disk.sizes());
        let configuration = slot.membership.configuration;
        slot.membership.newcomer = Some(node);
        slot.membership.away = Some(Box::new(Away::new(fresh, node, configuration, Some(formation))));
        self.exchange_nodes(replica);
    }

    /// Somebody finds the old node, and starts it instead; and then the new one again, and so on.
    pub(crate) fn plan_exchanges(&mut self, replica: usize) {
        let Some(newcomer) = self.replicas[replica].membership.newcomer else { return };
        let mut at = self.now();
        for _ in 0..self.dice.replacements.below(5) {
            at += 1 + self.dice.replacements.below(2 * self.swarm.nemesis.duration.max(1));
            self.scheduler.schedule(at, SimEvent::Exchange { replica, newcomer });
        }
    }

    /// Ends the process at this place, and starts that of the other node which could be there.
    pub(crate) fn exchange_nodes(&mut self, replica: usize) {
        self.crash(replica, false);
        let id = ReplicaId(replica as u8);
        let slot = &mut self.replicas[replica];
        let Some(away) = &mut slot.membership.away else { return };
        core::mem::swap(&mut slot.disk, &mut away.disk);
        core::mem::swap(&mut slot.promised, &mut away.promised);
        core::mem::swap(&mut slot.membership.node, &mut away.node);
        core::mem::swap(&mut slot.membership.configuration, &mut away.configuration);
        core::mem::swap(&mut slot.membership.forming, &mut away.forming);
        self.invariants.exchange(id, &mut away.told, &mut away.forgot);
        slot.life += 1;
        slot.is_greeting = false;
        slot.lost_disk = false;
        let now = self.scheduler.now();
        let node = slot.membership.node;
        self.trace.fold(node.number());
        self.trace.line(now, format_args!("node {node} is started as replica {replica}"));
        if self.replicas[replica].membership.is_forming() {
            self.greet_soon(replica);
        } else {
            self.start_replica(replica);
        }
    }

    /// Another of the two nodes that could be at a place is started there.
    pub(crate) fn exchange(&mut self, replica: usize, newcomer: NodeId) {
        if !self.is_healed && self.replicas[replica].membership.newcomer == Some(newcomer) {
            self.exchange_nodes(replica);
        }
    }

    /// Where two nodes have been started by turns, only the new one is from now on.
    pub(crate) fn settle_replacement(&mut self, replica: usize) {
        let membership = &self.replicas[replica].membership;
        let Some(newcomer) = membership.newcomer else { return };
        if membership.node != newcomer {
            self.exchange_nodes(replica);
        }
        let slot = &mut self.replicas[replica];
        slot.membership.away = None;
        slot.membership.newcomer = None;
    }

    /// A node that is to take a place asks those that it reaches for it.
    pub(crate) fn ask_for_place(
        &mut self,
        replica: usize,
        node: NodeId,
        others: &[(usize, Option<Declaration>)],
    ) {
        for (other, declaration) in others {
            let Some(Declaration { stage: Stage::Acting(_), .. }) = declaration else { continue };
            if self.replicas[*other].process.is_none() {
                continue;
            }
            let life = self.replicas[*other].life;
            let member = ReplicaId(replica as u8);
            self.tell(*other, life, Event::PlaceWanted { member, node });
        }
    }

    /// A replica acts in this configuration from now on, as its disk says.
    pub(crate) fn note_configuration(&mut self, replica: usize, configuration: &Configuration) {
        let known = configuration.reconfiguration();
        self.replicas[replica].membership.configuration = known;
        self.look_whether_it_is_committed(replica, &known);
        self.look_whether_they_learned(configuration);
        let node = self.replicas[replica].membership.node;
        let is_in = known.has_voter(ReplicaId(replica as u8), node);
        if self.replicas[replica].membership.learns && is_in {
            self.end_learning(replica);
        }
        let mistaken =
            configuration.roster.nodes().iter().flatten().find(|node| self.mistaken.contains(node));
        if let Some(node) = mistaken {
            let problem = format!("node {node} has a place that it has never asked for; {}", self.statuses());
            _ = self.misanswered.get_or_insert(problem);
        }
    }

    /// A learner acts in a configuration if a member does or knows of it, or some log says that it is committed.
    fn look_whether_it_is_committed(&mut self, replica: usize, known: &Reconfiguration) {
        let name = (known.epoch, known.roster);
        // Who has executed the entry knows of it, when it is not in the log any more.
        let knows = |slot: &super::ReplicaSlot| {
            let newest = slot.process.as_ref().filter(|_| !slot.membership.learns);
            let newest = newest.map(|process| process.core().newest_configuration());
            newest.is_some_and(|newest| (newest.epoch, newest.roster) == name)
        };
        let has_committed = |slot: &super::ReplicaSlot| {
            slot.process.as_ref().is_some_and(|process| process.core().has_committed(known))
        };
        let is_committed = !self.replicas[replica].membership.learns
            || self.replicas.iter().any(|slot| knows(slot) || has_committed(slot));
        if is_committed {
            self.configurations.push(name);
        } else if !self.configurations.contains(&name) {
            let wrong = format!(
                "replica {replica}, which learns, acts in {known:?}, which is not committed; {}",
                self.statuses()
            );
            _ = self.misanswered.get_or_insert(wrong);
        }
    }

    /// True if the receiver does not take the sender for the node that is at its place: they are not connected.
    pub(crate) fn is_of_other_node(
        &self,
        (from, to): (usize, usize),
        nodes: Option<(NodeId, NodeId)>,
    ) -> bool {
        let Some((sender, receiver)) = nodes else { return false };
        let is_meant = self.replicas[to].membership.node == receiver;
        let member = ReplicaId(from as u8);
        let knows = match &self.replicas[to].process {
            Some(process) => process.core().is_peer(member, sender) || self.is_newcomer_to(to, from),
            None => self.newest_configuration(to).has_voter(member, sender),
        };
        // With these, members take a node for another one.
        let takes_any = matches!(
            self.planted,
            Some(PlantedBug::ReplacedGoesAlong | PlantedBug::WipedDiskJoins | PlantedBug::FormationByQuorum)
        );
        (!is_meant || !knows) && !takes_any
    }

    /// Two replicas of which one does not know the other are not connected, and try. One of them may learn in the handshake of a
    /// later configuration, in which both are.
    pub(crate) fn compare_configurations(&mut self, from: usize, to: usize) {
        for (teller, learner) in [(from, to), (to, from)] {
            if self.replicas[teller].process.is_none() || self.network.is_cut(teller, learner) {
                continue;
            }
            let known = self.newest_configuration(teller);
            let names = |replica: usize| {
                known.has_voter(ReplicaId(replica as u8), self.replicas[replica].membership.node)
            };
            if known.epoch > self.newest_configuration(learner).epoch && names(teller) && names(learner) {
                let (from, life) = (Peer::Replica(ReplicaId(teller as u8)), self.replicas[learner].life);
                let message = Message::Configuration(Box::new(known));
                self.tell(learner, life, Event::Message { from, message });
            } else if self.has_removed(teller, learner) {
                self.remove(learner);
            }
        }
    }

    /// The nodes at both ends of a message between replicas, as its sender knows them.
    pub(crate) fn nodes_of(&self, from: usize, to: usize) -> Option<(NodeId, NodeId)> {
        let replicas = self.replicas.len();
        if from >= replicas || to >= replicas {
            return None;
        }
        let node = self.replicas[from].membership.node;
        let (known, to) = (self.newest_configuration(from), ReplicaId(to as u8));
        let before = || known.before.and_then(|before| before.node(to));
        let learner = || {
            let is_learner = self.is_newcomer_to(from, to.index());
            is_learner.then(|| self.replicas[to.index()].membership.node)
        };
        Some((node, known.roster.node(to).or_else(learner).or_else(before)?))
    }

    /// The newest configuration that a replica knows.
    pub(crate) fn newest_configuration(&self, replica: usize) -> Reconfiguration {
        let slot = &self.replicas[replica];
        let known = slot.process.as_ref().map(|process| process.core().newest_configuration());
        known.unwrap_or(slot.membership.configuration)
    }
}
