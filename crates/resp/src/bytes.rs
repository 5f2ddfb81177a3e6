//! A queue of bytes: appended to at one end, taken from the other.

/// Below this many taken bytes it is not worth moving the rest to the front.
const COMPACT_BYTES_MIN: usize = 64 * 1024;

/// An empty queue keeps no more memory than this, so that an idle connection costs little.
const IDLE_BYTES_MAX: usize = 256 * 1024;

/// Capacity beyond this many bytes is given back as they are taken.
const LARGE_BYTES: usize = 4 * 1024 * 1024;

/// Bytes waiting to be taken.
#[derive(Debug, Default)]
pub(crate) struct ByteQueue {
    bytes: Vec<u8>,
    /// So many at the front of `bytes` have been taken.
    start: usize,
}

impl ByteQueue {
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Bytes of memory it takes, in use or not.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Where to append; nothing else may be done to it.
    pub(crate) const fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Takes `count` bytes, or all there are.
    pub(crate) fn take(&mut self, count: usize) {
        self.start = self.bytes.len().min(self.start + count);
        if self.start == self.bytes.len() {
            self.clear();
        } else if self.start >= COMPACT_BYTES_MIN && self.start * 2 >= self.bytes.len() {
            // Moves at most as many bytes as have been taken: constant work per byte.
            self.bytes.drain(..self.start);
            self.start = 0;
            if self.bytes.capacity() > LARGE_BYTES && self.bytes.len() <= self.bytes.capacity() / 2 {
                // Of a large reply, what has been taken is given back.
                self.bytes.shrink_to_fit();
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.bytes.clear();
        if self.bytes.capacity() > IDLE_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let (mut queue, mut expected, mut next) =
            (ByteQueue::default(), std::collections::VecDeque::new(), 0u8);
        for round in 0..2000 {
            for _ in 0..(round * 7) % 1000 {
                next = next.wrapping_mul(5).wrapping_add(3);
                queue.tail().push(next);
                expected.push_back(next);
            }
            let count = ((round * 13) % 997).min(expected.len());
            assert_eq!(&queue.as_slice()[..count], expected.drain(..count).collect::<Vec<_>>());
            queue.take(count);
            assert_eq!(queue.len(), expected.len());
        }
        queue.take(usize::MAX / 2);
        assert_eq!(queue.len(), 0);
    }
}
