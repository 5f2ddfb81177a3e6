//! What broke in a run and what came of it, counted by kind: a generator that never reaches something
//! shows as a zero.

use core::fmt::Write;

/// Where an occurrence stands in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The nemesis struck.
    Strikes,
    /// Processes ended, and what network and disks did of their own accord.
    Breakdowns,
    /// No faults, but worth knowing: what a run went through.
    Events,
}

impl Section {
    /// Every one, in the order of the table.
    pub const ALL: [Self; 3] = [Self::Strikes, Self::Breakdowns, Self::Events];

    const fn title(self) -> &'static str {
        match self {
            Self::Strikes => "the nemesis struck with",
            Self::Breakdowns => "ended or went wrong",
            Self::Events => "happened",
        }
    }
}

/// Declares the occurrences with their section and their name in the table.
macro_rules! occurrences {
    ($($kind:ident = $section:ident, $name:literal: $what:literal;)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Occurrence {
            $(#[doc = $what] $kind,)*
        }

        impl Occurrence {
            /// Every one, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name in the table.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Where it stands in the table.
            #[must_use]
            pub const fn section(self) -> Section {
                match self { $(Self::$kind => Section::$section,)* }
            }
        }
    };
}

occurrences! {
    Crash = Strikes, "crash": "A replica crashes.";
    LoseDisk = Strikes, "disk lost": "A replica crashes and its disk is gone.";
    CrashAll = Strikes, "crash of all": "All replicas crash; without fsync, the disks of several refuse writes for a while.";
    Partition = Strikes, "partition": "The group falls apart.";
    Isolate = Strikes, "isolation": "A replica is cut off.";
    OneWay = Strikes, "one-way cut": "A direction between replicas is cut.";
    Creep = Strikes, "creeping isolation": "A replica is cut off from one after the other.";
    Pause = Strikes, "pause": "A process stops and goes on later.";
    ClockJump = Strikes, "clock jump": "A wall clock jumps.";
    EndSessions = Strikes, "clock jump that ends sessions": "A wall clock jumps ahead by as long as a session may be idle.";
    ClientCrash = Strikes, "client crash": "A client dies.";
    Disconnect = Strikes, "broken connection": "A connection between a client and a replica breaks.";
    Slow = Strikes, "slow links": "All links of a replica become slow.";
    HoldKind = Strikes, "one kind held back": "All messages of one kind are held back, or lost, for a while.";
    SlowDisk = Strikes, "slow disk": "The disk of a replica takes long to sync.";
    FillDisk = Strikes, "full disks": "Disks are full for a while.";
    HandOver = Strikes, "hand-over": "A replica is asked to let another lead.";
    ChangeMode = Strikes, "change of mode": "A replica is asked to let the group go by another mode.";
    CopySnapshot = Strikes, "snapshot copied": "Somebody wants to copy a snapshot of a replica, as a backup does.";
    EntriesCopied = Events, "entries copied": "Somebody who copies the log gets entries.";
    EntriesReadFromDisk = Events, "entries read from disk": "Somebody who copies the log, or lacks a part of it, asks for entries that are gone from memory.";
    DroppedEntriesGiven = Events, "dropped entries given": "A member or a learner gets entries that are gone from memory.";
    EntriesGone = Events, "entries gone": "Somebody who copies the log is told that what follows is gone.";
    Advice = Strikes, "advice": "A replica asks clients for updates, or reads, to their leader alone, or for no more such.";
    Stranger = Strikes, "session guessed": "Somebody sends updates of a session that is not its own.";
    TwoBodies = Strikes, "two updates under one id": "A client sends replicas one or the other of two updates, or both, as one.";
    Rot = Strikes, "rot": "A replica crashes, and its disk rots meanwhile.";
    Bootstrap = Strikes, "wiped disk with --bootstrap": "A replica crashes, its disk is wiped, and it is started as a new one.";
    ReplaceNode = Strikes, "node replaced": "A replica loses its disk for good, and a new node is to take its place.";
    Resize = Strikes, "size changed": "The group is to grow or shrink by two nodes.";
    Ruin = Strikes, "ruin": "More replicas than the group can do without lose their disks at once.";
    LeaseShortened = Strikes, "rolling restart with a shorter lease": "All replicas are started again one by one, with a shorter lease.";
    StaysDead = Strikes, "death for good": "A replica dies and stays dead while clients must be served.";
    StaysCut = Strikes, "link cut for good": "A direction between replicas is cut and stays so while clients must be served.";
    StaysFull = Strikes, "disk full for good": "A disk is full and stays so while clients must be served.";
    Killed = Breakdowns, "process killed": "A replica process ended, and the machine stayed up.";
    PowerFailed = Breakdowns, "power failure": "A machine went down with the replica process on it.";
    StoppedStarting = Breakdowns, "power failure while starting": "A machine went down while a replica read its disk.";
    DiskStopped = Breakdowns, "power failure in a disk operation": "A machine went down while its disk was at work.";
    WriteFailed = Breakdowns, "failed write": "A disk refused to take a part of the log.";
    SyncFailed = Breakdowns, "failed sync": "A disk refused to sync the log.";
    DirectoryMissing = Breakdowns, "missing directory": "The data directory of a replica is away for a while.";
    LogReopened = Events, "log reopened": "A replica goes on with its memory when its disk takes writes again.";
    NoteFailed = Breakdowns, "failed note": "A disk refused to take the view that a replica was about to enter.";
    SnapshotFailed = Breakdowns, "failed snapshot": "A disk refused a part of a snapshot, or what was received is none.";
    EngineFailed = Breakdowns, "failed engine": "A disk refused what an engine on it wrote.";
    FlushRefused = Breakdowns, "refused flush": "A disk refused to make a checkpoint of an engine durable.";
    BitFlipped = Breakdowns, "rot: bit flipped": "A bit of a file is another.";
    BytesWiped = Breakdowns, "rot: bytes wiped": "Some bytes of a file are zero.";
    FileShortened = Breakdowns, "rot: file shortened": "The end of a file is missing.";
    FileGone = Breakdowns, "rot: file gone": "A file is missing.";
    PutBack = Breakdowns, "rot: old copy": "Log and snapshots are an old copy of them.";
    FileSwapped = Breakdowns, "rot: file of another": "A segment of the log is another replica's.";
    StoreRotten = Breakdowns, "rot: store of an engine": "The store of an engine is not what was written.";
    Lost = Breakdowns, "message lost": "A message vanished.";
    Duplicated = Breakdowns, "message duplicated": "A message arrived twice.";
    Flipped = Breakdowns, "message damaged": "A bit of a message flipped on its way.";
    Delayed = Breakdowns, "message held back": "A message was held back for long.";
    Terminated = Strikes, "SIGTERM": "A process with a Redis front end is told to end.";
    RedisClientGone = Strikes, "Redis client gone": "A Redis client closes its connection in the middle.";
    PeersParted = Breakdowns, "front ends parted": "The connection between two front ends breaks.";
    RedisClosed = Breakdowns, "Redis client cut off": "A process closes the connection of a Redis client.";
    Delivered = Events, "messages delivered": "A Redis client hears a message that another one has published.";
    Served = Events, "elements waited for": "A command that may wait got an element.";
    WaitedInVain = Events, "waited in vain": "A command that may wait ended without an element.";
    CopyCompared = Events, "copies compared": "A Redis client that keeps a copy was answered what it keeps.";
    CopyDropped = Events, "copies dropped": "A Redis client was told to drop a copy of what it had read.";
    UserChanged = Events, "changes of users": "Somebody has asked for a change of the users.";
    UserDid = Events, "users: done": "A Redis client that is a user did what it wanted.";
    UserRefused = Events, "users: refused": "A Redis client that is a user was refused what it wanted.";
    ScriptUndone = Events, "script undone": "A Redis client was told that nothing was done of its script.";
    NoOpAnswered = Events, "no-op answered": "A leader's node answered an update that changes nothing, and did not order it.";
    ScriptWithoutMemory = Events, "script without memory": "A Redis client was told that memory was short for a command of its script.";
    NoQuorum = Events, "Redis client: NOQUORUM": "A Redis client was told that no majority can be reached.";
    RedisUnknown = Events, "Redis client: UNKNOWN": "A Redis client was told that nobody knows.";
    ViewEntered = Events, "view entered": "A replica entered a view it had not been in.";
    Replaced = Events, "place taken": "A node has taken the place of another one.";
    Removed = Events, "removed": "A node has been told that the group has shrunk by it.";
    Reconfigured = Events, "configuration adopted": "A replica acts in a later configuration.";
    ShrunkWithoutMemory = Events, "smaller, some without memory": "A leader had the group become smaller while more of its members than that can bear had no memory: it needs none of them.";
    Joined = Events, "joined the group": "A replica with a new disk was taken into the group.";
    Learning = Events, "learner started": "A node that is to come into the group began to copy what that holds.";
    LearnerRestarted = Events, "learner started again": "A node that was stopped before it had come into the group begins anew.";
    Learned = Events, "learner became a member": "A node that has copied what the group holds has come into it.";
    DiskRefused = Events, "disk refused": "A replica with a wiped disk was refused, and its old disk put back.";
    MemoryLost = Events, "replica without memory": "A replica started without what it had known.";
    MemoryRegained = Events, "memory regained": "A replica that had started so entered a view.";
    DamageFound = Events, "damage found": "A replica found that its disk does not hold what was written.";
    RuinSurvived = Events, "ruin survived": "Ruined, and yet a majority has all that was ever promised.";
    OutOfMemory = Events, "refused: no memory": "An update was refused because the data has reached its limit.";
    Evicted = Events, "keys evicted": "A replica has removed keys because the data had nearly reached its limit.";
    ClientsWaited = Events, "clients wait for an engine": "A replica has not taken messages of clients because its engine owes too much to the disk.";
    Exec = Events, "EXEC after WATCH": "A transaction that watches keys was executed.";
    ExecFailed = Events, "EXEC after WATCH: nil or unknown": "A transaction that watches keys was not executed, or nobody knows.";
    DiskFull = Events, "refused: disks full": "An update was refused because disks are nearly full.";
    Resent = Events, "request sent again late": "A client sent a request again, having completed another one since.";
    EndProposed = Events, "end of sessions proposed": "A leader sent a follower the end of sessions.";
    SnapshotBegun = Events, "snapshot begun": "A replica began a snapshot of its own.";
    SnapshotTaken = Events, "snapshot taken": "A replica finished a snapshot of its own.";
    Flushed = Events, "checkpoint flushed": "A checkpoint of an engine on disk became durable.";
    EngineFound = Events, "engine found on disk": "A replica started with what an engine had on its disk.";
    SnapshotInstalled = Events, "snapshot installed": "A replica took over a snapshot of another.";
}

/// How often each occurrence happened. What the nemesis strikes a process down with counts as the
/// strike and as the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// In the order of [`Occurrence::ALL`].
    counts: [u64; Occurrence::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self { counts: [0; Occurrence::ALL.len()] }
    }
}

impl Tally {
    /// It happened once more.
    pub const fn record(&mut self, occurrence: Occurrence) {
        self.counts[occurrence as usize] += 1;
    }

    /// It happened `times` more.
    pub const fn record_times(&mut self, occurrence: Occurrence, times: u64) {
        self.counts[occurrence as usize] += times;
    }

    /// How often it happened.
    #[must_use]
    pub const fn count(&self, occurrence: Occurrence) -> u64 {
        self.counts[occurrence as usize]
    }

    /// How often things have happened that are to be disturbed: snapshots begun, finished or taken over; ends of
    /// sessions proposed; requests sent again late; configurations adopted.
    pub(crate) fn moments(&self) -> [u64; 4] {
        let snapshots = [Occurrence::SnapshotBegun, Occurrence::SnapshotTaken, Occurrence::SnapshotInstalled];
        let snapshots = snapshots.into_iter().map(|kind| self.count(kind)).sum();
        let [ending, resend, adoption] =
            [Occurrence::EndProposed, Occurrence::Resent, Occurrence::Reconfigured]
                .map(|kind| self.count(kind));
        [snapshots, ending, resend, adoption]
    }

    /// All faults: whatever is not just an event.
    #[must_use]
    pub fn faults(&self) -> u64 {
        let faults = Occurrence::ALL.iter().filter(|kind| kind.section() != Section::Events);
        faults.map(|kind| self.count(*kind)).sum()
    }

    /// Adds what another run counted.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    /// Every occurrence with its count, a line each.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        for section in Section::ALL {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}:", section.title());
            for kind in Occurrence::ALL.iter().filter(|kind| kind.section() == section) {
                let _ = writeln!(text, "  {:<34}{:>14}", kind.name(), self.count(*kind));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_events_are_no_faults() {
        let mut tally = Tally::default();
        tally.record(Occurrence::Crash);
        tally.record_times(Occurrence::Lost, 3);
        tally.record(Occurrence::SnapshotTaken);
        let mut sum = tally;
        sum.add(&tally);
        assert_eq!((tally.faults(), sum.faults()), (4, 8));
        assert_eq!((sum.count(Occurrence::Lost), sum.count(Occurrence::SnapshotTaken)), (6, 2));
        let table = sum.table();
        assert_eq!(table.lines().count(), Occurrence::ALL.len() + Section::ALL.len(), "{table}");
    }
}
