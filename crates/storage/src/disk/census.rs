//! How many keys there are, for INFO: counted where few keys are, estimated from a part of them where many are.

use super::Shared;
use super::layout::{Space, data_begin};
use crate::store::{Store, StoreError};
use core::ops::ControlFlow;
use syros_types::Database;

/// Positions are less than this.
const POSITIONS: u128 = 1 << 63;

/// How many keys of a database exist, and how many of these have an expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Keys.
    pub keys: u64,
    /// Keys with an expiry.
    pub expiring: u64,
    /// True if each key was counted.
    pub is_exact: bool,
}

impl Census {
    /// Keys that a census counts. Beyond, the standard error of an estimate is one part in a thousand: the square root of
    /// this number.
    pub const COUNTED_MAX: u64 = 1_000_000;

    /// Counts the keys of all databases, up to `counted_max` of each: see [`Census::take`].
    ///
    /// # Errors
    /// What the disk says.
    pub fn take_all<S: Store>(
        shared: &Shared<S>,
        counted_max: u64,
    ) -> Result<[Self; Database::COUNT], StoreError> {
        let mut all = [Self { is_exact: true, ..Self::default() }; Database::COUNT];
        for (database, space) in shared.spaces_in_use() {
            all[database.index()] = Self::of_space(shared, space, counted_max)?;
        }
        Ok(all)
    }

    /// Counts keys of a database from the first position on, up to `counted_max`. The order of keys is that of a hash: if the
    /// census ends early, the part of all positions that it has passed is about the part of all keys that it has counted.
    ///
    /// Lanes may go on meanwhile. The census counts a key that a lane sets or removes, or not.
    ///
    /// # Errors
    /// What the disk says.
    pub fn take<S: Store>(
        shared: &Shared<S>,
        database: Database,
        counted_max: u64,
    ) -> Result<Self, StoreError> {
        Self::of_space(shared, shared.space(database), counted_max)
    }

    fn of_space<S: Store>(shared: &Shared<S>, space: Space, counted_max: u64) -> Result<Self, StoreError> {
        let now_ms = shared.time().as_millis();
        let (mut keys, mut expiring, mut passed) = (0, 0, None);
        shared.walk(None, (space, now_ms), &data_begin(space), |position, _, _, stamp| {
            if keys >= counted_max {
                passed = Some(position);
                return ControlFlow::Break(());
            }
            keys += 1;
            expiring += u64::from(stamp.expiry.is_some());
            ControlFlow::Continue(())
        })?;
        let Some(passed) = passed else { return Ok(Self { keys, expiring, is_exact: true }) };
        let all = |counted: u64| {
            let estimate = u128::from(counted) * POSITIONS / u128::from(passed.max(1));
            u64::try_from(estimate).unwrap_or(u64::MAX)
        };
        Ok(Self { keys: all(keys), expiring: all(expiring), is_exact: false })
    }
}
