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
use syros_resp::{Completion, Submission};
use syros_types::{Class, Footprint, Instant};

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

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::acl::UserChange;

    const START: Instant = Instant(1_000_000);

    fn changed() -> Users {
        let mut users = Users::default();
        users.set(b"u", &[b"on"], UserChange::Always).unwrap();
        users
    }

    fn answer(reply: &Reply) -> Outcome {
        let mut encoded = Vec::new();
        reply.encode(&mut encoded);
        Outcome::Reply(encoded.into())
    }

    fn submission(words: &[&[u8]]) -> Submission {
        let Ok(syros_commands::Parsed::Data(operation)) = syros_commands::parse(words) else {
            panic!("{words:?}")
        };
        let mut body = Vec::new();
        operation.encode(&mut body);
        let description = describe(&body).unwrap();
        let (class, footprint) = (description.class, description.footprint);
        Submission { slot: 4, body: body.into(), class, footprint, read_policy: None, waits: false }
    }

    fn reply(address: u64) -> Withheld {
        Withheld { from: (address, 4), since: START, completion: Completion::Done }
    }

    #[test]
    fn users_are_read_at_once_and_then_again_and_again() {
        let mut watch = UserWatch::default();
        assert!(watch.next_errand(START, None).is_none(), "nobody wants them");
        watch.begin(START, Vec::new());
        let errand = watch.next_errand(START, None).expect("they are read");
        assert_eq!((errand.kind, errand.class), (ErrandKind::Users, Class::Read));
        assert!(watch.next_errand(START.after(INTERVAL), None).is_none(), "one read at a time");
        let users = changed();
        let looked = watch.on_looked(START, &answer(&Reply::Bulk(users.encode())));
        assert!(matches!(looked, Looked::Users(found) if found == users));
        assert_eq!(watch.deadline(), START.after(INTERVAL));
        assert!(watch.next_errand(START, Some(&users)).is_none());
        let later = START.after(INTERVAL);
        assert!(watch.next_errand(later, Some(&users)).is_some());
        assert!(matches!(watch.on_looked(later, &answer(&Reply::Nil)), Looked::Same));
        for bad in [answer(&Reply::Ok), answer(&Reply::Bulk(b"x".to_vec())), Outcome::NoQuorum] {
            assert!(matches!(watch.on_looked(later, &bad), Looked::Nothing), "{bad:?}");
            assert_eq!(watch.deadline(), later.after(INTERVAL));
        }
    }

    #[test]
    fn a_reply_to_a_change_waits_for_a_read_that_begins_after_it() {
        let mut watch = UserWatch::default();
        watch.begin(START, Vec::new());
        watch.next_errand(START, None).expect("a read begins");
        watch.note(1, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
        watch.note(2, &submission(&[b"FLUSHALL"]));
        watch.note(3, &submission(&[b"ACL", b"DELUSER", b"u"]));
        assert!(watch.withhold(START, reply(2)).is_some(), "it changes no users");
        assert!(watch.withhold(START, reply(1)).is_none());
        assert!(watch.withhold(START, reply(1)).is_some(), "once");
        // The read that was under way does not count.
        watch.on_looked(START, &answer(&Reply::Nil));
        assert!(watch.released().is_empty());
        watch.next_errand(START, None).expect("the next read begins at once");
        assert!(watch.withhold(START, reply(3)).is_none());
        // A read that fails releases nothing.
        watch.on_looked(START, &Outcome::TimedOut);
        let later = START.after(INTERVAL);
        watch.next_errand(later, None).expect("it is tried again");
        watch.on_looked(later, &answer(&Reply::Bulk(changed().encode())));
        let released: Vec<u64> = watch.released().iter().map(|reply| reply.from.0).collect();
        assert_eq!(released, [1, 3]);
        // What was refused at once has changed nothing.
        watch.note(1, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
        watch.withdraw((1, 4));
        assert!(watch.withhold(later, reply(1)).is_some());
        // Who has gone waits for nothing.
        watch.note(5, &submission(&[b"ACL", b"SETUSER", b"u", b"on"]));
        watch.forget(5);
        assert!(watch.withhold(later, reply(5)).is_some());
    }

    #[test]
    fn a_new_cluster_gets_its_password_first() {
        let mut watch = UserWatch::default();
        watch.begin(START, vec![b"resetpass".to_vec()]);
        watch.next_errand(START, None).expect("a read begins");
        watch.on_looked(START, &answer(&Reply::Bulk(Users::default().encode())));
        assert!(watch.is_first_change_due(&Users::default()) && !watch.is_first_change_due(&changed()));
        assert_eq!(watch.first_change().kind, ErrandKind::FirstUser);
        assert_eq!(watch.deadline(), Instant::NEVER);
        watch.on_changed(START);
        assert!(watch.next_errand(START, None).is_some());
    }
}
