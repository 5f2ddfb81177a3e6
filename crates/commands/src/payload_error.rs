//! Errors of RESTORE and FUNCTION RESTORE.

/// Why a payload, or an option beside it, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadError {
    /// RESTORE with a negative time to live.
    TimeToLive,
    /// RESTORE with a negative IDLETIME.
    IdleTime,
    /// RESTORE with a FREQ that is none.
    Frequency,
    /// RESTORE of a payload of a newer version, or of one that was damaged.
    VersionOrChecksum,
    /// RESTORE of a payload that is no value.
    Format,
    /// FUNCTION RESTORE does not have this policy.
    Policy,
    /// A payload is none of libraries.
    NotLibraries,
}

impl PayloadError {
    /// As Redis says it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::TimeToLive => "ERR Invalid TTL value, must be >= 0",
            Self::IdleTime => "ERR Invalid IDLETIME value, must be >= 0",
            Self::Frequency => "ERR Invalid FREQ value, must be >= 0 and <= 255",
            Self::VersionOrChecksum => "ERR DUMP payload version or checksum are wrong",
            Self::Format => "ERR Bad data format",
            Self::Policy => {
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
            }
            Self::NotLibraries => "ERR given type is not a function",
        }
    }
}
