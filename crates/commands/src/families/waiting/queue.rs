//! The queue of those who wait for elements of a key.

use crate::access::{EntryRef as _, Expiry, Keys, KeysMut, waiting_key};
use crate::encoding::{Field, Seed};
use crate::error::ExecutionError;
use crate::limits::{LEASE_MS_MAX, QUEUE_LENGTH_MAX};
use crate::primitive::{Malformed, take_up_to};
use core::num::NonZeroU64;
use syros_types::varint::{put_varint, take_varint};
use syros_values::{List, ListEnd};

/// The number of a member in the ids of what waits at a gateway, which is no member.
const GATEWAY: u64 = 0xff;

/// Members that a set of them can name.
const MEMBERS: u64 = 64;

/// What one command that waits is known by, on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId {
    /// The node that it waits at, and which life of it: see [`WaiterId::owner`].
    pub owner: u64,
    /// Which of those that wait there.
    pub sequence: u64,
}

impl WaiterId {
    /// Of a command that does not wait.
    pub const NONE: Self = Self { owner: 0, sequence: 0 };

    /// The owner that is this member of the group (`None`: a gateway), in the life that has drawn this number.
    #[must_use]
    pub const fn owner(member: Option<u8>, life: u64) -> u64 {
        let member = match member {
            Some(member) => member as u64,
            None => GATEWAY,
        };
        // Not 0, which is of no life.
        member << 56 | life >> 8 | 1
    }
}

/// The member in the id of an owner.
const fn member_of(owner: u64) -> u64 {
    owner >> 56
}

/// Eight bytes of the owner, and a number.
impl Field<'_> for WaiterId {
    type Content = Self;

    fn put(out: &mut Vec<u8>, id: Self) {
        Seed::put(out, id.owner);
        put_varint(out, id.sequence);
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self { owner: Seed::take(input)?, sequence: take_varint(input)? })
    }
}

/// For how long one counts as waiting, in milliseconds.
pub(super) enum Lease {}

impl Field<'_> for Lease {
    type Content = u64;

    fn put(out: &mut Vec<u8>, lease_ms: u64) {
        put_varint(out, lease_ms);
    }

    fn take(input: &mut &[u8]) -> Result<u64, Malformed> {
        take_up_to(input, LEASE_MS_MAX)
    }
}

/// Who waits, and until when that counts, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) id: WaiterId,
    pub(super) until: u64,
}

impl Standing {
    const BYTES: usize = 24;

    fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.id.owner.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.id.sequence.to_le_bytes());
        bytes[16..].copy_from_slice(&self.until.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        (bytes.len() == Self::BYTES).then(|| {
            Some(Self { id: WaiterId { owner: number(0)?, sequence: number(8)? }, until: number(16)? })
        })?
    }

    /// True if it does not count any more: it was to be renewed before `now_ms`, its node is one of `absent`, or it is of
    /// an earlier life of the node that `asks`.
    pub(super) const fn has_gone(self, now_ms: u64, absent: u64, asks: u64) -> bool {
        let member = member_of(self.id.owner);
        let is_absent = member < MEMBERS && absent >> member & 1 == 1;
        let is_of_earlier_life =
            member != GATEWAY && member == member_of(asks) && self.id.owner != asks && asks != 0;
        self.until <= now_ms || is_absent || is_of_earlier_life
    }
}

/// Those who stand in a queue and have not [gone](Standing::has_gone), the first one first, and the ranks of those who have in
/// `gone`. Thousands may stand in a queue, and each of them comes by in each key that it waits for: nothing is kept of those
/// that are only passed.
fn stand<'a>(
    list: &'a List,
    has_gone: impl Fn(Standing) -> bool + 'a,
    mut gone: impl FnMut(u64) + 'a,
) -> impl Iterator<Item = (u64, Standing)> + 'a {
    (0..).zip(list.iter()).filter_map(move |(rank, bytes)| {
        let one = Standing::of(bytes).filter(|one| !has_gone(*one));
        if one.is_none() {
            gone(rank);
        }
        one.map(|one| (rank, one))
    })
}

/// How a queue is looked at by a node that wants to know whose turn it is: how many of those in the queue are of an owner, and
/// the numbers of those of them who are among the first ones.
pub(super) fn turns_of<K: Keys>(
    keys: &K,
    (key, is_list): (&[u8], bool),
    has_gone: impl Fn(Standing) -> bool,
    (owner, first): (u64, u64),
) -> (u64, Vec<u64>) {
    let (mut count, mut turns) = (0, Vec::new());
    let found = waiting_key(key, is_list).and_then(|name| keys.get(&name));
    if let Some(list) = found.as_ref().and_then(|found| found.list().ok()) {
        for (place, (_, one)) in (0..).zip(stand(list, has_gone, |_| {})) {
            if one.id.owner == owner {
                count += 1;
                if place < first {
                    turns.push(one.id.sequence);
                }
            }
        }
    }
    (count, turns)
}

/// The place of the one in a queue whom an operation is about.
#[derive(Clone, Copy, Debug)]
struct Place {
    one: Standing,
    /// So many are before it.
    before: u64,
    /// Its rank in the list behind the hidden key; `None` if it is to be added.
    rank: Option<u64>,
    /// What the list has is to be replaced.
    is_renewed: bool,
}

/// The queue of a key as an operation about one of those in it finds it, and what the operation does with it.
pub(super) struct Queue {
    /// The hidden key that it stands behind; `None` if nobody can wait.
    name: Option<Vec<u8>>,
    /// The place of the one; `None` if it does not stand here.
    own: Option<Place>,
    /// How many others stand here, and until when the last one of them does.
    others: u64,
    latest: u64,
    /// The ranks of those that were there and have left or gone, in no order.
    left: Vec<u64>,
    /// When the hidden key expires.
    expiry: Expiry,
}

impl Queue {
    /// The queue of a key in which this one stands or wants to, without those who have [gone](Standing::has_gone).
    pub(super) fn read<K: Keys>(
        keys: &K,
        (key, is_list): (&[u8], bool),
        id: WaiterId,
        has_gone: impl Fn(Standing) -> bool,
    ) -> Self {
        let name = waiting_key(key, is_list);
        let mut queue = Self { name, own: None, others: 0, latest: 0, left: Vec::new(), expiry: None };
        if let Some(found) = queue.name.as_ref().and_then(|name| keys.get(name))
            && let Ok(list) = found.list()
        {
            queue.expiry = found.expiry();
            for (rank, one) in stand(list, has_gone, |rank| queue.left.push(rank)) {
                if one.id == id && queue.own.is_none() {
                    let before = queue.others;
                    queue.own = Some(Place { one, before, rank: Some(rank), is_renewed: false });
                } else {
                    queue.others += 1;
                    queue.latest = queue.latest.max(one.until);
                }
            }
        }
        queue
    }

    /// How many are before the one, who may be missing: all then.
    pub(super) fn before(&self) -> u64 {
        self.own.map_or(self.others, |own| own.before)
    }

    /// Has the one wait until then: at the end, if it does not wait already.
    ///
    /// # Errors
    /// If too many wait, or the name of the key is too long.
    pub(super) fn enter(&mut self, one: Standing) -> Result<(), ExecutionError> {
        if self.name.is_none() {
            return Err(ExecutionError::WaitedKeyTooLong);
        }
        if let Some(own) = &mut self.own {
            (own.one.until, own.is_renewed) = (one.until, true);
            return Ok(());
        }
        if self.others >= QUEUE_LENGTH_MAX as u64 {
            return Err(ExecutionError::TooManyWaiting);
        }
        self.own = Some(Place { one, before: self.others, rank: None, is_renewed: false });
        Ok(())
    }

    /// Takes the one out.
    pub(super) fn leave(&mut self) {
        self.left.extend(self.own.take().and_then(|own| own.rank));
    }

    /// Puts the queue back, if it has changed. The list is not built anew: thousands may stand in it, and each of them enters
    /// and leaves.
    pub(super) fn store<K: KeysMut>(mut self, keys: &mut K) {
        let own = self.own.filter(|own| own.rank.is_none() || own.is_renewed);
        let is_changed = !self.left.is_empty() || own.is_some();
        let Some(name) = self.name.as_ref().filter(|_| is_changed) else { return };
        let latest = self.own.map_or(self.latest, |own| self.latest.max(own.one.until));
        let Some(until) = NonZeroU64::new(latest) else {
            return keys.remove(name);
        };
        self.left.sort_unstable();
        let left = &self.left;
        let edited = keys.edit_collection(name, |list: &mut List| {
            if let Some(Place { one, rank: Some(rank), .. }) = own {
                list.set(rank, &one.bytes());
            }
            // From the end, so that the ranks of those that are still to be removed stay what they are.
            left.iter().rev().for_each(|rank| list.remove_range(*rank..rank + 1));
            if let Some(Place { one, rank: None, .. }) = own {
                list.push(ListEnd::Right, &one.bytes());
            }
        });
        debug_assert!(edited.is_ok(), "nothing but a queue stands behind a hidden key");
        // Nobody asks for a queue that all have forgotten.
        if self.expiry != Some(until) {
            keys.set_expiry(name, Some(until));
        }
    }
}
