//! What a model checker sees of a replica. Every field is named, so that a new one does not compile
//! before somebody has decided whether it belongs in the fingerprint.

use super::Replica;
use super::config::Config;
use super::later_views::{LaterViews, WantedView};
use super::learner::FRESH_RESENDS;
use super::role::{
    Contact, Follower, Leader, MissingBodies, Progress, Recovering, Role, ViewChange, ViewClients,
    WaitingRead,
};
use crate::fingerprint::{Clock, Moments};
use crate::message::Update;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use syros_types::Instant;

impl Replica {
    /// Everything that decides what this replica does from now on, but its configuration, its jitter,
    /// its counters and what it has told of itself. To be taken between events, when `poll` has run dry.
    pub fn fingerprint(&self, moments: Moments, hasher: &mut impl Hasher) {
        let Self {
            config,
            now,
            prng: _,
            role,
            timers,
            view,
            last_normal,
            rule,
            active,
            log,
            commit,
            applied,
            apply_requested,
            dlog,
            backlog,
            history,
            sessions,
            // No model fills the session table.
            acknowledged: _,
            attachments,
            digests: _,
            diverged: _,
            sessions_ended_at: _,
            next_expiry,
            resources,
            known_configuration,
            actions,
            persistence,
            promised_until,
            clocks: _,
            later_views,
            snapshots,
            traced: _,
            counters: _,
        } = self;
        assert!(actions.is_empty(), "a fingerprint is taken when nothing is left to do");
        let clock = Clock { now: now.instant, moments };
        if moments == Moments::Absolute {
            now.instant.hash(hasher);
        }
        (now.wall, view, last_normal, rule, log, commit, applied, apply_requested).hash(hasher);
        (config.configuration, known_configuration).hash(hasher);
        attachments.fingerprint(hasher);
        core::mem::discriminant(role).hash(hasher);
        match role {
            Role::Leader(leader) => {
                leader.view_began_at.max(*applied).hash(hasher);
                leader.fingerprint(config, clock, hasher);
            }
            Role::Follower(follower) => follower.fingerprint(config, clock, hasher),
            Role::ViewChange(change) => change.fingerprint(clock, hasher),
            Role::Recovering(recovering) => recovering.fingerprint(config, clock, hasher),
        }
        timers.fingerprint(clock, hasher);
        dlog.fingerprint(clock, config.settings.forward_after, hasher);
        backlog.fingerprint(hasher);
        history.fingerprint(hasher);
        (sessions, next_expiry, resources, snapshots).hash(hasher);
        persistence.fingerprint(hasher);
        // In models all replicas' clocks say the same, and time passes in steps far below the microsecond that they count.
        self.group_clock().is_some().hash(hasher);
        clock.deadline(*promised_until, hasher);
        later_views.fingerprint(config, clock, hasher);
        active.fingerprint(rule.mode, config, clock, hasher);
    }

    /// The updates in the durability log, in order of arrival.
    pub fn accepted(&self) -> impl Iterator<Item = &Update> {
        self.dlog.iter()
    }

    /// True if the update is in the log and not yet applied.
    #[must_use]
    pub fn is_ordered(&self, id: syros_types::OperationId) -> bool {
        self.backlog.ordered.contains_key(&id)
    }
}

/// Something that has been so since a moment, if it has, and matters until it has been for as long as `lasting`.
fn hash_since(since: Option<Instant>, lasting: Duration, clock: Clock, hasher: &mut impl Hasher) {
    let end = since.map(|at| at.after(lasting)).filter(|end| clock.now < *end);
    end.is_some().hash(hasher);
    end.iter().for_each(|end| clock.deadline(*end, hasher));
}

impl ViewClients {
    fn fingerprint(&self, clock: Clock, hasher: &mut impl Hasher) {
        let Self { refusals, waiting: _, reads_unapplied, log_watchers } = self;
        (refusals, log_watchers).hash(hasher);
        for (number, reads) in reads_unapplied {
            number.hash(hasher);
            reads.iter().for_each(|read| read.fingerprint(clock, hasher));
        }
    }
}

impl Leader {
    fn fingerprint(&self, config: &Config, clock: Clock, hasher: &mut impl Hasher) {
        let Self {
            in_view,
            entered_at,
            // Matters as long as it is not executed.
            view_began_at: _,
            // Matters as long as nobody has answered.
            began_within: _,
            progress,
            batch,
            overtaken,
            waiters,
            reading,
            reads_unconfirmed,
            comparison: _,
            contact,
            got_to,
            clock_off_since,
            heartbeat_due,
            // Nothing takes time in a model.
            advisor: _,
            // Models propose whole configurations.
            newcomers: _,
        } = self;
        in_view.fingerprint(clock, hasher);
        for Progress {
            op_number,
            applied,
            heard,
            promised_until,
            disk_short,
            fetched,
            fetched_at,
            silent_reviews,
            reviews_present,
            heard_before,
            // Models make leaders want other members by a step of their own: how late they answer decides nothing there that the
            // counts of reviews do not tell.
            answers: _,
            answer_time: _,
            slow_reviews,
            prompt_reviews,
        } in progress
        {
            (op_number, applied, disk_short.is_some(), fetched, silent_reviews, reviews_present).hash(hasher);
            (slow_reviews, prompt_reviews).hash(hasher);
            for moment in [heard, fetched_at, heard_before] {
                moment.is_some().hash(hasher);
                moment.iter().for_each(|moment| clock.exact(*moment, hasher));
            }
            clock.deadline(*promised_until, hasher);
        }
        (batch, waiters, heartbeat_due, clock_off_since.is_some()).hash(hasher);
        reading.fingerprint(hasher);
        reads_unconfirmed.len().hash(hasher);
        reads_unconfirmed.iter().for_each(|read| read.fingerprint(clock, hasher));
        contact.fingerprint(config, clock, hasher);
        got_to.hash(hasher);
        self.missed_timeout().hash(hasher);
        overtaken.map(|(number, _)| number).hash(hasher);
        hash_since(overtaken.map(|(_, since)| since), config.settings.slow_disk_after, clock, hasher);
        hash_since(*entered_at, config.settings.view_change_timeout, clock, hasher);
    }
}

impl Contact {
    fn fingerprint(&self, config: &Config, clock: Clock, hasher: &mut impl Hasher) {
        let Self { unheard_signs, unheard_again_at, confirmed_until } = self;
        unheard_signs.hash(hasher);
        clock.deadline(*unheard_again_at, hasher);
        // When the last ones were answered matters only when there are nearly too many.
        let most = config.settings.suspect_after.as_nanos() / config.settings.heartbeat.as_nanos().max(1);
        if u128::from(*unheard_signs) > most {
            clock.exact(*confirmed_until, hasher);
        }
    }
}

impl Follower {
    fn fingerprint(&self, config: &Config, clock: Clock, hasher: &mut impl Hasher) {
        let Self {
            in_view,
            leader_commit,
            ack_due,
            leader_contact,
            suspecting,
            missing,
            state_requested,
            commits,
            majority_short,
        } = self;
        in_view.fingerprint(clock, hasher);
        (leader_commit, ack_due.is_some(), suspecting).hash(hasher);
        clock.past(*leader_contact, config.settings.lease, hasher);
        missing.fingerprint(hasher);
        hash_since(*state_requested, config.settings.resend, clock, hasher);
        hash_since(*majority_short, config.settings.suspect_after, clock, hasher);
        commits.fingerprint(hasher);
    }
}

impl MissingBodies {
    fn fingerprint(&self, hasher: &mut impl Hasher) {
        let Self { parked, fetched, fetch_asked } = self;
        (parked, fetch_asked).hash(hasher);
        let mut fetched: Vec<_> = fetched.iter().collect();
        fetched.sort_unstable_by_key(|(id, _)| **id);
        fetched.hash(hasher);
    }
}

impl Recovering {
    fn fingerprint(&self, config: &Config, clock: Clock, hasher: &mut impl Hasher) {
        let Self { transfer, learning } = self;
        (transfer, learning.is_some()).hash(hasher);
        let Some((learned, at)) = learning.and_then(|learning| learning.learned) else { return };
        learned.hash(hasher);
        hash_since(Some(at), config.settings.resend * FRESH_RESENDS, clock, hasher);
    }
}

impl LaterViews {
    fn fingerprint(&self, config: &Config, clock: Clock, hasher: &mut impl Hasher) {
        let Self { wants, clients, start_view_requested } = self;
        clients.hash(hasher);
        for want in wants {
            want.is_some().hash(hasher);
            let Some(WantedView { view, moved, at }) = want else { continue };
            (view, moved).hash(hasher);
            // It counts up to and including the last moment.
            clock.past(*at, WantedView::kept(config.settings.resend) + Duration::from_nanos(1), hasher);
        }
        hash_since(*start_view_requested, config.settings.resend, clock, hasher);
    }
}

impl ViewChange {
    fn fingerprint(&self, clock: Clock, hasher: &mut impl Hasher) {
        let Self {
            resend_change_at,
            carrying,
            timeout,
            changes,
            chosen,
            awaits_others,
            senders,
            source,
            transfer,
        } = self;
        clock.deadline(*resend_change_at, hasher);
        (carrying, timeout, changes, chosen, awaits_others, senders, source, transfer).hash(hasher);
    }
}

impl WaitingRead {
    fn fingerprint(&self, clock: Clock, hasher: &mut impl Hasher) {
        let Self { to, number, asked, body, footprint: _, invoked, time } = self;
        (to, number, asked, body, time).hash(hasher);
        clock.exact(*invoked, hasher);
    }
}
