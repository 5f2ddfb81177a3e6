//! The sequential meaning of operations: one copy of the data, one operation at a time.

use crate::history::{Input, Output};
use std::collections::BTreeMap;

/// Keys and values.
pub type KeyValues = BTreeMap<u32, Vec<u8>>;

/// Executes one operation and returns the full answer, as if nothing were blind.
pub fn apply(store: &mut KeyValues, input: &Input) -> Output {
    match input {
        Input::Get(key) => Output::Value(store.get(key).cloned()),
        Input::GetMany(keys) => Output::Values(keys.iter().map(|key| store.get(key).cloned()).collect()),
        Input::Length(key) => length(store.get(key).map_or(0, Vec::len)),
        Input::Count(keys) => length(keys.iter().filter(|key| store.contains_key(key)).count()),
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
            store.insert(*key, value.clone());
            Output::Done
        }
        Input::SetMany(pairs) => {
            store.extend(pairs.iter().cloned());
            Output::Done
        }
        Input::SetIfAbsent(key, value) => {
            let absent = !store.contains_key(key);
            if absent {
                store.insert(*key, value.clone());
            }
            Output::Flag(absent)
        }
        Input::Exchange(key, value) => Output::Value(store.insert(*key, value.clone())),
        Input::Append(key, value) => {
            let whole = store.entry(*key).or_default();
            whole.extend_from_slice(value);
            length(whole.len())
        }
        Input::Increment(key, delta) => {
            let old = store.get(key).map_or(Some(0), |value| integer(value));
            match old.and_then(|old| old.checked_add(*delta)) {
                Some(sum) => {
                    store.insert(*key, sum.to_string().into_bytes());
                    Output::Number(sum)
                }
                None => Output::Error,
            }
        }
        Input::Delete(key) => Output::Flag(store.remove(key).is_some()),
        Input::Expire(key, value) => {
            if store.get(key) == Some(value) {
                store.remove(key);
            }
            Output::Done
        }
        Input::Batch(parts) => Output::Batch(parts.iter().map(|part| apply(store, part)).collect()),
    }
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

/// An integer exactly as an increment writes it: no sign but a minus, no leading zeros.
pub(crate) fn integer(bytes: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == bytes).then_some(number)
}

/// True if the bytes, or the bytes with something appended, may be an integer.
pub(crate) fn may_become_integer(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
}

fn length(count: usize) -> Output {
    Output::Number(i64::try_from(count).unwrap_or(i64::MAX))
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
