//! The TLS session of a connection that is encrypted.

use crate::counters::Counters;
use crate::inbound::{Inbound, ReadOutcome};
use rustls::Connection;
use std::cell::RefCell;
use std::io::{Error, ErrorKind, Read, Result, Write};

/// Bytes that are encrypted at a time: what is encrypted lies in memory twice for a moment.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes that one read takes from the socket at most.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    /// Where a thread reads what it then decrypts: what is left of it does not stay here.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The TLS session of one connection, of either side.
#[derive(Debug)]
pub struct TlsSession {
    session: Box<Connection>,
    /// What has come and has not been decrypted, because there was no room for more: at most one read.
    received: Vec<u8>,
    /// Why the session has failed, which is told when what was decrypted before has been taken.
    failure: Option<Error>,
}

impl TlsSession {
    /// About what an idle session takes in memory, in bytes (measured: 8.5 KiB with the connection's own buffer): its keys,
    /// and room for a part of a record.
    const IDLE_BYTES: usize = 5 * 1024;

    /// Bytes of memory that the session takes.
    pub(crate) const fn memory_bytes(&self) -> usize {
        Self::IDLE_BYTES + self.received.capacity()
    }

    /// The session of a connection whose handshake may be over or not.
    #[must_use]
    pub fn new(session: impl Into<Connection>) -> Self {
        let mut session = Box::new(session.into());
        // What waits is bounded before it comes here.
        session.set_buffer_limit(None);
        Self { session, received: Vec::new(), failure: None }
    }

    /// The session of the library.
    #[must_use]
    pub fn session(&self) -> &Connection {
        &self.session
    }

    /// Sends the only thing that is to be said on a connection, as far as the socket takes it at once.
    ///
    /// # Errors
    /// The session or the socket has failed.
    pub fn send_last(mut self, plain: &[u8], socket: &mut impl Write) -> Result<()> {
        let mut out = Vec::new();
        self.encrypt(plain, &mut out)?;
        self.end();
        self.take_answer(&mut out);
        socket.write(&out).map(drop)
    }

    /// Encrypts `plain` into `out`. Before the end of the handshake, the session keeps it.
    ///
    /// # Errors
    /// The session has failed.
    pub(crate) fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        for piece in plain.chunks(PIECE_BYTES) {
            self.session.writer().write_all(piece)?;
            self.take_answer(out);
        }
        // There may be nothing to encrypt yet, and a handshake to begin.
        self.take_answer(out);
        Ok(())
    }

    /// True if there is something to send.
    pub(crate) fn has_answer(&self) -> bool {
        self.session.wants_write()
    }

    /// Appends what is to be sent to `out`.
    pub(crate) fn take_answer(&mut self, out: &mut Vec<u8>) {
        while self.session.wants_write() {
            // A buffer takes everything.
            let _ = self.session.write_tls(out);
        }
    }

    /// There will be no more to send.
    pub(crate) fn end(&mut self) {
        self.session.send_close_notify();
    }

    /// At most one read of `source`, and everything that it completes, decrypted into `inbound`, as far as that has room.
    /// The second value is true if another read may find more.
    pub(crate) fn read_into(
        &mut self,
        inbound: &mut Inbound,
        source: &mut impl Read,
        counters: &mut Counters,
    ) -> (ReadOutcome, bool) {
        if let Some(error) = self.failure.take() {
            return (ReadOutcome::Failed(error), false);
        }
        let mut decrypted = 0;
        let earlier = std::mem::take(&mut self.received);
        let mut rest = &earlier[..];
        let mut end = self.decrypt(&mut rest, inbound, &mut decrypted);
        self.received = rest.to_vec();
        let mut is_emptied = false;
        if matches!(end, ReadOutcome::Nothing) {
            counters.reads += 1;
            SCRATCH.with_borrow_mut(|scratch| {
                scratch.resize(READ_BYTES, 0);
                match read_once(source, scratch) {
                    Ok(0) => {
                        // The session says from now on that it has ended.
                        let _ = self.session.read_tls(&mut std::io::empty());
                        let _ = self.session.process_new_packets();
                        end = self.decrypt(&mut &[][..], inbound, &mut decrypted);
                    }
                    Ok(count) => {
                        counters.bytes_in += count as u64;
                        is_emptied = count < READ_BYTES;
                        let mut rest = &scratch[..count];
                        end = self.decrypt(&mut rest, inbound, &mut decrypted);
                        self.received = rest.to_vec();
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => is_emptied = true,
                    Err(error) => end = ReadOutcome::Failed(error),
                }
            });
        }
        let has_more = !matches!(end, ReadOutcome::Nothing) || !is_emptied;
        if decrypted == 0 {
            return (end, has_more);
        }
        if let ReadOutcome::Failed(error) = end {
            self.failure = Some(error);
        }
        (ReadOutcome::Received(decrypted), has_more)
    }

    /// Decrypts what has come, and takes off `bytes` what it has made use of. `Nothing`: that is all of it, and the session
    /// goes on.
    fn decrypt(&mut self, bytes: &mut &[u8], inbound: &mut Inbound, decrypted: &mut usize) -> ReadOutcome {
        loop {
            match inbound.read_from(&mut self.session.reader()).0 {
                ReadOutcome::Received(count) => {
                    *decrypted += count;
                    continue;
                }
                ReadOutcome::Nothing => {}
                // Some end a connection without a word of their session. What goes through it says by itself whether it is whole.
                ReadOutcome::Failed(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return ReadOutcome::Closed;
                }
                end @ (ReadOutcome::Full | ReadOutcome::Closed | ReadOutcome::Failed(_)) => return end,
            }
            if bytes.is_empty() {
                return ReadOutcome::Nothing;
            }
            let taken = self.session.read_tls(bytes).and_then(|_| {
                let failed = |error| Error::new(ErrorKind::InvalidData, error);
                self.session.process_new_packets().map_err(failed)
            });
            if let Err(error) = taken {
                *bytes = &[];
                return ReadOutcome::Failed(error);
            }
        }
    }
}

/// One read.
fn read_once(source: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
