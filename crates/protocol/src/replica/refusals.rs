//! What a replica remembers of the updates that it has refused for good.

use crate::message::Refusal;
use alloc::collections::BTreeMap;
use core::time::Duration;
use syros_types::{Instant, OperationId};

/// How long a copy of a request may be on its way: for as long as a client waits for an answer.
const COPIES_COME_WITHIN: Duration = Duration::from_secs(10);

/// Updates refused in this view whose clients may take that for final, the oldest of which are forgotten.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct Refusals {
    /// Why, and as which of all.
    refused: BTreeMap<OperationId, (Refusal, u64)>,
    /// With when they were refused.
    order: BTreeMap<u64, (OperationId, Instant)>,
    /// Until when a copy may come of an update that was refused for want of room and forgotten, and why it was refused.
    forgotten: Option<(Instant, Refusal)>,
}

impl Refusals {
    /// Most that are remembered, which take 24 MiB: as many as are refused in the time that a copy is on its way, unless
    /// clients do nothing but ask.
    const MAX: usize = 262_144;

    /// Remembers one. What is known of it already stays.
    pub(super) fn insert(&mut self, id: OperationId, refusal: Refusal, now: Instant) {
        if self.refused.contains_key(&id) {
            return;
        }
        let number = self.order.last_key_value().map_or(0, |(last, _)| last + 1);
        self.refused.insert(id, (refusal, number));
        self.order.insert(number, (id, now));
        if self.order.len() > Self::MAX
            && let Some((_, (oldest, at))) = self.order.pop_first()
            && let Some((refusal @ (Refusal::OutOfMemory | Refusal::DiskFull), _)) =
                self.refused.remove(&oldest)
        {
            self.forgotten = Some((at.after(COPIES_COME_WITHIN), refusal));
        }
    }

    /// Why there is no room for any update that makes the state grow, though there is: it may be a copy of one that was
    /// refused and forgotten.
    pub(super) fn forgotten(&self, now: Instant) -> Option<Refusal> {
        self.forgotten.filter(|(until, _)| now < *until).map(|(_, refusal)| refusal)
    }

    /// Why an update was refused.
    pub(super) fn get(&self, id: OperationId) -> Option<Refusal> {
        self.refused.get(&id).map(|(refusal, _)| *refusal)
    }

    /// Forgets one.
    pub(super) fn remove(&mut self, id: OperationId) {
        if let Some((_, number)) = self.refused.remove(&id) {
            self.order.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::SessionId;

    #[test]
    fn the_oldest_are_forgotten_beyond_the_limit() {
        let id = |sequence| OperationId { session: SessionId(1), sequence };
        let (then, now) = (Instant(1_000), Instant(2_000));
        let mut refusals = Refusals::default();
        for sequence in 0..Refusals::MAX as u64 {
            refusals.insert(id(sequence), Refusal::DiskFull, then);
        }
        assert_eq!(refusals.forgotten(now), None);
        // One that is forgotten and comes back is the newest.
        refusals.remove(id(1));
        refusals.insert(id(1), Refusal::Overloaded, now);
        refusals.insert(id(2), Refusal::Overloaded, now);
        assert_eq!(refusals.get(id(2)), Some(Refusal::DiskFull));
        refusals.insert(id(Refusals::MAX as u64), Refusal::DiskFull, now);
        assert_eq!((refusals.get(id(0)), refusals.get(id(2))), (None, Some(Refusal::DiskFull)));
        assert_eq!(refusals.get(id(1)), Some(Refusal::Overloaded));
        assert_eq!((refusals.refused.len(), refusals.order.len()), (Refusals::MAX, Refusals::MAX));
        let until = then.after(COPIES_COME_WITHIN);
        assert_eq!(refusals.forgotten(Instant(until.0 - 1)), Some(Refusal::DiskFull));
        assert_eq!(refusals.forgotten(until), None);
    }
}
