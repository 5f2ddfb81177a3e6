//! The time that an update happens at, where its result depends on it.

use crate::encoding::{Field, Seed};
use crate::primitive::Malformed;

/// Milliseconds since the Unix epoch, in eight bytes: see [`Operation::now_mut`](crate::Operation::now_mut).
pub(super) enum Now {}

impl Field<'_> for Now {
    type Content = u64;

    fn put(out: &mut Vec<u8>, now_ms: u64) {
        Seed::put(out, now_ms);
    }

    fn take(input: &mut &[u8]) -> Result<u64, Malformed> {
        Seed::take(input)
    }
}
