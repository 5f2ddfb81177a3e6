//! GETRANGE, and SUBSTR, which is its old name.

use super::string_of;
use crate::access::Keys;
use crate::encoding::{Key, Signed, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_bulk;
use crate::words::integer;

/// GETRANGE and SUBSTR: both ends inclusive, negative ones count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetRange<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Index of the first byte.
    pub start: i64,
    /// Index of the last byte.
    pub end: i64,
}

fields!(GetRange<'a> = 4 { key: Key, start: Signed, end: Signed });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    arity: 4,
    keys: KeyPositions::ONE,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@string", "@slow"],
    parser: |_, words| {
        Ok(GetRange { key: words[1], start: integer(words[2])?, end: integer(words[3])? }.into())
    },
    ..super::ROW
};

impl<'a> Definition<'a> for GetRange<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "getrange",
            since: "2.4.0",
            summary: "Returns a part of the value of a key.",
            ..ROW
        },
        CommandSpec {
            name: "substr",
            since: "1.0.0",
            summary: "Returns a part of the value of a key; the old name of GETRANGE.",
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for GetRange<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let value = string_of(found.as_ref())?.unwrap_or_default();
        put_bulk(reply, range(value, self.start, self.end));
        Ok(())
    }
}

/// The part of `value` from `start` to `end`, both inclusive; negative ones count from the end.
fn range(value: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let length = value.len() as i64;
    let absolute = |index: i64| if index < 0 { (length.saturating_add(index)).max(0) } else { index };
    let (start, end) = (absolute(start), absolute(end).min(length - 1));
    if start > end {
        return &[];
    }
    &value[start as usize..=end as usize]
}
