//! The user that a connection acts for.

use super::known_users::KnownUsers;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use core::net::SocketAddr;
use std::sync::Arc;
use syros_commands::acl::{CallingUser, DEFAULT_USER, NamedUser, Users};

/// The user that a connection acts for. What a client has to pay for each command that may do everything is one comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Login {
    /// `None` until the connection has looked at the users: it is to be the default user then.
    user: Option<Arc<NamedUser>>,
    /// The client has given a password, or the default user needed none.
    is_authenticated: bool,
    /// See [`KnownUsers::epoch`]: of the users that have been looked at.
    epoch: u64,
    /// Everything is allowed while the users have this epoch; 0: nothing is known of that.
    free_epoch: u64,
    /// The client became this user while what the process knew was outdated: it is that only if nothing had changed.
    is_provisional: bool,
    /// The client has shown a certificate that the process believes: protected mode does not keep it out.
    has_certificate: bool,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

/// What a connection is to its process.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// The process does not know the users yet.
    Unknown,
    /// The user has been removed.
    Removed,
    /// The client is on another machine, and no password is asked for.
    Protected,
    /// The client has to say who it is first.
    Stranger,
    /// The client acts for this user.
    User(Arc<NamedUser>),
}

impl Login {
    /// Makes this a known-wrong variant.
    #[cfg(feature = "planted-bugs")]
    pub(crate) const fn plant(&mut self, bug: Option<PlantedBug>) {
        self.planted = bug;
    }

    /// True if the client may do everything, as far as is known.
    #[inline]
    pub(crate) fn is_free(&self, known: &KnownUsers) -> bool {
        let epoch = known.epoch();
        epoch > 0 && self.free_epoch == epoch
    }

    /// True if nobody can become a user now: what is known of the users was read too long ago.
    pub(crate) fn comes_too_late(&self, known: &KnownUsers) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(PlantedBug::ProvisionalLoginKept) {
            return false;
        }
        known.is_outdated()
    }

    /// The client has shown a certificate that the process believes.
    pub(crate) const fn note_certificate(&mut self) {
        self.has_certificate = true;
    }

    /// What the client with this address is, by the users that are known now.
    pub(crate) fn stand(&mut self, known: &KnownUsers, address: &str) -> Standing {
        let Some(users) = known.users() else { return Standing::Unknown };
        let epoch = users.version().saturating_add(1);
        if self.epoch != epoch {
            #[cfg(feature = "planted-bugs")]
            if self.planted == Some(PlantedBug::ProvisionalLoginKept) {
                self.is_provisional = false;
            }
            if self.is_provisional {
                return Standing::Removed;
            }
            self.is_provisional = self.user.is_none() && known.is_outdated();
            if !self.catch_up(&users, epoch) {
                return Standing::Removed;
            }
        } else if !known.is_outdated() {
            self.is_provisional = false;
        }
        let default = users.default_user().user();
        let is_open = default.is_on() && default.needs_no_password();
        if is_open && known.is_protected() && !self.has_certificate && !is_local(address) {
            return Standing::Protected;
        }
        let Some(user) = self.user.clone().filter(|_| self.is_authenticated || is_open) else {
            return Standing::Stranger;
        };
        if user.user().may_do_everything() && !self.is_provisional {
            self.free_epoch = epoch;
        }
        Standing::User(user)
    }

    /// Looks at users that have changed. False if that of the connection is none of them.
    fn catch_up(&mut self, users: &Users, epoch: u64) -> bool {
        let found = match &self.user {
            None => {
                let user = users.default_user();
                self.is_authenticated = user.user().is_on() && user.user().needs_no_password();
                user
            }
            Some(user) => match users.find(user.name()) {
                Some(found) if found.number() == user.number() => found,
                #[cfg(feature = "planted-bugs")]
                _ if self.planted == Some(PlantedBug::RemovedUserGoesOn) => user,
                _ => return false,
            },
        };
        self.user = Some(Arc::clone(found));
        (self.epoch, self.free_epoch) = (epoch, 0);
        true
    }

    /// True if the user of the connection is none of those that are known now.
    pub(crate) fn is_removed(&self, known: &KnownUsers) -> bool {
        #[cfg(feature = "planted-bugs")]
        if matches!(self.planted, Some(PlantedBug::RemovedUserGoesOn | PlantedBug::ProvisionalLoginKept)) {
            return false;
        }
        let Some(user) = &self.user else { return false };
        if self.is_provisional && known.epoch() > self.epoch {
            return true;
        }
        let number = known.users().map(|users| users.find(user.name()).map(|found| found.number()));
        number.is_some_and(|number| number != Some(user.number()))
    }

    /// The client has said who it is, and that is true by these users, which the process knows.
    pub(crate) fn enter(&mut self, user: Arc<NamedUser>, users: &Users, known: &KnownUsers) {
        *self = Self {
            user: Some(user),
            is_authenticated: true,
            epoch: users.version().saturating_add(1),
            free_epoch: 0,
            is_provisional: known.is_outdated(),
            ..core::mem::take(self)
        };
    }

    /// The client has not said who it is.
    pub(crate) fn leave(&mut self) {
        *self = Self {
            has_certificate: self.has_certificate,
            #[cfg(feature = "planted-bugs")]
            planted: self.planted,
            ..Self::default()
        };
    }

    /// The name of the user.
    pub(crate) fn name(&self) -> &[u8] {
        self.user.as_ref().map_or(DEFAULT_USER, |user| user.name())
    }

    /// What a script is to check that the client runs.
    pub(crate) fn caller(&self, known: &KnownUsers) -> CallingUser {
        match &self.user {
            Some(user) if !self.is_free(known) => CallingUser::new(user.number()),
            _ => CallingUser::NOBODY,
        }
    }

    /// True if the client may be told what is published there.
    pub(crate) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.user.as_ref().is_none_or(|user| user.user().allows_channel(channel, is_pattern))
    }
}

/// True if this is the address of a client on the same machine.
pub(crate) fn is_local(address: &str) -> bool {
    address.parse().is_ok_and(|address: SocketAddr| address.ip().to_canonical().is_loopback())
}
