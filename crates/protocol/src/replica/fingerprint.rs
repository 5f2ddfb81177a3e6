//! What a model checker sees of a replica. Every field is named, so that a new one does not compile
//! before somebody has decided whether it belongs in the fingerprint.

use super::{Progress, Replica, Status};
use crate::fingerprint::{Clock, Moments};
use crate::message::Update;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

impl Replica {
    /// Everything that decides what this replica does from now on, but its configuration, its jitter,
    /// its counters and what it has told of itself. To be taken between events, when `poll` has run dry.
    #[expect(clippy::too_many_lines, reason = "a line per field")]
    pub fn fingerprint(&self, moments: Moments, hasher: &mut impl Hasher) {
        let Self {
            config,
            now,
            prng: _,
            status,
            view,
            last_normal,
            entered_at,
            log,
            commit,
            applied,
            apply_requested,
            dlog,
            backlog,
            history,
            sessions,
            attachments: _,
            digests: _,
            reported: _,
            differing: _,
            diverged: _,
            sessions_ended_at: _,
            next_expiry,
            resources,
            actions,
            persistence,
            progress,
            batch,
            batch_bytes,
            batch_bodies,
            overtaken,
            waiters,
            waiting: _,
            abandoned,
            refusals,
            view_began_at,
            reads_unapplied,
            reading,
            reads_unconfirmed,
            heartbeat_due,
            heartbeat_at,
            order_at,
            sessions_at: _,
            leader_commit,
            parked,
            fetched,
            fetch_at,
            fetch_asked,
            ack_due,
            forward_at,
            leader_contact,
            promised_until,
            suspect_at,
            suspecting,
            clocks: _,
            unheard_signs,
            unheard_again_at,
            confirmed_until,
            clock_off_since,
            wants,
            transfer,
            snapshots,
            state_requested,
            start_view_requested,
            traced: _,
            counters: _,
        } = self;
        assert!(actions.is_empty(), "a fingerprint is taken when nothing is left to do");
        let clock = Clock { now: now.instant, moments };
        if moments == Moments::Absolute {
            now.instant.hash(hasher);
        }
        match status {
            Status::Normal => 0_u8.hash(hasher),
            Status::ViewChange(change) => {
                1_u8.hash(hasher);
                change.fingerprint(clock, hasher);
            }
            Status::Recovering => 2_u8.hash(hasher),
        }
        (now.wall, view, last_normal, log, commit, applied, apply_requested).hash(hasher);
        dlog.fingerprint(clock, config.forward_after, hasher);
        backlog.fingerprint(hasher);
        history.fingerprint(hasher);
        reading.fingerprint(hasher);
        view_began_at.max(applied).hash(hasher);
        (sessions, next_expiry, resources).hash(hasher);
        persistence.fingerprint(hasher);
        for Progress { op_number, applied, heard, promised_until, disk_short, fetched, fetched_at } in
            progress
        {
            (op_number, applied, heard.is_some(), disk_short.is_some(), fetched).hash(hasher);
            heard.iter().chain(fetched_at).for_each(|heard| clock.exact(*heard, hasher));
            clock.deadline(*promised_until, hasher);
        }
        // In models all replicas' clocks say the same, and time passes in steps far below the microsecond that they count.
        self.group_clock().is_some().hash(hasher);
        // How many signs of life were not answered matters only when they are nearly too many.
        let most = config.suspect_after.as_nanos() / config.heartbeat.as_nanos().max(1);
        let few = u32::try_from(most).unwrap_or(u32::MAX);
        unheard_signs.saturating_sub(few).hash(hasher);
        if *unheard_signs > few {
            clock.deadline(*unheard_again_at, hasher);
            clock.exact(*confirmed_until, hasher);
        }
        clock_off_since.is_some().hash(hasher);
        (batch, batch_bytes, batch_bodies, waiters, abandoned, refusals).hash(hasher);
        for (number, reads) in reads_unapplied {
            number.hash(hasher);
            reads.iter().for_each(|read| read.fingerprint(clock, hasher));
        }
        reads_unconfirmed.len().hash(hasher);
        reads_unconfirmed.iter().for_each(|read| read.fingerprint(clock, hasher));
        (heartbeat_due, leader_commit, parked, fetch_asked, suspecting, transfer, snapshots).hash(hasher);
        let mut fetched: Vec<_> = fetched.iter().collect();
        fetched.sort_unstable_by_key(|(id, _)| **id);
        fetched.hash(hasher);
        for moment in [heartbeat_at, order_at, fetch_at, forward_at, suspect_at, promised_until] {
            clock.deadline(*moment, hasher);
        }
        ack_due.is_some().hash(hasher);
        clock.past(*leader_contact, config.lease, hasher);
        for want in wants {
            want.is_some().hash(hasher);
            want.iter().for_each(|want| want.fingerprint(clock, config.resend * 4, hasher));
        }
        overtaken.map(|(number, _)| number).hash(hasher);
        let entered = (entered_at, config.view_change_timeout);
        let overtaken = (&overtaken.map(|(_, since)| since), config.slow_disk_after);
        for (since, lasting) in
            [entered, overtaken, (state_requested, config.resend), (start_view_requested, config.resend)]
        {
            let end = since.map(|at| at.after(lasting)).filter(|end| now.instant < *end);
            end.is_some().hash(hasher);
            end.iter().for_each(|end| clock.deadline(*end, hasher));
        }
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
