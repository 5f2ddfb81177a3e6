//! The streams that XREAD and XREADGROUP read, and from where on.

use super::ids::parse_id;
use crate::arguments::Arguments;
use crate::encoding::{Elements, Field};
use crate::error::CommandError;
use crate::primitive::Malformed;
use crate::stream_error::StreamError;
use crate::words::{Words, integer, is};
use syros_values::StreamId;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Behind an entry.
    Behind(StreamId),
    /// `$`: behind the last entry that was added.
    BehindLast,
    /// `+`: at the last entry that there is.
    AtLast,
    /// `>`: behind the last entry that was delivered to the group.
    New,
}

impl Start {
    /// What a word means.
    pub(super) fn parse(word: &[u8]) -> Result<Self, StreamError> {
        match word {
            b"$" => Ok(Self::BehindLast),
            b"+" => Ok(Self::AtLast),
            b">" => Ok(Self::New),
            _ => parse_id(word).map(Self::Behind),
        }
    }

    /// What a word means to XREAD.
    pub(super) fn of_read(word: &[u8]) -> Result<Self, StreamError> {
        match Self::parse(word)? {
            Self::New => Err(StreamError::NewEntriesOfRead),
            start => Ok(start),
        }
    }

    /// What a word means to XREADGROUP.
    pub(super) fn of_group(word: &[u8]) -> Result<Self, StreamError> {
        match Self::parse(word)? {
            Self::BehindLast => Err(StreamError::LastIdOfGroup),
            Self::AtLast => Err(StreamError::LastEntryOfGroup),
            start => Ok(start),
        }
    }
}

/// The ids of XREAD, as they were written. Those that mean the same may be written differently.
pub(super) enum ReadStarts {}

/// The ids of XREADGROUP.
pub(super) enum GroupStarts {}

/// Takes a list of ids.
fn take<'a>(
    input: &mut &'a [u8],
    parse: impl Fn(&[u8]) -> Result<Start, StreamError>,
) -> Result<Arguments<'a>, Malformed> {
    let starts = Elements::<1>::take(input)?;
    if starts.iter().all(|start| parse(start).is_ok()) { Ok(starts) } else { Err(Malformed::Number) }
}

impl<'a> Field<'a> for ReadStarts {
    type Content = Arguments<'a>;

    fn put(out: &mut Vec<u8>, starts: Arguments<'a>) {
        Elements::<1>::put(out, starts);
    }

    fn take(input: &mut &'a [u8]) -> Result<Arguments<'a>, Malformed> {
        take(input, Start::of_read)
    }
}

impl<'a> Field<'a> for GroupStarts {
    type Content = Arguments<'a>;

    fn put(out: &mut Vec<u8>, starts: Arguments<'a>) {
        Elements::<1>::put(out, starts);
    }

    fn take(input: &mut &'a [u8]) -> Result<Arguments<'a>, Malformed> {
        take(input, Start::of_group)
    }
}

/// The words of XREAD or XREADGROUP.
#[derive(Clone, Copy)]
pub(super) struct ReadWords<'a> {
    pub(super) keys: Arguments<'a>,
    pub(super) starts: Arguments<'a>,
    /// 0 if there is no limit.
    pub(super) count: u64,
    pub(super) block_ms: Option<u64>,
    /// The group and the consumer, if there are any.
    pub(super) group: Option<(&'a [u8], &'a [u8])>,
    pub(super) no_ack: bool,
}

/// Parses the words of XREADGROUP, or of XREAD.
pub(super) fn parse_words<'a>(words: Words<'a>, of_group: bool) -> Result<ReadWords<'a>, CommandError> {
    let (mut count, mut block_ms, mut group, mut no_ack) = (0, None, None, false);
    let mut rest = &words[1..];
    let streams = loop {
        match rest {
            [option, timeout, behind @ ..] if is(option, "block") => {
                block_ms = Some(parse_timeout(timeout)?);
                rest = behind;
            }
            [option, number, behind @ ..] if is(option, "count") => {
                count = u64::try_from(integer(number)?).unwrap_or(0);
                rest = behind;
            }
            [option, streams @ ..] if is(option, "streams") && !streams.is_empty() => break streams,
            [option, name, consumer, behind @ ..] if is(option, "group") => {
                if !of_group {
                    return Err(StreamError::GroupOfRead.into());
                }
                group = Some((*name, *consumer));
                rest = behind;
            }
            [option, behind @ ..] if is(option, "noack") => {
                if !of_group {
                    return Err(StreamError::NoAckOfRead.into());
                }
                no_ack = true;
                rest = behind;
            }
            _ => return Err(CommandError::Syntax),
        }
    };
    if !streams.len().is_multiple_of(2) {
        let error = if of_group { StreamError::UnbalancedReadGroup } else { StreamError::UnbalancedRead };
        return Err(error.into());
    }
    if of_group && group.is_none() {
        return Err(StreamError::NoGroupOption.into());
    }
    let (keys, starts) = streams.split_at(streams.len() / 2);
    let parse = if of_group { Start::of_group } else { Start::of_read };
    starts.iter().try_for_each(|start| parse(start).map(drop))?;
    let (keys, starts) = (Arguments::new(keys), Arguments::new(starts));
    Ok(ReadWords { keys, starts, count, block_ms, group, no_ack })
}

/// How long BLOCK waits, in milliseconds; 0 is for ever.
fn parse_timeout(word: &[u8]) -> Result<u64, StreamError> {
    let timeout = crate::number::parse_integer(word).ok_or(StreamError::TimeoutNotInteger)?;
    u64::try_from(timeout).map_err(|_| StreamError::TimeoutNegative)
}
