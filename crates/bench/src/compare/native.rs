//! Clients of Syros.

use crate::clients::{Clients, Operations, Request};
use crate::error::Error;
use crate::fleet::{Ended, Fleet};
use std::time::Instant;
use syros_client::{Completion, Endpoint, Options, Outcome, ReadCounts, WriteCounts};
use syros_commands::ReplyRef;
use syros_types::{Prng, ReadPolicy};

/// Clients of Syros, each with a session and connections of its own, or several with one.
pub(super) struct NativeFleet {
    sessions: Clients,
    operations: Operations,
    /// What each client was asked for last.
    requests: Vec<Option<Request>>,
    completions: Vec<Completion>,
    reads: ReadPolicy,
}

impl NativeFleet {
    /// So many clients that share a session for each list of replicas, all of them connected; they read in this way.
    pub(super) fn new(
        settings: Vec<(Vec<Endpoint>, Options)>,
        clients: usize,
        value_bytes: usize,
        reads: ReadPolicy,
        prng: &mut Prng,
    ) -> Result<Self, Error> {
        let mut sessions = Clients::new(settings)?;
        sessions.connect(Options::default().connect_timeout)?;
        let requests = vec![None; clients];
        let operations = Operations::new(value_bytes, prng);
        Ok(Self { sessions, operations, requests, completions: Vec::new(), reads })
    }
}

impl Fleet for NativeFleet {
    fn ask(&mut self, client: usize, request: Request) {
        self.requests[client] = Some(request);
        let session = client % self.sessions.count();
        self.operations.ask(self.sessions.active(session), request, client as u64);
    }

    fn turn(&mut self, until: Instant, ended: &mut Vec<Ended>) -> Result<(), Error> {
        self.sessions.turn(until, &mut self.completions)?;
        for Completion { user_token, outcome } in self.completions.drain(..) {
            let client = user_token as usize;
            if let Some(request) = self.requests.get_mut(client).and_then(Option::take) {
                ended.push(Ended { client, is_good: is_good(request, &outcome, self.reads) });
            }
        }
        Ok(())
    }

    fn wake_at(&mut self, moment: Instant) -> Result<(), Error> {
        self.sessions.wake_at(moment)
    }

    fn counts(&self) -> (ReadCounts, WriteCounts) {
        let (mut reads, mut writes) = (ReadCounts::default(), WriteCounts::default());
        for session in 0..self.sessions.count() {
            let session = self.sessions.client(session);
            let (more_reads, more_writes) = (session.read_counts(), session.write_counts());
            reads.leader += more_reads.leader;
            reads.meta += more_reads.meta;
            reads.quorum += more_reads.quorum;
            reads.rinsed += more_reads.rinsed;
            reads.referred += more_reads.referred;
            reads.several += more_reads.several;
            reads.stale += more_reads.stale;
            writes.fast += more_writes.fast;
            writes.leader += more_writes.leader;
            writes.ordered += more_writes.ordered;
        }
        (reads, writes)
    }
}

/// True if a request did what it was to do: an error is none, and a record that is there must be found.
fn is_good(request: Request, outcome: &Outcome, policy: ReadPolicy) -> bool {
    let reads = matches!(request, Request::Get(_) | Request::MGet { .. });
    let reply = match outcome {
        Outcome::Done => return !reads,
        Outcome::Reply(reply) => reply,
        Outcome::Refused(_) | Outcome::Unknown | Outcome::TimedOut | Outcome::NoQuorum => return false,
    };
    let Ok(reply) = ReplyRef::decode(&mut &reply[..]) else { return false };
    // What is old need not be there.
    let is_value = |reply: ReplyRef<'_>| match reply {
        ReplyRef::Bulk(_) => true,
        ReplyRef::Nil => policy == ReadPolicy::Stale,
        _ => false,
    };
    match request {
        Request::Get(_) => is_value(reply),
        Request::MGet { count, .. } => match reply {
            ReplyRef::Array(values) => values.len() as u64 == count && values.into_iter().all(is_value),
            _ => false,
        },
        Request::Increment(_) => matches!(reply, ReplyRef::Integer(_)),
        Request::Set(_) | Request::Append(_) | Request::FlushAll => reply == ReplyRef::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::Reply;

    fn is_expected(request: Request, reply: &Reply) -> bool {
        let mut bytes = Vec::new();
        reply.encode(&mut bytes);
        is_good(request, &Outcome::Reply(bytes.into()), ReadPolicy::Auto)
    }

    #[test]
    fn an_answer_is_what_the_request_asks_for() {
        let value = || Reply::Bulk(b"v".to_vec());
        let scan = Request::MGet { first: 0, count: 2 };
        assert!(is_expected(Request::Get(0), &value()));
        assert!(is_expected(Request::Set(0), &Reply::Ok));
        assert!(is_expected(Request::Increment(0), &Reply::Integer(1)));
        assert!(is_expected(Request::Append(0), &Reply::Ok));
        assert!(is_expected(scan, &Reply::Array(vec![value(), value()])));
        let all = [Request::Get(0), Request::Set(0), scan, Request::Increment(0), Request::Append(0)];
        for reply in [Reply::Error(b"ERR".to_vec()), Reply::Nil] {
            for request in all {
                assert!(!is_expected(request, &reply), "{request:?}");
            }
        }
        assert!(!is_expected(scan, &Reply::Array(vec![value()])), "one is missing");
        assert!(!is_expected(scan, &Reply::Array(vec![value(), Reply::Nil])));
        assert!(is_good(Request::Set(0), &Outcome::Done, ReadPolicy::Auto));
        assert!(!is_good(Request::Get(0), &Outcome::Done, ReadPolicy::Auto));
        assert!(!is_good(Request::Set(0), &Outcome::Unknown, ReadPolicy::Auto));
    }
}
