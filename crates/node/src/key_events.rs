//! What log entries have done to keys, and what their scripts have published, from the engine that executes them to the
//! clients that listen.

use std::collections::{BTreeMap, BTreeSet};
use syros_commands::access::Announcement;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_types::{OpNumber, OperationId};

/// Events of keys at a node, and messages of scripts. The front end says whether anybody listens to events; what executes the
/// log says what has happened.
///
/// Only what is executed makes events: the core has an entry executed when it is committed. Clients are told nothing of entries
/// that the log had when the process started ([`KeyEvents::replayed`]), because the process may have told of them before it
/// ended; copies that clients keep of keys are invalidated nevertheless.
#[derive(Clone, Debug, Default)]
pub struct KeyEvents {
    is_wanted: bool,
    /// What executes the log tells of all that it executes from now on.
    is_told: bool,
    /// What it answers is never later than what it has told.
    is_exact: bool,
    /// Any key may have changed: the state is another one.
    is_state_replaced: bool,
    /// The last entry that the log had when the process started.
    replayed: OpNumber,
    happened: Vec<Announcement>,
    /// Which updates the entries are of what has happened, as far as each is one, if that is asked.
    origins: BTreeMap<u64, OperationId>,
    wants_origins: bool,
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

    /// What executes the log has heard whether somebody listens. If it is exact, what it answers is never later than what it
    /// has told.
    pub const fn set_told(&mut self, is_exact: bool) {
        (self.is_told, self.is_exact) = (self.is_wanted, is_exact);
    }

    /// True if what executes the log has heard that somebody listens: all that it executes from now on is told.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.is_told
    }

    /// True if what executes the log answers nothing that is later than what it has told.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// The last entry that the log had when the process started.
    #[must_use]
    pub const fn replayed(&self) -> OpNumber {
        self.replayed
    }

    /// True if the state has become another one since [`Self::takes_state_replaced`] was asked last.
    #[must_use]
    pub const fn is_state_replaced(&self) -> bool {
        self.is_state_replaced
    }

    /// True if the state has become another one since this was asked last: then any key may have changed.
    pub const fn takes_state_replaced(&mut self) -> bool {
        std::mem::replace(&mut self.is_state_replaced, false)
    }

    /// This has happened.
    pub fn add(&mut self, announcements: Vec<Announcement>) {
        #[cfg(feature = "planted-bugs")]
        let announcements = self.forget(announcements);
        self.happened.extend(announcements);
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
        self.is_state_replaced = true;
    }

    /// From now on it is asked which updates have done something to keys, or is not.
    pub const fn set_wants_origins(&mut self, wants_origins: bool) {
        self.wants_origins = wants_origins;
    }

    /// This has happened; `update_of` tells of which update a log entry is, if it is one.
    pub(crate) fn add_of(
        &mut self,
        announcements: Vec<Announcement>,
        update_of: impl Fn(OpNumber) -> Option<OperationId>,
    ) {
        if self.wants_origins {
            let entries: BTreeSet<u64> = announcements.iter().map(Announcement::entry).collect();
            let origins = entries.into_iter().map(|entry| Some((entry, update_of(OpNumber(entry))?)));
            self.origins.extend(origins.flatten());
        }
        self.add(announcements);
    }

    /// Which updates the entries are of what has happened since this was asked last, as far as it is asked.
    pub fn take_origins(&mut self) -> BTreeMap<u64, OperationId> {
        std::mem::take(&mut self.origins)
    }

    /// What has happened since this was asked last.
    pub fn take(&mut self) -> Vec<Announcement> {
        std::mem::take(&mut self.happened)
    }
}
