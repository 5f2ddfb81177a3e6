//! What a model checker sees of a history.

use super::ChangeHistory;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

impl ChangeHistory {
    pub(crate) fn fingerprint(&self, hasher: &mut impl Hasher) {
        let Self { keys, all, newest, changes, trimmed } = self;
        let mut keys: Vec<_> = keys.iter().collect();
        keys.sort_unstable();
        (keys, all, newest, changes, trimmed).hash(hasher);
    }
}
