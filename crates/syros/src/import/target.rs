//! The cluster: commands go to one of its nodes in a pipeline, and go again to another one where it is lost.

use std::collections::VecDeque;
use std::io::Error;
use std::time::{Duration, Instant};

use syros_rdb::Place;
use syros_resp::ReceivedReply;
use syros_types::Database;

use super::account::name;
use super::connection::{Connection, Login};
use crate::redis_command::put_command;
use crate::status::replicas_in;

/// So much is under way without a reply: enough to keep a node busy, and half of the commands that it takes from one
/// connection.
const WINDOW_BYTES: usize = 4 << 20;
const WINDOW_COMMANDS: usize = 2048;

/// Commands are written when there are so many bytes of them.
const WRITE_BYTES: usize = 64 << 10;

/// A cluster has so long to take updates again, when it takes none.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait before what was refused is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// What becomes of keys that the cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// There are none: the cluster was empty.
    None,
    Replaced,
    Kept,
}

/// How a command may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It chooses a database.
    Select,
    /// It may be executed twice, and in whatever order with others.
    Free,
    /// It must be executed once, and in its order.
    Ordered,
}

/// A command without a reply.
struct Sent {
    bytes: Vec<u8>,
    database: u8,
    /// What it is about, for errors.
    place: Place,
    kind: Kind,
}

/// What a command was answered that went wrong.
pub(super) struct Failure {
    /// The key that it was about.
    pub(super) place: Place,
    /// The error.
    pub(super) error: String,
}

/// What became of commands.
#[derive(Default)]
pub(super) struct Outcome {
    /// Those that failed for a reason of their own.
    pub(super) failures: Vec<Failure>,
}

/// Whoever follows a server subscribes to this channel of the cluster.
const FOLLOWERS: &[u8] = b"syros import --follow";

/// The cluster.
pub(super) struct Target {
    addresses: Vec<String>,
    login: Login,
    /// The address that is used, or is to be tried next.
    next: usize,
    connection: Option<Connection>,
    /// The database that the connection is in.
    database: u8,
    sent: VecDeque<Sent>,
    sent_bytes: usize,
    /// Commands that have not been written yet.
    unwritten: Vec<u8>,
    /// Commands to be tried again, and what the last of them was answered.
    again: Vec<Sent>,
    refusal: String,
    /// There has been a connection: one that is lost is waited for.
    was_connected: bool,
    /// When a command was executed last.
    progressed: Instant,
    outcome: Outcome,
}

impl Target {
    pub(super) fn new(addresses: Vec<String>, login: Login) -> Self {
        Self {
            addresses,
            login,
            next: 0,
            connection: None,
            database: 0,
            sent: VecDeque::new(),
            sent_bytes: 0,
            unwritten: Vec::new(),
            again: Vec::new(),
            refusal: String::new(),
            was_connected: false,
            progressed: Instant::now(),
            outcome: Outcome::default(),
        }
    }

    /// How many keys the cluster has, in all databases.
    pub(super) fn keys(&mut self) -> Result<i64, String> {
        let mut keys = 0;
        for database in Database::all() {
            let number = database.number();
            match self.ask(number, &[b"DBSIZE"])? {
                ReceivedReply::Integer(count) => keys += count,
                other => return Err(format!("the cluster does not say how many keys it has: {other}")),
            }
        }
        Ok(keys)
    }

    /// Fails if what is there is no node or gateway of Syros: what is sent is for nothing else.
    pub(super) fn check_kind(&mut self) -> Result<(), String> {
        match self.ask(0, &[b"INFO", b"syros"])? {
            ReceivedReply::Bulk(text) if !is_info_of_syros(&String::from_utf8_lossy(&text)) => Err(format!(
                "{} is no node or gateway of Syros, but another server that speaks the Redis protocol: nothing was written. syros \
                 import brings data into Syros (--to names a cluster); syros export makes a file for Redis",
                self.addresses[self.next]
            )),
            // A user who may not ask may write all the same.
            _ => Ok(()),
        }
    }

    /// Where its replicas listen for others, as it says; none if it is no cluster of Syros.
    pub(super) fn replicas(&mut self) -> Result<Vec<String>, String> {
        match self.ask(0, &[b"INFO", b"syros"])? {
            ReceivedReply::Bulk(text) => Ok(replicas_in(&String::from_utf8_lossy(&text))),
            _ => Ok(Vec::new()),
        }
    }

    /// Has the cluster know that a server is followed into it, for as long as what is returned is there. What two followers repeat
    /// is done twice, so the second one is refused. (A lost connection is not made again: it is about commands that somebody starts
    /// without thinking of the first one.)
    pub(super) fn begin_following(&mut self) -> Result<Option<Connection>, String> {
        // Connects to an address that answers.
        self.ask(0, &[b"PING"])?;
        let mut presence = Connection::open(&self.addresses[self.next], &self.login)?;
        let failed = |error: Error| format!("the cluster was lost: {error}");
        if let ReceivedReply::Error(error) = presence.ask(&[b"SUBSCRIBE", FOLLOWERS]).map_err(failed)? {
            syros_cli::say!(
                "syros: nobody can tell whether another server is followed into this cluster: {error}"
            );
            return Ok(None);
        }
        match self.ask(0, &[b"PUBSUB", b"NUMSUB", FOLLOWERS])? {
            ReceivedReply::Array(told) if matches!(told.get(1), Some(ReceivedReply::Integer(2..))) => {
                Err("another syros import --follow writes into this cluster, and what both repeat would be done twice: end it \
                     first"
                    .to_owned())
            }
            _ => Ok(Some(presence)),
        }
    }

    /// One command, in its turn, and its reply, once the cluster takes commands. It may be executed twice.
    pub(super) fn ask(&mut self, database: u8, words: &[&[u8]]) -> Result<ReceivedReply, String> {
        self.drain()?;
        let mut bytes = Vec::new();
        put_command(&mut bytes, words);
        self.progressed = Instant::now();
        loop {
            let asked = self.asked(database, &bytes)?;
            match asked {
                Ok(ReceivedReply::Error(error)) if is_temporary(&error) => self.wait(&error)?,
                Ok(reply) => return Ok(reply),
                Err(error) => self.lost(&error)?,
            }
        }
    }

    /// The first error says that the cluster cannot be reached at all, the second one that the connection was lost.
    fn asked(&mut self, database: u8, bytes: &[u8]) -> Result<Result<ReceivedReply, Error>, String> {
        let select = select(database);
        let is_there = self.connected()? && self.database == database;
        let Some(connection) = &mut self.connection else { return Err("there is no connection".to_owned()) };
        if !is_there {
            match connection.send(&select).and_then(|()| connection.reply()) {
                Ok(ReceivedReply::Error(error)) => return Ok(Ok(ReceivedReply::Error(error))),
                Ok(_) => self.database = database,
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(connection.send(bytes).and_then(|()| connection.reply()))
    }

    /// Patience with the cluster begins anew.
    pub(super) fn begin_patience(&mut self) {
        self.progressed = Instant::now();
    }

    /// Commands behind each other, of which the first one chooses database 0 if nothing else has, and their replies. The second
    /// error says how the connection was lost, with whatever was done on it.
    pub(super) fn converse(
        &mut self,
        commands: &[Vec<Vec<u8>>],
    ) -> Result<Result<Vec<ReceivedReply>, String>, String> {
        self.connected()?;
        let Some(connection) = &mut self.connection else { return Err("there is no connection".to_owned()) };
        let mut bytes = Vec::new();
        commands.iter().for_each(|words| put_command(&mut bytes, words));
        let replies =
            connection.send(&bytes).and_then(|()| commands.iter().map(|_| connection.reply()).collect());
        self.database = 0;
        match replies {
            Ok(replies) => Ok(Ok(replies)),
            Err(error) => {
                self.lost(&error)?;
                Ok(Err(error.to_string()))
            }
        }
    }

    /// Sends a command that may be executed twice, and in whatever order with others.
    pub(super) fn submit(&mut self, place: Place, words: &[impl AsRef<[u8]>]) -> Result<(), String> {
        self.submit_as(Kind::Free, place, words)
    }

    /// Sends a command that must be executed once, and behind those that were sent before.
    pub(super) fn submit_ordered(&mut self, place: Place, words: &[impl AsRef<[u8]>]) -> Result<(), String> {
        self.submit_as(Kind::Ordered, place, words)
    }

    fn submit_as(&mut self, kind: Kind, place: Place, words: &[impl AsRef<[u8]>]) -> Result<(), String> {
        let mut bytes = Vec::with_capacity(words.iter().map(|word| word.as_ref().len() + 16).sum());
        put_command(&mut bytes, words);
        let database =
            u8::try_from(place.database).map_err(|_| format!("{}: no such database", name(&place)))?;
        if self.sent.is_empty() {
            self.progressed = Instant::now();
        }
        self.queue(Sent { bytes, database, place, kind })?;
        if self.sent_bytes > WINDOW_BYTES || self.sent.len() > WINDOW_COMMANDS {
            self.settle_to(WINDOW_BYTES / 2, WINDOW_COMMANDS / 2)?;
        }
        if self.again.is_empty() { Ok(()) } else { self.drain() }
    }

    /// Puts a command behind those that are under way.
    fn queue(&mut self, sent: Sent) -> Result<(), String> {
        self.connected()?;
        if self.database != sent.database {
            let select = Sent {
                bytes: select(sent.database),
                database: sent.database,
                place: sent.place.clone(),
                kind: Kind::Select,
            };
            self.database = sent.database;
            self.push(select);
        }
        self.push(sent);
        if self.unwritten.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn push(&mut self, sent: Sent) {
        self.unwritten.extend_from_slice(&sent.bytes);
        self.sent_bytes += sent.bytes.len();
        self.sent.push_back(sent);
    }

    /// Writes what has not been written.
    fn write(&mut self) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let written = connection.send(&self.unwritten);
        self.unwritten.clear();
        match written {
            Ok(()) => Ok(()),
            Err(error) => self.resend(&error),
        }
    }

    /// Waits until nothing is under way.
    pub(super) fn drain(&mut self) -> Result<(), String> {
        loop {
            self.settle_to(0, 0)?;
            if self.again.is_empty() {
                return Ok(());
            }
            let refusal = std::mem::take(&mut self.refusal);
            self.wait(&refusal)?;
            for sent in std::mem::take(&mut self.again) {
                self.queue(sent)?;
            }
        }
    }

    /// What has become of commands since this was asked last.
    pub(super) fn take_outcome(&mut self) -> Outcome {
        std::mem::take(&mut self.outcome)
    }

    /// Reads replies until so much is under way at most.
    fn settle_to(&mut self, bytes: usize, commands: usize) -> Result<(), String> {
        self.write()?;
        while !self.sent.is_empty() && (self.sent_bytes > bytes || self.sent.len() > commands) {
            let Some(connection) = &mut self.connection else {
                return Err("there is no connection".to_owned());
            };
            match connection.reply() {
                Ok(reply) => self.on_reply(reply)?,
                Err(error) => self.resend(&error)?,
            }
        }
        Ok(())
    }

    fn on_reply(&mut self, reply: ReceivedReply) -> Result<(), String> {
        let Some(sent) = self.sent.pop_front() else {
            return Err("the cluster answers what nobody asked".to_owned());
        };
        self.sent_bytes -= sent.bytes.len();
        let Some(error) = error_of(reply) else {
            self.progressed = Instant::now();
            return Ok(());
        };
        if is_temporary(&error) && sent.kind == Kind::Free {
            self.again.push(sent);
            self.refusal = error;
            return Ok(());
        }
        if sent.kind != Kind::Free || is_fatal(&error) {
            return Err(format!("{} in the cluster: {error}", name(&sent.place)));
        }
        self.progressed = Instant::now();
        self.outcome.failures.push(Failure { place: sent.place, error });
        Ok(())
    }

    /// Waits, unless that has taken too long.
    pub(super) fn wait(&mut self, why: &str) -> Result<(), String> {
        if self.progressed.elapsed() > PATIENCE {
            return Err(format!("the cluster has taken nothing for {} s: {why}", PATIENCE.as_secs()));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// The connection was lost: another one, to the next address.
    fn lost(&mut self, error: &Error) -> Result<(), String> {
        syros_cli::say!("syros: {}: {error}; trying again", self.addresses[self.next]);
        self.connection = None;
        self.next = (self.next + 1) % self.addresses.len();
        self.wait(&error.to_string())
    }

    /// The connection was lost: another one, and everything that is under way goes again.
    fn resend(&mut self, error: &Error) -> Result<(), String> {
        if let Some(ordered) = self.sent.iter().find(|sent| sent.kind == Kind::Ordered) {
            return Err(format!(
                "{}: {error}, and a part of the value may be there or not: run the command again, with --replace",
                name(&ordered.place)
            ));
        }
        self.lost(error)?;
        self.unwritten.clear();
        self.sent_bytes = 0;
        for sent in std::mem::take(&mut self.sent) {
            if sent.kind != Kind::Select {
                self.queue(sent)?;
            }
        }
        self.write()
    }

    /// Connects, if there is no connection; true if there was one already.
    fn connected(&mut self) -> Result<bool, String> {
        let mut was_there = true;
        while self.connection.is_none() {
            was_there = false;
            match Connection::open(&self.addresses[self.next], &self.login) {
                Ok(connection) => {
                    (self.connection, self.database) = (Some(connection), 0);
                    self.was_connected = true;
                }
                Err(problem) => {
                    self.next = (self.next + 1) % self.addresses.len();
                    if self.was_connected {
                        self.wait(&problem)?;
                    } else if self.next == 0 {
                        return Err(problem);
                    }
                }
            }
        }
        Ok(was_there)
    }
}

/// The error that a reply is, or the first one in what EXEC answers.
fn error_of(reply: ReceivedReply) -> Option<String> {
    match reply {
        ReceivedReply::Error(error) => Some(error),
        ReceivedReply::Array(replies) => replies.into_iter().find_map(error_of),
        _ => None,
    }
}

/// True if INFO has the section that only Syros has.
fn is_info_of_syros(text: &str) -> bool {
    text.lines().any(|line| line.trim_end().eq_ignore_ascii_case("# syros"))
}

fn select(database: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_command(&mut bytes, &[&b"SELECT"[..], database.to_string().as_bytes()]);
    bytes
}

/// True if the command may be tried again: it was not executed, or may have been, and the cluster is between leaders.
pub(super) fn is_temporary(error: &str) -> bool {
    ["TRYAGAIN", "NOQUORUM", "LOADING", "UNKNOWN", "TIMEOUT", "OVERLOADED"]
        .iter()
        .any(|code| error.starts_with(code))
}

/// True if nothing else will be executed, either.
fn is_fatal(error: &str) -> bool {
    ["OOM", "NOAUTH", "NOPERM", "DENIED", "MISCONF"].iter().any(|code| error.starts_with(code))
        || error.contains("unknown command")
}
