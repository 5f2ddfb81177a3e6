//! Where replicas and clients are, and how far it is from one region to another.

use crate::line::Line;
use core::fmt;
use core::time::Duration;
use syros_settings::{ConfigError, Reader};
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

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self(error.to_string())
    }
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

/// The names of all regions, each once.
fn all_names(root: &Reader, replicas: &[String], clients: &[String]) -> Result<Vec<String>, ConfigError> {
    let mut names: Vec<String> = Vec::new();
    for (key, name) in
        replicas.iter().map(|name| ("replicas", name)).chain(clients.iter().map(|name| ("clients", name)))
    {
        // Names are parts of commands and of JSON.
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_. ".contains(letter);
        if name.is_empty() || !name.chars().all(is_plain) {
            let problem = format!("region '{name}': a name has letters, digits, '-', '_', '.' and spaces");
            return Err(root.error(key, problem));
        }
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if names.len() > REGIONS_MAX {
        return Err(root.error_of_section(format!("{} regions are more than {REGIONS_MAX}", names.len())));
    }
    Ok(names)
}

/// The tables `[[line]]`: the lines from each region to each, row by row, as far as the file has them.
struct Lines<'a> {
    names: &'a [String],
    lines: Vec<Option<Line>>,
}

impl Lines<'_> {
    /// The position of a region in the list of all.
    fn region(&self, entry: &Reader, key: &str, name: &str) -> Result<usize, ConfigError> {
        let known = self.names.iter().position(|known| known == name);
        known.ok_or_else(|| entry.error(key, format!("no replica and no client is in region '{name}'")))
    }

    fn read(&mut self, entry: &mut Reader) -> Result<(), ConfigError> {
        let between = entry.texts("between")?;
        let (from, to) = (entry.text("from")?, entry.text("to")?);
        let within_each = entry.boolean("within-each")?.unwrap_or_default();
        let line = read_line(entry, from.is_some())?;
        let count = self.names.len();
        match (between.as_deref(), from, to, within_each) {
            (Some([a, b]), None, None, false) => {
                let (a, b) = (self.region(entry, "between", a)?, self.region(entry, "between", b)?);
                self.lines[a * count + b] = Some(line);
                self.lines[b * count + a] = Some(line);
            }
            (Some(regions), None, None, false) => {
                return Err(
                    entry.error("between", format!("two regions are expected, not {}", regions.len()))
                );
            }
            (None, Some(from), Some(to), false) => {
                let (from, to) = (self.region(entry, "from", &from)?, self.region(entry, "to", &to)?);
                self.lines[from * count + to] = Some(line);
            }
            (None, None, None, true) => {
                for region in 0..count {
                    self.lines[region * count + region].get_or_insert(line);
                }
            }
            _ => {
                let problem = "it must have either 'between', or 'from' and 'to', or 'within-each = true'";
                return Err(entry.error_of_section(problem));
            }
        }
        Ok(())
    }
}

/// What one direction of a line is like.
fn read_line(entry: &mut Reader, is_one_way: bool) -> Result<Line, ConfigError> {
    let mut millis = |key| -> Result<_, ConfigError> {
        let millis = entry.number(key, 0.0..=DELAY_MS_MAX)?;
        Ok(millis.map(|millis| Duration::from_nanos((millis * 1e6).round() as u64)))
    };
    let (rtt, delay, jitter) = (millis("rtt-ms")?, millis("delay-ms")?, millis("jitter-ms")?);
    let delay = match (rtt, delay) {
        (Some(_), None) if is_one_way => {
            return Err(entry.error("rtt-ms", "a line 'from' one region has a delay-ms, no rtt-ms"));
        }
        (Some(rtt), None) => rtt / 2,
        (None, Some(delay)) => delay,
        _ => return Err(entry.error_of_section("a line has either a delay-ms or a rtt-ms")),
    };
    // Nothing is lost at 0, and there is no limit at 0.
    let mut scaled = |key, max, scale: f64| -> Result<_, ConfigError> {
        let value = entry.number(key, 0.0..=max)?.unwrap_or_default();
        let scaled = (value * scale).round();
        if value > 0.0 && scaled == 0.0 {
            return Err(entry.error(key, format!("{value} is too little to be emulated")));
        }
        Ok(scaled as u64)
    };
    let loss_ppm = scaled("loss-percent", 50.0, 10_000.0)?;
    let bytes_per_second = scaled("mbit-per-second", MBIT_MAX, 125_000.0)?;
    Ok(Line { delay, jitter: jitter.unwrap_or_default(), loss_ppm: loss_ppm as u32, bytes_per_second })
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
        let mut root = Reader::parse(text)?;
        let (replicas, clients) = (root.required_texts("replicas")?, root.required_texts("clients")?);
        Group::new(replicas.len()).map_err(|error| root.error("replicas", error.to_string()))?;
        if !(1..=CLIENTS_MAX).contains(&clients.len()) {
            let problem = format!("there must be 1 to {CLIENTS_MAX} regions, not {}", clients.len());
            return Err(root.error("clients", problem).into());
        }
        let names = all_names(&root, &replicas, &clients)?;
        let count = names.len();
        let mut lines = Lines { names: &names, lines: vec![None; count * count] };
        for mut entry in root.sections("line")? {
            lines.read(&mut entry)?;
            entry.finish()?;
        }
        let lines = lines.lines;
        if let Some(at) = lines.iter().position(Option::is_none) {
            let (from, to) = (&names[at / count], &names[at % count]);
            return Err(root.error("line", format!("there is none from '{from}' to '{to}'")).into());
        }
        root.finish()?;
        let index = |name: &String| names.iter().position(|known| known == name);
        let replicas = replicas.iter().filter_map(index).collect();
        let clients = clients.iter().filter_map(index).collect();
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
            (4, 1.0, 0.0, "key 'replicas': a group has 1, 3, 5, 7 or 9 replicas, not 4"),
            (3, -1.0, 0.0, "'line.1.rtt-ms': -1.0 is not a number"),
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
            ("= 96.87", "= -1", "key 'line.2.rtt-ms': -1 is not a number from 0 to 10000"),
            ("= 96.87", "= 1e9", "from 0 to 10000"),
            ("rtt-ms = 96.87", "", "either a delay-ms or a rtt-ms"),
            ("[\"paris\", \"wisconsin\"]", "[\"paris\", \"rome\"]", "region 'rome'"),
            ("within-each = true", "within-each = false", "it must have either"),
            (
                "between = [\"paris\", \"wisconsin\"]",
                "between = [\"paris\", \"paris\"]",
                "there is none from 'paris' to 'wisconsin'",
            ),
            ("[\"wisconsin\"]", "[]", "1 to 16 regions, not 0"),
            ("\"wisconsin\"]\nclients", "\"wisconsin\", \"paris\"]\nclients", "1, 3, 5, 7 or 9"),
            ("clients", "customers", "key 'clients': missing"),
            (
                "clients",
                "weather = 3\nclients",
                "key 'weather': unknown; known here are clients, line, replicas",
            ),
            (
                "rtt-ms = 96.87",
                "rtt-ms = 96.87\nlength = 3",
                "key 'line.2.length': unknown; known here are between, ",
            ),
            ("\"paris\", \"wisconsin\"]\nrtt", "\"paris\"]\nrtt", "two regions are expected, not 1"),
            ("[\"wisconsin\"]", "[\"a}b\"]", "region 'a}b'"),
            ("rtt-ms = 96.87", "rtt-ms = 96.87\nmbit-per-second = 1e-9", "too little"),
        ] {
            assert!(good.contains(from), "{from}");
            let problem = Regions::parse(&good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(problem.contains(complaint), "'{complaint}' is not in: {problem}");
        }
    }
}
