//! A node that copies what a group holds before it comes into it: it has a replica, which is no member yet, and serves nobody.

use std::time::Duration;

use syros_metrics::{ToBe, Way};
use syros_node::front_end::MessagePeer;
use syros_protocol::client;
use syros_protocol::replica::{Event, ReconfigurationObjection};
use syros_types::{Instant, NodeId, ReplicaId};
use syros_wire::{Channel, HandshakeMessage, LEARNS_SINCE, RESIZED_SINCE, put_frame};

use super::accept::Listener;
use super::handshakes::FRONT_ENDS_TALK_SINCE;
use super::links::replica_at;
use super::{EventLoop, OWN_FRONT_END};
use crate::loading::Loading;
use crate::local_replica::LocalReplica;

/// How often a learner says how far it has come, and a leader tells a learner why it has to wait.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// What a node has while it learns.
pub(crate) struct Learning {
    /// Answers Redis clients meanwhile.
    loading: Loading,
    /// Where Redis clients come in when it is over: without and with TLS.
    listeners: [Option<Listener>; 2],
    /// Why it has not become a member yet, as another node said last.
    told: Option<(ReplicaId, String)>,
    log_at: Instant,
}

impl Learning {
    pub(crate) const fn new(loading: Loading, listeners: [Option<Listener>; 2]) -> Self {
        Self { loading, listeners, told: None, log_at: Instant(0) }
    }
}

impl EventLoop {
    /// What the node waits to be, if it is none yet.
    pub(super) fn to_be(&self) -> Option<ToBe> {
        let learner = self.learning.as_ref().and(self.local.as_ref());
        let learner = learner.map(|local| ToBe { replica: local.me.0, way: Way::Join });
        learner.or_else(|| self.forming.as_ref().map(super::Forming::to_be))
    }

    /// When a learner has something to say.
    pub(super) fn learning_deadline(&self) -> Instant {
        self.learning.as_ref().map_or(Instant::NEVER, |learning| learning.log_at)
    }

    /// Says how far this node has come, if it learns.
    pub(super) fn log_learning(&mut self) {
        let (Some(learning), Some(local)) = (&mut self.learning, &self.local) else { return };
        if self.now.instant < learning.log_at {
            return;
        }
        learning.log_at = self.now.instant.after(LOG_INTERVAL);
        let told = match &learning.told {
            None => String::new(),
            Some((replica, reason)) => format!(". {replica} has said last: {reason}"),
        };
        let copied = local.replica().download_progress().map_or_else(String::new, |(received, bytes)| {
            format!(" ({received} of {bytes} bytes of a snapshot have come)")
        });
        let anew = match local.replica().learned_snapshots() {
            0 | 1 => String::new(),
            snapshots => format!(
                ". It has begun anew {} times: clients write more meanwhile than the leader keeps of its log (raise disk.keep-log there, \
                 limits.log-keep where durability is \"replicated\", or limits.snapshot-rate)",
                snapshots - 1
            ),
        };
        tracing::info!(
            node = local.me.0,
            applied = local.replica().applied().0,
            commit = local.replica().commit().0,
            "this node copies what the cluster holds, and comes into it when it has, together with another new one{copied}{anew}{told}"
        );
    }

    /// The replica acts in another configuration. If it learned, and is a member of that, it serves from now on.
    pub(super) fn end_learning(&mut self) {
        let is_in = |local: &LocalReplica| {
            local.directory().configuration().has_voter(local.me, local.directory().node())
        };
        let is_member = self.local.as_ref().is_some_and(is_in);
        let Some(learning) = self.learning.take_if(|_| is_member) else { return };
        let Learning { loading, listeners: [plain, tls], .. } = learning;
        loading.end();
        (self.redis_listener, self.redis_tls_listener) = (plain, tls);
        for listener in [&mut self.redis_listener, &mut self.redis_tls_listener].into_iter().flatten() {
            // Connections may wait, and no event tells of them any more.
            listener.is_ready = true;
        }
        tracing::info!(node = self.node(), "this node is in the cluster, and has copied what it holds");
        self.begin_to_serve();
    }

    /// The front end may use the replica of this process.
    pub(super) fn begin_to_serve(&mut self) {
        let Some(local) = self.local.as_mut().filter(|_| self.learning.is_none()) else { return };
        let me = local.me;
        local.handle(self.now, Event::OwnFrontEnd(OWN_FRONT_END));
        self.front_end.handle(self.now, client::Event::Connected(me));
    }

    /// Tells the front end of a connection to a member. Of one to a learner, or before this node is a member, it does not know.
    pub(super) fn introduce(&mut self, replica: ReplicaId) {
        let newest = self.local.as_ref().map(|local| local.newest_configuration().roster);
        let link = &mut self.links[replica.index()];
        let is_member = !link.is_learner || newest.is_some_and(|roster| roster.node(replica) == link.node);
        if self.forming.is_some() || self.learning.is_some() || link.is_introduced || !is_member {
            return;
        }
        link.is_introduced = true;
        let spoken = link.spoken;
        self.front_end.handle(self.now, client::Event::Connected(replica));
        if spoken < RESIZED_SINCE {
            self.front_end.handle(self.now, client::Event::TellsNoConfiguration(replica));
        }
        if spoken >= FRONT_ENDS_TALK_SINCE {
            self.front_end.on_peer_connected(self.now, MessagePeer::Member(replica));
        }
    }

    /// Members that are connected may be unknown to the front end: they were learners, or this node was.
    pub(super) fn introduce_members(&mut self) {
        for index in 0..self.links.len() {
            if self.links[index].connection.is_some() {
                self.introduce(replica_at(index));
            }
        }
    }

    /// A learner asks for its place: if it cannot have that, it is told why, by whoever leads.
    pub(super) fn answer_learner(&mut self, from: ReplicaId, node: NodeId) {
        let Some(local) = self.local.as_ref().filter(|local| local.replica().is_leader()) else { return };
        let objection = local.replica().objection_to_place(from, node);
        let own = local.me.0;
        let link = &mut self.links[from.index()];
        let (Some(index), Some(objection)) = (link.connection, objection) else { return };
        // These are over soon, and it asks again.
        let passes = matches!(
            objection,
            ReconfigurationObjection::UnderWay { .. } | ReconfigurationObjection::JustBegun
        );
        if passes || link.node != Some(node) || link.spoken < LEARNS_SINCE || self.now.instant < link.tell_at
        {
            return;
        }
        link.tell_at = self.now.instant.after(LOG_INTERVAL / 10);
        tracing::debug!(node = own, member = from.0, %objection, "a new node has to wait for its place");
        if let Some(open) = self.table.open_mut(index) {
            let told = HandshakeMessage::NotYet(objection.to_string());
            put_frame(open.net.outbound(), Channel::Handshake, |out| told.encode(out));
            open.mark_dirty(index, &mut self.dirty);
        }
    }

    /// A member says why this node is none yet.
    pub(super) fn on_not_yet(&mut self, from: ReplicaId, reason: String) {
        if let Some(learning) = &mut self.learning {
            let is_news = learning.told.as_ref().is_none_or(|(_, before)| *before != reason);
            learning.told = Some((from, reason));
            if is_news {
                learning.log_at = self.now.instant;
            }
        }
    }
}
