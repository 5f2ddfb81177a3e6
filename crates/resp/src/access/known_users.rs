//! The users as this process knows them.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use syros_commands::acl::Users;

/// The users as this process knows them, and which clients need one.
#[derive(Debug)]
pub(crate) struct KnownUsers {
    /// One more than the version of the users; 0 while they are not known.
    epoch: AtomicU64,
    users: Mutex<Users>,
    /// They were read so long ago that others may have been told of a change since.
    is_outdated: AtomicBool,
    /// While the users are not known, commands wait for them.
    is_patient: AtomicBool,
    /// Protected mode: while the default user needs no password, only clients of this machine are served.
    is_protected: AtomicBool,
}

impl Default for KnownUsers {
    /// Those of a new cluster, without protected mode.
    fn default() -> Self {
        Self {
            epoch: AtomicU64::new(1),
            users: Mutex::default(),
            is_outdated: AtomicBool::new(false),
            is_patient: AtomicBool::new(false),
            is_protected: AtomicBool::new(false),
        }
    }
}

impl KnownUsers {
    /// One more than the version of the users; 0 while they are not known.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The users, if they are known.
    pub(crate) fn users(&self) -> Option<Users> {
        (self.epoch() > 0).then(|| self.users.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// From now on they are not known.
    pub(crate) fn forget(&self) {
        self.epoch.store(0, Ordering::Relaxed);
    }

    /// They are these, unless later ones are known. True if they are.
    pub(crate) fn learn(&self, users: Users) -> bool {
        let epoch = users.version().saturating_add(1);
        let is_news = epoch > self.epoch();
        if is_news {
            *self.users.lock().unwrap_or_else(PoisonError::into_inner) = users;
            self.epoch.store(epoch, Ordering::Relaxed);
        }
        is_news
    }

    pub(crate) fn set_outdated(&self, is_outdated: bool) {
        self.is_outdated.store(is_outdated, Ordering::Relaxed);
    }

    /// True if the users were read too long ago for commands that the group executes.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }

    pub(crate) fn set_patient(&self, is_patient: bool) {
        self.is_patient.store(is_patient, Ordering::Relaxed);
    }

    /// True if commands wait for the users.
    pub(crate) fn is_awaited(&self) -> bool {
        (self.epoch() == 0 || self.is_outdated()) && self.is_patient.load(Ordering::Relaxed)
    }

    pub(crate) fn set_protected(&self, is_protected: bool) {
        self.is_protected.store(is_protected, Ordering::Relaxed);
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.is_protected.load(Ordering::Relaxed)
    }
}
