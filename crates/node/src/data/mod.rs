//! What a replica has on disk, opened: the write-ahead log, the snapshot that goes with it, and the view that the replica has
//! reached, which is kept a second time.
//!
//! What is damaged is set aside as a whole, never used in part: the replica then starts without its memory and gets
//! everything from the others.

mod starts;
#[cfg(test)]
mod tests;
mod view_file;

pub use view_file::{Owner, VIEW_FILE, ViewFile, read_view};

use std::error::Error;

use starts::Starts;
use syros_protocol::record::Record;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_protocol::replica::{Boot, Config, Durability, Restored};
use syros_snapshot::{States, Stored, StoredError};
use syros_types::{ConfigurationId, OpNumber, View};
use syros_wal::{Disk, OpenError, Options, ReadError, Wal, WalError, WriteError};

/// Where the files of a replica are.
pub trait ReplicaFiles {
    /// Where files are.
    type Disk: Disk;
    /// Why a directory cannot be used.
    type Error;

    /// True if the replica has never run.
    fn is_new(&self) -> bool;

    /// Where the view is.
    ///
    /// # Errors
    /// What the system says.
    fn view(&mut self) -> Result<Self::Disk, Self::Error>;

    /// Where the write-ahead log is.
    ///
    /// # Errors
    /// What the system says.
    fn log(&mut self) -> Result<Self::Disk, Self::Error>;

    /// Where snapshots are.
    ///
    /// # Errors
    /// What the system says.
    fn snapshots(&mut self) -> Result<Self::Disk, Self::Error>;

    /// An empty place for a log that is to replace a damaged one.
    ///
    /// # Errors
    /// What the system says.
    fn new_log(&mut self) -> Result<Self::Disk, Self::Error>;

    /// Moves the log, the snapshots and what an engine has on disk out of the way, the log last, and the new log to its place.
    /// Gives the name of the place where they are kept. After a crash in the middle the replica is found damaged again, or
    /// the new log is found whole.
    ///
    /// # Errors
    /// What the system says.
    fn set_aside(&mut self) -> Result<String, Self::Error>;

    /// Something that operators may want to know. Nothing depends on it.
    fn on_notice(&mut self, notice: &OpenNotice<'_>);
}

/// Something that operators may want to know about what was found on disk.
#[derive(Debug)]
pub enum OpenNotice<'a> {
    /// The log ends in a torn write, as a crash leaves it.
    TornTail(String),
    /// A snapshot has been loaded.
    Loaded {
        /// Its last entry.
        op_number: OpNumber,
        /// Its length.
        bytes: u64,
    },
    /// Log or snapshots are damaged: the replica starts without its memory.
    SetAside {
        /// What is wrong.
        damage: &'a str,
        /// Where they are kept.
        kept_in: &'a str,
    },
    /// The file with the view is damaged, and written anew from the log.
    ViewDamaged(&'a str),
    /// There is no file with the view. It is written anew from the log.
    ViewMissing,
}

/// Why what a replica has on disk cannot be used.
#[derive(Debug)]
pub enum DataError<E> {
    /// A directory cannot be used.
    Files(E),
    /// Log and snapshots cannot be used.
    Stored(StoredError),
    /// The view, or the number of starts, cannot be read.
    View(ReadError),
    /// The view, or the number of starts, cannot be written.
    NoteView(WriteError),
    /// Everything is damaged, the view too: the replica cannot come back under its identity.
    Hopeless {
        /// What is wrong with the log or with the snapshot.
        damage: String,
        /// What is wrong with the view.
        view: String,
    },
    /// A replica without peers is damaged: nobody has what it lost.
    Alone {
        /// What is wrong.
        damage: String,
    },
    /// A new log cannot be written.
    NewLog(WalError),
    /// A replica that starts for the first time has reached a view already.
    NotNewView(View),
}

/// Why a log cannot be opened again.
#[derive(Debug)]
pub enum ReopenError {
    /// The view cannot be written.
    NoteView(WriteError),
    /// The log cannot be opened.
    Log(OpenError<Box<dyn Error + Send + Sync>>),
}

/// What a replica has on disk.
pub struct Data<D: Disk, E> {
    /// The write-ahead log.
    pub wal: Wal<D>,
    /// What log and snapshots tell.
    pub stored: Stored<D, E>,
    /// Not behind what the log tells.
    pub view: ViewFile<D>,
}

impl<D: Disk, E> Data<D, E> {
    /// Opens what is there, with the states of engines that `states` finds. What is damaged is set aside, and the
    /// replica is then without memory.
    ///
    /// # Errors
    /// [`DataError`].
    pub fn open<P: ReplicaFiles<Disk = D>, S: States<D, Engine = E>>(
        config: &Config,
        options: &Options,
        place: &mut P,
        states: impl Fn() -> S,
    ) -> Result<(Self, S), DataError<P::Error>> {
        let owner = Owner { cluster: options.cluster, replica: config.replica };
        let is_new = place.is_new();
        let mut view =
            ViewFile::open(place.view().map_err(DataError::Files)?, owner).map_err(DataError::View)?;
        if is_new && view.view() > View(0) {
            return Err(DataError::NotNewView(view.view()));
        }
        // A directory is opened by one at a time.
        let starts = {
            let mut log = place.log().map_err(DataError::Files)?;
            Starts::read(view.disk_mut(), &mut log).map_err(DataError::View)?
        };
        let read = match starts.damage() {
            Some(damage) if !is_planted(config) => Err(damage),
            _ => match read_back(config, options, place, states()) {
                Err(DataError::Stored(error)) if error.is_damage() && !is_new => Err(error.to_string()),
                read => Ok(read?),
            },
        };
        let (mut wal, stored, states) = match read {
            Err(damage) => {
                if config.configuration.size() == 1 {
                    return Err(DataError::Alone { damage });
                }
                let reached = match view.found() {
                    Ok(Some(reached)) => *reached,
                    Ok(None) => {
                        let view = format!("there is no file {VIEW_FILE}/{VIEW_FILE}");
                        return Err(DataError::Hopeless { damage, view });
                    }
                    Err(problem) => return Err(DataError::Hopeless { damage, view: problem.clone() }),
                };
                write_new_log(options, config.configuration.id.of_group(), place, (reached, starts))?;
                let kept_in = place.set_aside().map_err(DataError::Files)?;
                place.on_notice(&OpenNotice::SetAside { damage: &damage, kept_in: &kept_in });
                read_back(config, options, place, states())?
            }
            Ok(read) => read,
        };
        match view.found() {
            Err(problem) => place.on_notice(&OpenNotice::ViewDamaged(problem)),
            Ok(None) if !is_new => place.on_notice(&OpenNotice::ViewMissing),
            Ok(_) => {}
        }
        // One that was damaged can be had from an intact log.
        let reached = stored.restored.view().max(view.view());
        view.record(reached).map_err(DataError::NoteView)?;
        starts.count(view.disk_mut(), wal.disk_mut()).map_err(DataError::NoteView)?;
        Ok((Self { wal, stored, view }, states))
    }
}

/// True if a log that was put back is not to be recognized.
#[cfg(feature = "planted-bugs")]
fn is_planted(config: &Config) -> bool {
    config.planted == Some(PlantedBug::OldLogTrusted)
}

#[cfg(not(feature = "planted-bugs"))]
const fn is_planted(_: &Config) -> bool {
    false
}

/// Opens the log of a replica whose process has kept its memory while the disk took no writes, and makes sure that the view
/// is still on disk. What the log holds does not matter to such a replica, but for the view.
///
/// # Errors
/// [`ReopenError`].
pub fn reopen_log<D: Disk>(options: &Options, log: D, view: &mut ViewFile<D>) -> Result<Wal<D>, ReopenError> {
    view.renew().map_err(ReopenError::NoteView)?;
    let options = Options { may_create: false, ..options.clone() };
    let (wal, _) = Wal::open(log, options, |_, _| Ok(())).map_err(ReopenError::Log)?;
    Ok(wal)
}

/// Reads back log and snapshots.
#[expect(clippy::type_complexity, reason = "three things, each with one name")]
fn read_back<P: ReplicaFiles, S: States<P::Disk>>(
    config: &Config,
    options: &Options,
    place: &mut P,
    mut states: S,
) -> Result<(Wal<P::Disk>, Stored<P::Disk, S::Engine>, S), DataError<P::Error>> {
    let options = Options { may_create: place.is_new(), ..options.clone() };
    let snapshots = place.snapshots().map_err(DataError::Files)?;
    let log = place.log().map_err(DataError::Files)?;
    let (wal, stored) = Stored::open(config, options, snapshots, log, &mut states, |recovery| {
        if let Some(cut) = &recovery.cut {
            place.on_notice(&OpenNotice::TornTail(cut.to_string()));
        }
    })
    .map_err(DataError::Stored)?;
    if let Some((op_number, bytes)) = stored.snapshot {
        place.on_notice(&OpenNotice::Loaded { op_number, bytes });
    }
    Ok((wal, stored, states))
}

/// Writes a log which says that the replica has lost its memory.
fn write_new_log<P: ReplicaFiles>(
    options: &Options,
    configuration: ConfigurationId,
    place: &mut P,
    (view, starts): (View, Starts),
) -> Result<(), DataError<P::Error>> {
    let options = Options { may_create: true, ..options.clone() };
    let mut fresh = place.new_log().map_err(DataError::Files)?;
    starts.tell(&mut fresh).map_err(DataError::NoteView)?;
    let (mut wal, _) = Wal::open(fresh, options, |_, _| Ok(()))
        .map_err(|error| DataError::Stored(StoredError::Log(error)))?;
    // A record of a few bytes is refused by nothing but a disk.
    let _ = wal.append_with(|out| syros_wire::encode_record_of(configuration, &Record::Forgot { view }, out));
    wal.flush().and_then(|()| wal.sync()).map(drop).map_err(DataError::NewLog)
}

/// How a replica starts with what it has on disk: `is_new` if it has never run, and `view` is the view that it has reached.
#[must_use]
pub fn boot(durability: Durability, is_new: bool, restored: Restored, view: View) -> Boot {
    match durability {
        _ if is_new => Boot::Fresh,
        Durability::Fsync if !restored.is_amnesiac() => Boot::Restored(Box::new(restored)),
        _ => Boot::Amnesiac { view },
    }
}
