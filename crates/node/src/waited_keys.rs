//! Which keys are waited for at a node, and which of these its engine has executed something on.

use std::collections::{BTreeMap, BTreeSet};

use syros_protocol::message::LogEntry;
use syros_types::Footprint;

/// The keys that commands wait for at a node, by their hashes. The front end says which; what executes the log says what
/// has been touched of them.
#[derive(Clone, Debug, Default)]
pub struct WaitedKeys {
    /// How many wait for each.
    waited: BTreeMap<u64, u32>,
    touched: BTreeSet<u64>,
    /// Anything may have been touched.
    are_all_touched: bool,
}

impl WaitedKeys {
    /// One more waits for a key.
    pub fn add(&mut self, hash: u64) {
        *self.waited.entry(hash).or_default() += 1;
    }

    /// One of those that wait for a key does so no longer.
    pub fn remove(&mut self, hash: u64) {
        if let Some(count) = self.waited.get_mut(&hash) {
            *count -= 1;
            if *count == 0 {
                self.waited.remove(&hash);
                self.touched.remove(&hash);
            }
        }
    }

    /// True if nothing is waited for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waited.is_empty()
    }

    /// An entry has been executed.
    pub fn on_executed(&mut self, entry: &LogEntry) {
        entry.updates().iter().for_each(|update| self.touch(&update.footprint));
    }

    /// An update of these keys has been executed.
    pub(crate) fn touch(&mut self, footprint: &Footprint) {
        match footprint.keys() {
            None => self.are_all_touched = true,
            Some(keys) => {
                self.touched.extend(keys.iter().filter(|hash| self.waited.contains_key(hash)));
            }
        }
    }

    /// The state is another one.
    pub fn on_state_replaced(&mut self) {
        self.are_all_touched = true;
    }

    /// The keys that have been touched since this was asked last.
    pub fn take_touched(&mut self) -> BTreeSet<u64> {
        if std::mem::take(&mut self.are_all_touched) {
            self.touched.clear();
            return self.waited.keys().copied().collect();
        }
        std::mem::take(&mut self.touched)
    }
}
