//! Threads that put together the answers to reads that take long. What is read when, [`LongReply`]'s module decides.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::Waker;
use syros_node::{LongReply, ReadOutcome};

/// Where such threads leave what they have put together.
pub(crate) struct LongReplies {
    finished: Receiver<ReadOutcome>,
    sender: Sender<ReadOutcome>,
    waker: Arc<Waker>,
}

impl LongReplies {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        let (sender, finished) = channel();
        Self { finished, sender, waker }
    }

    /// Has a thread put together an answer.
    pub(crate) fn put_together(&self, reply: LongReply) -> io::Result<()> {
        let (sender, waker) = (self.sender.clone(), Arc::clone(&self.waker));
        let work = move || {
            // Both fail only if the event loop has ended.
            let _ = sender.send(reply.put_together());
            let _ = waker.wake();
        };
        std::thread::Builder::new().name("long-read".to_owned()).spawn(work).map(drop)
    }

    /// The next read that has ended.
    pub(crate) fn next_finished(&self) -> Option<ReadOutcome> {
        self.finished.try_recv().ok()
    }
}
