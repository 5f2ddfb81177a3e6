//! What is to be sent and has not been taken by the socket yet.

use std::io::{ErrorKind, Write};

/// An empty buffer larger than this many bytes is given up after [`UNNEEDED_MAX`] flushes that did not
/// need it. Below, a buffer is kept for ever: it holds the output of an ordinary turn of the loop.
const BYTES_KEPT_MAX: usize = 128 * 1024;

/// See [`BYTES_KEPT_MAX`].
const UNNEEDED_MAX: u32 = 64;

/// How a flush ended.
#[derive(Debug)]
pub enum FlushOutcome {
    /// Nothing is left to be sent.
    Done,
    /// The socket is full; an event will tell when it takes more.
    Blocked,
    /// The connection has failed.
    Failed(std::io::Error),
}

/// Empties a buffer whose content has been copied, and gives up a large one.
pub(crate) fn empty(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BYTES_KEPT_MAX {
        *buffer = Vec::new();
    }
    buffer.clear();
}

/// The outbound half of a connection's buffers.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    /// `bytes[written..]` has not been taken by the socket yet.
    bytes: Vec<u8>,
    written: usize,
    /// The socket took less than it was given: writing is of no use before an event says so.
    is_blocked: bool,
    /// How often in a row a large buffer was flushed with little in it.
    unneeded: u32,
}

impl Outbound {
    /// Takes over output that follows what there is. Leaves an empty buffer, mostly with the room of an earlier one.
    pub(crate) fn take(&mut self, fresh: &mut Vec<u8>) {
        if self.is_empty() {
            debug_assert!(self.bytes.is_empty(), "what has been sent is cleared");
            std::mem::swap(&mut self.bytes, fresh);
        } else {
            self.append(fresh);
            fresh.clear();
        }
    }

    /// Copies output behind what there is.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Where output is written that comes in pieces: behind what there is.
    pub(crate) const fn sink(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes that the socket has not taken yet.
    pub(crate) const fn backlog(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Bytes of memory that the buffer takes, in use or not.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// True if there is nothing to send.
    pub(crate) const fn is_empty(&self) -> bool {
        self.backlog() == 0
    }

    /// True if the socket was full when it was last written to, and has not said otherwise since.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// The socket takes output again.
    pub(crate) const fn unblock(&mut self) {
        self.is_blocked = false;
    }

    /// At most one write; none if there is nothing to send or the socket is known to be full. The second
    /// value is the number of bytes written, if there was a write.
    pub(crate) fn write_to(&mut self, sink: &mut impl Write) -> (FlushOutcome, Option<usize>) {
        if self.is_empty() {
            return (FlushOutcome::Done, None);
        }
        if self.is_blocked {
            return (FlushOutcome::Blocked, None);
        }
        let count = loop {
            match sink.write(&self.bytes[self.written..]) {
                Ok(0) => return (FlushOutcome::Failed(ErrorKind::WriteZero.into()), Some(0)),
                Ok(count) => break count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return (FlushOutcome::Blocked, Some(0));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (FlushOutcome::Failed(error), Some(0)),
            }
        };
        self.written += count;
        if self.is_empty() {
            self.clear(count);
            return (FlushOutcome::Done, Some(count));
        }
        // A stream socket takes less than it is given only if it is full.
        self.is_blocked = true;
        if self.written >= self.bytes.len() / 2 {
            // Moves less than has been written: no byte is moved more than once on average.
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        (FlushOutcome::Blocked, Some(count))
    }

    fn clear(&mut self, last_write: usize) {
        self.bytes.clear();
        self.written = 0;
        if self.bytes.capacity() > BYTES_KEPT_MAX {
            self.unneeded = if last_write > BYTES_KEPT_MAX { 0 } else { self.unneeded + 1 };
            if self.unneeded >= UNNEEDED_MAX {
                self.bytes = Vec::new();
                self.unneeded = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what it has room for, as a socket does.
    struct Sink {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.room == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.room);
            self.taken.extend_from_slice(&bytes[..count]);
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn partial_writes_lose_and_repeat_nothing() {
        let mut outbound = Outbound::default();
        let mut sink = Sink { taken: Vec::new(), room: 0 };
        let mut expected = Vec::new();
        for round in 0..1000_usize {
            let bytes: Vec<u8> = (0..round % 37).map(|byte| (byte + round) as u8).collect();
            outbound.append(&bytes);
            expected.extend_from_slice(&bytes);
            if round % 3 == 0 {
                sink.room = round % 61;
                outbound.unblock();
            }
            match outbound.write_to(&mut sink).0 {
                FlushOutcome::Done => assert_eq!(outbound.backlog(), 0),
                FlushOutcome::Blocked => assert!(outbound.is_blocked && !outbound.is_empty()),
                FlushOutcome::Failed(error) => panic!("{error}"),
            }
            assert_eq!(sink.taken.len() + outbound.backlog(), expected.len());
        }
        sink.room = usize::MAX;
        outbound.unblock();
        assert!(matches!(outbound.write_to(&mut sink).0, FlushOutcome::Done));
        assert_eq!(sink.taken, expected);
    }

    #[test]
    fn nothing_is_written_while_the_socket_is_full() {
        let mut outbound = Outbound::default();
        let mut sink = Sink { taken: Vec::new(), room: 1 };
        assert!(matches!(outbound.write_to(&mut sink), (FlushOutcome::Done, None)));
        outbound.append(b"abc");
        assert!(matches!(outbound.write_to(&mut sink), (FlushOutcome::Blocked, Some(1))));
        sink.room = 9;
        assert!(matches!(outbound.write_to(&mut sink), (FlushOutcome::Blocked, None)));
        outbound.unblock();
        assert!(matches!(outbound.write_to(&mut sink), (FlushOutcome::Done, Some(2))));
        assert_eq!(sink.taken, b"abc");
    }

    #[test]
    fn a_large_buffer_is_given_up_when_it_is_not_needed() {
        let mut outbound = Outbound::default();
        let mut sink = Sink { taken: Vec::new(), room: usize::MAX };
        outbound.append(&[7; 1 << 20]);
        outbound.write_to(&mut sink);
        assert!(outbound.bytes.capacity() >= 1 << 20);
        for _ in 0..UNNEEDED_MAX {
            outbound.append(&[1]);
            outbound.write_to(&mut sink);
        }
        assert!(outbound.bytes.capacity() <= BYTES_KEPT_MAX);
    }
}
