//! Digests of what a replica has executed, one for each segment of the log: replicas that have executed the same segment
//! whole have the same digest of it, whatever they did before. So nothing has to survive a restart, and no snapshot has to
//! carry anything: a replica that begins inside a segment says nothing of that one.

use crate::message::{DigestOf, LogEntry, Payload};
use alloc::collections::VecDeque;
use syros_types::{NodeId, OpNumber, fold};

/// The digests of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SegmentDigests {
    entries: u64,
    effects: u64,
}

impl SegmentDigests {
    /// The digests one by one.
    pub fn each(self) -> impl Iterator<Item = (DigestOf, u64)> {
        [(DigestOf::Entries, self.entries), (DigestOf::Effects, self.effects)].into_iter()
    }

    /// One of them.
    #[must_use]
    pub const fn of(self, of: DigestOf) -> u64 {
        match of {
            DigestOf::Entries => self.entries,
            DigestOf::Effects => self.effects,
        }
    }
}

/// Segments that are remembered: those that a slow follower may still report.
const SEGMENTS_MAX: usize = 64;

/// The digests of one replica.
#[derive(Clone, Debug)]
pub struct Digests {
    /// Entries in a segment; at least 1.
    length: u64,
    /// Of the entries since the present segment began.
    running: SegmentDigests,
    /// Every entry of the present segment is in it.
    is_whole: bool,
    /// Segments that have ended: their last op number and their digests.
    ended: VecDeque<(OpNumber, SegmentDigests)>,
}

impl Digests {
    /// Digests of segments of `length` entries, of a replica whose state is the one after entry `base`.
    #[must_use]
    pub fn after(base: OpNumber, length: u64) -> Self {
        let length = length.max(1);
        let is_whole = base.0.is_multiple_of(length);
        Self { length, running: SegmentDigests::default(), is_whole, ended: VecDeque::new() }
    }

    /// An update of the entry that is executed next has done this.
    pub const fn returned(&mut self, effects: u64) {
        self.running.effects = absorb(self.running.effects, effects);
    }

    /// The next entry has been executed. Gives the digests of the segment that it ends, if it ends one that is whole.
    pub fn executed(&mut self, number: OpNumber, entry: &LogEntry) -> Option<SegmentDigests> {
        self.running.entries = digest(self.running.entries, entry);
        if !number.0.is_multiple_of(self.length) {
            return None;
        }
        let ended = core::mem::take(&mut self.running);
        if !core::mem::replace(&mut self.is_whole, true) {
            return None;
        }
        if self.ended.len() == SEGMENTS_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((number, ended));
        Some(ended)
    }

    /// The digests of the segment that ends with this entry, if they are known.
    #[must_use]
    pub fn of(&self, number: OpNumber) -> Option<SegmentDigests> {
        self.ended.iter().rev().find(|(end, _)| *end == number).map(|(_, digests)| *digests)
    }
}

/// Takes a value into a digest.
const fn absorb(digest: u64, value: u64) -> u64 {
    fold(digest ^ value ^ 0x9e37_79b9_7f4a_7c15, 0xa076_1d64_78bd_642f) ^ value.rotate_left(31)
}

/// A copy of a request that was sent again may have another timestamp and acknowledge something else, which changes nothing
/// of what it does.
fn digest(before: u64, entry: &LogEntry) -> u64 {
    let digest = absorb(absorb(before, entry.view.0), entry.time.0);
    match &entry.payload {
        Payload::Update(_) | Payload::Recovered(_) => {
            entry.updates().iter().fold(digest, |digest, update| {
                let id = update.request.id;
                absorb(absorb(absorb(digest, id.session.0), id.sequence), update.body_hash.0)
            })
        }
        Payload::Register { nonce } => absorb(absorb(digest, 1), *nonce),
        Payload::Expire(ids) => ids.iter().fold(absorb(digest, 2), |digest, id| absorb(digest, id.0)),
        Payload::Tick => absorb(digest, 3),
        Payload::Reconfigure(next) => {
            let nodes = next.roster.nodes().iter();
            let of = |digest, node: &Option<NodeId>| absorb(digest, node.map_or(0, NodeId::number));
            nodes.fold(absorb(absorb(digest, 4), next.epoch.0), of)
        }
    }
}
