//! Neither log lines that strangers cause nor a trouble that lasts may fill the log.

use std::fmt;
use std::time::Duration;

use syros_types::Instant;

/// Lines in one period; the rest is counted.
const LINES_MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(60);

/// How often a trouble of our own that lasts is complained of.
pub(crate) const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// Lets through a few lines per period.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    period_ends: Instant,
    lines: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Logs a warning, unless there were too many lately.
    pub(crate) fn warn(&mut self, now: Instant, line: fmt::Arguments<'_>) {
        if self.allows(now) {
            log::warn!("{line}");
        }
    }

    fn allows(&mut self, now: Instant) -> bool {
        if now >= self.period_ends {
            if self.suppressed > 0 {
                log::warn!("{} further lines like these were left out", self.suppressed);
            }
            *self = Self { period_ends: now.after(PERIOD), lines: 0, suppressed: 0 };
        }
        self.lines += 1;
        if self.lines > LINES_MAX {
            self.suppressed += 1;
        }
        self.lines <= LINES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lines_per_period() {
        let mut limit = LogLimit::default();
        let start = Instant(5);
        let allowed = (0..1000).filter(|_| limit.allows(start)).count();
        assert_eq!((allowed, limit.suppressed), (LINES_MAX as usize, 990));
        assert!(limit.allows(start.after(PERIOD)));
    }
}
