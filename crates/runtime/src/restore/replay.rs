//! A state and the entries behind it: the state after the last of these is what a new cluster begins with.
//!
//! The entries are executed here, once for each node, by the same engines that nodes have. So a new node has no log to execute
//! that was longer than its memory, and the digest of what it begins with is known.

use super::{Restoration, RestoreError};
use crate::directory::SNAPSHOTS;
use crate::disk_engine::StoreFiles;
use syros_backup::{BackupError, LastEntry};
use syros_node::execute_entry;
use syros_protocol::record::SnapshotHead;
use syros_snapshot::{SnapshotStore, SnapshotStoreError, StoreDirectory};
use syros_storage::{DiskEngine, Engine, MemoryEngine, SnapshotContents, SnapshotSurvey, Store};

/// What a store has not on disk is flushed when it is so much.
const UNFLUSHED_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a block of a snapshot.
const BLOCK_BYTES: usize = 1 << 20;

/// What a node begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) keys: u64,
    pub(super) digest: u64,
}

impl Restoration<'_> {
    /// Executes the entries up to `last`, and writes the snapshot that the node begins with.
    pub(super) fn replay_in_memory(
        &self,
        engine: &mut MemoryEngine,
        head: &SnapshotHead,
        last: &LastEntry,
    ) -> Result<State, RestoreError> {
        self.replay(engine, last, |_| Ok(()))?;
        let mut store = SnapshotStore::open(self.disk(SNAPSHOTS)?, self.identity.cluster)?;
        store.begin(head)?;
        engine.begin_snapshot();
        // As the manifest of a backup has them.
        let mut survey = SnapshotSurvey::default();
        let mut more = true;
        while more {
            let mut block = Vec::new();
            more = engine.snapshot_block(BLOCK_BYTES, &mut block);
            survey.block(&block).map_err(SnapshotStoreError::State)?;
            store.state(&block)?;
        }
        store.finish()?;
        let SnapshotContents { keys, digest, .. } = survey.finish().map_err(SnapshotStoreError::State)?;
        Ok(State { keys, digest })
    }

    /// The same in a store.
    pub(super) fn replay_on_disk(
        &self,
        engine: &mut DiskEngine<<StoreFiles as StoreDirectory>::Store>,
        head: &SnapshotHead,
        last: &LastEntry,
    ) -> Result<State, RestoreError> {
        let mut bytes = Vec::new();
        syros_wire::encode_snapshot_head(head, &mut bytes);
        let seal = |engine: &DiskEngine<<StoreFiles as StoreDirectory>::Store>| -> Result<(), RestoreError> {
            let shared = engine.shared();
            shared.seal(&bytes).and_then(|()| shared.flush()).map_err(SnapshotStoreError::Store)?;
            while shared.compact().map_err(SnapshotStoreError::Store)? {}
            Ok(())
        };
        self.replay(engine, last, |engine| {
            let shared = engine.shared();
            if let Some(error) = shared.failure() {
                return Err(SnapshotStoreError::Store(error.clone()).into());
            }
            // Until the directory is finished nobody takes it for one that is.
            if shared.store().pressure().unflushed_bytes > UNFLUSHED_BYTES_MAX {
                seal(engine)
            } else {
                Ok(())
            }
        })?;
        seal(engine)?;
        Ok(State { keys: engine.len() as u64, digest: engine.digest() })
    }

    fn replay<E: Engine>(
        &self,
        engine: &mut E,
        last: &LastEntry,
        mut after_each: impl FnMut(&mut E) -> Result<(), RestoreError>,
    ) -> Result<(), RestoreError> {
        let mut reply = Vec::new();
        let mut executed = self.backup.manifest().origin.last.op_number;
        self.backup.read_log(
            last.op_number,
            self.config.replica.describe,
            |number, entry| -> Result<(), RestoreError> {
                execute_entry(engine, number, &entry, &mut reply);
                executed = number;
                after_each(engine)
            },
        )?;
        if executed == last.op_number {
            return Ok(());
        }
        // The files of the log were there when the backup was opened.
        let problem = format!("its log ends with entry {} instead of {}", executed.0, last.op_number.0);
        Err(BackupError::Record { place: self.backup.place().to_string(), problem }.into())
    }
}
