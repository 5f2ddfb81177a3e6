//! Which disk is whose: how a group is formed, and whom its members take for a member ever after.
//!
//! A replica that lost its disk must never come back under its old identity: acknowledgements that it gave and
//! no longer knows of still count. So every data directory has a random number, its [`DiskId`], and a group
//! has a [`Roster`]: the one disk of each member. At most one disk of each member ever acts:
//!
//! 1. *Hear.* A member with a new directory waits until it has heard from all members that their directories
//!    are new as well. It then writes down the roster of their disks. That is its *vote*; a disk votes once.
//! 2. *Act.* A member acts when it has heard that all members have voted for its roster, or from a member that
//!    acts with a roster in which it stands itself.
//!
//! **Why all, and not a quorum.** A quorum of new directories may be one that was wiped, and one that has never
//! heard of what the others acknowledged (planted: `formation-by-quorum`).
//!
//! **Why votes.** Two processes with one id may both be heard while the group is formed, by different members.
//! Without votes each would be in the roster of a part of the group, and with n = 3 both parts are quorums. With
//! votes, two rosters that are acted upon have both been voted for by every member's disk, so any member that
//! runs once decides between them. (The tests play both.)
//!
//! A directory of before had no number. It gets one at its first start with this code, and learns the others'
//! at the first connection (*trust on first use*): its roster has gaps until then.

use crate::replica::PlantedBug;
use core::fmt;
use core::num::NonZeroU64;
use syros_types::{Group, ReplicaId, ReplicaSet};

/// The random number of a data directory, drawn when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskId(NonZeroU64);

impl DiskId {
    /// The disk with this number; none has 0.
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

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The disk of each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Roster {
    group: Group,
    disks: [Option<DiskId>; Group::SIZE_MAX],
}

impl Roster {
    /// A roster that says nothing yet.
    #[must_use]
    pub const fn unknown(group: Group) -> Self {
        Self { group, disks: [None; Group::SIZE_MAX] }
    }

    /// The roster with the disk of one more member.
    #[must_use]
    pub fn with(mut self, member: ReplicaId, disk: DiskId) -> Self {
        self.disks[..self.group.size()][member.index()] = Some(disk);
        self
    }

    /// The group.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.group
    }

    /// The disk of a member, if it is known.
    #[must_use]
    pub fn disk(&self, member: ReplicaId) -> Option<DiskId> {
        self.disks.get(member.index()).copied().flatten()
    }

    /// The disks in the order of the members' ids.
    #[must_use]
    pub fn disks(&self) -> &[Option<DiskId>] {
        &self.disks[..self.group.size()]
    }

    /// A member for which both name a disk, and not the same.
    fn conflict(&self, other: &Self) -> Option<(ReplicaId, DiskId, DiskId)> {
        (0..self.group.size() as u8).map(ReplicaId).find_map(|member| {
            let (ours, theirs) = (self.disk(member)?, other.disk(member)?);
            (ours != theirs).then_some((member, ours, theirs))
        })
    }
}

/// How far a member has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Its directory is new: it has never acted.
    New,
    /// Its directory is new, and it has voted for this roster.
    Voted(Roster),
    /// It acts, with this roster.
    Acting(Roster),
}

/// What a member says of itself when it connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Declaration {
    /// Which member it is.
    pub replica: ReplicaId,
    /// Its disk.
    pub disk: DiskId,
    /// How far it has come.
    pub stage: Stage,
}

/// Why two members do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The other one has not the disk that we know as its.
    TheirDisk {
        /// The other one.
        replica: ReplicaId,
        /// Its disk.
        found: DiskId,
        /// The disk in our roster; `None` if the group was formed before it knew disks.
        expected: Option<DiskId>,
    },
    /// The other one does not know our disk as ours.
    OurDisk {
        /// The other one.
        replica: ReplicaId,
        /// This member.
        me: ReplicaId,
        /// Our disk.
        ours: DiskId,
        /// The disk in its roster; `None` if the group was formed before it knew disks.
        expected: Option<DiskId>,
    },
    /// Both know a third one by different disks.
    Third {
        /// The other one.
        replica: ReplicaId,
        /// The third one.
        member: ReplicaId,
        /// Its disk in our roster.
        ours: DiskId,
        /// Its disk in the other one's roster.
        theirs: DiskId,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TheirDisk { replica, found, expected: Some(expected) } => write!(
                f,
                "{replica} has disk {found}, but the cluster knows it by disk {expected}: its data directory \
                 was wiped or exchanged, or two nodes are started as {replica}. It is not counted. Put back the \
                 directory with disk {expected}"
            ),
            Self::TheirDisk { replica, found, expected: None } => write!(
                f,
                "{replica} has the new disk {found}, but the cluster exists already: its data directory was \
                 wiped, or it never ran. It is not counted. Put back its old directory"
            ),
            Self::OurDisk { replica, me, ours, expected: Some(expected) } => write!(
                f,
                "{replica} knows {me} by disk {expected}, and this data directory is disk {ours}: a directory \
                 was wiped or exchanged, or two nodes are started as {me}. Acknowledgements that {me} gave \
                 would be forgotten, and writes lost. Start {me} with the directory of disk {expected}; if that \
                 is lost, leave {me} switched off: the others go on without it"
            ),
            Self::OurDisk { replica, me, ours, expected: None } => write!(
                f,
                "{replica} belongs to a cluster that exists already and does not know this data directory \
                 (disk {ours}): the directory of {me} was wiped, or {me} is not of this cluster. Start it with \
                 its old directory; if that is lost, leave {me} switched off: the others go on without it"
            ),
            Self::Third { replica, member, ours, theirs } => write!(
                f,
                "{replica} knows {member} by disk {theirs}, this node by disk {ours}: two nodes are or were \
                 started as {member}, or two clusters have one cluster id. If the cluster has never served, \
                 delete all data directories and start all nodes with --bootstrap"
            ),
        }
    }
}

impl core::error::Error for Mismatch {}

/// Checks what another member says of itself against what a member that acts says. Gives back the roster with
/// the other one's disk, if that is news.
///
/// # Errors
/// [`Mismatch`]: they must not be connected.
pub fn check(ours: &Declaration, roster: &Roster, theirs: &Declaration) -> Result<Option<Roster>, Mismatch> {
    let Declaration { replica, disk: found, stage } = *theirs;
    let expected = roster.disk(replica);
    if expected.is_some_and(|expected| expected != found) {
        return Err(Mismatch::TheirDisk { replica, found, expected });
    }
    match stage {
        // Trust on first use is for disks that the group has been acting with.
        Stage::New | Stage::Voted(_) if expected.is_none() => {
            Err(Mismatch::TheirDisk { replica, found, expected })
        }
        // It will act as soon as it has heard from us.
        Stage::New | Stage::Voted(_) => Ok(None),
        Stage::Acting(other) => {
            let expected = other.disk(ours.replica);
            if expected.is_some_and(|expected| expected != ours.disk) {
                let (me, ours) = (ours.replica, ours.disk);
                return Err(Mismatch::OurDisk { replica, me, ours, expected });
            }
            if let Some((member, ours, theirs)) = roster.conflict(&other) {
                return Err(Mismatch::Third { replica, member, ours, theirs });
            }
            Ok(roster.disk(replica).is_none().then(|| roster.with(replica, found)))
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
    /// It makes this roster durable, and acts.
    Act(Roster),
    /// It must not start.
    Refuse(Mismatch),
}

/// What a member whose directory is new has heard.
#[derive(Clone, Debug)]
pub struct Formation {
    group: Group,
    me: ReplicaId,
    disk: DiskId,
    vote: Option<Roster>,
    /// Members that are connected, and what they said last.
    heard: [Option<(DiskId, Option<Roster>)>; Group::SIZE_MAX],
    /// Members that are connected and have been told, on the connection of now, how far this member has come.
    told: ReplicaSet,
    /// Members that are connected.
    connected: ReplicaSet,
    /// Members that have voted as we did: that holds when they are gone.
    agreed: ReplicaSet,
    /// What ends the waiting.
    end: Option<Result<Roster, Mismatch>>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl Formation {
    /// Nothing heard yet. `vote` is what this disk has voted for in an earlier life.
    #[must_use]
    pub const fn new(group: Group, me: ReplicaId, disk: DiskId, vote: Option<Roster>) -> Self {
        Self {
            group,
            me,
            disk,
            vote,
            heard: [None; Group::SIZE_MAX],
            told: ReplicaSet(0),
            connected: ReplicaSet(0),
            agreed: ReplicaSet(0),
            end: None,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
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
            None => Stage::New,
            Some(roster) => Stage::Voted(roster),
        };
        Declaration { replica: self.me, disk: self.disk, stage }
    }

    /// Checks what a member says that connects.
    ///
    /// # Errors
    /// [`Mismatch`]: it must not be connected.
    pub fn check(&self, theirs: &Declaration) -> Result<(), Mismatch> {
        let Declaration { replica, disk: found, .. } = *theirs;
        // Another process with its id is connected, or was when we voted.
        let expected = match (&self.vote, self.heard[replica.index()]) {
            (Some(roster), _) => roster.disk(replica),
            (None, Some((disk, _))) => Some(disk),
            (None, None) => None,
        };
        match expected {
            Some(expected) if expected != found => {
                Err(Mismatch::TheirDisk { replica, found, expected: Some(expected) })
            }
            _ => self.objection(theirs).map_or(Ok(()), Err),
        }
    }

    /// Why this member must not start, after what another one says.
    #[must_use]
    pub fn objection(&self, theirs: &Declaration) -> Option<Mismatch> {
        let replica = theirs.replica;
        match theirs.stage {
            Stage::New => None,
            Stage::Voted(roster) | Stage::Acting(roster) => {
                let expected = roster.disk(self.me);
                let is_late = expected.is_none() && self.planted(PlantedBug::FormationByQuorum);
                if expected != Some(self.disk) && !is_late {
                    return Some(Mismatch::OurDisk { replica, me: self.me, ours: self.disk, expected });
                }
                let (member, ours, theirs) = self.vote?.conflict(&roster)?;
                Some(Mismatch::Third { replica, member, ours, theirs })
            }
        }
    }

    /// Takes note of what a connected member says of itself.
    pub fn hear(&mut self, theirs: &Declaration) {
        let Declaration { replica, disk, stage } = *theirs;
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
            Stage::New => self.heard[replica.index()] = Some((disk, None)),
            Stage::Voted(roster) => self.heard[replica.index()] = Some((disk, Some(roster))),
            Stage::Acting(roster) => self.end = Some(Ok(roster)),
        }
        self.count_votes();
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
        let is_told = self.planted(PlantedBug::HandshakeTellsEnough);
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
            Some(Ok(roster)) => return Decision::Act(roster),
            Some(Err(mismatch)) => return Decision::Refuse(mismatch),
            None => {}
        }
        let others = (0..self.group.size() as u8).map(ReplicaId).filter(|member| *member != self.me);
        if let Some(roster) = self.vote {
            let waits = others.filter(|member| !self.agreed.contains(*member));
            let waits = waits.fold(ReplicaSet(0), ReplicaSet::with);
            let is_enough = self.is_enough(waits) || self.planted(PlantedBug::WipedDiskJoins);
            return if is_enough { Decision::Act(roster) } else { Decision::Wait(waits) };
        }
        let mut roster = Roster::unknown(self.group).with(self.me, self.disk);
        let mut waits = ReplicaSet(0);
        for member in others {
            match self.heard[member.index()] {
                Some((disk, _)) => roster = roster.with(member, disk),
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
