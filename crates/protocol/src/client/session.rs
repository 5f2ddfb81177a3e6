//! A client's session. One that is active owns what is true of that session only.

use super::direct_answers::DirectAnswers;
use core::time::Duration;
use syros_types::{Instant, ReplicaSet, SessionId};

/// How often updates go both ways, where it matters.
pub(super) const COMPARISON_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) enum Session {
    /// None, and none needed yet.
    None,
    /// The leader had no room for this registration, or did not answer. It may have taken another copy of it since, and the
    /// next registration is this one, sent again. With a nonce of its own, each would come when copies of the one before it
    /// take the room.
    Abandoned { nonce: u64 },
    /// Asked for.
    Registering { nonce: u64, sent: Instant },
    /// In use.
    Active(Active),
}

/// A session in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) id: SessionId,
    /// What it was registered with.
    pub(super) nonce: u64,
    /// Who has been shown that it is this client's, on the present connection.
    pub(super) shown: ReplicaSet,
    /// Timestamp of its last update: those of one session only grow.
    pub(super) last_micros: u64,
    /// An update whose `Ok`s are awaited even after it has ended, and when it was sent: the last one that went
    /// both ways, or one sent before the fast quorum's distance was known.
    pub(super) followed: Option<(u64, Instant)>,
    /// Whom it has asked for direct answers, and what these were good for.
    pub(super) direct: DirectAnswers,
}

impl Session {
    /// The session in use.
    pub(super) const fn id(&self) -> Option<SessionId> {
        match self {
            Self::Active(session) => Some(session.id),
            Self::None | Self::Abandoned { .. } | Self::Registering { .. } => None,
        }
    }

    /// These replicas may not know any more that the session is this client's.
    pub(super) fn forget_shown(&mut self, replicas: ReplicaSet) {
        if let Self::Active(session) = self {
            session.shown = session.shown.except(replicas);
            session.direct.forget(replicas);
        }
    }

    /// An update goes to these replicas. Gives those that have yet to be shown that the session is this client's, and what
    /// shows it; they count as having been shown it.
    pub(super) fn show(&mut self, to: ReplicaSet) -> Option<(ReplicaSet, u64)> {
        let Self::Active(session) = self else { return None };
        let strangers = to.except(session.shown);
        session.shown = session.shown.and(strangers);
        (!strangers.is_empty()).then_some((strangers, session.nonce))
    }
}

impl Active {
    pub(super) fn new(id: SessionId, nonce: u64) -> Self {
        Self {
            id,
            nonce,
            shown: ReplicaSet(0),
            last_micros: 0,
            followed: None,
            direct: DirectAnswers::default(),
        }
    }

    /// The timestamp of its next update, where the time is `clock`.
    pub(super) fn next_micros(&mut self, clock: u64) -> u64 {
        self.last_micros = clock.max(self.last_micros + 1);
        self.last_micros
    }

    /// True if it is time to send an update to all, only to know how far everybody is.
    pub(super) fn comparison_is_due(&self, now: Instant) -> bool {
        self.followed.is_none_or(|(_, began)| began.after(COMPARISON_INTERVAL) <= now)
    }
}
