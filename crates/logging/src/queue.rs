//! Between those that log and standard error: a bounded queue, and a thread that writes.
//!
//! A pipe that nobody reads, or a disk that is full, must not stop the event loop. So a line that finds the queue full is
//! lost, and counted; the thread tells how many were lost as soon as it can write again.

use std::io::{ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes that wait: some thousands of lines, more than a reader that is busy for a moment leaves waiting, and nothing
/// beside what a node takes.
pub(crate) const QUEUE_BYTES_MAX: usize = 1 << 20;

/// The end of the queue at which lines come in.
pub(crate) struct Queue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to write, or the queue is closed.
    filled: Condvar,
    /// All has been written.
    emptied: Condvar,
}

#[derive(Default)]
struct State {
    /// Whole lines, each with its end.
    lines: Vec<u8>,
    /// Lines that found no room since the thread last looked.
    lost: u64,
    /// The thread has taken lines that it has not written yet.
    is_writing: bool,
    is_closed: bool,
}

/// The other end, on the thread.
struct Writer<W> {
    shared: Arc<Shared>,
    out: W,
    /// Makes the line that tells how many were lost.
    lost_lines: Box<dyn Fn(u64) -> String + Send>,
    /// Lines that were lost and that no line has told of.
    lost: u64,
    /// The last write ended in the middle of a line.
    is_torn: bool,
}

impl Queue {
    /// Starts the thread, which writes to `out` one line at a time: lines of several processes do not mix.
    pub(crate) fn start(
        out: impl Write + Send + 'static,
        lost_lines: Box<dyn Fn(u64) -> String + Send>,
    ) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let writer = Writer { shared: Arc::clone(&shared), out, lost_lines, lost: 0, is_torn: false };
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.run())?;
        Ok(Self(shared))
    }

    /// Appends a line, with its end, if there is room. Never waits for the thread to write.
    pub(crate) fn push(&self, line: &str) {
        let mut state = self.0.lock();
        if state.lines.len() + line.len() > QUEUE_BYTES_MAX {
            state.lost += 1;
            return;
        }
        state.lines.extend_from_slice(line.as_bytes());
        drop(state);
        self.0.filled.notify_one();
    }

    /// Waits until all is written, for `patience` at most. False if it is not.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut state = self.0.lock();
        while state.is_writing || !state.lines.is_empty() || state.lost > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.0.emptied.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.filled.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines to write, and how many were lost; nothing if the queue is closed. `buffer` takes the place of the lines.
    fn take(&self, buffer: Vec<u8>) -> Option<(Vec<u8>, u64)> {
        let mut state = self.lock();
        state.is_writing = false;
        while state.lines.is_empty() && state.lost == 0 {
            self.emptied.notify_all();
            if state.is_closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_writing = true;
        let lines = std::mem::replace(&mut state.lines, buffer);
        Some((lines, std::mem::take(&mut state.lost)))
    }
}

impl<W: Write> Writer<W> {
    fn run(mut self) {
        let mut buffer = Vec::new();
        while let Some((lines, lost)) = self.shared.take(buffer) {
            self.tell_lost();
            lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| self.write_or_lose(line));
            // They came when these lines had filled the queue.
            self.lost += lost;
            self.tell_lost();
            buffer = lines;
            buffer.clear();
        }
    }

    fn write_or_lose(&mut self, line: &[u8]) {
        if self.write(line).is_err() {
            self.lost += 1;
        }
    }

    fn tell_lost(&mut self) {
        if self.lost > 0 && self.write((self.lost_lines)(self.lost).as_bytes()).is_ok() {
            self.lost = 0;
        }
    }

    /// Writes a line. An error leaves the begin of it at most, which the next line does not go on with.
    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.is_torn {
            self.write_all(b"\n")?;
            self.is_torn = false;
        }
        self.write_all(line)
    }

    fn write_all(&mut self, mut rest: &[u8]) -> std::io::Result<()> {
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    rest = &rest[count..];
                    self.is_torn = !rest.is_empty();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn told() -> Box<dyn Fn(u64) -> String + Send> {
        Box::new(|count| format!("{count} lost\n"))
    }

    /// Takes what it is allowed to, one write after another, and shows what it took.
    struct Script {
        allowed: Receiver<std::io::Result<usize>>,
        taken: SyncSender<Vec<u8>>,
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let count = self.allowed.recv().unwrap_or(Err(ErrorKind::BrokenPipe.into()))?.min(bytes.len());
            let _ = self.taken.send(bytes[..count].to_vec());
            Ok(count)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn scripted() -> (Queue, SyncSender<std::io::Result<usize>>, Receiver<Vec<u8>>) {
        let (allow, allowed) = sync_channel(1 << 16);
        let (taken, took) = sync_channel(1 << 16);
        (Queue::start(Script { allowed, taken }, told()).unwrap(), allow, took)
    }

    fn text(took: &Receiver<Vec<u8>>) -> String {
        String::from_utf8(took.try_iter().flatten().collect()).unwrap()
    }

    #[test]
    fn lines_are_written_whole_and_in_order() {
        let (queue, allow, took) = scripted();
        (0..100).for_each(|number| queue.push(&format!("line {number}\n")));
        // The system may take a part of a line.
        (0..1000).for_each(|_| allow.send(Ok(3)).unwrap());
        assert!(queue.flush(PATIENCE));
        let expected: String = (0..100).map(|number| format!("line {number}\n")).collect();
        assert_eq!(text(&took), expected);
    }

    #[test]
    fn a_reader_that_does_not_read_costs_lines_and_not_time() {
        let (queue, allow, took) = scripted();
        let line = format!("{}\n", "x".repeat(1023));
        // Nobody reads: each push comes back all the same, and no more waits than may.
        let count = 4 * QUEUE_BYTES_MAX / line.len();
        (0..count).for_each(|_| queue.push(&line));
        assert!(queue.0.lock().lines.len() <= QUEUE_BYTES_MAX);
        assert!(!queue.flush(Duration::from_millis(1)), "it waits no longer than it may");
        (0..=count).for_each(|_| allow.send(Ok(usize::MAX)).unwrap());
        assert!(queue.flush(PATIENCE));
        queue.push("the last\n");
        assert!(queue.flush(PATIENCE));
        let text = text(&took);
        let written = text.lines().filter(|written| **written == line[..1023]).count();
        let lost: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(" lost")).collect();
        let lost: usize = lost.iter().map(|count| count.parse::<usize>().unwrap()).sum();
        assert_eq!(written + lost, count, "each line is written or counted");
        // The thread may have taken one queue's worth before it blocked.
        assert!(lost >= count / 2, "{lost}");
        assert!(text.ends_with(" lost\nthe last\n"));
    }

    #[test]
    fn after_an_error_the_next_line_begins_a_line_and_tells_what_was_lost() {
        let (queue, allow, took) = scripted();
        let full = || Err(ErrorKind::StorageFull.into());
        // The first line is torn, and there is no space for the line that tells of it.
        for result in [Ok(4), full(), full()] {
            allow.send(result).unwrap();
        }
        queue.push("first line\n");
        assert!(queue.flush(PATIENCE));
        queue.push("second line\n");
        (0..10).for_each(|_| allow.send(Ok(usize::MAX)).unwrap());
        assert!(queue.flush(PATIENCE));
        assert_eq!(text(&took), "firs\n1 lost\nsecond line\n");
    }

    #[test]
    fn standard_error_that_is_gone_ends_nothing() {
        let (queue, allow, took) = scripted();
        drop(allow);
        queue.push("line\n");
        assert!(queue.flush(PATIENCE));
        assert_eq!(text(&took), "");
    }
}
