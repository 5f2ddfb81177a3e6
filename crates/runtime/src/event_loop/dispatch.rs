//! Carrying out what the cores want: messages, at once or after a record, and requests of the front end.

use syros_node::InMemory as _;
use syros_node::NoOpAnswer;
use syros_node::front_end::{Attempt, FrontEndAction, Look, MessagePeer, PUSHED_BYTES_MAX};
use syros_protocol::message::{Message, Peer};
use syros_protocol::record::Ticket;
use syros_protocol::replica;
use syros_types::{Reconfiguration, ReplicaId, ReplicaSet};
use syros_wire::{Channel, FrontEndMessage, put_front_end_frame, put_message_frame};
use tracing::field::display;

use super::{EventLoop, OWN_FRONT_END};
use crate::connection::ConnectionKind;
use crate::local_replica::{DelayedSend, LocalReplica, ReplicaRequest};

/// Messages to a replica are dropped while more bytes than this wait for it: it will ask again.
const LINK_BACKLOG_MAX: usize = 64 * 1024 * 1024;

impl EventLoop {
    /// Carries out what the cores want, until they want nothing more.
    pub(super) fn drain_cores(&mut self) {
        loop {
            let mut is_quiet = true;
            while let Some(delayed) = self.local.as_mut().and_then(LocalReplica::pop_held) {
                is_quiet = false;
                match delayed {
                    DelayedSend::Message(to, message) => self.deliver(to, message),
                    DelayedSend::Frames(address, frames) => {
                        self.put_for_client(address, |out| out.extend_from_slice(&frames));
                    }
                }
            }
            while let Some((to, message)) = self.pop_slow_read() {
                is_quiet = false;
                self.deliver(to, message);
            }
            while let Some(index) = self.resumed.pop() {
                is_quiet = false;
                self.read_held(index);
            }
            while !self.has_large_reply
                && let Some(request) = self.local.as_mut().and_then(|local| local.poll(self.now))
            {
                is_quiet = false;
                self.carry_out(request);
            }
            self.has_large_reply = false;
            if let Some(local) = &mut self.local {
                self.front_end.exchange_waited(local.waited_mut());
                is_quiet &= !self.front_end.exchange_evictions(self.now, local.evictions_mut());
                self.front_end.exchange_key_events(self.now, local.key_events_mut());
            }
            while let Some(action) = self.front_end.poll(self.now) {
                is_quiet = false;
                match action {
                    FrontEndAction::Send { to, message } => {
                        if let Some(traces) = &mut self.traces {
                            traces.on_sent(&message, &self.front_end);
                        }
                        self.send_request(to, message);
                    }
                    FrontEndAction::Reconfigured(known) => self.on_client_reconfigured(&known),
                    FrontEndAction::Completed { token, address, way, outcome, .. } => {
                        if let Some(traces) = &mut self.traces {
                            let clock = self.clock;
                            traces.on_completed(|| clock.now(), token, way, outcome.as_ref());
                        }
                        self.charge(address);
                    }
                    FrontEndAction::SendToPeer { to, message } => self.send_to_peer(to, &message),
                    FrontEndAction::CloseSubscriber { address, bytes } => {
                        self.close_subscriber(address, bytes);
                    }
                    FrontEndAction::Look(look) => self.look(look),
                    FrontEndAction::Try(attempt) => self.try_to_answer(attempt),
                }
            }
            while let Some(address) = self.front_end.go_on(self.now) {
                is_quiet = false;
                self.resume(address);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// The front end counts by this configuration from now on.
    fn on_client_reconfigured(&mut self, known: &Reconfiguration) {
        // The replica of a node says more.
        if self.local.is_none() {
            self.description.configuration = self.description.configuration.after(*known).as_frames_name_it();
            self.forget_places();
            let (epoch, replicas) = (known.epoch.0, known.roster.group().size());
            tracing::info!(epoch, replicas, "the cluster has other nodes from now on");
        }
    }

    /// Answers a question to the state at once, if the engine is in memory.
    fn look(&mut self, look: Look) {
        let memory = self.local.as_ref().and_then(LocalReplica::memory);
        let reply = memory.map(|memory| {
            let mut reply = Vec::new();
            memory.engine().read(self.now.wall, &look.body, &mut reply);
            reply
        });
        self.front_end.on_look(self.now, look, reply.as_deref());
    }

    /// Asks the replica about an update that may change nothing.
    fn try_to_answer(&mut self, attempt: Attempt) {
        let answer = match &mut self.local {
            Some(local) => local.answer_no_op(self.now, attempt.submission()),
            None => NoOpAnswer::Unknown,
        };
        let address = attempt.address();
        self.front_end.on_tried(self.now, attempt, answer);
        self.charge(Some(address));
    }

    /// Carries out what the replica wants of the event loop.
    pub(super) fn carry_out(&mut self, request: ReplicaRequest) {
        match request {
            ReplicaRequest::Send(to, message) => self.deliver(to, message),
            ReplicaRequest::SendAfter(after, to, message) => self.deliver_after(after, to, message),
            ReplicaRequest::Read(job) => self.read_if_room(job),
            ReplicaRequest::Reconfigured(Ok(())) => self.on_reconfigured(),
            ReplicaRequest::Reconfigured(Err(error)) => {
                self.refusal =
                    Some(format!("this node cannot note the cluster's other configuration: {error}"));
            }
        }
    }

    /// Sends a message of the replica.
    pub(super) fn deliver(&mut self, to: Peer, message: Message) {
        let configuration = self.description.configuration.id;
        tracing::trace!(to = ?to, name = message.name(), "the replica sends a message");
        match to {
            Peer::Client(OWN_FRONT_END) => {
                let Some(local) = &self.local else { return };
                let from = local.me;
                self.make_room_for(&message);
                self.front_end.on_message(self.now, from, message);
            }
            Peer::Client(address) if !self.client_speaks(address, &message) => {}
            Peer::Client(address) if self.may_spare(address, &message) => {}
            Peer::Client(address) => self.put_for_client(address, |out| {
                put_message_frame(out, Channel::Client, configuration, &message);
            }),
            Peer::Replica(replica) if !self.speaks(replica, &message) => {}
            Peer::Replica(replica) => self.put_for_replica(replica, |out| {
                put_message_frame(out, Channel::Replica, configuration, &message);
            }),
        }
    }

    /// False if a member is of an older version, which does not know such messages.
    fn speaks(&self, member: ReplicaId, message: &Message) -> bool {
        self.links.get(member.index()).is_none_or(|link| link.spoken >= syros_wire::version_of(message))
    }

    /// False if a client is of an older version, which does not know such messages.
    fn client_speaks(&mut self, address: u64, message: &Message) -> bool {
        // Clients of before say that they speak the oldest version, whatever they know.
        const TRUE_SINCE: u16 = 8;
        let needed = syros_wire::version_of(message);
        if needed < TRUE_SINCE || address == OWN_FRONT_END {
            return true;
        }
        let Some(open) = self.table.find(address).and_then(|index| self.table.open_mut(index)) else {
            return false;
        };
        match open.kind {
            ConnectionKind::Client { spoken } => spoken >= needed,
            ConnectionKind::Link(member) => self.speaks(member, message),
            ConnectionKind::Greeting(_) | ConnectionKind::Redis => false,
        }
    }

    /// True for a direct answer to a client that does not take what is sent to it. Such a client goes on asking the leader, so
    /// that a follower cannot make it wait by not reading from it; and what it lacks it hears from the leader.
    fn may_spare(&mut self, address: u64, message: &Message) -> bool {
        matches!(message, Message::Committed { .. })
            && self.local.as_ref().is_some_and(|local| !local.replica().is_leader())
            && self
                .table
                .find(address)
                .and_then(|index| self.table.open_mut(index))
                .is_some_and(|open| open.exceeds_reply_share())
    }

    /// Sends a message of the replica when a record is on disk: from the log's thread, if it goes to another process.
    pub(super) fn deliver_after(&mut self, after: Ticket, to: Peer, message: Message) {
        let configuration = self.description.configuration.id;
        tracing::trace!(to = ?to, name = message.name(), ticket = after.0, "the replica sends a message after a record");
        let (index, channel) = match to {
            Peer::Client(address) if !self.client_speaks(address, &message) => return,
            Peer::Client(address) => (self.table.find(address), Channel::Client),
            Peer::Replica(replica) if !self.speaks(replica, &message) => return,
            Peer::Replica(replica) => (self.link_to(replica), Channel::Replica),
        };
        let Some(local) = &mut self.local else { return };
        let Some((index, open)) = index.and_then(|index| Some((index, self.table.open_mut(index)?))) else {
            // It is for the front end of this process, or for a replica that may be connected by then.
            return local.hold(after, DelayedSend::Message(to, message));
        };
        if open.awaiting_record.is_none() || local.is_submitted(after) {
            // What is left with the other thread is not counted here: to a full socket, there would be no end to it.
            let Some(outlet) = open.net.outlet() else {
                return local.hold(after, DelayedSend::Message(to, message));
            };
            let mut frames = Vec::new();
            put_message_frame(&mut frames, channel, configuration, &message);
            if local.is_submitted(after) {
                return local.send_when_durable(after, outlet, frames);
            }
            open.awaiting_record = Some((after, outlet, frames));
            self.awaiting_record.push(index);
        } else if let Some((last, _, frames)) = &mut open.awaiting_record {
            // Their records reach the disk together.
            *last = after.max(*last);
            put_message_frame(frames, channel, configuration, &message);
        }
    }

    /// Leaves with the log's thread what it is to send.
    pub(super) fn hand_to_durable_sender(&mut self) {
        let Some(local) = &mut self.local else { return };
        for index in self.awaiting_record.drain(..) {
            let Some(open) = self.table.open_mut(index) else { continue };
            let Some((after, outlet, frames)) = open.awaiting_record.take() else { continue };
            if matches!(open.kind, ConnectionKind::Client { .. }) && open.net.backlog() > 0 {
                // A client that gets other answers now is soon back with more. Woken for these in between, it would come in
                // small pieces, which costs more than they gain.
                local.hold(after, DelayedSend::Frames(open.address, frames));
            } else {
                local.send_when_durable(after, outlet, frames);
            }
        }
        // A client that is not read waits for bytes to leave, whatever they are.
        local.ask_to_be_woken(!self.throttled.is_empty());
    }

    /// Sends a request of the front end.
    pub(super) fn send_request(&mut self, to: ReplicaSet, message: Message) {
        let me = self.local.as_ref().map(|local| local.me);
        let others = me.map_or(to, |me| to.without(me));
        if !others.is_empty() {
            let mut buffer = std::mem::take(&mut self.frame);
            let configuration = self.description.configuration.id;
            let frame = buffer.of(Channel::Client, configuration, &message);
            for other in others.iter() {
                if self.speaks(other, &message) {
                    self.put_for_replica(other, |out| out.extend_from_slice(frame));
                }
            }
            self.frame = buffer;
        }
        if let Some(local) = &mut self.local
            && to.contains(local.me)
        {
            let event = replica::Event::Message { from: Peer::Client(OWN_FRONT_END), message };
            local.handle(self.now, event);
        }
    }

    /// Sends a message of the front end to another one.
    pub(super) fn send_to_peer(&mut self, to: MessagePeer, message: &FrontEndMessage) {
        let configuration = self.description.configuration.id;
        tracing::trace!(to = ?to, name = message.name(), "the front end sends a message to another one");
        let put = |out: &mut Vec<u8>| put_front_end_frame(out, configuration, message);
        match to {
            MessagePeer::Member(replica) => self.put_for_replica(replica, put),
            MessagePeer::Gateway(address) => self.put_for_client(address, put),
        }
    }

    /// Closes the connection of a subscriber that does not take what is published.
    fn close_subscriber(&mut self, address: u64, bytes: usize) {
        let node = self.node();
        self.statistics.subscribers_closed.set(self.statistics.subscribers_closed.get() + 1);
        let Some(index) = self.table.find(address) else { return };
        let peer = self.table.open_mut(index).and_then(|open| open.peer.map(display));
        tracing::warn!(
            node,
            connection = address,
            peer,
            bytes,
            limit = PUSHED_BYTES_MAX,
            "closed the connection of a subscriber that does not take the messages of its channels"
        );
        self.drop_untaken(index);
        self.close(index, "too many messages wait for it");
    }

    /// The place of the connection to a replica, if there is one.
    pub(super) fn link_to(&self, replica: ReplicaId) -> Option<usize> {
        self.links.get(replica.index())?.connection
    }

    /// Has `put` append to the output of the link to a replica, unless there is none or too much waits there already.
    pub(super) fn put_for_replica(&mut self, to: ReplicaId, put: impl FnOnce(&mut Vec<u8>)) {
        let Some(index) = self.link_to(to) else { return };
        let Some(open) = self.table.open_mut(index) else { return };
        if open.net.backlog() <= LINK_BACKLOG_MAX {
            put(open.net.outbound());
            open.mark_dirty(index, &mut self.dirty);
        }
    }

    /// Has `put` append to the output of a client, or of the front end of another node, if it is connected.
    pub(super) fn put_for_client(&mut self, address: u64, put: impl FnOnce(&mut Vec<u8>)) {
        let Some(index) = self.table.find(address) else { return };
        let Some(open) = self.table.open_mut(index) else { return };
        open.put_for_client(self.output_bytes_max, put);
        open.charge(&self.front_end, &mut self.memory);
        open.mark_dirty(index, &mut self.dirty);
    }
}
