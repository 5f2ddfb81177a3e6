//! Errors of commands on streams, in the words of Redis.

/// Why a command on a stream fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// An argument is no id.
    InvalidId,
    /// XADD with the id 0-0.
    ZeroId,
    /// XADD with an id that is not behind the last one.
    IdNotGreater,
    /// XADD to a stream whose last id is the greatest.
    Exhausted,
    /// MAXLEN is negative.
    NegativeLength,
    /// LIMIT of a trim is negative.
    NegativeTrimLimit,
    /// MAXLEN and MINID, or one of them twice.
    TwoTrims,
    /// LIMIT without MAXLEN or MINID.
    LimitWithoutTrim,
    /// LIMIT of an exact trim.
    LimitOfExactTrim,
    /// XTRIM without MAXLEN and MINID.
    NoTrim,
    /// Nothing is behind the greatest id.
    StartExcluded,
    /// Nothing is before the least id.
    EndExcluded,
    /// XREAD with GROUP.
    GroupOfRead,
    /// XREAD with NOACK.
    NoAckOfRead,
    /// XREADGROUP without GROUP.
    NoGroupOption,
    /// XREAD with another number of ids than of keys.
    UnbalancedRead,
    /// XREADGROUP with another number of ids than of keys.
    UnbalancedReadGroup,
    /// XREADGROUP of what comes after now.
    LastIdOfGroup,
    /// XREADGROUP of the last entry.
    LastEntryOfGroup,
    /// XREAD of what was not delivered.
    NewEntriesOfRead,
    /// BLOCK is no number.
    TimeoutNotInteger,
    /// BLOCK is negative.
    TimeoutNegative,
    /// The idle time of XCLAIM is no number.
    ClaimIdleTime,
    /// The idle time of XAUTOCLAIM is no number.
    AutoClaimIdleTime,
    /// IDLE of XCLAIM is no number.
    ClaimIdle,
    /// TIME of XCLAIM is no number.
    ClaimTime,
    /// RETRYCOUNT of XCLAIM is no number.
    ClaimRetryCount,
    /// COUNT of XAUTOCLAIM is below one.
    AutoClaimCount,
    /// XGROUP on a key that does not exist.
    NoKeyOfGroup,
    /// XGROUP CREATE of a group that there is.
    GroupExists,
    /// ENTRIESREAD is negative.
    NegativeEntriesRead,
    /// ENTRIESADDED is negative.
    NegativeEntriesAdded,
    /// XSETID to less than the greatest removed id that it names.
    SetIdBelowNewDeleted,
    /// XSETID to less than the greatest removed id.
    SetIdBelowDeleted,
    /// XSETID to less than the last entry.
    SetIdBelowTop,
    /// XSETID with fewer entries than there are.
    SetIdBelowLength,
}

impl StreamError {
    /// The text of the error reply.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidId => "ERR Invalid stream ID specified as stream command argument",
            Self::ZeroId => "ERR The ID specified in XADD must be greater than 0-0",
            Self::IdNotGreater => {
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            }
            Self::Exhausted => "ERR The stream has exhausted the last possible ID, unable to add more items",
            Self::NegativeLength => "ERR The MAXLEN argument must be >= 0.",
            Self::NegativeTrimLimit => "ERR The LIMIT argument must be >= 0.",
            Self::TwoTrims => {
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
            }
            Self::LimitWithoutTrim => {
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
            }
            Self::LimitOfExactTrim => "ERR syntax error, LIMIT cannot be used without the special ~ option",
            Self::NoTrim => "ERR syntax error, XTRIM must be called with a trimming strategy",
            Self::StartExcluded => "ERR invalid start ID for the interval",
            Self::EndExcluded => "ERR invalid end ID for the interval",
            Self::GroupOfRead => {
                "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
            }
            Self::NoAckOfRead => {
                "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."
            }
            Self::NoGroupOption => "ERR Missing GROUP option for XREADGROUP",
            Self::UnbalancedRead => {
                "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."
            }
            Self::UnbalancedReadGroup => {
                "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
            }
            Self::LastIdOfGroup => {
                "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                 consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return \
                 an empty result set."
            }
            Self::LastEntryOfGroup => {
                "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                 consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return \
                 an empty result set."
            }
            Self::NewEntriesOfRead => {
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
            }
            Self::TimeoutNotInteger => "ERR timeout is not an integer or out of range",
            Self::TimeoutNegative => "ERR timeout is negative",
            Self::ClaimIdleTime => "ERR Invalid min-idle-time argument for XCLAIM",
            Self::AutoClaimIdleTime => "ERR Invalid min-idle-time argument for XAUTOCLAIM",
            Self::ClaimIdle => "ERR Invalid IDLE option argument for XCLAIM",
            Self::ClaimTime => "ERR Invalid TIME option argument for XCLAIM",
            Self::ClaimRetryCount => "ERR Invalid RETRYCOUNT option argument for XCLAIM",
            Self::AutoClaimCount => "ERR COUNT must be > 0",
            Self::NoKeyOfGroup => {
                "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
                 MKSTREAM option to create an empty stream automatically."
            }
            Self::GroupExists => "BUSYGROUP Consumer Group name already exists",
            Self::NegativeEntriesRead => "ERR value for ENTRIESREAD must be positive or -1",
            Self::NegativeEntriesAdded => "ERR entries_added must be positive",
            Self::SetIdBelowNewDeleted => {
                "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
            }
            Self::SetIdBelowDeleted => {
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
            }
            Self::SetIdBelowTop => {
                "ERR The ID specified in XSETID is smaller than the target stream top item"
            }
            Self::SetIdBelowLength => {
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            }
        }
    }
}
