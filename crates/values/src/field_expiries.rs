//! When fields of a hash expire.

use crate::sorted_set::SortedSet;
use core::num::NonZeroU64;
use syros_tree::{Edge, Score};

/// The latest moment at which a field can be gone, in milliseconds since the Unix epoch: far enough, and a number that
/// floating point has exactly.
pub(crate) const EXPIRY_MS_MAX: u64 = 1 << 46;

/// The fields of a hash that expire, each with the first millisecond in which it is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldExpiries(SortedSet);

/// Moments up to [`EXPIRY_MS_MAX`] are their scores.
#[expect(clippy::cast_precision_loss, reason = "floating point has every whole number up to 2^53")]
fn score_of(ms: u64) -> Score {
    Score::new(ms as f64).unwrap_or(Score::GREATEST)
}

/// The moment that is this score.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "every score is a whole number from 1 to 2^46"
)]
fn moment_of(score: Score) -> Option<NonZeroU64> {
    NonZeroU64::new(score.value() as u64)
}

impl FieldExpiries {
    /// How many fields expire.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// When a field expires, if it does.
    pub(crate) fn of(&self, field: &[u8]) -> Option<NonZeroU64> {
        self.0.score(field).and_then(moment_of)
    }

    /// Has a field expire, at [`EXPIRY_MS_MAX`] at the latest.
    pub(crate) fn set(&mut self, field: &[u8], expiry: NonZeroU64) {
        self.0.set(field, score_of(expiry.get().min(EXPIRY_MS_MAX)));
    }

    /// Has a field stay.
    pub(crate) fn remove(&mut self, field: &[u8]) {
        self.0.remove(field);
    }

    /// How many fields are gone at this time.
    pub(crate) fn due(&self, now_ms: u64) -> u64 {
        self.0.count_before(Edge::After(score_of(now_ms)))
    }

    /// True if this field is gone at this time.
    pub(crate) fn is_due(&self, field: &[u8], now_ms: u64) -> bool {
        self.of(field).is_some_and(|expiry| expiry.get() <= now_ms)
    }

    /// The fields that go first, so many.
    pub(crate) fn first_fields(&self, count: u64) -> impl Iterator<Item = &[u8]> {
        self.0.range(0..count).map(|(field, _)| field)
    }

    /// Forgets the fields that go first, so many.
    pub(crate) fn forget_first(&mut self, count: u64) {
        self.0.remove_range(0..count);
    }

    /// When the field goes that so many go before.
    pub(crate) fn nth(&self, rank: u64) -> Option<NonZeroU64> {
        self.0.nth(rank).and_then(|(_, score)| moment_of(score))
    }

    /// About how many bytes of memory they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.0.memory_bytes()
    }

    /// The fields of a sorted set, with their moments for scores.
    pub(crate) const fn of_sorted_set(set: SortedSet) -> Self {
        Self(set)
    }

    /// The sorted set that they are.
    pub(crate) const fn as_sorted_set(&self) -> &SortedSet {
        &self.0
    }

    /// The sorted set that they are.
    pub(crate) fn into_sorted_set(self) -> SortedSet {
        self.0
    }
}
