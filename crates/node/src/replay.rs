//! Executing a log without a replica: what a member does with entries that are committed, for who restores a backup.

use syros_protocol::message::{LogEntry, Payload};
use syros_storage::Engine;
use syros_types::OpNumber;

/// Executes the entry with this number, as every member does that has executed all before it. `reply` is room for what its updates
/// return, which nobody waits for.
pub fn execute_entry(engine: &mut impl Engine, number: OpNumber, entry: &LogEntry, reply: &mut Vec<u8>) {
    engine.begin_entry(number);
    for update in entry.updates() {
        reply.clear();
        engine.apply(entry.time, &update.request.body, reply);
    }
    if matches!(
        entry.payload,
        Payload::Register { .. } | Payload::Expire(_) | Payload::Tick | Payload::Reconfigure(_)
    ) {
        engine.advance(entry.time);
    }
    // Nobody listens to the messages of scripts, and all of them together may be larger than the data.
    engine.take_announcements();
}
