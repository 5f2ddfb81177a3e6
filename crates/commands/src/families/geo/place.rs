//! Places, their codes of 52 bits, and distances between them.
//!
//! Codes decide what is stored, and distances what GEOSEARCHSTORE stores: replicas must agree in them to the bit. So sines
//! are those of the crate `libm`, and not those of the system's library, which differ from one to another.

use crate::double::parse_double;
use crate::encoding::Field;
use crate::error::CommandError;
use crate::primitive::Malformed;
use crate::reply::{Double, put_array, put_decimal};
use core::f64::consts::PI;
use syros_values::Score;

/// Bits of each half of a code.
pub(super) const STEPS: u32 = 26;

/// Latitudes are at most so far from the equator, in degrees, as on the square maps of the web.
pub(super) const LATITUDE_MAX: f64 = 85.051_128_78;

/// Longitudes are at most so far from Greenwich, in degrees.
pub(super) const LONGITUDE_MAX: f64 = 180.0;

/// In metres, as Redis has it.
pub(super) const EARTH_RADIUS: f64 = 6_372_797.560_856;

/// The characters of a geohash.
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// Characters of a geohash.
const GEOHASH_LENGTH: u32 = 11;

/// A place, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// A place has numbers that are equal to themselves.
impl Eq for Place {}

impl Place {
    /// The place of these two words.
    pub(super) fn parse(longitude: &[u8], latitude: &[u8]) -> Result<Self, CommandError> {
        let number = |word| parse_double(word).ok_or(CommandError::NotFloat);
        let place = Self { longitude: number(longitude)?, latitude: number(latitude)? };
        if place.is_valid() {
            return Ok(place);
        }
        let (longitude, latitude) = (Double::new(place.longitude), Double::new(place.latitude));
        Err(CommandError::InvalidPlace { longitude, latitude })
    }

    fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// The score of a member at this place: its code.
    pub(super) fn score(self) -> Score {
        Score::new(self.code(LATITUDE_MAX) as f64).unwrap_or(Score::GREATEST)
    }

    /// Bits of longitude and latitude in turn, of a map that ends at a latitude.
    fn code(self, latitude_max: f64) -> u64 {
        let part = |degrees: f64, max: f64| ((degrees + max) / (2.0 * max) * f64::from(1 << STEPS)) as u64;
        interleaved(part(self.latitude, latitude_max), part(self.longitude, LONGITUDE_MAX))
    }

    /// The place in the middle of all that have this score.
    pub(super) fn of_score(score: Score) -> Self {
        let code = score.value() as u64;
        let middle = |part: u64, max: f64| {
            let edge = |part: u64| -max + part as f64 / f64::from(1 << STEPS) * (2.0 * max);
            f64::midpoint(edge(part), edge(part + 1)).clamp(-max, max)
        };
        Self {
            longitude: middle(halved(code >> 1), LONGITUDE_MAX),
            latitude: middle(halved(code), LATITUDE_MAX),
        }
    }

    /// The distance to another place on a sphere, in metres.
    pub(super) fn distance(self, other: Self) -> f64 {
        let (own, its) = (radians(self.latitude), radians(other.latitude));
        let u = libm::sin((its - own) / 2.0);
        let v = libm::sin((radians(other.longitude) - radians(self.longitude)) / 2.0);
        2.0 * EARTH_RADIUS * libm::asin((u * u + libm::cos(own) * libm::cos(its) * v * v).sqrt())
    }

    /// Its geohash as others write it, whose map ends at the poles. A code has no bits for the last character.
    pub(super) fn geohash(self) -> Vec<u8> {
        let code = self.code(90.0);
        let index = |place: u32| (code >> (2 * STEPS - 5 * place)) as usize & 0x1f;
        let mut text: Vec<u8> = (1..GEOHASH_LENGTH).map(|place| ALPHABET[index(place)]).collect();
        text.push(ALPHABET[0]);
        text
    }

    /// Appends its longitude and latitude.
    pub(super) fn put_reply(self, reply: &mut Vec<u8>) {
        put_array(reply, 2);
        put_decimal(reply, self.longitude);
        put_decimal(reply, self.latitude);
    }
}

/// Longitude and latitude.
impl<'a> Field<'a> for Place {
    type Content = Self;

    fn put(out: &mut Vec<u8>, place: Self) {
        out.extend_from_slice(&place.longitude.to_le_bytes());
        out.extend_from_slice(&place.latitude.to_le_bytes());
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let place = Self { longitude: Score::take(input)?.value(), latitude: Score::take(input)?.value() };
        if place.is_valid() { Ok(place) } else { Err(Malformed::Number) }
    }
}

pub(super) const fn radians(degrees: f64) -> f64 {
    degrees * (PI / 180.0)
}

pub(super) const fn degrees(radians: f64) -> f64 {
    radians / (PI / 180.0)
}

/// The bits of both numbers in turn, the lowest of `even` first.
pub(super) fn interleaved(even: u64, odd: u64) -> u64 {
    (0..32).fold(0, |code, bit| code | (even >> bit & 1) << (2 * bit) | (odd >> bit & 1) << (2 * bit + 1))
}

/// Every second bit of a number, from the lowest on.
fn halved(code: u64) -> u64 {
    (0..32).fold(0, |part, bit| part | (code >> (2 * bit) & 1) << bit)
}
