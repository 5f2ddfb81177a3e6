//! The real thing: a locked directory. With [`OpenDirectory`], the only code of this crate that touches the file system.

use crate::disk::{Cause, Disk, DiskError, DiskOperation};
use crate::format::RETAINED_BYTES_MAX;
use crate::open_directory::OpenDirectory;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::iter;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that is locked. It holds the process id of the owner, for people; the lock is the kernel's
/// and vanishes with the process, so that a left-over file never has to be removed by hand.
pub const LOCK_FILE: &str = "lock";

/// A directory that no other process, and nobody else in this one, has open as a `FileDisk`. All operations act on the
/// directory that is locked, even when another one has taken its place at its path (see [`OpenDirectory`]).
#[derive(Debug)]
pub struct FileDisk {
    directory: OpenDirectory,
    /// Holds the lock until it is dropped.
    lock: File,
    space: Option<Arc<dyn SpaceKeeper>>,
}

/// Who keeps account of the space of the file system that a [`FileDisk`] is in.
pub trait SpaceKeeper: fmt::Debug + Send + Sync {
    /// So many bytes were appended to a file: a fast disk would fill up between two looks at it.
    fn on_growth(&self, bytes: u64);

    /// Makes room, because the file system has none; false if that is not possible, or not for this.
    fn make_room(&self) -> bool;
}

/// An open file of a [`FileDisk`].
#[derive(Debug)]
pub struct OpenFile {
    name: String,
    file: File,
    /// Where it ends: nobody else changes it.
    length: u64,
    direct: Direct,
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub enum FileDiskError {
    /// Somebody else uses it.
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who, if the lock file says.
        process: Option<u32>,
    },
    /// The operating system refuses.
    Io {
        /// The directory or file concerned.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for FileDiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, process: Some(process) } => {
                write!(f, "data directory {} is in use by process {process}", path.display())
            }
            Self::Locked { path, process: None } => {
                write!(f, "data directory {} is in use by another process", path.display())
            }
            Self::Io { path, error } => write!(f, "cannot use {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FileDiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Locked { .. } => None,
            Self::Io { error, .. } => Some(error),
        }
    }
}

impl FileDisk {
    /// Opens and locks a directory; creates it if its parent exists.
    ///
    /// # Errors
    /// [`FileDiskError::Locked`] while another `FileDisk` has it, in this process or any other.
    pub fn open(path: &Path) -> Result<Self, FileDiskError> {
        let failed = |path: &Path, error| FileDiskError::Io { path: path.to_path_buf(), error };
        match fs::create_dir(path) {
            Ok(()) => {
                // A relative path of one component has the empty parent, which means ".".
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new("."));
                File::open(parent).and_then(|file| file.sync_all()).map_err(|error| failed(parent, error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(path, error)),
        }
        Self::lock(OpenDirectory::open(path).map_err(|error| failed(path, error))?)
    }

    /// Opens and locks the directory `name` of a directory; creates it if it is not there.
    ///
    /// # Errors
    /// As for [`FileDisk::open`].
    pub fn open_in(parent: &OpenDirectory, name: &str) -> Result<Self, FileDiskError> {
        let opened = parent.create_directory(name).and_then(|_| parent.open_directory(name));
        let directory =
            opened.map_err(|error| FileDiskError::Io { path: parent.path().join(name), error })?;
        Self::lock(directory)
    }

    fn lock(directory: OpenDirectory) -> Result<Self, FileDiskError> {
        let failed = |error| FileDiskError::Io { path: directory.path().join(LOCK_FILE), error };
        let mut lock = directory.open_file(LOCK_FILE, OFlags::RDWR | OFlags::CREATE).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(locked(directory.path(), lock)),
            Err(error) => return Err(failed(error.into())),
        }
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(Self { directory, lock, space: None })
    }

    /// From now on, `space` hears of what is appended. When the file system has no room for a file or for what is appended,
    /// it is asked for some and, if it says that there may be some, the operation is tried again.
    #[must_use]
    pub fn with_space_keeper(mut self, space: Arc<dyn SpaceKeeper>) -> Self {
        self.space = Some(space);
        self
    }

    /// Tries an operation, and again as long as room can be made for it.
    fn with_room<T>(&self, mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match (operation(), &self.space) {
                (Err(error), Some(space)) if is_full(&error) && space.make_room() => {}
                (result, _) => return result,
            }
        }
    }

    /// Where the directory was when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory that is locked.
    #[must_use]
    pub const fn directory(&self) -> &OpenDirectory {
        &self.directory
    }

    /// What the system says of the file that is locked: it is the same file for as long as this value lives.
    ///
    /// # Errors
    /// What the system says.
    pub fn lock_metadata(&self) -> io::Result<fs::Metadata> {
        self.lock.metadata()
    }

    fn directory_error(&self, operation: DiskOperation, error: &io::Error) -> DiskError {
        disk_error(operation, &self.path().display().to_string(), error)
    }
}

/// Refuses names that lead out of a directory or to its lock.
fn check_name(operation: DiskOperation, name: &str) -> Result<(), DiskError> {
    if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | ".." | LOCK_FILE) {
        return Err(DiskError { operation, file: name.to_owned(), cause: Cause::Name });
    }
    Ok(())
}

/// All files of a directory but the lock, sorted.
fn list(directory: &OpenDirectory) -> io::Result<Vec<String>> {
    let mut names = directory.file_names()?;
    names.retain(|name| name != LOCK_FILE);
    Ok(names)
}

/// The error about a directory whose lock file `lock` somebody else has locked.
fn locked(path: &Path, lock: File) -> FileDiskError {
    // A process id has at most 10 digits; whatever else is there is not worth reading.
    let mut text = String::new();
    let read = lock.take(16).read_to_string(&mut text);
    let process = read.ok().and_then(|_| text.trim().parse().ok());
    FileDiskError::Locked { path: path.to_path_buf(), process }
}

/// Whether somebody has the directory locked. Creates nothing and writes nothing. It does hold a shared
/// lock for an instant, and whoever wants to lock the directory in that instant is refused.
///
/// # Errors
/// [`FileDiskError::Locked`] if somebody has it; [`FileDiskError::Io`] if that cannot be known.
pub fn check_unlocked(path: &Path) -> Result<(), FileDiskError> {
    let lock_path = path.join(LOCK_FILE);
    let failed = |error| FileDiskError::Io { path: lock_path.clone(), error };
    let lock = match File::open(&lock_path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(locked(path, lock)),
        Err(error) => Err(failed(error.into())),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn disk_error(operation: DiskOperation, name: &str, error: &io::Error) -> DiskError {
    let cause = match error.kind() {
        io::ErrorKind::NotFound => Cause::NotFound,
        _ if is_full(error) => Cause::Full,
        io::ErrorKind::UnexpectedEof => Cause::ShortRead,
        _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Cause::Io,
        _ => Cause::Other(error.to_string()),
    };
    DiskError { operation, file: name.to_owned(), cause }
}

/// The way past the system's cache, for what is filled in: a sync then finds it on the device already, and
/// only has the device keep it (docs/BENCHMARKS.md). Whole blocks have to be written, from memory at a
/// multiple of their size.
#[derive(Debug)]
enum Direct {
    /// Nothing was filled in so far.
    Untried,
    /// This file system has no such way, or not for this file.
    Unavailable,
    /// There is one.
    Available(DirectFile),
}

#[derive(Debug)]
struct DirectFile {
    file: File,
    /// Where the next bytes are expected.
    offset: u64,
    /// The bytes of the block of `offset` that are before it.
    begun: Vec<u8>,
    /// Room for blocks at any place that is a multiple of their size.
    buffer: Vec<u8>,
}

/// What is written past the cache comes in multiples of this many bytes, as file systems and devices of
/// today want it.
const BLOCK_BYTES: usize = 4096;

impl DirectFile {
    /// A second way to a file that is open.
    fn open(directory: &OpenDirectory, name: &str, file: &File) -> io::Result<Self> {
        let direct = open_direct(directory, name)?;
        let (this, that) = (direct.metadata()?, file.metadata()?);
        if (this.dev(), this.ino()) != (that.dev(), that.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { file: direct, offset: 0, begun: Vec::new(), buffer: Vec::new() })
    }

    /// Makes `offset` the place where the next bytes are expected.
    fn seek(&mut self, file: &File, offset: u64) -> io::Result<()> {
        if self.offset != offset {
            let begun = (offset % BLOCK_BYTES as u64) as usize;
            self.begun.resize(begun, 0);
            file.read_exact_at(&mut self.begun, offset - begun as u64)?;
            self.offset = offset;
        }
        Ok(())
    }

    /// Writes what comes next, and zeros to the end of its last block.
    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let start = self.offset - self.begun.len() as u64;
        let content = self.begun.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        let blocks = content.next_multiple_of(BLOCK_BYTES);
        if self.buffer.len() < blocks + BLOCK_BYTES {
            self.buffer.resize(blocks + BLOCK_BYTES, 0);
        }
        let skipped = self.buffer.as_ptr().align_offset(BLOCK_BYTES);
        let buffer = &mut self.buffer[skipped..skipped + blocks];
        let mut at = 0;
        for part in iter::once(&self.begun.as_slice()).chain(parts) {
            buffer[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        buffer[at..].fill(0);
        self.file.write_all_at(buffer, start)?;
        self.offset = start + content as u64;
        self.begun.clear();
        self.begun.extend_from_slice(&buffer[content / BLOCK_BYTES * BLOCK_BYTES..content]);
        if self.buffer.len() > RETAINED_BYTES_MAX {
            self.buffer = Vec::new();
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn open_direct(directory: &OpenDirectory, name: &str) -> io::Result<File> {
    directory.open_file(name, OFlags::WRONLY | OFlags::DIRECT)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_directory: &OpenDirectory, _name: &str) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

impl OpenFile {
    fn new(name: &str, file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { name: name.to_owned(), file, length, direct: Direct::Untried })
    }

    /// Writes past the cache, to this file of a directory; false if that is not possible, and then nothing was
    /// written.
    fn fill_directly(&mut self, directory: &OpenDirectory, offset: u64, parts: &[&[u8]]) -> io::Result<bool> {
        if matches!(self.direct, Direct::Untried) {
            let opened = DirectFile::open(directory, &self.name, &self.file);
            self.direct = opened.map_or(Direct::Unavailable, Direct::Available);
        }
        let Direct::Available(direct) = &mut self.direct else { return Ok(false) };
        let bytes = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if (offset + bytes).next_multiple_of(BLOCK_BYTES as u64) > self.length {
            // The file's last block is no whole one.
            return Ok(false);
        }
        direct.seek(&self.file, offset)?;
        match direct.write(parts) {
            Ok(()) => Ok(true),
            // This system or device wants larger blocks.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                self.direct = Direct::Unavailable;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn failed(&self, operation: DiskOperation) -> impl Fn(io::Error) -> DiskError {
        move |error| disk_error(operation, &self.name, &error)
    }
}

/// Has later reads of a file come from the device, as far as it was synced. Best effort: a file system
/// without a page cache to drop has nothing stale to show either.
fn drop_from_caches(file: &OpenFile) {
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::fadvise(&file.file, 0, None, rustix::fs::Advice::DontNeed);
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

impl Disk for FileDisk {
    type File = OpenFile;

    fn create(&mut self, name: &str) -> Result<OpenFile, DiskError> {
        check_name(DiskOperation::Create, name)?;
        // Whoever still reads an old one of that name goes on reading that.
        match self.directory.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(disk_error(DiskOperation::Create, name, &error));
            }
            _ => {}
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let opened = self.with_room(|| self.directory.open_file(name, flags));
        opened
            .and_then(|file| OpenFile::new(name, file))
            .map_err(|error| disk_error(DiskOperation::Create, name, &error))
    }

    fn open(&mut self, name: &str) -> Result<OpenFile, DiskError> {
        check_name(DiskOperation::Open, name)?;
        let opened = self.directory.open_file(name, OFlags::RDWR);
        opened
            .and_then(|file| OpenFile::new(name, file))
            .map_err(|error| disk_error(DiskOperation::Open, name, &error))
    }

    fn append(&mut self, file: &mut OpenFile, bytes: &[u8]) -> Result<(), DiskError> {
        let written = self.with_room(|| file.file.write_all_at(bytes, file.length));
        if let Err(error) = written {
            // Where the disk is full, what did not fit keeps no space that others need.
            let _ = file.file.set_len(file.length);
            return Err(file.failed(DiskOperation::Append)(error));
        }
        file.length += bytes.len() as u64;
        if let Some(space) = &self.space {
            space.on_growth(bytes.len() as u64);
        }
        Ok(())
    }

    fn fill(&mut self, file: &mut OpenFile, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let filled = file
            .fill_directly(&self.directory, offset, parts)
            .and_then(|filled| if filled { Ok(()) } else { file.file.write_all_at(&parts.concat(), offset) });
        filled.map_err(file.failed(DiskOperation::Fill))
    }

    fn read(&mut self, file: &OpenFile, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        file.file.read_exact_at(buffer, offset).map_err(file.failed(DiskOperation::Read))
    }

    fn length(&mut self, file: &OpenFile) -> Result<u64, DiskError> {
        Ok(file.file.metadata().map_err(file.failed(DiskOperation::Length))?.len())
    }

    fn truncate(&mut self, file: &mut OpenFile, length: u64) -> Result<(), DiskError> {
        file.file.set_len(length).map_err(file.failed(DiskOperation::Truncate))?;
        (file.length, file.direct) = (length, Direct::Untried);
        Ok(())
    }

    fn sync(&mut self, file: &mut OpenFile) -> Result<(), DiskError> {
        // fdatasync: it includes the length, which is all the metadata that a reader needs.
        file.file.sync_data().map_err(file.failed(DiskOperation::Sync))
    }

    fn sync_and_evict(&mut self, file: &mut OpenFile) -> Result<(), DiskError> {
        self.sync(file)?;
        drop_from_caches(file);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(DiskOperation::Rename, to)?;
        check_name(DiskOperation::Rename, from)?;
        self.directory.rename(from, to).map_err(|error| disk_error(DiskOperation::Rename, from, &error))
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        check_name(DiskOperation::Remove, name)?;
        self.directory.remove_file(name).map_err(|error| disk_error(DiskOperation::Remove, name, &error))
    }

    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        list(&self.directory).map_err(|error| self.directory_error(DiskOperation::List, &error))
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        self.directory.sync().map_err(|error| self.directory_error(DiskOperation::SyncDirectory, &error))
    }
}

/// A directory that is only looked at: nothing is locked, created or changed, and whoever uses it is not
/// disturbed. Every call that would change something fails; [`Disk::sync_and_evict`] syncs nothing, and only has
/// what others synced read from the device.
#[derive(Debug)]
pub struct ReadOnlyDisk(Place);

/// Where a [`ReadOnlyDisk`] looks.
#[derive(Debug)]
enum Place {
    Path(PathBuf),
    Directory(OpenDirectory),
}

/// An open file of a [`ReadOnlyDisk`].
#[derive(Debug)]
pub struct ReadOnlyFile(OpenFile);

impl ReadOnlyDisk {
    /// Looks at the directory `path`. Whether there is one shows when it is used.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(Place::Path(path.to_path_buf()))
    }

    /// Looks at a directory that is held open, wherever its path leads meanwhile.
    #[must_use]
    pub const fn of(directory: OpenDirectory) -> Self {
        Self(Place::Directory(directory))
    }

    fn path(&self) -> &Path {
        match &self.0 {
            Place::Path(path) => path,
            Place::Directory(directory) => directory.path(),
        }
    }

    fn directory(&self) -> io::Result<OpenDirectory> {
        match &self.0 {
            Place::Path(path) => OpenDirectory::open(path),
            Place::Directory(directory) => Ok(directory.clone()),
        }
    }
}

fn read_only<T>(operation: DiskOperation, name: &str) -> Result<T, DiskError> {
    let cause = Cause::Other("the directory is only looked at".to_owned());
    Err(DiskError { operation, file: name.to_owned(), cause })
}

impl Disk for ReadOnlyDisk {
    type File = ReadOnlyFile;

    fn create(&mut self, name: &str) -> Result<ReadOnlyFile, DiskError> {
        read_only(DiskOperation::Create, name)
    }

    fn open(&mut self, name: &str) -> Result<ReadOnlyFile, DiskError> {
        check_name(DiskOperation::Open, name)?;
        let failed = |error: io::Error| disk_error(DiskOperation::Open, name, &error);
        // Opening a pipe would otherwise wait for somebody to write to it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = self.directory().and_then(|directory| directory.open_file(name, flags)).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            let cause = Cause::Other("not a regular file".to_owned());
            return Err(DiskError { operation: DiskOperation::Open, file: name.to_owned(), cause });
        }
        OpenFile::new(name, file).map(ReadOnlyFile).map_err(failed)
    }

    fn append(&mut self, file: &mut ReadOnlyFile, _bytes: &[u8]) -> Result<(), DiskError> {
        read_only(DiskOperation::Append, &file.0.name)
    }

    fn fill(&mut self, file: &mut ReadOnlyFile, _offset: u64, _parts: &[&[u8]]) -> Result<(), DiskError> {
        read_only(DiskOperation::Fill, &file.0.name)
    }

    fn read(&mut self, file: &ReadOnlyFile, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        file.0.file.read_exact_at(buffer, offset).map_err(file.0.failed(DiskOperation::Read))
    }

    fn length(&mut self, file: &ReadOnlyFile) -> Result<u64, DiskError> {
        Ok(file.0.file.metadata().map_err(file.0.failed(DiskOperation::Length))?.len())
    }

    fn truncate(&mut self, file: &mut ReadOnlyFile, _length: u64) -> Result<(), DiskError> {
        read_only(DiskOperation::Truncate, &file.0.name)
    }

    fn sync(&mut self, file: &mut ReadOnlyFile) -> Result<(), DiskError> {
        read_only(DiskOperation::Sync, &file.0.name)
    }

    fn sync_and_evict(&mut self, file: &mut ReadOnlyFile) -> Result<(), DiskError> {
        drop_from_caches(&file.0);
        Ok(())
    }

    fn rename(&mut self, from: &str, _to: &str) -> Result<(), DiskError> {
        read_only(DiskOperation::Rename, from)
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        read_only(DiskOperation::Remove, name)
    }

    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let failed =
            |error: io::Error| disk_error(DiskOperation::List, &self.path().display().to_string(), &error);
        self.directory().and_then(|directory| list(&directory)).map_err(failed)
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        read_only(DiskOperation::SyncDirectory, &self.path().display().to_string())
    }
}
