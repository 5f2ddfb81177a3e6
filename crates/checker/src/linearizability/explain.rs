//! A violation for people: how far an order goes, and what cannot follow.

use super::component::Component;
use super::placeable::Placeable;
use super::search::DeadEnd;
use crate::history::Outcome;
use crate::sequential::{KeyValues, agrees, apply};
use std::fmt::Write as _;

/// Operations printed of a long order: enough to see what led to the end, few enough to be read.
const PRINTED_OPERATIONS_MAX: usize = 30;

/// Describes the dead end beyond which no order of the component's operations goes.
pub(super) fn explain(component: &Component<'_>, end: &DeadEnd) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_explanation(&mut text, component, end);
    text
}

fn write_explanation(text: &mut String, component: &Component<'_>, end: &DeadEnd) -> std::fmt::Result {
    let keys: Vec<String> = component.keys.iter().map(|key| format!("k{key}")).collect();
    writeln!(text, "no order of the operations on {} explains their answers", keys.join(", "))?;
    let skipped = end.order.len().saturating_sub(PRINTED_OPERATIONS_MAX);
    write!(text, "the farthest any order goes is these {} operations", end.order.len())?;
    writeln!(text, "{}", if skipped > 0 { ", of which the last:" } else { ":" })?;
    let mut store = KeyValues::new();
    for (number, index) in end.order.iter().enumerate() {
        let operation = component.operations[*index as usize].operation;
        let answer = apply(&mut store, &operation.input);
        if number >= skipped {
            write!(text, "  {operation}")?;
            if operation.outcome == Outcome::Unknown {
                write!(text, ", here taking effect as {answer}")?;
            }
            writeln!(text)?;
        }
    }
    writeln!(text, "which leaves:")?;
    for key in &component.keys {
        let value = store.get(key).map_or("nothing".to_owned(), ToString::to_string);
        writeln!(text, "  k{key} = {value}")?;
    }
    let target = &component.operations[end.target as usize];
    writeln!(text, "where this one, the first of the others to complete, cannot be placed:")?;
    write_candidate(text, target, &store)?;
    let mut is_placed = vec![false; component.operations.len()];
    end.order.iter().for_each(|index| is_placed[*index as usize] = true);
    let others: Vec<&Placeable<'_>> = component
        .operations
        .iter()
        .enumerate()
        .filter(|(index, other)| {
            let concurrent = other.invoked <= target.completed;
            concurrent && !is_placed[*index] && *index != end.target as usize && other.keys & target.keys != 0
        })
        .map(|(_, other)| other)
        .collect();
    if !others.is_empty() {
        writeln!(text, "nor does it help to place some of these before it:")?;
        for other in others.iter().take(PRINTED_OPERATIONS_MAX) {
            write_candidate(text, other, &store)?;
        }
        if others.len() > PRINTED_OPERATIONS_MAX {
            writeln!(text, "  .. and {} more", others.len() - PRINTED_OPERATIONS_MAX)?;
        }
    }
    Ok(())
}

fn write_candidate(text: &mut String, candidate: &Placeable<'_>, store: &KeyValues) -> std::fmt::Result {
    write!(text, "  {}", candidate.operation)?;
    let answer = apply(&mut store.clone(), &candidate.operation.input);
    if candidate.told.is_some_and(|told| !agrees(told, &answer)) {
        write!(text, ", but here it would be {answer}")?;
    }
    writeln!(text)
}
