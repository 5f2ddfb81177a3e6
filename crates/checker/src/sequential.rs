//! The sequential meaning of operations: one copy of the data, one operation at a time.

use crate::history::Input;
use crate::output::{Output, count};
use crate::value::{Content, Value, integer};
use std::collections::BTreeMap;

/// Keys and values.
pub type KeyValues = BTreeMap<u32, Value>;

/// Executes one operation and returns the full answer, as if nothing were blind.
pub fn apply(store: &mut KeyValues, input: &Input) -> Output {
    match input {
        Input::Get(key) => text(store, *key).map_or(Output::WrongType, |found| Output::Value(found.cloned())),
        Input::GetMany(keys) => Output::Values(
            // A key that holds no text has nothing to show, like one that is missing.
            keys.iter().map(|key| text(store, *key).ok().flatten().cloned()).collect(),
        ),
        Input::Length(key) => {
            text(store, *key).map_or(Output::WrongType, |found| count(found.map_or(0, Vec::len)))
        }
        Input::Count(keys) => count(keys.iter().filter(|key| store.contains_key(key)).count()),
        Input::List(keys) => {
            let mut present: Vec<u32> = keys.iter().copied().filter(|key| store.contains_key(key)).collect();
            present.sort_unstable();
            Output::Keys(present)
        }
        Input::Clear(keys) => {
            keys.iter().for_each(|key| drop(store.remove(key)));
            Output::Done
        }
        Input::Set(key, value) => {
            store.insert(*key, Value::text(value.clone()));
            Output::Done
        }
        Input::SetMany(pairs) => {
            store.extend(pairs.iter().map(|(key, value)| (*key, Value::text(value.clone()))));
            Output::Done
        }
        Input::SetIfAbsent(key, value) => {
            let absent = !store.contains_key(key);
            if absent {
                store.insert(*key, Value::text(value.clone()));
            }
            Output::Flag(absent)
        }
        Input::Exchange(key, value) => {
            let Ok(old) = text(store, *key).map(Option::<&_>::cloned) else { return Output::WrongType };
            store.insert(*key, Value::text(value.clone()));
            Output::Value(old)
        }
        Input::Append(key, value) => append(store, *key, value),
        Input::Increment(key, delta) => increment(store, *key, *delta),
        Input::Delete(key) => Output::Flag(store.remove(key).is_some()),
        Input::Expire(key, value) => {
            if text(store, *key) == Ok(Some(value)) {
                store.remove(key);
            }
            Output::Done
        }
        Input::Collection(key, operation) => {
            let mut value = store.remove(key);
            let answer = operation.apply(&mut value);
            store.extend(value.map(|value| (*key, value)));
            answer
        }
        Input::Rename(from, to) => {
            let Some(value) = store.remove(from) else { return Output::Error };
            store.insert(*to, value);
            Output::Flag(true)
        }
        Input::Transfer(from, to, transfer) => transfer.apply(store, *from, *to),
        Input::Lifetime(key, lifetime) => {
            let found = store.get_mut(key).map(|value| value.lifetime = Some(*lifetime));
            Output::Flag(found.is_some())
        }
        Input::Persist(key) => {
            let lifetime = store.get_mut(key).and_then(|value| value.lifetime.take());
            Output::Flag(lifetime.is_some())
        }
        Input::LifetimeEnds(keys, lifetime) => {
            store.retain(|key, value| value.lifetime != Some(*lifetime) || !keys.contains(key));
            Output::Done
        }
        Input::Batch(parts) => Output::Batch(parts.iter().map(|part| apply(store, part)).collect()),
        Input::Conditional(seen, parts) => {
            let holds = |(key, value): &(u32, Option<Vec<u8>>)| text(store, *key) == Ok(value.as_ref());
            if !seen.iter().all(holds) {
                return Output::Flag(false);
            }
            Output::Batch(parts.iter().map(|part| apply(store, part)).collect())
        }
    }
}

/// A value of another type than an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WrongType;

/// The text of a key, if it holds something.
fn text(store: &KeyValues, key: u32) -> Result<Option<&Vec<u8>>, WrongType> {
    store.get(&key).map(|value| value.as_text().ok_or(WrongType)).transpose()
}

/// Gives a key other text; it keeps its lifetime.
fn change_text(store: &mut KeyValues, key: u32, bytes: Vec<u8>) {
    store.entry(key).or_insert_with(|| Value::text(Vec::new())).content = Content::Text(bytes);
}

fn append(store: &mut KeyValues, key: u32, value: &[u8]) -> Output {
    let Ok(old) = text(store, key) else { return Output::WrongType };
    let whole = [old.map_or(&[][..], Vec::as_slice), value].concat();
    let length = count(whole.len());
    change_text(store, key, whole);
    length
}

fn increment(store: &mut KeyValues, key: u32, delta: i64) -> Output {
    let Ok(old) = text(store, key) else { return Output::WrongType };
    let old = old.map_or(Some(0), |value| integer(value));
    let Some(sum) = old.and_then(|old| old.checked_add(delta)) else { return Output::Error };
    change_text(store, key, sum.to_string().into_bytes());
    Output::Number(sum)
}

/// True if a client that was told `told` may have got it from an execution that answered `actual`.
#[must_use]
pub fn agrees(told: &Output, actual: &Output) -> bool {
    match (told, actual) {
        (Output::Done, _) => true,
        (Output::Batch(told), Output::Batch(actual)) => {
            told.len() == actual.len() && told.iter().zip(actual).all(|(told, actual)| agrees(told, actual))
        }
        _ => told == actual,
    }
}

/// True if the bytes, or the bytes with something appended, may be an integer.
pub(crate) fn may_become_integer(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_strict() {
        for (text, value) in [("0", Some(0)), ("-7", Some(-7)), ("9223372036854775807", Some(i64::MAX))] {
            assert_eq!(integer(text.as_bytes()), value);
        }
        for text in ["", "-", "-0", "+1", "01", " 1", "1 ", "9223372036854775808", "1e3"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_failed_increment_changes_nothing() {
        let mut store = KeyValues::new();
        apply(&mut store, &Input::Set(1, b"text".to_vec()));
        assert_eq!(apply(&mut store, &Input::Increment(1, 1)), Output::Error);
        assert_eq!(apply(&mut store, &Input::Get(1)), Output::Value(Some(b"text".to_vec())));
        apply(&mut store, &Input::Set(1, i64::MAX.to_string().into_bytes()));
        assert_eq!(apply(&mut store, &Input::Increment(1, 1)), Output::Error);
        assert_eq!(apply(&mut store, &Input::Increment(2, -3)), Output::Number(-3));
    }

    #[test]
    fn a_blind_answer_agrees_with_everything() {
        assert!(agrees(&Output::Done, &Output::Error));
        let told = Output::Batch(vec![Output::Done, Output::Flag(true)]);
        assert!(agrees(&told, &Output::Batch(vec![Output::Number(3), Output::Flag(true)])));
        assert!(!agrees(&told, &Output::Batch(vec![Output::Number(3), Output::Flag(false)])));
    }
}
