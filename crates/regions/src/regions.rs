//! Where replicas and clients are, and how far it is from one region to another.

use crate::line::Line;
use core::fmt;
use core::time::Duration;
use serde::Deserialize;
use syros_types::Group;

/// Most regions: more than there are replicas and places worth a client.
const REGIONS_MAX: usize = 16;

/// Most places for clients.
const CLIENTS_MAX: usize = 16;

/// The longest delay that is believed, in milliseconds: three times round the world through a satellite.
const DELAY_MS_MAX: f64 = 10_000.0;

/// The fastest line that is believed, in megabits per second.
const MBIT_MAX: f64 = 1_000_000.0;

/// The files that come with the program, by name.
const SHIPPED: [(&str, &str); 5] = [
    ("one-data-center", include_str!("../regions/one-data-center.toml")),
    ("three-zones", include_str!("../regions/three-zones.toml")),
    ("far-leader", include_str!("../regions/far-leader.toml")),
    ("near-majority", include_str!("../regions/near-majority.toml")),
    ("five-continents", include_str!("../regions/five-continents.toml")),
];

/// What is wrong with a description of regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

fn problem<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem(text.into()))
}

/// Where replicas and clients are, and the lines between these regions.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    names: Vec<String>,
    /// Region of each replica; the first one leads at first.
    replicas: Vec<usize>,
    /// Regions that have clients.
    clients: Vec<usize>,
    /// From each region to each, row by row.
    lines: Vec<Line>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    replicas: Vec<String>,
    clients: Vec<String>,
    line: Vec<LineEntry>,
}

/// A table `[[line]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LineEntry {
    between: Option<[String; 2]>,
    from: Option<String>,
    to: Option<String>,
    within_each: Option<bool>,
    rtt_ms: Option<f64>,
    delay_ms: Option<f64>,
    jitter_ms: Option<f64>,
    loss_percent: Option<f64>,
    mbit_per_second: Option<f64>,
}

/// A number of the file within its limits.
fn limited(name: &str, value: f64, max: f64) -> Result<f64, Problem> {
    if (0.0..=max).contains(&value) {
        return Ok(value);
    }
    problem(format!("{name} = {value} is not from 0 to {max}"))
}

fn millis(name: &str, value: f64) -> Result<Duration, Problem> {
    limited(name, value, DELAY_MS_MAX).map(|millis| Duration::from_nanos((millis * 1e6).round() as u64))
}

impl LineEntry {
    /// What one direction is like.
    fn line(&self) -> Result<Line, Problem> {
        let delay = match (self.rtt_ms, self.delay_ms, &self.from) {
            (Some(rtt), None, None) => millis("rtt-ms", rtt)? / 2,
            (None, Some(delay), _) => millis("delay-ms", delay)?,
            (Some(_), None, Some(_)) => return problem("a line 'from' one region has a delay-ms, no rtt-ms"),
            _ => return problem("a line has either a delay-ms or a rtt-ms"),
        };
        let loss = limited("loss-percent", self.loss_percent.unwrap_or(0.0), 50.0)?;
        let mbit = limited("mbit-per-second", self.mbit_per_second.unwrap_or(0.0), MBIT_MAX)?;
        let (loss_ppm, bytes_per_second) = ((loss * 10_000.0).round(), (mbit * 125_000.0).round());
        // Nothing is lost at 0, and there is no limit at 0.
        for (name, value, is_nothing) in
            [("loss-percent", loss, loss_ppm == 0.0), ("mbit-per-second", mbit, bytes_per_second == 0.0)]
        {
            if value > 0.0 && is_nothing {
                return problem(format!("{name} = {value} is too little to be emulated"));
            }
        }
        Ok(Line {
            delay,
            jitter: millis("jitter-ms", self.jitter_ms.unwrap_or(0.0))?,
            loss_ppm: loss_ppm as u32,
            bytes_per_second: bytes_per_second as u64,
        })
    }
}

impl Regions {
    /// Names of the descriptions that come with the program.
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The text of a description that comes with the program.
    #[must_use]
    pub fn shipped_text(name: &str) -> Option<&'static str> {
        SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// One region with so many replicas and all clients, everybody so many milliseconds from everybody, there and back,
    /// and in each direction up to so many more, all alike.
    ///
    /// # Errors
    /// [`Problem`]: not so many replicas, or not so far.
    pub fn one_place(replicas: usize, rtt_ms: f64, jitter_ms: f64) -> Result<Self, Problem> {
        // TOML has other words for them.
        if let Some(no_time) = [rtt_ms, jitter_ms].into_iter().find(|time| !time.is_finite()) {
            return Err(Problem(format!("{no_time} is no time in milliseconds")));
        }
        let replicas = vec!["\"here\""; replicas].join(", ");
        Self::parse(&format!(
            "replicas = [{replicas}]\nclients = [\"here\"]\n[[line]]\nwithin-each = true\nrtt-ms = {rtt_ms:?}\njitter-ms = \
             {jitter_ms:?}\n"
        ))
    }

    /// Reads a description: TOML, see the files in `crates/regions/regions`.
    ///
    /// # Errors
    /// [`Problem`] names what is missing, unknown or out of range.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let file: File = toml::from_str(text).map_err(|error| Problem(error.to_string()))?;
        Group::new(file.replicas.len()).map_err(|error| Problem(format!("replicas: {error}")))?;
        if !(1..=CLIENTS_MAX).contains(&file.clients.len()) {
            let count = file.clients.len();
            return problem(format!("clients: there must be 1 to {CLIENTS_MAX} regions, not {count}"));
        }
        let mut names: Vec<String> = Vec::new();
        for name in file.replicas.iter().chain(&file.clients) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        // They are parts of commands and of JSON.
        let is_plain = |name: &&String| {
            !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "-_. ".contains(letter))
        };
        if let Some(strange) = names.iter().find(|name| !is_plain(name)) {
            return problem(format!(
                "region '{strange}': a name has letters, digits, '-', '_', '.' and spaces"
            ));
        }
        if names.len() > REGIONS_MAX {
            return problem(format!("{} regions are more than {REGIONS_MAX}", names.len()));
        }
        let index = |name: &String| names.iter().position(|known| known == name);
        let place = |name: &String| {
            index(name).ok_or_else(|| Problem(format!("no replica and no client is in region '{name}'")))
        };
        let count = names.len();
        let mut lines: Vec<Option<Line>> = vec![None; count * count];
        for (number, entry) in file.line.iter().enumerate() {
            let in_entry = |Problem(text)| Problem(format!("line {}: {text}", number + 1));
            let line = entry.line().map_err(in_entry)?;
            let within_each = entry.within_each == Some(true);
            match (&entry.between, &entry.from, &entry.to, within_each) {
                (Some([a, b]), None, None, false) => {
                    let (a, b) = (place(a).map_err(in_entry)?, place(b).map_err(in_entry)?);
                    lines[a * count + b] = Some(line);
                    lines[b * count + a] = Some(line);
                }
                (None, Some(from), Some(to), false) => {
                    let (from, to) = (place(from).map_err(in_entry)?, place(to).map_err(in_entry)?);
                    lines[from * count + to] = Some(line);
                }
                (None, None, None, true) => {
                    for region in 0..count {
                        lines[region * count + region].get_or_insert(line);
                    }
                }
                _ => {
                    let text = "it must have either 'between', or 'from' and 'to', or 'within-each = true'";
                    return Err(in_entry(Problem(text.to_owned())));
                }
            }
        }
        let missing = lines.iter().position(Option::is_none);
        if let Some(at) = missing {
            let (from, to) = (&names[at / count], &names[at % count]);
            return problem(format!("there is no line from '{from}' to '{to}'"));
        }
        let replicas = file.replicas.iter().filter_map(index).collect();
        let clients = file.clients.iter().filter_map(index).collect();
        Ok(Self { replicas, clients, lines: lines.into_iter().flatten().collect(), names })
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> Group {
        Group::new(self.replicas.len()).expect("it was checked")
    }

    /// The name of a region.
    #[must_use]
    pub fn name(&self, region: usize) -> &str {
        &self.names[region]
    }

    /// Region of each replica.
    #[must_use]
    pub fn replicas(&self) -> &[usize] {
        &self.replicas
    }

    /// Regions that have clients.
    #[must_use]
    pub fn clients(&self) -> &[usize] {
        &self.clients
    }

    /// What it is like from one region to another, or within one.
    #[must_use]
    pub fn line(&self, from: usize, to: usize) -> Line {
        self.lines[from * self.names.len() + to]
    }

    /// There and back, without jitter.
    #[must_use]
    pub fn round_trip(&self, from: usize, to: usize) -> Duration {
        self.line(from, to).delay + self.line(to, from).delay
    }

    /// There and back between the two replicas that are farthest from each other, with all jitter.
    #[must_use]
    pub fn longest_round_trip(&self) -> Duration {
        self.longest(self.replicas.iter())
    }

    /// Between these regions and replicas.
    fn longest<'a>(&self, regions: impl Iterator<Item = &'a usize>) -> Duration {
        let with_jitter = |from: usize, to: usize| {
            let (there, back) = (self.line(from, to), self.line(to, from));
            there.delay + there.jitter + back.delay + back.jitter
        };
        let pairs = regions.flat_map(|from| self.replicas.iter().map(|to| (*from, *to)));
        pairs.map(|(from, to)| with_jitter(from, to)).max().unwrap_or_default()
    }

    /// As [`Self::longest_round_trip`], of replicas and clients with replicas.
    #[must_use]
    pub fn longest_round_trip_of_clients(&self) -> Duration {
        self.longest(self.replicas.iter().chain(&self.clients))
    }

    /// How many times longer than by default clients must wait before they send something again.
    #[must_use]
    pub fn patience_of_clients(&self) -> u32 {
        patience(self.longest_round_trip_of_clients())
    }

    /// How many times longer than by default everything must take that measures in messages between
    /// replicas: promises, suspicion, sending again. The defaults suit 50 ms there and back.
    #[must_use]
    pub fn patience(&self) -> u32 {
        patience(self.longest_round_trip())
    }
}

/// How many times longer than what the defaults are made for something this far away takes.
fn patience(round_trip: Duration) -> u32 {
    round_trip.as_millis().div_ceil(50).clamp(1, 200) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_one_place_everybody_is_as_far_from_everybody() {
        let regions = Regions::one_place(5, 4.0, 1.5).unwrap();
        assert_eq!((regions.replicas().len(), regions.clients().len()), (5, 1));
        let here = regions.clients()[0];
        assert_eq!(regions.round_trip(here, regions.replicas()[4]), Duration::from_millis(4));
        assert_eq!(regions.line(here, here).jitter, Duration::from_micros(1_500));
        for (replicas, rtt, jitter, complaint) in [
            (4, 1.0, 0.0, "replicas: "),
            (3, -1.0, 0.0, "rtt-ms = -1"),
            (3, f64::NAN, 0.0, "NaN is no time"),
            (3, 1.0, f64::INFINITY, "inf is no time"),
        ] {
            let problem = Regions::one_place(replicas, rtt, jitter).unwrap_err().to_string();
            assert!(problem.contains(complaint), "{complaint}: {problem}");
        }
    }

    #[test]
    fn what_comes_with_the_program_can_be_read() {
        for name in Regions::shipped() {
            let text = Regions::shipped_text(name).unwrap();
            let regions = Regions::parse(text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
            assert!(regions.group().size() >= 3);
        }
        let paper = Regions::parse(Regions::shipped_text("far-leader").unwrap()).unwrap();
        assert_eq!(paper.round_trip(0, 1), Duration::from_micros(96_870));
        assert_eq!(
            (paper.name(0), paper.replicas(), paper.clients()),
            ("paris", &[0, 1, 1, 1, 1][..], &[1][..])
        );
        assert_eq!(paper.patience(), 2);
    }

    #[test]
    fn one_direction_can_differ() {
        let text = "replicas = ['a', 'b', 'b']\nclients = ['a']\n\
            [[line]]\nwithin-each = true\ndelay-ms = 0.1\n\
            [[line]]\nbetween = ['a', 'b']\nrtt-ms = 10\njitter-ms = 1\n\
            [[line]]\nfrom = 'b'\nto = 'a'\ndelay-ms = 20\nloss-percent = 0.5\nmbit-per-second = 8\n";
        let regions = Regions::parse(text).unwrap();
        assert_eq!(regions.line(0, 1).delay, Duration::from_millis(5));
        assert_eq!(regions.line(0, 1).jitter, Duration::from_millis(1));
        let back = regions.line(1, 0);
        assert_eq!((back.loss_ppm, back.bytes_per_second), (5_000, 1_000_000));
        assert_eq!(regions.round_trip(0, 1), Duration::from_millis(25));
        assert_eq!(regions.longest_round_trip(), Duration::from_millis(26));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = Regions::shipped_text("far-leader").unwrap();
        for (from, to, complaint) in [
            ("= 96.87", "= -1", "rtt-ms = -1"),
            ("= 96.87", "= 1e9", "is not from 0 to 10000"),
            ("rtt-ms = 96.87", "", "either a delay-ms or a rtt-ms"),
            ("[\"paris\", \"wisconsin\"]", "[\"paris\", \"rome\"]", "region 'rome'"),
            ("within-each = true", "within-each = false", "it must have either"),
            (
                "between = [\"paris\", \"wisconsin\"]",
                "between = [\"paris\", \"paris\"]",
                "from 'paris' to 'wisconsin'",
            ),
            ("[\"wisconsin\"]", "[]", "1 to 16 regions, not 0"),
            ("\"wisconsin\"]\nclients", "\"wisconsin\", \"paris\"]\nclients", "1, 3, 5, 7 or 9"),
            ("clients", "customers", "customers"),
            ("[\"wisconsin\"]", "[\"a}b\"]", "region 'a}b'"),
            ("rtt-ms = 96.87", "rtt-ms = 96.87\nmbit-per-second = 1e-9", "too little"),
        ] {
            assert!(good.contains(from), "{from}");
            let problem = Regions::parse(&good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(problem.contains(complaint), "'{complaint}' is not in: {problem}");
        }
    }
}
