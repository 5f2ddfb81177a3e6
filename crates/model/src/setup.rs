//! What a model consists of: members, clients, their operations, and how often what may happen.

use crate::machine::Operation;
use crate::script_step::ScriptStep;
use syros_protocol::replica::{Durability, PlantedBug};
use syros_types::{
    Configuration, ConfigurationEpoch, FastQuorum, Group, NodeId, ReadPolicy, Reconfiguration, ReplicaId,
    Roster,
};

/// Most members of a group here.
pub(crate) const MEMBERS_MAX: usize = 5;

/// Most clients.
pub(crate) const CLIENTS_MAX: usize = 3;

/// The number of the node that takes a place.
const NEWCOMER: u64 = 99;

fn group(size: usize) -> Group {
    Group::new(size).expect("models have as many members as groups may have")
}

fn node_of(number: u64) -> NodeId {
    NodeId::new(number).expect("it is above 0")
}

/// What can happen only so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Bounded {
    /// A follower misses its leader, and enough others agree: it moves to the next view. (With one
    /// clock for all: it only misses it, and says so.)
    Suspicion,
    /// A replica between views sends again or goes on to the next view; one without memory asks again.
    Retry,
    /// A leader sends a heartbeat by itself.
    Heartbeat,
    /// A client is tired of waiting.
    Impatience,
    /// A message is delivered and stays on its way.
    Duplicate,
    /// A replica restarts.
    Restart,
    /// A replica restarts, and its log cannot be read.
    Damage,
    /// Time passes.
    Time,
    /// A leader orders, in the background, what it has accepted.
    Ordering,
    /// A follower asks for bodies that have not come.
    Fetch,
    /// A leader wants other members to be active.
    Activation,
    /// A leader has the members changed: see [`Change`].
    Reconfiguration,
    /// A new node starts, after somebody has adopted its configuration.
    Newcomer,
}

/// How many there are of [`Bounded`].
pub(crate) const BOUNDED: usize = 13;

/// How often each may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Budget(pub(crate) [u8; BOUNDED]);

impl Budget {
    pub(crate) const fn with(mut self, what: Bounded, times: u8) -> Self {
        self.0[what as usize] = times;
        self
    }

    pub(crate) const fn left(&self, what: Bounded) -> u8 {
        self.0[what as usize]
    }

    pub(crate) const fn spend(&mut self, what: Bounded) {
        self.0[what as usize] -= 1;
    }
}

/// In which steps the records of a slow member reach its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskSteps {
    /// All in one step, and its core is told in the same one.
    Together,
    /// One record in each step, upon which what waits for it leaves. The core is told in a step of its own.
    Apart,
}

/// Which change of members there may be in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new node takes the place of the last member, which is gone then, or will be.
    Replacement,
    /// The group grows by the last two members: before they are started they are nobody.
    Growth,
    /// As growth, by nodes that copy what the group holds before somebody has it grow.
    Learning,
    /// The group shrinks by the last two members.
    Shrinking,
}

/// How time enters a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// Every replica and client has a clock of its own, which moves only when one of its timers is made
    /// to end. Leases last no time at all.
    Timers,
    /// As `Timers`, and messages carry clocks: needed by reads that are confirmed by heartbeats.
    Clocks,
    /// One clock for all, moved by itself; leases last as long as a follower's patience.
    Leases,
}

/// One model. See `docs/MODEL.md` for what each one is for.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Processes: members of the first configuration, or of the next one.
    pub(crate) members: usize,
    pub(crate) change: Change,
    pub(crate) mode: FastQuorum,
    pub(crate) durability: Durability,
    /// The operations of each client, in the order in which it issues them.
    pub(crate) programs: &'static [&'static [Operation]],
    /// How clients read.
    pub(crate) reads: ReadPolicy,
    /// Readings of the clients' wall clocks, microseconds; each line is one start.
    pub(crate) walls: &'static [&'static [u64]],
    pub(crate) budget: Budget,
    /// Views above this are not entered.
    pub(crate) view_max: u64,
    pub(crate) time: Time,
    /// Answers to clients arrive at once. Else they travel like all messages.
    pub(crate) answers_at_once: bool,
    /// Commit messages (heartbeats) arrive. Else they are lost; commit numbers also ride on Prepares.
    pub(crate) heartbeats: bool,
    /// Parts of the log can be asked for. Else such questions are lost.
    pub(crate) transfers: bool,
    /// Records of this member wait to be written, and reach its disk in these steps. Those of the others are on disk at once.
    pub(crate) slow_disk: Option<(u8, DiskSteps)>,
    /// This member executes what is committed one entry at a time; the others all of it at once.
    pub(crate) slow_engine: Option<u8>,
    /// What happens before the search begins.
    pub(crate) script: &'static [ScriptStep],
    /// Transitions, repeated ones included, after which the search ends undecided.
    pub(crate) transitions_max: usize,
    pub(crate) planted: Option<PlantedBug>,
}

impl Setup {
    /// The group's first configuration.
    ///
    /// # Panics
    /// If the model has a number of members that no group has.
    pub(crate) fn configuration(&self) -> Configuration {
        let all = group(self.members);
        let group = match self.change {
            Change::Growth | Change::Learning => {
                all.smaller().expect("a group that grows is larger afterwards")
            }
            Change::Replacement | Change::Shrinking => all,
        };
        let mut configuration = Configuration::first(group, self.mode);
        configuration.roster = self.processes().resized(group);
        configuration
    }

    /// The node that each process is at first.
    fn processes(&self) -> Roster {
        let all = group(self.members);
        all.members().fold(Roster::unknown(all), |roster, member| {
            roster.with(member, node_of(u64::from(member.0) + 1))
        })
    }

    /// The change of members that there may be.
    pub(crate) fn next(&self) -> Reconfiguration {
        let first = self.configuration().roster;
        let all = first.group();
        let roster = match self.change {
            Change::Replacement => first.with(ReplicaId(all.size() as u8 - 1), node_of(NEWCOMER)),
            Change::Growth | Change::Learning => self.processes(),
            Change::Shrinking => first.resized(all.smaller().expect("a group that shrinks is larger before")),
        };
        let before = (roster.group() != all).then_some(first);
        Reconfiguration { epoch: ConfigurationEpoch::FIRST.next(), roster, before }
    }

    /// The configuration of this epoch.
    pub(crate) fn configuration_of(&self, epoch: ConfigurationEpoch) -> Configuration {
        let first = self.configuration();
        if epoch == ConfigurationEpoch::FIRST { first } else { first.after(self.next()) }
    }

    /// True if the next configuration has another node there than the first one, or the only one.
    pub(crate) fn is_new(&self, member: ReplicaId) -> bool {
        let node = self.next().roster.node(member);
        node.is_some() && node != self.configuration().roster.node(member)
    }

    /// The configuration that a new node starts in.
    pub(crate) fn begins_in(&self) -> Configuration {
        let first = self.configuration();
        if self.change == Change::Learning { first } else { first.after(self.next()) }
    }

    /// True if there is nobody before a new node starts there.
    pub(crate) fn is_absent_at_first(&self, member: ReplicaId) -> bool {
        !self.configuration().has(member)
    }

    /// Every operation, client by client.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        self.programs.iter().flat_map(|program| program.iter().copied()).collect()
    }

    /// Place of a client's operation among all.
    pub(crate) fn operation_index(&self, client: usize, number: usize) -> usize {
        self.programs[..client].iter().map(|program| program.len()).sum::<usize>() + number
    }
}
