//! What an update would answer, without carrying it out (Skyros 5.7, CURP 3.2.3): for updates that are to be answered
//! before they are executed.

use core::cell::Cell;
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use syros_commands::access::{Databases, DatabasesMut, EntryRef, Expiry, KeyEvent, Keys, KeysMut, Version};
use syros_commands::execution;
use syros_commands::{Effects, Programs};
use syros_types::{Database, Prng, SubscriptionKind, WallTime};
use syros_values::{Collection, Kind, Value, WrongType};

/// Appends what a body would answer to `reply`; see [`Engine::evaluate`](crate::Engine::evaluate).
pub(crate) fn evaluate<D: Databases>(
    databases: &D,
    time: WallTime,
    body: &[u8],
    reply: &mut Vec<u8>,
) -> bool {
    evaluate_with(WriteOverlay::new(databases), time, body, reply)
}

/// Known to be wrong: as if no key expired before the body is executed.
#[cfg(feature = "planted-bugs")]
pub(crate) fn evaluate_as_lasting<D: Databases>(
    databases: &D,
    time: WallTime,
    body: &[u8],
    reply: &mut Vec<u8>,
) -> bool {
    evaluate_with(
        WriteOverlay { takes_keys_for_lasting: true, ..WriteOverlay::new(databases) },
        time,
        body,
        reply,
    )
}

/// Appends what a body answers if it is executed now; false, and nothing is appended, if it changes anything. Nobody may have
/// found a key of it expired.
pub(crate) fn answer_no_op<D: Databases>(
    databases: &D,
    time: WallTime,
    body: &[u8],
    reply: &mut Vec<u8>,
) -> bool {
    let draft = WriteOverlay { takes_keys_for_lasting: true, watches: true, ..WriteOverlay::new(databases) };
    evaluate_with(draft, time, body, reply)
}

fn evaluate_with<D: Databases>(
    mut draft: WriteOverlay<'_, D>,
    time: WallTime,
    body: &[u8],
    reply: &mut Vec<u8>,
) -> bool {
    let start = reply.len();
    execution::apply(&mut draft, time, body, reply);
    let is_answer = draft.is_certain.get() && !(draft.watches && draft.has_changed);
    if !is_answer {
        reply.truncate(start);
    }
    is_answer
}

/// Values and expiries of what was set, `None` for what was removed. A body has few keys.
type Changes = BTreeMap<Vec<u8>, Option<(Value, Expiry)>>;

/// Databases, and changes that nobody else sees. Its keys are those of one database at a time.
struct WriteOverlay<'a, D> {
    databases: &'a D,
    /// The one that its keys are of.
    database: Cell<Database>,
    /// In the first database.
    changes: Changes,
    /// In others.
    changes_elsewhere: BTreeMap<Database, Changes>,
    /// The changes when those began that may be undone.
    undo: Option<(Changes, BTreeMap<Database, Changes>)>,
    /// No answer depends on when the body is executed, or on keys that it does not name.
    is_certain: Cell<bool>,
    /// What is executed is executed now: no key expires before that.
    takes_keys_for_lasting: bool,
    /// It is asked whether anything changes. An edit alone does not say so, because it may leave things as they are.
    watches: bool,
    /// Something has changed, or an update has told of that.
    has_changed: bool,
}

impl<'a, D: Databases> WriteOverlay<'a, D> {
    const fn new(databases: &'a D) -> Self {
        Self {
            databases,
            database: Cell::new(Database::FIRST),
            changes: BTreeMap::new(),
            changes_elsewhere: BTreeMap::new(),
            undo: None,
            is_certain: Cell::new(true),
            takes_keys_for_lasting: false,
            watches: false,
            has_changed: false,
        }
    }

    /// Something changes. True if that is all that is asked: then nothing need be kept of it, whatever comes after it.
    const fn only_notes_change(&mut self) -> bool {
        self.has_changed = true;
        self.watches
    }

    /// The keys as they are.
    fn keys(&self) -> &'a D::Keys {
        self.databases.database(self.database.get())
    }

    /// What has become of a key, if it was changed.
    fn changed(&self, key: &[u8]) -> Option<&Option<(Value, Expiry)>> {
        let database = self.database.get();
        let changes =
            if database.is_first() { &self.changes } else { self.changes_elsewhere.get(&database)? };
        changes.get(key)
    }

    /// Changes a key.
    fn change(&mut self, key: &[u8], change: Option<(Value, Expiry)>) {
        let database = self.database.get();
        let changes = if database.is_first() {
            &mut self.changes
        } else {
            self.changes_elsewhere.entry(database).or_default()
        };
        changes.insert(key.to_vec(), change);
    }

    /// True if this key, or a field of it, may be gone by the time that the body is executed at.
    fn may_expire(&self, found: &impl EntryRef) -> bool {
        !self.takes_keys_for_lasting && found.is_expiring()
    }

    /// A key's value and expiry, if it exists.
    fn copy(&self, key: &[u8]) -> Option<(Value, Expiry)> {
        self.get(key).map(|found| (found.to_value(), found.expiry()))
    }
}

/// A key as it would be found.
enum OverlayEntry<'a, F> {
    Changed(&'a Value, Expiry),
    Kept(F),
}

impl<F: EntryRef> EntryRef for OverlayEntry<'_, F> {
    fn kind(&self) -> Kind {
        match self {
            Self::Changed(value, _) => value.kind(),
            Self::Kept(found) => found.kind(),
        }
    }

    fn string(&self) -> Result<&[u8], WrongType> {
        match self {
            Self::Changed(value, _) => value.string(),
            Self::Kept(found) => found.string(),
        }
    }

    fn collection<C: Collection>(&self) -> Result<&C, WrongType> {
        match self {
            Self::Changed(value, _) => value.collection(),
            Self::Kept(found) => found.collection(),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Changed(value, _) => (*value).clone(),
            Self::Kept(found) => found.to_value(),
        }
    }

    fn expiry(&self) -> Expiry {
        match self {
            Self::Changed(_, expiry) => *expiry,
            Self::Kept(found) => found.expiry(),
        }
    }
}

impl<D: Databases> Databases for WriteOverlay<'_, D> {
    type Keys = Self;

    fn database(&self, database: Database) -> &Self {
        self.database.set(database);
        self
    }

    fn programs(&self) -> Programs {
        self.databases.programs()
    }
}

impl<D: Databases> DatabasesMut for WriteOverlay<'_, D> {
    fn database_mut(&mut self, database: Database) -> &mut Self {
        self.database.set(database);
        self
    }

    fn move_key(&mut self, name: &[u8], from: Database, to: Database) {
        if !self.only_notes_change()
            && let Some(found) = self.database(from).copy(name)
        {
            self.database_mut(from).change(name, None);
            self.database_mut(to).change(name, Some(found));
        }
    }

    fn swap(&mut self, _first: Database, _second: Database) {
        self.is_certain.set(false);
    }

    fn clear_all(&mut self) {
        self.is_certain.set(false);
    }

    fn set_programs(&mut self, _programs: Programs) {
        self.is_certain.set(false);
    }

    fn record_versions(&mut self) {
        self.is_certain.set(false);
    }

    /// Nothing is executed here.
    fn effects_mut(&mut self) -> Option<&mut Effects> {
        None
    }
}

impl<D: Databases> Keys for WriteOverlay<'_, D> {
    type EntryRef<'a>
        = OverlayEntry<'a, <D::Keys as Keys>::EntryRef<'a>>
    where
        Self: 'a;

    fn get(&self, key: &[u8]) -> Option<Self::EntryRef<'_>> {
        let found = match self.changed(key) {
            Some(change) => change.as_ref().map(|(value, expiry)| OverlayEntry::Changed(value, *expiry)),
            None => self.keys().get(key).map(OverlayEntry::Kept),
        }?;
        if self.may_expire(&found) {
            self.is_certain.set(false);
        }
        Some(found)
    }

    fn time_ms(&self) -> u64 {
        self.keys().time_ms()
    }

    fn version(&self, key: &[u8]) -> Version {
        if self.changed(key).is_some() {
            // Nobody has said yet which entry that will be.
            self.is_certain.set(false);
            return Version::UNKNOWN;
        }
        // It may be gone by the time that the body is executed at. And if it does not exist, updates of other keys change
        // its version (see `removals`): they overlap nothing that the body names, so they may still come before it.
        if self.get(key).is_none() {
            self.is_certain.set(false);
        }
        let version = self.keys().version(key);
        // It may be known by then.
        if version == Version::UNKNOWN {
            self.is_certain.set(false);
        }
        version
    }

    fn each(&self, _visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
        self.is_certain.set(false);
    }

    fn scan(&self, _cursor: u64, _count: u64, _visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>) -> u64 {
        self.is_certain.set(false);
        0
    }

    fn before_draw(&self) {
        self.is_certain.set(false);
    }

    fn random(&self, _prng: &mut Prng, _visit: impl FnOnce(&[u8])) -> bool {
        self.is_certain.set(false);
        false
    }
}

impl<D: Databases> KeysMut for WriteOverlay<'_, D> {
    fn set(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        if !self.only_notes_change() {
            self.change(key, Some((Value::String(value.to_vec()), expiry)));
        }
    }

    fn set_collection<C: Collection>(&mut self, key: &[u8], collection: C) {
        if !self.only_notes_change() {
            self.change(key, Some((collection.into(), None)));
        }
    }

    fn edit<R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let Some((value, expiry)) = self.copy(key) else { return Ok(None) };
        let Value::String(mut value) = value else { return Err(WrongType) };
        let result = change(&mut value);
        self.change(key, Some((Value::String(value), expiry)));
        Ok(Some(result))
    }

    fn edit_collection<C: Collection, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, WrongType> {
        let now_ms = self.time_ms();
        let (mut value, expiry) = match self.get(key) {
            Some(found) => {
                // A string may be long, and is not copied for an error.
                found.collection::<C>()?;
                (found.to_value(), found.expiry())
            }
            None => (C::default().into(), None),
        };
        let collection = C::of_mut(&mut value).ok_or(WrongType)?;
        let result = change(collection);
        let left = !collection.is_absent(now_ms);
        self.change(key, left.then_some((value, expiry)));
        Ok(result)
    }

    fn set_expiry(&mut self, key: &[u8], expiry: Expiry) {
        if !self.only_notes_change()
            && let Some((value, _)) = self.copy(key)
        {
            self.change(key, Some((value, expiry)));
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if !self.only_notes_change() {
            self.change(key, None);
        }
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        if !self.only_notes_change()
            && let Some(found) = self.copy(from)
        {
            self.change(from, None);
            self.change(to, Some(found));
        }
    }

    fn clear(&mut self) {
        self.is_certain.set(false);
    }

    fn notifies(&self) -> bool {
        self.watches
    }

    fn notify(&mut self, _event: KeyEvent, _key: &[u8]) {
        self.has_changed = true;
    }

    fn publish(&mut self, _kind: SubscriptionKind, _channel: &[u8], _payload: &[u8]) {
        self.has_changed = true;
    }

    fn begin_undo(&mut self) {
        // What there was is kept of all databases.
        self.undo.get_or_insert_with(|| (self.changes.clone(), self.changes_elsewhere.clone()));
    }

    fn end_undo(&mut self, keeps: bool) {
        if let Some(before) = self.undo.take().filter(|_| !keeps) {
            (self.changes, self.changes_elsewhere) = before;
        }
    }
}
