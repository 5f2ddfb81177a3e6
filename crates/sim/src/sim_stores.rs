//! The stores of a disk engine on one disk, which outlive the processes that use them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use syros_snapshot::StoreDirectory;
use syros_storage::{MemoryStore, StoreError};
use syros_types::Prng;

#[derive(Debug, Default)]
struct SimStoresState {
    complete: BTreeMap<u64, MemoryStore>,
    /// Stores that no process would find.
    unfinished: BTreeMap<u64, MemoryStore>,
    /// Those that are being flushed, as they would be found if that had not begun.
    flushing: BTreeMap<u64, MemoryStore>,
    /// Something that is not what was written, which stores notice.
    is_damaged: bool,
}

/// Where the stores of a replica are. A clone is another handle on the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimStores(Rc<RefCell<SimStoresState>>);

impl SimStores {
    /// The process that used the stores has ended: each holds its last checkpoint, and of one that was being
    /// flushed nobody knows whether it was.
    pub(crate) fn crash(&self, prng: &mut Prng) {
        let SimStoresState { complete, unfinished, flushing, .. } = &mut *self.0.borrow_mut();
        unfinished.clear();
        for (number, store) in complete {
            *store = match flushing.remove(number) {
                Some(before) if prng.chance(1, 2) => before,
                _ => store.crash(false),
            };
        }
        flushing.clear();
    }

    /// A store is about to be flushed: that takes until [`SimStores::end_flush`].
    pub(crate) fn begin_flush(&self, number: u64) {
        let SimStoresState { complete, flushing, .. } = &mut *self.0.borrow_mut();
        if let Some(store) = complete.get(&number) {
            flushing.insert(number, store.crash(false));
        }
    }

    /// The flush of a store has ended.
    pub(crate) fn end_flush(&self, number: u64) {
        self.0.borrow_mut().flushing.remove(&number);
    }

    /// Nothing is left of what was there.
    pub(crate) fn clear(&self) {
        *self.0.borrow_mut() = SimStoresState::default();
    }

    /// Has something in a store rot. False if there is none.
    pub(crate) fn rot(&self) -> bool {
        let state = &mut *self.0.borrow_mut();
        state.is_damaged |= !state.complete.is_empty();
        state.is_damaged
    }
}

/// What [`StoreDirectory`] asks of a store that is not there.
fn missing(number: u64) -> StoreError {
    StoreError::damaged("open a store", format!("there is no store {number}"))
}

impl StoreDirectory for SimStores {
    type Store = MemoryStore;

    fn list(&mut self) -> Result<Vec<u64>, StoreError> {
        let state = &mut *self.0.borrow_mut();
        if state.is_damaged {
            return Err(StoreError::damaged("open a store", "it has rotted"));
        }
        state.unfinished.clear();
        Ok(state.complete.keys().copied().collect())
    }

    fn open(&mut self, number: u64) -> Result<MemoryStore, StoreError> {
        let state = &mut *self.0.borrow_mut();
        let store = state.complete.get_mut(&number).ok_or_else(|| missing(number))?;
        // Whoever had it open has closed it.
        *store = store.crash(false);
        Ok(store.clone())
    }

    fn create(&mut self) -> Result<(u64, MemoryStore), StoreError> {
        let state = &mut *self.0.borrow_mut();
        let number = state.complete.keys().chain(state.unfinished.keys()).max().map_or(1, |last| last + 1);
        let store = MemoryStore::new();
        state.unfinished.insert(number, store.clone());
        Ok((number, store))
    }

    fn complete(&mut self, number: u64) -> Result<(), StoreError> {
        let state = &mut *self.0.borrow_mut();
        let store = state.unfinished.remove(&number).ok_or_else(|| missing(number))?;
        state.complete.insert(number, store);
        Ok(())
    }

    fn keep_only(&mut self, number: Option<u64>) -> Result<(), StoreError> {
        let state = &mut *self.0.borrow_mut();
        state.complete.retain(|other, _| Some(*other) == number);
        state.flushing.retain(|other, _| Some(*other) == number);
        Ok(())
    }

    fn remove_before(&mut self, number: u64) -> Result<(), StoreError> {
        let state = &mut *self.0.borrow_mut();
        state.complete.retain(|other, _| *other >= number);
        state.flushing.retain(|other, _| *other >= number);
        Ok(())
    }

    fn remove(&mut self, number: u64) -> Result<(), StoreError> {
        let state = &mut *self.0.borrow_mut();
        state.complete.remove(&number);
        state.flushing.remove(&number);
        Ok(())
    }
}
