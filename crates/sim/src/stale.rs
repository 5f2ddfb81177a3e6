//! What stale reads promise: any replica answers, and may be behind.
//!
//! An answer is one state that the log has come to, of all keys that the read names: the state after some entry that a
//! replica has executed by the time the answer arrives, and no earlier one than the entry that the answer names. Answers of
//! one replica do not go back, until it starts again; of an engine on disk, whose lanes execute keys apart from each other, not
//! for any key.

use crate::adapter;
use crate::history::{History, Invocation, StaleRead};
use crate::invariants::Invariants;
use crate::workload::encode;
use syros_protocol::client::Outcome;
use syros_storage::Engine as _;
use syros_types::{OpNumber, WallTime};

/// A stale read that was answered.
struct Answered<'h> {
    number: usize,
    invocation: &'h Invocation,
    stale: StaleRead,
    /// Its place in the order of all invocations and completions.
    at: u64,
    reply: &'h [u8],
    /// The entries after which the state gives this answer, in order.
    fits: Vec<usize>,
}

/// Whether stale reads kept what they promise.
///
/// # Errors
/// Which did not, in words.
pub(crate) fn judge(history: &History, invariants: &Invariants, has_lanes: bool) -> Result<(), String> {
    let mut reads: Vec<Answered<'_>> = history.operations().iter().enumerate().filter_map(answered).collect();
    if reads.is_empty() {
        return Ok(());
    }
    find_states(&mut reads, invariants);
    // The earliest state that fits, for every read in the order of invocations: if another choice does, this one does.
    let mut chosen: Vec<usize> = Vec::new();
    for (index, read) in reads.iter().enumerate() {
        let before = reads[..index].iter().zip(&chosen);
        let seen = before
            .filter(|(other, _)| {
                read.stale.by.is_some()
                    && other.stale.by == read.stale.by
                    && other.at < read.invocation.invoked
                    && (!has_lanes || share_a_key(other.invocation, read.invocation))
            })
            .map(|(_, state)| *state)
            .max();
        let named = read.stale.named.0 as usize;
        let first = named.max(seen.unwrap_or_default());
        match read.fits.iter().find(|state| **state >= first) {
            Some(state) => chosen.push(*state),
            None => {
                return Err(format!(
                    "stale read {}, {:?}, was answered {} by {:?}: that was no state after any of the entries {first} to {}; \
                     the answer names {named}, and states that fit are {:?}",
                    read.number,
                    read.invocation.steps,
                    read.reply.escape_ascii(),
                    read.stale.by,
                    read.stale.entries,
                    read.fits,
                ));
            }
        }
    }
    Ok(())
}

fn answered((number, invocation): (usize, &Invocation)) -> Option<Answered<'_>> {
    let (stale, finished) = (invocation.stale?, invocation.finished.as_ref()?);
    let Outcome::Reply(reply) = &finished.outcome else { return None };
    Some(Answered { number, invocation, stale, at: finished.order, reply, fits: Vec::new() })
}

fn share_a_key(one: &Invocation, other: &Invocation) -> bool {
    let keys = |invocation: &Invocation| -> Vec<u64> {
        let mut keys = Vec::new();
        invocation.steps.iter().for_each(|step| step.for_each_key(&mut |key| keys.push(key)));
        keys
    };
    let other = keys(other);
    keys(one).iter().any(|key| other.contains(key))
}

/// Executes the log once more, and asks after every entry what the reads asked.
fn find_states(reads: &mut [Answered<'_>], invariants: &Invariants) {
    let bodies: Vec<Vec<u8>> = reads.iter().map(|read| encode(&read.invocation.steps)).collect();
    let mut engine = adapter::empty_engine();
    let mut reply = Vec::new();
    for state in 0..=invariants.log().len() {
        if let Some(entry) = state.checked_sub(1).and_then(|index| invariants.log().get(index)) {
            engine.begin_entry(OpNumber(state as u64));
            for update in entry.updates() {
                reply.clear();
                engine.apply(entry.time, &update.request.body, &mut reply);
            }
            engine.advance(entry.time);
        }
        for (read, body) in reads.iter_mut().zip(&bodies) {
            if (read.stale.named.0 as usize..=read.stale.entries).contains(&state) {
                reply.clear();
                engine.read(WallTime(0), body, &mut reply);
                if reply == read.reply {
                    read.fits.push(state);
                }
            }
        }
    }
}
