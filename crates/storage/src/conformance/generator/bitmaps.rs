//! Random commands on bits.

use super::Generator;

pub(super) const TEMPLATES: &[&str] = &[
    "GETBIT %key %bitoffset",
    "SETBIT %key %bitoffset %bit",
    "SETBIT %key %bitoffset %bit",
    "BITCOUNT %key %bitrange",
    "BITCOUNT %key %bitrange",
    "BITPOS %key %bit %bitrange",
    "BITPOS %key %bit %bitrange",
    "BITPOS %key %bit %small",
    "BITOP %bitoperator %key %keys",
    "BITOP NOT %key %key",
    "BITFIELD_RO %key %bitgets",
    "BITFIELD %key %bitgets",
    "BITFIELD %key %bitsteps",
    "BITFIELD %key %bitsteps",
    "BITFIELD %key %bitsteps",
];

/// What is no offset.
const BAD_OFFSETS: &[&[u8]] = &[b"-1", b"x", b"", b"4294967296", b"9223372036854775807", b"007"];

/// What is none without a type, or one that strings have in Redis only.
const FAR_OFFSETS: &[&[u8]] = &[b"134217728", b"4294967295", b"#1"];

const BAD_TYPES: &[&[u8]] = &[b"u0", b"u64", b"i65", b"I8", b"8", b"u", b"i-3", b"u08", b"x4", b""];

impl Generator {
    /// Appends what a word of a template stands for.
    pub(super) fn expand_bits(&mut self, word: &str, words: &mut Vec<Vec<u8>>) {
        match word {
            "%bit" => words.push(self.bit()),
            "%bitoffset" if self.prng.chance(1, 30) => words.push(self.pick(FAR_OFFSETS).to_vec()),
            "%bitoffset" => words.push(self.bit_offset()),
            "%bitoperator" => {
                words.push(self.pick(&[&b"AND"[..], b"and", b"OR", b"OR", b"XOR", b"Xor", b"NAND"]).to_vec());
            }
            "%bitrange" => self.bit_range(words),
            _ => {
                for _ in 0..self.prng.below(4) {
                    let may_write = word == "%bitsteps" || self.prng.chance(1, 40);
                    self.bit_step(may_write, words);
                }
            }
        }
    }

    fn bit(&mut self) -> Vec<u8> {
        if self.prng.chance(1, 30) { self.number() } else { self.pick(&[b"0", b"1"]).to_vec() }
    }

    fn bit_offset(&mut self) -> Vec<u8> {
        match self.prng.below(12) {
            0 => self.pick(BAD_OFFSETS).to_vec(),
            1 => self.prng.below(3000).to_string().into_bytes(),
            _ => self.prng.below(70).to_string().into_bytes(),
        }
    }

    fn bit_range(&mut self, words: &mut Vec<Vec<u8>>) {
        for _ in 0..self.pick(&[0, 1, 2, 2, 2, 3, 3, 3]) {
            let end = match self.prng.below(8) {
                0 => self.integer(),
                1 => (self.prng.below(1000) as i64 - 500).to_string().into_bytes(),
                _ => self.small(),
            };
            words.push(end);
        }
        if self.prng.chance(1, 2) {
            words.push(self.pick(&[&b"BIT"[..], b"bit", b"BIT", b"BYTE", b"byte", b"bits"]).to_vec());
        }
    }

    fn bit_step(&mut self, may_write: bool, words: &mut Vec<Vec<u8>>) {
        if self.prng.chance(1, 3) {
            words.push(b"OVERFLOW".to_vec());
            words.push(self.pick(&[&b"WRAP"[..], b"sat", b"SAT", b"FAIL", b"fail"]).to_vec());
        }
        let action = if may_write { self.pick(&["GET", "SET", "set", "INCRBY", "INCRBY"]) } else { "get" };
        words.push(action.as_bytes().to_vec());
        words.push(self.bit_type());
        let offset = self.bit_offset();
        words.push(if self.prng.chance(1, 4) { [b"#", &offset[..]].concat() } else { offset });
        if !action.eq_ignore_ascii_case("get") {
            words.push(self.integer());
        }
    }

    fn bit_type(&mut self) -> Vec<u8> {
        if self.prng.chance(1, 40) {
            return self.pick(BAD_TYPES).to_vec();
        }
        let bits = if self.prng.chance(1, 4) { 60 + self.prng.below(4) } else { 1 + self.prng.below(16) };
        let (sign, bits) = self.pick(&[('u', bits), ('i', bits), ('i', 64)]);
        format!("{sign}{bits}").into_bytes()
    }
}
