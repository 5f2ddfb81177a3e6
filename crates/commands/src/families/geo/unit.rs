//! Units of distances.

use crate::encoding::Field;
use crate::error::CommandError;
use crate::primitive::{Malformed, take_u8};
use crate::reply::put_bulk;
use crate::words::is;

/// A unit of distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceUnit {
    /// Metres.
    Metre,
    /// 1000 of them.
    Kilometre,
    /// 0.3048 of them.
    Foot,
    /// 1609.34 of them.
    Mile,
}

/// All, in the order of their numbers, with their names.
const UNITS: [(&str, DistanceUnit); 4] = [
    ("m", DistanceUnit::Metre),
    ("km", DistanceUnit::Kilometre),
    ("ft", DistanceUnit::Foot),
    ("mi", DistanceUnit::Mile),
];

impl DistanceUnit {
    pub(super) fn parse(word: &[u8]) -> Result<Self, CommandError> {
        let unit = UNITS.iter().find(|(name, _)| is(word, name)).map(|(_, unit)| *unit);
        unit.ok_or(CommandError::UnknownDistanceUnit)
    }

    /// Its length in metres.
    pub(super) const fn metres(self) -> f64 {
        match self {
            Self::Metre => 1.0,
            Self::Kilometre => 1000.0,
            Self::Foot => 0.3048,
            Self::Mile => 1609.34,
        }
    }

    /// Appends a distance in metres, in this unit and with four decimals.
    pub(super) fn put_distance(self, reply: &mut Vec<u8>, metres: f64) {
        put_bulk(reply, format!("{:.4}", metres / self.metres()).as_bytes());
    }
}

impl Field<'_> for DistanceUnit {
    type Content = Self;

    fn put(out: &mut Vec<u8>, unit: Self) {
        out.push(unit as u8);
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        let number = take_u8(input)?;
        UNITS.get(usize::from(number)).map(|(_, unit)| *unit).ok_or(Malformed::Options(number))
    }
}
