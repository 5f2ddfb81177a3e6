//! What the replica tells its [`ReplicaTraces`](crate::traces::ReplicaTraces), if operations are traced. If not, each of these
//! is one branch.

use syros_protocol::message::{Message, Peer};
use syros_protocol::record::{Record, Ticket};
use syros_protocol::replica::Event;
use syros_types::Now;

use super::LocalReplica;
use crate::traces::Standing;

impl LocalReplica {
    pub(super) fn trace_event(&mut self, now: Now, event: &Event) {
        if let Some(traces) = &mut self.traces
            && let Event::Message { message, .. } = event
        {
            match message {
                Message::Request { request, .. } => traces.on_request(now.instant, request.id),
                Message::Prepare { first, entries, .. } => traces.on_prepare(|| now.instant, *first, entries),
                _ => {}
            }
        }
    }

    pub(super) fn trace_record(&mut self, ticket: Ticket, record: &Record) {
        let clock = self.clock;
        if let Some(traces) = &mut self.traces {
            traces.on_record(|| clock.now().instant, record, self.numbering.record(ticket));
        }
    }

    pub(super) fn trace_answer(&mut self, to: Peer, message: &Message, after: Option<Ticket>) {
        let clock = self.clock;
        if let Some(traces) = &mut self.traces {
            match (to, message) {
                (Peer::Client(_), _) => {
                    let after = after.map(|ticket| self.numbering.record(ticket));
                    traces.on_answer(|| clock.now().instant, message, after);
                }
                (Peer::Replica(_), Message::Prepare { first, entries, .. }) => {
                    traces.on_prepare(|| clock.now().instant, *first, entries);
                }
                _ => {}
            }
        }
    }

    pub(super) fn trace_durable(&mut self) {
        if let Some(traces) = &mut self.traces {
            traces.on_durable(self.clock.now().instant, self.wal.persisted());
        }
    }

    pub(super) fn trace_progress(&mut self) {
        let clock = self.clock;
        if let Some(traces) = &mut self.traces {
            let replica = self.driver.replica();
            traces.on_progress(|| clock.now().instant, (replica.commit(), replica.applied()));
        }
    }

    /// Exports what has ended in this turn.
    pub(super) fn trace_end_of_turn(&mut self) {
        if let Some(traces) = &mut self.traces {
            let replica = self.driver.replica();
            let standing = Standing { is_leader: replica.is_leader(), view: replica.view() };
            traces.end_turn(self.clock.now(), standing);
        }
    }
}
