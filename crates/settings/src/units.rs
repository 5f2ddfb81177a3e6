//! Durations and sizes, as configurations and command lines write them.

use std::fmt;
use std::time::Duration;

/// `"500us"`, `"25ms"`, `"1s"`, `"10m"`, `"1h"`, `"7d"`; `"500µs"` is the first of these.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let unit = if unit == "µs" { "us" } else { unit };
    let micros = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?.1;
    number.checked_mul(micros).map(Duration::from_micros)
}

/// Units of durations in microseconds, largest first.
const DURATION_UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// A duration as [`parse_duration`] reads it, to the microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX);
        let fits = |unit: u64| micros != 0 && micros.is_multiple_of(unit);
        let (name, unit) = DURATION_UNITS.iter().find(|(_, unit)| fits(*unit)).unwrap_or(&("s", 1_000_000));
        write!(f, "{}{name}", micros / unit)
    }
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
        assert_eq!(parse_duration("500µs"), parse_duration("500us"));
        for micros in [0, 1, 999, 1_000, 1_500, 60_000_000, 7 * 86_400_000_000] {
            let duration = Duration::from_micros(micros);
            assert_eq!(parse_duration(&DurationText(duration).to_string()), Some(duration));
        }
        assert_eq!(DurationText(Duration::from_secs(86_400)).to_string(), "1d");
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
