//! One budget for the memory of all clients' connections: input that is not consumed, operations under way, and
//! replies that clients have not taken. Nobody's buffers may let the node run out of memory.
//!
//! Three things keep to it, in this order:
//!
//! 1. A connection with more unsent replies than [`REPLY_BYTES_SHARE`] has its next read executed when it has taken some;
//!    when half of the budget is taken, when it has taken nearly all.
//! 2. When three quarters of the budget are taken, input buffers above [`SMALL_BYTES`] do not grow: their clients wait.
//! 3. When the budget is exceeded, or clients have waited for [`PATIENCE`], the connections that hold most are closed,
//!    until half of the budget is free. Whoever holds little goes on being served.
//!
//! A single reply may be larger than the budget. So one connection at a time that holds more than half of it in replies
//! is spared, and not counted, as long as its client takes some of them within [`PATIENCE`].

use std::time::Duration;

use syros_types::Instant;

/// A connection that has not taken this many bytes of its replies has no further read executed for it: it holds as
/// much and one reply. As much as [`syros_resp::limits::REPLY_BYTES_EXPECTED_MAX`], which is what it asks for.
pub const REPLY_BYTES_SHARE: usize = syros_resp::limits::REPLY_BYTES_EXPECTED_MAX;

/// A connection that takes no more memory than this is not made to wait for others: it is what a connection with
/// ordinary requests takes.
const SMALL_BYTES: usize = 256 * 1024;

/// So long clients wait for memory that others hold, before those are closed.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// The budget, and what is taken of it.
#[derive(Debug)]
pub struct ClientMemory {
    limit: usize,
    used: usize,
    evicted: u64,
    /// Since when clients wait for memory.
    waiting_since: Option<Instant>,
    /// Bytes that one of them needs; the least.
    wanted: usize,
    /// The connection that is spared, or was.
    spared: Option<Spared>,
}

/// A connection with a reply that is a large part of the budget.
#[derive(Clone, Copy, Debug)]
struct Spared {
    address: u64,
    /// What it takes; 0 if it is not spared any more.
    bytes: usize,
    /// Bytes of replies that its client had to take when that changed last.
    owed: usize,
    /// It is spared until then, if that does not change.
    deadline: Instant,
}

impl ClientMemory {
    /// A budget of so many bytes.
    pub const fn new(limit: usize) -> Self {
        Self { limit, used: 0, evicted: 0, waiting_since: None, wanted: usize::MAX, spared: None }
    }

    /// A connection takes `now` bytes, where it took `charged`.
    pub const fn charge(&mut self, charged: &mut usize, now: usize) {
        self.used = self.used - *charged + now;
        *charged = now;
    }

    /// True if a connection that takes `charged` bytes may take `more` for its input.
    pub const fn admits(&self, charged: usize, more: usize) -> bool {
        charged + more <= SMALL_BYTES || self.counted() + more <= self.threshold()
    }

    /// From here on clients are made to wait.
    const fn threshold(&self) -> usize {
        self.limit / 4 * 3
    }

    /// Bytes in use, but for the connection that is spared.
    const fn counted(&self) -> usize {
        match self.spared {
            // It may have gone since this was found out.
            Some(spared) => self.used.saturating_sub(spared.bytes),
            None => self.used,
        }
    }

    /// The connection with this address takes `charged` bytes, and its client has replies of `owed` bytes to take: it is
    /// spared, or goes on being spared, if that is the right thing.
    pub fn spare(&mut self, now: Instant, address: u64, charged: usize, owed: usize) {
        let half = self.limit / 2;
        self.spared = match self.spared.filter(|spared| spared.address == address && charged > half) {
            Some(spared) if spared.owed == owed => {
                let bytes = if now < spared.deadline { charged } else { 0 };
                Some(Spared { bytes, ..spared })
            }
            None if owed <= half => None,
            _ => Some(Spared { address, bytes: charged, owed, deadline: now.after(PATIENCE) }),
        };
    }

    /// There is nobody to be spared.
    pub const fn spare_nobody(&mut self) {
        self.spared = None;
    }

    /// The address of the connection that is spared, or was until its client took nothing for too long.
    pub fn candidate(&self) -> Option<u64> {
        self.spared.map(|spared| spared.address)
    }

    /// The address of the connection that is spared.
    pub fn spared(&self) -> Option<u64> {
        self.spared.filter(|spared| spared.bytes > 0).map(|spared| spared.address)
    }

    /// True if the budget is exceeded: somebody has to go.
    pub const fn is_exceeded(&self) -> bool {
        self.counted() > self.limit
    }

    /// True if connections should not hold as much as they usually may.
    pub const fn is_scarce(&self) -> bool {
        self.counted() > self.limit / 2
    }

    /// True if enough is free again, so that nobody else has to go.
    const fn is_relieved(&self) -> bool {
        self.counted() <= self.limit / 2
    }

    /// True if one of those that wait gets what it needs.
    pub const fn has_room(&self) -> bool {
        self.counted().saturating_add(self.wanted) <= self.threshold()
    }

    /// A client is made to wait for so many bytes.
    pub fn wait(&mut self, now: Instant, wanted: usize) {
        self.waiting_since.get_or_insert(now);
        self.wanted = self.wanted.min(wanted);
    }

    /// All that wait try again, and may be made to wait again.
    pub const fn retry(&mut self) {
        self.wanted = usize::MAX;
    }

    /// Nobody waits any more, or somebody has gone for them: patience begins anew.
    pub const fn end_waiting(&mut self) {
        self.waiting_since = None;
    }

    /// When patience with those that hold most ends.
    pub fn deadline(&self) -> Instant {
        self.waiting_since.map_or(Instant::NEVER, |since| since.after(PATIENCE))
    }

    /// When patience with the connection that is spared ends.
    pub fn spared_until(&self) -> Instant {
        self.spared.filter(|spared| spared.bytes > 0).map_or(Instant::NEVER, |spared| spared.deadline)
    }

    /// Whose connections go if somebody has to: of `clients`, which are the addresses of all clients' connections and what each
    /// takes, those that take anything and are not spared, with the one that takes most at the end. Nobody if half of the budget
    /// is free.
    pub fn evictable(&self, clients: impl Iterator<Item = (u64, usize)>) -> Vec<(u64, usize)> {
        if self.is_relieved() {
            return Vec::new();
        }
        let spared = self.spared();
        let mut evictable: Vec<_> =
            clients.filter(|(address, charged)| *charged > 0 && spared != Some(*address)).collect();
        evictable.sort_by_key(|(_, charged)| *charged);
        evictable
    }

    /// Whose connection has to go next of those that [may have to](Self::evictable), and what it takes. The caller closes it, and
    /// asks again. `None` when half of the budget is free, or nobody is left.
    pub fn evict(&mut self, evictable: &mut Vec<(u64, usize)>) -> Option<(u64, usize)> {
        if self.is_relieved() {
            return None;
        }
        let largest = evictable.pop()?;
        self.evicted += 1;
        Some(largest)
    }

    /// Bytes in use.
    pub const fn used(&self) -> usize {
        self.used
    }

    /// The budget, in bytes.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Connections that had to go since the start.
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_hold_much_wait_before_those_who_hold_little() {
        let mut memory = ClientMemory::new(64 << 20);
        let (mut one, mut two) = (0, 0);
        assert!(memory.admits(one, 32 << 20));
        memory.charge(&mut one, 47 << 20);
        assert!(memory.admits(two, 1 << 20));
        memory.charge(&mut two, 1 << 20);
        assert_eq!((memory.used(), one, two), (48 << 20, 47 << 20, 1 << 20));
        assert!(!memory.is_exceeded());
        assert!(!memory.admits(two, 1) && !memory.admits(0, SMALL_BYTES + 1));
        assert!(memory.admits(0, SMALL_BYTES), "a small request goes on");
        let now = Instant(7);
        memory.wait(now, 8 << 20);
        memory.wait(now.after(PATIENCE), 4 << 20);
        assert_eq!(memory.deadline(), now.after(PATIENCE), "since the first");
        memory.charge(&mut one, 44 << 20);
        assert!(!memory.has_room(), "nobody gets what it needs");
        memory.charge(&mut one, 43 << 20);
        assert!(memory.has_room(), "one does");
        memory.retry();
        assert!(!memory.has_room(), "nobody has said that it still waits");
        memory.charge(&mut two, 22 << 20);
        assert!(memory.is_exceeded() && !memory.is_relieved());
        memory.charge(&mut one, 0);
        assert!(memory.is_relieved());
        memory.end_waiting();
        assert_eq!(memory.deadline(), Instant::NEVER);
    }

    #[test]
    fn who_holds_most_goes_first_until_half_is_free() {
        let mut memory = ClientMemory::new(64 << 20);
        let mut charged = [0; 5];
        for (charge, now) in charged.iter_mut().zip([0, 10 << 20, 90 << 20, 30 << 20, 25 << 20]) {
            memory.charge(charge, now);
        }
        memory.spare(Instant(7), 2, charged[2], 80 << 20);
        assert!(memory.is_exceeded() && memory.spared() == Some(2));
        let mut gone = Vec::new();
        let mut evictable = memory.evictable((0..).zip(charged));
        while let Some((address, bytes)) = memory.evict(&mut evictable) {
            memory.charge(&mut charged[address as usize], 0);
            gone.push((address, bytes));
        }
        assert_eq!(gone, [(3, 30 << 20), (4, 25 << 20)], "less than half is taken, but for who is spared");
        assert_eq!(memory.evicted(), 2);

        memory.spare_nobody();
        let mut evictable = memory.evictable((0..).zip(charged));
        assert_eq!(memory.evict(&mut evictable), Some((2, 90 << 20)));
        assert!(memory.evictable([(0, 0)].into_iter()).is_empty(), "nobody takes anything");
        assert_eq!(memory.evicted(), 3);
    }

    #[test]
    fn one_large_reply_is_spared_while_it_is_taken() {
        let mut memory = ClientMemory::new(64 << 20);
        let (mut one, mut two) = (0, 0);
        memory.charge(&mut one, 112 << 20);
        assert!(memory.is_exceeded());
        let mut now = Instant(7);
        memory.spare(now, 1, one, 100 << 20);
        assert_eq!((memory.spared(), memory.spared_until()), (Some(1), now.after(PATIENCE)));
        assert!(!memory.is_exceeded() && memory.is_relieved() && memory.admits(two, 8 << 20));
        memory.charge(&mut two, 65 << 20);
        assert!(memory.is_exceeded(), "one, not two");
        memory.charge(&mut two, 0);
        for owed in [90 << 20, 50 << 20, 20 << 20] {
            now = now.after(PATIENCE);
            memory.spare(now, 1, one, owed);
            assert_eq!(memory.spared(), Some(1), "it takes some");
        }
        now = now.after(PATIENCE);
        memory.spare(now, 1, one, 20 << 20);
        assert!(memory.is_exceeded() && memory.spared().is_none() && memory.candidate() == Some(1));
        memory.spare(now, 1, one, 19 << 20);
        assert!(!memory.is_exceeded(), "it takes some after all");
        memory.charge(&mut one, 30 << 20);
        memory.spare(now, 1, one, 19 << 20);
        assert_eq!((memory.candidate(), memory.spared_until()), (None, Instant::NEVER));
        memory.charge(&mut one, 70 << 20);
        memory.spare(now, 1, one, 19 << 20);
        assert!(memory.is_exceeded(), "what it takes is not replies");
    }
}
