//! Telling a process to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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
    pub(crate) waker: Arc<Waker>,
}

impl Stopper {
    /// Asks the process to end; its `run` returns soon. The first `reason` is logged.
    pub fn stop(&self, reason: &str) {
        // Fails if somebody else has given one already.
        let _ = self.flag.reason.set(reason.to_owned());
        self.flag.is_set.store(true, Ordering::Relaxed);
        // Fails only if the loop is gone.
        let _ = self.waker.wake();
    }
}
