//! Random commands on lists.

use super::Generator;

pub(super) const TEMPLATES: &[&str] = &[
    "LLEN %list",
    "LINDEX %list %index",
    "LRANGE %list 0 -1",
    "LRANGE %list %index %index",
    "LPOS %list %element",
    "LPOS %list %element %lpos",
    "LPUSH %list %elements",
    "LPUSH %list %elements",
    "RPUSH %list %elements",
    "RPUSH %list %elements",
    "LPUSH %list %manyelements",
    "RPUSH %list %manyelements",
    "RPUSH %list %manyelements",
    "LPUSHX %list %elements",
    "RPUSHX %list %elements",
    "LPOP %list",
    "RPOP %list",
    "LPOP %list %elementcount",
    "RPOP %list %elementcount",
    "LSET %list %index %element",
    "LSET %list %index %element",
    "LINSERT %list %side %element %element",
    "LINSERT %list %side %element %element",
    "LREM %list %integer %element",
    "LREM %list %small %element",
    "LTRIM %list %trim",
    "LMOVE %list %list %end %end",
    "LMOVE %list %list %end %end",
    "RPOPLPUSH %list %list",
    "LMPOP %counted %end",
    "LMPOP %counted %end COUNT %elementcount",
    "DEL %list",
    "RENAME %list %list",
    "PEXPIRE %list %ms %expire",
];

/// Keys that are lists most of the time.
pub(super) const KEYS: &[&[u8]] = &[b"l", b"list:1", b"list:2", b"key:l"];

const ELEMENTS: &[&[u8]] = &[b"", b"a", b"b", b"a b", b"e:1", b"1", b"-1", b"\0\xff"];

impl Generator {
    /// Adds the arguments that a word of this family's templates stands for; false if it is none of its words.
    pub(super) fn expand_of_lists(&mut self, word: &str, words: &mut Vec<Vec<u8>>) -> bool {
        let word = match word {
            "%list" => self.list(),
            "%element" => self.element(),
            "%elementcount" => self.element_count(),
            "%index" => self.index(),
            "%end" => self.pick(&[&b"LEFT"[..], b"RIGHT", b"left", b"Right", b"LEFT", b"middle"]).to_vec(),
            "%side" => self.pick(&[&b"BEFORE"[..], b"AFTER", b"before", b"After", b"beside"]).to_vec(),
            "%elements" => {
                words.extend((0..1 + self.prng.below(4)).map(|_| self.element()));
                return true;
            }
            "%manyelements" => {
                // Two or three of these exceed what a small list has room for.
                words.extend((0..60).map(|_| self.element()));
                return true;
            }
            "%counted" => {
                self.counted_lists(words);
                return true;
            }
            "%trim" if self.prng.chance(1, 6) => {
                words.extend([self.index(), self.index()]);
                return true;
            }
            "%trim" => {
                // Most of the list stays.
                words.push(self.prng.below(4).to_string().into_bytes());
                words.push(format!("-{}", 1 + self.prng.below(4)).into_bytes());
                return true;
            }
            _ => return false,
        };
        words.push(word);
        true
    }

    fn list(&mut self) -> Vec<u8> {
        if self.prng.chance(1, 12) { self.pick(super::KEYS).to_vec() } else { self.pick(KEYS).to_vec() }
    }

    /// Most often one of a few, and one that leaves a list small.
    fn element(&mut self) -> Vec<u8> {
        match self.prng.below(200) {
            0 => self.value(),
            1 => vec![b'e'; 60 + self.prng.below(10) as usize],
            2..40 => self.small(),
            _ => self.pick(ELEMENTS).to_vec(),
        }
    }

    fn index(&mut self) -> Vec<u8> {
        match self.prng.below(12) {
            0 => self.number(),
            1..4 => (self.prng.below(200) as i64 - 100).to_string().into_bytes(),
            _ => self.small(),
        }
    }

    /// How many elements are popped, compared or looked for.
    pub(super) fn element_count(&mut self) -> Vec<u8> {
        match self.prng.below(12) {
            0 => self.number(),
            1 => self.small(),
            2 => self.prng.below(200).to_string().into_bytes(),
            _ => self.prng.below(5).to_string().into_bytes(),
        }
    }

    /// The RANK of LPOS, but for the smallest number, which Redis 7.0 takes for -1.
    pub(super) fn rank(&mut self) -> Vec<u8> {
        self.pick(&[&b"1"[..], b"-1", b"2", b"-2", b"3", b"-9223372036854775807", b"0", b"x"]).to_vec()
    }

    /// Keys behind their number, which is now and then another one.
    fn counted_lists(&mut self, words: &mut Vec<Vec<u8>>) {
        let count = 1 + self.prng.below(3);
        let said = if self.prng.chance(1, 12) { self.number() } else { count.to_string().into_bytes() };
        words.push(said);
        words.extend((0..count).map(|_| self.list()));
    }
}
