//! What happened, as one running hash always and as lines of text on demand.

use crate::clock::VirtualTime;
use std::fmt;
use syros_types::key_hash;

/// Most lines kept: a run away world must not fill the memory with its own diary.
const LINES_MAX: usize = 4_000_000;

/// The record of a run.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace that keeps text only if `text` is true.
    #[must_use]
    pub fn new(text: bool) -> Self {
        Self { hash: 0, lines: text.then(Vec::new) }
    }

    /// Folds a number into the hash.
    pub const fn fold(&mut self, value: u64) {
        self.hash = syros_types::fold(self.hash ^ value, 0x9e37_79b9_7f4a_7c15) ^ value.rotate_left(29);
    }

    /// Folds bytes into the hash.
    pub fn fold_bytes(&mut self, bytes: &[u8]) {
        self.fold(key_hash(bytes));
    }

    /// True if text is kept.
    #[must_use]
    pub const fn is_verbose(&self) -> bool {
        self.lines.is_some()
    }

    /// Adds a line of text, if text is kept.
    pub fn line(&mut self, at: VirtualTime, text: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines
            && lines.len() < LINES_MAX
        {
            lines.push(format!("{:>12.3} ms  {text}", at as f64 / 1e6));
        }
    }

    /// The hash of everything folded so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// The text, if it was kept.
    #[must_use]
    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// Bytes as text, for traces.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}
