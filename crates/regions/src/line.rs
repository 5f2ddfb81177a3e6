//! One direction of a line between two regions: when what is sent on it arrives.

use core::time::Duration;
use syros_types::Prng;

/// Bytes of a TCP segment on Ethernet: what is lost is lost by segments.
const SEGMENT_BYTES: u64 = 1448;

/// A lost segment is not sent again sooner than this: the least that TCP's tail loss probe waits
/// (RFC 8985, 7.2).
const REPEAT_MIN: u64 = 10_000_000;

/// What one direction of a line is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The least time from one end to the other.
    pub delay: Duration,
    /// It takes up to this much longer.
    pub jitter: Duration,
    /// Segments in a million that are lost, and sent again by TCP: they and all that follows them come
    /// later by four times the delay, twice there and back (RFC 8985, 7.2), and at least 10 ms.
    pub loss_ppm: u32,
    /// Bytes per second of each connection; 0 for no limit.
    pub bytes_per_second: u64,
}

/// What is under way in one direction of one connection: it arrives in order, as with TCP.
#[derive(Clone, Debug)]
pub struct Traffic {
    line: Line,
    prng: Prng,
    /// When the last byte will have been put on the line.
    sent: u64,
    /// When the last byte arrives.
    arrived: u64,
}

const fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

impl Traffic {
    /// An idle connection.
    #[must_use]
    pub const fn new(line: Line, prng: Prng) -> Self {
        Self { line, prng, sent: 0, arrived: 0 }
    }

    /// When so many bytes that are sent now have arrived. All times are in nanoseconds of one clock.
    pub fn arrival(&mut self, now: u64, bytes: usize) -> u64 {
        let Line { delay, jitter, loss_ppm, bytes_per_second } = self.line;
        self.sent = self.sent.max(now);
        if bytes_per_second > 0 {
            let time = bytes as u128 * 1_000_000_000 / u128::from(bytes_per_second);
            self.sent = self.sent.saturating_add(time as u64);
        }
        let mut arrival = self.sent.saturating_add(nanos(delay));
        if jitter > Duration::ZERO {
            arrival = arrival.saturating_add(self.prng.below(nanos(jitter) + 1));
        }
        let segments = (bytes as u64).div_ceil(SEGMENT_BYTES).max(1);
        if loss_ppm > 0 && (0..segments).any(|_| self.prng.chance(loss_ppm.into(), 1_000_000)) {
            arrival = arrival.saturating_add((4 * nanos(delay)).max(REPEAT_MIN));
        }
        self.arrived = self.arrived.max(arrival);
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn line() -> Line {
        Line { delay: Duration::from_millis(5), ..Line::default() }
    }

    #[test]
    fn a_plain_line_is_exact() {
        let mut traffic = Traffic::new(line(), Prng::new(1));
        assert_eq!(traffic.arrival(0, 1_000_000), 5 * MILLI);
        assert_eq!(traffic.arrival(MILLI, 1), 6 * MILLI);
    }

    #[test]
    fn a_narrow_line_delays_what_follows() {
        let line = Line { bytes_per_second: 1_000_000, ..line() };
        let mut traffic = Traffic::new(line, Prng::new(1));
        assert_eq!(traffic.arrival(0, 1_000), 6 * MILLI);
        assert_eq!(traffic.arrival(0, 1_000), 7 * MILLI);
        assert_eq!(traffic.arrival(10 * MILLI, 1_000), 16 * MILLI, "it was idle meanwhile");
    }

    #[test]
    fn jitter_and_loss_delay_and_keep_the_order() {
        let line = Line { jitter: Duration::from_millis(2), loss_ppm: 100_000, ..line() };
        let mut traffic = Traffic::new(line, Prng::new(1));
        let (mut last, mut lost) = (0, 0);
        for step in 0..1_000 {
            // Far enough apart that none is delayed by the one before.
            let now = step * 100 * MILLI;
            let arrival = traffic.arrival(now, 100);
            assert!(arrival >= last, "in order");
            last = arrival;
            match arrival - now {
                late if late > 7 * MILLI => lost += 1,
                early => assert!(early >= 5 * MILLI),
            }
        }
        assert!((70..130).contains(&lost), "{lost} of 1000 were lost, not about 100");
        let after_a_loss = Traffic { arrived: 50 * MILLI, ..Traffic::new(line, Prng::new(3)) }.arrival(0, 1);
        assert!(after_a_loss >= 50 * MILLI, "nothing overtakes what is sent again");
    }
}
