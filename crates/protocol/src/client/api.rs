//! What goes into a client and what comes out of it.

use super::way_times::Way;
use crate::message::{Body, Message, Refusal};
use core::time::Duration;
use syros_types::{Configuration, OpNumber, ReadPolicy, Reconfiguration, ReplicaId, ReplicaSet, WritePolicy};

/// What a user may choose about a client. The library's options and the server's front end embed it, so that the
/// defaults stand here and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// An operation without an answer is sent again after this long.
    pub resend: Duration,
    /// A nilext update whose fast quorum is not complete after this long is ordered by the leader.
    pub sync_after: Duration,
    /// An operation without an answer after this long ends as [`Outcome::Unknown`] (or
    /// [`Outcome::Refused`] if it was never sent).
    pub give_up_after: Duration,
    /// Most operations in flight; more are refused by `submit`.
    pub in_flight_max: usize,
    /// A session that has issued no update for this long is replaced before the next one. Well below
    /// the replicas' session timeout.
    pub session_idle_max: Duration,
    /// How reads are answered if they do not say.
    pub read_policy: ReadPolicy,
    /// How updates go that may be fast.
    pub write_policy: WritePolicy,
    /// A client of three replicas has a follower answer what the leader orders if that is sooner by this much. What is gained
    /// where all are near is not worth the message.
    pub direct_gain_min: Duration,
    /// For how long a follower does so before it is asked again.
    pub direct_lasting: Duration,
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            resend: Duration::from_millis(100),
            sync_after: Duration::from_millis(20),
            give_up_after: Duration::from_secs(10),
            in_flight_max: 65_536,
            session_idle_max: Duration::from_secs(300),
            read_policy: ReadPolicy::Auto,
            write_policy: WritePolicy::Auto,
            direct_gain_min: Duration::from_micros(500),
            direct_lasting: Duration::from_secs(10),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// What a client is made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The configuration of the group that the client starts with.
    pub configuration: Configuration,
    /// Seed of nonces and jitter; two clients that start at one time must differ in it.
    pub seed: u64,
    /// The replica of the same process, if there is one: it answers as soon as it has executed an update
    /// ([`Event::OwnFrontEnd`](crate::replica::Event::OwnFrontEnd)), and so hears of the session first.
    pub own_replica: Option<ReplicaId>,
    /// It registers a session when it connects, so that its first update takes no longer than the others. Models, which are
    /// larger with every message, let the first update do that.
    pub registers_early: bool,
    /// What a user may choose.
    pub settings: Settings,
    /// A known-wrong variant to run, for the simulator.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::replica::PlantedBug>,
}

impl Config {
    /// A client with the default settings.
    #[must_use]
    pub const fn new(configuration: Configuration, seed: u64) -> Self {
        Self {
            configuration,
            seed,
            own_replica: None,
            registers_early: true,
            settings: Settings::new(),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }
}

/// The client's name for an operation it was given: 1, 2, 3, ... in order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A nilext update is durable on a quorum; it returns nothing but this.
    Done,
    /// The result of a read or of an update.
    Reply(Body),
    /// It was not executed and never will be.
    Refused(Refusal),
    /// Nobody can tell whether an update was or will be executed: no answer within the time allowed.
    Unknown,
    /// No answer within the time allowed to a read, or an update that was never sent: it has had no effect.
    TimedOut,
    /// It has had no effect, and was given up before its time because no majority can be reached
    /// ([`Event::QuorumReachable`]).
    NoQuorum,
}

/// Too many operations are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The limit.
    pub in_flight_max: usize,
}

impl core::fmt::Display for Busy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} operations are in flight already", self.in_flight_max)
    }
}

impl core::error::Error for Busy {}

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message arrived from a replica.
    Message {
        /// From whom.
        from: ReplicaId,
        /// The message.
        message: Message,
    },
    /// There is a working connection to the replica now. None is assumed at the start.
    Connected(ReplicaId),
    /// The replica that is connected is of a build that tells clients no configurations, and no group of which has ever
    /// changed its size. Comes right after [`Event::Connected`].
    TellsNoConfiguration(ReplicaId),
    /// The connection to the replica is gone; what was sent on it may be lost.
    Disconnected(ReplicaId),
    /// Whether a leader with a majority can be reached, as far as the driver knows. As long as none can, nothing is sent
    /// but reads that need none: of whatever state there is, and of a quorum, if a majority is connected. What else is in
    /// flight has ended. At the start one can.
    QuorumReachable(bool),
    /// The deadline passed.
    Tick,
}

/// Something must be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message to replicas: the same to each.
    Send {
        /// To whom; one at least.
        to: ReplicaSet,
        /// What.
        message: Message,
    },
    /// An operation ended.
    Completed {
        /// Which.
        token: Token,
        /// How.
        outcome: Outcome,
        /// A read that a member answered: the state was the one after this log entry, or a later one.
        applied: Option<OpNumber>,
        /// The way in which it was answered, if it was.
        way: Option<Way>,
    },
    /// The group has this configuration: nodes that are not in it need not be connected any more, and those that are new
    /// should be.
    Reconfigured(Reconfiguration),
}
