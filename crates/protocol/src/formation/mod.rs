//! Which node has which position: how a group is formed, and whom its members take for a member ever after.
//!
//! A node that lost its disk must never come back under its old identity: acknowledgements that it gave and
//! no longer knows of still count. So every data directory has a random number, its [`NodeId`], and a group
//! has a [`Roster`]: the one node in each position. At most one node of each position ever acts:
//!
//! 1. *Hear.* A member with a new directory waits until it has heard from all members that their directories
//!    are new as well. It then writes down the roster of their nodes. That is its *vote*; a node votes once.
//! 2. *Act.* A member acts when it has heard that all members have voted for its roster, or from a member that
//!    acts with a roster in which it stands itself.
//!
//! **Why all, and not a quorum.** A quorum of new directories may be one that was wiped, and one that has never
//! heard of what the others acknowledged (planted: `formation-by-quorum`).
//!
//! **Why votes.** Two processes with one id may both be heard while the group is formed, by different members.
//! Without votes each would be in the roster of a part of the group, and with n = 3 both parts are quorums. With
//! votes, two rosters that are acted upon have both been voted for by the node of every member, so any member that
//! runs once decides between them. (The tests play both.)
//!
//! **Replacement.** A node with a new directory may ask to take the place of the node that has its position (a lost disk): it
//! takes no part in forming a group, and acts when it hears from a member that acts with a roster in which it stands.
//!
//! **Growth.** So does a node by which the group is to grow; but it copies first what the group holds, as a learner: it is
//! connected to members as soon as they have found that its place is the next one.
//!
//! A directory of a version before 0.1 had no number. It gets one at its first start with this code, and learns the others'
//! at the first connection (*trust on first use*): its roster has gaps until then.

use crate::replica::PlantedBug;
use core::fmt;
use syros_types::{ConfigurationEpoch, Group, NodeId, Reconfiguration, ReplicaId, ReplicaSet, Roster};

/// How far a member has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Its directory is new: it has never acted.
    New,
    /// Its directory is new, and it has voted for this roster.
    Voted(Roster),
    /// It acts, with this roster.
    Acting(Roster),
    /// Its directory is new, and it is to take the place of the node in its position.
    Replacing,
    /// Its directory is new, and the group is to grow by it. It copies what the group holds when it is a member: a node of an
    /// older build, or a group of nodes of older builds.
    Joining,
    /// Its directory is new, and the group is to grow by it when it has copied what the group holds.
    Learning,
}

impl Stage {
    /// True if it asks a group that exists for a place.
    #[must_use]
    pub const fn asks_for_place(&self) -> bool {
        matches!(self, Self::Replacing | Self::Joining | Self::Learning)
    }
}

/// What a member says of itself when it connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Declaration {
    /// Which member it is.
    pub replica: ReplicaId,
    /// Which node it is.
    pub node: NodeId,
    /// How far it has come.
    pub stage: Stage,
    /// The epoch of the configuration that it acts in; the first one, if it does not act.
    pub epoch: ConfigurationEpoch,
    /// The roster before, if that is of another size and may be needed yet: see [`Reconfiguration::before`].
    pub before: Option<Roster>,
}

impl Declaration {
    /// True if the group has one size for both: neither acts in a later configuration than the first one, nor wants to come
    /// into a group that may have grown.
    #[must_use]
    pub fn compares_size_with(&self, theirs: &Self) -> bool {
        let is_first = |said: &Self| said.epoch == ConfigurationEpoch::FIRST && !said.stage.asks_for_place();
        is_first(self) && is_first(theirs)
    }

    /// That it acts in this configuration.
    #[must_use]
    pub const fn acting(replica: ReplicaId, node: NodeId, known: Reconfiguration) -> Self {
        let Reconfiguration { epoch, roster, before } = known;
        Self { replica, node, stage: Stage::Acting(roster), epoch, before }
    }

    /// The configuration that it acts in; `None` if it does not act.
    #[must_use]
    pub const fn configuration(&self) -> Option<Reconfiguration> {
        match self.stage {
            Stage::Acting(roster) => Some(Reconfiguration { epoch: self.epoch, roster, before: self.before }),
            _ => None,
        }
    }
}

/// Why two members do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The other one is not the node that we know in its position.
    TheirNode {
        /// The other one.
        replica: ReplicaId,
        /// The node it is.
        found: NodeId,
        /// The node in our roster; `None` if the group was formed before it knew nodes.
        expected: Option<NodeId>,
    },
    /// The other one knows another node in our position.
    OurNode {
        /// The other one.
        replica: ReplicaId,
        /// This member.
        me: ReplicaId,
        /// The node we are.
        ours: NodeId,
        /// The node in its roster; `None` if the group was formed before it knew nodes.
        expected: Option<NodeId>,
    },
    /// The other one was replaced.
    Replaced {
        /// The position that it had.
        replica: ReplicaId,
        /// The node it is.
        found: NodeId,
        /// The node that has taken its place.
        by: NodeId,
    },
    /// This node was replaced.
    WeAreReplaced {
        /// Who says so.
        replica: ReplicaId,
        /// The position that this node had.
        me: ReplicaId,
        /// The node that has taken its place.
        by: NodeId,
    },
    /// The other one wants to be a node that the group grows by, and the group has one there.
    PlaceTaken {
        /// The position.
        replica: ReplicaId,
        /// The node that wants it.
        found: NodeId,
    },
    /// The other one wants to take the place of a node, and the group is smaller.
    NoSuchPlace {
        /// The position.
        replica: ReplicaId,
        /// The size of the group.
        group: Group,
    },
    /// The group has shrunk by the other one.
    Removed {
        /// The position that it had.
        replica: ReplicaId,
        /// The node it is.
        found: NodeId,
        /// The epoch of the configuration without it.
        epoch: ConfigurationEpoch,
    },
    /// The group has shrunk by this node.
    WeAreRemoved {
        /// Who says so.
        replica: ReplicaId,
        /// The position that this node had.
        me: ReplicaId,
        /// The epoch of the configuration without it.
        epoch: ConfigurationEpoch,
    },
    /// The other one wants to take the place of a node, and has not taken it yet.
    NotAdmitted {
        /// The position.
        replica: ReplicaId,
        /// The node that it is.
        found: NodeId,
        /// The node that it is to replace; `None` if it is not known.
        expected: Option<NodeId>,
    },
    /// Both know different nodes in a third position.
    Third {
        /// The other one.
        replica: ReplicaId,
        /// The third one.
        member: ReplicaId,
        /// Its node in our roster.
        ours: NodeId,
        /// Its node in the other one's roster.
        theirs: NodeId,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TheirNode { replica, found, expected: Some(expected) } => write!(
                f,
                "{replica} is node {found}, but the cluster knows it as node {expected}: its data directory \
                 was wiped or exchanged, or two nodes are started as {replica}. It is not counted. Put back the \
                 directory of node {expected}, or have a new node take its place (--replace)"
            ),
            Self::TheirNode { replica, found, expected: None } => write!(
                f,
                "{replica} is the new node {found}, but the cluster exists already: its data directory was \
                 wiped, or it never ran. It is not counted. Put back its old directory, or have a new node take its \
                 place (--replace)"
            ),
            Self::OurNode { replica, me, ours, expected: Some(expected) } => write!(
                f,
                "{replica} knows {me} as node {expected}, and this data directory is of node {ours}: a directory \
                 was wiped or exchanged, or two nodes are started as {me}. Acknowledgements that {me} gave \
                 would be forgotten, and writes lost. Start {me} with the directory of node {expected}; if that \
                 is lost, start {me} with an empty one and --replace"
            ),
            Self::OurNode { replica, me, ours, expected: None } => write!(
                f,
                "{replica} belongs to a cluster that exists already and does not know this data directory \
                 (node {ours}): the directory of {me} was wiped, or {me} is not of this cluster. Start it with \
                 its old directory; if that is lost, start {me} with an empty one and --replace"
            ),
            Self::Replaced { replica, found, by } => write!(
                f,
                "{replica} is node {found}, which node {by} has replaced: it is not of the cluster any more"
            ),
            Self::WeAreReplaced { replica, me, by } => write!(
                f,
                "{replica} says that node {by} has taken the place of this one as {me}. This node is not of the cluster any \
                 more: what its data directory holds may be out of date, and nobody needs it"
            ),
            Self::PlaceTaken { replica, found } => write!(
                f,
                "node {found} was started with --join as {replica}, and the cluster has a node there: it grows by the two \
                 places after its last one. If the disk of {replica} is lost, start it with --replace, with an empty directory"
            ),
            Self::NoSuchPlace { replica, group } => write!(
                f,
                "the cluster has {} replicas, and {replica} is none of them: there is nothing to replace. Two nodes that it is \
                 to grow by are started with --join, with empty directories",
                group.size()
            ),
            Self::Removed { replica, found, epoch } => write!(
                f,
                "{replica}, node {found}, is not of the cluster any more: it was removed in epoch {}",
                epoch.0
            ),
            Self::WeAreRemoved { replica, me, epoch } => write!(
                f,
                "{replica} says that {me}, this node, was removed from the cluster in epoch {}. Nobody needs what its data \
                 directory holds",
                epoch.0
            ),
            Self::NotAdmitted { replica, found, expected: Some(expected) } => write!(
                f,
                "node {found} is to take the place of node {expected} as {replica}, and has not taken it yet"
            ),
            Self::NotAdmitted { replica, found, expected: None } => {
                write!(f, "node {found} is to be {replica}, of which the cluster knows no node")
            }
            Self::Third { replica, member, ours, theirs } => write!(
                f,
                "{replica} knows {member} as node {theirs}, this one as node {ours}: two nodes are or were \
                 started as {member}, or two clusters have one cluster id. If the cluster has never served, \
                 delete all data directories and start all nodes with --bootstrap"
            ),
        }
    }
}

impl core::error::Error for Mismatch {}

/// True if a roster may be one that the group of ours comes to: some node of ours is in it, or in the one before. Nodes that have the number of
/// our cluster may be of another one: of an earlier one, whose disks somebody has kept, or made from the same backup. Such a
/// node must not have ours believe that they were replaced. (A node that was away while every other one was replaced is told by
/// nobody that it was replaced, too. It is refused all the same.)
fn may_become(ours: &Roster, theirs: &Roster, before: Option<&Roster>) -> bool {
    let mut known = ours.nodes().iter().flatten().peekable();
    let is_there = |node: &NodeId| {
        theirs.position(*node).is_some() || before.is_some_and(|before| before.position(*node).is_some())
    };
    // A group that was formed before nodes had ids knows none.
    known.peek().is_none() || known.any(is_there)
}

/// True if that place was another node's.
fn is_of_other_node(before: Option<Roster>, replica: ReplicaId, node: NodeId) -> bool {
    before.is_some_and(|before| before.group().has(replica) && before.node(replica) != Some(node))
}

/// Checks what another member says of itself against what a member that acts says. Gives back the roster with
/// the other one's node, if that is news. A member that acts in a later configuration is right about that: whoever connects
/// to it learns of it. So it must be a configuration of the same cluster.
///
/// # Errors
/// [`Mismatch`]: they must not be connected.
pub fn check(ours: &Declaration, roster: &Roster, theirs: &Declaration) -> Result<Option<Roster>, Mismatch> {
    let Declaration { replica, node: found, stage, epoch, before } = *theirs;
    let expected = roster.node(replica);
    if let Stage::Acting(other) = stage
        && epoch > ours.epoch
        && !may_become(roster, &other, before.as_ref())
    {
        return Err(Mismatch::TheirNode { replica, found, expected });
    }
    if let Stage::Acting(other) = stage
        && epoch > ours.epoch
        && let Some(by) = other.node(ours.replica).filter(|node| *node != ours.node)
    {
        return Err(Mismatch::WeAreReplaced { replica, me: ours.replica, by });
    }
    let is_later = epoch > ours.epoch;
    let is_voter = |position, node| before.is_some_and(|before| before.node(position) == Some(node));
    if let Stage::Acting(other) = stage
        && epoch >= ours.epoch
        && !other.group().has(ours.replica)
        && !is_voter(ours.replica, ours.node)
        && ours.stage != Stage::Learning
    {
        return Err(Mismatch::WeAreRemoved { replica, me: ours.replica, epoch });
    }
    if let Stage::Acting(_) = stage
        && epoch <= ours.epoch
        && !roster.group().has(replica)
    {
        // One that the group has shrunk by may be needed yet.
        let is_needed = ours.before.is_some_and(|before| before.node(replica) == Some(found));
        let removed = Mismatch::Removed { replica, found, epoch: ours.epoch };
        return if is_needed { Ok(None) } else { Err(removed) };
    }
    if let Stage::Acting(other) = stage
        && is_later
        && (other.node(replica) == Some(found) || is_voter(replica, found))
    {
        // It has taken the place of the node that we know, and nobody else may be there to tell us.
        return Ok(None);
    }
    if let Some(by) = expected.filter(|expected| *expected != found) {
        return Err(match stage {
            Stage::Joining | Stage::Learning => Mismatch::PlaceTaken { replica, found },
            Stage::Replacing => Mismatch::NotAdmitted { replica, found, expected },
            Stage::Acting(_) if epoch < ours.epoch => Mismatch::Replaced { replica, found, by },
            _ => Mismatch::TheirNode { replica, found, expected },
        });
    }
    match stage {
        Stage::Replacing if !roster.group().has(replica) => {
            Err(Mismatch::NoSuchPlace { replica, group: roster.group() })
        }
        Stage::Joining | Stage::Learning if expected.is_none() && roster.group().has(replica) => {
            Err(Mismatch::PlaceTaken { replica, found })
        }
        // A member that had the place may be needed yet, and is connected there.
        Stage::Learning
            if roster.group().grows_by(replica) && !is_of_other_node(ours.before, replica, found) =>
        {
            Ok(None)
        }
        Stage::Replacing | Stage::Joining | Stage::Learning if expected.is_none() => {
            Err(Mismatch::NotAdmitted { replica, found, expected })
        }
        // One of us does not know the other's configuration yet.
        Stage::Acting(_) if epoch != ours.epoch => Ok(None),
        // Trust on first use is for nodes that the group has been acting with.
        Stage::New | Stage::Voted(_) if expected.is_none() => {
            Err(Mismatch::TheirNode { replica, found, expected })
        }
        // It will act as soon as it has heard from us.
        Stage::New | Stage::Voted(_) | Stage::Replacing | Stage::Joining | Stage::Learning => Ok(None),
        Stage::Acting(other) => {
            let expected = other.node(ours.replica);
            if expected.is_some_and(|expected| expected != ours.node) {
                let (me, ours) = (ours.replica, ours.node);
                return Err(Mismatch::OurNode { replica, me, ours, expected });
            }
            if let Some((member, ours, theirs)) = roster.conflict(&other) {
                return Err(Mismatch::Third { replica, member, ours, theirs });
            }
            Ok(roster.node(replica).is_none().then(|| roster.with(replica, found)))
        }
    }
}

/// What a member whose directory is new does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It waits for these members: until they have been heard, or until they have voted.
    Wait(ReplicaSet),
    /// It makes this vote durable, says so ([`Formation::voted`]), and tells the others ([`Formation::next_to_tell`]).
    Vote(Roster),
    /// It makes this configuration durable, and acts in it.
    Act(Reconfiguration),
    /// It copies what the group of this configuration holds, as one who is no member.
    Learn(Reconfiguration),
    /// It must not start.
    Refuse(Mismatch),
}

/// What a member whose directory is new has heard.
#[derive(Clone, Debug)]
pub struct Formation {
    group: Group,
    me: ReplicaId,
    node: NodeId,
    vote: Option<Roster>,
    /// Members that are connected, and what they said last.
    heard: [Option<(NodeId, Option<Roster>)>; Group::SIZE_MAX],
    /// Members that are connected and have been told, on the connection of now, how far this member has come.
    told: ReplicaSet,
    /// Members that are connected.
    connected: ReplicaSet,
    /// Members that have voted as we did: that holds when they are gone.
    agreed: ReplicaSet,
    /// It is to take the place of the node that has its position in a group that exists.
    replaces: bool,
    /// It does that as one of the two that the group grows by.
    joins: bool,
    /// It copies first what the group holds.
    learns: bool,
    /// The newest configuration of the group that it is to copy from, as members say that it is connected to.
    found: Option<Reconfiguration>,
    /// What ends the waiting.
    end: Option<Result<Reconfiguration, Mismatch>>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl Formation {
    /// Nothing heard yet. `vote` is what this node has voted for in an earlier life.
    #[must_use]
    pub const fn new(group: Group, me: ReplicaId, node: NodeId, vote: Option<Roster>) -> Self {
        Self {
            group,
            me,
            node,
            vote,
            heard: [None; Group::SIZE_MAX],
            told: ReplicaSet(0),
            connected: ReplicaSet(0),
            agreed: ReplicaSet(0),
            replaces: false,
            joins: false,
            learns: false,
            found: None,
            end: None,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// It takes no part in forming a group, and waits until members act with a roster in which it has its position: see
    /// [`Event::PlaceWanted`](crate::replica::Event::PlaceWanted).
    #[must_use]
    pub const fn replacing(mut self) -> Self {
        self.replaces = true;
        self
    }

    /// As [`Formation::replacing`], of a node that the group is to grow by.
    #[must_use]
    pub const fn joining(mut self) -> Self {
        (self.replaces, self.joins, self.learns) = (true, true, true);
        self
    }

    /// It asks for its place at once, as nodes of older builds do: simulations have them.
    #[must_use]
    pub const fn without_learning(mut self) -> Self {
        self.learns = false;
        self
    }

    /// True if it asks a group that exists for a place.
    #[must_use]
    pub const fn replaces(&self) -> bool {
        self.replaces
    }

    /// Runs a known-wrong variant.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub const fn plant(mut self, bug: Option<PlantedBug>) -> Self {
        self.planted = bug;
        self
    }

    /// What this member says of itself.
    #[must_use]
    pub const fn declaration(&self) -> Declaration {
        let stage = match self.vote {
            _ if self.learns => Stage::Learning,
            _ if self.joins => Stage::Joining,
            _ if self.replaces => Stage::Replacing,
            None => Stage::New,
            Some(roster) => Stage::Voted(roster),
        };
        let epoch = ConfigurationEpoch::FIRST;
        Declaration { replica: self.me, node: self.node, stage, epoch, before: None }
    }

    /// Checks what a member says that connects.
    ///
    /// # Errors
    /// [`Mismatch`]: it must not be connected.
    pub fn check(&self, theirs: &Declaration) -> Result<(), Mismatch> {
        let Declaration { replica, node: found, .. } = *theirs;
        // Another process with its id is connected, or was when we voted.
        let expected = match (&self.vote, self.heard[replica.index()]) {
            (Some(roster), _) => roster.node(replica),
            (None, Some((node, _))) => Some(node),
            (None, None) => None,
        };
        match expected {
            Some(expected) if expected != found => {
                Err(Mismatch::TheirNode { replica, found, expected: Some(expected) })
            }
            _ => self.objection(theirs).map_or(Ok(()), Err),
        }
    }

    /// Why this member must not start, after what another one says.
    #[must_use]
    pub fn objection(&self, theirs: &Declaration) -> Option<Mismatch> {
        let replica = theirs.replica;
        match theirs.stage {
            // It is not in yet, as far as the other one knows.
            _ if self.replaces => None,
            Stage::New | Stage::Replacing | Stage::Joining | Stage::Learning => None,
            Stage::Voted(roster) | Stage::Acting(roster) => {
                let expected = roster.node(self.me);
                let is_late = expected.is_none() && self.planted(PlantedBug::FormationByQuorum);
                if expected != Some(self.node) && !is_late {
                    return Some(Mismatch::OurNode { replica, me: self.me, ours: self.node, expected });
                }
                let (member, ours, theirs) = self.vote?.conflict(&roster)?;
                Some(Mismatch::Third { replica, member, ours, theirs })
            }
        }
    }

    /// Takes note of what a connected member says of itself.
    pub fn hear(&mut self, theirs: &Declaration) {
        let Declaration { replica, node, stage, epoch, before } = *theirs;
        if replica == self.me || replica.index() >= self.group.size() {
            return;
        }
        if let Some(mismatch) = self.objection(theirs)
            && !self.planted(PlantedBug::WipedDiskJoins)
        {
            self.end = Some(Err(mismatch));
            return;
        }
        match stage {
            // It may have come in, and the group have shrunk by it again, before it heard of either.
            Stage::Acting(roster) if !self.replaces || self.is_voter_of(&roster, before.as_ref()) => {
                self.end = Some(Ok(Reconfiguration { epoch, roster, before }));
            }
            Stage::Acting(roster) if self.learns && roster.group().grows_by(self.me) => {
                let is_newest = self.found.is_none_or(|found| found.epoch < epoch);
                if is_newest {
                    self.found = Some(Reconfiguration { epoch, roster, before });
                }
            }
            _ if self.replaces => {}
            // Of a group that exists already.
            Stage::Acting(_) | Stage::Replacing | Stage::Joining | Stage::Learning => {}
            Stage::New => self.heard[replica.index()] = Some((node, None)),
            Stage::Voted(roster) => self.heard[replica.index()] = Some((node, Some(roster))),
        }
        self.count_votes();
    }

    fn is_voter_of(&self, roster: &Roster, before: Option<&Roster>) -> bool {
        let has = |roster: &Roster| roster.node(self.me) == Some(self.node);
        has(roster) || before.is_some_and(has)
    }

    /// The handshake with a member is over, in which it said this of itself. What this member said in it may be outdated
    /// by now: it may have voted while the handshake was under way. So the member is to be told once more how far this
    /// one has come (planted: `handshake-tells-enough`).
    pub fn connected(&mut self, theirs: &Declaration) {
        let replica = theirs.replica;
        if replica.index() >= self.group.size() {
            return;
        }
        self.connected = self.connected.with(replica);
        // Of one that asks for a place nothing has changed since.
        let is_told = self.replaces || self.planted(PlantedBug::HandshakeTellsEnough);
        self.told = if is_told { self.told.with(replica) } else { self.told.without(replica) };
        self.hear(theirs);
    }

    /// A connected member that is to be told how far this member has come. The caller sends it that.
    pub fn next_to_tell(&mut self) -> Option<(ReplicaId, Stage)> {
        let untold = |member: &ReplicaId| self.connected.contains(*member) && !self.told.contains(*member);
        let member = self.group.members().find(untold)?;
        self.told = self.told.with(member);
        Some((member, self.declaration().stage))
    }

    /// The connection to a member is gone.
    pub fn lost(&mut self, replica: ReplicaId) {
        self.connected = self.connected.without(replica);
        if let Some(heard) = self.heard.get_mut(replica.index()) {
            *heard = None;
        }
    }

    /// The vote that [`Decision::Vote`] asked for is durable.
    pub fn voted(&mut self, roster: Roster) {
        self.vote = Some(roster);
        self.told = ReplicaSet(0);
        self.count_votes();
    }

    fn count_votes(&mut self) {
        let Some(vote) = self.vote else { return };
        for (index, heard) in self.heard.iter().enumerate() {
            if let Some((_, Some(theirs))) = heard
                && *theirs == vote
            {
                self.agreed = self.agreed.with(ReplicaId(index as u8));
            }
        }
    }

    /// What to do now.
    #[must_use]
    pub fn decide(&self) -> Decision {
        match self.end {
            Some(Ok(configuration)) => return Decision::Act(configuration),
            Some(Err(mismatch)) => return Decision::Refuse(mismatch),
            None => {}
        }
        if let Some(found) = self.found {
            return Decision::Learn(found);
        }
        let others = (0..self.group.size() as u8).map(ReplicaId).filter(|member| *member != self.me);
        if self.replaces {
            return Decision::Wait(others.fold(ReplicaSet(0), ReplicaSet::with));
        }
        if let Some(roster) = self.vote {
            let waits = others.filter(|member| !self.agreed.contains(*member));
            let waits = waits.fold(ReplicaSet(0), ReplicaSet::with);
            let is_enough = self.is_enough(waits) || self.planted(PlantedBug::WipedDiskJoins);
            let first = Reconfiguration { epoch: ConfigurationEpoch::FIRST, roster, before: None };
            return if is_enough { Decision::Act(first) } else { Decision::Wait(waits) };
        }
        let mut roster = Roster::unknown(self.group).with(self.me, self.node);
        let mut waits = ReplicaSet(0);
        for member in others {
            match self.heard[member.index()] {
                Some((node, _)) => roster = roster.with(member, node),
                None => waits = waits.with(member),
            }
        }
        if self.is_enough(waits) { Decision::Vote(roster) } else { Decision::Wait(waits) }
    }

    /// True if those that have been heard, or have voted, are enough without these.
    fn is_enough(&self, missing: ReplicaSet) -> bool {
        let may_lack = if self.planted(PlantedBug::FormationByQuorum) { self.group.faults() } else { 0 };
        missing.len() <= may_lack
    }

    #[cfg(feature = "planted-bugs")]
    fn planted(&self, bug: PlantedBug) -> bool {
        self.planted == Some(bug)
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "same signature as with planted bugs")]
    const fn planted(&self, _bug: PlantedBug) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
