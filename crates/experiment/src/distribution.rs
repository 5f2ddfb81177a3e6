//! How often each key is chosen.

use crate::error::InvalidWorkload;
use core::fmt;
use core::str::FromStr;
use rand_distr::{Distribution as _, Zipf};
use syros_types::Prng;

/// YCSB's exponent.
const SKEW: f64 = 0.99;

/// The largest exponent: beyond, all is asked of the first key.
const SKEW_MAX: f64 = 10.0;

/// How often each key is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// One after the other, and again from the first: so many operations as there are keys load them all.
    Sequential,
    /// The k-th most popular in proportion to `1 / k^skew`. The first key is the most popular one; YCSB
    /// scatters them over its keys, which makes no difference to a store that goes by hashes.
    Zipfian {
        /// The exponent; YCSB's is 0.99.
        skew: f64,
    },
}

/// How often each key is chosen, also where keys are added: what `syros-lab bench compare` knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyChoice {
    /// As where no keys are added.
    Of(Distribution),
    /// As YCSB's `latest`: the k-th newest in proportion to `1 / k^skew`.
    Latest {
        /// The exponent; YCSB's is 0.99.
        skew: f64,
    },
    /// As YCSB's `hotspot`: a share of the operations goes to the first keys, a share of all, and the others to the
    /// others; within each of the two parts all keys are alike.
    Hotspot {
        /// Operations on hot keys, in percent of all.
        operations: f64,
        /// Hot keys, in percent of all; at least one key is hot.
        keys: f64,
    },
}

impl fmt::Display for Distribution {
    /// As it can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Sequential => f.write_str("sequential"),
            Self::Zipfian { skew } => write!(f, "zipfian:{skew}"),
        }
    }
}

impl fmt::Display for KeyChoice {
    /// As it can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(distribution) => distribution.fmt(f),
            Self::Latest { skew } => write!(f, "latest:{skew}"),
            Self::Hotspot { operations, keys } => write!(f, "hotspot:{operations}/{keys}"),
        }
    }
}

/// A number of a distribution's text, from 0 to `max`.
fn number(text: &str, max: f64) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=max).contains(number))
}

/// The exponent after a distribution's name and a colon, YCSB's if there is none.
fn parse_skew(rest: &str) -> Option<f64> {
    match rest {
        "" => Some(SKEW),
        rest => number(rest.strip_prefix(':')?, SKEW_MAX),
    }
}

impl FromStr for Distribution {
    type Err = InvalidWorkload;

    fn from_str(text: &str) -> Result<Self, InvalidWorkload> {
        match text {
            "uniform" => return Ok(Self::Uniform),
            "sequential" => return Ok(Self::Sequential),
            _ => {}
        }
        let skew = text.strip_prefix("zipfian").and_then(parse_skew);
        skew.map(|skew| Self::Zipfian { skew }).ok_or_else(|| {
            let names = "uniform, sequential, or zipfian:S with S from 0 to 10";
            InvalidWorkload(format!("'{text}' is no distribution: {names}"))
        })
    }
}

impl From<Distribution> for KeyChoice {
    fn from(distribution: Distribution) -> Self {
        Self::Of(distribution)
    }
}

impl FromStr for KeyChoice {
    type Err = InvalidWorkload;

    fn from_str(text: &str) -> Result<Self, InvalidWorkload> {
        if let Ok(distribution) = text.parse() {
            return Ok(Self::Of(distribution));
        }
        let hotspot = |rest: &str| match rest {
            // YCSB's.
            "" => Some(Self::Hotspot { operations: 80.0, keys: 20.0 }),
            rest => {
                let (operations, keys) = rest.strip_prefix(':')?.split_once('/')?;
                Some(Self::Hotspot { operations: number(operations, 100.0)?, keys: number(keys, 100.0)? })
            }
        };
        let latest = text.strip_prefix("latest").and_then(parse_skew).map(|skew| Self::Latest { skew });
        latest.or_else(|| text.strip_prefix("hotspot").and_then(hotspot)).ok_or_else(|| {
            InvalidWorkload(format!(
                "'{text}' is no distribution: uniform, sequential, latest:S or zipfian:S with S from 0 to 10, or \
                 hotspot:O/K for O percent of the operations on K percent of the keys"
            ))
        })
    }
}

/// [`Prng`] as the library of distributions knows generators.
struct Rng<'a>(&'a mut Prng);

impl rand_core::RngCore for Rng<'_> {
    fn next_u32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        rand_core::impls::fill_bytes_via_next(self, bytes);
    }
}

/// True for this percentage of all cases.
fn is_within(percent: f64, prng: &mut Prng) -> bool {
    // 53 bits are what a floating-point number holds.
    let unit = (prng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    unit * 100.0 < percent
}

/// Chooses keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    choice: KeyChoice,
    /// Ranks of the popular, among so many keys.
    zipf: Option<(u64, Zipf<f64>)>,
    /// The next key, if they come one after the other.
    next: u64,
}

/// Ranks among so many keys, if the distribution goes by ranks.
fn ranks(choice: KeyChoice, keys: u64) -> Result<Option<(u64, Zipf<f64>)>, InvalidWorkload> {
    match choice {
        KeyChoice::Of(Distribution::Zipfian { skew }) | KeyChoice::Latest { skew } => {
            let zipf = Zipf::new(keys as f64, skew);
            let zipf = zipf.map_err(|error| InvalidWorkload(format!("{choice}: {error}")))?;
            Ok(Some((keys, zipf)))
        }
        KeyChoice::Of(Distribution::Uniform | Distribution::Sequential) | KeyChoice::Hotspot { .. } => {
            Ok(None)
        }
    }
}

impl Keys {
    /// Chooses among so many keys; there may be more later.
    pub(crate) fn new(choice: KeyChoice, keys: u64) -> Result<Self, InvalidWorkload> {
        if keys == 0 {
            return Err(InvalidWorkload("there must be at least 1 key, not 0".to_owned()));
        }
        Ok(Self { choice, zipf: ranks(choice, keys)?, next: 0 })
    }

    /// The next key, when there are so many; 0 if there is none.
    pub(crate) fn draw(&mut self, keys: u64, prng: &mut Prng) -> u64 {
        match self.choice {
            KeyChoice::Of(Distribution::Uniform) => prng.below(keys),
            KeyChoice::Of(Distribution::Sequential) => {
                let key = self.next;
                self.next = (key + 1) % keys.max(1);
                key
            }
            KeyChoice::Of(Distribution::Zipfian { .. }) => self.rank(keys, prng),
            KeyChoice::Latest { .. } => (keys - keys.min(1)) - self.rank(keys, prng),
            KeyChoice::Hotspot { operations, keys: hot } => {
                let hot = ((keys as f64 * hot / 100.0) as u64).clamp(keys.min(1), keys);
                if hot == keys || is_within(operations, prng) {
                    prng.below(hot)
                } else {
                    hot + prng.below(keys - hot)
                }
            }
        }
    }

    /// The rank of the key to choose, from 0 for the most popular.
    fn rank(&mut self, keys: u64, prng: &mut Prng) -> u64 {
        if self.zipf.as_ref().is_none_or(|(known, _)| *known != keys) {
            // It can be made for any number of keys if it could for one; without keys, the old one will do.
            self.zipf = ranks(self.choice, keys).unwrap_or(self.zipf);
        }
        let rank = self.zipf.as_ref().map_or(0, |(_, zipf)| zipf.sample(&mut Rng(prng)) as u64 - 1);
        rank.min(keys.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws many times, and compares how often each key came with how often it should have.
    fn check(text: &str, keys: u64, share: impl Fn(u64) -> f64) {
        let draws = 200_000_u64;
        let (mut prng, mut counts) = (Prng::new(1), vec![0_u64; keys as usize]);
        let mut chooser = Keys::new(text.parse().unwrap(), keys).unwrap();
        for _ in 0..draws {
            counts[chooser.draw(keys, &mut prng) as usize] += 1;
        }
        let whole: f64 = (0..keys).map(&share).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{text}: the definition adds up to {whole}");
        // Pearson's statistic has the mean `keys - 1` and twice that as variance.
        let (mut deviation, mut expected_all) = (0.0, 0.0);
        for (key, counted) in counts.iter().enumerate() {
            let expected = draws as f64 * share(key as u64);
            let counted = *counted as f64;
            assert!((counted - expected).abs() < 5.5 * expected.sqrt() + 1.0, "{text}: {key}: {counted}");
            if expected > 0.0 {
                deviation += (counted - expected).powi(2) / expected;
                expected_all += 1.0;
            }
        }
        let bound = expected_all + 6.0 * (2.0_f64 * expected_all).sqrt();
        assert!(deviation < bound, "{text}: chi square is {deviation}, not below {bound}");
    }

    /// The exact shares of a Zipf distribution: `1 / (k^s H(n, s))` with the generalized harmonic number H.
    fn zipf_share(keys: u64, skew: f64) -> impl Fn(u64) -> f64 {
        let harmonic: f64 = (1..=keys).map(|k| (k as f64).powf(-skew)).sum();
        move |rank| ((rank + 1) as f64).powf(-skew) / harmonic
    }

    #[test]
    fn keys_come_as_often_as_the_definitions_say() {
        check("uniform", 500, |_| 1.0 / 500.0);
        check("sequential", 500, |_| 1.0 / 500.0);
        for skew in [0.0, 0.5, 0.99, 1.0, 1.4, 3.0] {
            check(&format!("zipfian:{skew}"), 500, zipf_share(500, skew));
            let by_rank = zipf_share(500, skew);
            check(&format!("latest:{skew}"), 500, move |key| by_rank(499 - key));
        }
        check("hotspot", 500, |key| if key < 100 { 0.8 / 100.0 } else { 0.2 / 400.0 });
        check("hotspot:99/0.4", 500, |key| if key < 2 { 0.99 / 2.0 } else { 0.01 / 498.0 });
        check("hotspot:50/0", 500, |key| if key < 1 { 0.5 } else { 0.5 / 499.0 });
        check("hotspot:0/100", 500, |_| 1.0 / 500.0);
    }

    #[test]
    fn what_is_new_becomes_the_most_popular() {
        let (mut prng, mut chooser) = (Prng::new(1), Keys::new("latest".parse().unwrap(), 100).unwrap());
        for keys in [100, 101, 5_000] {
            let mut newest = 0_u64;
            for _ in 0..20_000 {
                let key = chooser.draw(keys, &mut prng);
                assert!(key < keys);
                newest += u64::from(key == keys - 1);
            }
            let expected = 20_000.0 * zipf_share(keys, 0.99)(0);
            assert!((newest as f64 - expected).abs() < 5.0 * expected.sqrt(), "{keys}: {newest}, {expected}");
        }
    }

    #[test]
    fn no_keys_are_no_panic() {
        assert!(Keys::new(Distribution::Uniform.into(), 0).is_err());
        for text in ["uniform", "sequential", "zipfian", "latest", "hotspot"] {
            let mut chooser = Keys::new(text.parse().unwrap(), 1).unwrap();
            assert_eq!(chooser.draw(0, &mut Prng::new(1)), 0, "{text}");
            assert_eq!(chooser.draw(1, &mut Prng::new(1)), 0, "{text}");
        }
    }

    #[test]
    fn names_are_read_and_others_refused() {
        for (text, distribution) in [
            ("uniform", Distribution::Uniform.into()),
            ("sequential", Distribution::Sequential.into()),
            ("zipfian", Distribution::Zipfian { skew: 0.99 }.into()),
            ("zipfian:0.5", Distribution::Zipfian { skew: 0.5 }.into()),
            ("latest", KeyChoice::Latest { skew: 0.99 }),
            ("latest:2", KeyChoice::Latest { skew: 2.0 }),
            ("hotspot", KeyChoice::Hotspot { operations: 80.0, keys: 20.0 }),
            ("hotspot:95/0.5", KeyChoice::Hotspot { operations: 95.0, keys: 0.5 }),
        ] {
            let choice: KeyChoice = distribution;
            assert_eq!(text.parse(), Ok(choice));
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for text in [
            "zipf",
            "zipfian:",
            "zipfian:x",
            "zipfian:11",
            "zipfian:NaN",
            "latest:-1",
            "hotspot:80",
            "hotspot:101/1",
            "hotspot:1/",
            "uniform:1",
            "",
        ] {
            let error = text.parse::<KeyChoice>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")) && error.contains("from 0 to 10"), "{error}");
            assert!(text.parse::<Distribution>().is_err());
        }
    }
}
