//! The stores of a disk engine on one disk, which outlive the processes that use them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use syros_snapshot::Place;
use syros_storage::{MemoryStore, StoreError};
use syros_types::Prng;

#[derive(Debug, Default)]
struct Stock {
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
pub(crate) struct Shelf(Rc<RefCell<Stock>>);

impl Shelf {
    /// The process that used the stores has ended: each holds its last checkpoint, and of one that was being
    /// flushed nobody knows whether it was.
    pub(crate) fn crash(&self, prng: &mut Prng) {
        let Stock { complete, unfinished, flushing, .. } = &mut *self.0.borrow_mut();
        unfinished.clear();
        for (number, store) in complete {
            *store = match flushing.remove(number) {
                Some(before) if prng.chance(1, 2) => before,
                _ => store.crash(false),
            };
        }
        flushing.clear();
    }

    /// A store is about to be flushed: that takes until [`Shelf::end_flush`].
    pub(crate) fn begin_flush(&self, number: u64) {
        let Stock { complete, flushing, .. } = &mut *self.0.borrow_mut();
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
        *self.0.borrow_mut() = Stock::default();
    }

    /// Has something in a store rot. False if there is none.
    pub(crate) fn rot(&self) -> bool {
        let stock = &mut *self.0.borrow_mut();
        stock.is_damaged |= !stock.complete.is_empty();
        stock.is_damaged
    }
}

/// What [`Place`] asks of a store that is not there.
fn missing(number: u64) -> StoreError {
    StoreError::damaged("open a store", format!("there is no store {number}"))
}

impl Place for Shelf {
    type Store = MemoryStore;

    fn list(&mut self) -> Result<Vec<u64>, StoreError> {
        let stock = &mut *self.0.borrow_mut();
        if stock.is_damaged {
            return Err(StoreError::damaged("open a store", "it has rotted"));
        }
        stock.unfinished.clear();
        Ok(stock.complete.keys().copied().collect())
    }

    fn open(&mut self, number: u64) -> Result<MemoryStore, StoreError> {
        let stock = &mut *self.0.borrow_mut();
        let store = stock.complete.get_mut(&number).ok_or_else(|| missing(number))?;
        // Whoever had it open has closed it.
        *store = store.crash(false);
        Ok(store.clone())
    }

    fn create(&mut self) -> Result<(u64, MemoryStore), StoreError> {
        let stock = &mut *self.0.borrow_mut();
        let number = stock.complete.keys().chain(stock.unfinished.keys()).max().map_or(1, |last| last + 1);
        let store = MemoryStore::new();
        stock.unfinished.insert(number, store.clone());
        Ok((number, store))
    }

    fn complete(&mut self, number: u64) -> Result<(), StoreError> {
        let stock = &mut *self.0.borrow_mut();
        let store = stock.unfinished.remove(&number).ok_or_else(|| missing(number))?;
        stock.complete.insert(number, store);
        Ok(())
    }

    fn keep_only(&mut self, number: Option<u64>) -> Result<(), StoreError> {
        let stock = &mut *self.0.borrow_mut();
        stock.complete.retain(|other, _| Some(*other) == number);
        stock.flushing.retain(|other, _| Some(*other) == number);
        Ok(())
    }

    fn remove_before(&mut self, number: u64) -> Result<(), StoreError> {
        let stock = &mut *self.0.borrow_mut();
        stock.complete.retain(|other, _| *other >= number);
        stock.flushing.retain(|other, _| *other >= number);
        Ok(())
    }

    fn remove(&mut self, number: u64) -> Result<(), StoreError> {
        let stock = &mut *self.0.borrow_mut();
        stock.complete.remove(&number);
        stock.flushing.remove(&number);
        Ok(())
    }
}
