//! What a replica remembers of the updates that it has refused for good.

use crate::message::Refusal;
use alloc::collections::BTreeMap;
use syros_types::OperationId;

/// Updates refused in this view whose clients may take that for final, the oldest of which are forgotten.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Refusals {
    /// Why, and as which of all.
    refused: BTreeMap<OperationId, (Refusal, u64)>,
    order: BTreeMap<u64, OperationId>,
}

impl Refusals {
    /// Most that are remembered, which take 20 MiB. Copies of one request are a round trip apart at most: one that is sent
    /// again later makes its client take no refusal for final. In a second nobody is refused more.
    const MAX: usize = 262_144;

    /// Remembers one. What is known of it already stays.
    pub(super) fn insert(&mut self, id: OperationId, refusal: Refusal) {
        if self.refused.contains_key(&id) {
            return;
        }
        let number = self.order.last_key_value().map_or(0, |(last, _)| last + 1);
        self.refused.insert(id, (refusal, number));
        self.order.insert(number, id);
        if self.order.len() > Self::MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.refused.remove(&oldest);
        }
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

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.refused.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::SessionId;

    #[test]
    fn the_oldest_are_forgotten_beyond_the_limit() {
        let id = |sequence| OperationId { session: SessionId(1), sequence };
        let mut refusals = Refusals::default();
        for sequence in 0..=Refusals::MAX as u64 {
            refusals.insert(id(sequence), Refusal::DiskFull);
        }
        assert_eq!(refusals.get(id(0)), None);
        assert_eq!(refusals.get(id(1)), Some(Refusal::DiskFull));
        // One that is forgotten and comes back is the newest.
        refusals.remove(id(1));
        refusals.insert(id(1), Refusal::Overloaded);
        refusals.insert(id(2), Refusal::Overloaded);
        assert_eq!(refusals.get(id(2)), Some(Refusal::DiskFull));
        for sequence in 0..16 {
            refusals.insert(OperationId { session: SessionId(2), sequence }, Refusal::DiskFull);
        }
        assert_eq!(refusals.get(id(1)), Some(Refusal::Overloaded));
        assert_eq!(refusals.refused.len(), Refusals::MAX);
        assert_eq!(refusals.order.len(), Refusals::MAX);
    }
}
