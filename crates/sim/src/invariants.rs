//! What must hold at every moment, whatever the clients saw.

use crate::clock::VirtualTime;
use core::fmt;
use std::collections::BTreeMap;
use syros_commands::access::{Announcement, KeyEvent, Notification, ScriptMessage};
use syros_protocol::message::{LogEntry, Payload};
use syros_protocol::replica::Replica;
use syros_storage::execution::ExecutedUpdate;
use syros_storage::{Engine as _, MemoryEngine};
use syros_types::{Class, NodeId, OpNumber, OperationId, ReplicaId, SessionId, View, WallTime, key_hash};

/// What everybody must agree on after one log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checkpoint {
    /// Digest of all entries up to this one.
    log: u64,
    /// Digest of the engine's state after it.
    engine: u64,
    /// Who got there first.
    by: ReplicaId,
    /// The entry's view.
    view: View,
}

/// Where in the log an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The entry.
    pub number: OpNumber,
    /// Its place among the entry's updates.
    pub index: usize,
}

/// One replica process as it was when last looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    view: View,
    commit: OpNumber,
    applied: OpNumber,
}

/// A broken invariant, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Watches all replicas.
#[derive(Debug, Default)]
pub struct Invariants {
    /// Checkpoint after entry `i + 1`.
    checkpoints: Vec<Checkpoint>,
    /// Log time of each entry.
    times: Vec<WallTime>,
    /// When each entry was executed first.
    executed_at: Vec<VirtualTime>,
    /// True time.
    now: VirtualTime,
    /// What executes, for replicas that execute in parallel, everything in order.
    reference: MemoryEngine,
    /// What it answered to the updates of each entry that return something.
    answers: BTreeMap<OpNumber, Vec<Vec<u8>>>,
    /// Everything is executed in order on one more engine, for the answers.
    keeps_answers: bool,
    /// What was answered to each update, if that is kept.
    answer_to: BTreeMap<OperationId, Vec<u8>>,
    /// Where each operation was executed: the entry, and its place in it.
    executed: BTreeMap<OperationId, LogPosition>,
    /// Below which sequence numbers what was executed acknowledges, session by session.
    acknowledged: BTreeMap<SessionId, u64>,
    /// Overwrites that view changes recovered, in log order: those that they dropped came before one of them.
    recovered_overwrites: Vec<(LogPosition, OperationId)>,
    lives: Vec<Life>,
    /// What the replies in a session table count for after an entry, and whose table it was.
    reply_bytes: BTreeMap<OpNumber, (usize, ReplicaId)>,
    /// The view each replica has told others it is in, across its lives.
    told: Vec<View>,
    /// The view in which each replica lost its memory, until it has entered another.
    forgot: Vec<Option<View>>,
    /// Digest of what each entry has done to keys, as the first replica has told it.
    key_events: BTreeMap<u64, (u64, ReplicaId)>,
    /// The entries, if the judge wants them.
    log: Option<Vec<LogEntry>>,
    /// What replicas execute is not compared here: only their own digests tell.
    looks_away: bool,
    broken: Option<Broken>,
}

/// Takes a value into a digest.
const fn fold(digest: u64, value: u64) -> u64 {
    syros_types::fold(digest ^ value, 0xa076_1d64_78bd_642f) ^ value.rotate_left(31)
}

/// Digest of what must be equal in two copies of an entry. A resent request may differ between copies
/// in its timestamp and in what it acknowledges: neither changes what the entry does.
fn entry_digest(mut digest: u64, entry: &LogEntry) -> u64 {
    digest = fold(digest, entry.view.0);
    digest = fold(digest, entry.time.0);
    for update in entry.updates() {
        digest = fold(digest, update.request.id.session.0);
        digest = fold(digest, update.request.id.sequence);
        digest = fold(digest, key_hash(&update.request.body));
    }
    match &entry.payload {
        Payload::Update(_) => fold(digest, 1),
        Payload::Recovered(_) => fold(digest, 2),
        Payload::Register { nonce } => fold(fold(digest, 3), *nonce),
        Payload::Expire(ids) => ids.iter().fold(fold(digest, 4), |digest, id| fold(digest, id.0)),
        Payload::Tick => fold(digest, 5),
        Payload::Reconfigure(next) => {
            let nodes = next.roster.nodes().iter();
            let of = |digest, node: &Option<NodeId>| fold(digest, node.map_or(0, NodeId::number));
            nodes.fold(fold(fold(digest, 6), next.epoch.0), of)
        }
    }
}

impl Invariants {
    /// Watches `replicas` replicas.
    #[must_use]
    pub fn new(replicas: usize) -> Self {
        Self {
            lives: vec![Life::default(); replicas],
            told: vec![View(0); replicas],
            forgot: vec![None; replicas],
            ..Self::default()
        }
    }

    /// Keeps the entries that are executed from now on: from the first one, if nothing has been executed.
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Keeps the answers to all updates that are executed from now on: from the first one, if nothing has been executed.
    pub fn keep_answers(&mut self) {
        self.keeps_answers = true;
    }

    /// The answer to an update that was executed, if answers are kept.
    #[must_use]
    pub fn answer(&self, id: OperationId) -> Option<&[u8]> {
        self.answer_to.get(&id).map(Vec::as_slice)
    }

    /// The state after everything that was executed, if answers are kept.
    #[must_use]
    pub fn state(&self) -> Option<&MemoryEngine> {
        self.keeps_answers.then_some(&self.reference)
    }

    /// Log time of the last entry that somebody has executed.
    #[must_use]
    pub fn last_log_time(&self) -> WallTime {
        self.times.last().copied().unwrap_or(WallTime(0))
    }

    /// The entries that were executed, if they are kept.
    #[must_use]
    pub fn log(&self) -> &[LogEntry] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Compares no more what replicas execute, and leaves that to the digests that they compare themselves.
    pub fn look_away(&mut self) {
        self.looks_away = true;
    }

    /// A replica says that members have executed different things. They have not, or that would have been seen here first.
    pub fn digests_differ(&mut self, replica: ReplicaId, number: OpNumber) {
        self.fail(format!(
            "{replica} says that members differ in what they executed up to entry {}",
            number.0
        ));
    }

    /// A replica has vouched for two updates under one id, of which it can execute one.
    pub fn accepted_two(&mut self, replica: ReplicaId, id: OperationId) {
        self.fail(format!("{replica} accepts two updates under the id {id}"));
    }

    /// A replica that has lost its memory has answered a read: it knows no state that it could answer from.
    pub fn answered_without_memory(&mut self, replica: ReplicaId) {
        self.fail(format!("{replica} answers a read though it has no memory"));
    }

    /// A replica that tells what happens to keys, and what scripts publish, has executed the entries behind the first number up
    /// to the second, and told this. When a record goes whose key has expired is up to each.
    pub fn told_events(
        &mut self,
        replica: ReplicaId,
        (from, through): (OpNumber, OpNumber),
        happened: &[Announcement],
    ) {
        let mut digests: BTreeMap<u64, u64> = BTreeMap::new();
        for announcement in happened {
            let values = match announcement {
                Announcement::KeyEvent(Notification { event, .. })
                    if *event == KeyEvent::Expired || event.is_silent() =>
                {
                    continue;
                }
                Announcement::KeyEvent(Notification { database, key, event, .. }) => {
                    [u64::from(database.number()), *event as u64, key_hash(key)]
                }
                Announcement::Message(ScriptMessage { kind, channel, payload, .. }) => {
                    [kind.index() as u64, key_hash(channel), key_hash(payload)]
                }
            };
            let digest = digests.entry(announcement.entry()).or_default();
            *digest = values.into_iter().fold(*digest, fold);
        }
        let is_executed = |number: &u64| (from.0 + 1..=through.0).contains(number);
        if let Some(number) = digests.keys().find(|number| !is_executed(number)) {
            self.fail(format!("{replica} tells of entry {number}, which it has not just executed"));
        }
        for number in from.0 + 1..=through.0 {
            let digest = digests.get(&number).copied().unwrap_or_default();
            let (theirs, by) = *self.key_events.entry(number).or_insert((digest, replica));
            if theirs != digest && !self.looks_away {
                self.fail(format!(
                    "{replica} and {by} tell different things of what entry {number} does to keys"
                ));
            }
        }
    }

    /// The first invariant that was broken.
    #[must_use]
    pub const fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    fn fail(&mut self, what: String) {
        self.broken.get_or_insert(Broken(what));
    }

    /// A replica process starts.
    pub fn started(&mut self, replica: ReplicaId, core: &Replica) {
        self.lives[replica.index()] = Life::default();
        let told = self.told[replica.index()];
        if core.view() < told {
            self.fail(format!(
                "{replica} restarts in view {} after it told others {}",
                core.view().0,
                told.0
            ));
        }
        self.observe(replica, core);
    }

    /// A replica's log has been read back: it says whether the replica is without memory, and the last view
    /// in which it was normal, or in which it lost its memory.
    pub fn remembers(&mut self, replica: ReplicaId, amnesiac: bool, last_normal: View) {
        let forgot = &mut self.forgot[replica.index()];
        if amnesiac {
            *forgot = Some(last_normal);
        } else if let Some(view) = forgot.take()
            && last_normal <= view
        {
            self.fail(format!("{replica} does not know that it lost its memory in view {}", view.0));
        }
    }

    /// A message that binds its sender to `view` has left `replica`.
    pub fn told_view(&mut self, replica: ReplicaId, view: View) {
        let told = &mut self.told[replica.index()];
        *told = (*told).max(view);
    }

    /// A replica starts, and takes `view` for the newest that it may have acted in.
    pub fn noted(&mut self, replica: ReplicaId, view: View) {
        let told = self.told(replica);
        if view < told {
            self.fail(format!(
                "{replica} starts in view {}, and has bound itself to view {}",
                view.0, told.0
            ));
        }
    }

    /// Another node is started at the place of `replica`: what each has told others, and forgotten, is its own.
    pub fn exchange(&mut self, replica: ReplicaId, told: &mut View, forgot: &mut Option<View>) {
        core::mem::swap(&mut self.told[replica.index()], told);
        core::mem::swap(&mut self.forgot[replica.index()], forgot);
    }

    /// The newest view that `replica` has bound itself to.
    #[must_use]
    pub fn told(&self, replica: ReplicaId) -> View {
        self.told[replica.index()]
    }

    /// A replica has handled something.
    pub fn observe(&mut self, replica: ReplicaId, core: &Replica) {
        let now = Life { view: core.view(), commit: core.commit(), applied: core.applied() };
        let before = std::mem::replace(&mut self.lives[replica.index()], now);
        if now.view < before.view {
            self.fail(format!("{replica} goes back from view {} to {}", before.view.0, now.view.0));
        }
        if now.commit < before.commit {
            self.fail(format!("{replica} takes back commit {}, now {}", before.commit.0, now.commit.0));
        }
        if now.applied < before.applied || now.applied > now.commit {
            self.fail(format!("{replica} has applied {} of {} committed", now.applied.0, now.commit.0));
        }
        if now.applied != before.applied {
            self.keeps_replies(replica, now.applied, core.reply_bytes());
        }
    }

    /// After an entry, the session table of a replica holds replies that count for so much.
    fn keeps_replies(&mut self, replica: ReplicaId, number: OpNumber, bytes: usize) {
        let (theirs, by) = *self.reply_bytes.entry(number).or_insert((bytes, replica));
        if theirs != bytes {
            self.fail(format!(
                "{replica} and {by} keep {bytes} and {theirs} bytes of replies after entry {}",
                number.0
            ));
        }
    }

    /// A replica has executed an entry, and its engine's state now has this digest.
    pub fn executed(&mut self, replica: ReplicaId, number: OpNumber, entry: &LogEntry, engine: u64) {
        let log = self.log_digest(number, entry);
        match self.checkpoint(number) {
            None => {
                if self.keeps_answers {
                    self.execute_for_answers(number, entry);
                }
                self.go_on(number, entry, Checkpoint { log, engine, by: replica, view: entry.view });
            }
            Some(_) if self.looks_away => {}
            Some(theirs) if theirs.log != log => self.disagree(replica, theirs, number),
            Some(theirs) if theirs.engine != engine => {
                self.fail(format!("{replica} and {} differ in state after entry {}", theirs.by, number.0));
            }
            Some(_) => {}
        }
    }

    /// A replica is about to execute an entry, perhaps at the same time as others.
    pub fn dealt_out(&mut self, replica: ReplicaId, number: OpNumber, entry: &LogEntry) {
        let log = self.log_digest(number, entry);
        match self.checkpoint(number) {
            None => {
                let answers = self.execute_for_answers(number, entry);
                self.answers.insert(number, answers);
                let engine = self.reference.digest();
                self.go_on(number, entry, Checkpoint { log, engine, by: replica, view: entry.view });
            }
            Some(theirs) if theirs.log != log => self.disagree(replica, theirs, number),
            Some(_) => {}
        }
    }

    /// Executes an entry in order. The answers to its updates that return something.
    fn execute_for_answers(&mut self, number: OpNumber, entry: &LogEntry) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        self.reference.begin_entry(number);
        for update in entry.updates() {
            let mut answer = Vec::new();
            self.reference.apply(entry.time, &update.request.body, &mut answer);
            if !update.class.is_nilext() {
                if self.keeps_answers {
                    self.answer_to.insert(update.request.id, answer.clone());
                }
                answers.push(answer);
            }
        }
        self.reference.advance(entry.time);
        answers
    }

    /// A replica that executes entries at the same time as others has these answers, with the entries they are to.
    pub fn answered(&mut self, replica: ReplicaId, answers: &[ExecutedUpdate]) {
        for of_entry in answers.chunk_by(|one, next| one.number == next.number) {
            let Some(ExecutedUpdate { number, .. }) = of_entry.first() else { continue };
            let given = of_entry.iter().map(|update| &update.reply);
            if self.answers.get(number).is_none_or(|expected| !given.eq(expected)) {
                self.fail(format!("{replica} has another answer to entry {} than it has in order", number.0));
            }
        }
    }

    /// An engine on disk has looked at the pages of its collections.
    pub fn keeps_pages(&mut self, replica: ReplicaId, checked: Result<(), String>) {
        if let Err(problem) = checked {
            self.fail(format!("the engine of {replica}: {problem}"));
        }
    }

    /// The disk of a replica has little room, and it keeps so many bytes of a log that it does not need.
    pub fn keeps_without_room(&mut self, replica: ReplicaId, bytes: u64) {
        if bytes > 0 {
            self.fail(format!("{replica} keeps {bytes} bytes beside its log, and its disk has little room"));
        }
    }

    /// The engine of a replica has this digest; it holds all entries up to `number` and no other, as it has
    /// `come about`.
    pub fn holds(&mut self, replica: ReplicaId, number: OpNumber, engine: u64, come_about: &str) {
        if number == OpNumber(0) {
            return;
        }
        match self.checkpoint(number) {
            None => {
                let number = number.0;
                self.fail(format!("{replica} has the state after entry {number}, which nobody executed"));
            }
            Some(theirs) if theirs.engine != engine => self.fail(format!(
                "{replica} and {} differ in state after entry {}, {come_about}",
                theirs.by, number.0
            )),
            Some(_) => {}
        }
    }

    /// Somebody who copies the log has this entry under this number.
    pub fn copied(&mut self, number: OpNumber, entry: &LogEntry) {
        match self.checkpoint(number) {
            _ if self.looks_away => {}
            None => self.fail(format!("a copy of the log has entry {}, which nobody executed", number.0)),
            Some(executed) if executed.log != self.log_digest(number, entry) => {
                self.fail(format!("a copy of the log has another entry {} than was executed", number.0));
            }
            Some(_) => {}
        }
    }

    /// Executing a copy of the log up to this entry gave a state with this digest.
    pub fn restored(&mut self, number: OpNumber, engine: u64) {
        if let Some(executed) = self.checkpoint(number).filter(|_| !self.looks_away)
            && executed.engine != engine
        {
            self.fail(format!(
                "a copy of the log, executed up to entry {}, gives another state than the log",
                number.0
            ));
        }
    }

    /// The copy of the log is wrong, for this reason.
    pub fn miscopied(&mut self, problem: String) {
        self.fail(problem);
    }

    /// View and log time of an entry that somebody has executed.
    #[must_use]
    pub fn executed_entry(&self, number: OpNumber) -> Option<(View, WallTime)> {
        let view = self.checkpoint(number)?.view;
        Some((view, self.log_time(number)?))
    }

    /// A replica has taken over a snapshot of the state after entry `number`.
    pub fn installed(&mut self, replica: ReplicaId, number: OpNumber, engine: u64) {
        self.holds(replica, number, engine, "in a snapshot");
    }

    fn checkpoint(&self, number: OpNumber) -> Option<Checkpoint> {
        self.checkpoints.get(number.0.checked_sub(1)? as usize).copied()
    }

    /// Digest of the log up to this entry.
    fn log_digest(&self, number: OpNumber, entry: &LogEntry) -> u64 {
        let before = (number.0 as usize - 1).checked_sub(1).map_or(0, |index| self.checkpoints[index].log);
        entry_digest(before, entry)
    }

    fn disagree(&mut self, replica: ReplicaId, theirs: Checkpoint, number: OpNumber) {
        self.fail(format!("{replica} and {} disagree on committed entry {}", theirs.by, number.0));
    }

    /// An entry is executed by the first replica that gets there.
    fn go_on(&mut self, number: OpNumber, entry: &LogEntry, mine: Checkpoint) {
        self.checkpoints.push(mine);
        self.times.push(entry.time);
        self.executed_at.push(self.now);
        self.log.iter_mut().for_each(|log| log.push(entry.clone()));
        for (index, update) in entry.updates().iter().enumerate() {
            let (id, place) = (update.request.id, LogPosition { number, index });
            if let Some(first) = self.executed.insert(id, place) {
                let first = first.number.0;
                self.fail(format!("operation {id} is executed at {first} and again at {}", number.0));
            }
            let is_recovered = matches!(entry.payload, Payload::Recovered(_));
            let acknowledged = self.acknowledged.entry(id.session).or_default();
            if is_recovered && id.sequence < *acknowledged {
                // Its client took it for ended before it asked for what is in the log already.
                self.fail(format!(
                    "operation {id} is recovered at {} after one that acknowledges it",
                    number.0
                ));
            } else {
                *acknowledged = update.request.acked_below.max(*acknowledged);
            }
            if is_recovered && update.class == Class::Overwrite {
                self.recovered_overwrites.push((place, id));
            }
        }
    }

    /// Where an update was executed.
    #[must_use]
    pub fn position(&self, id: OperationId) -> Option<LogPosition> {
        self.executed.get(&id).copied()
    }

    /// Log time of an entry that somebody has executed.
    #[must_use]
    pub fn log_time(&self, number: OpNumber) -> Option<WallTime> {
        self.times.get(number.0.checked_sub(1)? as usize).copied()
    }

    /// When an entry was executed first, if it was.
    #[must_use]
    pub fn executed_at(&self, number: OpNumber) -> Option<VirtualTime> {
        self.executed_at.get(number.0.checked_sub(1)? as usize).copied()
    }

    /// What is looked at from now on happens at this time.
    pub const fn begin_turn(&mut self, now: VirtualTime) {
        self.now = now;
    }

    /// The first entry at or after this log time, if there is one.
    #[must_use]
    pub fn first_entry_at(&self, time: WallTime) -> Option<OpNumber> {
        let before = self.times.partition_point(|of_entry| *of_entry < time);
        (before < self.times.len()).then(|| OpNumber(before as u64 + 1))
    }

    /// Overwrites that view changes recovered, in log order.
    #[must_use]
    pub fn recovered_overwrites(&self) -> &[(LogPosition, OperationId)] {
        &self.recovered_overwrites
    }

    /// Entries executed by whoever got furthest.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.checkpoints.len()
    }
}
