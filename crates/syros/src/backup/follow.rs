//! The log behind a backup: what was committed since, and whatever is committed from now on.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use syros_backup::{Backup, BackupError, LogWriter, Place};
use syros_client::{Endpoint, EntriesCopy};
use syros_protocol::log_copy::{CopyError, LogCopy};
use syros_protocol::message::Message;
use syros_protocol::replica::DISK_COPIERS_MAX;
use syros_types::OpNumber;

use super::source::{BARRIER_TIMEOUT, Keys, RETURN_PAUSE, RETURN_TIMEOUT, Source, barrier, choose};
use super::{SourceOptions, print_range};
use crate::place::warn;
use crate::progress::mebibytes;

/// How long a replica may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Bytes of entries in one answer, about: what members send each other at a time.
const ANSWER_BYTES: u64 = 1 << 20;

/// Members that are not asked for entries are asked to keep them this often, in case they will be.
const KEEP_INTERVAL: Duration = Duration::from_secs(1);

/// When there is nothing new, a member is asked again after this long.
const PAUSE: Duration = Duration::from_millis(100);

/// When a member has had nothing new for so long, the next one is asked: it may be cut off from the others.
const STANDSTILL: Duration = Duration::from_secs(5);

/// Members that have entries and tell none for so long are not waited for any longer.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// How often it is told what has been copied.
const TOLD_INTERVAL: Duration = Duration::from_secs(10);

/// As many answers are taken between two parts of a snapshot: the log must not fall behind for good.
const ANSWERS_AT_A_TIME: usize = 4;

/// The log of a cluster, as it is copied.
pub(super) struct Tail {
    options: SourceOptions,
    keys: Arc<Keys>,
    members: Vec<Member>,
    /// Who is asked.
    current: usize,
    /// The member, and the number of its connection, that was asked last.
    joined: Option<(usize, u64)>,
    copy: LogCopy,
    writer: LogWriter,
    cluster: Option<u64>,
    interval: Duration,
    /// Since when entries have been taken that are not on disk.
    pending_since: Option<Instant>,
    kept_at: Instant,
    /// When entries were taken last, or another member was begun with.
    moved_at: Instant,
    /// Since when members have had entries and told none.
    silent_since: Option<Instant>,
    bytes: u64,
    entries: u64,
}

struct Member {
    address: String,
    connection: Option<EntriesCopy>,
    /// How many connections there have been.
    connections: u64,
}

/// What became of a question.
enum Answer {
    /// So many entries were taken.
    Taken(usize),
    /// The member has not all of what follows any more.
    Gone(CopyError),
    /// It does not answer.
    Trouble(String),
    /// It does not answer this program, and will not.
    Unfit(String),
}

impl Tail {
    fn new(
        options: &SourceOptions,
        keys: Arc<Keys>,
        members: Vec<Member>,
        (copy, writer): (LogCopy, LogWriter),
        interval: Duration,
    ) -> Self {
        let now = Instant::now();
        Self {
            options: options.clone(),
            keys,
            members,
            current: 0,
            joined: None,
            copy,
            writer,
            cluster: None,
            interval,
            pending_since: None,
            kept_at: now,
            moved_at: now,
            silent_since: None,
            bytes: 0,
            entries: 0,
        }
    }

    /// Begins to copy the log of a backup that is being made, from an entry on that is not after the snapshot's.
    pub(super) fn begin(
        options: &SourceOptions,
        source: &Source,
        replicas: &[String],
        (target, id, least): (&Place, u64, OpNumber),
        interval: Duration,
    ) -> Result<Self, String> {
        let (copy, writer) = (LogCopy::behind(least), LogWriter::begin(target, id, least));
        let members = members_of(replicas, &source.address);
        let mut tail = Self::new(options, Arc::clone(&source.keys), members, (copy, writer), interval);
        loop {
            match tail.ask()? {
                Answer::Taken(_) => return Ok(tail),
                // No matter where it begins: the snapshot is made to reach that.
                Answer::Gone(CopyError::Gone { base, .. }) => {
                    tail.copy = LogCopy::behind(base);
                    tail.writer = LogWriter::begin(target, id, base);
                }
                Answer::Gone(error) => return Err(format!("the replica at {}: {error}", source.address)),
                Answer::Trouble(problem) | Answer::Unfit(problem) => return Err(problem),
            }
        }
    }

    /// Goes on where a backup ends.
    fn resume(
        options: &SourceOptions,
        target: &Place,
        interval: Duration,
    ) -> Result<(Self, OpNumber), String> {
        let (writer, backup) = LogWriter::resume(target).map_err(|error| error.to_string())?;
        warn(target);
        let keys = Arc::new(options.keys()?);
        let replicas = options.cluster.replicas(keys.credentials.as_deref())?;
        let least = barrier(&replicas, &keys)?;
        let end = backup.end();
        let first = choose(&replicas, &keys, options.replica)?;
        let copy = LogCopy::after(end.op_number, end.view, end.time);
        let members = members_of(&replicas, &first);
        let mut tail = Self::new(options, keys, members, (copy, writer), interval);
        tail.cluster = Some(backup.manifest().origin.cluster);
        Ok((tail, least))
    }

    /// The last entry that was copied.
    pub(super) const fn op_number(&self) -> OpNumber {
        self.copy.op_number()
    }

    /// Asks the current member for what follows.
    fn ask(&mut self) -> Result<Answer, String> {
        let member = &mut self.members[self.current];
        let joined = (self.current, member.connections + u64::from(member.connection.is_none()));
        if self.joined != Some(joined) {
            // It may be of a new cluster by now that has the number of the old one.
            self.copy.join_again();
            self.joined = Some(joined);
        }
        let want = self.copy.want(self.writer.durable(), ANSWER_BYTES);
        let answer = match member.ask(&self.keys, self.cluster, want) {
            Ok(answer) => answer,
            Err(Failure::Trouble(problem)) => return Ok(Answer::Trouble(problem)),
            Err(Failure::Unfit(problem)) => return Ok(Answer::Unfit(problem)),
            Err(Failure::Fatal(problem)) => return Err(problem),
        };
        let has_more = matches!(
            answer,
            Message::CommittedEntries { applied, .. } if self.copy.op_number() < applied
        );
        let cluster = member.connection.as_ref().map(EntriesCopy::cluster);
        self.cluster = self.cluster.or(cluster);
        match self.copy.take(answer) {
            Ok(entries) => {
                let entries = entries.unwrap_or_default();
                let count = entries.len();
                self.check_silence(has_more && count == 0)?;
                self.bytes += entries.iter().map(|entry| entry.memory_bytes() as u64).sum::<u64>();
                self.entries += count as u64;
                self.store(|writer, meanwhile| writer.push(entries, meanwhile))?;
                self.pending_since = match self.pending_since {
                    since if self.writer.has_pending() => since.or(Some(Instant::now())),
                    _ => None,
                };
                Ok(Answer::Taken(count))
            }
            Err(error @ CopyError::Gone { .. }) => Ok(Answer::Gone(error)),
            Err(error) => Err(format!("the replica at {}: {error}", self.members[self.current].address)),
        }
    }

    /// A member that reads its log on disk for as many programs as it may, or has to read far, tells nothing for now.
    fn check_silence(&mut self, is_silent: bool) -> Result<(), String> {
        if !is_silent {
            self.silent_since = None;
        } else if self.silent_since.get_or_insert_with(Instant::now).elapsed() > SILENCE_TIMEOUT {
            return Err(format!(
                "the members have had entries behind {} for {} s and have told none: each reads its log on disk for {DISK_COPIERS_MAX} programs at a time. Try again when fewer backups are made",
                self.copy.op_number().0,
                SILENCE_TIMEOUT.as_secs()
            ));
        }
        Ok(())
    }

    /// Asks until a member answers; how many entries were taken.
    fn step(&mut self) -> Result<usize, String> {
        let began = Instant::now();
        let (mut gone, mut unfit) = (0, 0);
        let mut oldest: Option<OpNumber> = None;
        loop {
            match self.ask()? {
                Answer::Taken(count) => {
                    self.keep_elsewhere();
                    self.leave_standstill(count);
                    return Ok(count);
                }
                Answer::Gone(error) => {
                    gone += 1;
                    if let CopyError::Gone { base, .. } = error {
                        oldest = oldest.map_or(Some(base), |oldest| Some(oldest.min(base)));
                    }
                    if gone + unfit >= self.members.len() {
                        return Err(self.gone(oldest));
                    }
                    self.current = (self.current + 1) % self.members.len();
                }
                Answer::Unfit(problem) => {
                    unfit += 1;
                    if gone + unfit >= self.members.len() {
                        return Err(problem);
                    }
                    syros_cli::say!("syros: {problem}; trying another");
                    self.current = (self.current + 1) % self.members.len();
                }
                Answer::Trouble(problem) => {
                    if began.elapsed() > RETURN_TIMEOUT {
                        return Err(problem);
                    }
                    syros_cli::say!("syros: {problem}; trying another");
                    self.current = (self.current + 1) % self.members.len();
                    (gone, unfit) = (0, 0);
                    if self.current == 0 {
                        std::thread::sleep(RETURN_PAUSE);
                        self.look_around();
                    }
                }
            }
        }
    }

    /// What follows the copy is gone from the logs of all members that answer: what they have begins behind `oldest`.
    fn gone(&self, oldest: Option<OpNumber>) -> String {
        let end = self.op_number().0;
        let has = oldest.map_or(String::new(), |oldest| {
            format!(", and no replica that answers has entries before {}", oldest.0 + 1)
        });
        format!(
            "the backup ends with entry {end}{has}: it cannot be continued. Make a new one. So that members keep more of their logs on disk, \
             set disk.keep-log higher, or continue more often; with --follow they keep what is still to be copied. (If a part of a node's log \
             on disk is damaged, the node's own log names the file; entries before that cannot be copied from it.)"
        )
    }

    /// Asks another member from now on, if this one has had nothing for long.
    fn leave_standstill(&mut self, count: usize) {
        if count > 0 {
            self.moved_at = Instant::now();
        } else if self.moved_at.elapsed() > STANDSTILL {
            self.moved_at = Instant::now();
            self.current = (self.current + 1) % self.members.len();
        }
    }

    /// The cluster may have other members by now.
    fn look_around(&mut self) {
        if let Ok(replicas) = self.options.cluster.replicas(self.keys.credentials.as_deref())
            && replicas.iter().any(|replica| self.members.iter().all(|member| member.address != *replica))
        {
            self.members = members_of(&replicas, &replicas[0]);
            (self.current, self.joined) = (0, None);
        }
    }

    /// Has other members keep what follows: this one may die.
    fn keep_elsewhere(&mut self) {
        if self.kept_at.elapsed() < KEEP_INTERVAL {
            return;
        }
        self.kept_at = Instant::now();
        let want = self.copy.want(self.writer.durable(), 0);
        let others = self.members.iter_mut().enumerate().filter(|(at, _)| *at != self.current);
        keep(others.map(|(_, member)| member), &self.keys, self.cluster, &want);
    }

    /// Takes some of what there is.
    pub(super) fn catch_up(&mut self) -> Result<(), String> {
        for _ in 0..ANSWERS_AT_A_TIME {
            if self.step()? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    fn finish_file(&mut self) -> Result<(), String> {
        self.store(LogWriter::finish_file)?;
        self.pending_since = None;
        Ok(())
    }

    /// Has the writer do something that may take long where it writes to a store. The members keep their log meanwhile.
    fn store(
        &mut self,
        write: impl FnOnce(&mut LogWriter, &mut dyn FnMut()) -> Result<(), BackupError>,
    ) -> Result<(), String> {
        let Self { writer, members, copy, keys, cluster, kept_at, .. } = self;
        let want = copy.want(writer.durable(), 0);
        let mut meanwhile = || {
            if kept_at.elapsed() >= KEEP_INTERVAL {
                *kept_at = Instant::now();
                keep(members.iter_mut(), keys, *cluster, &want);
            }
        };
        write(writer, &mut meanwhile).map_err(|error| error.to_string())
    }

    /// Copies what is there up to an entry that has everything which was acknowledged before.
    fn copy_up_to(&mut self, mut least: OpNumber) -> Result<(), String> {
        let began = Instant::now();
        let (mut asked, mut due) = (began, began);
        if least < self.op_number() {
            return Err(self.has_more_than(least));
        }
        while self.op_number() < least || !self.copy.is_joined() {
            let bytes = self.bytes;
            let count = self.step()?;
            if count == 0 && asked.elapsed() > BARRIER_TIMEOUT {
                // What it was to reach may never have been committed.
                asked = Instant::now();
                let replicas: Vec<String> =
                    self.members.iter().map(|member| member.address.clone()).collect();
                least = barrier(&replicas, &self.keys)?;
            }
            let rate = u64::from(self.options.rate) << 20;
            due += Duration::from_secs_f64((self.bytes - bytes) as f64 / rate as f64);
            std::thread::sleep(if count == 0 {
                PAUSE
            } else {
                due.saturating_duration_since(Instant::now())
            });
        }
        Ok(())
    }

    /// The cluster has no more than this, though the copy ends with a later entry that was committed.
    fn has_more_than(&self, least: OpNumber) -> String {
        format!(
            "the backup ends with entry {}, and the cluster has not more than {} entries: it has another history, as a new cluster of \
             the same number has. Make a new backup",
            self.op_number().0,
            least.0
        )
    }

    /// What was copied is in the backup, as somebody who restores it will find it.
    fn check_end(&self, backup: &Backup) -> Result<(), String> {
        let (end, copied) = (backup.end().op_number, self.op_number());
        if end == copied {
            return Ok(());
        }
        Err(format!(
            "entry {} was copied last, and the backup ends with entry {}: the place has not kept what was written to it",
            copied.0, end.0
        ))
    }

    /// Copies whatever is committed until a signal comes.
    pub(super) fn follow(mut self, target: &Place) -> Result<ExitCode, String> {
        self.writer.hold().map_err(|error| error.to_string())?;
        let (sender, ended) = channel();
        syros_cli::signals::forward(sender)?;
        syros_cli::say!(
            "syros: following the log from entry {} on, {} s behind at most; Ctrl-C ends it, and leaves a whole backup",
            self.op_number().0,
            self.interval.as_secs_f64()
        );
        let followed = self.follow_until(&ended);
        // What has come is kept, whatever ends it.
        self.finish_file()?;
        let backup = Backup::open(target).map_err(|error| error.to_string())?;
        syros_cli::tell!("the backup in {target} was continued by {} entries", self.entries);
        print_range(&backup);
        followed?;
        self.check_end(&backup)?;
        if !self.copy.is_joined() {
            return Err(format!(
                "no replica that answered at the end has entry {}, with which the backup ends",
                self.op_number().0
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn follow_until(&mut self, ended: &Receiver<i32>) -> Result<(), String> {
        let mut told = Instant::now();
        loop {
            if ended.try_recv().is_ok() {
                // What is committed now is what the backup is to end with; but whoever ends it does not wait for long.
                return self.catch_up();
            }
            let count = self.step()?;
            if self.pending_since.is_some_and(|since| since.elapsed() >= self.interval) {
                self.finish_file()?;
            }
            if told.elapsed() >= TOLD_INTERVAL {
                told = Instant::now();
                syros_cli::say!(
                    "syros: copied {} entries with {}, up to entry {}",
                    self.entries,
                    mebibytes(self.bytes),
                    self.op_number().0
                );
            }
            if count == 0 {
                std::thread::sleep(PAUSE.min(self.interval));
            }
        }
    }
}

/// Continues a backup: once, or until a signal comes.
pub(super) fn go_on(
    options: &SourceOptions,
    target: &Place,
    interval: Option<Duration>,
) -> Result<ExitCode, String> {
    let (mut tail, least) = Tail::resume(options, target, interval.unwrap_or_default())?;
    if interval.is_some() {
        return tail.follow(target);
    }
    let began = Instant::now();
    let copied = tail.copy_up_to(least);
    tail.finish_file()?;
    copied?;
    let backup = Backup::open(target).map_err(|error| error.to_string())?;
    syros_cli::tell!(
        "the backup in {target} was continued by {} entries with {}, in {:.1} s",
        tail.entries,
        mebibytes(tail.bytes),
        began.elapsed().as_secs_f64()
    );
    print_range(&backup);
    tail.check_end(&backup)?;
    Ok(ExitCode::SUCCESS)
}

/// Has members keep what follows the entries that are durable.
fn keep<'a>(
    members: impl Iterator<Item = &'a mut Member>,
    keys: &Arc<Keys>,
    cluster: Option<u64>,
    want: &Message,
) {
    for member in members {
        // One that does not answer will not be asked soon.
        let _ = member.ask(keys, cluster, want.clone());
    }
}

/// The members, the one that is to be asked first.
fn members_of(replicas: &[String], first: &str) -> Vec<Member> {
    let mut addresses: Vec<&String> = replicas.iter().collect();
    addresses.sort_by_key(|address| *address != first);
    addresses
        .into_iter()
        .map(|address| Member { address: address.clone(), connection: None, connections: 0 })
        .collect()
}

/// Why a member gives no answer.
enum Failure {
    /// Another one may, or this one later.
    Trouble(String),
    /// Another one may; this one will not.
    Unfit(String),
    /// None will.
    Fatal(String),
}

impl Member {
    fn ask(&mut self, keys: &Arc<Keys>, cluster: Option<u64>, want: Message) -> Result<Message, Failure> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let source = Source { address: self.address.clone(), keys: Arc::clone(keys) };
                let connect = |address| EntriesCopy::connect(address, keys.access(), ANSWER_TIMEOUT);
                let connected =
                    Endpoint::resolve(&self.address).map_err(Into::into).and_then(|found| found.ask(connect));
                let connected = connected.map_err(|error| match error {
                    syros_client::StatusError::Io(_)
                    | syros_client::StatusError::ClosedAtOnce { .. }
                    | syros_client::StatusError::Forming => Failure::Trouble(source.failed(&error)),
                    error => Failure::Unfit(source.failed(&error)),
                })?;
                if let Some(expected) = cluster.filter(|expected| *expected != connected.cluster()) {
                    return Err(Failure::Fatal(format!(
                        "the backup is of cluster {expected:016x}, and the replica at {} belongs to cluster {:016x}",
                        self.address,
                        connected.cluster()
                    )));
                }
                self.connections += 1;
                none.insert(connected)
            }
        };
        connection.ask(want).map_err(|error| {
            self.connection = None;
            Failure::Trouble(format!("the replica at {}: {error}", self.address))
        })
    }
}
