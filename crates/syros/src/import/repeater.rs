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
        let (before, after) = (self.done.to_string().into_bytes(), (self.done + 1).to_string().into_bytes());
        let words = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
        let look =
            [words(&[b"SELECT", b"0"]), words(&[b"WATCH", &self.marker]), words(&[b"GET", &self.marker])];
        let found = match self.target.converse(&look)? {
            Ok(mut replies) => replies.pop(),
            Err(lost) => return Ok(Attempt::Again(lost)),
        };
        match found {
            Some(ReceivedReply::Bulk(number)) if number == before => {}
            Some(ReceivedReply::Bulk(number)) if number == after => return Ok(Attempt::Done),
            Some(ReceivedReply::Error(error)) if is_temporary(&error) => return Ok(Attempt::Again(error)),
            other => {
                let marker = self.marker.escape_ascii();
                return Err(format!(
                    "somebody else has changed the key {marker}, which notes how far the cluster is: {other:?}"
                ));
            }
        }
        let mut all = vec![words(&[b"MULTI"])];
        let mut database = 0;
        for update in updates {
            if update.database != database {
                database = update.database;
                all.push(words(&[b"SELECT", database.to_string().as_bytes()]));
            }
            all.push(update.words.clone());
        }
        all.extend([words(&[b"SELECT", b"0"]), words(&[b"SET", &self.marker, &after]), words(&[b"EXEC"])]);
        let mut replies = match self.target.converse(&all)? {
            Ok(replies) => replies,
            Err(lost) => return Ok(Attempt::Again(lost)),
        };
        let executed = replies.pop();
        let unqueued = replies
            .into_iter()
            .find_map(|reply| if let ReceivedReply::Error(error) = reply { Some(error) } else { None });
        match executed {
            Some(ReceivedReply::Array(replies)) => {
                // What MULTI answers is not among them.
                let named = replies.iter().zip(&all[1..]).find_map(|(reply, words)| match reply {
                    ReceivedReply::Error(error) => Some((error, words)),
                    _ => None,
                });
                match named {
                    Some((error, words)) => {
                        Err(format!("the cluster refuses an update, {}: {error}", shown(words)))
                    }
                    None => Ok(Attempt::Done),
                }
            }
            Some(ReceivedReply::Nil) => Ok(Attempt::Again("its updates were late".to_owned())),
            Some(ReceivedReply::Error(error)) => {
                let why = unqueued.unwrap_or(error);
                Ok(if is_temporary(&why) { Attempt::Again(why) } else { Attempt::Refused(why) })
            }
            other => Err(format!("the cluster answers a transaction with {other:?}")),
        }
    }

    /// Nothing follows: the marker goes.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.target.ask(0, &[b"DEL", &self.marker]).map(drop)
    }
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
