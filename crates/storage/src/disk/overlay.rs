//! The records of a store as a lane sees them: with changes that it has not committed.

use super::layout::{StoreKey, merged};
use crate::store::{Change, Store, StoreError};
use core::ops::ControlFlow;

/// Visits the records from a key on, in order, until `visit` breaks off: those of a store, changed.
pub(super) fn walk<'a, S: Store>(
    store: &S,
    changes: impl Iterator<Item = (&'a StoreKey, &'a Change)>,
    from: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut changes: Vec<_> = changes.filter(|(key, _)| key.as_slice() >= from).collect();
    changes.sort_unstable_by_key(|(key, _)| *key);
    let mut changes = changes.into_iter().peekable();
    let mut flow = ControlFlow::Continue(());
    store.walk(None, from, |key, record| {
        while let Some((new, change)) = changes.next_if(|(changed, _)| changed.as_slice() < key)
            && flow.is_continue()
        {
            flow = visit_changed(new, None, change, &mut visit);
        }
        if flow.is_continue() {
            flow = match changes.next_if(|(changed, _)| changed.as_slice() == key) {
                Some((_, change)) => visit_changed(key, Some(record), change, &mut visit),
                None => visit(key, record),
            };
        }
        flow
    })?;
    for (new, change) in changes {
        if flow.is_break() {
            break;
        }
        flow = visit_changed(new, None, change, &mut visit);
    }
    Ok(())
}

/// Visits a record that has been changed, unless it has been removed.
fn visit_changed(
    key: &[u8],
    old: Option<&[u8]>,
    change: &Change,
    visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match change {
        Change::Put(record) => visit(key, record),
        Change::Delete => ControlFlow::Continue(()),
        Change::Merge(operands) => visit(key, &merged(old, operands.iter().map(Vec::as_slice))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use crate::disk::layout::encode_operand;
    use syros_commands::access::Operand;

    #[test]
    fn a_walk_sees_changes_in_their_places() {
        let key = |name: &str| StoreKey::from_slice(name.as_bytes());
        let put = |text: &str| Change::Put([&[0], text.as_bytes()].concat());
        let store = MemoryStore::new();
        let stored = ["b", "d", "f", "h"].map(|name| (key(name), put(name)));
        store.write(stored.into_iter()).expect("a store in memory");
        let append = || Change::Merge(vec![encode_operand(0, 0, Operand::Append(b"+"))]);
        let changes = [
            (key("i"), put("i")),
            (key("d"), Change::Delete),
            (key("a"), put("a")),
            (key("g"), append()),
            (key("f"), append()),
            (key("b"), put("B")),
            (key("c"), Change::Delete),
        ];
        let seen = |from: &str, most: usize| {
            let mut seen = Vec::new();
            let changes = changes.iter().map(|(key, change)| (key, change));
            let walked = walk(&store, changes, from.as_bytes(), |key, record| {
                seen.push(format!("{} {}", key.escape_ascii(), record[1..].escape_ascii()));
                if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            walked.expect("a store in memory");
            seen
        };
        let all = ["a a", "b B", "f f+", "g +", "h h", "i i"];
        for most in 1..=all.len() {
            assert_eq!(seen("", most), all[..most]);
        }
        assert_eq!(seen("c", 9), all[2..]);
        assert_eq!(seen("i", 9), all[5..]);
        assert!(seen("j", 9).is_empty());
    }
}
