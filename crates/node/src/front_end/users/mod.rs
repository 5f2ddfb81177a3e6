//! What a front end knows of the users, and how it learns of changes.
//!
//! The users are replicated state. A front end reads them from the group, linearizably, when it starts; serves nobody before it
//! knows them; and reads them again
//!
//! - every [`INTERVAL`]: what has been changed at another front end holds here at most so long later, and as long as the
//!   read takes;
//! - before the client that has changed them gets the reply: for its own front end, the change holds then.
//!
//! Where no majority can be reached, nothing is learned. Nothing is executed either, but for `stale` reads, and those by the
//! users that are known.

use std::collections::BTreeSet;
use std::time::Duration;

use syros_commands::acl::Users;
use syros_commands::families::{UserLook, UserQuestion, UserSet};
use syros_commands::{Arguments, Operation, Reply, describe, operations};
use syros_protocol::client::Outcome;
use syros_protocol::message::Body;
use syros_resp::{Completion, Connection, Submission};
use syros_types::{Class, Footprint, Instant, Now, SubscriptionKind};

use super::RedisFrontEnd;
use super::errand::{Errand, ErrandKind};

/// How often the users are read. Ten reads a second are a thousandth of what a node does, and a tenth of a second is less than
/// it takes to tell somebody that a right is gone.
const INTERVAL: Duration = Duration::from_millis(100);

/// A reply that waits until the users are known that its command has made.
#[derive(Debug)]
pub(super) struct Withheld {
    /// The connection, and its name for the submission.
    pub(super) from: (u64, u64),
    pub(super) since: Instant,
    pub(super) completion: Completion,
}

/// What a front end knows of the users.
#[derive(Debug, Default)]
pub(super) struct UserWatch {
    /// They are read without a reason, too.
    is_wanted: bool,
    /// Rules for the default user of a cluster whose users have never been changed.
    first_rules: Vec<Vec<u8>>,
    /// A read is under way, or the change that the first rules are.
    is_asking: bool,
    next_look: Instant,
    /// Submissions that change users, by connection and slot. A connection has one under way at most.
    changing: BTreeSet<(u64, u64)>,
    /// Replies to such that have come since the last read began, and before it.
    next_withheld: Vec<Withheld>,
    withheld: Vec<Withheld>,
}

/// What becomes of a read of the users.
#[derive(Debug)]
pub(super) enum Looked {
    /// They are these.
    Users(Users),
    /// They are those that are known.
    Same,
    /// Nothing has been learned.
    Nothing,
}

impl UserWatch {
    /// From now on the users are read, and nobody is served before they are known. If they have never been changed, the default
    /// user is changed by these rules first.
    pub(super) fn begin(&mut self, now: Instant, first_rules: Vec<Vec<u8>>) {
        (self.is_wanted, self.first_rules, self.next_look) = (true, first_rules, now);
    }

    /// True if the users are not to be known before they have been changed.
    pub(super) fn is_first_change_due(&self, users: &Users) -> bool {
        !self.first_rules.is_empty() && users.version() == 0
    }

    /// The change of a cluster whose users have never been changed.
    pub(super) fn first_change(&mut self) -> Errand {
        self.is_asking = true;
        let rules: Vec<&[u8]> = self.first_rules.iter().map(Vec::as_slice).collect();
        let set = UserSet { name: b"default", rules: Arguments::new(&rules), if_untouched: true };
        errand(&Operation::new(set))
    }

    /// Takes note of a submission of a connection that changes users, if it does.
    pub(super) fn note(&mut self, address: u64, submission: &Submission) {
        let Submission { slot, body, class, footprint, .. } = submission;
        // Few others concern all keys.
        let may_change = *class == Class::Update && *footprint == Footprint::All;
        if may_change && operations(body).flatten().any(|operation| operation.changes_users()) {
            self.changing.insert((address, *slot));
        }
    }

    /// A submission has ended at once, and has changed nothing.
    pub(super) fn withdraw(&mut self, from: (u64, u64)) {
        self.changing.remove(&from);
    }

    /// Keeps a reply to such a submission until the users have been read; others are given back.
    pub(super) fn withhold(&mut self, now: Instant, reply: Withheld) -> Option<Withheld> {
        if self.changing.is_empty() || !self.changing.remove(&reply.from) {
            return Some(reply);
        }
        self.next_withheld.push(reply);
        self.next_look = now;
        None
    }

    /// A connection is gone.
    pub(super) fn forget(&mut self, address: u64) {
        self.changing.retain(|(other, _)| *other != address);
        self.next_withheld.retain(|reply| reply.from.0 != address);
        self.withheld.retain(|reply| reply.from.0 != address);
    }

    /// When the users are read next, at the latest.
    pub(super) fn deadline(&self) -> Instant {
        let is_due = !self.is_asking && (self.is_wanted || !self.next_withheld.is_empty());
        if is_due { self.next_look } else { Instant::NEVER }
    }

    /// The read of the users that is due, if one is. `known`: those that are known.
    pub(super) fn next_errand(&mut self, now: Instant, known: Option<&Users>) -> Option<Errand> {
        if now < self.deadline() {
            return None;
        }
        self.is_asking = true;
        self.withheld.append(&mut self.next_withheld);
        let known = known.map_or(0, |users| users.version() + 1);
        Some(errand(&Operation::new(UserLook { question: UserQuestion::Table, name: b"", known })))
    }

    /// The read has ended.
    pub(super) fn on_looked(&mut self, now: Instant, outcome: &Outcome) -> Looked {
        self.is_asking = false;
        let looked = match outcome {
            Outcome::Reply(reply) => looked(reply),
            _ => Looked::Nothing,
        };
        let has_waiting = !self.next_withheld.is_empty() && !matches!(looked, Looked::Nothing);
        self.next_look = if has_waiting { now } else { now.after(INTERVAL) };
        looked
    }

    /// The first change has ended: the users are read.
    pub(super) fn on_changed(&mut self, now: Instant) {
        self.is_asking = false;
        self.next_look = now;
    }

    /// The replies that waited for the read that has ended.
    pub(super) fn released(&mut self) -> Vec<Withheld> {
        std::mem::take(&mut self.withheld)
    }
}

fn looked(reply: &[u8]) -> Looked {
    match Reply::decode(&mut &*reply) {
        Ok(Reply::Nil) => Looked::Same,
        Ok(Reply::Bulk(bytes)) => Users::decode(&bytes).map_or(Looked::Nothing, Looked::Users),
        _ => Looked::Nothing,
    }
}

/// Something to be submitted about users.
fn errand(operation: &Operation<'_>) -> Errand {
    let mut body = Vec::new();
    operation.encode(&mut body);
    let (class, footprint) = match describe(&body) {
        Ok(description) => (description.class, description.footprint),
        // It is well formed; were it not, the leader would refuse it.
        Err(_) => (operation.class(), Footprint::All),
    };
    let kind = if operation.changes_users() { ErrandKind::FirstUser } else { ErrandKind::Users };
    Errand { kind, body: Body::from(body), class, footprint }
}

impl RedisFrontEnd {
    /// From now on the users are read from the group, and clients wait until they are known. If they have never been changed, the
    /// default user is changed by these rules first. Protected: while the default user needs no password, only clients on the
    /// same machine are served.
    pub fn require_users(&mut self, now: Now, first_rules: Vec<Vec<u8>>, is_protected: bool) {
        self.shared.forget_users();
        self.shared.set_patient(true);
        self.shared.set_protected(is_protected);
        self.users.begin(now.instant, first_rules);
    }

    /// Reads the users if it is time for that.
    pub(super) fn look_at_users(&mut self, now: Now) {
        if now.instant < self.users.deadline() {
            return;
        }
        let known = self.shared.known_users();
        let Some(errand) = self.users.next_errand(now.instant, known.as_ref()) else { return };
        if self.group.knows(&errand.body) {
            self.run_errand(now, errand);
        } else {
            // A member of an earlier build is connected, which knows of no users: there have been none.
            let reply = Reply::Bulk(Users::default().encode());
            let mut untouched = Vec::new();
            reply.encode(&mut untouched);
            self.on_users(now, &Outcome::Reply(untouched.into()));
        }
    }

    /// The users have been read, or that has failed.
    pub(super) fn on_users(&mut self, now: Now, outcome: &Outcome) {
        let looked = self.users.on_looked(now.instant, outcome);
        let is_news = match looked {
            Looked::Nothing => {
                // Commands have waited for it as long as for an answer of their own.
                if matches!(outcome, Outcome::TimedOut | Outcome::NoQuorum) {
                    self.shared.set_patient(false);
                    self.end_waiting_for_users();
                }
                return;
            }
            Looked::Same => false,
            Looked::Users(users) if self.users.is_first_change_due(&users) => {
                let errand = self.users.first_change();
                if self.group.knows(&errand.body) {
                    return self.run_errand(now, errand);
                }
                self.users.on_changed(now.instant);
                return;
            }
            Looked::Users(users) => self.shared.learn_users(users),
        };
        let released = self.users.released();
        let asking: Vec<u64> = released.iter().map(|reply| reply.from.0).collect();
        for reply in released {
            self.deliver(now, reply);
        }
        if is_news {
            self.end_connections_of_users(&asking);
        }
    }

    /// Nobody tells who the users are: commands that have waited for them are refused.
    pub(super) fn end_waiting_for_users(&mut self) {
        for place in 0..self.connections.places() {
            let Some((address, connection)) = self.connections.at_mut(place) else { continue };
            if connection.redis.end_waiting_for_users() {
                self.mark_answered(address);
            }
        }
    }

    /// Ends the connections whose user has been removed, and those that subscribe to what their user may not hear any more.
    /// Those that `asked` for the change get the reply first.
    fn end_connections_of_users(&mut self, asked: &[u64]) {
        for place in 0..self.connections.places() {
            let Some((address, connection)) = self.connections.at_mut(place) else { continue };
            let redis = &mut connection.redis;
            let has_waited = redis.end_waiting_for_users();
            let is_removed = redis.on_users(asked.contains(&address));
            let hears = |(kind, name): (SubscriptionKind, Body), redis: &mut Connection| {
                redis.may_hear(&name, kind == SubscriptionKind::Pattern)
            };
            let is_deaf = !is_removed
                && redis.is_restricted_subscriber()
                && !self.messages.names_of(address).all(|name| hears(name, redis));
            if is_deaf {
                redis.cut_off();
            }
            if is_removed || is_deaf || has_waited {
                self.mark_answered(address);
            }
        }
    }
}

#[cfg(test)]
mod tests;
