//! SLOWLOG: the last commands that took long.

use std::collections::VecDeque;
use std::time::Duration;
use syros_commands::commands;
use syros_types::WallTime;

/// Most commands in the slow log. With the longest arguments that are kept they take 16 MiB.
pub const SLOW_LOG_LENGTH_MAX: u64 = 4096;

/// Of a command so many words are kept: as in Redis.
const ARGUMENTS_MAX: usize = 32;

/// Of a word so many bytes are kept: as in Redis.
const ARGUMENT_BYTES_MAX: usize = 128;

/// A command that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlowCommand {
    /// When it was answered.
    pub(crate) at: WallTime,
    pub(crate) took: Duration,
    /// Its words, cut as Redis cuts them.
    pub(crate) words: Vec<Vec<u8>>,
    /// The address of its client.
    pub(crate) address: String,
    /// The name of its client.
    pub(crate) name: Vec<u8>,
}

/// Of a command that took long, what is not its client's: its words are data, and so are names of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCommandName {
    /// As SLOWLOG numbers it.
    pub number: u64,
    /// When it was answered.
    pub at: WallTime,
    /// How long it took.
    pub took: Duration,
    /// The name that the table of commands has for it.
    pub name: &'static str,
    /// Its words, as far as SLOWLOG keeps them.
    pub words: usize,
}

impl SlowCommandName {
    pub(super) fn of((number, command): &(u64, SlowCommand)) -> Self {
        let SlowCommand { at, took, words, .. } = command;
        let typed = words.first().map_or(&b""[..], Vec::as_slice);
        let known = commands().iter().find(|spec| typed.eq_ignore_ascii_case(spec.name.as_bytes()));
        let name = known.map_or("other", |spec| spec.name);
        Self { number: *number, at: *at, took: *took, name, words: words.len() }
    }
}

/// The last commands that took long, the newest first, each with its number.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    next: u64,
    commands: VecDeque<(u64, SlowCommand)>,
}

impl SlowLog {
    /// Keeps a command, and no more than `length` of them.
    pub(crate) fn push(&mut self, command: SlowCommand, length: u64) {
        self.commands.push_front((self.next, command));
        self.next += 1;
        self.trim(length);
    }

    /// Keeps no more than the last so many.
    pub(crate) fn trim(&mut self, length: u64) {
        let length = usize::try_from(length.min(SLOW_LOG_LENGTH_MAX)).unwrap_or(usize::MAX);
        self.commands.truncate(length);
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Forgets all commands. Their numbers are not used again.
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
    }

    /// The commands with their numbers, the newest first.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &(u64, SlowCommand)> {
        self.commands.iter()
    }
}

/// The place of the first word that is not kept: it and those behind it may be a password, or tell of users.
fn secret_from(words: &[&[u8]]) -> usize {
    // How a command is to be run stands before it, as often as somebody likes.
    let (all, mut words) = (words.len(), words);
    loop {
        words = match words {
            [word, rest @ ..] if word.eq_ignore_ascii_case(b"blind") => rest,
            [word, _, rest @ ..] if word.eq_ignore_ascii_case(b"read") => rest,
            _ => break,
        };
    }
    let before = all - words.len();
    let is = |place: usize, name: &[u8]| words.get(place).is_some_and(|word| word.eq_ignore_ascii_case(name));
    let is_secret_setting = || {
        let names: [&[u8]; 7] = [
            b"masterauth",
            b"masteruser",
            b"primaryauth",
            b"primaryuser",
            b"requirepass",
            b"tls-client-key-file-pass",
            b"tls-key-file-pass",
        ];
        words.iter().skip(2).step_by(2).any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
    };
    if is(0, b"auth") || (words.len() > 2 && is(0, b"hello")) {
        before + 1
    } else if is(0, b"acl") && (is(1, b"setuser") || is(1, b"getuser") || is(1, b"deluser")) {
        before + 2
    } else if is(0, b"config") && is(1, b"set") && is_secret_setting() {
        before + 3
    } else {
        usize::MAX
    }
}

/// Appends the words of a command as they are kept: cut as Redis cuts them, each behind a byte with its length, and all of
/// them behind a byte with their number. Passwords are left out.
pub(crate) fn put_words(words: &[&[u8]], out: &mut Vec<u8>) {
    let secret_from = secret_from(words);
    let shown = words.len().min(ARGUMENTS_MAX);
    // At most ARGUMENTS_MAX.
    out.push(shown as u8);
    for (place, word) in words.iter().take(shown).enumerate() {
        let length_at = out.len();
        out.push(0);
        if words.len() > ARGUMENTS_MAX && place + 1 == ARGUMENTS_MAX {
            let more = words.len() - ARGUMENTS_MAX + 1;
            out.extend_from_slice(format!("... ({more} more arguments)").as_bytes());
        } else if place >= secret_from {
            out.extend_from_slice(b"(redacted)");
        } else if word.len() > ARGUMENT_BYTES_MAX {
            out.extend_from_slice(&word[..ARGUMENT_BYTES_MAX]);
            out.extend_from_slice(format!("... ({} more bytes)", word.len() - ARGUMENT_BYTES_MAX).as_bytes());
        } else {
            out.extend_from_slice(word);
        }
        // A word of 128 bytes and a remark of some 30.
        out[length_at] = u8::try_from(out.len() - length_at - 1).unwrap_or(u8::MAX);
    }
}

/// The words that [`put_words`] has kept.
pub(crate) fn words_of(kept: &[u8]) -> Vec<Vec<u8>> {
    let Some((count, mut rest)) = kept.split_first() else { return Vec::new() };
    let mut next = || {
        let (length, behind) = rest.split_first()?;
        let (word, behind) = behind.split_at_checked(usize::from(*length))?;
        rest = behind;
        Some(word.to_vec())
    };
    (0..*count).map_while(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(words: &[&[u8]]) -> Vec<String> {
        let mut out = Vec::new();
        put_words(words, &mut out);
        words_of(&out).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn commands_are_cut_as_by_redis() {
        let long = [b'x'; 200];
        assert_eq!(
            kept(&[b"SET", b"", &long]),
            ["SET", "", &format!("{}... (72 more bytes)", "x".repeat(128))]
        );
        let many = kept(&[&b"w"[..]; 40]);
        assert_eq!((many.len(), many[31].as_str()), (32, "... (9 more arguments)"));
        assert_eq!(kept(&[&b"w"[..]; 32])[31], "w");
        assert_eq!(kept(&[b"AUTH", b"me", b"secret"]), ["AUTH", "(redacted)", "(redacted)"]);
        assert_eq!(kept(&[b"HELLO", b"3"]), ["HELLO", "3"]);
        assert_eq!(
            kept(&[b"ACL", b"SetUser", b"bob", b">secret"]),
            ["ACL", "SetUser", "(redacted)", "(redacted)"]
        );
        assert_eq!(kept(&[b"ACL", b"LIST"]), ["ACL", "LIST"]);
        assert_eq!(
            kept(&[b"blind", b"ACL", b"SetUser", b"bob", b">secret"]),
            ["blind", "ACL", "SetUser", "(redacted)", "(redacted)"]
        );
        assert_eq!(
            kept(&[b"READ", b"leader", b"acl", b"getuser", b"bob"]),
            ["READ", "leader", "acl", "getuser", "(redacted)"]
        );
        assert_eq!(kept(&[b"BLIND", b"SET", b"k", b"v"]), ["BLIND", "SET", "k", "v"]);
        assert_eq!(
            kept(&[b"config", b"set", b"requirepass", b"secret"]),
            ["config", "set", "requirepass", "(redacted)"]
        );
        assert_eq!(kept(&[b"config", b"set", b"maxmemory", b"1"]), ["config", "set", "maxmemory", "1"]);
        let longest = [&long[..]; 100];
        let mut out = Vec::new();
        put_words(&longest, &mut out);
        assert!(out.len() < usize::from(u16::MAX), "{}", out.len());
        assert!(words_of(&[]).is_empty() && words_of(&[3, 200]).is_empty());
    }

    /// What is shown to those who do not authenticate.
    #[test]
    fn a_name_is_that_of_the_table_and_nothing_else_is_told() {
        let named = |word: &[u8]| {
            let words = vec![word.to_vec(), b"secret key".to_vec()];
            let (at, took) = (WallTime(7), Duration::from_micros(9));
            let command =
                SlowCommand { at, took, words, address: "1.2.3.4:5".to_owned(), name: b"me".to_vec() };
            SlowCommandName::of(&(3, command))
        };
        let expected = SlowCommandName {
            number: 3,
            at: WallTime(7),
            took: Duration::from_micros(9),
            name: "hset",
            words: 2,
        };
        assert_eq!(named(b"hSeT"), expected);
        assert_eq!(named(b"<script>alert(1)</script>").name, "other");
    }

    #[test]
    fn the_log_is_bounded_and_numbers_go_on() {
        let command = |word: &[u8]| SlowCommand {
            at: WallTime(0),
            took: Duration::ZERO,
            words: vec![word.to_vec()],
            address: String::new(),
            name: Vec::new(),
        };
        let mut log = SlowLog::default();
        (0..5).for_each(|number| log.push(command(&[number]), 3));
        let numbers = |log: &SlowLog| log.commands().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!(numbers(&log), [4, 3, 2]);
        log.clear();
        log.push(command(b"x"), 3);
        assert_eq!(numbers(&log), [5]);
        (0..2 * SLOW_LOG_LENGTH_MAX).for_each(|_| log.push(command(b"x"), u64::MAX));
        assert_eq!(log.len() as u64, SLOW_LOG_LENGTH_MAX);
    }
}
