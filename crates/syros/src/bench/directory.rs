//! Where the clusters of a measurement keep their data.

use std::path::{Path, PathBuf};

/// The directory of everything; deleted with it, whatever happens.
pub(super) struct Directory(PathBuf);

impl Directory {
    /// The one that was asked for, which must not exist yet, or a new one for temporary files of a command.
    pub(super) fn new(asked: Option<&PathBuf>, command: &str) -> Result<Self, String> {
        let temporary = || std::env::temp_dir().join(format!("syros-{command}-{}", std::process::id()));
        let path = asked.cloned().unwrap_or_else(temporary);
        if path.exists() {
            return Err(format!("{} exists already; choose another directory with --dir", path.display()));
        }
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("syros bench: cannot delete {}: {error}", self.0.display());
        }
    }
}
