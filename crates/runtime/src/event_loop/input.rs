//! Reading connections, and handing what came to the cores.

use syros_net::ReadOutcome;
use syros_node::front_end::{MessagePeer, needs_room};
use syros_protocol::message::{Message, Peer};
use syros_protocol::replica;
use syros_types::{OtherConfiguration, ReplicaId};
use syros_wire::{Channel, FrontEndMessage, HandshakeMessage, RESIZED_SINCE};

use super::EventLoop;
use super::links::Link;
use super::redis::has_replies;
use crate::connection::ConnectionKind;

/// Reads of one connection in one turn. Its input buffer grows when reads fill it, so a busy connection
/// needs few; the others should not wait for more.
const READS_PER_TURN: usize = 4;

impl EventLoop {
    /// Reads a connection and handles what came.
    pub(super) fn serve(&mut self, index: usize) {
        let is_overloaded = self.is_overloaded();
        let Some(open) = self.table.open_mut(index) else { return };
        let is_client = matches!(open.kind, ConnectionKind::Redis | ConnectionKind::Client { .. });
        if is_client && is_overloaded {
            // Stays queued, in another queue.
            self.throttled.push(index);
            return;
        }
        open.is_queued = false;
        for _ in 0..READS_PER_TURN {
            let Some(open) = self.table.open_mut(index) else { return };
            if is_client && open.is_backpressured() {
                open.is_stalled = true;
                return;
            }
            if is_client && !open.is_closing {
                // Charged before it is taken.
                let growth = open.net.growth_ahead();
                if growth > 0 && !self.memory.admits(open.charged, growth) {
                    open.is_queued = true;
                    self.waiting_for_memory.push(index);
                    return self.memory.wait(self.now.instant, growth);
                }
            }
            // Of a connection that is closing, only what has been received is still handled. One that has let others have their
            // turn goes on with that: it is not known yet what it needs of what comes.
            let outcome = if open.is_closing || open.rests(&self.front_end) {
                ReadOutcome::Nothing
            } else {
                open.net.read()
            };
            self.now = self.clock.now();
            match outcome {
                ReadOutcome::Received(_) | ReadOutcome::Nothing | ReadOutcome::Full => {
                    if let Err(problem) = self.handle_input(index) {
                        return self.refuse(index, &problem);
                    }
                }
                ReadOutcome::Closed => return self.on_end(index),
                ReadOutcome::Failed(error) => return self.close(index, &error.to_string()),
            }
            let Some(open) = self.table.open_mut(index) else { return };
            open.charge(&self.front_end, &mut self.memory);
            if open.is_stalled && open.is_redis() && open.net.is_read_closed() {
                // It is not read to its end before the command that waits has ended, which nobody waits for any more.
                let address = open.address;
                self.front_end.on_input_end(self.now, address);
                return;
            }
            if !open.net.is_readable() || open.is_stalled || open.is_closing || open.is_queued {
                return;
            }
        }
        self.queue(index);
    }

    /// Handles all whole messages that a connection has received. An error: it sent something that no
    /// working peer sends.
    pub(super) fn handle_input(&mut self, index: usize) -> Result<(), String> {
        loop {
            let Some(open) = self.table.open_mut(index) else { return Ok(()) };
            match &open.kind {
                ConnectionKind::Redis => {
                    self.handle_redis(index);
                    return Ok(());
                }
                ConnectionKind::Greeting(_) => {
                    if !self.handle_greeting(index)? {
                        return Ok(());
                    }
                }
                ConnectionKind::Client { .. } => return self.handle_client(index),
                ConnectionKind::Link(replica) => {
                    let replica = *replica;
                    return self.handle_link(index, replica);
                }
            }
        }
    }

    /// Frames of a Syros client: requests for the replica.
    pub(super) fn handle_client(&mut self, index: usize) -> Result<(), String> {
        let ours = self.description.configuration.id;
        let is_old = |link: &Link| link.connection.is_some() && link.spoken < RESIZED_SINCE;
        let old_build = self.links.iter().position(is_old);
        let (Some(open), Some(local)) = (self.table.open_mut(index), &mut self.local) else { return Ok(()) };
        let from = Peer::Client(open.address);
        let statistics = &self.statistics;
        let is_guarded = self.introduction.secret.is_some() || open.net.is_encrypted();
        let mut wants_nodes = None;
        let inbound = open.net.inbound();
        while let Some(frame) = inbound
            .next_frame(syros_wire::CLIENT_FRAME_BYTES_MAX)
            .map_err(|error| statistics.no_frame(error))?
        {
            if frame.channel == Channel::FrontEnd {
                ours.check(frame.configuration).map_err(foreign)?;
                let message = FrontEndMessage::decode(frame.payload).map_err(|error| error.to_string())?;
                if matches!(message, FrontEndMessage::WantNodes) {
                    wants_nodes = Some(open.address);
                    continue;
                }
                self.front_end.on_peer_message(self.now, MessagePeer::Gateway(open.address), message);
                continue;
            }
            if frame.channel != Channel::Client {
                let Some(transcript) = open.transcript.take().filter(|_| frame.channel == Channel::Handshake)
                else {
                    return Err(format!("a client sent a frame on channel {:?}", frame.channel));
                };
                let step = HandshakeMessage::decode(frame.payload).map_err(|error| error.to_string())?;
                self.authenticate_client(index, &transcript, &step)?;
                // Only once: the transcript has been taken.
                return self.handle_client(index);
            }
            let message =
                syros_wire::decode_client_message(frame.payload).map_err(|error| error.to_string())?;
            if !is_for_replica(&message) {
                return Err("a client sent an answer".to_owned());
            }
            ours.check(frame.configuration).map_err(foreign)?;
            if is_for_operators(&message) && is_guarded && !open.is_authenticated {
                return Err(format!(
                    "a client that has not shown that it may administer the cluster, by the secret or its certificate, sent {}",
                    message.name()
                ));
            }
            if let (Message::Shrink { .. }, Some(old)) = (&message, old_build) {
                return Err(format!(
                    "replica {old} is of an older build, with which no cluster can shrink: upgrade all nodes first"
                ));
            }
            tracing::trace!(
                connection = open.address,
                name = message.name(),
                "a request of a Syros client has come"
            );
            local.handle(self.now, replica::Event::Message { from, message });
        }
        if let Some(address) = wants_nodes {
            self.tell_nodes(MessagePeer::Gateway(address));
        }
        Ok(())
    }

    /// Frames of another node: messages for the replica, requests of its front end, and answers to ours.
    pub(super) fn handle_link(&mut self, index: usize, from: ReplicaId) -> Result<(), String> {
        while let Some(message) = self.handle_frames(index, from)? {
            self.make_room_for(&message);
            self.front_end.on_message(self.now, from, message);
        }
        Ok(())
    }

    /// Frames of another node, up to a reply that there has to be room for.
    pub(super) fn handle_frames(&mut self, index: usize, from: ReplicaId) -> Result<Option<Message>, String> {
        let ours = self.description.configuration.id;
        let Some(open) = self.table.open_mut(index) else { return Ok(None) };
        let address = open.address;
        let mut reply = None;
        let Self { front_end, statistics, .. } = self;
        let (mut heard, mut wants_nodes, mut told) = (None, false, None);
        let (mut asks_for_place, mut not_yet) = (None, None);
        let inbound = open.net.inbound();
        while let Some(frame) = inbound
            .next_frame(syros_types::limits::FRAME_BYTES_MAX)
            .map_err(|error| statistics.no_frame(error))?
        {
            match (frame.channel, &mut self.local) {
                (Channel::Client, local) => {
                    let message = syros_wire::decode_client_message(frame.payload)
                        .map_err(|error| error.to_string())?;
                    ours.check(frame.configuration).map_err(foreign)?;
                    tracing::trace!(
                        connection = address,
                        member = from.0,
                        name = message.name(),
                        "a message of another node's front end or to ours has come"
                    );
                    match local {
                        Some(local) if is_for_replica(&message) => {
                            let from = Peer::Client(address);
                            local.handle(self.now, replica::Event::Message { from, message });
                        }
                        _ if needs_room(&message) => {
                            reply = Some(message);
                            break;
                        }
                        _ => front_end.on_message(self.now, from, message),
                    }
                }
                (Channel::Replica, Some(local)) => {
                    ours.check(frame.configuration).map_err(foreign)?;
                    let message = syros_wire::decode_message(frame.payload, local.describe)
                        .map_err(|error| error.to_string())?;
                    tracing::trace!(
                        connection = address,
                        member = from.0,
                        name = message.name(),
                        "a message of another replica has come"
                    );
                    if let Message::PlaceWanted { node, .. } = &message {
                        asks_for_place = Some(*node);
                    }
                    let from = Peer::Replica(from);
                    local.handle(self.now, replica::Event::Message { from, message });
                }
                (Channel::FrontEnd, _) if self.forming.is_none() && self.learning.is_none() => {
                    ours.check(frame.configuration).map_err(foreign)?;
                    let message =
                        FrontEndMessage::decode(frame.payload).map_err(|error| error.to_string())?;
                    match message {
                        FrontEndMessage::WantNodes => wants_nodes = true,
                        FrontEndMessage::Nodes { addresses } => told = Some(addresses),
                        message => front_end.on_peer_message(self.now, MessagePeer::Member(from), message),
                    }
                }
                (Channel::FrontEnd, _) => {}
                // The group is being formed here, and has been at the other end.
                (Channel::Replica, None) if self.forming.is_some() => {}
                (Channel::Handshake, _) => {
                    match HandshakeMessage::decode(frame.payload).map_err(|error| error.to_string())? {
                        HandshakeMessage::Stage(stage) => heard = Some(stage),
                        HandshakeMessage::NotYet(reason) => not_yet = Some(reason),
                        HandshakeMessage::Refused(reason) => {
                            return Err(format!("{REFUSES_US}{reason}"));
                        }
                        _ => return Err("it goes on with a handshake that is over".to_owned()),
                    }
                }
                (channel, _) => return Err(format!("unexpected frame on channel {channel:?}")),
            }
        }
        if wants_nodes {
            self.tell_nodes(MessagePeer::Member(from));
        }
        told.into_iter().for_each(|addresses| self.on_nodes(addresses));
        if let Some(node) = asks_for_place {
            self.answer_learner(from, node);
        }
        not_yet.into_iter().for_each(|reason| self.on_not_yet(from, reason));
        heard.map_or(Ok(()), |stage| self.on_stage(from, stage))?;
        Ok(reply)
    }

    /// The other end sends no more.
    pub(super) fn on_end(&mut self, index: usize) {
        if self.table.open_mut(index).is_some_and(|open| open.is_redis() && !open.net.received().is_empty()) {
            // Commands that had to wait until there was room for them.
            self.handle_redis(index);
        }
        if let Some(address) =
            self.table.open_mut(index).filter(|open| open.is_redis()).map(|open| open.address)
        {
            self.front_end.on_input_end(self.now, address);
        }
        let Some(open) = self.table.open_mut(index) else { return };
        let waits = match &open.kind {
            ConnectionKind::Redis => {
                open.has_input_to_take() || self.front_end.connection(open.address).is_some_and(has_replies)
            }
            ConnectionKind::Greeting(_) | ConnectionKind::Link(_) | ConnectionKind::Client { .. } => false,
        };
        if waits || (open.net.backlog() > 0 && !matches!(open.kind, ConnectionKind::Link(_))) {
            // It may have closed only its own direction, and wait for its replies.
            open.is_closing = true;
            self.mark_dirty(index);
        } else {
            self.close(index, "the other end closed the connection");
        }
    }
}

/// How the reason begins for which another node does not take a connection.
pub(super) const REFUSES_US: &str = "it refuses this node: ";

/// True for what clients send to replicas, false for what replicas answer.
const fn is_for_replica(message: &Message) -> bool {
    matches!(
        message,
        Message::Register { .. }
            | Message::Attach { .. }
            | Message::Request { .. }
            | Message::Read { .. }
            | Message::StatusRequest
            | Message::AnswerDirectly { .. }
            | Message::HandOver { .. }
            | Message::ChangeMode { .. }
            | Message::Shrink { .. }
            | Message::WantSnapshot { .. }
            | Message::WantEntries { .. }
            | Message::GetSnapshot { .. }
            | Message::GetConfiguration { .. }
    )
}

/// True for what only those may ask for who know the cluster's secret, if it has one. A snapshot is all data at once.
const fn is_for_operators(message: &Message) -> bool {
    matches!(
        message,
        Message::HandOver { .. }
            | Message::ChangeMode { .. }
            | Message::Shrink { .. }
            | Message::WantSnapshot { .. }
            | Message::WantEntries { .. }
            | Message::GetSnapshot { .. }
    )
}

/// Why a frame for another configuration than this process's ends its connection.
fn foreign(other: OtherConfiguration) -> String {
    format!("a frame for another configuration: {other}")
}
