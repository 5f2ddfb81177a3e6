//! Closing connections.

use syros_node::front_end::MessagePeer;
use syros_protocol::replica;
use syros_wire::Hello;
use tracing::field::display;

use super::EventLoop;
use crate::connection::{ConnectionEntry, ConnectionKind, OpenConnection};

impl EventLoop {
    /// Closes a connection whose other end does what it must not.
    pub(super) fn refuse(&mut self, index: usize, problem: &str) {
        let node = self.node();
        let Some(open) = self.table.open_mut(index) else { return };
        // What goes wrong with a connection that we make is logged where it is tried again.
        if !matches!(&open.kind, ConnectionKind::Greeting(greeting) if greeting.dialed.is_some()) {
            let (connection, peer) = (open.address, open.peer.map(display));
            tracing::warn!(
                node,
                connection,
                peer,
                error = problem,
                "closed a connection whose peer does what it must not"
            );
        }
        self.close(index, problem);
    }

    /// Closes a connection whose other end does not take what it is sent, and drops that. (A real process alone has what a system
    /// keeps of closed connections, so no simulation shows it.)
    pub(super) fn drop_slow(&mut self, index: usize, problem: &str) {
        self.drop_untaken(index);
        self.refuse(index, problem);
    }

    /// What the other end has not taken when this connection is closed is dropped.
    pub(super) fn drop_untaken(&mut self, index: usize) {
        if let Some(open) = self.table.open_mut(index)
            && let Err(error) = open.net.drop_untaken()
        {
            tracing::debug!(connection = open.address, %error, "what a client has not taken may take memory for a while");
        }
    }

    /// Closes a connection and tells the cores.
    pub(super) fn close(&mut self, index: usize, reason: &str) {
        let Some(ConnectionEntry::Open(mut open)) = self.table.remove(index) else { return };
        self.memory.charge(&mut open.charged, 0);
        self.front_end.close(open.address);
        let (connection, peer) = (open.address, open.peer.map(display));
        tracing::debug!(node = self.node(), connection, peer, reason, "closed a connection");
        let gone = replica::Event::ClientGone(open.address);
        match open.kind {
            ConnectionKind::Link(replica) => {
                self.note_objection(replica, reason);
                self.on_link_lost(replica, index, reason);
                if let Some(local) = &mut self.local {
                    local.handle(self.now, gone);
                }
            }
            ConnectionKind::Client { .. } => {
                self.peer_clients -= 1;
                if let Some(source) = open.counted {
                    self.peer_client_addresses.leave(source);
                }
                self.front_end.on_peer_lost(self.now, MessagePeer::Gateway(open.address));
                if let Some(local) = &mut self.local {
                    local.handle(self.now, gone);
                }
            }
            ConnectionKind::Redis => {
                self.clients -= 1;
                if let Some(source) = open.counted {
                    self.client_addresses.leave(source);
                }
            }
            ConnectionKind::Greeting(greeting) => match greeting.dialed {
                None => {}
                Some(replica) => {
                    self.note_objection(replica, reason);
                    let begun_in = Hello::version_of_answer(&greeting.ours);
                    let next = self.links[replica.index()].version;
                    self.on_dial_failed(replica, reason);
                    if next < begun_in {
                        // It is of an older build, as it has just said, and takes the next connection.
                        self.links[replica.index()].version = next;
                    }
                }
            },
        }
    }

    /// Closes connections that did not say in time who they are.
    pub(super) fn close_silent(&mut self) {
        while let Some(address) = self.greetings.pop_due(self.now.instant) {
            let Some(index) = self.table.find(address) else { continue };
            if self.table.is_dialing(index) {
                self.give_up_dialing(index, "no answer");
            } else if matches!(
                self.table.open_mut(index),
                Some(OpenConnection { kind: ConnectionKind::Greeting(_), .. })
            ) {
                self.refuse(index, "it has not said who it is");
            }
        }
    }
}
