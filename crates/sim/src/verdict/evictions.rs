//! Evictions, as operations that nobody asked for: one for each key that went.
//!
//! The log says which keys went, and where. An eviction has taken place by the time at which some replica has executed it, and
//! not before that at which some replica had executed the entry after which the keys were chosen. So a key that is gone
//! earlier, or that nobody evicted, is a violation as ever.

use super::{Told, Translated, input, lifetimes};
use crate::history::History;
use crate::invariants::Invariants;
use crate::workload::{ClientCommand, key_of};
use syros_checker::history::{Input, Output};
use syros_commands::families::Evict;
use syros_commands::{Command, Operation, Reply, operations};
use syros_types::OpNumber;

/// All evictions that the log has.
pub(super) fn evictions(history: &History, invariants: &Invariants) -> Vec<Translated> {
    let times = lifetimes::times(history);
    let mut all = Vec::new();
    for (number, entry) in (1..).map(OpNumber).zip(invariants.log()) {
        for (index, update) in entry.updates().iter().enumerate() {
            let Some((operation, evict)) = eviction(&update.request.body) else { continue };
            let answer = invariants.answer(update.request.id);
            let chosen_at = invariants.executed_at(OpNumber(evict.chosen_after)).unwrap_or(0);
            let executed_at = invariants.executed_at(number).unwrap_or(0);
            let before = times.partition_point(|(_, at)| *at < chosen_at) as u64;
            let after = times.partition_point(|(_, at)| *at <= executed_at) as u64;
            let invoked = 2 * before + 1;
            all.extend(removed(&operation, &evict, answer).map(|input| Translated {
                client: u64::MAX,
                invoked,
                input,
                told: Told::Answer { at: (2 * after + 1).max(invoked), output: Output::Done },
                sent: None,
                ends_at: Some((number.0, 2 * index as u64 + 1)),
                is_look: false,
            }));
        }
    }
    all
}

/// The eviction that a body is, if it is one.
fn eviction(body: &[u8]) -> Option<(Operation<'_>, Evict<'_>)> {
    let operation = operations(body).next()?.ok()?;
    match operation.command {
        Command::Evict(evict) => Some((operation, evict)),
        _ => None,
    }
}

/// The removals of those keys that went.
fn removed<'a>(
    operation: &Operation<'a>,
    evict: &Evict<'a>,
    answer: Option<&[u8]>,
) -> impl Iterator<Item = Input> {
    let flags = match answer.and_then(|answer| Reply::decode_all(answer).ok()?.pop()) {
        Some(Reply::Array(flags)) => flags,
        _ => Vec::new(),
    };
    let went = evict.keys.into_iter().zip(flags).filter(|(_, flag)| *flag == Reply::Integer(1));
    let database = operation.database;
    let keys = went.filter_map(|(name, _)| key_of(name));
    keys.map(move |key| input(&ClientCommand::Del { key, blind: true }.in_database(database), 0, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{decide, suggestion_holds};

    fn answered(invoked: u64, input: Input, at: u64, output: Output) -> Translated {
        let (is_look, told) = (input.is_read(), Told::Answer { at, output });
        Translated { client: invoked, invoked, input, told, sent: None, ends_at: None, is_look }
    }

    /// Key 1 is set, evicted, and found gone at this time.
    fn history(read: u64) -> Vec<Translated> {
        vec![
            answered(2, Input::Set(1, b"v".to_vec()), 4, Output::Done),
            answered(read, Input::Get(1), read + 2, Output::Value(None)),
            answered(11, Input::Delete(1), 15, Output::Done),
        ]
    }

    #[test]
    fn a_key_that_was_evicted_may_be_gone() {
        assert_eq!(suggestion_holds(&history(20), &[0, 2, 1]), Ok(()));
        assert_eq!(decide(&history(12), &[0, 1, 2]), Ok(()));
    }

    #[test]
    fn a_key_that_is_gone_before_it_was_chosen_stays_a_violation() {
        assert!(decide(&history(6), &[0, 2, 1]).is_err());
    }

    #[test]
    fn a_key_that_was_not_evicted_and_is_gone_stays_a_violation() {
        let mut other = history(20);
        other[2].input = Input::Delete(2);
        assert!(decide(&other, &[0, 2, 1]).is_err());
    }

    #[test]
    fn a_key_that_is_set_after_it_was_evicted_must_be_there() {
        let mut set_again = history(20);
        set_again.push(answered(16, Input::Set(1, b"w".to_vec()), 18, Output::Done));
        assert!(decide(&set_again, &[0, 2, 3, 1]).is_err());
    }
}
