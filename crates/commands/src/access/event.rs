//! What can happen to a key, as Redis calls it: keyspace notifications.

use syros_types::{Database, SubscriptionKind};

/// A letter of the setting `notify-keyspace-events`: which kind of event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum KeyEventClass {
    /// `g`: commands of no type.
    Generic,
    /// `$`: commands on strings.
    String,
    /// `l`: commands on lists.
    List,
    /// `s`: commands on sets.
    Set,
    /// `h`: commands on hashes.
    Hash,
    /// `z`: commands on sorted sets.
    SortedSet,
    /// `x`: a key has expired.
    Expired,
    /// `e`: a key was evicted.
    Evicted,
    /// `t`: commands on streams.
    Stream,
    /// `m`: a key was looked for that does not exist. Reads are in no log, so nothing tells of them.
    Miss,
    /// `n`: a key was added.
    New,
    /// `d`: events of modules, of which there are none.
    Module,
    /// What no client is told of as an event.
    Silent,
}

impl KeyEventClass {
    /// The letter that stands for it.
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Self::Generic => b'g',
            Self::String => b'$',
            Self::List => b'l',
            Self::Set => b's',
            Self::Hash => b'h',
            Self::SortedSet => b'z',
            Self::Expired => b'x',
            Self::Evicted => b'e',
            Self::Stream => b't',
            Self::Miss => b'm',
            Self::New => b'n',
            Self::Module => b'd',
            Self::Silent => b' ',
        }
    }
}

/// Declares the events with their names and classes.
macro_rules! key_events {
    ($($event:ident, $name:literal, $class:ident;)*) => {
        /// What has happened to a key: the events of Redis.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum KeyEvent {
            $(#[doc = concat!("`", $name, "`.")] $event,)*
        }

        impl KeyEvent {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$event),*];

            /// What Redis calls it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$event => $name,)*
                }
            }

            /// Its class, which decides who is told of it.
            #[must_use]
            pub const fn class(self) -> KeyEventClass {
                match self {
                    $(Self::$event => KeyEventClass::$class,)*
                }
            }
        }
    };
}

key_events! {
    Append, "append", String;
    Changed, "changed", Silent;
    CopyTo, "copy_to", Generic;
    Del, "del", Generic;
    Evicted, "evicted", Evicted;
    Expire, "expire", Generic;
    Expired, "expired", Expired;
    Flushed, "flushed", Silent;
    GeoSearchStore, "geosearchstore", SortedSet;
    HDel, "hdel", Hash;
    HExpire, "hexpire", Hash;
    HIncrBy, "hincrby", Hash;
    HIncrByFloat, "hincrbyfloat", Hash;
    HPersist, "hpersist", Hash;
    HSet, "hset", Hash;
    IncrBy, "incrby", String;
    IncrByFloat, "incrbyfloat", String;
    LInsert, "linsert", List;
    LPop, "lpop", List;
    LPush, "lpush", List;
    LRem, "lrem", List;
    LSet, "lset", List;
    LTrim, "ltrim", List;
    MoveFrom, "move_from", Generic;
    MoveTo, "move_to", Generic;
    New, "new", New;
    Persist, "persist", Generic;
    PfAdd, "pfadd", String;
    RenameFrom, "rename_from", Generic;
    RenameTo, "rename_to", Generic;
    Restore, "restore", Generic;
    RPop, "rpop", List;
    RPush, "rpush", List;
    SAdd, "sadd", Set;
    SDiffStore, "sdiffstore", Set;
    Set, "set", String;
    SetBit, "setbit", String;
    SetRange, "setrange", String;
    SInterStore, "sinterstore", Set;
    SortStore, "sortstore", List;
    SPop, "spop", Set;
    SRem, "srem", Set;
    SUnionStore, "sunionstore", Set;
    XAdd, "xadd", Stream;
    XDel, "xdel", Stream;
    XGroupCreate, "xgroup-create", Stream;
    XGroupCreateConsumer, "xgroup-createconsumer", Stream;
    XGroupDelConsumer, "xgroup-delconsumer", Stream;
    XGroupDestroy, "xgroup-destroy", Stream;
    XGroupSetId, "xgroup-setid", Stream;
    XSetId, "xsetid", Stream;
    XTrim, "xtrim", Stream;
    ZAdd, "zadd", SortedSet;
    ZDiffStore, "zdiffstore", SortedSet;
    ZIncr, "zincr", SortedSet;
    ZInterStore, "zinterstore", SortedSet;
    ZPopMax, "zpopmax", SortedSet;
    ZPopMin, "zpopmin", SortedSet;
    ZRangeStore, "zrangestore", SortedSet;
    ZRem, "zrem", SortedSet;
    ZRemRangeByLex, "zremrangebylex", SortedSet;
    ZRemRangeByRank, "zremrangebyrank", SortedSet;
    ZRemRangeByScore, "zremrangebyscore", SortedSet;
    ZUnionStore, "zunionstore", SortedSet;
}

impl KeyEvent {
    /// True if clients are told of it only as far as they keep copies: Redis has no such event.
    #[must_use]
    pub const fn is_silent(self) -> bool {
        matches!(self.class(), KeyEventClass::Silent)
    }

    /// The event that Redis calls so, if it is one.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.name().as_bytes() == name)
    }
}

/// Something that a log entry has done to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The number of the log entry. What expires between two entries has that of the one before.
    pub entry: u64,
    /// Where the key is.
    pub database: Database,
    /// The key.
    pub key: Box<[u8]>,
    /// What has happened to it.
    pub event: KeyEvent,
}

/// A message that a script has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptMessage {
    /// The number of the log entry whose execution has run the script.
    pub entry: u64,
    /// Whether it goes to a channel or to a shard channel.
    pub kind: SubscriptionKind,
    /// The channel.
    pub channel: Box<[u8]>,
    /// The message itself.
    pub payload: Box<[u8]>,
}

/// Something that a node tells its clients of because it has executed a log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// An event of a key, for clients that listen to events.
    KeyEvent(Notification),
    /// A message of a script, for the subscribers of its channel.
    Message(ScriptMessage),
}

impl Announcement {
    /// The number of the log entry.
    #[must_use]
    pub const fn entry(&self) -> u64 {
        match self {
            Self::KeyEvent(Notification { entry, .. }) | Self::Message(ScriptMessage { entry, .. }) => *entry,
        }
    }

    /// True for what happens to keys and is no event of Redis: see [`KeyEvent::is_silent`].
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        match self {
            Self::KeyEvent(notification) => notification.event.is_silent(),
            Self::Message(_) => false,
        }
    }

    /// The event of a key, if it is one.
    #[must_use]
    pub fn into_key_event(self) -> Option<Notification> {
        match self {
            Self::KeyEvent(notification) => Some(notification),
            Self::Message(_) => None,
        }
    }
}
