//! What a front end knows of the users, and how it learns of changes.
//!
//! The users are replicated state. A front end reads them from the group, linearizably, when it starts; serves nobody before it
//! knows them; and reads them again
//!
//! - ten times while they are valid: see [`USERS_VALID`];
//! - before the client that has changed them gets the reply: for its own front end, the change holds then.
//!
//! What has been read is valid for a while, from the moment when the read was submitted. After that the front end has nothing
//! executed before it has read the users again. And whoever takes away a right gets the reply when all that was read before
//! the change is valid no more; whoever changes users meanwhile, too. So a change that has been acknowledged holds at every front
//! end, and so do all before it: also one whose client has been told nothing. Clocks have to go about as fast as each other, and
//! nothing else.
//!
//! Where no majority can be reached, nothing is learned. Nothing is executed either, but for `stale` reads, and those by the
//! users that are known.

use std::collections::BTreeSet;
use std::time::Duration;

use syros_commands::acl::Users;
use syros_commands::families::{UserLook, UserQuestion, UserSet};
use syros_commands::{Arguments, Operation, Parsed, Reply, describe, operations, parse};
use syros_protocol::client::Outcome;
use syros_protocol::message::{Body, Refusal};
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_resp::{Completion, Connection, Submission};
use syros_types::{Class, Footprint, Instant, Now, SubscriptionKind, View};

use super::RedisFrontEnd;
use super::errand::{Errand, ErrandKind};

/// So long after they have been read, the users are known well enough to serve clients. A read from the other end of the world
/// takes a third of that; who takes a right away waits for as long.
pub const USERS_VALID: Duration = Duration::from_secs(1);

/// How often the users are read while they are valid. Ten reads a second are a thousandth of what a node does.
const READS_WHILE_VALID: u32 = 10;

/// A clock of another front end is slower than the own one by less than one part of so many.
const CLOCKS_DIFFER: u32 = 16;

/// A reply that waits until the users are known that its command has made.
#[derive(Debug)]
pub(super) struct Withheld {
    /// The connection, and its name for the submission.
    pub(super) from: (u64, u64),
    pub(super) since: Instant,
    pub(super) completion: Completion,
}

/// What a front end knows of the users.
#[derive(Debug)]
pub(super) struct UserWatch {
    /// They are read without a reason, too.
    is_wanted: bool,
    /// How long they are valid.
    valid: Duration,
    /// A reply to a change is withheld for so long, unless the users have been read: then nobody knows whether the change holds.
    withheld_for: Duration,
    /// Rules for the default user of a cluster whose users have never been changed.
    first_rules: Vec<Vec<u8>>,
    /// A read is under way, or the change that the first rules are.
    is_asking: bool,
    /// When the last read was submitted, and what the view was then.
    asked: (Instant, View),
    /// When the last read was submitted that has been answered.
    known_since: Option<Instant>,
    is_outdated: bool,
    next_look: Instant,
    /// Those that were read last.
    read: Option<Users>,
    /// Until then another front end may go by users that allowed what these do not.
    unsettled_until: Instant,
    /// Submissions that change users, by connection and slot. A connection has one under way at most.
    changing: BTreeSet<(u64, u64)>,
    /// Replies to such that have come since the last read began, and before it.
    next_withheld: Vec<Withheld>,
    withheld: Vec<Withheld>,
    /// Replies that wait until all that was read before the change is valid no more, and when that is so.
    expiring: Vec<(Instant, Withheld)>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
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
    pub(super) const fn new(valid: Duration, withheld_for: Duration) -> Self {
        Self {
            is_wanted: false,
            valid,
            withheld_for,
            first_rules: Vec::new(),
            is_asking: false,
            asked: (Instant(0), View(0)),
            known_since: None,
            is_outdated: false,
            next_look: Instant(0),
            read: None,
            unsettled_until: Instant(0),
            changing: BTreeSet::new(),
            next_withheld: Vec::new(),
            withheld: Vec::new(),
            expiring: Vec::new(),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// A known-wrong variant.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn planted(self, planted: Option<PlantedBug>) -> Self {
        Self { planted, ..self }
    }

    #[cfg(feature = "planted-bugs")]
    fn is_planted(&self, bug: PlantedBug) -> bool {
        self.planted == Some(bug)
    }

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
        errand(&Operation::new(set), ErrandKind::FirstUser)
    }

    /// Takes note of a submission of a connection that changes users, if it does.
    pub(super) fn note(&mut self, address: u64, submission: &Submission) {
        let Submission { slot, body, class, footprint, .. } = submission;
        // Few others concern all keys.
        let may_change = *class != Class::Read && *footprint == Footprint::All;
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
        #[cfg(feature = "planted-bugs")]
        if self.is_planted(PlantedBug::UserChangeToldEarly) {
            return Some(reply);
        }
        if !self.changing.remove(&reply.from) {
            return Some(reply);
        }
        self.next_withheld.push(reply);
        self.next_look = now;
        None
    }

    /// True if a reply to this connection waits.
    fn withholds(&self, address: u64) -> bool {
        let held = self.next_withheld.iter().chain(&self.withheld);
        held.chain(self.expiring.iter().map(|(_, reply)| reply)).any(|reply| reply.from.0 == address)
    }

    /// A connection is gone.
    pub(super) fn forget(&mut self, address: u64) {
        self.changing.retain(|(other, _)| *other != address);
        self.next_withheld.retain(|reply| reply.from.0 != address);
        self.withheld.retain(|reply| reply.from.0 != address);
        self.expiring.retain(|(_, reply)| reply.from.0 != address);
    }

    /// When the users are read next, or a reply has waited long enough, at the latest.
    pub(super) fn deadline(&self) -> Instant {
        let expiring = self.expiring.iter().map(|(due, _)| *due);
        let given_up = self.withheld.iter().chain(&self.next_withheld).map(|it| self.given_up_at(it));
        expiring.chain(given_up).min().unwrap_or(Instant::NEVER).min(self.next_read())
    }

    fn given_up_at(&self, reply: &Withheld) -> Instant {
        reply.since.after(self.withheld_for)
    }

    fn next_read(&self) -> Instant {
        let is_due = !self.is_asking && (self.is_wanted || !self.next_withheld.is_empty());
        if is_due { self.next_look } else { Instant::NEVER }
    }

    /// The read of the users that is due, if one is. `known`: those that are known.
    pub(super) fn next_errand(&mut self, now: Instant, view: View, known: Option<&Users>) -> Option<Errand> {
        if now < self.next_read() {
            return None;
        }
        self.is_asking = true;
        self.asked = (now, view);
        self.withheld.append(&mut self.next_withheld);
        let known = known.map_or(0, |users| users.version() + 1);
        let look = UserLook { question: UserQuestion::Table, name: b"", known };
        Some(errand(&Operation::new(look), ErrandKind::Users))
    }

    /// The read has ended.
    pub(super) fn on_looked(&mut self, now: Instant, outcome: &Outcome) -> Looked {
        self.is_asking = false;
        let looked = match outcome {
            Outcome::Reply(reply) => looked(reply),
            _ => Looked::Nothing,
        };
        if let Looked::Users(users) = &looked {
            self.on_change(now, users);
        }
        let has_learned = !matches!(looked, Looked::Nothing);
        if has_learned {
            self.known_since = Some(self.asked.0);
        }
        // A read that took too long is of no use to clients.
        let is_pressing = !self.next_withheld.is_empty() || self.has_expired(now);
        self.next_look =
            if has_learned && is_pressing { now } else { now.after(self.valid / READS_WHILE_VALID) };
        looked
    }

    /// True if what is known is valid no more.
    fn has_expired(&self, now: Instant) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.is_planted(PlantedBug::UsersForEver) {
            return false;
        }
        self.is_wanted && self.known_since.is_some_and(|since| now.since(since) >= self.valid)
    }

    /// The users are not as they should be, and cannot be changed now.
    const fn on_not_changed(&mut self) {
        self.known_since = None;
    }

    /// The first change has ended: the users are read.
    pub(super) fn on_changed(&mut self, now: Instant) {
        self.is_asking = false;
        self.next_look = now;
    }

    /// Others have been read than before, or for the first time.
    fn on_change(&mut self, now: Instant, users: &Users) {
        // Of several changes one may give back what another one has taken.
        let takes_nothing = self.read.replace(users.clone()).map_or(users.version() == 0, |before| {
            users.version() <= before.version() + 1 && users.take_nothing_from(&before)
        });
        #[cfg(feature = "planted-bugs")]
        let takes_nothing = takes_nothing || self.is_planted(PlantedBug::UsersElsewhereForgotten);
        if !takes_nothing {
            // Somebody may have read the others just before they were changed, which was before now.
            self.unsettled_until = now.after(self.valid + self.valid / CLOCKS_DIFFER);
        }
    }

    /// The replies that waited for the read that has ended, and for nothing else.
    pub(super) fn released(&mut self, now: Instant) -> Vec<Withheld> {
        let is_settled = !self.is_wanted || now >= self.unsettled_until;
        let mut released = Vec::new();
        for reply in std::mem::take(&mut self.withheld) {
            if is_settled || !reply.completion.is_answer() {
                released.push(reply);
            } else {
                self.expiring.push((self.unsettled_until, reply));
            }
        }
        released
    }

    /// The next reply that is withheld for too long: whether it holds everywhere, nobody can find out.
    fn next_given_up(&mut self, now: Instant) -> Option<Withheld> {
        let is_due = |it: &Withheld| it.since.after(self.withheld_for) <= now;
        let reply = match self.withheld.iter().position(is_due) {
            Some(place) => self.withheld.swap_remove(place),
            None => {
                self.next_withheld.iter().position(is_due).map(|at| self.next_withheld.swap_remove(at))?
            }
        };
        let completion = if reply.completion.is_answer() { Completion::Unknown } else { reply.completion };
        Some(Withheld { completion, ..reply })
    }

    /// The next reply that has waited long enough.
    fn next_expired(&mut self, now: Instant) -> Option<Withheld> {
        let place = self.expiring.iter().position(|(due, _)| *due <= now)?;
        Some(self.expiring.swap_remove(place).1)
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
fn errand(operation: &Operation<'_>, kind: ErrandKind) -> Errand {
    let mut body = Vec::new();
    operation.encode(&mut body);
    let (class, footprint) = match describe(&body) {
        Ok(description) => (description.class, description.footprint),
        // It is well formed; were it not, the leader would refuse it.
        Err(_) => (operation.class(), Footprint::All),
    };
    Errand { kind, body: Body::from(body), class, footprint }
}

impl RedisFrontEnd {
    /// From now on the users are read from the group, and clients wait until they are known. If they have never been changed, the
    /// default user is changed by these rules first. Protected: while the default user needs no password, only clients on the
    /// same machine are served.
    pub fn require_users(&mut self, now: Now, first_rules: Vec<Vec<u8>>, is_protected: bool) {
        #[cfg(feature = "planted-bugs")]
        let is_known = self.planted == Some(PlantedBug::UsersOfNewCluster);
        #[cfg(not(feature = "planted-bugs"))]
        let is_known = false;
        if !is_known {
            self.shared.forget_users();
        }
        self.shared.set_patient(true);
        self.shared.set_protected(is_protected);
        self.users.begin(now.instant, first_rules);
    }

    /// Reads the users if it is time for that, and passes on replies that have waited long enough.
    pub(super) fn look_at_users(&mut self, now: Now) {
        if now.instant < self.users.deadline() {
            return;
        }
        while let Some(reply) = self.users.next_expired(now.instant) {
            let address = reply.from.0;
            self.deliver(now, reply);
            self.end_connection_of_user(address, true);
        }
        while let Some(reply) = self.users.next_given_up(now.instant) {
            self.deliver(now, reply);
        }
        let known = self.shared.known_users();
        let view = self.group.client.view();
        if let Some(errand) = self.users.next_errand(now.instant, view, known.as_ref()) {
            // A leader of an earlier build refuses it. Members that do not lead are not asked, and need not know it.
            self.run_errand(now, errand);
        }
    }

    /// Commands wait if the users were read too long ago.
    pub(super) fn note_age_of_users(&mut self, now: Now) {
        self.users.is_outdated = self.users.has_expired(now.instant);
        self.shared.set_outdated(self.users.is_outdated);
    }

    /// The users have been read, or that has failed.
    pub(super) fn on_users_read(&mut self, now: Now, outcome: &Outcome) {
        if *outcome == Outcome::Refused(Refusal::Malformed) && self.users.asked.1 == self.group.client.view()
        {
            // The leader of this view is of an earlier build. What its group has executed, it knows: no change of users is among
            // that. But it need not lead any more.
            if let Ok(Parsed::Data(exists)) = parse(&[b"EXISTS", b"k"]) {
                return self.run_errand(now, errand(&exists, ErrandKind::OldLeader));
            }
        }
        self.on_users(now, outcome);
    }

    /// A leader has been asked that may be the one which does not know what users are.
    pub(super) fn on_old_leader(&mut self, now: Now, outcome: Outcome) {
        let is_untouched = self.shared.known_users().is_none_or(|users| users.version() == 0);
        let outcome = match outcome {
            // A view has one leader, and that has gone on leading.
            Outcome::Reply(_) if self.users.asked.1 == self.group.client.view() && is_untouched => {
                let mut untouched = Vec::new();
                Reply::Bulk(Users::default().encode()).encode(&mut untouched);
                Outcome::Reply(untouched.into())
            }
            Outcome::TimedOut | Outcome::NoQuorum => outcome,
            _ => Outcome::Unknown,
        };
        self.on_users(now, &outcome);
    }

    fn on_users(&mut self, now: Now, outcome: &Outcome) {
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
                // Nobody is served before all members know it.
                self.users.on_not_changed();
                return;
            }
            Looked::Users(users) => self.shared.learn_users(users),
        };
        let was_outdated = self.users.is_outdated;
        self.note_age_of_users(now);
        self.shared.set_patient(true);
        let released = self.users.released(now.instant);
        let asking: Vec<u64> = released.iter().map(|reply| reply.from.0).collect();
        for reply in released {
            self.deliver(now, reply);
        }
        if is_news {
            self.end_connections_of_users(&asking);
        }
        if was_outdated && !self.users.is_outdated {
            self.end_waiting_for_users();
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
    /// Those that `asked` for the change have got the reply. Others whose reply waits get it first: they run nothing until
    /// then, but hear what they subscribe to.
    fn end_connections_of_users(&mut self, asked: &[u64]) {
        for place in 0..self.connections.places() {
            let Some((address, connection)) = self.connections.at_mut(place) else { continue };
            if !self.users.withholds(address) || connection.redis.is_restricted_subscriber() {
                self.end_connection_of_user(address, asked.contains(&address));
            }
        }
    }

    /// Ends this connection if its user has been removed, or if it subscribes to what its user may not hear any more.
    fn end_connection_of_user(&mut self, address: u64, asked: bool) {
        let Some(connection) = self.connections.get_mut(address) else { return };
        let redis = &mut connection.redis;
        let has_waited = redis.end_waiting_for_users();
        let is_removed = redis.on_users(asked);
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

#[cfg(test)]
mod tests;
