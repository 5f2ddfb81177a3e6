//! What commands need of a store of keys. Commands are executed over these traits; engines implement them.

mod databases;
mod event;
mod hidden;
mod names;
mod operand;
mod uses;
mod version;

pub use databases::{Databases, DatabasesMut};
pub use event::{Announcement, KeyEvent, KeyEventClass, Notification, ScriptMessage};
pub use hidden::{is_hidden, waiting_key};
pub use names::Names;
pub use operand::Operand;
pub use uses::Uses;
pub use version::Version;

use core::num::NonZeroU64;
use core::ops::ControlFlow;
use syros_types::{Prng, SubscriptionKind};
use syros_values::{Collection, Hash, Kind, List, Set, Stream, Value, WrongType};

/// Expiry in milliseconds since the Unix epoch.
pub type Expiry = Option<NonZeroU64>;

/// A key's value and expiry, as they were found.
pub trait EntryRef {
    /// What kind of value it is.
    fn kind(&self) -> Kind;

    /// The bytes of a string.
    ///
    /// # Errors
    /// If the value is of another kind.
    fn string(&self) -> Result<&[u8], WrongType>;

    /// A collection.
    ///
    /// # Errors
    /// If the value is of another kind.
    fn collection<C: Collection>(&self) -> Result<&C, WrongType>;

    /// The fields of a hash, and those that have expired: see [`Hash::at`].
    ///
    /// # Errors
    /// If the value is of another kind.
    fn hash(&self) -> Result<&Hash, WrongType> {
        self.collection()
    }

    /// The elements of a list.
    ///
    /// # Errors
    /// If the value is of another kind.
    fn list(&self) -> Result<&List, WrongType> {
        self.collection()
    }

    /// The members of a set.
    ///
    /// # Errors
    /// If the value is of another kind.
    fn set(&self) -> Result<&Set, WrongType> {
        self.collection()
    }

    /// The entries and groups of a stream.
    ///
    /// # Errors
    /// If the value is of another kind.
    fn stream(&self) -> Result<&Stream, WrongType> {
        self.collection()
    }

    /// The value itself: a copy of a string, a clone of a collection, which costs nothing to speak of.
    fn to_value(&self) -> Value;

    /// The expiry.
    fn expiry(&self) -> Expiry;

    /// True if it may change by itself: it expires, or a field of it does.
    fn is_expiring(&self) -> bool {
        self.expiry().is_some() || (self.kind() == Kind::Hash && self.hash().is_ok_and(Hash::is_expiring))
    }

    /// About how many bytes the value takes where it is kept, and what is kept of the key beside its name and its value.
    fn memory_bytes(&self) -> usize {
        KEY_BYTES + self.string().map_or_else(|_| self.to_value().memory_bytes(), <[u8]>::len)
    }

    /// About the same, but a function of what the value is at this time.
    fn element_bytes(&self, now_ms: u64) -> usize {
        KEY_BYTES + self.string().map_or_else(|_| self.to_value().element_bytes(now_ms), <[u8]>::len)
    }
}

/// What a key takes beside its name and its value, about.
const KEY_BYTES: usize = 64;

/// Keys of one database with values and expiries, in some order of their own, to be read. A key that has expired does not exist.
pub trait Keys {
    /// What [`Keys::get`] finds.
    type EntryRef<'a>: EntryRef
    where
        Self: 'a;

    /// The key's value and expiry, if it exists.
    fn get(&self, key: &[u8]) -> Option<Self::EntryRef<'_>>;

    /// Log time, in milliseconds: what expires then or before is gone.
    fn time_ms(&self) -> u64;

    /// The key's version; [`Version::UNKNOWN`] as long as none are recorded.
    fn version(&self, key: &[u8]) -> Version;

    /// What is known of how a key that exists is used; `now_ms` is the present.
    fn uses(&self, _key: &[u8], _now_ms: u64) -> Uses {
        Uses::Unknown
    }

    /// Number of keys.
    fn count(&self) -> usize {
        let mut count = 0;
        self.each(|_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// Visits the keys in their order, until `visit` breaks off.
    fn each(&self, visit: impl FnMut(&[u8]) -> ControlFlow<()>);

    /// Visits about `count` keys from `cursor` on with the kinds of their values, fewer if `visit` breaks off, and
    /// returns the cursor of the next ones; 0 is both the beginning and the end. A key that exists from the beginning to
    /// the end is visited, whatever happens to others in between and whatever values it gets. A key that one operation of
    /// a body removes and the next one adds does not exist all the time.
    fn scan(&self, cursor: u64, count: u64, visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>) -> u64;

    /// Is called before something is drawn by chance from the elements of a key, or is counted up to the present. Both come
    /// from the time of execution, so an answer that is wanted before that is not known.
    fn before_draw(&self) {}

    /// Visits a key drawn by chance; false if there is none.
    fn random(&self, prng: &mut Prng, visit: impl FnOnce(&[u8])) -> bool;
}

/// Keys of one database that can be changed.
pub trait KeysMut: Keys {
    /// Gives a key a string and an expiry, whatever kind of value it had.
    fn set(&mut self, key: &[u8], value: &[u8], expiry: Expiry);

    /// Gives a key a collection, which has elements or is a stream, and no expiry, whatever kind of value it had.
    fn set_collection<C: Collection>(&mut self, key: &[u8], collection: C);

    /// Changes a string; the expiry stays. `None`, and nothing happens, if there is no such key. If `change`
    /// fails it must have left the value as it was.
    ///
    /// # Errors
    /// If the value is of another kind; nothing happens then.
    fn edit<R>(&mut self, key: &[u8], change: impl FnOnce(&mut Vec<u8>) -> R)
    -> Result<Option<R>, WrongType>;

    /// Changes a collection; the expiry stays. Of a key that does not exist it is one without elements and expiry. A key
    /// whose collection has no elements afterwards does not exist, unless it is a stream that was changed, now or before. If `change` fails it must have left the collection as
    /// it was.
    ///
    /// # Errors
    /// If the value is of another kind; nothing happens then.
    fn edit_collection<C: Collection, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, WrongType>;

    /// Has [`Operand::change`], or [`Operand::begin`], happen to the key at some time before it is read, whether
    /// it fails or not; `now_ms` decides whether the key exists. False if that is not cheaper than to read the
    /// old value; nothing happens then.
    fn merge(&mut self, _key: &[u8], _now_ms: u64, _operand: Operand<'_>) -> bool {
        false
    }

    /// Changes the expiry of a key, if it exists.
    fn set_expiry(&mut self, key: &[u8], expiry: Expiry);

    /// Removes a key, if it exists.
    fn remove(&mut self, key: &[u8]);

    /// Gives value and expiry of a key that exists to another one, which may exist.
    fn rename(&mut self, from: &[u8], to: &[u8]);

    /// Removes all keys.
    fn clear(&mut self);

    /// True if it is asked what happens to keys: only then [`KeysMut::notify`] does something.
    fn notifies(&self) -> bool {
        false
    }

    /// Tells of something that an update has done to a key. What is undone has not been told of.
    fn notify(&mut self, _event: KeyEvent, _key: &[u8]) {}

    /// Publishes a message of a script that is executed and is not undone. Unlike events of keys, messages are collected
    /// whether it is asked what happens to keys or not.
    fn publish(&mut self, _kind: SubscriptionKind, _channel: &[u8], _payload: &[u8]) {}

    /// Tells that elements of a key's collection have been removed, and that the key is gone if they were the last ones.
    fn notify_removal(&mut self, event: KeyEvent, key: &[u8]) {
        if self.notifies() {
            self.notify(event, key);
            if self.get(key).is_none() {
                self.notify(KeyEvent::Del, key);
            }
        }
    }

    /// Removes a key, and tells of it if it existed.
    fn delete(&mut self, key: &[u8]) {
        if self.notifies() && self.get(key).is_some() {
            self.notify(KeyEvent::Del, key);
        }
        self.remove(key);
    }

    /// Removes a key that exists because the data takes too much memory, and tells of it.
    fn evict(&mut self, key: &[u8]) {
        self.notify(KeyEvent::Evicted, key);
        self.remove(key);
    }

    /// From now on, what is done to keys of this database can be undone. Ends with [`KeysMut::end_undo`] of each database
    /// for which it was called, before the next entry.
    fn begin_undo(&mut self);

    /// What has been done since [`KeysMut::begin_undo`] stays, or is undone: then keys, values, expiries, versions and the
    /// order of keys are as they were. That keys had been removed may still be recorded.
    fn end_undo(&mut self, keeps: bool);
}
