//! What all connections of a process share: its counters, the settings that may change while it runs, and what has been
//! slow.

mod latency;
mod monitor;
mod slow_log;

use crate::access::{AclLog, KnownUsers};
use crate::keyspace_events::KeyspaceEvents;
use crate::statistics::Statistics;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use syros_commands::Generation;
use syros_commands::acl::Users;
use syros_commands::families::Abilities;
use syros_types::WallTime;

pub(crate) use latency::LatencyEvents;
pub(crate) use monitor::Monitor;
pub use slow_log::{SLOW_LOG_LENGTH_MAX, SlowCommandName};
pub(crate) use slow_log::{SlowCommand, SlowLog, put_words, words_of};

/// Which clients may use DEBUG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DebugAccess {
    /// None.
    #[default]
    Nobody,
    /// Those whose address is one of this machine's own loopback interface.
    Local,
    /// All.
    Everybody,
}

impl DebugAccess {
    /// Every choice, with its name in settings.
    pub const ALL: [(&'static str, Self); 3] =
        [("no", Self::Nobody), ("local", Self::Local), ("yes", Self::Everybody)];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, access)| *access == self).map_or("no", |(name, _)| *name)
    }
}

/// Which commands wait while clients are paused: CLIENT PAUSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseMode {
    /// Those that may change data.
    Write,
    /// All.
    All,
}

/// What all connections of a process share. They belong to one thread; it can be moved to another one.
#[derive(Debug)]
pub struct Shared {
    /// What the connections have done.
    pub statistics: Arc<Statistics>,
    /// The settings of CONFIG SET that concern connections.
    pub(crate) settings: ConnectionSettings,
    debug: DebugAccess,
    /// The newest operations that all connected members know: a [`Generation`].
    generation: AtomicU8,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call DEBUG.
    scripts_debug: AtomicBool,
    /// 0: clients are not paused; 1: updates wait; 2: everything waits.
    pause: AtomicU8,
    slow_log: Mutex<SlowLog>,
    latency: Mutex<LatencyEvents>,
    pub(crate) monitor: Monitor,
    pub(crate) users: KnownUsers,
    /// Reads are stale whose clients have not said how they are answered.
    reads_are_stale: AtomicBool,
    acl_log: Mutex<AclLog>,
}

/// The settings of CONFIG SET that concern connections.
#[derive(Debug)]
pub(crate) struct ConnectionSettings {
    /// Commands that take so many microseconds are in the slow log; none if it is negative.
    pub(crate) slow_log_micros: AtomicI64,
    /// Commands in the slow log at most.
    pub(crate) slow_log_length: AtomicU64,
    /// What takes so many milliseconds is an event of LATENCY; nothing is if it is 0.
    pub(crate) latency_millis: AtomicU64,
    /// 1: the times of commands are counted.
    pub(crate) latency_tracking: AtomicU64,
    /// Which events of keys clients are told of: the bits of [`KeyspaceEvents`].
    pub(crate) keyspace_events: AtomicU16,
    /// Keys that are remembered to be kept by clients, at most.
    pub(crate) tracking_keys_max: AtomicU64,
    /// Scripts may touch keys that they do not declare: 1 if so.
    pub(crate) undeclared_keys: AtomicU64,
    /// Entries of ACL LOG at most.
    pub(crate) acl_log_length: AtomicU64,
    /// A client that sends nothing for so many seconds is disconnected; none is if it is 0.
    pub(crate) idle_seconds: AtomicU64,
}

impl Default for ConnectionSettings {
    /// Redis's own values.
    fn default() -> Self {
        Self {
            slow_log_micros: AtomicI64::new(10_000),
            slow_log_length: AtomicU64::new(128),
            latency_millis: AtomicU64::new(0),
            latency_tracking: AtomicU64::new(1),
            keyspace_events: AtomicU16::new(0),
            tracking_keys_max: AtomicU64::new(1_000_000),
            undeclared_keys: AtomicU64::new(1),
            acl_log_length: AtomicU64::new(128),
            idle_seconds: AtomicU64::new(0),
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new(DebugAccess::Nobody)
    }
}

impl Shared {
    /// What the connections of a process share when it starts; these clients may use DEBUG.
    #[must_use]
    pub fn new(debug: DebugAccess) -> Self {
        Self {
            statistics: Arc::default(),
            settings: ConnectionSettings::default(),
            debug,
            generation: AtomicU8::new(Generation::NEWEST as u8),
            scripts_debug: AtomicBool::new(false),
            pause: AtomicU8::new(0),
            slow_log: Mutex::default(),
            latency: Mutex::default(),
            monitor: Monitor::default(),
            users: KnownUsers::default(),
            reads_are_stale: AtomicBool::new(false),
            acl_log: Mutex::default(),
        }
    }

    /// The newest operations that all connected members know.
    pub fn set_generation(&self, generation: Generation) {
        self.generation.store(generation as u8, Ordering::Relaxed);
    }

    /// True if all connected members know the operations of a generation.
    pub(crate) fn knows(&self, generation: Generation) -> bool {
        self.generation.load(Ordering::Relaxed) >= generation as u8
    }

    /// What whoever executes a script is able to do.
    pub(crate) fn abilities(&self) -> Abilities {
        Abilities::default()
            .with(Abilities::COUNTS_SCRIPT_ALONE, self.knows(Generation::ScriptTerms))
            .with(Abilities::COUNTS_WHOLE_VALUES, self.knows(Generation::WholeValues))
            .with(Abilities::TELLS_RIGHTS, self.knows(Generation::AskedRights))
            .with(Abilities::COUNTS_KEYS, self.knows(Generation::CountedKeys))
    }

    /// From now on the scripts of clients that may use DEBUG may call it, or not.
    pub(crate) fn set_scripts_debug(&self, may_debug: bool) {
        self.scripts_debug.store(may_debug, Ordering::Relaxed);
    }

    /// True if scripts may call DEBUG, and all members know how to execute such a script.
    pub(crate) fn scripts_debug(&self) -> bool {
        self.scripts_debug.load(Ordering::Relaxed) && self.knows(Generation::WholeValues)
    }

    /// Which clients may use DEBUG.
    pub(crate) const fn debug_access(&self) -> DebugAccess {
        self.debug
    }

    /// A client that sends nothing for so long is to be disconnected; `None`: none is.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<Duration> {
        let seconds = self.settings.idle_seconds.load(Ordering::Relaxed);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Which events of keys clients are told of.
    #[must_use]
    pub fn keyspace_events(&self) -> KeyspaceEvents {
        KeyspaceEvents::from_bits(self.settings.keyspace_events.load(Ordering::Relaxed))
    }

    /// Keys that are remembered to be kept by clients, at most.
    #[must_use]
    pub fn tracking_keys_max(&self) -> usize {
        usize::try_from(self.settings.tracking_keys_max.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// From now on these commands wait.
    pub fn set_pause(&self, mode: Option<PauseMode>) {
        let code = match mode {
            None => 0,
            Some(PauseMode::Write) => 1,
            Some(PauseMode::All) => 2,
        };
        self.pause.store(code, Ordering::Relaxed);
    }

    /// The commands that wait.
    pub(crate) fn pause(&self) -> Option<PauseMode> {
        match self.pause.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(PauseMode::Write),
            _ => Some(PauseMode::All),
        }
    }

    /// True if words of commands are to be kept until the commands are answered.
    pub(crate) fn keeps_words(&self) -> bool {
        self.settings.slow_log_micros.load(Ordering::Relaxed) >= 0
            && self.settings.slow_log_length.load(Ordering::Relaxed) > 0
    }

    /// True if a command that took so long belongs into the slow log.
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        let limit = self.settings.slow_log_micros.load(Ordering::Relaxed);
        u64::try_from(limit).is_ok_and(|limit| took.as_micros() >= u128::from(limit))
    }

    /// An event took so long, which ended `now`: if that is long, LATENCY tells of it.
    pub fn record_latency(&self, event: &'static str, took: Duration, now: WallTime) {
        let limit = self.settings.latency_millis.load(Ordering::Relaxed);
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if limit > 0 && millis >= limit {
            self.latency(|events| events.record(event, millis, now));
        }
    }

    /// So many clients monitor the commands of all.
    pub fn set_monitors(&self, count: usize) {
        self.monitor.set_watchers(count);
    }

    /// The commands of all clients that have come since the last call, as lines of MONITOR.
    #[must_use]
    pub fn take_monitored(&self) -> Vec<u8> {
        self.monitor.take()
    }

    /// Nothing is known of the users, and commands are refused until [`learn_users`](Self::learn_users) has been told, or wait
    /// for that: see [`set_patient`](Self::set_patient).
    pub fn forget_users(&self) {
        self.users.forget();
    }

    /// What is known of the users was read so long ago that a change may have been acknowledged since: commands that the group
    /// executes wait until the users have been read again, or are refused: see [`set_patient`](Self::set_patient). Reads
    /// that may be stale go on.
    pub fn set_outdated(&self, is_outdated: bool) {
        self.users.set_outdated(is_outdated);
    }

    /// True if commands wait, or are refused, because nobody has told of late whether the users have changed.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.users.is_outdated()
    }

    /// Whether reads are stale whose clients have not said how they are answered.
    pub fn set_reads_stale(&self, are_stale: bool) {
        self.reads_are_stale.store(are_stale, Ordering::Relaxed);
    }

    pub(crate) fn reads_are_stale(&self) -> bool {
        self.reads_are_stale.load(Ordering::Relaxed)
    }

    /// While the users are not known, commands wait for them; without patience they are refused: no majority can be reached that
    /// would tell.
    pub fn set_patient(&self, is_patient: bool) {
        self.users.set_patient(is_patient);
    }

    /// The users are these, unless later ones are known. True if they are.
    pub fn learn_users(&self, users: Users) -> bool {
        self.users.learn(users)
    }

    /// The users that are known, if any are.
    #[must_use]
    pub fn known_users(&self) -> Option<Users> {
        self.users.users()
    }

    /// Protected mode: while the default user needs no password, only clients on the same machine are served.
    pub fn set_protected(&self, is_protected: bool) {
        self.users.set_protected(is_protected);
    }

    /// Looks at what clients were refused, or changes it.
    pub(crate) fn acl_log<R>(&self, look: impl FnOnce(&mut AclLog) -> R) -> R {
        look(&mut self.acl_log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the slow log, or changes it.
    pub(crate) fn slow_log<R>(&self, look: impl FnOnce(&mut SlowLog) -> R) -> R {
        look(&mut self.slow_log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last `count` commands that took long, the newest first, without what a client has written. Other threads may ask.
    #[must_use]
    pub fn slow_commands(&self, count: usize) -> Vec<SlowCommandName> {
        self.slow_log(|log| log.commands().take(count).map(SlowCommandName::of).collect())
    }

    /// Looks at the events of LATENCY, or changes them.
    pub(crate) fn latency<R>(&self, look: impl FnOnce(&mut LatencyEvents) -> R) -> R {
        look(&mut self.latency.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
