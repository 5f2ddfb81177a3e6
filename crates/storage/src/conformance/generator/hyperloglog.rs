//! Random commands on HyperLogLogs.

use super::{Generator, KEYS, hashes};

pub(super) const TEMPLATES: &[&str] = &[
    "PFADD %pfkey %pfelements",
    "PFADD %pfkey %pfelements",
    "PFADD %pfkey %pfelements",
    "PFADD %pfkey %pfmany",
    "PFCOUNT %pfread",
    "PFCOUNT %pfread %pfread",
    "PFCOUNT %pfkey",
    "PFCOUNT %pfkey %pfkey %pfkey",
    "PFMERGE %pfkey",
    "PFMERGE %pfkey %pfread",
    "PFMERGE %pfkey %pfkey %pfkey",
    "DEL %pfkey",
    "RENAME %pfkey %pfkey",
    "PEXPIRE %pfkey %ms %expire",
];

/// Keys that are HyperLogLogs most of the time.
const SKETCHES: &[&[u8]] = &[b"pf:1", b"pf:2", b"pf:3", b"pf"];

impl Generator {
    /// Appends what a word of a template stands for.
    pub(super) fn expand_sketch(&mut self, word: &str, words: &mut Vec<Vec<u8>>) {
        match word {
            "%pfread" if self.prng.chance(1, 10) => words.push(self.pick(KEYS).to_vec()),
            "%pfread" if self.prng.chance(1, 20) => words.push(self.pick(hashes::KEYS).to_vec()),
            "%pfkey" | "%pfread" => words.push(self.sketch_key()),
            "%pfmany" => {
                // A few of these exceed what a sparse one has room for.
                let start = self.prng.below(5000);
                words.extend((start..start + 200).map(|number| number.to_string().into_bytes()));
            }
            _ => {
                for _ in 0..self.prng.below(5) {
                    words.push(self.value());
                }
            }
        }
    }

    fn sketch_key(&mut self) -> Vec<u8> {
        match self.prng.below(16) {
            0 if self.mixes_sketches => self.pick(KEYS).to_vec(),
            1 if self.mixes_sketches => self.pick(hashes::KEYS).to_vec(),
            _ => self.pick(SKETCHES).to_vec(),
        }
    }

    /// A key whose string other commands may read and change.
    pub(super) fn exposed_sketch(&mut self) -> Option<Vec<u8>> {
        (self.mixes_sketches && self.prng.chance(1, 30)).then(|| self.pick(SKETCHES).to_vec())
    }
}
