//! Reads: whom they are asked of, and when the answers suffice.
//!
//! - *leader*: one replica, under its lease;
//! - *meta* (IONIA 4.3): any member gives the value, and the leader, asked at the same time, the last entry
//!   that changed it; the value counts if it was read at that entry or later;
//! - *quorum* (Syros 4.3): a majority give their values; the newest counts if nobody of them knows of
//!   anything newer, be it in the log or in the durability log;
//! - *stale*: any replica, explicitly asked for.
//!
//! An op number of an entry that is not committed means something in one view only: the next view may put other
//! entries there, and a completed update elsewhere. So what members know beyond their values counts for the latest
//! view that any of them answered in, and a value that a member was asked for after such an entry counts only
//! if nobody has answered out of a later view since (`docs/PROTOCOL.md`, "Read progress and views").
//!
//! A value that does not count is asked for again at a member that is to have executed the entry it lacked
//! (a reread; the statistics and PQR call it a rinse), or, if something has to be ordered first, of the leader.
//! A key that expires is in no footprint of the entry that lets it: so values carry the moment their first key expires, and count
//! only if nobody asked has an entry of that time in its log. What TTL answers counts from the clock of the member that
//! gives the value: a value with such a key counts only if the members' times agree.

use super::way_times::Way;
use super::{Action, Client, Distance, NEAR, Outcome, Token, patience, smooth};
use crate::message::{Advised, Asked, Body, Freshness, Message, Refusal};
use crate::replica::PlantedBug;
use core::time::Duration;
use syros_types::{Footprint, Group, Instant, OpNumber, ReadPolicy, ReplicaId, ReplicaSet, View, WallTime};

/// A leader that takes this much longer than it might, in nanoseconds, may be busy.
const BUSY: u64 = 50_000;

/// A follower may hear this much later than its leader that an entry is committed, nanoseconds.
const COMMIT_LAG: u64 = 2_000_000;

/// A replica that has not been heard to answer for so long is asked along with a read, to know how long it takes.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// A value that has not come for so long does not come.
const AWAITED_MAX: Duration = Duration::from_secs(2);

/// How long a leader's word took is not known any more after this long.
const CHANGE_MAX: Duration = Duration::from_secs(1);

/// Times of members that are further apart than this contradict each other. More than clocks that are about right differ
/// and an answer takes.
const TIMES_APART_MAX: Duration = Duration::from_millis(500);

/// Buckets of keys whose reads are remembered to have waited.
const BUCKETS: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) token: Token,
    pub(super) body: Body,
    pub(super) policy: ReadPolicy,
    /// Reads of the same key have the same; `None` of one that is not of one key.
    pub(super) bucket: Option<u8>,
    pub(super) invoked: Instant,
    /// When it was last asked of somebody.
    pub(super) sent: Instant,
    pub(super) attempts: u32,
    pub(super) source: ReadSource,
    pub(super) progress: ReadProgress,
    /// Those that have been asked for a value and have not answered.
    pub(super) waits_for: ReplicaSet,
    /// Others were asked before the leader is.
    pub(super) referred: bool,
    /// A member that it waits for has refused it: no answer is on its way.
    pub(super) refused: bool,
}

/// Whom a read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReadSource {
    /// The leader's answer.
    Leader,
    /// A member's value, and the leader's word on it.
    Meta { member: ReplicaId },
    /// The values of these members.
    Quorum { asked: ReplicaSet },
    /// A member's value once it has executed an entry; it may not hold a key that expires by `time`. Entry and time are
    /// what a member of this view has named.
    Reread { member: ReplicaId, after: OpNumber, time: WallTime, view: View },
    /// Any value of this replica.
    Stale { member: ReplicaId },
}

impl ReadSource {
    /// Members that were asked for a value.
    const fn members(self) -> ReplicaSet {
        match self {
            Self::Leader => ReplicaSet(0),
            Self::Meta { member } | Self::Reread { member, .. } | Self::Stale { member } => {
                ReplicaSet(0).with(member)
            }
            Self::Quorum { asked } => asked,
        }
    }
}

/// What a read has been told, whoever was asked and when: all of it since the read was invoked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadProgress {
    heard: ReplicaSet,
    /// The value of the latest state. Committed entries have the same number in every view, so it counts whatever the
    /// view it was given in.
    best: Option<Value>,
    /// The latest view that a member answered in.
    view: View,
    /// What members that answered in that view know beyond their values, taken together.
    beyond: Freshness,
    /// Who has the last entry of these in its log.
    accepted_by: ReplicaId,
    /// The earliest and the latest time of the members that answered, whatever the view.
    times: (WallTime, WallTime),
    /// The leader's word.
    change: Option<(OpNumber, WallTime)>,
}

impl Default for ReadProgress {
    fn default() -> Self {
        let (heard, beyond) = (ReplicaSet(0), Freshness::default());
        let times = (WallTime(u64::MAX), WallTime(0));
        Self { heard, best: None, view: View(0), beyond, accepted_by: ReplicaId(0), times, change: None }
    }
}

impl ReadProgress {
    /// Takes in what a member says in `view`. True if it had not answered before.
    fn add(&mut self, from: ReplicaId, view: View, value: Value, freshness: Freshness) -> bool {
        let is_first = !self.heard.contains(from);
        self.heard = self.heard.with(from);
        self.times = (self.times.0.min(freshness.time), self.times.1.max(freshness.time));
        if view > self.view {
            // What logs of earlier views held and no later one does was never complete.
            (self.view, self.beyond) = (view, Freshness::default());
        }
        if view == self.view {
            if freshness.accepted > self.beyond.accepted {
                self.beyond.accepted = freshness.accepted;
                self.accepted_by = from;
            }
            self.beyond.unordered |= freshness.unordered;
            self.beyond.time = self.beyond.time.max(freshness.time);
        }
        if self.best.as_ref().is_none_or(|best| best.applied < value.applied) {
            self.best = Some(value);
        }
        is_first
    }

    /// True if the times of all members that answered are about one time, `time` among them. A member counts what is left
    /// of a lifetime from its own clock. `f + 1` clocks that agree are about right, because one of them is right; and so
    /// is one clock that agrees with the leader's time.
    fn agrees_on(&self, time: WallTime) -> bool {
        self.times.1.max(time) <= self.times.0.min(time).after(TIMES_APART_MAX)
    }
}

/// A member's answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    applied: OpNumber,
    expiry: WallTime,
    reply: Body,
}

impl Value {
    /// True if no key of it can have expired where the log has come to `time`.
    fn lasts(&self, time: WallTime) -> bool {
        self.expiry.0 == 0 || self.expiry > time
    }
}

/// How reads were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReadCounts {
    /// By the leader, asked at once.
    pub leader: u64,
    /// By a member with the leader's word, in one round trip.
    pub meta: u64,
    /// By a majority, in one round trip.
    pub quorum: u64,
    /// By a member that was asked a second time, to have executed an entry.
    pub rinsed: u64,
    /// By the leader, after others had been asked.
    pub referred: u64,
    /// By the leader, because it was of several keys.
    pub several: u64,
    /// By any replica, on whatever state.
    pub stale: u64,
}

impl ReadCounts {
    /// Each with its name.
    #[must_use]
    pub const fn named(self) -> [(&'static str, u64); 7] {
        let Self { leader, meta, quorum, rinsed, referred, several, stale } = self;
        [
            ("leader", leader),
            ("meta", meta),
            ("quorum", quorum),
            ("rinsed", rinsed),
            ("referred", referred),
            ("several", several),
            ("stale", stale),
        ]
    }
}

/// What a client knows of how long replicas take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Latencies {
    /// Smoothed time to a value, nanoseconds; 0 if not known.
    values: [u64; Group::SIZE_MAX],
    /// How far each is, as its values tell.
    distances: [Distance; Group::SIZE_MAX],
    /// Values that were asked for and have not come.
    outstanding: [u32; Group::SIZE_MAX],
    /// Smoothed time to the leader's word, nanoseconds, and when it was heard last.
    change: u64,
    change_noted: Instant,
    /// Smoothed time to a read of several keys, nanoseconds; 0 if not known.
    several: u64,
    /// When each was last heard to answer, or asked to.
    sampled: [Instant; Group::SIZE_MAX],
    /// Reads of a bucket that a quorum could not answer at once, smoothed, of 256.
    waits: [u8; BUCKETS],
    /// A value that each was asked for, and when: it tells how far the replica is even if nobody waits for it
    /// any more.
    awaited: [Option<(u64, Instant)>; Group::SIZE_MAX],
    /// The same of the leader's word.
    awaited_change: Option<(u64, Instant)>,
    turn: usize,
    /// The leader has been slower than others would be: they share its reads until it is clearly faster again.
    sharing: bool,
}

impl Latencies {
    pub(super) const fn new() -> Self {
        Self {
            values: [0; Group::SIZE_MAX],
            distances: [Distance::UNKNOWN; Group::SIZE_MAX],
            outstanding: [0; Group::SIZE_MAX],
            change: 0,
            change_noted: Instant(0),
            several: 0,
            sampled: [Instant(0); Group::SIZE_MAX],
            waits: [0; BUCKETS],
            awaited: [None; Group::SIZE_MAX],
            awaited_change: None,
            turn: 0,
            sharing: false,
        }
    }

    /// The longest of what usually takes some time.
    #[cfg(feature = "model")]
    pub(super) fn slowest(&self) -> u64 {
        let values = self.values.iter().max().copied().unwrap_or_default();
        values.max(self.change).max(self.several)
    }

    pub(super) fn value(&self, replica: ReplicaId) -> u64 {
        self.values[replica.index()]
    }

    pub(super) fn on_value(&mut self, replica: ReplicaId, took: u64, now: Instant) {
        self.values[replica.index()] = smooth(self.value(replica), took.max(1));
        self.distances[replica.index()].on_answer(took, now);
        self.sampled[replica.index()] = now;
    }

    /// True if it has not been asked for a value that is still to come.
    fn awaits_none(&self, replica: ReplicaId, now: Instant) -> bool {
        Self::is_over(self.awaited[replica.index()], now)
    }

    fn is_over(awaited: Option<(u64, Instant)>, now: Instant) -> bool {
        awaited.is_none_or(|(_, sent)| sent.after(AWAITED_MAX) <= now)
    }

    /// How long the leader's word takes. Only reads of members tell; if there was none of late, as long as its
    /// values take at best.
    fn word(&self, leader: ReplicaId, now: Instant) -> u64 {
        let is_known = self.change_noted.after(CHANGE_MAX) > now;
        if is_known { self.change.max(self.floor(leader)) } else { self.floor(leader) }
    }

    /// What is known of a leader does not hold for the next.
    pub(super) const fn forget_leader(&mut self) {
        self.change = 0;
        self.change_noted = Instant(0);
        self.awaited_change = None;
        self.sharing = false;
    }

    pub(super) fn floor(&self, replica: ReplicaId) -> u64 {
        self.distances[replica.index()].shortest
    }

    /// Of these replicas the one that has the fewest values to give to this client; they take turns.
    fn least_busy(&mut self, size: usize, among: impl Fn(ReplicaId) -> bool) -> Option<ReplicaId> {
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let place = |replica: ReplicaId| (replica.index() + size - turn % size) % size;
        let all = (0..size).map(|index| ReplicaId(index as u8));
        all.filter(|replica| among(*replica))
            .min_by_key(|replica| (self.outstanding[replica.index()], place(*replica)))
    }

    /// A read that was not tried with a quorum: those that waited before count a little less.
    const fn forgive_wait(&mut self, bucket: u8) {
        let waits = &mut self.waits[bucket as usize];
        *waits -= waits.div_ceil(64);
    }

    fn record_change(&mut self, took: u64, now: Instant) {
        self.change = smooth(self.change, took.max(1));
        self.change_noted = now;
    }

    /// True if others are to share the leader's reads, who would take as long as `by_others`. As long as the
    /// leader keeps up nobody need: its word costs as much as its answer.
    fn leader_needs_help(&mut self, leader: ReplicaId, by_others: u64) -> bool {
        let (value, floor) = (self.value(leader), self.floor(leader));
        self.sharing = if self.sharing {
            value + value / 4 >= by_others
        } else {
            value > floor + floor / 4 + BUSY && value > by_others
        };
        self.sharing
    }

    fn record_wait(&mut self, bucket: u8, waited: bool) {
        let waits = &mut self.waits[usize::from(bucket)];
        *waits = if waited { *waits + (255 - *waits) / 4 } else { *waits - waits.div_ceil(8) };
    }
}

/// The bucket of a read's key, if it is of one.
const fn bucket(footprint: &Footprint) -> Option<u8> {
    match footprint {
        Footprint::One(key) => Some((*key >> 56) as u8),
        _ => None,
    }
}

impl Read {
    /// Nanoseconds that an answer has taken. If it was asked for several times nobody can tell; then no less
    /// than it may have been, so that nobody is asked again and again too soon.
    fn took(&self, now: Instant) -> u64 {
        let since = if self.attempts == 1 { self.sent } else { self.invoked };
        now.since(since).as_nanos() as u64
    }
}

impl Client {
    pub(super) fn new_read(&self, token: Token, body: Body, policy: ReadPolicy, keys: &Footprint) -> Read {
        let (invoked, sent) = (self.now.instant, self.now.instant);
        let bucket = bucket(keys);
        Read {
            token,
            body,
            policy,
            bucket,
            invoked,
            sent,
            attempts: 0,
            source: ReadSource::Leader,
            progress: ReadProgress::default(),
            waits_for: ReplicaSet(0),
            referred: false,
            refused: false,
        }
    }

    /// How reads were answered so far.
    #[must_use]
    pub const fn read_counts(&self) -> ReadCounts {
        self.read_counts
    }

    /// Replicas that can be expected to answer.
    pub(super) const fn usable(&self) -> ReplicaSet {
        self.members.usable()
    }

    /// Begins a read anew in another view: what has been said of entries of the last one may not hold.
    pub(super) fn restart_read(&mut self, number: u64) {
        if let Some(read) = self.reads.get_mut(number) {
            read.progress = ReadProgress::default();
            self.send_read(number);
        }
    }

    /// Asks a read's questions, for the first time or anew.
    pub(super) fn send_read(&mut self, number: u64) {
        let Some(read) = self.reads.get_mut(number) else { return };
        read.attempts = read.attempts.saturating_add(1);
        read.refused = false;
        let (policy, bucket) = (read.policy, read.bucket);
        let source = self.choose(policy, bucket);
        self.ask_source(number, source);
        if policy != ReadPolicy::Leader && bucket.is_some() {
            self.sample(number);
        }
    }

    /// Has a read wait for this source from now on.
    fn ask_source(&mut self, number: u64, source: ReadSource) {
        let (view, leader, now) = (self.view, self.leader(), self.now.instant);
        let Some(read) = self.reads.get_mut(number) else { return };
        read.sent = now;
        read.source = source;
        let body = read.body.clone();
        let asked = if source == ReadSource::Leader { ReplicaSet(0).with(leader) } else { source.members() };
        for replica in asked.iter() {
            if !read.waits_for.contains(replica) {
                read.waits_for = read.waits_for.with(replica);
                self.latencies.outstanding[replica.index()] += 1;
            }
        }
        if !matches!(source, ReadSource::Reread { .. }) {
            for member in source.members().iter() {
                if self.latencies.awaits_none(member, now) {
                    self.latencies.awaited[member.index()] = Some((number, now));
                }
            }
        }
        if matches!(source, ReadSource::Meta { .. }) && Latencies::is_over(self.latencies.awaited_change, now)
        {
            self.latencies.awaited_change = Some((number, now));
        }
        let mut ask = |to: ReplicaId, asked: Asked| {
            self.send(to, Message::Read { view, number, asked, body: body.clone() });
        };
        let now_known = Asked::Value { after: OpNumber(0) };
        match source {
            ReadSource::Leader => ask(leader, Asked::Answer),
            ReadSource::Meta { member } => {
                ask(member, now_known);
                ask(leader, Asked::LastChange);
            }
            ReadSource::Quorum { asked } => {
                asked.iter().for_each(|member| ask(member, now_known));
            }
            ReadSource::Reread { member, after, .. } => ask(member, Asked::Value { after }),
            ReadSource::Stale { member } => ask(member, Asked::StaleValue),
        }
    }

    fn choose(&mut self, policy: ReadPolicy, bucket: Option<u8>) -> ReadSource {
        let Some(bucket) = bucket.or((policy == ReadPolicy::Stale).then_some(0)) else {
            // Of several keys only the leader can tell what they were at one time.
            return ReadSource::Leader;
        };
        let source = match policy {
            ReadPolicy::Leader => None,
            ReadPolicy::Meta => self.nearest(1).map(|members| self.meta(members)),
            ReadPolicy::Quorum => self.quorum(),
            ReadPolicy::Stale => {
                self.nearest(1).and_then(ReplicaSet::first).map(|member| ReadSource::Stale { member })
            }
            ReadPolicy::Auto => self.earliest(bucket),
        };
        source.unwrap_or(ReadSource::Leader)
    }

    /// The source that has a member give the value; the leader needs nobody's word.
    fn meta(&self, members: ReplicaSet) -> ReadSource {
        match members.first() {
            Some(member) if member != self.leader() => ReadSource::Meta { member },
            _ => ReadSource::Leader,
        }
    }

    fn quorum(&mut self) -> Option<ReadSource> {
        self.nearest(self.read_quorum()).map(|asked| ReadSource::Quorum { asked })
    }

    /// Members whose values make a quorum.
    fn read_quorum(&self) -> usize {
        let majority = self.config.configuration.majority();
        if self.planted(PlantedBug::QuorumOfOneLess) { (majority - 1).max(1) } else { majority }
    }

    /// So many of the nearest replicas; of those that are about equally near the least busy.
    fn nearest(&mut self, count: usize) -> Option<ReplicaSet> {
        let usable = self.usable();
        let usable = if usable.len() < count { self.members.connected } else { usable };
        let size = self.config.configuration.size();
        let mut chosen = ReplicaSet(0);
        while chosen.len() < count {
            let left = |replica: ReplicaId| usable.contains(replica) && !chosen.contains(replica);
            let members = self.config.configuration.members().filter(|replica| left(*replica));
            let nearest = members.map(|replica| self.latencies.floor(replica)).min()?;
            let floors = self.latencies.distances.map(|distance| distance.shortest);
            let near = |replica: ReplicaId| floors[replica.index()] <= nearest + nearest / 8 + NEAR;
            chosen = chosen.with(self.latencies.least_busy(size, |replica| left(replica) && near(replica))?);
        }
        Some(chosen)
    }

    /// The linearizable source that promises the earliest answer.
    fn earliest(&mut self, bucket: u8) -> Option<ReadSource> {
        let (leader, usable, group) = (self.leader(), self.usable(), self.config.configuration.group());
        if !usable.contains(leader) {
            return self.quorum();
        }
        if self.latencies.value(leader) == 0 || group.size() == 1 {
            return None;
        }
        let latencies = &self.latencies;
        let word = latencies.word(leader, self.now.instant);
        let known = |replica: ReplicaId| usable.contains(replica) && latencies.value(replica) > 0;
        let cost = |replica: ReplicaId, value: u64| if replica == leader { value } else { value.max(word) };
        let members = || group.members().filter(|replica| known(*replica));
        let soonest = members().map(|replica| cost(replica, latencies.value(replica))).min()?;
        if self.follows_advice(leader) {
            return None;
        }
        let waits = u64::from(latencies.waits[usize::from(bucket)]);
        let by_quorum = self.by_majority(|replica| latencies.value(replica));
        // A quorum costs more replicas an answer, so it has to be clearly better. Where it cannot answer it has
        // only been asked in vain, and the leader takes as long as it would have.
        let saved = (soonest - soonest / 8) / 256 * (256 - waits);
        let by_others = members().filter(|replica| *replica != leader);
        let by_others = by_others.map(|replica| cost(replica, latencies.value(replica))).min();
        if by_quorum.saturating_add(NEAR) < saved {
            return self.quorum();
        }
        if by_quorum.saturating_add(NEAR) < soonest - soonest / 8 {
            // But for the keys. It is tried again after a while.
            self.latencies.forgive_wait(bucket);
        }
        if !self.latencies.leader_needs_help(leader, by_others.unwrap_or(u64::MAX)) {
            return None;
        }
        // Whoever could answer as soon if nothing waited there shares the reads, the least busy first: what
        // replicas took of late says how busy they were.
        let floors = self.latencies.distances.map(|distance| distance.shortest);
        let shares = |replica: ReplicaId| {
            usable.contains(replica)
                && floors[replica.index()] > 0
                && cost(replica, floors[replica.index()]) <= soonest + soonest / 8
        };
        let mut sharing = ReplicaSet(0);
        for replica in group.members().filter(|replica| shares(*replica)) {
            sharing = sharing.with(replica);
        }
        let member = self.latencies.least_busy(group.size(), |replica| sharing.contains(replica))?;
        Some(self.meta(ReplicaSet(0).with(member)))
    }

    /// True if this client has the leader answer its reads, as that asks for. It does not if a quorum is clearly nearer: what
    /// this client waits for is distance, then.
    fn follows_advice(&self, leader: ReplicaId) -> bool {
        if !self.is_advised(Advised::Reads) {
            return false;
        }
        let by_quorum = self.by_majority(|replica| self.latencies.floor(replica));
        self.latencies.floor(leader) <= by_quorum.saturating_add(by_quorum / 2).saturating_add(NEAR)
    }

    /// What the farthest of the nearest majority takes, in nanoseconds, where 0 is not known.
    fn by_majority(&self, takes: impl Fn(ReplicaId) -> u64) -> u64 {
        let (usable, group) = (self.usable(), self.config.configuration.group());
        let mut times = [u64::MAX; Group::SIZE_MAX];
        for replica in group.members().filter(|replica| usable.contains(*replica) && takes(*replica) > 0) {
            times[replica.index()] = takes(replica);
        }
        times.sort_unstable();
        times[group.majority() - 1]
    }

    /// Has a replica that nothing has been heard of for a while answer along with a read.
    fn sample(&mut self, number: u64) {
        let now = self.now.instant;
        let (connected, latencies) = (self.members.connected, &self.latencies);
        let overdue = |member: ReplicaId| latencies.sampled[member.index()].after(SAMPLE_INTERVAL) <= now;
        let unheard = |member: &ReplicaId| {
            connected.contains(*member) && overdue(*member) && latencies.awaits_none(*member, now)
        };
        let members = self.config.configuration.members().filter(unheard);
        let Some(to) = members.min_by_key(|member| latencies.sampled[member.index()]) else { return };
        let Some(read) = self.reads.get_mut(number) else { return };
        let body = read.body.clone();
        self.latencies.sampled[to.index()] = now;
        self.latencies.awaited[to.index()] = Some((number, now));
        let (view, asked) = (self.view, Asked::Value { after: OpNumber(0) });
        self.send(to, Message::Read { view, number, asked, body });
    }

    /// True if this is an answer to a stale read.
    pub(super) fn answers_stale_read(&self, message: &Message) -> bool {
        let (Message::MemberReply { number, .. } | Message::ReadRefused { number, .. }) = message else {
            return false;
        };
        self.reads.get(*number).is_some_and(|read| matches!(read.source, ReadSource::Stale { .. }))
    }

    pub(super) fn on_member_reply(
        &mut self,
        from: ReplicaId,
        view: View,
        number: u64,
        (applied, expiry, reply): (OpNumber, WallTime, Body),
        freshness: Freshness,
    ) {
        let now = self.now.instant;
        let awaited = self.latencies.awaited[from.index()].take_if(|(awaited, _)| *awaited == number);
        if let Some((_, sent)) = awaited {
            self.latencies.on_value(from, now.since(sent).as_nanos() as u64, now);
        }
        let overlooked = self.planted(PlantedBug::ExpiryOverlooked);
        let view = if self.planted(PlantedBug::RinseOfOtherView) { View(0) } else { view };
        let Some(read) = self.reads.get_mut(number) else { return };
        if read.waits_for.contains(from) {
            read.waits_for = read.waits_for.without(from);
            self.latencies.outstanding[from.index()] -= 1;
        }
        let value = Value { applied, expiry: if overlooked { WallTime(0) } else { expiry }, reply };
        let took = read.took(now);
        if let ReadSource::Stale { member } = read.source {
            if member == from {
                if awaited.is_none() {
                    self.latencies.on_value(from, took, now);
                }
                self.way_times.record(Way::ReadStale, now.since(read.invoked));
                let outcome = Outcome::Reply(value.reply);
                self.end_read(number, Some(value.applied), outcome, Some(Way::ReadStale));
                self.read_counts.stale += 1;
            }
            return;
        }
        let is_first = read.progress.add(from, view, value, freshness);
        if is_first
            && awaited.is_none()
            && !matches!(read.source, ReadSource::Leader | ReadSource::Reread { .. })
        {
            self.latencies.on_value(from, took, now);
        }
        self.decide(number);
    }

    pub(super) fn on_last_change(&mut self, number: u64, op_number: OpNumber, time: WallTime) {
        let now = self.now.instant;
        let awaited = self.latencies.awaited_change.take_if(|(awaited, _)| *awaited == number);
        if let Some((_, sent)) = awaited {
            self.latencies.record_change(now.since(sent).as_nanos() as u64, now);
        }
        let Some(read) = self.reads.get_mut(number) else { return };
        if read.progress.change.is_none() {
            let took = read.took(now);
            read.progress.change = Some((op_number, time));
            if awaited.is_none() {
                self.latencies.record_change(took, now);
            }
            self.decide(number);
        }
    }

    /// Ends a read if what it has been told suffices, or takes the next step if that was all.
    fn decide(&mut self, number: u64) {
        let (quorum, leader) = (self.read_quorum(), self.leader());
        let usable = self.usable();
        let Some(read) = self.reads.get_mut(number) else { return };
        let progress = &read.progress;
        let ReadProgress { heard, best: Some(best), view, beyond, accepted_by, change, .. } = progress else {
            return;
        };
        let is_timed = |time: WallTime| best.expiry.0 == 0 || progress.agrees_on(time);
        let suits =
            |after: OpNumber, time: WallTime| best.applied >= after && best.lasts(time) && is_timed(time);
        let counts = &mut self.read_counts;
        let by_leader = change.is_some_and(|(after, time)| suits(after, time));
        let by_quorum = heard.len() >= quorum && !beyond.unordered && suits(beyond.accepted, beyond.time);
        let how = match read.source {
            // It took more than one round trip, whatever it is that lets the value count now.
            ReadSource::Reread { after, time, view: named_in, .. }
                if by_leader || by_quorum || (*view == named_in && suits(after, time)) =>
            {
                Some((&mut counts.rinsed, Way::ReadRinsed))
            }
            _ if by_leader => Some((&mut counts.meta, Way::ReadByMeta)),
            _ if by_quorum => Some((&mut counts.quorum, Way::ReadByQuorum)),
            _ => None,
        };
        let (is_quorum, bucket) = (matches!(read.source, ReadSource::Quorum { .. }), read.bucket);
        if let Some((count, way)) = how {
            *count += 1;
            self.way_times.record(way, self.now.instant.since(read.invoked));
            let (applied, reply) = (best.applied, best.reply.clone());
            if is_quorum {
                self.latencies.record_wait(bucket.unwrap_or_default(), false);
            }
            return self.end_read(number, Some(applied), Outcome::Reply(reply), Some(way));
        }
        // The leader has executed it first; unless it is far, it answers before the member hears of that.
        let latencies = &self.latencies;
        let rereader = |member: ReplicaId| {
            let by_leader = latencies.value(leader);
            let near = by_leader <= latencies.value(member) + COMMIT_LAG;
            if near && usable.contains(leader) { leader } else { member }
        };
        let next = match read.source {
            ReadSource::Meta { member } if heard.contains(member) => match *change {
                None => return,
                // It is committed, and on its way to the member.
                Some((after, time)) if best.applied < after => {
                    ReadSource::Reread { member: rereader(member), after, time, view: *view }
                }
                Some(_) => ReadSource::Leader,
            },
            ReadSource::Quorum { asked } if asked.0 & !heard.0 == 0 => {
                let (member, after, time) = (rereader(*accepted_by), beyond.accepted, beyond.time);
                self.latencies.record_wait(bucket.unwrap_or_default(), true);
                if !beyond.unordered && best.applied < after {
                    ReadSource::Reread { member, after, time, view: *view }
                } else {
                    ReadSource::Leader
                }
            }
            // It has what it was to have, and a key in it may have expired elsewhere; or a later view has begun, and what
            // it was to have means nothing there.
            ReadSource::Reread { after, view: named_in, .. } if best.applied >= after || *view > named_in => {
                ReadSource::Leader
            }
            _ => return,
        };
        if next == ReadSource::Leader {
            self.refer(number);
        } else {
            self.ask_source(number, next);
        }
    }

    /// The leader has to answer: something must be ordered first, or may have expired.
    fn refer(&mut self, number: u64) {
        if let Some(read) = self.reads.get_mut(number) {
            read.referred = true;
        }
        self.ask_source(number, ReadSource::Leader);
    }

    pub(super) fn on_read_reply(&mut self, from: ReplicaId, number: u64, reply: Body) {
        let now = self.now.instant;
        let Some(read) = self.reads.get_mut(number) else { return };
        let took = read.took(now);
        let way = if read.referred {
            self.read_counts.referred += 1;
            Way::ReadReferred
        } else if read.bucket.is_none() && read.policy != ReadPolicy::Leader {
            self.read_counts.several += 1;
            self.latencies.several = smooth(self.latencies.several, took.max(1));
            Way::ReadOfSeveralKeys
        } else {
            self.read_counts.leader += 1;
            if read.source == ReadSource::Leader {
                self.latencies.on_value(from, took, now);
            }
            Way::ReadByLeader
        };
        self.way_times.record(way, now.since(read.invoked));
        self.end_read(number, None, Outcome::Reply(reply), Some(way));
    }

    pub(super) fn on_read_refused(&mut self, from: ReplicaId, view: View, number: u64, refusal: Refusal) {
        let Some(read) = self.reads.get_mut(number) else { return };
        let waited_for = read.source.members().contains(from);
        let is_reread = matches!(read.source, ReadSource::Reread { .. });
        match refusal {
            Refusal::NotNormal if waited_for && is_reread => self.refer(number),
            // Others will do; but if all say so, it is a matter of time.
            Refusal::NotNormal | Refusal::Overloaded if waited_for => {
                let again = read.attempts <= self.config.configuration.size() as u32;
                self.members.on_silent(ReplicaSet::default().with(from));
                if again {
                    self.send_read(number);
                } else {
                    read.refused = true;
                }
            }
            Refusal::NotNormal => {}
            _ if view == self.view || waited_for => {
                self.finish_read(number, Outcome::Refused(refusal));
            }
            _ => {}
        }
    }

    pub(super) fn look_after_read(&mut self, number: u64) {
        let now = self.now.instant;
        let awaits_refused = self.planted(PlantedBug::RefusedReadAwaited);
        let (connected, leader) = (self.members.connected, self.leader());
        let Some(read) = self.reads.get_mut(number) else { return };
        if now.since(read.invoked) >= self.config.settings.give_up_after {
            return self.finish_read(number, Outcome::TimedOut);
        }
        let ReadProgress { heard, change, .. } = &read.progress;
        let members = read.source.members();
        let unheard = members.except(*heard);
        // Rereads and what has been referred wait for entries to be committed, which the leader takes part in.
        let asked = if read.source == ReadSource::Leader { members.with(leader) } else { members };
        let members_take = |asked: ReplicaSet| {
            asked.iter().map(|member| self.latencies.value(member)).max().unwrap_or_default()
        };
        let usual = match read.source {
            ReadSource::Leader if read.bucket.is_none() => members_take(asked).max(self.latencies.several),
            ReadSource::Leader | ReadSource::Quorum { .. } | ReadSource::Stale { .. } => members_take(asked),
            ReadSource::Meta { .. } => members_take(asked).max(self.latencies.word(leader, now)),
            ReadSource::Reread { .. } => members_take(asked.with(leader)),
        };
        let settings = &self.config.settings;
        let soon = patience(settings.sync_after, usual, settings);
        let resend = patience(settings.resend, usual, settings);
        let (silent, patience) = match read.source {
            // Others may know as well.
            ReadSource::Leader
                if read.policy == ReadPolicy::Auto && read.bucket.is_some() && !read.referred =>
            {
                (asked, soon)
            }
            ReadSource::Leader | ReadSource::Reread { .. } => (members, resend),
            // Those that others can stand in for are not waited for as long.
            ReadSource::Stale { .. } => (members, soon),
            // How far the leader is may not be known yet.
            ReadSource::Meta { .. } if change.is_none() && self.latencies.word(leader, now) == 0 => {
                (unheard.with(leader), resend)
            }
            ReadSource::Meta { .. } if change.is_none() => (unheard.with(leader), soon),
            ReadSource::Quorum { .. } | ReadSource::Meta { .. } => (unheard, soon),
        };
        let patience = if read.refused && !awaits_refused { patience.min(settings.resend) } else { patience };
        if now.since(read.sent) >= patience {
            self.members.slow = self.members.slow.and(silent.within(connected));
            if matches!(read.source, ReadSource::Reread { .. }) {
                read.progress = ReadProgress::default();
            }
            self.send_read(number);
        }
    }

    /// Forgets a read: nobody owes it a value any more.
    pub(super) fn remove_read(&mut self, number: u64) -> Option<Read> {
        let read = self.reads.remove(number)?;
        for replica in read.waits_for.iter() {
            self.latencies.outstanding[replica.index()] -= 1;
        }
        Some(read)
    }

    /// A read ends that was not answered.
    pub(super) fn finish_read(&mut self, number: u64, outcome: Outcome) {
        self.end_read(number, None, outcome, None);
    }

    fn end_read(&mut self, number: u64, applied: Option<OpNumber>, outcome: Outcome, way: Option<Way>) {
        if let Some(read) = self.remove_read(number) {
            self.actions.push_back(Action::Completed { token: read.token, outcome, applied, way });
        }
    }
}
