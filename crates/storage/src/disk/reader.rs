//! Reads of what has been executed, from any thread.

use super::layout::{
    Changes, Parsed, Space, Stored, cursor_of, data_begin, data_from, data_key, is_long, parse_record,
    position, position_of,
};
use super::pages::{Place, paged, reply_unless_lost};
use super::{Shared, overlay, visit_record};
use crate::entry::earlier;
use crate::evaluate::evaluate;
use crate::memory::moment;
use crate::removals::part_of;
use crate::stamp::Stamp;
use crate::store::Store;
use core::cell::{Cell, OnceCell};
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use std::sync::Arc;
use syros_commands::Programs;
use syros_commands::access::{Databases, EntryRef, Expiry, Keys, Version};
use syros_commands::execution;
use syros_types::{Database, Prng, WallTime};
use syros_values::{Collection, Kind, Moments, Paged, PagedHead, Value, WrongType};

/// Reads what has been executed up to log time.
#[derive(Debug)]
pub struct Reader<S: Store> {
    shared: Arc<Shared<S>>,
    /// The one that its keys are of.
    database: Cell<Database>,
    /// Log time when the read began, in milliseconds.
    now_ms: Cell<u64>,
    /// The first expiry of what the last read has seen, in milliseconds.
    first_expiry: Cell<Option<NonZeroU64>>,
}

/// A record that was read.
#[derive(Debug)]
pub struct Read<V> {
    record: V,
    parsed: Parsed,
    /// Its pages, if it is a collection that has some.
    paged: Option<Paged>,
    /// The collection, once somebody has asked for it.
    collection: OnceCell<Value>,
}

impl<V: AsRef<[u8]>> Read<V> {
    /// The record of this key, unless it has expired. `paged` finds its pages.
    pub(super) fn new(
        key: &[u8],
        record: V,
        now_ms: u64,
        paged: impl FnOnce(PagedHead) -> Paged,
    ) -> Option<Self> {
        let parsed = parse_record(record.as_ref(), is_long(key));
        if parsed.is_gone(record.as_ref(), now_ms) {
            return None;
        }
        let paged = parsed.value(record.as_ref()).pages().map(paged);
        Some(Self { record, parsed, paged, collection: OnceCell::new() })
    }

    /// Its pages, if it is a collection that has some.
    pub(super) const fn paged(&self) -> Option<&Paged> {
        self.paged.as_ref()
    }

    fn value(&self) -> Value {
        self.stored().value(self.paged.as_ref().map(|paged| &paged.source))
    }

    /// When it, or a field that is there at this time, is gone.
    fn next_change(&self, now_ms: u64) -> Expiry {
        let first = self.stored().moments().first;
        let is_due = first.is_some_and(|first| first.get() <= now_ms);
        let next = if is_due { self.to_value().next_expiry(now_ms) } else { first };
        earlier(self.expiry(), next)
    }

    /// When it, or a field of it, is gone.
    pub(super) fn moments(&self) -> Moments {
        self.parsed.moments(self.record.as_ref())
    }

    /// What is kept of the key beside its value.
    pub(super) fn stamp(&self) -> Stamp {
        self.parsed.stamp
    }

    /// The value as it is stored.
    pub(super) fn stored(&self) -> Stored<'_> {
        self.parsed.value(self.record.as_ref())
    }
}

impl<V: AsRef<[u8]>> EntryRef for Read<V> {
    fn kind(&self) -> Kind {
        self.stored().kind()
    }

    fn string(&self) -> Result<&[u8], WrongType> {
        if let Stored::String(string) = self.stored() { Ok(string) } else { Err(WrongType) }
    }

    fn collection<C: Collection>(&self) -> Result<&C, WrongType> {
        match self.stored() {
            Stored::String(_) => Err(WrongType),
            Stored::Collection(_) | Stored::Paged(..) => {
                self.collection.get_or_init(|| self.value()).collection()
            }
        }
    }

    fn to_value(&self) -> Value {
        self.collection.get().cloned().unwrap_or_else(|| self.value())
    }

    fn expiry(&self) -> Expiry {
        self.parsed.stamp.expiry
    }
}

impl<S: Store> Reader<S> {
    /// Reads from this engine.
    pub const fn new(shared: Arc<Shared<S>>) -> Self {
        let database = Cell::new(Database::FIRST);
        Self { shared, database, now_ms: Cell::new(0), first_expiry: Cell::new(None) }
    }

    /// See [`Engine::read`](crate::Engine::read).
    pub fn read(&mut self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        self.read_between(self.shared.time(), now, body, reply);
    }

    /// Reads at this log time, for whoever knows that all before it has been executed and committed.
    pub fn read_at(&mut self, time: WallTime, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        self.read_between(time.max(self.shared.time()), now, body, reply);
    }

    /// Reads at log time `time`, and counts what is left of expiries from `now` on.
    fn read_between(&mut self, time: WallTime, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        self.now_ms.set(time.as_millis());
        self.first_expiry.set(None);
        let _ = reply_unless_lost(reply, |reply| execution::read(self, now.max(time), body, reply));
    }

    /// See [`Engine::evaluate`](crate::Engine::evaluate); at this log time, for whoever knows that all before it has
    /// been executed and committed.
    pub fn evaluate(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>) -> bool {
        let time = time.max(self.shared.time());
        self.now_ms.set(time.as_millis());
        reply_unless_lost(reply, |reply| evaluate(self, time, body, reply)).unwrap_or(false)
    }

    /// The log time at which the first of the keys that the last read has seen expires; of any key, if it has not
    /// named what it wanted.
    pub fn first_expiry(&self) -> Option<WallTime> {
        self.first_expiry.get().map(moment)
    }

    fn saw(&self, expiry: Expiry) {
        if let Some(expiry) = expiry {
            let first = self.first_expiry.get().map_or(expiry, |first| first.min(expiry));
            self.first_expiry.set(Some(first));
        }
    }

    /// What was seen is about all keys.
    fn saw_all(&self) {
        self.saw(self.shared.next_change_ms());
    }
}

/// What of a store is looked at: all there is, or a view; where in it; and when, for what expires.
pub(super) struct ReadPoint<'a, S: Store> {
    pub(super) view: Option<&'a S::View>,
    /// What a lane has changed and not committed. Of no view.
    pub(super) changes: Option<&'a Changes>,
    pub(super) space: Space,
    pub(super) now_ms: u64,
}

impl<'a, S: Store> ReadPoint<'a, S> {
    /// The keys of a database as they are.
    pub(super) fn now(shared: &Shared<S>, database: Database, now_ms: u64) -> Self {
        Self { view: None, changes: None, space: shared.space(database), now_ms }
    }

    /// Visits the records of keys that exist, from a key of the store on: see [`Shared::walk`].
    fn walk(
        &self,
        shared: &Shared<S>,
        from: &[u8],
        mut visit: impl FnMut(u64, &[u8], Stored<'_>, Stamp) -> ControlFlow<()>,
    ) {
        let at = (self.space, self.now_ms);
        let walked = match self.changes.filter(|changes| !changes.is_empty()) {
            None => shared.walk(self.view, at, from, visit),
            Some(changes) => overlay::walk(&shared.store, changes.iter(), from, |key, record| {
                visit_record(at, key, record, &mut visit)
            }),
        };
        shared.succeeded(walked);
    }
}

/// The state at one moment, to be read at leisure while the engine goes on: for reads that concern all keys, which
/// may take long.
pub struct ReadView<S: Store> {
    view: Arc<S::View>,
    spaces: [Space; Database::COUNT],
    time: WallTime,
    next_expiry: Expiry,
    programs: Programs,
}

impl<S: Store> core::fmt::Debug for ReadView<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReadView").field("time", &self.time).finish_non_exhaustive()
    }
}

impl<S: Store> ReadView<S> {
    /// The state as it is now, at this log time. No lane may be at work, and nothing uncommitted.
    pub fn new(shared: &Shared<S>, time: WallTime) -> Self {
        let next_expiry = shared.next_change_ms();
        let time = time.max(shared.time());
        let programs = shared.programs();
        Self { view: Arc::new(shared.store.view()), spaces: shared.spaces(), time, next_expiry, programs }
    }

    /// See [`Engine::read`](crate::Engine::read). Returns a time at which none of what was seen has expired before.
    pub fn read(
        &self,
        shared: &Arc<Shared<S>>,
        now: WallTime,
        body: &[u8],
        reply: &mut Vec<u8>,
    ) -> Option<WallTime> {
        let keys = KeysAt { shared, moment: self, database: Cell::new(Database::FIRST) };
        let _ = reply_unless_lost(reply, |reply| execution::read(&keys, now.max(self.time), body, reply));
        self.next_expiry.map(moment)
    }

    fn at(&self, database: Database) -> ReadPoint<'_, S> {
        let (view, space) = (Some(&*self.view), self.spaces[database.index()]);
        ReadPoint { view, changes: None, space, now_ms: self.time.as_millis() }
    }
}

/// The keys at a moment.
struct KeysAt<'a, S: Store> {
    shared: &'a Arc<Shared<S>>,
    moment: &'a ReadView<S>,
    /// The one that its keys are of.
    database: Cell<Database>,
}

impl<S: Store> KeysAt<'_, S> {
    fn at(&self) -> ReadPoint<'_, S> {
        self.moment.at(self.database.get())
    }
}

impl<S: Store> Databases for KeysAt<'_, S> {
    type Keys = Self;

    fn database(&self, database: Database) -> &Self {
        self.database.set(database);
        self
    }

    fn programs(&self) -> Programs {
        self.moment.programs.clone()
    }
}

impl<S: Store> Keys for KeysAt<'_, S> {
    type EntryRef<'a>
        = Read<S::Value>
    where
        Self: 'a;

    fn get(&self, key: &[u8]) -> Option<Read<S::Value>> {
        let (space, view) = (self.at().space, &self.moment.view);
        let found = self.shared.store.get_in(view, &data_key(space, key));
        Read::new(key, self.shared.succeeded(found)??, self.moment.time.as_millis(), |head| {
            paged(self.shared, space, head, Place::View(Arc::clone(view)))
        })
    }

    fn time_ms(&self) -> u64 {
        self.moment.time.as_millis()
    }

    /// Of a moment that is over nobody knows which entries had removed keys.
    fn version(&self, _key: &[u8]) -> Version {
        Version::UNKNOWN
    }

    fn each(&self, visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
        each(self.shared, &self.at(), visit);
    }

    fn scan(&self, cursor: u64, count: u64, visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>) -> u64 {
        scan(self.shared, &self.at(), cursor, count, visit)
    }

    fn random(&self, prng: &mut Prng, visit: impl FnOnce(&[u8])) -> bool {
        random(self.shared, &self.at(), prng, visit)
    }
}

/// Visits keys from a position on: see [`Keys::scan`].
pub(super) fn scan<S: Store>(
    shared: &Shared<S>,
    place: &ReadPoint<'_, S>,
    cursor: u64,
    count: u64,
    mut visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>,
) -> u64 {
    let (mut visited, mut last, mut enough, mut next) = (0, None, count == 0, 0);
    place.walk(shared, &data_from(place.space, position_of(cursor)), |at, key, value, _| {
        // Keys with one cursor cannot be told apart by it. 0 would be the end.
        let at = cursor_of(at);
        if enough && last != Some(at) && at != 0 {
            next = at;
            return ControlFlow::Break(());
        }
        last = Some(at);
        visited += 1;
        enough |= visit(key, value.kind()).is_break() || visited >= count;
        ControlFlow::Continue(())
    });
    next
}

/// Visits all keys: see [`Keys::each`].
pub(super) fn each<S: Store>(
    shared: &Shared<S>,
    place: &ReadPoint<'_, S>,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) {
    place.walk(shared, &data_begin(place.space), |_, key, _, _| visit(key));
}

/// Visits the first key from a place drawn by chance on: see [`Keys::random`].
pub(super) fn random<S: Store>(
    shared: &Shared<S>,
    place: &ReadPoint<'_, S>,
    prng: &mut Prng,
    visit: impl FnOnce(&[u8]),
) -> bool {
    let mut visit = Some(visit);
    for from in [position(&prng.next_u64().to_le_bytes()), 0] {
        scan(shared, place, from, 1, |key, _| {
            if let Some(visit) = visit.take() {
                visit(key);
            }
            ControlFlow::Break(())
        });
        if visit.is_none() {
            return true;
        }
    }
    false
}

impl<S: Store> Reader<S> {
    /// Its keys as they are.
    fn point(&self) -> ReadPoint<'_, S> {
        ReadPoint::now(&self.shared, self.database.get(), self.now_ms.get())
    }
}

impl<S: Store> Databases for Reader<S> {
    type Keys = Self;

    fn database(&self, database: Database) -> &Self {
        self.database.set(database);
        self
    }

    fn programs(&self) -> Programs {
        self.shared.programs()
    }
}

impl<S: Store> Keys for Reader<S> {
    type EntryRef<'a> = Read<S::Value>;

    fn get(&self, key: &[u8]) -> Option<Read<S::Value>> {
        let (space, stored) = self.shared.between_exchanges(|| {
            loop {
                let space = self.shared.space(self.database.get());
                let looked = self.shared.look(space, key);
                // Before the view was opened, a database may have been emptied and its pages forgotten, from then on they stay.
                let has_view = matches!(&looked, Ok(Some((_, Some(_)))));
                if !has_view || self.shared.space(self.database.get()) == space {
                    return (space, looked);
                }
            }
        });
        let (record, view) = self.shared.succeeded(stored)??;
        let read = Read::new(key, record, self.now_ms.get(), |head| {
            paged(&self.shared, space, head, view.map_or(Place::Now, Place::View))
        })?;
        self.saw(read.next_change(self.now_ms.get()));
        Some(read)
    }

    fn time_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// Lanes may go on meanwhile. A lane shows what it has removed after it has written that: so if the number that is read
    /// first is of an entry, the record is at least as new.
    fn version(&self, key: &[u8]) -> Version {
        if self.shared.recorded_from() == 0 {
            return Version::UNKNOWN;
        }
        let database = self.database.get();
        let removals = &self.shared.removals;
        let absent = Version::of_absent(removals.of(database, part_of(database, key)));
        let swapped = removals.swapped(database);
        self.get(key).map_or(absent, |found| found.stamp().version(swapped))
    }

    fn each(&self, visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
        self.saw_all();
        each(&self.shared, &self.point(), visit);
    }

    fn scan(&self, cursor: u64, count: u64, visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>) -> u64 {
        self.saw_all();
        scan(&self.shared, &self.point(), cursor, count, visit)
    }

    fn random(&self, prng: &mut Prng, visit: impl FnOnce(&[u8])) -> bool {
        self.saw_all();
        random(&self.shared, &self.point(), prng, visit)
    }
}
