//! A disk in memory that forgets what a real one may forget, for simulation.
//!
//! Deterministic: what a crash leaves depends on the calls so far and on the generator it is given.
//! The model is at least as harsh as POSIX where it matters to a log:
//!
//! - A crash keeps a prefix of the bytes appended since the last sync, torn at any byte, or all of
//!   them, or none; sometimes zeros stand where the missing ones would have been, as on file systems that
//!   write lengths before data.
//! - What was filled in since the last sync is there wholly, not at all, up to any byte, or in any of its
//!   sectors; the rest is zero, as before.
//! - A truncation that was not synced may be undone.
//! - Every creation, rename and removal of a file since the last sync of its directory survives or not on its own; of
//!   renames and removals of directories since the last sync of the root, the first ones do.
//! - A failed sync makes nothing durable, and a later one that succeeds does not make up for it: what
//!   was not synced then still counts as not synced, as after Linux has dropped the pages.
//!
//! Not modelled: pages of one append that reach the disk out of order.

use crate::disk::{Cause, Disk, DiskError, DiskOperation};
use crate::segment::SECTOR_BYTES;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use syros_types::Prng;

/// A simulated disk. Clones are handles on the same disk, as many processes can see one directory; see
/// [`MemoryDisk::duplicate`] for a second disk.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
    /// What the names of this directory's files begin with: its path and a slash, or nothing.
    path: String,
}

/// An open file of a [`MemoryDisk`]. It stops working when the disk crashes, with the process that
/// held it.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    name: String,
    inode: u64,
    crashes: u64,
}

#[derive(Clone, Debug, Default)]
struct State {
    inodes: BTreeMap<u64, Inode>,
    inodes_created: u64,
    /// What processes see.
    names: BTreeMap<String, u64>,
    /// What a crash leaves in any case.
    durable_names: BTreeMap<String, u64>,
    /// Changes since the last directory sync.
    name_changes: Vec<NameChange>,
    /// Changing operations so far.
    operations: u64,
    /// At this many, the machine stops.
    stop_at: Option<u64>,
    stopped: bool,
    crashes: u64,
    capacity: Option<u64>,
    write_fault: Option<(Cause, usize)>,
    append_fault: Option<(Cause, usize)>,
    sync_fault: Option<Cause>,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// So many of `bytes` are durable, but for what was filled in.
    durable: usize,
    /// Where zeros were filled since the last sync that made them durable.
    filled: Vec<Range<usize>>,
    /// Durable bytes that followed those until a truncation that is not durable yet.
    truncated: Vec<u8>,
    /// A sync failed: what was not durable then never becomes durable.
    poisoned: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, u64),
    Rename(String, String),
    Remove(String),
    /// Of a directory, replacing the one of that name, with its path and a slash.
    RenameDirectory(String, String),
    RemoveDirectory(String),
}

impl NameChange {
    /// The path of the directory of a file.
    fn directory(&self) -> &str {
        match self {
            Self::Create(name, _) | Self::Rename(name, _) | Self::Remove(name) => {
                name.rfind('/').map_or("", |slash| &name[..=slash])
            }
            Self::RenameDirectory(..) | Self::RemoveDirectory(_) => "",
        }
    }

    /// True if the sync of the directory of this path makes it durable. What became of a directory before its own sync is
    /// durable with it.
    fn is_durable_with(&self, path: &str) -> bool {
        match self {
            Self::RenameDirectory(from, to) => path.is_empty() || from == path || to == path,
            Self::RemoveDirectory(name) => path.is_empty() || name == path,
            _ => self.directory() == path,
        }
    }

    const fn is_of_directory(&self) -> bool {
        matches!(self, Self::RenameDirectory(..) | Self::RemoveDirectory(_))
    }
}

fn apply(names: &mut BTreeMap<String, u64>, change: &NameChange) {
    match change {
        NameChange::Create(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        NameChange::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
        NameChange::RenameDirectory(from, to) => {
            names.retain(|name, _| !name.starts_with(to.as_str()));
            let (moved, kept): (BTreeMap<_, _>, _) =
                std::mem::take(names).into_iter().partition(|(name, _)| name.starts_with(from.as_str()));
            *names = kept;
            let moved =
                moved.into_iter().map(|(name, inode)| (format!("{to}{}", &name[from.len()..]), inode));
            names.extend(moved);
        }
        NameChange::RemoveDirectory(path) => names.retain(|name, _| !name.starts_with(path.as_str())),
    }
}

impl Inode {
    fn crash(&mut self, prng: &mut Prng) {
        self.tear(prng);
        let mut bytes = std::mem::take(&mut self.bytes);
        if !self.truncated.is_empty() && prng.chance(1, 2) {
            bytes.truncate(self.durable);
            bytes.append(&mut self.truncated);
        } else {
            let unsynced = bytes.len() - self.durable;
            let kept = match prng.below(4) {
                0 => 0,
                1 => unsynced,
                _ => prng.below(unsynced as u64 + 1) as usize,
            };
            bytes.truncate(self.durable + kept);
            if prng.chance(1, 4) {
                let zeros = prng.below((unsynced - kept) as u64 + 1) as usize;
                bytes.resize(bytes.len() + zeros, 0);
            }
        }
        *self = Self { durable: bytes.len(), bytes, ..Self::default() };
    }

    /// Loses what was filled in and is not durable, wholly, partly or not at all.
    fn tear(&mut self, prng: &mut Prng) {
        let filled = std::mem::take(&mut self.filled);
        let starts = filled.iter().map(|range| range.start);
        let Some((start, end)) = starts.min().zip(filled.iter().map(|range| range.end).max()) else { return };
        let sector = SECTOR_BYTES as usize;
        let mut lost = Vec::new();
        match prng.below(4) {
            0 => lost.push(start..end),
            1 => lost.push(start + prng.below((end - start) as u64) as usize..end),
            2 => {
                let sectors = (start / sector..end.div_ceil(sector)).filter(|_| prng.chance(1, 2));
                lost.extend(sectors.map(|number| number * sector..(number + 1) * sector));
            }
            _ => {}
        }
        for filled in &filled {
            for lost in &lost {
                let (start, end) = (lost.start.max(filled.start), lost.end.min(filled.end));
                self.bytes[start.min(end)..end].fill(0);
            }
        }
    }

    /// Whether nothing but zeros stand from `offset` to the end, and so many at least.
    fn has_room(&self, offset: usize, bytes: usize) -> bool {
        let rest = self.bytes.get(offset..);
        rest.is_some_and(|rest| rest.len() >= bytes && rest.iter().all(|byte| *byte == 0))
    }

    fn sync(&mut self) {
        if !self.poisoned {
            self.durable = self.bytes.len();
            self.filled.clear();
            self.truncated.clear();
        }
    }
}

impl State {
    fn error<T>(operation: DiskOperation, name: &str, cause: Cause) -> Result<T, DiskError> {
        Err(DiskError { operation, file: name.to_owned(), cause })
    }

    fn check(&self, operation: DiskOperation, name: &str) -> Result<(), DiskError> {
        if self.stopped { Self::error(operation, name, Cause::Stopped) } else { Ok(()) }
    }

    /// Counts a changing operation; true if the machine stops while it runs.
    fn count(&mut self, operation: DiskOperation, name: &str) -> Result<bool, DiskError> {
        self.check(operation, name)?;
        self.operations += 1;
        self.stopped = self.stop_at.is_some_and(|stop_at| self.operations >= stop_at);
        Ok(self.stopped)
    }

    fn change_names(&mut self, change: NameChange) {
        apply(&mut self.names, &change);
        self.name_changes.push(change);
    }

    fn used(&self) -> u64 {
        self.inodes.values().map(|inode| inode.bytes.len() as u64).sum()
    }

    fn inode(&mut self, operation: DiskOperation, file: &MemoryFile) -> Result<&mut Inode, DiskError> {
        let stale = file.crashes != self.crashes;
        match self.inodes.get_mut(&file.inode) {
            Some(inode) if !stale => Ok(inode),
            _ => Self::error(operation, &file.name, Cause::Stopped),
        }
    }

    /// Forgets files without a name, as far as that can be known.
    fn collect(&mut self) {
        let named: Vec<u64> = self.names.values().chain(self.durable_names.values()).copied().collect();
        self.inodes.retain(|inode, _| named.contains(inode));
    }
}

impl MemoryDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A caller that panicked elsewhere in the test has not left this half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A second, independent disk in the same state.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.state().clone())), path: self.path.clone() }
    }

    /// The directory of this name in the root of the disk. It exists as long as there are files in it.
    #[must_use]
    pub fn directory(&self, name: &str) -> Self {
        Self { state: Arc::clone(&self.state), path: format!("{name}/") }
    }

    /// Gives a directory in the root of the disk another name, replacing the directory of that name. Durable after
    /// [`Disk::sync_directory`] of the root.
    ///
    /// # Errors
    /// [`Cause::Stopped`].
    pub fn rename_directory(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let change = NameChange::RenameDirectory(format!("{from}/"), format!("{to}/"));
        self.change_directories(DiskOperation::Rename, from, change)
    }

    /// Removes a directory in the root of the disk, and what is in it. Durable after [`Disk::sync_directory`] of the root.
    ///
    /// # Errors
    /// [`Cause::Stopped`].
    pub fn remove_directory(&self, name: &str) -> Result<(), DiskError> {
        self.change_directories(DiskOperation::Remove, name, NameChange::RemoveDirectory(format!("{name}/")))
    }

    fn change_directories(
        &self,
        operation: DiskOperation,
        name: &str,
        change: NameChange,
    ) -> Result<(), DiskError> {
        let mut state = self.state();
        let stops = state.count(operation, name)?;
        state.change_names(change);
        if stops { State::error(operation, name, Cause::Stopped) } else { Ok(()) }
    }

    /// The name of a file of this directory among all files of the disk.
    fn full<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.path.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{}{name}", self.path)) }
    }

    /// The name in this directory of a file that is directly in it.
    fn local<'a>(&self, full: &'a str) -> Option<&'a str> {
        full.strip_prefix(self.path.as_str()).filter(|name| !name.contains('/'))
    }

    /// Power fails and comes back: what was not durable is lost wholly, partly or not at all, as `prng`
    /// decides. Open files stop working; faults that were planned and not met are forgotten, as is
    /// [`MemoryDisk::stop_at`].
    pub fn crash(&self, prng: &mut Prng) {
        let mut state = self.state();
        // File systems keep the order of what happens to directories.
        let mut are_directories_kept = true;
        for change in std::mem::take(&mut state.name_changes) {
            let mut is_kept = prng.chance(1, 2);
            if change.is_of_directory() {
                are_directories_kept &= is_kept;
                is_kept = are_directories_kept;
            }
            if is_kept {
                apply(&mut state.durable_names, &change);
            }
        }
        state.names = state.durable_names.clone();
        for inode in state.inodes.values_mut() {
            inode.crash(prng);
        }
        state.collect();
        state.crashes += 1;
        state.stopped = false;
        state.stop_at = None;
        state.write_fault = None;
        state.append_fault = None;
        state.sync_fault = None;
    }

    /// Operations so far that change something: creations, appends, truncations, syncs of files and of
    /// the directory, renames, removals.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Stops the machine while it performs the operation that makes the count `operations`: that one and
    /// all others, reads too, fail with [`Cause::Stopped`] until [`MemoryDisk::crash`]. What the
    /// operation does may survive or not, except that a sync has done nothing.
    pub fn stop_at(&self, operations: u64) {
        self.state().stop_at = Some(operations);
    }

    /// True if the machine has stopped, and [`MemoryDisk::crash`] has not been called since.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Takes back every fault that was planned and not met.
    pub fn cancel_faults(&self) {
        let mut state = self.state();
        state.stop_at = None;
        state.write_fault = None;
        state.append_fault = None;
        state.sync_fault = None;
    }

    /// Makes the next append or fill fail after it has written `written` bytes, or all.
    pub fn fail_next_write(&self, cause: Cause, written: usize) {
        self.state().write_fault = Some((cause, written));
    }

    /// As [`Self::fail_next_write`], for the next append only: what goes to room made before is written.
    pub fn fail_next_append(&self, cause: Cause, written: usize) {
        self.state().append_fault = Some((cause, written));
    }

    /// Makes the next sync of a file fail.
    pub fn fail_next_sync(&self, cause: Cause) {
        self.state().sync_fault = Some(cause);
    }

    /// Limits the bytes of all files; an append beyond writes what fits and fails with
    /// [`Cause::Full`]. `None` takes the limit away.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Rot: flips the bits of `mask` in one byte of a file, on the medium. False if there is no such
    /// byte.
    pub fn corrupt(&self, name: &str, offset: u64, mask: u8) -> bool {
        let mut state = self.state();
        let Some(inode) = state.names.get(&*self.full(name)).copied() else { return false };
        let bytes = state.inodes.get_mut(&inode).map(|inode| &mut inode.bytes);
        let byte = usize::try_from(offset).ok().zip(bytes).and_then(|(offset, bytes)| bytes.get_mut(offset));
        byte.map(|byte| *byte ^= mask).is_some()
    }

    /// The bytes of a file, as processes see it.
    #[must_use]
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.names.get(&*self.full(name))?;
        Some(state.inodes.get(inode)?.bytes.clone())
    }

    /// Gives a file these bytes, durably, whatever it was before.
    pub fn replace(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let inode = state.new_inode();
        state.names.insert(self.full(name).into_owned(), inode);
        state.durable_names.insert(self.full(name).into_owned(), inode);
        let file = Inode { bytes: bytes.to_vec(), durable: bytes.len(), ..Inode::default() };
        state.inodes.insert(inode, file);
    }
}

impl State {
    fn new_inode(&mut self) -> u64 {
        self.inodes_created += 1;
        self.inodes_created
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn create(&mut self, name: &str) -> Result<MemoryFile, DiskError> {
        let mut state = self.state();
        let stops = state.count(DiskOperation::Create, name)?;
        let inode = state.new_inode();
        state.inodes.insert(inode, Inode::default());
        state.change_names(NameChange::Create(self.full(name).into_owned(), inode));
        if stops {
            return State::error(DiskOperation::Create, name, Cause::Stopped);
        }
        Ok(MemoryFile { name: name.to_owned(), inode, crashes: state.crashes })
    }

    fn open(&mut self, name: &str) -> Result<MemoryFile, DiskError> {
        let state = self.state();
        state.check(DiskOperation::Open, name)?;
        match state.names.get(&*self.full(name)) {
            Some(&inode) => Ok(MemoryFile { name: name.to_owned(), inode, crashes: state.crashes }),
            None => State::error(DiskOperation::Open, name, Cause::NotFound),
        }
    }

    fn append(&mut self, file: &mut MemoryFile, bytes: &[u8]) -> Result<(), DiskError> {
        let operation = DiskOperation::Append;
        let mut state = self.state();
        let free = state.capacity.map(|capacity| capacity.saturating_sub(state.used()));
        let stops = state.count(operation, &file.name)?;
        let (fault, room) = match (state.write_fault.take().or(state.append_fault.take()), free) {
            (Some((cause, written)), _) => (Some(cause), written),
            (None, Some(free)) if free < bytes.len() as u64 => (Some(Cause::Full), free as usize),
            (None, _) => (None, bytes.len()),
        };
        let inode = state.inode(operation, file)?;
        inode.bytes.extend_from_slice(&bytes[..room.min(bytes.len())]);
        match fault {
            _ if stops => State::error(operation, &file.name, Cause::Stopped),
            Some(cause) => State::error(operation, &file.name, cause),
            None => Ok(()),
        }
    }

    fn fill(&mut self, file: &mut MemoryFile, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let operation = DiskOperation::Fill;
        let mut state = self.state();
        let stops = state.count(operation, &file.name)?;
        let fault = state.write_fault.take();
        let inode = state.inode(operation, file)?;
        let mut bytes = parts.concat();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        assert!(inode.has_room(start, bytes.len()), "{} holds something at byte {offset}", file.name);
        if let Some((_, written)) = &fault {
            bytes.truncate(*written);
        }
        let range = start..start + bytes.len();
        inode.bytes[range.clone()].copy_from_slice(&bytes);
        if !range.is_empty() {
            inode.filled.push(range);
        }
        match fault {
            _ if stops => State::error(operation, &file.name, Cause::Stopped),
            Some((cause, _)) => State::error(operation, &file.name, cause),
            None => Ok(()),
        }
    }

    fn read(&mut self, file: &MemoryFile, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let operation = DiskOperation::Read;
        let mut state = self.state();
        state.check(operation, &file.name)?;
        let inode = state.inode(operation, file)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| inode.bytes.get(offset..));
        match rest.and_then(|rest| rest.get(..buffer.len())) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => State::error(operation, &file.name, Cause::ShortRead),
        }
    }

    fn length(&mut self, file: &MemoryFile) -> Result<u64, DiskError> {
        let mut state = self.state();
        state.check(DiskOperation::Length, &file.name)?;
        Ok(state.inode(DiskOperation::Length, file)?.bytes.len() as u64)
    }

    fn truncate(&mut self, file: &mut MemoryFile, length: u64) -> Result<(), DiskError> {
        let operation = DiskOperation::Truncate;
        let mut state = self.state();
        let stops = state.count(operation, &file.name)?;
        let inode = state.inode(operation, file)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(inode.bytes.len());
        if length < inode.durable {
            let mut truncated = inode.bytes[length..inode.durable].to_vec();
            truncated.append(&mut inode.truncated);
            inode.truncated = truncated;
            inode.durable = length;
        }
        inode.bytes.truncate(length);
        inode.filled.retain(|range| range.start < length);
        inode.filled.iter_mut().for_each(|range| range.end = range.end.min(length));
        if stops { State::error(operation, &file.name, Cause::Stopped) } else { Ok(()) }
    }

    fn sync(&mut self, file: &mut MemoryFile) -> Result<(), DiskError> {
        let operation = DiskOperation::Sync;
        let mut state = self.state();
        if state.count(operation, &file.name)? {
            return State::error(operation, &file.name, Cause::Stopped);
        }
        let fault = state.sync_fault.take();
        let inode = state.inode(operation, file)?;
        match fault {
            None => {
                inode.sync();
                Ok(())
            }
            Some(cause) => {
                inode.poisoned = true;
                State::error(operation, &file.name, cause)
            }
        }
    }

    fn sync_and_evict(&mut self, file: &mut MemoryFile) -> Result<(), DiskError> {
        self.sync(file)?;
        let mut state = self.state();
        let inode = state.inode(DiskOperation::Sync, file)?;
        if inode.poisoned {
            // The pages that were never written go, and the medium shows through.
            for range in std::mem::take(&mut inode.filled) {
                inode.bytes[range].fill(0);
            }
            inode.bytes.truncate(inode.durable);
            let mut truncated = std::mem::take(&mut inode.truncated);
            inode.bytes.append(&mut truncated);
            inode.durable = inode.bytes.len();
            inode.poisoned = false;
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        let stops = state.count(DiskOperation::Rename, from)?;
        if !state.names.contains_key(&*self.full(from)) {
            return State::error(DiskOperation::Rename, from, Cause::NotFound);
        }
        state.change_names(NameChange::Rename(self.full(from).into_owned(), self.full(to).into_owned()));
        if stops { State::error(DiskOperation::Rename, from, Cause::Stopped) } else { Ok(()) }
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        let stops = state.count(DiskOperation::Remove, name)?;
        if !state.names.contains_key(&*self.full(name)) {
            return State::error(DiskOperation::Remove, name, Cause::NotFound);
        }
        state.change_names(NameChange::Remove(self.full(name).into_owned()));
        if stops { State::error(DiskOperation::Remove, name, Cause::Stopped) } else { Ok(()) }
    }

    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let state = self.state();
        state.check(DiskOperation::List, "the directory")?;
        Ok(state.names.keys().filter_map(|name| self.local(name)).map(str::to_owned).collect())
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        let mut state = self.state();
        let name = "the directory";
        if state.count(DiskOperation::SyncDirectory, name)? {
            return State::error(DiskOperation::SyncDirectory, name, Cause::Stopped);
        }
        let State { name_changes, durable_names, .. } = &mut *state;
        for change in name_changes.extract_if(.., |change| change.is_durable_with(&self.path)) {
            apply(durable_names, &change);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryDisk;
    use crate::disk::{Cause, Disk};
    use std::collections::BTreeSet;
    use syros_types::Prng;

    #[test]
    fn directories_are_apart_and_change_in_order() {
        let disk = MemoryDisk::new();
        let (mut old, mut new) = (disk.directory("log"), disk.directory("new"));
        for (directory, bytes) in [(&mut old, b"old"), (&mut new, b"new")] {
            let mut file = directory.create("file").unwrap();
            directory.append(&mut file, bytes).unwrap();
            directory.sync(&mut file).unwrap();
        }
        assert_eq!(
            (old.list().unwrap(), disk.clone().list().unwrap()),
            (vec!["file".to_owned()], Vec::new())
        );
        old.sync_directory().unwrap();
        assert_eq!(outcomes(&new, "file").len(), 2, "only the old directory is synced");
        new.sync_directory().unwrap();
        disk.rename_directory("log", "damaged").unwrap();
        disk.rename_directory("new", "log").unwrap();
        let outcomes = outcomes(&old, "file");
        let expected = [Some(b"old".to_vec()), None, Some(b"new".to_vec())];
        assert_eq!(outcomes, BTreeSet::from(expected));
        assert_eq!(disk.directory("damaged").contents("file"), Some(b"old".to_vec()));
        disk.clone().sync_directory().unwrap();
        assert_eq!(self::outcomes(&old, "file"), BTreeSet::from([Some(b"new".to_vec())]));
        disk.remove_directory("damaged").unwrap();
        assert_eq!(disk.directory("damaged").contents("file"), None);
    }

    /// All contents of file `name` that crashes of this disk leave.
    fn outcomes(disk: &MemoryDisk, name: &str) -> BTreeSet<Option<Vec<u8>>> {
        (0..500)
            .map(|seed| {
                let disk = disk.duplicate();
                disk.crash(&mut Prng::new(seed));
                disk.contents(name)
            })
            .collect()
    }

    fn some(outcomes: &[&[u8]]) -> BTreeSet<Option<Vec<u8>>> {
        outcomes.iter().map(|bytes| Some(bytes.to_vec())).collect()
    }

    #[test]
    fn unsynced_bytes_are_torn_and_synced_ones_stay() {
        let mut disk = MemoryDisk::new();
        let mut file = disk.create("f").unwrap();
        disk.append(&mut file, b"ab").unwrap();
        disk.sync(&mut file).unwrap();
        assert_eq!(outcomes(&disk, "f").len(), 2, "the name may be lost, the content not");
        disk.sync_directory().unwrap();
        assert_eq!(outcomes(&disk, "f"), some(&[b"ab"]));
        disk.append(&mut file, b"cd").unwrap();
        let torn = some(&[b"ab", b"abc", b"abcd", b"ab\0", b"ab\0\0", b"abc\0"]);
        assert_eq!(outcomes(&disk, "f"), torn);
    }

    #[test]
    fn what_is_filled_in_is_lost_from_some_byte_on_or_by_sectors() {
        let mut disk = MemoryDisk::new();
        disk.replace("f", &[0; 1100]);
        let mut file = disk.open("f").unwrap();
        disk.fill(&mut file, 10, &[b"ab"]).unwrap();
        disk.sync(&mut file).unwrap();
        disk.fill(&mut file, 12, &[&[1; 1000], &[2; 20]]).unwrap();
        let outcomes = outcomes(&disk, "f").into_iter().map(Option::unwrap);
        let mut sectors = BTreeSet::new();
        for bytes in outcomes {
            assert!(bytes.len() == 1100 && bytes.starts_with(b"\0\0\0\0\0\0\0\0\0\0ab"));
            assert!(bytes[1032..].iter().all(|byte| *byte == 0));
            sectors.insert([bytes[12], bytes[511], bytes[512], bytes[1023], bytes[1024], bytes[1031]]);
        }
        // Both ends of the part of each sector, present or not: prefixes and whole sectors.
        let whole = |bytes: &[u8; 6]| bytes.chunks(2).all(|ends| (ends[0] == 0) == (ends[1] == 0));
        assert_eq!(sectors.iter().filter(|bytes| whole(bytes)).count(), 8);
        assert!(sectors.contains(&[1, 1, 1, 0, 0, 0]), "torn within a sector");
        disk.sync(&mut file).unwrap();
        let kept = self::outcomes(&disk, "f");
        assert_eq!(kept.len(), 1);
        assert!(kept.first().unwrap().as_ref().unwrap()[12..1032].iter().all(|byte| *byte > 0));
    }

    #[test]
    #[should_panic(expected = "f holds something at byte 3")]
    fn only_zeros_are_filled_in() {
        let mut disk = MemoryDisk::new();
        disk.replace("f", &[0, 0, 0, 0, 0, 1]);
        let mut file = disk.open("f").unwrap();
        let _ = disk.fill(&mut file, 3, &[b"ab"]);
    }

    #[test]
    fn truncation_needs_a_sync() {
        let mut disk = MemoryDisk::new();
        disk.replace("f", b"abcd");
        let mut file = disk.open("f").unwrap();
        disk.truncate(&mut file, 3).unwrap();
        disk.truncate(&mut file, 2).unwrap();
        assert_eq!(outcomes(&disk, "f"), some(&[b"ab", b"abcd"]));
        disk.append(&mut file, b"x").unwrap();
        assert_eq!(outcomes(&disk, "f"), some(&[b"ab", b"abx", b"ab\0", b"abcd"]));
        disk.sync(&mut file).unwrap();
        assert_eq!(outcomes(&disk, "f"), some(&[b"abx"]));
    }

    #[test]
    fn directory_changes_survive_each_on_its_own() {
        let mut disk = MemoryDisk::new();
        disk.replace("a", b"a");
        disk.replace("b", b"b");
        disk.rename("a", "b").unwrap();
        assert_eq!(outcomes(&disk, "b"), some(&[b"a", b"b"]), "a rename is atomic");
        disk.sync_directory().unwrap();
        assert_eq!(outcomes(&disk, "b"), some(&[b"a"]));
        disk.remove("b").unwrap();
        assert_eq!(outcomes(&disk, "b"), BTreeSet::from([None, Some(b"a".to_vec())]));
    }

    #[test]
    fn a_failed_sync_is_not_made_good() {
        let mut disk = MemoryDisk::new();
        disk.replace("f", b"ab");
        let mut file = disk.open("f").unwrap();
        disk.append(&mut file, b"c").unwrap();
        disk.fail_next_sync(Cause::Io);
        assert_eq!(disk.sync(&mut file).unwrap_err().cause, Cause::Io);
        disk.sync(&mut file).unwrap();
        assert!(outcomes(&disk, "f").contains(&Some(b"ab".to_vec())));
        assert_eq!(disk.contents("f").unwrap(), b"abc", "what the cache shows");
        disk.sync_and_evict(&mut file).unwrap();
        assert_eq!(disk.contents("f").unwrap(), b"ab", "what is there");
    }

    #[test]
    fn stops_at_a_chosen_operation() {
        let mut disk = MemoryDisk::new();
        disk.replace("f", b"");
        let mut file = disk.open("f").unwrap();
        disk.stop_at(disk.operations() + 2);
        disk.append(&mut file, b"a").unwrap();
        assert_eq!(disk.sync(&mut file).unwrap_err().cause, Cause::Stopped);
        assert_eq!(disk.list().unwrap_err().cause, Cause::Stopped);
        assert_eq!(outcomes(&disk, "f"), some(&[b"", b"a", b"\0"]));
        disk.crash(&mut Prng::new(1));
        assert_eq!(disk.append(&mut file, b"a").unwrap_err().cause, Cause::Stopped, "the old process");
        disk.open("f").unwrap();
    }

    #[test]
    fn a_full_disk_takes_what_fits() {
        let mut disk = MemoryDisk::new();
        disk.replace("f", b"abc");
        disk.set_capacity(Some(5));
        let mut file = disk.open("f").unwrap();
        assert_eq!(disk.append(&mut file, b"def").unwrap_err().cause, Cause::Full);
        assert_eq!(disk.contents("f").unwrap(), b"abcde");
        assert!(disk.corrupt("f", 4, 1) && !disk.corrupt("f", 5, 1) && !disk.corrupt("g", 0, 1));
        assert_eq!(disk.contents("f").unwrap(), b"abcdd");
    }
}
