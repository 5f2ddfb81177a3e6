//! The one place that knows how the other crates are called.

use std::rc::Rc;
use syros_commands::Reply;
use syros_protocol::message::Message;
use syros_storage::{MemoryEngine, RemovalPace};
use syros_types::Description;

/// What the state machine says of an operation.
pub(crate) fn describe(body: &[u8]) -> Option<Description> {
    syros_commands::describe(body).ok()
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
