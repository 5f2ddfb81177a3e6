//! One direction of a connection: what waits until it arrives.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use syros_regions::Traffic;

/// Most bytes that are under way in one direction of one connection, which is then not read from until some
/// have arrived: as many as Linux lets be under way on one (`net.ipv4.tcp_rmem` ends with 6 MiB), so that a
/// long line is as slow as a real one, and a receiver that does not read costs no more memory than that.
pub(crate) const UNDER_WAY_BYTES_MAX: usize = 6 << 20;

/// What a part counts in addition to its bytes, lest a flood of small ones take far more than the limit.
const PART_BYTES: usize = 64;

/// What was sent at one time.
#[derive(Debug)]
enum Part {
    /// Bytes, of which so many have been delivered.
    Bytes(Vec<u8>, usize),
    /// The sender has no more.
    End,
    /// The sender is gone.
    Reset,
}

/// How far a delivery got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Whatever has arrived.
    All,
    /// The receiver takes no more at present.
    Blocked,
    /// To the end: the receiver is to be told.
    End,
    /// To where the connection broke: the receiver is to lose it too.
    Reset,
}

/// One direction of a connection. Times are in nanoseconds of the relay's clock.
#[derive(Debug)]
pub(crate) struct Flow {
    traffic: Traffic,
    parts: VecDeque<(u64, Part)>,
    /// At most [`UNDER_WAY_BYTES_MAX`] and one part.
    under_way: usize,
    /// End or reset has been sent: nothing comes after it.
    is_complete: bool,
    /// End or reset has been delivered, or there is nobody to deliver to.
    is_over: bool,
    /// When the relay will look at it again.
    pub(crate) scheduled: Option<u64>,
}

impl Flow {
    pub(crate) const fn new(traffic: Traffic) -> Self {
        Self {
            traffic,
            parts: VecDeque::new(),
            under_way: 0,
            is_complete: false,
            is_over: false,
            scheduled: None,
        }
    }

    /// More may be read from the sender.
    pub(crate) const fn takes_more(&self) -> bool {
        !self.is_complete && self.under_way < UNDER_WAY_BYTES_MAX
    }

    /// Nothing will ever be delivered again.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// When the first part that waits arrives.
    pub(crate) fn due(&self) -> Option<u64> {
        self.parts.front().map(|(arrival, _)| *arrival)
    }

    pub(crate) fn send(&mut self, now: u64, bytes: &[u8]) {
        assert!(!self.is_complete, "nothing comes after the end");
        self.under_way += bytes.len() + PART_BYTES;
        let arrival = self.traffic.arrival(now, bytes.len());
        self.parts.push_back((arrival, Part::Bytes(bytes.to_vec(), 0)));
    }

    pub(crate) fn send_end(&mut self, now: u64) {
        self.complete(now, Part::End);
    }

    pub(crate) fn send_reset(&mut self, now: u64) {
        self.complete(now, Part::Reset);
    }

    fn complete(&mut self, now: u64, part: Part) {
        if !self.is_complete && !self.is_over {
            self.is_complete = true;
            self.parts.push_back((self.traffic.arrival(now, 0), part));
        } else if matches!(part, Part::Reset)
            && let Some((_, last @ Part::End)) = self.parts.back_mut()
        {
            *last = Part::Reset;
        }
    }

    /// The receiver is gone.
    pub(crate) fn drop_all(&mut self) {
        self.parts.clear();
        (self.under_way, self.is_complete, self.is_over) = (0, true, true);
    }

    /// Hands what has arrived to the receiver.
    ///
    /// # Errors
    /// The receiver's: it is gone.
    pub(crate) fn deliver(&mut self, now: u64, receiver: &mut impl Write) -> io::Result<Delivered> {
        while let Some((arrival, part)) = self.parts.front_mut()
            && *arrival <= now
        {
            match part {
                Part::Bytes(bytes, start) => match receiver.write(&bytes[*start..]) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        *start += count;
                        if *start < bytes.len() {
                            continue;
                        }
                        self.under_way -= bytes.len() + PART_BYTES;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Delivered::Blocked),
                    Err(error) => return Err(error),
                },
                Part::End | Part::Reset => {
                    let is_end = matches!(part, Part::End);
                    self.parts.clear();
                    self.is_over = true;
                    return Ok(if is_end { Delivered::End } else { Delivered::Reset });
                }
            }
            self.parts.pop_front();
        }
        Ok(Delivered::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use syros_regions::Line;
    use syros_types::Prng;

    fn flow() -> Flow {
        let line = Line { delay: Duration::from_nanos(100), ..Line::default() };
        Flow::new(Traffic::new(line, Prng::new(1)))
    }

    #[test]
    fn what_is_sent_arrives_when_it_is_due_and_in_order() {
        let (mut flow, mut received) = (flow(), Vec::new());
        flow.send(0, b"a");
        flow.send(10, b"b");
        flow.send_end(20);
        assert_eq!(flow.due(), Some(100));
        assert_eq!(flow.deliver(99, &mut received).unwrap(), Delivered::All);
        assert!(received.is_empty());
        assert_eq!(flow.deliver(110, &mut received).unwrap(), Delivered::All);
        assert_eq!((&received[..], flow.due()), (&b"ab"[..], Some(120)));
        assert_eq!(flow.deliver(120, &mut received).unwrap(), Delivered::End);
        assert!(flow.is_over());
    }

    #[test]
    fn a_receiver_that_does_not_read_stops_the_sender() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::WouldBlock.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (mut flow, part) = (flow(), vec![7; 1 << 20]);
        let sent = (0..100).take_while(|_| flow.takes_more() && [flow.send(0, &part)] == [()]).count();
        assert_eq!(sent, 6);
        assert_eq!(flow.deliver(100, &mut Full).unwrap(), Delivered::Blocked);
        let mut received = Vec::new();
        flow.deliver(100, &mut received).unwrap();
        assert!(flow.takes_more() && received.len() == 6 << 20);
    }

    #[test]
    fn a_reset_overtakes_an_end_that_has_not_arrived() {
        let mut flow = flow();
        flow.send_end(0);
        flow.send_reset(50);
        assert_eq!(flow.deliver(100, &mut Vec::new()).unwrap(), Delivered::Reset);
    }
}
