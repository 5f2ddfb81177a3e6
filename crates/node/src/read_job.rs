//! Reads, and updates whose answers are found out before they are executed, as threads carry them out.

use std::sync::Arc;

use syros_protocol::message::{Body, Freshness, Message, Peer};
use syros_protocol::replica::Event;
use syros_storage::{Reader, Shared, Store};
use syros_types::{OpNumber, OperationId, View, WallTime};

/// A read that the core has asked for ([`Action::Read`](syros_protocol::replica::Action::Read)).
#[derive(Debug)]
#[cfg_attr(feature = "model", derive(Clone))]
pub struct ReadJob {
    /// Who asked.
    pub to: Peer,
    /// The view in which it is answered.
    pub view: View,
    /// The client's number for it.
    pub number: u64,
    /// The operation.
    pub body: Body,
    /// What the member knows beyond the value, if that goes with it.
    pub freshness: Option<Freshness>,
    /// All up to here had been executed when the core asked.
    pub applied: OpNumber,
    /// What is left of lifetimes counts from this time.
    pub now: WallTime,
    /// What expires at this time or before must not be in the result.
    pub time: Option<WallTime>,
}

/// What becomes of a read.
#[derive(Debug)]
pub enum ReadOutcome {
    /// This is sent to the client.
    Answer(Peer, Message),
    /// The core hears that it is not answered: [`Event::NotRead`].
    NotRead(Event),
}

impl ReadJob {
    /// What becomes of it: `expiry` is the first of what it has seen.
    #[must_use]
    pub fn answer(self, reply: &[u8], expiry: Option<WallTime>) -> ReadOutcome {
        let Self { to, view, number, freshness, applied, body, time, .. } = self;
        if let (Some(time), Some(expiry)) = (time, expiry)
            && expiry <= time
        {
            return ReadOutcome::NotRead(Event::NotRead { to, number, body, time, expiry });
        }
        let reply = Body::from(reply);
        let message = match freshness {
            None => Message::ReadReply { view, number, reply },
            Some(freshness) => {
                let expiry = expiry.unwrap_or_default();
                Message::MemberReply { view, number, applied, freshness, expiry, reply }
            }
        };
        ReadOutcome::Answer(to, message)
    }
}

/// An update whose answer the core has asked for before it is executed
/// ([`Action::Evaluate`](syros_protocol::replica::Action::Evaluate)).
#[derive(Debug)]
pub struct EvaluateJob {
    /// The client.
    pub to: Peer,
    /// The view in which it was accepted.
    pub view: View,
    /// The update.
    pub id: OperationId,
    /// The operation.
    pub body: Body,
    /// Log time of the last entry that was dealt out before it.
    pub time: WallTime,
}

impl EvaluateJob {
    /// Finds it out. The lanes of its keys must have executed and committed all that was dealt out before it, and
    /// nothing else. What to send to the client; or `None`, if it cannot be known before the update is executed.
    #[must_use]
    pub fn perform<S: Store>(&self, shared: &Arc<Shared<S>>) -> Option<Message> {
        let mut reply = Vec::new();
        let is_certain = Reader::new(Arc::clone(shared)).evaluate(self.time, &self.body, &mut reply);
        let Self { view, id, .. } = *self;
        is_certain.then(|| Message::Evaluated { view, id, reply: Body::from(reply) })
    }
}
