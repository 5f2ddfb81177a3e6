//! How much of a stream XTRIM and XADD remove.

use super::ids::{Id, parse_id};
use crate::encoding::{Field, Unsigned};
use crate::error::CommandError;
use crate::primitive::{Malformed, take_u8};
use crate::stream_error::StreamError;
use crate::words::{integer, is};
use syros_values::{Stream, StreamId};

/// How many entries more than it should a stream has to have before `~` removes any.
const SLACK: u64 = 100;

/// How many entries `~` removes at most if no LIMIT is given, as in Redis.
const APPROXIMATE_LIMIT: u64 = 10_000;

/// Which entries are removed: the first ones.
///
/// With `~` Redis removes whole nodes of its tree. Here all replicas have to remove the same whatever their trees look like:
/// nothing while there are at most 100 entries too many, and otherwise all that are, or as many as LIMIT allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// What is left.
    pub until: TrimUntil,
    /// With `~`: how many go at most; 0 is no limit.
    pub approximately: Option<u64>,
}

/// What is left of a stream that is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimUntil {
    /// So many entries.
    Length(u64),
    /// The entries from this id on.
    Id(StreamId),
}

impl Trim {
    /// How many entries of a stream go.
    pub(super) fn count(self, stream: &Stream) -> u64 {
        let excess = match self.until {
            TrimUntil::Length(length) => stream.len().saturating_sub(length),
            TrimUntil::Id(id) => stream.count_before(id),
        };
        match self.approximately {
            Some(_) if excess <= SLACK => 0,
            Some(0) | None => excess,
            Some(limit) => excess.min(limit),
        }
    }
}

mod kind {
    pub(super) const LENGTH: u8 = 0;
    pub(super) const LENGTH_APPROXIMATELY: u8 = 1;
    pub(super) const ID: u8 = 2;
    pub(super) const ID_APPROXIMATELY: u8 = 3;
    pub(super) const NONE: u8 = 4;
}

impl Field<'_> for Trim {
    type Content = Self;

    fn put(out: &mut Vec<u8>, trim: Self) {
        out.push(match (trim.until, trim.approximately) {
            (TrimUntil::Length(_), None) => kind::LENGTH,
            (TrimUntil::Length(_), Some(_)) => kind::LENGTH_APPROXIMATELY,
            (TrimUntil::Id(_), None) => kind::ID,
            (TrimUntil::Id(_), Some(_)) => kind::ID_APPROXIMATELY,
        });
        match trim.until {
            TrimUntil::Length(length) => Unsigned::put(out, length),
            TrimUntil::Id(id) => Id::put(out, id),
        }
        trim.approximately.into_iter().for_each(|limit| Unsigned::put(out, limit));
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        take_kind(take_u8(input)?, input)
    }
}

/// Takes what is behind the kind of a trim.
fn take_kind(kind: u8, input: &mut &[u8]) -> Result<Trim, Malformed> {
    let until = match kind {
        kind::LENGTH | kind::LENGTH_APPROXIMATELY => TrimUntil::Length(Unsigned::take(input)?),
        kind::ID | kind::ID_APPROXIMATELY => TrimUntil::Id(Id::take(input)?),
        other => return Err(Malformed::Options(other)),
    };
    let is_approximate = matches!(kind, kind::LENGTH_APPROXIMATELY | kind::ID_APPROXIMATELY);
    let approximately = is_approximate.then(|| Unsigned::take(input)).transpose()?;
    Ok(Trim { until, approximately })
}

/// A [`Trim`], or none.
pub(super) enum OptionalTrim {}

impl Field<'_> for OptionalTrim {
    type Content = Option<Trim>;

    fn put(out: &mut Vec<u8>, trim: Option<Trim>) {
        match trim {
            Some(trim) => Trim::put(out, trim),
            None => out.push(kind::NONE),
        }
    }

    fn take(input: &mut &[u8]) -> Result<Option<Trim>, Malformed> {
        match take_u8(input)? {
            kind::NONE => Ok(None),
            other => take_kind(other, input).map(Some),
        }
    }
}

/// The options of a trim as they are found among words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrimOptions {
    until: Option<TrimUntil>,
    is_approximate: bool,
    limit: Option<u64>,
}

impl TrimOptions {
    /// Takes an option and what belongs to it off the front of the words; false if they begin with none.
    pub(super) fn take(&mut self, words: &mut &[&[u8]]) -> Result<bool, CommandError> {
        let [option, argument, rest @ ..] = *words else { return Ok(false) };
        let is_length = is(option, "maxlen");
        if is(option, "limit") {
            let limit = u64::try_from(integer(argument)?).map_err(|_| StreamError::NegativeTrimLimit)?;
            self.limit = Some(limit);
            *words = rest;
            return Ok(true);
        }
        if !is_length && !is(option, "minid") {
            return Ok(false);
        }
        if self.until.is_some() {
            return Err(StreamError::TwoTrims.into());
        }
        let (argument, rest) = match (*argument, rest) {
            (b"~" | b"=", [threshold, rest @ ..]) => {
                self.is_approximate = *argument == b"~";
                (*threshold, rest)
            }
            (threshold, rest) => {
                self.is_approximate = false;
                (threshold, rest)
            }
        };
        self.until = Some(if is_length {
            let length = u64::try_from(integer(argument)?).map_err(|_| StreamError::NegativeLength)?;
            TrimUntil::Length(length)
        } else {
            TrimUntil::Id(parse_id(argument)?)
        });
        *words = rest;
        Ok(true)
    }

    /// True if neither MAXLEN nor MINID is there.
    pub(super) const fn is_missing(&self) -> bool {
        self.until.is_none()
    }

    /// The trim that was asked for.
    pub(super) fn finish(self) -> Result<Option<Trim>, CommandError> {
        let Some(until) = self.until else {
            let is_limited = self.limit.is_some_and(|limit| limit > 0);
            return match self.limit {
                Some(_) if is_limited => Err(StreamError::LimitWithoutTrim.into()),
                // Redis looks at this afterwards, and then says so.
                Some(_) => Err(StreamError::LimitOfExactTrim.into()),
                None => Ok(None),
            };
        };
        if self.limit.is_some() && !self.is_approximate {
            return Err(StreamError::LimitOfExactTrim.into());
        }
        let limit = self.limit.unwrap_or(APPROXIMATE_LIMIT);
        Ok(Some(Trim { until, approximately: self.is_approximate.then_some(limit) }))
    }
}
