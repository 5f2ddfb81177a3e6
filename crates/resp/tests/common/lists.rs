//! Lists of the test store: the elements stand behind each other, each with a line end.

use super::TestStore;
use syros_commands::families::{
    LLen, LMPop, LPop, LPush, LRange, LSet, LTrim, ListEnd, ListIndex, TakeAction, TakeParts,
};
use syros_commands::{Command, Reply};

fn bulks(elements: &[Vec<u8>]) -> Reply {
    Reply::Array(elements.iter().cloned().map(Reply::Bulk).collect())
}

/// The places from one index to another one.
fn places(start: i64, stop: i64, length: usize) -> core::ops::Range<usize> {
    let place = |index: i64| if index < 0 { index + length as i64 } else { index };
    let end = (place(stop) + 1).clamp(0, length as i64);
    place(start).clamp(0, end) as usize..end as usize
}

impl TestStore {
    /// What a command on lists answers; `None` if it is not known here.
    pub(super) fn execute_on_lists(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::LLen(LLen { key }) => Reply::Integer(self.elements(key).len() as i64),
            Command::LRange(LRange { key, start, stop }) => {
                let elements = self.elements(key);
                bulks(&elements[places(start, stop, elements.len())])
            }
            Command::LPush(LPush { key, if_present: true, .. }) if !self.0.contains_key(key) => {
                Reply::Integer(0)
            }
            Command::LPush(LPush { key, end, elements: new, .. }) => {
                let mut elements = self.elements(key);
                for element in new {
                    let place = if end == ListEnd::Left { 0 } else { elements.len() };
                    elements.insert(place, element.to_vec());
                }
                self.put_elements(key, &elements);
                Reply::Integer(elements.len() as i64)
            }
            Command::LPop(LPop { key, count, .. }) if !self.0.contains_key(key) => {
                if count.is_some() {
                    Reply::NilArray
                } else {
                    Reply::Nil
                }
            }
            Command::LPop(LPop { key, end, count }) => {
                let popped = self.pop_elements(key, end, count.unwrap_or(1));
                if count.is_some() { bulks(&popped) } else { Reply::Bulk(popped[0].clone()) }
            }
            Command::Take(take) => {
                let TakeParts { action, keys, .. } = take.get();
                match keys.iter().find(|key| self.0.contains_key(*key)) {
                    Some(key) => self.take(action, key)?,
                    None if matches!(action, TakeAction::Move { .. }) => Reply::Nil,
                    None => Reply::NilArray,
                }
            }
            Command::LMPop(LMPop { keys, end, count }) => {
                match keys.iter().find(|key| self.0.contains_key(*key)) {
                    Some(key) => {
                        let popped = self.pop_elements(key, end, count.unwrap_or(1));
                        Reply::Array(vec![Reply::Bulk(key.to_vec()), bulks(&popped)])
                    }
                    None => Reply::NilArray,
                }
            }
            Command::LTrim(LTrim { key, start, stop }) => {
                let elements = self.elements(key);
                self.put_elements(key, &elements[places(start, stop, elements.len())]);
                Reply::Ok
            }
            Command::LSet(LSet { key, index: ListIndex::At(index), element }) => {
                let mut elements = self.elements(key);
                let place = places(index, index, elements.len());
                let Some(old) = elements[place].first_mut() else {
                    return Some(Reply::Error(b"ERR index out of range".to_vec()));
                };
                *old = element.to_vec();
                self.put_elements(key, &elements);
                Reply::Ok
            }
            _ => return None,
        })
    }

    fn elements(&self, key: &[u8]) -> Vec<Vec<u8>> {
        let joined = self.0.get(key).map(Vec::as_slice).unwrap_or_default();
        joined.split_inclusive(|byte| *byte == b'\n').map(|line| line[..line.len() - 1].to_vec()).collect()
    }

    fn put_elements(&mut self, key: &[u8], elements: &[Vec<u8>]) {
        let joined: Vec<u8> = elements.iter().flat_map(|element| [element, &b"\n"[..]].concat()).collect();
        if joined.is_empty() {
            self.0.remove(key);
        } else {
            self.0.insert(key.to_vec(), joined);
        }
    }

    fn pop_elements(&mut self, key: &[u8], end: ListEnd, count: u64) -> Vec<Vec<u8>> {
        let mut elements = self.elements(key);
        let count = elements.len().min(count as usize);
        let popped = match end {
            ListEnd::Left => elements.drain(..count).collect(),
            ListEnd::Right => elements.drain(elements.len() - count..).rev().collect(),
        };
        self.put_elements(key, &elements);
        popped
    }

    /// What a command that may wait does with a list.
    fn take(&mut self, action: TakeAction<'_>, key: &[u8]) -> Option<Reply> {
        let name = Reply::Bulk(key.to_vec());
        Some(match action {
            TakeAction::Pop(end) => {
                Reply::Array(vec![name, Reply::Bulk(self.pop_elements(key, end, 1).remove(0))])
            }
            TakeAction::PopSome(end, count) => {
                Reply::Array(vec![name, bulks(&self.pop_elements(key, end, count.unwrap_or(1)))])
            }
            TakeAction::Move { to, from_end, to_end } => {
                let element = self.pop_elements(key, from_end, 1).remove(0);
                let mut elements = self.elements(to);
                let place = if to_end == ListEnd::Left { 0 } else { elements.len() };
                elements.insert(place, element.clone());
                self.put_elements(to, &elements);
                Reply::Bulk(element)
            }
            TakeAction::PopMember(_) | TakeAction::PopMembers(..) => return None,
        })
    }
}
