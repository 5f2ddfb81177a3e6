//! Telling a process to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mio::Waker;

/// Set once, from any thread.
#[derive(Debug, Default)]
pub(crate) struct StopFlag {
    is_set: AtomicBool,
    reason: OnceLock<String>,
}

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Why, for the log.
    pub(crate) fn reason(&self) -> &str {
        self.reason.get().map_or("no reason given", String::as_str)
    }
}

/// Ends a running [`Node`](crate::Node) or [`GatewayNode`](crate::GatewayNode) from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    pub(crate) flag: Arc<StopFlag>,
    /// Wakes the event loop; another one after the process has started anew.
    waker: Arc<Mutex<Arc<Waker>>>,
}

impl Stopper {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self { flag: Arc::default(), waker: Arc::new(Mutex::new(waker)) }
    }

    /// From now on wakes this loop.
    pub(crate) fn wake_instead(&self, waker: Arc<Waker>) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = waker;
    }

    /// Asks the process to end; its `run` returns soon. The first `reason` is logged.
    pub fn stop(&self, reason: &str) {
        // Fails if somebody else has given one already.
        let _ = self.flag.reason.set(reason.to_owned());
        self.flag.is_set.store(true, Ordering::Relaxed);
        // Fails only if the loop is gone.
        let _ = self.waker.lock().unwrap_or_else(PoisonError::into_inner).wake();
    }
}
