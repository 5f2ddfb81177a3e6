//! What log entries have done to keys, from the engine that executes them to the clients that listen.

use syros_commands::access::Notification;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_types::OpNumber;

/// Events of keys at a node. The front end says whether anybody listens; what executes the log says what has happened.
///
/// Only what is executed makes events: the core has an entry executed when it is committed. Entries that the log had when the
/// process started make none, because the process may have told of them before it ended.
#[derive(Clone, Debug, Default)]
pub struct KeyEvents {
    is_wanted: bool,
    /// The last entry that the log had when the process started.
    replayed: OpNumber,
    happened: Vec<Notification>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl KeyEvents {
    /// For a log that has entries up to this one.
    #[must_use]
    pub fn new(replayed: OpNumber) -> Self {
        Self { replayed, ..Self::default() }
    }

    /// Makes it wrong in a known way, if the bug is one of this module.
    #[cfg(feature = "planted-bugs")]
    pub(crate) const fn plant(&mut self, bug: Option<PlantedBug>) {
        self.planted = bug;
    }

    /// From now on somebody listens, or nobody does.
    pub const fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// True if somebody listens.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// This has happened.
    pub fn add(&mut self, notifications: Vec<Notification>) {
        #[cfg(feature = "planted-bugs")]
        let notifications = self.forget(notifications);
        let replayed = self.replayed.0;
        self.happened.extend(notifications.into_iter().filter(|notification| notification.entry > replayed));
    }

    /// What a known-wrong variant remembers.
    #[cfg(feature = "planted-bugs")]
    fn forget(&self, mut notifications: Vec<Notification>) -> Vec<Notification> {
        let last = notifications.last().map(|notification| notification.entry);
        if self.planted == Some(PlantedBug::KeyEventsForgotten) {
            notifications.retain(|notification| Some(notification.entry) == last);
        }
        notifications
    }

    /// A snapshot up to this entry is taken over. The entries behind it have not been executed by this process or the one
    /// before it, even if entries with their numbers were in the log when this one started.
    pub(crate) fn state_replaced(&mut self, through: OpNumber) {
        self.replayed = self.replayed.min(through);
    }

    /// What has happened since this was asked last.
    pub fn take(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.happened)
    }
}
