//! Commands on HyperLogLogs: strings that estimate how many distinct elements were added to them.

pub(crate) mod pfadd;
pub(crate) mod pfcount;
pub(crate) mod pfmerge;

mod estimate;
mod murmur;
mod registers;
mod sketch;

use super::specification::CommandSpec;
use crate::access::Keys;
use crate::error::ExecutionError;
use crate::families::strings::string_of;
use registers::Registers;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "hyperloglog", since: "2.8.9", ..CommandSpec::ROW };

/// The union of what was added to these keys, and whether one of them is dense. Keys that do not exist are empty.
fn union<'a, K: Keys>(
    keys: &K,
    names: impl Iterator<Item = &'a [u8]>,
) -> Result<(Registers, bool), ExecutionError> {
    let (mut union, mut is_dense) = (Registers::new(), false);
    for name in names {
        let found = keys.get(name);
        if let Some(bytes) = string_of(found.as_ref())? {
            union.raise_to(&sketch::registers(bytes)?);
            is_dense |= sketch::is_dense(bytes)?;
        }
    }
    Ok((union, is_dense))
}
