//! What clients ask for that watch keys: versions, then what the keys hold, then a transaction that depends on both.
//!
//! The judge takes a transaction that was executed for one whose first parts found what its client had seen of the keys.

use super::command::SHARED_PART_FIRST;
use super::{ClientCommand, Workload};
use core::ops::Range;
use syros_commands::Reply;
use syros_protocol::client::Outcome;

/// What clients ask for that watch keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// Operations of a hundred that begin with a watch.
    pub percent: u64,
    /// Most keys that a client watches at once.
    pub keys_max: u64,
    /// So many keys mostly do not exist, and engines keep one number for all of them while they do not. 0: ordinary keys are
    /// watched.
    pub shared_part: u64,
    /// Of a hundred other operations, so many are on those keys.
    pub updates_percent: u64,
}

/// A version that no key has: none are recorded.
const UNKNOWN: i64 = -1;

/// Where a client that watches keys stands.
#[derive(Clone, Debug)]
pub(crate) struct Watching {
    keys: Vec<u64>,
    step: WatchingStep,
}

#[derive(Clone, Debug)]
enum WatchingStep {
    /// It has asked for the versions; for the second time, if they had not been recorded.
    Versions { again: bool },
    /// It has asked for versions to be recorded.
    Recording,
    /// It has asked what the keys hold that have these versions.
    Values(Vec<i64>),
}

impl Watching {
    /// What the client does when it hears this: the operation, and where it stands then, if it is not the last one.
    pub(crate) fn on_outcome(
        self,
        outcome: &Outcome,
        workload: &mut Workload,
    ) -> Option<(Vec<ClientCommand>, Option<Self>)> {
        let Self { keys, step } = self;
        match step {
            WatchingStep::Recording if matches!(outcome, Outcome::Done | Outcome::Reply(_)) => {
                let steps = vec![ClientCommand::Watch(keys.clone())];
                Some((steps, Some(Self { keys, step: WatchingStep::Versions { again: true } })))
            }
            WatchingStep::Recording => None,
            WatchingStep::Versions { again } => {
                let versions = versions(outcome)?;
                if !versions.contains(&UNKNOWN) {
                    let steps = keys.iter().map(|key| ClientCommand::Get(*key)).collect();
                    return Some((steps, Some(Self { keys, step: WatchingStep::Values(versions) })));
                }
                let next = Self { keys, step: WatchingStep::Recording };
                (!again).then(|| (vec![ClientCommand::RecordVersions], Some(next)))
            }
            WatchingStep::Values(versions) => {
                let seen = texts(outcome)?;
                let updates = workload.updates_of(&keys);
                let seen = keys.into_iter().zip(seen).collect();
                let condition = ClientCommand::Unchanged { seen, versions };
                Some((core::iter::once(condition).chain(updates).collect(), None))
            }
        }
    }
}

fn versions(outcome: &Outcome) -> Option<Vec<i64>> {
    let Outcome::Reply(body) = outcome else { return None };
    let Ok(Reply::Array(replies)) = Reply::decode(&mut &**body) else { return None };
    let version = |reply: Reply| if let Reply::Integer(version) = reply { Some(version) } else { None };
    replies.into_iter().map(version).collect()
}

/// The text of each key; `None` if one of them holds something else.
fn texts(outcome: &Outcome) -> Option<Vec<Option<Vec<u8>>>> {
    let Outcome::Reply(body) = outcome else { return None };
    let text = |reply: Reply| match reply {
        Reply::Nil => Some(None),
        Reply::Bulk(bytes) => Some(Some(bytes)),
        _ => None,
    };
    Reply::decode_all(body).ok()?.into_iter().map(text).collect()
}

impl Workload {
    /// Keys that share a part of the table of removals.
    pub(crate) fn keys_of_shared_part(&self) -> Range<u64> {
        let keys = self.settings.watches.map_or(0, |settings| settings.shared_part);
        SHARED_PART_FIRST..SHARED_PART_FIRST + keys
    }

    /// The client in this slot begins to watch keys, if it does: its first operation.
    pub(crate) fn begin_watching(&mut self, slot: usize) -> Option<(Vec<ClientCommand>, Watching)> {
        let settings = self.settings.watches.filter(|_| slot >= self.settings.readers)?;
        if !self.prng.chance(settings.percent, 100) {
            return None;
        }
        let mut keys = Vec::new();
        for _ in 0..=self.prng.below(settings.keys_max) {
            let key = self.watched_key(settings);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let steps = vec![ClientCommand::Watch(keys.clone())];
        Some((steps, Watching { keys, step: WatchingStep::Versions { again: false } }))
    }

    fn watched_key(&mut self, settings: WatchSettings) -> u64 {
        let lasting = self.expiring_keys();
        if self.settings.expiring_read && self.settings.expiring_percent > 0 && self.prng.chance(1, 2) {
            return lasting.start + self.prng.below(lasting.end - lasting.start);
        }
        match settings.shared_part {
            0 => self.key(),
            keys => SHARED_PART_FIRST + self.prng.below(keys),
        }
    }

    /// An operation on one of the keys that share a part, perhaps.
    pub(super) fn of_shared_part(&mut self) -> Option<Vec<ClientCommand>> {
        let settings = self.settings.watches.filter(|settings| settings.shared_part > 0)?;
        if !self.prng.chance(settings.updates_percent, 100) {
            return None;
        }
        let key = SHARED_PART_FIRST + self.prng.below(settings.shared_part);
        Some(vec![self.update_of(key)])
    }

    /// A transaction on keys that are watched, and perhaps on others.
    fn updates_of(&mut self, keys: &[u64]) -> Vec<ClientCommand> {
        let mut steps = Vec::new();
        for key in keys {
            if steps.is_empty() || self.prng.chance(1, 2) {
                steps.push(self.update_of(*key));
            }
        }
        if self.prng.chance(1, 3) {
            let (kind, key) = (self.kind(), self.key());
            steps.push(self.step(kind, key));
        }
        steps
    }

    /// An update that leaves nothing of what the key held before, or a read.
    fn update_of(&mut self, key: u64) -> ClientCommand {
        match self.prng.below(8) {
            0..=2 => ClientCommand::Set(key, self.value(key)),
            3 => ClientCommand::GetSet(key, self.value(key)),
            4 | 5 => ClientCommand::Del { key, blind: self.prng.chance(1, 2) },
            6 => ClientCommand::SetNx(key, self.value(key)),
            _ => ClientCommand::Get(key),
        }
    }
}
