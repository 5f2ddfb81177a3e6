//! Changes of the group's members: one node takes the place of another one.
//!
//! **A configuration is a property of the view** (Vertical Paxos; VR Revisited 7): a view names the epoch of the configuration
//! it is of, so that every quorum, which is one of one view, is one of one configuration. A change of members is therefore an
//! entry of the log that names the next roster, and then a change of views:
//!
//! 1. The leader appends [`Payload::Reconfigure`]. Nothing follows from it until it is committed.
//! 2. When it is committed, its leader moves to a view of the new epoch, as if it handed over to itself. It has left its own
//!    view then, and its lease with it.
//! 3. A member adopts the configuration of a view when it leaves its own view for that one, and makes it durable before it
//!    says anything there. It leaves its view for the same reasons as ever: its promise to a leader is kept.
//! 4. A node that is new has lost its memory, as far as the protocol is concerned: it takes no part before a leader has let
//!    it into a view.
//!
//! `docs/PROTOCOL.md`, "Members that are replaced", argues why this is safe.

use super::role::Role;
use super::view_change::next_view_of;
use super::{Action, HandOverReason, PlantedBug, Replica, ViewChangeCause};
use crate::message::{Message, Payload, Peer, Prepared, ViewChangeReason};
use core::fmt;
use core::time::Duration;
#[cfg(feature = "model")]
use syros_types::Now;
use syros_types::{ConfigurationEpoch, Reconfiguration, ReplicaId, Roster, View};

/// Why a replica does not have the group's members changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconfigurationObjection {
    /// It does not lead.
    NotLeader {
        /// The leader of its view, if it follows one.
        leader: Option<ReplicaId>,
    },
    /// It has just begun to lead, and does not know yet who is there.
    JustBegun,
    /// It would be without itself.
    Leader,
    /// Another change has not ended.
    UnderWay {
        /// The epoch that it ends with.
        epoch: ConfigurationEpoch,
    },
    /// The node that is to be replaced is there.
    Alive {
        /// Its position.
        member: ReplicaId,
        /// How long ago it answered.
        silent: Duration,
    },
    /// More than one node is another one, or none is, or not every node is known.
    NotOneNode,
    /// So many of the members that stay have been heard of late, with the leader, and so many are needed.
    TooFew {
        /// Heard.
        heard: usize,
        /// Needed: a majority.
        needed: usize,
    },
    /// The log has no room.
    LogFull,
}

impl fmt::Display for ReconfigurationObjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotLeader { leader: Some(leader) } => write!(f, "it does not lead; {leader} does"),
            Self::NotLeader { leader: None } => f.write_str("it does not lead, and knows no leader"),
            Self::JustBegun => f.write_str("it has just begun to lead, and does not know yet who is there"),
            Self::Leader => f.write_str("it leads, and cannot replace itself: let another member lead first"),
            Self::UnderWay { epoch } => {
                write!(
                    f,
                    "another change of members is under way, to epoch {}: try again when it has ended",
                    epoch.0
                )
            }
            Self::Alive { member, silent } => write!(
                f,
                "the node that is {member} is running: it answered {} ms ago. Stop it first",
                silent.as_millis()
            ),
            Self::NotOneNode => f.write_str(
                "exactly one node can be replaced at a time, and all nodes must have been connected once",
            ),
            Self::TooFew { heard, needed } => write!(
                f,
                "of the members that stay {heard} are there, and {needed} are needed: start them first"
            ),
            Self::LogFull => f.write_str("the log has no room at present"),
        }
    }
}

impl core::error::Error for ReconfigurationObjection {}

impl Replica {
    // ---- The leader has the members changed.

    /// Why these nodes cannot become the group's members now, as far as this replica knows; `None` if they can.
    #[must_use]
    pub fn objection_to(&self, roster: &Roster) -> Option<ReconfigurationObjection> {
        let Role::Leader(leader) = &self.role else {
            let leader = self.is_normal().then(|| self.leader());
            return Some(ReconfigurationObjection::NotLeader { leader });
        };
        let configuration = &self.config.configuration;
        let others = |member: &ReplicaId| configuration.roster.node(*member) != roster.node(*member);
        let mut replaced = configuration.members().filter(others);
        let is_possible = roster.is_complete() && configuration.roster.is_complete();
        let (Some(member), None) = (replaced.next(), replaced.next()) else {
            return Some(ReconfigurationObjection::NotOneNode);
        };
        let is_new = roster.node(member).is_some_and(|node| configuration.roster.position(node).is_none());
        if !is_possible || !is_new || roster.group() != configuration.group() {
            return Some(ReconfigurationObjection::NotOneNode);
        }
        if member == self.config.replica {
            return Some(ReconfigurationObjection::Leader);
        }
        if let Some(next) = self.next_configuration().or(self.backlog.reconfiguration.map(|(_, next)| next)) {
            return Some(ReconfigurationObjection::UnderWay { epoch: next.epoch });
        }
        let patience = self.config.settings.suspect_after;
        if leader.entered_at.is_some_and(|entered| self.now.instant < entered.after(patience)) {
            return Some(ReconfigurationObjection::JustBegun);
        }
        let since = |member: ReplicaId| {
            let progress = &leader.progress[member.index()];
            let silent = self.now.instant.since(progress.heard.max(progress.fetched_at)?);
            (silent < patience).then_some(silent)
        };
        if let Some(silent) = since(member) {
            return Some(ReconfigurationObjection::Alive { member, silent });
        }
        let heard = 1 + self.others().filter(|other| since(*other).is_some()).count();
        let needed = configuration.majority();
        if heard < needed {
            return Some(ReconfigurationObjection::TooFew { heard, needed });
        }
        self.no_room_in_log().is_some().then_some(ReconfigurationObjection::LogFull)
    }

    /// Leader: has these nodes become the group's members, if that can be.
    ///
    /// # Errors
    /// What is against it.
    pub(super) fn reconfigure(&mut self, roster: Roster) -> Result<(), ReconfigurationObjection> {
        self.objection_to(&roster).map_or(Ok(()), Err)?;
        self.propose(roster);
        Ok(())
    }

    /// Leader: appends the next configuration to the log.
    fn propose(&mut self, roster: Roster) {
        let epoch = self.config.configuration.id.epoch.next();
        let next = alloc::boxed::Box::new(Reconfiguration { epoch, roster });
        self.append_ordered(Payload::Reconfigure(next.clone()), Prepared::Reconfigure(next));
    }

    /// Has these nodes become the members if this replica leads and knows of no other change, whoever is there: a model has
    /// no time in which that could be seen.
    #[cfg(feature = "model")]
    pub fn replace_members(&mut self, now: Now, roster: Roster) {
        self.now = Now { instant: self.now.instant.max(now.instant), wall: now.wall };
        if self.is_leader() && self.next_configuration().is_none() && self.backlog.reconfiguration.is_none() {
            self.propose(roster);
        }
    }

    /// The newest configuration that is known to follow that of this replica.
    fn next_configuration(&self) -> Option<Reconfiguration> {
        self.known_configuration.filter(|known| known.epoch > self.config.configuration.id.epoch)
    }

    /// Leader: moves to the next configuration, if that is committed. It is the first to know: a follower that counts commits
    /// itself may be ahead of it, and stays in its view until it is told of another one.
    pub(super) fn begin_committed_configuration(&mut self) {
        if !self.is_leader() {
            return;
        }
        let committed = self.backlog.reconfiguration.filter(|(number, _)| *number <= self.commit);
        if let Some((_, next)) = committed {
            self.learn_configuration(next);
        }
        let Some(next) = self.next_configuration() else { return };
        if !self.is_in(&next) {
            return self.step_down(HandOverReason::Replaced);
        }
        let configuration = self.config.configuration.after(next);
        let at_least = View::of_epoch(next.epoch, self.view.number() + 1);
        let view = next_view_of(&configuration, self.config.replica, at_least);
        // Others have to know whom that view is of before they can go along.
        self.broadcast(&Message::Configuration(alloc::boxed::Box::new(next)));
        self.move_to(view, ViewChangeReason::Abdication, ViewChangeCause::Reconfigured);
    }

    /// True if this node is in that configuration.
    fn is_in(&self, next: &Reconfiguration) -> bool {
        self.planted(PlantedBug::ReplacedGoesAlong)
            || self.config.node.is_none_or(|node| next.roster.node(self.config.replica) == Some(node))
    }

    // ---- Members learn of configurations.

    /// True if this replica may act upon what a member says of this view: the view is of its own configuration, or of the
    /// newest one that it knows and is in. If not, one of the two learns of the other's.
    pub(super) fn is_of_known_configuration(&mut self, from: ReplicaId, view: View) -> bool {
        let ours = self.config.configuration.id.epoch;
        let newest = self.newest_epoch();
        match view.epoch() {
            epoch if epoch == ours => true,
            epoch if epoch == newest => self.next_configuration().is_some_and(|next| self.is_in(&next)),
            epoch if epoch > newest => {
                self.send(Peer::Replica(from), Message::GetConfiguration { epoch: newest });
                false
            }
            _ => {
                self.tell_configuration(from);
                if self.is_normal() {
                    let view = self.view;
                    self.send(Peer::Replica(from), Message::WrongView { view });
                }
                false
            }
        }
    }

    /// The newest epoch that this replica knows the configuration of.
    fn newest_epoch(&self) -> ConfigurationEpoch {
        self.next_configuration().map_or(self.config.configuration.id.epoch, |next| next.epoch)
    }

    pub(super) fn on_get_configuration(&mut self, from: ReplicaId, epoch: ConfigurationEpoch) {
        if epoch < self.newest_epoch() {
            self.tell_configuration(from);
        }
    }

    /// The newest configuration that this replica knows: it acts in that or will, if it is in it. Nodes that are not in it are
    /// not to be connected to, and those that are have to be: nobody but a new node may know of the views that it leads.
    #[must_use]
    pub fn newest_configuration(&self) -> Reconfiguration {
        let ours = &self.config.configuration;
        let ours = Reconfiguration { epoch: ours.id.epoch, roster: ours.roster };
        self.next_configuration().unwrap_or(ours)
    }

    fn tell_configuration(&mut self, to: ReplicaId) {
        let known = self.newest_configuration();
        if known.epoch > ConfigurationEpoch::FIRST {
            self.send(Peer::Replica(to), Message::Configuration(alloc::boxed::Box::new(known)));
        }
    }

    /// A configuration is committed: somebody says so, or the log or a snapshot does.
    pub(super) fn learn_configuration(&mut self, known: Reconfiguration) {
        let is_news = known.epoch > self.newest_epoch();
        if self.known_configuration.is_none_or(|before| before.epoch < known.epoch) {
            self.known_configuration = Some(known);
        }
        if is_news {
            let ours = self.config.configuration.id.epoch;
            self.later_views.retain_wants(|view| view.epoch() == ours || view.epoch() == known.epoch);
        }
    }

    /// This replica is about to leave its view for this one: it acts in the configuration of that.
    pub(super) fn adopt_configuration_of(&mut self, view: View) {
        let epoch = view.epoch();
        if epoch <= self.config.configuration.id.epoch {
            return;
        }
        let known = self.known_configuration.filter(|known| known.epoch == epoch);
        let next = known.expect("nothing is done about views whose configuration is not known");
        let before = self.config.configuration;
        self.config.configuration = before.after(next);
        for member in
            before.members().filter(|member| before.roster.node(*member) != next.roster.node(*member))
        {
            // That was of another node.
            self.clocks[member.index()] = None;
        }
        self.snapshots.forget_what_all_hold();
        self.actions.push_back(Action::Reconfigured(self.config.configuration));
        self.later_views.retain_wants(|view| view.epoch() >= epoch);
    }
}
