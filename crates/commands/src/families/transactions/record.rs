//! The beginning of versions.

use crate::access::{DatabasesMut, KeysMut};
use crate::encoding::fields;
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::reply::put_ok;
use syros_types::Database;

/// From now on all replicas take note of which log entry changes a key: [`DatabasesMut::record_versions`]. No client can send it.
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

    /// It concerns all databases: see [`UpdateCommand::apply_to`].
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::Malformed)
    }

    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        _database: Database,
        _now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        databases.record_versions();
        put_ok(reply);
        Ok(())
    }
}
