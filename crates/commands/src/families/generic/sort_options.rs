//! The options of SORT and SORT_RO, and the order that they ask for.

use crate::access::{EntryRef, Keys};
use crate::arguments::Arguments;
use crate::double::parse_sort_weight;
use crate::error::{CommandError, ExecutionError};
use crate::limits::{SORT_LOOKUPS_MAX, SOURCE_BYTES_MAX};
use crate::words::{integer, is, pattern};
use core::cmp::Ordering;
use syros_types::limits::KEY_BYTES_MAX;
use syros_values::{Kind, List, Set, SortedSet};

/// What the options of a SORT ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct SortOptions<'a> {
    /// BY: the name of the key that has an element's weight.
    by: Option<&'a [u8]>,
    /// LIMIT: how many elements are left out at the front, and how many are taken from there on; all of them if that is
    /// negative.
    limit: Option<(i64, i64)>,
    /// GET: the names of the keys whose values are answered instead of an element.
    gets: Vec<&'a [u8]>,
    is_descending: bool,
    /// ALPHA: weights are compared as bytes.
    is_alphabetical: bool,
    /// STORE: the key that becomes a list of the answer.
    pub(super) target: Option<&'a [u8]>,
}

/// The name without which GET answers nil and BY sorts nothing has this in the place of the element.
const PLACE: u8 = b'*';

impl<'a> SortOptions<'a> {
    /// The options that these words are; `stores` is true of the command that may have a STORE.
    pub(super) fn parse(words: Arguments<'a>, stores: bool) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let left = words.len();
            let mut argument = || words.next().ok_or(CommandError::Syntax);
            if is(option, "asc") || is(option, "desc") {
                options.is_descending = is(option, "desc");
            } else if is(option, "alpha") {
                options.is_alphabetical = true;
            } else if is(option, "limit") && left >= 2 {
                options.limit = Some((integer(argument()?)?, integer(argument()?)?));
            } else if stores && is(option, "store") && left >= 1 {
                options.target = Some(checked_key(argument()?)?);
            } else if is(option, "by") && left >= 1 {
                options.by = Some(pattern(argument()?)?);
            } else if is(option, "get") && left >= 1 {
                options.gets.push(pattern(argument()?)?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// True if it looks at keys whose names follow from elements.
    pub(super) fn looks_up(&self) -> bool {
        self.weights().is_some() || self.gets.iter().any(|name| has_place(name))
    }

    /// The name of the key that has an element's weight, if it is another one for each element.
    fn weights(&self) -> Option<&'a [u8]> {
        self.by.filter(|name| has_place(name))
    }

    /// True if the elements keep their order: BY a name that has no place for them.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|name| !has_place(name))
    }

    /// How many answers there are to each element.
    fn answers_each(&self) -> usize {
        self.gets.len().max(1)
    }

    /// Visits the answers for the elements of a key in their order: how many there are, and each of them; `None` is the
    /// value of a key that does not exist.
    pub(super) fn run<K: Keys>(
        &self,
        keys: &K,
        key: &[u8],
        begin: impl FnOnce(usize),
        mut visit: impl FnMut(Option<&[u8]>) -> Result<(), ExecutionError>,
    ) -> Result<(), ExecutionError> {
        let found = keys.get(key);
        let mut elements = self.elements(found.as_ref())?;
        let looked_up = elements.len() * (usize::from(self.weights().is_some()) + self.gets.len());
        if looked_up > SORT_LOOKUPS_MAX {
            return Err(ExecutionError::TooManyLookups);
        }
        if !self.keeps_order() || self.sorts_for_store(found.as_ref()) {
            elements = self.sorted(keys, elements)?;
        }
        let (start, end) = self.range(elements.len());
        let elements = &elements[start..end];
        begin(elements.len() * self.answers_each());
        for element in elements {
            if self.gets.is_empty() {
                visit(Some(element))?;
            }
            self.gets.iter().try_for_each(|name| with_value(keys, name, element, &mut visit))?;
        }
        Ok(())
    }

    /// A set has no order that a list could keep, so one that is stored is sorted.
    fn sorts_for_store<E: EntryRef>(&self, found: Option<&E>) -> bool {
        self.target.is_some() && found.is_some_and(|found| found.kind() == Kind::Set)
    }

    /// All elements of a key, in the order of their collection, from its end if they keep it and the order is descending.
    fn elements<'e, E: EntryRef>(&self, found: Option<&'e E>) -> Result<Vec<&'e [u8]>, ExecutionError> {
        let Some(found) = found else { return Ok(Vec::new()) };
        let is_reversed = self.keeps_order() && self.is_descending;
        let mut elements: Vec<&[u8]> = match found.kind() {
            Kind::List => found.collection::<List>()?.iter().collect(),
            Kind::Set => return Ok(found.collection::<Set>()?.iter().collect()),
            Kind::SortedSet => found.collection::<SortedSet>()?.iter().map(|(member, _)| member).collect(),
            Kind::String | Kind::Hash | Kind::Stream => return Err(ExecutionError::WrongType),
        };
        if is_reversed {
            elements.reverse();
        }
        Ok(elements)
    }

    /// Which of so many elements are answered.
    fn range(&self, length: usize) -> (usize, usize) {
        let Some((offset, count)) = self.limit else { return (0, length) };
        let start = usize::try_from(offset.max(0)).unwrap_or(usize::MAX).min(length);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        (start, start.saturating_add(count).min(length))
    }

    fn sorted<'e, K: Keys>(
        &self,
        keys: &K,
        elements: Vec<&'e [u8]>,
    ) -> Result<Vec<&'e [u8]>, ExecutionError> {
        if !self.is_alphabetical && !self.keeps_order() {
            let weights = self.weighed(keys, &elements, |weight| {
                weight.map_or(Some(0.0), parse_sort_weight).ok_or(ExecutionError::NotWeight)
            })?;
            let order = |left: &f64, right: &f64| left.partial_cmp(right).unwrap_or(Ordering::Equal);
            return Ok(
                self.in_order(weights, |left, right| order(&left.0, &right.0).then(left.1.cmp(right.1)))
            );
        }
        if self.weights().is_none() {
            let weights = elements.into_iter().map(|element| ((), element)).collect();
            return Ok(self.in_order(weights, |left, right| left.1.cmp(right.1)));
        }
        let mut bytes = 0;
        let weights = self.weighed(keys, &elements, |weight| {
            bytes += weight.map_or(0, <[u8]>::len);
            if bytes > SOURCE_BYTES_MAX {
                return Err(ExecutionError::SourcesTooLong);
            }
            Ok(weight.map(<[u8]>::to_vec))
        })?;
        Ok(self.in_order(weights, |left, right| left.0.cmp(&right.0)))
    }

    /// The elements with what `weigh` makes of their weights.
    fn weighed<'e, K: Keys, W>(
        &self,
        keys: &K,
        elements: &[&'e [u8]],
        mut weigh: impl FnMut(Option<&[u8]>) -> Result<W, ExecutionError>,
    ) -> Result<Vec<(W, &'e [u8])>, ExecutionError> {
        let mut weights = Vec::with_capacity(elements.len());
        for element in elements {
            match self.weights() {
                None => weights.push((weigh(Some(element))?, *element)),
                Some(name) => with_value(keys, name, element, &mut |weight| {
                    weights.push((weigh(weight)?, *element));
                    Ok(())
                })?,
            }
        }
        Ok(weights)
    }

    /// Elements of equal weight keep their order.
    fn in_order<'e, W>(
        &self,
        mut weights: Vec<(W, &'e [u8])>,
        order: impl Fn(&(W, &'e [u8]), &(W, &'e [u8])) -> Ordering,
    ) -> Vec<&'e [u8]> {
        weights.sort_by(|left, right| {
            let order = order(left, right);
            if self.is_descending { order.reverse() } else { order }
        });
        weights.into_iter().map(|(_, element)| element).collect()
    }
}

fn checked_key(word: &[u8]) -> Result<&[u8], CommandError> {
    if word.len() > KEY_BYTES_MAX { Err(CommandError::KeyTooLong(word.len())) } else { Ok(word) }
}

/// Redis reads patterns up to the first NUL where it looks for their parts.
fn text(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn has_place(name: &[u8]) -> bool {
    text(name).contains(&PLACE)
}

/// Gives `visit` the value that belongs to an element: of the key with this name, the element in its place; of a field of it,
/// if an arrow stands before one; or, for `#`, the element itself.
fn with_value<K: Keys>(
    keys: &K,
    name: &[u8],
    element: &[u8],
    visit: &mut impl FnMut(Option<&[u8]>) -> Result<(), ExecutionError>,
) -> Result<(), ExecutionError> {
    if name == b"#" {
        return visit(Some(element));
    }
    let Some(place) = text(name).iter().position(|byte| *byte == PLACE) else { return visit(None) };
    let (before, behind) = (&name[..place], &name[place + 1..]);
    let arrow = text(behind).windows(2).position(|pair| pair == b"->");
    let field = arrow.map(|arrow| &behind[arrow + 2..]).filter(|field| !text(field).is_empty());
    let behind = match (arrow, field) {
        (Some(arrow), Some(_)) => &behind[..arrow],
        _ => behind,
    };
    let key = [before, element, behind].concat();
    let found = if key.len() > KEY_BYTES_MAX { None } else { keys.get(&key) };
    let value = found.as_ref().and_then(|found| match field {
        None => found.string().ok(),
        Some(field) => found.hash().ok()?.at(keys.time_ms()).get(field),
    });
    visit(value)
}
