//! Which codes the places of an area have.

use super::place::{LATITUDE_MAX, LONGITUDE_MAX, Place, STEPS, interleaved};
use core::ops::Range;

/// Most cells that an area is covered by. More of them cover it more closely, and each takes two searches.
const CELLS_MAX: u64 = 16;

/// What an area is widened by, in degrees, because its edges are rounded.
const MARGIN: f64 = 1e-6;

/// An area around a place: so many degrees to the south and to the north, and to the west and to the east.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) centre: Place,
    pub(super) latitudes: f64,
    pub(super) longitudes: f64,
}

impl Area {
    /// The scores that places of the area have, and others near it have too, in order.
    pub(super) fn scores(self) -> Vec<Range<f64>> {
        let (south, north) = bounds(self.centre.latitude, self.latitudes);
        let (west, east) = bounds(self.centre.longitude, self.longitudes);
        // What is beyond one edge of the map is at the other.
        let whole = 2.0 * LONGITUDE_MAX;
        let mut parts = vec![(west.max(-LONGITUDE_MAX), east.min(LONGITUDE_MAX))];
        if east - west >= whole {
            parts = vec![(-LONGITUDE_MAX, LONGITUDE_MAX)];
        } else if west < -LONGITUDE_MAX {
            parts.push((west + whole, LONGITUDE_MAX));
        } else if east > LONGITUDE_MAX {
            parts.push((-LONGITUDE_MAX, east - whole));
        }
        let steps = (0..=STEPS).rev().find(|steps| {
            let rows = count(&cells(south, north, LATITUDE_MAX, *steps));
            let columns: u64 =
                parts.iter().map(|(west, east)| count(&cells(*west, *east, LONGITUDE_MAX, *steps))).sum();
            rows * columns <= CELLS_MAX
        });
        // A single cell is the whole map, and its edges two more.
        let steps = steps.unwrap_or(0);
        let rows = cells(south, north, LATITUDE_MAX, steps);
        let columns = parts.iter().flat_map(|(west, east)| cells(*west, *east, LONGITUDE_MAX, steps));
        let mut codes: Vec<u64> =
            columns.flat_map(|column| rows.clone().map(move |row| interleaved(row, column))).collect();
        codes.sort_unstable();
        codes.dedup();
        let score = |code: u64| (code << (2 * (STEPS - steps))) as f64;
        codes.into_iter().map(|code| score(code)..score(code + 1)).collect()
    }
}

fn bounds(centre: f64, extent: f64) -> (f64, f64) {
    let extent = extent * (1.0 + MARGIN) + MARGIN;
    (centre - extent, centre + extent)
}

/// The cells of one axis that are not outside of two bounds, if it is divided so often. The upper edge of the map is in a
/// cell of its own.
fn cells(from: f64, to: f64, max: f64, steps: u32) -> Range<u64> {
    let cell =
        |degrees: f64| ((degrees.clamp(-max, max) + max) / (2.0 * max) * f64::from(1_u32 << steps)) as u64;
    cell(from)..cell(to) + 1
}

const fn count(cells: &Range<u64>) -> u64 {
    cells.end - cells.start
}
