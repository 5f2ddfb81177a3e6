//! What XCLAIM and XAUTOCLAIM do to entries.

use super::{put_entry, put_id};
use syros_values::{Consumer, Group, Pending, Stream, StreamId};

/// True if an entry has been pending for so long since it was delivered last. One that was delivered in the future has not.
pub(super) fn is_idle(pending: &Pending, min_idle_ms: u64, now_ms: u64) -> bool {
    min_idle_ms == 0 || now_ms.checked_sub(pending.delivered_ms).is_some_and(|idle| idle >= min_idle_ms)
}

/// Has an entry be pending at a consumer, as delivered at this time and so often, and appends it, or its id alone.
pub(super) fn claim(
    stream: &mut Stream,
    (group, consumer): (&Group, &Consumer),
    id: StreamId,
    delivery: (u64, u64),
    just_id: bool,
    reply: &mut Vec<u8>,
) {
    stream.deliver(group, id, consumer, delivery);
    if just_id {
        put_id(reply, id);
    } else {
        put_entry(reply, id, stream.get(id));
    }
}
