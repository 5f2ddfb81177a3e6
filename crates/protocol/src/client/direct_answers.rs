//! What a client knows of direct answers: whom it has asked for them, and what they were good for.

use syros_types::{Instant, ReplicaId, ReplicaSet};

/// What a client knows of direct answers to the updates of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DirectAnswers {
    /// Whom it has asked for them, in this view and on the present connection.
    pub(super) asked: Option<AskedFollower>,
    /// Those that have been asked since the last rest and were never first.
    pub(super) in_vain: ReplicaSet,
    /// It asks nobody before this moment.
    pub(super) rest_until: Instant,
}

/// A follower that has been asked for direct answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AskedFollower {
    pub(super) follower: ReplicaId,
    pub(super) at: Instant,
    /// An update that it was the first to answer, and when: the leader's answer tells what that has gained.
    pub(super) compared: Option<(u64, Instant)>,
    /// What the comparisons since the last judgement have gained, in nanoseconds, and how many these were.
    pub(super) gained: u64,
    pub(super) comparisons: u32,
    /// Answers that were the first ones. 0 as long as it has not shown, since it was asked, that it can be sooner.
    pub(super) needed: u32,
    /// Answers to what had been answered.
    pub(super) needless: u32,
}

impl AskedFollower {
    pub(super) const fn new(follower: ReplicaId, at: Instant) -> Self {
        Self { follower, at, compared: None, gained: 0, comparisons: 0, needed: 0, needless: 0 }
    }
}

impl DirectAnswers {
    /// These replicas may not know any more that they have been asked.
    pub(super) fn forget(&mut self, replicas: ReplicaSet) {
        self.asked.take_if(|asked| replicas.contains(asked.follower));
    }
}
