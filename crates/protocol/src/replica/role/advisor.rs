//! Which way updates had better go while cores are the limit: what a leader tries, counts and concludes (see `advice`).

use crate::message::Advice;
use core::time::Duration;
use syros_types::{Instant, OpNumber};

/// A process that is busy for less than this share of the time, in thousandths, is not what anything waits for. It takes no
/// more where clients and other replicas share its cores, and each waits for the others in turn.
const BUSY: u64 = 400;

/// Updates are counted for so long at a time.
const WINDOW: Duration = Duration::from_millis(100);

/// When the advice has changed, what was on its way comes first.
const SETTLING: Duration = Duration::from_millis(20);

/// With fewer updates in a window than this, nothing can be said.
const UPDATES_MIN: u64 = 40;

/// A trial counts so many windows of each way, by turns: what else the machine does differs more from second to second than
/// the ways do.
const ROUNDS: u32 = 3;

/// Where one way does so much more than the other, in percent, one window of each is enough.
const MUCH_BETTER: u64 = 150;

/// The leader alone is better if the group does more than this with it, in percent of what it does while clients are free.
const BETTER: u64 = 105;

/// When the group does less than this, in percent of what it did when the leader was found to be better, the load is another
/// one.
const ANOTHER_LOAD: u64 = 60;

/// Once it has tried, the leader stays with what was better for so long; twice as long each time it finds the same.
const PATIENCE: Duration = Duration::from_secs(10);

/// It tries at least every five minutes.
const DOUBLINGS_MAX: u32 = 5;

/// When the load has gone or changed, it tries again after so long.
const LULL: Duration = Duration::from_millis(500);

/// What a leader knows of how busy it is, and what it has made of that.
#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct Advisor {
    /// What clients have been told.
    advice: Advice,
    trial: Option<Trial>,
    window: Option<Window>,
    /// When the load was last heard of.
    heard: Option<Instant>,
    /// What was on its way when the advice changed is not measured.
    settled_at: Instant,
    /// Updates a second when the leader was found to be better, and smoothed since.
    concluded: u64,
    rate: u64,
    /// It does not try before.
    next_trial: Instant,
    doublings: u32,
}

/// Both ways are being tried by turns.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// What was thought better before.
    before: Advice,
    windows_left: u32,
    /// Updates and nanoseconds while clients were free, and while all went by the leader.
    counted: [(u64, u64); 2],
}

/// What is being counted.
#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    executed: OpNumber,
    /// Time that the process has used, in nanoseconds times a thousand.
    used: u64,
}

/// What has been counted.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct Measured {
    updates: u64,
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
    /// Updates a second while clients were free, and while all went by the leader.
    fn rates(&self) -> [u64; 2] {
        self.counted.map(|(updates, nanos)| per_second(updates, nanos))
    }
}

const fn other(advice: Advice) -> Advice {
    match advice {
        Advice::Free => Advice::Leader,
        Advice::Leader => Advice::Free,
    }
}

impl Advisor {
    /// What clients are to do at present.
    pub(in crate::replica) const fn advice(&self) -> Advice {
        self.advice
    }

    /// Since this was last told, the process was busy for this share of the time; entries up to `executed` are executed.
    /// Returns what was measured if clients are to be told something else than before.
    pub(in crate::replica) fn on_load(
        &mut self,
        now: Instant,
        share: u32,
        executed: OpNumber,
    ) -> Option<Measured> {
        let since = self.heard.replace(now).unwrap_or(now);
        if now < self.settled_at {
            return None;
        }
        let Some(window) = &mut self.window else {
            self.window = Some(Window { began: now, executed, used: 0 });
            return None;
        };
        let elapsed = now.since(since).as_nanos() as u64;
        window.used = window.used.saturating_add(elapsed.saturating_mul(u64::from(share.min(1_000))));
        let nanos = now.since(window.began).as_nanos() as u64;
        if nanos < WINDOW.as_nanos() as u64 {
            return None;
        }
        let updates = executed.0.saturating_sub(window.executed.0);
        let measured = Measured { updates, nanos, load: window.used / nanos };
        self.window = None;
        if nanos > WINDOW.as_nanos() as u64 * 4 {
            // The process stood still.
            return None;
        }
        let told = self.advice;
        self.decide(now, measured);
        if self.advice == told {
            return None;
        }
        self.settled_at = now.after(SETTLING);
        Some(measured)
    }

    fn decide(&mut self, now: Instant, measured: Measured) {
        if measured.updates < UPDATES_MIN {
            return self.let_go(now);
        }
        if let Some(trial) = &mut self.trial {
            let (updates, nanos) = &mut trial.counted[self.advice as usize];
            *updates += measured.updates;
            *nanos += measured.nanos;
            trial.windows_left -= 1;
            let [free, by_leader] = trial.rates();
            let is_clear =
                free.min(by_leader) > 0 && free.max(by_leader) * 100 > free.min(by_leader) * MUCH_BETTER;
            if trial.windows_left == 0 || (trial.windows_left.is_multiple_of(2) && is_clear) {
                self.conclude(now);
            } else {
                self.advice = other(self.advice);
            }
            return;
        }
        let is_due = now >= self.next_trial;
        match self.advice {
            Advice::Free if is_due && measured.load >= BUSY => self.begin_trial(),
            Advice::Free => {}
            Advice::Leader if is_due => self.begin_trial(),
            Advice::Leader => {
                self.rate = self.rate - self.rate / 8 + measured.rate() / 8;
                if self.rate * 100 < self.concluded * ANOTHER_LOAD {
                    self.doublings = 0;
                    self.next_trial = now.after(LULL);
                    self.concluded = self.rate;
                }
            }
        }
    }

    /// Nothing limits the group at present. If cores did a moment ago, they may do so again soon.
    fn let_go(&mut self, now: Instant) {
        let before = self.trial.take().map_or(self.advice, |trial| trial.before);
        if before == Advice::Leader {
            self.doublings = 0;
            self.next_trial = now.after(LULL);
        }
        self.advice = Advice::Free;
    }

    const fn begin_trial(&mut self) {
        let before = self.advice;
        self.trial = Some(Trial { before, windows_left: 2 * ROUNDS, counted: [(0, 0); 2] });
        self.advice = other(before);
    }

    fn conclude(&mut self, now: Instant) {
        let Some(trial) = self.trial.take() else { return };
        let [free, by_leader] = trial.rates();
        self.advice = if by_leader * 100 > free * BETTER { Advice::Leader } else { Advice::Free };
        let is_news = self.advice != trial.before;
        self.doublings = if is_news { 0 } else { (self.doublings + 1).min(DOUBLINGS_MAX) };
        (self.concluded, self.rate) = (by_leader, by_leader);
        self.next_trial = now.after(PATIENCE * (1 << self.doublings));
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
        /// Milliseconds at which the advice changed.
        changes: Vec<u64>,
    }

    impl Load {
        fn new() -> Self {
            let advisor = Advisor::default();
            Self { advisor, now: Instant(1_000_000_000), executed: 0, changes: Vec::new() }
        }

        fn step(&mut self, (updates, share): (u64, u32)) {
            self.now.0 += STEP * 1_000_000;
            self.executed += updates * STEP;
            if self.advisor.on_load(self.now, share, OpNumber(self.executed)).is_some() {
                self.changes.push(self.now.0 / 1_000_000 - 1_000);
            }
        }

        /// `work`: updates in a millisecond and share of the time, with the clients free, and by the leader. Returns the
        /// share of the time in which all went by the leader.
        fn pass(&mut self, millis: u64, work: [(u64, u32); 2]) -> f64 {
            let mut by_leader = 0;
            for _ in 0..millis / STEP {
                let advice = self.advisor.advice();
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
        load.pass(500, saturated);
        assert_eq!(load.advisor.advice(), Advice::Leader);
        // One window of each is enough here.
        assert_eq!(load.changes, [120, 240, 360]);
        let share = load.pass(120_000, saturated);
        assert!(share > 0.99, "{share}");
        // Where it is less clear, three of each.
        let mut load = Load::new();
        load.pass(1_000, [(20, 1_000), (24, 1_000)]);
        assert_eq!(load.changes, [120, 240, 360, 480, 600, 720, 840]);
        assert_eq!(load.advisor.advice(), Advice::Leader);
    }

    #[test]
    fn a_machine_that_is_now_fast_and_now_slow_does_not_mislead_it() {
        // All is half as fast every other second.
        let mut load = Load::new();
        let mut by_leader = 0;
        for step in 0..3_000 {
            let speed = 1 + step / 50 % 2;
            let updates = if load.advisor.advice() == Advice::Leader { 15 } else { 10 };
            by_leader += u64::from(load.advisor.advice() == Advice::Leader);
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
        assert!(share > 0.0 && share < 0.01, "{share}");
        // Each way six times, and back.
        assert!((24..=60).contains(&load.changes.len()), "{:?}", load.changes);
    }

    #[test]
    fn when_the_load_goes_clients_are_free_again() {
        let mut load = Load::new();
        load.pass(2_000, [(20, 1_000), (50, 1_000)]);
        assert_eq!(load.advisor.advice(), Advice::Leader);
        load.pass(4_000, [(10, 500), (10, 200)]);
        assert_eq!(load.advisor.advice(), Advice::Free, "nothing is gained");
        let share = load.pass(120_000, [(10, 500), (10, 200)]);
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
        assert_eq!(load.advisor.advice(), Advice::Free);
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

    #[test]
    fn a_process_that_stood_still_goes_on() {
        let mut load = Load::new();
        load.pass(200, [(20, 1_000), (50, 1_000)]);
        load.now.0 += 3_600_000_000_000;
        let share = load.pass(10_000, [(20, 1_000), (50, 1_000)]);
        assert!(share > 0.9, "{share}");
    }
}
