//! Which replica should lead: the one that an operator prefers, or the one with which clients wait least.
//!
//! A command that the leader orders takes a client's front end the way to the leader and back, and the leader the way to the
//! nearest others that make a majority with it. What every front end would wait so, weighted by how much its clients ask for,
//! is a leader's cost. Overwrites that a quorum makes durable do not wait for the leader; they are counted all the same,
//! because the next read of their keys does.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use syros_types::Group;

/// What one front end, a node or a gateway, has said about the time since it was asked before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FrontEnd {
    /// The replica in the same process.
    pub(super) replica: Option<u8>,
    /// Operations of its clients that were answered.
    pub(super) operations: u64,
    /// The time from it to a replica and back, where it knows that.
    pub(super) round_trips: BTreeMap<u8, Duration>,
}

/// When the lead moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// The share of the mean wait that another leader must save, such as 0.2.
    pub(super) gain: f64,
    /// The least that it must save.
    pub(super) least: Duration,
    /// It must have been better for so long.
    pub(super) lasts: Duration,
    /// For so long after a move there is no other. Twice as long after each that goes back to where the lead was of late.
    pub(super) pause: Duration,
    /// Operations a second, over all front ends, below which nothing is concluded.
    pub(super) rate_min: f64,
}

/// Longest pause: whoever looks after a day finds out that places go on to change.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The lead has stayed for so many pauses: what was before is forgotten.
const CALM: u32 = 8;

/// So many leaders before the present one are remembered.
const LEADERS_MAX: usize = 8;

/// The mean time for which an operation waits with each replica as the leader of which that can be said. What `present`, which
/// leads, has to wait for may be more than is known: then it counts as too little, and the lead stays.
pub(super) fn costs(front_ends: &[FrontEnd], group: Group, present: u8) -> BTreeMap<u8, Duration> {
    let operations: u64 = front_ends.iter().map(|front_end| front_end.operations).sum();
    if operations == 0 {
        return BTreeMap::new();
    }
    let cost_of = |leader: u8| {
        let majority = majority_of(front_ends, group, leader, leader == present)?;
        let mut sum = 0.0;
        for front_end in front_ends.iter().filter(|front_end| front_end.operations > 0) {
            let there = if front_end.replica == Some(leader) {
                Duration::ZERO
            } else {
                *front_end.round_trips.get(&leader)?
            };
            sum += (there + majority).as_secs_f64() * front_end.operations as f64;
        }
        Some((leader, Duration::from_secs_f64(sum / operations as f64)))
    };
    (0..group.size() as u8).filter_map(cost_of).collect()
}

/// How long a leader waits for the others that make a majority with it. Each way between two replicas is known if the front
/// end of either knows it. If too few are known, it is as much as is known, or nothing.
fn majority_of(front_ends: &[FrontEnd], group: Group, leader: u8, is_at_least: bool) -> Option<Duration> {
    let own = front_ends.iter().find(|front_end| front_end.replica == Some(leader));
    let to = |other: u8| {
        let there = own.and_then(|own| own.round_trips.get(&other));
        let back = front_ends.iter().filter(|front_end| front_end.replica == Some(other));
        let back = back.filter_map(|front_end| front_end.round_trips.get(&leader));
        there.into_iter().chain(back).min().copied()
    };
    let mut known: Vec<_> = (0..group.size() as u8).filter(|other| *other != leader).filter_map(to).collect();
    known.sort_unstable();
    match group.majority() - 1 {
        0 => Some(Duration::ZERO),
        others => match known.get(others - 1) {
            Some(time) => Some(*time),
            None if is_at_least => Some(known.last().copied().unwrap_or_default()),
            None => None,
        },
    }
}

/// A change of leaders that is worth while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) to: u8,
    pub(super) why: Why,
}

/// What makes a change of leaders worth while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// What an operation waits with the present leader, and with the new one.
    Waits([Duration; 2]),
    /// An operator prefers the new one.
    Preferred,
}

/// Decides, from what front ends say again and again, whether the lead should move.
#[derive(Debug)]
pub(super) struct Chooser {
    terms: Terms,
    /// Who is to lead, the best one first, whatever clients wait; nobody, if that is to be found out.
    preferred: Vec<u8>,
    /// Who has been better, and since when.
    better: Option<(u8, Instant)>,
    /// When the lead moved last, for whatever reason.
    moved: Option<Instant>,
    /// Who led before, of late.
    led: VecDeque<u8>,
    pause: Duration,
}

impl Chooser {
    pub(super) const fn new(terms: Terms, preferred: Vec<u8>) -> Self {
        Self { terms, preferred, better: None, moved: None, led: VecDeque::new(), pause: terms.pause }
    }

    /// Takes note of a period of `length` that has ended `now`, in which `leader` led. `may_lead` says which replicas could take
    /// over. Answers with a move if it is time for one; [`moved`](Self::moved) has to be told if it has happened.
    pub(super) fn consider(
        &mut self,
        (now, length): (Instant, Duration),
        leader: u8,
        (front_ends, group): (&[FrontEnd], Group),
        may_lead: impl Fn(u8) -> bool,
    ) -> Option<Move> {
        let better = self.better_than(leader, length, front_ends, group, may_lead);
        let Some(found) = better else {
            self.better = None;
            return None;
        };
        let since = match self.better {
            Some((candidate, since)) if candidate == found.to => since,
            // It has been so for the whole of the period.
            _ => now.checked_sub(length).unwrap_or(now),
        };
        self.better = Some((found.to, since));
        let is_rested = self.moved.is_none_or(|at| now.duration_since(at) >= self.pause);
        (now.duration_since(since) >= self.terms.lasts && is_rested).then_some(found)
    }

    fn better_than(
        &self,
        leader: u8,
        length: Duration,
        front_ends: &[FrontEnd],
        group: Group,
        may_lead: impl Fn(u8) -> bool,
    ) -> Option<Move> {
        if !self.preferred.is_empty() {
            let first =
                self.preferred.iter().copied().find(|replica| *replica == leader || may_lead(*replica));
            let to = first.filter(|replica| *replica != leader)?;
            return Some(Move { to, why: Why::Preferred });
        }
        let operations: u64 = front_ends.iter().map(|front_end| front_end.operations).sum();
        if (operations as f64) < self.terms.rate_min * length.as_secs_f64() {
            return None;
        }
        let costs = costs(front_ends, group, leader);
        let present = *costs.get(&leader)?;
        let others = costs.into_iter().filter(|(replica, _)| *replica != leader && may_lead(*replica));
        let (to, cost) = others.min_by_key(|(_, cost)| *cost)?;
        let saved = present.saturating_sub(cost);
        let is_worth =
            saved >= self.terms.least && saved.as_secs_f64() >= present.as_secs_f64() * self.terms.gain;
        is_worth.then_some(Move { to, why: Why::Waits([present, cost]) })
    }

    /// The lead has moved at `now`, by a [`Move`] or because a leader died: who dies again and again must not get it each time.
    pub(super) fn moved(&mut self, now: Instant, from: u8, to: u8) {
        if self.moved.is_none_or(|at| now.duration_since(at) >= self.pause * CALM) {
            self.led.clear();
        }
        let is_return = self.led.contains(&to);
        self.pause = if is_return { (self.pause * 2).min(PAUSE_MAX) } else { self.terms.pause };
        self.led.push_back(from);
        if self.led.len() > LEADERS_MAX {
            self.led.pop_front();
        }
        self.moved = Some(now);
        self.better = None;
    }

    /// The lead was to move, and has not. It is tried again when that has been right for long enough once more.
    pub(super) const fn not_moved(&mut self) {
        self.better = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Three nodes in a row, 40 ms apart, of which each has clients that ask for so much.
    fn in_a_row(operations: [u64; 3]) -> Vec<FrontEnd> {
        let node = |at: u8| FrontEnd {
            replica: Some(at),
            operations: operations[usize::from(at)],
            round_trips: (0..3).map(|other: u8| (other, ms(40) * u32::from(at.abs_diff(other)))).collect(),
        };
        (0..3).map(node).collect()
    }

    fn group() -> Group {
        Group::new(3).expect("a group may have three members")
    }

    const TERMS: Terms =
        Terms { gain: 0.2, least: ms(2), lasts: ms(30_000), pause: ms(300_000), rate_min: 1.0 };

    #[test]
    fn a_cost_is_the_way_to_the_leader_and_from_it_to_a_majority() {
        let costs = costs(&in_a_row([0, 0, 100]), group(), 0);
        assert_eq!(costs, BTreeMap::from([(0, ms(120)), (1, ms(80)), (2, ms(40))]));
        let costs = super::costs(&in_a_row([100, 0, 300]), group(), 0);
        assert_eq!(costs[&0], ms(40) / 4 + ms(120) * 3 / 4);
        assert_eq!(costs[&1], ms(80));
        // Nobody asks for anything; nobody knows how far the replica is.
        assert!(super::costs(&in_a_row([0, 0, 0]), group(), 0).is_empty());
        let gateway =
            FrontEnd { operations: 1, round_trips: BTreeMap::from([(1, ms(3))]), ..FrontEnd::default() };
        assert!(super::costs(std::slice::from_ref(&gateway), group(), 0).is_empty());
        let mut all = in_a_row([0, 0, 0]);
        all.push(gateway);
        assert_eq!(super::costs(&all, group(), 0), BTreeMap::from([(1, ms(43))]));
        // Of one front end alone it is known how far it is from all: where it leads it waits for the nearest, and where another
        // one leads for that one at least.
        let five = Group::new(5).expect("a group may have five members");
        let round_trips = BTreeMap::from([(0, ms(97)), (1, ms(1)), (2, ms(0)), (3, ms(1)), (4, ms(1))]);
        let only = [FrontEnd { replica: Some(2), operations: 5, round_trips }];
        assert_eq!(super::costs(&only, five, 0), BTreeMap::from([(0, ms(97 + 97)), (2, ms(1))]));
        assert_eq!(super::costs(&only, five, 1)[&1], ms(1 + 1));
    }

    /// Asks once a second, from `from` on, until there is a move or a limit is reached: the second, and the move.
    fn wait(
        chooser: &mut Chooser,
        (start, from): (Instant, u32),
        leader: u8,
        operations: [u64; 3],
    ) -> (u32, Option<Move>) {
        for second in from..from + 3_000 {
            let period = (start + SECOND * second, SECOND);
            let found = chooser.consider(period, leader, (&in_a_row(operations), group()), |_| true);
            if found.is_some() {
                return (second, found);
            }
        }
        (from + 3_000, None)
    }

    #[test]
    fn the_lead_moves_when_another_has_been_better_for_long_enough() {
        let start = Instant::now();
        let mut chooser = Chooser::new(TERMS, Vec::new());
        let found = wait(&mut chooser, (start, 1), 0, [0, 0, 100]);
        assert_eq!(found, (30, Some(Move { to: 2, why: Why::Waits([ms(120), ms(40)]) })));
        // Too little is saved, or too little asked for.
        assert_eq!(wait(&mut Chooser::new(TERMS, Vec::new()), (start, 1), 0, [100, 0, 90]).1, None);
        let busy = Terms { rate_min: 1000.0, ..TERMS };
        assert_eq!(wait(&mut Chooser::new(busy, Vec::new()), (start, 1), 0, [0, 0, 100]).1, None);
    }

    #[test]
    fn who_is_better_now_and_then_does_not_lead() {
        let start = Instant::now();
        let mut chooser = Chooser::new(TERMS, Vec::new());
        for second in 1..1_000 {
            let operations = if second % 20 == 0 { [100, 0, 0] } else { [0, 0, 100] };
            let period = (start + SECOND * second, SECOND);
            let found = chooser.consider(period, 0, (&in_a_row(operations), group()), |_| true);
            assert_eq!(found, None, "second {second}");
        }
    }

    #[test]
    fn who_cannot_lead_is_not_chosen() {
        let start = Instant::now();
        let mut chooser = Chooser::new(TERMS, Vec::new());
        let mut found = None;
        for second in 1..100 {
            let period = (start + SECOND * second, SECOND);
            let all = in_a_row([0, 0, 100]);
            found = found.or(chooser.consider(period, 0, (&all, group()), |replica| replica != 2));
        }
        assert_eq!(found, Some(Move { to: 1, why: Why::Waits([ms(120), ms(80)]) }));
    }

    /// Clients that are here and there in turns move the lead less and less.
    #[test]
    fn after_each_return_the_pause_is_twice_as_long() {
        let start = Instant::now();
        let mut chooser = Chooser::new(TERMS, Vec::new());
        let (mut leader, mut second, mut pauses) = (0, 1, Vec::new());
        for _ in 0..4 {
            let operations = if leader == 0 { [0, 0, 100] } else { [100, 0, 0] };
            let (at, found) = wait(&mut chooser, (start, second), leader, operations);
            let found = found.unwrap_or_else(|| panic!("no move after second {second}"));
            chooser.moved(start + SECOND * at, leader, found.to);
            pauses.push(at - second);
            (leader, second) = (found.to, at);
        }
        assert_eq!(pauses, [29, 300, 600, 1200]);
        // A move to where nobody led before waits as at first.
        let (at, found) = wait(&mut chooser, (start, second), leader, [0, 100, 0]);
        let found = found.unwrap_or_else(|| panic!("no move after second {second}"));
        assert_eq!((found.to, at - second), (1, 2400));
        chooser.moved(start + SECOND * at, leader, 1);
        assert_eq!(chooser.pause, TERMS.pause);
    }

    /// The first of the list leads that can; who leads and is in the list is not disturbed for one that comes behind it.
    #[test]
    fn who_is_preferred_leads_when_it_can() {
        let start = Instant::now();
        let all = in_a_row([0, 0, 0]);
        let moves = |leader: u8, able: &'static [u8]| {
            let mut chooser = Chooser::new(TERMS, vec![2, 0]);
            let second = |second| {
                let period = (start + SECOND * second, SECOND);
                let may_lead = |replica: u8| able.contains(&replica);
                chooser.consider(period, leader, (&all, group()), may_lead).map(|found| (second, found))
            };
            (1..100).find_map(second)
        };
        let to = |to: u8| Some((30, Move { to, why: Why::Preferred }));
        assert_eq!(moves(0, &[0, 1, 2]), to(2));
        assert_eq!(moves(1, &[0, 1, 2]), to(2));
        assert_eq!(moves(1, &[0, 1]), to(0));
        assert_eq!(moves(0, &[0, 1]), None);
        assert_eq!(moves(2, &[0, 1]), None);
        assert_eq!(moves(1, &[1]), None);
    }
}
