//! The network: which messages are sent, connections, and what may arrive next.

use super::*;

impl World {
    pub(super) fn send(&mut self, from: usize, to: Peer, message: Message) {
        let place = &self.places[from];
        let (node, life) = (place.config.node, place.life);
        let to = match to {
            Peer::Replica(other) if other.index() < MOST => {
                if !(self.takes(from, other.index()) && self.takes(other.index(), from)) {
                    return self.shake_hands(from, other.index());
                }
                (to, self.places[other.index()].life)
            }
            Peer::Client(connection) if connection < u64::MAX && self.is_open(connection) => (to, 0),
            _ => return,
        };
        self.wire.push(Packet { from: (Peer::Replica(member(from)), life), to, node, message });
    }

    pub(super) fn is_open(&self, connection: u64) -> bool {
        let (user, replica) = self.connections[connection as usize];
        self.users[user].connections[replica] == Some(connection)
    }

    /// True if a replica takes the node at another place for one to talk to.
    pub(super) fn takes(&self, replica: usize, other: usize) -> bool {
        let (Some(core), there) = (&self.places[replica].replica, &self.places[other]) else { return false };
        let Some(node) = there.config.node.filter(|_| there.replica.is_some()) else { return false };
        let newcomer = there.learns || self.places[replica].learns;
        let group = core.newest_configuration().roster.group();
        core.is_peer(member(other), node)
            || (newcomer && (group.grows_by(member(other)) || group.has(member(other))))
    }

    /// Two nodes compare their configurations. One that is not told the whole of the other's takes the connection, and asks.
    pub(super) fn shake_hands(&mut self, one: usize, other: usize) {
        for (teller, learner) in [(one, other), (other, one)] {
            let (from, to) = (&self.places[teller], &self.places[learner]);
            let (Some(core), Some(ours), Some(told)) = (&from.replica, &to.replica, to.config.node) else {
                continue;
            };
            if from.learns || self.cut.contains(&(teller, learner)) {
                continue;
            }
            let (known, newest) = (core.newest_configuration(), ours.newest_configuration());
            let has = |place: usize, node| known.has_voter(member(place), node);
            let is_gone = core.newest_configuration().epoch == core.configuration().id.epoch
                && newest.epoch <= known.epoch
                && newest.has_voter(member(learner), told)
                && core.is_established()
                && !core.configuration().roster.nodes().contains(&Some(told));
            if known.epoch > newest.epoch && has(teller, from.config.node.unwrap()) && has(learner, told) {
                let message = Message::Configuration(Box::new(known));
                let from = Peer::Replica(member(teller));
                self.event(learner, Event::Message { from, message });
            } else if is_gone {
                tell(|| format!("{learner} is told that it has gone"));
                self.crash(learner, &mut Prng::new(0));
                self.places[learner].is_gone = true;
            }
        }
    }

    /// Clients connect to all replicas that run, if they are not connected.
    pub(super) fn connect(&mut self) {
        for (user, replica) in (0..self.users.len()).flat_map(|user| (0..MOST).map(move |to| (user, to))) {
            let is_member = self.users[user].client.members().any(|it| it == member(replica));
            if self.places[replica].replica.is_some()
                && is_member
                && self.users[user].connections[replica].is_none()
            {
                self.users[user].connections[replica] = Some(self.connections.len() as u64);
                self.connections.push((user, replica));
                self.client_event(user, client::Event::Connected(member(replica)));
            }
        }
    }

    pub(super) fn disconnect(&mut self, user: usize, replica: usize) {
        let Some(connection) = self.users[user].connections[replica].take() else { return };
        let peer = Peer::Client(connection);
        self.wire.retain(|packet| packet.from.0 != peer && packet.to.0 != peer);
        self.client_event(user, client::Event::Disconnected(member(replica)));
        self.event(replica, Event::ClientGone(connection));
    }

    pub(super) fn client_event(&mut self, user: usize, event: client::Event) {
        let now = self.clock(self.users[user].ahead);
        self.users[user].client.handle(now, event);
        self.carry_out_client(user);
    }

    pub(super) fn carry_out_client(&mut self, user: usize) {
        while let Some(action) = self.users[user].client.poll() {
            match action {
                client::Action::Send { to, message } => {
                    for to in to.iter().filter(|to| to.index() < MOST) {
                        let Some(connection) = self.users[user].connections[to.index()] else { continue };
                        let to = (Peer::Replica(to), self.places[to.index()].life);
                        let from = (Peer::Client(connection), 0);
                        self.wire.push(Packet { from, to, node: None, message: message.clone() });
                    }
                }
                client::Action::Completed { token, outcome, .. } => {
                    let tokens = &mut self.users[user].tokens;
                    let at = tokens.iter().position(|(of, _)| *of == token).unwrap();
                    let op = &mut self.ops[tokens.swap_remove(at).1];
                    self.moments += 1;
                    tell(|| format!("user {user}: {op:?} ends: {outcome:?}"));
                    match outcome {
                        Outcome::Done => op.ended = Some((self.moments, Vec::new())),
                        Outcome::Reply(reply) => op.ended = Some((self.moments, reply.to_vec())),
                        Outcome::Unknown => {}
                        // It never takes place: nobody may see its number.
                        Outcome::Refused(_) | Outcome::TimedOut | Outcome::NoQuorum => op.began = u64::MAX,
                    }
                }
                client::Action::Reconfigured(_) => {
                    for replica in 0..MOST {
                        let is_member = self.users[user].client.members().any(|it| it == member(replica));
                        if !is_member {
                            self.disconnect(user, replica);
                        }
                    }
                    self.connect();
                }
            }
        }
    }

    /// Few operations at a time, of few in all: else nobody could say in which order they may have taken place.
    pub(super) fn submit_if_free(&mut self, user: usize, class: u8, key: u8) {
        if self.users[user].tokens.len() < 3 && self.ops.len() < 30 {
            self.submit(user, class, key);
        }
    }

    pub(super) fn submit(&mut self, user: usize, class: u8, key: u8) {
        let body = [class, key, self.ops.len() as u8];
        let description = describe_schedule(&body).unwrap();
        self.moments += 1;
        self.ops.push(Invoked { body, began: self.moments, ended: None });
        tell(|| format!("user {user} begins {:?}", self.ops.last()));
        let now = self.clock(self.users[user].ahead);
        let (body, class) = (Body::from(body), description.class);
        let policies = [ReadPolicy::Leader, ReadPolicy::Meta, ReadPolicy::Quorum];
        let policy = policies[self.ops.len() % 3];
        let token =
            self.users[user].client.submit_with(now, body, class, &description.footprint, Some(policy));
        self.users[user].tokens.push((token.unwrap(), self.ops.len() - 1));
        self.carry_out_client(user);
    }

    /// Where a message comes from or goes to: a replica, or a user behind all of them.
    pub(super) fn end(&self, peer: Peer) -> usize {
        match peer {
            Peer::Replica(replica) => replica.index(),
            Peer::Client(connection) => MOST + self.connections[connection as usize].0,
        }
    }

    /// What may arrive next.
    pub(super) fn arriving(&self) -> Vec<usize> {
        let mut earlier = HashSet::new();
        let mut arrives = |packet: &Packet| {
            let is_between = matches!((packet.from.0, packet.to.0), (Peer::Replica(_), Peer::Replica(_)));
            let is_cut = self.cut.contains(&(self.end(packet.from.0), self.end(packet.to.0)));
            !is_cut && (is_between || earlier.insert((packet.from, packet.to)))
        };
        (0..self.wire.len()).filter(|at| arrives(&self.wire[*at])).collect()
    }

    pub(super) fn deliver(&mut self, packet: Packet) {
        let Packet { from, to, node, message } = packet;
        match (from.0, to.0) {
            (_, Peer::Client(connection)) => {
                let (user, replica) = self.connections[connection as usize];
                tell(|| format!("user {user} <- {replica}: {message:?}"));
                self.client_event(user, client::Event::Message { from: member(replica), message });
            }
            (Peer::Client(_), Peer::Replica(replica)) => {
                tell(|| format!("{} <- user: {message:?}", replica.index()));
                self.event(replica.index(), Event::Message { from: from.0, message });
            }
            (Peer::Replica(sender), Peer::Replica(replica)) => {
                let (sender, replica) = (sender.index(), replica.index());
                let is_known = node == self.places[sender].config.node;
                let place = &mut self.places[replica];
                if place.life != to.1 || !is_known || from.1 < place.heard[sender] {
                    return;
                }
                place.heard[sender] = from.1;
                if self.places[sender].replica.is_some() && !self.takes(replica, sender) {
                    return self.shake_hands(sender, replica);
                }
                tell(|| format!("{replica} <- {sender}: {message:?}"));
                self.event(replica, Event::Message { from: from.0, message });
            }
        }
    }
}
