//! HyperLogLogs, register by register and bit by bit.

use super::{Content, Twin, error, one_if};
use syros_commands::families::{PfAdd, PfCount, PfMerge};
use syros_commands::{Command, Reply};

const REGISTERS: usize = 16_384;
const DENSE_BYTES: usize = 16 + 12_288;

/// Registers, and whether they are written as six bits each.
#[derive(Clone)]
struct Sketch {
    registers: Vec<u8>,
    is_dense: bool,
}

fn murmur(element: &[u8]) -> u64 {
    let multiply = |a: u64| a.wrapping_mul(0xc6a4_a793_5bd1_e995);
    let mut hash = 0xadc8_3b19 ^ multiply(element.len() as u64);
    for chunk in element.chunks(8) {
        let number = chunk.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        if chunk.len() == 8 {
            let mixed = multiply(number);
            hash ^= multiply(mixed ^ mixed >> 47);
        } else {
            hash ^= number;
        }
        hash = multiply(hash);
    }
    hash ^= hash >> 47;
    hash = multiply(hash);
    hash ^ hash >> 47
}

impl Sketch {
    fn new() -> Self {
        Self { registers: vec![0; REGISTERS], is_dense: false }
    }

    fn read(bytes: &[u8]) -> Result<Self, Reply> {
        let form = bytes.get(4).copied();
        let is_sketch = bytes.len() >= 16
            && &bytes[..4] == b"HYLL"
            && (form == Some(1) || (form == Some(0) && bytes.len() == DENSE_BYTES));
        if !is_sketch {
            return Err(error("WRONGTYPE Key is not a valid HyperLogLog string value."));
        }
        let mut registers = Vec::new();
        if form == Some(0) {
            let bit = |index: usize| bytes[16 + index / 8] >> (index % 8) & 1;
            for start in (0..6 * REGISTERS).step_by(6) {
                registers.push((0..6).map(|place| bit(start + place) << place).sum());
            }
            return Ok(Self { registers, is_dense: true });
        }
        let mut rest = bytes[16..].iter();
        while let Some(byte) = rest.next() {
            let (length, rank) = match byte {
                0..64 => (usize::from(*byte) + 1, 0),
                64..128 => match rest.next() {
                    Some(second) => (256 * usize::from(byte - 64) + usize::from(*second) + 1, 0),
                    None => (usize::MAX, 0),
                },
                _ => (usize::from(byte % 4) + 1, byte / 4 % 32 + 1),
            };
            if length > REGISTERS - registers.len() {
                return Err(error("INVALIDOBJ Corrupted HLL object detected"));
            }
            registers.extend(vec![rank; length]);
        }
        if registers.len() < REGISTERS {
            return Err(error("INVALIDOBJ Corrupted HLL object detected"));
        }
        Ok(Self { registers, is_dense: false })
    }

    fn add(&mut self, element: &[u8]) {
        let hash = murmur(element);
        let index = (hash % 16_384) as usize;
        let rank = (0..50).find(|place| hash >> (14 + place) & 1 == 1).unwrap_or(50) + 1;
        self.registers[index] = self.registers[index].max(rank as u8);
    }

    fn bytes(&self) -> Vec<u8> {
        let head = |form: u8| [&b"HYLL"[..], &[form, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]].concat();
        let mut sparse = head(1);
        let mut rest = &self.registers[..];
        while let Some(rank) = rest.first().copied() {
            let run = rest.iter().take_while(|other| **other == rank).count();
            let taken = match rank {
                0 if run <= 64 => {
                    sparse.push(run as u8 - 1);
                    run
                }
                0 => {
                    sparse.push(64 + ((run - 1) / 256) as u8);
                    sparse.push(((run - 1) % 256) as u8);
                    run
                }
                _ => {
                    sparse.push(128 + (rank - 1) % 32 * 4 + (run.min(4) - 1) as u8);
                    run.min(4)
                }
            };
            rest = &rest[taken..];
        }
        if !self.is_dense && sparse.len() <= 3000 && self.registers.iter().all(|rank| *rank <= 32) {
            return sparse;
        }
        let mut dense = head(0);
        dense.resize(DENSE_BYTES, 0);
        for (index, rank) in self.registers.iter().enumerate() {
            for place in 0..6 {
                let at = 6 * index + place;
                dense[16 + at / 8] |= (rank >> place & 1) << (at % 8);
            }
        }
        dense
    }

    /// Ertl's estimate.
    fn estimate(&self) -> u64 {
        let count = |rank: u8| self.registers.iter().filter(|other| **other == rank).count() as f64;
        let m = REGISTERS as f64;
        let mut z = m * tau((m - count(51)) / m);
        for rank in (1..=50).rev() {
            z = (z + count(rank)) / 2.0;
        }
        z += m * sigma(count(0) / m);
        (0.721_347_520_444_481_7 * m * m / z).round() as u64
    }
}

fn sigma(x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum, mut before) = (x, 1.0, x, f64::NAN);
    while sum != before {
        power *= power;
        before = sum;
        sum += power * weight;
        weight *= 2.0;
    }
    sum
}

fn tau(x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum, mut before) = (x, 1.0, 1.0 - x, f64::NAN);
    while sum != before {
        root = root.sqrt();
        before = sum;
        weight /= 2.0;
        sum -= (1.0 - root) * (1.0 - root) * weight;
    }
    sum / 3.0
}

impl Twin {
    fn sketch(&self, key: &[u8]) -> Result<Option<Sketch>, Reply> {
        match self.keys.get(key) {
            None => Ok(None),
            Some((Content::String(bytes), _)) => Sketch::read(bytes).map(Some),
            Some(_) => Err(error("WRONGTYPE Operation against a key holding the wrong kind of value")),
        }
    }

    /// All that was added to these keys.
    fn union<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Result<Sketch, Reply> {
        let mut union = Sketch::new();
        for key in keys {
            if let Some(sketch) = self.sketch(key)? {
                union.is_dense |= sketch.is_dense;
                for (register, other) in union.registers.iter_mut().zip(sketch.registers) {
                    *register = other.max(*register);
                }
            }
        }
        Ok(union)
    }

    /// What PFCOUNT answers.
    pub(super) fn read_sketch(&self, command: &Command<'_>) -> Option<Reply> {
        let Command::PfCount(PfCount { keys }) = *command else { return None };
        Some(match self.union(keys.iter()) {
            Ok(union) => Reply::Integer(union.estimate() as i64),
            Err(error) => error,
        })
    }

    /// What PFADD and PFMERGE answer, and what they do.
    pub(super) fn update_sketch(&mut self, command: &Command<'_>) -> Option<Reply> {
        match *command {
            Command::PfAdd(operation) => Some(self.pf_add(operation)),
            Command::PfMerge(PfMerge { keys }) => Some(match self.union(keys.iter()) {
                Ok(union) => {
                    let destination: Vec<&[u8]> = keys.iter().take(1).collect();
                    self.insert(destination[0], union.bytes(), self.expiry(destination[0]));
                    Reply::Ok
                }
                Err(error) => error,
            }),
            _ => None,
        }
    }

    fn pf_add(&mut self, PfAdd { key, elements }: PfAdd<'_>) -> Reply {
        let old = match self.sketch(key) {
            Ok(old) => old,
            Err(error) => return error,
        };
        let mut new = old.clone().unwrap_or_else(Sketch::new);
        elements.iter().for_each(|element| new.add(element));
        let is_changed = old.is_none_or(|old| old.registers != new.registers);
        if is_changed {
            self.insert(key, new.bytes(), self.expiry(key));
        }
        one_if(is_changed)
    }
}
