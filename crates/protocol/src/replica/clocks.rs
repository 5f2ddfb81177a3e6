//! Log time: what the members' wall clocks say, taken together.
//!
//! The leader stamps every entry with log time, and log time never goes back. A leader whose own clock is wrong could
//! therefore let every key expire at once, or stop expiry until real time has caught up. So no single clock decides.
//! Every PrepareOk and every DoViewChange carries its sender's clock, and log time follows the clock that `f` others of
//! those known are level with or ahead of: the median, if all are known. If at most `f` clocks are wrong, log time is
//! never ahead of all right ones, whoever has not been heard. If at most `f` members in total are dead or have a wrong
//! clock, log time is not behind all right ones either, once all others have been heard.

use super::role::Role;
use super::{ClockError, HandOverReason, Replica, TraceEvent};
use core::time::Duration;
use syros_types::{Group, Instant, ReplicaId, ReplicaSet, WallTime};

/// How long a leader's clock is off before the leader hands over: an adjusted clock may be found off for one round
/// of heartbeats.
const CLOCK_OFF_AFTER: Duration = Duration::from_secs(1);

/// What a member's wall clock was.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    clock: WallTime,
    /// The member read its clock after this moment of this replica's monotonic clock,
    after: Instant,
    /// and before this one.
    before: Instant,
}

/// The moments between which some clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockBounds {
    pub(super) low: WallTime,
    pub(super) high: WallTime,
}

impl ClockBounds {
    /// True if `clock` is between the two, or no farther outside than `tolerance`.
    fn includes(self, clock: WallTime, tolerance: Duration) -> bool {
        clock.after(tolerance) >= self.low && clock <= self.high.after(tolerance)
    }
}

impl ClockReading {
    /// What the clock can be at `now`: monotonic clocks run at one rate, as far as this needs it.
    fn bounds(self, now: Instant) -> ClockBounds {
        let [low, high] = [self.before, self.after].map(|read| self.clock.after(now.since(read)));
        ClockBounds { low, high }
    }
}

impl Replica {
    /// A member has told its clock, in answer to something sent at `after`.
    pub(super) fn hear_clock(&mut self, member: ReplicaId, clock: WallTime, after: Instant) {
        let before = self.now.instant;
        self.clocks[member.index()] = Some(ClockReading { clock, after: after.min(before), before });
    }

    /// A member has told its clock, some time ago. One view change is not in the way of another for longer than this.
    pub(super) fn hear_late_clock(&mut self, member: ReplicaId, clock: WallTime) {
        let late = u64::try_from(self.config.settings.suspect_after.as_nanos()).unwrap_or(u64::MAX);
        self.hear_clock(member, clock, Instant(self.now.instant.0.saturating_sub(late)));
    }

    /// Where the clock is that `f` others of those known are level with or ahead of, this replica's among them: the median
    /// if all are known, of an even number of clocks the lower one. `None` if fewer than a majority is known.
    pub(super) fn group_clock(&self) -> Option<ClockBounds> {
        let mut lows = [WallTime(u64::MAX); Group::SIZE_MAX];
        let mut highs = lows;
        let own = ClockBounds { low: self.now.wall, high: self.now.wall };
        let others = self.others().filter_map(|member| self.clocks[member.index()]);
        let others = others.map(|reading| reading.bounds(self.now.instant));
        let mut known = 0;
        for bounds in core::iter::once(own).chain(others) {
            (lows[known], highs[known]) = (bounds.low, bounds.high);
            known += 1;
        }
        let group = self.config.configuration;
        if known < group.majority() {
            return None;
        }
        lows[..known].sort_unstable();
        highs[..known].sort_unstable();
        // With the median of those known, two wrong clocks among three would decide for a group of five whose other
        // clocks are right and have not been heard yet. Keys that expire late are the lesser evil.
        let chosen = ((known - 1) / 2).min(known - 1 - group.faults());
        Some(ClockBounds { low: lows[chosen], high: highs[chosen] })
    }

    /// The time by the members' clocks: this replica's own, unless that one contradicts [`Self::group_clock`]. `None` if fewer
    /// than a majority of the clocks is known.
    pub(super) fn group_time(&self) -> Option<WallTime> {
        // A follower stamps nothing. By its own clock it tells a reader that a value may be due, who then asks the leader.
        let is_follower = matches!(self.role, Role::Follower(_));
        if is_follower || self.planted(super::PlantedBug::LogTimeByOneClock) {
            return Some(self.now.wall);
        }
        let agreed = self.group_clock()?;
        Some(if agreed.includes(self.now.wall, Duration::ZERO) { self.now.wall } else { agreed.low })
    }

    /// Log time of what is appended now.
    pub(super) fn log_time(&self) -> WallTime {
        let last = self.log.last_time();
        let is_empty = self.role.leading().is_none_or(|leader| leader.batch.entries.is_empty());
        // A batch has one time. Before the leader of a new group has heard of a majority of the clocks it can commit
        // nothing but registrations, which need none.
        if is_empty { self.group_time().map_or(last, |time| time.max(last)) } else { last }
    }

    /// How long until log time is at `moment`.
    pub(super) fn time_until(&self, moment: WallTime) -> Duration {
        let missing = |time: WallTime| Duration::from_micros(moment.0.saturating_sub(time.0));
        self.group_time().map_or(self.config.settings.heartbeat, missing)
    }

    /// True if the clocks that are known leave no doubt about the time: they agree, or there are no others.
    pub(super) fn clocks_suffice(&self) -> bool {
        let known = || self.others().filter_map(|member| self.clocks[member.index()]);
        let bounds = || known().map(|reading| reading.bounds(self.now.instant));
        let wall = self.now.wall;
        let low = bounds().map(|clock| clock.high).fold(wall, WallTime::min);
        let high = bounds().map(|clock| clock.low).fold(wall, WallTime::max);
        known().count() + 1 == self.config.configuration.size()
            || high <= low.after(self.config.settings.clock_skew_max)
    }

    /// True if no clock is known of a member other than the leader of the last view: that one may have gone for good.
    pub(super) fn lacks_clock_of_others(&self) -> bool {
        let before = self.leader_of(self.last_normal);
        self.others().any(|member| member != before && self.clocks[member.index()].is_none())
    }

    /// Leader: hands over to a member whose clock is right if its own has been off for some time. Log time does not
    /// follow a clock that is off, but whoever looks at this machine should hear of it, and updates that carry
    /// timestamps of such a clock are refused by the followers.
    pub(super) fn leave_with_wrong_clock(&mut self) {
        let Some(agreed) = self.group_clock() else { return };
        let Role::Leader(leader) = &mut self.role else { return };
        if agreed.includes(self.now.wall, self.config.settings.clock_skew_max) {
            leader.clock_off_since = None;
            return;
        }
        let now = self.now.instant;
        let ahead = self.now.wall > agreed.high;
        let nearest = if ahead { agreed.high } else { agreed.low };
        let off = Duration::from_micros(self.now.wall.0.abs_diff(nearest.0));
        let error = ClockError { off, ahead };
        let since = *leader.clock_off_since.get_or_insert(now);
        if now < since.after(CLOCK_OFF_AFTER) || !self.has_led_for_long(CLOCK_OFF_AFTER) {
            return;
        }
        if let Role::Leader(leader) = &mut self.role {
            leader.clock_off_since = None;
        }
        // Not before: while all clocks are set, this member's may be the first or the last.
        self.trace(TraceEvent::WrongClock(error));
        let tolerance = self.config.settings.clock_skew_max;
        let is_right = |member: &ReplicaId| {
            let reading = self.clocks[member.index()].map(|reading| reading.bounds(now));
            reading.is_some_and(|clock| agreed.includes(clock.low, tolerance))
        };
        let right: ReplicaSet = self.others().filter(is_right).collect();
        self.hand_over_to_longest_log(right, HandOverReason::WrongClock(error));
    }
}
