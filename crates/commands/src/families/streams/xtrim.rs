//! XTRIM.

use super::trim::{Trim, TrimOptions};
use super::{FAST_UPDATE, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use crate::stream_error::StreamError;
use crate::words::Words;
use syros_values::Stream;

/// XTRIM: answers how many entries it removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XTrimParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What is removed.
    pub trim: Trim,
}

/// The same, read again where it is needed.
pub type XTrim<'a> = Indirect<'a, XTrimParts<'a>>;

fields!(XTrimParts<'a> = 344 { key: Key, trim: Trim });

impl<'a> Definition<'a> for XTrimParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xtrim",
        arity: -4,
        key_flags: &[&["RW", "delete"]],
        flags: &["write"],
        categories: &["@write", "@stream", "@slow"],
        tips: &["nondeterministic_output"],
        summary: "Removes the first entries of a stream.",
        parser: |_, words| Indirect::parse(words, parse),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<XTrimParts<'_>, CommandError> {
    let (mut rest, mut options) = (&words[2..], TrimOptions::default());
    while !rest.is_empty() {
        if !options.take(&mut rest)? {
            return Err(CommandError::Syntax);
        }
    }
    // Redis finds a missing strategy before it finds that LIMIT goes with none.
    match options.finish() {
        Ok(Some(trim)) => Ok(XTrimParts { key: words[1], trim }),
        Ok(None) => Err(StreamError::NoTrim.into()),
        Err(CommandError::Stream(StreamError::LimitOfExactTrim)) if options.is_missing() => {
            Err(StreamError::NoTrim.into())
        }
        Err(error) => Err(error),
    }
}

impl<'a> UpdateCommand<'a> for XTrimParts<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let count = stream_of(found.as_ref())?.map_or(0, |stream| self.trim.count(stream));
        drop(found);
        if count > 0 {
            keys.edit_collection(self.key, |stream: &mut Stream| stream.trim(count))?;
            keys.notify(KeyEvent::XTrim, self.key);
        }
        put_integer(reply, count as i64);
        Ok(())
    }
}
