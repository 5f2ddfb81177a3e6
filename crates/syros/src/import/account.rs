//! What has been done with keys, and how that is told.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use syros_rdb::Place;

/// So many keys are named that cannot be imported; of the others, how many they are.
const NAMED_MAX: usize = 20;

/// Letters of a key that are shown.
const SHOWN_BYTES_MAX: usize = 100;

/// How often it is told how far the import has come.
const INTERVAL: Duration = Duration::from_secs(2);

/// Counts of keys.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Keys, by their databases.
    pub(super) keys: BTreeMap<u64, u64>,
    /// Bytes of their values as they were read.
    pub(super) bytes: u64,
    /// Keys of which the value came by several commands.
    pub(super) in_pieces: u64,
    /// Keys that had expired.
    pub(super) expired: u64,
    /// Keys that the cluster has, and keeps.
    pub(super) kept: u64,
    /// Keys that were gone when they were asked for.
    pub(super) gone: u64,
    pub(super) libraries: u64,
    pub(super) refused: Refused,
}

/// Keys that cannot be imported.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub(super) count: u64,
    named: Vec<String>,
}

impl Refused {
    pub(super) fn add(&mut self, place: &Place, problem: &str) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(format!("{}: {problem}", name(place)));
        }
    }

    /// One line for each that is named.
    pub(super) fn lines(&self) -> String {
        let mut text: String = self.named.iter().fold(String::new(), |text, line| text + "\n  " + line);
        let others = self.count - self.named.len() as u64;
        if others > 0 {
            let _ = write!(text, "\n  and {others} others");
        }
        text
    }
}

/// A key, for people.
pub(super) fn name(place: &Place) -> String {
    let shown = &place.key[..place.key.len().min(SHOWN_BYTES_MAX)];
    let dots = if shown.len() < place.key.len() { ".." } else { "" };
    format!("key '{}{dots}' of database {}", shown.escape_ascii(), place.database)
}

impl Account {
    pub(super) fn count(&self) -> u64 {
        self.keys.values().sum()
    }

    /// Says what was imported.
    pub(super) fn print(&self, seconds: f64) {
        syros_cli::tell!("{}", self.text("imported").trim_end());
        syros_cli::tell!(
            "  in {seconds:.1} s, {:.0} keys a second",
            self.count() as f64 / seconds.max(0.001)
        );
    }

    /// What there is to say, a line for each thing.
    pub(super) fn text(&self, done: &str) -> String {
        let databases: Vec<String> =
            self.keys.iter().map(|(database, keys)| format!("{keys} in database {database}")).collect();
        let databases =
            if databases.len() > 1 { format!(" ({})", databases.join(", ")) } else { String::new() };
        let mut text = format!("{done} {} keys{databases}\n", self.count());
        let counts = [
            (self.in_pieces, "of them had values too long for one command, and came by several"),
            (self.libraries, "libraries of functions"),
            (self.expired, "keys had expired, and were left out"),
            (self.kept, "keys exist in the cluster, and were left as they are"),
            (self.gone, "keys were gone when they were asked for"),
        ];
        for (count, what) in counts {
            if count > 0 {
                let _ = writeln!(text, "  {count} {what}");
            }
        }
        if self.refused.count > 0 {
            let _ = writeln!(text, "  {} keys were left out:{}", self.refused.count, self.refused.lines());
        }
        text
    }
}

/// Tells on standard error how many keys are done.
pub(super) struct KeyProgress {
    what: &'static str,
    began: Instant,
    told: Instant,
    told_keys: u64,
}

impl KeyProgress {
    pub(super) fn new(what: &'static str) -> Self {
        let now = Instant::now();
        Self { what, began: now, told: now, told_keys: 0 }
    }

    pub(super) fn tell(&mut self, keys: u64) {
        let since = self.told.elapsed();
        if since < INTERVAL {
            return;
        }
        let per_second = (keys - self.told_keys) as f64 / since.as_secs_f64();
        syros_cli::say!("syros: {} {keys} keys, {per_second:.0} a second", self.what);
        (self.told, self.told_keys) = (Instant::now(), keys);
    }

    pub(super) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_are_named_and_all_are_counted() {
        let mut refused = Refused::default();
        for number in 0..23 {
            let place = Place { database: 3, key: format!("k{number}\n").into_bytes(), expiry_ms: None };
            refused.add(&place, "no");
        }
        let lines = refused.lines();
        assert!(lines.starts_with("\n  key 'k0\\n' of database 3: no\n"), "{lines}");
        assert!(lines.ends_with("key 'k19\\n' of database 3: no\n  and 3 others"), "{lines}");
        let long = Place { key: vec![b'x'; 200], ..Place::default() };
        assert!(name(&long).ends_with("xx..' of database 0"), "{}", name(&long));
    }
}
