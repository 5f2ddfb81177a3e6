//! How far something has come that takes its time, on standard error.

use std::time::{Duration, Instant};

/// How often it is told.
const INTERVAL: Duration = Duration::from_secs(2);

/// Something that goes through so many bytes.
pub(crate) struct Progress {
    what: &'static str,
    bytes: u64,
    began: Instant,
    told: Instant,
}

impl Progress {
    /// Nothing has been done yet; `what` is the participle of what is done.
    pub(crate) fn new(what: &'static str, bytes: u64) -> Self {
        let now = Instant::now();
        Self { what, bytes, began: now, told: now }
    }

    /// So many bytes are done. Says so now and then.
    pub(crate) fn tell(&mut self, done: u64) {
        if self.told.elapsed() < INTERVAL {
            return;
        }
        self.told = Instant::now();
        let per_second = (done as f64 / self.began.elapsed().as_secs_f64()) as u64;
        syros_cli::say!(
            "syros: {} {} of {}, {} a second",
            self.what,
            mebibytes(done),
            mebibytes(self.bytes),
            mebibytes(per_second)
        );
    }
}

/// A number of bytes, for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
