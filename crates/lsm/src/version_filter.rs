//! Leaves out, when memtables are flushed, what nobody can see any more.

use lsm_tree::{InternalValue, UserKey};

/// Passes on, of the entries in order, newest first within a key, the newest of each key and of those before it
/// the ones that a view sees.
pub(crate) struct VersionFilter<I> {
    entries: I,
    /// Moments of the views, in order.
    views: Vec<u64>,
    /// Key and number of the last entry.
    last: Option<(UserKey, u64)>,
}

impl<I> VersionFilter<I> {
    pub(crate) const fn new(entries: I, views: Vec<u64>) -> Self {
        Self { entries, views, last: None }
    }

    /// True if a view sees the entry numbered `older`, which `newer` comes after.
    fn seen(&self, older: u64, newer: u64) -> bool {
        let next = self.views.partition_point(|&view| view <= older);
        self.views.get(next).is_some_and(|&view| view <= newer)
    }
}

impl<I: Iterator<Item = lsm_tree::Result<InternalValue>>> Iterator for VersionFilter<I> {
    type Item = lsm_tree::Result<InternalValue>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.entries.next()? {
                Ok(entry) => entry,
                error => return Some(error),
            };
            let number = entry.key.seqno;
            let is_shadowed = match &mut self.last {
                Some((key, newer)) if *key == entry.key.user_key => {
                    let newer = core::mem::replace(newer, number);
                    !self.seen(number, newer)
                }
                last => {
                    *last = Some((entry.key.user_key.clone(), number));
                    false
                }
            };
            if !is_shadowed {
                return Some(Ok(entry));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsm_tree::ValueType;

    #[test]
    fn keeps_what_is_newest_or_seen() {
        let kept = |views: &[u64], entries: &[(&str, u64)]| {
            let entries = entries
                .iter()
                .map(|(key, number)| Ok(InternalValue::from_components(*key, "", *number, ValueType::Value)));
            VersionFilter::new(entries, views.to_vec())
                .map(|entry| entry.expect("all are fine").key.seqno)
                .collect::<Vec<_>>()
        };
        let entries = [("a", 9), ("a", 5), ("a", 3), ("b", 7), ("c", 8), ("c", 1)];
        assert_eq!(kept(&[], &entries), [9, 7, 8]);
        // A view of moment 5 sees what is numbered before.
        assert_eq!(kept(&[5], &entries), [9, 3, 7, 8, 1]);
        assert_eq!(kept(&[6, 9], &entries), [9, 5, 7, 8, 1]);
        assert_eq!(kept(&[10], &entries), [9, 7, 8]);
        assert_eq!(kept(&[4, 6], &entries), [9, 5, 3, 7, 8, 1]);
    }
}
