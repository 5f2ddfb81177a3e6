//! States and steps in words.

use crate::history::Progress;
use crate::machine::Operation;
use crate::setup::DiskSteps;
use crate::world::{Action, State, World};
use std::fmt::Write;
use syros_protocol::message::{Asked, Message, Path, Payload, Peer, Prepared, Request};
use syros_types::{FastRule, OpNumber, OperationId, ReplicaId, ReplicaSet};

fn id(id: OperationId) -> String {
    // Sequence number 1 warmed the session up.
    format!("s{}.{}", id.session.0, id.sequence)
}

fn request(request: &Request) -> String {
    let operation = Operation::decode(&request.body).map_or_else(String::new, |op| op.to_string());
    format!("[{} {operation} @{}]", id(request.id), request.micros)
}

fn requests<'a>(all: impl IntoIterator<Item = &'a Request>) -> String {
    all.into_iter().map(request).collect::<Vec<_>>().join("")
}

fn payload(payload: &Payload) -> String {
    match payload {
        Payload::Update(update) => request(&update.request),
        Payload::Recovered(updates) => format!("recovered({})", requests(updates.iter().map(|u| &u.request))),
        Payload::Register { .. } => "register".to_owned(),
        Payload::Expire(_) => "expire".to_owned(),
        Payload::Tick => "tick".to_owned(),
        Payload::Reconfigure(next) => format!("reconfigure(epoch {})", next.epoch.0),
    }
}

fn prepared(entry: &Prepared) -> String {
    match entry {
        Prepared::Reference { id: update, .. } => format!("[{}]", id(*update)),
        Prepared::Full(update) => request(update),
        Prepared::Register { .. } => "register".to_owned(),
        Prepared::Expire(_) => "expire".to_owned(),
        Prepared::Tick => "tick".to_owned(),
        Prepared::Reconfigure(next) => format!("reconfigure(epoch {})", next.epoch.0),
    }
}

fn members(set: ReplicaSet) -> String {
    set.iter().map(|member| member.0.to_string()).collect::<Vec<_>>().join(" and ")
}

/// What a message tells of the rule of a view, if not everybody is active in it.
fn rule(rule: Option<FastRule>) -> String {
    rule.map_or_else(String::new, |rule| format!(" in which {} are active", members(rule.active)))
}

fn message(message: &Message) -> String {
    let name = message.name();
    match message {
        Message::Request { view, path, recipients: _, request: update } => {
            let path = if *path == Path::Ordered { " to be ordered" } else { "" };
            format!("{name}(view {}, {}{path})", view.0, request(update))
        }
        Message::Read { view, asked, body, .. } => {
            let operation = Operation::decode(body).map_or_else(|| "nothing".to_owned(), |op| op.to_string());
            let asked = match asked {
                Asked::Answer => String::new(),
                Asked::Value { after: OpNumber(0) } | Asked::StaleValue => ", its own value".to_owned(),
                Asked::Value { after } => format!(", its own value after {}", after.0),
                Asked::LastChange => ", the last change".to_owned(),
            };
            format!("{name}(view {}, {operation}{asked})", view.0)
        }
        Message::Ok { view, id: update, .. }
        | Message::Conflict { view, id: update, .. }
        | Message::Committed { view, id: update, .. }
        | Message::Evaluated { view, id: update, .. } => {
            format!("{name}(view {}, {})", view.0, id(*update))
        }
        Message::Prepare { view, first, commit, entries, sent_at, .. } => {
            let entries: String = entries.iter().map(prepared).collect();
            format!(
                "{name}(view {}, {}: {entries}, commit {}, sent {})",
                view.0, first.0, commit.0, sent_at.0
            )
        }
        Message::Commit { view, commit, op_number, sent_at } => {
            format!("{name}(view {}, commit {} of {}, sent {})", view.0, commit.0, op_number.0, sent_at.0)
        }
        Message::PrepareOk { view, op_number, sent_at, .. } => {
            format!("{name}(view {}, up to {}, sent {})", view.0, op_number.0, sent_at.0)
        }
        Message::StartViewChange { view, reason } => format!("{name}(view {}, {reason:?})", view.0),
        Message::DoViewChange(change) => format!(
            "{name}(view {}, last normal {}{}, log {} + {:?}, durability log {})",
            change.view.0,
            change.last_normal.0,
            rule(change.rule),
            change.commit.0,
            change.suffix.iter().map(|entry| payload(&entry.payload)).collect::<Vec<_>>(),
            requests(&change.dlog)
        ),
        Message::StartView(start) => format!(
            "{name}(view {}{}, log {} + {:?}, commit {})",
            start.view.0,
            rule(start.rule),
            start.base.0,
            start.suffix.iter().map(|entry| payload(&entry.payload)).collect::<Vec<_>>(),
            start.commit.0
        ),
        Message::GetState { view, from } => format!("{name}(view {}, from {})", view.0, from.0),
        Message::NewState { view, first, commit, entries } => {
            format!(
                "{name}(view {}, {} entries from {}, commit {})",
                view.0,
                entries.len(),
                first.0,
                commit.0
            )
        }
        Message::WrongView { view }
        | Message::GetStartView { view, .. }
        | Message::Rejoin { view }
        | Message::DiskShort { view }
        | Message::WatchLog { view } => {
            format!("{name}(view {})", view.0)
        }
        _ => name.to_owned(),
    }
}

fn peer(peer: Peer) -> String {
    match peer {
        Peer::Replica(ReplicaId(member)) => format!("replica {member}"),
        Peer::Client(client) => format!("client {client}"),
    }
}

/// What an action does in a state, in one line.
pub(crate) fn action(world: &World, state: &State, action: Action) -> String {
    match action {
        Action::Invoke(client) => {
            let number = usize::from(state.issued[usize::from(client)]);
            format!("client {client} issues {}", world.setup.programs[usize::from(client)][number])
        }
        Action::Deliver(number) | Action::DeliverAndKeep(number) => {
            let envelope = world.envelope(number);
            let again =
                if matches!(action, Action::DeliverAndKeep(_)) { " (a copy stays behind)" } else { "" };
            format!(
                "{} gets from {} {}{again}",
                peer(envelope.to),
                peer(envelope.from),
                message(&envelope.message)
            )
        }
        Action::Tick(member) => format!("replica {member} looks at its timers"),
        Action::Timeout(member) => format!("replica {member}: its next timer ends"),
        Action::Move(member) => {
            format!("replica {member} and enough others miss their leader: replica {member} moves on")
        }
        Action::Activate(member, active) => {
            format!("replica {member} wants {} to be active, and moves on", members(active))
        }
        Action::Execute(member) => format!("replica {member} executes what it has been asked to"),
        Action::Flush(member) => match world.setup.slow_disk {
            Some((_, DiskSteps::Apart)) => format!("the next record of replica {member} is on its disk"),
            _ => format!("replica {member} has written everything to disk"),
        },
        Action::Tell(member) => format!("replica {member} hears what is on its disk"),
        Action::Reconfigure(member) => format!("replica {member} has the members changed"),
        Action::Newcome(member) => format!("the new node that is replica {member} starts"),
        Action::Restart(member) => format!("replica {member} restarts"),
        Action::Damage(member) => format!("replica {member} restarts, and its log is damaged"),
        Action::Impatience(client) => format!("client {client} has waited long enough"),
        Action::Pass => format!("time passes, to {}", state.time + 1),
    }
}

/// What the clients saw.
pub(crate) fn history(world: &World, state: &State) -> String {
    let mut text = String::new();
    let operations = world.setup.operations();
    for (index, operation) in operations.iter().enumerate() {
        let record = state.history.0[index];
        let seen = match record.progress {
            Progress::Later => continue,
            Progress::Open => "not answered".to_owned(),
            Progress::Done => "done".to_owned(),
            Progress::Value(value) => format!("returned {value}"),
            Progress::Refused => "refused".to_owned(),
        };
        let before: Vec<String> = (0..operations.len())
            .filter(|i| record.before & 1 << i != 0)
            .map(|i| operations[i].to_string())
            .collect();
        let after =
            if before.is_empty() { String::new() } else { format!(", begun after {}", before.join(", ")) };
        let _ = writeln!(text, "  {operation}: {seen}{after}");
    }
    text
}

/// A member in one line.
pub(crate) fn member(world: &World, state: &State, member: u8) -> String {
    let (node, view) = (world.node(state, member), world.node_view(state, member));
    if let Some(failure) = &view.failure {
        return format!("  replica {member}: {failure}");
    }
    let log: Vec<String> = node
        .log()
        .iter()
        .enumerate()
        .map(|(index, entry)| format!("{}:{}@v{}", index + 1, payload(&entry.payload), entry.view.0))
        // What warmed the sessions up says nothing.
        .skip(2 * world.setup.programs.len())
        .collect();
    let accepted = node.accepted();
    let accepted = accepted.iter().filter_map(|body| Operation::decode(body)).map(|op| op.to_string());
    let active = if view.active.len() < world.setup.members {
        format!(" of active {}", members(view.active))
    } else {
        String::new()
    };
    format!(
        "  replica {member}: view {}{active}, {:?}, log {} committed up to {}, durability log [{}]",
        view.view,
        view.role,
        log.join(" "),
        node.commit(),
        accepted.collect::<Vec<_>>().join(", ")
    )
}
