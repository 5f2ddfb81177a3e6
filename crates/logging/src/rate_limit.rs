//! Neither what strangers cause nor trouble that lasts may fill the disk: each call site writes a few lines in a window.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing::callsite::Identifier;

/// How many lines one call site may write in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Most lines in a window; 0 is no limit.
    ///
    /// 20 by default: one incident of the largest group makes a line for each of the 8 other members at one call site, and
    /// two incidents a minute are shown whole. 20 lines of 300 bytes a minute are 9 MB a day and call site; the others' bytes
    /// reach fewer than ten call sites.
    pub lines: u32,
    /// Length of a window, which begins with a call site's first line after the last one.
    pub window: Duration,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { lines: 20, window: Duration::from_secs(60) }
    }
}

/// A place in the code that writes lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallSite {
    /// It uses `tracing`.
    Event(Identifier),
    /// It uses `log`: module and line.
    Record(&'static str, u32),
}

/// What a call site has done in its window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    ends: Duration,
    lines: u32,
    suppressed: u64,
}

/// Counts the lines of each call site.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: RateLimit,
    /// As many as the program has call sites, at most.
    windows: Mutex<HashMap<CallSite, Window>>,
}

impl Limiter {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self { limit, windows: Mutex::default() }
    }

    /// None: the call site must not write this line. Otherwise: how many lines it has left out since its last one.
    pub(crate) fn admit(&self, site: CallSite, now: Duration) -> Option<u64> {
        if self.limit.lines == 0 {
            return Some(0);
        }
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.entry(site).or_default();
        let mut before = 0;
        if now >= window.ends {
            before = window.suppressed;
            *window = Window { ends: now + self.limit.window, ..Window::default() };
        }
        if window.lines == self.limit.lines {
            window.suppressed += 1;
            return None;
        }
        window.lines += 1;
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limiter(lines: u32) -> Limiter {
        Limiter::new(RateLimit { lines, window: 60 * SECOND })
    }

    #[test]
    fn a_call_site_has_so_many_lines_in_a_window_and_then_says_how_many_it_left_out() {
        let limiter = limiter(3);
        let admit = |line, now| limiter.admit(CallSite::Record("module", line), now);
        let admitted: Vec<_> = (0..1000).filter_map(|_| admit(1, 5 * SECOND)).collect();
        assert_eq!(admitted, [0, 0, 0]);
        assert_eq!(admit(2, 5 * SECOND), Some(0), "another call site has lines of its own");
        assert_eq!(admit(1, 64 * SECOND), None);
        assert_eq!(admit(1, 65 * SECOND), Some(998));
        assert_eq!(admit(1, 65 * SECOND), Some(0), "they are told once");
    }

    #[test]
    fn nothing_that_lasts_writes_more_than_the_limit() {
        let limiter = limiter(20);
        // A day of ten lines a second.
        let site = || CallSite::Record("module", 1);
        let tenths = 0..10 * 86_400;
        let written = tenths.filter_map(|tenth| limiter.admit(site(), tenth * SECOND / 10)).count();
        assert_eq!(written, 20 * 24 * 60);
    }

    #[test]
    fn no_limit_is_none() {
        let limiter = limiter(0);
        assert!((0..1000).all(|_| limiter.admit(CallSite::Record("module", 1), SECOND) == Some(0)));
    }
}
