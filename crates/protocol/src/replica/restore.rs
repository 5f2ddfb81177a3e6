//! A replica's state as its write-ahead log tells it.

use super::Config;
use super::invalid_record::InvalidRecord;
use super::replayed_log::ReplayedLog;
use crate::log::Log;
use crate::message::{LogEntry, Request};
use crate::record::{Checkpoint, Record, SnapshotHead};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use syros_types::{Configuration, ConfigurationEpoch, FastRule, OpNumber, View, WallTime};

/// State rebuilt record by record; boots a replica through [`Boot::Restored`](super::Boot::Restored).
#[derive(Clone, Debug)]
pub struct Restored {
    replayed: ReplayedLog,
    view: View,
    last_normal: View,
    /// That of `last_normal`.
    rule: FastRule,
    /// The configuration that the replica acts in.
    configuration: Configuration,
    records: u64,
    /// Snapshots on disk.
    snapshots: BTreeSet<OpNumber>,
    /// What came before the next record is known: from the beginning of the log, or from a snapshot.
    connected: bool,
    /// The last snapshot that a checkpoint named and that is not there.
    missing: Option<OpNumber>,
    /// It lost its memory, and has entered no view since.
    amnesiac: bool,
    /// Its configuration is not the one that the group was made with.
    comes_later: bool,
    snapshot: Option<(SnapshotHead, u64)>,
}

/// What a replica is restored from.
pub(super) struct Parts {
    pub(super) view: View,
    pub(super) last_normal: View,
    pub(super) rule: FastRule,
    pub(super) commit: OpNumber,
    pub(super) log: Log,
    pub(super) dlog: Vec<Request>,
    /// With its length in bytes.
    pub(super) snapshot: Option<(SnapshotHead, u64)>,
}

/// What the disk of a replica tells, for whoever takes it over without the replica.
#[derive(Clone, Debug)]
pub struct Remains {
    /// The last view in which the replica was normal: all that follows is of that view.
    pub last_normal: View,
    /// Everything up to here is committed.
    pub commit: OpNumber,
    /// The last entry that the log does not hold, because a snapshot has it; 0 if there is none.
    pub base: OpNumber,
    /// Log time of the entry at `base`.
    pub base_time: WallTime,
    /// The log after `base`.
    pub entries: Vec<LogEntry>,
    /// The durability log: what was accepted in the last normal view and is not in the log.
    pub dlog: Vec<Request>,
}

impl Remains {
    /// The last entry that the log or its snapshot holds.
    #[must_use]
    pub const fn op_number(&self) -> OpNumber {
        OpNumber(self.base.0 + self.entries.len() as u64)
    }

    /// Log time of this entry; of the last one before it, if the log does not reach it, and of that at `base`, if it is earlier.
    #[must_use]
    pub fn time_at(&self, number: OpNumber) -> WallTime {
        let behind = number.0.saturating_sub(self.base.0).min(self.entries.len() as u64);
        let at = usize::try_from(behind).ok().and_then(|behind| behind.checked_sub(1));
        at.and_then(|at| self.entries.get(at)).map_or(self.base_time, |entry| entry.time)
    }
}

impl Restored {
    /// What all records tell, if [`Restored::is_amnesiac`] does not say that this is nothing.
    #[must_use]
    pub fn into_remains(self) -> Remains {
        let Self { last_normal, replayed, .. } = self;
        let (commit, log, dlog) = replayed.into_parts();
        let base = log.base();
        Remains {
            last_normal,
            commit: commit.max(base),
            base,
            base_time: log.time_at(base).unwrap_or_default(),
            entries: log.suffix(base),
            dlog,
        }
    }

    /// Nothing yet. `snapshots` are those on disk, finished ones only.
    #[must_use]
    pub fn new(config: &Config, snapshots: impl IntoIterator<Item = OpNumber>) -> Self {
        Self {
            replayed: ReplayedLog::new(config.describe),
            view: View(0),
            last_normal: View(0),
            rule: rule_of_first_view(config),
            configuration: config.configuration,
            records: 0,
            snapshots: snapshots.into_iter().collect(),
            connected: false,
            missing: None,
            amnesiac: false,
            comes_later: comes_later(config),
            snapshot: None,
        }
    }

    /// The newest view the replica may have acted in.
    #[must_use]
    pub const fn view(&self) -> View {
        self.view
    }

    /// The last view in which the replica was normal, or in which it lost its memory.
    #[must_use]
    pub const fn last_normal(&self) -> View {
        self.last_normal
    }

    /// The last op number in the log.
    #[must_use]
    pub const fn op_number(&self) -> OpNumber {
        self.replayed.log.op_number()
    }

    /// True if there was no record: the replica never acted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// True if the replica lost its memory and has entered no view since: it boots as
    /// [`Boot::Amnesiac`](super::Boot::Amnesiac), whatever else the log says.
    #[must_use]
    pub const fn is_amnesiac(&self) -> bool {
        // A node that has come into a group later writes that it has no memory before anything else. If it was stopped before
        // that was on disk, it must not be taken for one that has been there all the time, with nothing in its log.
        self.amnesiac || (self.comes_later && self.records == 0)
    }

    /// Once all records are replayed: checks that a log whose first record is, or would be, number `first`
    /// says anything. One without records is a new one only if it begins at the beginning.
    ///
    /// # Errors
    /// [`InvalidRecord::NoSnapshot`] if all that it said is lost.
    pub const fn check_beginning(&self, first: u64) -> Result<(), InvalidRecord> {
        if self.records == 0 && first > 1 {
            return Err(InvalidRecord::NoSnapshot { needed: None });
        }
        Ok(())
    }

    /// The snapshot that the log goes with, once all records are replayed; `None` if it needs none, as
    /// when the replica is amnesiac.
    ///
    /// # Errors
    /// [`InvalidRecord::NoSnapshot`] if it is not there.
    pub fn needed_snapshot(&self) -> Result<Option<OpNumber>, InvalidRecord> {
        if self.amnesiac {
            return Ok(None);
        }
        if !self.connected && self.records > 0 {
            return Err(InvalidRecord::NoSnapshot { needed: self.missing });
        }
        let base = self.replayed.log.base();
        Ok((base > OpNumber(0)).then_some(base))
    }

    /// Takes in the snapshot that [`Restored::needed_snapshot`] names, of this length in bytes.
    ///
    /// # Errors
    /// [`InvalidRecord::OtherSnapshot`] if it is another one.
    pub fn attach(&mut self, head: SnapshotHead, bytes: u64) -> Result<(), InvalidRecord> {
        let base = self.replayed.log.base();
        let fits = head.op_number == base
            && self.replayed.log.view_at(base) == Some(head.view)
            && self.replayed.log.time_at(base) == Some(head.time);
        if !fits {
            return Err(InvalidRecord::OtherSnapshot { base, found: head.op_number });
        }
        self.snapshot = Some((head, bytes));
        Ok(())
    }

    /// Takes in the next record; `number` is its number in the log, whose first one is 1.
    ///
    /// # Errors
    /// [`InvalidRecord`] if it cannot follow those before it.
    pub fn replay(&mut self, number: u64, record: Record) -> Result<(), InvalidRecord> {
        self.records += 1;
        if number == 1 {
            self.connected = true;
        }
        match record {
            Record::Checkpoint(checkpoint) => return self.checkpoint(*checkpoint),
            Record::Forgot { view } => {
                self.reach(view)?;
                self.connected = true;
                self.amnesiac = true;
                self.last_normal = view;
                self.replayed.commit = OpNumber(0);
                self.replayed.log = Log::new();
                self.replayed.clear_dlog();
                return Ok(());
            }
            Record::View { view, .. } if !self.connected => return self.reach(view),
            Record::EnterView { view, .. } if !self.connected => {
                self.amnesiac = false;
                return self.reach(view);
            }
            _ if !self.connected => return Ok(()),
            _ => {}
        }
        match record {
            Record::View { view, last_normal } => {
                self.reach(view)?;
                self.last_normal = self.last_normal.max(last_normal);
            }
            Record::Accept(request) => self.replayed.accept(request),
            Record::Append { first, view, time, commit, entries } => {
                self.replayed.check_next(first)?;
                for prepared in entries {
                    let payload = self.replayed.payload(prepared)?;
                    self.replayed.append(LogEntry { view, time, payload })?;
                }
                self.replayed.commit_up_to(commit);
            }
            Record::Transfer { base, entries } => self.replayed.replace(base, entries)?,
            Record::EnterView { view, rule, base, commit, suffix } => {
                self.reach(view)?;
                self.replayed.replace(base, suffix)?;
                self.last_normal = view;
                self.rule = self.known_rule(rule, view);
                self.replayed.commit_up_to(commit);
                self.replayed.clear_dlog();
                self.amnesiac = false;
            }
            Record::Checkpoint(_) | Record::Forgot { .. } => unreachable!("replayed above"),
        }
        Ok(())
    }

    /// With its snapshot, a checkpoint says all; without, it must not say anything new.
    fn checkpoint(&mut self, checkpoint: Checkpoint) -> Result<(), InvalidRecord> {
        let Checkpoint {
            view,
            last_normal,
            rule,
            base,
            base_view,
            base_time,
            commit,
            suffix,
            dlog,
            amnesiac,
        } = checkpoint;
        self.reach(view)?;
        self.amnesiac |= amnesiac;
        if !self.snapshots.contains(&base) {
            // A snapshot that was received may have brought what the log had not, or had otherwise. If it
            // is not there any more, it must be because a later one is.
            self.connected &= self.replayed.log.view_at(base) == Some(base_view);
            self.missing = Some(base);
            return Ok(());
        }
        self.connected = true;
        self.last_normal = last_normal;
        self.rule = self.known_rule(rule, view);
        self.replayed.begin_after(base, base_view, base_time);
        for entry in suffix {
            self.replayed.append(entry)?;
        }
        self.replayed.commit = commit.min(self.replayed.log.op_number()).max(base);
        self.replayed.clear_dlog();
        for request in dlog {
            self.replayed.accept(request);
        }
        Ok(())
    }

    /// The rule that a record tells which was written in this view.
    fn known_rule(&self, told: Option<FastRule>, view: View) -> FastRule {
        self.configuration.of_epoch(view.epoch()).known_rule(told)
    }

    fn reach(&mut self, record: View) -> Result<(), InvalidRecord> {
        if record < self.view {
            return Err(InvalidRecord::ViewWentBack { view: self.view, record });
        }
        self.view = record;
        Ok(())
    }

    pub(super) fn into_parts(self) -> Parts {
        let Self { view, last_normal, rule, replayed, snapshot, .. } = self;
        let (commit, log, dlog) = replayed.into_parts();
        assert!(
            log.base() == snapshot.as_ref().map_or(OpNumber(0), |(head, _)| head.op_number),
            "the snapshot that the log goes with was attached"
        );
        Parts { view, last_normal, rule, commit, log, dlog, snapshot }
    }
}

/// The rule of view 0, which no record tells: that of the configuration of that view, whatever the size is now.
fn rule_of_first_view(config: &Config) -> FastRule {
    #[cfg(feature = "planted-bugs")]
    if config.planted == Some(super::PlantedBug::FirstRuleOfNow) {
        return config.configuration.rule();
    }
    config.configuration.of_epoch(ConfigurationEpoch::FIRST).rule()
}

/// True if the configuration is not the one that the group was made with.
fn comes_later(config: &Config) -> bool {
    #[cfg(feature = "planted-bugs")]
    if config.planted == Some(super::PlantedBug::NewcomerForgets) {
        return false;
    }
    let Configuration { id, before, .. } = config.configuration;
    // One that the group has grown by votes with the nothing that it holds, before and after it is started again.
    let grown_by = before.is_some_and(|before| !before.group().has(config.replica));
    id.epoch > ConfigurationEpoch::FIRST && !grown_by
}
