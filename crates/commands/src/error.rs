//! Errors of commands, in the words of Redis 7.0.

use crate::field_error::FieldError;
use crate::payload_error::PayloadError;
use crate::reply::Double;
use crate::stream_error::StreamError;
use core::fmt;
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX};
use syros_values::WrongType;

/// What Redis says where the data may take no more memory.
pub const NO_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Redis shows this much of a word that it does not know.
const SHOWN_BYTES_MAX: usize = 128;

/// Why a command was refused before it became an operation. Its text, [`CommandError::write`], is
/// Redis 7.0's where Redis has the same error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// No such command; carries the name and the first arguments as Redis quotes them.
    Unknown {
        /// The name as sent, cut at a NUL byte or at 128 bytes, as Redis does.
        name: Vec<u8>,
        /// The arguments, each quoted and followed by a space, cut after about 128 bytes.
        arguments: Vec<u8>,
    },
    /// Too few or too many arguments for this command.
    Arity(&'static str),
    /// An option that the command does not have, or that excludes another.
    Syntax,
    /// An argument is not a 64-bit integer in Redis's strict syntax.
    NotInteger,
    /// An argument that has 32 bits is an integer of more.
    IntegerOutOfRange,
    /// There is no database of this number.
    DatabaseOutOfRange,
    /// The first argument of SWAPDB is not an integer of 32 bits.
    InvalidFirstDatabase,
    /// The second argument of SWAPDB is not an integer of 32 bits.
    InvalidSecondDatabase,
    /// An argument is not a floating point number.
    NotFloat,
    /// An expiry is not positive, or overflows, in this command.
    InvalidExpireTime(&'static str),
    /// A field of a hash expires at a negative time.
    NegativeExpireTime,
    /// An option that HSETEX does not have.
    UnknownFieldOption(Vec<u8>),
    /// SETRANGE with a negative offset.
    OffsetOutOfRange,
    /// DECRBY by the smallest integer, whose negation is none.
    DecrementOverflow,
    /// SCAN with a cursor that is not a number.
    InvalidCursor,
    /// EXPIRE with NX and another condition.
    ExpireNxWithOther,
    /// EXPIRE with both GT and LT.
    ExpireGtWithLt,
    /// EXPIRE with an option that it does not have.
    UnsupportedOption(Vec<u8>),
    /// A value is, or would become, longer than
    /// [`VALUE_BYTES_MAX`](syros_types::limits::VALUE_BYTES_MAX).
    ValueTooLong,
    /// A key of so many bytes is longer than [`KEY_BYTES_MAX`].
    KeyTooLong(usize),
    /// So many keys are more than [`KEYS_PER_OPERATION_MAX`].
    TooManyKeys(usize),
    /// So many elements of a collection are more than one operation may name.
    TooManyElements(usize),
    /// HINCRBYFLOAT by a number that is not finite.
    NotFiniteArgument,
    /// A count of elements that cannot be negated.
    CountOutOfRange,
    /// SINTERCARD of more keys than there are words.
    MoreKeysThanWords,
    /// SINTERCARD or ZINTERCARD with a limit that is no number, or negative.
    NegativeLimit,
    /// A count of pairs that cannot be doubled.
    PairCountOutOfRange,
    /// More random elements, with repetitions, than [`DRAWS_MAX`](crate::limits::DRAWS_MAX).
    TooManyDraws,
    /// A count of elements to be removed that is negative, or no number.
    CountNotPositive,
    /// A number of keys that is no number, or below one.
    NumKeysNotPositive,
    /// A script with fewer than no keys.
    NegativeKeyCount,
    /// FCALL with a number of keys that is none.
    BadKeyCount,
    /// SCRIPT FLUSH with another option.
    ScriptFlushMode,
    /// FUNCTION FLUSH with another option.
    FunctionFlushMode,
    /// SCRIPT KILL or FUNCTION KILL: no script takes so long that another command is looked at meanwhile.
    NothingRuns,
    /// FUNCTION LIST with LIBRARYNAME and no name.
    NoLibraryName,
    /// FUNCTION LIST with an argument that it does not have.
    UnknownArgument(Vec<u8>),
    /// FUNCTION LOAD with an option that it does not have.
    UnknownLoadOption(Vec<u8>),
    /// LMPOP or ZMPOP with a COUNT of less than one.
    CountBelowOne,
    /// LPOS with a RANK of 0.
    RankZero,
    /// LPOS with a COUNT or MAXLEN, as named, that is negative or no number.
    Negative(&'static str),
    /// ZADD with NX and XX.
    AddNxWithXx,
    /// ZADD with more than one of GT, LT and NX.
    AddWithSeveralComparisons,
    /// ZADD with INCR and more than one member.
    SeveralIncrements,
    /// A bound of scores is not a floating point number.
    BoundNotFloat,
    /// A bound of members begins with none of the marks that one has.
    BoundNotMember,
    /// ZRANGE with LIMIT, by ranks.
    LimitOfRanks,
    /// ZRANGE with WITHSCORES, by members.
    ScoresOfMembers,
    /// This command with no key to read.
    NoSource(&'static str),
    /// A weight is not a floating point number.
    WeightNotFloat,
    /// A place that is not on the map.
    InvalidPlace {
        /// In degrees.
        longitude: Double,
        /// In degrees.
        latitude: Double,
    },
    /// A unit of distances that there is not.
    UnknownDistanceUnit,
    /// A length of this kind is not a floating point number.
    LengthNotFloat(&'static str),
    /// The radius of a circle is negative.
    NegativeRadius,
    /// A side of a rectangle is negative.
    NegativeSide,
    /// GEOSEARCH with a COUNT of less than one.
    GeoCountNotPositive,
    /// GEOSEARCH, by the name that the client gave it, without a centre.
    NoGeoCentre(Vec<u8>),
    /// GEOSEARCH, by the name that the client gave it, without a shape.
    NoGeoShape(Vec<u8>),
    /// GEOSEARCH with ANY and without COUNT.
    AnyWithoutCount,
    /// GEOSEARCHSTORE with options of what GEOSEARCH answers.
    GeoStoreAnswersNothing,
    /// A pattern of so many bytes is longer than [`PATTERN_BYTES_MAX`](crate::limits::PATTERN_BYTES_MAX).
    PatternTooLong(usize),
    /// The operation would be longer than [`BODY_BYTES_MAX`].
    OperationTooLong(usize),
    /// LCS with both LEN and IDX.
    LengthAndMatches,
    /// The offset of a bit is no number, or beyond 2^32 - 1.
    BitOffset,
    /// SETBIT to something else than 0 and 1.
    NotBit,
    /// BITPOS of something else than 0 and 1.
    SoughtBit,
    /// BITOP NOT of several keys.
    NotOfSeveral,
    /// BITFIELD on numbers of a type that there is not.
    BitfieldType,
    /// BITFIELD with an OVERFLOW that there is not.
    BitfieldOverflow,
    /// BITFIELD_RO that changes something.
    BitfieldReadOnly,
    /// COPY of a key to itself.
    SameKey,
    /// GEORADIUS with STORE and options of what GEORADIUS answers.
    GeoRadiusStoreAnswersNothing,
    /// A command, as named, with a second word that it does not know.
    UnknownSubcommand {
        /// The name of the command.
        command: &'static str,
        /// The second word, cut as [`CommandError::Unknown`] cuts the name.
        word: Vec<u8>,
    },
    /// Something that only commands on fields that expire say.
    Field(FieldError),
    /// Something that only commands with payloads say.
    Payload(PayloadError),
    /// Something that only commands on streams say.
    Stream(StreamError),
    /// An option that XCLAIM does not have.
    UnrecognizedClaimOption(Vec<u8>),
    /// A subcommand of this name does not have these arguments.
    SubcommandSyntax {
        /// The command, in lower case.
        command: &'static str,
        /// The name as sent.
        name: Vec<u8>,
    },
    /// A key is one of those that the store keeps for itself.
    HiddenKey,
    /// A timeout is not a floating point number.
    TimeoutNotFloat,
    /// A timeout is negative.
    TimeoutNegative,
    /// A timeout ends later than there is time.
    TimeoutOutOfRange,
    /// BLIND in front of a command that only reads, waits, or is no operation on data.
    BlindNotUpdate(&'static str),
}

impl CommandError {
    /// The error of a command, as named, whose second word is none that it knows.
    #[must_use]
    pub fn unknown_subcommand(command: &'static str, word: &[u8]) -> Self {
        let end = word.iter().position(|byte| *byte == 0).unwrap_or(word.len()).min(SHOWN_BYTES_MAX);
        Self::UnknownSubcommand { command, word: word[..end].to_vec() }
    }

    /// Appends the text of the error reply: the code and the message, without the leading `-` and
    /// without a line end. Line breaks that the client sent are replaced by spaces, as Redis does.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Unknown { name, arguments } => {
                out.extend_from_slice(b"ERR unknown command '");
                out.extend_from_slice(name);
                out.extend_from_slice(b"', with args beginning with: ");
                out.extend_from_slice(arguments);
            }
            Self::UnsupportedOption(option) => {
                out.extend_from_slice(b"ERR Unsupported option ");
                out.extend_from_slice(option);
            }
            // All that have subcommands have this one, which takes no words.
            Self::UnknownSubcommand { command, word } if word.eq_ignore_ascii_case(b"help") => {
                out.extend_from_slice(
                    format!("ERR wrong number of arguments for '{command}|help' command").as_bytes(),
                );
            }
            Self::UnknownSubcommand { command, word } => {
                out.extend_from_slice(b"ERR unknown subcommand '");
                write_subcommand(out, command, word);
            }
            Self::UnrecognizedClaimOption(option) => {
                out.extend_from_slice(b"ERR Unrecognized XCLAIM option '");
                out.extend_from_slice(option);
                out.push(b'\'');
            }
            Self::SubcommandSyntax { command, name } => {
                out.extend_from_slice(b"ERR unknown subcommand or wrong number of arguments for '");
                write_subcommand(out, command, name);
            }
            other => out.extend_from_slice(other.to_string().as_bytes()),
        }
        for byte in &mut out[start..] {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
    }

    /// The text of the error reply, see [`CommandError::write`].
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// Appends the rest of an error about a subcommand, from its name on.
fn write_subcommand(out: &mut Vec<u8>, command: &str, name: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(format!("'. Try {} HELP.", command.to_ascii_uppercase()).as_bytes());
}

/// What Redis says of an integer of more than 32 bits.
const NOT_32_BITS: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";

impl CommandError {
    /// The whole text of an error that has nothing to name; of the others, nothing.
    const fn fixed_text(&self) -> &'static str {
        match self {
            Self::Syntax => ExecutionError::Syntax.text(),
            Self::NotInteger => ExecutionError::NotInteger.text(),
            Self::IntegerOutOfRange => NOT_32_BITS,
            Self::DatabaseOutOfRange => "ERR DB index is out of range",
            Self::InvalidFirstDatabase => "ERR invalid first DB index",
            Self::InvalidSecondDatabase => "ERR invalid second DB index",
            Self::NotFloat => ExecutionError::NotFloat.text(),
            Self::HiddenKey => "ERR keys that begin with \\0syros\\0 belong to the store",
            Self::TimeoutNotFloat => "ERR timeout is not a float or out of range",
            Self::TimeoutNegative => "ERR timeout is negative",
            Self::TimeoutOutOfRange => "ERR timeout is out of range",
            Self::NegativeExpireTime => "ERR invalid expire time, must be >= 0",
            Self::OffsetOutOfRange => "ERR offset is out of range",
            Self::DecrementOverflow => "ERR decrement would overflow",
            Self::InvalidCursor => "ERR invalid cursor",
            Self::ExpireNxWithOther => "ERR NX and XX, GT or LT options at the same time are not compatible",
            Self::ExpireGtWithLt => "ERR GT and LT options at the same time are not compatible",
            Self::ValueTooLong => ExecutionError::ValueTooLong.text(),
            Self::NotFiniteArgument => "ERR value is NaN or Infinity",
            Self::MoreKeysThanWords => "ERR Number of keys can't be greater than number of args",
            Self::NegativeLimit => "ERR LIMIT can't be negative",
            Self::PairCountOutOfRange => "ERR value is out of range",
            Self::CountNotPositive => "ERR value is out of range, must be positive",
            Self::NumKeysNotPositive => "ERR numkeys should be greater than 0",
            Self::NegativeKeyCount => "ERR Number of keys can't be negative",
            Self::BadKeyCount => "ERR Bad number of keys provided",
            Self::ScriptFlushMode => "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
            Self::FunctionFlushMode => "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
            Self::NothingRuns => "NOTBUSY No scripts in execution right now.",
            Self::NoLibraryName => "ERR library name argument was not given",
            Self::CountBelowOne => "ERR count should be greater than 0",
            Self::RankZero => {
                "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
                 or use negative to start from the end of the list"
            }
            Self::AddNxWithXx => "ERR XX and NX options at the same time are not compatible",
            Self::AddWithSeveralComparisons => {
                "ERR GT, LT, and/or NX options at the same time are not compatible"
            }
            Self::SeveralIncrements => "ERR INCR option supports a single increment-element pair",
            Self::BoundNotFloat => "ERR min or max is not a float",
            Self::BoundNotMember => "ERR min or max not valid string range item",
            Self::LimitOfRanks => {
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
            }
            Self::ScoresOfMembers => "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            Self::WeightNotFloat => "ERR weight value is not a float",
            Self::UnknownDistanceUnit => "ERR unsupported unit provided. please use M, KM, FT, MI",
            Self::NegativeRadius => "ERR radius cannot be negative",
            Self::NegativeSide => "ERR height or width cannot be negative",
            Self::GeoCountNotPositive => "ERR COUNT must be > 0",
            Self::AnyWithoutCount => "ERR the ANY argument requires COUNT argument",
            Self::GeoStoreAnswersNothing => {
                "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            }
            Self::LengthAndMatches => "ERR If you want both the length and indexes, please just use IDX.",
            Self::BitOffset => "ERR bit offset is not an integer or out of range",
            Self::NotBit => "ERR bit is not an integer or out of range",
            Self::SoughtBit => "ERR The bit argument must be 1 or 0.",
            Self::NotOfSeveral => "ERR BITOP NOT must be called with a single source key.",
            Self::BitfieldType => {
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
            }
            Self::BitfieldOverflow => "ERR Invalid OVERFLOW type specified",
            Self::BitfieldReadOnly => "ERR BITFIELD_RO only supports the GET subcommand",
            Self::SameKey => "ERR source and destination objects are the same",
            Self::GeoRadiusStoreAnswersNothing => {
                "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            }
            Self::Field(error) => error.text(),
            Self::Payload(error) => error.text(),
            Self::Stream(error) => error.text(),
            Self::Unknown { .. }
            | Self::Arity(_)
            | Self::InvalidExpireTime(_)
            | Self::UnsupportedOption(_)
            | Self::KeyTooLong(_)
            | Self::TooManyKeys(_)
            | Self::TooManyElements(_)
            | Self::CountOutOfRange
            | Self::TooManyDraws
            | Self::Negative(_)
            | Self::NoSource(_)
            | Self::UnknownArgument(_)
            | Self::UnknownLoadOption(_)
            | Self::UnknownFieldOption(_)
            | Self::InvalidPlace { .. }
            | Self::LengthNotFloat(_)
            | Self::NoGeoCentre(_)
            | Self::NoGeoShape(_)
            | Self::PatternTooLong(_)
            | Self::OperationTooLong(_)
            | Self::UnknownSubcommand { .. }
            | Self::UnrecognizedClaimOption(_)
            | Self::SubcommandSyntax { .. }
            | Self::BlindNotUpdate(_) => "",
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, arguments } => write!(
                f,
                "ERR unknown command '{}', with args beginning with: {}",
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(arguments)
            ),
            Self::Arity(name) => write!(f, "ERR wrong number of arguments for '{name}' command"),
            Self::InvalidExpireTime(name) => write!(f, "ERR invalid expire time in '{name}' command"),
            Self::UnsupportedOption(option) => {
                write!(f, "ERR Unsupported option {}", String::from_utf8_lossy(option))
            }
            Self::KeyTooLong(bytes) => {
                write!(f, "ERR key of {bytes} bytes exceeds the maximum of {KEY_BYTES_MAX}")
            }
            Self::TooManyKeys(keys) => {
                write!(f, "ERR {keys} keys in one command exceed the maximum of {KEYS_PER_OPERATION_MAX}")
            }
            Self::TooManyElements(count) => {
                let max = KEYS_PER_OPERATION_MAX;
                write!(f, "ERR {count} elements in one command exceed the maximum of {max}")
            }
            Self::CountOutOfRange => {
                let max = i64::MAX;
                write!(f, "ERR value is out of range, value must between -{max} and {max}")
            }
            Self::TooManyDraws => {
                let max = crate::limits::DRAWS_MAX;
                write!(f, "ERR more than {max} random elements with repetitions in one command")
            }
            Self::Negative(option) => write!(f, "ERR {option} can't be negative"),
            Self::NoSource(name) => write!(f, "ERR at least 1 input key is needed for '{name}' command"),
            Self::InvalidPlace { longitude, latitude } => {
                let (longitude, latitude) = (longitude.value(), latitude.value());
                write!(f, "ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")
            }
            Self::UnknownArgument(argument) => {
                write!(f, "ERR Unknown argument {}", String::from_utf8_lossy(argument))
            }
            Self::UnknownFieldOption(option) => {
                write!(f, "ERR unknown argument: {}", String::from_utf8_lossy(option))
            }
            Self::UnknownLoadOption(option) => {
                write!(f, "ERR Unknown option given: {}", String::from_utf8_lossy(option))
            }
            Self::LengthNotFloat(what) => write!(f, "ERR need numeric {what}"),
            Self::NoGeoCentre(name) => write!(
                f,
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {}",
                String::from_utf8_lossy(name)
            ),
            Self::NoGeoShape(name) => write!(
                f,
                "ERR exactly one of BYRADIUS and BYBOX can be specified for {}",
                String::from_utf8_lossy(name)
            ),
            Self::PatternTooLong(bytes) => {
                let max = crate::limits::PATTERN_BYTES_MAX;
                write!(f, "ERR pattern of {bytes} bytes exceeds the maximum of {max}")
            }
            Self::OperationTooLong(bytes) => {
                write!(f, "ERR command of {bytes} bytes exceeds the maximum of {BODY_BYTES_MAX}")
            }
            Self::UnrecognizedClaimOption(option) => {
                write!(f, "ERR Unrecognized XCLAIM option '{}'", String::from_utf8_lossy(option))
            }
            Self::UnknownSubcommand { .. } | Self::SubcommandSyntax { .. } => {
                f.write_str(&String::from_utf8_lossy(&self.text()))
            }
            Self::BlindNotUpdate(name) => {
                write!(f, "ERR BLIND needs an update, and '{name}' is none")
            }
            _ => f.write_str(self.fixed_text()),
        }
    }
}

impl core::error::Error for CommandError {}

/// Why an operation failed when it was executed; the state is unchanged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionError {
    /// The key has a value of another kind.
    WrongType,
    /// An option that the command does not have, in a command that looks for its key first.
    Syntax,
    /// The value of the field is not a 64-bit integer.
    FieldNotInteger,
    /// The value of the field is not a floating point number.
    FieldNotFloat,
    /// The stored value is not a 64-bit integer.
    NotInteger,
    /// The stored value is not a floating point number.
    NotFloat,
    /// The sum is not a 64-bit integer.
    IncrementOverflow,
    /// The sum is not finite.
    NotFinite,
    /// The member that is the centre of a search is not there.
    NoCentre,
    /// The sum of scores is no number.
    NotANumber,
    /// The value would become longer than [`VALUE_BYTES_MAX`](syros_types::limits::VALUE_BYTES_MAX).
    ValueTooLong,
    /// GETEX with an expiry that is not positive or too large.
    InvalidExpireTime,
    /// RENAME of a key that does not exist.
    NoSuchKey,
    /// MOVE to the database that the key is in.
    SameObject,
    /// LCS of keys with values of another kind.
    NotStrings,
    /// LCS of strings whose lengths have a product above [`LCS_CELLS_MAX`](crate::limits::LCS_CELLS_MAX).
    StringsTooLong,
    /// The string is no HyperLogLog.
    NotHyperLogLog,
    /// The string has the header of a HyperLogLog, and something else behind it.
    CorruptHyperLogLog,
    /// The strings that it combines exceed [`SOURCE_BYTES_MAX`](crate::limits::SOURCE_BYTES_MAX).
    SourcesTooLong,
    /// The replies exceed [`REPLY_BYTES_MAX`](crate::limits::REPLY_BYTES_MAX).
    ReplyTooLong,
    /// The elements that an update would answer exceed
    /// [`UPDATE_REPLY_BYTES_MAX`](crate::limits::UPDATE_REPLY_BYTES_MAX).
    UpdateReplyTooLong,
    /// A SORT would look up more than [`SORT_LOOKUPS_MAX`](crate::limits::SORT_LOOKUPS_MAX) keys.
    TooManyLookups,
    /// What SORT compares is not a floating point number.
    NotWeight,
    /// RESTORE to a key that exists.
    BusyKey,
    /// OBJECT FREQ: nothing counts how often a key is used.
    FrequencyNotTracked,
    /// OBJECT IDLETIME: the policy of eviction goes by frequencies, so times of use are not told.
    IdleTimeNotTracked,
    /// Something that only commands on streams say.
    Stream(StreamError),
    /// A list has no element of this index.
    IndexOutOfRange,
    /// [`QUEUE_LENGTH_MAX`](crate::limits::QUEUE_LENGTH_MAX) commands wait for elements of a key.
    TooManyWaiting,
    /// A command wants to wait for more than [`WAITED_KEYS_MAX`](crate::limits::WAITED_KEYS_MAX) keys.
    TooManyWaitedKeys,
    /// The name of a key is so long that nobody can wait for its elements.
    WaitedKeyTooLong,
    /// The body is malformed.
    Malformed,
    /// An update where only reads may be executed.
    NotRead,
}

impl ExecutionError {
    /// The text of the error reply: Redis 7.0's where Redis has the same error.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::Syntax => "ERR syntax error",
            Self::FieldNotInteger => "ERR hash value is not an integer",
            Self::FieldNotFloat => "ERR hash value is not a float",
            Self::NotInteger => "ERR value is not an integer or out of range",
            Self::NotFloat => "ERR value is not a valid float",
            Self::IncrementOverflow => "ERR increment or decrement would overflow",
            Self::NotFinite => "ERR increment would produce NaN or Infinity",
            Self::NoCentre => "ERR could not decode requested zset member",
            Self::NotANumber => "ERR resulting score is not a number (NaN)",
            Self::ValueTooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            Self::InvalidExpireTime => "ERR invalid expire time in 'getex' command",
            Self::NoSuchKey => "ERR no such key",
            Self::SameObject => "ERR source and destination objects are the same",
            Self::NotStrings => "ERR The specified keys must contain string values",
            Self::StringsTooLong => {
                "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
            }
            Self::NotHyperLogLog => "WRONGTYPE Key is not a valid HyperLogLog string value.",
            Self::CorruptHyperLogLog => "INVALIDOBJ Corrupted HLL object detected",
            Self::SourcesTooLong => "ERR strings of more than 1073741824 bytes in one command",
            Self::ReplyTooLong => "ERR reply exceeds the maximum of 134217728 bytes",
            Self::UpdateReplyTooLong => "ERR reply to an update exceeds the maximum of 16908288 bytes",
            Self::TooManyLookups => "ERR more than 4194304 look-ups in one SORT",
            Self::NotWeight => "ERR One or more scores can't be converted into double",
            Self::BusyKey => "BUSYKEY Target key name already exists.",
            Self::FrequencyNotTracked => {
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
                 when switching between policies at runtime LRU and LFU data will take some time to adjust."
            }
            Self::IdleTimeNotTracked => {
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
                 between policies at runtime LRU and LFU data will take some time to adjust."
            }
            Self::Stream(error) => error.text(),
            Self::IndexOutOfRange => "ERR index out of range",
            Self::TooManyWaiting => "ERR 16384 clients wait for this key already",
            Self::TooManyWaitedKeys => "ERR a command can wait for 1024 keys at most",
            Self::WaitedKeyTooLong => "ERR the name of a key is too long to wait for it",
            Self::Malformed => "ERR malformed operation",
            Self::NotRead => "ERR update where only a read is allowed",
        }
    }
}

const _: () = assert!(crate::limits::REPLY_BYTES_MAX == 134_217_728, "the text above names the limit");
const _: () = assert!(crate::limits::UPDATE_REPLY_BYTES_MAX == 16_908_288, "the text above names the limit");
const _: () = assert!(crate::limits::SORT_LOOKUPS_MAX == 4_194_304, "the text above names the limit");
const _: () = assert!(crate::limits::SOURCE_BYTES_MAX == 1_073_741_824, "the text above names the limit");

impl fmt::Display for ExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for ExecutionError {}

impl From<WrongType> for ExecutionError {
    fn from(_: WrongType) -> Self {
        Self::WrongType
    }
}

impl From<StreamError> for CommandError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

impl From<StreamError> for ExecutionError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}
