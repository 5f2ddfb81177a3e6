//! How far a long comparison is: a line on the terminal that changes; one line for each run where there is
//! none.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How far a comparison is.
pub(in crate::bench) struct Progress {
    bar: ProgressBar,
    /// Position at which the present run began.
    begun: Cell<Duration>,
    since: Cell<Instant>,
}

/// The bar counts milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Progress {
    /// So much load is to come, in all; zero if that is not known.
    pub(in crate::bench) fn new(whole: Duration) -> Self {
        // On standard error, and only if that is a terminal.
        let bar = ProgressBar::new(millis(whole));
        let is_known = !whole.is_zero();
        let style = ProgressStyle::with_template(if is_known {
            "{bar:24} {percent:>3}% {prefix}: {wide_msg}"
        } else {
            "{wide_msg}"
        });
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, begun: Cell::new(Duration::ZERO), since: Cell::new(Instant::now()) }
    }

    /// Something begins that is no load.
    pub(in crate::bench) fn says(&self, text: &str) {
        if self.bar.is_hidden() {
            eprintln!("{text}");
        } else {
            self.bar.set_message(text.to_owned());
        }
    }

    /// There is no terminal: each thing that is said is a line.
    pub(in crate::bench) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Something that is to stay on the terminal.
    pub(in crate::bench) fn warns(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// A run begins.
    pub(in crate::bench) fn run(&self, text: &str) {
        self.since.set(Instant::now());
        self.says(text);
    }

    /// A run goes on.
    pub(in crate::bench) fn goes_on(&self, longest: Duration) {
        self.at(self.begun.get() + self.since.get().elapsed().min(longest));
    }

    /// A run has ended that was to take so long.
    pub(in crate::bench) fn ran(&self, duration: Duration) {
        self.begun.set(self.begun.get() + duration);
        self.at(self.begun.get());
    }

    fn at(&self, position: Duration) {
        self.bar.set_position(millis(position));
        // How long the load takes is known exactly; starting clusters and writing records come on top.
        let left = self.bar.length().unwrap_or_default().saturating_sub(millis(position)).div_ceil(1_000);
        self.bar.set_prefix(format!("{left} s of load left"));
    }

    /// Prints to standard output, above the line.
    pub(in crate::bench) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
