//! The memory of all clients' connections: who waits for some, and who is closed when there is none.

use syros_protocol::message::Message;

use super::EventLoop;

impl EventLoop {
    /// A reply to a read of the front end has come, or is about to: it is taken if there is room for it.
    pub(super) fn make_room_for(&mut self, message: &Message) {
        if self.front_end.count_reply(message) {
            self.evict_if_exceeded();
            self.front_end.make_room(message, self.memory.is_scarce());
        }
    }

    /// Lets those go on that waited for memory, if there is some; closes connections that hold much if there has been none
    /// for too long.
    pub(super) fn retry_waiting_for_memory(&mut self) {
        if self.waiting_for_memory.is_empty() {
            return self.memory.end_waiting();
        }
        if self.memory.deadline() <= self.now.instant {
            self.spare();
            self.shrink_buffers();
            self.evict("for which others wait");
            self.memory.end_waiting();
        }
        if self.memory.has_room() {
            self.memory.retry();
            self.ready.append(&mut self.waiting_for_memory);
        }
    }

    /// Closes connections that hold much if all clients together hold too much.
    pub(super) fn evict_if_exceeded(&mut self) {
        self.memory.charge(&mut self.reserved, self.front_end.reserved());
        if self.memory.is_exceeded() {
            self.spare();
        }
        if self.memory.is_exceeded() {
            self.shrink_buffers();
        }
        if self.memory.is_exceeded() {
            self.evict("which is above the limit");
        }
    }

    /// Gives up buffers of clients that are not in use.
    pub(super) fn shrink_buffers(&mut self) {
        for index in 0..self.table.len() {
            if let Some(open) = self.table.open_mut(index)
                && open.is_client()
            {
                open.net.give_back();
                open.charge(&self.front_end, &mut self.memory);
            }
        }
    }

    /// Finds out whether the connection that was spared still is to be; if there is none, who is.
    pub(super) fn spare(&mut self) {
        let candidate = self.memory.candidate().and_then(|address| self.table.find(address));
        let largest = || self.table.clients().max_by_key(|(_, charged)| *charged);
        let index = candidate.or_else(|| largest().and_then(|(address, _)| self.table.find(address)));
        if let Some(open) = index.and_then(|index| self.table.open_mut(index)) {
            let owed = open.unsent_reply_bytes(&self.front_end);
            self.memory.spare(self.now.instant, open.address, open.charged, owed);
        } else {
            self.memory.spare_nobody();
        }
    }

    /// Closes the connections that hold most, until half of the budget is free.
    pub(super) fn evict(&mut self, why: &str) {
        let mut evictable = self.memory.evictable(self.table.clients());
        while let Some((address, bytes)) = self.memory.evict(&mut evictable)
            && let Some(index) = self.table.find(address)
        {
            let (used, limit) = (self.memory.used(), self.memory.limit());
            let problem = format!(
                "it holds {bytes} bytes, more than any other client, and all clients together hold {used}, {why}; \
                 limits.client-memory is {limit}"
            );
            self.drop_slow(index, &problem);
        }
    }
}
