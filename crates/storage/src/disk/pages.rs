//! Pages of large collections: which collections have any, where they are read, and what becomes of those that nobody needs.
//!
//! **Where.** A collection that takes more than some KiB lies in pages of about 1 KiB: the nodes of its trees. Pages belong to a
//! *page set*, named by a number that it gets when the collection is put into pages, and keeps under whichever key. A command
//! reads and writes the pages on the way to the elements that it names.
//!
//! **Readers.** Lanes overwrite pages, so a reader of another thread reads a collection in a view of the store. A view that is
//! taken in the middle of a commit would see some of its pages. So a lane that commits pages holds the lock of their key's
//! stripe meanwhile, and a reader takes its view under that lock ([`Shared::look`]).
//!
//! **Garbage.** Setting a key does not read it. So that the pages of what is overwritten are found all the same, the
//! engine counts, for each part of all hashes, the keys whose collections have pages ([`PageCounts`]): where there is none,
//! nothing is looked up. Pages that nobody needs are noted in the store, each for itself and all below it, and are removed some
//! at a time while no lane is at work ([`Shared::purge`]).
//!
//! **Failures.** Trees have no way to say that a page cannot be had. Whoever reads one notes the failure, which ends the
//! engine, and unwinds to [`unless_lost`]; nothing that was executed since the last checkpoint counts then.

use super::Shared;
use super::layout::{
    Changes, Space, StoreKey, Stored, data_begin, data_key, dead_begin, dead_key, is_long, page_key,
    paged_record, pages_begin, parse_dead, parse_record, position, value_record,
};
use crate::stamp::Stamp;
use crate::store::{Change, Store, StoreError};
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use syros_types::Database;
use syros_types::varint::{put_varint, take_varint};
use syros_values::{Paged, PagedHead, Pages, Saved, Source, Subtree, Value, put_paged, take_paged};

/// Parts of all hashes for which collections with pages are counted, of each slot. More of them would spare some reads to those
/// who overwrite keys beside many large collections, and take more memory of everybody.
const PARTS: usize = 1024;

/// Locks of keys whose pages are committed.
const STRIPES: usize = 64;

/// Pages with all below them that are removed at a time: each has 64 pages below it at most, so lanes wait a millisecond or two.
const BURIED_MAX: usize = 16;

/// A page cannot be had, and that is noted.
struct Lost;

/// Does what may have to read pages. `None` if one cannot be had.
pub(super) fn unless_lost<R>(work: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Lost>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Does what appends to a reply and may have to read pages. `None`, and nothing is appended, if one cannot be had: the engine has
/// failed then, and nobody is told what it says.
pub(super) fn reply_unless_lost<R>(reply: &mut Vec<u8>, work: impl FnOnce(&mut Vec<u8>) -> R) -> Option<R> {
    let length = reply.len();
    let done = unless_lost(|| work(reply));
    if done.is_none() {
        reply.truncate(length);
    }
    done
}

/// Where pages are read.
pub(super) enum Place<S: Store> {
    /// As they are, for whoever knows that nobody changes them.
    Now,
    /// As they are but for these changes.
    Uncommitted(Arc<Changes>),
    /// As they were.
    View(Arc<S::View>),
}

/// The pages of a page set.
struct StoredPages<S: Store> {
    shared: Arc<Shared<S>>,
    space: Space,
    page_set: u64,
    place: Place<S>,
}

impl<S: Store> StoredPages<S> {
    fn lost(&self, error: StoreError) -> ! {
        self.shared.fail(error);
        resume_unwind(Box::new(Lost))
    }
}

impl<S: Store> Pages for StoredPages<S> {
    fn read(&self, number: u64, see: &mut dyn FnMut(&[u8])) {
        let key = page_key(self.space, self.page_set, number);
        let store = &self.shared.store;
        let found = match &self.place {
            Place::Now => store.get(&key),
            Place::View(view) => store.get_in(view, &key),
            Place::Uncommitted(changes) => match changes.get(&key) {
                Some(Change::Put(page)) => return see(page),
                Some(Change::Delete | Change::Merge(_)) => Ok(None),
                None => store.get(&key),
            },
        };
        match found {
            Ok(Some(page)) => see(page.as_ref()),
            Ok(None) => self.damaged(number),
            Err(error) => self.lost(error),
        }
    }

    fn damaged(&self, number: u64) -> ! {
        let problem = format!("page {number} of collection {} is not what was written", self.page_set);
        self.lost(StoreError::damaged("read a collection", problem))
    }
}

/// A collection with this head, whose pages are read there.
pub(super) fn paged<S: Store>(
    shared: &Arc<Shared<S>>,
    space: Space,
    head: PagedHead,
    place: Place<S>,
) -> Paged {
    let (shared, page_set) = (Arc::clone(shared), head.page_set);
    Paged { head, source: Source::new(Box::new(StoredPages { shared, space, page_set, place })) }
}

/// A record, with the view in which its pages are what it says, if it has any.
type Looked<S> = (<S as Store>::Value, Option<Arc<<S as Store>::View>>);

/// What becomes of the pages of a collection that nobody needs any more. `encoded` is what was stored of it.
pub(super) fn give_back(space: Space, old: Paged, encoded: &[u8]) -> Vec<(StoreKey, Change)> {
    // The roots are known from then on.
    let _ = take_paged(encoded, &old.source);
    page_changes(space, old.head.page_set, old.give_back())
}

/// A collection as it is to be stored.
pub(super) struct Recorded {
    pub(super) record: Vec<u8>,
    /// What becomes of its pages.
    pub(super) pages: Vec<(StoreKey, Change)>,
    pub(super) is_paged: bool,
}

/// Puts a collection into pages if it is large, where it may have some already. One that has shrunk by half leaves them.
pub(super) fn record_collection<S: Store>(
    (space, key): (Space, &[u8]),
    stamp: Stamp,
    value: &Value,
    old: Option<Paged>,
    page_set: impl FnOnce() -> u64,
) -> Recorded {
    let limit = if old.is_some() { S::PAGED_FROM / 2 } else { S::PAGED_FROM };
    if value.memory_bytes() >= limit {
        let mut encoded = Vec::new();
        if let Some((page_set, saved)) = put_paged(value, old.as_ref(), page_set, &mut encoded) {
            let pages = page_changes(space, page_set, saved);
            return Recorded { record: paged_record(key, stamp, &encoded), pages, is_paged: true };
        }
    }
    let record = value_record(key, stamp, value);
    let pages = old.map_or_else(Vec::new, |old| page_changes(space, old.head.page_set, old.give_back()));
    Recorded { record, pages, is_paged: false }
}

/// What is to be done as changes of the store.
fn page_changes(space: Space, page_set: u64, saved: Saved) -> Vec<(StoreKey, Change)> {
    let page = |number| page_key(space, page_set, number);
    let written = saved.written.into_iter().map(|(number, bytes)| (page(number), Change::Put(bytes)));
    let deleted = saved.deleted.into_iter().map(|number| (page(number), Change::Delete));
    let dead = saved.dead.into_iter().map(|dead| bury(space, page_set, dead));
    written.chain(deleted).chain(dead).collect()
}

/// Notes a page that nobody needs, nor anything below it.
fn bury(space: Space, page_set: u64, dead: Subtree) -> (StoreKey, Change) {
    (dead_key(space, page_set, dead.number), Change::Put(vec![dead.height]))
}

/// How many keys have collections with pages, by the parts of all hashes.
pub(super) struct PageCounts(Box<[AtomicU32]>);

impl fmt::Debug for PageCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageCounts").field("keys", &self.iter().map(|(_, count)| count).sum::<u32>()).finish()
    }
}

impl Default for PageCounts {
    fn default() -> Self {
        Self((0..PARTS * Database::COUNT).map(|_| AtomicU32::new(0)).collect())
    }
}

impl PageCounts {
    fn of(&self, space: Space, key: &[u8]) -> &AtomicU32 {
        &self.0[usize::from(space.slot) * PARTS + position(key) as usize % PARTS]
    }

    /// False if no key like this one has a collection with pages.
    pub(super) fn may_have(&self, space: Space, key: &[u8]) -> bool {
        self.of(space, key).load(Ordering::Acquire) > 0
    }

    /// A key has a collection with pages from now on.
    pub(super) fn add(&self, space: Space, key: &[u8]) {
        self.of(space, key).fetch_add(1, Ordering::AcqRel);
    }

    /// A key has none any more.
    pub(super) fn subtract(&self, space: Space, key: &[u8]) {
        let _ = self
            .of(space, key)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    }

    /// No key of a slot has one.
    pub(super) fn clear(&self, slot: u8) {
        let first = usize::from(slot) * PARTS;
        self.0[first..first + PARTS].iter().for_each(|count| count.store(0, Ordering::Release));
    }

    fn iter(&self) -> impl Iterator<Item = (usize, u32)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Acquire)).enumerate();
        counts.filter(|(_, count)| *count > 0)
    }
}

/// What a store knows of pages, whoever reads and writes them.
#[derive(Debug)]
pub(super) struct PageState {
    pub(super) counts: PageCounts,
    /// What the next page set is called; 1 if there has never been one.
    pub(super) next_page_set: AtomicU64,
    /// There may be pages that nobody needs.
    pub(super) has_dead: AtomicBool,
    /// Behind which of them the next ones are looked for, unless that is from the first one on: what has been removed before is
    /// passed over once, and not at each step.
    passed: Mutex<Option<(Space, StoreKey)>>,
    stripes: [RwLock<()>; STRIPES],
}

impl Default for PageState {
    fn default() -> Self {
        Self {
            counts: PageCounts::default(),
            next_page_set: 1.into(),
            has_dead: false.into(),
            passed: Mutex::default(),
            stripes: [const { RwLock::new(()) }; STRIPES],
        }
    }
}

impl PageState {
    /// What a checkpoint says of it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.next_page_set.load(Ordering::Acquire));
        for (part, count) in self.counts.iter() {
            put_varint(&mut out, part as u64);
            put_varint(&mut out, u64::from(count));
        }
        out
    }

    /// What a checkpoint has said of it. `None` if it can have said no such thing.
    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let state = Self { has_dead: true.into(), ..Self::default() };
        state.next_page_set.store(take_varint(&mut bytes).ok()?, Ordering::Release);
        while !bytes.is_empty() {
            let part = usize::try_from(take_varint(&mut bytes).ok()?).ok()?;
            let count = u32::try_from(take_varint(&mut bytes).ok()?).ok()?;
            state.counts.0.get(part)?.store(count, Ordering::Release);
        }
        Some(state)
    }

    /// The stripe of a key, as a bit.
    pub(super) fn stripe(key: &[u8]) -> u64 {
        1 << (position(key) % STRIPES as u64)
    }

    /// Whoever holds this commits pages of keys of these stripes.
    pub(super) fn committing(&self, stripes: u64) -> Vec<RwLockWriteGuard<'_, ()>> {
        // In order, so that no two wait for each other.
        let chosen = (0..STRIPES).filter(|stripe| stripes & 1 << stripe != 0);
        chosen.map(|stripe| self.stripes[stripe].write().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Nobody commits pages of this key meanwhile.
    fn looking(&self, key: &[u8]) -> RwLockReadGuard<'_, ()> {
        let stripe = &self.stripes[Self::stripe(key).trailing_zeros() as usize];
        stripe.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Shared<S> {
    /// True if a collection has been put into pages, at some time.
    pub(super) fn has_pages(&self) -> bool {
        self.pages.next_page_set.load(Ordering::Acquire) > 1
    }

    /// A name for a collection that is put into pages. To be called before that can be part of a checkpoint.
    pub(super) fn new_page_set(&self) -> u64 {
        self.pages.next_page_set.fetch_add(1, Ordering::AcqRel)
    }

    /// The record of a key, with the view in which its pages are what it says, if it has any.
    pub(super) fn look(&self, space: Space, key: &[u8]) -> Result<Option<Looked<S>>, StoreError> {
        let store_key = data_key(space, key);
        let found = self.store.get(&store_key)?;
        let is_paged = |record: &S::Value| self.has_pages() && is_paged(key, record.as_ref());
        if !found.as_ref().is_some_and(is_paged) {
            return Ok(found.map(|record| (record, None)));
        }
        let looking = self.pages.looking(key);
        let view = Arc::new(self.store.view());
        drop(looking);
        Ok(self.store.get_in(&view, &store_key)?.map(|record| (record, Some(view))))
    }

    /// Removes some of the pages that nobody needs. No lane may be at work, and nothing uncommitted.
    pub(super) fn bury_dead(&self) -> Result<(), StoreError> {
        if !self.pages.has_dead.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut passed = self.pages.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = passed.take();
        let mut dead = Vec::new();
        let spaces = self.spaces_in_use().map(|(_, space)| space);
        // A database that has been emptied meanwhile has another space: then from the first one on.
        let mut spaces: Vec<Space> = spaces.collect();
        if let Some(at) =
            behind.as_ref().and_then(|(behind, _)| spaces.iter().position(|space| space == behind))
        {
            spaces.drain(..at);
        }
        for space in spaces {
            let from = match &behind {
                Some((of, key)) if *of == space => key.clone(),
                _ => dead_begin(space),
            };
            self.store.walk(None, &from, |key, value| {
                let Some((page_set, tree)) = parse_dead(space, key, value) else {
                    return ControlFlow::Break(());
                };
                dead.push((space, page_set, tree));
                if dead.len() < BURIED_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            if dead.len() >= BURIED_MAX {
                break;
            }
        }
        let is_all = dead.is_empty() && behind.is_none();
        if dead.len() >= BURIED_MAX
            && let Some((space, page_set, tree)) = dead.last()
        {
            *passed = Some((*space, dead_key(*space, *page_set, tree.number)));
        }
        drop(passed);
        let mut changes = Vec::new();
        for (space, page_set, tree) in dead {
            let key = page_key(space, page_set, tree.number);
            changes.push((dead_key(space, page_set, tree.number), Change::Delete));
            let children = self.store.get(&key)?.and_then(|page| tree.children(page.as_ref()));
            for child in children.into_iter().flatten() {
                changes.push(match child.height {
                    0 => (page_key(space, page_set, child.number), Change::Delete),
                    _ => bury(space, page_set, child),
                });
            }
            changes.push((key, Change::Delete));
        }
        self.store.write(changes.into_iter())?;
        if is_all {
            self.pages.has_dead.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl<S: Store> Shared<S> {
    /// Looks whether each page in the store is one of a collection, or noted as dead, and all pages of collections are there; and
    /// whether it is known of each key with pages that it may have some. For tests and simulations: it reads all pages. No lane
    /// may be at work, and nothing uncommitted.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_pages(self: &Arc<Self>) -> Result<(), String> {
        let said = |error: StoreError| error.to_string();
        for (_, space) in self.spaces_in_use() {
            let (mut trees, mut keys) = (Vec::new(), Vec::new());
            let at = (space, 0);
            let walked = self.walk(None, at, &data_begin(space), |_, key, value, _| {
                if let Stored::Paged(head, encoded) = value {
                    let source = paged(self, space, head, Place::Now).source;
                    let is_sound = take_paged(encoded, &source).is_ok();
                    trees.extend(source.roots().into_iter().map(|root| (head.page_set, root)));
                    keys.push((key.to_vec(), is_sound));
                }
                ControlFlow::Continue(())
            });
            walked.map_err(said)?;
            for (key, is_sound) in keys {
                let key_text = key.escape_ascii();
                if !is_sound {
                    return Err(format!("the record of {key_text} is damaged"));
                }
                if !self.pages.counts.may_have(space, &key) {
                    return Err(format!("{key_text} has pages, and nobody would look for them"));
                }
            }
            let noted = self.store.walk(None, &dead_begin(space), |key, value| {
                match parse_dead(space, key, value) {
                    Some(dead) => trees.push(dead),
                    None => return ControlFlow::Break(()),
                }
                ControlFlow::Continue(())
            });
            noted.map_err(said)?;
            let mut expected = BTreeSet::new();
            while let Some((page_set, tree)) = trees.pop() {
                let key = page_key(space, page_set, tree.number);
                let page = self.store.get(&key).map_err(said)?;
                let Some(page) = page else { return Err(format!("page {tree:?} of {page_set} is gone")) };
                if !expected.insert(key) {
                    return Err(format!("page {tree:?} of {page_set} is there twice"));
                }
                if tree.height > 0 {
                    let children = tree.children(page.as_ref()).ok_or("an inner page is none")?;
                    trees.extend(children.into_iter().map(|child| (page_set, child)));
                }
            }
            let mut found = 0;
            let counted = self.store.walk(None, &pages_begin(space), |key, _| {
                let is_one = key.starts_with(&pages_begin(space));
                found += usize::from(is_one);
                if is_one { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            counted.map_err(said)?;
            if found != expected.len() {
                return Err(format!("{found} pages, of which {} are needed", expected.len()));
            }
        }
        Ok(())
    }
}

/// True if the collection of a key with this record lies in pages.
pub(super) fn is_paged(key: &[u8], record: &[u8]) -> bool {
    matches!(parse_record(record, is_long(key)).value(record), Stored::Paged(..))
}
