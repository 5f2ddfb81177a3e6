//! A [`Store`] that is a map in memory and loses, in a crash, what was not flushed: for simulations and tests.

use crate::disk::merged;
use crate::store::{Change, Pressure, Store, StoreError};
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a store holds. Maps are shared until they change.
#[derive(Debug, Default)]
struct State {
    now: Arc<Map>,
    sealed: Option<Arc<Map>>,
    durable: Arc<Map>,
    /// Bytes written since the last seal, and those of the sealed ones before that.
    unsealed_bytes: u64,
    sealed_bytes: u64,
    /// So many more flushes are refused.
    refused: u32,
    /// Takes merges as they are, and carries them out when somebody reads.
    merges: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

/// A store in memory. A clone is another handle on the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<State>>);

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a process finds that opens the store after this one has stopped in this moment: the last checkpoint
    /// that was flushed; or, if `keep_sealed`, the one being flushed.
    #[must_use]
    pub fn crash(&self, keep_sealed: bool) -> Self {
        let state = self.state();
        let sealed = state.sealed.as_ref().filter(|_| keep_sealed);
        let found = Arc::clone(sealed.unwrap_or(&state.durable));
        Self(Arc::new(Mutex::new(State { now: Arc::clone(&found), durable: found, ..State::default() })))
    }

    /// The next flushes are refused, as by a full disk.
    pub fn refuse_flushes(&self, number: u32) {
        self.state().refused = number;
    }
}

impl State {
    /// Carries out the merges of a key, or of all keys.
    fn apply_merges(&mut self, key: Option<&[u8]>) {
        let due = match key {
            Some(key) => self.merges.remove_entry(key).into_iter().collect(),
            None => core::mem::take(&mut self.merges),
        };
        for (key, operands) in due {
            let now = Arc::make_mut(&mut self.now);
            let new = merged(now.get(&key).map(Vec::as_slice), operands.iter().map(Vec::as_slice));
            now.insert(key, new);
        }
    }
}

impl Store for MemoryStore {
    type Value = Vec<u8>;
    type View = Arc<Map>;

    /// So that the collections of simulations and tests, which are small, have pages.
    const PAGED_FROM: usize = 64;

    fn merges(&self) -> bool {
        true
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let mut state = self.state();
        state.apply_merges(Some(key));
        Ok(state.now.get(key).cloned())
    }

    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError> {
        let mut state = self.state();
        for (key, change) in changes {
            let key = key.as_ref();
            state.unsealed_bytes += key.len() as u64;
            match change {
                Change::Put(value) => {
                    state.merges.remove(key);
                    state.unsealed_bytes += value.len() as u64;
                    Arc::make_mut(&mut state.now).insert(key.to_vec(), value);
                }
                Change::Delete => {
                    state.merges.remove(key);
                    Arc::make_mut(&mut state.now).remove(key);
                }
                Change::Merge(operands) => state.merges.entry(key.to_vec()).or_default().extend(operands),
            }
        }
        Ok(())
    }

    fn view(&self) -> Arc<Map> {
        let mut state = self.state();
        state.apply_merges(None);
        Arc::clone(&state.now)
    }

    fn get_in(&self, view: &Arc<Map>, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(view.get(key).cloned())
    }

    fn walk(
        &self,
        view: Option<&Arc<Map>>,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let map = view.map_or_else(|| self.view(), Arc::clone);
        let _ = map
            .range::<[u8], _>((Bound::Included(from), Bound::Unbounded))
            .try_for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    fn seal(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        state.apply_merges(None);
        state.sealed = Some(Arc::clone(&state.now));
        state.sealed_bytes += core::mem::take(&mut state.unsealed_bytes);
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        if let Some(left) = state.refused.checked_sub(1) {
            state.refused = left;
            return Err(StoreError::full("flush", "it was told to refuse"));
        }
        if let Some(sealed) = state.sealed.take() {
            state.durable = sealed;
            state.sealed_bytes = 0;
        }
        Ok(())
    }

    fn compact(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn forget(&self, from: &[u8], until: &[u8]) -> Result<(), StoreError> {
        let mut state = self.state();
        state.apply_merges(None);
        let State { now, sealed, durable, .. } = &mut *state;
        for map in [Some(now), sealed.as_mut(), Some(durable)].into_iter().flatten() {
            Arc::make_mut(map).retain(|key, _| key.as_slice() < from || key.as_slice() >= until);
        }
        Ok(())
    }

    fn pressure(&self) -> Pressure {
        let state = self.state();
        Pressure { unflushed_bytes: state.unsealed_bytes + state.sealed_bytes, ..Pressure::default() }
    }

    fn approximate_len(&self) -> usize {
        self.view().len()
    }

    fn disk_bytes(&self) -> u64 {
        let state = self.state();
        state.durable.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }
}
