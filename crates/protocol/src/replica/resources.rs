//! The room that a replica's process has left, as its driver reports it.

/// How many times its bytes an update takes of the log at most: it may be written again when it is ordered, or a record that
/// does not fit behind the others leaves the rest of its segment empty; and again with the log of a new view.
const WRITTEN_MAX: u64 = 3;

/// Memory and disk.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct Resources {
    /// The disk does not take records any more.
    pub(super) disk_failed: bool,
    /// The disk has room for so many bytes; none if it is nearly full.
    disk_room: u64,
    /// The state may grow by so many bytes; negative if it has more than it may.
    pub(super) memory_room: i64,
    /// So many more while the replica leads.
    pub(super) leader_margin: u64,
}

impl Resources {
    /// True if the disk is nearly full.
    pub(super) const fn disk_is_short(self) -> bool {
        self.disk_room == 0
    }

    /// The disk has room for so many bytes: what was told last, less what was taken since.
    pub(super) const fn disk_room(self) -> u64 {
        self.disk_room
    }

    /// The disk has room for so many bytes, beside updates of so many that were accepted and are not ordered yet: each of them
    /// has been written once.
    pub(super) const fn set_disk_room(&mut self, bytes: u64, accepted: u64) {
        self.disk_room = match bytes {
            u64::MAX => bytes,
            bytes => bytes.saturating_sub(accepted.saturating_mul(WRITTEN_MAX - 1)),
        };
    }

    /// An update of so many bytes is on its way to the disk.
    pub(super) const fn take_disk_room(&mut self, bytes: u64) {
        if self.disk_room != u64::MAX {
            self.disk_room = self.disk_room.saturating_sub(bytes.saturating_mul(WRITTEN_MAX));
        }
    }

    /// Room for everything.
    pub(super) const fn new() -> Self {
        Self { disk_failed: false, disk_room: u64::MAX, memory_room: i64::MAX, leader_margin: 0 }
    }

    /// True if the state may not grow by `needed` bytes.
    pub(super) fn lacks_memory(self, needed: impl FnOnce() -> usize, leads: bool) -> bool {
        self.memory_room != i64::MAX && {
            let margin = if leads { i64::try_from(self.leader_margin).unwrap_or(i64::MAX) } else { 0 };
            i64::try_from(needed()).unwrap_or(i64::MAX) > self.memory_room.saturating_add(margin)
        }
    }
}
