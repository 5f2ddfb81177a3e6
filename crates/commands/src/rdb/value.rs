//! The values of all types, in all encodings.

use super::containers::{Element, integers, zipmap};
use super::input::Input;
use super::{InvalidPayload, listpack, streams, type_number, ziplist};
use crate::double::parse_double;
use crate::number::parse_integer;
use core::num::NonZeroU64;
use std::borrow::Cow;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_values::{Collection, Hash, List, ListEnd, Score, Set, SortedSet, Value};

/// How a node of a list lies in the newest encoding.
mod node {
    pub(super) const PLAIN: u64 = 1;
    pub(super) const PACKED: u64 = 2;
}

/// How scores are written that have no digits.
mod score_length {
    pub(super) const NOT_A_NUMBER: u8 = 253;
    pub(super) const GREATEST: u8 = 254;
    pub(super) const LEAST: u8 = 255;
}

/// Takes a type's number and a value of that type.
pub(super) fn take(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    match input.take_u8()? {
        type_number::STRING => take_string(input),
        type_number::LIST => take_list(input),
        type_number::LIST_ZIPLIST => {
            let mut list = List::default();
            push(&mut list, &ziplist::elements(&input.take_string()?)?);
            filled(list)
        }
        type_number::LIST_QUICKLIST => take_quicklist(input),
        type_number::LIST_QUICKLIST_2 => take_quicklist_2(input),
        type_number::SET => take_set(input),
        type_number::SET_INTSET => {
            let integers = integers(&input.take_string()?)?;
            set_of(integers.into_iter().map(|number| Ok(Element::Integer(number).bytes())))
        }
        type_number::SET_LISTPACK => {
            set_of(listpack::elements(&input.take_string()?)?.iter().map(|element| Ok(element.bytes())))
        }
        type_number::HASH => take_hash(input),
        type_number::HASH_ZIPMAP => {
            let bytes = input.take_string()?;
            hash_of(zipmap(&bytes)?.into_iter().map(|(field, value)| Ok((field.into(), value.into()))))
        }
        type_number::HASH_ZIPLIST => hash_of_elements(&ziplist::elements(&input.take_string()?)?),
        type_number::HASH_LISTPACK => hash_of_elements(&listpack::elements(&input.take_string()?)?),
        type_number::EXPIRING_HASH => take_expiring_hash(input),
        type_number::EXPIRING_HASH_LISTPACK => {
            input.take_array::<8>()?;
            expiring_hash_of_elements(&listpack::elements(&input.take_string()?)?)
        }
        type_number::SORTED_SET => take_sorted_set(input, take_score_in_digits),
        type_number::SORTED_SET_BINARY => take_sorted_set(input, take_score),
        type_number::SORTED_SET_ZIPLIST => sorted_set_of_elements(&ziplist::elements(&input.take_string()?)?),
        type_number::SORTED_SET_LISTPACK => {
            sorted_set_of_elements(&listpack::elements(&input.take_string()?)?)
        }
        number @ (type_number::STREAM
        | type_number::STREAM_WITH_COUNTERS
        | type_number::STREAM_WITH_ACTIVITY) => streams::take(input, number),
        _ => Err(InvalidPayload::Format),
    }
}

fn take_string(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    let string = input.take_string()?;
    if string.len() > VALUE_BYTES_MAX {
        return Err(InvalidPayload::Format);
    }
    Ok(Value::String(string.into_owned()))
}

/// A collection, which must have elements.
fn filled<C: Collection>(collection: C) -> Result<Value, InvalidPayload> {
    if collection.is_absent(0) { Err(InvalidPayload::Format) } else { Ok(collection.into()) }
}

fn push(list: &mut List, elements: &[Element<'_>]) {
    elements.iter().for_each(|element| list.push(ListEnd::Right, &element.bytes()));
}

fn take_list(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    let mut list = List::default();
    for _ in 0..input.take_length()? {
        list.push(ListEnd::Right, &input.take_string()?);
    }
    filled(list)
}

fn take_quicklist(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    let mut list = List::default();
    for _ in 0..input.take_length()? {
        push(&mut list, &ziplist::elements(&input.take_string()?)?);
    }
    filled(list)
}

fn take_quicklist_2(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    let mut list = List::default();
    for _ in 0..input.take_length()? {
        match input.take_length()? {
            node::PLAIN => list.push(ListEnd::Right, &input.take_string()?),
            node::PACKED => push(&mut list, &listpack::elements(&input.take_string()?)?),
            _ => return Err(InvalidPayload::Format),
        }
    }
    filled(list)
}

fn take_set(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    let count = input.take_length()?;
    set_of((0..count).map(|_| input.take_string()))
}

type Bytes<'a> = Cow<'a, [u8]>;

/// The set of these members, none of them twice.
fn set_of<'a>(
    members: impl Iterator<Item = Result<Bytes<'a>, InvalidPayload>>,
) -> Result<Value, InvalidPayload> {
    let mut set = Set::default();
    for member in members {
        if !set.insert(&member?) {
            return Err(InvalidPayload::Format);
        }
    }
    filled(set)
}

fn take_hash(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    let count = input.take_length()?;
    hash_of((0..count).map(|_| Ok((input.take_string()?, input.take_string()?))))
}

/// Takes a hash of which fields expire.
fn take_expiring_hash(input: &mut Input<'_>) -> Result<Value, InvalidPayload> {
    let first = u64::from_le_bytes(input.take_array()?);
    let count = input.take_length()?;
    expiring_hash_of((0..count).map(|_| {
        let longer = input.take_length()?;
        // One millisecond after the last one in which it is there.
        let gone = if longer == 0 { Some(0) } else { first.checked_add(longer) };
        Ok((input.take_string()?, input.take_string()?, gone.ok_or(InvalidPayload::Format)?))
    }))
}

/// The hash of fields, values, and the last milliseconds in which they are there, in turn.
fn expiring_hash_of_elements(elements: &[Element<'_>]) -> Result<Value, InvalidPayload> {
    if !elements.len().is_multiple_of(3) {
        return Err(InvalidPayload::Format);
    }
    expiring_hash_of(elements.chunks_exact(3).map(|triple| {
        let last = parse_integer(&triple[2].bytes()).and_then(|last| u64::try_from(last).ok());
        let gone = match last.ok_or(InvalidPayload::Format)? {
            0 => 0,
            last => last.saturating_add(1),
        };
        Ok((triple[0].bytes(), triple[1].bytes(), gone))
    }))
}

/// The hash of these fields, none of them twice, with their values and the first milliseconds in which they are gone; 0 if
/// they stay.
fn expiring_hash_of<'a>(
    fields: impl Iterator<Item = Result<(Bytes<'a>, Bytes<'a>, u64), InvalidPayload>>,
) -> Result<Value, InvalidPayload> {
    let mut hash = Hash::default();
    for field in fields {
        let (field, value, gone) = field?;
        if gone > Hash::EXPIRY_MS_MAX || !hash.set(&field, &value) {
            return Err(InvalidPayload::Format);
        }
        if let Some(gone) = NonZeroU64::new(gone) {
            hash.set_expiry(&field, Some(gone));
        }
    }
    filled(hash)
}

fn hash_of_elements(elements: &[Element<'_>]) -> Result<Value, InvalidPayload> {
    hash_of(pairs(elements)?.map(Ok))
}

/// Elements two by two.
fn pairs<'a>(
    elements: &[Element<'a>],
) -> Result<impl Iterator<Item = (Bytes<'a>, Bytes<'a>)>, InvalidPayload> {
    if elements.len().is_multiple_of(2) {
        Ok(elements.chunks_exact(2).map(|pair| (pair[0].bytes(), pair[1].bytes())))
    } else {
        Err(InvalidPayload::Format)
    }
}

/// The hash of these fields, none of them twice, with their values.
fn hash_of<'a>(
    pairs: impl Iterator<Item = Result<(Bytes<'a>, Bytes<'a>), InvalidPayload>>,
) -> Result<Value, InvalidPayload> {
    let mut hash = Hash::default();
    for pair in pairs {
        let (field, value) = pair?;
        if !hash.set(&field, &value) {
            return Err(InvalidPayload::Format);
        }
    }
    filled(hash)
}

fn take_score(input: &mut Input<'_>) -> Result<Score, InvalidPayload> {
    Score::new(f64::from_le_bytes(input.take_array()?)).ok_or(InvalidPayload::Format)
}

fn take_score_in_digits(input: &mut Input<'_>) -> Result<Score, InvalidPayload> {
    match input.take_u8()? {
        score_length::NOT_A_NUMBER => Err(InvalidPayload::Format),
        score_length::GREATEST => Ok(Score::GREATEST),
        score_length::LEAST => Score::new(f64::NEG_INFINITY).ok_or(InvalidPayload::Format),
        length => score_of(input.take(u64::from(length))?),
    }
}

fn score_of(digits: &[u8]) -> Result<Score, InvalidPayload> {
    parse_double(digits).and_then(Score::new).ok_or(InvalidPayload::Format)
}

fn take_sorted_set<'a>(
    input: &mut Input<'a>,
    take_score: impl Fn(&mut Input<'a>) -> Result<Score, InvalidPayload>,
) -> Result<Value, InvalidPayload> {
    let count = input.take_length()?;
    let mut members = Vec::new();
    for _ in 0..count {
        members.push((input.take_string()?, take_score(input)?));
    }
    sorted_set_of(members)
}

/// Members in a container have the order of their scores.
fn sorted_set_of_elements(elements: &[Element<'_>]) -> Result<Value, InvalidPayload> {
    let members = pairs(elements)?.map(|(member, score)| Ok((member, score_of(&score)?)));
    let members: Vec<_> = members.collect::<Result<_, InvalidPayload>>()?;
    let is_sorted = members.is_sorted_by(|(left, left_score), (right, right_score)| {
        (left_score.value(), left) < (right_score.value(), right)
    });
    if is_sorted { sorted_set_of(members) } else { Err(InvalidPayload::Format) }
}

/// The sorted set of these members in any order, none of them twice.
fn sorted_set_of(mut members: Vec<(Bytes<'_>, Score)>) -> Result<Value, InvalidPayload> {
    members.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    if !members.is_sorted_by(|(left, _), (right, _)| left < right) {
        return Err(InvalidPayload::Format);
    }
    let mut ordered: Vec<(&[u8], Score)> =
        members.iter().map(|(member, score)| (member.as_ref(), *score)).collect();
    ordered.sort_unstable_by_key(|(member, score)| (*score, *member));
    filled(SortedSet::from_ascending(&ordered))
}
