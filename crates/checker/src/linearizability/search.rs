//! The search for an order of one component's operations.
//!
//! It walks through *configurations*: which operations have their place already, and the value of
//! every key. What keeps the walk short, without losing an order that exists:
//!
//! - *Just in time* (Lowe): of the operations left, the one that completed first, the *target*, must
//!   come next; what goes before it is only what shares keys with it, directly or through others.
//!   Everything else can as well go after it.
//! - *Inert first*: an operation that changed nothing takes its place as soon as its answer is right.
//! - *Unknown operations last*: such an operation may wait until just before an acknowledged one that
//!   touches a key it wrote; if that erases all it wrote, it may as well never have happened. So after
//!   it, only operations that touch what it left (*hanging* keys) and do not just erase it may follow.
//!   Of several with the same input the earliest goes first.
//! - *Locks*: an operation that must find what one particular operation left (`constraints` knows) does
//!   not let anything change the key between the two.
//! - *Memory*: a configuration that led nowhere is not entered again.
//! - *Backjumping*: a failure names the keys it is about, such that the operations on those keys alone
//!   have no order from there on. (Linearizability is local: real-time order adds no constraint
//!   between keys.) A choice that touches none of these keys has no better alternative.

use super::component::Component;
use super::placeable::{KeyMask, Lock, Placeable, bit};
use super::values::{MISSING, Quick, ValueId, Values};
use crate::history::Output;
use std::collections::HashMap;

/// Which operations with an unknown outcome are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Only those that leave values which some client was shown, or something that may have led there.
    Likely,
    /// All that can make a difference.
    Everything,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// With an order.
    Order,
    /// There is none.
    NoOrder,
    /// There is none without operations that [`Effort::Likely`] leaves out.
    NoLikelyOrder,
    /// The budget is spent.
    OutOfSteps,
}

/// A sequence of operations that have an order, and what came to an end there.
#[derive(Clone, Debug, Default)]
pub(super) struct DeadEnd {
    /// The operations in their order, by their position in the component.
    pub(super) order: Vec<u32>,
    /// The operation that completed first of those left.
    pub(super) target: u32,
    deadline: u64,
}

/// What a search found out.
pub(super) struct SearchResult {
    pub(super) answer: Answer,
    pub(super) steps: u64,
    /// The dead end with the latest target, and the longest of those: no order goes beyond it.
    pub(super) farthest: DeadEnd,
}

/// A configuration with choices left.
struct Frame {
    /// Identifies the configuration.
    key: Box<[u32]>,
    target: u32,
    deadline: u64,
    /// Operations that may come next, not tried yet, best last.
    options: Vec<u32>,
    unknown_listed: bool,
    /// Keys of the target and everything it may be connected to.
    reach: KeyMask,
    /// Length of the trail at this configuration.
    trail: usize,
    choice: u32,
    /// Keys that the failures so far are about.
    conflict: KeyMask,
}

/// An operation in its place, with what is needed to take it out again.
struct Placed {
    operation: u32,
    hanging_before: KeyMask,
}

enum Advance {
    Finished,
    Opened(Frame),
    /// A configuration that led nowhere before, because of these keys.
    Known(KeyMask),
    Exhausted,
    OutOfSteps,
}

pub(super) struct Search<'c, 'h> {
    component: &'c Component<'h>,
    effort: Effort,
    values: Values,
    /// Acknowledged operations left, as a ring through a sentinel behind the last one.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Operations that have their place.
    placed: Vec<bool>,
    state: Vec<ValueId>,
    hanging: KeyMask,
    trail: Vec<Placed>,
    /// For every bit of a key mask, how many operations are left whose answer tells of such a key.
    told_left: [u32; 64],
    /// For every key, how many operations that are left must find the present value, and how many must
    /// find it changed by nothing but increments.
    locks: Vec<[i32; 2]>,
    /// Values that the operations on the trail replaced.
    replaced: Vec<ValueId>,
    scratch: Vec<ValueId>,
    failed: HashMap<Box<[u32]>, KeyMask, Quick>,
    left_something_out: bool,
    steps: u64,
    steps_max: u64,
    farthest: DeadEnd,
}

impl<'c, 'h> Search<'c, 'h> {
    /// Looks for an order of the component's operations, in at most `steps_max` attempts to place one.
    pub(super) fn run(component: &'c Component<'h>, effort: Effort, steps_max: u64) -> SearchResult {
        let sentinel = component.acknowledged as u32;
        let mut search = Self {
            component,
            effort,
            values: Values::new(component),
            next: (0..=sentinel).map(|at| if at == sentinel { 0 } else { at + 1 }).collect(),
            previous: (0..=sentinel).map(|at| at.checked_sub(1).unwrap_or(sentinel)).collect(),
            placed: vec![false; component.operations.len()],
            state: vec![MISSING; component.keys.len()],
            hanging: 0,
            trail: Vec::new(),
            told_left: std::array::from_fn(|bit| {
                let told_of = |operation: &&Placeable<'_>| operation.told_of >> bit & 1 == 1;
                component.operations.iter().filter(told_of).count() as u32
            }),
            locks: vec![[0; 2]; component.keys.len()],
            replaced: Vec::new(),
            scratch: Vec::new(),
            failed: HashMap::default(),
            left_something_out: false,
            steps: 0,
            steps_max,
            farthest: DeadEnd::default(),
        };
        let answer = search.explore();
        SearchResult { answer, steps: search.steps, farthest: search.farthest }
    }

    fn explore(&mut self) -> Answer {
        self.place_inert();
        if self.is_finished() {
            return Answer::Order;
        }
        let mut frames = vec![self.open()];
        while let Some(frame) = frames.last_mut() {
            let conflict = match self.advance(frame) {
                Advance::Finished => return Answer::Order,
                Advance::OutOfSteps => return Answer::OutOfSteps,
                Advance::Opened(child) => {
                    frames.push(child);
                    continue;
                }
                Advance::Known(conflict) => conflict,
                Advance::Exhausted => {
                    self.remember_dead_end(frame);
                    let conflict = self.with_inert(frame);
                    self.failed.insert(std::mem::take(&mut frame.key), conflict);
                    frames.pop();
                    conflict
                }
            };
            if let Some(parent) = frames.last_mut() {
                self.undo(parent.trail);
                self.learn(parent, conflict);
            }
        }
        if self.left_something_out { Answer::NoLikelyOrder } else { Answer::NoOrder }
    }

    /// What the failure of its choice, about these keys, means to a frame.
    fn learn(&self, frame: &mut Frame, conflict: KeyMask) {
        if conflict & self.component.operations[frame.choice as usize].keys == 0 {
            frame.options.clear();
            frame.unknown_listed = true;
            frame.conflict = conflict;
        } else {
            frame.conflict |= conflict;
        }
    }

    /// The keys that the failure of a frame is about. An inert operation on some of them that has no
    /// place here because of others might have one if only the former counted: the latter matter too. And what a key holds
    /// may depend on the keys that it can have come from, or that a condition is about.
    fn with_inert(&self, frame: &Frame) -> KeyMask {
        let mut conflict = frame.conflict;
        loop {
            let joined = if conflict & self.component.moved == 0 { 0 } else { self.component.moved };
            let wider = self.candidates(frame.deadline).fold(conflict | joined, |conflict, at| {
                let other = &self.component.operations[at as usize];
                if other.inert && other.keys & conflict != 0 { conflict | other.keys } else { conflict }
            });
            if wider == conflict {
                return conflict;
            }
            conflict = wider;
        }
    }

    /// Places the next option that can be placed.
    fn advance(&mut self, frame: &mut Frame) -> Advance {
        loop {
            let Some(option) = frame.options.pop() else {
                if frame.unknown_listed {
                    return Advance::Exhausted;
                }
                frame.unknown_listed = true;
                frame.options = self.unknown_options(frame);
                continue;
            };
            self.steps += 1;
            if self.steps > self.steps_max {
                return Advance::OutOfSteps;
            }
            if let Err(conflict) = self.try_place(option, frame.deadline) {
                frame.conflict |= conflict;
                continue;
            }
            frame.choice = option;
            self.place_inert();
            if self.is_finished() {
                return Advance::Finished;
            }
            let child = self.open();
            return match self.failed.get(&child.key) {
                Some(conflict) => Advance::Known(*conflict),
                None => Advance::Opened(child),
            };
        }
    }

    /// Places an operation, or says which keys forbid it.
    fn try_place(&mut self, index: u32, deadline: u64) -> Result<(), KeyMask> {
        let component = self.component;
        let operation = &component.operations[index as usize];
        let acknowledged = operation.told.is_some();
        if let Some(first) = self.awaited(operation) {
            return Err(operation.keys | component.operations[first as usize].keys);
        }
        if self.hanging != 0 {
            // Unrelated operations come first; what is erased unobserved need not have happened.
            let unrelated = acknowledged && operation.keys & self.hanging == 0;
            let erased = operation.observes & self.hanging == 0 && self.hanging & !operation.erases == 0;
            if unrelated || erased {
                return Err(self.hanging);
            }
        }
        let mut new = std::mem::take(&mut self.scratch);
        let fits = self.values.step(component, index, &self.state, &mut new);
        let verdict = if !fits {
            Err(operation.keys)
        } else if let Some(at) = self.locked(operation, &new) {
            Err(bit(at))
        } else if acknowledged {
            Ok(())
        } else {
            self.is_worthwhile(index, &new, deadline)
        };
        if verdict.is_ok() {
            self.place(index, &new);
        }
        self.scratch = new;
        verdict
    }

    /// An operation without a place that the operation must follow.
    fn awaited(&self, operation: &Placeable<'_>) -> Option<u32> {
        operation.follows.iter().copied().find(|first| !self.placed[*first as usize])
    }

    /// A key that the operation would change although others have yet to find its present value.
    fn locked(&self, operation: &Placeable<'_>, new: &[ValueId]) -> Option<u32> {
        let is_locked = |at: u32, loose: bool| {
            let own = operation.closes.iter().filter(|lock| **lock == Lock { at, loose }).count() as i32;
            self.locks[at as usize][usize::from(loose)] > own
        };
        let mut keys = operation.touched.iter().copied().zip(new.iter().copied());
        keys.find(|(at, value)| {
            let changes = !self.values.have_same_content(self.state[*at as usize], *value);
            changes
                && (is_locked(*at, false) || (operation.increments & bit(*at) == 0 && is_locked(*at, true)))
        })
        .map(|(at, _)| at)
    }

    /// Whether the effect of an unknown operation can matter; if not, the keys that this is due to.
    fn is_worthwhile(&mut self, index: u32, new: &[ValueId], deadline: u64) -> Result<(), KeyMask> {
        let operation = &self.component.operations[index as usize];
        if operation.touched.iter().zip(new).all(|(at, value)| self.state[*at as usize] == *value) {
            return Err(0);
        }
        let mut left = operation.touched.iter().copied().zip(new.iter().copied());
        if self.effort == Effort::Likely {
            if left.any(|(at, value)| self.values.is_unlikely(self.component, at, value)) {
                self.left_something_out = true;
                return Err(operation.keys);
            }
            return Ok(());
        }
        if !left.any(|(at, value)| self.values.is_unseen(at, value)) {
            return Ok(());
        }
        // Nothing turns an unseen value into a seen one but erasing it, so whoever observes it next must
        // be content with a value that was never shown, and somebody must be told something of it.
        let keys = operation.keys;
        let matters = operation.touched.len() > 1
            || self.component.is_intricate
            || (operation.touched.iter().any(|at| self.told_left[*at as usize % 64] > 0)
                && self
                    .candidates(deadline)
                    .any(|at| self.component.operations[at as usize].blurred & keys != 0));
        if matters { Ok(()) } else { Err(keys) }
    }

    /// Places every inert operation whose answer is right here.
    fn place_inert(&mut self) {
        let component = self.component;
        let mut new = std::mem::take(&mut self.scratch);
        'again: loop {
            let deadline = self.target().1;
            let mut at = self.next[component.acknowledged];
            while (at as usize) < component.acknowledged {
                let operation = &component.operations[at as usize];
                if operation.invoked > deadline {
                    break;
                }
                let observes = self.hanging == 0 || operation.observes & self.hanging != 0;
                if operation.inert
                    && observes
                    && self.awaited(operation).is_none()
                    && self.values.step(component, at, &self.state, &mut new)
                {
                    self.place(at, &new);
                    if operation.completed == deadline {
                        continue 'again;
                    }
                }
                at = self.next[at as usize];
            }
            break;
        }
        self.scratch = new;
    }

    fn place(&mut self, index: u32, new: &[ValueId]) {
        let operation = &self.component.operations[index as usize];
        for (at, value) in operation.touched.iter().zip(new) {
            self.replaced.push(std::mem::replace(&mut self.state[*at as usize], *value));
        }
        self.turn_locks(operation, 1);
        self.trail.push(Placed { operation: index, hanging_before: self.hanging });
        self.placed[index as usize] = true;
        if operation.told.is_some() {
            let (before, after) = (self.previous[index as usize], self.next[index as usize]);
            self.next[before as usize] = after;
            self.previous[after as usize] = before;
            self.hanging = 0;
            bits(operation.told_of).for_each(|bit| self.told_left[bit] -= 1);
        } else {
            self.hanging |= operation.keys;
        }
    }

    /// Opens and closes the locks of an operation; with -1, the other way round.
    fn turn_locks(&mut self, operation: &Placeable<'_>, direction: i32) {
        for lock in &operation.opens {
            self.locks[lock.at as usize][usize::from(lock.loose)] += direction;
        }
        for lock in &operation.closes {
            self.locks[lock.at as usize][usize::from(lock.loose)] -= direction;
        }
    }

    /// Takes operations out, last first, until the trail has the given length.
    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            let Some(Placed { operation: index, hanging_before }) = self.trail.pop() else { return };
            let operation = &self.component.operations[index as usize];
            for at in operation.touched.iter().rev() {
                // Every placed operation pushed one value for every key it touches.
                self.state[*at as usize] = self.replaced.pop().unwrap_or(MISSING);
            }
            self.turn_locks(operation, -1);
            self.placed[index as usize] = false;
            self.hanging = hanging_before;
            if operation.told.is_some() {
                let (before, after) = (self.previous[index as usize], self.next[index as usize]);
                self.next[before as usize] = index;
                self.previous[after as usize] = index;
                bits(operation.told_of).for_each(|bit| self.told_left[bit] += 1);
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.next[self.component.acknowledged] as usize == self.component.acknowledged
    }

    /// The operation left that completed first, and when that was.
    fn target(&self) -> (u32, u64) {
        let (mut target, mut deadline) = (self.component.acknowledged as u32, u64::MAX);
        let mut at = self.next[self.component.acknowledged];
        while (at as usize) < self.component.acknowledged {
            let operation = &self.component.operations[at as usize];
            if operation.invoked > deadline {
                break;
            }
            if operation.completed < deadline {
                (target, deadline) = (at, operation.completed);
            }
            at = self.next[at as usize];
        }
        (target, deadline)
    }

    /// Acknowledged operations left that no other one left precedes.
    fn candidates(&self, deadline: u64) -> impl Iterator<Item = u32> + '_ {
        let sentinel = self.component.acknowledged as u32;
        std::iter::successors(Some(self.next[sentinel as usize]), |at| Some(self.next[*at as usize]))
            .take_while(move |at| {
                *at != sentinel && self.component.operations[*at as usize].invoked <= deadline
            })
    }

    /// Unknown operations that may have taken effect by now.
    fn available_unknown(&self, deadline: u64) -> impl Iterator<Item = u32> + '_ {
        (self.component.acknowledged..self.component.operations.len())
            .take_while(move |at| self.component.operations[*at].invoked <= deadline)
            .filter(|at| {
                let twin_is_placed =
                    self.component.operations[*at].twin.is_none_or(|twin| self.placed[twin as usize]);
                !self.placed[*at] && twin_is_placed
            })
            .map(|at| at as u32)
    }

    /// The current configuration, with its acknowledged choices.
    fn open(&self) -> Frame {
        let operations = &self.component.operations;
        let (target, deadline) = self.target();
        let mut reach = operations[target as usize].keys;
        if self.component.keys.len() > 1 {
            loop {
                let extend = |reach: KeyMask, at: u32| {
                    let keys = operations[at as usize].keys;
                    if keys & reach == 0 { reach } else { reach | keys }
                };
                let wider = self.candidates(deadline).fold(reach, extend);
                let wider = self.available_unknown(deadline).fold(wider, extend);
                if wider == reach {
                    break;
                }
                reach = wider;
            }
        }
        let mut options: Vec<u32> = self
            .candidates(deadline)
            .filter(|at| {
                let operation = &operations[*at as usize];
                *at != target && !operation.inert && operation.keys & reach != 0
            })
            .collect();
        // A guess about what is best tried first: what nobody noticed goes unnoticed just before
        // something that erases it.
        let noticed = |at: &u32| {
            let operation = &operations[*at as usize];
            operation.told.is_none_or(|told| *told != Output::Done) || !operation.opens.is_empty()
        };
        options.sort_by_key(|at| std::cmp::Reverse((noticed(at), operations[*at as usize].completed)));
        let erases = if noticed(&target) { operations[target as usize].erases } else { 0 };
        let covered = |at: &u32| !noticed(at) && operations[*at as usize].keys & !erases == 0;
        let first = options.iter().copied().filter(covered).collect::<Vec<u32>>();
        options.retain(|at| !covered(at));
        options.push(target);
        options.extend(first);
        Frame {
            key: self.configuration(deadline),
            target,
            deadline,
            options,
            unknown_listed: false,
            reach,
            trail: self.trail.len(),
            choice: target,
            conflict: 0,
        }
    }

    fn unknown_options(&self, frame: &Frame) -> Vec<u32> {
        let mut options: Vec<u32> = self
            .available_unknown(frame.deadline)
            .filter(|at| self.component.operations[*at as usize].keys & frame.reach != 0)
            .collect();
        options.reverse();
        options
    }

    /// Everything that the rest of the search depends on, as numbers: the placed operations (those
    /// before the first one left are all placed, those from `deadline` on are not), the hanging keys
    /// and the values.
    fn configuration(&self, deadline: u64) -> Box<[u32]> {
        let first = self.next[self.component.acknowledged] as usize;
        let mut key = Vec::with_capacity(8 + self.state.len());
        key.extend([first as u32, self.hanging as u32, (self.hanging >> 32) as u32]);
        key.extend_from_slice(&self.state);
        let mut pack = |range: std::ops::Range<usize>| {
            for word in self.placed[range].chunks(32) {
                key.push(word.iter().enumerate().fold(0, |bits, (at, on)| bits | (u32::from(*on) << at)));
            }
        };
        let acknowledged = &self.component.operations[first..self.component.acknowledged];
        let end = first + acknowledged.partition_point(|other| other.invoked <= deadline);
        pack(first..end);
        if self.component.has_unknown() {
            let unknown = &self.component.operations[self.component.acknowledged..];
            let count = unknown.partition_point(|other| other.invoked <= deadline);
            pack(self.component.acknowledged..self.component.acknowledged + count);
        }
        key.into()
    }

    fn remember_dead_end(&mut self, frame: &Frame) {
        let is_farther = (frame.deadline, frame.trail) > (self.farthest.deadline, self.farthest.order.len());
        if is_farther || self.farthest.order.is_empty() {
            self.farthest = DeadEnd {
                order: self.trail.iter().map(|placed| placed.operation).collect(),
                target: frame.target,
                deadline: frame.deadline,
            };
        }
    }
}

/// The positions of the ones.
fn bits(mask: KeyMask) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(mask), |mask| Some(mask & mask.wrapping_sub(1)))
        .take_while(|mask| *mask != 0)
        .map(|mask| mask.trailing_zeros() as usize)
}
