//! ACL LOG: what clients of this process were refused.

use std::collections::VecDeque;
use std::time::Duration;
use syros_types::WallTime;

/// Most entries. With the longest names that are kept they take some megabytes.
pub(crate) const ACL_LOG_LENGTH_MAX: u64 = 4096;

/// Of a name so many bytes are kept.
const NAME_BYTES_MAX: usize = 1024;

/// Refusals alike within this time are one entry, if it is among the last few: as in Redis.
const GROUPED_FOR: Duration = Duration::from_secs(60);
const GROUPED_AMONG: usize = 10;

/// Where the refused command stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalContext {
    Toplevel,
    Multi,
}

impl RefusalContext {
    /// Its name in ACL LOG.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Toplevel => "toplevel",
            Self::Multi => "multi",
        }
    }
}

/// What was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `command`, `key`, `channel` or `auth`.
    pub(crate) reason: &'static str,
    pub(crate) context: RefusalContext,
    /// The command, key or channel.
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AclEntry {
    pub(crate) number: u64,
    pub(crate) count: u64,
    pub(crate) refusal: Refusal,
    /// When it was refused first, and last.
    pub(crate) first: WallTime,
    pub(crate) last: WallTime,
    /// The last client, as CLIENT LIST shows it.
    pub(crate) client: Vec<u8>,
}

/// What clients of this process were refused, the latest first.
#[derive(Debug, Default)]
pub(crate) struct AclLog {
    next: u64,
    entries: VecDeque<AclEntry>,
}

impl AclLog {
    /// Something has been refused to a client. No more than `length` entries are kept.
    pub(crate) fn push(&mut self, mut refusal: Refusal, client: Vec<u8>, now: WallTime, length: u64) {
        refusal.object.truncate(NAME_BYTES_MAX);
        refusal.user.truncate(NAME_BYTES_MAX);
        let is_alike = |entry: &AclEntry| {
            let since = Duration::from_micros(now.0.abs_diff(entry.last.0));
            entry.refusal == refusal && since <= GROUPED_FOR
        };
        let place = self.entries.iter().take(GROUPED_AMONG).position(is_alike);
        let entry = match place.and_then(|place| self.entries.remove(place)) {
            Some(entry) => AclEntry { count: entry.count + 1, last: now, client, ..entry },
            None => {
                let number = self.next;
                self.next += 1;
                AclEntry { number, count: 1, refusal, first: now, last: now, client }
            }
        };
        self.entries.push_front(entry);
        self.trim(length);
    }

    /// Keeps no more than the last so many.
    fn trim(&mut self, length: u64) {
        let length = usize::try_from(length.min(ACL_LOG_LENGTH_MAX)).unwrap_or(usize::MAX);
        self.entries.truncate(length);
    }

    /// Forgets all entries. Their numbers are not used again.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries, the latest first.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &AclEntry> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_alike_are_one_entry() {
        let refusal = |object: &[u8]| Refusal {
            reason: "key",
            context: RefusalContext::Toplevel,
            object: object.to_vec(),
            user: b"u".to_vec(),
        };
        let mut log = AclLog::default();
        let at = |seconds: u64| WallTime(seconds * 1_000_000);
        log.push(refusal(b"a"), b"one".to_vec(), at(1), 3);
        log.push(refusal(b"b"), b"one".to_vec(), at(2), 3);
        log.push(refusal(b"a"), b"two".to_vec(), at(60), 3);
        let shown = |log: &AclLog| -> Vec<_> {
            log.entries().map(|entry| (entry.number, entry.count, entry.refusal.object.clone())).collect()
        };
        assert_eq!(shown(&log), [(0, 2, b"a".to_vec()), (1, 1, b"b".to_vec())]);
        assert_eq!(log.entries().next().map(|entry| (entry.first, entry.last)), Some((at(1), at(60))));
        // Too long ago.
        log.push(refusal(b"a"), Vec::new(), at(121), 3);
        log.push(refusal(b"c"), Vec::new(), at(121), 3);
        assert_eq!(shown(&log), [(3, 1, b"c".to_vec()), (2, 1, b"a".to_vec()), (0, 2, b"a".to_vec())]);
        log.clear();
        log.push(refusal(&[b'x'; 5000]), Vec::new(), at(121), 3);
        assert_eq!(
            log.entries().next().map(|entry| (entry.number, entry.refusal.object.len())),
            Some((4, 1024))
        );
    }
}
