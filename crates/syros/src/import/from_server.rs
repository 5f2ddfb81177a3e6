//! From a server that runs: SCAN, and for each key DUMP and its expiry.

use std::io::{Error, ErrorKind, Read as _};
use std::process::ExitCode;

use syros_commands::rdb::restore_libraries;
use syros_rdb::{Place, RdbError, has_known_version, read_value, with_known_version};
use syros_resp::{BulkHead, ReceivedReply, end_bulk, read_bulk, read_bulk_head};
use syros_types::limits::VALUE_BYTES_MAX;

use super::account::name;
use super::address::Server;
use super::connection::{Connection, Login};
use super::loader::{Loader, now_ms};
use super::target::Target;
use super::{Options, loader};
use crate::redis_command::put_command;
use crate::status::replicas_in;

/// So many keys are asked for at a time, as long as their values are small.
const KEYS_AT_A_TIME: usize = 512;

/// Values of about so many bytes together are asked for at a time: the server has them in memory meanwhile.
const BYTES_AT_A_TIME: usize = 4 << 20;

/// How a server says when a key expires.
#[derive(Clone, Copy)]
enum ExpiryQuestion {
    /// The time, from Redis 7 on.
    Time,
    /// How much longer it is there.
    Left,
}

/// A server.
struct Source {
    address: String,
    connection: Connection,
    question: ExpiryQuestion,
    /// Keys that are asked for at a time.
    keys: usize,
}

/// Imports what a server has.
pub(super) fn import(
    options: &Options,
    server: &Server,
    password: Option<String>,
) -> Result<ExitCode, String> {
    let login = Login { user: server.user.clone(), password, credentials: None };
    let connection = Connection::open(&server.address, &login)?;
    let (address, question) = (server.address.clone(), ExpiryQuestion::Time);
    let mut source = Source { address, connection, question, keys: KEYS_AT_A_TIME };
    source.choose_question()?;
    let databases = source.databases()?;
    let databases: Vec<(u64, u64)> = databases
        .into_iter()
        .filter(|(number, _)| server.database.is_none_or(|wanted| wanted == *number))
        .collect();
    let total: u64 = databases.iter().map(|(_, keys)| keys).sum();
    source.warn_of_cluster()?;
    syros_cli::say!("syros: {} has {total} keys in {} databases", server.address, databases.len());
    let mut target = options.target()?;
    source.refuse_itself(&mut target)?;
    if options.dry_run {
        syros_cli::tell!("nothing was written; to be imported: about {total} keys");
        return Ok(ExitCode::SUCCESS);
    }
    let mut loader = loader(options, target);
    let mut load = || {
        source.libraries(&mut loader)?;
        databases.iter().try_for_each(|(database, _)| source.database(*database, &mut loader))
    };
    load().map_err(|problem: String| {
        format!(
            "{problem}. The import is not complete: the cluster has a part of the keys. Run the command again, with --replace"
        )
    })?;
    let (account, seconds, _) = loader.finish()?;
    account.print(seconds);
    Ok(ExitCode::SUCCESS)
}

impl Source {
    fn failed(&self, error: &Error) -> String {
        failed(&self.address, error)
    }

    fn ask(&mut self, words: &[&[u8]]) -> Result<ReceivedReply, String> {
        self.connection.ask(words).map_err(|error| self.failed(&error))
    }

    /// As [`Self::ask`], where an error is one.
    fn ask_well(&mut self, words: &[&[u8]]) -> Result<ReceivedReply, String> {
        match self.ask(words)? {
            ReceivedReply::Error(error) => Err(format!("{}: {error}", self.address)),
            reply => Ok(reply),
        }
    }

    fn choose_question(&mut self) -> Result<(), String> {
        if let ReceivedReply::Error(error) = self.ask(&[b"PEXPIRETIME", b"syros import asks for no key"])? {
            if !error.contains("unknown command") {
                return Err(format!("{}: {error}", self.address));
            }
            self.question = ExpiryQuestion::Left;
        }
        Ok(())
    }

    /// Databases with keys, and how many.
    fn databases(&mut self) -> Result<Vec<(u64, u64)>, String> {
        let ReceivedReply::Bulk(text) = self.ask_well(&[b"INFO", b"keyspace"])? else {
            return Err(format!("{} does not say which databases it has", self.address));
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = |line: &str| {
            let (number, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
            Some((number.parse().ok()?, rest.split(',').next()?.parse().ok()?))
        };
        Ok(text.lines().filter_map(line).collect())
    }

    /// A cluster that is copied onto itself would have its keys go back to what they were a moment ago.
    fn refuse_itself(&mut self, target: &mut Target) -> Result<(), String> {
        let ReceivedReply::Bulk(text) = self.ask(&[b"INFO", b"syros"])? else { return Ok(()) };
        let (ours, theirs) = (replicas_in(&String::from_utf8_lossy(&text)), target.replicas()?);
        match ours.iter().find(|replica| theirs.contains(replica)) {
            Some(replica) => Err(format!(
                "{} is of the cluster that the data is to come into: both have the replica at {replica}",
                self.address
            )),
            None => Ok(()),
        }
    }

    fn warn_of_cluster(&mut self) -> Result<(), String> {
        if let ReceivedReply::Bulk(text) = self.ask(&[b"INFO", b"cluster"])?
            && String::from_utf8_lossy(&text).contains("cluster_enabled:1")
        {
            syros_cli::say!(
                "syros: {} is one of a Redis cluster, and has a part of its keys: import from each of its primaries, from the \
                 second on with --merge",
                self.address
            );
        }
        Ok(())
    }

    fn libraries(&mut self, loader: &mut Loader) -> Result<(), String> {
        // Servers before Redis 7 have none.
        let ReceivedReply::Bulk(payload) = self.ask(&[b"FUNCTION", b"DUMP"])? else { return Ok(()) };
        let payload = with_known_version(payload).unwrap_or_default();
        let texts = restore_libraries(&payload);
        let texts =
            texts.map_err(|_| format!("{}: what FUNCTION DUMP answers cannot be read", self.address))?;
        texts.iter().try_for_each(|text| loader.library(text))
    }

    /// All keys of a database.
    fn database(&mut self, database: u64, loader: &mut Loader) -> Result<(), String> {
        self.ask_well(&[b"SELECT", database.to_string().as_bytes()])?;
        let mut cursor = b"0".to_vec();
        loop {
            let count = KEYS_AT_A_TIME.to_string();
            let reply = self.ask_well(&[b"SCAN", &cursor, b"COUNT", count.as_bytes()])?;
            let (next, keys) = cursor_and_keys(reply)
                .ok_or_else(|| format!("{}: SCAN answers something else", self.address))?;
            let mut rest = &keys[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(self.keys));
                self.values(database, now, loader)?;
                rest = later;
            }
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// The values of these keys.
    fn values(&mut self, database: u64, keys: &[Vec<u8>], loader: &mut Loader) -> Result<(), String> {
        let mut bytes = Vec::new();
        for key in keys {
            let question: &[u8] = match self.question {
                ExpiryQuestion::Time => b"PEXPIRETIME",
                ExpiryQuestion::Left => b"PTTL",
            };
            put_command(&mut bytes, &[question, key]);
            put_command(&mut bytes, &[&b"DUMP"[..], key]);
        }
        self.connection.send(&bytes).map_err(|error| self.failed(&error))?;
        let before = loader.account.bytes;
        let mut dumped = 0;
        for key in keys {
            dumped += self.value(database, key, loader)?;
        }
        let mean = (dumped + loader.account.bytes - before) / keys.len() as u64 + 1;
        self.keys = (BYTES_AT_A_TIME / mean as usize).clamp(1, KEYS_AT_A_TIME);
        Ok(())
    }

    /// The value of a key, which has been asked for. How many bytes it has, unless the loader counts them.
    fn value(&mut self, database: u64, key: &[u8], loader: &mut Loader) -> Result<u64, String> {
        let expiry_ms = self.expiry()?;
        let place = Place { database, key: key.to_vec(), expiry_ms };
        let input = &mut self.connection.input;
        let failed = |error: &Error| failed(&self.address, error);
        let length = match read_bulk_head(input).map_err(|error| failed(&error))? {
            BulkHead::Bytes(length) => length,
            BulkHead::Nil => {
                loader.account.gone += 1;
                return Ok(0);
            }
            BulkHead::Error(error) => return Err(format!("{}: {error}", self.address)),
        };
        if length <= VALUE_BYTES_MAX as u64 {
            let payload = read_bulk(input, length).map_err(|error| failed(&error))?;
            if has_known_version(&payload) {
                loader.payload(&place, &payload)?;
                return Ok(length);
            }
            load_in_pieces(&place, &payload[..], loader)?;
            return Ok(0);
        }
        let mut rest = input.by_ref().take(length);
        load_in_pieces(&place, &mut rest, loader)?;
        if rest.limit() > 0 {
            return Err(format!("{}: its value is longer than it says", name(&place)));
        }
        end_bulk(input).map_err(|error| failed(&error))?;
        Ok(0)
    }

    /// When the key expires that has been asked for.
    fn expiry(&mut self) -> Result<Option<u64>, String> {
        match self.connection.reply().map_err(|error| self.failed(&error))? {
            ReceivedReply::Integer(number) => Ok(u64::try_from(number).ok().map(|ms| match self.question {
                ExpiryQuestion::Time => ms,
                ExpiryQuestion::Left => now_ms() + ms,
            })),
            other => Err(format!("{}: it does not say when a key expires: {other}", self.address)),
        }
    }
}

/// What went wrong with the connection to a server.
fn failed(address: &str, error: &Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => format!("{address}: it closed the connection"),
        _ => format!("{address}: {error}"),
    }
}

/// Hands on a payload piece by piece.
fn load_in_pieces(place: &Place, payload: impl std::io::Read, loader: &mut Loader) -> Result<(), String> {
    let mut had_pieces = false;
    let read = read_value(payload, |piece| {
        had_pieces = true;
        loader.piece(place, piece).map_err(Problem::Text)
    });
    match read {
        Ok(None) => Ok(()),
        Ok(Some(problem)) => loader.refused(place, &problem, had_pieces),
        Err(Problem::Text(problem)) => Err(problem),
        Err(Problem::Value(error)) => Err(format!("{}: {error}", name(place))),
    }
}

/// Why the value of a key cannot be imported.
enum Problem {
    Value(RdbError),
    Text(String),
}

impl From<RdbError> for Problem {
    fn from(error: RdbError) -> Self {
        Self::Value(error)
    }
}

fn cursor_and_keys(reply: ReceivedReply) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let ReceivedReply::Array(parts) = reply else { return None };
    let [ReceivedReply::Bulk(cursor), ReceivedReply::Array(keys)] = <[_; 2]>::try_from(parts).ok()? else {
        return None;
    };
    let key = |key| if let ReceivedReply::Bulk(key) = key { Some(key) } else { None };
    Some((cursor, keys.into_iter().map(key).collect::<Option<_>>()?))
}
