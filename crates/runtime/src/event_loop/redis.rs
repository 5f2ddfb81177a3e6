//! Connections of Redis clients: their commands, and what lets them go on.

use std::time::Duration;

use syros_types::Instant;

use super::EventLoop;

/// INFO waits so long until the keys have been counted, and then tells how many there were the last time.
const KEY_COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that waits until the keys have been counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyCountRequest {
    pub(super) address: u64,
    request: u64,
    /// It waits no longer than this.
    pub(super) until: Instant,
}

impl EventLoop {
    /// Redis commands.
    pub(super) fn handle_redis(&mut self, index: usize) {
        while self.take_commands(index) {}
        if let Some(local) = &mut self.local {
            // One of the commands may have set the limit.
            local.tell_memory(self.now);
        }
    }

    /// Hands a connection what its client has sent. True if it stopped at a command that has been answered meanwhile.
    fn take_commands(&mut self, index: usize) -> bool {
        let Self { table, front_end, statistics, local, description, memory, now, .. } = self;
        let Some(open) = table.open_mut(index) else { return false };
        let state = (front_end.is_cut_off(), front_end.is_stopping());
        let unavailable = front_end.unavailable();
        let (subscriptions, own_reads) = (front_end.subscriptions(), front_end.own_reads());
        let Some((redis, client)) = front_end.connection_mut(*now, open.address) else { return false };
        let clients = (self.clients, self.descriptors.redis_clients);
        let memory = (&*memory, subscriptions, own_reads);
        let info = description.state(local.as_ref(), (client, statistics), clients, memory, state, *now);
        let context = syros_resp::Context { now: now.wall, info: &info, unavailable };
        let before = redis.commands();
        let received = open.net.received();
        if !received.is_empty() {
            let consumed = redis.receive(received, &context);
            open.net.consume(consumed);
        }
        if redis.speaks_http() {
            let problem = "it sent POST or Host: as a command, as a web browser does that an attacker uses to \
                           send commands (cross-protocol scripting)";
            self.refuse(index, problem);
            return false;
        }
        statistics.commands.set(statistics.commands.get() + redis.commands() - before);
        if redis.takes_count()
            && let Some(local) = local
        {
            self.last_count += 1;
            local.count_keys(self.last_count);
            let until = now.instant.after(KEY_COUNT_TIMEOUT);
            self.key_counts.push_back(KeyCountRequest {
                address: open.address,
                request: self.last_count,
                until,
            });
        }
        let has_more = front_end.on_received(*now, open.address);
        if front_end.connection(open.address).is_some_and(syros_resp::Connection::is_paused) {
            open.is_stalled = true;
        }
        open.mark_dirty(index, &mut self.dirty);
        let has_input = !open.net.received().is_empty();
        if has_input && open.rests(front_end) {
            self.queue(index);
            return false;
        }
        has_more && has_input
    }

    /// Answers INFO where it waited until the keys were counted.
    pub(super) fn answer_key_counts(&mut self) {
        let now = self.now;
        while let Some(KeyCountRequest { address, request, until }) = self.key_counts.front().copied()
            && (self.local.as_ref().is_none_or(|local| local.counted >= request) || until <= now.instant)
        {
            self.key_counts.pop_front();
            let Some(index) = self.table.find(address) else { continue };
            let Self { table, front_end, statistics, local, description, memory, .. } = self;
            let Some(open) = table.open_mut(index) else { continue };
            let state = (front_end.is_cut_off(), front_end.is_stopping());
            let (subscriptions, own_reads) = (front_end.subscriptions(), front_end.own_reads());
            let Some((redis, client)) = front_end.connection_mut(now, address) else { continue };
            let clients = (self.clients, self.descriptors.redis_clients);
            let shown = (&*memory, subscriptions, own_reads);
            let info = description.state(local.as_ref(), (client, statistics), clients, shown, state, now);
            redis.counted(&syros_resp::Context { now: now.wall, info: &info, unavailable: None });
            open.charge(front_end, memory);
            open.mark_dirty(index, &mut self.dirty);
            self.resume_reading(index);
        }
    }

    /// An operation of the Redis connection with this address has ended, if it is still there.
    pub(super) fn charge(&mut self, address: Option<u64>) {
        tracing::trace!(connection = address, "an operation of a Redis client has ended");
        let index = address.and_then(|address| self.table.find(address));
        if let Some(open) = index.and_then(|index| self.table.open_mut(index)) {
            open.charge(&self.front_end, &mut self.memory);
        }
    }

    /// The Redis connection with this address may go on after some of its operations have ended.
    pub(super) fn resume(&mut self, address: u64) {
        let Some(index) = self.table.find(address) else { return };
        self.mark_dirty(index);
        self.resume_reading(index);
    }

    /// Reads a connection again if what it waited for is over.
    pub(super) fn resume_reading(&mut self, index: usize) {
        let Some(open) = self.table.open_mut(index) else { return };
        let redis = self.front_end.connection(open.address).filter(|_| open.is_redis());
        let is_paused = redis.is_some_and(syros_resp::Connection::is_paused);
        let may_resume = !open.held_reads.is_empty() && !open.exceeds_reply_share();
        if open.is_stalled && !is_paused && !open.is_backpressured() {
            open.is_stalled = false;
            self.queue(index);
        }
        if may_resume {
            self.resumed.push(index);
        }
    }
}

/// True if a Redis connection has replies to come, or to be sent.
pub(super) fn has_replies(redis: &syros_resp::Connection) -> bool {
    redis.outstanding() > 0 || !redis.output().is_empty()
}
