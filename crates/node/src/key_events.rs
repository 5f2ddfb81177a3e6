//! What log entries have done to keys, and what their scripts have published, from the engine that executes them to the
//! clients that listen.

use syros_commands::access::Announcement;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_types::OpNumber;

/// Events of keys at a node, and messages of scripts. The front end says whether anybody listens to events; what executes the
/// log says what has happened.
///
/// Only what is executed makes events: the core has an entry executed when it is committed. Entries that the log had when the
/// process started make none, because the process may have told of them before it ended.
#[derive(Clone, Debug, Default)]
pub struct KeyEvents {
    is_wanted: bool,
    /// The last entry that the log had when the process started.
    replayed: OpNumber,
    happened: Vec<Announcement>,
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

    /// From now on somebody listens to events of keys, or nobody does.
    pub const fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// True if somebody listens to events of keys.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// This has happened.
    pub fn add(&mut self, announcements: Vec<Announcement>) {
        #[cfg(feature = "planted-bugs")]
        let announcements = self.forget(announcements);
        let replayed = self.replayed.0;
        self.happened.extend(announcements.into_iter().filter(|it| it.entry() > replayed));
    }

    /// What a known-wrong variant remembers.
    #[cfg(feature = "planted-bugs")]
    fn forget(&self, mut announcements: Vec<Announcement>) -> Vec<Announcement> {
        let last = announcements.last().map(Announcement::entry);
        if self.planted == Some(PlantedBug::KeyEventsForgotten) {
            announcements.retain(|it| Some(it.entry()) == last);
        }
        announcements
    }

    /// A snapshot up to this entry is taken over. The entries behind it have not been executed by this process or the one
    /// before it, even if entries with their numbers were in the log when this one started.
    pub(crate) fn state_replaced(&mut self, through: OpNumber) {
        self.replayed = self.replayed.min(through);
    }

    /// What has happened since this was asked last.
    pub fn take(&mut self) -> Vec<Announcement> {
        std::mem::take(&mut self.happened)
    }
}
