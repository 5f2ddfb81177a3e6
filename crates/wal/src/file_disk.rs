//! The real thing: a locked directory. The only code of this crate that touches the file system.

use crate::disk::{Cause, Disk, DiskError, DiskOperation};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The file that is locked. It holds the process id of the owner, for people; the lock is the kernel's
/// and vanishes with the process, so that a left-over file never has to be removed by hand.
const LOCK_NAME: &str = "lock";

/// A directory that no other process, and nobody else in this one, has open as a `FileDisk`.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    /// The directory itself, to sync it.
    directory: File,
    /// Holds the lock until it is dropped.
    _lock: File,
}

/// An open file of a [`FileDisk`].
#[derive(Debug)]
pub struct OpenFile {
    name: String,
    file: File,
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
        let directory = File::open(path).map_err(|error| failed(path, error))?;
        let lock_path = path.join(LOCK_NAME);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|error| failed(&lock_path, error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(locked(path, lock));
            }
            Err(error) => return Err(failed(&lock_path, error.into())),
        }
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(|error| failed(&lock_path, error))?;
        Ok(Self { path: path.to_path_buf(), directory, _lock: lock })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file of this directory; refuses names that lead out of it or to the lock.
    fn file(&self, operation: DiskOperation, name: &str) -> Result<PathBuf, DiskError> {
        file_in(&self.path, operation, name)
    }

    fn directory_error(&self, operation: DiskOperation, error: &io::Error) -> DiskError {
        disk_error(operation, &self.path.display().to_string(), error)
    }
}

/// The path of a file of a directory; refuses names that lead out of it or to the lock.
fn file_in(path: &Path, operation: DiskOperation, name: &str) -> Result<PathBuf, DiskError> {
    if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | ".." | LOCK_NAME) {
        return Err(DiskError { operation, file: name.to_owned(), cause: Cause::Name });
    }
    Ok(path.join(name))
}

/// All files of a directory but the lock, sorted.
fn list(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let directory = entry.file_type()?.is_dir();
        // A name that is not Unicode is none of ours.
        if let (false, Ok(name)) = (directory, entry.file_name().into_string())
            && name != LOCK_NAME
        {
            names.push(name);
        }
    }
    names.sort_unstable();
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
    let lock_path = path.join(LOCK_NAME);
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

fn disk_error(operation: DiskOperation, name: &str, error: &io::Error) -> DiskError {
    let cause = match error.kind() {
        io::ErrorKind::NotFound => Cause::NotFound,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Cause::Full,
        io::ErrorKind::UnexpectedEof => Cause::ShortRead,
        _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Cause::Io,
        _ => Cause::Other(error.to_string()),
    };
    DiskError { operation, file: name.to_owned(), cause }
}

impl OpenFile {
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
        let path = self.file(DiskOperation::Create, name)?;
        // Append mode and truncation exclude each other, so an old file goes first.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(disk_error(DiskOperation::Create, name, &error));
            }
            _ => {}
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|error| disk_error(DiskOperation::Create, name, &error))?;
        Ok(OpenFile { name: name.to_owned(), file })
    }

    fn open(&mut self, name: &str) -> Result<OpenFile, DiskError> {
        let path = self.file(DiskOperation::Open, name)?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|error| disk_error(DiskOperation::Open, name, &error))?;
        Ok(OpenFile { name: name.to_owned(), file })
    }

    fn append(&mut self, file: &mut OpenFile, bytes: &[u8]) -> Result<(), DiskError> {
        (&file.file).write_all(bytes).map_err(file.failed(DiskOperation::Append))
    }

    fn read(&mut self, file: &OpenFile, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        file.file.read_exact_at(buffer, offset).map_err(file.failed(DiskOperation::Read))
    }

    fn length(&mut self, file: &OpenFile) -> Result<u64, DiskError> {
        Ok(file.file.metadata().map_err(file.failed(DiskOperation::Length))?.len())
    }

    fn truncate(&mut self, file: &mut OpenFile, length: u64) -> Result<(), DiskError> {
        file.file.set_len(length).map_err(file.failed(DiskOperation::Truncate))
    }

    fn sync(&mut self, file: &mut OpenFile) -> Result<(), DiskError> {
        // fdatasync: it includes the length, which is all the metadata that a reader needs.
        file.file.sync_data().map_err(file.failed(DiskOperation::Sync))
    }

    fn settle(&mut self, file: &mut OpenFile) -> Result<(), DiskError> {
        self.sync(file)?;
        drop_from_caches(file);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let target = self.file(DiskOperation::Rename, to)?;
        let source = self.file(DiskOperation::Rename, from)?;
        fs::rename(source, target).map_err(|error| disk_error(DiskOperation::Rename, from, &error))
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        let path = self.file(DiskOperation::Remove, name)?;
        fs::remove_file(path).map_err(|error| disk_error(DiskOperation::Remove, name, &error))
    }

    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        list(&self.path).map_err(|error| self.directory_error(DiskOperation::List, &error))
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        self.directory.sync_all().map_err(|error| self.directory_error(DiskOperation::SyncDirectory, &error))
    }
}

/// A directory that is only looked at: nothing is locked, created or changed, and whoever uses it is not
/// disturbed. Every call that would change something fails; [`Disk::settle`] syncs nothing, and only has
/// what others synced read from the device.
#[derive(Debug)]
pub struct ReadOnlyDisk {
    path: PathBuf,
}

/// An open file of a [`ReadOnlyDisk`].
#[derive(Debug)]
pub struct ReadOnlyFile(OpenFile);

impl ReadOnlyDisk {
    /// Looks at the directory `path`. Whether there is one shows when it is used.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
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
        let path = file_in(&self.path, DiskOperation::Open, name)?;
        let failed = |error: io::Error| disk_error(DiskOperation::Open, name, &error);
        // Opening a pipe would wait for somebody to write to it.
        if !fs::metadata(&path).map_err(failed)?.is_file() {
            let cause = Cause::Other("not a regular file".to_owned());
            return Err(DiskError { operation: DiskOperation::Open, file: name.to_owned(), cause });
        }
        let file = File::open(&path).map_err(failed)?;
        Ok(ReadOnlyFile(OpenFile { name: name.to_owned(), file }))
    }

    fn append(&mut self, file: &mut ReadOnlyFile, _bytes: &[u8]) -> Result<(), DiskError> {
        read_only(DiskOperation::Append, &file.0.name)
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

    fn settle(&mut self, file: &mut ReadOnlyFile) -> Result<(), DiskError> {
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
            |error: io::Error| disk_error(DiskOperation::List, &self.path.display().to_string(), &error);
        list(&self.path).map_err(failed)
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        read_only(DiskOperation::SyncDirectory, &self.path.display().to_string())
    }
}
