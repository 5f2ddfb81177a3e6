//! Random commands on keys of any type.

use super::{COLLECTIONS, Generator};

pub(super) const TEMPLATES: &[&str] = &[
    "COPY %key %key",
    "COPY %key %key REPLACE",
    "COPY %any %any REPLACE",
    "COPY %any %any %copy",
    "COPY %any %any DB 1 REPLACE",
    "TOUCH %keys",
    "SORT %list %sort",
    "SORT %set %sort",
    "SORT %zset %sort",
    "SORT %any ALPHA %sort",
    "SORT_RO %any ALPHA %sort",
    "SORT_RO %list BY nosort DESC",
    "SORT %zset BY nosort",
    "SORT %list BY %sortname GET %sortname GET #",
    "SORT %set BY %sortname DESC GET %sortname",
    "SORT %any ALPHA STORE %any",
    "SORT %list %sort STORE %list",
    "SORT %set BY nosort GET %sortname GET # STORE %list",
];

impl Generator {
    /// Adds the arguments that a word of this family's templates stands for; false if it is none of its words.
    pub(super) fn expand_of_generic(&mut self, word: &str, words: &mut Vec<Vec<u8>>) -> bool {
        let word = match word {
            "%any" => self.pick_of_all(COLLECTIONS).to_vec(),
            "%sortname" => self.pick(&[&b"*"[..], b"key:*", b"h*->f", b"*->", b"none"]).to_vec(),
            "%copy" => {
                let options: &[&[u8]] = &[b"REPLACE", b"DB", b"0", b"1", b"16", b"x", b"99999999999"];
                words.extend((0..self.prng.below(3)).map(|_| self.pick(options).to_vec()));
                return true;
            }
            "%sort" => {
                self.sort_options(words);
                return true;
            }
            _ => return false,
        };
        words.push(word);
        true
    }

    fn sort_options(&mut self, words: &mut Vec<Vec<u8>>) {
        for _ in 0..self.prng.below(3) {
            let option = self.pick(&["ASC", "DESC", "ALPHA", "alpha", "LIMIT", "GET", "LIMIT", "BY"]);
            words.push(option.as_bytes().to_vec());
            match option {
                "LIMIT" => words.extend([self.small(), self.small()]),
                "GET" => words.push(self.pick(&[&b"#"[..], b"*", b"h*->f", b"*->g"]).to_vec()),
                "BY" => words.push(b"*".to_vec()),
                _ => {}
            }
        }
    }
}
