//! What tests of several kinds have in common.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use syros_storage::{Change, MemoryStore, Pressure, Store, StoreError};

type Wrapped = <MemoryStore as Store>::Value;

/// A store that is looked at: how often it is asked for something, and how much is written.
#[derive(Clone, Default)]
pub(crate) struct Watched(pub(crate) MemoryStore, pub(crate) Arc<Counters>);

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) reads: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    /// A write shows its changes one after the other, with others at work in between.
    pub(crate) is_torn: AtomicBool,
    /// Pages cannot be read.
    pub(crate) refuses: AtomicBool,
    /// Pages have been lost.
    pub(crate) lost: AtomicBool,
    /// What others do when a record has been read next.
    pub(crate) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

pub(crate) fn is_page(key: &[u8]) -> bool {
    matches!(key.first(), Some(b'p' | b'P'))
}

impl Watched {
    fn asked(&self, key: &[u8], found: Option<Wrapped>) -> Result<Option<Wrapped>, StoreError> {
        self.1.reads.fetch_add(1, Ordering::Relaxed);
        if is_page(key) && self.1.refuses.load(Ordering::Relaxed) {
            return Err(StoreError::other("read", "the disk is gone"));
        }
        Ok(found.filter(|_| !is_page(key) || !self.1.lost.load(Ordering::Relaxed)))
    }
}

impl Store for Watched {
    type Value = Wrapped;
    type View = <MemoryStore as Store>::View;

    const PAGED_FROM: usize = 8 << 10;

    fn merges(&self) -> bool {
        self.0.merges()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Wrapped>, StoreError> {
        let found = self.asked(key, self.0.get(key)?);
        let meanwhile = self.1.meanwhile.lock().expect("nothing panicked").take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        found
    }

    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError> {
        let is_torn = self.1.is_torn.load(Ordering::Relaxed);
        let counted = changes.inspect(|(key, change)| {
            self.1.written.fetch_add(1, Ordering::Relaxed);
            let bytes = key.as_ref().len() + if let Change::Put(value) = change { value.len() } else { 0 };
            self.1.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        });
        if !is_torn {
            return self.0.write(counted);
        }
        for change in counted {
            self.0.write([change].into_iter())?;
            thread::yield_now();
        }
        Ok(())
    }

    fn view(&self) -> Self::View {
        self.0.view()
    }

    fn get_in(&self, view: &Self::View, key: &[u8]) -> Result<Option<Wrapped>, StoreError> {
        self.asked(key, self.0.get_in(view, key)?)
    }

    fn walk(
        &self,
        view: Option<&Self::View>,
        from: &[u8],
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.walk(view, from, visit)
    }

    fn seal(&self) -> Result<(), StoreError> {
        self.0.seal()
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.0.flush()
    }

    fn compact(&self) -> Result<bool, StoreError> {
        self.0.compact()
    }

    fn forget(&self, from: &[u8], until: &[u8]) -> Result<(), StoreError> {
        // Some may stay: records do.
        if from.first() == Some(&b'd') { Ok(()) } else { self.0.forget(from, until) }
    }

    fn pressure(&self) -> Pressure {
        self.0.pressure()
    }

    fn approximate_len(&self) -> usize {
        self.0.approximate_len()
    }

    fn disk_bytes(&self) -> u64 {
        self.0.disk_bytes()
    }
}
