//! Which share of all operations is of which kind: YCSB's core workloads (Cooper et al., SoCC 2010), and what
//! papers on fast updates tell apart.

use crate::distribution::{Distribution, KeyChoice};
use crate::error::InvalidWorkload;
use crate::workload::Mix;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// Reads a record (GET).
    Read,
    /// Replaces a record without looking at it, and returns nothing (SET): what papers call a nilext update.
    Update,
    /// Writes a record that was not there (SET of a new key).
    Insert,
    /// Reads consecutive records (MGET).
    Scan,
    /// Reads a record and replaces it when the value is there (GET, then SET).
    ReadModifyWrite,
    /// Changes a record and returns what it became (INCR): an update that is not nilext. Of keys of its own.
    Increment,
    /// Adds a record to the end of a file, and returns nothing (BLIND APPEND): nilext, and does not commute with others
    /// of the same file (the Skyros paper's record append, 5.7.1).
    Append,
}

/// What a request is: an operation that reads, modifies and writes has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// It only reads.
    Read,
    /// It changes something.
    Update,
}

impl Part {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "requests that read",
            Self::Update => "requests that update",
        }
    }
}

impl OperationKind {
    /// All, in the order of the shares of a [`Blend`].
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Update,
        Self::Insert,
        Self::Scan,
        Self::ReadModifyWrite,
        Self::Increment,
        Self::Append,
    ];

    /// What its first request is.
    #[must_use]
    pub const fn first(self) -> Part {
        match self {
            Self::Read | Self::Scan | Self::ReadModifyWrite => Part::Read,
            Self::Update | Self::Insert | Self::Increment | Self::Append => Part::Update,
        }
    }

    /// What follows when a request of it has been answered.
    #[must_use]
    pub const fn after(self, part: Part) -> Option<Part> {
        match (self, part) {
            (Self::ReadModifyWrite, Part::Read) => Some(Part::Update),
            _ => None,
        }
    }

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
            Self::Increment => "increment",
            Self::Append => "append",
        }
    }
}

/// Percentages of the kinds, in the order of [`OperationKind::ALL`]; they add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blend {
    percentages: [u8; OperationKind::ALL.len()],
    /// Files that appends go to; 0 if there are none.
    files: u32,
    /// Reads that go to what was updated just before.
    latest: Option<ReadLatest>,
}

/// Reads of what somebody has just updated (the Skyros paper's read-latest windows, 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLatest {
    /// The share of reads that are such, in percent. The others choose their record as ever.
    pub percent: u8,
    /// They read a record of which an update was acknowledged so long ago at most, or as ever if there is none.
    pub window: Duration,
}

/// Those that have a name: reads, updates, inserts, scans, read-modify-writes, increments, appends.
const NAMED: [(&str, [u8; OperationKind::ALL.len()]); 8] = [
    ("load", [0, 0, 100, 0, 0, 0, 0]),
    ("a", [50, 50, 0, 0, 0, 0, 0]),
    ("b", [95, 5, 0, 0, 0, 0, 0]),
    ("c", [100, 0, 0, 0, 0, 0, 0]),
    ("d", [95, 0, 5, 0, 0, 0, 0]),
    ("e", [0, 0, 5, 95, 0, 0, 0]),
    ("f", [50, 0, 0, 0, 50, 0, 0]),
    ("nilext", [0, 100, 0, 0, 0, 0, 0]),
];

/// What a mix of one's own begins with.
const MIX: &str = "mix:";

/// Appends to one file, or, with a number after a colon, to several.
const RECORD_APPEND: &str = "record-append";

/// Half reads, half updates, and after a colon the share of reads of what was just updated, and what just is.
const READ_LATEST: &str = "read-latest:";

/// The longest window: what was updated in it is remembered.
const WINDOW_MAX: Duration = Duration::from_secs(1);

/// Most files: each has a counter.
const FILES_MAX: u32 = 1_000_000;

impl Blend {
    /// YCSB's load phase: inserts only, from an empty store.
    #[must_use]
    pub fn is_load(&self) -> bool {
        self.percent(OperationKind::Insert) == 100
    }

    /// Files that appends go to; 0 if there are no appends.
    #[must_use]
    pub const fn files(&self) -> u64 {
        self.files as u64
    }

    /// Which reads go to what was updated just before, if some do.
    #[must_use]
    pub const fn latest(&self) -> Option<ReadLatest> {
        self.latest
    }

    /// The share of a kind, in percent.
    #[must_use]
    pub fn percent(&self, kind: OperationKind) -> u8 {
        let place = OperationKind::ALL.iter().position(|other| *other == kind);
        place.map_or(0, |place| self.percentages[place])
    }

    /// The kind of an operation by a number below 100.
    pub(crate) fn kind(&self, number: u64) -> OperationKind {
        let mut end = 0;
        for kind in OperationKind::ALL {
            end += u64::from(self.percent(kind));
            if number < end {
                return kind;
            }
        }
        OperationKind::Read
    }

    /// How keys are chosen if this is asked for. Workload d is about what is latest, whatever is asked for; and
    /// where there are only inserts there is nothing to choose.
    #[must_use]
    pub fn choice(&self, asked: KeyChoice) -> KeyChoice {
        let reads_latest = self.percent(OperationKind::Insert) > 0 && self.percent(OperationKind::Read) > 0;
        match asked {
            _ if self.is_load() => KeyChoice::Of(Distribution::Sequential),
            KeyChoice::Latest { .. } => asked,
            _ if reads_latest => KeyChoice::Latest { skew: 0.99 },
            _ => asked,
        }
    }
}

impl From<Mix> for Blend {
    fn from(Mix { reads_percent: reads }: Mix) -> Self {
        let reads = reads.min(100);
        Self { percentages: [reads, 100 - reads, 0, 0, 0, 0, 0], files: 0, latest: None }
    }
}

impl fmt::Display for Blend {
    /// As it can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ReadLatest { percent, window }) = self.latest {
            return write!(f, "{READ_LATEST}{percent}/{}us", window.as_micros());
        }
        match (self.files, NAMED.iter().find(|(_, percentages)| *percentages == self.percentages)) {
            (1, _) => f.write_str(RECORD_APPEND),
            (2.., _) => write!(f, "{RECORD_APPEND}:{}", self.files),
            (0, Some((name, _))) => f.write_str(name),
            (0, None) => {
                let [reads, updates, .., increments, _] = self.percentages;
                write!(f, "{MIX}{updates}/{increments}/{reads}")
            }
        }
    }
}

/// `N/M/R`: percentages of updates that are nilext, of those that are not, and of reads.
fn parse_mix(text: &str) -> Result<Blend, InvalidWorkload> {
    let parts: Option<Vec<u8>> = text.split('/').map(|part| part.parse().ok()).collect();
    if let Some([updates, increments, reads]) = parts.as_deref() {
        let sum = u32::from(*updates) + u32::from(*increments) + u32::from(*reads);
        if sum == 100 {
            let percentages = [*reads, *updates, 0, 0, 0, *increments, 0];
            return Ok(Blend { percentages, files: 0, latest: None });
        }
        return Err(InvalidWorkload(format!("'{MIX}{text}' adds up to {sum} percent, not to 100")));
    }
    Err(InvalidWorkload(format!(
        "'{MIX}{text}' is no mix: the percentages of nilext updates, other updates and reads, as in mix:80,10,10"
    )))
}

/// The number of files after the name of the workload, 1 if there is none.
fn parse_files(rest: &str) -> Result<Blend, InvalidWorkload> {
    let files = match rest {
        "" => Some(1),
        rest => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
    };
    let files = files.filter(|files| (1..=FILES_MAX).contains(files));
    let appends_only = [0, 0, 0, 0, 0, 0, 100];
    files.map(|files| Blend { percentages: appends_only, files, latest: None }).ok_or_else(|| {
        let text = format!("'{RECORD_APPEND}{rest}' is no workload: {RECORD_APPEND}, or {RECORD_APPEND}:F with 1 to {FILES_MAX} files");
        InvalidWorkload(text)
    })
}

/// `S/W`: the percentage of reads that go to what was updated in the last W, which is a number with `us` or `ms` behind
/// it.
fn parse_read_latest(rest: &str) -> Result<Blend, InvalidWorkload> {
    let parse = || {
        let (percent, window) = rest.split_once('/')?;
        let (number, micros) = match window.strip_suffix("us") {
            Some(number) => (number, 1_u64),
            None => (window.strip_suffix("ms")?, 1_000),
        };
        let window = Duration::from_micros(number.parse::<u64>().ok()?.checked_mul(micros)?);
        let percent = percent.parse().ok().filter(|percent| *percent <= 100)?;
        (!window.is_zero() && window <= WINDOW_MAX).then_some(ReadLatest { percent, window })
    };
    parse()
        .map(|latest| Blend { percentages: [50, 50, 0, 0, 0, 0, 0], files: 0, latest: Some(latest) })
        .ok_or_else(|| {
            InvalidWorkload(format!(
                "'{READ_LATEST}{rest}' is no workload: the percentage of reads that go to what was just updated, and a \
                 time of 1us to {}ms that is just, as in {READ_LATEST}50/200us",
                WINDOW_MAX.as_millis()
            ))
        })
}

impl FromStr for Blend {
    type Err = InvalidWorkload;

    fn from_str(text: &str) -> Result<Self, InvalidWorkload> {
        if let Some((_, percentages)) = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Ok(Self { percentages: *percentages, files: 0, latest: None });
        }
        if let Some(mix) = text.strip_prefix(MIX) {
            return parse_mix(mix);
        }
        if let Some(rest) = text.strip_prefix(RECORD_APPEND) {
            return parse_files(rest);
        }
        if let Some(rest) = text.strip_prefix(READ_LATEST) {
            return parse_read_latest(rest);
        }
        if text.ends_with('%') {
            return text.parse::<Mix>().map(Self::from);
        }
        Err(InvalidWorkload(format!(
            "'{text}' is no workload: a, b, c, d, e, f and load of YCSB, nilext, record-append, read-latest:S/W, a share of reads \
             as 75%, or mix:N,M,R with the percentages of nilext updates, other updates and reads"
        )))
    }
}

/// A list of them, between commas, of which those of a mix may be some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blends(pub Vec<Blend>);

impl FromStr for Blends {
    type Err = InvalidWorkload;

    fn from_str(text: &str) -> Result<Self, InvalidWorkload> {
        let mut blends = Vec::new();
        let mut words = text.split(',');
        while let Some(word) = words.next() {
            let blend = if word.starts_with(MIX) && !word.contains('/') {
                let rest: Vec<&str> = words.by_ref().take(2).collect();
                core::iter::once(word).chain(rest).collect::<Vec<_>>().join("/").parse()
            } else {
                word.parse()
            };
            blends.push(blend?);
        }
        Ok(Self(blends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for (name, percentages) in NAMED {
            let blend: Blend = name.parse().unwrap();
            assert_eq!((blend.percentages, blend.to_string().as_str()), (percentages, name));
            assert_eq!(percentages.iter().sum::<u8>(), 100, "{name}");
        }
        let list: Blends =
            "a,mix:80,10,10,nilext,mix:1/2/97,75%,A,record-append:1,record-append:20,read-latest:5/1ms"
                .parse()
                .unwrap();
        let names: Vec<String> = list.0.iter().map(Blend::to_string).collect();
        assert_eq!(
            names,
            [
                "a",
                "mix:80/10/10",
                "nilext",
                "mix:1/2/97",
                "mix:25/0/75",
                "a",
                "record-append",
                "record-append:20",
                "read-latest:5/1000us"
            ]
        );
        for (text, complaint) in [
            ("", "'' is no workload"),
            ("g", "load of YCSB"),
            ("a,,b", "'' is no workload"),
            ("mix:80,10", "'mix:80/10' is no mix"),
            ("mix:80,10,20", "adds up to 110 percent"),
            ("mix:x,10,20", "as in mix:80,10,10"),
            ("mix:300,10,20", "is no mix"),
            ("101%", "'101%' is no workload"),
            ("record-append:0", "'record-append:0' is no workload"),
            ("record-append:1000001", "1 to 1000000 files"),
            ("read-latest:101/1ms", "'read-latest:101/1ms' is no workload"),
            ("read-latest:50/0us", "1us to 1000ms"),
            ("read-latest:50/1001ms", "1us to 1000ms"),
            ("read-latest:50/100", "as in read-latest:50/200us"),
            ("record-appends", "1 to 1000000 files"),
        ] {
            let error = text.parse::<Blends>().unwrap_err().to_string();
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }

    #[test]
    fn workload_d_reads_what_is_latest() {
        let of = |name: &str, asked: &str| {
            name.parse::<Blend>().unwrap().choice(asked.parse().unwrap()).to_string()
        };
        assert_eq!(of("d", "uniform"), "latest:0.99");
        assert_eq!(of("d", "latest:0.5"), "latest:0.5");
        assert_eq!(of("load", "zipfian"), "sequential");
        for name in ["a", "b", "c", "e", "f", "nilext", "mix:1,1,98"] {
            assert_eq!(of(&name.replace(',', "/"), "zipfian"), "zipfian:0.99");
        }
    }

    #[test]
    fn only_what_reads_and_writes_has_a_second_request() {
        for kind in OperationKind::ALL {
            let second = kind.after(kind.first());
            assert_eq!(second.is_some(), kind == OperationKind::ReadModifyWrite, "{kind:?}");
            assert_eq!(second.and_then(|second| kind.after(second)), None);
        }
    }
}
