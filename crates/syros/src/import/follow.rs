//! From a server, as its replica: its file first, then every update, until somebody ends it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use syros_resp::{ReceivedReply, read_reply};
use syros_types::Database;

use super::address::Server;
use super::connection::Login;
use super::from_file::CheckedFile;
use super::loader::no_database;
use super::repeater::{Repeater, Update};
use super::replication::{Replication, spool_in};
use super::target::Existing;
use super::{Options, loader};

/// Most memory for an update: Redis takes as much from one client.
const UPDATE_BYTES_MAX: u64 = 1 << 30;

/// Updates go to the cluster when there are so many, or so many bytes of them: a transaction that takes long holds up others.
const UPDATES_AT_A_TIME: usize = 256;
const BYTES_AT_A_TIME: usize = 1 << 20;

/// A transaction of the server stays one, up to so many bytes.
const TRANSACTION_BYTES: usize = 8 << 20;

/// How often it is told how far the cluster is behind.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long to wait for the next update.
const PAUSE: Duration = Duration::from_millis(20);

/// Imports what a server has, and follows it.
pub(super) fn import(
    options: &Options,
    server: &Server,
    password: Option<String>,
) -> Result<ExitCode, String> {
    if server.database.is_some() {
        return Err("--follow imports all databases: a replica gets all of them".to_owned());
    }
    // Before the server works for it.
    let mut target = options.target()?;
    let _presence = target.begin_following()?;
    let login = Login { user: server.user.clone(), password, credentials: None };
    let spool = spool_in(&options.spool.clone().unwrap_or_else(std::env::temp_dir));
    let (sender, ended) = channel();
    let follows = watch(sender, spool.clone())?;
    let replication = Replication::begin(&server.address, &login, spool)?;
    let path = replication.file();
    let target = CheckedFile::check(options, &path)?.send(loader(options, target))?;
    replication.remove_file();
    follows.store(true, Ordering::Release);
    let follower = Follower {
        input: BufReader::new(replication),
        repeater: Repeater::begin(target)?,
        collected: Vec::new(),
        collected_bytes: 0,
        is_in_transaction: false,
        is_alone: options.existing() == Existing::None,
        database: 0,
        updates: 0,
        was_in_step: false,
        told: Instant::now(),
    };
    let updates = follower.run(&ended, &server.address)?;
    syros_cli::tell!("followed {updates} updates; the cluster has all that had come when this was ended");
    Ok(ExitCode::SUCCESS)
}

/// Watches signals. What is returned says whether they end the following; until then they end the program, and nothing stays of
/// what has been received.
fn watch(sender: Sender<i32>, spool: PathBuf) -> Result<Arc<AtomicBool>, String> {
    /// What shells add to the number of the signal that has ended a program.
    const ENDED_BY_SIGNAL: i32 = 128;
    let follows = Arc::new(AtomicBool::new(false));
    let is_following = Arc::clone(&follows);
    syros_cli::signals::watch(move |signal| {
        if is_following.load(Ordering::Acquire) {
            // Nobody listens any more: the program is about to end anyway.
            let _ = sender.send(signal);
            return;
        }
        let _ = std::fs::remove_dir_all(&spool);
        syros_cli::say!(
            "syros: ended before the cluster had everything: run the command again, with --replace or an empty cluster"
        );
        std::process::exit(ENDED_BY_SIGNAL + signal);
    })?;
    Ok(follows)
}

/// Repeats updates in the cluster.
struct Follower {
    input: BufReader<Replication>,
    repeater: Repeater,
    /// Updates that have been read, and the cluster does not have.
    collected: Vec<Update>,
    collected_bytes: usize,
    /// They end in the middle of a transaction.
    is_in_transaction: bool,
    /// The cluster had no keys of its own.
    is_alone: bool,
    /// The database that updates are of.
    database: u64,
    updates: u64,
    was_in_step: bool,
    told: Instant,
}

impl Follower {
    /// Goes on until a signal comes; how many updates there were.
    fn run(mut self, ended: &Receiver<i32>, address: &str) -> Result<u64, String> {
        let mut end = None;
        loop {
            if end.is_none() && ended.try_recv().is_ok() {
                end = Some(self.input.get_ref().taken());
                syros_cli::say!("syros: repeating what has come until now");
            }
            if end.is_some_and(|end| self.read_up_to() >= end) {
                self.settle()?;
                self.repeater.end()?;
                return Ok(self.updates);
            }
            if self.input.buffer().is_empty() && self.input.get_ref().behind() == 0 {
                self.wait(address)?;
            } else {
                self.update()?;
            }
            self.tell(address);
        }
    }

    /// Bytes of updates that have been read.
    fn read_up_to(&self) -> u64 {
        let replication = self.input.get_ref();
        replication.taken() - replication.behind() - self.input.buffer().len() as u64
    }

    /// Sees to it that the cluster has everything that was read.
    fn settle(&mut self) -> Result<(), String> {
        self.collected_bytes = 0;
        self.repeater.execute(&std::mem::take(&mut self.collected))?;
        let repeated = self.read_up_to();
        self.input.get_ref().repeated(repeated);
        Ok(())
    }

    /// Nothing has come: everything that has is put in place, and what comes next is waited for.
    fn wait(&mut self, address: &str) -> Result<(), String> {
        if !self.is_in_transaction {
            self.settle()?;
        }
        if !self.was_in_step {
            self.was_in_step = true;
            syros_cli::say!(
                "syros: the cluster is in step with {address}. To change over: stop what writes there, press Ctrl-C here when nothing \
                 more comes, and start it with the cluster's address"
            );
        }
        if let Some(problem) = self.input.get_ref().failure() {
            self.repeater.end()?;
            return Err(format!("{problem}; the cluster has what came until then"));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }

    fn tell(&mut self, address: &str) {
        if self.told.elapsed() >= INTERVAL {
            self.told = Instant::now();
            let behind = self.input.get_ref().taken() - self.read_up_to();
            syros_cli::say!("syros: followed {} updates of {address}, {behind} bytes behind", self.updates);
        }
    }

    /// Repeats the next update.
    fn update(&mut self) -> Result<(), String> {
        let words = self.words()?;
        let Some(name) = words.first().map(|name| name.to_ascii_uppercase()) else { return Ok(()) };
        match &name[..] {
            b"SELECT" => {
                let number = words.get(1).and_then(|word| str::from_utf8(word).ok()?.parse().ok());
                self.database = number.ok_or("SELECT without a number")?;
            }
            b"MULTI" => self.is_in_transaction = true,
            b"EXEC" => self.is_in_transaction = false,
            // What servers tell each other, and messages to subscribers.
            b"PING" | b"REPLCONF" | b"PUBLISH" | b"SPUBLISH" => {}
            b"FLUSHALL" | b"FLUSHDB" | b"SWAPDB" if !self.is_alone => {
                return Err(format!(
                    "the server was told {}, which is not repeated: the cluster has keys of its own. It has what came before",
                    name.escape_ascii()
                ));
            }
            _ => {
                if self.database >= Database::COUNT as u64 {
                    return Err(format!(
                        "an update is of database {}: {}",
                        self.database,
                        no_database(self.database)
                    ));
                }
                self.updates += 1;
                self.collected_bytes += words.iter().map(Vec::len).sum::<usize>();
                self.collected.push(Update { database: self.database, words });
            }
        }
        let is_much = self.collected.len() >= UPDATES_AT_A_TIME || self.collected_bytes >= BYTES_AT_A_TIME;
        let is_too_much = self.collected_bytes >= TRANSACTION_BYTES;
        if is_much && !self.is_in_transaction || is_too_much { self.settle() } else { Ok(()) }
    }

    /// The words of the next update.
    fn words(&mut self) -> Result<Vec<Vec<u8>>, String> {
        // A server may send an empty line to see whether its replica is there.
        while self.input.fill_buf().map_err(|error| error.to_string())?.first() == Some(&b'\n') {
            self.input.consume(1);
        }
        let reply = read_reply(&mut self.input, UPDATE_BYTES_MAX);
        let ReceivedReply::Array(words) = reply.map_err(|error| error.to_string())? else {
            return Err("the server sends something that is no update".to_owned());
        };
        let word = |word| if let ReceivedReply::Bulk(word) = word { Some(word) } else { None };
        let words: Option<Vec<_>> = words.into_iter().map(word).collect();
        words.ok_or_else(|| "the server sends an update that has no words".to_owned())
    }
}
