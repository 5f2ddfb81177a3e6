//! Changes of the group's members: one node takes the place of another one, or the group becomes larger or smaller by two.
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
//! 4. A node that takes another one's place has lost its memory, as far as the protocol is concerned: it takes no part before
//!    a leader has let it into a view.
//! 5. Where the size changes, a view that goes on from one of the configuration before needs majorities of both. So the nodes
//!    that the group grows by take part in changes of views at once, with the nothing that they hold, and those that it
//!    shrinks by until a view of the new configuration has committed something.
//!
//! `docs/PROTOCOL.md`, "Nodes that are replaced" and "Groups that grow and shrink", argues why this is safe.

use super::role::{Newcomer, Role};
use super::view_change::next_view_of;
use super::{Action, HandOverReason, PlantedBug, Replica, ViewChangeCause};
use crate::message::{Message, Payload, Peer, Prepared, ViewChangeReason};
use core::fmt;
use core::time::Duration;
#[cfg(feature = "model")]
use syros_types::Now;
use syros_types::{
    Configuration, ConfigurationEpoch, Group, Instant, NodeId, OpNumber, Reconfiguration, ReplicaId,
    ReplicaSet, Roster, View,
};

/// A node that has asked for a place by which the group would grow is taken for one that is there for so long. It asks again
/// and again, and a leader that proposes it needs it soon.
const NEWCOMER_KEPT: Duration = Duration::from_secs(2);

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
    /// The group would not become larger or smaller by two, or its other nodes would not stay as they are.
    NotTwoNodes {
        /// Its size.
        now: Group,
        /// The size that it is to have.
        wanted: Group,
    },
    /// A group grows by two nodes at once, and the other one has not asked for its place.
    Alone {
        /// The place of the other one.
        other: ReplicaId,
    },
    /// The group has other sizes.
    NoSuchPlace {
        /// The place that was asked for.
        member: ReplicaId,
        /// The group's size.
        now: Group,
    },
    /// So many of the members that stay have acknowledged something of late, with the leader, and so many are needed: a majority of the
    /// members now and of those that there will be, without any that have yet to copy what the group holds.
    TooFew {
        /// So many have.
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
            Self::NotTwoNodes { now, wanted } => write!(
                f,
                "the group has {} members and can become larger or smaller by two, while the others stay as they are; \
                 it is to have {}",
                now.size(),
                wanted.size()
            ),
            Self::Alone { other } => {
                write!(
                    f,
                    "a group grows by two nodes at once, and the one that is to be {other} has not asked for its place: it copies \
                     what the group holds, or is yet to be started"
                )
            }
            Self::NoSuchPlace { member, now } => write!(
                f,
                "{member} is no place in a group of {}, and none by which it could grow",
                now.size()
            ),
            Self::TooFew { heard, needed } => write!(
                f,
                "of the members that stay {heard} are there with the group's data, and {needed} are needed: start them, or wait until they \
                 have it"
            ),
            Self::LogFull => f.write_str("the log has no room at present"),
        }
    }
}

impl core::error::Error for ReconfigurationObjection {}

impl Replica {
    // ---- The leader has the members changed.

    /// The objection of a replica that does not lead.
    fn not_leader(&self) -> ReconfigurationObjection {
        ReconfigurationObjection::NotLeader { leader: self.is_normal().then(|| self.leader()) }
    }

    /// Why these nodes cannot become the group's members now, as far as this replica knows; `None` if they can.
    #[must_use]
    pub fn objection_to(&self, roster: &Roster) -> Option<ReconfigurationObjection> {
        let Role::Leader(leader) = &self.role else { return Some(self.not_leader()) };
        let configuration = &self.config.configuration;
        let resized = roster.group() != configuration.group();
        let replaced = if resized {
            self.check_resized(roster).map(|()| None)
        } else {
            self.replaced_position(roster).map(Some)
        };
        let replaced = match replaced {
            Ok(replaced) => replaced,
            Err(objection) => return Some(objection),
        };
        if replaced == Some(self.config.replica) || !roster.group().has(self.config.replica) {
            return Some(ReconfigurationObjection::Leader);
        }
        if let Some(next) = self.next_configuration().or(self.backlog.reconfiguration.map(|(_, next)| next)) {
            return Some(ReconfigurationObjection::UnderWay { epoch: next.epoch });
        }
        let patience = self.config.settings.suspect_after;
        if leader.entered_at.is_some_and(|entered| self.now.instant < entered.after(patience)) {
            return Some(ReconfigurationObjection::JustBegun);
        }
        let since = |at: Option<Instant>| at.map(|at| self.now.instant.since(at)).filter(|it| *it < patience);
        let progress = |member: ReplicaId| &leader.progress[member.index()];
        // One that fetches what it lacks is there, too.
        let silent = |member| since(progress(member).heard.max(progress(member).fetched_at));
        if let Some((member, silent)) = replaced.and_then(|member| Some((member, silent(member)?))) {
            return Some(ReconfigurationObjection::Alive { member, silent });
        }
        // But it acknowledges nothing and may have no vote before it has that: what is decided here needs others.
        let acts = |member: &ReplicaId| {
            let heard = progress(*member).heard;
            let fetched = progress(*member).fetched_at.filter(|_| self.planted(PlantedBug::FetchingCounted));
            *member == self.config.replica || since(heard.max(fetched)).is_some()
        };
        // Learners hold what the group does. So they acknowledge something as soon as they are members.
        let learners = leader.newcomers.iter().flatten().filter(|newcomer| {
            newcomer.has_copied
                && self.is_kept(newcomer)
                && roster.node(newcomer.member) == Some(newcomer.node)
        });
        let acting: ReplicaSet =
            configuration.members().filter(acts).chain(learners.map(|learner| learner.member)).collect();
        for group in [configuration.group(), roster.group()] {
            let (heard, needed) = (acting.within(ReplicaSet::of(group)).len(), group.majority());
            // One member alone is no majority of three. Nodes of older builds ask for places before they have copied what it
            // has; it cannot serve then until one of them has.
            if heard < needed && configuration.size() > 1 {
                return Some(ReconfigurationObjection::TooFew { heard, needed });
            }
        }
        self.no_room_in_log().is_some().then_some(ReconfigurationObjection::LogFull)
    }

    /// The roster in which this node has the place that it asks for. A leader remembers who has asked for one of the two places
    /// that a group grows by.
    fn roster_with(&self, member: ReplicaId, node: NodeId) -> Result<Roster, ReconfigurationObjection> {
        let ours = &self.config.configuration.roster;
        let now = ours.group();
        if now.has(member) {
            return Ok(ours.with(member, node));
        }
        let no_such_place = ReconfigurationObjection::NoSuchPlace { member, now };
        let larger = now.larger().filter(|larger| larger.has(member)).ok_or(no_such_place)?;
        let is_first = member.index() == now.size();
        let other = ReplicaId(if is_first { member.0 + 1 } else { member.0 - 1 });
        let asked = self.role.leading().and_then(|leader| leader.newcomers[usize::from(is_first)]);
        let asked = asked.filter(|asked| {
            self.is_kept(asked) && (asked.member == other || self.planted(PlantedBug::AnyNewcomerTaken))
        });
        match asked {
            Some(second) => Ok(ours.resized(larger).with(member, node).with(other, second.node)),
            None => Err(ReconfigurationObjection::Alone { other }),
        }
    }

    /// Why this node cannot have the place that it asks for now, as far as this replica knows; `None` if it can.
    #[must_use]
    pub fn objection_to_place(&self, member: ReplicaId, node: NodeId) -> Option<ReconfigurationObjection> {
        if !self.is_leader() {
            return Some(self.not_leader());
        }
        match self.roster_with(member, node) {
            Ok(roster) => self.objection_to(&roster),
            Err(objection) => Some(objection),
        }
    }

    /// True if the node is taken for one that is there: it has asked for its place of late.
    fn is_kept(&self, newcomer: &Newcomer) -> bool {
        // A learner asks with every `resend`. If it does not, it is not there any more.
        let kept = if newcomer.has_copied { self.freshness() } else { NEWCOMER_KEPT };
        self.now.instant < newcomer.asked_at.after(kept)
    }

    /// A node asks for a place: that of a node that is lost, or one of those that the group would grow by.
    pub(super) fn on_place_wanted(&mut self, member: ReplicaId, node: NodeId, has_copied: bool) {
        let now = self.config.configuration.group();
        let roster = self.roster_with(member, node);
        // Who asks for a place that there will not be is not remembered: it would be given one that it has not asked for.
        let is_taken = !now.has(member) && self.planted(PlantedBug::AnyNewcomerTaken);
        if now.grows_by(member) || is_taken {
            let asked_at = self.now.instant;
            self.remember_newcomer(Newcomer { member, node, asked_at, has_copied });
        }
        if let Ok(roster) = roster
            && self.objection_to(&roster).is_none()
        {
            // What learners lack yet must still be in the log when they are members.
            for newcomer in roster.group().members().skip(now.size()) {
                self.snapshots.hear_reader(newcomer, self.now.instant);
            }
            self.propose(roster);
        }
    }

    /// Somebody wants the group to have this size, which is smaller. Only a leader does anything, and one that would be
    /// without itself lets another member lead first.
    pub(super) fn on_shrink(&mut self, group: Group) {
        let roster = self.config.configuration.roster.resized(group);
        match self.objection_to(&roster) {
            None => self.propose(roster),
            Some(ReconfigurationObjection::Leader) if group.size() < self.config.configuration.size() => {
                self.hand_over_to_longest_log(ReplicaSet::of(group), HandOverReason::Replaced);
            }
            Some(_) => {}
        }
    }

    /// The one position that has another node, a new one, in a roster of the same size.
    fn replaced_position(&self, roster: &Roster) -> Result<ReplicaId, ReconfigurationObjection> {
        let ours = &self.config.configuration.roster;
        let others = |member: &ReplicaId| ours.node(*member) != roster.node(*member);
        let mut replaced = ours.group().members().filter(others);
        let (Some(member), None) = (replaced.next(), replaced.next()) else {
            return Err(ReconfigurationObjection::NotOneNode);
        };
        let is_new = roster.node(member).is_some_and(|node| ours.position(node).is_none());
        if roster.is_complete() && ours.is_complete() && is_new {
            Ok(member)
        } else {
            Err(ReconfigurationObjection::NotOneNode)
        }
    }

    /// Checks that a roster of another size has the same nodes otherwise, and can follow.
    fn check_resized(&self, roster: &Roster) -> Result<(), ReconfigurationObjection> {
        let ours = &self.config.configuration.roster;
        if is_resized(ours, roster) && (ours.is_complete() || !roster.is_complete()) {
            return Ok(());
        }
        Err(ReconfigurationObjection::NotTwoNodes { now: ours.group(), wanted: roster.group() })
    }

    /// Leader: appends the next configuration to the log.
    pub(super) fn propose(&mut self, roster: Roster) {
        let epoch = self.config.configuration.id.epoch.next();
        let ours = self.config.configuration.roster;
        let before = (roster.group() != ours.group()).then_some(ours);
        let next = alloc::boxed::Box::new(Reconfiguration { epoch, roster, before });
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
    pub(super) fn next_configuration(&self) -> Option<Reconfiguration> {
        self.known_configuration.filter(|known| known.epoch > self.config.configuration.id.epoch)
    }

    /// The configuration that follows, if it is known, and those who act in it may be unable to want a view of it: it has fewer members,
    /// so they may be departing. (A larger one needs a larger majority. Those who act in it want views of it.)
    pub(super) fn next_smaller_configuration(&self) -> Option<Reconfiguration> {
        let size = self.config.configuration.size();
        self.next_configuration().filter(|next| next.roster.group().size() < size)
    }

    /// The last entry that may be committed when the logs of members are durable so far: a majority has it. One by which the group
    /// shrinks, a majority of those that stay must have, too. Those that go could otherwise decide it for a group that cannot go on:
    /// its members may have lost their memory, which the larger group would bear.
    pub(super) fn committable(&self, durable: &[OpNumber; Group::SIZE_MAX]) -> OpNumber {
        let missing = usize::from(self.planted(PlantedBug::CommitTooEarly));
        let of_majority =
            |group: Group| reached_by(&durable[..group.size()], (group.majority() - missing).max(1));
        let ours = self.config.configuration.group();
        let candidate = of_majority(ours);
        let smaller = self.backlog.reconfiguration.filter(|(number, next)| {
            *number <= candidate
                && next.epoch > self.config.configuration.id.epoch
                && next.roster.group().size() < ours.size()
                && !self.planted(PlantedBug::ShrunkByThoseThatGo)
        });
        smaller.map_or(candidate, |(number, next)| {
            candidate.min(of_majority(next.roster.group()).max(OpNumber(number.0 - 1)))
        })
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
            let stay = ReplicaSet::of(next.roster.group());
            return self.hand_over_to_longest_log(stay, HandOverReason::Replaced);
        }
        let configuration = self.config.configuration.after(next);
        let at_least = View::of_epoch(next.epoch, self.view.number() + 1);
        let view = next_view_of(&configuration, self.config.replica, at_least);
        // Others have to know whom that view is of before they can go along.
        let told = Message::Configuration(alloc::boxed::Box::new(next));
        self.broadcast(&told);
        // Nor can learners that are members from now on.
        for newcomer in next.roster.group().members().skip(self.config.configuration.size()) {
            self.send(Peer::Replica(newcomer), told.clone());
        }
        self.move_to(view, ViewChangeReason::Abdication, ViewChangeCause::Reconfigured);
    }

    /// True if this node is in that configuration.
    pub(super) fn is_in(&self, next: &Reconfiguration) -> bool {
        next.roster.group().has(self.config.replica)
            && (self.planted(PlantedBug::ReplacedGoesAlong)
                || self.config.node.is_none_or(|node| next.roster.node(self.config.replica) == Some(node)))
    }

    /// True if this node is one that the group shrinks by with that configuration: it votes until a view of it has committed
    /// something.
    pub(super) fn is_leaving_by(&self, next: &Reconfiguration) -> bool {
        let me = self.config.replica;
        !next.roster.group().has(me)
            && next.before.is_some_and(|before| {
                before.group().has(me) && self.config.node.is_none_or(|node| before.node(me) == Some(node))
            })
    }

    /// True if the group has shrunk by this node, and a view of the configuration without it may still need its vote.
    pub(super) fn is_departing(&self) -> bool {
        !self.config.configuration.has(self.config.replica) && !self.is_learner()
    }

    /// Members of the configuration before whose votes the first view of this one may need.
    pub(super) fn departing_voters(&self) -> impl Iterator<Item = ReplicaId> + Clone + use<> {
        let me = self.config.replica;
        let needed = self.last_normal.epoch() < self.config.configuration.id.epoch;
        self.config.configuration.departing().filter(move |member| needed && *member != me)
    }

    /// True if a view of its configuration has committed something, as far as this replica knows. Before that the
    /// configuration before may be needed; from then on it is not.
    #[must_use]
    pub fn is_established(&self) -> bool {
        let epoch = self.config.configuration.id.epoch;
        epoch == ConfigurationEpoch::FIRST
            || self.planted(PlantedBug::EstablishedEarly)
            || self.log.view_at(self.commit).is_some_and(|view| view.epoch() == epoch)
    }

    /// True if its log has a later configuration, committed or not, that it has not executed: what the judge of a simulation looks at.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub fn has_other_configuration_in_log(&self) -> bool {
        let ours = self.config.configuration.id.epoch;
        self.backlog.reconfiguration.is_some_and(|(_, next)| next.epoch > ours)
    }

    /// True if its log says that this configuration is committed: what the judge of a simulation looks at.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub fn has_committed(&self, configuration: &Reconfiguration) -> bool {
        let name = |of: &Reconfiguration| (of.epoch, of.roster);
        let numbers = (self.log.base().0 + 1..=self.commit.0).rev().map(OpNumber);
        numbers.filter_map(|number| self.log.entry(number)).any(
            |entry| matches!(&entry.payload, Payload::Reconfigure(next) if name(next) == name(configuration)),
        )
    }

    /// True if this replica has to do with that node in that position: it is a member of the newest configuration known, or one
    /// that the group shrinks by and that may be needed yet.
    #[must_use]
    pub fn is_peer(&self, member: ReplicaId, node: NodeId) -> bool {
        let newest = self.newest_configuration();
        newest.roster.node(member) == Some(node)
            || (newest.has_voter(member, node)
                && (newest.epoch > self.config.configuration.id.epoch || !self.is_established()))
    }

    // ---- Nodes that the group grows by.

    /// True if the group has grown by this node.
    pub(super) fn is_grown_by(&self) -> bool {
        let Configuration { roster, before, .. } = &self.config.configuration;
        let me = self.config.replica;
        roster.group().has(me) && before.is_some_and(|before| !before.group().has(me))
    }

    /// A node that the group grows by begins to act: it is like a member that was away since the group began.
    pub(super) fn boot_newcomer(&mut self) {
        self.view = View::of_epoch(self.config.configuration.id.epoch, 0);
        self.begin_view_change(self.config.settings.view_change_timeout);
        self.move_to(self.view.next(), ViewChangeReason::Moved, ViewChangeCause::Reconfigured);
    }

    /// True if this node holds nothing: it has been in no view yet. It votes for others meanwhile, and cannot lead.
    pub(super) fn holds_nothing(&self) -> bool {
        let epoch = self.config.configuration.id.epoch;
        epoch > ConfigurationEpoch::FIRST
            && self.last_normal == View(0)
            && self.log.op_number() == OpNumber(0)
    }

    // ---- Members learn of configurations.

    /// The configuration that a view is of: that of this replica, or the one before or after it.
    pub(super) fn configuration_of(&self, view: View) -> Configuration {
        let ours = self.config.configuration;
        let next = self.next_configuration().filter(|next| next.epoch == view.epoch());
        next.map_or_else(|| ours.of_epoch(view.epoch()), |next| ours.after(next))
    }

    /// True if this replica may act upon what a member says of this view: the view is of its own configuration, or of the
    /// newest one that it knows and is in. If not, one of the two learns of the other's.
    pub(super) fn is_of_known_configuration(
        &mut self,
        from: ReplicaId,
        view: View,
        message: &Message,
    ) -> bool {
        let ours = self.config.configuration.id.epoch;
        let newest = self.newest_epoch();
        match view.epoch() {
            epoch if epoch == ours => true,
            epoch if epoch == newest => {
                self.next_configuration().is_some_and(|next| self.is_in(&next) || self.is_leaving_by(&next))
                    || self.is_learner()
            }
            epoch if epoch > newest => {
                self.send(Peer::Replica(from), Message::GetConfiguration { epoch: newest });
                false
            }
            // Two that are in different views of the past would answer each other for ever.
            _ if matches!(message, Message::WrongView { .. }) => false,
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
        self.next_configuration().unwrap_or_else(|| self.config.configuration.reconfiguration())
    }

    /// What it says of that when it connects: of the configuration before nothing, if that is not needed any more. Nodes that a group
    /// shrinks by learn thereby that they can go. Those that it grows by learn from the configuration before that they are
    /// new, and have a vote.
    #[must_use]
    pub fn declared_configuration(&self) -> Reconfiguration {
        let newest = self.newest_configuration();
        let is_needed = newest.epoch > self.config.configuration.id.epoch || !self.is_established();
        let has_grown = |before: &Roster| {
            before.group().size() < newest.roster.group().size()
                && !self.planted(PlantedBug::GrowthNotDeclared)
        };
        Reconfiguration { before: newest.before.filter(|before| is_needed || has_grown(before)), ..newest }
    }

    pub(super) fn tell_configuration(&mut self, to: ReplicaId) {
        let known = self.newest_configuration();
        if known.epoch > ConfigurationEpoch::FIRST {
            self.send(Peer::Replica(to), Message::Configuration(alloc::boxed::Box::new(known)));
        }
    }

    /// A client has heard an answer of an epoch that it does not know: it is told the configuration that this replica acts in,
    /// by which its answers count.
    pub(super) fn tell_client_configuration(&mut self, client: u64, epoch: ConfigurationEpoch) {
        let ours = self.config.configuration.reconfiguration();
        if epoch < ours.epoch {
            self.send(Peer::Client(client), Message::Configuration(alloc::boxed::Box::new(ours)));
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

/// What concerns a member that the group has shrunk by: its vote, and the log that it may be the last to have.
pub(super) const fn concerns_departing(message: &Message) -> bool {
    matches!(
        message,
        Message::StartViewChange { .. }
            | Message::GetState { .. }
            | Message::GetSnapshot { .. }
            | Message::Configuration(_)
            | Message::GetConfiguration { .. }
    )
}

/// What a member that the group has shrunk by has to say.
pub(super) const fn is_of_departing(message: &Message) -> bool {
    matches!(
        message,
        Message::DoViewChange(_)
            | Message::NewState { .. }
            | Message::SnapshotOffer { .. }
            | Message::SnapshotPart { .. }
    )
}

/// True if the second roster is that of a group with two nodes more or less, and all others are where they were.
pub(super) fn is_resized(before: &Roster, after: &Roster) -> bool {
    let (smaller, larger) =
        if before.group().size() < after.group().size() { (before, after) } else { (after, before) };
    let news = || larger.nodes()[smaller.group().size().min(larger.group().size())..].iter();
    let is_known = |node: &NodeId| smaller.position(*node).is_none();
    smaller.group().larger() == Some(larger.group())
        && larger.resized(smaller.group()) == *smaller
        && news()
            .all(|node| smaller.nodes().iter().all(Option::is_none) || node.as_ref().is_some_and(is_known))
        && news().flatten().count() == news().flatten().collect::<alloc::collections::BTreeSet<_>>().len()
}

/// The last entry up to which as many of these logs are durable.
pub(super) fn reached_by(durable: &[OpNumber], members: usize) -> OpNumber {
    let mut sorted = [OpNumber(0); Group::SIZE_MAX];
    let sorted = &mut sorted[..durable.len()];
    sorted.copy_from_slice(durable);
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    sorted[members - 1]
}
