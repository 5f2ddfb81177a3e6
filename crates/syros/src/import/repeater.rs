//! Updates that are executed once each in the cluster, whatever becomes of its leader and of the connection.
//!
//! Some updates go in one transaction, which also writes its number into a key of its own, the *marker*. The transaction watches the
//! marker, which must have the number before. So each transaction is executed once: one that was given up for lost, and is executed
//! late, finds that the marker has changed, or changes it for the one that is sent in its place.

use syros_resp::ReceivedReply;

use super::target::{Target, is_temporary};

/// What markers are called; a random number follows.
const MARKER: &str = "syros:import:";

/// An update, as the server has sent it.
pub(super) struct Update {
    pub(super) database: u64,
    pub(super) words: Vec<Vec<u8>>,
}

/// What became of a transaction.
enum Attempt {
    Done,
    /// Perhaps nothing: it may be sent again.
    Again(String),
    /// Nothing, for this reason, and not for the moment only.
    Refused(String),
}

/// Repeats updates in the cluster.
pub(super) struct Repeater {
    target: Target,
    marker: Vec<u8>,
    /// Transactions that have been executed: the number in the marker.
    done: u64,
}

impl Repeater {
    pub(super) fn begin(target: Target) -> Result<Self, String> {
        let marker = format!("{MARKER}{:016x}", crate::backup::random_id()?).into_bytes();
        let mut repeater = Self { target, marker, done: 0 };
        repeater.mark()?;
        Ok(repeater)
    }

    /// Writes the number into the marker.
    fn mark(&mut self) -> Result<(), String> {
        let number = self.done.to_string();
        let marked = self.target.ask(0, &[b"SET", &self.marker, number.as_bytes()])?;
        if let ReceivedReply::Error(error) = marked {
            return Err(format!("the cluster refuses to note how far it is: {error}"));
        }
        Ok(())
    }

    /// Executes these updates, in their order and at one moment, if that is possible.
    pub(super) fn execute(&mut self, updates: &[Update]) -> Result<(), String> {
        if updates.is_empty() {
            return Ok(());
        }
        self.target.begin_patience();
        loop {
            match self.attempt(updates)? {
                Attempt::Done => {
                    self.done += 1;
                    return Ok(());
                }
                Attempt::Again(why) => self.target.wait(&why)?,
                Attempt::Refused(why) => return self.execute_apart(updates, &why),
            }
        }
    }

    /// Executes updates that are too much for one transaction.
    fn execute_apart(&mut self, updates: &[Update], why: &str) -> Result<(), String> {
        if let [update] = updates {
            return Err(format!("the cluster refuses {}: {why}. It has what came before", name(update)));
        }
        let (first, second) = updates.split_at(updates.len() / 2);
        self.execute(first)?;
        self.execute(second)
    }

    fn attempt(&mut self, updates: &[Update]) -> Result<Attempt, String> {
        if let Some(known) = self.look()? {
            return Ok(known);
        }
        let commands = self.transaction(updates);
        let mut replies = match self.target.converse(&commands)? {
            Ok(replies) => replies,
            Err(lost) => return Ok(Attempt::Again(lost)),
        };
        match replies.pop() {
            // What MULTI answers is not among them.
            Some(ReceivedReply::Array(replies)) => check(&replies, &commands[1..]).map(|()| Attempt::Done),
            Some(ReceivedReply::Nil) => Ok(Attempt::Again("its updates were late".to_owned())),
            Some(ReceivedReply::Error(error)) => {
                // What was not queued says more than EXEC.
                let why = replies.into_iter().find_map(error_of).unwrap_or(error);
                Ok(if is_temporary(&why) { Attempt::Again(why) } else { Attempt::Refused(why) })
            }
            other => Err(format!("the cluster answers a transaction with {other:?}")),
        }
    }

    /// Watches the marker, and looks at it; `None` if it has the number of the transaction before.
    fn look(&mut self) -> Result<Option<Attempt>, String> {
        let commands =
            [words(&[b"SELECT", b"0"]), words(&[b"WATCH", &self.marker]), words(&[b"GET", &self.marker])];
        let found = match self.target.converse(&commands)? {
            Ok(mut replies) => replies.pop(),
            Err(lost) => return Ok(Some(Attempt::Again(lost))),
        };
        match found {
            Some(ReceivedReply::Bulk(number)) if number == digits(self.done) => Ok(None),
            Some(ReceivedReply::Bulk(number)) if number == digits(self.done + 1) => Ok(Some(Attempt::Done)),
            Some(ReceivedReply::Error(error)) if is_temporary(&error) => Ok(Some(Attempt::Again(error))),
            other => Err(format!(
                "somebody else has changed the key {}, which notes how far the cluster is: {other:?}",
                self.marker.escape_ascii()
            )),
        }
    }

    /// The commands of a transaction with these updates.
    fn transaction(&self, updates: &[Update]) -> Vec<Vec<Vec<u8>>> {
        let mut commands = vec![words(&[b"MULTI"])];
        let mut database = 0;
        for update in updates {
            if update.database != database {
                database = update.database;
                commands.push(words(&[b"SELECT", database.to_string().as_bytes()]));
            }
            commands.push(update.words.clone());
        }
        let marked = words(&[b"SET", &self.marker, &digits(self.done + 1)]);
        commands.extend([words(&[b"SELECT", b"0"]), marked, words(&[b"EXEC"])]);
        commands
    }

    /// Nothing follows: the marker goes.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.target.ask(0, &[b"DEL", &self.marker]).map(drop)
    }
}

/// An error if one of these commands has failed.
fn check(replies: &[ReceivedReply], commands: &[Vec<Vec<u8>>]) -> Result<(), String> {
    for (reply, words) in replies.iter().zip(commands) {
        if let ReceivedReply::Error(error) = reply {
            return Err(format!("the cluster refuses an update, {}: {error}", shown(words)));
        }
    }
    Ok(())
}

fn error_of(reply: ReceivedReply) -> Option<String> {
    if let ReceivedReply::Error(error) = reply { Some(error) } else { None }
}

fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

fn digits(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn name(update: &Update) -> String {
    format!("an update of database {}, {}", update.database, shown(&update.words))
}

/// The first words of a command.
fn shown(words: &[Vec<u8>]) -> String {
    /// More would say no more.
    const SHOWN_BYTES_MAX: usize = 100;
    let shown =
        words.iter().take(2).map(|word| word[..word.len().min(SHOWN_BYTES_MAX)].escape_ascii().to_string());
    shown.collect::<Vec<_>>().join(" ")
}
