//! The beginning of versions.

use crate::access::KeysMut;
use crate::encoding::fields;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::reply::put_ok;

/// From now on all replicas take note of which log entry changes a key: [`KeysMut::record_versions`]. No client can send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordVersions;

fields!(RecordVersions = 292 {});

impl<'a> Definition<'a> for RecordVersions {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl<'a> UpdateCommand<'a> for RecordVersions {
    fn answers_ok(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        keys.record_versions();
        put_ok(reply);
        Ok(())
    }
}
