//! Random commands on hashes.

use super::Generator;

pub(super) const TEMPLATES: &[&str] = &[
    "HGET %hash %field",
    "HGET %hash %field",
    "HGET %hash %field",
    "HGET %hash %field",
    "HMGET %hash %fields",
    "HGETALL %hash",
    "HKEYS %hash",
    "HVALS %hash",
    "HLEN %hash",
    "HEXISTS %hash %field",
    "HSTRLEN %hash %field",
    "HRANDFIELD %hash",
    "HRANDFIELD %hash %small %withvalues",
    "HSCAN %hash 0 COUNT 1000000 %hscan",
    "HSCAN %hash %cursor %hscan",
    "HSET %hash %fieldvalues",
    "HSET %hash %fieldvalues",
    "HSET %hash %fieldvalues",
    "HSET %hash %manyfields",
    "HMSET %hash %fieldvalues",
    "HSETNX %hash %field %fieldvalue",
    "HDEL %hash %fields",
    "HDEL %hash %fields",
    "HINCRBY %hash %field %integer",
    "HINCRBY %hash %field %small",
    "HINCRBYFLOAT %hash %field %float",
    "HINCRBYFLOAT %hash %field %small",
    "DEL %hash",
    "RENAME %hash %hash",
    "PEXPIRE %hash %ms %expire",
];

/// Commands on fields that expire.
pub(super) const EXPIRY_TEMPLATES: &[&str] = &[
    "HEXPIRE %hash %seconds %fieldcondition %namedfields",
    "HPEXPIRE %hash %ms %fieldcondition %namedfields",
    "HPEXPIRE %hash %ms %namedfields",
    "HPEXPIRE %hash %ms %namedfields",
    "HEXPIREAT %hash %atseconds %fieldcondition %namedfields",
    "HPEXPIREAT %hash %atms %fieldcondition %namedfields",
    "HTTL %hash %namedfields",
    "HPTTL %hash %namedfields",
    "HEXPIRETIME %hash %namedfields",
    "HPEXPIRETIME %hash %namedfields",
    "HPERSIST %hash %namedfields",
    "HGETDEL %hash %namedfields",
    "HGETEX %hash %namedfields",
    "HGETEX %hash PERSIST %namedfields",
    "HGETEX %hash PX %ms %namedfields",
    "HGETEX %hash EXAT %atseconds %namedfields",
    "HSETEX %hash %namedvalues",
    "HSETEX %hash KEEPTTL %namedvalues",
    "HSETEX %hash PX %ms %namedvalues",
    "HSETEX %hash PX %ms %namedvalues",
    "HSETEX %hash FNX PXAT %atms %namedvalues",
    "HSETEX %hash EX %seconds FXX %namedvalues",
];

/// Keys that are hashes most of the time.
pub(super) const KEYS: &[&[u8]] = &[b"h", b"hash:1", b"hash:2", b"key:h"];

const FIELDS: &[&[u8]] = &[b"", b"f", b"g", b"a", b"field:1", b"field:2", b"n", b"\0\xff", b"a b", b"[x]"];

impl Generator {
    /// Adds the argument that a word of this family's templates stands for; false if it is none of its words.
    pub(super) fn expand_of_hashes(&mut self, word: &str, words: &mut Vec<Vec<u8>>) -> bool {
        let word = match word {
            "%hash" if self.prng.chance(1, 12) => self.pick(super::KEYS).to_vec(),
            "%hash" => self.pick(KEYS).to_vec(),
            "%field" => self.field(),
            "%fieldvalue" => self.field_value(),
            "%fieldcondition" | "%withvalues" if self.prng.chance(1, 2) => return true,
            "%fieldcondition" => self.pick(&[&b"NX"[..], b"XX", b"gt", b"LT", b"bogus"]).to_vec(),
            "%namedfields" | "%namedvalues" => {
                let count = 1 + self.prng.below(3);
                let shown = if self.prng.chance(1, 20) { self.prng.below(4) } else { count };
                words.extend([b"FIELDS".to_vec(), shown.to_string().into_bytes()]);
                for _ in 0..count {
                    words.push(self.field());
                    if word == "%namedvalues" {
                        words.push(self.field_value());
                    }
                }
                return true;
            }
            "%withvalues" => {
                self.pick(&[&b"WITHVALUES"[..], b"withvalues", b"WITHVALUES", b"bogus"]).to_vec()
            }
            "%fields" | "%fieldvalues" => {
                for _ in 0..1 + self.prng.below(3) {
                    words.push(self.field());
                    if word == "%fieldvalues" {
                        words.push(self.field_value());
                    }
                }
                return true;
            }
            "%manyfields" => {
                // Two or three of these exceed what a small hash has room for.
                let start = self.prng.below(200);
                for number in start..start + 60 {
                    words.push(format!("many:{number}").into_bytes());
                    words.push(self.small());
                }
                return true;
            }
            _ => return false,
        };
        words.push(word);
        true
    }

    fn field(&mut self) -> Vec<u8> {
        match self.prng.below(60) {
            0 => vec![b'f'; 60 + self.prng.below(10) as usize],
            1..6 => format!("many:{}", self.prng.below(260)).into_bytes(),
            _ => self.pick(FIELDS).to_vec(),
        }
    }

    /// Most often one that leaves a hash small.
    fn field_value(&mut self) -> Vec<u8> {
        match self.prng.below(40) {
            0 => self.value(),
            1..8 => self.float(),
            8..12 => self.number(),
            12..14 => vec![b'v'; 60 + self.prng.below(5) as usize],
            _ => self.small(),
        }
    }
}
