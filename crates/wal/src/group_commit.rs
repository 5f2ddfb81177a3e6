//! One sync for all records that arrived while the last one ran.
//!
//! Three buffers go round, so that nothing is allocated per record and no lock is held during I/O: the
//! owner fills one; [`GroupCommit::submit`] moves its records to the second, under a lock that is held
//! for a swap of two pointers (or a copy, when the second holds records already); and the thread swaps
//! the second for the third, which it writes and syncs. All records submitted by then go out together.

use crate::disk::Disk;
use crate::format::{Batch, RecordNumber};
use crate::meter::{LogActivity, Meter};
use crate::wal::{AppendError, Unneeded, Wal, WalError, append_to, concatenate};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// What the owner leaves for the thread.
#[derive(Debug, Default)]
struct Submitted {
    batch: Batch,
    unneeded: Unneeded,
    /// No more will come.
    stop: bool,
    /// The log is being closed in good order.
    close: bool,
    /// The thread waits for work and has to be woken.
    idle: bool,
}

impl Submitted {
    const fn has_work(&self) -> bool {
        self.batch.records > 0 || !self.unneeded.is_nothing() || self.stop
    }
}

#[derive(Debug, Default)]
struct Shared {
    submitted: Mutex<Submitted>,
    work: Condvar,
    /// Number of the last durable record.
    persisted: AtomicU64,
    /// Bytes made durable so far, to know how many wait.
    persisted_bytes: AtomicU64,
    meter: Meter,
    failed: OnceLock<WalError>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Submitted> {
        // Nothing panics while it holds the lock, and nothing in it could be left half done.
        self.submitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The owner's side of a log that a thread of its own writes and syncs.
///
/// `append` whenever there is a record, `submit` when there is nothing else to do (at the end of an
/// event loop's turn), and look at `persisted` and `error` after the callback was called.
/// A replica that logs rarely uses it in the same way; the thread sleeps in between.
#[derive(Debug)]
pub struct GroupCommit<D: Disk> {
    shared: Arc<Shared>,
    filling: Batch,
    appended: RecordNumber,
    /// Bytes appended so far; minus [`Shared::persisted_bytes`], those that wait.
    appended_bytes: u64,
    waiting_bytes_max: usize,
    /// `None` only while it is being joined.
    thread: Option<JoinHandle<Wal<D>>>,
}

impl<D> GroupCommit<D>
where
    D: Disk + Send + 'static,
    D::File: Send,
{
    /// Gives the log to a new thread named `wal`. The thread calls `on_progress` with the last durable record after
    /// every batch that it made durable, and with the reason when it fails. That should be short, such as to tell
    /// the owner to look: the next batch waits for it.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(
        mut wal: Wal<D>,
        on_progress: impl FnMut(Result<RecordNumber, &WalError>) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.persisted.store(wal.persisted().0, Ordering::Release);
        if let Some(error) = wal.error() {
            shared.failed.get_or_init(|| error.clone());
        }
        let filling = std::mem::take(&mut wal.batch);
        let (appended, waiting_bytes_max) = (wal.appended, wal.options.waiting_bytes_max);
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("wal".to_owned()).spawn(move || {
            let panicked = NotePanic(&theirs);
            let wal = run(wal, &theirs, on_progress);
            drop(panicked);
            wal
        })?;
        let appended_bytes = filling.bytes.len() as u64;
        Ok(Self { shared, filling, appended, appended_bytes, waiting_bytes_max, thread: Some(thread) })
    }
}

impl<D> GroupCommit<D>
where
    D: Disk + Send + 'static,
    D::File: Send,
{
    /// Replaces a log that has stopped, or that is to stop, by one that `open` opens when this one is closed: it is told why
    /// this one had stopped by then, if it had. What was appended and is not durable may be lost. After an error this one has
    /// ended.
    ///
    /// # Errors
    /// Those of `open`, and when the operating system gives no thread.
    pub fn reopen<E: From<io::Error>>(
        &mut self,
        open: impl FnOnce(Option<&WalError>) -> Result<Wal<D>, E>,
        on_progress: impl FnMut(Result<RecordNumber, &WalError>) + Send + 'static,
    ) -> Result<(), E> {
        // With the log, its lock on the directory goes.
        drop(self.join());
        let opened = open(self.error().filter(|error| **error != WalError::Closed));
        self.shared.failed.get_or_init(|| WalError::Closed);
        *self = Self::start(opened?, on_progress)?;
        Ok(())
    }
}

impl<D: Disk> GroupCommit<D> {
    /// Takes a record whose payload is the concatenation of `payload_parts`. Only copies it, without a
    /// lock; the thread sees it after the next [`GroupCommit::submit`].
    ///
    /// # Errors
    /// The record has then not been taken, and its number goes to the next. After
    /// [`AppendError::Full`], wait for the callback.
    pub fn append(&mut self, payload_parts: &[&[u8]]) -> Result<RecordNumber, AppendError> {
        self.append_with(|out| concatenate(payload_parts, out))
    }

    /// Takes a record whose payload `write` appends to the buffer that goes to the disk; as [`Self::append`] otherwise.
    ///
    /// # Errors
    /// As of [`Self::append`].
    pub fn append_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<RecordNumber, AppendError> {
        if let Some(error) = self.error() {
            return Err(AppendError::Failed(error.clone()));
        }
        let number = self.appended.next();
        let before = self.filling.bytes.len();
        let waiting = self.waiting_bytes();
        append_to(&mut self.filling, number, write, waiting, self.waiting_bytes_max)?;
        self.appended = number;
        self.appended_bytes += (self.filling.bytes.len() - before) as u64;
        Ok(number)
    }

    /// Hands over what has been appended: the thread begins at once if it is idle, and else when it has
    /// finished what it is doing. Nobody needs to call again for that.
    pub fn submit(&mut self) {
        if self.filling.records > 0 {
            let mut submitted = self.shared.lock();
            submitted.batch.take_from(&mut self.filling);
            self.notify(submitted);
        }
    }

    /// Lets the thread remove the segments that hold only records before `record`.
    pub fn remove_before(&mut self, record: RecordNumber) {
        let mut submitted = self.shared.lock();
        submitted.unneeded.before = submitted.unneeded.before.max(Some(record));
        self.notify(submitted);
    }

    /// Lets the thread remove what is kept beside the log of segments that it needs no more.
    pub fn drop_kept(&mut self) {
        let mut submitted = self.shared.lock();
        submitted.unneeded.kept = true;
        self.notify(submitted);
    }

    /// Number of the last record that was appended.
    #[must_use]
    pub const fn appended(&self) -> RecordNumber {
        self.appended
    }

    /// Number of the last record that the thread has got.
    #[must_use]
    pub const fn submitted(&self) -> RecordNumber {
        RecordNumber(self.appended.0 - self.filling.records)
    }

    /// Number of the last record that is durable.
    #[must_use]
    pub fn persisted(&self) -> RecordNumber {
        RecordNumber(self.shared.persisted.load(Ordering::Acquire))
    }

    /// Bytes appended and not durable yet.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        // No more than what the buffers hold, so it fits.
        (self.appended_bytes - self.shared.persisted_bytes.load(Ordering::Acquire)) as usize
    }

    /// How long syncs have taken since the log was opened, and what was written with them.
    #[must_use]
    pub fn activity(&self) -> LogActivity {
        self.shared.meter.activity()
    }

    /// Why the log has stopped, if it has. Records up to [`GroupCommit::persisted`] are durable all the
    /// same.
    #[must_use]
    pub fn error(&self) -> Option<&WalError> {
        self.shared.failed.get()
    }

    /// Submits what has been appended, waits until it is durable and marked, ends the thread and returns the
    /// log.
    /// (Dropping instead ends the thread as well, without submitting.)
    ///
    /// # Errors
    /// When the log has stopped.
    pub fn close(mut self) -> Result<Wal<D>, WalError> {
        self.submit();
        self.shared.lock().close = true;
        let wal = self.join();
        match self.error() {
            Some(error) => Err(error.clone()),
            None => wal.ok_or(WalError::ThreadPanicked),
        }
    }

    fn notify(&self, mut submitted: MutexGuard<'_, Submitted>) {
        let wake = std::mem::take(&mut submitted.idle);
        drop(submitted);
        if wake {
            self.shared.work.notify_one();
        }
    }

    /// Ends the thread; `None` if it panicked or was joined before.
    fn join(&mut self) -> Option<Wal<D>> {
        let thread = self.thread.take()?;
        let mut submitted = self.shared.lock();
        submitted.stop = true;
        self.notify(submitted);
        thread.join().ok()
    }
}

impl<D: Disk> Drop for GroupCommit<D> {
    fn drop(&mut self) {
        self.join();
    }
}

/// Tells the owner when the thread panics, which else would look like a slow disk.
struct NotePanic<'a>(&'a Shared);

impl Drop for NotePanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.get_or_init(|| WalError::ThreadPanicked);
        }
    }
}

/// The thread: until it is told to stop, or fails.
fn run<D: Disk>(
    mut wal: Wal<D>,
    shared: &Shared,
    mut on_progress: impl FnMut(Result<RecordNumber, &WalError>),
) -> Wal<D> {
    let mut batch = Batch::default();
    loop {
        let mut submitted = shared.lock();
        while !submitted.has_work() {
            submitted.idle = true;
            submitted = shared.work.wait(submitted).unwrap_or_else(PoisonError::into_inner);
        }
        submitted.idle = false;
        std::mem::swap(&mut submitted.batch, &mut batch);
        let unneeded = std::mem::take(&mut submitted.unneeded);
        let (stop, close) = (submitted.stop, submitted.close);
        drop(submitted);

        if unneeded.kept {
            // What is written now may need the space.
            wal.drop_kept();
        }
        let began = Instant::now();
        let mut result = wal.write(&batch).and_then(|()| wal.sync());
        if let Ok(persisted) = result {
            shared.persisted.store(persisted.0, Ordering::Release);
            shared.persisted_bytes.fetch_add(batch.bytes.len() as u64, Ordering::Release);
            if batch.records > 0 {
                let took = began.elapsed();
                on_progress(Ok(persisted));
                shared.meter.on_sync(took, batch.records, batch.bytes.len());
            }
            // The rest can wait; whoever waits for the records of this batch should not.
            result = wal.let_go(unneeded).map(|()| persisted);
            if result.is_ok() && batch.records > 0 && !shared.lock().has_work() {
                result = wal.reserve_ahead(&batch).map(|()| persisted);
            }
        }
        if stop && close {
            result = result.and_then(|persisted| wal.mark().map(|()| persisted));
        }
        if let Err(error) = result {
            on_progress(Err(shared.failed.get_or_init(|| error)));
            return wal;
        }
        batch.clear();
        if stop {
            return wal;
        }
    }
}
