//! What an engine in memory is: the store of keys, or a state machine of somebody's own.

use syros_commands::access::Announcement;
use syros_machine::{Executor, MachineKind, Pieces};
use syros_node::snapshots::{Blocks, StateOf};
use syros_node::{InMemory, SnapshotState};
use syros_snapshot::{Load, Loaded, SnapshotStore, SnapshotStoreError, States};
use syros_storage::{
    Census, DetachedRead, Engine, ListedKeys, Loader, LongRead, MemoryEngine, StoreError, Victim,
};
use syros_types::{Database, EvictionPolicy, EvictionSettings, OpNumber, WallTime, key_hash};
use syros_wal::FileDisk;

/// An engine in memory. That it is one of two costs a jump that the processor foresees; behind it, the store of keys is
/// called directly.
#[expect(
    clippy::large_enum_variant,
    reason = "a process has one, and in a box each access would take a step more"
)]
pub(crate) enum AnyMemoryEngine {
    Keys(MemoryEngine),
    Machine(Box<dyn Executor>),
}

impl AnyMemoryEngine {
    /// One that has executed nothing.
    pub(crate) fn empty(files: &MemoryEngineFiles) -> Self {
        match &files.machine {
            None => Self::Keys(MemoryEngine::with_hash_seed(files.hash_seed)),
            Some(kind) => Self::Machine(kind.empty()),
        }
    }

    /// Number of keys of each database, and of those with an expiry; of a machine they are not known.
    pub(crate) fn census(&self) -> [Census; Database::COUNT] {
        match self {
            Self::Keys(keys) => {
                let mut all = [Census { is_exact: true, ..Census::default() }; Database::COUNT];
                for (database, census) in Database::all().zip(&mut all) {
                    census.keys = keys.database_len(database) as u64;
                    census.expiring = keys.expiring_len(database) as u64;
                }
                all
            }
            Self::Machine(_) => [Census::default(); Database::COUNT],
        }
    }

    /// Number of keys that have expired.
    pub(crate) fn expired(&self) -> u64 {
        match self {
            Self::Keys(keys) => keys.expired(),
            Self::Machine(_) => 0,
        }
    }

    /// Number of keys that have gone because memory was short.
    pub(crate) fn evicted(&self) -> u64 {
        match self {
            Self::Keys(keys) => keys.evicted(),
            Self::Machine(_) => 0,
        }
    }
}

impl InMemory for AnyMemoryEngine {
    fn touch<'a>(&self, bodies: impl Iterator<Item = &'a [u8]>) {
        if let Self::Keys(keys) = self {
            InMemory::touch(keys, bodies);
        }
    }

    fn begin_entry(&mut self, number: OpNumber) {
        if let Self::Keys(keys) = self {
            InMemory::begin_entry(keys, number);
        }
    }

    fn apply(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        match self {
            Self::Keys(keys) => InMemory::apply(keys, time, body, reply),
            Self::Machine(machine) => machine.execute(time, body, reply),
        }
    }

    fn read(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        match self {
            Self::Keys(keys) => InMemory::read(keys, now, body, reply),
            Self::Machine(machine) => machine.read(body, reply),
        }
    }

    fn long_read(&self, body: &[u8]) -> Option<LongRead> {
        match self {
            Self::Keys(keys) => InMemory::long_read(keys, body),
            Self::Machine(_) => None,
        }
    }

    fn detach(&self, now: WallTime, body: &[u8]) -> DetachedRead {
        match self {
            Self::Keys(keys) => InMemory::detach(keys, now, body),
            Self::Machine(_) => unreachable!("no read of a machine is executed apart"),
        }
    }

    fn begin_keys(&mut self, body: &[u8]) {
        if let Self::Keys(keys) = self {
            InMemory::begin_keys(keys, body);
        }
    }

    fn go_on_keys(&mut self) -> Option<ListedKeys> {
        match self {
            Self::Keys(keys) => InMemory::go_on_keys(keys),
            Self::Machine(_) => None,
        }
    }

    fn take_effects(&mut self, reply: &[u8]) -> u64 {
        match self {
            Self::Keys(keys) => InMemory::take_effects(keys, reply),
            // What it has done shows in what it returns, as far as anybody can know.
            Self::Machine(_) => key_hash(reply),
        }
    }

    /// Nobody can know what a machine of somebody's own goes through.
    fn work_from_log(&self, body: &[u8]) -> usize {
        match self {
            Self::Keys(keys) => InMemory::work_from_log(keys, body),
            Self::Machine(_) => 0,
        }
    }

    /// Nobody can know whether a machine of somebody's own changes anything.
    fn answer_no_op(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) -> bool {
        match self {
            Self::Keys(keys) => InMemory::answer_no_op(keys, now, body, reply),
            Self::Machine(_) => false,
        }
    }

    fn evaluate(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        match self {
            Self::Keys(keys) => InMemory::evaluate(keys, body, reply),
            Self::Machine(machine) => machine.evaluate(body, reply),
        }
    }

    fn first_expiry(&self, body: &[u8]) -> Option<WallTime> {
        match self {
            Self::Keys(keys) => InMemory::first_expiry(keys, body),
            Self::Machine(_) => None,
        }
    }

    fn advance(&mut self, time: WallTime) {
        match self {
            Self::Keys(keys) => InMemory::advance(keys, time),
            // It hears of time with what it executes.
            Self::Machine(_) => {}
        }
    }

    fn set_notifying(&mut self, is_on: bool) {
        if let Self::Keys(keys) = self {
            InMemory::set_notifying(keys, is_on);
        }
    }

    fn take_announcements(&mut self) -> Vec<Announcement> {
        match self {
            Self::Keys(keys) => InMemory::take_announcements(keys),
            Self::Machine(_) => Vec::new(),
        }
    }

    fn next_expiry(&self) -> Option<WallTime> {
        match self {
            Self::Keys(keys) => InMemory::next_expiry(keys),
            Self::Machine(_) => None,
        }
    }

    fn garbage_bytes(&self) -> u64 {
        match self {
            Self::Keys(keys) => InMemory::garbage_bytes(keys),
            Self::Machine(_) => 0,
        }
    }

    fn give_back(&mut self, nodes: usize) {
        if let Self::Keys(keys) = self {
            InMemory::give_back(keys, nodes);
        }
    }

    fn take_leftover(&mut self) -> Option<Box<dyn Send>> {
        match self {
            Self::Keys(keys) => InMemory::take_leftover(keys),
            Self::Machine(_) => None,
        }
    }

    fn data_bytes(&self) -> Option<usize> {
        match self {
            Self::Keys(keys) => Some(keys.memory_bytes()),
            Self::Machine(_) => None,
        }
    }

    fn set_eviction(&mut self, settings: EvictionSettings) {
        if let Self::Keys(keys) = self {
            InMemory::set_eviction(keys, settings);
        }
    }

    fn note_uses(&self, now: WallTime, body: &[u8]) {
        if let Self::Keys(keys) = self {
            InMemory::note_uses(keys, now, body);
        }
    }

    fn has_victims(&self, policy: EvictionPolicy) -> bool {
        match self {
            Self::Keys(keys) => InMemory::has_victims(keys, policy),
            Self::Machine(_) => false,
        }
    }

    fn victims(&self, settings: &EvictionSettings, bytes: u64, keys_max: usize, seed: u64) -> Vec<Victim> {
        match self {
            Self::Keys(keys) => InMemory::victims(keys, settings, bytes, keys_max, seed),
            Self::Machine(_) => Vec::new(),
        }
    }

    fn records_versions(&self) -> bool {
        match self {
            Self::Keys(keys) => InMemory::records_versions(keys),
            Self::Machine(_) => false,
        }
    }

    fn snapshot(&mut self) -> SnapshotState<'_> {
        match self {
            Self::Keys(keys) => SnapshotState::Here(keys),
            Self::Machine(machine) => {
                let pieces = PieceCutter::new(machine.snapshot());
                SnapshotState::Copy(Box::new(pieces), machine.snapshot_bytes())
            }
        }
    }

    fn snapshot_state(&mut self) -> StateOf<'_> {
        match self {
            Self::Keys(keys) => StateOf::Memory(keys),
            Self::Machine(_) => StateOf::Copy,
        }
    }

    fn keys(&self) -> Option<&dyn Engine> {
        match self {
            Self::Keys(keys) => Some(keys),
            Self::Machine(_) => None,
        }
    }
}

/// Snapshot files of an engine in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryEngineFiles {
    /// Seed of the tables of keys.
    pub(crate) hash_seed: u64,
    /// The state machine, if it is not the store of keys.
    pub(crate) machine: Option<MachineKind>,
}

impl MemoryEngineFiles {
    /// Begins to restore an engine from a snapshot.
    pub(crate) fn loader(&self) -> MemoryEngineLoader {
        match self.machine {
            None => MemoryEngineLoader::Keys(Box::new(MemoryEngine::loader(self.hash_seed))),
            Some(kind) => MemoryEngineLoader::Machine(kind, Vec::new()),
        }
    }
}

impl States<FileDisk> for MemoryEngineFiles {
    type Engine = AnyMemoryEngine;

    fn list(
        &mut self,
        snapshot_store: &mut SnapshotStore<FileDisk>,
    ) -> Result<Vec<OpNumber>, SnapshotStoreError> {
        snapshot_store.list()
    }

    fn load(
        &mut self,
        snapshot_store: &mut SnapshotStore<FileDisk>,
        op_number: OpNumber,
    ) -> Result<Loaded<AnyMemoryEngine>, SnapshotStoreError> {
        snapshot_store.load(op_number, self.loader())
    }

    fn keep_only(
        &mut self,
        snapshot_store: &mut SnapshotStore<FileDisk>,
        op_number: Option<OpNumber>,
    ) -> Result<(), SnapshotStoreError> {
        snapshot_store.keep_only(op_number)
    }
}

/// Makes an engine in memory of the blocks of a snapshot.
pub(crate) enum MemoryEngineLoader {
    Keys(Box<Loader>),
    /// The blocks so far.
    Machine(MachineKind, Vec<u8>),
}

impl Load for MemoryEngineLoader {
    type Engine = AnyMemoryEngine;

    fn block(&mut self, block: &[u8]) -> Result<(), SnapshotStoreError> {
        match self {
            Self::Keys(loader) => loader.block(block)?,
            Self::Machine(_, state) => state.extend_from_slice(block),
        }
        Ok(())
    }

    fn finish(self, _: &[u8]) -> Result<AnyMemoryEngine, SnapshotStoreError> {
        match self {
            Self::Keys(loader) => Ok(AnyMemoryEngine::Keys(loader.finish()?)),
            Self::Machine(kind, state) => match kind.restore(&state) {
                Ok(machine) => Ok(AnyMemoryEngine::Machine(machine)),
                Err(error) => {
                    Err(SnapshotStoreError::Unreadable { by: kind.name().to_string(), why: error.0 })
                }
            },
        }
    }
}

/// Cuts the pieces of a machine's state into blocks.
pub(crate) struct PieceCutter {
    pieces: Pieces,
    piece: Vec<u8>,
    /// Bytes of `piece` that are in a block already.
    taken: usize,
}

impl PieceCutter {
    pub(crate) const fn new(pieces: Pieces) -> Self {
        Self { pieces, piece: Vec::new(), taken: 0 }
    }
}

impl Blocks for PieceCutter {
    fn block(&mut self, bytes: usize, block: &mut Vec<u8>) -> Result<bool, StoreError> {
        while block.len() < bytes {
            if self.taken == self.piece.len() {
                let Some(piece) = self.pieces.next() else { return Ok(false) };
                (self.piece, self.taken) = (piece, 0);
            }
            let length = (self.piece.len() - self.taken).min(bytes - block.len());
            block.extend_from_slice(&self.piece[self.taken..self.taken + length]);
            self.taken += length;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::families::SAdd;
    use syros_commands::{Arguments, Operation};
    use syros_machine::{Class, Footprint, StateMachine, Unreadable};

    /// Remembers the last operation.
    #[derive(Default)]
    struct Last(Vec<u8>);

    impl StateMachine for Last {
        const NAME: &'static str = "last";

        fn class(operation: &[u8]) -> Option<Class> {
            (!operation.is_empty()).then_some(Class::Overwrite)
        }

        fn footprint(_: &[u8]) -> Footprint {
            Footprint::One(0)
        }

        fn execute(&mut self, _: WallTime, operation: &[u8], _: &mut Vec<u8>) {
            self.0 = operation.to_vec();
        }

        fn read(&self, _: &[u8], reply: &mut Vec<u8>) {
            reply.extend_from_slice(&self.0);
        }

        fn snapshot(&self) -> Pieces {
            Box::new(std::iter::once(self.0.clone()))
        }

        fn restore(state: &[u8]) -> Result<Self, Unreadable> {
            if state.len() > 999 { Err(Unreadable("too long".to_owned())) } else { Ok(Self(state.to_vec())) }
        }
    }

    /// All blocks of a state in pieces.
    fn cut(pieces: Pieces, bytes: usize) -> Vec<Vec<u8>> {
        let mut cutter = PieceCutter::new(pieces);
        let mut blocks = Vec::new();
        loop {
            let mut block = Vec::new();
            let more = cutter.block(bytes, &mut block).expect("memory");
            blocks.push(block);
            if !more {
                return blocks;
            }
        }
    }

    #[test]
    fn pieces_become_blocks_of_one_length() {
        let pieces = |lengths: &[usize]| -> Pieces {
            let lengths = lengths.to_vec();
            Box::new(lengths.into_iter().scan(0, |next: &mut u8, length| {
                let piece = (0..length).map(|at| *next + at as u8).collect();
                *next += length as u8;
                Some(piece)
            }))
        };
        for lengths in [&[][..], &[0], &[1, 0, 2], &[10], &[3, 3, 3], &[100, 1, 29]] {
            let total = lengths.iter().sum::<usize>();
            let blocks = cut(pieces(lengths), 10);
            assert_eq!(blocks.concat(), (0..total).map(|at| at as u8).collect::<Vec<_>>(), "{lengths:?}");
            let (last, full) = blocks.split_last().expect("there is one at least");
            assert!(last.len() < 10 && full.iter().all(|block| block.len() == 10), "{lengths:?}");
        }
    }

    #[test]
    fn a_machine_comes_back_from_its_blocks() {
        let files = MemoryEngineFiles { hash_seed: 1, machine: Some(MachineKind::of::<Last>()) };
        let mut engine = AnyMemoryEngine::empty(&files);
        engine.apply(WallTime(1), &[7; 300], &mut Vec::new());
        let AnyMemoryEngine::Machine(machine) = &engine else { panic!("a machine was asked for") };
        let mut loader = files.loader();
        for block in cut(machine.snapshot(), 128) {
            loader.block(&block).expect("any block");
        }
        let loaded = loader.finish(&[]).map_err(|error| error.to_string()).expect("its own state");
        let mut reply = Vec::new();
        loaded.read(WallTime(2), b"any", &mut reply);
        assert_eq!(reply, [7; 300]);
        assert!(loaded.next_expiry().is_none() && loaded.first_expiry(b"any").is_none());

        let mut loader = files.loader();
        loader.block(&[0; 1000]).expect("any block");
        let refused = loader.finish(&[]).err().expect("it is too long").to_string();
        assert_eq!(refused, "state machine last cannot read the snapshot, which is intact: too long");
    }

    /// The digests of members are compared for the engine that nodes run, whatever it is.
    #[test]
    fn what_updates_do_shows_in_their_effects_and_no_ops_in_their_answers() {
        let files = MemoryEngineFiles { hash_seed: 1, machine: None };
        let mut keys = AnyMemoryEngine::empty(&files);
        let files = MemoryEngineFiles { hash_seed: 1, machine: Some(MachineKind::of::<Last>()) };
        let mut machine = AnyMemoryEngine::empty(&files);
        let mut body = Vec::new();
        Operation::new(SAdd { key: b"key", members: Arguments::new(&[b"member"]) }).encode(&mut body);
        let effects = |engine: &mut AnyMemoryEngine, body: &[u8]| {
            let mut reply = Vec::new();
            engine.apply(WallTime(1), body, &mut reply);
            engine.take_effects(&reply)
        };
        let first = effects(&mut keys, &body);
        let second = effects(&mut keys, &body);
        assert!(first != second && first != 0 && second != 0, "it was new, and then it was not");
        assert_ne!(machine.take_effects(b"returned"), machine.take_effects(b"something else"));
        let mut answer = Vec::new();
        assert!(keys.answer_no_op(WallTime(1), &body, &mut answer) && answer == [2, 0]);
        assert!(!machine.answer_no_op(WallTime(1), b"one", &mut answer));
    }
}
