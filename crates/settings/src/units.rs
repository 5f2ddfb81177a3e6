//! Durations and sizes, as configurations and command lines write them.

use std::fmt;
use std::time::Duration;

/// `"500us"`, `"25ms"`, `"1s"`, `"10m"`, `"1h"`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let micros_per_unit = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    number.checked_mul(micros_per_unit).map(Duration::from_micros)
}

/// `"4096"`, `"512KiB"`, `"64MiB"`, `"1GiB"`.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let shift = BYTE_UNITS.iter().find(|(name, _)| *name == unit)?.1;
    number.checked_mul(1 << shift)
}

/// Units of sizes and their powers of two, largest first.
const BYTE_UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];

/// A size as [`parse_bytes`] reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesText(pub u64);

impl fmt::Display for BytesText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |shift: u32| self.0 != 0 && self.0.is_multiple_of(1 << shift);
        let (unit, shift) = BYTE_UNITS.iter().find(|(_, shift)| fits(*shift)).unwrap_or(&("", 0));
        write!(f, "{}{unit}", self.0 >> shift)
    }
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes() {
        assert_eq!(parse_duration("25ms"), Some(Duration::from_millis(25)));
        assert_eq!(parse_duration("10 m"), Some(Duration::from_secs(600)));
        for wrong in ["", "ms", "25", "-1s", "1.5s", "1 week", "99999999999999999999s", "9999999999999999h"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        assert_eq!(parse_bytes("1GiB"), Some(1 << 30));
        assert_eq!(parse_bytes("4096"), Some(4096));
        for wrong in ["", "GiB", "1GB", "-1", "99999999999TiB"] {
            assert_eq!(parse_bytes(wrong), None, "{wrong}");
        }
        for bytes in [0, 1, 1023, 1024, 1536, 64 << 20, 1 << 40] {
            assert_eq!(parse_bytes(&BytesText(bytes).to_string()), Some(bytes));
        }
    }
}
