//! Sorted sets of the test store: a line for each member with its score, in no order but when they are answered.

use super::TestStore;
use syros_commands::families::{
    Draws, Interval, Selection, ZAdd, ZIncrBy, ZMPop, ZMScore, ZPop, ZRandMember, ZRangeParts, ZRank, ZRem,
    ZScan, ZScore,
};
use syros_commands::{Command, Double, Reply, write_double};

type Members = Vec<(f64, String)>;

fn double(value: f64) -> Reply {
    Reply::Double(Double::new(value))
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Pairs, or members alone.
fn shown(members: Members, with_scores: bool) -> Reply {
    let pairs = members.into_iter().map(|(score, member)| (bulk(&member), double(score)));
    if with_scores {
        Reply::Pairs(pairs.collect())
    } else {
        Reply::Array(pairs.map(|(member, _)| member).collect())
    }
}

impl TestStore {
    /// What a command on sorted sets answers; `None` if it is not known here. Ranges are of all members, pops from the front.
    pub(super) fn execute_on_sorted_sets(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::ZAdd(ZAdd { key, members, .. }) => {
                let before = self.sorted_members(key).len();
                for (score, member) in members.pairs() {
                    self.put_member(key, member, text(score).parse().expect("a number"));
                }
                Reply::Integer((self.sorted_members(key).len() - before) as i64)
            }
            Command::ZIncrBy(ZIncrBy { key, increment, member, .. }) => {
                let sum = self.score(key, member).unwrap_or(0.0) + increment.value();
                if sum.is_nan() {
                    return Some(Reply::Error(b"ERR resulting score is not a number (NaN)".to_vec()));
                }
                self.put_member(key, member, sum);
                double(sum)
            }
            Command::ZRem(ZRem { key, members }) => {
                let (mut kept, before) = (self.sorted_members(key), self.sorted_members(key).len());
                kept.retain(|(_, other)| members.iter().all(|member| member != other.as_bytes()));
                self.put_members(key, &kept);
                Reply::Integer((before - kept.len()) as i64)
            }
            Command::ZScore(ZScore { key, member }) => self.score(key, member).map_or(Reply::Nil, double),
            Command::ZMScore(ZMScore { key, members }) => {
                let scores = members.iter().map(|member| self.score(key, member).map_or(Reply::Nil, double));
                Reply::Array(scores.collect())
            }
            Command::ZRank(ZRank { key, member, .. }) => {
                let rank = self.sorted_members(key).iter().position(|(_, other)| other.as_bytes() == member);
                rank.map_or(Reply::Nil, |rank| Reply::Integer(rank as i64))
            }
            Command::ZRange(range) => {
                let ZRangeParts { key, selection, with_scores } = range.get();
                let Selection { interval: Interval::Ranks { start: 0, stop: -1 }, is_reversed, .. } =
                    selection
                else {
                    return None;
                };
                let mut members = self.sorted_members(key);
                if is_reversed {
                    members.reverse();
                }
                shown(members, with_scores && self.0.contains_key(key))
            }
            Command::ZRandMember(ZRandMember { key, draws: Draws::Many { with_values, .. } }) => {
                shown(self.sorted_members(key), with_values)
            }
            Command::ZPop(ZPop { key, count, .. }) => {
                let popped = self.pop_members(key, count.unwrap_or(1));
                match (count, &popped[..]) {
                    (None, [(score, member)]) => Reply::Array(vec![bulk(member), double(*score)]),
                    (None, _) => Reply::Array(Vec::new()),
                    _ => shown(popped, true),
                }
            }
            Command::ZMPop(ZMPop { keys, count, .. }) => {
                let Some(key) = keys.iter().find(|key| self.0.contains_key(*key)) else {
                    return Some(Reply::NilArray);
                };
                let popped = self.pop_members(key, count).into_iter();
                let popped = popped.map(|(score, member)| Reply::Array(vec![bulk(&member), double(score)]));
                Reply::Array(vec![Reply::Bulk(key.to_vec()), Reply::Array(popped.collect())])
            }
            Command::ZScan(ZScan { key, .. }) => {
                let found = self.sorted_members(key).into_iter().flat_map(|(score, member)| {
                    let mut text = Vec::new();
                    write_double(&mut text, score);
                    [bulk(&member), Reply::Bulk(text)]
                });
                Reply::Array(vec![bulk("0"), Reply::Array(found.collect())])
            }
            _ => return None,
        })
    }

    fn sorted_members(&self, key: &[u8]) -> Members {
        let lines = text(self.0.get(key).map(Vec::as_slice).unwrap_or_default());
        let split = |line: &str| {
            let (score, member) = line.split_once(' ').expect("a score and a member");
            (score.parse().expect("a number"), member.to_string())
        };
        let mut members: Members = lines.lines().map(split).collect();
        members.sort_by(|left, right| left.partial_cmp(right).expect("no NaN"));
        members
    }

    fn put_members(&mut self, key: &[u8], members: &[(f64, String)]) {
        let lines: String = members.iter().map(|(score, member)| format!("{score} {member}\n")).collect();
        if lines.is_empty() {
            self.0.remove(key);
        } else {
            self.0.insert(key.to_vec(), lines.into_bytes());
        }
    }

    fn score(&self, key: &[u8], member: &[u8]) -> Option<f64> {
        self.sorted_members(key).iter().find(|(_, other)| other.as_bytes() == member).map(|(score, _)| *score)
    }

    fn put_member(&mut self, key: &[u8], member: &[u8], score: f64) {
        let mut members = self.sorted_members(key);
        members.retain(|(_, other)| other.as_bytes() != member);
        members.push((score, text(member)));
        self.put_members(key, &members);
    }

    fn pop_members(&mut self, key: &[u8], count: u64) -> Members {
        let mut members = self.sorted_members(key);
        let kept = members.split_off(members.len().min(count as usize));
        self.put_members(key, &kept);
        members
    }
}
