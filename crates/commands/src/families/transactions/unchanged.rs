//! The condition of a transaction that watches keys.

use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::reply::{put_nil, put_ok};

/// Answers OK if each key has the version that goes with it. Else it answers nil, and the operations behind it in its body
/// are not executed: they have no replies. No client can send it.
///
/// It is an update, since what its body does depends on what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unchanged<'a> {
    /// Keys and the bytes of their versions alternate: see [`Version::to_bytes`](crate::access::Version::to_bytes).
    pub pairs: Arguments<'a>,
}

fields!(Unchanged<'a> = 291 { pairs: List<2> });

impl<'a> Definition<'a> for Unchanged<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.pairs, step: 2 }
    }
}

impl<'a> UpdateCommand<'a> for Unchanged<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let is_as_before = |(key, version): (&[u8], &[u8])| keys.version(key).to_bytes() == *version;
        // All are looked at: what the answer depends on must not depend on their order.
        let changed = self.pairs.pairs().filter(|pair| !is_as_before(*pair)).count();
        if changed == 0 {
            put_ok(reply);
        } else {
            put_nil(reply);
        }
        Ok(())
    }
}

impl Unchanged<'_> {
    /// True if the reply to it says that the operations behind it are executed.
    pub(crate) fn holds(reply: &[u8]) -> bool {
        let mut ok = Vec::new();
        put_ok(&mut ok);
        reply == ok
    }
}
