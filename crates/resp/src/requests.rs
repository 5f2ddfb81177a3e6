//! What a connection cannot answer by itself, because it concerns other connections of the process, or takes time.

use crate::shared::PauseMode;
use crate::tracking::TrackingRequest;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a connection asks its process to do. It looks at no further input until it has the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessRequest {
    /// CLIENT LIST: the lines of these clients.
    ListClients(ClientFilter),
    /// CLIENT KILL: disconnect these clients.
    KillClients {
        /// Which ones.
        filter: ClientFilter,
        /// The old form, whose answer is no count: it is an error if there is no such client.
        is_single: bool,
    },
    /// CLIENT PAUSE: for so long these commands of all clients wait.
    Pause(Duration, PauseMode),
    /// CLIENT UNPAUSE.
    Unpause,
    /// MONITOR: every command of all clients is to be shown to this one.
    Monitor,
    /// DEBUG SLEEP: the answer is OK after so long.
    Sleep(Duration),
    /// WAIT and WAITAOF.
    Wait(WaitRequest),
    /// CLIENT TRACKING: the client tracks from now on, or in another way, or no more.
    Track(Option<TrackingRequest>),
}

/// WAIT and WAITAOF: all earlier updates of the connection have been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRequest {
    /// So many other replicas than the leader are to have them.
    pub followers: u64,
    /// The answer comes after so long, whatever is true then; `None`: it does not come before it is true.
    pub timeout: Option<Duration>,
    /// All updates of the connection have been acknowledged; else nobody knows where one of them is.
    pub is_all_known: bool,
    /// WAITAOF: whether what is acknowledged is on disk. `None` for WAIT.
    pub on_disk: Option<bool>,
    /// WAITAOF: the leader's disk is to have them, too.
    pub is_local_wanted: bool,
}

/// The answer to a [`ProcessRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessAnswer {
    /// OK.
    Ok,
    /// A number.
    Integer(u64),
    /// Two numbers.
    Pair(u64, u64),
    /// Lines.
    Text(Vec<u8>),
    /// An error with this text.
    Error(&'static str),
}

/// The kind of a client, in Redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// One that sends commands.
    Normal,
    /// A primary that this server follows. There are none: replicas are no Redis clients.
    Master,
    /// A replica that follows this server. There are none either.
    Replica,
    /// One that listens to channels.
    PubSub,
}

impl ClientKind {
    /// The kind of this name.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        const NAMES: [(&str, ClientKind); 5] = [
            ("normal", ClientKind::Normal),
            ("slave", ClientKind::Replica),
            ("replica", ClientKind::Replica),
            ("pubsub", ClientKind::PubSub),
            ("master", ClientKind::Master),
        ];
        NAMES.iter().find_map(|(known, kind)| name.eq_ignore_ascii_case(known.as_bytes()).then_some(*kind))
    }
}

/// Which clients are meant: those for which all of these are true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFilter {
    /// Their number is among these.
    pub ids: Option<BTreeSet<u64>>,
    /// Their kind.
    pub kind: Option<ClientKind>,
    /// Their address.
    pub address: Option<Vec<u8>>,
    /// The server's address of their connection.
    pub local_address: Option<Vec<u8>>,
    /// The name of their user.
    pub user: Option<Vec<u8>>,
    /// Not the client with this number.
    pub skipped: Option<u64>,
    /// They have been connected for so long.
    pub age_min: Option<Duration>,
}
