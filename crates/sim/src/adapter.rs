//! The one place that knows how the other crates are called.

use core::cell::Cell;
use std::rc::Rc;
use syros_commands::families::{LMove, SMove};
use syros_commands::{Command, Reply, ScriptUse, operations};
use syros_protocol::message::Message;
use syros_protocol::replica::PlantedBug;
use syros_storage::{MemoryEngine, RemovalPace};
use syros_types::{Description, Footprint, key_hash_in};

thread_local! {
    /// What is wrong with what the state machine says of operations, in the world that this thread runs.
    static PLANTED: Cell<Option<PlantedBug>> = const { Cell::new(None) };
}

/// Makes what the state machine says wrong in a known way, if the bug is one of that, for the world that this thread begins.
pub(crate) fn plant(bug: Option<PlantedBug>) {
    PLANTED.set(bug);
}

/// What the state machine says of an operation.
pub(crate) fn describe(body: &[u8]) -> Option<Description> {
    let description = syros_commands::describe(body).ok()?;
    Some(match PLANTED.get() {
        Some(PlantedBug::SecondKeyForgotten) => without_second_key(body, description),
        Some(PlantedBug::ScriptConcernsDeclared) => of_declared_keys(body).unwrap_or(description),
        _ => description,
    })
}

/// The description, without the key at which an operation leaves what it takes from another one.
fn without_second_key(body: &[u8], description: Description) -> Description {
    let mut footprint = None;
    for operation in operations(body).flatten() {
        let name = match &operation.command {
            Command::LMove(LMove { from, .. }) => from,
            Command::SMove(SMove { source, .. }) => source,
            _ => return description,
        };
        footprint = Some(Footprint::One(key_hash_in(operation.database, name)));
    }
    match footprint {
        Some(footprint) => Description { footprint, ..description },
        None => description,
    }
}

/// What is said of a script that touches no other keys than those which it declares; `None` if the body is something else.
fn of_declared_keys(body: &[u8]) -> Option<Description> {
    let mut operation = operations(body).next()?.ok()?;
    match operation.script_mut()? {
        ScriptUse::Text { loads, owns_everything, .. } => (*loads, *owns_everything) = (false, false),
        ScriptUse::Name { owns_everything, .. } | ScriptUse::ReadText { owns_everything } => {
            *owns_everything = false;
        }
        ScriptUse::Function { .. } | ScriptUse::Flush => return None,
    }
    let mut declared = Vec::new();
    operation.encode(&mut declared);
    syros_commands::describe(&declared).ok()
}

/// A message as bytes.
pub(crate) fn encode_message(message: &Message) -> Rc<[u8]> {
    let mut bytes = Vec::with_capacity(64);
    syros_wire::encode_message(message, &mut bytes);
    bytes.into()
}

/// Bytes as a message.
pub(crate) fn decode_message(bytes: &[u8]) -> Message {
    syros_wire::decode_message(bytes, describe).expect("what was encoded can be decoded")
}

/// What a receiver takes a message for of whose frame a bit has flipped: `None` if it finds out. A `trusting` one looks at
/// no checksum.
pub(crate) fn damaged(bytes: &[u8], bit: u64, trusting: bool) -> Option<Rc<[u8]>> {
    let mut frame = Vec::with_capacity(bytes.len() + syros_wire::FRAME_OVERHEAD_BYTES);
    syros_wire::put_frame(&mut frame, syros_wire::Channel::Client, |out| out.extend_from_slice(bytes));
    // Damage of length and channel is found by other means.
    let first = syros_wire::FRAME_HEADER_BYTES as u64 * 8;
    let bit = first + bit % (frame.len() as u64 * 8 - first);
    frame[bit as usize / 8] ^= 1 << (bit % 8);
    let payload = if trusting {
        frame.get(syros_wire::FRAME_HEADER_BYTES..frame.len() - 4)?
    } else {
        syros_wire::split_frame(&frame, usize::MAX).ok()??.0.payload
    };
    syros_wire::decode_message(payload, describe).ok()?;
    Some(payload.into())
}

/// The pace of all engines in memory: some keys are due most of the time, and their records have not gone.
pub(crate) const PACE: RemovalPace = RemovalPace::SLOW;

/// An engine in memory that has executed nothing.
pub(crate) fn empty_engine() -> MemoryEngine {
    MemoryEngine::with_pace(0, PACE)
}

/// The first of the replies in a body, if it is a string.
pub(crate) fn bulk(body: &[u8]) -> Option<Vec<u8>> {
    match Reply::decode(&mut &*body) {
        Ok(Reply::Bulk(bytes)) => Some(bytes),
        _ => None,
    }
}
