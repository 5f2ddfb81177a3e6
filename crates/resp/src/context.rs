//! What a connection knows of its client and of the server.

use crate::info::ServerInfo;
use syros_commands::ConnectionCommand;
use syros_types::WallTime;

/// Who is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of the connection, unique in this process: what CLIENT ID answers.
    pub id: u64,
    /// The client's address, as CLIENT INFO shows it: `127.0.0.1:50000`.
    pub address: String,
    /// The server's address of this connection.
    pub local_address: String,
}

/// What a connection may need to know to answer a command by itself.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time of day.
    pub now: WallTime,
    /// The server, for INFO and CONFIG.
    pub info: &'a dyn ServerInfo,
    /// Why commands on keys are not taken now, if they are not.
    pub unavailable: Option<Unavailable>,
}

impl Context<'_> {
    /// True if a command has to wait until the node has read back what its disk holds: there is no registry of subscriptions
    /// before, and clients that take a SUBSCRIBE for refused subscribe to nothing when they are connected anew.
    pub(crate) fn has_to_wait(&self, words: &[&[u8]]) -> bool {
        let begins_subscription = |name: &&[u8]| {
            [&b"SUBSCRIBE"[..], b"PSUBSCRIBE", b"SSUBSCRIBE"]
                .iter()
                .any(|other| name.eq_ignore_ascii_case(other))
        };
        self.unavailable == Some(Unavailable::Loading) && words.first().is_some_and(begins_subscription)
    }
}

/// Why a server takes no commands on keys for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It has just started, and reads back what its disk holds. PING is not answered either, as in Redis: who waits for
    /// it wants to know when commands are taken.
    Loading,
    /// It is about to end.
    Stopping,
}

impl Unavailable {
    /// The text of the error.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Loading => "LOADING Redis is loading the dataset in memory",
            Self::Stopping => "TRYAGAIN the command was not executed: this node is stopping",
        }
    }

    /// True if a command that the connection answers by itself, or asks the registry of subscriptions for, is not answered.
    pub(crate) const fn forbids(self, command: ConnectionCommand) -> bool {
        use ConnectionCommand::{
            Echo, PUnsubscribe, Ping, PubSub, Publish, SPublish, SUnsubscribe, Time, Unsubscribe,
        };
        matches!(
            (self, command),
            (
                Self::Loading,
                // While it loads, there is no registry. What begins a subscription waits for one.
                Ping | Echo | Time | Publish | SPublish | PubSub | Unsubscribe | PUnsubscribe | SUnsubscribe
            )
        )
    }
}
