//! Finding out who is at the other end of a connection, and whether it belongs to the cluster.

use std::io;

use syros_node::ClientSource;
use syros_protocol::formation::{self, Declaration, Mismatch, Stage};
use syros_protocol::message::{Message, Peer};
use syros_protocol::replica;
use syros_tls::Role;
use syros_types::{Group, Reconfiguration, ReplicaId, ReplicaSet, Roster};
use syros_wire::{
    Channel, FrameError, HANDSHAKE_BYTES_MAX, HandshakeMessage, Hello, HelloError, Member, Proof,
    REPLACED_SINCE, RESIZED_SINCE, Sender, Side, put_frame,
};
use tracing::field::display;

use super::EventLoop;
use super::input::REFUSES_US;
use super::links::Link;
use super::witnesses::Witnesses;
use crate::connection::{ConnectionKind, OpenConnection};
use crate::handshake::Transcript;

/// The version of the wire format since which front ends send each other messages.
pub(super) const FRONT_ENDS_TALK_SINCE: u16 = 12;

/// What a Redis client is answered at the port for nodes.
const OTHER_PORT: &[u8] = b"-ERR this port of Syros is for its nodes and for clients of its own protocol: Redis clients have another \
    one (listen.redis in the configuration of the node)\r\n";

impl EventLoop {
    /// What this process says of itself on a new connection.
    pub(super) fn hello(&self) -> io::Result<Hello> {
        self.introduction.hello(self.declaration())
    }

    /// Position of the member that this node is, for log lines; a gateway is none.
    pub(super) fn node(&self) -> Option<u8> {
        self.introduction.member.as_ref().map(|member| member.replica.0)
    }

    /// Which member this node is, by which identity, and how far its group has come.
    pub(super) fn declaration(&self) -> Option<Declaration> {
        if let Some(forming) = &self.forming {
            return Some(forming.formation.declaration());
        }
        let (replica, local) = (self.introduction.member?.replica, self.local.as_ref()?);
        let (node, known) = (local.directory().node(), local.replica().declared_configuration());
        if self.learning.is_some() {
            let (stage, epoch) = (Stage::Learning, known.epoch);
            return Some(Declaration { replica, node, stage, epoch, before: None });
        }
        Some(Declaration::acting(replica, node, known))
    }

    /// The other end says who it is, or goes on with that. True if it has said something, and more of it may have arrived
    /// along with that: nothing else tells of what is in the buffer already.
    pub(super) fn handle_greeting(&mut self, index: usize) -> Result<bool, String> {
        let Some(OpenConnection { net, kind: ConnectionKind::Greeting(greeting), .. }) =
            self.table.open_mut(index)
        else {
            return Ok(true);
        };
        let frame = net.inbound().next_frame(HANDSHAKE_BYTES_MAX);
        let frame = match frame {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(false),
            Err(error) => return self.refuse_stranger(index, error).map(|()| false),
        };
        if frame.channel != Channel::Handshake {
            return Err(HelloError::NotSyros.to_string());
        }
        let (payload, is_dialed) = (frame.payload.to_vec(), greeting.dialed.is_some());
        let outcome = match &greeting.theirs {
            None => self.on_hello(index, payload),
            Some(_) => self.on_handshake_step(index, &payload),
        };
        match outcome {
            Ok(()) => Ok(true),
            Err(problem) if !is_dialed => {
                // It is closed when it has got our side of the handshake, and why it is not taken.
                self.log_refusal(index, &problem);
                if let Some(open) = self.table.open_mut(index) {
                    let refused = HandshakeMessage::Refused(problem);
                    put_frame(open.net.outbound(), Channel::Handshake, |out| refused.encode(out));
                    open.is_closing = true;
                }
                self.mark_dirty(index);
                Ok(false)
            }
            Err(problem) => {
                self.tell_refused(index, &problem);
                Err(problem)
            }
        }
    }

    /// What has come is no frame. Who takes this port for one for Redis clients learns that it is none.
    fn refuse_stranger(&mut self, index: usize, error: FrameError) -> Result<(), String> {
        let is_known = error.looks_like_tls() || error.looks_like_redis() || error.looks_like_http();
        let problem = if is_known { error.to_string() } else { HelloError::NotSyros.to_string() };
        let is_client = |open: &OpenConnection| matches!(&open.kind, ConnectionKind::Greeting(greeting) if greeting.dialed.is_none());
        let open = self.table.open_mut(index).filter(|open| is_client(open) && error.looks_like_redis());
        let Some(open) = open else { return Err(problem) };
        open.net.outbound().extend_from_slice(OTHER_PORT);
        // If it does not leave at once, the connection is closed without it, as it is for others.
        let _ = open.net.flush();
        Err(problem)
    }

    /// A connection that this process made is about to be closed: the other end learns why. An older build ends it as soon as it
    /// reads that, which comes to the same.
    fn tell_refused(&mut self, index: usize, problem: &str) {
        let Some(OpenConnection { net, kind: ConnectionKind::Greeting(greeting), .. }) =
            self.table.open_mut(index)
        else {
            return;
        };
        if greeting.version >= REPLACED_SINCE {
            let refused = HandshakeMessage::Refused(problem.to_owned());
            put_frame(net.outbound(), Channel::Handshake, |out| refused.encode(out));
            // If it does not leave at once, the next connection brings it.
            let _ = net.flush();
        }
    }

    /// The first frame of the other end.
    pub(super) fn on_hello(&mut self, index: usize, payload: Vec<u8>) -> Result<(), String> {
        let hello = Hello::decode(&payload);
        let ours = self.hello().map_err(|error| error.to_string())?;
        let Some(OpenConnection { net, kind: ConnectionKind::Greeting(greeting), .. }) =
            self.table.open_mut(index)
        else {
            return Ok(());
        };
        let dialed = greeting.dialed;
        greeting.version = Hello::version_of_answer(&payload);
        if dialed.is_none() && !matches!(hello, Err(HelloError::NotSyros)) {
            // Even if we refuse it: so it learns why.
            ours.encode_as(Hello::version_of_answer(&payload), &mut greeting.ours);
            put_frame(net.outbound(), Channel::Handshake, |out| out.extend_from_slice(&greeting.ours));
            self.mark_dirty(index);
        }
        let hello = hello.map_err(|error| error.to_string())?;
        hello.check_cluster(self.introduction.cluster).map_err(|error| error.to_string())?;
        if let Some(replica) = dialed {
            self.adopt_version(replica, Hello::version_of_answer(&payload))?;
        }
        let has_secret = hello.nonce.is_some();
        let role = self.role_of(index)?;
        let member = match (hello.sender, dialed) {
            (Sender::Client, None) if self.peer_clients >= self.descriptors.peer_clients => {
                return Err(format!("{} clients are connected, and that is the limit", self.peer_clients));
            }
            (Sender::Client, None) => return self.admit_client(index, has_secret, role, payload),
            (Sender::Client, Some(replica)) => return Err(format!("{replica} says that it is a client")),
            (Sender::Replica(member), _) => member,
        };
        let replica = member.declaration.replica;
        if let Some(role) = role
            && role != Role::Node(replica)
        {
            return Err(format!("it says that it is {replica}, and its certificate says that it is {role}"));
        }
        if self.introduction.member.is_none() {
            // A gateway is a client: nothing more is to be said.
            self.check_position(&member, dialed)?;
            self.establish_link(index, &member)?;
            return Ok(());
        }
        self.check_build(&member, Hello::version_of_answer(&payload))?;
        match (has_secret, self.introduction.secret.is_some()) {
            (false, true) => {
                return Err(format!(
                    "{replica} has no secret, this node has one; all nodes need the same secret-file"
                ));
            }
            (true, false) => {
                return Err(format!(
                    "{replica} has a secret, this node has none; all nodes need the same secret-file"
                ));
            }
            _ => {}
        }
        if let Err(problem) = self.check_member(&member, dialed) {
            if dialed.is_some() && self.is_replaced(&member.declaration) {
                self.prove(index, payload);
            }
            return Err(problem);
        }
        let Some(OpenConnection { net, kind: ConnectionKind::Greeting(greeting), .. }) =
            self.table.open_mut(index)
        else {
            return Ok(());
        };
        let is_taken = match (dialed, &self.introduction.secret) {
            (Some(_), Some(secret)) => {
                let transcript = Transcript { dialer: greeting.ours.clone(), acceptor: payload.clone() };
                let proof = HandshakeMessage::Proof(transcript.prove(secret, Side::Dialer));
                put_frame(net.outbound(), Channel::Handshake, |out| proof.encode(out));
                false
            }
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => true,
        };
        greeting.theirs = Some((member.clone(), payload));
        self.mark_dirty(index);
        if is_taken {
            self.accept_member(index, &member, None)?;
        }
        Ok(())
    }

    /// What the certificate of the other end lets it do; `None` of one without TLS. An error: nothing.
    fn role_of(&mut self, index: usize) -> Result<Option<Role>, String> {
        let Some(open) = self.table.open_mut(index).filter(|open| open.net.is_encrypted()) else {
            return Ok(None);
        };
        let certificate = open.net.peer_certificate().ok_or("it shows no certificate")?;
        syros_tls::Identity::role_in(self.introduction.cluster, &certificate).map(Some)
    }

    /// True if another node has taken the place of this one.
    fn is_replaced(&self, theirs: &Declaration) -> bool {
        matches!(self.compare(theirs), Err(Mismatch::Replaced { .. } | Mismatch::Removed { .. }))
    }

    /// Compares what another node says of itself with what the replica of this process knows, if there is one. Gives back the
    /// roster with the other one's node, if that is news.
    fn compare(&self, theirs: &Declaration) -> Result<Option<Roster>, Mismatch> {
        let (Some(ours), Some(local)) = (self.declaration(), &self.local) else { return Ok(None) };
        formation::check(&ours, &local.newest_configuration().roster, theirs)
    }

    /// Shows the other end of a connection that this process made, and is about to close, that this node knows the secret:
    /// what it has said of itself is to be believed.
    fn prove(&mut self, index: usize, theirs: Vec<u8>) {
        let Some(secret) = &self.introduction.secret else { return };
        let Some(OpenConnection { net, kind: ConnectionKind::Greeting(greeting), .. }) =
            self.table.open_mut(index)
        else {
            return;
        };
        let transcript = Transcript { dialer: greeting.ours.clone(), acceptor: theirs };
        let proof = HandshakeMessage::Proof(transcript.prove(secret, Side::Dialer));
        put_frame(net.outbound(), Channel::Handshake, |out| proof.encode(out));
        // If it does not leave at once, the next connection brings it.
        let _ = net.flush();
    }

    /// The node at the other end of a connection that this process made speaks this version: if that is an older one than it
    /// has begun in, it will refuse this connection, and takes the next.
    pub(super) fn adopt_version(&mut self, replica: ReplicaId, theirs: u16) -> Result<(), String> {
        let link = &mut self.links[replica.index()];
        if theirs >= link.version {
            return Ok(());
        }
        link.version = theirs;
        Err(format!("it speaks wire format version {theirs}; connecting anew in that"))
    }

    /// What the other end of a connection says after it has said who it is.
    pub(super) fn on_handshake_step(&mut self, index: usize, payload: &[u8]) -> Result<(), String> {
        let step = HandshakeMessage::decode(payload).map_err(|error| error.to_string())?;
        let Some(OpenConnection { kind: ConnectionKind::Greeting(greeting), .. }) =
            self.table.open_mut(index)
        else {
            return Ok(());
        };
        let Some((member, theirs)) = greeting.theirs.take() else { return Ok(()) };
        let ours = std::mem::take(&mut greeting.ours);
        let secret = self.introduction.secret.as_ref();
        match (greeting.dialed, step, secret) {
            (None, HandshakeMessage::Proof(proof), Some(secret)) => {
                let transcript = Transcript { dialer: theirs, acceptor: ours };
                transcript.verify(secret, &proof, Side::Dialer)?;
                let proof = transcript.prove(secret, Side::Acceptor);
                if let Err(mismatch @ Mismatch::Removed { .. }) = self.compare(&member.declaration) {
                    // It hears so from one who knows the secret: one alone may be there to tell it.
                    self.put_welcome(index, Some(proof));
                    return Err(mismatch.to_string());
                }
                self.accept_member(index, &member, Some(proof))?;
            }
            (Some(_), HandshakeMessage::Welcome(Some(proof)), Some(secret)) => {
                let transcript = Transcript { dialer: ours, acceptor: theirs };
                transcript.verify(secret, &proof, Side::Acceptor)?;
                self.establish_link(index, &member)?;
            }
            (Some(_), HandshakeMessage::Welcome(None), None) => self.establish_link(index, &member)?,
            (Some(_), HandshakeMessage::Refused(reason), _) => {
                return Err(format!("{REFUSES_US}{reason}"));
            }
            _ => return Err("it goes on with its handshake in a way that makes no sense".to_owned()),
        }
        Ok(())
    }

    /// Takes a member that has connected, and tells it so.
    pub(super) fn accept_member(
        &mut self,
        index: usize,
        member: &Member,
        proof: Option<Proof>,
    ) -> Result<(), String> {
        self.establish_link(index, member)?;
        self.put_welcome(index, proof);
        Ok(())
    }

    fn put_welcome(&mut self, index: usize, proof: Option<Proof>) {
        if let Some(open) = self.table.open_mut(index) {
            put_frame(open.net.outbound(), Channel::Handshake, |out| {
                HandshakeMessage::Welcome(proof).encode(out);
            });
            self.mark_dirty(index);
        }
    }

    /// Takes a client. If both it and we have a secret, it may prove it.
    fn admit_client(
        &mut self,
        index: usize,
        has_secret: bool,
        role: Option<Role>,
        theirs: Vec<u8>,
    ) -> Result<(), String> {
        let has_secret = has_secret && self.introduction.secret.is_some();
        let Some(open) = self.table.open_mut(index) else { return Ok(()) };
        // Who has a certificate of the cluster is no stranger: a gateway speaks for many.
        if let (None, Some(peer)) = (role, open.peer) {
            let source = ClientSource::from(peer.ip());
            let limit = self.description.clients_per_address_max.get();
            self.peer_client_addresses.enter(source, limit).map_err(|refused| {
                for rejected in [&self.statistics.rejected, &self.statistics.rejected_by_address] {
                    rejected.set(rejected.get() + 1);
                }
                refused.to_string()
            })?;
            open.counted = Some(source);
        }
        let spoken = Hello::version_of_answer(&theirs);
        let kind = std::mem::replace(&mut open.kind, ConnectionKind::Client { spoken });
        self.peer_clients += 1;
        open.is_authenticated = role.is_some_and(Role::may_administer);
        if let (true, ConnectionKind::Greeting(greeting)) = (has_secret, kind) {
            open.transcript = Some(Box::new(Transcript { dialer: theirs, acceptor: greeting.ours }));
        }
        Ok(())
    }

    /// A client proves that it knows the secret.
    pub(super) fn authenticate_client(
        &mut self,
        index: usize,
        transcript: &Transcript,
        step: &HandshakeMessage,
    ) -> Result<(), String> {
        let (HandshakeMessage::Proof(proof), Some(secret)) = (step, &self.introduction.secret) else {
            return Err("a client goes on with its handshake in a way that makes no sense".to_owned());
        };
        transcript.verify(secret, proof, Side::Dialer)?;
        let Some(open) = self.table.open_mut(index) else { return Ok(()) };
        open.is_authenticated = true;
        let welcome = HandshakeMessage::Welcome(Some(transcript.prove(secret, Side::Acceptor)));
        put_frame(open.net.outbound(), Channel::Handshake, |out| welcome.encode(out));
        self.mark_dirty(index);
        Ok(())
    }

    /// Puts a connection to a member to use, whose handshake is over.
    pub(super) fn establish_link(&mut self, index: usize, member: &Member) -> Result<(), String> {
        let Member { declaration, process, incarnation, .. } = member;
        let replica = declaration.replica;
        self.consider_replacement(member)?;
        self.accept_replacement(declaration)?;
        self.learn_configuration(declaration);
        let link = &mut self.links[replica.index()];
        if link.connection.is_none() && link.is_learner && link.node != Some(declaration.node) {
            // One that was to come in, and is gone: nobody depends on it.
            link.forget_node();
        }
        if !link.was_replaced(*process) && !link.record_life(declaration.node, *incarnation, *process) {
            return Err(format!(
                "{replica}, node {}, says that this is its start number {}, and a later one has been heard of, or \
                 another process of that start: its data directory was put back from an old copy, which has forgotten \
                 what it acknowledged since, or a copy of it has run meanwhile. It is not counted",
                declaration.node, incarnation.0
            ));
        }
        if !link.record_process(*process) {
            if let Some(other) = link.connection {
                self.close(other, "another process is the same node");
            }
            return Err(format!(
                "two processes run as {replica}, node {}: its data directory was copied. Neither is counted: \
                 stop both, and start the one whose directory is the original",
                declaration.node
            ));
        }
        if let Some(older) = link.connection {
            self.close(older, "it has connected anew");
        }
        self.learn(declaration)?;
        let Some(open) = self.table.open_mut(index) else { return Ok(()) };
        let kind = std::mem::replace(&mut open.kind, ConnectionKind::Link(replica));
        if let Some(local) = &mut self.local {
            local.handle(self.now, replica::Event::MemberConnected(open.address));
        }
        let (connection, peer) = (open.address, open.peer.map(display));
        tracing::info!(node = self.node(), member = replica.0, connection, peer, "connected to another node");
        self.disowned_by = self.disowned_by.without(replica);
        self.left_out_by = self.left_out_by.without(replica);
        let link = &mut self.links[replica.index()];
        link.connection = Some(index);
        link.node = Some(declaration.node);
        link.is_learner = declaration.stage == Stage::Learning;
        if let ConnectionKind::Greeting(greeting) = kind {
            link.spoken = greeting.version;
        }
        link.on_success();
        self.tell_oldest_version();
        match &mut self.forming {
            Some(forming) => forming.formation.connected(declaration),
            None => self.introduce(replica),
        }
        Ok(())
    }

    /// A node that is to take the place of another one is not taken before it has: the leader has the others agree.
    fn consider_replacement(&mut self, member: &Member) -> Result<(), String> {
        let theirs = &member.declaration;
        let mismatch = match self.compare(theirs) {
            // It asks when it has copied what the group holds, and the leader's core decides.
            Ok(None) if theirs.stage == Stage::Learning => None,
            Err(mismatch @ Mismatch::NotAdmitted { .. }) => Some(mismatch),
            _ => return Ok(()),
        };
        let (replica, found) = (theirs.replica, theirs.node);
        let learns = theirs.stage == Stage::Learning;
        let may_learn = mismatch.is_none();
        let mismatch = mismatch.unwrap_or(Mismatch::NotAdmitted { replica, found, expected: None });
        let link = &self.links[replica.index()];
        if may_learn
            && let (Some(_), Some(other)) = (link.connection, link.node.filter(|node| *node != found))
        {
            return Err(format!(
                "node {found} was started with --join as {replica}, and so was node {other}, which is connected: only one of them can \
                 come in"
            ));
        }
        let old_builds = |link: &Link| link.connection.is_some() && link.spoken < REPLACED_SINCE;
        if let Some(old) = self.links.iter().position(old_builds) {
            return Err(format!(
                "{mismatch}: replica {old} is of an older build, which does not know how. Upgrade all nodes first"
            ));
        }
        let (node, Some(local)) = (self.node(), &mut self.local) else { return Ok(()) };
        let is_new_place = !local.newest_configuration().roster.group().has(replica);
        let old_builds = |link: &Link| link.connection.is_some() && link.spoken < RESIZED_SINCE;
        if is_new_place && let Some(old) = self.links.iter().position(old_builds) {
            return Err(format!(
                "{mismatch}: replica {old} is of an older build, with which no cluster can grow. Upgrade all nodes first"
            ));
        }
        if may_learn && self.learning.is_some() {
            return Ok(());
        }
        if may_learn {
            tracing::info!(node, member = replica.0, id = %found, "a new node copies what the cluster holds");
            return Ok(());
        }
        let objection = local.replica().objection_to_place(replica, found);
        if learns {
            let reason = objection.map_or_else(
                || "a member that had this place may be needed yet".to_owned(),
                |objection| objection.to_string(),
            );
            return Err(format!("{mismatch}: {reason}"));
        }
        local.handle(self.now, replica::Event::PlaceWanted { member: replica, node: found });
        if let Some(objection) = objection {
            return Err(format!("{mismatch}: {objection}"));
        }
        tracing::info!(
            node,
            member = replica.0,
            id = %found,
            "this node, which leads, has the others agree that a new node takes a place in the cluster"
        );
        Err(format!("{mismatch}: the others are asked to agree"))
    }

    /// A member says that another node has taken the place of this one: this node is of no use any more.
    fn accept_replacement(&mut self, theirs: &Declaration) -> Result<(), String> {
        match self.compare(theirs) {
            Err(mismatch @ (Mismatch::WeAreReplaced { .. } | Mismatch::WeAreRemoved { .. })) => {
                let problem = self.not_needed(&mismatch);
                self.refusal = Some(problem.clone());
                Err(problem)
            }
            _ => Ok(()),
        }
    }

    /// Why this node must not go on.
    fn not_needed(&self, mismatch: &Mismatch) -> String {
        match *mismatch {
            Mismatch::WeAreReplaced { replica, me, by } if self.learning.is_some() => format!(
                "{replica} says that node {by} has come into the cluster as {me}: this node, which was to be that, is not needed. Start \
                 it with another number, and an empty directory, if the cluster is to grow further"
            ),
            _ => mismatch.to_string(),
        }
    }

    /// A member that is connected acts in a later configuration than this replica knows: the replica learns of it before
    /// anything else. It may be that only this member can tell it.
    fn learn_configuration(&mut self, theirs: &Declaration) {
        let (Some(known), Some(local)) = (theirs.configuration(), &mut self.local) else { return };
        let ours = local.newest_configuration();
        // Of another size it cannot be told without the one before, which this replica asks for.
        let is_whole = known.before.is_some() || known.roster.group() == ours.roster.group();
        if known.epoch > ours.epoch && is_whole {
            let from = Peer::Replica(theirs.replica);
            let message = Message::Configuration(Box::new(known));
            local.handle(self.now, replica::Event::Message { from, message });
        }
    }

    /// The replica acts in another configuration: nodes that are not in it are not connected to any more.
    pub(super) fn on_reconfigured(&mut self) {
        let Some(local) = &self.local else { return };
        let Reconfiguration { epoch, roster, before } = local.directory().configuration();
        let size = roster.group().size();
        tracing::info!(
            node = self.node(),
            epoch = epoch.0,
            replicas = size,
            "the cluster has other nodes from now on"
        );
        self.description.configuration = local.replica().configuration().as_frames_name_it();
        self.end_learning();
        if self.learning.is_none() {
            self.forget_places();
            self.introduce_members();
        }
        let oldest = if before.is_some() { RESIZED_SINCE } else { REPLACED_SINCE };
        // They take the epoch for a part of the view's number, and another member for its leader: they would count answers
        // without the leader's. When they connect anew, they refuse this node's handshake.
        let old_clients: Vec<usize> = (0..self.table.len())
            .filter(|index| {
                let kind = self.table.open_mut(*index).map(|open| &open.kind);
                matches!(kind, Some(ConnectionKind::Client { spoken }) if *spoken < oldest)
            })
            .collect();
        for index in old_clients {
            self.close(index, "it is of an older build, which does not know that nodes change");
        }
        self.is_established = false;
        self.close_strangers();
    }

    /// When a view of a smaller group has committed something, the members that it has shrunk by are not needed any more. They
    /// learn of that when they connect anew.
    pub(super) fn let_members_go(&mut self) {
        let is_established = self.local.as_ref().is_none_or(|local| local.replica().is_established());
        if is_established && !self.is_established {
            self.is_established = true;
            self.close_strangers();
        }
    }

    /// Ends the connections to nodes that this one has nothing to do with any more.
    fn close_strangers(&mut self) {
        for index in 0..self.links.len() {
            let Some(local) = &self.local else { return };
            let link = &mut self.links[index];
            let replica = ReplicaId(u8::try_from(index).unwrap_or(u8::MAX));
            if let Some(node) = link.node
                && !local.replica().is_peer(replica, node)
            {
                let connection = link.connection;
                link.forget_node();
                if let Some(connection) = connection {
                    self.close(connection, "it is not of the cluster any more");
                }
            }
        }
    }

    /// Remembers for ever the node of a member whose node was not known.
    pub(super) fn learn(&mut self, theirs: &Declaration) -> Result<(), String> {
        let learnt = self.compare(theirs).map_err(|mismatch| mismatch.to_string())?;
        if let (Some(roster), Some(local)) = (learnt, &mut self.local) {
            local.directory_mut().learn(roster).map_err(|error| error.to_string())?;
            tracing::info!(
                node = self.node(),
                member = theirs.replica.0,
                id = %theirs.node,
                "this node knows the member by its id from now on"
            );
        }
        Ok(())
    }

    /// Checks that a node of this version of the wire format can take part in the view that there is.
    fn check_build(&self, member: &Member, version: u16) -> Result<(), String> {
        let Some(local) = &self.local else { return Ok(()) };
        let ours = local.newest_configuration().roster.group();
        if version < RESIZED_SINCE && member.settings.group != ours {
            return Err(format!(
                "the cluster has {} replicas by now, and the build of {}, which knows of {}, no way to learn that: upgrade that \
                 node",
                ours.size(),
                member.declaration.replica,
                member.settings.group.size()
            ));
        }
        let (mode, usual) = (local.replica().rule().mode, self.description.configuration.mode);
        let needed = syros_wire::version_of(&Message::ChangeMode { mode });
        if mode == usual || version >= needed {
            return Ok(());
        }
        Err(format!(
            "the cluster goes by {mode}, which the build of {} does not know: upgrade that node, or let the cluster go back \
             first (syros mode {usual})",
            member.declaration.replica
        ))
    }

    /// Checks that a node is where it should be.
    pub(super) fn check_position(&self, member: &Member, dialed: Option<ReplicaId>) -> Result<(), String> {
        let replica = member.declaration.replica;
        let (fast_quorum, ours) = (member.settings.fast_quorum, self.description.configuration.mode);
        if fast_quorum != ours {
            return Err(format!("{replica} says that the fast quorum is {fast_quorum}; here it is {ours}"));
        }
        match (dialed, self.introduction.member) {
            (Some(dialed), _) if dialed != replica => {
                Err(format!("{replica} is where {dialed} should be; is the list of replicas in order?"))
            }
            (None, None) => Err("a gateway is not connected to".to_owned()),
            (None, Some(me)) if replica == me.replica => {
                Err(format!("it says that it is {replica}, and so is this node: two nodes have one id"))
            }
            (None, Some(me)) if replica < me.replica => Err(format!(
                "it says that it is {replica}; this is {}, which connects to lower ids",
                me.replica
            )),
            _ => Ok(()),
        }
    }

    /// Checks what a node says of itself against what this one knows of the cluster.
    pub(super) fn check_member(&mut self, member: &Member, dialed: Option<ReplicaId>) -> Result<(), String> {
        self.check_position(member, dialed)?;
        let Member { declaration: theirs, settings, .. } = member;
        let replica = theirs.replica;
        let Some(me) = self.introduction.member else { return Ok(()) };
        if member.group != me.group {
            let (theirs, ours) = (member.group.0, me.group.0);
            return Err(format!("{replica} says that it is of group {theirs}; here it is group {ours}"));
        }
        let mut settings = *settings;
        if self.declaration().is_some_and(|ours| !ours.compares_size_with(theirs)) {
            // Which size the group has, their configurations say.
            settings.group = me.settings.group;
        }
        me.settings.check(&settings).map_err(|difference| format!("{replica}: {difference}"))?;
        let checked = match &mut self.forming {
            Some(forming) => {
                // Nothing is lost if a node that has never acted does not start.
                forming.objection = forming.objection.or_else(|| forming.formation.objection(theirs));
                forming.formation.check(theirs)
            }
            None => self.compare(theirs).map(drop),
        };
        if let Err(mismatch @ Mismatch::OurNode { .. }) = &checked
            && self.forming.is_none()
        {
            self.on_disowned(replica, dialed.is_some(), mismatch, None);
        }
        match &checked {
            // It is, when it has shown that it may: see `consider_replacement`.
            Err(Mismatch::NotAdmitted { .. }) => return Ok(()),
            // It is believed when it has shown that it knows the secret: see `establish_link`.
            Err(Mismatch::WeAreReplaced { .. } | Mismatch::WeAreRemoved { .. }) if dialed.is_none() => {
                return Ok(());
            }
            // It proves nothing, as it refuses this node. Many of them are believed.
            Err(mismatch @ (Mismatch::WeAreReplaced { .. } | Mismatch::WeAreRemoved { .. })) => {
                let later = theirs.configuration().map(|known| known.roster.group());
                self.on_disowned(replica, true, mismatch, later);
                if matches!(mismatch, Mismatch::WeAreRemoved { .. }) && self.introduction.secret.is_some() {
                    // It is about to prove that it may say so.
                    return Ok(());
                }
            }
            // It is refused when it has shown that it knows the secret, and been shown that this node does.
            Err(Mismatch::Removed { .. }) if dialed.is_none() && self.introduction.secret.is_some() => {
                return Ok(());
            }
            _ => {}
        }
        checked.map_err(|mismatch| mismatch.to_string())
    }

    /// A member knows another node in the position of this one, or none. If so many do that no quorum can be had with the others,
    /// this node will never be of use. One that connects and knows no secret is not believed, if there is a secret. `later` is
    /// the size of a later configuration that the member acts in, and that this node is not in.
    fn on_disowned(&mut self, by: ReplicaId, is_dialed: bool, mismatch: &Mismatch, later: Option<Group>) {
        if !is_dialed && self.introduction.secret.is_some() {
            return;
        }
        self.disowned_by = self.disowned_by.with(by);
        if later.is_some() {
            self.left_out_by = self.left_out_by.with(by);
        }
        let known = self.local.as_ref().map(|local| local.newest_configuration().roster.group());
        let ours = known.unwrap_or(self.description.configuration.group());
        let witnesses = Witnesses {
            disowned_by: self.disowned_by,
            left_out_by: self.left_out_by,
            connected: self.connected_members(ours),
        };
        if witnesses.are_enough(ours, later) {
            self.refusal = Some(self.not_needed(mismatch));
        }
    }

    /// Members of the group that this node is connected to.
    fn connected_members(&self, group: Group) -> ReplicaSet {
        let is_connected = |member: &ReplicaId| {
            let link = self.links.get(member.index());
            link.is_some_and(|link| link.connection.is_some() && !link.is_learner)
        };
        group.members().filter(is_connected).fold(ReplicaSet::default(), ReplicaSet::with)
    }

    /// Logs why a connection is refused.
    pub(super) fn log_refusal(&mut self, index: usize, problem: &str) {
        let node = self.node();
        let Some(open) = self.table.open_mut(index) else { return };
        let (connection, peer) = (open.address, open.peer.map(display));
        tracing::warn!(node, connection, peer, error = problem, "refused a connection");
    }
}
