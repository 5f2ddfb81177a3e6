//! The settings that all members of a group must have alike, compared when two of them connect.
//!
//! Each of them is part of a promise between members: what a follower promises for one lease, the leader
//! counts by its own; what one member calls durable, another counts. A difference loses acknowledged
//! writes or gives stale reads without any fault, so members that differ refuse each other by name.

use crate::replica::{Config, Durability};
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;
use syros_types::{FastQuorum, Group};

/// What executes a member's log: a short name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EngineName {
    /// Zeros follow the name.
    bytes: [u8; Self::BYTES_MAX],
}

impl EngineName {
    /// Longest name, in bytes: `machine ` and the longest name of a state machine.
    pub const BYTES_MAX: usize = 40;

    /// The name, if it is 1 to [`Self::BYTES_MAX`] printable ASCII characters.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let printable = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if name.is_empty() || name.len() > Self::BYTES_MAX || !printable {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { bytes })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(Self::BYTES_MAX);
        // Only ASCII gets in.
        core::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// The settings that members must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedSettings {
    /// The group.
    pub group: Group,
    /// The fast quorum mode.
    pub fast_quorum: FastQuorum,
    /// When acknowledgements leave.
    pub durability: Durability,
    /// What executes the log.
    pub engine: EngineName,
    /// How long a follower's promise lasts.
    pub lease: Duration,
    /// How far clocks may drift, in parts per million.
    pub clock_drift_ppm: u32,
    /// When idle sessions end.
    pub session_timeout: Duration,
}

/// A setting that two members do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The setting, as configuration files call it.
    pub setting: &'static str,
    /// The other member's value.
    pub theirs: String,
    /// This member's value.
    pub ours: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, theirs, ours } = self;
        write!(f, "its {setting} is {theirs}, here it is {ours}; all nodes of a cluster must have the same")
    }
}

impl core::error::Error for Disagreement {}

impl SharedSettings {
    /// The settings of a member.
    #[must_use]
    pub const fn of(config: &Config, engine: EngineName) -> Self {
        Self {
            group: config.configuration.group(),
            fast_quorum: config.configuration.mode,
            durability: config.durability,
            engine,
            lease: config.settings.lease,
            clock_drift_ppm: config.settings.clock_drift_ppm,
            session_timeout: config.settings.session_timeout,
        }
    }

    /// Compares these with another member's.
    ///
    /// # Errors
    /// The first setting that differs.
    pub fn check(&self, theirs: &Self) -> Result<(), Disagreement> {
        fn compare<T: PartialEq>(
            setting: &'static str,
            theirs: T,
            ours: T,
            text: impl Fn(T) -> String,
        ) -> Result<(), Disagreement> {
            if theirs == ours {
                return Ok(());
            }
            Err(Disagreement { setting, theirs: text(theirs), ours: text(ours) })
        }
        let duration = |duration: Duration| alloc::format!("{duration:?}");
        compare("number of replicas", theirs.group.size(), self.group.size(), |size| size.to_string())?;
        compare("fast-quorum", theirs.fast_quorum, self.fast_quorum, |mode| mode.to_string())?;
        compare("durability", theirs.durability, self.durability, |durability| durability.to_string())?;
        compare("engine", theirs.engine, self.engine, |engine| engine.to_string())?;
        compare("lease", theirs.lease, self.lease, duration)?;
        compare("clock-drift-ppm", theirs.clock_drift_ppm, self.clock_drift_ppm, |ppm| ppm.to_string())?;
        compare("session-timeout", theirs.session_timeout, self.session_timeout, duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_refused_with_both_values() {
        let ours = SharedSettings {
            group: Group::new(3).unwrap(),
            fast_quorum: FastQuorum::Majority,
            durability: Durability::Fsync,
            engine: EngineName::new("memory").unwrap(),
            lease: Duration::from_millis(200),
            clock_drift_ppm: 10_000,
            session_timeout: Duration::from_secs(600),
        };
        assert_eq!(ours.check(&ours), Ok(()));
        let others = [
            (
                SharedSettings { group: Group::new(5).unwrap(), ..ours },
                "number of replicas is 5, here it is 3",
            ),
            (
                SharedSettings { fast_quorum: FastQuorum::Supermajority, ..ours },
                "fast-quorum is supermajority, here it is majority",
            ),
            (
                SharedSettings { durability: Durability::Replicated, ..ours },
                "durability is replicated, here it is fsync",
            ),
            (
                SharedSettings { engine: EngineName::new("machine x").unwrap(), ..ours },
                "engine is machine x, here it is memory",
            ),
            (SharedSettings { lease: Duration::from_secs(10), ..ours }, "lease is 10s, here it is 200ms"),
            (SharedSettings { clock_drift_ppm: 0, ..ours }, "clock-drift-ppm is 0, here it is 10000"),
            (
                SharedSettings { session_timeout: Duration::from_secs(60), ..ours },
                "session-timeout is 60s, here it is 600s",
            ),
        ];
        for (theirs, complaint) in others {
            let refused = ours.check(&theirs).unwrap_err().to_string();
            assert!(refused.contains(complaint), "{refused} should say {complaint}");
        }
    }

    #[test]
    fn names_of_engines_are_short_printable_texts() {
        assert_eq!(EngineName::new("machine record-append").unwrap().as_str(), "machine record-append");
        for wrong in ["", "tab\t", "ä", "12345678901234567890123456789012345678901"] {
            assert_eq!(EngineName::new(wrong), None, "{wrong}");
        }
    }
}
