//! Lists of the twin.

use super::{Content, Twin, error};
use syros_commands::families::{
    InsertSide, LIndex, LInsertParts, LLen, LMPop, LMove, LPop, LPosParts, LPush, LRange, LRem, LSet, LTrim,
    ListEnd, ListIndex,
};
use syros_commands::{Command, Reply};
use syros_types::{key_hash, mix};

/// The elements of a list in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Elements {
    elements: Vec<Vec<u8>>,
    /// It has once had more or longer elements than a small one may.
    is_large: bool,
}

impl Elements {
    pub(super) const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    pub(super) fn all(&self) -> Vec<Vec<u8>> {
        self.elements.clone()
    }

    fn push(&mut self, end: ListEnd, element: &[u8]) {
        let place = if end == ListEnd::Left { 0 } else { self.elements.len() };
        self.insert(place, element);
    }

    fn insert(&mut self, place: usize, element: &[u8]) {
        self.elements.insert(place, element.to_vec());
        self.is_large |= self.elements.len() > 128 || element.len() > 64;
    }

    fn pop(&mut self, end: ListEnd) -> Option<Vec<u8>> {
        match end {
            _ if self.elements.is_empty() => None,
            ListEnd::Left => Some(self.elements.remove(0)),
            ListEnd::Right => self.elements.pop(),
        }
    }

    fn pop_many(&mut self, end: ListEnd, count: u64) -> Reply {
        let mut popped = Vec::new();
        while (popped.len() as u64) < count
            && let Some(element) = self.pop(end)
        {
            popped.push(Reply::Bulk(element));
        }
        Reply::Array(popped)
    }

    /// Removes one equal element, the first from an end; false if there is none.
    fn remove(&mut self, end: ListEnd, element: &[u8]) -> bool {
        let mut places = 0..self.elements.len();
        let is_equal = |place: &usize| self.elements[*place] == element;
        let place = match end {
            ListEnd::Left => places.find(is_equal),
            ListEnd::Right => places.rfind(is_equal),
        };
        place.map(|place| self.elements.remove(place)).is_some()
    }

    fn place(&self, index: i64) -> Option<usize> {
        let length = self.elements.len() as i128;
        let place = if index < 0 { length + i128::from(index) } else { i128::from(index) };
        (0..length).contains(&place).then_some(place as usize)
    }

    /// The elements from one index to another one, which is included.
    fn part(&self, start: i64, stop: i64) -> Vec<Vec<u8>> {
        let length = self.elements.len() as i128;
        let place = |index: i64| if index < 0 { length + i128::from(index) } else { i128::from(index) };
        let inside = |at: usize| place(start) <= at as i128 && at as i128 <= place(stop);
        self.elements.iter().enumerate().filter(|(at, _)| inside(*at)).map(|(_, e)| e.clone()).collect()
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = mix(if self.is_large { 0x202 } else { 0x201 });
        for element in &self.elements {
            hash = mix(hash ^ mix(key_hash(element)));
        }
        mix(hash ^ self.elements.len() as u64)
    }
}

/// The key that has to be a list, or not to exist, of the commands that name one.
pub(super) fn key_of_list<'a>(command: &Command<'a>) -> Option<&'a [u8]> {
    match *command {
        Command::LLen(LLen { key })
        | Command::LIndex(LIndex { key, .. })
        | Command::LRange(LRange { key, .. })
        | Command::LPush(LPush { key, .. })
        | Command::LPop(LPop { key, .. })
        | Command::LSet(LSet { key, .. })
        | Command::LRem(LRem { key, .. })
        | Command::LTrim(LTrim { key, .. }) => Some(key),
        Command::LPos(asked) => Some(asked.get().key),
        Command::LInsert(asked) => Some(asked.get().key),
        _ => None,
    }
}

fn bulks(elements: Vec<Vec<u8>>) -> Reply {
    Reply::Array(elements.into_iter().map(Reply::Bulk).collect())
}

/// The indexes that LPOS answers.
fn positions(list: &Elements, asked: &LPosParts<'_>) -> Vec<Reply> {
    let mut places: Vec<usize> = (0..list.elements.len()).collect();
    if asked.rank < 0 {
        places.reverse();
    }
    if asked.compared_max > 0 {
        places.truncate(asked.compared_max.min(u64::from(u32::MAX)) as usize);
    }
    places.retain(|place| list.elements[*place] == asked.element);
    let passed_over = usize::try_from(asked.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    places.drain(..passed_over.min(places.len()));
    if let Some(count @ 1..) = asked.count {
        places.truncate(count.min(u64::from(u32::MAX)) as usize);
    }
    places.into_iter().map(|place| Reply::Integer(place as i64)).collect()
}

impl Twin {
    /// Gives a key that does not exist these elements.
    pub(super) fn insert_elements(&mut self, key: &[u8], elements: &[Vec<u8>]) {
        let mut list = Elements::default();
        elements.iter().for_each(|element| list.push(ListEnd::Right, element));
        self.keys.insert(key.to_vec(), (Content::List(list), None));
    }

    /// Reads of lists.
    pub(super) fn read_list(&self, command: &Command<'_>) -> Option<Reply> {
        Some(match command {
            Command::LLen(LLen { key }) => Reply::Integer(self.list(key).elements.len() as i64),
            Command::LIndex(LIndex { key, .. }) if self.list(key).is_empty() => Reply::Nil,
            Command::LIndex(LIndex { key, index }) => match index {
                ListIndex::NotInteger => error("ERR value is not an integer or out of range"),
                ListIndex::At(index) => {
                    let list = self.list(key);
                    list.place(*index).map_or(Reply::Nil, |place| Reply::Bulk(list.elements[place].clone()))
                }
            },
            Command::LRange(LRange { key, start, stop }) => bulks(self.list(key).part(*start, *stop)),
            Command::LPos(asked) => {
                let asked = asked.get();
                let found = positions(&self.list(asked.key), &asked);
                match asked.count {
                    None => found.into_iter().next().unwrap_or(Reply::Nil),
                    Some(_) => Reply::Array(found),
                }
            }
            _ => return None,
        })
    }

    /// Updates of lists.
    pub(super) fn update_list(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::LMove(LMove { from, to, from_end, to_end }) => {
                self.move_element(from, from_end, to, to_end)
            }
            Command::LMPop(LMPop { keys, end, count }) => {
                let Some(key) = keys.iter().find(|key| self.keys.contains_key(*key)) else {
                    return Some(Reply::NilArray);
                };
                if self.type_of(key) != "list" {
                    return Some(wrong_type());
                }
                let popped = self.change_list(key, |list| list.pop_many(end, count.unwrap_or(1)));
                Reply::Array(vec![Reply::Bulk(key.to_vec()), popped])
            }
            _ => {
                let key = key_of_list(command)?;
                let exists = self.keys.contains_key(key);
                self.change_list(key, |list| update(command, exists, list))
            }
        })
    }

    fn move_element(&mut self, from: &[u8], from_end: ListEnd, to: &[u8], to_end: ListEnd) -> Reply {
        match (self.type_of(from), self.type_of(to)) {
            ("none", _) => return Reply::Nil,
            ("list", "list" | "none") => {}
            _ => return wrong_type(),
        }
        let Some(element) = self.change_list(from, |list| list.pop(from_end)) else { return Reply::Nil };
        self.change_list(to, |list| list.push(to_end, &element));
        Reply::Bulk(element)
    }

    fn list(&self, key: &[u8]) -> Elements {
        match self.keys.get(key) {
            Some((Content::List(list), _)) => list.clone(),
            _ => Elements::default(),
        }
    }

    fn change_list<R>(&mut self, key: &[u8], change: impl FnOnce(&mut Elements) -> R) -> R {
        let (mut list, expiry) = (self.list(key), self.expiry(key));
        let result = change(&mut list);
        self.keys.insert(key.to_vec(), (Content::List(list), expiry));
        result
    }
}

fn wrong_type() -> Reply {
    error("WRONGTYPE Operation against a key holding the wrong kind of value")
}

/// What an update of one list does to it, and answers.
fn update(command: &Command<'_>, exists: bool, list: &mut Elements) -> Reply {
    match *command {
        Command::LPush(LPush { if_present: true, .. }) | Command::LInsert(_) if !exists => Reply::Integer(0),
        Command::LPush(LPush { end, elements, .. }) => {
            elements.iter().for_each(|element| list.push(end, element));
            Reply::Integer(list.elements.len() as i64)
        }
        Command::LPop(LPop { end, count: None, .. }) => list.pop(end).map_or(Reply::Nil, Reply::Bulk),
        Command::LPop(_) if !exists => Reply::NilArray,
        Command::LPop(LPop { end, count: Some(count), .. }) => list.pop_many(end, count),
        Command::LSet(_) if !exists => error("ERR no such key"),
        Command::LSet(LSet { index: ListIndex::NotInteger, .. }) => {
            error("ERR value is not an integer or out of range")
        }
        Command::LSet(LSet { index: ListIndex::At(index), element, .. }) => match list.place(index) {
            Some(place) => {
                list.elements[place] = element.to_vec();
                list.is_large |= element.len() > 64;
                Reply::Ok
            }
            None => error("ERR index out of range"),
        },
        Command::LInsert(asked) => {
            let LInsertParts { side, pivot, element, .. } = asked.get();
            let Some(place) = list.elements.iter().position(|found| found == pivot) else {
                return Reply::Integer(-1);
            };
            list.insert(if side == InsertSide::Before { place } else { place + 1 }, element);
            Reply::Integer(list.elements.len() as i64)
        }
        Command::LRem(LRem { count, element, .. }) => {
            let end = if count < 0 { ListEnd::Right } else { ListEnd::Left };
            let mut removed = 0;
            while (count == 0 || removed < i128::from(count).abs()) && list.remove(end, element) {
                removed += 1;
            }
            Reply::Integer(removed as i64)
        }
        Command::LTrim(LTrim { start, stop, .. }) => {
            list.elements = list.part(start, stop);
            Reply::Ok
        }
        _ => unreachable!("{command:?} is no update of a list"),
    }
}
