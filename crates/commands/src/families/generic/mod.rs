//! Commands on keys of any type.

pub(crate) mod blind;
pub(crate) mod copy;
pub(crate) mod del;
pub(crate) mod dump;
pub(crate) mod evict;
pub(crate) mod exists;
pub(crate) mod expire;
pub(crate) mod key_type;
pub(crate) mod keys;
pub(crate) mod memory_usage;
pub(crate) mod move_key;
pub(crate) mod object;
pub(crate) mod persist;
pub(crate) mod randomkey;
pub(crate) mod rename;
pub(crate) mod restore;
pub(crate) mod scan;
pub(crate) mod sort;
mod sort_options;
pub(crate) mod ttl;

use super::specification::CommandSpec;
use crate::access::{EntryRef as _, Expiry, KeyEvent, KeysMut};
use syros_values::{Collection, Value};

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "generic", ..CommandSpec::ROW };

/// Gives a key a value of any kind and an expiry, whatever it had.
fn store_value<K: KeysMut>(keys: &mut K, key: &[u8], value: Value, expiry: Expiry) {
    match value {
        Value::String(string) => keys.set(key, &string, expiry),
        Value::Hash(hash) => store_collection(keys, key, hash, expiry),
        Value::List(list) => store_collection(keys, key, list, expiry),
        Value::Set(set) => store_collection(keys, key, set, expiry),
        Value::SortedSet(set) => store_collection(keys, key, set, expiry),
        Value::Stream(stream) => store_collection(keys, key, stream, expiry),
    }
}

fn store_collection<K: KeysMut, C: Collection>(keys: &mut K, key: &[u8], collection: C, expiry: Expiry) {
    keys.set_collection(key, collection);
    if expiry.is_some() {
        keys.set_expiry(key, expiry);
    }
}

/// Tells that a key is new which is about to be given a value that it gets whatever it had: in Redis it goes, and another one
/// comes. Of a key that does not exist, the engine tells.
fn notify_replacement<K: KeysMut>(keys: &mut K, key: &[u8]) {
    if keys.notifies() && keys.get(key).is_some() {
        keys.notify(KeyEvent::New, key);
    }
}

/// Takes the expiry of a key away; false if it has none.
pub(super) fn persist<K: KeysMut>(keys: &mut K, key: &[u8]) -> bool {
    let expires = keys.get(key).is_some_and(|found| found.expiry().is_some());
    if expires {
        keys.set_expiry(key, None);
        keys.notify(KeyEvent::Persist, key);
    }
    expires
}
