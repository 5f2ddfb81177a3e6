//! The consumer groups of a stream.

use super::record::{
    CONSUMER, Consumer, Group, PENDING, Pending, Record as _, consumer_key, group_key, id_of, name_key,
    owned_key, owned_prefix, pending_key, prefix,
};
use super::{State, Stream, StreamId};
use core::ops::Range;
use syros_tree::Dictionary;

impl Stream {
    /// Number of groups.
    #[must_use]
    pub fn groups_len(&self) -> u64 {
        let ranks = ranks_of(&self.0.records, &[0]);
        ranks.end - ranks.start
    }

    /// The groups in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], Group)> {
        let records = &self.0.records;
        records.range(ranks_of(records, &[0])).map(|(key, value)| (&key[1..], Group::trusted(value)))
    }

    /// The group of this name.
    #[must_use]
    pub fn group(&self, name: &[u8]) -> Option<Group> {
        self.0.records.get(&group_key(name)).map(Group::trusted)
    }

    /// Creates a group. False, without a change, if there is one of this name.
    pub fn create_group(&mut self, name: &[u8], last: StreamId, entries_read: Option<u64>) -> bool {
        let state = self.state_mut();
        let key = group_key(name);
        if state.records.get(&key).is_some() {
            return false;
        }
        let group = Group { number: state.next_number(), last, entries_read };
        state.records.insert(&key, &group.encoded())
    }

    /// Replaces what is known of a group that there is.
    pub fn set_group(&mut self, name: &[u8], group: &Group) {
        self.state_mut().records.insert(&group_key(name), &group.encoded());
    }

    /// Removes a group with its consumers and all that is pending there. False if there is none.
    pub fn destroy_group(&mut self, name: &[u8]) -> bool {
        let Some(Group { number, .. }) = self.group(name) else { return false };
        let state = self.state_mut();
        state.records.remove(&group_key(name));
        for tree in [&mut state.records, &mut state.index] {
            let [consumers, pending] = [CONSUMER, PENDING].map(|sort| ranks_of(tree, &prefix(number, sort)));
            drop(tree.remove_range(consumers.start..pending.end));
        }
        true
    }

    /// Number of consumers of a group.
    #[must_use]
    pub fn consumers_len(&self, group: &Group) -> u64 {
        let ranks = ranks_of(&self.0.records, &prefix(group.number, CONSUMER));
        ranks.end - ranks.start
    }

    /// The consumers of a group in the order of their names.
    pub fn consumers(&self, group: &Group) -> impl ExactSizeIterator<Item = (&[u8], Consumer)> {
        let (records, prefix) = (&self.0.records, prefix(group.number, CONSUMER));
        let skipped = prefix.len();
        let found = records.range(ranks_of(records, &prefix));
        found.map(move |(key, value)| (&key[skipped..], Consumer::trusted(value)))
    }

    /// The consumer of this name.
    #[must_use]
    pub fn consumer(&self, group: &Group, name: &[u8]) -> Option<Consumer> {
        self.0.records.get(&consumer_key(group.number, name)).map(Consumer::trusted)
    }

    /// The consumer at which an entry of a group is pending, by its name.
    #[must_use]
    pub fn owner(&self, group: &Group, pending: &Pending) -> &[u8] {
        let name = self.0.index.get(&name_key(group.number, pending.consumer));
        name.expect("what is pending is pending at a consumer of the group")
    }

    /// The consumer of this name, which is created if there is none, and has been seen now.
    pub fn see_consumer(&mut self, group: &Group, name: &[u8], now_ms: u64) -> Consumer {
        let known = self.consumer(group, name);
        let state = self.state_mut();
        let consumer = match known {
            Some(consumer) => Consumer { seen_ms: now_ms, ..consumer },
            None => {
                let number = state.next_number();
                state.index.insert(&name_key(group.number, number), name);
                Consumer { number, seen_ms: now_ms, active_ms: None }
            }
        };
        state.records.insert(&consumer_key(group.number, name), &consumer.encoded());
        consumer
    }

    /// Replaces what is known of a consumer that there is.
    pub fn set_consumer(&mut self, group: &Group, name: &[u8], consumer: &Consumer) {
        self.state_mut().records.insert(&consumer_key(group.number, name), &consumer.encoded());
    }

    /// Removes a consumer with all that is pending there. How many entries these were; none if there is no such consumer.
    pub fn delete_consumer(&mut self, group: &Group, name: &[u8]) -> Option<u64> {
        let consumer = self.consumer(group, name)?;
        let ids: Vec<StreamId> = self.owned(group, &consumer, StreamId::MIN).collect();
        let state = self.state_mut();
        for id in &ids {
            state.records.remove(&pending_key(group.number, *id));
        }
        let ranks = ranks_of(&state.index, &owned_prefix(group.number, consumer.number));
        drop(state.index.remove_range(ranks));
        state.index.remove(&name_key(group.number, consumer.number));
        state.records.remove(&consumer_key(group.number, name));
        Some(ids.len() as u64)
    }

    /// Number of entries that are pending in a group.
    #[must_use]
    pub fn pending_len(&self, group: &Group) -> u64 {
        let ranks = ranks_of(&self.0.records, &prefix(group.number, PENDING));
        ranks.end - ranks.start
    }

    /// The entries that are pending in a group, from one id to another one, which is included, in order, from either end.
    pub fn pending_from(
        &self,
        group: &Group,
        from: StreamId,
        to: StreamId,
    ) -> impl DoubleEndedIterator<Item = (StreamId, Pending)> + ExactSizeIterator {
        let records = &self.0.records;
        let start = records.count_before(&pending_key(group.number, from));
        let end = match to.next() {
            Some(behind) => records.count_before(&pending_key(group.number, behind)),
            None => ranks_of(records, &prefix(group.number, PENDING)).end,
        };
        let id = |key| id_of(key).expect("the key of a pending entry ends with its id");
        records.range(start..end.max(start)).map(move |(key, value)| (id(key), Pending::trusted(value)))
    }

    /// What is known of an entry if it is pending in a group.
    #[must_use]
    pub fn pending(&self, group: &Group, id: StreamId) -> Option<Pending> {
        self.0.records.get(&pending_key(group.number, id)).map(Pending::trusted)
    }

    /// Number of entries that are pending at a consumer.
    #[must_use]
    pub fn owned_len(&self, group: &Group, consumer: &Consumer) -> u64 {
        let ranks = ranks_of(&self.0.index, &owned_prefix(group.number, consumer.number));
        ranks.end - ranks.start
    }

    /// The ids of the entries that are pending at a consumer, from one on, in order.
    pub fn owned(
        &self,
        group: &Group,
        consumer: &Consumer,
        from: StreamId,
    ) -> impl ExactSizeIterator<Item = StreamId> {
        let index = &self.0.index;
        let start = index.count_before(&owned_key(group.number, consumer.number, from));
        let end = ranks_of(index, &owned_prefix(group.number, consumer.number)).end;
        let id = |key| id_of(key).expect("the key of an owned entry ends with its id");
        index.range(start..end).map(move |(key, _)| id(key))
    }

    /// Has an entry be pending at a consumer, whether it was pending or not.
    pub fn deliver(
        &mut self,
        group: &Group,
        id: StreamId,
        consumer: &Consumer,
        (delivered_ms, deliveries): (u64, u64),
    ) {
        let pending = Pending { consumer: consumer.number, delivered_ms, deliveries };
        let old = self.pending(group, id);
        let state = self.state_mut();
        match old {
            Some(old) if old.consumer == consumer.number => {}
            Some(old) => {
                state.index.remove(&owned_key(group.number, old.consumer, id));
                state.index.insert(&owned_key(group.number, consumer.number, id), b"");
            }
            None => {
                state.index.insert(&owned_key(group.number, consumer.number, id), b"");
            }
        }
        state.records.insert(&pending_key(group.number, id), &pending.encoded());
    }

    /// An entry is not pending in a group any more. False if it was not.
    pub fn settle(&mut self, group: &Group, id: StreamId) -> bool {
        let Some(pending) = self.pending(group, id) else { return false };
        let state = self.state_mut();
        state.index.remove(&owned_key(group.number, pending.consumer, id));
        state.records.remove(&pending_key(group.number, id))
    }
}

impl State {
    /// The number of the next group or consumer.
    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

/// The ranks of the keys that begin with a prefix, of which some byte is not the greatest.
fn ranks_of(tree: &Dictionary, prefix: &[u8]) -> Range<u64> {
    let mut behind = prefix.to_vec();
    while behind.last() == Some(&u8::MAX) {
        behind.pop();
    }
    if let Some(last) = behind.last_mut() {
        *last += 1;
    }
    tree.count_before(prefix)..tree.count_before(&behind)
}
