//! Sets of the twin.

use super::{Content, Twin, error, one_if};
use std::collections::BTreeSet;
use syros_commands::families::{
    Draws, SAdd, SCard, SInter, SInterCard, SInterStore, SIsMember, SMIsMember, SMembers, SMove, SPop,
    SRandMember, SRem, SScan, ScanOptions, SetOperator,
};
use syros_commands::{Arguments, Command, Reply, glob_matches};
use syros_types::{Prng, key_hash, mix};

/// The members of a set in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct SetMembers {
    pub(super) members: Vec<Vec<u8>>,
    /// It has once had more or longer members than a small one may.
    is_large: bool,
}

impl SetMembers {
    pub(super) const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn contains(&self, member: &[u8]) -> bool {
        self.members.iter().any(|other| other == member)
    }

    fn add(&mut self, member: &[u8]) -> bool {
        let is_new = !self.contains(member);
        if is_new {
            self.members.push(member.to_vec());
        }
        self.is_large |= self.members.len() > 128 || member.len() > 64;
        if self.is_large {
            self.members.sort_by_key(|member| (key_hash(member), member.clone()));
        }
        is_new
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let before = self.members.len();
        self.members.retain(|other| other != member);
        self.members.len() < before
    }

    fn reply(self) -> Reply {
        Reply::Set(self.members.into_iter().map(Reply::Bulk).collect())
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = mix(if self.is_large { 0x302 } else { 0x301 });
        for member in &self.members {
            hash = mix(hash ^ mix(key_hash(member)));
        }
        mix(hash ^ self.members.len() as u64)
    }
}

impl Twin {
    /// The keys that have to be sets, or not to exist.
    pub(super) fn keys_of_sets<'a>(&self, command: &Command<'a>) -> Vec<&'a [u8]> {
        match *command {
            Command::SAdd(SAdd { key, .. })
            | Command::SRem(SRem { key, .. })
            | Command::SPop(SPop { key, .. })
            | Command::SMembers(SMembers { key })
            | Command::SCard(SCard { key })
            | Command::SIsMember(SIsMember { key, .. })
            | Command::SMIsMember(SMIsMember { key, .. })
            | Command::SRandMember(SRandMember { key, .. })
            | Command::SScan(SScan { key, .. }) => vec![key],
            Command::SMove(SMove { source, destination, .. }) if self.keys.contains_key(source) => {
                vec![source, destination]
            }
            Command::SInter(SInter { keys, .. }) | Command::SInterCard(SInterCard { keys, .. }) => {
                keys.iter().collect()
            }
            Command::SInterStore(SInterStore { keys, .. }) => keys.iter().skip(1).collect(),
            _ => Vec::new(),
        }
    }

    /// Reads of sets. SRANDMEMBER answers how many members it draws, and a step of SSCAN that need not answer all members
    /// nil.
    pub(super) fn read_set(&self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::SMembers(SMembers { key }) => self.members(key).reply(),
            Command::SCard(SCard { key }) => Reply::Integer(self.members(key).members.len() as i64),
            Command::SIsMember(SIsMember { key, member }) => one_if(self.members(key).contains(member)),
            Command::SMIsMember(SMIsMember { key, members }) => {
                let set = self.members(key);
                Reply::Array(members.iter().map(|member| one_if(set.contains(member))).collect())
            }
            Command::SRandMember(SRandMember { key, draws }) => {
                match (draws, self.members(key).members.len() as i64) {
                    (Draws::One, 0) => Reply::Nil,
                    (Draws::One, _) => Reply::Integer(1),
                    (Draws::Many { .. }, 0) => Reply::Integer(0),
                    (Draws::Many { count, .. }, _) if count < 0 => Reply::Integer(-count),
                    (Draws::Many { count, .. }, length) => Reply::Integer(count.min(length)),
                }
            }
            Command::SScan(SScan { key, cursor, options }) => self.scan_set(key, cursor, options),
            Command::SInter(SInter { operator, keys }) => self.combined(operator, keys, 0).reply(),
            Command::SInterCard(SInterCard { limit, keys }) => {
                let count = self.combined(SetOperator::Intersection, keys, 0).members.len() as u64;
                Reply::Integer(if limit == 0 { count } else { count.min(limit) } as i64)
            }
            _ => return None,
        })
    }

    fn scan_set(&self, key: &[u8], cursor: u64, options: ScanOptions<'_>) -> Reply {
        let set = self.members(key);
        let (pattern, count) = match options {
            _ if set.is_empty() => (None, u64::MAX),
            ScanOptions::Syntax => return error("ERR syntax error"),
            ScanOptions::NotInteger => return error("ERR value is not an integer or out of range"),
            ScanOptions::Valid { pattern, count } => (pattern, u64::from(count)),
        };
        if set.is_large && (cursor > 0 || count <= 1000) {
            return Reply::Nil;
        }
        let matching = set.members.into_iter().filter(|member| glob_matches(pattern.unwrap_or(b"*"), member));
        let found = Reply::Array(matching.map(Reply::Bulk).collect());
        Reply::Array(vec![Reply::Bulk(b"0".to_vec()), found])
    }

    /// Updates of sets.
    pub(super) fn update_set(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::SAdd(SAdd { key, members }) => {
                let mut set = self.members(key);
                let new = members.iter().filter(|member| set.add(member)).count();
                self.insert_members(key, set);
                Reply::Integer(new as i64)
            }
            Command::SRem(SRem { key, members }) => {
                let mut set = self.members(key);
                let removed = members.iter().filter(|member| set.remove(member)).count();
                self.insert_members(key, set);
                Reply::Integer(removed as i64)
            }
            Command::SPop(SPop { key, seed, count }) => {
                let mut set = self.members(key);
                let drawn: Vec<Vec<u8>> = ranks(seed, count.unwrap_or(1), set.members.len() as u64)
                    .into_iter()
                    .map(|rank| set.members[rank as usize].clone())
                    .collect();
                set.members.retain(|member| !drawn.contains(member));
                self.insert_members(key, set);
                let mut drawn = drawn.into_iter().map(Reply::Bulk);
                if count.is_some() { Reply::Set(drawn.collect()) } else { drawn.next().unwrap_or(Reply::Nil) }
            }
            Command::SMove(SMove { source, destination, member }) => {
                let mut set = self.members(source);
                let found = set.remove(member);
                if found && source != destination {
                    self.insert_members(source, set);
                    let mut set = self.members(destination);
                    set.add(member);
                    self.insert_members(destination, set);
                }
                one_if(found)
            }
            Command::SInterStore(SInterStore { operator, keys }) => {
                let (result, destination) = (self.combined(operator, keys, 1), keys.iter().next()?);
                let count = result.members.len();
                self.keys.insert(destination.to_vec(), (Content::Set(result), None));
                Reply::Integer(count as i64)
            }
            _ => return None,
        })
    }

    fn members(&self, key: &[u8]) -> SetMembers {
        match self.keys.get(key) {
            Some((Content::Set(set), _)) => set.clone(),
            _ => SetMembers::default(),
        }
    }

    fn insert_members(&mut self, key: &[u8], set: SetMembers) {
        let expiry = self.expiry(key);
        self.keys.insert(key.to_vec(), (Content::Set(set), expiry));
    }

    /// What becomes of the sets of these keys but for the first so many.
    fn combined(&self, operator: SetOperator, keys: Arguments<'_>, skipped: usize) -> SetMembers {
        let sets: Vec<SetMembers> = keys.iter().skip(skipped).map(|key| self.members(key)).collect();
        let mut result = SetMembers::default();
        let candidates: Vec<&SetMembers> = match operator {
            SetOperator::Union => sets.iter().collect(),
            SetOperator::Difference => sets.iter().take(1).collect(),
            SetOperator::Intersection => {
                sets.iter().min_by_key(|set| set.members.len()).into_iter().collect()
            }
        };
        for member in candidates.into_iter().flat_map(|set| &set.members) {
            let holders = sets.iter().filter(|set| set.contains(member)).count();
            let belongs = match operator {
                SetOperator::Union => true,
                SetOperator::Difference => holders == 1,
                SetOperator::Intersection => holders == sets.len(),
            };
            if belongs {
                result.add(member);
            }
        }
        result
    }
}

/// The ranks that a seed draws, different ones (Floyd's algorithm), or all.
fn ranks(seed: u64, count: u64, length: u64) -> BTreeSet<u64> {
    if count >= length {
        return (0..length).collect();
    }
    let mut prng = Prng::new(seed);
    let mut drawn = BTreeSet::new();
    for last in length - count..length {
        let number = prng.below(last + 1);
        drawn.insert(if drawn.contains(&number) { last } else { number });
    }
    drawn
}
