//! Exhaustive check of mixed fast quorums: overwrites of one key complete with `f + 1` answers and are
//! recovered by union, all other updates complete with the answers of all active members and are
//! recovered by intersection.
//!
//! Unlike the other rules this one leans on what a leader has executed when it evaluates, so that logs
//! alone do not say enough: here every *execution* of one view is tried. Steps are the delivery of an
//! update to a member, the leader's ordering of one, a Prepare to a follower, an execution. In every
//! state that is reached, every set of `f + 1` survivors recovers, and a search over all orders of the
//! updates says whether what clients were told fits what is recovered.
//!
//! A client completes as soon as it can, and an update is invoked when it first reaches a member: both
//! give real time the most to say.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::str::FromStr;

use syros_types::Group;

use super::{Enumeration, OPERATIONS_MAX};

/// What an update does. A value is the list of the updates that it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Replaces the value of a key: SET.
    Overwrite(u8),
    /// Changes the value of a key and tells nothing: a blind APPEND.
    Merge(u8),
    /// Changes the value of a key and returns what it was: INCR.
    Evaluate(u8),
    /// Puts the value of the first key in the place of the second one's, and tells nothing: a blind COPY.
    Copy(u8, u8),
    /// Replaces the values of both keys: MSET.
    OverwriteBoth,
    /// Changes both keys and returns what they were.
    EvaluateBoth,
}

/// Keys in play.
const KEYS: usize = 2;

impl Kind {
    /// Every kind with every key.
    pub const ALL: [Self; 10] = [
        Self::Overwrite(0),
        Self::Overwrite(1),
        Self::Merge(0),
        Self::Merge(1),
        Self::Evaluate(0),
        Self::Evaluate(1),
        Self::Copy(0, 1),
        Self::Copy(1, 0),
        Self::OverwriteBoth,
        Self::EvaluateBoth,
    ];

    /// The keys as bits.
    fn keys(self) -> u8 {
        match self {
            Self::Overwrite(key) | Self::Merge(key) | Self::Evaluate(key) => 1 << key,
            Self::Copy(from, to) => 1 << from | 1 << to,
            Self::OverwriteBoth | Self::EvaluateBoth => 0b11,
        }
    }

    fn overlaps(self, other: Self) -> bool {
        self.keys() & other.keys() != 0
    }

    fn has_several_keys(self) -> bool {
        self.keys().count_ones() > 1
    }

    fn is_evaluated(self) -> bool {
        matches!(self, Self::Evaluate(_) | Self::EvaluateBoth)
    }

    /// True if the smaller quorum completes it.
    fn is_overwrite(self) -> bool {
        matches!(self, Self::Overwrite(_))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overwrite(key) => write!(f, "w{key}"),
            Self::Merge(key) => write!(f, "m{key}"),
            Self::Evaluate(key) => write!(f, "u{key}"),
            Self::Copy(from, to) => write!(f, "c{from}{to}"),
            Self::OverwriteBoth => f.write_str("w01"),
            Self::EvaluateBoth => f.write_str("u01"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| {
            format!("{text:?} is no update: {}", Self::ALL.map(|kind| kind.to_string()).join(", "))
        })
    }
}

/// A rule that is known to be wrong, for the check to show that it finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// One answer less completes strong updates.
    StrongWithOneLess,
    /// Strong updates are recovered by union.
    StrongByUnion,
    /// An overwrite is recovered although one with a later timestamp is.
    OverwrittenKept,
    /// Members accept an overwrite or a merge after an overlapping one with a later timestamp.
    NoOrderRule,
    /// Members accept an evaluated update beside what overlaps it.
    NoAloneRule,
    /// Members accept beside an update of several keys that overlaps.
    NoSharedRule,
    /// The leader evaluates although it has not executed what it has ordered.
    EvaluatedBeforeExecution,
}

/// What to enumerate.
#[derive(Clone, Debug)]
pub struct MixedSettings {
    /// The replicas.
    pub group: Group,
    /// Active members, the leader and the first followers: at least `f + 1`.
    pub active: usize,
    /// The updates in the order of their timestamps, at most [`OPERATIONS_MAX`].
    pub updates: Vec<Kind>,
    /// Answers that complete an overwrite of one key.
    pub overwrite_quorum: usize,
    /// Answers that complete any other update.
    pub strong_quorum: usize,
    /// What is planted.
    pub mistake: Option<Mistake>,
}

impl MixedSettings {
    /// The rule for these updates, with this many active members.
    #[must_use]
    pub fn new(group: Group, active: usize, updates: Vec<Kind>) -> Self {
        Self {
            group,
            active,
            updates,
            overwrite_quorum: group.majority(),
            strong_quorum: active,
            mistake: None,
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn quorum(&self, update: usize) -> usize {
        if self.updates[update].is_overwrite() {
            self.overwrite_quorum
        } else {
            self.strong_quorum - usize::from(self.makes(Mistake::StrongWithOneLess))
        }
    }

    fn overlapping(&self, update: usize) -> u8 {
        let of = |other: usize| self.updates[other].overlaps(self.updates[update]) && other != update;
        (0..self.updates.len()).filter(|other| of(*other)).map(|other| 1 << other).sum()
    }
}

/// Most replicas: two updates of seven take minutes already.
pub const MIXED_REPLICAS_MAX: usize = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Member {
    /// Updates that it has ever taken into its durability log, as bits.
    accepted: u8,
    /// Length of its log, which is a prefix of the leader's.
    log: u8,
    /// Entries of its log that it has executed.
    executed: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// The leader's log.
    log: [u8; OPERATIONS_MAX],
    /// The leader first, then active followers, then passive ones; each sort in increasing order.
    members: [Member; MIXED_REPLICAS_MAX],
    /// What the leader had executed when it evaluated, plus one; 0: it did not.
    evaluated: [u8; OPERATIONS_MAX],
    invoked: u8,
    completed: u8,
    /// Updates that were complete when this one was invoked.
    after: [u8; OPERATIONS_MAX],
}

/// Both keys' values.
type Values = [Vec<u8>; KEYS];

/// Executes an update, and returns what an evaluated one returns.
fn execute(kind: Kind, update: u8, values: &mut Values) -> Option<Values> {
    let before = kind.is_evaluated().then(|| {
        let seen = |key: usize| if kind.keys() & 1 << key == 0 { Vec::new() } else { values[key].clone() };
        [seen(0), seen(1)]
    });
    match kind {
        Kind::Overwrite(key) => values[usize::from(key)] = vec![update],
        Kind::Merge(key) | Kind::Evaluate(key) => values[usize::from(key)].push(update),
        Kind::Copy(from, to) => values[usize::from(to)] = values[usize::from(from)].clone(),
        Kind::OverwriteBoth => *values = [vec![update], vec![update]],
        Kind::EvaluateBoth => values.iter_mut().for_each(|value| value.push(update)),
    }
    before
}

/// Examines every state that one view can reach, with every choice of survivors. `progress` is told now
/// and then how many recoveries were examined.
///
/// # Panics
/// If there are more updates than [`OPERATIONS_MAX`], more replicas than [`MIXED_REPLICAS_MAX`], or fewer
/// active members than `f + 1`.
pub fn enumerate_mixed(settings: &MixedSettings, progress: &mut dyn FnMut(u64)) -> Enumeration {
    assert!(settings.updates.len() <= OPERATIONS_MAX, "at most {OPERATIONS_MAX} updates");
    assert!(settings.group.size() <= MIXED_REPLICAS_MAX, "at most {MIXED_REPLICAS_MAX} replicas");
    assert!(
        (settings.group.majority()..=settings.group.size()).contains(&settings.active),
        "f + 1 are active"
    );
    let mut found = Enumeration::default();
    let mut seen = HashSet::from([State::default()]);
    let mut left = vec![State::default()];
    while let Some(state) = left.pop() {
        examine(settings, &state, &mut found);
        if found.configurations % 65_536 < 8 {
            progress(found.configurations);
        }
        for next in successors(settings, &state) {
            if seen.insert(next) {
                left.push(next);
            }
        }
    }
    found
}

impl State {
    fn log_of(&self, member: usize) -> &[u8] {
        &self.log[..usize::from(self.members[member].log)]
    }

    fn executed_of(&self, member: usize) -> &[u8] {
        &self.log[..usize::from(self.members[member].executed)]
    }

    /// These updates as bits.
    fn held(entries: &[u8]) -> u8 {
        entries.iter().map(|update| 1 << update).sum()
    }

    /// States that differ in the names of followers only become one.
    fn sorted(mut self, settings: &MixedSettings) -> Self {
        self.members[1..settings.active].sort_unstable();
        self.members[settings.active..settings.group.size()].sort_unstable();
        self
    }

    /// Notes what clients know by now.
    fn complete(&mut self, settings: &MixedSettings) {
        let executed = Self::held(self.executed_of(0));
        for update in 0..settings.updates.len() {
            let bit = 1 << update;
            let answers = self.members[..settings.active].iter().filter(|member| member.accepted & bit != 0);
            let has_all = self.members[0].accepted & bit != 0
                && answers.count() >= settings.quorum(update)
                && (!settings.updates[update].is_evaluated() || self.evaluated[update] != 0);
            if has_all || executed & bit != 0 {
                self.completed |= bit;
            }
        }
    }

    /// The leader orders an update.
    fn order(&mut self, update: u8) {
        self.log[usize::from(self.members[0].log)] = update;
        self.members[0].log += 1;
    }

    /// Of what the leader has accepted and not ordered, what may be ordered next: nothing that overlaps it
    /// has an earlier timestamp.
    fn orderable(&self, settings: &MixedSettings) -> Vec<u8> {
        let waiting = self.members[0].accepted & !Self::held(self.log_of(0));
        (0..settings.updates.len() as u8)
            .filter(|update| {
                let earlier = (1_u8 << update) - 1;
                waiting & 1 << update != 0
                    && waiting & earlier & settings.overlapping(usize::from(*update)) == 0
            })
            .collect()
    }
}

/// True if the member's rules let it accept the update.
fn accepts(settings: &MixedSettings, state: &State, member: usize, update: usize) -> bool {
    let kind = settings.updates[update];
    let own = state.members[member];
    let executed = State::held(state.executed_of(member));
    let logged = State::held(state.log_of(member));
    let overlapping = settings.overlapping(update);
    let later = !((1_u8 << update) | ((1_u8 << update) - 1));
    // The leader counts what it has ordered and not executed.
    let ordered = if member == 0 { logged } else { 0 };
    let in_order = kind.is_evaluated()
        || settings.makes(Mistake::NoOrderRule)
        || (own.accepted | ordered) & !executed & overlapping & later == 0;
    let done =
        if member == 0 && !settings.makes(Mistake::EvaluatedBeforeExecution) { executed } else { logged };
    let alone = !kind.is_evaluated()
        || settings.makes(Mistake::NoAloneRule)
        || (own.accepted | ordered) & !done & overlapping == 0;
    let several = (0..settings.updates.len())
        .filter(|other| settings.updates[*other].has_several_keys())
        .fold(0_u8, |bits, other| bits | 1 << other);
    let unshared = settings.makes(Mistake::NoSharedRule)
        || (own.accepted | logged) & !executed & overlapping & several == 0;
    in_order && alone && unshared
}

/// Every state that one step leads to.
fn successors(settings: &MixedSettings, state: &State) -> Vec<State> {
    let mut next = Vec::new();
    let mut add = |mut state: State| {
        state.complete(settings);
        next.push(state.sorted(settings));
    };
    for member in 0..settings.active {
        for update in 0..settings.updates.len() {
            if let Some(state) = deliver(settings, state, member, update) {
                add(state);
            }
        }
    }
    for update in state.orderable(settings) {
        let mut after = *state;
        after.order(update);
        add(after);
    }
    let committed = {
        let mut lengths: Vec<u8> = state.members[..settings.group.size()].iter().map(|m| m.log).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths[settings.group.majority() - 1]
    };
    for member in 0..settings.group.size() {
        let own = state.members[member];
        if own.log < state.members[0].log {
            let mut after = *state;
            after.members[member].log += 1;
            add(after);
        }
        let may_execute = if member == 0 { committed } else { own.log.min(state.members[0].executed) };
        if own.executed < may_execute {
            let mut after = *state;
            after.members[member].executed += 1;
            add(after);
        }
    }
    next
}

/// An update reaches an active member that does not have it.
fn deliver(settings: &MixedSettings, state: &State, member: usize, update: usize) -> Option<State> {
    let bit = 1_u8 << update;
    if (state.members[member].accepted | State::held(state.log_of(member))) & bit != 0 {
        return None;
    }
    let mut after = *state;
    if state.invoked & bit == 0 {
        after.invoked |= bit;
        after.after[update] = state.completed;
    }
    if accepts(settings, state, member, update) {
        after.members[member].accepted |= bit;
        if member == 0 && settings.updates[update].is_evaluated() {
            after.evaluated[update] = state.members[0].executed + 1;
        }
    } else if member == 0 {
        // What it has accepted that overlaps goes first, after what goes before that; then this.
        let waiting = after.members[0].accepted & !State::held(after.log_of(0));
        let mut first = waiting & settings.overlapping(update);
        for earlier in (0..settings.updates.len()).rev().filter(|earlier| waiting & 1 << earlier != 0) {
            let later = first & !((1_u8 << earlier) | ((1_u8 << earlier) - 1));
            if later & settings.overlapping(earlier) != 0 {
                first |= 1 << earlier;
            }
        }
        for earlier in (0..settings.updates.len() as u8).filter(|earlier| first & 1 << earlier != 0) {
            after.order(earlier);
        }
        after.order(update as u8);
    }
    (after != *state).then_some(after)
}

/// Lets every choice of `f + 1` survivors recover.
fn examine(settings: &MixedSettings, state: &State, found: &mut Enumeration) {
    let size = settings.group.size();
    for chosen in 0..1_u32 << size {
        if chosen.count_ones() as usize != settings.group.majority() {
            continue;
        }
        let survivors: Vec<usize> = (0..size).filter(|member| chosen & 1 << member != 0).collect();
        let recovered = recover(settings, state, &survivors);
        found.configurations += 1;
        if !fits(settings, state, &recovered) {
            found.violations += 1;
            if found.counterexample.is_none() {
                found.counterexample = Some(explain(settings, state, &survivors, &recovered));
            }
        }
    }
}

/// A counterexample for people to read.
fn explain(settings: &MixedSettings, state: &State, survivors: &[usize], recovered: &[u8]) -> String {
    let names = |updates: &mut dyn Iterator<Item = u8>| {
        let names: Vec<String> = updates.map(|update| char::from(b'a' + update).to_string()).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(" ") }
    };
    let of_bits =
        |bits: u8| names(&mut (0..settings.updates.len() as u8).filter(|update| bits & 1 << update != 0));
    let mut text = String::new();
    for (update, kind) in settings.updates.iter().enumerate() {
        let name = char::from(b'a' + update as u8);
        let completed = if state.completed & 1 << update == 0 { "" } else { ", completed" };
        let evaluated = match state.evaluated[update].checked_sub(1) {
            Some(after) => format!(", evaluated after {after} entries of the log"),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "{name}: {kind}, invoked after {}{evaluated}{completed}",
            of_bits(state.after[update])
        );
    }
    for member in 0..settings.group.size() {
        let role = match member {
            0 => "leader",
            _ if member < settings.active => "active",
            _ => "passive",
        };
        let fate = if survivors.contains(&member) { "survives" } else { "fails" };
        let log = names(&mut state.log_of(member).iter().copied());
        let (accepted, executed) = (of_bits(state.members[member].accepted), state.members[member].executed);
        let _ =
            writeln!(text, "{role} {member}: log {log}, executed {executed}, accepted {accepted}; {fate}");
    }
    let _ =
        write!(text, "recovered: {}; no order of the updates fits", names(&mut recovered.iter().copied()));
    text
}

/// What the next view begins with.
fn recover(settings: &MixedSettings, state: &State, survivors: &[usize]) -> Vec<u8> {
    let longest = survivors.iter().max_by_key(|member| state.members[**member].log);
    let mut log = longest.map_or_else(Vec::new, |member| state.log_of(*member).to_vec());
    let logs =
        || survivors.iter().filter(|member| **member < settings.active).map(|m| state.members[*m].accepted);
    let union = logs().fold(0, |all, log| all | log) & !State::held(&log);
    let shared = logs().fold(u8::MAX, |all, log| all & log);
    let count = settings.updates.len();
    let is_recovered = |update: usize| {
        let bit = 1 << update;
        if !settings.updates[update].is_overwrite() {
            return (if settings.makes(Mistake::StrongByUnion) { union } else { union & shared }) & bit != 0;
        }
        let is_overwritten = (update + 1..count)
            .any(|later| union & 1 << later != 0 && settings.updates[later] == settings.updates[update]);
        union & bit != 0 && (!is_overwritten || settings.makes(Mistake::OverwrittenKept))
    };
    log.extend((0..count).filter(|update| is_recovered(*update)).map(|update| update as u8));
    log
}

/// True if some order of the completed updates and some of the others agrees with real time, with what
/// clients were told and with what is recovered.
fn fits(settings: &MixedSettings, state: &State, recovered: &[u8]) -> bool {
    let mut results: [Option<Values>; OPERATIONS_MAX] = Default::default();
    let mut last = Values::default();
    for update in recovered {
        results[usize::from(*update)] = execute(settings.updates[usize::from(*update)], *update, &mut last);
    }
    for (update, evaluated) in state.evaluated.iter().enumerate() {
        if *evaluated != 0 && state.completed & 1 << update != 0 {
            let mut values = Values::default();
            for earlier in &state.log[..usize::from(*evaluated) - 1] {
                execute(settings.updates[usize::from(*earlier)], *earlier, &mut values);
            }
            results[update] = execute(settings.updates[update], update as u8, &mut values);
        }
    }
    let needed = state.completed | State::held(recovered);
    let search = Search { settings, state, results: &results, last: &last, needed };
    search.from(0, &Values::default())
}

struct Search<'a> {
    settings: &'a MixedSettings,
    state: &'a State,
    results: &'a [Option<Values>; OPERATIONS_MAX],
    last: &'a Values,
    /// Updates that must have happened.
    needed: u8,
}

impl Search<'_> {
    /// True if what is left can follow what is done.
    fn from(&self, done: u8, values: &Values) -> bool {
        if self.needed & !done == 0 && values == self.last {
            return true;
        }
        (0..self.settings.updates.len()).any(|update| {
            let bit = 1 << update;
            let is_next = self.needed & !done & bit != 0 && self.state.after[update] & !done == 0;
            if !is_next {
                return false;
            }
            let mut values = values.clone();
            let result = execute(self.settings.updates[update], update as u8, &mut values);
            result == self.results[update] && self.from(done | bit, &values)
        })
    }
}
