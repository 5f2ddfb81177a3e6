//! Executing the reads of the replica, as soon as there is room for their answers.

use syros_commands::asks_about_users;
use syros_node::{InMemory as _, ReadJob};
use syros_protocol::message::{Message, Peer};
use syros_wire::{put_member_reply_frame, put_read_reply_frame};

use super::{EventLoop, OWN_FRONT_END};

impl EventLoop {
    /// Executes a read, unless its client has to take replies before: what they take is known only now. Who the users are a
    /// process is told at once: it serves nobody until it knows, and that the values have gone which its clients have asked for may
    /// take many seconds.
    pub(super) fn read_if_room(&mut self, job: ReadJob) {
        self.evict_if_exceeded();
        let Peer::Client(address) = job.to else { return };
        if address == OWN_FRONT_END {
            if !self.front_end.admits_read(job.number, &job.body, self.memory.is_scarce()) {
                return;
            }
        } else {
            let Some(index) = self.table.find(address) else { return };
            let Some(open) = self.table.open_mut(index) else { return };
            let has_to_wait = open.exceeds_reply_share() || !open.held_reads.is_empty();
            if has_to_wait && !asks_about_users(&job.body) {
                open.hold(job);
                return open.charge(&self.front_end, &mut self.memory);
            }
        }
        self.read(job);
    }

    /// Executes reads of a connection that waited for room.
    pub(super) fn read_held(&mut self, index: usize) {
        while let Some(open) = self.table.open_mut(index)
            && let Some(job) = open.pop_held()
        {
            let view = self.local.as_ref().map(|local| local.replica().view());
            // What a member said of itself holds in that view; its client asks again.
            if job.freshness.is_none() || view == Some(job.view) {
                self.evict_if_exceeded();
                self.read(job);
            }
        }
        // It may be read again.
        self.mark_dirty(index);
    }

    /// Executes a read and sends its result: for another process straight into the connection's buffer.
    pub(super) fn read(&mut self, job: ReadJob) {
        let configuration = self.description.configuration.id;
        let (clock, Some(local)) = (self.now, &mut self.local) else { return };
        match (job.to, local.memory()) {
            (Peer::Client(address), Some(memory))
                if address != OWN_FRONT_END
                    && local.slow_reads.is_none()
                    && memory.engine().long_read(&job.body).is_none()
                    && memory.expired(job.time, &job.body).is_none() =>
            {
                let Self { table, dirty, output_bytes_max, front_end, memory: client_memory, .. } = self;
                let Some(index) = table.find(address) else { return };
                let Some(open) = table.open_mut(index) else { return };
                let engine = memory.engine();
                let ReadJob { view, number, body, freshness, applied, now, .. } = job;
                open.put_for_client(*output_bytes_max, |out| {
                    let read = |out: &mut Vec<u8>| engine.read(now, &body, out);
                    let request = (view, number);
                    match freshness {
                        None => put_read_reply_frame(out, configuration, request, read),
                        Some(freshness) => {
                            put_member_reply_frame(out, configuration, request, applied, freshness, |out| {
                                read(out);
                                engine.first_expiry(&body).unwrap_or_default()
                            });
                        }
                    }
                });
                open.charge(front_end, client_memory);
                open.mark_dirty(index, dirty);
            }
            _ => {
                let to = job.to;
                let Some(message) = local.read(clock, job) else { return };
                self.has_large_reply |= is_large(&message);
                match &mut local.slow_reads {
                    Some(slow_reads) => slow_reads.hold(clock.instant, to, message),
                    None => self.deliver(to, message),
                }
            }
        }
    }

    pub(super) fn pop_slow_read(&mut self) -> Option<(Peer, Message)> {
        self.local.as_mut()?.slow_reads.as_mut()?.pop(self.now.instant)
    }
}

/// True if a message holds so much of a value that there should not be many like it.
fn is_large(message: &Message) -> bool {
    const LARGE_BYTES: usize = 64 * 1024;
    match message {
        Message::ReadReply { reply, .. } | Message::MemberReply { reply, .. } => reply.len() >= LARGE_BYTES,
        _ => false,
    }
}
