//! Ranks of elements as commands name them: counted from the first element, or, if negative, from behind the last one.

use core::ops::Range;

/// The rank that an index of a collection of so many elements means; `None` if there is no such element.
pub(super) fn rank_of(index: i64, length: u64) -> Option<u64> {
    let rank = if index < 0 { length.checked_sub(index.unsigned_abs())? } else { index as u64 };
    (rank < length).then_some(rank)
}

/// The ranks from one index to another one, which is included, as far as there are such elements.
pub(super) fn ranks_of(start: i64, stop: i64, length: u64) -> Range<u64> {
    let rank =
        |index: i64| if index < 0 { length.saturating_sub(index.unsigned_abs()) } else { index as u64 };
    // Behind the last element that is included; nothing is if even that lies before the first one.
    let end = if stop < 0 { (length + 1).saturating_sub(stop.unsigned_abs()) } else { rank(stop) + 1 };
    let end = end.min(length);
    rank(start).min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_count_from_either_end() {
        for (index, rank) in [
            (0, Some(0)),
            (4, Some(4)),
            (5, None),
            (-1, Some(4)),
            (-5, Some(0)),
            (-6, None),
            (i64::MAX, None),
            (i64::MIN, None),
        ] {
            assert_eq!(rank_of(index, 5), rank, "{index}");
        }
        for (start, stop, ranks) in [
            (0, -1, 0..5),
            (1, 1, 1..2),
            (-3, -2, 2..4),
            (3, 1, 2..2),
            (-100, 100, 0..5),
            (0, -5, 0..1),
            (0, -6, 0..0),
            (-6, -6, 0..0),
            (5, 9, 5..5),
            (i64::MIN, i64::MAX, 0..5),
            (i64::MAX, i64::MIN, 0..0),
        ] {
            assert_eq!(ranks_of(start, stop, 5), ranks, "{start} {stop}");
        }
        assert_eq!((rank_of(0, 0), ranks_of(0, -1, 0)), (None, 0..0));
    }
}
