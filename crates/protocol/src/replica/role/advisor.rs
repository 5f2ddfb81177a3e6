//! Which way updates and reads had better go while cores are the limit: what a leader tries, counts and concludes (see
//! `advice`).

use crate::message::{Advice, Advised};
use core::time::Duration;
use syros_types::{Instant, OpNumber};

/// A process that is busy for less than this share of the time, in thousandths, is not what anything waits for. It takes no
/// more where clients and other replicas share its cores, and each waits for the others in turn.
const BUSY: u64 = 400;

/// Updates are counted for so long at a time. When the advice has changed, half as long passes first: what is executed then was
/// sent before.
const WINDOW: Duration = Duration::from_millis(100);

/// Where thousands of updates wait, one that is sent now is executed long after that. Nobody says how long they wait, so
/// each trial counts for twice as long as the one before, but no more often than this: 0.8 s.
const LENGTHENINGS_MAX: u32 = 3;

/// With fewer updates in a window than this, nothing can be said. (What becomes of reads shows in how many updates there are:
/// who reads and updates does both sooner. The leader does not see all reads.)
const UPDATES_MIN: u64 = 40;

/// A trial counts so many windows of each way, by turns: what else the machine does differs more from second to second than
/// the ways do.
const ROUNDS: u32 = 3;

/// Where the leader alone does so much more, in percent of what the group does while clients are free, one window of each is
/// enough. (The other way round one window may have caught a moment in which many clients came, or a process stood still.)
const MUCH_BETTER: u64 = 150;

/// Updates go better to the leader alone if the group does more than this with it, in percent of what it does while clients are
/// free: they take a round trip more. For reads it is the other way round: the leader alone answers no later, and with
/// fewer messages, if it is not that much busier with them.
const BETTER: u64 = 105;

/// When the group does less than this, in percent of what it did after a trial, or that much more, the load is another one.
const ANOTHER_LOAD: u64 = 60;

/// So is one that keeps the process busy for so much more of the time, in thousandths.
const BUSIER: u64 = 200;

/// Windows that tell, after a trial, which load it was made under.
const USUAL: u32 = 8;

/// Once it has tried, the leader stays with what was better for so long; twice as long each time it finds the same.
const PATIENCE: Duration = Duration::from_secs(10);

/// It tries at least every three minutes.
const DOUBLINGS_MAX: u32 = 4;

/// When the load has gone or changed, it tries again after so long.
const LULL: Duration = Duration::from_millis(500);

/// What comes after a lull may be another load than the last trial was made under, and has a trial at once; but only one in so
/// long, and twice as long each time it finds the same, so that loads that come and go do not spend their time on trials.
const EARLY_TRIALS_APART: Duration = Duration::from_secs(30);

/// Which way reads go is of no matter if the leader takes part in fewer, in percent of the updates.
const READS_MIN: u64 = 10;

/// What a leader knows of how busy it is, and what it has made of that.
#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct Advisor {
    /// Of updates and of reads.
    choices: [Choice; 2],
    trial: Option<Trial>,
    window: Option<Window>,
    /// When the load was last heard of.
    heard: Option<Instant>,
    /// What was on its way when the advice changed is not measured.
    settled_at: Instant,
    /// What the group does at present, smoothed, over so many windows since the last trial.
    level: Level,
    windows: u32,
    /// What it did after the last trial.
    usual: Level,
}

/// What has been found of one kind of operations.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    /// What clients have been told.
    advice: Advice,
    /// When the last trial ended.
    concluded_at: Instant,
    /// It is not tried before.
    next_trial: Instant,
    /// When that would be if the load stayed as it is.
    planned: Instant,
    /// That a load begins is no reason for a trial before.
    next_early_trial: Instant,
    doublings: u32,
    lengthenings: u32,
}

impl Choice {
    /// When it may be tried again, now that the load is another one and clients have been told this.
    fn soonest(&self, told: (Advised, Advice), now: Instant) -> Instant {
        match told {
            // One round trip may do again.
            (Advised::Updates, Advice::Leader) => now.after(LULL),
            _ if now >= self.next_early_trial => now.after(LULL),
            _ => now.after(LULL).max(self.concluded_at.after(PATIENCE)),
        }
    }

    /// A load has gone; what comes next is tried soon, unless that has just been done.
    fn expect_another_load(&mut self, now: Instant) {
        if now >= self.next_early_trial {
            self.next_trial = self.next_trial.min(now.after(LULL));
        }
    }
}

/// What a group does.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Updates a second.
    rate: u64,
    /// Share of the time that the process was busy, in thousandths.
    load: u64,
}

/// Both ways are being tried by turns.
#[derive(Clone, Copy, Debug)]
struct Trial {
    of: Advised,
    /// What was thought better before.
    before: Advice,
    windows_left: u32,
    /// What was counted while clients were free, and while all went by the leader.
    counted: [Counted; 2],
}

/// What has been counted in the windows of one way.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    updates: u64,
    nanos: u64,
    /// Time that the process has used, in nanoseconds times a thousand.
    used: u64,
}

impl Counted {
    fn level(self) -> Level {
        Level { rate: per_second(self.updates, self.nanos), load: self.used / self.nanos.max(1) }
    }
}

/// What is being counted.
#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    done: Done,
    /// Time that the process has used, in nanoseconds times a thousand.
    used: u64,
}

/// What a leader has done so far.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct Done {
    /// Entries up to here are executed.
    pub(in crate::replica) executed: OpNumber,
    /// So many reads it has answered, or said of what they are to show.
    pub(in crate::replica) reads: u64,
}

/// What has been counted.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct Measured {
    updates: u64,
    reads: u64,
    nanos: u64,
    /// Share of the time that the process was busy, in thousandths.
    pub(in crate::replica) load: u64,
}

impl Measured {
    /// Updates a second.
    pub(in crate::replica) fn rate(self) -> u64 {
        per_second(self.updates, self.nanos)
    }
}

fn per_second(updates: u64, nanos: u64) -> u64 {
    (u128::from(updates) * 1_000_000_000 / u128::from(nanos.max(1))) as u64
}

impl Trial {
    /// What the group has done while clients were free, and while all went by the leader.
    fn levels(&self) -> [Level; 2] {
        self.counted.map(Counted::level)
    }

    /// What clients had better do.
    fn verdict(&self) -> Advice {
        let [free, by_leader] = self.levels();
        let is_better = match self.of {
            Advised::Updates => by_leader.rate * 100 > free.rate * BETTER,
            // Where cores are not the limit while clients are free, they choose for themselves.
            Advised::Reads => {
                by_leader.rate * BETTER >= free.rate * 100
                    && by_leader.load * 100 <= free.load * BETTER
                    && free.load >= BUSY
            }
        };
        if is_better { Advice::Leader } else { Advice::Free }
    }
}

const fn other(advice: Advice) -> Advice {
    match advice {
        Advice::Free => Advice::Leader,
        Advice::Leader => Advice::Free,
    }
}

impl Advisor {
    /// What clients are to do at present with updates, and with reads.
    pub(in crate::replica) const fn advice(&self) -> [Advice; 2] {
        [self.choices[0].advice, self.choices[1].advice]
    }

    /// Since this was last told, the process was busy for this share of the time. Returns what was measured if clients are to be
    /// told something else than before.
    pub(in crate::replica) fn on_load(&mut self, now: Instant, share: u32, done: Done) -> Option<Measured> {
        let since = self.heard.replace(now).unwrap_or(now);
        if now < self.settled_at {
            return None;
        }
        let length = self.window_length().as_nanos() as u64;
        let Some(window) = &mut self.window else {
            self.window = Some(Window { began: now, done, used: 0 });
            return None;
        };
        let elapsed = now.since(since).as_nanos() as u64;
        window.used = window.used.saturating_add(elapsed.saturating_mul(u64::from(share.min(1_000))));
        let nanos = now.since(window.began).as_nanos() as u64;
        if nanos < length {
            return None;
        }
        let updates = done.executed.0.saturating_sub(window.done.executed.0);
        let reads = done.reads.saturating_sub(window.done.reads);
        let measured = Measured { updates, reads, nanos, load: window.used / nanos };
        self.window = None;
        let told = self.advice();
        // One that is much longer tells only that little was done: perhaps the process stood still.
        if updates < UPDATES_MIN {
            self.let_go(now);
        } else if nanos <= length * 4 {
            self.decide(now, measured);
        }
        if self.advice() == told {
            return None;
        }
        self.settled_at = now.after(self.window_length() / 2);
        Some(measured)
    }

    fn window_length(&self) -> Duration {
        let lengthenings = self.trial.map_or(0, |trial| self.choices[trial.of as usize].lengthenings);
        WINDOW * (1 << lengthenings)
    }

    fn decide(&mut self, now: Instant, measured: Measured) {
        if let Some(trial) = &mut self.trial {
            let advice = &mut self.choices[trial.of as usize].advice;
            let counted = &mut trial.counted[*advice as usize];
            counted.updates += measured.updates;
            counted.nanos += measured.nanos;
            counted.used += measured.load.saturating_mul(measured.nanos);
            trial.windows_left -= 1;
            let [free, by_leader] = trial.levels().map(|level| level.rate);
            let is_clear = by_leader * 100 > free * MUCH_BETTER;
            if trial.windows_left == 0 || (trial.windows_left.is_multiple_of(2) && is_clear) {
                self.conclude(now);
            } else {
                *advice = other(*advice);
            }
            return;
        }
        if self.is_another_load(measured) {
            self.windows = 0;
            for of in Advised::ALL {
                let choice = &mut self.choices[of as usize];
                (choice.doublings, choice.lengthenings) = (0, 0);
                choice.next_trial = choice.next_trial.min(choice.soonest((of, choice.advice), now));
            }
        }
        for of in Advised::ALL {
            let choice = &mut self.choices[of as usize];
            let may_gain = choice.advice == Advice::Leader || measured.load >= BUSY;
            let matters = of == Advised::Updates || measured.reads * 100 >= measured.updates * READS_MIN;
            if !matters {
                choice.advice = Advice::Free;
            } else if may_gain && now >= choice.next_trial {
                return self.begin_trial(of, now);
            }
        }
    }

    /// True if what the group does is not what it did after the last trial.
    fn is_another_load(&mut self, measured: Measured) -> bool {
        let (rate, load) = (measured.rate(), measured.load);
        let smoothed = |old: u64, new: u64| old - old / 8 + new / 8;
        self.level = match self.windows {
            0 => Level { rate, load },
            _ => Level { rate: smoothed(self.level.rate, rate), load: smoothed(self.level.load, load) },
        };
        self.windows = self.windows.saturating_add(1);
        if self.windows <= USUAL {
            self.usual = self.level;
        }
        let (level, usual) = (self.level, self.usual);
        level.rate * 100 < usual.rate * ANOTHER_LOAD
            || usual.rate * 100 < level.rate * ANOTHER_LOAD
            || level.load > usual.load + BUSIER
    }

    /// Nothing limits the group at present. If cores did a moment ago, they may do so again soon.
    fn let_go(&mut self, now: Instant) {
        let trial = self.trial.take();
        self.windows = 0;
        for of in Advised::ALL {
            let trial = trial.filter(|trial| trial.of == of);
            let choice = &mut self.choices[of as usize];
            let before = trial.map_or(choice.advice, |trial| trial.before);
            choice.advice = Advice::Free;
            if before == Advice::Leader {
                (choice.doublings, choice.lengthenings) = (0, 0);
                choice.next_trial = choice.soonest((of, before), now);
            } else if trial.is_some() {
                // It cannot be judged, at least by what comes in so short a time.
                self.put_off(of, now, false);
            } else {
                choice.expect_another_load(now);
            }
        }
    }

    /// Tries again some time from now, and sooner if the last trial has brought `news`.
    fn put_off(&mut self, of: Advised, now: Instant, news: bool) {
        let choice = &mut self.choices[of as usize];
        choice.lengthenings = (choice.lengthenings + 1).min(LENGTHENINGS_MAX);
        choice.doublings = if news { 0 } else { (choice.doublings + 1).min(DOUBLINGS_MAX) };
        choice.concluded_at = now;
        choice.next_trial = now.after(PATIENCE * (1 << choice.doublings));
        choice.planned = choice.next_trial;
    }

    fn begin_trial(&mut self, of: Advised, now: Instant) {
        let choice = &mut self.choices[of as usize];
        if now < choice.planned {
            choice.next_early_trial = now.after(EARLY_TRIALS_APART * (1 << choice.doublings));
        }
        let before = choice.advice;
        choice.advice = other(before);
        self.trial = Some(Trial { of, before, windows_left: 2 * ROUNDS, counted: [Counted::default(); 2] });
    }

    fn conclude(&mut self, now: Instant) {
        let Some(trial) = self.trial.take() else { return };
        let advice = trial.verdict();
        self.choices[trial.of as usize].advice = advice;
        self.windows = 0;
        self.put_off(trial.of, now, advice != trial.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const STEP: u64 = 20;

    /// A group under load, which executes so many updates in a millisecond as it is told.
    struct Load {
        advisor: Advisor,
        now: Instant,
        executed: u64,
        /// So many reads for a hundred updates.
        reads: u64,
        /// Milliseconds at which the advice changed.
        changes: Vec<u64>,
    }

    impl Load {
        fn new() -> Self {
            let advisor = Advisor::default();
            Self { advisor, now: Instant(1_000_000_000), executed: 0, reads: 0, changes: Vec::new() }
        }

        /// What clients are to do with updates.
        const fn updates(&self) -> Advice {
            self.advisor.advice()[Advised::Updates as usize]
        }

        /// And with reads.
        const fn reads(&self) -> Advice {
            self.advisor.advice()[Advised::Reads as usize]
        }

        fn step(&mut self, (updates, share): (u64, u32)) {
            self.now.0 += STEP * 1_000_000;
            self.executed += updates * STEP;
            let done = Done { executed: OpNumber(self.executed), reads: self.executed * self.reads / 100 };
            if self.advisor.on_load(self.now, share, done).is_some() {
                self.changes.push(self.now.0 / 1_000_000 - 1_000);
            }
        }

        /// `work`: updates in a millisecond and share of the time, with the clients free, and by the leader. Returns the
        /// share of the time in which all went by the leader.
        fn pass(&mut self, millis: u64, work: [(u64, u32); 2]) -> f64 {
            let mut by_leader = 0;
            for _ in 0..millis / STEP {
                let advice = self.updates();
                by_leader += u64::from(advice == Advice::Leader);
                self.step(work[advice as usize]);
            }
            by_leader as f64 / (millis / STEP) as f64
        }
    }

    #[test]
    fn where_cores_limit_the_group_the_cheaper_way_is_found_within_a_second() {
        let mut load = Load::new();
        let saturated = [(20, 1_000), (50, 1_000)];
        load.pass(600, saturated);
        assert_eq!(load.updates(), Advice::Leader);
        // One window of each is enough here.
        assert_eq!(load.changes, [120, 280, 440]);
        let share = load.pass(120_000, saturated);
        assert!(share > 0.98, "{share}");
        // Where it is less clear, three of each.
        let mut load = Load::new();
        load.pass(1_200, [(20, 1_000), (24, 1_000)]);
        assert_eq!(load.changes, [120, 280, 440, 600, 760, 920, 1_080]);
        assert_eq!(load.updates(), Advice::Leader);
    }

    /// Either way may be better for each, whatever is better for the other.
    #[test]
    fn what_is_better_for_reads_is_found_after_what_is_better_for_updates() {
        for better in [[false, false], [false, true], [true, false], [true, true]] {
            let mut load = Load { reads: 100, ..Load::new() };
            for _ in 0..3_000 / STEP {
                let told = [load.updates(), load.reads()].map(|advice| advice == Advice::Leader);
                let right = told.iter().zip(better).filter(|(told, better)| **told == *better).count();
                load.step((20 + 10 * right as u64, 1_000));
            }
            let found = [load.updates(), load.reads()].map(|advice| advice == Advice::Leader);
            assert_eq!(found, better, "{:?}", load.changes);
            assert!(load.changes.iter().filter(|change| **change > 2_300).count() == 0, "{:?}", load.changes);
            // When the load goes, both are free again.
            (0..50).for_each(|_| load.step((0, 10)));
            assert_eq!([load.updates(), load.reads()], [Advice::Free; 2]);
        }
    }

    /// Equal throughput: updates have their one round trip, reads have one either way.
    #[test]
    fn where_it_is_of_no_matter_updates_are_free_and_reads_go_to_the_leader() {
        let mut load = Load { reads: 100, ..Load::new() };
        (0..3_000 / STEP).for_each(|_| load.step((30, 1_000)));
        assert_eq!([load.updates(), load.reads()], [Advice::Free, Advice::Leader]);
        // When cores are the limit no more, or hardly anything is read, clients choose for themselves.
        for (reads, share) in [(100, 390), (9, 1_000)] {
            let mut load = Load { reads: 100, ..Load::new() };
            (0..3_000 / STEP).for_each(|_| load.step((30, 1_000)));
            load.reads = reads;
            (0..200_000 / STEP).for_each(|_| load.step((30, share)));
            assert_eq!(load.reads(), Advice::Free, "{reads}, {share}");
        }
    }

    /// Those that only read keep the leader busy, and others update as they do anyway.
    #[test]
    fn readers_are_not_sent_to_a_leader_that_is_busier_with_them() {
        let mut load = Load { reads: 1_000, ..Load::new() };
        for _ in 0..60_000 / STEP {
            load.step((10, if load.reads() == Advice::Leader { 1_000 } else { 700 }));
        }
        assert_eq!(load.reads(), Advice::Free);
        let changes = load.changes.len();
        assert!(changes < 60, "{changes}");
    }

    /// Bursts and lulls, for ten minutes.
    #[test]
    fn reads_are_not_tried_after_every_lull() {
        let mut load = Load { reads: 100, ..Load::new() };
        for _ in 0..300 {
            (0..1_500 / STEP).for_each(|_| load.step((30, 1_000)));
            (0..500 / STEP).for_each(|_| load.step((0, 10)));
        }
        assert!(load.changes.len() < 400, "{}", load.changes.len());
    }

    #[test]
    fn where_hardly_anything_is_read_reads_are_not_tried() {
        let mut load = Load { reads: 9, ..Load::new() };
        for _ in 0..60_000 / STEP {
            load.step((30, 1_000));
            assert_eq!(load.reads(), Advice::Free);
        }
    }

    #[test]
    fn a_machine_that_is_now_fast_and_now_slow_does_not_mislead_it() {
        // All is half as fast every other second.
        let mut load = Load::new();
        let mut by_leader = 0;
        for step in 0..3_000 {
            let speed = 1 + step / 50 % 2;
            let updates = if load.updates() == Advice::Leader { 15 } else { 10 };
            by_leader += u64::from(load.updates() == Advice::Leader);
            load.step((updates * speed, 900));
        }
        assert!(by_leader > 2_800, "{by_leader}");
    }

    #[test]
    fn where_they_do_not_nothing_is_tried() {
        let mut load = Load::new();
        load.pass(60_000, [(20, 390), (20, 200)]);
        assert_eq!(load.changes, []);
        // Hardly anything is done, and something else has the cores.
        let mut load = Load::new();
        load.pass(60_000, [(0, 1_000), (0, 1_000)]);
        assert_eq!(load.changes, []);
    }

    #[test]
    fn what_is_not_better_is_tried_ever_less_often() {
        let mut load = Load::new();
        let share = load.pass(600_000, [(50, 1_000), (52, 1_000)]);
        assert!(share > 0.0 && share < 0.03, "{share}");
        // Each way six times, and back.
        assert!((24..=60).contains(&load.changes.len()), "{:?}", load.changes);
    }

    #[test]
    fn when_the_load_goes_clients_are_free_again() {
        let mut load = Load::new();
        load.pass(2_000, [(20, 1_000), (50, 1_000)]);
        assert_eq!(load.updates(), Advice::Leader);
        load.pass(4_000, [(10, 500), (10, 200)]);
        assert_eq!(load.updates(), Advice::Free, "nothing is gained");
        let share = load.pass(600_000, [(10, 500), (10, 200)]);
        assert!(share < 0.03, "{share}");
        let before = load.changes.len();
        load.pass(60_000, [(10, 390), (10, 150)]);
        assert_eq!(load.changes.len(), before);
    }

    #[test]
    fn a_lull_does_not_put_it_off_for_long() {
        let mut load = Load::new();
        let saturated = [(20, 1_000), (50, 1_000)];
        load.pass(2_000, saturated);
        load.pass(1_000, [(0, 10), (0, 10)]);
        assert_eq!(load.updates(), Advice::Free);
        let share = load.pass(4_000, saturated);
        assert!(share > 0.8, "{share}");
        // Where it is not better, that is not tried after every lull.
        let mut load = Load::new();
        for _ in 0..20 {
            load.pass(1_500, [(50, 1_000), (50, 1_000)]);
            load.pass(500, [(0, 10), (0, 10)]);
        }
        assert!(load.changes.len() <= 18, "{:?}", load.changes);
    }

    /// Thousands of clients: what is sent now waits behind all that was sent in the last 140 ms.
    #[test]
    fn what_is_long_on_its_way_does_not_turn_trials_round_for_ever() {
        for [free, by_leader] in [[20, 50], [50, 20], [20, 27]] {
            let mut load = Load::new();
            let mut sent = alloc::collections::VecDeque::from([Advice::Free; 7]);
            let mut better = 0;
            for step in 0..30_000 {
                sent.push_back(load.updates());
                let way = sent.pop_front().unwrap_or_default();
                load.step(if way == Advice::Leader { (by_leader, 1_000) } else { (free, 1_000) });
                let is_better = (way == Advice::Leader) == (by_leader > free);
                better += u64::from(is_better && step >= 10_000);
            }
            assert!(better > 18_500, "{free} and {by_leader}: {better} of 20,000; {:?}", load.changes);
        }
    }

    #[test]
    fn a_trial_that_cannot_be_judged_is_not_begun_again_at_once() {
        let mut load = Load::new();
        load.pass(600_000, [(1, 900), (0, 900)]);
        assert!(load.changes.len() < 20, "{}", load.changes.len());
        // Bursts that are shorter than a trial.
        let mut load = Load::new();
        for _ in 0..750 {
            load.pass(400, [(50, 1_000), (50, 1_000)]);
            load.pass(400, [(0, 10), (0, 10)]);
        }
        assert!(load.changes.len() < 60, "{}", load.changes.len());
    }

    #[test]
    fn another_load_is_tried_soon() {
        let mut load = Load::new();
        load.pass(400_000, [(20, 500), (20, 300)]);
        let share = load.pass(30_000, [(20, 1_000), (50, 1_000)]);
        assert!(share > 0.8, "{share}");
    }

    /// One client, for which nothing is gained, and then many.
    #[test]
    fn a_load_that_follows_another_one_has_a_trial_of_its_own() {
        let few = [(20, 500), (10, 300)];
        let many = [(20, 1_000), (50, 1_000)];
        for lull in [0, 100, 1_000, 5_000] {
            let mut load = Load::new();
            load.pass(3_000, few);
            assert_eq!(load.updates(), Advice::Free);
            load.pass(lull, [(0, 10), (0, 10)]);
            let share = load.pass(4_000, many);
            assert!(share > 0.6, "{share} after {lull} ms: {:?}", load.changes);
        }
        // But not every load that comes and goes.
        let mut load = Load::new();
        for _ in 0..150 {
            load.pass(1_500, few);
            load.pass(500, [(0, 10), (0, 10)]);
        }
        assert!(load.changes.len() < 150, "{:?}", load.changes);
        assert!(load.changes.len() > 20, "{:?}", load.changes);
    }

    /// Heartbeats come so seldom that hardly anything is measured.
    #[test]
    fn an_idle_group_is_free_however_seldom_it_looks() {
        let mut load = Load::new();
        load.pass(2_000, [(20, 1_000), (50, 1_000)]);
        assert_eq!(load.updates(), Advice::Leader);
        for _ in 0..10 {
            load.now.0 += 500_000_000;
            load.step((0, 10));
        }
        assert_eq!(load.updates(), Advice::Free);
    }

    #[test]
    fn a_process_that_stood_still_goes_on() {
        let mut load = Load::new();
        load.pass(200, [(20, 1_000), (50, 1_000)]);
        load.now.0 += 3_600_000_000_000;
        let share = load.pass(10_000, [(20, 1_000), (50, 1_000)]);
        assert!(share > 0.9, "{share}");
    }
}
