//! `syros export`: an RDB file that Redis and Valkey load, from a backup.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use syros_backup::{Backup, BackupError, Item};
use syros_commands::rdb::{Format, typed};
use syros_rdb::FileWriter;
use syros_storage::{DamagedSnapshot, SnapshotEntries, SnapshotEntry};

use crate::place::PlaceOptions;
use crate::progress::{Progress, mebibytes};

/// So many keys are named that cannot be exported; of the others, how many they are.
const NAMED_MAX: usize = 20;

/// Options of `syros export`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros backup /backups/today --addr db1:6379                    all data, as of one moment, while the cluster serves
  syros export /backups/today dump.rdb                           for Redis 7.0 or newer, and for Valkey
  syros export /backups/today dump.rdb --format 7.4              with fields of hashes that expire
  syros export s3://backups/today dump.rdb                       from a bucket; keys are in the environment
  redis-server --dbfilename dump.rdb --dir .                     loads it

The file has all keys of all databases with their expiry, and the libraries of functions. It has no users and passwords, and no
scripts that were loaded by SCRIPT LOAD or EVAL. FILE must not exist. It gets its name when all of it is on disk; a backup that
is damaged leaves nothing.

Exit status 0: the file is whole and on disk; 1: there is none, and a line says why.")]
pub(crate) struct Options {
    /// Where the backup is: a directory or s3://BUCKET/PREFIX
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The file to be made
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The oldest version of Redis that is to load the file
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = FormatName::Redis70)]
    format: FormatName,
    /// Leave out keys that the format cannot hold, and name them
    #[arg(long)]
    skip_unsupported: bool,
    #[command(flatten)]
    place: PlaceOptions,
}

/// [`Format`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// Redis 7.0, and Valkey
    #[value(name = "7.0")]
    Redis70,
    /// Redis 7.2, and Valkey 8: says when a consumer of a stream last got something
    #[value(name = "7.2")]
    Redis72,
    /// Redis 7.4: fields of hashes may expire. Valkey does not load it
    #[value(name = "7.4")]
    Redis74,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Redis70 => Self::Redis70,
            FormatName::Redis72 => Self::Redis72,
            FormatName::Redis74 => Self::Redis74,
        }
    }
}

/// Why there is no file.
enum Problem {
    Backup(BackupError),
    State(DamagedSnapshot),
    File(std::io::Error),
}

impl From<BackupError> for Problem {
    fn from(error: BackupError) -> Self {
        Self::Backup(error)
    }
}

impl From<DamagedSnapshot> for Problem {
    fn from(error: DamagedSnapshot) -> Self {
        Self::State(error)
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

/// Makes the file.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let backup = Backup::open(&options.place.open(&options.backup)?).map_err(|error| error.to_string())?;
    let name = options.file.display();
    if backup.manifest().origin.record_bytes > 0 {
        return Err(format!(
            "the backup in {} was made by syros recover, and has a log that nobody has executed: restore it into a cluster (of one \
             node, if that is enough), and make a backup of that",
            options.backup.display()
        ));
    }
    if backup.end() != backup.manifest().origin.last {
        return Err(format!(
            "the backup in {} was continued with a log, which a file cannot have: restore it into a cluster (of one node, if that is \
             enough), and make a backup of that",
            options.backup.display()
        ));
    }
    if fs::symlink_metadata(&options.file).is_ok() {
        return Err(format!("{name} is there already, and nothing is overwritten"));
    }
    let temporary = temporary(&options.file);
    let file = File::create_new(&temporary)
        .map_err(|error| format!("cannot create {}: {error}", temporary.display()))?;
    let export = write(options, &backup, file).and_then(|export| {
        fs::rename(&temporary, &options.file)
            .map_err(|error| format!("cannot rename {}: {error}", temporary.display()))?;
        sync_directory(&options.file)
            .map_err(|error| format!("cannot sync the directory of {name}: {error}"))?;
        Ok(export)
    });
    let export = export.inspect_err(|_| {
        // What says why is the error.
        let _ = fs::remove_file(&temporary);
    })?;
    let bytes = fs::metadata(&options.file).map_or(0, |metadata| metadata.len());
    syros_cli::tell!(
        "{name} holds {} keys, {} libraries of functions, {}",
        export.count(),
        export.libraries,
        mebibytes(bytes)
    );
    for (database, keys) in &export.keys {
        syros_cli::tell!("  {keys} keys in database {database}");
    }
    if export.refused > 0 {
        syros_cli::tell!("  {} keys were left out, whose fields expire:{}", export.refused, export.lines());
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the file is until it is whole.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

fn sync_directory(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Writes everything, durably.
fn write(options: &Options, backup: &Backup, file: File) -> Result<Export, String> {
    let mut export = Export { format: options.format.into(), ..Export::default() };
    let written = export.run(backup, file);
    written.map_err(|problem| match problem {
        Problem::Backup(error) => error.to_string(),
        Problem::State(error) => {
            format!("the backup in {} holds no state that can be read: {error}", options.backup.display())
        }
        Problem::File(error) => format!("cannot write {}: {error}", options.file.display()),
    })?;
    if export.refused > 0 && !options.skip_unsupported {
        return Err(format!(
            "fields of {} hashes expire, which Redis before 7.4 and Valkey do not know, and no file was made. --format 7.4 \
             writes them for Redis 7.4, --skip-unsupported leaves them out:{}",
            export.refused,
            export.lines()
        ));
    }
    Ok(export)
}

/// What has been written.
struct Export {
    format: Format,
    keys: BTreeMap<u8, u64>,
    libraries: u64,
    /// Keys that the format cannot hold.
    refused: u64,
    named: Vec<String>,
    /// The log time of the backup: what has expired by then is not there.
    now_ms: u64,
}

impl Default for Export {
    fn default() -> Self {
        let (keys, named) = (BTreeMap::new(), Vec::new());
        Self { format: Format::Redis70, keys, libraries: 0, refused: 0, named, now_ms: 0 }
    }
}

impl Export {
    fn count(&self) -> u64 {
        self.keys.values().sum()
    }

    fn lines(&self) -> String {
        let lines = self.named.iter().fold(String::new(), |text, line| text + "\n  " + line);
        match self.refused - self.named.len() as u64 {
            0 => lines,
            others => format!("{lines}\n  and {others} others"),
        }
    }

    fn run(&mut self, backup: &Backup, file: File) -> Result<(), Problem> {
        self.now_ms = backup.manifest().origin.last.time.0 / 1000;
        let program = format!("syros {}", syros_cli::VERSION);
        let mut writer = FileWriter::create(BufWriter::new(file), self.format, &program)?;
        let mut progress = Progress::new("exported", backup.manifest().data_bytes());
        let (mut entries, mut bytes) = (SnapshotEntries::default(), 0);
        backup.read(
            |_| None,
            |item| {
                let Item::Block(block) = item else { return Ok(()) };
                bytes += block.len() as u64;
                progress.tell(bytes);
                entries.block(block, |entry| self.entry(entry, &mut writer))
            },
        )?;
        entries.finish()?;
        let mut out = writer.finish()?;
        out.flush()?;
        Ok(out.get_ref().sync_all()?)
    }

    fn entry(
        &mut self,
        entry: SnapshotEntry,
        writer: &mut FileWriter<BufWriter<File>>,
    ) -> Result<(), Problem> {
        let (database, key, expiry, mut value) = match entry {
            SnapshotEntry::Key { database, key, expiry, value } => (database, key, expiry, value),
            SnapshotEntry::Library(text) => {
                self.libraries += 1;
                return Ok(writer.library(&text)?);
            }
        };
        let is_gone = |gone: u64| gone <= self.now_ms;
        if expiry.is_some_and(|gone| is_gone(gone.get()))
            || value.moments().gone.is_some_and(|gone| is_gone(gone.get()))
        {
            return Ok(());
        }
        value.drop_due(self.now_ms, u64::MAX);
        let database = database.number();
        let Some(typed) = typed(&value, self.format) else {
            self.refused += 1;
            if self.named.len() < NAMED_MAX {
                self.named.push(format!("key '{}' of database {database}", key.escape_ascii()));
            }
            return Ok(());
        };
        *self.keys.entry(database).or_default() += 1;
        // Files have the last millisecond in which a key is there.
        Ok(writer.key(database.into(), &key, expiry.map(|gone| gone.get() - 1), &typed)?)
    }
}
