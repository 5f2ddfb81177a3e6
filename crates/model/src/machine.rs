//! The state machine of the models: a few keys with small numbers, and operations of three bytes.

use syros_node::snapshots::StateOf;
use syros_node::{InMemory, SnapshotState};
use syros_protocol::message::Body;
use syros_storage::{DetachedRead, Engine, ListedKeys, LongRead};
use syros_types::{Class, Description, Footprint, OpNumber, WallTime};

/// Keys there are. The last one is used only to warm up.
pub(crate) const KEYS: usize = 3;

/// The key that nobody looks at.
pub(crate) const WARM_KEY: u8 = 2;

/// What reports call a key.
pub(crate) fn key_name(key: u8) -> char {
    char::from(b'x' + key)
}

/// The data: a number per key.
pub(crate) type KeyValues = [u32; KEYS];

/// An operation, on one key where it does not say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// An overwrite: nothing but an acknowledgement.
    Set(u8, u8),
    /// A merge: a digit is appended, nothing but an acknowledgement.
    Append(u8, u8),
    /// An update that returns what it made.
    AppendAndGet(u8, u8),
    /// A read.
    Get(u8),
    /// An overwrite of both keys that programs use: nothing but an acknowledgement.
    SetBoth(u8),
    /// A merge: the value of the first key replaces that of the second one. Nothing but an acknowledgement.
    Copy(u8, u8),
}

impl Operation {
    pub(crate) fn encode(self) -> Body {
        match self {
            Self::Set(key, digit) => [0, key, digit].into(),
            Self::Append(key, digit) => [1, key, digit].into(),
            Self::AppendAndGet(key, digit) => [2, key, digit].into(),
            Self::Get(key) => [3, key, 0].into(),
            Self::SetBoth(digit) => [4, 0, digit].into(),
            Self::Copy(from, to) => [5, from, to].into(),
        }
    }

    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        match *body {
            [0, key, digit] => Some(Self::Set(key, digit)),
            [1, key, digit] => Some(Self::Append(key, digit)),
            [2, key, digit] => Some(Self::AppendAndGet(key, digit)),
            [3, key, 0] => Some(Self::Get(key)),
            [4, 0, digit] => Some(Self::SetBoth(digit)),
            [5, from, to] => Some(Self::Copy(from, to)),
            _ => None,
        }
    }

    /// The first of its keys, and the other one.
    const fn keys(self) -> (u8, Option<u8>) {
        match self {
            Self::Set(key, _) | Self::Append(key, _) | Self::AppendAndGet(key, _) | Self::Get(key) => {
                (key, None)
            }
            Self::SetBoth(_) => (0, Some(1)),
            Self::Copy(from, to) => (from, Some(to)),
        }
    }

    pub(crate) const fn class(self) -> Class {
        match self {
            Self::Set(..) | Self::SetBoth(_) => Class::Overwrite,
            Self::Append(..) | Self::Copy(..) => Class::Merge,
            Self::AppendAndGet(..) => Class::Update,
            Self::Get(_) => Class::Read,
        }
    }

    pub(crate) fn footprint(self) -> Footprint {
        let (first, other) = self.keys();
        Footprint::of([first].into_iter().chain(other).map(|key| u64::from(key) + 1).collect())
    }

    /// Executes it; returns the value of its key afterwards, or of the first one.
    pub(crate) fn apply(self, store: &mut KeyValues) -> u32 {
        let first = usize::from(self.keys().0);
        match self {
            Self::Set(_, digit) => store[first] = u32::from(digit),
            Self::Append(_, digit) | Self::AppendAndGet(_, digit) => {
                store[first] = store[first] * 10 + u32::from(digit);
            }
            Self::Get(_) => {}
            Self::SetBoth(digit) => store[..2].fill(u32::from(digit)),
            Self::Copy(_, to) => store[usize::from(to)] = store[first],
        }
        store[first]
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, other) = self.keys();
        let (key, other) = (key_name(first), key_name(other.unwrap_or(first)));
        match self {
            Self::Set(_, digit) => write!(f, "set {key} {digit}"),
            Self::Append(_, digit) => write!(f, "append {key} {digit}"),
            Self::AppendAndGet(_, digit) => write!(f, "append-and-get {key} {digit}"),
            Self::Get(_) => write!(f, "get {key}"),
            Self::SetBoth(digit) => write!(f, "set {key} {digit} {other} {digit}"),
            Self::Copy(..) => write!(f, "copy {key} {other}"),
        }
    }
}

/// What the cores ask of an operation.
pub(crate) fn describe(body: &[u8]) -> Option<Description> {
    let operation = Operation::decode(body)?;
    // Nothing is ever short of room.
    Some(Description { class: operation.class(), footprint: operation.footprint(), growth: 0 })
}

/// What recovery asks of two overwrites.
pub(crate) fn overwrites(newer: &[u8], older: &[u8]) -> bool {
    match (Operation::decode(newer), Operation::decode(older)) {
        (Some(Operation::Set(newer, _)), Some(Operation::Set(older, _))) => newer == older,
        _ => false,
    }
}

/// A value as a reply.
pub(crate) fn encode_value(value: u32) -> Body {
    value.to_be_bytes().into()
}

/// A reply as a value.
pub(crate) fn decode_value(body: &[u8]) -> Option<u32> {
    body.try_into().ok().map(u32::from_be_bytes)
}

/// The data of a member, as its driver executes operations on it. No key of a model expires, no read takes long, and no
/// snapshot is taken.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct ModelEngine(pub(crate) KeyValues);

impl ModelEngine {
    /// Executes an operation: the value of its key afterwards.
    pub(crate) fn execute(&mut self, body: &[u8]) -> u32 {
        Operation::decode(body).expect("only operations get into a log").apply(&mut self.0)
    }
}

impl InMemory for ModelEngine {
    fn touch<'a>(&self, _: impl Iterator<Item = &'a [u8]>) {}

    fn begin_entry(&mut self, _: OpNumber) {}

    fn apply(&mut self, _: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        reply.extend_from_slice(&encode_value(self.execute(body)));
    }

    fn read(&self, _: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        reply.extend_from_slice(&encode_value(Self(self.0).execute(body)));
    }

    fn take_effects(&mut self, _: &[u8]) -> u64 {
        0
    }

    fn answer_no_op(&self, _: WallTime, _: &[u8], _: &mut Vec<u8>) -> bool {
        false
    }

    fn evaluate(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        self.read(WallTime(0), body, reply);
        true
    }

    fn first_expiry(&self, _: &[u8]) -> Option<WallTime> {
        None
    }

    fn advance(&mut self, _: WallTime) {}

    fn next_expiry(&self) -> Option<WallTime> {
        None
    }

    fn long_read(&self, _: &[u8]) -> Option<LongRead> {
        None
    }

    fn detach(&self, _: WallTime, _: &[u8]) -> DetachedRead {
        unreachable!("no read of a model takes long")
    }

    fn begin_keys(&mut self, _: &[u8]) {}

    fn go_on_keys(&mut self) -> Option<ListedKeys> {
        None
    }

    fn garbage_bytes(&self) -> u64 {
        0
    }

    fn give_back(&mut self, _: usize) {}

    fn take_leftover(&mut self) -> Option<Box<dyn Send>> {
        None
    }

    fn data_bytes(&self) -> Option<usize> {
        None
    }

    fn snapshot(&mut self) -> SnapshotState<'_> {
        unreachable!("the log of a model is never trimmed")
    }

    fn snapshot_state(&mut self) -> StateOf<'_> {
        StateOf::Copy
    }

    fn keys(&self) -> Option<&dyn Engine> {
        None
    }
}
