//! Moments that somebody still looks at.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// All views of a store.
#[derive(Debug, Default)]
pub(crate) struct Views {
    state: Mutex<State>,
    begun: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many views there are of each moment.
    moments: BTreeMap<u64, usize>,
    /// Threads that begin to drop what no view sees.
    beginning: Vec<ThreadId>,
}

impl Views {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A view of everything numbered before `moment`. Waits for those that are about to drop things and have yet
    /// to decide among which: whatever they decide after this could be later than the view.
    pub(crate) fn open(self: &Arc<Self>, moment: u64) -> View {
        let state = self.begun.wait_while(self.state(), |state| !state.beginning.is_empty());
        *state.unwrap_or_else(PoisonError::into_inner).moments.entry(moment).or_default() += 1;
        View { moment, views: Arc::clone(self) }
    }

    /// Lets this thread drop everything that is shadowed, if there are no views; there will be none until it has
    /// [`begun`](Self::begun) or the answer is dropped.
    pub(crate) fn begin(&self) -> Option<DropInProgress<'_>> {
        let mut state = self.state();
        state.moments.is_empty().then(|| {
            state.beginning.push(thread::current().id());
            DropInProgress(self)
        })
    }

    /// This thread has decided among what to drop, if it was about to.
    pub(crate) fn begun(&self) {
        let this = thread::current().id();
        self.state().beginning.retain(|thread| *thread != this);
        self.begun.notify_all();
    }

    /// The earliest.
    pub(crate) fn first(&self) -> Option<u64> {
        self.state().moments.keys().next().copied()
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> Vec<u64> {
        self.state().moments.keys().copied().collect()
    }
}

/// A thread is about to drop things.
#[derive(Debug)]
pub(crate) struct DropInProgress<'a>(&'a Views);

impl Drop for DropInProgress<'_> {
    fn drop(&mut self) {
        self.0.begun();
    }
}

/// The store as it was at some moment. What was overwritten or removed since is kept, on disk or in memory, until
/// this is dropped.
#[derive(Debug)]
pub struct View {
    moment: u64,
    views: Arc<Views>,
}

impl View {
    pub(crate) const fn moment(&self) -> u64 {
        self.moment
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut state = self.views.state();
        if let Some(count) = state.moments.get_mut(&self.moment) {
            *count -= 1;
            if *count == 0 {
                state.moments.remove(&self.moment);
            }
        }
    }
}
