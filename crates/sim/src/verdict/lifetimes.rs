//! The ends of lifetimes, as operations that nobody asked for.

use super::{Told, Translated, has_failed};
use crate::clock::VirtualTime;
use crate::history::{History, Invocation};
use crate::invariants::{Invariants, LogPosition};
use crate::swarm::MILLI;
use crate::workload::ClientCommand;
use std::collections::BTreeSet;
use syros_checker::history::{Input, Output};
use syros_checker::transfer::Transfer;
use syros_protocol::client::Outcome;
use syros_types::WallTime;

/// What can be said of when lifetimes end: most clocks are about right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetimes {
    /// No lifetime ends earlier than it should by more than this many nanoseconds of true time.
    pub(crate) early_max: u64,
    /// None ends later by more than this, counted from `healed_at` if that is later.
    pub(crate) late_max: u64,
    /// When everything was repaired.
    pub(crate) healed_at: VirtualTime,
}

/// A millisecond, in the microseconds of wall clocks.
const MILLISECOND: u64 = 1_000;

/// Something with a lifetime.
struct Lasting<'h> {
    /// The operation that gave it that.
    invocation: &'h Invocation,
    /// In milliseconds.
    lifetime: u64,
    /// Its end.
    end: Input,
}

/// The ends of lifetimes, each an operation that nobody asked for.
pub(super) fn ends(
    history: &History,
    invariants: &Invariants,
    lifetimes: Option<Lifetimes>,
) -> Vec<Translated> {
    let lasting = lasting(history);
    if lasting.is_empty() {
        return Vec::new();
    }
    let judge = Judge { history, invariants, times: times(history), lifetimes };
    lasting.iter().filter_map(|lasting| judge.end(lasting)).collect()
}

/// All that has a lifetime, unless it is certain that nothing came of it.
fn lasting(history: &History) -> Vec<Lasting<'_>> {
    let renamed = renamed_keys(history);
    let of = |(number, invocation): (usize, &'_ Invocation)| {
        let (lifetime, end) = match invocation.steps.as_slice() {
            [ClientCommand::SetFor(key, value, millis)] => {
                (*millis, Input::Expire(*key as u32, value.clone()))
            }
            [ClientCommand::Expire { key, millis, .. }] => {
                let mut keys =
                    if renamed.contains(&(*key as u32)) { renamed.clone() } else { BTreeSet::new() };
                keys.insert(*key as u32);
                (*millis, Input::LifetimeEnds(keys.into_iter().collect(), number as u32))
            }
            _ => return None,
        };
        Some((lifetime, end))
    };
    let operations = history.operations().iter().enumerate();
    let may_last = |(_, it): &(usize, &Invocation)| {
        !it.finished.as_ref().is_some_and(|finished| has_failed(&finished.outcome))
    };
    operations
        .filter(may_last)
        .filter_map(|(number, invocation)| {
            let (lifetime, end) = of((number, invocation))?;
            Some(Lasting { invocation, lifetime, end })
        })
        .collect()
}

/// Keys that a value may have been moved from or to.
fn renamed_keys(history: &History) -> BTreeSet<u32> {
    let steps = history.operations().iter().flat_map(|invocation| &invocation.steps);
    steps.filter_map(moved).flat_map(|(from, to)| [from, to]).collect()
}

/// From which key to which one a command moves a value with its lifetime, or copies it.
const fn moved(step: &ClientCommand) -> Option<(u32, u32)> {
    match step {
        ClientCommand::Rename(from, to)
        | ClientCommand::Transfer(from, to, Transfer::Copy { .. } | Transfer::Whole) => {
            Some((*from as u32, *to as u32))
        }
        _ => None,
    }
}

/// When each moment was. Moments count invocations and completions from 1 on.
pub(super) fn times(history: &History) -> Vec<(u64, VirtualTime)> {
    let mut times: Vec<(u64, VirtualTime)> = Vec::new();
    for invocation in history.operations() {
        times.push((invocation.invoked, invocation.invoked_at));
        times.extend(invocation.finished.as_ref().map(|finished| (finished.order, finished.at)));
    }
    times.sort_unstable();
    times
}

/// What decides when lifetimes end.
struct Judge<'h> {
    history: &'h History,
    invariants: &'h Invariants,
    times: Vec<(u64, VirtualTime)>,
    lifetimes: Option<Lifetimes>,
}

impl Judge<'_> {
    /// The end of a lifetime; `None` if it never began.
    fn end(&self, lasting: &Lasting<'_>) -> Option<Translated> {
        let invocation = lasting.invocation;
        let place = invocation.id.and_then(|id| self.invariants.position(id));
        let mut ends_at = place.and_then(|place| self.due(lasting, place));
        let (invoked, mut told) = self.within(lasting);
        if place.is_some_and(|place| self.is_replaced(lasting, place)) {
            // It may have ended all the same, for a read that went by a member's clock before the log got there.
            told = Told::Nothing;
            if matches!(lasting.end, Input::Expire(..)) {
                ends_at = None;
            }
        }
        // What nobody executed does not end.
        (place.is_some() || matches!(told, Told::Answer { .. })).then(|| Translated {
            client: u64::MAX,
            invoked,
            input: self.narrowed(lasting, place, ends_at),
            told,
            sent: None,
            ends_at,
            is_look: false,
        })
    }

    /// The end of a lifetime where its value may be by then: as far as the log has moved it. An end that touched more keys than
    /// it has to would tie together what happens to them.
    fn narrowed(
        &self,
        lasting: &Lasting<'_>,
        place: Option<LogPosition>,
        ends_at: Option<(u64, u64)>,
    ) -> Input {
        let (Input::LifetimeEnds(all, number), Some(begins), Some((entry, _))) =
            (&lasting.end, place, ends_at)
        else {
            return lasting.end.clone();
        };
        let [ClientCommand::Expire { key, .. }] = lasting.invocation.steps.as_slice() else {
            return lasting.end.clone();
        };
        let mut moves: Vec<(LogPosition, &ClientCommand)> = Vec::new();
        for invocation in self.history.operations() {
            let Some(at) = invocation.id.and_then(|id| self.invariants.position(id)) else { continue };
            if begins < at && at.number.0 < entry {
                moves.extend(invocation.steps.iter().map(|step| (at, step)));
            }
        }
        // Those of one operation stay in its order.
        moves.sort_by_key(|(at, _)| *at);
        let mut keys = BTreeSet::from([*key as u32]);
        for (_, step) in moves {
            let Some((from, to)) = moved(step) else { continue };
            if !keys.contains(&from) || from == to {
                continue;
            }
            keys.insert(to);
            if matches!(step, ClientCommand::Rename(..)) {
                keys.remove(&from);
            }
        }
        debug_assert!(
            keys.iter().all(|key| all.contains(key)),
            "a value moves only where something moves to"
        );
        Input::LifetimeEnds(keys.into_iter().collect(), *number)
    }

    /// Where in the log a lifetime ends that began at this place.
    fn due(&self, lasting: &Lasting<'_>, place: LogPosition) -> Option<(u64, u64)> {
        let begins = self.invariants.log_time(place.number)?;
        let entry = self.invariants.first_entry_at(WallTime(match lasting.end {
            Input::Expire(..) => begins.0 + lasting.lifetime.saturating_mul(MILLISECOND),
            _ => (begins.0 / MILLISECOND).saturating_add(lasting.lifetime).saturating_mul(MILLISECOND),
        }))?;
        // Before what that entry does.
        Some((entry.0, 0))
    }

    /// True if the log has another value there well before this one would have ended: expiry counts milliseconds, and log
    /// time microseconds.
    fn is_replaced(&self, lasting: &Lasting<'_>, place: LogPosition) -> bool {
        let begins = (place.number.0, place.index);
        let lasts = WallTime(MILLISECOND.saturating_mul(lasting.lifetime.saturating_sub(2)));
        let ends = self
            .invariants
            .log_time(place.number)
            .and_then(|time| self.invariants.first_entry_at(WallTime(time.0 + lasts.0)));
        self.history.operations().iter().any(|other| {
            let at = other.id.and_then(|id| self.invariants.position(id)).map(|at| (at.number.0, at.index));
            ends_before_its_time(other, &lasting.end)
                && at.is_some_and(|at| at > begins && ends.is_none_or(|ends| at.0 < ends.0))
        })
    }

    /// When a lifetime may end, and until when it must have, as far as clocks can be relied upon.
    fn within(&self, lasting: &Lasting<'_>) -> (u64, Told) {
        let Lasting { invocation, lifetime, .. } = lasting;
        let begun = 2 * invocation.invoked + 1;
        let Some(Lifetimes { early_max, late_max, healed_at }) = self.lifetimes else {
            return (begun, Told::Nothing);
        };
        let moments_before = |time: VirtualTime| self.times.partition_point(|(_, at)| *at < time) as u64;
        let lifetime = lifetime.saturating_mul(MILLI);
        let earliest = (invocation.invoked_at + lifetime).saturating_sub(early_max);
        let invoked = (2 * moments_before(earliest) + 1).max(begun);
        let answered =
            invocation.finished.as_ref().filter(|finished| !matches!(finished.outcome, Outcome::Unknown));
        let latest = answered
            .map(|finished| finished.at.max(healed_at).saturating_add(lifetime).saturating_add(late_max));
        let is_over = |latest: &VirtualTime| self.times.last().is_some_and(|(_, at)| at > latest);
        let told = latest.filter(is_over).map_or(Told::Nothing, |latest| Told::Answer {
            at: (2 * moments_before(latest) + 1).max(invoked),
            output: Output::Done,
        });
        (invoked, told)
    }
}

/// True if an operation, executed during a lifetime, may mean that the value is gone, or keeps, when that lifetime ends.
fn ends_before_its_time(invocation: &Invocation, end: &Input) -> bool {
    match end {
        Input::Expire(key, _) => match invocation.steps.as_slice() {
            [
                ClientCommand::Set(other, _)
                | ClientCommand::SetFor(other, ..)
                | ClientCommand::GetSet(other, _),
            ] => *other == u64::from(*key),
            _ => false,
        },
        end => {
            let mut keys = Vec::new();
            end.for_each_key(&mut |key| keys.push(u64::from(key)));
            invocation.steps.iter().any(|step| {
                let mut is_theirs = matches!(step, ClientCommand::FlushAll);
                step.for_each_key(&mut |key| is_theirs |= keys.contains(&key));
                is_theirs && !step.is_read()
            })
        }
    }
}
