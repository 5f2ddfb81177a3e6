//! What is asked of an engine in memory.

use syros_commands::access::Announcement;
use syros_commands::operations;
use syros_storage::{DetachedRead, Engine, ListedKeys, LongRead, MemoryEngine, Victim};
use syros_types::{EvictionPolicy, EvictionSettings, OpNumber, WallTime};

use crate::snapshots::{Blocks, StateOf};

/// An update that may touch so many bytes takes long: the least that commands on whole collections say of themselves.
const LONG_WORK: usize = 64 << 10;

/// The state of an engine, of which a snapshot is to be taken.
pub enum SnapshotState<'a> {
    /// The engine, which is cut into blocks while it goes on.
    Here(&'a mut dyn Engine),
    /// A copy, which the worker cuts into blocks; it takes about so many bytes.
    Copy(Box<dyn Blocks>, usize),
}

/// An engine in memory: the store of keys, or another state machine.
pub trait InMemory {
    /// Has the processor fetch what the first of these bodies need when they are executed.
    fn touch<'a>(&self, bodies: impl Iterator<Item = &'a [u8]>);
    /// The bodies executed from now on are those of this log entry: see
    /// [`Engine::begin_entry`](syros_storage::Engine::begin_entry).
    fn begin_entry(&mut self, number: OpNumber);
    /// Executes the body of an update: see [`Engine::apply`](syros_storage::Engine::apply).
    fn apply(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>);
    /// A hash of what the update has done that was executed last, and has returned this: see
    /// [`Engine::take_effects`](syros_storage::Engine::take_effects).
    fn take_effects(&mut self, reply: &[u8]) -> u64;
    /// Executes the body of a read: see [`Engine::read`](syros_storage::Engine::read).
    fn read(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>);
    /// True if executing a body may take far longer than its length tells.
    fn takes_long(&self, _body: &[u8]) -> bool {
        false
    }
    /// What an update would return: see [`Engine::evaluate`](syros_storage::Engine::evaluate).
    fn evaluate(&self, body: &[u8], reply: &mut Vec<u8>) -> bool;
    /// About how many bytes a body of updates touches: see [`MemoryEngine::work_from_log`].
    fn work_from_log(&self, _body: &[u8]) -> usize {
        0
    }
    /// What an update answers if it changes nothing: see [`MemoryEngine::answer_no_op`].
    fn answer_no_op(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) -> bool;
    /// [`Self::evaluate`], known to be wrong: as if no key expired before the update is executed.
    #[cfg(feature = "planted-bugs")]
    fn evaluate_as_lasting(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        self.evaluate(body, reply)
    }
    /// The log time at which the first key of a body expires.
    fn first_expiry(&self, body: &[u8]) -> Option<WallTime>;
    /// Moves log time on.
    fn advance(&mut self, time: WallTime);
    /// Collects what is done to keys from now on, or does so no longer: see
    /// [`Engine::set_notifying`](syros_storage::Engine::set_notifying).
    fn set_notifying(&mut self, _is_on: bool) {}
    /// What has been done to keys since this was asked last, and what scripts have published.
    fn take_announcements(&mut self) -> Vec<Announcement> {
        Vec::new()
    }
    /// No key expires before this.
    fn next_expiry(&self) -> Option<WallTime>;
    /// How this read is to be executed, if it takes long.
    fn long_read(&self, body: &[u8]) -> Option<LongRead>;
    /// Takes what a read needs that is to be executed apart: see [`MemoryEngine::detach`].
    fn detach(&self, now: WallTime, body: &[u8]) -> DetachedRead;
    /// Begins a read that takes long: see [`MemoryEngine::begin_keys`].
    fn begin_keys(&mut self, body: &[u8]);
    /// Goes on with the read that takes long; what it has found, when it is complete.
    fn go_on_keys(&mut self) -> Option<ListedKeys>;
    /// Bytes of memory of large values that nobody needs any more.
    fn garbage_bytes(&self) -> u64;
    /// Gives back at most so many nodes of them: see [`MemoryEngine::give_back`].
    fn give_back(&mut self, nodes: usize);
    /// Something that takes long to drop: see [`MemoryEngine::take_leftover`].
    fn take_leftover(&mut self) -> Option<Box<dyn Send>>;
    /// Bytes of memory that the data takes, the same at all replicas that have executed the same, if that is known.
    fn data_bytes(&self) -> Option<usize>;
    /// From now on this policy decides which keys go when memory is short: see [`MemoryEngine::set_eviction`].
    fn set_eviction(&mut self, _settings: EvictionSettings) {}
    /// The keys of a body are used at another member: see [`MemoryEngine::note_uses`].
    fn note_uses(&self, _now: WallTime, _body: &[u8]) {}
    /// True if a policy may find keys that go.
    fn has_victims(&self, _policy: EvictionPolicy) -> bool {
        false
    }
    /// Keys that are to go: see [`MemoryEngine::victims`].
    fn victims(
        &self,
        _settings: &EvictionSettings,
        _bytes: u64,
        _keys_max: usize,
        _seed: u64,
    ) -> Vec<Victim> {
        Vec::new()
    }
    /// True if it is recorded which log entry has changed a key.
    fn records_versions(&self) -> bool {
        false
    }
    /// The state as it is now, for a snapshot.
    fn snapshot(&mut self) -> SnapshotState<'_>;
    /// Where the state comes from of the snapshot that is being taken.
    fn snapshot_state(&mut self) -> StateOf<'_>;
    /// The store of keys, if it is one.
    fn keys(&self) -> Option<&dyn Engine>;
}

impl InMemory for MemoryEngine {
    fn touch<'a>(&self, bodies: impl Iterator<Item = &'a [u8]>) {
        Self::touch(self, bodies);
    }

    fn begin_entry(&mut self, number: OpNumber) {
        Engine::begin_entry(self, number);
    }

    fn apply(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        Engine::apply(self, time, body, reply);
    }

    fn take_effects(&mut self, _reply: &[u8]) -> u64 {
        Engine::take_effects(self)
    }

    fn read(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        Engine::read(self, now, body, reply);
    }

    fn takes_long(&self, body: &[u8]) -> bool {
        operations(body).flatten().any(|operation| operation.work() >= LONG_WORK)
    }

    fn evaluate(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        Engine::evaluate(self, body, reply)
    }

    fn work_from_log(&self, body: &[u8]) -> usize {
        Self::work_from_log(self, body)
    }

    fn answer_no_op(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) -> bool {
        Self::answer_no_op(self, now, body, reply)
    }

    #[cfg(feature = "planted-bugs")]
    fn evaluate_as_lasting(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        Self::evaluate_as_lasting(self, body, reply)
    }

    fn first_expiry(&self, body: &[u8]) -> Option<WallTime> {
        Engine::first_expiry(self, body)
    }

    fn advance(&mut self, time: WallTime) {
        Engine::advance(self, time);
    }

    fn set_notifying(&mut self, is_on: bool) {
        Engine::set_notifying(self, is_on);
    }

    fn take_announcements(&mut self) -> Vec<Announcement> {
        Engine::take_announcements(self)
    }

    fn next_expiry(&self) -> Option<WallTime> {
        Engine::next_expiry(self)
    }

    fn long_read(&self, body: &[u8]) -> Option<LongRead> {
        Self::long_read(self, body)
    }

    fn detach(&self, now: WallTime, body: &[u8]) -> DetachedRead {
        Self::detach(self, now, body)
    }

    fn begin_keys(&mut self, body: &[u8]) {
        Self::begin_keys(self, body);
    }

    fn go_on_keys(&mut self) -> Option<ListedKeys> {
        Self::go_on_keys(self)
    }

    fn garbage_bytes(&self) -> u64 {
        Self::garbage_bytes(self)
    }

    fn give_back(&mut self, nodes: usize) {
        Self::give_back(self, nodes);
    }

    fn take_leftover(&mut self) -> Option<Box<dyn Send>> {
        Self::take_leftover(self)
    }

    fn data_bytes(&self) -> Option<usize> {
        Some(self.memory_bytes())
    }

    fn set_eviction(&mut self, settings: EvictionSettings) {
        Self::set_eviction(self, settings);
    }

    fn note_uses(&self, now: WallTime, body: &[u8]) {
        Self::note_uses(self, now, body);
    }

    fn has_victims(&self, policy: EvictionPolicy) -> bool {
        Self::has_victims(self, policy)
    }

    fn victims(&self, settings: &EvictionSettings, bytes: u64, keys_max: usize, seed: u64) -> Vec<Victim> {
        Self::victims(self, settings, bytes, keys_max, seed)
    }

    fn records_versions(&self) -> bool {
        Self::records_versions(self)
    }

    fn snapshot(&mut self) -> SnapshotState<'_> {
        SnapshotState::Here(self)
    }

    fn snapshot_state(&mut self) -> StateOf<'_> {
        StateOf::Memory(self)
    }

    fn keys(&self) -> Option<&dyn Engine> {
        Some(self)
    }
}
