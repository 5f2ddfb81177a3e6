//! Keys on their way into the cluster.

use std::time::{SystemTime, UNIX_EPOCH};

use syros_commands::rdb;
use syros_rdb::{Piece, Place, commands, expiry_command};
use syros_resp::ReceivedReply;
use syros_types::Database;
use syros_types::limits::VALUE_BYTES_MAX;

use super::account::{Account, KeyProgress, name};
use super::target::{Existing, Target};

/// What a piece may become once it is decompressed. A stream is one piece, and may become much.
pub(super) const EXPANSION_MAX: usize = 2 << 30;

/// Failures are looked at when so many keys have been sent since the last time.
const LOOK_INTERVAL: u64 = 1024;

/// Takes keys, and sees to it that they come to be in the cluster.
pub(super) struct Loader {
    target: Target,
    existing: Existing,
    skips_refused: bool,
    pub(super) account: Account,
    progress: KeyProgress,
    /// What becomes of the rest of the value that comes in pieces.
    value: Rest,
    unlooked: u64,
}

/// What becomes of the rest of a value of which a piece has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Sent,
    Ignored,
}

impl Loader {
    pub(super) fn new(target: Target, existing: Existing, skips_refused: bool) -> Self {
        Self {
            target,
            existing,
            skips_refused,
            account: Account::default(),
            progress: KeyProgress::new("imported"),
            value: Rest::Sent,
            unlooked: 0,
        }
    }

    /// A library of functions.
    pub(super) fn library(&mut self, text: &[u8]) -> Result<(), String> {
        let words: [&[u8]; 4] = [b"FUNCTION", b"LOAD", b"REPLACE", text];
        let without: [&[u8]; 3] = [b"FUNCTION", b"LOAD", text];
        let words = if self.existing == Existing::Replaced { &words[..] } else { &without[..] };
        match self.target.ask(0, words)? {
            ReceivedReply::Error(error)
                if error.contains("already exists") && self.existing == Existing::Kept =>
            {
                Ok(())
            }
            ReceivedReply::Error(error) => {
                Err(format!("the cluster refuses a library of functions: {error}"))
            }
            _ => {
                self.account.libraries += 1;
                Ok(())
            }
        }
    }

    /// Some of a value, or all of it.
    pub(super) fn piece(&mut self, place: &Place, piece: Piece) -> Result<(), String> {
        self.account.bytes += piece.typed.len() as u64;
        let is_whole = piece.is_first && piece.is_last;
        if is_whole && piece.typed.len() + FOOTER_BYTES <= VALUE_BYTES_MAX {
            return self.payload(place, &rdb::payload(piece.typed));
        }
        if piece.is_first {
            self.value = self.begin(place)?;
        }
        if self.value == Rest::Ignored {
            return Ok(());
        }
        self.add(place, &piece.typed)?;
        if piece.is_last { self.end(place) } else { Ok(()) }
    }

    /// All of a value, as DUMP answers it.
    pub(super) fn payload(&mut self, place: &Place, payload: &[u8]) -> Result<(), String> {
        if self.has_expired(place) {
            return Ok(());
        }
        let expiry = place.expiry_ms.unwrap_or_default().to_string();
        let words: [&[u8]; 6] = [b"RESTORE", &place.key, expiry.as_bytes(), payload, b"ABSTTL", b"REPLACE"];
        let count = if self.existing == Existing::Kept { words.len() - 1 } else { words.len() };
        self.target.submit(place.clone(), &words[..count])?;
        self.on_sent(place)
    }

    /// True if the key is not to be imported, because it has expired.
    fn has_expired(&mut self, place: &Place) -> bool {
        let has_expired = place.expiry_ms.is_some_and(|expiry_ms| expiry_ms <= now_ms());
        self.account.expired += u64::from(has_expired);
        has_expired
    }

    fn on_sent(&mut self, place: &Place) -> Result<(), String> {
        *self.account.keys.entry(place.database).or_default() += 1;
        self.unlooked += 1;
        if self.unlooked >= LOOK_INTERVAL {
            self.look()?;
            self.progress.tell(self.account.count());
        }
        Ok(())
    }

    /// Begins a value that comes in pieces: its key is there no more.
    fn begin(&mut self, place: &Place) -> Result<Rest, String> {
        if self.has_expired(place) {
            return Ok(Rest::Ignored);
        }
        let database = database_of(place)?;
        if self.existing == Existing::Kept
            && self.target.ask(database, &[b"EXISTS", &place.key])? != ReceivedReply::Integer(0)
        {
            self.account.kept += 1;
            return Ok(Rest::Ignored);
        }
        self.remove(place)?;
        Ok(Rest::Sent)
    }

    fn remove(&mut self, place: &Place) -> Result<(), String> {
        match self.target.ask(database_of(place)?, &[b"DEL", &place.key])? {
            ReceivedReply::Error(error) => Err(format!("{}: {error}", name(place))),
            _ => Ok(()),
        }
    }

    /// Adds elements to a value that comes in pieces.
    fn add(&mut self, place: &Place, typed: &[u8]) -> Result<(), String> {
        let value = rdb::value_of(typed, EXPANSION_MAX)
            .map_err(|_| format!("{}: its value is not one that any server writes", name(place)))?;
        let target = &mut self.target;
        commands(&place.key, &value, &mut |command| target.submit_ordered(place.clone(), &command.words))
    }

    /// Ends a value that came in pieces.
    fn end(&mut self, place: &Place) -> Result<(), String> {
        if let Some(expiry_ms) = place.expiry_ms {
            self.target.submit_ordered(place.clone(), &expiry_command(&place.key, expiry_ms).words)?;
        }
        self.target.drain()?;
        self.account.in_pieces += 1;
        self.on_sent(place)
    }

    /// A key that cannot be imported, of which pieces may have come.
    pub(super) fn refused(&mut self, place: &Place, problem: &str, had_pieces: bool) -> Result<(), String> {
        if !self.skips_refused {
            return Err(format!(
                "{} cannot be imported: {problem} (--skip-unsupported leaves such keys out)",
                name(place)
            ));
        }
        self.account.refused.add(place, problem);
        if had_pieces && self.value == Rest::Sent { self.remove(place) } else { Ok(()) }
    }

    /// Looks at what was answered.
    fn look(&mut self) -> Result<(), String> {
        self.unlooked = 0;
        for failure in self.target.take_outcome().failures {
            if let Some(keys) = self.account.keys.get_mut(&failure.place.database) {
                *keys -= 1;
            }
            if failure.error.starts_with("BUSYKEY") {
                self.account.kept += 1;
            } else {
                self.refused(&failure.place, &failure.error, false)?;
            }
        }
        Ok(())
    }

    /// Waits until all is there; the account, how many seconds it took, and the cluster.
    pub(super) fn finish(mut self) -> Result<(Account, f64, Target), String> {
        self.target.drain()?;
        self.look()?;
        Ok((self.account, self.progress.seconds(), self.target))
    }
}

/// Bytes behind a value in a payload.
const FOOTER_BYTES: usize = 10;

fn database_of(place: &Place) -> Result<u8, String> {
    let number = u8::try_from(place.database).ok().and_then(Database::new);
    number.map(Database::number).ok_or_else(|| no_database(place.database))
}

/// What is said of a key in a database that there is not.
pub(super) fn no_database(number: u64) -> String {
    format!("Syros has databases 0 to {}, and no {number}", Database::COUNT - 1)
}

/// The time of this machine.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
