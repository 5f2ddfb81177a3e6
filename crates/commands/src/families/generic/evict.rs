//! The removal of keys for which there is no memory.

use crate::access::{EntryRef as _, KeysMut, Version};
use crate::arguments::Arguments;
use crate::encoding::{Flag, List, Unsigned, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_integer};

/// Removes keys because the data takes more memory than it may. No client can send it: the node of the leader does.
///
/// It answers, in the order of the keys, 1 for each that it has removed and 0 for the others. A key stays if it has been
/// changed since it was chosen, as far as versions are recorded, or is not one that the policy may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evict<'a> {
    /// The keys were chosen when this entry was the last one that had been executed.
    pub chosen_after: u64,
    /// Keys without an expiry stay.
    pub of_expiring: bool,
    /// The keys.
    pub keys: Arguments<'a>,
}

fields!(Evict<'a> = 376 { chosen_after: Unsigned, of_expiring: Flag, keys: List<1> });

impl Evict<'_> {
    /// Most keys that one removes: what several keys are named in keeps updates of all of them waiting.
    pub const KEYS_MAX: usize = 64;

    /// True if a key that exists is to go.
    fn removes<K: KeysMut>(&self, keys: &K, key: &[u8]) -> bool {
        let is_changed = || match keys.version(key) {
            Version::UNKNOWN => false,
            version => version.0 > Version::of_present(self.chosen_after).0,
        };
        let found = keys.get(key);
        found.is_some_and(|found| !self.of_expiring || found.expiry().is_some()) && !is_changed()
    }
}

impl<'a> Definition<'a> for Evict<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl<'a> UpdateCommand<'a> for Evict<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_array(reply, self.keys.len());
        for key in self.keys {
            let is_removed = self.removes(keys, key);
            if is_removed {
                keys.evict(key);
            }
            put_integer(reply, i64::from(is_removed));
        }
        Ok(())
    }
}
