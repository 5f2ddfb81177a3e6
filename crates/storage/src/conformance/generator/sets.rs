//! Random commands on sets.

use super::Generator;

pub(super) const TEMPLATES: &[&str] = &[
    "SISMEMBER %setkey %member",
    "SMISMEMBER %setkey %members",
    "SMEMBERS %setkey",
    "SCARD %setkey",
    "SRANDMEMBER %setkey",
    "SRANDMEMBER %setkey %small",
    "SSCAN %setkey 0 COUNT 1000000 %hscan",
    "SSCAN %setkey %cursor %hscan",
    "SINTER %setkeys",
    "SUNION %setkeys",
    "SDIFF %setkeys",
    "SINTERCARD %countedsets",
    "SINTERCARD %countedsets LIMIT %small",
    "SADD %setkey %members",
    "SADD %setkey %members",
    "SADD %setkey %members",
    "SADD %setkey %manymembers",
    "SREM %setkey %members",
    "SREM %setkey %members",
    "SPOP %setkey",
    "SPOP %setkey %small",
    "SMOVE %setkey %setkey %member",
    "SMOVE %setkey %setkey %member",
    "SINTERSTORE %setkey %setkeys",
    "SUNIONSTORE %setkey %setkeys",
    "SDIFFSTORE %setkey %setkeys",
    "DEL %setkey",
    "RENAME %setkey %setkey",
    "PEXPIRE %setkey %ms %expire",
];

/// Keys that are sets most of the time.
pub(super) const KEYS: &[&[u8]] = &[b"s", b"set:1", b"set:2", b"key:s"];

const MEMBERS: &[&[u8]] = &[b"", b"m", b"n", b"a", b"1", b"2", b"-3", b"\0\xff", b"a b", b"[x]"];

impl Generator {
    /// Adds the argument that a word of this family's templates stands for; false if it is none of its words.
    pub(super) fn expand_of_sets(&mut self, word: &str, words: &mut Vec<Vec<u8>>) -> bool {
        match word {
            "%setkey" => words.push(self.set_key()),
            "%member" => words.push(self.member()),
            "%setkeys" => {
                for _ in 0..1 + self.prng.below(3) {
                    words.push(self.set_key());
                }
            }
            "%countedsets" => {
                let count = 1 + self.prng.below(3);
                let said =
                    if self.prng.chance(1, 12) { self.small() } else { count.to_string().into_bytes() };
                words.push(said);
                for _ in 0..count {
                    words.push(self.set_key());
                }
            }
            "%members" => {
                for _ in 0..1 + self.prng.below(3) {
                    words.push(self.member());
                }
            }
            "%manymembers" => {
                // Two or three of these exceed what a small set has room for.
                let start = self.prng.below(200);
                words.extend((start..start + 60).map(|number| format!("many:{number}").into_bytes()));
            }
            _ => return false,
        }
        true
    }

    fn set_key(&mut self) -> Vec<u8> {
        if self.prng.chance(1, 15) { self.pick(super::KEYS).to_vec() } else { self.pick(KEYS).to_vec() }
    }

    fn member(&mut self) -> Vec<u8> {
        match self.prng.below(60) {
            0 => vec![b'm'; 60 + self.prng.below(10) as usize],
            1..6 => format!("many:{}", self.prng.below(260)).into_bytes(),
            _ => self.pick(MEMBERS).to_vec(),
        }
    }
}
