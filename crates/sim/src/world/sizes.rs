//! Groups that grow by two nodes, and shrink by two.

use super::World;
use crate::tally::Occurrence;
use syros_protocol::formation::Stage;
use syros_protocol::message::{Message, Peer, RoleName};
use syros_protocol::replica::Event;
use syros_types::{Configuration, Group, NodeId, ReplicaId};

impl World {
    /// An operator has the group grow or shrink. False if that is not to be now.
    pub(super) fn resize(&mut self) -> bool {
        self.settle_size();
        let Some(sizes) = self.swarm.sizes.filter(|_| self.is_settled()) else { return false };
        let Some(leader) = self.leader() else { return false };
        let now = self.newest_configuration(leader).roster.group();
        let smaller = now.smaller().filter(|group| group.size() >= sizes.smallest);
        let larger = now.larger().filter(|group| group.size() <= self.replicas.len());
        let grows = self.dice.sizes.chance(1, 2);
        let Some(next) = (if grows { larger.or(smaller) } else { smaller.or(larger) }) else { return false };
        let epoch = self.newest_configuration(leader).epoch.0;
        if next.size() < now.size() {
            let life = self.replicas[leader].life;
            let (from, message) = (Peer::Client(u64::MAX), Message::Shrink { to: next });
            if self.without_memory() > next.faults() {
                if self.swarm.service_delay > 0 {
                    // Nobody would know soon enough what has become of it.
                    return false;
                }
                // The group could not go on if those stay: it is for the leader to see that.
                self.tell(leader, life, Event::Message { from, message });
                let Some(leader) = self.replicas[leader].process.as_ref() else { return false };
                if !leader.core().has_other_configuration_in_log() {
                    return false;
                }
                self.tally.record(Occurrence::ShrunkWithoutMemory);
            } else {
                self.tell(leader, life, Event::Message { from, message });
            }
            self.group = next;
            // It may happen long after this, if it is in the log of a leader that fails.
            self.shrinks_after = epoch + 1;
        } else {
            self.grow();
        }
        true
    }

    /// The nodes that the group is to grow by start.
    pub(crate) fn grow(&mut self) {
        let Some(leader) = self.leader() else { return };
        let now = self.newest_configuration(leader).roster.group();
        let Some(next) = now.larger() else { return };
        if self.dice.sizes.chance(1, 3) {
            // Somebody has mistaken the number of another node.
            let member = ReplicaId(next.size() as u8 + self.dice.sizes.below(2) as u8);
            let node = NodeId::new(self.dice.sizes.next_u64() | 1 << 32).expect("it is above 0");
            let life = self.replicas[leader].life;
            self.mistaken.insert(node);
            self.tell(leader, life, Event::PlaceWanted { member, node });
        }
        for replica in now.size()..next.size() {
            let node = NodeId::new(self.dice.sizes.next_u64() | 1 << 32).expect("it is above 0");
            let at = self.now();
            self.trace.line(at, format_args!("node {node} is to be replica {replica}"));
            self.begin_joining(replica, next, node);
        }
    }

    /// A learner has ended: members find its connection closed.
    pub(super) fn tell_learner_gone(&mut self, replica: usize) {
        if !self.replicas[replica].membership.learns {
            return;
        }
        for member in (0..self.replicas.len()).filter(|member| *member != replica) {
            if !self.network.is_cut(replica, member) {
                let life = self.replicas[member].life;
                self.tell(member, life, Event::LearnerGone(ReplicaId(replica as u8)));
            }
        }
    }

    /// A group grows only by nodes that have copied what it holds, unless they are of older builds. (One that was started again
    /// has begun anew since it asked.)
    pub(super) fn look_whether_they_learned(&mut self, configuration: &Configuration) {
        let is_ignorant = |member: &ReplicaId| {
            let slot = &self.replicas[member.index()];
            let process =
                slot.process.as_ref().filter(|_| slot.membership.learns && !slot.membership.learned_anew);
            process.is_some_and(|process| !process.core().has_learned())
        };
        if let Some(member) = configuration.members().find(is_ignorant) {
            let wrong = format!("the group grows by {member}, which has copied nothing; {}", self.statuses());
            _ = self.misanswered.get_or_insert(wrong);
        }
    }

    /// A node that has copied what the group holds has become a member.
    pub(super) fn end_learning(&mut self, replica: usize) {
        let now = self.now();
        self.trace.line(now, format_args!("replica {replica} is in the group, and has copied what it holds"));
        self.tally.record(Occurrence::Learned);
        let membership = &mut self.replicas[replica].membership;
        (membership.forming, membership.learns) = (None, false);
        self.look_whether_it_votes(replica);
        self.start_front_ends(replica);
    }

    /// A node that has started for the first time is to have a vote if its group has grown by it in the configuration that it has been told:
    /// its group may need that, and would stand still without it.
    pub(super) fn look_whether_it_votes(&mut self, replica: usize) {
        let Some(process) = &self.replicas[replica].process else { return };
        let (epoch, role) = (process.core().configuration().id.epoch, process.core().status().role);
        let has_grown = |other: &super::ReplicaSlot| {
            let known =
                other.process.as_ref().map(|process| process.core().configuration().reconfiguration());
            let known = known.filter(|known| known.epoch == epoch).and_then(|known| known.before);
            known.is_some_and(|before| !before.group().has(ReplicaId(replica as u8)))
        };
        if role == RoleName::Recovering && self.replicas.iter().any(has_grown) {
            let wrong = format!("replica {replica}, by which the group has grown in {epoch:?}, has no vote");
            self.misanswered.get_or_insert(wrong);
        }
    }

    /// True if nobody comes or goes: all that are there act in one configuration, and a leader knows it to be established.
    pub(super) fn is_settled(&self) -> bool {
        let Some(leader) = self.leader().and_then(|leader| self.replicas[leader].process.as_ref()) else {
            return false;
        };
        let newest = leader.core().newest_configuration();
        let members = newest.roster.group();
        // An entry that no view has committed may yet be.
        let mut processes = self.replicas.iter().filter_map(|slot| slot.process.as_ref());
        if processes.any(|process| process.core().has_other_configuration_in_log()) {
            return false;
        }
        let is_one_of_them = |(replica, slot): (usize, &super::ReplicaSlot)| {
            let (is_member, membership) = (members.has(ReplicaId(replica as u8)), &slot.membership);
            is_member != slot.is_absent
                && (slot.is_absent
                    || (!membership.is_forming()
                        && !membership.is_contested()
                        && membership.configuration.epoch == newest.epoch))
        };
        leader.core().is_established()
            && leader.core().configuration().id.epoch == newest.epoch
            && self.replicas.iter().enumerate().all(is_one_of_them)
    }

    /// True if the group changes its size at present, or may yet without anything more being done.
    pub(crate) fn may_change_size(&self) -> bool {
        let has_shrunk = |leader| self.newest_configuration(leader).epoch.0 >= self.shrinks_after;
        self.swarm.sizes.is_some() && (!self.is_settled() || !self.leader().is_some_and(has_shrunk))
    }

    /// When nobody comes or goes any more, the group can bear what its size says.
    pub(crate) fn settle_size(&mut self) {
        if self.swarm.sizes.is_some() && !self.may_change_size() {
            let members = self.replicas.iter().filter(|slot| !slot.is_absent).count();
            self.group = Group::new(members).expect("groups grow and shrink by two");
        }
    }

    /// True if the first replica knows that the group has shrunk by the second one, and that it is not needed any more.
    pub(super) fn has_removed(&self, teller: usize, learner: usize) -> bool {
        let Some(process) = &self.replicas[teller].process else { return false };
        let (slot, member) = (&self.replicas[learner], ReplicaId(learner as u8));
        let core = process.core();
        let (node, ours) = (slot.membership.node, core.configuration());
        // It was a member before: one that is to become one is not told so.
        let was_one = self.newest_configuration(learner).has_voter(member, node);
        self.swarm.sizes.is_some()
            && core.newest_configuration().epoch == ours.id.epoch
            && self.newest_configuration(learner).epoch <= ours.id.epoch
            && !ours.has(member)
            && core.is_established()
            && !slot.is_absent
            && !slot.membership.is_forming()
            && was_one
    }

    /// A node has been told that the group has shrunk by it, and ends.
    pub(super) fn remove(&mut self, replica: usize) {
        let now = self.now();
        self.trace.line(now, format_args!("replica {replica} is told that it has been removed"));
        self.tally.record(Occurrence::Removed);
        self.crash(replica, false);
        let slot = &mut self.replicas[replica];
        slot.life += 1;
        slot.is_absent = true;
    }

    /// True if a node wants to come into the group together with another one that stays dead: the group grows by both or by
    /// neither.
    pub(crate) fn waits_for_dead(&self, replica: usize) -> bool {
        let Some(leader) = self.leader().filter(|_| self.replicas[replica].membership.is_forming()) else {
            return false;
        };
        let size = self.newest_configuration(leader).roster.group();
        let would_come = |replica: usize| size.grows_by(ReplicaId(replica as u8));
        let mut slots = self.replicas.iter().enumerate();
        would_come(replica) && slots.any(|(other, slot)| slot.stays_dead && would_come(other))
    }

    /// A node that wants to be a member cannot be one, because the group has another size by now; its operator gives up.
    pub(crate) fn give_up_joining(&mut self, replica: usize) -> bool {
        let Some(leader) = self.leader().and_then(|leader| self.replicas[leader].process.as_ref()) else {
            return false;
        };
        let (slot, member) = (&self.replicas[replica], ReplicaId(replica as u8));
        let size = leader.core().newest_configuration().roster.group();
        // A place that is gone can be had by growing again, but not be taken from whoever had it.
        let stage = slot.membership.forming.as_ref().map(|forming| forming.declaration().stage);
        let joins = matches!(stage, Some(Stage::Joining | Stage::Learning));
        let is_possible = size.has(member) || (joins && size.grows_by(member));
        if is_possible || !slot.membership.is_forming() || slot.is_absent {
            return false;
        }
        self.crash(replica, false);
        let slot = &mut self.replicas[replica];
        slot.life += 1;
        (slot.membership.forming, slot.membership.learns) = (None, false);
        slot.is_absent = true;
        true
    }
}
