//! Blind updates that need not read what they change.

use crate::error::ExecutionError;
use crate::number::{parse_integer, write_integer};
use syros_types::limits::VALUE_BYTES_MAX;

/// What a blind update of one key does with the old value: see [`KeysMut::merge`](super::KeysMut::merge).
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// Append.
    Append(&'a [u8]),
    /// Add to the number that the value is.
    Add(i64),
}

impl Operand<'_> {
    /// Changes the value of a key that exists. What it answers is what the command answers.
    ///
    /// # Errors
    /// [`ExecutionError`] if the command would fail; the value is then as it was.
    pub fn change(self, value: &mut Vec<u8>) -> Result<i64, ExecutionError> {
        match self {
            Self::Append(tail) if value.len() + tail.len() > VALUE_BYTES_MAX => {
                Err(ExecutionError::ValueTooLong)
            }
            Self::Append(tail) => {
                value.extend_from_slice(tail);
                Ok(value.len() as i64)
            }
            Self::Add(delta) => {
                let old = parse_integer(value).ok_or(ExecutionError::NotInteger)?;
                let new = old.checked_add(delta).ok_or(ExecutionError::IncrementOverflow)?;
                value.clear();
                write_integer(value, new);
                Ok(new)
            }
        }
    }

    /// The value of a key that did not exist, and what the command answers.
    #[must_use]
    pub fn begin(self) -> (Vec<u8>, i64) {
        match self {
            Self::Append(tail) => (tail.to_vec(), tail.len() as i64),
            Self::Add(delta) => {
                let mut value = Vec::new();
                write_integer(&mut value, delta);
                (value, delta)
            }
        }
    }
}
