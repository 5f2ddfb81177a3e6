//! Lists of byte strings that are the arguments of one operation.

use crate::primitive::take_bytes;
use core::fmt;

/// A list of byte strings, borrowed from a client's words or from an encoded body: no allocation.
#[derive(Clone, Copy)]
pub struct Arguments<'a>(Source<'a>);

/// Where a list of byte strings comes from.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// The words of a command.
    Words(&'a [&'a [u8]]),
    /// `count` length-prefixed strings, checked when they were decoded.
    Encoded { count: usize, bytes: &'a [u8] },
}

impl<'a> Arguments<'a> {
    /// The list of these words.
    #[must_use]
    pub const fn new(words: &'a [&'a [u8]]) -> Self {
        Self(Source::Words(words))
    }

    /// A list of `count` length-prefixed strings that have been checked.
    pub(crate) const fn encoded(count: usize, bytes: &'a [u8]) -> Self {
        Self(Source::Encoded { count, bytes })
    }

    /// Number of strings.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Source::Words(words) => words.len(),
            Source::Encoded { count, .. } => count,
        }
    }

    /// True if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The strings in order.
    #[must_use]
    pub const fn iter(&self) -> ArgumentsIter<'a> {
        ArgumentsIter(self.0)
    }

    /// The strings two by two; one left over is dropped.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let (keys, values) = (self.iter().step_by(2), self.iter().skip(1).step_by(2));
        keys.zip(values)
    }
}

impl<'a> IntoIterator for Arguments<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgumentsIter<'a>;
    fn into_iter(self) -> ArgumentsIter<'a> {
        self.iter()
    }
}

impl PartialEq for Arguments<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Arguments<'_> {}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(String::from_utf8_lossy)).finish()
    }
}

/// Iterator over [`Arguments`].
#[derive(Clone)]
pub struct ArgumentsIter<'a>(Source<'a>);

impl<'a> Iterator for ArgumentsIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match &mut self.0 {
            Source::Words(words) => {
                let (first, rest) = words.split_first()?;
                *words = rest;
                Some(first)
            }
            Source::Encoded { count, bytes } => {
                *count = count.checked_sub(1)?;
                take_bytes(bytes).ok()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = Arguments(self.0).len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for ArgumentsIter<'_> {}
