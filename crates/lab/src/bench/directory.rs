//! Where the clusters of a measurement keep their data, for as long as nobody interrupts it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;

use syros_bench::compare::CompareError;

use syros_cli::signals;

/// The directory of everything; deleted with it, whatever happens.
struct Directory(PathBuf);

impl Directory {
    /// The one that was asked for, which must not exist yet, or a new one for temporary files of a command.
    fn new(asked: Option<&PathBuf>, command: &str) -> Result<Self, String> {
        let temporary = || std::env::temp_dir().join(format!("syros-{command}-{}", std::process::id()));
        let path = asked.cloned().unwrap_or_else(temporary);
        check(&path)?;
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("syros-lab bench: cannot delete {}: {error}", self.0.display());
        }
    }
}

/// Checks that a directory for data does not exist yet: it is deleted in the end.
pub(super) fn check(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => Err(format!("{} exists already; choose another directory with --dir", path.display())),
        false => Ok(()),
    }
}

/// Has a command measure something in a directory that is deleted in the end. It is told whether it was interrupted.
pub(super) fn in_directory<T>(
    asked: Option<&PathBuf>,
    command: &str,
    measure: impl FnOnce(&Path, Rc<dyn Fn() -> bool>) -> Result<T, String>,
) -> Result<T, String> {
    let (sender, ended_by) = channel();
    signals::forward(sender)?;
    let is_ended = Cell::new(false);
    let is_interrupted: Rc<dyn Fn() -> bool> = Rc::new(move || {
        is_ended.set(is_ended.get() || ended_by.try_recv().is_ok());
        is_ended.get()
    });
    let directory = Directory::new(asked, command)?;
    let measured = measure(&directory.0, Rc::clone(&is_interrupted));
    // A signal of the terminal reaches the nodes too, and then it is they that end first.
    if measured.is_err() {
        std::thread::sleep(Duration::from_millis(50));
    }
    match measured {
        Err(_) if is_interrupted() => Err(CompareError::Interrupted.to_string()),
        measured => measured,
    }
}
