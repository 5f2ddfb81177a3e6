//! The room that a replica's process has left, as its driver reports it.

/// Memory and disk.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct Resources {
    /// The disk does not take records any more.
    pub(super) disk_failed: bool,
    /// The disk is nearly full.
    pub(super) disk_is_short: bool,
    /// The state may grow by so many bytes; negative if it has more than it may.
    pub(super) memory_room: i64,
    /// So many more while the replica leads.
    pub(super) leader_margin: u64,
}

impl Resources {
    /// Room for everything.
    pub(super) const fn new() -> Self {
        Self { disk_failed: false, disk_is_short: false, memory_room: i64::MAX, leader_margin: 0 }
    }

    /// True if the state may not grow by `needed` bytes.
    pub(super) fn lacks_memory(self, needed: impl FnOnce() -> usize, leads: bool) -> bool {
        self.memory_room != i64::MAX && {
            let margin = if leads { i64::try_from(self.leader_margin).unwrap_or(i64::MAX) } else { 0 };
            i64::try_from(needed()).unwrap_or(i64::MAX) > self.memory_room.saturating_add(margin)
        }
    }
}
