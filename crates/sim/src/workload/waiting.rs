//! Commands that wait for elements: what clients ask for, and what the answers say.

use super::Workload;
use syros_checker::collections::{CollectionOperation, End, ListOperation, SortedSetOperation};
use syros_checker::history::{Input, Output};
use syros_checker::transfer::Transfer;
use syros_commands::Reply;
use syros_types::Prng;

/// What is done with the first of the keys that has elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitAction {
    /// BLPOP and BRPOP.
    Pop(End),
    /// BLMPOP, of so many elements at most.
    PopSome(End, u64),
    /// BZPOPMIN.
    PopMin,
    /// BLMOVE to this key.
    Move {
        /// The key whose list the element is added to.
        to: u64,
        /// Where it is taken from.
        from_end: End,
        /// Where it is added.
        to_end: End,
    },
}

/// A command that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitCommand {
    /// The keys, in the order in which they are looked at; one if an element is moved.
    pub keys: Vec<u64>,
    /// What is done.
    pub action: WaitAction,
    /// For so many milliseconds at most; 0 without end.
    pub millis: u64,
}

/// How commands name an end of a list.
pub(super) fn word_of(end: End) -> Vec<u8> {
    if end == End::Left { b"LEFT".to_vec() } else { b"RIGHT".to_vec() }
}

impl WaitCommand {
    /// Visits its keys.
    pub(super) fn for_each_key(&self, visit: &mut dyn FnMut(u64)) {
        self.keys.iter().for_each(|key| visit(*key));
        if let WaitAction::Move { to, .. } = self.action {
            visit(to);
        }
    }

    /// Changes its keys.
    pub(super) fn change_keys(&mut self, change: impl Fn(&mut u64)) {
        self.keys.iter_mut().for_each(&change);
        if let WaitAction::Move { to, .. } = &mut self.action {
            change(to);
        }
    }

    /// The words of the command, whose keys have these names.
    pub(super) fn words(&self, name: fn(u64) -> Vec<u8>) -> Vec<Vec<u8>> {
        let names = || self.keys.iter().copied().map(name);
        let timeout = format!("{}.{:03}", self.millis / 1000, self.millis % 1000).into_bytes();
        let simple = |command: &str| {
            let command = core::iter::once(command.as_bytes().to_vec());
            command.chain(names()).chain([timeout.clone()]).collect()
        };
        match &self.action {
            WaitAction::Pop(End::Left) => simple("BLPOP"),
            WaitAction::Pop(End::Right) => simple("BRPOP"),
            WaitAction::PopMin => simple("BZPOPMIN"),
            WaitAction::PopSome(from, count) => {
                let count_of_keys = self.keys.len().to_string().into_bytes();
                let head = [b"BLMPOP".to_vec(), timeout.clone(), count_of_keys];
                let tail = [word_of(*from), b"COUNT".to_vec(), count.to_string().into_bytes()];
                head.into_iter().chain(names()).chain(tail).collect()
            }
            WaitAction::Move { to, from_end, to_end } => {
                let head = core::iter::once(b"BLMOVE".to_vec()).chain(names());
                head.chain([name(*to), word_of(*from_end), word_of(*to_end), timeout.clone()]).collect()
            }
        }
    }

    /// True if it takes elements of lists, false if members of sorted sets.
    pub(crate) const fn is_of_lists(&self) -> bool {
        !matches!(self.action, WaitAction::PopMin)
    }

    /// What it was, to the judge, when it took something from this key; the rest of its answer decides how many elements.
    fn taking(&self, key: u64, taken: usize) -> Input {
        let name = |key: u64| key as u32;
        match &self.action {
            WaitAction::Pop(end) => {
                Input::Collection(name(key), CollectionOperation::List(ListOperation::Pop(*end)))
            }
            WaitAction::PopSome(end, _) => {
                Input::Collection(name(key), CollectionOperation::List(ListOperation::PopSome(*end, taken)))
            }
            WaitAction::PopMin => {
                Input::Collection(name(key), CollectionOperation::SortedSet(SortedSetOperation::PopMin))
            }
            WaitAction::Move { to, from_end, to_end } => {
                Input::Transfer(name(key), name(*to), Transfer::Element(*from_end, *to_end))
            }
        }
    }

    /// What the command was to the judge, and what its client was told, by its answer: taking from one of its keys, or
    /// nothing. A client may get fewer elements than it wants, and than there are, because others have waited longer for the
    /// rest. `None` if this is no answer, where keys have these names.
    pub(crate) fn judged(&self, reply: Reply, name_of: fn(u64) -> Vec<u8>) -> Option<(Input, Output)> {
        let bulk = |reply: &Reply| if let Reply::Bulk(bytes) = reply { Some(bytes.clone()) } else { None };
        let nothing = (Input::Batch(Vec::new()), Output::Batch(Vec::new()));
        match reply {
            Reply::Nil | Reply::NilArray | Reply::Waits => Some(nothing),
            Reply::Error(text) if text.starts_with(b"UNBLOCKED") => Some(nothing),
            // Which of its keys holds another type it does not say.
            Reply::Error(text) if text.starts_with(b"WRONGTYPE") => match (&self.action, &self.keys[..]) {
                (_, [key]) => Some((self.taking(*key, 1), Output::WrongType)),
                _ => Some(nothing),
            },
            Reply::Bulk(element) => match &self.action {
                WaitAction::Move { .. } => {
                    Some((self.taking(*self.keys.first()?, 1), Output::Value(Some(element))))
                }
                _ => None,
            },
            Reply::Array(parts) => {
                let (name, rest) = parts.split_first()?;
                let name = bulk(name)?;
                let key = *self.keys.iter().find(|key| name_of(**key) == name)?;
                match (&self.action, rest) {
                    (WaitAction::Pop(_), [element]) => {
                        Some((self.taking(key, 1), Output::Value(Some(bulk(element)?))))
                    }
                    (WaitAction::PopSome(_, count), [Reply::Array(elements)]) => {
                        let values =
                            elements.iter().map(|it| bulk(it).map(Some)).collect::<Option<Vec<_>>>()?;
                        let is_right = !values.is_empty() && values.len() as u64 <= *count;
                        is_right.then(|| (self.taking(key, values.len()), Output::Values(values)))
                    }
                    (WaitAction::PopMin, [member, score]) => {
                        let score = match score {
                            Reply::Double(number) => format!("{}", number.value()).into_bytes(),
                            other => bulk(other)?,
                        };
                        Some((self.taking(key, 1), Output::Values(vec![Some(bulk(member)?), Some(score)])))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// An update of its first key that adds one element; no other has made this number up.
    pub(crate) fn feeding(&self, number: u64) -> CollectionOperation {
        let element = format!("fed{number}").into_bytes();
        if self.is_of_lists() {
            CollectionOperation::List(ListOperation::Push(End::Right, vec![element]))
        } else {
            CollectionOperation::SortedSet(SortedSetOperation::Add(vec![(1, element)]))
        }
    }
}

impl Workload {
    /// A command that waits for keys which mostly hold collections; `None` if clients use none, or neither lists nor sorted
    /// sets.
    pub(crate) fn wait(&self, dice: &mut Prng, longest: u64) -> Option<WaitCommand> {
        let settings = self.settings().collections?;
        let (lists, sorted_sets) = (settings.weights[1], settings.weights[3]);
        if lists + sorted_sets == 0 {
            return None;
        }
        let keys = self.collection_keys();
        let key = |dice: &mut Prng| keys.start + dice.below(keys.end - keys.start);
        let end = |dice: &mut Prng| if dice.chance(1, 2) { End::Left } else { End::Right };
        let mut wanted = vec![key(dice)];
        let second = key(dice);
        let millis = if dice.chance(1, 6) { 0 } else { 1 + dice.below(longest) };
        if dice.below(lists + sorted_sets) >= lists {
            if dice.chance(1, 3) && !wanted.contains(&second) {
                wanted.push(second);
            }
            return Some(WaitCommand { keys: wanted, action: WaitAction::PopMin, millis });
        }
        let action = match dice.below(8) {
            0..=4 => WaitAction::Pop(end(dice)),
            5 => WaitAction::PopSome(end(dice), 1 + dice.below(3)),
            _ => WaitAction::Move { to: second, from_end: end(dice), to_end: end(dice) },
        };
        let is_of_several = !matches!(action, WaitAction::Move { .. }) && dice.chance(1, 3);
        if is_of_several && !wanted.contains(&second) {
            wanted.push(second);
        }
        Some(WaitCommand { keys: wanted, action, millis })
    }
}
