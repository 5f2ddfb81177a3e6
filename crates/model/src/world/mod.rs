//! States of a whole cluster, and what leads from one to the next.
//!
//! Members, clients and messages are kept once each, in tables; a state holds their numbers. A turn of
//! a member depends on nothing but the member and the event, so it is run once and remembered.

mod script;

use crate::client::{self, ModelClient};
use crate::history::{History, OPERATIONS_MAX, Progress};
use crate::node::{self, Envelope, Node};
use crate::setup::{Bounded, Budget, CLIENTS_MAX, Change, DiskSteps, MEMBERS_MAX, Setup, Time};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use syros_protocol::message::{Asked, Message, Peer, RoleName, ViewChangeReason};
use syros_protocol::replica::PlantedBug;
use syros_types::{Configuration, Instant, ReplicaId, ReplicaSet, View};

/// A cluster with its clients, its network and what the clients saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) nodes: [u32; MEMBERS_MAX],
    pub(crate) clients: [u32; CLIENTS_MAX],
    /// Messages on their way, sorted, each once.
    pub(crate) network: Vec<u32>,
    pub(crate) history: History,
    /// Operations each client has been given.
    pub(crate) issued: [u8; CLIENTS_MAX],
    pub(crate) budget: Budget,
    /// With one clock for all: how much has passed, and who has done something since it last moved.
    pub(crate) time: u8,
    pub(crate) acted: u8,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client is given its next operation.
    Invoke(u8),
    /// A message arrives.
    Deliver(u32),
    /// A message arrives, and will again.
    DeliverAndKeep(u32),
    /// A member looks at its timers.
    Tick(u8),
    /// A member's next timer ends.
    Timeout(u8),
    /// A follower's patience ends, enough others agree, and it moves to the next view.
    Move(u8),
    /// A leader wants these members to be active.
    Activate(u8, ReplicaSet),
    /// A member's records reach its disk.
    Flush(u8),
    /// A member's core is told which records are on disk.
    Tell(u8),
    /// A member executes what it has been asked to.
    Execute(u8),
    /// A leader has the members changed.
    Reconfigure(u8),
    /// A new node starts in this place.
    Newcome(u8),
    /// A member's process ends and starts again.
    Restart(u8),
    /// A member's process ends and starts again, and its log cannot be read.
    Damage(u8),
    /// A client is tired of waiting.
    Impatience(u8),
    /// Time passes.
    Pass,
}

#[derive(Debug)]
struct NodeEntry {
    node: Node,
    view: Arc<node::NodeView>,
}

#[derive(Debug)]
struct ClientEntry {
    client: Arc<ModelClient>,
    view: u64,
}

/// What a turn of a member led to.
#[derive(Debug)]
struct Turn {
    node: u32,
    sent: Vec<u32>,
}

/// What a turn of a client led to.
#[derive(Debug)]
struct ClientTurn {
    client: u32,
    sent: Vec<u32>,
    ended: Vec<(u64, Progress)>,
}

#[derive(Debug, Default)]
pub(crate) struct Tables {
    nodes: Vec<NodeEntry>,
    node_numbers: HashMap<u64, u32>,
    clients: Vec<ClientEntry>,
    client_numbers: HashMap<u64, u32>,
    envelopes: Vec<Arc<Envelope>>,
    envelope_numbers: HashMap<Arc<Envelope>, u32>,
    turns: HashMap<(u32, u64), Arc<Turn>>,
    client_turns: HashMap<(u32, u64), Arc<ClientTurn>>,
}

impl Tables {
    fn node(&mut self, setup: &Setup, node: Node) -> u32 {
        let next = self.nodes.len() as u32;
        match self.node_numbers.entry(node.fingerprint(setup)) {
            Entry::Occupied(known) => {
                let known = *known.get();
                #[cfg(test)]
                self.assert_alike(setup, known, &node);
                known
            }
            Entry::Vacant(new) => {
                let view = Arc::new(node.view());
                self.nodes.push(NodeEntry { node, view });
                *new.insert(next)
            }
        }
    }

    /// Two members with one fingerprint do the same, whatever happens to them.
    #[cfg(test)]
    fn assert_alike(&self, setup: &Setup, known: u32, node: &Node) {
        let now = (setup.time == Time::Leases).then_some(Instant(ORIGIN + 3));
        let known = &self.nodes[known as usize].node;
        let messages = self.envelopes.iter().rev().filter(|envelope| envelope.to == node.peer());
        let messages: Vec<_> = messages.take(6).map(|envelope| node::Input::Message(envelope)).collect();
        let others = [
            node::Input::Tick,
            node::Input::Timeout,
            node::Input::Flush,
            node::Input::Tell,
            node::Input::Execute,
            node::Input::Restart,
        ];
        let leads = known.view().role == RoleName::Leader && node.view().role == RoleName::Leader;
        let activate = (leads && setup.mode.has_active_members())
            .then_some(node::Input::Activate(setup.configuration().rule().active));
        // Without it, the file of the view is not looked at.
        let damage = (setup.budget.left(Bounded::Damage) > 0).then_some(node::Input::Damage);
        for input in messages.iter().chain(&others).chain(&activate).chain(&damage) {
            let ((one, one_sent), (other, other_sent)) =
                (known.turn(setup, input, now), node.turn(setup, input, now));
            assert_eq!(one.fingerprint(setup), other.fingerprint(setup), "{input:?}");
            assert_eq!(one_sent, other_sent, "{input:?}");
        }
    }

    fn client(&mut self, setup: &Setup, client: ModelClient) -> u32 {
        let next = self.clients.len() as u32;
        match self.client_numbers.entry(client.fingerprint(setup)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let view = client.view();
                self.clients.push(ClientEntry { client: Arc::new(client), view });
                *new.insert(next)
            }
        }
    }

    fn envelope(&mut self, envelope: Envelope) -> u32 {
        let next = self.envelopes.len() as u32;
        let envelope = Arc::new(envelope);
        match self.envelope_numbers.entry(Arc::clone(&envelope)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.envelopes.push(envelope);
                *new.insert(next)
            }
        }
    }

    fn turn(&mut self, setup: &Setup, node: u32, input: Action, now: Option<Instant>) -> Arc<Turn> {
        let (kind, number) = match input {
            Action::Deliver(envelope) => (0, envelope),
            Action::Tick(_) => (1, 0),
            Action::Timeout(_) => (2, 0),
            Action::Flush(_) => (3, 0),
            Action::Restart(_) => (4, 0),
            Action::Execute(_) => (5, 0),
            Action::Tell(_) => (6, 0),
            Action::Damage(_) => (7, 0),
            Action::Activate(_, active) => (8, active.0.into()),
            Action::Reconfigure(_) => (9, 0),
            Action::Newcome(_) => (10, 0),
            other => unreachable!("{other:?} is no turn of a member"),
        };
        let moment = now.map_or(0, |now| now.0);
        let key = (node, u64::from(number) | kind << 32 | moment << 40);
        if let Some(turn) = self.turns.get(&key) {
            return Arc::clone(turn);
        }
        let message;
        let input = match input {
            Action::Deliver(_) => {
                message = Arc::clone(&self.envelopes[number as usize]);
                node::Input::Message(&message)
            }
            Action::Tick(_) => node::Input::Tick,
            Action::Timeout(_) => node::Input::Timeout,
            Action::Flush(_) => node::Input::Flush,
            Action::Execute(_) => node::Input::Execute,
            Action::Tell(_) => node::Input::Tell,
            Action::Damage(_) => node::Input::Damage,
            Action::Activate(_, active) => node::Input::Activate(active),
            Action::Reconfigure(_) => node::Input::Reconfigure(setup.next().roster),
            Action::Newcome(_) => node::Input::Begin,
            _ => node::Input::Restart,
        };
        let (after, sent) = self.nodes[node as usize].node.turn(setup, &input, now);
        let node = self.node(setup, after);
        let sent = sent.into_iter().map(|envelope| self.envelope(envelope)).collect();
        let turn = Arc::new(Turn { node, sent });
        self.turns.insert(key, Arc::clone(&turn));
        turn
    }

    fn client_turn(
        &mut self,
        setup: &Setup,
        client: u32,
        code: u64,
        input: &client::Input<'_>,
    ) -> Arc<ClientTurn> {
        if let Some(turn) = self.client_turns.get(&(client, code)) {
            return Arc::clone(turn);
        }
        let before = Arc::clone(&self.clients[client as usize].client);
        let (after, (sent, ended)) = before.turn(input);
        let next = self.client(setup, after);
        let sent = sent.into_iter().map(|envelope| self.envelope(envelope)).collect();
        let turn = Arc::new(ClientTurn { client: next, sent, ended });
        self.client_turns.insert((client, code), Arc::clone(&turn));
        turn
    }
}

/// A setup with its tables and the states it starts from.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    operations: Vec<crate::machine::Operation>,
    tables: Mutex<Tables>,
    pub(crate) starts: Vec<State>,
}

/// With one clock for all, it starts here: later than any clock when the search begins.
pub(crate) const ORIGIN: u64 = 1000;

/// Operations that every client has had answered before the search begins: one, so that it has a session.
const WARM: u64 = 1;

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let operations = setup.operations();
        assert!(operations.len() <= OPERATIONS_MAX, "an operation has a bit in a byte");
        let mut world = Self { setup, operations, tables: Mutex::default(), starts: Vec::new() };
        // Before the search begins, everybody hears of what is committed.
        let heartbeats = std::mem::replace(&mut world.setup.heartbeats, true);
        let walls = world.setup.walls;
        let warm: Vec<State> = walls.iter().map(|walls| world.warm_up(walls)).collect();
        world.starts = warm.into_iter().map(|state| world.run_script(state)).collect();
        world.setup.heartbeats = heartbeats;
        let mut starts = std::mem::take(&mut world.starts);
        for state in &mut starts {
            state.network.retain(|number| !world.is_lost(&world.envelope(*number)));
        }
        world.starts = starts;
        world
    }

    pub(crate) fn operations(&self) -> &[crate::machine::Operation] {
        &self.operations
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cluster in which every client has a session and everybody has executed all there is.
    fn warm_up(&self, walls: &[u64]) -> State {
        let setup = &self.setup;
        let mut state = State {
            nodes: [0; MEMBERS_MAX],
            clients: [0; CLIENTS_MAX],
            network: Vec::new(),
            history: History::default(),
            issued: [0; CLIENTS_MAX],
            budget: Budget([u8::MAX; crate::setup::BOUNDED]),
            time: 0,
            acted: 0,
        };
        let mut sent = Vec::new();
        {
            let mut tables = self.tables();
            for id in 0..setup.members {
                let (node, messages) = Node::new(setup, id as u8);
                state.nodes[id] = tables.node(setup, node);
                sent.extend(messages.into_iter().map(|message| tables.envelope(message)));
            }
            for (client, wall) in walls.iter().enumerate() {
                let model_client = ModelClient::new(setup, client, *wall);
                state.clients[client] = tables.client(setup, model_client);
            }
        }
        self.put(&mut state, &sent);
        self.quiesce(&mut state);
        for client in 0..setup.programs.len() {
            let warm = crate::machine::Operation::Set(crate::machine::WARM_KEY, 0);
            self.client_turn(&mut state, client, u64::MAX, &client::Input::Invoke(warm));
            self.quiesce(&mut state);
        }
        self.quiesce_after_heartbeat(&mut state);
        state
    }

    /// Everything is delivered, in order, and what is due is done, until nothing is left.
    pub(crate) fn quiesce(&self, state: &mut State) {
        const TURNS_MAX: usize = 10_000;
        for _ in 0..TURNS_MAX {
            let members = || 0..self.setup.members as u8;
            if let Some(member) = members().find(|member| self.node_view(state, *member).unexecuted)
                && let Some(next) = self.step(state, Action::Execute(member))
            {
                *state = next;
                continue;
            }
            if let Some(step) = members().find_map(|member| self.disk_step(state, member))
                && let Some(next) = self.step(state, step)
            {
                *state = next;
                continue;
            }
            let due = members().find(|member| {
                self.node_view(state, *member).timer_is_due
                    && self.step(state, Action::Tick(*member)).is_some()
            });
            let action = match (state.network.first(), due) {
                (Some(envelope), _) => Action::Deliver(*envelope),
                (None, Some(member)) => Action::Tick(member),
                (None, None) => return,
            };
            match self.step(state, action) {
                Some(next) => *state = next,
                None => state.network.retain(|envelope| Action::Deliver(*envelope) != action),
            }
        }
        panic!("{} does not come to rest", self.setup.name);
    }

    /// What comes next at a disk whose steps are told apart.
    fn disk_step(&self, state: &State, member: u8) -> Option<Action> {
        let view = self.node_view(state, member);
        match self.setup.slow_disk {
            Some((_, DiskSteps::Apart)) if view.unwritten => Some(Action::Flush(member)),
            Some((_, DiskSteps::Apart)) if view.untold => Some(Action::Tell(member)),
            _ => None,
        }
    }

    /// Every member learns what is committed.
    pub(crate) fn quiesce_after_heartbeat(&self, state: &mut State) {
        self.quiesce(state);
        for member in 0..self.setup.members as u8 {
            if self.node_view(state, member).role == RoleName::Leader {
                let beat = if self.setup.time == Time::Leases {
                    state.time += node::HEARTBEAT as u8;
                    Action::Tick(member)
                } else {
                    Action::Timeout(member)
                };
                if let Some(next) = self.step(state, beat) {
                    *state = next;
                    self.quiesce(state);
                }
            }
        }
    }

    pub(crate) fn node_view(&self, state: &State, member: u8) -> Arc<node::NodeView> {
        Arc::clone(&self.tables().nodes[state.nodes[usize::from(member)] as usize].view)
    }

    pub(crate) fn node(&self, state: &State, member: u8) -> Node {
        self.tables().nodes[state.nodes[usize::from(member)] as usize].node.clone()
    }

    pub(crate) fn envelope(&self, number: u32) -> Arc<Envelope> {
        Arc::clone(&self.tables().envelopes[number as usize])
    }

    /// The states behind the numbers: (members, clients, messages, turns of members).
    pub(crate) fn table_sizes(&self) -> [usize; 4] {
        let tables = self.tables();
        [tables.nodes.len(), tables.clients.len(), tables.envelopes.len(), tables.turns.len()]
    }

    fn now(&self, state: &State) -> Option<Instant> {
        (self.setup.time == Time::Leases).then(|| Instant(ORIGIN + u64::from(state.time)))
    }

    /// Everything that may happen, in an order that depends on the state alone.
    pub(crate) fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let setup = &self.setup;
        for client in 0..setup.programs.len() {
            let issued = usize::from(state.issued[client]);
            let idle = issued == 0 || {
                let last = setup.operation_index(client, issued - 1);
                state.history.0[last].progress != Progress::Open
            };
            if issued < setup.programs[client].len() && idle {
                actions.push(Action::Invoke(client as u8));
            }
            if !idle && state.budget.left(Bounded::Impatience) > 0 {
                actions.push(Action::Impatience(client as u8));
            }
        }
        actions.extend(state.network.iter().map(|envelope| Action::Deliver(*envelope)));
        if state.budget.left(Bounded::Duplicate) > 0 {
            actions.extend(state.network.iter().map(|envelope| Action::DeliverAndKeep(*envelope)));
        }
        for member in 0..setup.members as u8 {
            self.member_actions(state, member, actions);
        }
        if state.budget.left(Bounded::Time) > 0 {
            actions.push(Action::Pass);
        }
    }

    fn member_actions(&self, state: &State, member: u8, actions: &mut Vec<Action>) {
        let view = self.node_view(state, member);
        let bounded = match view.role {
            RoleName::Leader => Bounded::Heartbeat,
            RoleName::Follower => Bounded::Suspicion,
            RoleName::ViewChange | RoleName::Recovering => Bounded::Retry,
        };
        let allowed = state.budget.left(bounded) > 0;
        match (self.now(state), view.role) {
            // With one clock, what ends a timer is the time; acting upon it is what is bounded.
            (Some(now), _) => {
                actions.extend((view.deadline <= now && allowed).then_some(Action::Tick(member)));
            }
            (None, role) => {
                if view.timer_is_due && due_timer(role).is_none_or(|bounded| state.budget.left(bounded) > 0) {
                    actions.push(Action::Tick(member));
                }
                if role == RoleName::Follower {
                    actions.extend(allowed.then_some(Action::Move(member)));
                } else if view.has_timer && !view.timer_is_due {
                    actions.extend(allowed.then_some(Action::Timeout(member)));
                }
            }
        }
        if view.unwritten {
            actions.push(Action::Flush(member));
        }
        if view.untold {
            actions.push(Action::Tell(member));
        }
        if view.unexecuted {
            actions.push(Action::Execute(member));
        }
        if view.role == RoleName::Leader && state.budget.left(Bounded::Activation) > 0 {
            let sets = active_sets(self.setup.configuration(), ReplicaId(member));
            let others = sets.filter(|active| *active != view.active);
            actions.extend(others.map(|active| Action::Activate(member, active)));
        }
        let stays = |member: u8| {
            let id = ReplicaId(member);
            !self.setup.is_new(id) && self.setup.next().roster.group().has(id)
        };
        if view.role == RoleName::Leader && stays(member) && state.budget.left(Bounded::Reconfiguration) > 0 {
            actions.push(Action::Reconfigure(member));
        }
        // It hears that it is in from somebody who knows.
        let is_known = |other: u8| stays(other) && self.node_view(state, other).newest.is_some();
        if self.setup.is_new(ReplicaId(member))
            && !view.is_new
            && state.budget.left(Bounded::Newcomer) > 0
            && (self.setup.change == Change::Learning || (0..self.setup.members as u8).any(is_known))
        {
            actions.push(Action::Newcome(member));
        }
        if view.is_absent {
            return;
        }
        if state.budget.left(Bounded::Restart) > 0 {
            actions.push(Action::Restart(member));
        }
        if state.budget.left(Bounded::Damage) > 0 {
            actions.push(Action::Damage(member));
        }
    }

    /// What an action leads to; `None` if it changes nothing or leads out of bounds.
    pub(crate) fn step(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Invoke(client) => self.invoke(&mut state, usize::from(client)),
            Action::Deliver(envelope) => {
                state.network.retain(|other| *other != envelope);
                let mut lost = state.clone();
                self.deliver(&mut state, envelope)?;
                lost.acted = state.acted;
                if state == lost {
                    // As good as lost, and what is on its way may be lost at any time.
                    return None;
                }
            }
            Action::DeliverAndKeep(envelope) => {
                state.budget.spend(Bounded::Duplicate);
                self.deliver(&mut state, envelope)?;
            }
            Action::Tick(member) => {
                if self.setup.time == Time::Leases {
                    self.spend_timer(&mut state, member);
                } else if let Some(bounded) = due_timer(self.node_view(&state, member).role) {
                    state.budget.spend(bounded);
                }
                self.member_turn(&mut state, member, action)?;
            }
            Action::Timeout(member) => {
                self.spend_timer(&mut state, member);
                self.member_turn(&mut state, member, action)?;
            }
            Action::Move(member) => {
                state.budget.spend(Bounded::Suspicion);
                self.move_on(&mut state, member)?;
            }
            Action::Flush(member) | Action::Tell(member) | Action::Execute(member) => {
                self.member_turn(&mut state, member, action)?;
            }
            Action::Activate(member, _) => {
                state.budget.spend(Bounded::Activation);
                self.member_turn(&mut state, member, action)?;
            }
            Action::Reconfigure(member) => {
                state.budget.spend(Bounded::Reconfiguration);
                self.member_turn(&mut state, member, action)?;
            }
            Action::Newcome(member) => {
                state.budget.spend(Bounded::Newcomer);
                self.member_turn(&mut state, member, action)?;
            }
            Action::Restart(member) => {
                state.budget.spend(Bounded::Restart);
                self.member_turn(&mut state, member, action)?;
            }
            Action::Damage(member) => {
                state.budget.spend(Bounded::Damage);
                self.member_turn(&mut state, member, action)?;
            }
            Action::Impatience(client) => {
                state.budget.spend(Bounded::Impatience);
                let input = client::Input::Impatience;
                self.client_turn(&mut state, usize::from(client), u64::MAX - 1, &input);
            }
            Action::Pass => {
                state.budget.spend(Bounded::Time);
                state.time += 1;
                state.acted = 0;
            }
        }
        self.forget_obsolete(&mut state);
        (state != *before).then_some(state)
    }

    /// A follower's patience ends. It moves if it has heard that others want to; else those hear of it
    /// who are on their way, else those whose patience ends too.
    fn move_on(&self, state: &mut State, member: u8) -> Option<()> {
        let before = self.node_view(state, member).view;
        let moved = |state: &State| self.node_view(state, member).view > before;
        self.member_turn(state, member, Action::Timeout(member))?;
        if self.node_view(state, member).timer_is_due {
            // A body was asked for first.
            self.member_turn(state, member, Action::Timeout(member))?;
        }
        let to = Peer::Replica(ReplicaId(member));
        for number in state.network.clone() {
            if moved(state) {
                return Some(());
            }
            let envelope = self.envelope(number);
            let view = match &envelope.message {
                Message::StartViewChange { view, .. } => view.0,
                Message::DoViewChange(change) => change.view.0,
                _ => continue,
            };
            if envelope.to == to && view > before {
                state.network.retain(|other| *other != number);
                self.member_turn(state, member, Action::Deliver(number))?;
            }
        }
        for other in 0..self.setup.members as u8 {
            let theirs = self.node_view(state, other);
            if moved(state) {
                return Some(());
            }
            if other == member || theirs.view != before || theirs.role != RoleName::Follower {
                continue;
            }
            let turn = self.tables().turn(
                &self.setup,
                state.nodes[usize::from(other)],
                Action::Timeout(other),
                None,
            );
            state.nodes[usize::from(other)] = turn.node;
            let heard = turn.sent.iter().find(|number| self.envelope(**number).to == to)?;
            self.member_turn(state, member, Action::Deliver(*heard))?;
        }
        moved(state).then_some(())
    }

    fn spend_timer(&self, state: &mut State, member: u8) {
        let bounded = match self.node_view(state, member).role {
            RoleName::Leader => Bounded::Heartbeat,
            RoleName::Follower => Bounded::Suspicion,
            RoleName::ViewChange | RoleName::Recovering => Bounded::Retry,
        };
        state.budget.spend(bounded);
    }

    pub(crate) fn invoke(&self, state: &mut State, client: usize) {
        let number = usize::from(state.issued[client]);
        state.issued[client] += 1;
        state.history.begin(self.setup.operation_index(client, number));
        let input = client::Input::Invoke(self.setup.programs[client][number]);
        self.client_turn(state, client, u64::MAX - 2 - number as u64, &input);
    }

    /// A client loses its connection to a member for good.
    pub(crate) fn disconnect(&self, state: &mut State, client: usize, member: u8) {
        let input = client::Input::Disconnected(ReplicaId(member));
        self.client_turn(state, client, u64::MAX - 64 - u64::from(member), &input);
    }

    fn deliver(&self, state: &mut State, number: u32) -> Option<()> {
        let envelope = self.envelope(number);
        match envelope.to {
            Peer::Replica(ReplicaId(member)) => {
                let reads = matches!(envelope.message, Message::Read { .. });
                if reads && self.setup.time == Time::Leases && state.acted & 1 << member != 0 {
                    // A read arrives later than anything its receiver said before.
                    return None;
                }
                self.member_turn(state, member, Action::Deliver(number))
            }
            Peer::Client(client) => {
                let input = client::Input::Message(&envelope);
                self.client_turn(state, client as usize, u64::from(number), &input);
                Some(())
            }
        }
    }

    /// `None`: it would lead into a view that is out of bounds.
    fn member_turn(&self, state: &mut State, member: u8, action: Action) -> Option<()> {
        let place = usize::from(member);
        if self.node_view(state, member).is_absent && !matches!(action, Action::Newcome(_)) {
            return None;
        }
        let turn = self.tables().turn(&self.setup, state.nodes[place], action, self.now(state));
        state.nodes[place] = turn.node;
        if self.setup.time == Time::Leases {
            state.acted |= 1 << member;
        }
        if View(self.node_view(state, member).view).number() > self.setup.view_max {
            return None;
        }
        self.put(state, &turn.sent);
        Some(())
    }

    fn client_turn(&self, state: &mut State, client: usize, code: u64, input: &client::Input<'_>) {
        let turn = self.tables().client_turn(&self.setup, state.clients[client], code, input);
        state.clients[client] = turn.client;
        for (token, progress) in &turn.ended {
            if *token > WARM {
                let operation = self.setup.operation_index(client, (token - WARM - 1) as usize);
                state.history.end(operation, *progress);
            }
        }
        self.put(state, &turn.sent);
    }

    /// Messages set out.
    fn put(&self, state: &mut State, sent: &[u32]) {
        for number in sent {
            let envelope = self.envelope(*number);
            match envelope.to {
                Peer::Client(client) if self.setup.answers_at_once => {
                    let input = client::Input::Message(&envelope);
                    self.client_turn(state, client as usize, u64::from(*number), &input);
                }
                // Nobody is connected to a process that does not run.
                Peer::Replica(ReplicaId(to)) if self.node_view(state, to).is_absent => {}
                _ if self.is_lost(&envelope) => {}
                _ => {
                    if let Err(place) = state.network.binary_search(number) {
                        state.network.insert(place, *number);
                        self.overtake(state, &envelope);
                    }
                }
            }
        }
    }

    /// A PrepareOk says all that an earlier one of the same view said, which is lost.
    fn overtake(&self, state: &mut State, newer: &Envelope) {
        let Message::PrepareOk { view, op_number, sent_at, .. } = newer.message else { return };
        if sent_at != Instant(0) {
            return;
        }
        let tables = self.tables();
        state.network.retain(|number| {
            let other = &tables.envelopes[*number as usize];
            let earlier = match other.message {
                Message::PrepareOk { view: v, op_number: n, sent_at: Instant(0), .. } => {
                    v == view && n < op_number
                }
                _ => false,
            };
            !(earlier && other.from == newer.from)
        });
    }

    /// True if a message never arrives: those left out to keep the space small.
    fn is_lost(&self, envelope: &Envelope) -> bool {
        match (&envelope.message, envelope.to) {
            (Message::Commit { .. }, _) => !self.setup.heartbeats,
            // A leader has the group grow at any moment, whoever asks, and replicas lose patience at any moment.
            (Message::PlaceWanted { .. } | Message::Patience { .. }, _) => true,
            (
                Message::FetchBodies { .. }
                | Message::GetState { .. }
                | Message::NewState { .. }
                | Message::GetStartView { .. },
                _,
            ) => !self.setup.transfers,
            (Message::StartViewChange { view, reason }, Peer::Replica(ReplicaId(to))) => {
                let leads = |view| {
                    let view = View(view);
                    self.setup.configuration_of(view.epoch()).leader(view) == ReplicaId(to)
                };
                match reason {
                    // With timers, those whose patience ends hear of each other at once. The leader of
                    // the view before would only take a note of it.
                    ViewChangeReason::Suspicion => self.setup.time != Time::Leases || leads(view.0 - 1),
                    // The new leader hears it from the DoViewChange.
                    ViewChangeReason::Moved => leads(view.0),
                    ViewChangeReason::Abdication => false,
                }
            }
            _ => false,
        }
    }

    /// Takes messages off the network that can do nothing any more, or only tell their sender of a view.
    fn forget_obsolete(&self, state: &mut State) {
        let tables = self.tables();
        let any_view = self.setup.planted == Some(PlantedBug::AnyViewAccepted);
        let State { nodes, clients, network, .. } = state;
        network.retain(|number| {
            let envelope = &tables.envelopes[*number as usize];
            let Peer::Replica(ReplicaId(to)) = envelope.to else { return true };
            let receiver = tables.nodes[nodes[usize::from(to)] as usize].view.view;
            match (&envelope.message, envelope.from) {
                (
                    Message::Prepare { view, .. }
                    | Message::Commit { view, .. }
                    | Message::PrepareOk { view, .. }
                    | Message::FetchBodies { view, .. }
                    | Message::Bodies { view, .. }
                    | Message::Forward { view, .. }
                    | Message::StartViewChange { view, .. },
                    _,
                ) => view.0 >= receiver,
                (Message::StartView(start), _) => start.view.0 >= receiver,
                (
                    Message::Request { view, .. }
                    | Message::Read { view, asked: Asked::Answer | Asked::LastChange, .. }
                    | Message::Register { view, .. },
                    Peer::Client(client),
                ) => {
                    let sender = tables.clients[clients[client as usize] as usize].view;
                    any_view || view.0 >= receiver || sender < receiver
                }
                _ => true,
            }
        });
    }
}

/// The members that may be active together in a view of this leader.
fn active_sets(configuration: Configuration, leader: ReplicaId) -> impl Iterator<Item = ReplicaSet> {
    let (size, majority) = (configuration.size(), configuration.majority());
    let sets = (0..1_u16 << size).map(ReplicaSet);
    sets.filter(move |set| set.contains(leader) && set.len() >= majority)
}

/// What is bounded of a timer that is due at once, where clocks move only with timers.
const fn due_timer(role: RoleName) -> Option<Bounded> {
    match role {
        RoleName::Leader => Some(Bounded::Ordering),
        RoleName::Follower => Some(Bounded::Fetch),
        RoleName::ViewChange | RoleName::Recovering => None,
    }
}
