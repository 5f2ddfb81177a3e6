//! Ranges of keys that nobody will read or write any more. Tables that have nothing else are dropped at once, the
//! rest goes when compaction comes across it.

use crate::views::Views;
use core::fmt;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) from: Vec<u8>,
    pub(crate) until: Vec<u8>,
    /// Views of this moment or earlier may still see it.
    moment: u64,
    /// Its tables have been dropped.
    dropped: bool,
}

impl Range {
    fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && key < self.until.as_slice()
    }
}

/// All of them since the store was opened.
pub(crate) struct DroppedRanges {
    views: Arc<Views>,
    ranges: Mutex<Vec<Range>>,
}

impl fmt::Debug for DroppedRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DroppedRanges").field(&self.ranges().len()).finish()
    }
}

impl DroppedRanges {
    pub(crate) const fn new(views: Arc<Views>) -> Self {
        Self { views, ranges: Mutex::new(Vec::new()) }
    }

    fn ranges(&self) -> MutexGuard<'_, Vec<Range>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a range, which views of `moment` may still see.
    pub(crate) fn add(&self, from: &[u8], until: &[u8], moment: u64) {
        if from >= until {
            return;
        }
        let mut ranges = self.ranges();
        ranges.retain(|old| old.from.as_slice() < from || old.until.as_slice() > until);
        ranges.push(Range { from: from.to_vec(), until: until.to_vec(), moment, dropped: false });
    }

    /// Those that no view sees any more.
    fn unseen(&self) -> Vec<Range> {
        let first = self.views.first();
        let unseen = |range: &&Range| first.is_none_or(|first| first > range.moment);
        self.ranges().iter().filter(unseen).cloned().collect()
    }

    /// Those whose tables can be dropped and have not been.
    pub(crate) fn due(&self) -> Vec<Range> {
        self.unseen().into_iter().filter(|range| !range.dropped).collect()
    }

    /// The tables of this range have been dropped.
    pub(crate) fn dropped(&self, range: &Range) {
        for other in self.ranges().iter_mut() {
            other.dropped |= other.from == range.from && other.until == range.until;
        }
    }
}

/// Makes the filters of compactions.
pub(crate) struct Filters(pub(crate) Arc<DroppedRanges>);

impl Factory for Filters {
    fn name(&self) -> &'static str {
        "forgotten"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        // The tables that are merged are fixed before a filter is made.
        self.0.views.begun();
        Box::new(Filter(self.0.unseen()))
    }
}

struct Filter(Vec<Range>);

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        // Older values may come to light again by this: nobody looks.
        let is_dropped = self.0.iter().any(|range| range.contains(item.key()));
        Ok(if is_dropped { Verdict::Destroy } else { Verdict::Keep })
    }
}
