//! Who is in a group: nodes, and the configuration that gives each of them a position.

use crate::{ConfigurationEpoch, FastQuorum, FastRule, Group, ReplicaId, View};
use core::fmt;
use core::num::NonZeroU64;

/// The permanent identity of a node: a random number, drawn when its data directory is made, and lost with it.
///
/// A node that lost its directory no longer knows what it acknowledged, while others still count that. So it never
/// comes back under its old identity: **a lost disk means a new `NodeId`, always.** Which position in which group a
/// node has, a [`Configuration`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(NonZeroU64);

impl NodeId {
    /// The node with this number; no node has 0.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How often a node has started: 1 at its first start, and one more at each later one. The node makes it durable before
/// it says it. Of two lives of one node the later has the higher number, so a member that has heard of the later one
/// refuses the earlier one: its data directory was put back from a copy, and has forgotten what it acknowledged since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// That of a node which does not say it, because it speaks version 4 of the wire format.
    pub const UNKNOWN: Self = Self(0);

    /// The life after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The number of a group. One process is to host replicas of many groups; today there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The only group there is.
    pub const ONLY: Self = Self(0);
}

/// What replaces a configuration: a whole roster and no difference, so that nobody can arrive at another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reconfiguration {
    /// The epoch of the new configuration.
    pub epoch: ConfigurationEpoch,
    /// Its nodes.
    pub roster: Roster,
    /// The nodes of the configuration before it, if that has another size: the first view of the new configuration needs a
    /// majority of those as well. `None` if one node takes the place of another one.
    pub before: Option<Roster>,
}

impl Reconfiguration {
    /// What a node is in this configuration, or was in the one before it, if that has another size: its position.
    #[must_use]
    pub fn position(&self, node: NodeId) -> Option<ReplicaId> {
        self.roster.position(node).or_else(|| self.before.and_then(|before| before.position(node)))
    }

    /// True if the node in this position is this one, or was before the size changed.
    #[must_use]
    pub fn has_voter(&self, member: ReplicaId, node: NodeId) -> bool {
        let is_there = |roster: &Roster| roster.node(member) == Some(node);
        is_there(&self.roster) || self.before.as_ref().is_some_and(is_there)
    }
}

/// Names one configuration of one group. Frames, handshakes, records of the log and identity files carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigurationId {
    /// The group.
    pub group: GroupId,
    /// The epoch of its configuration.
    pub epoch: ConfigurationEpoch,
}

impl ConfigurationId {
    /// The first configuration of the only group.
    pub const FIRST: Self = Self { group: GroupId::ONLY, epoch: ConfigurationEpoch::FIRST };
}

/// Something for another configuration than the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherConfiguration {
    /// The one it names.
    pub theirs: ConfigurationId,
    /// The receiver's.
    pub ours: ConfigurationId,
}

impl fmt::Display for OtherConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it names {}; here it is {}", self.theirs, self.ours)
    }
}

impl core::error::Error for OtherConfiguration {}

impl ConfigurationId {
    /// What frames and records name, whatever the configuration is: the group. The epoch of what they hold is that of its view.
    #[must_use]
    pub const fn of_group(self) -> Self {
        Self { group: self.group, epoch: ConfigurationEpoch::FIRST }
    }

    /// Checks that something is for this configuration, whose name it carries.
    ///
    /// # Errors
    /// [`OtherConfiguration`] if it names another one.
    pub fn check(self, theirs: Self) -> Result<(), OtherConfiguration> {
        if theirs == self { Ok(()) } else { Err(OtherConfiguration { theirs, ours: self }) }
    }
}

impl fmt::Display for ConfigurationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}, epoch {}", self.group.0, self.epoch.0)
    }
}

/// The node in each position of a group, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Roster {
    group: Group,
    nodes: [Option<NodeId>; Group::SIZE_MAX],
}

impl Roster {
    /// A roster that names no node yet.
    #[must_use]
    pub const fn unknown(group: Group) -> Self {
        Self { group, nodes: [None; Group::SIZE_MAX] }
    }

    /// The roster with the node in one more position.
    #[must_use]
    pub fn with(mut self, member: ReplicaId, node: NodeId) -> Self {
        self.nodes[..self.group.size()][member.index()] = Some(node);
        self
    }

    /// The size of the group.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.group
    }

    /// The roster of a group of another size: the nodes in the positions that both have stay where they are.
    #[must_use]
    pub fn resized(&self, group: Group) -> Self {
        let kept = group.members().filter_map(|member| Some((member, self.node(member)?)));
        kept.fold(Self::unknown(group), |roster, (member, node)| roster.with(member, node))
    }

    /// The node in a position, if it is known.
    #[must_use]
    pub fn node(&self, member: ReplicaId) -> Option<NodeId> {
        self.nodes.get(member.index()).copied().flatten()
    }

    /// True if the node in every position is known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.nodes().iter().all(Option::is_some)
    }

    /// The position of a node, if it has one.
    #[must_use]
    pub fn position(&self, node: NodeId) -> Option<ReplicaId> {
        self.group.members().find(|member| self.node(*member) == Some(node))
    }

    /// The nodes in the order of their positions.
    #[must_use]
    pub fn nodes(&self) -> &[Option<NodeId>] {
        &self.nodes[..self.group.size()]
    }

    /// The first position for which both rosters name a node, and not the same one.
    #[must_use]
    pub fn conflict(&self, other: &Self) -> Option<(ReplicaId, NodeId, NodeId)> {
        self.group.members().find_map(|member| {
            let (ours, theirs) = (self.node(member)?, other.node(member)?);
            (ours != theirs).then_some((member, ours, theirs))
        })
    }
}

/// Who is in a group, and by which rules it counts. The leader of a view and every quorum are computed from it.
///
/// A process acts in one configuration at a time: that of its view. Each change has an epoch of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// Which configuration of which group this is.
    pub id: ConfigurationId,
    /// The node in each position.
    pub roster: Roster,
    /// The node in each position before, if the group had another size: see [`Reconfiguration::before`].
    pub before: Option<Roster>,
    /// Which updates complete in one round trip in views that say nothing else.
    pub mode: FastQuorum,
}

impl Configuration {
    /// The first configuration of the only group, whose nodes are not known yet.
    #[must_use]
    pub const fn first(group: Group, mode: FastQuorum) -> Self {
        Self { id: ConfigurationId::FIRST, roster: Roster::unknown(group), before: None, mode }
    }

    /// The configuration that takes the place of this one.
    #[must_use]
    pub const fn after(&self, Reconfiguration { epoch, roster, before }: Reconfiguration) -> Self {
        Self { id: ConfigurationId { group: self.id.group, epoch }, roster, before, mode: self.mode }
    }

    /// The configuration with the name that frames carry: that of the first one, whatever it is. The epoch of what they hold is
    /// that of its view.
    #[must_use]
    pub const fn as_frames_name_it(self) -> Self {
        Self { id: self.id.of_group(), ..self }
    }

    /// Its epoch and its nodes.
    #[must_use]
    pub const fn reconfiguration(&self) -> Reconfiguration {
        Reconfiguration { epoch: self.id.epoch, roster: self.roster, before: self.before }
    }

    /// The configuration by which views of this epoch count, as far as that is known: this one, or the one before it if
    /// that has another size. Of those before it nobody need know any more.
    #[must_use]
    pub fn of_epoch(&self, epoch: ConfigurationEpoch) -> Self {
        match self.before {
            Some(roster) if epoch < self.id.epoch => {
                let id = ConfigurationId { group: self.id.group, epoch };
                Self { id, roster, before: None, mode: self.mode }
            }
            _ => *self,
        }
    }

    /// True if the group has a member in this position.
    #[must_use]
    pub const fn has(&self, member: ReplicaId) -> bool {
        self.roster.group.has(member)
    }

    /// The members that the configuration before had and this one has not.
    pub fn departing(&self) -> impl Iterator<Item = ReplicaId> + Clone + use<> {
        let size = self.size();
        let before = self.before.map_or(0, |before| before.group.size());
        (size..before.max(size)).map(|position| ReplicaId(position as u8))
    }

    /// The size of the group.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.roster.group
    }

    /// Number of members, `n`.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.group().size()
    }

    /// Failures the group survives, `f`.
    #[must_use]
    pub const fn faults(&self) -> usize {
        self.group().faults()
    }

    /// Members in a majority, `f + 1`.
    #[must_use]
    pub const fn majority(&self) -> usize {
        self.group().majority()
    }

    /// The rule of views that say nothing else: the configuration's mode, with everybody active.
    #[must_use]
    pub const fn rule(&self) -> FastRule {
        FastRule::of_all(self.mode, self.group())
    }

    /// A rule as messages and records tell it, where that of the configuration goes without saying.
    #[must_use]
    pub fn told_rule(&self, rule: FastRule) -> Option<FastRule> {
        (rule != self.rule()).then_some(rule)
    }

    /// The rule that a message or a record tells.
    #[must_use]
    pub fn known_rule(&self, told: Option<FastRule>) -> FastRule {
        told.unwrap_or_else(|| self.rule())
    }

    /// True if `view` may go by this rule: its mode is the configuration's, or one that it can be changed to.
    #[must_use]
    pub fn is_possible_rule(&self, rule: FastRule, view: View) -> bool {
        self.mode.may_become(rule.mode) && rule.is_possible(self.group(), self.leader(view))
    }

    /// The leader of `view`: the member in position `view mod n` (VR 4).
    #[must_use]
    pub const fn leader(&self, view: View) -> ReplicaId {
        self.group().leader(view)
    }

    /// The position of every member, in order.
    pub fn members(&self) -> impl Iterator<Item = ReplicaId> + Clone + use<> {
        self.group().members()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leadership_goes_round() {
        let configuration = Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority);
        let leaders: [u8; 5] = core::array::from_fn(|view| configuration.leader(View(view as u64)).0);
        assert_eq!(leaders, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn views_of_later_configurations_are_later() {
        let of = |epoch, number| View::of_epoch(ConfigurationEpoch(epoch), number);
        assert_eq!(of(0, 7), View(7));
        assert!(of(1, 0) > of(0, 1 << 39) && of(1, 4).next() == of(1, 5));
        assert_eq!((of(3, 8).epoch(), of(3, 8).number()), (ConfigurationEpoch(3), 8));
        let configuration = Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority);
        assert_eq!(configuration.leader(of(3, 8)), ReplicaId(2));
        assert_eq!(alloc::format!("{} {}", of(0, 8), of(3, 8)), "8 8 of epoch 3");
    }

    #[test]
    fn rosters_conflict_where_both_know_a_node() {
        let node = |number| NodeId::new(number).unwrap();
        let roster = Roster::unknown(Group::new(3).unwrap()).with(ReplicaId(0), node(7));
        let other = Roster::unknown(Group::new(3).unwrap()).with(ReplicaId(2), node(8));
        assert_eq!(roster.conflict(&other), None);
        let other = other.with(ReplicaId(0), node(9));
        assert_eq!(roster.conflict(&other), Some((ReplicaId(0), node(7), node(9))));
        assert_eq!(NodeId::new(0), None);
    }
}
