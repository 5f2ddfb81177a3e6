//! A directory that is held open. The system finds its files through the handle, not through the path.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Access to new files, of which the process's umask takes its part.
const FILE_MODE: Mode = Mode::from_bits_retain(0o666);
const DIRECTORY_MODE: Mode = Mode::from_bits_retain(0o777);

/// A directory that is held open. All operations act on this directory, wherever its path leads meanwhile: the directory
/// may be renamed, and another one may take its place. In a directory that was deleted, nothing can be created.
///
/// A name is relative to the directory. Clones share the handle.
#[derive(Clone, Debug)]
pub struct OpenDirectory {
    /// Where the directory was when it was opened.
    path: PathBuf,
    handle: Arc<File>,
}

impl OpenDirectory {
    /// Opens the directory at a path.
    ///
    /// # Errors
    /// What the system says, as in all operations.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_from(rustix::fs::CWD, path, path.to_path_buf())
    }

    /// Opens a directory of this one.
    ///
    /// # Errors
    /// What the system says.
    pub fn open_directory(&self, name: &str) -> io::Result<Self> {
        Self::open_from(self.as_fd(), Path::new(name), self.path.join(name))
    }

    fn open_from(parent: BorrowedFd<'_>, name: &Path, path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = retry_on_intr(|| openat(parent, name, flags, Mode::empty()))?;
        Ok(Self { path, handle: Arc::new(File::from(handle)) })
    }

    /// Where the directory was when it was opened: for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle. Whoever works with [`OpenDirectory::lasting_path`] keeps a clone of it.
    #[must_use]
    pub const fn handle(&self) -> &Arc<File> {
        &self.handle
    }

    /// A path that leads to this directory for as long as the handle is open, even when the directory has been renamed:
    /// for code that knows only paths. It is [`OpenDirectory::path`] where the system has no such paths, as outside of
    /// Linux or without `/proc`.
    #[must_use]
    pub fn lasting_path(&self) -> PathBuf {
        self.descriptor_path().unwrap_or_else(|| self.path.clone())
    }

    #[cfg(target_os = "linux")]
    fn descriptor_path(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::fs::MetadataExt as _;
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        let (this, that) = (std::fs::metadata(&path).ok()?, self.handle.metadata().ok()?);
        ((this.dev(), this.ino()) == (that.dev(), that.ino())).then_some(path)
    }

    #[cfg(not(target_os = "linux"))]
    fn descriptor_path(&self) -> Option<PathBuf> {
        None
    }

    /// Opens a file.
    ///
    /// # Errors
    /// What the system says.
    pub fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC;
        Ok(File::from(retry_on_intr(|| openat(&self.handle, name, flags, FILE_MODE))?))
    }

    /// Creates a directory, and makes its name durable; true if there was none of that name.
    ///
    /// # Errors
    /// What the system says.
    pub fn create_directory(&self, name: &str) -> io::Result<bool> {
        match mkdirat(&self.handle, name, DIRECTORY_MODE) {
            Ok(()) => self.sync().map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// True if there is a file or directory of this name.
    ///
    /// # Errors
    /// What the system says.
    pub fn contains(&self, name: &str) -> io::Result<bool> {
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives what has the name `from` the name `to`, replacing a file of that name.
    ///
    /// # Errors
    /// What the system says.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// Removes a directory with all that is in it.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove_directory(&self, name: &str) -> io::Result<()> {
        std::fs::remove_dir_all(self.lasting_path().join(name))
    }

    /// The names of all that is not a directory, sorted. A name that is not Unicode is left out.
    ///
    /// # Errors
    /// What the system says.
    pub fn file_names(&self) -> io::Result<Vec<String>> {
        self.names(|kind| kind != FileType::Directory)
    }

    /// The names of all files and directories, sorted. A name that is not Unicode is left out.
    ///
    /// # Errors
    /// What the system says.
    pub fn all_names(&self) -> io::Result<Vec<String>> {
        self.names(|_| true)
    }

    fn names(&self, is_wanted: impl Fn(FileType) -> bool) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(text) = OsStr::from_bytes(name.to_bytes()).to_str() else { continue };
            let kind = match entry.file_type() {
                // This file system does not say it along with the names.
                FileType::Unknown => {
                    FileType::from_raw_mode(statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
                }
                kind => kind,
            };
            if !matches!(text, "." | "..") && is_wanted(kind) {
                names.push(text.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl AsFd for OpenDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
