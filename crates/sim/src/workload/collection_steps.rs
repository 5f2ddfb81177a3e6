//! What clients ask for of collections, and of the keys that hold them.

use super::{ClientCommand, Workload, collections};
use core::ops::Range;
use syros_checker::transfer::Transfer;
use syros_types::Prng;

/// What clients ask for of collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionSettings {
    /// Operations of a hundred that concern the keys of collections.
    pub percent: u64,
    /// Keys that mostly hold collections.
    pub keys: u64,
    /// Relative weight of each type.
    pub weights: [u64; collections::KINDS],
    /// Of a hundred of these operations, so many are reads.
    pub read_percent: u64,
    /// Of a hundred updates, so many go without their replies.
    pub blind_percent: u64,
    /// Of a hundred of these operations, so many give a key a lifetime, or take it.
    pub lifetime_percent: u64,
    /// Of a hundred of these operations, so many rename a key.
    pub rename_percent: u64,
    /// Of a hundred of these operations, so many take something from one key and leave it at another.
    pub transfer_percent: u64,
    /// Of a hundred of these operations, so many are about text, or concern a key that mostly holds text.
    pub text_percent: u64,
    /// Of a hundred values, so many are too long for a packed collection.
    pub long_percent: u64,
}

impl Workload {
    /// Keys that mostly hold collections.
    pub(crate) fn collection_keys(&self) -> Range<u64> {
        let first = self.expiring_keys().end;
        first..first + self.settings.collections.map_or(0, |settings| settings.keys)
    }

    /// The next operation of the client in this slot, if it is about collections.
    pub(super) fn of_collections(&mut self, slot: usize) -> Option<Vec<ClientCommand>> {
        let settings = self.settings.collections?;
        if !self.prng.chance(settings.percent, 100) {
            return None;
        }
        let key = self.collection_key();
        if slot < self.settings.readers {
            return Some(vec![self.read_of_collection(settings, key)]);
        }
        let at = self.prng.below(100);
        let (lifetimes, renames) = (settings.lifetime_percent, settings.rename_percent);
        if at < lifetimes {
            return Some(vec![self.about_lifetime(settings, key)]);
        }
        if at < lifetimes + renames {
            let to = self.collection_key();
            return (to != key).then(|| vec![ClientCommand::Rename(key, to)]);
        }
        if at < lifetimes + renames + settings.transfer_percent {
            return self.transfer(settings, key).map(|step| vec![step]);
        }
        if at < lifetimes + renames + settings.transfer_percent + settings.text_percent {
            return Some(vec![self.of_another_type(settings, key)]);
        }
        let mut steps = vec![self.on_collection(settings, key)];
        if self.prng.chance(self.settings.packed_percent, 100) {
            steps.extend((0..=self.prng.below(2)).map(|_| self.on_collection(settings, key)));
            steps.retain(ClientCommand::can_be_joined);
        }
        (!steps.is_empty()).then_some(steps)
    }

    /// Reads that show all that a key holds, whatever that is.
    pub(crate) fn reads_of_all(&self, key: u64) -> impl Iterator<Item = ClientCommand> + use<> {
        let weights = self.settings.collections.map_or([0; collections::KINDS], |settings| settings.weights);
        let of_kind = move |kind| {
            let operation = collections::read_all(kind);
            ClientCommand::Collection { key, operation, blind: false }
        };
        let kinds = (0..collections::KINDS).filter(move |kind| weights[*kind] > 0);
        core::iter::once(ClientCommand::Get(key)).chain(kinds.map(of_kind))
    }

    fn collection_key(&mut self) -> u64 {
        let keys = self.collection_keys();
        keys.start + self.prng.below(keys.end - keys.start)
    }

    /// A type of collections.
    fn collection_kind(&mut self, settings: CollectionSettings) -> usize {
        let mut at = self.prng.below(settings.weights.iter().sum());
        for (kind, weight) in settings.weights.iter().enumerate() {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return kind,
            }
        }
        0
    }

    fn on_collection(&mut self, settings: CollectionSettings, key: u64) -> ClientCommand {
        if self.prng.chance(settings.read_percent, 100) {
            return self.read_of_collection(settings, key);
        }
        if self.prng.chance(1, 16) {
            return ClientCommand::Del { key, blind: self.prng.chance(settings.blind_percent, 100) };
        }
        self.update_of_collection(settings, key)
    }

    fn update_of_collection(&mut self, settings: CollectionSettings, key: u64) -> ClientCommand {
        let kind = self.collection_kind(settings);
        if kind == collections::SETS && self.prng.chance(1, 8) {
            return ClientCommand::PopMember(key);
        }
        let made = &mut self.made;
        let mut value = |prng: &mut Prng| {
            *made += 1;
            // One of four values is an integer.
            if prng.chance(1, 4) {
                return (*made * 1_000).to_string().into_bytes();
            }
            let mut text = format!("c{made}.").into_bytes();
            if prng.chance(settings.long_percent, 100) {
                text.resize(collections::LONG_BYTES, b'.');
            }
            text
        };
        let operation = collections::draw_update(kind, &mut self.prng, &mut value, settings.long_percent);
        let blind = self.prng.chance(settings.blind_percent, 100);
        ClientCommand::Collection { key, operation, blind }
    }

    fn read_of_collection(&mut self, settings: CollectionSettings, key: u64) -> ClientCommand {
        let kind = self.collection_kind(settings);
        let operation = collections::draw_read(kind, &mut self.prng);
        ClientCommand::Collection { key, operation, blind: false }
    }

    fn about_lifetime(&mut self, settings: CollectionSettings, key: u64) -> ClientCommand {
        let blind = self.prng.chance(settings.blind_percent, 100);
        if self.prng.chance(1, 4) {
            return ClientCommand::Persist { key, blind };
        }
        let millis = 2 + self.prng.below(self.settings.lifetime_max);
        ClientCommand::Expire { key, millis, blind }
    }

    /// Something goes from this key to another one.
    fn transfer(&mut self, settings: CollectionSettings, key: u64) -> Option<ClientCommand> {
        let to = self.collection_key();
        let transfer = match self.prng.below(6) {
            // What would last as long as something else, the judge does not know.
            0 if settings.lifetime_percent == 0 => Transfer::Copy { replace: self.prng.chance(1, 2) },
            0 | 1 => Transfer::Sorted,
            _ => collections::draw_transfer(self.collection_kind(settings), &mut self.prng),
        };
        let is_of_two = matches!(transfer, Transfer::Copy { .. });
        (to != key || !is_of_two).then_some(ClientCommand::Transfer(key, to, transfer))
    }

    /// Text where collections are, or a collection where text is.
    fn of_another_type(&mut self, settings: CollectionSettings, key: u64) -> ClientCommand {
        match self.prng.below(8) {
            0 => ClientCommand::Set(key, self.value(key)),
            1 => ClientCommand::GetSet(key, self.value(key)),
            2 => ClientCommand::SetNx(key, self.value(key)),
            3 => ClientCommand::IncrBy { key, delta: 1, blind: self.prng.chance(1, 2) },
            4 => {
                let blind = self.prng.chance(1, 2);
                ClientCommand::Append { key, value: b"7".to_vec(), blind }
            }
            5 => ClientCommand::Get(key),
            6 => ClientCommand::MGet(vec![key, self.prng.below(self.settings.keys)]),
            _ => {
                let key = self.key();
                self.on_collection(settings, key)
            }
        }
    }
}
