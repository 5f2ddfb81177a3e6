//! What a server sends its replicas: a file, then every update as a command. A thread takes it as it comes, and keeps it in files
//! until it is asked for: a server drops replicas that do not take what it sends.

use std::fs::{self, File};
use std::io::{BufRead as _, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syros_resp::ReceivedReply;

use super::connection::{ANSWER_TIMEOUT, Connection, Login};
use super::patient::is_timeout;
use crate::progress::{Progress, mebibytes};
use crate::redis_command::put_command;

/// A server waits so long for the file that it sends: it may have to write it first.
const FILE_PATIENCE: Duration = Duration::from_secs(3600);

/// How often it is told that the file has not come.
const FILE_INTERVAL: Duration = Duration::from_secs(10);

/// How often the server hears how far the cluster is; it drops replicas that are silent for a minute.
const ACKNOWLEDGE_INTERVAL: Duration = Duration::from_secs(1);

/// A server says something at least every ten seconds, unless `repl-ping-replica-period` was raised. So it is told that it does not
/// after a longer time, and this often from then on.
const SILENCE_TOLD: Duration = Duration::from_secs(15);

/// After so long a silence a server is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long to wait for what the thread takes next.
const PAUSE: Duration = Duration::from_millis(20);

/// So many bytes are taken at a time.
const STEP_BYTES: usize = 256 << 10;

/// The directory for what is received, which is made below this one.
pub(super) fn spool_in(parent: &Path) -> PathBuf {
    parent.join(format!("syros-import-{}", std::process::id()))
}

/// Files that are gone with this.
struct Spool {
    directory: PathBuf,
}

impl Spool {
    fn create(directory: PathBuf) -> Result<Self, String> {
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(&directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
        Ok(Self { directory })
    }

    fn create_file(&self, name: &str) -> Result<File, String> {
        let path = self.directory.join(name);
        let opened = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
        opened.map_err(|error| format!("cannot create {}: {error}", path.display()))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What cannot be removed stays, in a directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What the thread that takes updates and the one that repeats them tell each other.
#[derive(Default)]
struct Shared {
    /// Bytes of updates that are in the file.
    taken: AtomicU64,
    /// Bytes of updates that the cluster has.
    repeated: AtomicU64,
    /// Nobody wants more.
    ends: AtomicBool,
    /// Why nothing more comes.
    failed: Mutex<Option<String>>,
}

impl Shared {
    fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A server that takes this program for a replica.
pub(super) struct Replication {
    /// Gone when this is.
    spool: Spool,
    updates: File,
    shared: Arc<Shared>,
    /// Bytes of updates that were read from the file.
    at: u64,
}

impl Replication {
    /// Becomes a replica, and waits until all of the file is here. What follows is taken from then on.
    pub(super) fn begin(address: &str, login: &Login, spool: PathBuf) -> Result<Self, String> {
        let failed = |error: Error| format!("{address}: {error}");
        let mut connection = Connection::open(address, login)?;
        // It may say that it cannot be told; it sends the same.
        connection.ask(&[b"REPLCONF", b"capa", b"psync2"]).map_err(failed)?;
        let offset = match connection.ask(&[b"PSYNC", b"?", b"-1"]).map_err(failed)? {
            ReceivedReply::Simple(text) => offset_of(&text),
            ReceivedReply::Error(error) => return Err(format!("{address} takes no replica: {error}")),
            _ => None,
        };
        let offset =
            offset.ok_or_else(|| format!("{address} takes no replica in the way of Redis 2.8 and later"))?;
        let spool = Spool::create(spool)?;
        let (mut file, updates) = (spool.create_file("dump.rdb")?, spool.create_file("updates")?);
        let length = length_of_file(address, &mut connection).map_err(failed)?;
        copy(&mut connection, length, &mut file).map_err(failed)?;
        syros_cli::say!("syros: {address} has sent a file of {}", mebibytes(length));
        let shared = Arc::new(Shared::default());
        let writer = updates.try_clone().map_err(failed)?;
        let taker = Taker { connection, file: writer, shared: Arc::clone(&shared), offset };
        let address = address.to_owned();
        thread::spawn(move || taker.run(&address));
        Ok(Self { spool, updates, shared, at: 0 })
    }

    /// The file.
    pub(super) fn file(&self) -> PathBuf {
        self.spool.directory.join("dump.rdb")
    }

    /// The file has been imported.
    pub(super) fn remove_file(&self) {
        // It takes space, and nothing else.
        let _ = fs::remove_file(self.file());
    }

    /// Bytes of updates that have come and were not read.
    pub(super) fn behind(&self) -> u64 {
        self.shared.taken.load(Ordering::Acquire) - self.at
    }

    /// So many bytes of updates have come.
    pub(super) fn taken(&self) -> u64 {
        self.shared.taken.load(Ordering::Acquire)
    }

    /// The cluster has so many bytes of updates.
    pub(super) fn repeated(&self, bytes: u64) {
        self.shared.repeated.store(bytes, Ordering::Release);
    }

    /// Why nothing more comes, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.failure()
    }
}

impl Drop for Replication {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
    }
}

/// Waits for updates that have not come; ends where none will.
impl Read for Replication {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        while self.behind() == 0 {
            if let Some(problem) = self.failure() {
                return Err(Error::other(problem));
            }
            thread::sleep(PAUSE);
        }
        let length = buffer.len().min(usize::try_from(self.behind()).unwrap_or(usize::MAX));
        let count = self.updates.read_at(&mut buffer[..length], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// `FULLRESYNC <id> <offset>`
fn offset_of(text: &str) -> Option<u64> {
    let mut words = text.split(' ');
    if words.next() != Some("FULLRESYNC") {
        return None;
    }
    words.nth(1)?.parse().ok()
}

/// Waits for what stands before the file: empty lines as long as the server writes it, and then its length.
fn length_of_file(address: &str, connection: &mut Connection) -> Result<u64, Error> {
    let (began, mut told) = (Instant::now(), Instant::now());
    connection.input.get_mut().set_patience(Duration::ZERO);
    loop {
        if told.elapsed() >= FILE_INTERVAL {
            told = Instant::now();
            let (seconds, most) = (began.elapsed().as_secs(), FILE_PATIENCE.as_secs());
            syros_cli::say!(
                "syros: {address} has sent no file for {seconds} s; it may have to write it first, and has {most} s"
            );
        }
        match connection.input.fill_buf() {
            Ok([]) => return Err(Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
            Ok([b'\n', ..]) => connection.input.consume(1),
            Ok(_) => break,
            Err(error) if is_timeout(&error) && began.elapsed() < FILE_PATIENCE => {}
            Err(error) if is_timeout(&error) => return Err(silent(FILE_PATIENCE)),
            Err(error) => return Err(error),
        }
    }
    connection.input.get_mut().set_patience(ANSWER_TIMEOUT);
    match syros_resp::read_bulk_head(&mut connection.input)? {
        syros_resp::BulkHead::Bytes(length) => Ok(length),
        other => Err(Error::other(format!("it sends no file: {other:?}"))),
    }
}

fn silent(patience: Duration) -> Error {
    Error::new(
        ErrorKind::TimedOut,
        format!("it has sent nothing for {} s, and is given up", patience.as_secs()),
    )
}

/// Copies the file.
fn copy(connection: &mut Connection, length: u64, file: &mut File) -> Result<(), Error> {
    let mut progress = Progress::new("received", length);
    let mut done = 0;
    while done < length {
        let found = connection.input.fill_buf()?;
        if found.is_empty() {
            return Err(Error::new(
                ErrorKind::UnexpectedEof,
                "it closed the connection in the middle of its file",
            ));
        }
        let count = found.len().min(usize::try_from(length - done).unwrap_or(usize::MAX));
        file.write_all(&found[..count])?;
        connection.input.consume(count);
        done += count as u64;
        progress.tell(done);
    }
    Ok(())
}

/// Takes updates.
struct Taker {
    connection: Connection,
    file: File,
    shared: Arc<Shared>,
    /// What the server calls the place where updates begin.
    offset: u64,
}

impl Taker {
    fn run(mut self, address: &str) {
        if let Err(error) = self.take(address) {
            let problem = format!("{address} sends nothing more: {error}");
            *self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
        }
    }

    fn take(&mut self, address: &str) -> Result<(), Error> {
        self.connection.input.get_mut().set_patience(Duration::ZERO);
        let socket: &TcpStream = self.connection.input.get_ref().stream().socket();
        socket.set_read_timeout(Some(ACKNOWLEDGE_INTERVAL))?;
        let mut buffer = vec![0; STEP_BYTES];
        let (mut heard, mut told) = (Instant::now(), Instant::now());
        let mut acknowledged: Option<Instant> = None;
        while !self.shared.ends.load(Ordering::Acquire) {
            match self.connection.input.read(&mut buffer) {
                Ok(0) => return Err(Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
                Ok(count) => {
                    self.file.write_all(&buffer[..count])?;
                    self.shared.taken.fetch_add(count as u64, Ordering::AcqRel);
                    heard = Instant::now();
                }
                Err(error) if is_timeout(&error) && heard.elapsed() < SILENCE_MAX => {
                    if heard.elapsed() >= SILENCE_TOLD && told.elapsed() >= SILENCE_TOLD {
                        told = Instant::now();
                        let (seconds, most) = (heard.elapsed().as_secs(), SILENCE_MAX.as_secs());
                        syros_cli::say!(
                            "syros: {address} has sent nothing for {seconds} s; it is given up after {most} s"
                        );
                    }
                }
                Err(error) if is_timeout(&error) => return Err(silent(SILENCE_MAX)),
                Err(error) => return Err(error),
            }
            if acknowledged.is_none_or(|last| last.elapsed() >= ACKNOWLEDGE_INTERVAL) {
                acknowledged = Some(Instant::now());
                self.acknowledge()?;
            }
        }
        Ok(())
    }

    /// Tells the server how far the cluster is.
    fn acknowledge(&mut self) -> Result<(), Error> {
        let offset = self.offset + self.shared.repeated.load(Ordering::Acquire);
        let mut bytes = Vec::new();
        put_command(&mut bytes, &[&b"REPLCONF"[..], b"ACK", offset.to_string().as_bytes()]);
        self.connection.send(&bytes)
    }
}
