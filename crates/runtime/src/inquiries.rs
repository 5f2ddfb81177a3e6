//! Questions of other threads to the event loop, which answers in its next turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;
use syros_metrics::{ANSWER_TIMEOUT, Answer, Source, Told};

use crate::members::Members;

/// What is asked, and whom to wake. It outlives the event loop, of which a process may have several, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    /// Somebody waits for an answer: looked at in every turn.
    has_any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Wakes the loop, if one runs.
    waker: Option<Arc<Waker>>,
    /// Who waits. As many as ask at a time: the port for metrics has a limit of connections.
    asked: Vec<SyncSender<Told>>,
}

/// A loop runs as long as this lives.
#[derive(Debug)]
pub(crate) struct Running(Arc<Inquiries>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.state() = State::default();
    }
}

/// What the port for metrics asks: the event loop of this process, and the other members.
#[derive(Debug)]
pub(crate) struct MetricsSource {
    pub(crate) inquiries: Arc<Inquiries>,
    pub(crate) members: Members,
}

impl Source for MetricsSource {
    fn ask(&self) -> Answer {
        self.inquiries.ask()
    }

    fn ask_members(&self, addresses: &[String], own: Option<u8>) -> syros_metrics::Members {
        self.members.ask(addresses, own)
    }
}

impl Inquiries {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a loop answers, which this wakes.
    pub(crate) fn begin(self: &Arc<Self>, waker: Arc<Waker>) -> Running {
        self.state().waker = Some(waker);
        Running(Arc::clone(self))
    }

    /// Those who wait for an answer.
    pub(crate) fn take(&self) -> Vec<SyncSender<Told>> {
        if !self.has_any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut state = self.state();
        self.has_any.store(false, Ordering::Relaxed);
        std::mem::take(&mut state.asked)
    }

    /// Asks the loop, and waits for its answer.
    pub(crate) fn ask(&self) -> Answer {
        let (sender, receiver) = sync_channel(1);
        {
            let mut state = self.state();
            let Some(waker) = state.waker.clone() else { return Answer::Starting };
            state.asked.push(sender);
            self.has_any.store(true, Ordering::Relaxed);
            // Fails only if the loop is gone.
            let _ = waker.wake();
        }
        match receiver.recv_timeout(ANSWER_TIMEOUT) {
            Ok(told) => Answer::Told(Box::new(told)),
            Err(RecvTimeoutError::Timeout) => Answer::Silent,
            Err(RecvTimeoutError::Disconnected) => Answer::Starting,
        }
    }
}
