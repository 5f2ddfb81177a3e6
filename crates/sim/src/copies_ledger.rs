//! What Redis clients keep copies of (CLIENT TRACKING), and whether they may: a reply never differs from a copy that its
//! client has not been told to drop, and in the end no copy is old.

use crate::resp_client::{Received, reply_of};
use std::collections::{BTreeMap, VecDeque};
use syros_commands::{Parsed, Reply, parse};

/// What a client reads: the words of the command. The last one is the key.
pub(crate) type Question = [Vec<u8>; 2];

/// What a connection waits for.
#[derive(Clone, Debug)]
enum Awaited {
    /// The reply to HELLO, or to CLIENT TRACKING.
    Preparation,
    /// The answer to a question.
    Answer(Question),
}

/// A connection that tracks.
#[derive(Debug, Default)]
struct Keeper {
    /// The client is told of all keys that begin so, and keeps copies of no others.
    prefix: Option<Vec<u8>>,
    awaited: VecDeque<Awaited>,
    copies: BTreeMap<Question, Received>,
}

/// The connections that track, by the place of their process and their address there.
#[derive(Debug, Default)]
pub(crate) struct CopiesLedger {
    keepers: BTreeMap<(usize, u64), Keeper>,
    /// Answers that a copy was there to be compared with.
    pub(crate) compared: u64,
    /// Copies that clients were told to drop.
    pub(crate) dropped: u64,
}

/// The body of a question, as a replica reads it.
pub(crate) fn body_of(question: &Question) -> Vec<u8> {
    let words = question.each_ref().map(Vec::as_slice);
    let mut body = Vec::new();
    if let Ok(Parsed::Data(operation)) = parse(&words) {
        operation.encode(&mut body);
    }
    body
}

/// True if a reply says nothing of a key.
fn is_refusal(reply: &Received) -> bool {
    matches!(reply, Received::Error(text) if !text.starts_with(b"WRONGTYPE"))
}

impl CopiesLedger {
    /// A connection is about to track; it waits for two replies.
    pub(crate) fn begin(&mut self, who: (usize, u64), prefix: Option<Vec<u8>>) {
        let awaited = VecDeque::from([Awaited::Preparation, Awaited::Preparation]);
        self.keepers.insert(who, Keeper { prefix, awaited, copies: BTreeMap::new() });
    }

    /// A connection asks something.
    pub(crate) fn ask(&mut self, who: (usize, u64), question: Question) {
        if let Some(keeper) = self.keepers.get_mut(&who) {
            keeper.awaited.push_back(Awaited::Answer(question));
        }
    }

    /// A connection is gone.
    pub(crate) fn gone(&mut self, who: (usize, u64)) {
        self.keepers.remove(&who);
    }

    /// All connections of a process are gone.
    pub(crate) fn process_gone(&mut self, slot: usize) {
        self.keepers.retain(|(at, _), _| *at != slot);
    }

    /// True if a connection waits for an answer.
    pub(crate) fn awaits(&self, who: (usize, u64)) -> bool {
        self.keepers.get(&who).is_some_and(|keeper| !keeper.awaited.is_empty())
    }

    /// True if some connection does.
    pub(crate) fn is_busy(&self) -> bool {
        self.keepers.values().any(|keeper| !keeper.awaited.is_empty())
    }

    /// A connection hears something.
    ///
    /// # Errors
    /// Why it must not have been told that.
    pub(crate) fn hear(&mut self, who: (usize, u64), what: Received) -> Result<(), String> {
        let Some(keeper) = self.keepers.get_mut(&who) else { return Ok(()) };
        if let Received::Push(words) = what {
            self.dropped += keeper.drop_copies(words)?;
            return Ok(());
        }
        match keeper.awaited.pop_front() {
            None => Err(format!("a client that keeps copies and asks nothing hears {what:?}")),
            Some(Awaited::Preparation) if matches!(what, Received::Error(_)) => {
                Err(format!("a client that is to keep copies hears {what:?}"))
            }
            Some(Awaited::Preparation) => Ok(()),
            Some(Awaited::Answer(_)) if is_refusal(&what) => Ok(()),
            Some(Awaited::Answer(question)) => {
                if let Some(copy) = keeper.copies.get(&question) {
                    self.compared += 1;
                    if *copy != what {
                        return Err(format!(
                            "client {who:x?} hears {what:?} of {}, and keeps {copy:?}, which nobody has told it to drop",
                            question.join(&b' ').escape_ascii()
                        ));
                    }
                }
                if keeper.prefix.as_ref().is_none_or(|prefix| question[1].starts_with(prefix)) {
                    keeper.copies.insert(question, what);
                }
                Ok(())
            }
        }
    }

    /// When nothing changes any more: every copy is what `read` says.
    ///
    /// # Errors
    /// Which copy is old.
    pub(crate) fn judge(&self, read: impl Fn(&[u8]) -> Option<Reply>) -> Result<(), String> {
        for (who, keeper) in &self.keepers {
            for (question, copy) in &keeper.copies {
                let Some(present) = read(&body_of(question)) else { continue };
                if reply_of(copy.clone()) != present {
                    return Err(format!(
                        "client {who:x?} keeps {copy:?} of {}, which is {present:?}",
                        question.join(&b' ').escape_ascii()
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Keeper {
    /// The client is told to drop copies; how many.
    fn drop_copies(&mut self, words: Vec<Received>) -> Result<u64, String> {
        let before = self.copies.len();
        match <[Received; 2]>::try_from(words) {
            Ok([Received::Bulk(kind), Received::Nil]) if kind == b"invalidate" => self.copies.clear(),
            Ok([Received::Bulk(kind), Received::Array(keys)]) if kind == b"invalidate" => {
                let is_named = |key: &Vec<u8>| keys.iter().any(|name| *name == Received::Bulk(key.clone()));
                self.copies.retain(|[_, key], _| !is_named(key));
            }
            other => return Err(format!("a client that keeps copies is told {other:?}")),
        }
        Ok((before - self.copies.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: (usize, u64) = (0, 7);

    fn question(key: &str) -> Question {
        [b"GET".to_vec(), key.as_bytes().to_vec()]
    }

    fn bulk(text: &str) -> Received {
        Received::Bulk(text.as_bytes().to_vec())
    }

    fn told(keys: &[&str]) -> Received {
        let keys = keys.iter().map(|key| bulk(key)).collect();
        Received::Push(vec![bulk("invalidate"), Received::Array(keys)])
    }

    /// A client that keeps copies of two keys.
    fn ledger(prefix: Option<&str>) -> CopiesLedger {
        let mut ledger = CopiesLedger::default();
        ledger.begin(WHO, prefix.map(|prefix| prefix.as_bytes().to_vec()));
        for reply in [Received::Array(Vec::new()), Received::Simple(b"OK".to_vec())] {
            assert_eq!(ledger.hear(WHO, reply), Ok(()));
        }
        for key in ["a", "b"] {
            ledger.ask(WHO, question(key));
            assert_eq!(ledger.hear(WHO, bulk("1")), Ok(()));
        }
        ledger
    }

    #[test]
    fn what_is_dropped_in_time_may_change() {
        let mut ledger = ledger(None);
        assert_eq!(ledger.hear(WHO, told(&["a", "other"])), Ok(()));
        ledger.ask(WHO, question("a"));
        assert_eq!(ledger.hear(WHO, bulk("2")), Ok(()));
        ledger.ask(WHO, question("b"));
        assert_eq!(ledger.hear(WHO, Received::Error(b"TIMEOUT no majority".to_vec())), Ok(()));
        ledger.ask(WHO, question("b"));
        assert_eq!(ledger.hear(WHO, bulk("1")), Ok(()));
        assert_eq!((ledger.compared, ledger.dropped, ledger.is_busy()), (1, 1, false));
    }

    #[test]
    fn what_is_dropped_too_late_or_never_is_found() {
        let mut late = ledger(None);
        late.ask(WHO, question("a"));
        assert!(late.hear(WHO, bulk("2")).is_err());
        let old = ledger(None);
        let read = |body: &[u8]| {
            let is_a = body == body_of(&question("a"));
            Some(Reply::Bulk(if is_a { b"1".to_vec() } else { b"2".to_vec() }))
        };
        assert!(old.judge(read).is_err_and(|problem| problem.contains("GET b")));
        let mut dropped = ledger(None);
        assert_eq!(dropped.hear(WHO, Received::Push(vec![bulk("invalidate"), Received::Nil])), Ok(()));
        assert_eq!((dropped.judge(read), dropped.dropped), (Ok(()), 2));
        assert_eq!(ledger(Some("a")).judge(read), Ok(()), "it keeps no copy of the other key");
    }
}
