//! Plain versions of the rules, written to be obviously what their descriptions say.

use super::Entry;
use syros_types::Group;

/// How many of the logs hold the operation.
fn holders(logs: &[Vec<Entry>], operation: u8) -> usize {
    logs.iter().filter(|log| log.iter().any(|entry| entry.operation == operation)).count()
}

fn everything(logs: &[Vec<Entry>]) -> Vec<Entry> {
    let mut all: Vec<Entry> = logs.iter().flatten().copied().collect();
    all.sort_by_key(|entry| entry.timestamp);
    all.dedup();
    all
}

/// Skyros Figure 6: what `ceil(f/2) + 1` logs hold; an edge from `a` to `b` if in as many logs `a`
/// comes before `b`, or is there without `b`; then a topological order. The paper leaves open which of
/// several free updates goes first, and holds it to be impossible that none is free because the edges
/// form a cycle: in both cases here it is the one with the earliest timestamp.
#[must_use]
pub fn paper(group: Group, logs: &[Vec<Entry>]) -> Vec<u8> {
    let threshold = group.recovery_threshold();
    let mut left: Vec<u8> = everything(logs).iter().map(|entry| entry.operation).collect();
    left.retain(|operation| holders(logs, *operation) >= threshold);
    let precedes = |a: u8, b: u8| {
        let agreeing = logs.iter().filter(|log| {
            let place = |wanted: u8| log.iter().position(|entry| entry.operation == wanted);
            match (place(a), place(b)) {
                (Some(first), Some(second)) => first < second,
                (Some(_), None) => true,
                _ => false,
            }
        });
        agreeing.count() >= threshold
    };
    let mut order = Vec::new();
    while !left.is_empty() {
        let free = left.iter().position(|b| left.iter().all(|a| a == b || !precedes(*a, *b)));
        order.push(left.remove(free.unwrap_or(0)));
    }
    order
}

/// Majority mode on one key: of the union, the update with the latest timestamp.
#[must_use]
pub fn majority(_group: Group, logs: &[Vec<Entry>]) -> Vec<u8> {
    everything(logs).last().map(|entry| entry.operation).into_iter().collect()
}

/// Supermajority mode: what `ceil(f/2) + 1` logs hold, by timestamp.
#[must_use]
pub fn supermajority(group: Group, logs: &[Vec<Entry>]) -> Vec<u8> {
    let all = everything(logs).into_iter().map(|entry| entry.operation);
    all.filter(|operation| holders(logs, *operation) >= group.recovery_threshold()).collect()
}
