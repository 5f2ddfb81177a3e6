//! MONITOR: the commands of all clients, for those clients that want to see them.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use syros_types::WallTime;

/// Most bytes of commands that are kept until they are dealt out. More come together only if one client sends them in one
/// go; what does not fit is left out, and a line says so.
const FEED_BYTES_MAX: usize = 4 << 20;

/// Of one command so many bytes are shown at most.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The commands that have come and have not been dealt out to those who monitor.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    watchers: AtomicUsize,
    feed: Mutex<Vec<u8>>,
}

impl Monitor {
    /// True if some client monitors.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// So many clients monitor.
    pub(crate) fn set_watchers(&self, count: usize) {
        self.watchers.store(count, Ordering::Relaxed);
        if count == 0 {
            self.take();
        }
    }

    /// A client with this address has sent a command.
    pub(crate) fn record(&self, now: WallTime, address: &str, words: &[&[u8]]) {
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if feed.len() > FEED_BYTES_MAX {
            return;
        }
        let (seconds, micros) = (now.0 / 1_000_000, now.0 % 1_000_000);
        feed.extend_from_slice(format!("+{seconds}.{micros:06} [0 {address}]").as_bytes());
        let start = feed.len();
        for word in words {
            if feed.len() - start > LINE_BYTES_MAX {
                feed.extend_from_slice(b" ...");
                break;
            }
            feed.extend_from_slice(b" \"");
            put_quoted(&word[..word.len().min(LINE_BYTES_MAX)], &mut feed);
            feed.push(b'"');
        }
        feed.extend_from_slice(b"\r\n");
        if feed.len() > FEED_BYTES_MAX {
            feed.extend_from_slice(b"+(commands have been left out)\r\n");
        }
    }

    /// What has not been dealt out.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.feed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A word as Redis shows it between quotes.
fn put_quoted(word: &[u8], out: &mut Vec<u8>) {
    for byte in word {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            7 => out.extend_from_slice(b"\\a"),
            8 => out.extend_from_slice(b"\\b"),
            0x20..=0x7e => out.push(*byte),
            other => out.extend_from_slice(format!("\\x{other:02x}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_by_redis() {
        let monitor = Monitor::default();
        monitor.set_watchers(1);
        monitor.record(WallTime(1_700_000_000_000_042), "1.2.3.4:5", &[b"SET", b"a\"b\\", b"\n\x01\xff"]);
        let expected = r#"+1700000000.000042 [0 1.2.3.4:5] "SET" "a\"b\\" "\n\x01\xff""#;
        assert_eq!(String::from_utf8(monitor.take()).unwrap(), format!("{expected}\r\n"));
        assert!(monitor.take().is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let monitor = Monitor::default();
        let word = vec![b'x'; 1 << 20];
        for _ in 0..1000 {
            monitor.record(WallTime(0), "a", &[&word, &word, &word]);
        }
        let feed = monitor.take();
        assert!(feed.len() < FEED_BYTES_MAX + 4 * LINE_BYTES_MAX, "{}", feed.len());
        assert!(feed.ends_with(b"+(commands have been left out)\r\n"));
    }
}
