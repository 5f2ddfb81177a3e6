//! Moments that somebody still looks at.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// How long whoever drops things waits until there is no view. Readers of large collections open one after the other, each for
/// less than that; views that last longer, such as a snapshot's, are not waited for.
const PATIENCE: Duration = Duration::from_millis(10);

/// All views of a store.
#[derive(Debug, Default)]
pub(crate) struct Views {
    state: Mutex<State>,
    /// Views may be opened again, or one has been closed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many views there are of each moment, and when the first of them was opened.
    moments: BTreeMap<u64, (usize, Instant)>,
    /// Threads that wait until there is no view. Until then no more are opened: there would always be one.
    waiting: usize,
    /// Threads that begin to drop what no view sees.
    beginning: Vec<ThreadId>,
}

impl State {
    /// True if no view has been open for long.
    fn are_young(&self) -> bool {
        self.moments.values().all(|(_, opened)| opened.elapsed() < PATIENCE)
    }
}

impl Views {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A view of everything numbered before `moment`. Waits for those that are about to drop things and have yet
    /// to decide among which: whatever they decide after this could be later than the view.
    pub(crate) fn open(self: &Arc<Self>, moment: u64) -> View {
        let has_to_wait = |state: &mut State| !state.beginning.is_empty() || state.waiting > 0;
        let state = self.changed.wait_while(self.state(), has_to_wait);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.moments.entry(moment).or_insert_with(|| (0, Instant::now())).0 += 1;
        View { moment, views: Arc::clone(self) }
    }

    /// Lets this thread drop everything that is shadowed, if there are no views or they are soon closed; there will be none until
    /// it has [`begun`](Self::begun) or the answer is dropped.
    pub(crate) fn begin(&self) -> Option<DropInProgress<'_>> {
        let mut state = self.state();
        let begun_at = Instant::now();
        state.waiting += 1;
        // Whoever reads two collections opens the second view behind the first one.
        while !state.moments.is_empty() && state.are_young() && begun_at.elapsed() < PATIENCE {
            let waited = self.changed.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting -= 1;
        let has_begun = state.moments.is_empty();
        if has_begun {
            state.beginning.push(thread::current().id());
        }
        drop(state);
        self.changed.notify_all();
        has_begun.then_some(DropInProgress(self))
    }

    /// This thread has decided among what to drop, if it was about to.
    pub(crate) fn begun(&self) {
        let this = thread::current().id();
        self.state().beginning.retain(|thread| *thread != this);
        self.changed.notify_all();
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
        if let Some((count, _)) = state.moments.get_mut(&self.moment) {
            *count -= 1;
            if *count == 0 {
                state.moments.remove(&self.moment);
                drop(state);
                self.views.changed.notify_all();
            }
        }
    }
}
