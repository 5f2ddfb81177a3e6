//! Hashes of collections, element by element.

use crate::Kind;
use syros_types::{key_hash, mix};

/// The fingerprint of a collection whose elements are added in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint {
    hash: u64,
    count: u64,
}

impl Fingerprint {
    /// That of a collection of this kind and form without elements.
    pub(crate) const fn new(kind: Kind, form_tag: u8) -> Self {
        Self { hash: mix((kind.tag() as u64) << 8 | form_tag as u64), count: 0 }
    }

    /// Adds an element: its strings in their order.
    pub(crate) fn add(&mut self, strings: &[&[u8]]) {
        let element = strings.iter().fold(0, |hash, string| mix(hash ^ key_hash(string)));
        self.hash = mix(self.hash ^ element);
        self.count += 1;
    }

    /// The fingerprint of all that was added.
    pub(crate) const fn finish(&self) -> u64 {
        mix(self.hash ^ self.count)
    }
}
