//! Settings of a client.

use core::time::Duration;
use std::hash::{BuildHasher, Hasher, RandomState};
use syros_protocol::client::Config;
use syros_types::{FastQuorum, Group, ReadPolicy, WritePolicy};
use syros_wire::ANY_CLUSTER;

/// Settings of a client. The defaults suit a cluster in one data center and in several.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// An operation without an answer is sent again after this long.
    pub resend: Duration,
    /// An update whose fast quorum is not complete after this long is ordered by the leader.
    pub sync_after: Duration,
    /// An operation without an answer after this long fails.
    pub give_up_after: Duration,
    /// Most operations in flight; more fail as busy.
    pub in_flight_max: usize,
    /// A session that has issued no update for this long is replaced before the next one.
    pub session_idle_max: Duration,
    /// How reads are answered that do not say ([`Client::reading`](crate::Client::reading)).
    pub read_policy: ReadPolicy,
    /// How updates go that may be fast.
    pub write_policy: WritePolicy,
    /// Seed of all random choices; `None` takes one that no other client has.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        // Group, mode and seed matter to the other fields only.
        let group = const { Group::new(1) };
        let config = Config::new(group.expect("1 is a group size"), FastQuorum::Majority, 0);
        Self {
            cluster: ANY_CLUSTER,
            connect_timeout: Duration::from_secs(5),
            dial_timeout: Duration::from_secs(2),
            backoff_first: Duration::from_millis(50),
            backoff_max: Duration::from_millis(200),
            resend: config.resend,
            sync_after: config.sync_after,
            give_up_after: config.give_up_after,
            in_flight_max: config.in_flight_max,
            session_idle_max: config.session_idle_max,
            read_policy: config.read_policy,
            write_policy: config.write_policy,
            seed: None,
        }
    }
}

impl Options {
    /// The protocol's part of the settings, once the cluster has told group and mode.
    pub(crate) fn protocol(&self, group: Group, fast_quorum: FastQuorum, seed: u64) -> Config {
        Config {
            resend: self.resend,
            sync_after: self.sync_after,
            give_up_after: self.give_up_after,
            in_flight_max: self.in_flight_max,
            session_idle_max: self.session_idle_max,
            read_policy: self.read_policy,
            write_policy: self.write_policy,
            ..Config::new(group, fast_quorum, seed)
        }
    }

    /// The seed, or one from the system's entropy: two clients must differ in it.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish())
    }
}
