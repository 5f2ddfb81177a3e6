//! Closed and open loops.
//!
//! In the closed loop each client asks for its next operation when the last one has ended. In the open
//! loop operations fall due at a constant rate, whatever happened to those before; one that falls due while all
//! clients are busy waits for the next that is not. Its latency counts from when it fell due: a cluster that
//! stands still for a second makes all the operations of that second late, not just those that clients happen to
//! have in flight (what Tene calls coordinated omission).
//!
//! An operation that reads, modifies and writes is one operation, whose latency is that of the pair, as YCSB counts
//! it; the two requests are recorded apart from it too.

use super::sample::Sample;
use super::{CompareError, CompareLoad};
use crate::clients::Request;
use crate::fleet::{Ended, Fleet};
use crate::process::cpu_time;
use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;
use syros_client::{ReadCounts, WriteCounts};
use syros_experiment::{OperationKind, OperationStream, Part, Records, WorkloadOperation};
use syros_types::Prng;

/// How often it is asked whether anybody wants more of it.
pub(crate) const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// Operations of the open loop that wait for a client; those that fall due beyond it fail unsent. A cluster that far
/// behind does not take the rate, whatever its latency would be.
pub const WAITING_MAX: usize = 100_000;

/// How long is waited for what was asked for but has not ended when the measurement has; an operation
/// gives up by itself before.
const DRAIN_MAX: Duration = Duration::from_secs(30);

/// A client's operation.
#[derive(Clone, Copy, Debug)]
struct Asked {
    step: WorkloadOperation,
    /// When it was asked for, or fell due: its latency counts from then.
    due: Instant,
    /// When the request that is in flight was sent.
    sent: Instant,
    /// What that request is.
    part: Part,
}

/// A client.
struct LoadClient {
    steps: OperationStream,
    asked: Option<Asked>,
}

/// How the clients' requests were answered so far, and what CPU time that took.
struct Counts {
    reads: ReadCounts,
    writes: WriteCounts,
    replicas: Duration,
    client: Duration,
    at: Instant,
}

/// All of it.
struct Experiment<'a> {
    fleet: &'a mut dyn Fleet,
    processes: &'a [u32],
    load: &'a CompareLoad,
    places: Vec<LoadClient>,
    records: Records,
    /// When operations fell due that no client has yet: the open loop's.
    waiting: VecDeque<Instant>,
    /// Clients without an operation, in the open loop.
    idle: Vec<usize>,
    /// Operations that have fallen due so far, in the open loop.
    fallen_due: u64,
    /// When it began.
    began: Instant,
    /// From when on it counts.
    warm: Instant,
    /// Until when it counts.
    end: Instant,
    sample: Sample,
}

/// Runs the clients, of which there are as many as the load says, and measures; `processes` are the replicas.
pub(crate) fn run(
    fleet: &mut dyn Fleet,
    processes: &[u32],
    load: &CompareLoad,
    is_interrupted: &dyn Fn(u64) -> bool,
) -> Result<Sample, CompareError> {
    let mut experiment = Experiment::new(fleet, processes, load)?;
    let started = Instant::now();
    experiment.warm = started + load.warm_up;
    experiment.end = experiment.warm + load.duration;
    if load.rate.is_none() {
        for place in 0..experiment.places.len() {
            experiment.ask(place, started, started);
        }
    }
    let mut ended = Vec::new();
    experiment.turn_until(experiment.warm, started, &mut ended, is_interrupted)?;
    let before = experiment.counts()?;
    // Reading them takes its time, which is no part of the measurement.
    experiment.warm = before.at;
    experiment.end = before.at + load.duration;
    experiment.turn_until(experiment.end, started, &mut ended, is_interrupted)?;
    let after = experiment.counts()?;
    experiment.end = after.at;
    experiment.drain(&mut ended, is_interrupted)?;
    let all = experiment.counts()?;
    let mut sample = experiment.sample;
    sample.seconds = (after.at - before.at).as_secs_f64();
    sample.cpu = Some(after.replicas.saturating_sub(before.replicas));
    sample.client_cpu = Some(after.client.saturating_sub(before.client));
    sample.paths(processes.len(), (&before.reads, &after.reads, &all.reads), (&before.writes, &after.writes));
    Ok(sample)
}

impl<'a> Experiment<'a> {
    fn new(
        fleet: &'a mut dyn Fleet,
        processes: &'a [u32],
        load: &'a CompareLoad,
    ) -> Result<Self, CompareError> {
        let mut prng = Prng::new(load.seed);
        let mut places = Vec::new();
        for _ in 0..load.clients {
            let steps = OperationStream::new(load.blend, load.choice, load.keys, prng.fork())?;
            places.push(LoadClient { steps, asked: None });
        }
        let now = Instant::now();
        Ok(Self {
            fleet,
            processes,
            load,
            idle: (0..load.clients).rev().collect(),
            places,
            records: Records::new(load.records(load.blend.is_load())),
            waiting: VecDeque::new(),
            fallen_due: 0,
            began: now,
            warm: now,
            end: now,
            sample: Sample::default(),
        })
    }

    fn counts(&self) -> Result<Counts, CompareError> {
        let (reads, writes) = self.fleet.counts();
        let mut replicas = Duration::ZERO;
        for process in self.processes {
            replicas += cpu_time(*process)?;
        }
        Ok(Counts { reads, writes, replicas, client: cpu_time(std::process::id())?, at: Instant::now() })
    }

    /// Takes turns until then.
    fn turn_until(
        &mut self,
        until: Instant,
        started: Instant,
        ended: &mut Vec<Ended>,
        is_interrupted: &dyn Fn(u64) -> bool,
    ) -> Result<(), CompareError> {
        let mut asked_at = Instant::now();
        loop {
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            if now - asked_at >= INTERRUPT_INTERVAL {
                asked_at = now;
                if is_interrupted(self.sample.operations) {
                    return Err(CompareError::Interrupted);
                }
            }
            let mut wake = until.min(now + INTERRUPT_INTERVAL);
            if let Some(rate) = self.load.rate {
                let next = self.fall_due(rate, started, now);
                self.fleet.wake_at(next.min(until))?;
                wake = wake.min(next.max(now + Duration::from_millis(1)));
            }
            self.fleet.turn(wake, ended)?;
            self.complete(ended, true);
        }
    }

    /// Lets fall due what does until now, and hands out what idle clients can take; when the next one falls due.
    fn fall_due(&mut self, rate: u64, started: Instant, now: Instant) -> Instant {
        let due = |number: u64| {
            let nanos = u128::from(number) * 1_000_000_000 / u128::from(rate);
            started + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        while due(self.fallen_due) <= now {
            let due = due(self.fallen_due);
            self.fallen_due += 1;
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(due);
            } else if due >= self.warm {
                self.sample.failed += 1;
            }
        }
        self.hand_out(now);
        due(self.fallen_due)
    }

    fn hand_out(&mut self, now: Instant) {
        while !self.waiting.is_empty()
            && let Some(place) = self.idle.pop()
            && let Some(due) = self.waiting.pop_front()
        {
            self.ask(place, due, now);
        }
    }

    /// Waits until everything has ended that was asked for.
    fn drain(
        &mut self,
        ended: &mut Vec<Ended>,
        is_interrupted: &dyn Fn(u64) -> bool,
    ) -> Result<(), CompareError> {
        let mut deadline = Instant::now() + DRAIN_MAX;
        loop {
            self.hand_out(Instant::now());
            let operations = self.places.iter().filter(|place| place.asked.is_some()).count();
            if operations == 0 {
                return Ok(());
            }
            let now = Instant::now();
            if now >= deadline {
                if self.waiting.is_empty() {
                    return Err(CompareError::Unended { operations, patience: DRAIN_MAX });
                }
                // The cluster is far behind: what no client has taken yet is not asked for any more.
                self.sample.failed += self.waiting.iter().filter(|due| **due >= self.warm).count() as u64;
                self.waiting.clear();
                deadline = now + DRAIN_MAX;
            }
            if is_interrupted(self.sample.operations) {
                return Err(CompareError::Interrupted);
            }
            self.fleet.turn(now + INTERRUPT_INTERVAL, ended)?;
            self.complete(ended, false);
        }
    }

    /// Has a client ask, now, for its next operation.
    fn ask(&mut self, place: usize, due: Instant, now: Instant) {
        let step = self.places[place].steps.draw(&mut self.records, now - self.began);
        let WorkloadOperation { kind, key, records } = step;
        let part = kind.first();
        let request = match kind {
            OperationKind::Read | OperationKind::ReadModifyWrite => Request::Get(key),
            OperationKind::Scan => Request::MGet { first: key, count: records },
            OperationKind::Update | OperationKind::Insert => Request::Set(key),
            OperationKind::Increment => Request::Increment(key),
            OperationKind::Append => Request::Append(key),
        };
        self.places[place].asked = Some(Asked { step, due, sent: now, part });
        self.fleet.ask(place, request);
    }

    /// Takes note of what has ended, and lets its clients ask for more.
    fn complete(&mut self, ended: &mut Vec<Ended>, goes_on: bool) {
        let now = Instant::now();
        for Ended { client: place, is_good } in ended.drain(..) {
            let Some(asked) = self.places.get_mut(place).and_then(|place| place.asked.take()) else {
                continue;
            };
            let Asked { step, due, sent, part } = asked;
            let measured = self.warm..self.end;
            // Latencies are those of what falls due in the time measured in the open loop, of what ends in it in the
            // closed one. Throughput is what ends in it.
            let is_in_time = goes_on && measured.contains(&now);
            let counts = if self.load.rate.is_some() { measured.contains(&due) } else { is_in_time };
            if counts && is_good {
                self.sample.part(part, nanos(now - sent));
            }
            if is_good && let Some(part) = step.kind.after(part) {
                self.places[place].asked = Some(Asked { step, due, sent: now, part });
                self.fleet.ask(place, Request::Set(step.key));
                continue;
            }
            self.places[place].steps.end(step, &mut self.records, now - self.began);
            self.sample.operations += u64::from(is_good && is_in_time);
            if counts && is_good {
                self.sample.operation(step.kind, nanos(now - due));
            } else if !is_good && (counts || due >= self.warm) {
                self.sample.failed += 1;
            }
            if self.load.rate.is_some() {
                self.idle.push(place);
            } else if goes_on {
                self.ask(place, now, now);
            }
        }
        self.hand_out(now);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
