//! Exhaustive check of rules that recover the durability log (Skyros 4.6, Figure 6).
//!
//! A *configuration* says what every replica's durability log holds, in order of arrival, for up to
//! [`OPERATIONS_MAX`] updates of one key, and which of them came before which in real time. All
//! configurations that the accept rule and the quorums allow are generated (followers are
//! interchangeable: their logs form a multiset), and for each every choice of `f + 1` surviving logs
//! is given to the rule. Demanded of its answer:
//!
//! - an update that completed is executed, or, where the mode drops overwritten updates, may be
//!   thought of as having run just before a later one;
//! - if `a` completed before `b` was invoked, `b` is not executed before `a`.
//!
//! What is not generated: updates ordered before the view change (they are in every log that can be
//! chosen) and several keys (each is recovered by itself).

mod mixed;
#[cfg(test)]
mod mixed_tests;
mod rules;
#[cfg(test)]
mod tests;

pub use mixed::{KnownWrong, MIXED_REPLICAS_MAX, MixedSettings, MixedUpdate, enumerate_mixed};
pub use rules::{majority, paper, supermajority};

use std::fmt::Write;
use syros_types::{FastQuorum, FastRule, Group, Strength};

/// Most updates that can be enumerated: beyond four, seven replicas take hours.
pub const OPERATIONS_MAX: usize = 4;

/// One entry of a durability log, as a rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which update: 0, 1, 2, ... Says nothing about the order: the same logs are shown with the updates
    /// numbered in the order of their timestamps and the other way round.
    pub operation: u8,
    /// Its timestamp. Every assignment of timestamps is tried.
    pub timestamp: u64,
}

/// A rule: from the `f + 1` surviving durability logs, each in order of arrival, the updates to execute.
/// It must not depend on the order of the logs, and is asked with more than one.
pub type Rule<'a> = &'a dyn Fn(Group, &[Vec<Entry>]) -> Vec<u8>;

/// What to enumerate.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The replicas.
    pub group: Group,
    /// Number of updates, at most [`OPERATIONS_MAX`].
    pub operations: usize,
    /// The quorum that completes an update, and with it whether dropping overwritten ones is allowed.
    pub mode: FastQuorum,
    /// Replicas refuse an update when they hold one with a later timestamp. The papers have no such
    /// check.
    pub conflict_check: bool,
}

/// Answers that complete an update: all are overwrites of one key.
fn fast_quorum(settings: Settings) -> usize {
    let rule = FastRule::of_all(settings.mode, settings.group);
    rule.fast_quorum(settings.group, Strength::Overwrite)
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enumeration {
    /// Configurations examined.
    pub configurations: u64,
    /// Configurations for which some choice of survivors is recovered wrongly.
    pub violations: u64,
    /// The first of them, for people to read.
    pub counterexample: Option<String>,
}

/// A durability log: updates in order of arrival. Updates are numbered in the order of their
/// timestamps, which loses no generality, since every real-time order is tried.
type Log = Vec<u8>;

/// `before[a]` has bit `b` if `a` completed before `b` was invoked.
type RealTime = [u8; OPERATIONS_MAX];

/// Examines every configuration. `progress` is told now and then how many were examined.
///
/// # Panics
/// If `settings.operations` is above [`OPERATIONS_MAX`].
pub fn enumerate(settings: Settings, rule: Rule<'_>, progress: &mut dyn FnMut(u64)) -> Enumeration {
    assert!(settings.operations <= OPERATIONS_MAX, "at most {OPERATIONS_MAX} updates");
    let logs = possible_logs(settings.operations, settings.conflict_check);
    let orders = real_time_orders(settings.operations);
    let mut found = Enumeration::default();
    for leader in 0..logs.len() {
        for_each_multiset(logs.len(), settings.group.size() - 1, &mut |followers| {
            examine(settings, rule, &logs, &orders, leader, followers, &mut found);
            if found.configurations % 65_536 < orders.len() as u64 {
                progress(found.configurations);
            }
        });
    }
    found
}

/// Every log a replica may hold: ordered subsets; with the conflict check, only increasing ones.
fn possible_logs(operations: usize, conflict_check: bool) -> Vec<Log> {
    let mut logs: Vec<Log> = vec![Vec::new()];
    let mut next = 0;
    while next < logs.len() {
        for operation in 0..operations as u8 {
            let log = &logs[next];
            let refused = conflict_check && log.iter().any(|held| *held > operation);
            if !log.contains(&operation) && !refused {
                let mut longer = log.clone();
                longer.push(operation);
                logs.push(longer);
            }
        }
        next += 1;
    }
    logs
}

/// Every order in real time that intervals can have: strict partial orders without two independent
/// chains of two (if `a` ended before `b` began and `c` before `d`, then `a` ended before `d` began or
/// `c` before `b`).
fn real_time_orders(operations: usize) -> Vec<RealTime> {
    let pairs: Vec<(usize, usize)> =
        (0..operations).flat_map(|a| (0..operations).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    let mut orders = Vec::new();
    for chosen in 0..1_u32 << pairs.len() {
        let mut before: RealTime = [0; OPERATIONS_MAX];
        for (index, (a, b)) in pairs.iter().enumerate() {
            if chosen & 1 << index != 0 {
                before[*a] |= 1 << *b;
            }
        }
        let is_before = |a: usize, b: usize| before[a] & 1 << b != 0;
        let ids = 0..operations;
        let transitive = ids.clone().all(|a| {
            ids.clone().all(|b| !is_before(a, b) || (!is_before(b, a) && before[b] & !before[a] == 0))
        });
        let interval = pairs.iter().all(|(a, b)| {
            pairs.iter().all(|(c, d)| {
                !is_before(*a, *b)
                    || !is_before(*c, *d)
                    || is_before(*a, *d)
                    || is_before(*c, *b)
                    || a == c
                    || b == d
            })
        });
        if transitive && interval {
            orders.push(before);
        }
    }
    orders
}

/// Calls `visit` with every multiset of `size` numbers below `bound`, in increasing order.
fn for_each_multiset(bound: usize, size: usize, visit: &mut dyn FnMut(&[usize])) {
    fn extend(bound: usize, size: usize, chosen: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
        if chosen.len() == size {
            return visit(chosen);
        }
        for next in chosen.last().copied().unwrap_or(0)..bound {
            chosen.push(next);
            extend(bound, size, chosen, visit);
            chosen.pop();
        }
    }
    extend(bound, size, &mut Vec::new(), visit);
}

/// Examines one placement of logs with every real-time order it allows.
fn examine(
    settings: Settings,
    rule: Rule<'_>,
    logs: &[Log],
    orders: &[RealTime],
    leader: usize,
    followers: &[usize],
    found: &mut Enumeration,
) {
    let held: Vec<&Log> =
        std::iter::once(leader).chain(followers.iter().copied()).map(|log| &logs[log]).collect();
    let possible: Vec<&RealTime> =
        orders.iter().filter(|order| is_possible(settings, &held, order)).collect();
    if possible.is_empty() {
        return;
    }
    let answers = answers(settings, rule, &held);
    for order in possible {
        found.configurations += 1;
        let wrong = answers.iter().find_map(|(survivors, answer)| {
            fault(settings, &held, order, answer).map(|fault| (survivors, answer, fault))
        });
        if let Some((survivors, answer, fault)) = wrong {
            found.violations += 1;
            if found.counterexample.is_none() {
                found.counterexample = Some(explain(&held, order, survivors, answer, &fault));
            }
        }
    }
}

/// True if executions lead to these logs in this real-time order: whatever ended before something
/// else began has a fast quorum, the leader in it, whose members had it before any of its successors.
fn is_possible(settings: Settings, held: &[&Log], before: &RealTime) -> bool {
    let quorum = fast_quorum(settings);
    (0..settings.operations as u8).all(|a| {
        let successors = before[usize::from(a)];
        if successors == 0 {
            return true;
        }
        let in_time = |log: &&Log| match log.iter().position(|held| *held == a) {
            None => false,
            Some(place) => log[..place].iter().all(|earlier| successors & 1 << earlier == 0),
        };
        in_time(&held[0]) && held.iter().filter(|log| in_time(log)).count() >= quorum
    })
}

/// True if the update may have completed: its client may hold a fast quorum of answers.
fn may_have_completed(settings: Settings, held: &[&Log], operation: u8) -> bool {
    let quorum = fast_quorum(settings);
    held[0].contains(&operation) && held.iter().filter(|log| log.contains(&operation)).count() >= quorum
}

/// Every choice of `f + 1` survivors.
fn survivor_sets(group: Group) -> impl Iterator<Item = Vec<usize>> {
    let chosen = (0..1_u32 << group.size()).filter(move |set| set.count_ones() as usize == group.majority());
    chosen.map(move |set| (0..group.size()).filter(|replica| set & 1 << replica != 0).collect())
}

/// What the rule makes of each choice of `f + 1` survivors, with their positions. Choices that leave
/// the same logs count once.
fn answers(settings: Settings, rule: Rule<'_>, held: &[&Log]) -> Vec<(Vec<usize>, Vec<u8>)> {
    let mut seen: Vec<Vec<&Log>> = Vec::new();
    let mut answers = Vec::new();
    for survivors in survivor_sets(settings.group) {
        let mut logs: Vec<&Log> = survivors.iter().map(|replica| held[*replica]).collect();
        logs.sort_unstable();
        if seen.contains(&logs) {
            continue;
        }
        for backwards in [false, true] {
            let answer = ask(settings, rule, &logs, backwards);
            if answers.last() != Some(&(survivors.clone(), answer.clone())) {
                answers.push((survivors.clone(), answer));
            }
        }
        seen.push(logs);
    }
    answers
}

/// Asks the rule; if `backwards`, with the logs in the opposite order and the updates numbered against
/// their timestamps, neither of which may matter.
fn ask(settings: Settings, rule: Rule<'_>, logs: &[&Log], backwards: bool) -> Vec<u8> {
    let last = (settings.operations as u8).saturating_sub(1);
    // An answer may name an update that does not exist; it is then none of ours under either name.
    let rename = |operation: u8| if backwards { last.wrapping_sub(operation) } else { operation };
    let entry = |operation: &u8| Entry { operation: rename(*operation), timestamp: u64::from(*operation) };
    let mut shown: Vec<Vec<Entry>> = logs.iter().map(|log| log.iter().map(entry).collect()).collect();
    if backwards {
        shown.reverse();
    }
    rule(settings.group, &shown).into_iter().map(rename).collect()
}

/// What is wrong with executing `answer`, if anything.
fn fault(settings: Settings, held: &[&Log], before: &RealTime, answer: &[u8]) -> Option<String> {
    let place = |operation: u8| answer.iter().position(|executed| *executed == operation);
    if let Some(invented) = answer.iter().find(|executed| !held.iter().any(|log| log.contains(executed))) {
        return Some(format!("update number {invented} is in no log and is executed"));
    }
    for a in 0..settings.operations as u8 {
        if answer.iter().filter(|executed| **executed == a).count() > 1 {
            return Some(format!("{} is executed twice", name(a)));
        }
        let lost = place(a).is_none() && may_have_completed(settings, held, a);
        // Dropping it is allowed if something executed may be thought of as having run right after
        // it: a later overwrite that did not come before it in real time.
        let overwritten = settings.mode.drops_overwritten()
            && answer
                .iter()
                .any(|b| before[usize::from(*b)] & 1 << a == 0 && may_run_just_before(before, a, *b, answer));
        if lost && !overwritten {
            return Some(format!("{} completed and is lost", name(a)));
        }
        for b in 0..settings.operations as u8 {
            if before[usize::from(a)] & 1 << b != 0
                && let (Some(first), Some(second)) = (place(a), place(b))
                && first > second
            {
                return Some(format!(
                    "{} completed before {} began and is executed after it",
                    name(a),
                    name(b)
                ));
            }
        }
    }
    None
}

/// True if putting `a` right before `b` breaks no real-time order with what is executed around it.
fn may_run_just_before(before: &RealTime, a: u8, b: u8, answer: &[u8]) -> bool {
    let Some(place) = answer.iter().position(|executed| *executed == b) else { return false };
    answer.iter().enumerate().all(|(at, executed)| {
        if at < place {
            before[usize::from(a)] & 1 << executed == 0
        } else {
            before[usize::from(*executed)] & 1 << a == 0
        }
    })
}

fn name(operation: u8) -> char {
    char::from(b'a'.saturating_add(operation))
}

fn names(operations: &[u8]) -> String {
    if operations.is_empty() { "-".to_string() } else { operations.iter().map(|op| name(*op)).collect() }
}

fn explain(held: &[&Log], before: &RealTime, survivors: &[usize], answer: &[u8], fault: &str) -> String {
    let mut text = String::new();
    for (replica, log) in held.iter().enumerate() {
        let role = if replica == 0 { "leader  " } else { "follower" };
        let fate = if survivors.contains(&replica) { "survives" } else { "fails" };
        let _ = writeln!(text, "{role} {replica}: durability log {:<4} {fate}", names(log));
    }
    for (a, successors) in before.iter().enumerate() {
        for b in (0..OPERATIONS_MAX as u8).filter(|b| successors & 1 << b != 0) {
            let _ = writeln!(text, "{} completed before {} was invoked", name(a as u8), name(b));
        }
    }
    let _ = writeln!(text, "recovered: {}", names(answer));
    let _ = write!(text, "wrong: {fault}");
    text
}
