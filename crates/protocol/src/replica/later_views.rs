//! What a replica has heard of views later than its own, and who is to hear of them.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{Instant, ReplicaId, View};

/// What a member was last heard to want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WantedView {
    /// The view that it wants to move to, or has moved to.
    pub(super) view: View,
    pub(super) moved: bool,
    pub(super) at: Instant,
}

impl WantedView {
    /// How long it counts, where messages are sent again after `resend`.
    pub(super) fn kept(resend: Duration) -> Duration {
        resend * 4
    }

    fn is_recent(&self, now: Instant, resend: Duration) -> bool {
        self.at.after(Self::kept(resend)) >= now
    }
}

/// What members and clients want of later views.
#[derive(Clone, Debug)]
pub(super) struct LaterViews {
    /// By member.
    pub(super) wants: Vec<Option<WantedView>>,
    /// Clients whose requests met a change of views: they are told of the next view once it has begun.
    pub(super) clients: BTreeSet<u64>,
    /// When this replica has last asked to be let into a later view, since it left one.
    pub(super) start_view_requested: Option<Instant>,
}

impl LaterViews {
    pub(super) fn new(members: usize) -> Self {
        Self { wants: vec![None; members], clients: BTreeSet::new(), start_view_requested: None }
    }

    /// Only what is wanted of these views counts any more.
    pub(super) fn retain_wants(&mut self, is_possible: impl Fn(View) -> bool) {
        for want in &mut self.wants {
            want.take_if(|want| !is_possible(want.view));
        }
    }

    pub(super) fn on_wanted(&mut self, from: ReplicaId, want: WantedView) {
        self.wants[from.index()] = Some(want);
    }

    /// Members heard lately to want a view that `wanted` accepts.
    pub(super) fn count_wants(
        &self,
        now: Instant,
        resend: Duration,
        wanted: impl Fn(&WantedView) -> bool,
    ) -> usize {
        let recent = |want: &&WantedView| want.is_recent(now, resend);
        self.wants.iter().flatten().filter(recent).filter(|want| wanted(want)).count()
    }

    /// True if this member was heard lately to want a later view.
    pub(super) fn is_wanting(&self, member: ReplicaId, now: Instant, resend: Duration) -> bool {
        let want = self.wants.get(member.index()).copied().flatten();
        want.is_some_and(|want| want.is_recent(now, resend))
    }

    /// The highest view that a member was heard to want.
    pub(super) fn highest_wanted(&self) -> View {
        self.wants.iter().flatten().map(|want| want.view).max().unwrap_or_default()
    }

    /// A client's request cannot be dealt with before the next view.
    pub(super) fn on_client_abandoned(&mut self, client: u64) {
        // Each is a connection, of which there are no more; those beyond ask around by themselves.
        const CLIENTS_MAX: usize = 65_536;
        if self.clients.len() < CLIENTS_MAX {
            self.clients.insert(client);
        }
    }

    pub(super) fn on_client_gone(&mut self, client: u64) {
        self.clients.remove(&client);
    }

    /// Those who are to hear of the view that has begun.
    pub(super) fn take_clients(&mut self) -> BTreeSet<u64> {
        core::mem::take(&mut self.clients)
    }

    /// The replica has left its view.
    pub(super) const fn on_left(&mut self) {
        self.start_view_requested = None;
    }

    /// True if the replica may ask to be let into a later view now; it counts as having asked.
    pub(super) fn may_ask(&mut self, now: Instant, resend: Duration) -> bool {
        let has_asked = self.start_view_requested.is_some_and(|at| now < at.after(resend));
        if !has_asked {
            self.start_view_requested = Some(now);
        }
        !has_asked
    }
}
