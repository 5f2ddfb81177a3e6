//! Commands that wait for elements, as long as their clients want to wait.
//!
//! The group knows who waits for a key, and in which order ([`Take`](TakeParts)). What is here submits a command when it
//! comes, learns that it has to wait, and submits it again when it is its turn. Whether it is, the state says ([`Turns`]):
//! that is looked at when something has been executed on one of the keys, and now and then in any case, so nothing depends
//! on having heard of a change. A command ends when it is answered, when its time has passed, or when its client or this
//! process wants it to. It is taken out of the queues then ([`Leave`]), in the background: nothing is lost if that takes
//! long, for an element is taken only by submitting the command again.
//!
//! XREAD and XREADGROUP stand in no queue. Their connections submit them, for their replies may be long and need room; a
//! reply that has nothing in it is kept back here, and the connection submits the command again when the state has something
//! ([`XNews`]): XREAD from the ids on that this reply has named, for each client by itself; XREADGROUP for one client of a
//! group at a time, the one that has waited longest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use syros_commands::families::{Leave, TakeParts, Turns, WaiterId, XNews};
use syros_commands::{Arguments, Command, Operation, Reply, is_waits, operations, put_error};
use syros_protocol::client::Outcome;
#[cfg(feature = "planted-bugs")]
use syros_protocol::client::Token;
use syros_protocol::message::Body;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_resp::{Completion, Unblocking};
use syros_types::{Class, Database, Footprint, Instant, Now, ReplicaId, ReplicaSet, key_hash, key_hash_in};

use self::readers::Reader;
pub(super) use self::readers::Resubmission;
use super::errand::{Errand, ErrandKind, WaitedKey, WaitedKind};
#[cfg(feature = "planted-bugs")]
use super::group_client::Submitted;
use super::group_client::completion;
use crate::waited_keys::WaitedKeys;

/// A command that waits at a node counts as waiting for so long without saying so again. Nodes notice at once when another
/// one dies, as far as somebody waits there behind those of the dead one; this is for what is left otherwise.
const LEASE: Duration = Duration::from_secs(60);

/// The same at a gateway, whose death nobody notices.
const GATEWAY_LEASE: Duration = Duration::from_secs(15);

/// A key is looked at so often by a node, which hears what is executed.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// A key is looked at so often by a gateway, which hears of nothing: first, and after a while without a change.
const POLL_INTERVALS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// A command whose turn it was, and that got nothing, is submitted again so much later: at first, and at most.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// A command whose turn has not come to nothing for so long is submitted again at once.
const RETRIES_FORGOTTEN: Duration = Duration::from_secs(1);

/// A command that should be in a queue for so long, and is not, is submitted again.
const MISSED_AFTER: Duration = Duration::from_millis(100);

/// A command that could not be taken out of the queues is to be taken out again so much later.
const LEAVE_PAUSE: Duration = Duration::from_secs(1);

/// A member that this process has never reached counts as lost after so long.
const UNREACHED_MAX: Duration = Duration::from_secs(5);

/// A member that is connected, and does not answer in time, counts as lost after so long.
const LATE_MAX: Duration = Duration::from_secs(5);

/// A member that does not answer in time is asked so often whether it does now: if it is asked for nothing else, it has no other
/// occasion to answer.
const LATE_ASKED_EVERY: Duration = Duration::from_secs(1);

/// Looks that wait for an answer from elsewhere, and commands to be taken out of queues that are on their way, at most: the
/// others come after them.
const IN_FLIGHT_MAX: usize = 256;

/// What is answered after CLIENT UNBLOCK with ERROR.
const UNBLOCKED: &[u8] = b"UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// A command that a connection waits for has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaitEnd {
    pub(super) address: u64,
    pub(super) slot: u64,
    pub(super) completion: Completion,
}

/// Why a command is to wait no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It is answered nil.
    TimePassed,
    /// It is answered with an error.
    Unblocked,
    /// Its client has gone.
    ClientGone,
}

/// A command that may have to wait.
#[derive(Debug)]
struct Wait {
    address: u64,
    slot: u64,
    /// The client, by the number that CLIENT ID answers.
    client: u64,
    /// The operation as the connection has made it, or, of a reader, as it is to be submitted next.
    body: Body,
    footprint: Footprint,
    keys: Vec<WaitedKey>,
    /// It waits for entries of streams, in no queue.
    reader: Option<Reader>,
    until: Instant,
    /// It is on its way.
    is_asking: bool,
    /// Since when it waits, in the queues if there are any; `None` if it has not been told to wait.
    stands_since: Option<Instant>,
    /// Not to be submitted again before.
    retry_at: Instant,
    /// How often in a row its turn has come to nothing.
    retries: u32,
    /// When it is to say again that it waits.
    renew_at: Instant,
    /// It is to end as soon as it is known what has become of what is on its way.
    ends: Option<Reason>,
}

/// A key that commands wait for here.
#[derive(Debug)]
struct WaitedFor {
    database: Database,
    name: Vec<u8>,
    /// The name of the group, if the consumers of one wait.
    group: Vec<u8>,
    waits: BTreeSet<u64>,
    /// How many of these have been told to wait: they should stand in its queue.
    told: u64,
    /// It is in the list of those to be looked at, or is being looked at.
    is_looked_at: bool,
    /// It is to be looked at once more then.
    again: bool,
    look_at: Instant,
    interval: Duration,
}

/// A command that is to be taken out of the queues of its keys.
#[derive(Debug)]
struct Departure {
    database: Database,
    keys: Vec<Vec<u8>>,
    is_list: bool,
    /// Nobody knows what has become of the command, and it may come to stand in the queues until then: it is taken out of them
    /// until it has been after that.
    may_come_until: Instant,
    /// The last time that it had to be was submitted.
    is_last: bool,
}

impl Departure {
    const fn new(database: Database, keys: Vec<Vec<u8>>, is_list: bool) -> Self {
        Self { database, keys, is_list, may_come_until: Instant(0), is_last: false }
    }
}

/// All commands of a front end that may have to wait.
#[derive(Debug)]
pub(super) struct Waits {
    owner: u64,
    own: Option<ReplicaId>,
    /// A client gives up an update after so long at the latest, and then acknowledges it in the next one.
    give_up_after: Duration,
    last: u64,
    waits: BTreeMap<u64, Wait>,
    by_address: BTreeMap<u64, u64>,
    keys: BTreeMap<WaitedKey, WaitedFor>,
    /// When commands have waited long enough, and when they are to be renewed or tried again.
    moments: BTreeSet<(Instant, u64)>,
    /// When keys are to be looked at.
    key_moments: BTreeSet<(Instant, WaitedKey)>,
    /// Commands that are to be taken out of queues, by their numbers.
    departures: BTreeMap<u64, Departure>,
    /// Those of them that are not on their way, and when they may be.
    departing: BTreeSet<(Instant, u64)>,
    errands: VecDeque<Errand>,
    /// Keys to be looked at now.
    looks: VecDeque<WaitedKey>,
    /// Readers that are to be submitted again by their connections.
    resubmissions: VecDeque<u64>,
    /// What has changed of the keys that are waited for, and has not been said.
    news: Vec<(u64, bool)>,
    /// Somebody tells what is executed.
    hears: bool,
    reached: ReplicaSet,
    reachable: ReplicaSet,
    /// Members that are connected and do not answer in time, and since when.
    late: BTreeMap<ReplicaId, Instant>,
    /// When they are asked again.
    late_asked_at: Instant,
    /// Members that count as lost, a bit for each.
    absent: u64,
    /// Members that have never been reached count as lost from then on.
    unreached_at: Instant,
    #[cfg(test)]
    work: usize,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl Waits {
    /// Of the front end of a process with this replica, or of a gateway, in the life that has drawn this number.
    pub(super) fn new(own: Option<ReplicaId>, life: u64, give_up_after: Duration, now: Instant) -> Self {
        Self {
            owner: WaiterId::owner(own.map(|replica| replica.0), life),
            own,
            give_up_after,
            last: 0,
            waits: BTreeMap::new(),
            by_address: BTreeMap::new(),
            keys: BTreeMap::new(),
            moments: BTreeSet::new(),
            key_moments: BTreeSet::new(),
            departures: BTreeMap::new(),
            departing: BTreeSet::new(),
            errands: VecDeque::new(),
            looks: VecDeque::new(),
            resubmissions: VecDeque::new(),
            news: Vec::new(),
            hears: false,
            reached: ReplicaSet(0),
            reachable: ReplicaSet(0),
            late: BTreeMap::new(),
            late_asked_at: Instant::NEVER,
            absent: 0,
            unreached_at: now.after(UNREACHED_MAX),
            #[cfg(test)]
            work: 0,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// The same, wrong in a known way.
    #[cfg(feature = "planted-bugs")]
    pub(super) const fn planted(mut self, bug: Option<PlantedBug>) -> Self {
        self.planted = bug;
        self
    }

    /// What is known of a submission to those who judge a simulation.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn submitted(&self, kind: ErrandKind, token: Token, body: Body) -> Option<Submitted> {
        let ErrandKind::Ask(number) = kind else { return None };
        let wait = self.waits.get(&number)?;
        let (address, slot, made) = (wait.address, wait.slot, Some(wait.body.clone()));
        Some(Submitted { address, slot, token, body, made })
    }

    #[cfg(feature = "planted-bugs")]
    pub(super) const fn owner(&self) -> u64 {
        self.owner
    }

    #[cfg(feature = "planted-bugs")]
    pub(super) fn misses(&self, members: ReplicaSet) -> bool {
        let own: ReplicaSet = self.own.into_iter().collect();
        let late = self.late.keys().copied().collect();
        !members.except(self.reachable.except(late)).except(own).is_empty()
    }

    #[cfg(feature = "planted-bugs")]
    fn is_planted(&self, bug: PlantedBug) -> bool {
        self.planted == Some(bug)
    }

    fn lease(&self) -> Duration {
        if self.own.is_some() { LEASE } else { GATEWAY_LEASE }
    }

    // ---- Commands.

    /// How many commands wait, or may have to.
    pub(super) fn len(&self) -> usize {
        self.waits.len()
    }

    /// A command has come that may have to wait, or comes again. True if it is submitted from here, false if its connection
    /// is to submit it; then [`Self::on_read`] is to be told what has become of it.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        (address, slot, client): (u64, u64, u64),
        body: &Body,
        footprint: &Footprint,
    ) -> bool {
        if self.by_address.contains_key(&address) {
            return false;
        }
        let number = self.last + 1;
        let Some(begun) = self.watch_all(now, body, number) else { return false };
        self.last = number;
        let Begun { keys, reader, timeout_ms } = begun;
        let until = match timeout_ms {
            0 => Instant::NEVER,
            millis => now.after(Duration::from_millis(millis)),
        };
        let is_reader = reader.is_some();
        let wait = Wait {
            address,
            slot,
            client,
            body: body.clone(),
            footprint: footprint.clone(),
            keys,
            reader,
            until,
            is_asking: is_reader,
            stands_since: None,
            retry_at: now,
            retries: 0,
            renew_at: Instant::NEVER,
            ends: None,
        };
        self.moments.insert((until, number));
        self.waits.insert(number, wait);
        self.by_address.insert(address, number);
        self.ask(number);
        !is_reader
    }

    /// Has a command wait for its keys, if it is one that may.
    fn watch_all(&mut self, now: Instant, body: &[u8], number: u64) -> Option<Begun> {
        let operation = operations(body).next()?.ok()?;
        let database = operation.database;
        let (names, (kind, group), reader, timeout_ms) = match &operation.command {
            Command::Take(take) => {
                let take = take.get();
                let kind = if take.action.is_of_lists() { WaitedKind::List } else { WaitedKind::SortedSet };
                (take.keys, (kind, &b""[..]), None, take.timeout_ms)
            }
            Command::XAwait(read) => {
                let read = read.get().read;
                let reader = Reader::Entries { behind: Vec::new() };
                (read.keys, (WaitedKind::Stream, &b""[..]), Some(reader), read.block_ms?)
            }
            Command::XReadGroup(read) => {
                let read = read.get();
                let kind = WaitedKind::Group(key_hash(read.group));
                (read.keys, (kind, read.group), Some(Reader::Group), read.block_ms?)
            }
            _ => return None,
        };
        let names: BTreeSet<&[u8]> = names.iter().collect();
        let mut keys = Vec::with_capacity(names.len());
        for name in names {
            let key = WaitedKey { hash: key_hash_in(database, name), kind };
            self.watch(now, key, (database, name, group), number);
            keys.push(key);
        }
        Some(Begun { keys, reader, timeout_ms })
    }

    /// A command waits for a key.
    fn watch(
        &mut self,
        now: Instant,
        key: WaitedKey,
        (database, name, group): (Database, &[u8], &[u8]),
        number: u64,
    ) {
        self.news.push((key.hash, true));
        let (interval, hears) = (POLL_INTERVALS.0, self.hears);
        let look_at = now.after(if hears { LOOK_INTERVAL } else { interval });
        let entry = self.keys.entry(key).or_insert_with(|| WaitedFor {
            database,
            name: name.to_vec(),
            group: group.to_vec(),
            waits: BTreeSet::new(),
            told: 0,
            is_looked_at: false,
            again: false,
            look_at,
            interval,
        });
        entry.waits.insert(number);
        // One more wants to know soon.
        self.key_moments.remove(&(entry.look_at, key));
        entry.interval = interval;
        entry.look_at = entry.look_at.min(look_at);
        self.key_moments.insert((entry.look_at, key));
    }

    /// Submits a command, for the first time or again.
    fn ask(&mut self, number: u64) {
        let lease = self.lease();
        let id = WaiterId { owner: self.owner, sequence: number };
        #[cfg(feature = "planted-bugs")]
        let id = self.confuse(id);
        let absent = self.absent;
        let Some(wait) = self.waits.get_mut(&number).filter(|wait| !wait.is_asking) else { return };
        if wait.reader.is_some() {
            wait.is_asking = true;
            return self.resubmissions.push_back(number);
        }
        let Some((take, database)) = take_of(&wait.body) else { return };
        wait.is_asking = true;
        let mut body = Vec::with_capacity(wait.body.len() + 16);
        let is_renewed = wait.stands_since.is_some();
        let lease_ms = lease.as_millis() as u64;
        let take = TakeParts { waiter: id, is_renewed, lease_ms, absent, ..take };
        take.encode_in(database, &mut body);
        self.errands.push_back(Errand {
            kind: ErrandKind::Ask(number),
            body: Body::from(body),
            class: Class::Update,
            footprint: wait.footprint.clone(),
        });
    }

    /// What a known-wrong variant makes of the place of a command.
    #[cfg(feature = "planted-bugs")]
    fn confuse(&mut self, mut id: WaiterId) -> WaiterId {
        if self.is_planted(PlantedBug::PlaceNotKept) {
            self.last += 1;
            id.sequence |= self.last << 32;
        }
        id
    }

    /// What has become of a command that was submitted: its end, if that is one.
    pub(super) fn on_asked(&mut self, now: Instant, number: u64, outcome: Outcome) -> Option<WaitEnd> {
        #[cfg(feature = "planted-bugs")]
        let outcome = match outcome {
            Outcome::Unknown if self.is_planted(PlantedBug::TakenForNothing) => Outcome::TimedOut,
            outcome => outcome,
        };
        let renew_at = now.after(self.lease() / 3);
        let wait = self.waits.get_mut(&number)?;
        wait.is_asking = false;
        let stood = wait.stands_since.is_some();
        self.moments.remove(&(wait.renew_at, number));
        wait.renew_at = renew_at;
        self.moments.insert((renew_at, number));
        // Both may have been of one moment.
        self.moments.insert((wait.until, number));
        match outcome {
            Outcome::Reply(reply) if is_waits(&reply) => self.on_nothing(now, number),
            Outcome::Reply(reply) => {
                // An error has changed nothing, so its places are still kept.
                let is_error = matches!(Reply::decode_all(&reply).as_deref(), Ok([Reply::Error(_)]));
                self.finish(now, number, Completion::Reply(reply), stood && is_error)
            }
            Outcome::Unknown => {
                let end = self.finish(now, number, Completion::Unknown, true);
                self.may_come_yet(now, number);
                end
            }
            _ if wait.ends.is_some() => {
                let reason = wait.ends?;
                self.end(now, number, reason)
            }
            // It has had no effect.
            _ if stood => self.try_later(now, number),
            failure => self.finish(now, number, completion(failure), false),
        }
    }

    /// There is nothing for a command that was submitted: its end, if it is to wait no longer.
    fn on_nothing(&mut self, now: Instant, number: u64) -> Option<WaitEnd> {
        let wait = self.waits.get_mut(&number)?;
        let has_stood = wait.stands_since.replace(wait.stands_since.unwrap_or(now)).is_some();
        if !has_stood {
            for key in &wait.keys {
                if let Some(waited) = self.keys.get_mut(key) {
                    waited.told += 1;
                }
            }
        }
        if let Some(reason) = wait.ends {
            return self.end(now, number, reason);
        }
        if has_stood {
            let pause = RETRY_PAUSES.0 * (1 << wait.retries.min(16));
            wait.retries = if wait.retry_at.after(RETRIES_FORGOTTEN) < now { 0 } else { wait.retries + 1 };
            wait.retry_at = now.after(pause.min(RETRY_PAUSES.1));
            let at = wait.retry_at;
            self.look_before(number, at);
        } else {
            // Elements may have come while it was on its way.
            self.look_before(number, now);
        }
        None
    }

    /// A command that waits could not be submitted again.
    fn try_later(&mut self, now: Instant, number: u64) -> Option<WaitEnd> {
        let wait = self.waits.get_mut(&number)?;
        wait.retry_at = now.after(RETRY_PAUSES.1);
        let at = wait.retry_at;
        self.look_before(number, at);
        None
    }

    /// A command is to wait no longer: its end, unless that has to wait for what is on its way.
    fn end(&mut self, now: Instant, number: u64, reason: Reason) -> Option<WaitEnd> {
        let wait = self.waits.get_mut(&number)?;
        if wait.is_asking {
            wait.ends.get_or_insert(reason);
            return None;
        }
        let mut reply = Vec::new();
        match reason {
            Reason::TimePassed | Reason::ClientGone => syros_commands::put_nil_array(&mut reply),
            Reason::Unblocked => put_error(&mut reply, UNBLOCKED),
        }
        let stood = wait.stands_since.is_some();
        self.finish(now, number, Completion::Reply(reply.into()), stood)
    }

    /// Forgets a command that has ended; if it `may_stand` in queues, it is taken out of them.
    fn finish(
        &mut self,
        now: Instant,
        number: u64,
        completion: Completion,
        may_stand: bool,
    ) -> Option<WaitEnd> {
        let wait = self.waits.remove(&number)?;
        self.moments.remove(&(wait.until, number));
        self.moments.remove(&(wait.renew_at, number));
        if self.by_address.get(&wait.address) == Some(&number) {
            self.by_address.remove(&wait.address);
        }
        if may_stand && let Some((take, database)) = take_of(&wait.body) {
            let keys = take.keys.iter().map(<[u8]>::to_vec).collect();
            self.depart(now, number, Departure::new(database, keys, take.action.is_of_lists()));
        }
        for key in &wait.keys {
            self.news.push((key.hash, false));
            if let Some(waited) = self.keys.get_mut(key) {
                waited.waits.remove(&number);
                waited.told -= u64::from(wait.stands_since.is_some());
                if waited.waits.is_empty() {
                    self.key_moments.remove(&(waited.look_at, *key));
                    self.keys.remove(key);
                } else if matches!(key.kind, WaitedKind::Group(_)) {
                    // The next one's turn may have come.
                    self.look(*key);
                }
            }
        }
        Some(WaitEnd { address: wait.address, slot: wait.slot, completion })
    }

    /// The client at this address has gone, or wants nothing any more.
    pub(super) fn give_up(&mut self, now: Instant, address: u64) -> Option<WaitEnd> {
        let number = *self.by_address.get(&address)?;
        self.end(now, number, Reason::ClientGone)
    }

    /// CLIENT UNBLOCK: true if a command of that client waits, and its end if that is known.
    pub(super) fn unblock(&mut self, now: Instant, unblocking: Unblocking) -> (bool, Option<WaitEnd>) {
        let found =
            self.waits.iter().find(|(_, wait)| wait.client == unblocking.client && wait.ends.is_none());
        let Some((number, _)) = found else { return (false, None) };
        let reason = if unblocking.with_error { Reason::Unblocked } else { Reason::TimePassed };
        (true, self.end(now, *number, reason))
    }

    /// The process stops: nobody waits any longer.
    pub(super) fn end_all(&mut self, now: Instant) -> Vec<WaitEnd> {
        let numbers: Vec<u64> = self.waits.keys().copied().collect();
        numbers.into_iter().filter_map(|number| self.end(now, number, Reason::TimePassed)).collect()
    }

    // ---- Departures.

    /// Has a command taken out of the queues of its keys.
    fn depart(&mut self, now: Instant, sequence: u64, departure: Departure) {
        #[cfg(feature = "planted-bugs")]
        if self.is_planted(PlantedBug::DepartureForgotten) {
            return;
        }
        self.departures.insert(sequence, departure);
        self.departing.insert((now, sequence));
    }

    /// Nobody knows what has become of a command that is to leave the queues: a member may hold it, and have it executed after the
    /// departure. It cannot be executed any more after an update that acknowledges it, and one that is submitted when all before the
    /// command have been given up does.
    fn may_come_yet(&mut self, now: Instant, number: u64) {
        #[cfg(feature = "planted-bugs")]
        if self.is_planted(PlantedBug::LeftOnce) {
            return;
        }
        if let Some(departure) = self.departures.get_mut(&number) {
            departure.may_come_until = now.after(self.give_up_after);
        }
    }

    /// What has become of a departure.
    pub(super) fn on_left(&mut self, now: Instant, number: u64, outcome: &Outcome) {
        let Some(departure) = self.departures.get(&number) else { return };
        let has_left = matches!(outcome, Outcome::Done | Outcome::Reply(_));
        if has_left && departure.is_last {
            self.departures.remove(&number);
        } else {
            let pause = if has_left { LEAVE_PAUSE.min(self.give_up_after / 4) } else { LEAVE_PAUSE };
            self.departing.insert((now.after(pause), number));
        }
    }

    fn next_departure(&mut self, now: Instant) -> Option<Errand> {
        let on_their_way = self.departures.len() - self.departing.len();
        let (at, number) = *self.departing.first()?;
        if at > now || on_their_way >= IN_FLIGHT_MAX {
            return None;
        }
        self.departing.pop_first();
        let departure = self.departures.get_mut(&number)?;
        departure.is_last = at >= departure.may_come_until;
        let names: Vec<&[u8]> = departure.keys.iter().map(Vec::as_slice).collect();
        let waiter = WaiterId { owner: self.owner, sequence: number };
        let leave = Leave { waiter, is_list: departure.is_list, keys: Arguments::new(&names) };
        let operation = Operation::new(leave).in_database(departure.database);
        let mut body = Vec::new();
        operation.encode(&mut body);
        Some(Errand {
            kind: ErrandKind::Leave(number),
            body: Body::from(body),
            class: operation.class(),
            footprint: operation.footprint(),
        })
    }

    // ---- Turns.

    /// Has the keys of a command looked at no later than then. A command may wait for a thousand keys: nothing that is done for
    /// each of its keys does this.
    fn look_before(&mut self, number: u64, at: Instant) {
        let Some(wait) = self.waits.get_mut(&number) else { return };
        let keys = std::mem::take(&mut wait.keys);
        keys.iter().for_each(|key| self.look_at_before(*key, at));
        if let Some(wait) = self.waits.get_mut(&number) {
            wait.keys = keys;
        }
    }

    /// Has a key looked at no later than then.
    fn look_at_before(&mut self, key: WaitedKey, at: Instant) {
        self.count_work(1);
        if let Some(waited) = self.keys.get_mut(&key)
            && at < waited.look_at
        {
            self.key_moments.remove(&(waited.look_at, key));
            waited.look_at = at;
            self.key_moments.insert((at, key));
        }
    }

    /// So many keys or commands have been gone through: tests say how many there may be.
    #[cfg(test)]
    const fn count_work(&mut self, steps: usize) {
        self.work += steps;
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "only tests count")]
    const fn count_work(&mut self, _: usize) {}

    /// Has a key looked at now.
    fn look(&mut self, key: WaitedKey) {
        let Some(waited) = self.keys.get_mut(&key) else { return };
        if std::mem::replace(&mut waited.is_looked_at, true) {
            waited.again = true;
        } else {
            self.looks.push_back(key);
        }
    }

    /// Says which keys are waited for to what executes the log in this process, and hears what has been touched.
    pub(super) fn exchange(&mut self, waited: &mut WaitedKeys) {
        self.hears = true;
        for (hash, is_more) in self.news.drain(..) {
            if is_more {
                waited.add(hash);
            } else {
                waited.remove(hash);
            }
        }
        for hash in waited.take_touched() {
            let keys: Vec<WaitedKey> =
                self.keys.range(WaitedKey::all_of(hash)).map(|(key, _)| *key).collect();
            keys.into_iter().for_each(|key| self.look(key));
        }
    }

    /// The next question to the state; [`Self::on_look`] is to be told the answer.
    pub(super) fn next_look(&mut self) -> Option<Errand> {
        while let Some(key) = self.looks.pop_front() {
            #[cfg(feature = "planted-bugs")]
            if self.is_planted(PlantedBug::WaiterNotWoken) {
                continue;
            }
            let Some(waited) = self.keys.get(&key) else { continue };
            let operation = self.question(key.kind, waited).in_database(waited.database);
            let mut body = Vec::new();
            operation.encode(&mut body);
            return Some(Errand {
                kind: ErrandKind::Look(key),
                body: Body::from(body),
                class: Class::Read,
                footprint: operation.footprint(),
            });
        }
        None
    }

    /// What is asked of a key.
    fn question<'a>(&self, kind: WaitedKind, waited: &'a WaitedFor) -> Operation<'a> {
        let (key, group) = (waited.name.as_slice(), waited.group.as_slice());
        match kind {
            WaitedKind::List | WaitedKind::SortedSet => {
                let is_list = kind == WaitedKind::List;
                Operation::new(Turns { owner: self.owner, absent: self.absent, is_list, key })
            }
            WaitedKind::Stream => Operation::new(XNews { key, of_group: false, group }),
            WaitedKind::Group(_) => Operation::new(XNews { key, of_group: true, group }),
        }
    }

    /// What the state says of a key; `None` if there was no answer.
    pub(super) fn on_look(&mut self, now: Instant, key: WaitedKey, reply: Option<&[u8]>) {
        let hears = self.hears;
        let (standing, turns) =
            reply.and_then(|reply| self.turns_of(key, reply)).unwrap_or((u64::MAX, Vec::new()));
        let Some(waited) = self.keys.get_mut(&key) else { return };
        waited.is_looked_at = false;
        let has_changed = std::mem::take(&mut waited.again);
        self.key_moments.remove(&(waited.look_at, key));
        waited.interval =
            if turns.is_empty() { (waited.interval * 2).min(POLL_INTERVALS.1) } else { POLL_INTERVALS.0 };
        waited.look_at = now.after(if hears { LOOK_INTERVAL } else { waited.interval });
        self.key_moments.insert((waited.look_at, key));
        // Most often all are there. Those that have not been told to wait may be on their way: hundreds may be at a time.
        let is_lacking = waited.waits.len() as u64 > standing;
        let missing = (waited.told > standing).then(|| waited.waits.clone());
        let (database, name) = (waited.database, waited.name.clone());
        for number in turns {
            self.on_turn(now, number, (database, &name), key);
        }
        let are_renewed = missing.is_some_and(|numbers| self.renew_missing(now, &numbers, standing));
        if is_lacking && !are_renewed {
            self.look_at_before(key, now.after(MISSED_AFTER));
        }
        if has_changed {
            self.look(key);
        }
    }

    /// It is the turn of this command, as far as the state knows that was looked at.
    fn on_turn(&mut self, now: Instant, number: u64, (database, name): (Database, &[u8]), key: WaitedKey) {
        match self.waits.get(&number) {
            Some(wait) if wait.is_asking => {}
            Some(wait) if wait.retry_at <= now => self.ask(number),
            Some(wait) => {
                let at = wait.retry_at;
                self.look_at_before(key, at);
            }
            // It has ended, and stands before others.
            None if self.departures.contains_key(&number) => {}
            None => {
                let is_list = key.kind == WaitedKind::List;
                self.depart(now, number, Departure::new(database, vec![name.to_vec()], is_list));
            }
        }
    }

    /// So many commands of this front end stand in the queue of a key, where these should: if some lack that have not just come, all
    /// of those say again that they wait. True if they do; else it may be that the others are on their way.
    fn renew_missing(&mut self, now: Instant, numbers: &BTreeSet<u64>, standing: u64) -> bool {
        self.count_work(numbers.len());
        let stand = |number: &u64| {
            let since = self.waits.get(number).and_then(|wait| wait.stands_since);
            since.is_some_and(|since| since.after(MISSED_AFTER) <= now)
        };
        let settled: Vec<u64> = numbers.iter().copied().filter(stand).collect();
        if settled.len() as u64 <= standing {
            return false;
        }
        for number in settled {
            if self.waits.get(&number).is_some_and(|wait| wait.retry_at <= now) {
                self.ask(number);
            }
        }
        true
    }

    // ---- Members.

    /// The members that can be reached, and the connected ones that have not answered in time of late. Those who wait at a member
    /// that is late, and lives, would lose their places.
    pub(super) fn with_late(
        &mut self,
        now: Instant,
        reachable: ReplicaSet,
        connected: ReplicaSet,
    ) -> ReplicaSet {
        let late = connected.except(reachable);
        self.late.retain(|member, _| late.contains(*member));
        for member in late.iter() {
            self.late.entry(member).or_insert(now);
        }
        if self.late.is_empty() {
            self.late_asked_at = Instant::NEVER;
        } else if self.late_asked_at == Instant::NEVER {
            self.late_asked_at = now.after(LATE_ASKED_EVERY);
        }
        let is_patient =
            |member: &ReplicaId| self.late.get(member).is_some_and(|since| now < since.after(LATE_MAX));
        late.iter().filter(is_patient).fold(reachable, ReplicaSet::with)
    }

    /// The late members, if it is time to ask them again.
    pub(super) fn late_to_ask(&mut self, now: Instant) -> Vec<ReplicaId> {
        if now < self.late_asked_at {
            return Vec::new();
        }
        self.late_asked_at = now.after(LATE_ASKED_EVERY);
        self.late.keys().copied().collect()
    }

    /// These members can be reached now. Who waits at one that has been lost does not count any more.
    pub(super) fn set_reachable(
        &mut self,
        now: Instant,
        reachable: ReplicaSet,
        members: impl Iterator<Item = ReplicaId>,
    ) {
        self.reachable = reachable;
        self.reached = self.reached.and(reachable);
        let are_unreached_lost = now >= self.unreached_at;
        let own = self.own;
        let is_lost = |member: &ReplicaId| {
            !reachable.contains(*member)
                && Some(*member) != own
                && (self.reached.contains(*member) || are_unreached_lost)
        };
        let absent = members.filter(is_lost).fold(0, |absent, member| absent | 1_u64 << member.0);
        if absent != self.absent {
            let has_lost = absent & !self.absent != 0;
            self.absent = absent;
            let keys: Vec<WaitedKey> = self.keys.keys().copied().collect();
            for key in keys {
                if has_lost && matches!(key.kind, WaitedKind::List | WaitedKind::SortedSet) {
                    self.take_lost_out(key);
                }
                self.look(key);
            }
        }
    }

    /// Has those taken out of the queue of a key who waited at members that are lost: such a member may be back soon, and
    /// would not know of them.
    fn take_lost_out(&mut self, key: WaitedKey) {
        let Some(waited) = self.keys.get(&key) else { return };
        let stands = |number: &u64| self.waits.get(number).is_some_and(|wait| wait.stands_since.is_some());
        if let Some(number) = waited.waits.iter().copied().find(stands) {
            self.ask(number);
        }
    }

    // ---- Time.

    /// When [`Self::tick`] has something to do.
    pub(super) fn deadline(&self) -> Instant {
        let of_waits = self.moments.first().map_or(Instant::NEVER, |(at, _)| *at);
        let of_keys = self.key_moments.first().map_or(Instant::NEVER, |(at, _)| *at);
        // While as many are on their way as may be, the next one goes when one of them has ended.
        let may_depart = self.departures.len() - self.departing.len() < IN_FLIGHT_MAX;
        let of_departures =
            self.departing.first().filter(|_| may_depart).map_or(Instant::NEVER, |(at, _)| *at);
        of_waits.min(of_keys).min(of_departures).min(self.late_asked_at)
    }

    /// Does what is due: the commands that have ended.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<WaitEnd> {
        let mut ends = Vec::new();
        while let Some((at, number)) = self.moments.first().copied()
            && at <= now
        {
            self.moments.pop_first();
            let Some(wait) = self.waits.get(&number) else { continue };
            if wait.until <= now {
                ends.extend(self.end(now, number, Reason::TimePassed));
            } else if wait.renew_at <= now {
                self.ask(number);
            }
        }
        while let Some((at, key)) = self.key_moments.first().copied()
            && at <= now
        {
            self.key_moments.pop_first();
            self.look(key);
            if let Some(waited) = self.keys.get_mut(&key) {
                // If nobody answers, it is looked at again then.
                waited.look_at = now.after(LOOK_INTERVAL);
                self.key_moments.insert((waited.look_at, key));
            }
        }
        ends
    }

    /// The next thing to be submitted.
    pub(super) fn next_errand(&mut self, now: Now) -> Option<Errand> {
        self.errands.pop_front().or_else(|| self.next_departure(now.instant))
    }

    /// True if something is to be submitted or looked at.
    pub(super) fn has_work(&self) -> bool {
        !self.errands.is_empty() || !self.looks.is_empty() || !self.resubmissions.is_empty()
    }
}

/// A command that has begun to wait for its keys.
struct Begun {
    keys: Vec<WaitedKey>,
    reader: Option<Reader>,
    /// For how long its client wants to wait; 0 without end.
    timeout_ms: u64,
}

/// The operation of a body that is one command which may have to wait, and its database.
fn take_of(body: &[u8]) -> Option<(TakeParts<'_>, Database)> {
    let operation = operations(body).next()?.ok()?;
    match operation.command {
        Command::Take(take) => Some((take.get(), operation.database)),
        _ => None,
    }
}

/// The answer to [`Turns`]: how many stand in the queue, and whose turn it is.
fn turns_in(reply: &[u8]) -> Option<(u64, Vec<u64>)> {
    let replies = Reply::decode_all(reply).ok()?;
    let [Reply::Array(numbers)] = &replies[..] else { return None };
    let number = |reply: &Reply| match reply {
        Reply::Integer(number) => Some(number.cast_unsigned()),
        _ => None,
    };
    let (standing, turns) = numbers.split_first()?;
    Some((number(standing)?, turns.iter().filter_map(number).collect()))
}

mod readers;

#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod tests;
