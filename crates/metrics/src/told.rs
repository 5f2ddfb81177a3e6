//! What a process tells of itself when it is asked.

use std::sync::Arc;
use std::time::Duration;

use syros_resp::{ServerReport, Shared};

/// What the event loop says when it is asked.
#[derive(Clone, Debug)]
pub struct Told {
    /// How the process is.
    pub report: ServerReport,
    /// What its connections share: their counters, and the commands that took long.
    pub shared: Arc<Shared>,
    /// Times of operations of this process's clients in microseconds, by the way in which they were answered. Ways that there were.
    pub ways: Vec<(&'static str, Distribution)>,
    /// The other members, as far as this process has to do with them.
    pub peers: Vec<Peer>,
    /// The replica of the process, if it has one.
    pub replica: Option<ReplicaActivity>,
    /// What the process is to be, if it has no replica yet.
    pub to_be: Option<ToBe>,
    /// What has become of traces, if the process exports any.
    pub traces: Option<TraceActivity>,
}

impl Told {
    /// The position of the process in the group, if it has one or is to have one.
    pub(crate) fn place(&self) -> Option<u8> {
        self.report.replica.or_else(|| self.to_be.map(|to_be| to_be.replica))
    }
}

/// What has become of the spans of a process's traces since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceActivity {
    /// A collector has taken them.
    pub exported: u64,
    /// Spans that are lost, by why.
    pub dropped: Vec<(&'static str, u64)>,
    /// Requests to the collector that failed.
    pub failures: u64,
}

/// What a process is to be that waits for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToBe {
    /// Its position.
    pub replica: u8,
    /// How it comes to it.
    pub way: Way,
}

/// How a node comes into a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The group is formed of all its nodes.
    Form,
    /// The group grows by it and another one.
    Join,
    /// It takes the place of another node.
    Replace,
}

impl Way {
    /// Its name in `/status.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Join => "join",
            Self::Replace => "replace",
        }
    }
}

/// Another member of the group, as this process sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its position.
    pub member: u8,
    /// A connection leads there.
    pub is_connected: bool,
    /// Up to here its log is durable, as a leader knows it.
    pub acknowledged: Option<u64>,
}

/// What the replica of a process has done since the process started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaActivity {
    /// The last entry of its log.
    pub last_entry: u64,
    /// Sessions of clients.
    pub sessions: u64,
    /// Bytes of log and durability log in memory.
    pub log_bytes: u64,
    /// Updates that were answered with a conflict: something pending concerned their keys.
    pub conflicts: u64,
    /// Reads answered at once, and reads that waited.
    pub reads: [u64; 2],
    /// Views entered.
    pub views_entered: u64,
    /// Everything refused.
    pub refused: u64,
    /// Operations refused, by why.
    pub refusals: Vec<(&'static str, u64)>,
    /// Views left, by why.
    pub view_changes: Vec<(&'static str, u64)>,
    /// Times of syncs of the log in microseconds, since it was opened.
    pub syncs: Distribution,
    /// Records that were made durable with each.
    pub sync_records: Distribution,
    /// Bytes of these records.
    pub sync_bytes: Distribution,
}

/// How often there was which value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// All values together.
    pub sum: u64,
    /// Bounds, which rise, each with how many values were up to it and above the bound before.
    pub buckets: Vec<(u64, u64)>,
}

/// What has come of asking the event loop.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It answered.
    Told(Box<Told>),
    /// There is no loop yet: the process reads back what its disk holds, or starts anew.
    Starting,
    /// It did not answer within [`ANSWER_TIMEOUT`](crate::ANSWER_TIMEOUT).
    Silent,
}

/// What a member says of itself, as `syros status` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberReport {
    /// Its position.
    pub replica: u8,
    /// `leader`, `follower`, `view-change` or `recovering`.
    pub role: String,
    /// It knows of no working majority.
    pub has_no_quorum: bool,
    /// Its disk takes no updates.
    pub has_disk_trouble: bool,
    /// Its figures, by name.
    pub numbers: Vec<(&'static str, u64)>,
}

/// A member of the group that was asked how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where it listens for other nodes.
    pub address: String,
    /// What it answered, or why it did not. `None`: it was not asked.
    pub answer: Option<Result<MemberReport, String>>,
    /// Why it was not asked, though it should have been: that says nothing about the member.
    pub unknown: Option<String>,
}

impl Member {
    /// One that listens there, and was not asked.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self { address: address.to_owned(), answer: None, unknown: None }
    }
}

/// What is known of all members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// One for each address that was named.
    pub all: Vec<Member>,
    /// So long ago they were asked.
    pub age: Duration,
}

/// Whom the port for metrics asks.
pub trait Source: Send + Sync + 'static {
    /// Asks the event loop. It returns within [`ANSWER_TIMEOUT`](crate::ANSWER_TIMEOUT).
    fn ask(&self) -> Answer;

    /// Asks the members that listen at these addresses, all but the one in this position: that is the process itself. It
    /// returns within a second, if need be with what they said before, and asks no member more often than once in most of a second, however many ask here.
    fn ask_members(&self, addresses: &[String], own: Option<u8>) -> Members {
        let _ = own;
        Members { all: addresses.iter().map(|address| Member::at(address)).collect(), age: Duration::ZERO }
    }
}

impl<F: Fn() -> Answer + Send + Sync + 'static> Source for F {
    fn ask(&self) -> Answer {
        self()
    }
}
