//! Copies of the twin, and what it sorts.

use super::{Content, Twin, error};
use core::cmp::Ordering;
use syros_commands::families::{Copy, Sort, SortStore};
use syros_commands::{Arguments, Command, Reply, parse_double};

/// What is to be sorted, and how.
#[derive(Default)]
struct Order {
    by: Option<Vec<u8>>,
    gets: Vec<Vec<u8>>,
    limit: Option<(i64, i64)>,
    is_descending: bool,
    is_alphabetical: bool,
    target: Option<Vec<u8>>,
}

impl Order {
    fn of(options: Arguments<'_>) -> Self {
        let mut order = Self::default();
        let mut words = options.iter();
        let number = |word: &[u8]| str::from_utf8(word).expect("digits").parse().expect("a number");
        while let Some(word) = words.next() {
            match &word.to_ascii_lowercase()[..] {
                b"asc" => order.is_descending = false,
                b"desc" => order.is_descending = true,
                b"alpha" => order.is_alphabetical = true,
                option => {
                    let argument = words.next().expect("an argument");
                    match option {
                        b"by" => order.by = Some(argument.to_vec()),
                        b"get" => order.gets.push(argument.to_vec()),
                        b"store" => order.target = Some(argument.to_vec()),
                        _ => {
                            order.limit = Some((number(argument), number(words.next().expect("a count"))));
                        }
                    }
                }
            }
        }
        order
    }

    fn keeps_order(&self) -> bool {
        self.by.as_ref().is_some_and(|name| !name.contains(&b'*'))
    }

    fn limited(&self, elements: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let Some((offset, count)) = self.limit else { return elements };
        let count = if count < 0 { usize::MAX } else { count as usize };
        elements.into_iter().skip(offset.max(0) as usize).take(count).collect()
    }
}

impl Twin {
    pub(super) fn read_generic(&self, command: &Command<'_>) -> Option<Reply> {
        let Command::Sort(Sort { key, options }) = *command else { return None };
        let answers = match self.sorted(key, &Order::of(options)) {
            Ok(answers) => answers,
            Err(reply) => return Some(reply),
        };
        let reply = |answer: Option<Vec<u8>>| answer.map_or(Reply::Nil, Reply::Bulk);
        Some(Reply::Array(answers.into_iter().map(reply).collect()))
    }

    pub(super) fn update_generic(&mut self, command: &Command<'_>) -> Option<Reply> {
        match *command {
            Command::Copy(Copy { from, to, replace }) => {
                let Some(source) = self.keys.get(from).cloned() else { return Some(Reply::Integer(0)) };
                if !replace && self.keys.contains_key(to) {
                    return Some(Reply::Integer(0));
                }
                self.keys.insert(to.to_vec(), source);
                Some(Reply::Integer(1))
            }
            Command::SortStore(SortStore { key, options }) => {
                let order = Order::of(options);
                let answers = match self.sorted(key, &order) {
                    Ok(answers) => answers,
                    Err(reply) => return Some(reply),
                };
                let target = order.target.expect("a target");
                let count = answers.len() as i64;
                let elements: Vec<_> = answers.into_iter().map(Option::unwrap_or_default).collect();
                self.keys.remove(&target);
                self.insert_elements(&target, &elements);
                Some(Reply::Integer(count))
            }
            _ => None,
        }
    }

    /// The values for the elements of a key in their order.
    fn sorted(&self, key: &[u8], order: &Order) -> Result<Vec<Option<Vec<u8>>>, Reply> {
        let found = self.keys.get(key).map(|(content, _)| content);
        let mut elements: Vec<Vec<u8>> = match found {
            None => Vec::new(),
            Some(Content::List(list)) => list.all(),
            Some(Content::Set(set)) => set.members.clone(),
            Some(Content::SortedSet(set)) => set.names(),
            Some(Content::String(_) | Content::Hash(_) | Content::Stream(_)) => {
                return Err(error("WRONGTYPE Operation against a key holding the wrong kind of value"));
            }
        };
        let is_set = matches!(found, Some(Content::Set(_)));
        if order.keeps_order() && !(is_set && order.target.is_some()) {
            if order.is_descending && !is_set {
                elements.reverse();
            }
        } else {
            let is_alphabetical = order.is_alphabetical || order.keeps_order();
            let mut weighed = Vec::new();
            for element in elements {
                let weight = match &order.by {
                    Some(name) if !order.keeps_order() => self.named(name, &element),
                    _ => Some(element.clone()),
                };
                let number = match &weight {
                    _ if is_alphabetical => Some(0.0),
                    Some(text) => number(text),
                    None => Some(0.0),
                };
                let failed = error("ERR One or more scores can't be converted into double");
                weighed.push((number.ok_or(failed)?, weight, element));
            }
            weighed.sort_by(|left, right| {
                let found = if is_alphabetical {
                    left.1.cmp(&right.1)
                } else {
                    left.0.partial_cmp(&right.0).unwrap_or(Ordering::Equal).then(left.2.cmp(&right.2))
                };
                if order.is_descending { found.reverse() } else { found }
            });
            elements = weighed.into_iter().map(|(_, _, element)| element).collect();
        }
        let mut answers = Vec::new();
        for element in order.limited(elements) {
            if order.gets.is_empty() {
                answers.push(Some(element));
            } else {
                answers.extend(order.gets.iter().map(|name| self.named(name, &element)));
            }
        }
        Ok(answers)
    }

    /// The value of the key of which this is the name, with an element in the place of the star.
    fn named(&self, name: &[u8], element: &[u8]) -> Option<Vec<u8>> {
        if name == b"#" {
            return Some(element.to_vec());
        }
        let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
        let bytes = |text: &str| text.chars().map(|char| char as u8).collect::<Vec<u8>>();
        let name = text(name);
        let (before, behind) = name.split_once('*')?;
        let (behind, field) = match behind.split_once("->") {
            Some((behind, field)) if !field.is_empty() => (behind, Some(field)),
            _ => (behind, None),
        };
        let key = [&bytes(before), element, &bytes(behind)].concat();
        match (self.keys.get(&key), field) {
            (Some((Content::String(value), _)), None) => Some(value.clone()),
            (Some((Content::Hash(fields), _)), Some(field)) => fields.get(&bytes(field)).cloned(),
            _ => None,
        }
    }
}

/// What C's `strtod` makes of the text before a NUL.
fn number(text: &[u8]) -> Option<f64> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let text = &text[..end];
    if text.is_empty() { Some(0.0) } else { parse_double(text.trim_ascii_start()) }
}
