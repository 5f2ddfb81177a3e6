//! Commands that wait for entries of streams.

use syros_commands::families::{XAwaitParts, XNews, XReadParts, stream_position};
use syros_commands::{Arguments, Command, Head, Operation, Reply, ReplyRef, is_nil_array, operations};
use syros_protocol::message::Body;
use syros_resp::Completion;
use syros_types::{Instant, Now, key_hash_in};

use super::{Reason, WaitEnd, Waits, turns_in};
use crate::front_end::errand::{WaitedKey, WaitedKind};

/// What a command waits for that stands in no queue.
#[derive(Debug)]
pub(super) enum Reader {
    /// XREAD: entries behind these, of each key; of none, before it has been told to wait.
    Entries { behind: Vec<(WaitedKey, u128)> },
    /// XREADGROUP: entries that its group has not got.
    Group,
}

/// A command that its connection is to submit again.
#[derive(Debug)]
pub(in crate::front_end) struct Resubmission {
    pub(in crate::front_end) address: u64,
    pub(in crate::front_end) slot: u64,
    pub(in crate::front_end) body: Body,
}

/// What a reply to a reader says.
enum Found {
    /// Something that its client is to get.
    Answer,
    /// Nothing, and the operation by which reading goes on.
    Nothing { body: Body, behind: Vec<(WaitedKey, u128)> },
}

impl Waits {
    /// The next command that its connection is to submit again.
    pub(in crate::front_end) fn next_resubmission(&mut self, now: Now) -> Option<Resubmission> {
        while let Some(number) = self.resubmissions.pop_front() {
            let Some(wait) = self.waits.get(&number) else { continue };
            let body = at_present(&wait.body, now).unwrap_or_else(|| wait.body.clone());
            return Some(Resubmission { address: wait.address, slot: wait.slot, body });
        }
        None
    }

    /// What has become of an operation of a connection: `None` if it is a command that is to wait now, otherwise how it ends
    /// for the connection.
    pub(in crate::front_end) fn on_read(
        &mut self,
        now: Instant,
        (address, slot): (u64, u64),
        completion: Completion,
    ) -> Option<Completion> {
        let Some(number) = self.by_address.get(&address).copied() else { return Some(completion) };
        let Some(wait) = self.waits.get_mut(&number).filter(|wait| wait.slot == slot) else {
            return Some(completion);
        };
        let Some(reader) = &mut wait.reader else { return Some(completion) };
        wait.is_asking = false;
        let stood = wait.stands_since.is_some();
        let end = match (completion, wait.ends) {
            (Completion::Reply(reply), _) => match found(&wait.body, &reply) {
                Found::Answer => self.finish(now, number, Completion::Reply(reply), false),
                Found::Nothing { body, behind: of_keys } => {
                    wait.body = body;
                    if let Reader::Entries { behind } = reader {
                        *behind = of_keys;
                    }
                    self.on_nothing(now, number)
                }
            },
            (unknown @ (Completion::Unknown | Completion::Done), _) => {
                self.finish(now, number, unknown, false)
            }
            (_, Some(reason)) => self.end(now, number, reason),
            // It has had no effect.
            (_, None) if stood => self.try_later(now, number),
            (failure, None) => self.finish(now, number, failure, false),
        };
        end.map(|WaitEnd { completion, .. }| completion)
    }

    /// The client at this address has gone: nothing can be answered to it any more.
    pub(in crate::front_end) fn forget(&mut self, now: Instant, address: u64) {
        let Some(number) = self.by_address.get(&address).copied() else { return };
        if self.waits.get(&number).is_some_and(|wait| wait.reader.is_some()) {
            self.finish(now, number, Completion::Unknown, false);
        } else {
            self.end(now, number, Reason::ClientGone);
        }
    }

    /// How many commands of this front end stand in the queue of a key, if it has one, and whose turn it is.
    pub(super) fn turns_of(&self, key: WaitedKey, reply: &[u8]) -> Option<(u64, Vec<u64>)> {
        match key.kind {
            WaitedKind::List | WaitedKind::SortedSet => turns_in(reply),
            WaitedKind::Stream => Some((u64::MAX, self.readers_of(key, reply)?)),
            WaitedKind::Group(_) => Some((u64::MAX, self.consumers_of(key, reply)?)),
        }
    }

    /// Those who wait for entries of a stream that there are.
    fn readers_of(&self, key: WaitedKey, reply: &[u8]) -> Option<Vec<u64>> {
        let Reply::Bulk(top) = only(reply)? else { return None };
        let top = stream_position(&top)?;
        let is_behind = |number: &u64| {
            let reader = self.waits.get(number).and_then(|wait| wait.reader.as_ref());
            matches!(reader, Some(Reader::Entries { behind }) if behind.iter().any(|(of, id)| *of == key && *id < top))
        };
        Some(self.keys.get(&key)?.waits.iter().copied().filter(is_behind).collect())
    }

    /// The first one of those who wait for entries of a group, if there are any; all, if there is no such group.
    fn consumers_of(&self, key: WaitedKey, reply: &[u8]) -> Option<Vec<u64>> {
        let Reply::Integer(state) = only(reply)? else { return None };
        let stands = |number: &u64| self.waits.get(number).is_some_and(|wait| wait.stands_since.is_some());
        let standing = self.keys.get(&key)?.waits.iter().copied().filter(stands);
        Some(match state {
            XNews::ENTRIES => standing.take(1).collect(),
            XNews::NO_GROUP => standing.collect(),
            _ => Vec::new(),
        })
    }
}

/// The reply, if it is one.
fn only(reply: &[u8]) -> Option<Reply> {
    let mut replies = Reply::decode_all(reply).ok()?;
    if replies.len() == 1 { replies.pop() } else { None }
}

/// The same operation at another time, if it depends on that.
fn at_present(body: &[u8], now: Now) -> Option<Body> {
    let mut operation = operations(body).next()?.ok()?;
    *operation.now_mut()? = now.wall.as_millis();
    let mut body = Vec::new();
    operation.encode(&mut body);
    Some(Body::from(body))
}

/// What the reply to this operation says.
fn found(body: &Body, reply: &[u8]) -> Found {
    let Some(Ok(operation)) = operations(body).next() else { return Found::Answer };
    let ids = match &operation.command {
        Command::XReadGroup(_) if is_nil_array(reply) => {
            return Found::Nothing { body: body.clone(), behind: Vec::new() };
        }
        // Entries are answered as pairs.
        Command::XAwait(_) if matches!(ReplyRef::take_head(&mut &*reply), Some(Head::Array(_))) => {
            only(reply)
        }
        _ => None,
    };
    let Some(Reply::Array(ids)) = ids else { return Found::Answer };
    goes_on(&operation, &ids).unwrap_or(Found::Answer)
}

/// How an XREAD that has found nothing goes on from these ids.
fn goes_on(operation: &Operation<'_>, ids: &[Reply]) -> Option<Found> {
    let Command::XAwait(read) = &operation.command else { return None };
    let read = read.get().read;
    let word = |id: &Reply| if let Reply::Bulk(word) = id { Some(word.clone()) } else { None };
    let words: Vec<Vec<u8>> = ids.iter().map(word).collect::<Option<_>>()?;
    let behind = read.keys.iter().zip(&words).map(|(name, word)| {
        let hash = key_hash_in(operation.database, name);
        Some((WaitedKey { hash, kind: WaitedKind::Stream }, stream_position(word)?))
    });
    let behind = behind.collect::<Option<_>>()?;
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let read = XReadParts { starts: Arguments::new(&words), ..read };
    let mut body = Vec::new();
    XAwaitParts { is_renewed: true, read }.encode_in(operation.database, &mut body);
    Some(Found::Nothing { body: Body::from(body), behind })
}
