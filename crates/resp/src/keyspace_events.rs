//! The setting `notify-keyspace-events`: which events of keys a process tells its clients of.

use syros_commands::access::{KeyEvent, KeyEventClass};

/// Which events of keys clients are told of, and in which channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceEvents(u16);

/// `K`: in channels of keys.
const KEYSPACE: u16 = 1 << 14;

/// `E`: in channels of events.
const KEYEVENT: u16 = 1 << 15;

/// The classes in the order in which Redis names them.
const CLASSES: [KeyEventClass; 11] = [
    KeyEventClass::Generic,
    KeyEventClass::String,
    KeyEventClass::List,
    KeyEventClass::Set,
    KeyEventClass::Hash,
    KeyEventClass::SortedSet,
    KeyEventClass::Expired,
    KeyEventClass::Evicted,
    KeyEventClass::Stream,
    KeyEventClass::Module,
    KeyEventClass::New,
];

const fn bit(class: KeyEventClass) -> u16 {
    1 << class as u16
}

/// `A`: all classes but those of new keys and of keys that were looked for in vain.
const ALL: u16 = {
    let (mut all, mut place) = (0, 0);
    while place < CLASSES.len() {
        all |= bit(CLASSES[place]);
        place += 1;
    }
    all & !bit(KeyEventClass::New)
};

impl KeyspaceEvents {
    /// What these letters mean; `None` if one of them means nothing.
    #[must_use]
    pub fn parse(letters: &[u8]) -> Option<Self> {
        let mut bits = 0;
        for letter in letters {
            bits |= match letter {
                b'A' => ALL,
                b'K' => KEYSPACE,
                b'E' => KEYEVENT,
                b'm' => bit(KeyEventClass::Miss),
                _ => bit(*CLASSES.iter().find(|class| class.letter() == *letter)?),
            };
        }
        Some(Self(bits))
    }

    /// The letters, as Redis writes them.
    #[must_use]
    pub fn letters(self) -> String {
        let mut letters = String::new();
        if self.0 & ALL == ALL {
            letters.push('A');
        } else {
            let classes = CLASSES.iter().filter(|class| self.0 & bit(**class) != 0);
            letters.extend(classes.map(|class| char::from(class.letter())));
        }
        let others = [(KEYSPACE, 'K'), (KEYEVENT, 'E'), (bit(KeyEventClass::Miss), 'm')];
        letters.extend(others.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, letter)| *letter));
        letters
    }

    /// True if there is anything that clients are told of.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.0 & (KEYSPACE | KEYEVENT) != 0 && self.0 & !(KEYSPACE | KEYEVENT) != 0
    }

    /// True if clients are told of this event in the channels of keys.
    #[must_use]
    pub const fn has_keyspace(self, event: KeyEvent) -> bool {
        self.0 & KEYSPACE != 0 && self.0 & bit(event.class()) != 0
    }

    /// True if clients are told of this event in the channels of events.
    #[must_use]
    pub const fn has_keyevent(self, event: KeyEvent) -> bool {
        self.0 & KEYEVENT != 0 && self.0 & bit(event.class()) != 0
    }

    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What redis-server 7.0.15 answers.
    #[test]
    fn letters_are_those_of_redis() {
        for (given, shown) in [
            ("AKEn", "AKE"),
            ("KEA", "AKE"),
            ("Km", "Km"),
            ("g$lshzxetdKE", "AKE"),
            ("Kg$lshzxetdnm", "AKm"),
            ("lK", "lK"),
            ("nE", "nE"),
            ("", ""),
        ] {
            let letters = KeyspaceEvents::parse(given.as_bytes()).map(KeyspaceEvents::letters);
            assert_eq!(letters.as_deref(), Some(shown), "{given}");
        }
        assert_eq!(KeyspaceEvents::parse(b"KEq"), None);
    }

    #[test]
    fn events_are_told_of_by_class_and_channel() {
        let events = KeyspaceEvents::parse(b"Kl").expect("letters");
        assert!(events.is_any() && events.has_keyspace(KeyEvent::LPush));
        assert!(!events.has_keyspace(KeyEvent::Del) && !events.has_keyevent(KeyEvent::LPush));
        assert!(!KeyspaceEvents::parse(b"KE").expect("letters").is_any());
        assert!(!KeyspaceEvents::parse(b"A").expect("letters").is_any());
    }
}
