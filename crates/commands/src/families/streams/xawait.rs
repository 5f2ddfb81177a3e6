//! XREAD that may have to wait.

use super::ids::parse_id;
use super::sources::Start;
use super::xread::XReadParts;
use super::{put_id, stream_of};
use crate::access::Keys;
use crate::encoding::{Encoding, Field as _, Flag, Opcode, put_head};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::primitive::Malformed;
use crate::reply::put_array;
use syros_types::Database;
use syros_values::{Stream, StreamId};

/// XREAD with BLOCK, as a front end submits it: answers as XREAD does, or, if there is nothing, an array with an id for each
/// key, from which reading is to go on. No client can send it.
///
/// The ids say where `$` and `+` have been, at the very state that had nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XAwaitParts<'a> {
    /// It has waited before: a key with a value of another kind is passed over.
    pub is_renewed: bool,
    /// What is read, and for how long its client wants to wait.
    pub read: XReadParts<'a>,
}

/// The same, read again where it is needed.
pub type XAwait<'a> = Indirect<'a, XAwaitParts<'a>>;

impl<'a> Encoding<'a> for XAwaitParts<'a> {
    const OPCODE: Opcode = 352;

    fn encode(&self, out: &mut Vec<u8>) {
        Flag::put(out, self.is_renewed);
        self.read.encode(out);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let is_renewed = Flag::take(input)?;
        Ok(Self { is_renewed, read: XReadParts::decode(XReadParts::OPCODE, input)? })
    }
}

impl<'a> Definition<'a> for XAwaitParts<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        self.read.keys()
    }

    fn values(&self) -> u32 {
        self.read.values()
    }
}

impl XAwaitParts<'_> {
    /// Appends the encoding of the operation on keys of this database.
    pub fn encode_in(&self, database: Database, out: &mut Vec<u8>) {
        put_head(out, database, Self::OPCODE, false);
        self.encode(out);
    }
}

/// The id behind which reading goes on of a stream that had nothing.
fn behind(start: Start, stream: Option<&Stream>) -> StreamId {
    match start {
        Start::Behind(id) => id,
        Start::BehindLast | Start::AtLast | Start::New => stream.map_or(StreamId::MIN, Stream::last_id),
    }
}

impl ReadCommand for XAwaitParts<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        if self.read.answer(keys, view, self.is_renewed, reply)? {
            return Ok(());
        }
        put_array(reply, self.read.keys.len());
        for (key, start) in self.read.keys.iter().zip(self.read.starts) {
            let found = keys.get(key);
            // A value of another kind has been refused or is passed over.
            let stream = stream_of(found.as_ref()).unwrap_or(None);
            put_id(reply, behind(Start::of_read(start)?, stream));
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        self.read.work_on(keys)
    }
}

/// The id of an entry as a number: greater of those that came later. `None` of words that are no ids.
#[must_use]
pub fn stream_position(word: &[u8]) -> Option<u128> {
    parse_id(word).ok().map(|id| u128::from_be_bytes(id.to_bytes()))
}
