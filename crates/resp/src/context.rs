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
