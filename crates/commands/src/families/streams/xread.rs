//! XREAD.

use super::sources::{ReadStarts, Start, parse_words};
use super::{SLOW_READ, put_entry, stream_of};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Encoding, Field as _, List, Opcode, Unsigned};
use crate::error::{CommandError, ExecutionError};
use crate::families::counts::OptionalCount;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_some;
use crate::families::indirect::Indirect;
use crate::families::specification::{CommandSpec, KeyPositions, KeyWord, KeysBehind};
use crate::primitive::Malformed;
use crate::reply::{put_array, put_bulk, put_keyed, put_nil_array};
use crate::words::Words;
use syros_values::{Stream, StreamId, StreamIter};

/// XREAD: answers the entries of each stream that are behind an id; no array if there are none anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XReadParts<'a> {
    /// The keys.
    pub keys: Arguments<'a>,
    /// As many ids, as they were written.
    pub starts: Arguments<'a>,
    /// How many entries of each stream are answered at most; 0 is no limit.
    pub count: u64,
    /// BLOCK: how long the client waits if there are none, in milliseconds; 0 is for ever. Executing it does not wait.
    pub block_ms: Option<u64>,
}

/// The same, read again where it is needed.
pub type XRead<'a> = Indirect<'a, XReadParts<'a>>;

impl<'a> Encoding<'a> for XReadParts<'a> {
    const OPCODE: Opcode = 89;

    fn encode(&self, out: &mut Vec<u8>) {
        Unsigned::put(out, self.count);
        OptionalCount::put(out, self.block_ms);
        List::<1>::put(out, self.keys);
        ReadStarts::put(out, self.starts);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (count, block_ms) = (Unsigned::take(input)?, OptionalCount::take(input)?);
        let (keys, starts) = (List::<1>::take(input)?, ReadStarts::take(input)?);
        if starts.len() != keys.len() {
            return Err(Malformed::Count(starts.len() as u64));
        }
        Ok(Self { keys, starts, count, block_ms })
    }
}

impl<'a> Definition<'a> for XReadParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xread",
        arity: -4,
        keys: KeyPositions::NONE,
        key_words: &[KeyWord { word: "STREAMS", from: 1, keys: KeysBehind::Half }],
        flags: &["readonly", "blocking", "movablekeys"],
        categories: &["@read", "@stream", "@slow", "@blocking"],
        summary: "Returns the entries of several streams that are behind an id each.",
        parser: |_, words| Indirect::parse(words, parse),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }

    /// Any number of each.
    fn values(&self) -> u32 {
        u32::try_from(self.keys.len()).unwrap_or(u32::MAX)
    }
}

fn parse(words: Words<'_>) -> Result<XReadParts<'_>, CommandError> {
    let read = parse_words(words, false)?;
    let (count, block_ms) = (read.count, read.block_ms);
    Ok(XReadParts { keys: read.keys, starts: read.starts, count, block_ms })
}

impl XReadParts<'_> {
    /// How many of these entries are answered.
    fn count_of(&self, entries: &StreamIter<'_>) -> usize {
        let most =
            if self.count == 0 { usize::MAX } else { usize::try_from(self.count).unwrap_or(usize::MAX) };
        entries.len().min(most)
    }
}

/// The entries of a stream that are asked for.
fn entries_from(stream: &Stream, start: Start) -> StreamIter<'_> {
    let first = match start {
        Start::Behind(id) => id.next(),
        Start::AtLast => stream.top_id(),
        Start::BehindLast | Start::New => None,
    };
    match first {
        Some(first) => stream.range(first, StreamId::MAX),
        None => stream.range(StreamId::MAX, StreamId::MIN),
    }
}

impl XReadParts<'_> {
    /// Appends the entries; false, without a change, if there are none anywhere.
    ///
    /// # Errors
    /// If the value of a key is of another kind, unless such keys are passed over; if there are too many bytes.
    pub(super) fn answer<K: Keys>(
        &self,
        keys: &K,
        view: View,
        passes_over: bool,
        reply: &mut Vec<u8>,
    ) -> Result<bool, ExecutionError> {
        let found: Vec<_> = self.keys.iter().map(|key| (key, keys.get(key))).collect();
        let mut answered = Vec::new();
        for ((key, found), start) in found.iter().zip(self.starts) {
            let stream = match stream_of(found.as_ref()) {
                Err(_) if passes_over => None,
                stream => stream?,
            };
            let Some(stream) = stream else { continue };
            let entries = entries_from(stream, Start::of_read(start)?);
            if entries.len() > 0 {
                answered.push((key, entries));
            }
        }
        if answered.is_empty() {
            return Ok(false);
        }
        put_keyed(reply, answered.len());
        for (key, entries) in answered {
            put_bulk(reply, key);
            let count = self.count_of(&entries);
            put_array(reply, count);
            for (id, fields) in entries.take(count) {
                put_entry(reply, id, Some(fields));
                if reply.len() > view.reply_end {
                    return Err(ExecutionError::ReplyTooLong);
                }
            }
        }
        Ok(true)
    }
}

impl ReadCommand for XReadParts<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        if !self.answer(keys, view, false, reply)? {
            put_nil_array(reply);
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let mut work: usize = 0;
        for (key, start) in self.keys.iter().zip(self.starts) {
            let found = keys.get(key);
            let Ok(Some(stream)) = stream_of(found.as_ref()) else { continue };
            let Ok(start) = Start::of_read(start) else { continue };
            let count = self.count_of(&entries_from(stream, start)) as u64;
            work = work.saturating_add(work_of_some(count, stream.len(), stream.element_bytes()));
        }
        work
    }
}
