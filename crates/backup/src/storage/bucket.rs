//! The files of a backup as objects in a bucket.

use super::{Meanwhile, NewFile, Storage};
use crate::chunk::{CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES};
use crate::error::BackupError;
use crate::layout::{CLAIM, MANIFEST};
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use syros_s3::{Client, Fetched, Location, S3Error, Written};

/// A part is uploaded when it has so many bytes, from memory: so many are sent again if a connection breaks. The manifest has
/// room for parts of 2.4 TiB of compressed data ([`crate::manifest::PARTS_MAX`]).
const PART_BYTES: u64 = 16 << 20;

/// So many parts are uploaded at a time, beside the one that is filled: a store takes some tens of mebibytes a second on one
/// connection. With the parts this bounds the memory of uploads, to 80 MiB.
const UPLOADS_MAX: usize = 4;

/// Objects are read in such pieces.
const PIECE_BYTES: u64 = 4 << 20;

/// So many pieces are fetched before they are wanted, so that the store's delays are not waited for one by one. With the piece
/// that is being read they take 16 MiB.
const PIECES_AHEAD: usize = 3;

/// The beginnings of so many objects are fetched at a time: a log may have tens of thousands of files.
const STARTS_AT_A_TIME: usize = 16;

/// While something takes long, others are thought of this often.
const MEANWHILE_INTERVAL: Duration = Duration::from_millis(200);

/// A bucket, or a part of one.
#[derive(Debug)]
pub(crate) struct Bucket(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    client: Arc<Client>,
    location: Location,
    uploads: Mutex<VecDeque<Upload>>,
    /// It is known whether the store heeds conditions.
    is_probed: AtomicBool,
}

/// An object that is on its way.
#[derive(Debug)]
struct Upload {
    file: String,
    done: Background<Written>,
}

/// What another thread finds out.
#[derive(Debug)]
struct Background<T>(Receiver<Result<T, S3Error>>);

impl<T: Send + 'static> Background<T> {
    fn begin(work: impl FnOnce() -> Result<T, S3Error> + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        // If nobody wants the answer any more, nothing is lost with it.
        thread::spawn(move || drop(sender.send(work())));
        Self(receiver)
    }

    fn wait(&self, meanwhile: Meanwhile<'_>) -> Result<T, BackupError> {
        loop {
            match self.0.recv_timeout(MEANWHILE_INTERVAL) {
                Ok(found) => return found.map_err(BackupError::Store),
                Err(RecvTimeoutError::Timeout) => meanwhile(),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends before it ends"),
            }
        }
    }
}

impl Bucket {
    pub(crate) fn new(client: Client, location: Location) -> Self {
        let (uploads, is_probed) = (Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Shared { client: Arc::new(client), location, uploads, is_probed }))
    }

    /// Finds out whether the store heeds conditions: it must refuse to put something where something is.
    fn probe(&self, file: &str) -> Result<(), BackupError> {
        let Shared { client, is_probed, .. } = &*self.0;
        if client.knows_conditions()
            && self.put(file, random_text().as_bytes())? == Written::Done
            && client.knows_conditions()
        {
            client.lacks_conditions();
        }
        is_probed.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn put(&self, file: &str, bytes: &[u8]) -> Result<Written, BackupError> {
        self.0.client.put_new(&self.0.location.key(file), bytes).map_err(BackupError::Store)
    }
}

impl Shared {
    fn uploads(&self) -> MutexGuard<'_, VecDeque<Upload>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fewer than so many uploads are under way.
    fn wait_for_fewer(&self, count: usize, meanwhile: Meanwhile<'_>) -> Result<(), BackupError> {
        loop {
            let first = {
                let mut uploads = self.uploads();
                if uploads.len() < count { None } else { uploads.pop_front() }
            };
            let Some(Upload { file, done }) = first else { return Ok(()) };
            if done.wait(meanwhile)? == Written::Exists {
                return Err(self.taken(&file));
            }
        }
    }

    fn name(&self) -> String {
        self.location.to_string()
    }

    fn name_of(&self, file: &str) -> String {
        format!("s3://{}/{}", self.location.bucket, self.location.key(file))
    }

    /// Somebody else writes where only this process should.
    fn taken(&self, file: &str) -> BackupError {
        if file.starts_with("log-") {
            BackupError::InUse { place: self.name() }
        } else {
            BackupError::Claimed { place: self.name() }
        }
    }
}

/// True if the store gives back exactly these bytes.
fn is_there(client: &Client, key: &str, bytes: &[u8]) -> Result<bool, S3Error> {
    let mut offset = 0;
    for piece in bytes.chunks(PIECE_BYTES as usize) {
        let found = client.get(key, offset, piece.len() as u64)?;
        if found.is_none_or(|found| found.total != bytes.len() as u64 || found.bytes != piece) {
            return Ok(false);
        }
        offset += piece.len() as u64;
    }
    Ok(true)
}

/// Sixteen digits that nobody else has.
fn random_text() -> String {
    format!("{:016x}\n", RandomState::new().hash_one(std::process::id()))
}

impl Storage for Bucket {
    fn name(&self) -> String {
        self.0.name()
    }

    fn name_of(&self, file: &str) -> String {
        self.0.name_of(file)
    }

    fn part_bytes(&self) -> u64 {
        PART_BYTES
    }

    fn claim(&self) -> Result<(), BackupError> {
        let place = self.name();
        if let Some(found) = self.list()?.into_iter().next() {
            return Err(BackupError::NotEmpty { place, found });
        }
        let own = random_text();
        if self.put(CLAIM, own.as_bytes())? == Written::Exists {
            return Err(BackupError::Claimed { place });
        }
        self.probe(CLAIM)?;
        if self.0.client.knows_conditions() {
            let others = self.list()?.into_iter().find(|name| name != CLAIM);
            return match others {
                // Another one has made a whole backup since it was looked at.
                Some(found) => {
                    self.remove(CLAIM)?;
                    Err(BackupError::NotEmpty { place, found })
                }
                None => Ok(()),
            };
        }
        // Whoever wrote it last has it; both may think so who write in the same moment.
        self.remove(CLAIM)?;
        let written = self.put(CLAIM, own.as_bytes())?;
        let is_own = is_there(&self.0.client, &self.0.location.key(CLAIM), own.as_bytes())
            .map_err(BackupError::Store)?;
        if written == Written::Exists || !is_own {
            return Err(BackupError::Claimed { place });
        }
        Ok(())
    }

    fn release(&self) {
        // One that stays does no harm beside a manifest.
        let _ = self.remove(CLAIM);
    }

    fn create(&self, file: &str) -> Result<Box<dyn NewFile>, BackupError> {
        // A vector that grows by itself would take twice the memory. A part ends with the chunk with which it is long enough.
        let bytes = Vec::with_capacity(PART_BYTES as usize + CHUNK_BYTES_MAX + CHUNK_HEADER_BYTES);
        Ok(Box::new(NewObject { bucket: Arc::clone(&self.0), file: file.to_owned(), bytes }))
    }

    fn settle(&self, meanwhile: Meanwhile<'_>) -> Result<(), BackupError> {
        self.0.wait_for_fewer(1, meanwhile)
    }

    fn abandon(&self) {
        self.0.client.cancel();
        for Upload { done, .. } in std::mem::take(&mut *self.0.uploads()) {
            // It has come to its end when this is answered, one way or the other.
            let _ = done.wait(&mut || {});
        }
        self.0.client.resume();
    }

    fn publish(&self, file: &str, bytes: Vec<u8>, meanwhile: Meanwhile<'_>) -> Result<(), BackupError> {
        let (client, key) = (Arc::clone(&self.0.client), self.0.location.key(file));
        // Nobody reads it again before it is needed, and a store that has lost or changed it is to be found out now.
        let put = move || match client.put_new(&key, &bytes)? {
            Written::Exists => Ok(None),
            Written::Done => is_there(&client, &key, &bytes).map(Some),
        };
        match Background::begin(put).wait(meanwhile)? {
            None => Err(self.0.taken(file)),
            Some(false) => Err(BackupError::NotStored { object: self.0.name_of(file) }),
            Some(true) => Ok(()),
        }
    }

    fn open(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, BackupError> {
        let key = self.0.location.key(file);
        let found = self.0.client.get(&key, 0, PIECE_BYTES).map_err(BackupError::Store)?;
        let Some(Fetched { bytes, total }) = found else { return Ok(None) };
        let mut reader = ObjectReader {
            client: Arc::clone(&self.0.client),
            key,
            total,
            next: bytes.len() as u64,
            ahead: VecDeque::new(),
            piece: bytes,
            at: 0,
        };
        reader.fetch_ahead();
        Ok(Some(Box::new(reader)))
    }

    fn read_starts(&self, files: &[String], bytes_max: usize) -> Result<Vec<Option<Vec<u8>>>, BackupError> {
        let mut starts = Vec::with_capacity(files.len());
        for files in files.chunks(STARTS_AT_A_TIME) {
            let begin = |file: &String| {
                let (client, key) = (Arc::clone(&self.0.client), self.0.location.key(file));
                Background::begin(move || client.get(&key, 0, bytes_max as u64))
            };
            let under_way: Vec<_> = files.iter().map(begin).collect();
            for start in under_way {
                starts.push(start.wait(&mut || {})?.map(|found| found.bytes));
            }
        }
        Ok(starts)
    }

    fn list(&self) -> Result<Vec<String>, BackupError> {
        self.0.client.list(&self.0.location.prefix).map_err(BackupError::Store)
    }

    fn remove(&self, file: &str) -> Result<(), BackupError> {
        self.0.client.remove(&self.0.location.key(file)).map_err(BackupError::Store)
    }

    fn hold(&self) -> Result<Option<File>, BackupError> {
        if self.0.is_probed.load(Ordering::SeqCst)
            || self.read_starts(&[MANIFEST.to_owned()], 1)?.iter().all(Option::is_none)
        {
            return Ok(None);
        }
        // Beside a manifest it is no claim, only something that is there.
        self.put(CLAIM, random_text().as_bytes())?;
        self.probe(CLAIM)?;
        self.remove(CLAIM)?;
        Ok(None)
    }

    fn warning(&self) -> Option<String> {
        (!self.0.client.knows_conditions()).then(|| {
            format!(
                "the store does not know If-None-Match: take care that one command at a time writes to {}",
                self.name()
            )
        })
    }
}

/// An object whose bytes come together.
#[derive(Debug)]
struct NewObject {
    bucket: Arc<Shared>,
    file: String,
    bytes: Vec<u8>,
}

impl NewFile for NewObject {
    fn append(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>, meanwhile: Meanwhile<'_>) -> Result<(), BackupError> {
        let Self { bucket, file, bytes } = *self;
        bucket.wait_for_fewer(UPLOADS_MAX, meanwhile)?;
        let (client, key) = (Arc::clone(&bucket.client), bucket.location.key(&file));
        let done = Background::begin(move || client.put_new(&key, &bytes));
        bucket.uploads().push_back(Upload { file, done });
        Ok(())
    }
}

/// Reads an object from its beginning to its end.
#[derive(Debug)]
struct ObjectReader {
    client: Arc<Client>,
    key: String,
    total: u64,
    /// Where the next piece begins that is not asked for yet.
    next: u64,
    ahead: VecDeque<Background<Option<Fetched>>>,
    piece: Vec<u8>,
    at: usize,
}

impl ObjectReader {
    fn fetch_ahead(&mut self) {
        while self.ahead.len() < PIECES_AHEAD && self.next < self.total {
            let (client, key, start) = (Arc::clone(&self.client), self.key.clone(), self.next);
            let length = PIECE_BYTES.min(self.total - start);
            self.ahead.push_back(Background::begin(move || client.get(&key, start, length)));
            self.next += length;
        }
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len()
            && let Some(piece) = self.ahead.pop_front()
        {
            let found = piece.wait(&mut || {}).map_err(io::Error::other)?;
            let changed = || io::Error::other("it was removed or replaced while it was read");
            let found = found.filter(|found| found.total == self.total).ok_or_else(changed)?;
            (self.piece, self.at) = (found.bytes, 0);
            self.fetch_ahead();
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
