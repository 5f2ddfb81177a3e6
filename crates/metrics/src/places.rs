//! Places of connections, of which there are so many.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A thread whose connection was shut down sees it within this, unless the machine is overloaded.
const PATIENCE: Duration = Duration::from_millis(100);

/// Who has a place.
#[derive(Debug)]
pub(crate) struct Places {
    all: usize,
    taken: Mutex<Taken>,
    /// Somebody has left his place.
    left: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    /// The number of the newest connection.
    last: u64,
    /// Connections, the oldest one first. Those that have sent their whole request keep their places: their streams are not here.
    open: BTreeMap<u64, Option<Arc<TcpStream>>>,
}

impl Taken {
    /// The oldest connection that has not sent its whole request. It is asked to give way once.
    fn oldest_silent(&mut self) -> Option<Arc<TcpStream>> {
        self.open.values_mut().find_map(Option::take)
    }
}

/// One place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    places: Arc<Places>,
}

impl Places {
    pub(crate) fn new(all: usize) -> Self {
        Self { all, taken: Mutex::default(), left: Condvar::new() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for this connection. When all are taken, the oldest connection that has not sent its whole request gives way: it
    /// is shut down. `None` if there is no such one, or its thread does not see it in time.
    pub(crate) fn take(places: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Place> {
        let mut taken = places.taken();
        if taken.open.len() >= places.all {
            // It fails if the client has gone: its thread sees that, too.
            let _ = taken.oldest_silent()?.shutdown(Shutdown::Both);
            let is_full = |taken: &mut Taken| taken.open.len() >= places.all;
            let waited = places.left.wait_timeout_while(taken, PATIENCE, is_full);
            let (now, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                return None;
            }
            taken = now;
        }
        taken.last += 1;
        let number = taken.last;
        taken.open.insert(number, Some(Arc::clone(stream)));
        drop(taken);
        Some(Place { number, places: Arc::clone(places) })
    }
}

impl Place {
    /// The connection has sent its whole request: it keeps its place until it is answered.
    pub(crate) fn keep(&self) {
        if let Some(stream) = self.places.taken().open.get_mut(&self.number) {
            *stream = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().open.remove(&self.number);
        self.places.left.notify_one();
    }
}
