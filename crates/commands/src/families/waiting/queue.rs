//! The queue of those who wait for elements of a key.

use crate::access::{EntryRef as _, Keys, KeysMut, waiting_key};
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

/// The queue of a key as an operation finds it.
pub(super) struct Queue {
    /// The hidden key that it stands behind; `None` if nobody can wait.
    name: Option<Vec<u8>>,
    standing: Vec<Standing>,
    /// Some that were there have gone.
    is_changed: bool,
}

impl Queue {
    /// The queue of a key, without those who have [gone](Standing::has_gone).
    pub(super) fn read<K: Keys>(
        keys: &K,
        (key, is_list): (&[u8], bool),
        has_gone: impl Fn(Standing) -> bool,
    ) -> Self {
        let name = waiting_key(key, is_list);
        let mut standing = Vec::new();
        let mut is_changed = false;
        if let Some(found) = name.as_ref().and_then(|name| keys.get(name))
            && let Ok(list) = found.list()
        {
            standing.extend(list.iter().filter_map(Standing::of));
            let before = standing.len();
            standing.retain(|one| !has_gone(*one));
            is_changed = standing.len() < before;
        }
        Self { name, standing, is_changed }
    }

    /// Those who wait, the first one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Standing> {
        self.standing.iter().copied()
    }

    /// How many are before this one, who may be missing: all then.
    pub(super) fn before(&self, id: WaiterId) -> u64 {
        let place = self.standing.iter().position(|one| one.id == id);
        place.unwrap_or(self.standing.len()) as u64
    }

    /// Has one wait until then: at the end, if it does not wait already.
    ///
    /// # Errors
    /// If too many wait, or the name of the key is too long.
    pub(super) fn enter(&mut self, one: Standing) -> Result<(), ExecutionError> {
        if self.name.is_none() {
            return Err(ExecutionError::WaitedKeyTooLong);
        }
        self.is_changed = true;
        if let Some(known) = self.standing.iter_mut().find(|known| known.id == one.id) {
            known.until = one.until;
            return Ok(());
        }
        if self.standing.len() >= QUEUE_LENGTH_MAX {
            return Err(ExecutionError::TooManyWaiting);
        }
        self.standing.push(one);
        Ok(())
    }

    /// Takes one out.
    pub(super) fn leave(&mut self, id: WaiterId) {
        let before = self.standing.len();
        self.standing.retain(|one| one.id != id);
        self.is_changed |= self.standing.len() < before;
    }

    /// Puts the queue back, if it has changed.
    pub(super) fn store<K: KeysMut>(&self, keys: &mut K) {
        let Some(name) = self.name.as_ref().filter(|_| self.is_changed) else { return };
        let Some(until) = self.standing.iter().map(|one| one.until).max().and_then(NonZeroU64::new) else {
            return keys.remove(name);
        };
        let mut list = List::default();
        self.standing.iter().for_each(|one| list.push(ListEnd::Right, &one.bytes()));
        keys.set_collection(name, list);
        // Nobody asks for a queue that all have forgotten.
        keys.set_expiry(name, Some(until));
    }
}
