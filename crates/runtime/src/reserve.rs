//! A reserve of space on the disk of a node, for when the disk fills.
//!
//! A file of a fixed length stands in the data directory. When the file system has no room for a record or a new file,
//! that file gives up a piece of its length, and the write is tried again: so views, deletions and restarts find room on a
//! disk that others have filled, and each writer gets no more than a piece. While less than the reserve is free beside
//! it, or the reserve is gone, the disk counts as short: the replica refuses what would make the state grow. When space
//! returns, the reserve is made anew, and then the replica takes updates again.
//!
//! A thread looks at the file system now and then ([`Reserve::look`]), and the log tells how much it takes meanwhile
//! ([`SpaceKeeper::on_growth`]): whatever a disk can take between two looks, the reserve is not used up before anybody
//! has noticed.
//!
//! A file system may also run out of inodes: then no file can be made, however many bytes are free, and giving up the
//! reserve helps nobody. That counts as short, too.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, OFlags, StatVfs, fallocate, fstatvfs, statvfs};
use rustix::io::Errno;
use syros_wal::{OpenDirectory, SpaceKeeper};

/// Name of the file that is kept.
pub(crate) const RESERVE_FILE: &str = "reserve";

/// The reserve is at most this part of the file system: small ones are there for tests.
const PART_OF_FILE_SYSTEM: u64 = 16;

/// The log may not have the last part of the reserve: views are noted in it, and a node whose disk is full starts with it.
const PART_NOT_FOR_LOG: u64 = 4;

/// The reserve is given up in pieces of this part of it, but of no fewer bytes than the log makes room for at once.
const PART_OF_RESERVE: u64 = 16;
const PIECE_BYTES_MIN: u64 = 256 << 10;

/// The part that is not for the log is given up in pieces of so many bytes: enough for the files that a start writes.
const LAST_PIECE_BYTES: u64 = 64 << 10;

/// While fewer inodes are free than this, or than this part of all, the disk counts as short: a node makes files for the
/// next piece of its log, for snapshots and for its view.
const INODES: u64 = 64;
const PART_OF_INODES: u64 = 16;

/// What there is of a reserve.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The file has this length, in bytes; 0 if it is not there.
    Kept(u64),
    /// It cannot be made, whatever space there is.
    Impossible,
}

/// The reserve of a data directory.
#[derive(Debug)]
pub(crate) struct Reserve {
    directory: OpenDirectory,
    /// Its length, in bytes.
    bytes: u64,
    /// Held while the file system is looked at, and while the file is made or shortened.
    state: Mutex<State>,
    /// Bytes that were free at the last look, less what the log took since.
    free: AtomicU64,
    is_short: AtomicBool,
    /// Inodes below which the disk is short of them; 0 where the file system has no limit.
    inodes: u64,
    /// Inodes that were free at the last look.
    free_inodes: AtomicU64,
    lacks_inodes: AtomicBool,
}

impl Reserve {
    /// The reserve of a directory that exists; `bytes` of it, or less where the file system is small.
    pub(crate) fn new(directory: OpenDirectory, bytes: u64) -> io::Result<Self> {
        let found = space_of(&directory)?;
        let bytes = bytes.min(found.total / PART_OF_FILE_SYSTEM);
        let file = directory.open_file(RESERVE_FILE, OFlags::RDONLY).and_then(|file| file.metadata());
        let kept = file.map_or(0, |file| file.len().min(bytes));
        Ok(Self {
            directory,
            bytes,
            state: Mutex::new(State::Kept(kept)),
            free: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            inodes: INODES.min(found.total_inodes / PART_OF_INODES),
            free_inodes: AtomicU64::new(found.free_inodes),
            lacks_inodes: AtomicBool::new(false),
        })
    }

    /// The file, for messages.
    fn path(&self) -> PathBuf {
        self.directory.path().join(RESERVE_FILE)
    }

    /// Removes what an earlier process may have left of it.
    pub(crate) fn remove(&self) {
        let _ = self.directory.remove_file(RESERVE_FILE);
    }

    /// Bytes free beside the reserve: at the last look, less what the log took since.
    pub(crate) fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    /// Its length in bytes, and so many have to be free beside it.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if what would make the state grow should be refused.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire)
    }

    /// Inodes free at the last look, and so many have to be; 0 where the file system has no limit.
    pub(crate) fn inodes(&self) -> (u64, u64) {
        (self.free_inodes.load(Ordering::Relaxed), self.inodes)
    }

    /// True if the disk is short because too few inodes are free.
    pub(crate) fn lacks_inodes(&self) -> bool {
        self.lacks_inodes.load(Ordering::Acquire)
    }

    /// The directory it is in.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Looks at the file system and makes the reserve if there is none and room for it. True if
    /// [`Reserve::is_short`] has changed.
    pub(crate) fn look(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever cannot be asked says nothing.
        let Ok(found) = space_of(&self.directory) else { return false };
        let mut free = found.free;
        let was_short = self.is_short.load(Ordering::Acquire);
        // More than it takes to be short again, so that it does not change with every record.
        let needed = if was_short { self.bytes + self.bytes / 4 } else { self.bytes };
        if let State::Kept(kept) = *state
            && kept < self.bytes
            && free >= self.bytes - kept + needed
        {
            match self.make() {
                Ok(()) => {
                    *state = State::Kept(self.bytes);
                    free -= self.bytes - kept;
                }
                // Others took the space first.
                Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {}
                Err(error) => {
                    tracing::warn!(file = %self.path().display(), error = %error, "this node cannot keep a reserve on its disk");
                    *state = State::Impossible;
                }
            }
        }
        let is_kept = matches!(*state, State::Impossible) || *state == State::Kept(self.bytes);
        let lacked_inodes = self.lacks_inodes.load(Ordering::Acquire);
        let needed_inodes = if lacked_inodes { self.inodes + self.inodes.div_ceil(4) } else { self.inodes };
        let lacks_inodes = found.free_inodes < needed_inodes;
        let is_short = !is_kept || free < needed || lacks_inodes;
        self.free.store(free, Ordering::Relaxed);
        self.free_inodes.store(found.free_inodes, Ordering::Relaxed);
        self.lacks_inodes.store(lacks_inodes, Ordering::Release);
        self.is_short.store(is_short, Ordering::Release);
        is_short != was_short
    }

    /// Gives up a piece of the reserve, because there is no room for something that has to be written, and leaves so many
    /// bytes of it. False if no more is left, or if it is not bytes that are missing.
    fn give_up(&self, floor: u64) -> bool {
        if self.inodes > 0 && space_of(&self.directory).is_ok_and(|found| found.is_out_of_inodes()) {
            self.free_inodes.store(0, Ordering::Relaxed);
            self.lacks_inodes.store(true, Ordering::Release);
            self.is_short.store(true, Ordering::Release);
            return false;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Kept(kept) = *state else { return false };
        if kept <= floor {
            return false;
        }
        let log_floor = self.bytes / PART_NOT_FOR_LOG;
        // What is not for the log has to last: the log takes what is free, and views and the names of a node take little.
        let piece = match kept <= log_floor {
            true => LAST_PIECE_BYTES,
            false => (self.bytes / PART_OF_RESERVE).max(PIECE_BYTES_MIN).min(kept - log_floor),
        };
        let left = kept.saturating_sub(piece).max(floor);
        *state = State::Kept(left);
        self.is_short.store(true, Ordering::Release);
        // Some file systems have the space again only when they have noted that.
        let shorten = |file: File| file.set_len(left).and_then(|()| file.sync_all());
        self.directory.open_file(RESERVE_FILE, OFlags::WRONLY).and_then(shorten).is_ok()
    }

    fn make(&self) -> io::Result<()> {
        let opened = self.directory.open_file(RESERVE_FILE, OFlags::WRONLY | OFlags::CREATE);
        opened.and_then(|mut file| {
            match fallocate(&file, FallocateFlags::empty(), 0, self.bytes) {
                // This file system makes room only for what is written.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(&mut file, self.bytes)?,
                result => result?,
            }
            file.sync_all()
        })
    }
}

impl SpaceKeeper for Reserve {
    fn on_growth(&self, bytes: u64) {
        let taken = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| Some(free.saturating_sub(bytes)));
        let free = taken.unwrap_or_else(|free| free).saturating_sub(bytes);
        if free >= self.bytes || self.is_short() {
            return;
        }
        // Others may have taken or given space since the last look, and another may go on just now.
        let _state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(found) = space_of(&self.directory) else { return };
        self.free.store(found.free, Ordering::Relaxed);
        if found.free < self.bytes {
            self.is_short.store(true, Ordering::Release);
        }
    }

    fn make_room(&self) -> bool {
        self.give_up(0)
    }
}

/// The space of the log of a node.
#[derive(Debug)]
pub(crate) struct LogSpace(pub(crate) Arc<Reserve>);

impl SpaceKeeper for LogSpace {
    fn on_growth(&self, bytes: u64) {
        self.0.on_growth(bytes);
    }

    fn make_room(&self) -> bool {
        self.0.give_up(self.0.bytes / PART_NOT_FOR_LOG)
    }
}

fn write_zeros(file: &mut File, bytes: u64) -> io::Result<()> {
    const PIECE_BYTES: u64 = 1 << 20;
    let piece = vec![0; PIECE_BYTES as usize];
    let mut left = bytes;
    while left > 0 {
        let length = left.min(PIECE_BYTES);
        file.write_all(&piece[..length as usize])?;
        left -= length;
    }
    Ok(())
}

struct Space {
    free: u64,
    total: u64,
    free_inodes: u64,
    /// 0 where the file system makes as many as are wanted.
    total_inodes: u64,
}

impl Space {
    const fn new(found: &StatVfs) -> Self {
        Self {
            free: found.f_bavail.saturating_mul(found.f_frsize),
            total: found.f_blocks.saturating_mul(found.f_frsize),
            free_inodes: found.f_favail,
            total_inodes: found.f_files,
        }
    }

    /// True if no file can be made although there are bytes for it.
    const fn is_out_of_inodes(&self) -> bool {
        self.total_inodes > 0 && self.free_inodes == 0 && self.free >= PIECE_BYTES_MIN
    }
}

/// The space of the file system of a directory, in bytes, as far as this process may have it.
fn space_of(directory: &OpenDirectory) -> io::Result<Space> {
    Ok(Space::new(&fstatvfs(directory)?))
}

/// Gives up the reserve that an earlier process has left, if there is no space for what a start writes.
pub(crate) fn make_room_to_start(directory: &Path) {
    /// Locks, and a segment of the log.
    const START_BYTES: u64 = 2 << 20;
    if statvfs(directory).is_ok_and(|found| Space::new(&found).free < START_BYTES) {
        let _ = fs::remove_file(directory.join(RESERVE_FILE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_made_given_up_in_pieces_and_made_again() {
        let directory = std::env::temp_dir().join(format!("syros-reserve-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let open = || OpenDirectory::open(&directory).unwrap();
        let reserve = Reserve::new(open(), 1 << 20).unwrap();
        assert!(!reserve.make_room(), "there is none yet");
        assert!(!reserve.look() && !reserve.is_short(), "there is room");
        assert_eq!(fs::metadata(reserve.path()).unwrap().len(), reserve.bytes());
        let length = || fs::metadata(reserve.path()).unwrap().len();
        for left in [3, 2, 1] {
            assert!(reserve.make_room() && reserve.is_short());
            assert_eq!(length(), left * PIECE_BYTES_MIN, "whoever fills the disk gets a piece, not all");
        }
        for left in [3, 2, 1, 0] {
            assert!(reserve.make_room() && reserve.is_short());
            assert_eq!(length(), left * LAST_PIECE_BYTES, "what is not for the log lasts for some starts");
        }
        assert!(!reserve.make_room(), "nothing is left");
        assert!(reserve.look() && !reserve.is_short() && length() == 1 << 20);
        // What the log takes is not left to the next look.
        reserve.on_growth(1);
        assert!(!reserve.is_short(), "as much as before is free");
        reserve.free.store(reserve.bytes(), Ordering::Relaxed);
        reserve.on_growth(1);
        assert!(!reserve.is_short() && reserve.free() > reserve.bytes(), "looked at anew");
        let mut tight = Reserve::new(open(), 1 << 20).unwrap();
        tight.bytes = u64::MAX;
        tight.on_growth(1);
        assert!(tight.is_short(), "no disk has so much");
        // What an earlier process has left counts.
        let again = Reserve::new(open(), 1 << 20).unwrap();
        assert!(again.make_room());
        fs::remove_dir_all(&directory).unwrap();
    }
}
