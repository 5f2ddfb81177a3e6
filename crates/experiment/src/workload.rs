//! What clients ask for: YCSB's core workloads A, B and C (Cooper et al., SoCC 2010), and mixes like them.

use crate::distribution::{Distribution, Keys};
use crate::error::InvalidWorkload;
use core::fmt;
use core::str::FromStr;
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
    chooser: Keys,
    prng: Prng,
}

impl Workload {
    /// Operations on so many keys.
    ///
    /// # Errors
    /// [`InvalidWorkload`] if there is no key.
    pub fn new(mix: Mix, distribution: Distribution, keys: u64, prng: Prng) -> Result<Self, InvalidWorkload> {
        Ok(Self { mix, keys, chooser: Keys::new(distribution.into(), keys)?, prng })
    }

    /// The next operation.
    pub fn draw(&mut self) -> Asked {
        let is_read = self.prng.chance(self.mix.reads_percent.into(), 100);
        let key = self.chooser.draw(self.keys, &mut self.prng);
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
    }

    #[test]
    fn keys_come_one_after_the_other() {
        let mix = Mix { reads_percent: 0 };
        let mut workload = Workload::new(mix, Distribution::Sequential, 3, Prng::new(1)).unwrap();
        let keys: Vec<u64> = (0..4).map(|_| workload.draw().key).collect();
        assert_eq!(keys, [0, 1, 2, 0]);
    }

    /// Experiments of the past can be repeated.
    #[test]
    fn a_seed_gives_what_it_always_gave() {
        let first = |mix: &str, distribution: &str| {
            let (mix, distribution) = (mix.parse().unwrap(), distribution.parse().unwrap());
            let mut workload = Workload::new(mix, distribution, 1_000, Prng::new(7)).unwrap();
            let asked = core::array::from_fn(|_| workload.draw());
            asked.map(|Asked { key, is_read }| (key, is_read))
        };
        assert_eq!(first("a", "uniform"), [(16, true), (582, false), (249, true), (328, true), (413, true)]);
        assert_eq!(first("b", "sequential"), [(0, true), (1, true), (2, true), (3, true), (4, true)]);
        assert_eq!(first("a", "zipfian"), [(0, true), (14, false), (5, true), (0, true), (373, false)]);
        assert_eq!(
            first("10%", "zipfian:1.5"),
            [(0, false), (1, false), (0, false), (0, false), (20, false)]
        );
    }

    #[test]
    fn reads_are_as_many_as_they_should_be() {
        let mix = Mix { reads_percent: 50 };
        let mut workload = Workload::new(mix, Distribution::Uniform, 10, Prng::new(1)).unwrap();
        let reads = (0..100_000).filter(|_| workload.draw().is_read).count();
        assert!((49_000..51_000).contains(&reads), "{reads}");
        assert!(Workload::new(mix, Distribution::Uniform, 0, Prng::new(1)).is_err());
    }
}
