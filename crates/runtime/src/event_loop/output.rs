//! Writing connections.

use syros_net::FlushOutcome;

use super::EventLoop;
use crate::connection::ConnectionKind;

/// Portions of output that one connection writes at a time.
const PORTIONS_PER_TURN: usize = 4;

impl EventLoop {
    /// Writes what there is to write.
    pub(super) fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.flush_one(index);
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    /// Writes one connection, and closes it if that was the last thing it was there for.
    pub(super) fn flush_one(&mut self, index: usize) {
        let Some(open) = self.table.open_mut(index) else { return };
        open.is_dirty = false;
        if open.is_overfull {
            let limit = self.output_bytes_max;
            return self.drop_slow(
                index,
                &format!("more than {limit} bytes of replies wait for it, which is the limit"),
            );
        }
        let mut portions = 0;
        let is_done = loop {
            open.refill(&mut self.front_end);
            if !open.net.wants_flush() {
                break open.waiting_bytes(&self.front_end) == 0;
            }
            if portions == PORTIONS_PER_TURN {
                // A fast reader of a long reply does not keep the others waiting.
                open.mark_dirty(index, &mut self.dirty);
                break false;
            }
            portions += 1;
            self.turn.has_answered |= !matches!(open.kind, ConnectionKind::Link(_));
            match open.net.flush() {
                FlushOutcome::Done => {}
                FlushOutcome::Blocked => break false,
                FlushOutcome::Failed(error) => return self.close(index, &error.to_string()),
            }
        };
        let is_finished = match &open.kind {
            ConnectionKind::Redis => self.front_end.connection(open.address).is_none_or(|redis| {
                let has_ended = open.is_closing && !open.has_input_to_take();
                redis.is_finished() || (has_ended && redis.outstanding() == 0)
            }),
            ConnectionKind::Greeting(_) | ConnectionKind::Link(_) | ConnectionKind::Client { .. } => {
                open.is_closing
            }
        };
        if is_done && is_finished {
            return self.close(index, "it has got all its replies");
        }
        open.charge(&self.front_end, &mut self.memory);
        let (waiting, limit) = (open.waiting_bytes(&self.front_end), self.output_bytes_max);
        if waiting > limit && !matches!(open.kind, ConnectionKind::Link(_)) {
            return self
                .drop_slow(index, &format!("{waiting} bytes of replies wait for it, the limit is {limit}"));
        }
        // Replies that have gone may let the connection submit more.
        if open.is_redis() {
            self.front_end.on_sent(self.now, open.address);
        }
        self.resume_reading(index);
    }
}
