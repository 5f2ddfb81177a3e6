//! Random commands on streams.

use super::Generator;

/// Commands that a Redis of version 7.0 answers in the same way, but for times.
const TEMPLATES: &[&str] = &[
    "XADD %stream %newid %fields",
    "XADD %stream %newid %fields",
    "XADD %stream %newid %fields",
    "XADD %stream %newid %fields",
    "XADD %stream %newid %fields",
    "XADD %auto * %fields",
    "XADD %auto * %fields",
    "XADD %stream %addoptions %newid %fields",
    "XADD %stream %addoptions %newid %fields",
    "XLEN %stream",
    "XRANGE %stream %start %end %counted",
    "XREVRANGE %stream %end %start %counted",
    "XRANGE %stream - +",
    "XDEL %stream %ids",
    "XDEL %stream %ids",
    "XTRIM %stream %exacttrim",
    "XREAD %readcounted STREAMS %stream %id",
    "XREAD %readcounted STREAMS %stream %stream %id %id",
    "XREAD STREAMS %stream $",
    "XSETID %stream %farid",
    "XSETID %stream %farid ENTRIESADDED %stream-count",
    "XSETID %stream %farid ENTRIESADDED %stream-count MAXDELETEDID %id",
    "XGROUP CREATE %stream %group %groupid %mkstream",
    "XGROUP CREATE %stream %group %groupid MKSTREAM",
    "XGROUP CREATE %stream %group %groupid MKSTREAM ENTRIESREAD %stream-count",
    "XGROUP SETID %stream %group %groupid",
    "XGROUP SETID %stream %group %groupid ENTRIESREAD %stream-count",
    "XGROUP DESTROY %stream %group",
    "XGROUP CREATECONSUMER %stream %group %consumer",
    "XGROUP DELCONSUMER %stream %group %consumer",
    "XREADGROUP GROUP %group %consumer %readcounted STREAMS %stream >",
    "XREADGROUP GROUP %group %consumer %readcounted STREAMS %stream >",
    "XREADGROUP GROUP %group %consumer %readcounted STREAMS %stream >",
    "XREADGROUP GROUP %group %consumer %readcounted NOACK STREAMS %stream >",
    "XREADGROUP GROUP %group %consumer %readcounted STREAMS %stream %stream > >",
    "XREADGROUP GROUP %group %consumer %readcounted STREAMS %stream %id",
    "XREADGROUP GROUP %group %consumer STREAMS %stream 0",
    "XACK %stream %group %ids",
    "XACK %stream %group %ids",
    "XCLAIM %stream %group %consumer %minidle %ids %claimoptions",
    "XCLAIM %stream %group %consumer %minidle %ids %claimoptions",
    "XAUTOCLAIM %stream %group %consumer %minidle %start",
    "XAUTOCLAIM %stream %group %consumer %minidle %start COUNT %stream-count",
    "XAUTOCLAIM %stream %group %consumer %minidle 0 COUNT %stream-count JUSTID",
    "XPENDING %stream %group",
    "XPENDING %stream %group %start %end %stream-count",
    "XPENDING %stream %group - + 100 %consumer",
    "XPENDING %stream %group IDLE %minidle %start %end %stream-count %consumer",
    "XINFO STREAM %stream",
    "XINFO STREAM %stream FULL",
    "XINFO STREAM %stream FULL COUNT %stream-count",
    "XINFO GROUPS %stream",
    "XINFO CONSUMERS %stream %group",
    "DEL %stream",
    "RENAME %stream %stream",
];

/// Commands whose answer is another one in that Redis.
const OWN_TEMPLATES: &[&str] = &[
    "XTRIM %stream MAXLEN ~ %stream-count",
    "XTRIM %stream MINID ~ %id LIMIT %stream-count",
    "XADD %stream MAXLEN ~ 3 LIMIT 2 %newid %fields",
    "XREAD STREAMS %stream +",
    "PEXPIRE %stream %ms %expire",
];

/// Keys that are streams most of the time.
pub(super) const KEYS: &[&[u8]] = &[b"stream", b"stream:1", b"stream:2"];

/// A key whose entries have the time for an id.
const AUTO: &[u8] = b"stream:auto";

/// Groups and consumers that commands name.
pub const NAMES: &[&[u8]] = &[b"g", b"group:1", b"", b"c\0d", b"alice", b"bob"];

impl Generator {
    /// The words of a command on streams that a Redis of version 7.0 answers in the same way, but for times.
    #[must_use]
    pub fn stream_command(&mut self) -> Vec<Vec<u8>> {
        let template = self.pick(TEMPLATES);
        self.of_template(template)
    }

    /// A template of this family.
    pub(super) fn stream_template(&mut self) -> &'static str {
        if self.prng.chance(1, 12) { self.pick(OWN_TEMPLATES) } else { self.pick(TEMPLATES) }
    }

    /// Adds the argument that a word of this family's templates stands for; false if it is none of its words.
    pub(super) fn expand_of_streams(&mut self, word: &str, words: &mut Vec<Vec<u8>>) -> bool {
        let word = match word {
            "%stream" if self.prng.chance(1, 40) => self.pick(super::KEYS).to_vec(),
            "%stream" if self.prng.chance(1, 8) => AUTO.to_vec(),
            "%stream" => self.pick(KEYS).to_vec(),
            "%auto" => AUTO.to_vec(),
            "%group" => self.pick(&NAMES[..3]).to_vec(),
            "%consumer" => self.pick(&NAMES[2..]).to_vec(),
            "%newid" => self.new_id(),
            "%farid" => {
                let ms = self.stream_clock + self.prng.below(4);
                format!("{ms}-{}", self.prng.below(3)).into_bytes()
            }
            "%groupid" if self.prng.chance(1, 2) => self.pick(&[&b"$"[..], b"0", b"0-0"]).to_vec(),
            "%start" | "%end" if self.prng.chance(1, 3) => self.pick(&[&b"-"[..], b"+"]).to_vec(),
            "%start" | "%end" if self.prng.chance(1, 4) => [b"(", &self.known_id()[..]].concat(),
            "%id" | "%groupid" | "%start" | "%end" => self.known_id(),
            "%minidle" if self.prng.chance(1, 20) => self.pick(&[&b"x"[..], b"-1", b""]).to_vec(),
            "%minidle" => self.pick(&[&b"0"[..], b"1000000", b"0", b"50000000"]).to_vec(),
            "%stream-count" if self.prng.chance(1, 20) => self.number(),
            "%stream-count" => self.prng.below(12).to_string().into_bytes(),
            "%mkstream" | "%counted" | "%readcounted" if self.prng.chance(1, 2) => return true,
            "%mkstream" => self.pick(&[&b"MKSTREAM"[..], b"mkstream", b"bogus"]).to_vec(),
            "%counted" | "%readcounted" => {
                words.push(b"COUNT".to_vec());
                self.prng.below(6).to_string().into_bytes()
            }
            "%fields" => {
                for _ in 0..1 + self.prng.below(3) {
                    words.push(self.pick(NAMES).to_vec());
                    words.push(self.value());
                }
                return true;
            }
            "%ids" => {
                for _ in 0..1 + self.prng.below(3) {
                    words.push(self.known_id());
                }
                return true;
            }
            "%addoptions" | "%exacttrim" => {
                if word == "%addoptions" && self.prng.chance(1, 3) {
                    words.push(b"NOMKSTREAM".to_vec());
                }
                if word == "%exacttrim" || self.prng.chance(2, 3) {
                    self.exact_trim(words);
                }
                return true;
            }
            "%claimoptions" => {
                for _ in 0..self.prng.below(3) {
                    self.claim_option(words);
                }
                return true;
            }
            _ => return false,
        };
        words.push(word);
        true
    }

    fn exact_trim(&mut self, words: &mut Vec<Vec<u8>>) {
        let by_length = self.prng.chance(1, 2);
        words.push(if by_length { b"MAXLEN".to_vec() } else { b"minid".to_vec() });
        if self.prng.chance(1, 3) {
            words.push(b"=".to_vec());
        }
        let threshold = if by_length { 4 + self.prng.below(12) } else { self.stream_clock.saturating_sub(8) };
        words.push(if self.prng.chance(1, 20) { self.number() } else { threshold.to_string().into_bytes() });
        if self.prng.chance(1, 20) {
            words.extend([b"LIMIT".to_vec(), self.small()]);
        }
    }

    fn claim_option(&mut self, words: &mut Vec<Vec<u8>>) {
        match self.prng.below(7) {
            0 | 1 => words.push(b"FORCE".to_vec()),
            2 => words.push(b"justid".to_vec()),
            3 => words.extend([b"IDLE".to_vec(), self.pick(&[&b"2000000"[..], b"0", b"-1", b"x"]).to_vec()]),
            4 => words.extend([b"TIME".to_vec(), self.pick(&[&b"1000"[..], b"-1"]).to_vec()]),
            5 => words.extend([b"RETRYCOUNT".to_vec(), self.small()]),
            _ => words.extend([b"LASTID".to_vec(), self.known_id()]),
        }
    }

    /// The id of a new entry, mostly greater than those before it.
    fn new_id(&mut self) -> Vec<u8> {
        self.stream_clock += self.prng.below(3);
        let ms = self.stream_clock;
        match self.prng.below(40) {
            0 => self.pick(&[&b"0-0"[..], b"x", b"5-", b"-", b"1-18446744073709551615"]).to_vec(),
            1 => self.known_id(),
            2..20 => format!("{ms}-*").into_bytes(),
            20..30 => format!("{ms}").into_bytes(),
            _ => format!("{ms}-{}", self.prng.below(4)).into_bytes(),
        }
    }

    /// An id that an entry may have.
    fn known_id(&mut self) -> Vec<u8> {
        let ms = self.stream_clock.saturating_sub(self.prng.below(16));
        match self.prng.below(40) {
            0 => self.pick(&[&b"0"[..], b"18446744073709551615", b"x", b"007-1", b"+5", b"$"]).to_vec(),
            1..8 => format!("{ms}").into_bytes(),
            _ => format!("{ms}-{}", self.prng.below(3)).into_bytes(),
        }
    }
}
