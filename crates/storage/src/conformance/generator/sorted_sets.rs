//! Random commands on sorted sets.

use super::Generator;

pub(super) const TEMPLATES: &[&str] = &[
    "ZSCORE %zset %member",
    "ZSCORE %zset %member",
    "ZSCORE %zset %member",
    "ZSCORE %zset %member",
    "ZMSCORE %zset %members",
    "ZCARD %zset",
    "ZCOUNT %zset %bound %bound",
    "ZLEXCOUNT %lex %memberbound %memberbound",
    "ZRANK %zset %member",
    "ZRANK %zset %member",
    "ZRANK %zset %member",
    "ZRANK %zset %member",
    "ZREVRANK %zset %member",
    "ZRANGE %zset %small %small %zrange",
    "ZRANGE %zset %bound %bound BYSCORE %zrange",
    "ZRANGE %lex %memberbound %memberbound BYLEX %zrange",
    "ZREVRANGE %zset %small %small %withscores",
    "ZRANGEBYSCORE %zset %bound %bound %zrange",
    "ZREVRANGEBYSCORE %zset %bound %bound %zrange",
    "ZRANGEBYLEX %lex %memberbound %memberbound %zrange",
    "ZREVRANGEBYLEX %lex %memberbound %memberbound %zrange",
    "ZRANDMEMBER %zset",
    "ZRANDMEMBER %zset %small %withscores",
    "ZSCAN %zset 0 COUNT 1000000 %hscan",
    "ZSCAN %zset %cursor %hscan",
    "ZUNION %sources %weights %withscores",
    "ZINTER %sources %weights %withscores",
    "ZDIFF %sources %withscores",
    "ZINTERCARD %sources %limit",
    "ZADD %zset %scored",
    "ZADD %zset %scored",
    "ZADD %zset %scored",
    "ZADD %zset %zadd %scored",
    "ZADD %zset %zadd %scored",
    "ZADD %zset INCR %zadd %score %member",
    "ZADD %zset %manymembers",
    "ZADD lex 0 %member 0 %member 0 %member",
    "ZINCRBY %zset %score %member",
    "ZINCRBY %zset %score %member",
    "ZREM %zset %members",
    "ZREM %lex %members",
    "ZREMRANGEBYRANK %zset %small %small",
    "ZREMRANGEBYSCORE %zset %bound %bound",
    "ZREMRANGEBYLEX %lex %memberbound %memberbound",
    "ZPOPMIN %zset",
    "ZPOPMAX %zset %small",
    "ZMPOP %sources MIN",
    "ZMPOP %sources MAX COUNT %small",
    "ZRANGESTORE %zset %zset %small %small %zrange",
    "ZRANGESTORE %zset %zset %bound %bound BYSCORE %zrange",
    "ZUNIONSTORE %zset %sources %weights",
    "ZINTERSTORE %zset %sources %weights",
    "ZDIFFSTORE %zset %sources",
    "DEL %zset",
    "RENAME %zset %zset",
    "PEXPIRE %zset %ms %expire",
];

/// Keys that are sorted sets most of the time.
pub(super) const KEYS: &[&[u8]] = &[b"z", b"zset:1", b"zset:2", b"key:z"];

const MEMBERS: &[&[u8]] = &[b"", b"m", b"n", b"a", b"b", b"member:1", b"member:2", b"\0\xff", b"a b", b"[x]"];

const SCORES: &[&[u8]] = &[
    b"0", b"1", b"1", b"2", b"-1.5", b"0.1", b"inf", b"-inf", b"+Inf", b"nan", b"0x1.8p3", b"1e400", b"-0",
    b"x",
];

impl Generator {
    /// Adds the argument that a word of this family's templates stands for; false if it is none of its words.
    pub(super) fn expand_of_sorted_sets(&mut self, word: &str, words: &mut Vec<Vec<u8>>) -> bool {
        let word = match word {
            "%zset" if self.prng.chance(1, 12) => self.pick(super::KEYS).to_vec(),
            "%zset" => self.pick(KEYS).to_vec(),
            // All of its members have score 0, so that what is between two members is defined.
            "%lex" if self.prng.chance(1, 12) => self.pick(KEYS).to_vec(),
            "%lex" => b"lex".to_vec(),
            "%member" => self.scored_member(),
            "%bound" if self.prng.chance(1, 3) => [b"(", &self.score()[..]].concat(),
            "%bound" if self.prng.chance(1, 10) => {
                self.pick(&[&b""[..], b" 1", b"(", b"1 ", b"1e999"]).to_vec()
            }
            "%bound" | "%score" => self.score(),
            "%memberbound" => match self.prng.below(12) {
                0 => self.scored_member(),
                1..4 => b"-".to_vec(),
                4..7 => b"+".to_vec(),
                _ => [self.pick(&[&b"["[..], b"("]), &self.scored_member()[..]].concat(),
            },
            "%withscores" if self.prng.chance(1, 2) => return true,
            "%withscores" => {
                self.pick(&[&b"WITHSCORES"[..], b"withscores", b"WITHSCORES", b"bogus"]).to_vec()
            }
            "%members" | "%scored" => {
                for _ in 0..1 + self.prng.below(3) {
                    if word == "%scored" {
                        words.push(self.score());
                    }
                    words.push(self.scored_member());
                }
                return true;
            }
            "%manymembers" => {
                // Two or three of these exceed what a small sorted set has room for.
                let start = self.prng.below(200);
                for number in start..start + 60 {
                    words.push(self.small());
                    words.push(format!("many:{number}").into_bytes());
                }
                return true;
            }
            "%sources" | "%weights" | "%limit" => {
                self.combine(word, words);
                return true;
            }
            _ => return false,
        };
        words.push(word);
        true
    }

    /// Keys behind their number, and what may stand behind them.
    fn combine(&mut self, word: &str, words: &mut Vec<Vec<u8>>) {
        match word {
            "%sources" => {
                let count = 1 + self.prng.below(3);
                let said =
                    if self.prng.chance(1, 30) { self.number() } else { count.to_string().into_bytes() };
                words.push(said);
                for _ in 0..count {
                    self.expand_of_sorted_sets("%zset", words);
                }
            }
            "%weights" => {
                let count = words.iter().rev().position(|word| word.len() == 1 && word[0].is_ascii_digit());
                if self.prng.chance(1, 2) {
                    words.push(b"WEIGHTS".to_vec());
                    (0..count.unwrap_or(1)).for_each(|_| words.push(self.score()));
                }
                if self.prng.chance(1, 2) {
                    words.push(b"AGGREGATE".to_vec());
                    words.push(self.pick(&[&b"SUM"[..], b"min", b"MAX", b"max", b"bogus"]).to_vec());
                }
            }
            _ if self.prng.chance(1, 2) => words.extend([b"LIMIT".to_vec(), self.small()]),
            _ => {}
        }
    }

    fn scored_member(&mut self) -> Vec<u8> {
        match self.prng.below(60) {
            0 => vec![b'm'; 60 + self.prng.below(10) as usize],
            1..6 => format!("many:{}", self.prng.below(260)).into_bytes(),
            _ => self.pick(MEMBERS).to_vec(),
        }
    }

    fn score(&mut self) -> Vec<u8> {
        match self.prng.below(8) {
            0 => self.pick(SCORES).to_vec(),
            1 => self.float(),
            _ => self.small(),
        }
    }
}
