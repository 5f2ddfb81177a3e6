//! How busy the thread of the event loop is: the share of the time in which it works, or waits for a core.
//!
//! What it waits for a core counts, because what arrives waits with it: where several processes share a machine, none of
//! them may work for half of the time, and each be late for all of it.

use core::time::Duration;
use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};
use syros_types::Instant;

/// Between two measurements. Reading costs about a microsecond.
const INTERVAL: Duration = Duration::from_millis(20);

/// What the kernel says of the calling thread: nanoseconds at work, nanoseconds of waiting for a core, turns.
const STATISTICS: &str = "/proc/thread-self/schedstat";

/// Measures the thread that it was first asked on.
#[derive(Debug, Default)]
pub(crate) struct LoadMeter {
    /// `None` before the first measurement, or where the kernel keeps no such statistics: then only work counts.
    statistics: Option<File>,
    last: Option<(Instant, u64)>,
}

impl LoadMeter {
    /// The share of the time since the last measurement, in thousandths, if it is time for one.
    pub(crate) fn measure(&mut self, now: Instant) -> Option<u32> {
        if self.last.is_some_and(|(at, _)| now < at.after(INTERVAL)) {
            return None;
        }
        if self.last.is_none() {
            self.statistics = File::open(STATISTICS).ok();
        }
        let used = self.used();
        let (since, before) = self.last.replace((now, used))?;
        Some(share(used.saturating_sub(before), now.since(since)))
    }

    /// Nanoseconds that the thread has used so far.
    fn used(&self) -> u64 {
        self.statistics.as_ref().and_then(read).unwrap_or_else(|| {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
        })
    }
}

fn share(used: u64, elapsed: Duration) -> u32 {
    let elapsed = elapsed.as_nanos().max(1);
    (u128::from(used) * 1_000 / elapsed).min(1_000) as u32
}

fn read(statistics: &File) -> Option<u64> {
    let mut text = [0; 64];
    let length = statistics.read_at(&mut text, 0).ok()?;
    parse(core::str::from_utf8(&text[..length]).ok()?)
}

/// Work and waiting together.
fn parse(text: &str) -> Option<u64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (work, waiting) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    work.checked_add(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_two_numbers_and_what_follows() {
        assert_eq!(parse("83708 12 1\n"), Some(83_720));
        for text in ["", "83708", "x 1 1", "18446744073709551615 1 1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_share_is_of_the_time_that_has_passed() {
        let second = Duration::from_secs(1);
        assert_eq!(share(0, second), 0);
        assert_eq!(share(250_000_000, second), 250);
        assert_eq!(share(5_000_000_000, second), 1_000);
        assert_eq!(share(1, Duration::ZERO), 1_000);
    }

    #[test]
    fn work_is_seen_and_sleep_is_not_with_and_without_the_kernel_s_statistics() {
        for has_statistics in [true, false] {
            let mut meter = LoadMeter::default();
            assert_eq!(meter.measure(Instant(0)), None);
            if !has_statistics {
                meter.statistics = None;
                meter.last = Some((Instant(0), meter.used()));
            }
            assert_eq!(meter.measure(Instant(1_000_000)), None, "it is too soon");
            let begun = clock_gettime(ClockId::ThreadCPUTime);
            let at_work = || {
                let now = clock_gettime(ClockId::ThreadCPUTime);
                (now.tv_sec - begun.tv_sec) * 1_000_000_000 + now.tv_nsec - begun.tv_nsec
            };
            while at_work() < 20_000_000 {}
            // On a clock that says so; the machine may be busy, so it may have waited as well.
            let share = meter.measure(Instant(100_000_000)).unwrap();
            assert!(share >= 199, "{share}");
        }
    }
}
