//! How far a long comparison is: a line on the terminal that changes; one line for each run where there is
//! none.

use std::cell::Cell;
use std::fmt::Display;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use syros_bench::compare::Sample;

/// A run in which another server came to lead is made again, so often.
pub(in crate::bench) const REPETITIONS_MAX: usize = 3;

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

    /// Makes a run that takes so long at most, and shows how far it is; once more, a few times, if it failed for something
    /// that passes.
    pub(in crate::bench) fn measure<E: Display>(
        &self,
        name: &str,
        longest: Duration,
        is_interrupted: &dyn Fn() -> bool,
        is_passing: impl Fn(&E) -> bool,
        mut run: impl FnMut(&dyn Fn(u64) -> bool) -> Result<Sample, E>,
    ) -> Result<Sample, String> {
        let mut repetitions = 0;
        loop {
            self.run(name);
            let is_over = |_answered: u64| {
                self.goes_on(longest);
                is_interrupted()
            };
            match run(&is_over) {
                Ok(sample) => {
                    self.ran(longest);
                    return Ok(sample);
                }
                Err(error) if is_passing(&error) && repetitions < REPETITIONS_MAX => {
                    repetitions += 1;
                    self.warns(&format!("{name}: once more: {error}"));
                }
                Err(error) => return Err(format!("{name}: {error}")),
            }
        }
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
