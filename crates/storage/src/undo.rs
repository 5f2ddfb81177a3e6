//! How what a script has done to the keys in memory can be undone.
//!
//! Each step that changes the tables is noted, and undone in the reverse order. So keys come back to their positions: SCAN,
//! which counts positions down, misses none of them. No script removes all keys.

use crate::entry::{Entry, Key};
use std::collections::HashSet;
use syros_values::Garbage;

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum UndoStep {
    /// A key has been added at the end.
    Added(Key),
    /// A key has been this.
    Changed(Key, Entry),
    /// A key has been removed from this position, to which the last one has moved.
    Removed(usize, Key, Entry),
}

impl UndoStep {
    /// The step will not be undone.
    pub(crate) fn give_back(self, garbage: &mut Garbage) {
        match self {
            Self::Changed(_, entry) | Self::Removed(_, _, entry) => garbage.add(entry.value),
            Self::Added(_) => {}
        }
    }
}

/// The steps since a script began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo {
    steps: Vec<UndoStep>,
    /// Keys of which what they were is in a step, as long as they have not been removed since.
    noted: HashSet<Key>,
}

impl Undo {
    /// True if what a key is has to be noted before it changes.
    pub(crate) fn wants(&self, key: &[u8]) -> bool {
        !self.noted.contains(key)
    }

    /// A key is about to change.
    pub(crate) fn changed(&mut self, key: &[u8], entry: Entry) {
        self.noted.insert(Key::from_slice(key));
        self.steps.push(UndoStep::Changed(Key::from_slice(key), entry));
    }

    /// A key has been added at the end.
    pub(crate) fn added(&mut self, key: &[u8]) {
        self.noted.insert(Key::from_slice(key));
        self.steps.push(UndoStep::Added(Key::from_slice(key)));
    }

    /// A key has been removed from this position.
    pub(crate) fn removed(&mut self, position: usize, key: Key, entry: &Entry) {
        self.noted.remove(&key);
        self.steps.push(UndoStep::Removed(position, key, entry.clone()));
    }

    /// The last step that has not been taken.
    pub(crate) fn next_back(&mut self) -> Option<UndoStep> {
        self.steps.pop()
    }
}
