//! What clients ask for: YCSB's core workloads A, B and C (Cooper et al., SoCC 2010), and mixes like them.

use core::fmt;
use core::str::FromStr;
use rand_distr::{Distribution as _, Zipf};
use syros_types::Prng;

/// Reads among the operations; the others are updates that replace a whole value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Reads, in percent.
    pub reads_percent: u8,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reads_percent {
            50 => f.write_str("a"),
            95 => f.write_str("b"),
            100 => f.write_str("c"),
            percent => write!(f, "{percent}%"),
        }
    }
}

/// A workload that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidWorkload(String);

impl fmt::Display for InvalidWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidWorkload {}

impl FromStr for Mix {
    type Err = InvalidWorkload;

    fn from_str(text: &str) -> Result<Self, InvalidWorkload> {
        let reads_percent = match text {
            "a" | "A" => Some(50),
            "b" | "B" => Some(95),
            "c" | "C" => Some(100),
            _ => text.strip_suffix('%').and_then(|percent| percent.parse().ok()),
        };
        let reads_percent = reads_percent.filter(|percent| *percent <= 100);
        let reads_percent = reads_percent.ok_or_else(|| {
            let text = format!("'{text}' is no workload: a, b and c of YCSB, or the share of reads as 75%");
            InvalidWorkload(text)
        })?;
        Ok(Self { reads_percent })
    }
}

/// How often each key is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// One after the other, and again from the first: so many operations as there are keys load them all.
    Sequential,
    /// The k-th most popular in proportion to `1 / k^skew`.
    Zipfian {
        /// The exponent; YCSB's is 0.99.
        skew: f64,
    },
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Sequential => f.write_str("sequential"),
            Self::Zipfian { skew } => write!(f, "zipfian:{skew}"),
        }
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
        let skew = match text.strip_prefix("zipfian") {
            Some("") => Some(0.99),
            Some(rest) => rest.strip_prefix(':').and_then(|skew| skew.parse::<f64>().ok()),
            None => None,
        };
        let skew = skew.filter(|skew| (0.0..=10.0).contains(skew));
        let skew = skew.ok_or_else(|| {
            let names = "uniform, sequential, or zipfian:S with S from 0 to 10";
            InvalidWorkload(format!("'{text}' is no distribution: {names}"))
        })?;
        Ok(Self::Zipfian { skew })
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The number of the key.
    pub key: u64,
    /// It is read, else replaced.
    pub is_read: bool,
}

/// What one client asks for, one after the other.
#[derive(Clone, Debug)]
pub struct Workload {
    mix: Mix,
    keys: u64,
    zipf: Option<Zipf<f64>>,
    /// The next key, if they come one after the other.
    next: Option<u64>,
    prng: Prng,
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

impl Workload {
    /// Operations on so many keys.
    ///
    /// # Errors
    /// [`InvalidWorkload`] if there is no key.
    pub fn new(mix: Mix, distribution: Distribution, keys: u64, prng: Prng) -> Result<Self, InvalidWorkload> {
        if keys == 0 {
            return Err(InvalidWorkload("there must be at least 1 key, not 0".to_owned()));
        }
        let zipf = match distribution {
            Distribution::Uniform | Distribution::Sequential => None,
            Distribution::Zipfian { skew } => {
                let zipf = Zipf::new(keys as f64, skew);
                Some(zipf.map_err(|error| InvalidWorkload(format!("zipfian:{skew}: {error}")))?)
            }
        };
        let next = (distribution == Distribution::Sequential).then_some(0);
        Ok(Self { mix, keys, zipf, next, prng })
    }

    /// The next operation.
    pub fn draw(&mut self) -> Asked {
        let is_read = self.prng.chance(self.mix.reads_percent.into(), 100);
        let key = match (&self.zipf, &mut self.next) {
            (None, None) => self.prng.below(self.keys),
            (None, Some(next)) => {
                let key = *next;
                *next = (key + 1) % self.keys;
                key
            }
            (Some(zipf), _) => (zipf.sample(&mut Rng(&mut self.prng)) as u64 - 1).min(self.keys - 1),
        };
        Asked { key, is_read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_others_refused() {
        for (text, percent) in [("a", 50), ("B", 95), ("c", 100), ("75%", 75), ("0%", 0)] {
            assert_eq!(text.parse(), Ok(Mix { reads_percent: percent }));
        }
        for text in ["", "d", "101%", "75", "-1%"] {
            assert!(text.parse::<Mix>().is_err(), "{text}");
        }
        for (text, distribution) in [
            ("uniform", Distribution::Uniform),
            ("sequential", Distribution::Sequential),
            ("zipfian", Distribution::Zipfian { skew: 0.99 }),
            ("zipfian:0.5", Distribution::Zipfian { skew: 0.5 }),
        ] {
            assert_eq!(text.parse(), Ok(distribution));
        }
        for text in ["zipf", "zipfian:", "zipfian:x", "zipfian:11", "zipfian:NaN"] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }

    #[test]
    fn keys_come_one_after_the_other() {
        let mix = Mix { reads_percent: 0 };
        let mut workload = Workload::new(mix, Distribution::Sequential, 3, Prng::new(1)).unwrap();
        let keys: Vec<u64> = (0..4).map(|_| workload.draw().key).collect();
        assert_eq!(keys, [0, 1, 2, 0]);
    }

    #[test]
    fn popular_keys_are_as_popular_as_they_should_be() {
        let distribution = Distribution::Zipfian { skew: 0.99 };
        let (keys, draws) = (1_000, 100_000);
        let mut workload =
            Workload::new(Mix { reads_percent: 50 }, distribution, keys, Prng::new(1)).unwrap();
        let mut counts = vec![0_u64; keys as usize];
        let mut reads = 0;
        for _ in 0..draws {
            let Asked { key, is_read } = workload.draw();
            counts[key as usize] += 1;
            reads += u64::from(is_read);
        }
        let whole: f64 = (1..=keys).map(|k| 1.0 / (k as f64).powf(0.99)).sum();
        for k in [1_usize, 2, 10, 100] {
            let expected = draws as f64 / (k as f64).powf(0.99) / whole;
            let counted = counts[k - 1] as f64;
            assert!((counted - expected).abs() < 5.0 * expected.sqrt(), "key {k}: {counted}, not {expected}");
        }
        assert!((49_000..51_000).contains(&reads), "{reads}");
        assert!(Workload::new(Mix { reads_percent: 50 }, distribution, 0, Prng::new(1)).is_err());
    }
}
