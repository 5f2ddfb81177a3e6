//! From received bytes to the words of requests: the two forms of a Redis request, an array of bulk
//! strings and an inline line.
//!
//! The parser remembers how far it got in a request that is not complete, so that no byte is looked at
//! twice however small the pieces are in which it arrives. It copies nothing but the words of inline
//! requests, which may have quotes and escapes in them.

use crate::limits::{
    LINE_BYTES_MAX, REQUEST_BYTES_MAX, SKIPPED_WORD_BYTES_MAX, SKIPPED_WORDS_MAX, WORDS_MAX,
};
use core::fmt;
use syros_commands::parse_integer;
use syros_types::limits::VALUE_BYTES_MAX;

/// Bytes that are no request. After one nothing that follows can be understood: the connection answers
/// `-ERR Protocol error: ...` and is closed. The texts are Redis 7.0's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// An inline request is longer than [`LINE_BYTES_MAX`].
    TooBigInline,
    /// Quotes of an inline request are not closed, or end within a word.
    UnbalancedQuotes,
    /// The line with the number of words is longer than [`LINE_BYTES_MAX`].
    TooBigMultibulkCount,
    /// The number of words is no number or exceeds [`SKIPPED_WORDS_MAX`].
    InvalidMultibulkLength,
    /// The line with a word's length is longer than [`LINE_BYTES_MAX`].
    TooBigBulkCount,
    /// A word's length is no number, negative, or exceeds [`SKIPPED_WORD_BYTES_MAX`].
    InvalidBulkLength,
    /// A word begins with this byte instead of `$`.
    ExpectedDollar(u8),
}

impl ProtocolError {
    /// Appends the text of the error reply, without the leading `-` and without a line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ERR Protocol error: ");
        match self {
            Self::ExpectedDollar(byte) => {
                out.extend_from_slice(b"expected '$', got '");
                match byte {
                    // A line break would end the reply.
                    b'\r' | b'\n' => out.push(b' '),
                    other => out.push(*other),
                }
                out.push(b'\'');
            }
            other => out.extend_from_slice(other.to_string().as_bytes()),
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooBigInline => f.write_str("too big inline request"),
            Self::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            Self::TooBigMultibulkCount => f.write_str("too big mbulk count string"),
            Self::InvalidMultibulkLength => f.write_str("invalid multibulk length"),
            Self::TooBigBulkCount => f.write_str("too big bulk count string"),
            Self::InvalidBulkLength => f.write_str("invalid bulk length"),
            Self::ExpectedDollar(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
        }
    }
}

impl core::error::Error for ProtocolError {}

/// Why a request was skipped instead of being kept: it could not become an operation. The requests that
/// follow it are understood, so the connection goes on. Its text is that of the error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// A word of so many bytes is longer than [`VALUE_BYTES_MAX`].
    Word(usize),
    /// So many words are more than [`WORDS_MAX`].
    Words(usize),
    /// The request is longer than [`REQUEST_BYTES_MAX`].
    Request,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(bytes) => {
                write!(
                    f,
                    "ERR value of {bytes} bytes exceeds the maximum of {VALUE_BYTES_MAX} (proto-max-bulk-len)"
                )
            }
            Self::Words(count) => {
                write!(f, "ERR command of {count} arguments exceeds the maximum of {WORDS_MAX}")
            }
            Self::Request => write!(f, "ERR command exceeds the maximum of {REQUEST_BYTES_MAX} bytes"),
        }
    }
}

/// What the parser found at the front of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParserOutcome {
    /// Part of a request, or nothing. The same bytes with more behind them must come next.
    Incomplete,
    /// A request without words, which has no reply.
    Empty {
        /// Its length in bytes.
        consumed: usize,
    },
    /// A request whose words are in the input: see [`Parser::words`].
    Multibulk {
        /// Its length in bytes.
        consumed: usize,
    },
    /// A request whose words the parser has unquoted: see [`Parser::inline_words`].
    Inline {
        /// Its length in bytes.
        consumed: usize,
    },
    /// A part of a request that is too large, and not its last one: nothing is to be kept of it.
    Skipped {
        /// The part's length in bytes.
        consumed: usize,
    },
    /// The last part of a request that is too large, which is to be answered with this error.
    TooLarge {
        /// The part's length in bytes.
        consumed: usize,
        /// What is too large.
        problem: TooLarge,
    },
}

/// Where a word is. Requests are shorter than 4 GiB.
#[derive(Clone, Copy, Debug)]
struct Word {
    start: u32,
    end: u32,
}

const _: () = assert!(REQUEST_BYTES_MAX < u32::MAX as usize);

impl Word {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// More words than this are rare; their places are not kept for later requests.
const WORDS_KEPT_MAX: usize = 1024;

/// An incremental parser of requests. Its input always begins where the last complete request ended.
#[derive(Debug, Default)]
pub struct Parser {
    /// What follows begins here, counted from the start of the request.
    position: usize,
    /// No line end is in the input before this.
    scanned: usize,
    /// So many words are still to come; 0 if no array of words has begun.
    missing: usize,
    /// Length of the word at `position`, if its header has been read.
    length: Option<usize>,
    /// The request that has begun is too large: its bytes are skipped as they arrive. `length` is then
    /// what is left of the word.
    too_large: Option<TooLarge>,
    /// The words found so far.
    words: Vec<Word>,
    /// The words of an inline request, one after the other.
    unquoted: Vec<u8>,
}

impl Parser {
    /// A parser at the start of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for one request at the front of `input`. After [`ParserOutcome::Incomplete`] the same bytes must
    /// come again, with more behind them; after anything else, what follows the `consumed` ones.
    ///
    /// # Errors
    /// [`ProtocolError`] if the input cannot be a request; the parser is of no use any more.
    pub fn next(&mut self, input: &[u8]) -> Result<ParserOutcome, ProtocolError> {
        if self.missing == 0 {
            match input.first() {
                None => return Ok(ParserOutcome::Incomplete),
                Some(b'*') => match self.multibulk_header(input)? {
                    None => return Ok(ParserOutcome::Incomplete),
                    Some(0) => return Ok(ParserOutcome::Empty { consumed: self.restart() }),
                    Some(count) => {
                        self.missing = count;
                        self.too_large = (count > WORDS_MAX).then_some(TooLarge::Words(count));
                    }
                },
                Some(_) => return self.inline(input),
            }
        }
        if self.too_large.is_some() {
            return self.skip(input);
        }
        while self.missing > 0 {
            let length = match self.length.take() {
                Some(length) => length,
                None => match self.bulk_header(input)? {
                    Some(length) => length,
                    None => return Ok(ParserOutcome::Incomplete),
                },
            };
            let end = self.position + length;
            // Redis does not look at the two bytes behind a word either.
            if length > VALUE_BYTES_MAX || end + 2 > REQUEST_BYTES_MAX {
                let is_word = length > VALUE_BYTES_MAX;
                self.too_large = Some(if is_word { TooLarge::Word(length) } else { TooLarge::Request });
                self.length = Some(length);
                return self.skip(input);
            }
            if input.len() < end + 2 {
                self.length = Some(length);
                return Ok(ParserOutcome::Incomplete);
            }
            self.words.push(Word { start: self.position as u32, end: end as u32 });
            self.position = end + 2;
            self.scanned = self.position;
            self.missing -= 1;
        }
        Ok(ParserOutcome::Multibulk { consumed: self.restart() })
    }

    /// Passes over what has arrived of a request that is too large.
    fn skip(&mut self, input: &[u8]) -> Result<ParserOutcome, ProtocolError> {
        self.words.clear();
        while self.missing > 0 {
            let length = match self.length.take() {
                Some(length) => length,
                None => match self.bulk_header(input)? {
                    Some(length) => length,
                    None => return Ok(self.skipped()),
                },
            };
            let arrived = input.len().saturating_sub(self.position);
            if arrived < length + 2 {
                // The line end behind the word is passed over as a whole.
                let passed = arrived.min(length);
                self.position += passed;
                self.length = Some(length - passed);
                return Ok(self.skipped());
            }
            self.position += length + 2;
            self.scanned = self.position;
            self.missing -= 1;
        }
        let consumed = self.restart();
        Ok(match self.too_large.take() {
            Some(problem) => ParserOutcome::TooLarge { consumed, problem },
            None => ParserOutcome::Empty { consumed },
        })
    }

    /// Forgets the bytes that have been passed over.
    const fn skipped(&mut self) -> ParserOutcome {
        if self.position == 0 {
            return ParserOutcome::Incomplete;
        }
        // The part of a header that was searched for its end is not searched again.
        let searched = self.scanned.saturating_sub(self.position);
        let consumed = self.restart();
        self.scanned = searched;
        ParserOutcome::Skipped { consumed }
    }

    /// Bytes of memory that the words found so far take.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<Word>() + self.unquoted.capacity()
    }

    /// A request that is not complete needs at least this many bytes, counted from its start. Of one that
    /// is too large nothing is kept.
    #[must_use]
    pub fn needed(&self) -> usize {
        if self.too_large.is_some() {
            return self.position;
        }
        // Every further word is at least `$0`, a line end, and a line end.
        let word = self.length.map_or(0, |length| length + 2);
        self.position + word + self.missing.saturating_sub(usize::from(self.length.is_some())) * 6
    }

    /// Replaces `words` by those of the [`ParserOutcome::Multibulk`] request that was found in `input`.
    pub fn words<'a>(&self, input: &'a [u8], words: &mut Vec<&'a [u8]>) {
        words.clear();
        words.extend(self.words.iter().map(|word| word.of(input)));
    }

    /// The words of the [`ParserOutcome::Inline`] request that was found last.
    #[must_use]
    pub fn inline_words(&self) -> Vec<&[u8]> {
        self.words.iter().map(|word| word.of(&self.unquoted)).collect()
    }

    /// Makes ready for the next request; the length of this one.
    const fn restart(&mut self) -> usize {
        let consumed = self.position;
        self.position = 0;
        self.scanned = 0;
        consumed
    }

    /// The line at `position`, if its `\r` and one byte more have arrived.
    fn line<'a>(
        &mut self,
        input: &'a [u8],
        too_big: ProtocolError,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        let unseen = input.get(self.scanned..).unwrap_or_default();
        match unseen.iter().position(|byte| *byte == b'\r') {
            Some(distance) => self.scanned += distance,
            None => self.scanned = self.scanned.max(input.len()),
        }
        if self.scanned.saturating_sub(self.position) > LINE_BYTES_MAX {
            return Err(too_big);
        }
        if self.scanned + 2 > input.len() {
            return Ok(None);
        }
        Ok(input.get(self.position..self.scanned))
    }

    /// Moves on behind the line that [`Self::line`] returned.
    const fn pass_line(&mut self) {
        self.position = self.scanned + 2;
        self.scanned = self.position;
    }

    /// The number of words of a request that begins with `*`.
    fn multibulk_header(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(input, ProtocolError::TooBigMultibulkCount)? else { return Ok(None) };
        let count = parse_integer(&line[1..]).ok_or(ProtocolError::InvalidMultibulkLength)?;
        // A negative number of words is as good as none.
        let count = usize::try_from(count).unwrap_or(0);
        if count > SKIPPED_WORDS_MAX {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        self.pass_line();
        self.words.clear();
        self.words.shrink_to(WORDS_KEPT_MAX);
        Ok(Some(count))
    }

    /// The length of the word at `position`.
    fn bulk_header(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(input, ProtocolError::TooBigBulkCount)? else { return Ok(None) };
        let length = match line {
            // Most words are shorter than ten, or than a hundred, bytes.
            [b'$', digit @ b'0'..=b'9'] => usize::from(digit - b'0'),
            [b'$', tens @ b'1'..=b'9', ones @ b'0'..=b'9'] => usize::from((tens - b'0') * 10 + (ones - b'0')),
            [b'$', digits @ ..] => parse_integer(digits)
                .and_then(|length| usize::try_from(length).ok())
                .filter(|length| *length <= SKIPPED_WORD_BYTES_MAX)
                .ok_or(ProtocolError::InvalidBulkLength)?,
            // The line may be empty: then its end is what was found instead.
            other => return Err(ProtocolError::ExpectedDollar(other.first().copied().unwrap_or(b'\r'))),
        };
        self.pass_line();
        Ok(Some(length))
    }

    /// A request that is one line of words.
    fn inline(&mut self, input: &[u8]) -> Result<ParserOutcome, ProtocolError> {
        let unseen = input.get(self.scanned..).unwrap_or_default();
        let end = unseen.iter().position(|byte| *byte == b'\n').map(|distance| self.scanned + distance);
        self.scanned = end.unwrap_or(input.len());
        if self.scanned > LINE_BYTES_MAX {
            return Err(ProtocolError::TooBigInline);
        }
        let Some(end) = end else { return Ok(ParserOutcome::Incomplete) };
        self.position = end + 1;
        let line = &input[..end];
        self.words.clear();
        self.unquoted.clear();
        split_words(line.strip_suffix(b"\r").unwrap_or(line), &mut self.unquoted, &mut self.words)?;
        let consumed = self.restart();
        Ok(if self.words.is_empty() {
            ParserOutcome::Empty { consumed }
        } else {
            ParserOutcome::Inline { consumed }
        })
    }
}

/// C's `isspace`.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Splits a line into words as Redis's `sdssplitargs` does: words are separated by blanks; in double
/// quotes `\xff`, `\n`, `\r`, `\t`, `\b`, `\a` and any other escaped byte, in single quotes `\'`. A NUL, which
/// Redis never gets past, is a byte like any other.
fn split_words(mut rest: &[u8], text: &mut Vec<u8>, words: &mut Vec<Word>) -> Result<(), ProtocolError> {
    loop {
        let blanks = rest.iter().take_while(|byte| is_space(**byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Ok(());
        }
        let start = text.len() as u32;
        loop {
            rest = match rest {
                [] => break,
                [b'"', quoted @ ..] => {
                    rest = double_quoted(quoted, text)?;
                    break;
                }
                [b'\'', quoted @ ..] => {
                    rest = single_quoted(quoted, text)?;
                    break;
                }
                [b' ' | b'\t' | b'\n' | b'\r', after @ ..] => {
                    rest = after;
                    break;
                }
                [byte, after @ ..] => {
                    text.push(*byte);
                    after
                }
            };
        }
        words.push(Word { start, end: text.len() as u32 });
    }
}

/// What follows a closing quote, which only a blank or the end of the line may.
fn after_quote(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                text.push(hex_digit(*high) << 4 | hex_digit(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [b'"', after @ ..] => return after_quote(after),
            [byte, after @ ..] => {
                text.push(*byte);
                after
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\\', b'\'', after @ ..] => {
                text.push(b'\'');
                after
            }
            [b'\'', after @ ..] => return after_quote(after),
            [byte, after @ ..] => {
                text.push(*byte);
                after
            }
        };
    }
}

/// The value of a byte that is a hexadecimal digit.
const fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
