//! The view that a replica has reached, in a file of its own: a replica that has lost it can never come back.

use syros_types::{ReplicaId, View};
use syros_wal::{Disk, ReadError, WriteError, read_atomic, write_atomically};

/// Name of the file with the view, in a directory of its own.
pub const VIEW_FILE: &str = "view";

/// Whose a file of a data directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cluster.
    pub cluster: u64,
    /// The replica.
    pub replica: ReplicaId,
}

/// The view that a replica has reached. The file is written before the log tells the view, so it is never behind the log.
#[derive(Debug)]
pub struct ViewFile<D> {
    disk: D,
    owner: Owner,
    view: Result<Option<View>, String>,
}

impl<D: Disk> ViewFile<D> {
    /// Reads the file. One that is damaged is as good as none: [`ViewFile::found`] says so.
    ///
    /// # Errors
    /// What the disk says.
    pub fn open(mut disk: D, owner: Owner) -> Result<Self, ReadError> {
        let view = read_view(&mut disk, owner)?;
        Ok(Self { disk, owner, view })
    }

    /// The directory that the file is in.
    pub(super) const fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// The view in the file, if there is a file; or what is wrong with it.
    pub const fn found(&self) -> &Result<Option<View>, String> {
        &self.view
    }

    /// The view in the file.
    #[must_use]
    pub fn view(&self) -> View {
        self.view.clone().ok().flatten().unwrap_or_default()
    }

    /// Makes durable that the replica may have acted in `view`.
    ///
    /// # Errors
    /// What the disk says.
    pub fn record(&mut self, view: View) -> Result<(), WriteError> {
        if self.view == Ok(Some(view)) { Ok(()) } else { self.write(view) }
    }

    fn write(&mut self, view: View) -> Result<(), WriteError> {
        let mut bytes = view.0.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.owner.cluster.to_le_bytes());
        bytes.push(self.owner.replica.0);
        write_atomically(&mut self.disk, VIEW_FILE, &bytes)?;
        self.view = Ok(Some(view));
        Ok(())
    }

    /// Writes the file anew: it is not what was written any more.
    ///
    /// # Errors
    /// What the disk says.
    pub fn renew(&mut self) -> Result<(), WriteError> {
        self.write(self.view())
    }
}

/// Reads the file with the view: 8 bytes view, 8 bytes cluster, 1 byte replica; in old files only the view.
/// If it is not what was written, the inner error says what is wrong.
///
/// # Errors
/// What the disk says.
pub fn read_view<D: Disk>(disk: &mut D, owner: Owner) -> Result<Result<Option<View>, String>, ReadError> {
    let bytes = match read_atomic(disk, VIEW_FILE) {
        Ok(None) => return Ok(Ok(None)),
        Ok(Some(bytes)) => bytes,
        Err(error @ ReadError::Damaged { .. }) => return Ok(Err(format!("{VIEW_FILE}/{error}"))),
        Err(error) => return Err(error),
    };
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let found = match bytes.len() {
        8 => owner,
        17 => Owner { cluster: number(8), replica: ReplicaId(bytes[16]) },
        length => return Ok(Err(format!("{VIEW_FILE}/{VIEW_FILE} has {length} bytes, not 17"))),
    };
    if found != owner {
        let Owner { cluster, replica } = found;
        return Ok(Err(format!("{VIEW_FILE}/{VIEW_FILE} belongs to {replica} of cluster {cluster:016x}")));
    }
    Ok(Ok(Some(View(number(0)))))
}
