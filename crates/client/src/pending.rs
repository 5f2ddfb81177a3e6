//! Operations in flight, as futures.

use crate::error::Error;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;
use std::thread::Thread;
use syros_protocol::message::Body;

/// Where the I/O thread leaves a result.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
enum State<T> {
    Waiting(Option<Waker>),
    Ended(T),
    Taken,
}

impl<T> Slot<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Waiting(None)) })
    }

    /// Leaves the result, once, and wakes who waits for it.
    pub(crate) fn end(&self, result: T) {
        // A panic elsewhere cannot leave the state half-written: it is one assignment.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Waiting(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Ended(result);
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Waiting(waker) => {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            State::Ended(_) => {
                let State::Ended(result) = core::mem::replace(&mut *state, State::Taken) else {
                    unreachable!("it was just looked at")
                };
                Poll::Ready(result)
            }
            State::Taken => panic!("a future was polled after it had ended"),
        }
    }
}

/// Makes a command's result of its raw replies.
pub(crate) type Interpret<T> = fn(&Body) -> Result<T, Error>;

/// An operation on its way, and a future of its result. Dropping it does not take the operation
/// back; nobody learns then how it ended.
#[derive(Debug)]
#[must_use = "nobody learns how the operation ended unless this is awaited or waited for"]
pub struct Pending<T> {
    source: Source,
    interpret: Interpret<T>,
}

#[derive(Debug)]
enum Source {
    Sent(Arc<Slot<Result<Body, Error>>>),
    NotSent(Error),
}

impl<T> Pending<T> {
    pub(crate) const fn sent(slot: Arc<Slot<Result<Body, Error>>>, interpret: Interpret<T>) -> Self {
        Self { source: Source::Sent(slot), interpret }
    }

    pub(crate) const fn not_sent(error: Error, interpret: Interpret<T>) -> Self {
        Self { source: Source::NotSent(error), interpret }
    }

    /// Blocks the calling thread until the operation has ended. Not for threads that run async tasks.
    ///
    /// # Errors
    /// [`Error`]: how the operation failed.
    pub fn wait(self) -> Result<T, Error> {
        block_on(self)
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.source {
            Source::NotSent(error) => Poll::Ready(Err(error.clone())),
            Source::Sent(slot) => {
                slot.poll(context).map(|result| result.and_then(|body| (self.interpret)(&body)))
            }
        }
    }
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on the calling thread, which sleeps while the future waits. For a few operations
/// at a time; whoever has many wants an async runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = core::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            // May return early; the loop looks again.
            Poll::Pending => std::thread::park(),
        }
    }
}
