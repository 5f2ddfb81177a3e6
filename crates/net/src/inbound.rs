//! What has been received and not been consumed yet.

use std::io::{ErrorKind, Read};
use syros_wire::{Frame, FrameError, split_frame};

/// Bytes of a buffer that has never been filled: most connections are idle or send little.
const BYTES_MIN: usize = 4 * 1024;

/// A buffer that reads fill again and again grows up to this many bytes, even if no frame needs it:
/// one read then takes hundreds of small frames, and copies stay within the second-level cache.
const BYTES_USUAL_MAX: usize = 128 * 1024;

/// A buffer larger than [`BYTES_USUAL_MAX`] is given up after it has been emptied this many times in a row
/// without having been needed. Keeps a stream of large frames from reallocating for every one of them.
const UNNEEDED_MAX: u32 = 64;

/// How a read ended.
#[derive(Debug)]
pub enum ReadOutcome {
    /// Bytes have come. Whether there are more: see `Connection::is_readable`.
    Received(usize),
    /// Nothing was there; an event will tell when there is.
    Nothing,
    /// The buffer has reached its limit: what it holds must be consumed first.
    Full,
    /// The peer will send no more. What was received before can still be consumed.
    Closed,
    /// The connection has failed.
    Failed(std::io::Error),
}

/// The inbound half of a connection's buffers.
#[derive(Debug)]
pub struct Inbound {
    /// Initialised throughout; `bytes[start..end]` has been received and not been consumed.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Longest buffer, in bytes.
    limit: usize,
    /// Most bytes held at a time since the buffer was last empty.
    peak: usize,
    /// How often in a row the buffer was emptied without having needed its size.
    unneeded: u32,
}

impl Inbound {
    /// An empty buffer that never grows above `limit` bytes. Allocates with the first read.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0, limit, peak: 0, unneeded: 0 }
    }

    /// What has been received and not been consumed, in order.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Drops the first `count` bytes received.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "{count} of {} bytes consumed", self.end - self.start);
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            self.shrink();
        }
    }

    /// Takes the next frame off the front, if it is there whole. `limit` bounds its length as its header
    /// tells it.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are no frame: the connection is of no more use.
    pub fn next_frame(&mut self, limit: usize) -> Result<Option<Frame<'_>>, FrameError> {
        // The bytes stay where they are until the next read, so the frame can be lent out.
        if self.start == self.end && self.start > 0 {
            self.consume(0);
        }
        match split_frame(&self.bytes[self.start..self.end], limit)? {
            None => Ok(None),
            Some((frame, length)) => {
                self.start += length;
                Ok(Some(frame))
            }
        }
    }

    /// Bytes of memory that the buffer takes, received or not.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes by which the next read will let the buffer grow first.
    pub(crate) fn growth_ahead(&mut self) -> usize {
        self.compact();
        self.length_ahead() - self.bytes.len()
    }

    /// One read into free space. `Received` and `room > count` mean that the source was emptied.
    pub(crate) fn read_from(&mut self, source: &mut impl Read) -> (ReadOutcome, usize) {
        self.make_room();
        let room = self.bytes.len() - self.end;
        if room == 0 {
            return (ReadOutcome::Full, 0);
        }
        loop {
            let outcome = match source.read(&mut self.bytes[self.end..]) {
                Ok(0) => ReadOutcome::Closed,
                Ok(count) => {
                    self.end += count;
                    self.peak = self.peak.max(self.end - self.start);
                    ReadOutcome::Received(count)
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ReadOutcome::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => ReadOutcome::Failed(error),
            };
            return (outcome, room);
        }
    }

    /// Moves what is left to the front if little room is behind it, and grows the buffer if that does not
    /// help. The buffer doubles as bytes come, whatever length a frame claims to have: nobody can make a
    /// process reserve memory with a header alone.
    fn make_room(&mut self) {
        self.compact();
        let length = self.length_ahead();
        if length > self.bytes.len() {
            self.bytes.resize(length, 0);
        }
    }

    fn compact(&mut self) {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        if self.bytes.len() - self.end < self.bytes.len() / 2 && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// How long the buffer has to be for the next read, once it is compact.
    fn length_ahead(&self) -> usize {
        let is_crowded = self.bytes.len() - self.end < self.bytes.len() / 4;
        // Reads have filled the buffer, so a larger one saves some; also true of one never allocated.
        let is_busy = self.peak == self.bytes.len() && self.bytes.len() < BYTES_USUAL_MAX;
        if is_crowded || is_busy {
            (self.bytes.len() * 2).max(BYTES_MIN).min(self.limit)
        } else {
            self.bytes.len()
        }
    }

    /// Gives up a large buffer that is empty.
    pub(crate) fn give_back(&mut self) {
        if self.start == self.end && self.bytes.len() > BYTES_USUAL_MAX {
            (self.bytes, self.start, self.end) = (Vec::new(), 0, 0);
            (self.peak, self.unneeded) = (0, 0);
        }
    }

    /// Gives up a large buffer that has not been needed for some time.
    fn shrink(&mut self) {
        if self.bytes.len() > BYTES_USUAL_MAX {
            let is_needed = self.peak > BYTES_USUAL_MAX;
            self.unneeded = if is_needed { 0 } else { self.unneeded + 1 };
            if self.unneeded >= UNNEEDED_MAX {
                self.bytes = vec![0; BYTES_USUAL_MAX.min(self.limit)];
                self.unneeded = 0;
            }
            self.peak = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::Prng;
    use syros_wire::{Channel, FRAME_OVERHEAD_BYTES, put_frame};

    /// Gives what it has, in pieces of random size.
    struct Source {
        bytes: Vec<u8>,
        given: usize,
        piece_max: u64,
        prng: Prng,
    }

    impl Read for Source {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.bytes[self.given..];
            if rest.is_empty() {
                return Err(ErrorKind::WouldBlock.into());
            }
            let piece = 1 + self.prng.below(self.piece_max) as usize;
            let count = piece.min(rest.len()).min(out.len());
            out[..count].copy_from_slice(&rest[..count]);
            self.given += count;
            Ok(count)
        }
    }

    fn payloads(prng: &mut Prng, count: usize, length_max: u64) -> Vec<Vec<u8>> {
        let mut payload = || {
            let length = prng.below(length_max);
            (0..length).map(|_| prng.next_u64() as u8).collect()
        };
        (0..count).map(|_| payload()).collect()
    }

    fn source(payloads: &[Vec<u8>], piece_max: u64) -> Source {
        let mut bytes = Vec::new();
        for payload in payloads {
            put_frame(&mut bytes, Channel::Replica, |out| out.extend_from_slice(payload));
        }
        Source { bytes, given: 0, piece_max, prng: Prng::new(piece_max) }
    }

    #[test]
    fn frames_come_whole_and_in_order_however_they_are_cut() {
        const LENGTH_MAX: usize = 20_000;
        let payloads = payloads(&mut Prng::new(1), 300, LENGTH_MAX as u64);
        for piece_max in [1, 7, 100, 5000, 100_000] {
            let mut source = source(&payloads, piece_max);
            let mut inbound = Inbound::new(LENGTH_MAX + 2 * FRAME_OVERHEAD_BYTES);
            let mut expected = payloads.iter();
            loop {
                match inbound.read_from(&mut source).0 {
                    ReadOutcome::Received(_) => {}
                    ReadOutcome::Nothing => break,
                    outcome => panic!("{outcome:?}"),
                }
                while let Some(frame) = inbound.next_frame(LENGTH_MAX + FRAME_OVERHEAD_BYTES).unwrap() {
                    assert_eq!(Some(frame.payload), expected.next().map(Vec::as_slice));
                }
                assert!(inbound.bytes.len() <= LENGTH_MAX + 2 * FRAME_OVERHEAD_BYTES);
            }
            assert_eq!(expected.next(), None);
            assert!(inbound.received().is_empty());
        }
    }

    #[test]
    fn a_claimed_length_reserves_nothing() {
        let mut source = source(&[], 1000);
        source.bytes = vec![0xff, 0xff, 0xff, 0x00, 1, 2, 3];
        let mut inbound = Inbound::new(1 << 30);
        assert!(matches!(inbound.read_from(&mut source).0, ReadOutcome::Received(7)));
        assert_eq!(inbound.next_frame(1 << 30), Ok(None));
        assert!(matches!(inbound.read_from(&mut source).0, ReadOutcome::Nothing));
        assert_eq!(inbound.bytes.len(), BYTES_MIN);
    }

    #[test]
    fn a_full_buffer_says_so_and_goes_on_when_it_is_consumed() {
        let mut source = source(&[vec![7; 10_000]], 1 << 20);
        let mut inbound = Inbound::new(6000);
        let mut outcome = inbound.read_from(&mut source).0;
        while let ReadOutcome::Received(_) = outcome {
            outcome = inbound.read_from(&mut source).0;
        }
        assert!(matches!(outcome, ReadOutcome::Full));
        assert_eq!(inbound.received().len(), 6000);
        inbound.consume(5000);
        assert!(matches!(inbound.read_from(&mut source).0, ReadOutcome::Received(1..=5000)));
    }

    #[test]
    fn a_large_buffer_is_given_up_when_it_is_not_needed() {
        let mut source = source(&[vec![1; 1 << 20]], 1 << 30);
        let mut inbound = Inbound::new(1 << 30);
        let read = |inbound: &mut Inbound, source: &mut Source| {
            while !matches!(inbound.read_from(source).0, ReadOutcome::Nothing) {}
            let mut frames = 0;
            while inbound.next_frame(1 << 30).unwrap().is_some() {
                frames += 1;
            }
            frames
        };
        assert_eq!(read(&mut inbound, &mut source), 1);
        assert!(inbound.bytes.len() > 1 << 20);
        for _ in 0..=UNNEEDED_MAX {
            put_frame(&mut source.bytes, Channel::Client, |out| out.push(1));
            assert_eq!(read(&mut inbound, &mut source), 1);
        }
        assert_eq!(inbound.bytes.len(), BYTES_USUAL_MAX);

        put_frame(&mut source.bytes, Channel::Client, |out| out.extend(vec![7; 1 << 20]));
        let last = source.bytes.pop();
        read(&mut inbound, &mut source);
        let length = inbound.memory_bytes();
        inbound.give_back();
        assert!(length > 1 << 20 && inbound.memory_bytes() == length, "it is in use");
        source.bytes.extend(last);
        assert_eq!(read(&mut inbound, &mut source), 1);
        inbound.give_back();
        assert_eq!(inbound.memory_bytes(), 0);
        put_frame(&mut source.bytes, Channel::Client, |out| out.push(1));
        assert_eq!(read(&mut inbound, &mut source), 1);
    }
}
