//! From a file: read once to be checked, and once to be sent.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use syros_commands::rdb;
use syros_rdb::{FileSummary, Item, Piece, Place, RdbError, read_file};
use syros_types::Database;
use syros_types::limits::KEY_BYTES_MAX;

use super::account::{Account, name};
use super::loader::{EXPANSION_MAX, Loader, no_database, now_ms};
use super::target::Target;
use super::{Options, loader};
use crate::progress::Progress;

/// So many keys that cannot be imported are left out; a file with more of them is of something else.
const REFUSED_MAX: u64 = 1_000_000;

/// Why a file cannot be imported.
enum Problem {
    File(RdbError),
    /// Something in the file, which has to be named.
    InFile(String),
    Text(String),
}

impl From<RdbError> for Problem {
    fn from(error: RdbError) -> Self {
        Self::File(error)
    }
}

impl Problem {
    fn of(self, path: &Path) -> String {
        match self {
            Self::File(error) => format!("{}: {error}", path.display()),
            Self::InFile(problem) => format!("{}: {problem}", path.display()),
            Self::Text(problem) => problem,
        }
    }
}

/// Imports a file.
pub(super) fn import(options: &Options, path: &Path) -> Result<ExitCode, String> {
    if options.dry_run {
        let checked = CheckedFile::check(options, path)?;
        options.target()?;
        syros_cli::tell!(
            "{}",
            checked.survey.account.text("nothing was written; to be imported:").trim_end()
        );
        return Ok(ExitCode::SUCCESS);
    }
    // A cluster that refuses says so before the file is read, which may take long; and a file that is not there, before that.
    open(path).map_err(|problem| problem.of(path))?;
    let target = options.target()?;
    CheckedFile::check(options, path)?.send(loader(options, target)).map(|_| ExitCode::SUCCESS)
}

/// A file in which everything has been looked at.
pub(super) struct CheckedFile<'a> {
    path: &'a Path,
    summary: FileSummary,
    survey: Survey,
}

impl<'a> CheckedFile<'a> {
    /// Reads all of a file. An error if something of it cannot be imported, unless that is to be left out.
    pub(super) fn check(options: &Options, path: &'a Path) -> Result<Self, String> {
        let mut survey = Survey::default();
        let read = read(path, Some("checked"), |item| survey.item(item));
        let summary = read.map_err(|problem| problem.of(path))?;
        if survey.account.refused.count > 0 && !options.skip_unsupported {
            return Err(format!(
                "{}: {} keys cannot be imported, and nothing was written (--skip-unsupported leaves them out):{}",
                path.display(),
                survey.account.refused.count,
                survey.account.refused.lines()
            ));
        }
        tell(path, &summary, &survey);
        Ok(Self { path, summary, survey })
    }

    /// Sends all of it, and says what was sent. The cluster, which has it.
    pub(super) fn send(self, mut loader: Loader) -> Result<Target, String> {
        let Self { path, summary, survey } = self;
        let Survey { account: surveyed, left_out, .. } = survey;
        let sent = read_again(path, &summary, |item| match item {
            Item::Library(text) => loader.library(&text),
            Item::Piece(place, _) if left_out.contains(&identity(place)) => Ok(()),
            Item::Piece(place, piece) => loader.piece(place, piece),
            Item::Refused(..) | Item::OfModule(_) => Ok(()),
        });
        sent.map_err(|problem| problem.of(path))?;
        let (mut account, seconds, target) = loader.finish()?;
        account.refused = surveyed.refused;
        account.print(seconds);
        Ok(target)
    }
}

/// Says what the file is, and what of it is not imported.
fn tell(path: &Path, summary: &FileSummary, survey: &Survey) {
    let server = summary.server.as_deref().map_or_else(String::new, |server| format!(", of server {server}"));
    syros_cli::say!("syros: {} is intact: format {}{server}", path.display(), summary.version);
    if !summary.is_checked {
        syros_cli::say!("syros: it has no checksum (rdbchecksum no): damage may have gone unnoticed");
    }
    for module in &survey.modules {
        syros_cli::say!("syros: what module type {module} has kept besides keys is left out");
    }
}

/// Reads the file from its beginning to its end, and tells how far it has come if there is a word for that.
fn read(
    path: &Path,
    what: Option<&'static str>,
    take: impl FnMut(Item<'_>) -> Result<(), Problem>,
) -> Result<FileSummary, Problem> {
    let (file, bytes) = open(path)?;
    let progress = what.map(|what| Progress::new(what, bytes));
    read_file(Counted { input: file, bytes: 0, progress }, take)
}

/// Opens the file; how many bytes it has.
fn open(path: &Path) -> Result<(File, u64), Problem> {
    let text = |error: std::io::Error| Problem::Text(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(text)?;
    let metadata = file.metadata().map_err(text)?;
    if metadata.is_file() {
        return Ok((file, metadata.len()));
    }
    Err(Problem::Text(format!("{} is not a file, and it has to be read twice", path.display())))
}

/// Reads the file again, which has not changed since.
fn read_again(
    path: &Path,
    before: &FileSummary,
    mut take: impl FnMut(Item<'_>) -> Result<(), String>,
) -> Result<(), Problem> {
    let summary = read(path, None, |item| take(item).map_err(Problem::Text))?;
    if summary == *before {
        return Ok(());
    }
    Err(Problem::Text(format!(
        "{} has changed while it was read: import it again, with --replace",
        path.display()
    )))
}

/// Tells how much of a file has been read.
struct Counted {
    input: File,
    bytes: u64,
    progress: Option<Progress>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.bytes += count as u64;
        if let Some(progress) = &mut self.progress {
            progress.tell(self.bytes);
        }
        Ok(count)
    }
}

fn identity(place: &Place) -> (u64, Vec<u8>) {
    (place.database, place.key.clone())
}

/// What a file holds.
#[derive(Default)]
struct Survey {
    account: Account,
    /// Keys that cannot be imported.
    left_out: HashSet<(u64, Vec<u8>)>,
    modules: Vec<String>,
}

impl Survey {
    fn item(&mut self, item: Item<'_>) -> Result<(), Problem> {
        match item {
            Item::Library(_) => self.account.libraries += 1,
            Item::OfModule(name) if self.modules.contains(&name) => {}
            Item::OfModule(name) => self.modules.push(name),
            Item::Piece(place, piece) => self.piece(place, &piece)?,
            Item::Refused(place, problem) => self.refuse(place, &problem)?,
        }
        Ok(())
    }

    fn piece(&mut self, place: &Place, piece: &Piece) -> Result<(), Problem> {
        if place.expiry_ms.is_some_and(|expiry_ms| expiry_ms <= now_ms()) {
            self.account.expired += u64::from(piece.is_first);
            return Ok(());
        }
        if place.database >= Database::COUNT as u64 {
            return if piece.is_first { self.refuse(place, &no_database(place.database)) } else { Ok(()) };
        }
        if rdb::value_of(&piece.typed, EXPANSION_MAX).is_err() {
            let problem = "its value is damaged, or no server that this build knows writes it";
            return Err(Problem::InFile(format!("{}: {problem}; nothing was written", name(place))));
        }
        if piece.is_last {
            *self.account.keys.entry(place.database).or_default() += 1;
            self.account.in_pieces += u64::from(!piece.is_first);
        }
        Ok(())
    }

    fn refuse(&mut self, place: &Place, problem: &str) -> Result<(), Problem> {
        if self.account.refused.count == REFUSED_MAX {
            return Err(Problem::InFile(format!("more than {REFUSED_MAX} keys cannot be imported")));
        }
        self.account.refused.add(place, problem);
        // Of a key with a longer name there are no pieces.
        if place.key.len() <= KEY_BYTES_MAX {
            self.left_out.insert(identity(place));
        }
        Ok(())
    }
}
