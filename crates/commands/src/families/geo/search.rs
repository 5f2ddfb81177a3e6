//! What GEOSEARCH and its relatives look for.

use super::cells::Area;
use super::place::{EARTH_RADIUS, LONGITUDE_MAX, Place, degrees, radians};
use super::unit::DistanceUnit;
use crate::double::parse_double;
use crate::encoding::{Field, Value};
use crate::error::{CommandError, ExecutionError};
use crate::primitive::{Malformed, take_u8};
use crate::words::{Words, integer, is};
use core::f64::consts::FRAC_PI_2;
use core::ops::Range;
use syros_types::varint::{put_varint, take_varint};
use syros_values::{Edge, Score, SortedSet};

/// Members around a centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoSearch<'a> {
    /// The centre.
    pub centre: Centre<'a>,
    /// What they have to be within.
    pub shape: Shape,
    /// The unit of all distances.
    pub unit: DistanceUnit,
    /// In which order they are answered.
    pub order: GeoOrder,
    /// COUNT: how many are answered at most; 0 for all. Unless the order is [`GeoOrder::Any`] these are the nearest, or those
    /// that are the farthest.
    pub count: u64,
}

/// The centre of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Centre<'a> {
    /// Where this member is.
    Member(&'a [u8]),
    /// This place.
    At(Place),
}

/// What is searched around the centre; lengths are at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// What is not farther from the centre.
    Circle {
        /// Its radius.
        radius: Score,
    },
    /// What is not farther from the centre, to the east and west, and to the north and south, than half of its sides.
    Rectangle {
        /// From west to east.
        width: Score,
        /// From south to north.
        height: Score,
    },
}

/// The order of members around a centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeoOrder {
    /// That of the sorted set.
    Any,
    /// The nearest first.
    Nearest,
    /// The farthest first.
    Farthest,
}

/// A member that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'s> {
    pub(super) member: &'s [u8],
    pub(super) score: Score,
    pub(super) place: Place,
    /// From the centre, in metres.
    pub(super) distance: f64,
}

/// What the words of a search say so far.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) centre: Option<Centre<'a>>,
    pub(super) shape: Option<(Shape, DistanceUnit)>,
    pub(super) order: Option<GeoOrder>,
    pub(super) count: u64,
    pub(super) any: bool,
}

impl<'a> Parts<'a> {
    /// Takes an option, and what belongs to it, off the front of `words`. False, and nothing is taken, if it is none that all
    /// searches have; `is_named` is true of those that name centre and shape by options.
    pub(super) fn take(&mut self, words: &mut Words<'a>, is_named: bool) -> Result<bool, CommandError> {
        let (option, arguments) = words.split_first().ok_or(CommandError::Syntax)?;
        let is_at = matches!(self.centre, Some(Centre::At(_)));
        let is_circle = matches!(self.shape, Some((Shape::Circle { .. }, _)));
        *words = match arguments {
            rest if is(option, "any") => {
                self.any = true;
                rest
            }
            rest if is(option, "asc") || is(option, "desc") => {
                self.order = Some(if is(option, "asc") { GeoOrder::Nearest } else { GeoOrder::Farthest });
                rest
            }
            [count, rest @ ..] if is(option, "count") => {
                let count = u64::try_from(integer(count)?).ok().filter(|count| *count > 0);
                self.count = count.ok_or(CommandError::GeoCountNotPositive)?;
                rest
            }
            [member, rest @ ..] if is_named && !is_at && is(option, "frommember") => {
                self.centre = Some(Centre::Member(member));
                rest
            }
            [longitude, latitude, rest @ ..]
                if is_named && (self.centre.is_none() || is_at) && is(option, "fromlonlat") =>
            {
                self.centre = Some(Centre::At(Place::parse(longitude, latitude)?));
                rest
            }
            [radius, unit, rest @ ..]
                if is_named && (self.shape.is_none() || is_circle) && is(option, "byradius") =>
            {
                self.shape = Some(parse_circle(radius, unit)?);
                rest
            }
            [width, height, unit, rest @ ..] if is_named && !is_circle && is(option, "bybox") => {
                self.shape = Some(parse_rectangle(width, height, unit)?);
                rest
            }
            _ => return Ok(false),
        };
        Ok(true)
    }

    /// The search of all that was said, to a command of this name.
    pub(super) fn finish(self, name: &'a [u8]) -> Result<GeoSearch<'a>, CommandError> {
        let centre = self.centre.ok_or_else(|| CommandError::NoGeoCentre(name.to_vec()))?;
        let (shape, unit) = self.shape.ok_or_else(|| CommandError::NoGeoShape(name.to_vec()))?;
        if self.any && self.count == 0 {
            return Err(CommandError::AnyWithoutCount);
        }
        // Those that come first mean nothing without an order.
        let default = if self.count > 0 && !self.any { GeoOrder::Nearest } else { GeoOrder::Any };
        let order = self.order.unwrap_or(default);
        Ok(GeoSearch { centre, shape, unit, order, count: self.count })
    }
}

/// The circle of a radius and its unit.
pub(super) fn parse_circle(radius: &[u8], unit: &[u8]) -> Result<(Shape, DistanceUnit), CommandError> {
    let radius = length(radius, "radius")?;
    if radius.value() < 0.0 {
        return Err(CommandError::NegativeRadius);
    }
    Ok((Shape::Circle { radius }, DistanceUnit::parse(unit)?))
}

fn parse_rectangle(width: &[u8], height: &[u8], unit: &[u8]) -> Result<(Shape, DistanceUnit), CommandError> {
    let (width, height) = (length(width, "width")?, length(height, "height")?);
    if width.value() < 0.0 || height.value() < 0.0 {
        return Err(CommandError::NegativeSide);
    }
    Ok((Shape::Rectangle { width, height }, DistanceUnit::parse(unit)?))
}

fn length(word: &[u8], what: &'static str) -> Result<Score, CommandError> {
    parse_double(word).and_then(Score::new).ok_or(CommandError::LengthNotFloat(what))
}

impl GeoSearch<'_> {
    /// The members of a sorted set that it finds, in its order.
    ///
    /// # Errors
    /// If the member that is the centre is not there.
    pub(super) fn run<'s>(&self, set: &'s SortedSet) -> Result<Vec<Found<'s>>, ExecutionError> {
        let centre = match self.centre {
            Centre::At(place) => place,
            Centre::Member(member) => Place::of_score(set.score(member).ok_or(ExecutionError::NoCentre)?),
        };
        let limit =
            if self.count == 0 { usize::MAX } else { usize::try_from(self.count).unwrap_or(usize::MAX) };
        let all = self.candidates(centre, set).filter_map(|(member, score)| {
            let place = Place::of_score(score);
            let distance = self.distance_within(centre, place)?;
            Some(Found { member, score, place, distance })
        });
        if self.order == GeoOrder::Any {
            return Ok(all.take(limit).collect());
        }
        let mut all: Vec<Found<'_>> = all.collect();
        // Members that are equally far keep the order of the sorted set.
        match self.order {
            GeoOrder::Farthest => all.sort_by(|left, right| right.distance.total_cmp(&left.distance)),
            _ => all.sort_by(|left, right| left.distance.total_cmp(&right.distance)),
        }
        all.truncate(limit);
        Ok(all)
    }

    /// How many members it looks at, at most.
    pub(super) fn compared(&self, set: &SortedSet) -> u64 {
        let centre = match self.centre {
            Centre::At(place) => Some(place),
            Centre::Member(member) => set.score(member).map(Place::of_score),
        };
        let ranks = centre.map(|centre| self.ranks(centre, set)).unwrap_or_default();
        ranks.into_iter().map(|ranks| ranks.end.saturating_sub(ranks.start)).sum()
    }

    /// The members near the centre, in the order of the sorted set.
    fn candidates<'s>(
        &self,
        centre: Place,
        set: &'s SortedSet,
    ) -> impl Iterator<Item = (&'s [u8], Score)> + use<'s> {
        self.ranks(centre, set).into_iter().flat_map(|ranks| set.range(ranks))
    }

    /// The ranks of those members.
    fn ranks(&self, centre: Place, set: &SortedSet) -> Vec<Range<u64>> {
        let (latitudes, longitudes) = self.extent(centre);
        let rank = |score| set.count_before(Edge::Before(Score::new(score).unwrap_or(Score::GREATEST)));
        let scores = Area { centre, latitudes, longitudes }.scores();
        scores.into_iter().map(|scores| rank(scores.start)..rank(scores.end)).collect()
    }

    /// How many degrees it extends to the north and to the south of the centre, and to the west and to the east, at most.
    fn extent(&self, centre: Place) -> (f64, f64) {
        let angle = |length: Score, parts: f64| length.value() * self.unit.metres() / parts / EARTH_RADIUS;
        let (angle, half_width) = match self.shape {
            Shape::Circle { radius } => (angle(radius, 1.0), None),
            Shape::Rectangle { width, height } => (angle(height, 2.0), Some(angle(width, 2.0))),
        };
        let latitudes = degrees(angle);
        let farthest = centre.latitude.abs() + latitudes;
        if farthest >= 90.0 {
            return (latitudes, LONGITUDE_MAX);
        }
        // A circle is widest where it touches meridians; a rectangle is measured along the parallel of each member, the
        // shortest of which is the farthest from the equator.
        let sine = match half_width {
            None => libm::sin(angle) / libm::cos(radians(centre.latitude)),
            Some(angle) => libm::sin((angle / 2.0).min(FRAC_PI_2)) / libm::cos(radians(farthest)),
        };
        let turn = if half_width.is_some() { 2.0 } else { 1.0 };
        (latitudes, if sine < 1.0 { degrees(turn * libm::asin(sine)) } else { LONGITUDE_MAX })
    }

    /// How far a place is from the centre, in metres; `None` if it is outside of the shape.
    fn distance_within(&self, centre: Place, place: Place) -> Option<f64> {
        let metres = |length: Score| length.value() * self.unit.metres();
        let distance = centre.distance(place);
        let is_within = match self.shape {
            Shape::Circle { radius } => distance <= metres(radius),
            Shape::Rectangle { width, height } => {
                let beside = Place { longitude: centre.longitude, latitude: place.latitude };
                let north = EARTH_RADIUS * (radians(place.latitude) - radians(centre.latitude)).abs();
                north <= metres(height) / 2.0 && place.distance(beside) <= metres(width) / 2.0
            }
        };
        is_within.then_some(distance)
    }
}

/// The bits of the options' byte.
mod option_bit {
    pub(super) const IS_MEMBER: u8 = 1;
    pub(super) const IS_RECTANGLE: u8 = 2;
    pub(super) const ORDER_SHIFT: u8 = 2;
}

impl<'a> Field<'a> for GeoSearch<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, search: Self) {
        let is_member = if matches!(search.centre, Centre::Member(_)) { option_bit::IS_MEMBER } else { 0 };
        let is_rectangle =
            if matches!(search.shape, Shape::Rectangle { .. }) { option_bit::IS_RECTANGLE } else { 0 };
        out.push(is_member | is_rectangle | (search.order as u8) << option_bit::ORDER_SHIFT);
        match search.centre {
            Centre::Member(member) => Value::put(out, member),
            Centre::At(place) => Place::put(out, place),
        }
        match search.shape {
            Shape::Circle { radius } => Score::put(out, radius),
            Shape::Rectangle { width, height } => {
                Score::put(out, width);
                Score::put(out, height);
            }
        }
        DistanceUnit::put(out, search.unit);
        put_varint(out, search.count);
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let options = take_u8(input)?;
        let order = match options >> option_bit::ORDER_SHIFT {
            0 => GeoOrder::Any,
            1 => GeoOrder::Nearest,
            2 => GeoOrder::Farthest,
            _ => return Err(Malformed::Options(options)),
        };
        let centre = if options & option_bit::IS_MEMBER == 0 {
            Centre::At(Place::take(input)?)
        } else {
            Centre::Member(Value::take(input)?)
        };
        let mut length = || {
            Score::take(input)
                .and_then(|length| if length.value() < 0.0 { Err(Malformed::Number) } else { Ok(length) })
        };
        let shape = if options & option_bit::IS_RECTANGLE == 0 {
            Shape::Circle { radius: length()? }
        } else {
            Shape::Rectangle { width: length()?, height: length()? }
        };
        Ok(Self { centre, shape, unit: DistanceUnit::take(input)?, order, count: take_varint(input)? })
    }
}
