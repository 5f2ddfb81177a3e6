//! How long a replica waits for a view to begin: longer after views that have not begun, as long as any other does, and longer by
//! the time that logs take on their way.

use super::role::Role;
use super::timers::Timer;
use super::{PlantedBug, Replica};
use crate::message::Message;
use core::time::Duration;
use syros_types::View;

/// Longest time between attempts, in first ones: a group that cannot form a quorum must notice soon when it
/// can.
pub(super) const BACK_OFF_MAX: u32 = 8;

/// Bytes that a link between members is taken to carry in a millisecond: 256 Mbit/s. Messages of a view change hold logs and
/// durability logs whole, and time-outs grow by what these take. If links are slower, the attempts that double help.
const LINK_BYTES_PER_MILLISECOND: usize = 32 * 1024;

/// How long a message with so many bytes of logs is on its way; nothing if it is small.
pub(super) const fn carrying_time(bytes: usize) -> Duration {
    Duration::from_millis((bytes / LINK_BYTES_PER_MILLISECOND) as u64)
}

impl Replica {
    /// The time in which the view was to begin that has not begun, if this replica goes on to another one now.
    pub(super) fn missed_timeout(&self) -> Option<Duration> {
        match &self.role {
            Role::ViewChange(change) => Some(change.timeout),
            Role::Leader(leader) if self.config.configuration.faults() > 0 => {
                leader.missed_timeout().filter(|_| !self.planted(PlantedBug::UnansweredViewBegan))
            }
            _ => None,
        }
    }

    /// Tells the others how long this replica waits for its view. If each waited for another time, some would leave every view
    /// before it has begun for all.
    pub(super) fn tell_patience(&mut self) {
        let Role::ViewChange(change) = &self.role else { return };
        let (view, times) = (self.view, self.attempts(change.timeout).min(BACK_OFF_MAX));
        if times > 1 {
            self.broadcast(&Message::Patience { view, times: times as u8 });
        }
    }

    /// Another member waits for the view so many times as long as for a first one. This one waits for as long.
    pub(super) fn on_patience(&mut self, view: View, times: u8) {
        let usual = self.config.settings.view_change_timeout;
        let times = u32::from(times).min(BACK_OFF_MAX);
        let Role::ViewChange(change) = &self.role else { return };
        let (before, timeout) = (change.timeout, usual * times);
        if view != self.view || timeout <= before || self.planted(PlantedBug::OwnPatience) {
            return;
        }
        let carrying = self.carrying_of_change() * times.saturating_sub(self.attempts(before));
        let ends_at = self.timers.get(Timer::ViewChangeTimeout).after(timeout - before).after(carrying);
        self.timers.set(Timer::ViewChangeTimeout, ends_at);
        if let Role::ViewChange(change) = &mut self.role {
            change.timeout = timeout;
        }
    }

    /// How many times as long as the time-out of a first attempt this one is.
    pub(super) const fn attempts(&self, timeout: Duration) -> u32 {
        let usual = self.config.settings.view_change_timeout.as_nanos();
        (timeout.as_nanos() / if usual == 0 { 1 } else { usual }) as u32
    }

    /// How long what this replica holds takes to the new leader, and back as the log of the view.
    pub(super) const fn carrying_of_change(&self) -> Duration {
        carrying_time(2 * (self.dlog.bytes() + self.backlog.uncommitted_bytes))
    }
}
