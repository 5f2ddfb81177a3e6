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

use super::{Enumeration, OPERATIONS_MAX, name, names, survivor_sets};

/// What an update does. A value is the list of the updates that it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixedUpdate {
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

impl MixedUpdate {
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

impl fmt::Display for MixedUpdate {
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

impl FromStr for MixedUpdate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| {
            format!("{text:?} is no update: {}", Self::ALL.map(|kind| kind.to_string()).join(", "))
        })
    }
}

/// A known-wrong variant, which the check must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownWrong {
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
    pub updates: Vec<MixedUpdate>,
    /// Answers that complete an overwrite of one key.
    pub overwrite_quorum: usize,
    /// Answers that complete any other update.
    pub strong_quorum: usize,
    /// The known-wrong variant to run, if any.
    pub known_wrong: Option<KnownWrong>,
}

impl MixedSettings {
    /// The rule for these updates, with this many active members.
    #[must_use]
    pub fn new(group: Group, active: usize, updates: Vec<MixedUpdate>) -> Self {
        Self {
            group,
            active,
            updates,
            overwrite_quorum: group.majority(),
            strong_quorum: active,
            known_wrong: None,
        }
    }

    fn has(&self, variant: KnownWrong) -> bool {
        self.known_wrong == Some(variant)
    }

    fn quorum(&self, update: usize) -> usize {
        if self.updates[update].is_overwrite() {
            self.overwrite_quorum
        } else {
            self.strong_quorum - usize::from(self.has(KnownWrong::StrongWithOneLess))
        }
    }

    /// The updates of which this holds, as bits.
    fn of_which(&self, holds: impl Fn(usize) -> bool) -> u8 {
        (0..self.updates.len()).filter(|update| holds(*update)).map(|update| 1 << update).sum()
    }

    fn overlapping(&self, update: usize) -> u8 {
        self.of_which(|other| other != update && self.updates[other].overlaps(self.updates[update]))
    }
}

/// Most replicas: two updates of seven take five minutes.
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
    /// The leader first, then active followers, then passive ones; each of these two sorted.
    members: [Member; MIXED_REPLICAS_MAX],
    /// What the leader had executed when it evaluated, plus one; 0: it did not.
    evaluated: [u8; OPERATIONS_MAX],
    invoked: u8,
    completed: u8,
    /// Updates that were complete when this one was invoked.
    after: [u8; OPERATIONS_MAX],
}

/// These updates as bits.
fn bits(updates: &[u8]) -> u8 {
    updates.iter().map(|update| 1 << update).sum()
}

/// The updates of these bits, by timestamp.
fn updates_of(bits: u8) -> impl Iterator<Item = u8> {
    (0..OPERATIONS_MAX as u8).filter(move |update| bits & 1 << update != 0)
}

/// The updates with earlier timestamps as bits.
const fn earlier_than(update: usize) -> u8 {
    (1 << update) - 1
}

/// The updates with later timestamps as bits.
const fn later_than(update: usize) -> u8 {
    !earlier_than(update + 1)
}

/// Both keys' values.
type Values = [Vec<u8>; KEYS];

/// Executes an update, and returns what an evaluated one returns.
fn execute(kind: MixedUpdate, update: u8, values: &mut Values) -> Option<Values> {
    let before = kind.is_evaluated().then(|| {
        let seen = |key: usize| if kind.keys() & 1 << key == 0 { Vec::new() } else { values[key].clone() };
        [seen(0), seen(1)]
    });
    match kind {
        MixedUpdate::Overwrite(key) => values[usize::from(key)] = vec![update],
        MixedUpdate::Merge(key) | MixedUpdate::Evaluate(key) => values[usize::from(key)].push(update),
        MixedUpdate::Copy(from, to) => values[usize::from(to)] = values[usize::from(from)].clone(),
        MixedUpdate::OverwriteBoth => *values = [vec![update], vec![update]],
        MixedUpdate::EvaluateBoth => values.iter_mut().for_each(|value| value.push(update)),
    }
    before
}

/// Executes updates in this order, and returns the values in the end.
fn execute_all(
    settings: &MixedSettings,
    updates: &[u8],
    mut on_result: impl FnMut(u8, Option<Values>),
) -> Values {
    let mut values = Values::default();
    for update in updates {
        on_result(*update, execute(settings.updates[usize::from(*update)], *update, &mut values));
    }
    values
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
    let choices: Vec<Vec<usize>> = survivor_sets(settings.group).collect();
    let mut found = Enumeration::default();
    let mut seen = HashSet::from([State::default()]);
    let mut left = vec![State::default()];
    while let Some(state) = left.pop() {
        examine(settings, &state, &choices, &mut found);
        if found.configurations % 65_536 < choices.len() as u64 {
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

    /// States that differ in the names of followers alone become one.
    fn sorted(mut self, settings: &MixedSettings) -> Self {
        self.members[1..settings.active].sort_unstable();
        self.members[settings.active..settings.group.size()].sort_unstable();
        self
    }

    /// Notes what clients know by now.
    fn complete(&mut self, settings: &MixedSettings) {
        let executed = bits(self.executed_of(0));
        for update in 0..settings.updates.len() {
            let bit = 1 << update;
            let answers = self.members[..settings.active].iter().filter(|member| member.accepted & bit != 0);
            // What the leader has accepted it has also evaluated.
            let has_all = self.members[0].accepted & bit != 0 && answers.count() >= settings.quorum(update);
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

    /// What the leader has accepted and not ordered, as bits.
    fn waiting(&self) -> u8 {
        self.members[0].accepted & !bits(self.log_of(0))
    }

    /// Of what waits, what may be ordered next: nothing that overlaps it has an earlier timestamp.
    fn orderable(&self, settings: &MixedSettings) -> u8 {
        let waiting = self.waiting();
        let before = |update: usize| waiting & earlier_than(update) & settings.overlapping(update);
        settings.of_which(|update| waiting & 1 << update != 0 && before(update) == 0)
    }

    /// The leader orders an update that it does not accept: after what it overlaps of what waits, which comes
    /// after what that overlaps.
    fn order_refused(&mut self, settings: &MixedSettings, update: usize) {
        let waiting = self.waiting();
        let mut first = waiting & settings.overlapping(update);
        for earlier in (0..settings.updates.len()).rev() {
            if first & later_than(earlier) & settings.overlapping(earlier) != 0 {
                first |= waiting & 1 << earlier;
            }
        }
        updates_of(first).for_each(|earlier| self.order(earlier));
        self.order(update as u8);
    }
}

/// True if the member's rules let it accept the update.
fn accepts(settings: &MixedSettings, state: &State, member: usize, update: usize) -> bool {
    let kind = settings.updates[update];
    let own = state.members[member];
    let executed = bits(state.executed_of(member));
    let logged = bits(state.log_of(member));
    let overlapping = settings.overlapping(update);
    // What the leader has ordered without accepting it does not count: recovery puts it first, or forgets it.
    let in_order = kind.is_evaluated()
        || settings.has(KnownWrong::NoOrderRule)
        || own.accepted & !executed & overlapping & later_than(update) == 0;
    let ordered = if member == 0 { logged } else { 0 };
    let done =
        if member == 0 && !settings.has(KnownWrong::EvaluatedBeforeExecution) { executed } else { logged };
    let alone = !kind.is_evaluated()
        || settings.has(KnownWrong::NoAloneRule)
        || (own.accepted | ordered) & !done & overlapping == 0;
    let several = settings.of_which(|other| settings.updates[other].has_several_keys());
    let unshared = settings.has(KnownWrong::NoSharedRule)
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
    for update in updates_of(state.orderable(settings)) {
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
    if (state.members[member].accepted | bits(state.log_of(member))) & bit != 0 {
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
        after.order_refused(settings, update);
    }
    (after != *state).then_some(after)
}

/// Lets every choice of survivors recover.
fn examine(settings: &MixedSettings, state: &State, choices: &[Vec<usize>], found: &mut Enumeration) {
    for survivors in choices {
        let recovered = recover(settings, state, survivors);
        found.configurations += 1;
        if !fits(settings, state, &recovered) {
            found.violations += 1;
            if found.counterexample.is_none() {
                found.counterexample = Some(explain(settings, state, survivors, &recovered));
            }
        }
    }
}

/// A counterexample for people to read.
fn explain(settings: &MixedSettings, state: &State, survivors: &[usize], recovered: &[u8]) -> String {
    let names_of = |bits: u8| names(&updates_of(bits).collect::<Vec<_>>());
    let mut text = String::new();
    for (update, kind) in settings.updates.iter().enumerate() {
        let name = name(update as u8);
        let completed = if state.completed & 1 << update == 0 { "" } else { ", completed" };
        let evaluated = match state.evaluated[update].checked_sub(1) {
            Some(after) => format!(", evaluated after {after} entries of the log"),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "{name}: {kind}, invoked after {}{evaluated}{completed}",
            names_of(state.after[update])
        );
    }
    for member in 0..settings.group.size() {
        let role = match member {
            0 => "leader",
            _ if member < settings.active => "active",
            _ => "passive",
        };
        let fate = if survivors.contains(&member) { "survives" } else { "fails" };
        let log = names(state.log_of(member));
        let (accepted, executed) = (names_of(state.members[member].accepted), state.members[member].executed);
        let _ =
            writeln!(text, "{role} {member}: log {log}, executed {executed}, accepted {accepted}; {fate}");
    }
    let _ = write!(text, "recovered: {}; no order of the updates fits", names(recovered));
    text
}

/// What the next view begins with.
fn recover(settings: &MixedSettings, state: &State, survivors: &[usize]) -> Vec<u8> {
    let longest = survivors.iter().max_by_key(|member| state.members[**member].log);
    let mut log = longest.map_or_else(Vec::new, |member| state.log_of(*member).to_vec());
    let logs =
        || survivors.iter().filter(|member| **member < settings.active).map(|m| state.members[*m].accepted);
    let union = logs().fold(0, |all, log| all | log) & !bits(&log);
    let shared = logs().fold(u8::MAX, |all, log| all & log);
    let count = settings.updates.len();
    let is_recovered = |update: usize| {
        let bit = 1 << update;
        if !settings.updates[update].is_overwrite() {
            return (if settings.has(KnownWrong::StrongByUnion) { union } else { union & shared }) & bit != 0;
        }
        let is_overwritten = (update + 1..count)
            .any(|later| union & 1 << later != 0 && settings.updates[later] == settings.updates[update]);
        union & bit != 0 && (!is_overwritten || settings.has(KnownWrong::OverwrittenKept))
    };
    log.extend((0..count).filter(|update| is_recovered(*update)).map(|update| update as u8));
    log
}

/// True if some order of the completed updates and some of the others agrees with real time, with what
/// clients were told and with what is recovered.
fn fits(settings: &MixedSettings, state: &State, recovered: &[u8]) -> bool {
    let mut results: [Option<Values>; OPERATIONS_MAX] = Default::default();
    let last = execute_all(settings, recovered, |update, result| results[usize::from(update)] = result);
    for (update, evaluated) in state.evaluated.iter().enumerate() {
        if *evaluated != 0 && state.completed & 1 << update != 0 {
            let mut values = execute_all(settings, &state.log[..usize::from(*evaluated) - 1], |_, _| ());
            results[update] = execute(settings.updates[update], update as u8, &mut values);
        }
    }
    let needed = state.completed | bits(recovered);
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
