//! The commands that a connection answers by itself.

mod acl;
mod ask;
mod client;
mod client_filter;
mod command;
mod config;
pub(crate) mod debug;
mod hello;
mod help;
mod latency;
mod memory;
mod replication;
mod slow_log;

pub(crate) use ask::{asks_process, request};
pub(crate) use client::{ClientFigures, put_client_line};

use crate::access::{Login, Refusal, Standing};
use crate::context::{Context, Identity};
use crate::info::info_text;
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::tracking::SessionTracking;
use crate::writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_simple, write_verbatim,
};
use std::sync::Arc;
use syros_commands::{CommandError, CommandSpec, ConnectionCommand, SubcommandSpec, lookup, parse_database};
use syros_types::{Database, Prng, ReadPolicy, WallTime, key_hash, mix};

/// Whether a client wants replies: CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replies {
    #[default]
    Wanted,
    /// From this command on, whatever was before.
    Again,
    /// Not to the next command.
    SkipNext,
    Off,
}

impl Replies {
    /// True if the next command gets none.
    pub(crate) const fn are_unwanted(self) -> bool {
        matches!(self, Self::SkipNext | Self::Off)
    }
}

/// What a client has said of itself and its wishes.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) identity: Identity,
    pub(crate) connected_at: WallTime,
    pub(crate) protocol: Protocol,
    /// What SELECT has chosen.
    pub(crate) database: Database,
    /// What READ has chosen for this connection.
    pub(crate) read_policy: Option<ReadPolicy>,
    pub(crate) replies: Replies,
    /// Updates whose replies are counts run blind: CLIENT BLIND.
    pub(crate) gives_up_counts: bool,
    /// What CLIENT SETNAME set; empty at first.
    pub(crate) name: Vec<u8>,
    /// What CLIENT SETINFO set.
    pub(crate) library_name: Vec<u8>,
    pub(crate) library_version: Vec<u8>,
    /// Subscriptions to channels, patterns and shard channels.
    pub(crate) subscriptions: [usize; 3],
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) shared: Arc<Shared>,
    /// It is shown the commands of all clients: MONITOR.
    pub(crate) is_monitor: bool,
    /// The client keeps copies of what it reads: CLIENT TRACKING.
    pub(crate) tracking: Option<Box<SessionTracking>>,
    /// The user that the client is.
    pub(crate) login: Login,
    /// AUTH or HELLO has been refused, and nobody has been told.
    pub(crate) refused_login: Option<Refusal>,
    /// Where updates that depend on chance get their seeds.
    pub(crate) seeds: Prng,
}

impl Session {
    pub(crate) fn new(identity: Identity, now: WallTime, shared: Arc<Shared>) -> Self {
        Self {
            seeds: seeds(&identity, now),
            identity,
            connected_at: now,
            protocol: Protocol::Resp2,
            database: Database::FIRST,
            read_policy: None,
            replies: Replies::Wanted,
            gives_up_counts: false,
            name: Vec::new(),
            library_name: Vec::new(),
            library_version: Vec::new(),
            subscriptions: [0; 3],
            statistics: Arc::clone(&shared.statistics),
            shared,
            is_monitor: false,
            tracking: None,
            login: Login::default(),
            refused_login: None,
        }
    }

    /// True if the client has subscribed to something.
    pub(crate) const fn is_subscriber(&self) -> bool {
        let [channels, patterns, shard_channels] = self.subscriptions;
        channels + patterns + shard_channels > 0
    }

    /// True if the client has said who it is, or need not, or nothing is known of that yet.
    pub(crate) fn is_known(&mut self) -> bool {
        !matches!(self.login.stand(&self.shared.users, &self.identity.address), Standing::Stranger)
    }

    /// RESET: as the client found it, but for what it has told of its library.
    pub(crate) fn reset(&mut self) {
        self.protocol = Protocol::Resp2;
        self.database = Database::FIRST;
        self.read_policy = None;
        self.gives_up_counts = false;
        self.is_monitor = false;
        self.tracking = None;
        self.login.leave();
        if self.replies == Replies::Off {
            self.replies = Replies::Again;
        }
        self.name.clear();
    }
}

/// The seeds of a connection's updates. Those of any two connections differ: in their addresses, their numbers, or the
/// time when they were accepted. Whoever knows all of these knows the seeds, too; they are no secret.
fn seeds(identity: &Identity, accepted: WallTime) -> Prng {
    let parts = [
        key_hash(identity.address.as_bytes()),
        key_hash(identity.local_address.as_bytes()),
        identity.id,
        accepted.0,
    ];
    Prng::new(parts.into_iter().fold(0, |seed, part| mix(seed ^ part)))
}

/// Answers a command whose number of words fits the table. True if the connection is to be closed.
pub(crate) fn answer(
    command: ConnectionCommand,
    words: &[&[u8]],
    session: &mut Session,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> bool {
    match command {
        ConnectionCommand::Ping => ping(words, session, out),
        ConnectionCommand::Echo => write_bulk(out, words[1]),
        ConnectionCommand::Time => time(context.now, out),
        ConnectionCommand::Select => select(words[1], session, out),
        ConnectionCommand::Info => write_info(&words[1..], session, context, out),
        ConnectionCommand::Hello => hello::answer(words, session, out),
        ConnectionCommand::Client => client::answer(words, session, context.now, out),
        ConnectionCommand::Command => command::answer(words, session.protocol, out),
        ConnectionCommand::Config => config::answer(words, session, context.info, out),
        ConnectionCommand::Reset => {
            session.reset();
            write_simple(out, b"RESET");
        }
        ConnectionCommand::Quit => {
            write_simple(out, b"OK");
            return true;
        }
        ConnectionCommand::Unwatch => write_simple(out, b"OK"),
        ConnectionCommand::Help => help::answer(words, out),
        ConnectionCommand::Acl => acl::answer(words, session, context, out),
        ConnectionCommand::Auth => acl::authenticate(words, session, out),
        ConnectionCommand::Cluster => replication::cluster(words, out),
        ConnectionCommand::Debug => debug::answer(words, session, out),
        ConnectionCommand::Failover => replication::fail_over(out),
        ConnectionCommand::LastSave => replication::last_save(context.info, context.now, out),
        ConnectionCommand::Latency => latency::answer(words, session, out),
        ConnectionCommand::Lolwut => replication::lolwut(words, session, context.info, out),
        ConnectionCommand::Memory => memory::answer(words, session.protocol, context.info, out),
        ConnectionCommand::Module => replication::module(words, out),
        ConnectionCommand::ReplicaOf | ConnectionCommand::SlaveOf => replication::follow(words, out),
        ConnectionCommand::Role => replication::role(context.info, out),
        ConnectionCommand::Save => replication::save(b"OK", context.info, out),
        ConnectionCommand::BgSave => {
            replication::save(
                b"Background saving is not needed: what is acknowledged is on disk",
                context.info,
                out,
            );
        }
        ConnectionCommand::BgRewriteAof => {
            let text = b"Background append only file rewriting is not needed: the log is compacted by itself";
            replication::save(text, context.info, out);
        }
        ConnectionCommand::Shutdown => replication::shut_down(out),
        ConnectionCommand::SlowLog => slow_log::answer(words, session, out),
        ConnectionCommand::Sync | ConnectionCommand::PSync => replication::refuse_replication(out),
        // In a transaction they do not wait, and nothing is known of the updates before it.
        ConnectionCommand::Wait => write_integer(out, 0),
        ConnectionCommand::WaitAof => {
            write_array(out, 2);
            write_integer(out, 0);
            write_integer(out, 0);
        }
        // They concern what the connection has queued and watches, or are answered by the process or the registry of
        // subscriptions.
        ConnectionCommand::Monitor
        | ConnectionCommand::Multi
        | ConnectionCommand::Exec
        | ConnectionCommand::Discard
        | ConnectionCommand::Watch
        | ConnectionCommand::Subscribe
        | ConnectionCommand::Unsubscribe
        | ConnectionCommand::PSubscribe
        | ConnectionCommand::PUnsubscribe
        | ConnectionCommand::SSubscribe
        | ConnectionCommand::SUnsubscribe
        | ConnectionCommand::Publish
        | ConnectionCommand::SPublish
        | ConnectionCommand::PubSub => {}
    }
    false
}

/// Writes the reply to INFO with these names of sections.
pub(crate) fn write_info(names: &[&[u8]], session: &Session, context: &Context<'_>, out: &mut Vec<u8>) {
    let text = info_text(&context.info.report(), &session.statistics, context.now, names);
    write_verbatim(out, session.protocol, text.as_bytes());
}

fn ping(words: &[&[u8]], session: &Session, out: &mut Vec<u8>) {
    match words {
        // Among messages, the reply looks like one.
        [_] | [_, _] if session.protocol == Protocol::Resp2 && session.is_subscriber() => {
            write_array(out, 2);
            write_bulk(out, b"pong");
            write_bulk(out, words.get(1).copied().unwrap_or_default());
        }
        [_] => write_simple(out, b"PONG"),
        [_, text] => write_bulk(out, text),
        _ => write_command_error(out, &CommandError::Arity("ping")),
    }
}

fn time(now: WallTime, out: &mut Vec<u8>) {
    write_array(out, 2);
    write_bulk(out, (now.0 / 1_000_000).to_string().as_bytes());
    write_bulk(out, (now.0 % 1_000_000).to_string().as_bytes());
}

fn select(word: &[u8], session: &mut Session, out: &mut Vec<u8>) {
    match parse_database(word) {
        Ok(database) => {
            session.database = database;
            write_simple(out, b"OK");
        }
        Err(error) => write_command_error(out, &error),
    }
}

pub(crate) fn write_command_error(out: &mut Vec<u8>, error: &CommandError) {
    write_error(out, &error.text());
}

/// One subcommand: its name in lower case, its number of words (negative: at least so many), and the
/// lines of HELP about it.
pub(crate) struct Subcommand {
    pub(crate) name: &'static str,
    pub(crate) arity: i8,
    pub(crate) help: &'static [&'static str],
}

/// The subcommand that the second word names, in a group of subcommands, and HELP; or the reply has been
/// written, which says what is wrong or was asked for.
pub(crate) fn subcommand(
    group: &'static str,
    subcommands: &'static [Subcommand],
    words: &[&[u8]],
    out: &mut Vec<u8>,
) -> Option<&'static str> {
    let name = words.get(1).copied().unwrap_or_default();
    if name.eq_ignore_ascii_case(b"help") && words.len() == 2 {
        write_help(group, subcommands, out);
        return None;
    }
    let Some(found) =
        subcommands.iter().find(|candidate| name.eq_ignore_ascii_case(candidate.name.as_bytes()))
    else {
        write_command_error(out, &CommandError::unknown_subcommand(group, name));
        return None;
    };
    let arity = usize::from(found.arity.unsigned_abs());
    let fits = if found.arity < 0 { words.len() >= arity } else { words.len() == arity };
    if !fits {
        let name = found.name;
        write_error(out, format!("ERR wrong number of arguments for '{group}|{name}' command").as_bytes());
        return None;
    }
    Some(found.name)
}

/// Redis shows this much of a name that it does not know.
const SHOWN_BYTES_MAX: usize = 128;

/// Why a command is refused before it is looked at: its subcommand does not exist, or has too few or too many words.
pub(crate) fn subcommand_error(spec: &CommandSpec, words: &[&[u8]]) -> Option<Vec<u8>> {
    let name = *words.get(1)?;
    let is_it = |found: &&SubcommandSpec| {
        found.name.split_once('|').is_some_and(|(_, second)| name.eq_ignore_ascii_case(second.as_bytes()))
    };
    match spec.subcommands.iter().find(is_it) {
        _ if spec.subcommands.is_empty() => None,
        Some(found) if found.accepts(words.len()) => None,
        Some(found) => Some(CommandError::Arity(found.name).text()),
        None => Some(CommandError::unknown_subcommand(spec.name, name).text()),
    }
}

/// What Redis says of a subcommand that it knows with other words behind it.
fn write_wrong_words(group: &str, name: &[u8], out: &mut Vec<u8>) {
    let mut text = b"ERR unknown subcommand or wrong number of arguments for '".to_vec();
    text.extend_from_slice(&name[..name.len().min(SHOWN_BYTES_MAX)]);
    text.extend_from_slice(b"'. Try ");
    text.extend_from_slice(group.to_ascii_uppercase().as_bytes());
    text.extend_from_slice(b" HELP.");
    write_error(out, &text);
}

fn write_help(group: &str, subcommands: &[Subcommand], out: &mut Vec<u8>) {
    let lines = subcommands.iter().map(|subcommand| subcommand.help.len()).sum::<usize>();
    write_array(out, lines + 3);
    let group = group.to_ascii_uppercase();
    write_simple(out, format!("{group} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:").as_bytes());
    for line in subcommands.iter().flat_map(|subcommand| subcommand.help) {
        write_simple(out, line.as_bytes());
    }
    write_simple(out, b"HELP");
    write_simple(out, b"    Prints this help.");
}

/// A name or version that a client gives itself: no blanks, no control characters, nothing beyond ASCII.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// Longest name of a client, in bytes: CLIENT INFO repeats it, and a connection keeps it.
const NAME_BYTES_MAX: usize = 1024;

/// Sets a client's name. False if the reply is an error, which has been written.
fn set_name(session: &mut Session, name: &[u8], out: &mut Vec<u8>) -> bool {
    if !is_plain(name) {
        write_error(out, b"ERR Client names cannot contain spaces, newlines or special characters.");
        return false;
    }
    if name.len() > NAME_BYTES_MAX {
        let text = format!("ERR client name of {} bytes exceeds the maximum of {NAME_BYTES_MAX}", name.len());
        write_error(out, text.as_bytes());
        return false;
    }
    session.name = name.to_vec();
    true
}

fn write_id(session: &Session, out: &mut Vec<u8>) {
    write_integer(out, session.identity.id.cast_signed());
}

/// The name of a command with that of its subcommand, as CLIENT LIST shows it.
pub(crate) fn full_name(spec: &CommandSpec, words: &[&[u8]]) -> &'static str {
    if spec.subcommands.is_empty() {
        return spec.name;
    }
    let second = words.get(1).copied().unwrap_or_default();
    let is_it = |found: &&SubcommandSpec| {
        found.name.split_once('|').is_some_and(|(_, name)| second.eq_ignore_ascii_case(name.as_bytes()))
    };
    spec.subcommands.iter().find(is_it).map_or(spec.name, |found| found.name)
}

/// The words BLIND with which a command begins, and the command.
pub(crate) fn split_blind<'a, 'w>(words: &'a [&'w [u8]]) -> (&'a [&'w [u8]], &'a [&'w [u8]]) {
    words.split_at(words.iter().take_while(|word| word.eq_ignore_ascii_case(b"blind")).count())
}

/// True if MONITOR shows a command: no administrator's, and none with a password.
pub(crate) fn is_shown(spec: &CommandSpec, words: &[&[u8]]) -> bool {
    let (blind, words) = split_blind(words);
    let spec = if blind.is_empty() { Some(spec) } else { words.first().and_then(|name| lookup(name)) };
    let Some(spec) = spec else { return true };
    let full = full_name(spec, words);
    let subcommand = spec.subcommands.iter().find(|subcommand| subcommand.name == full);
    let is_hidden = |flags: &[&str]| flags.contains(&"admin") || flags.contains(&"skip_monitor");
    let has_password = matches!(spec.name, "auth" | "hello");
    !has_password
        && !is_hidden(spec.flags)
        && !subcommand.is_some_and(|subcommand| is_hidden(subcommand.flags))
}

/// True for CLIENT INFO.
pub(crate) fn is_client_info(command: ConnectionCommand, words: &[&[u8]]) -> bool {
    command == ConnectionCommand::Client && words.len() == 2 && words[1].eq_ignore_ascii_case(b"info")
}
