//! Settings of a client.

use core::time::Duration;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use syros_protocol::client::Settings;
use syros_tls::Credentials;
use syros_wire::ANY_CLUSTER;

/// Settings of a client. The defaults suit a cluster in one data center and in several.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster that the client belongs to; 0 for whichever the replicas name, all the same.
    pub cluster: u64,
    /// How long [`Client::connect`](crate::Client::connect) waits for the first replica.
    pub connect_timeout: Duration,
    /// An attempt to reach a replica, handshake included, is given up after this long and made again.
    pub dial_timeout: Duration,
    /// Longest delay before the first attempt to reach a replica again; it doubles with every failure.
    pub backoff_first: Duration,
    /// Longest delay before any attempt to reach a replica again.
    pub backoff_max: Duration,
    /// The protocol's settings: how long the client waits before it sends again, asks the leader to order an update, or
    /// gives up; how much may be in flight; how reads and updates go that do not say.
    pub settings: Settings,
    /// Certificate and authorities, if the nodes speak TLS.
    pub credentials: Option<Arc<Credentials>>,
    /// Seed of all random choices; `None` takes one that no other client has.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cluster: ANY_CLUSTER,
            connect_timeout: Duration::from_secs(5),
            dial_timeout: Duration::from_secs(2),
            backoff_first: Duration::from_millis(50),
            backoff_max: Duration::from_millis(200),
            settings: Settings::new(),
            credentials: None,
            seed: None,
        }
    }
}

/// The other options are the defaults.
impl From<Settings> for Options {
    fn from(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }
}

impl Options {
    /// The seed, or one from the system's entropy: two clients must differ in it.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish())
    }
}
