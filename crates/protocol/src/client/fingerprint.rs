//! What a model checker sees of a client. Every field is named, so that a new one does not compile
//! before somebody has decided whether it belongs in the fingerprint.

use super::members::Members;
use super::reads::Read;
use super::session::{Active, COMPARISON_INTERVAL, Session};
use super::updates::{Update, WriteTimes};
use super::{Client, Config};
use crate::fingerprint::{Clock, Moments};
use core::hash::{Hash, Hasher};
use core::time::Duration;
use syros_types::{Strength, Window};

impl Client {
    /// Everything that decides what this client does from now on, but its configuration. To be taken
    /// between events, when `poll` has run dry.
    pub fn fingerprint(&self, moments: Moments, hasher: &mut impl Hasher) {
        let Self {
            config,
            now,
            prng,
            view,
            rule,
            rule_is_told,
            session,
            last_update,
            updates,
            reads,
            last_token,
            members,
            clocks,
            held,
            scan_at,
            write_times,
            write_counts: _,
            latencies,
            read_counts: _,
            way_times: _,
            // No leader advises anything in a model.
            advised: _,
            actions,
        } = self;
        assert!(actions.is_empty(), "a fingerprint is taken when nothing is left to do");
        let clock = Clock { now: now.instant, moments };
        if moments == Moments::Absolute {
            now.instant.hash(hasher);
        }
        config.configuration.id.hash(hasher);
        (now.wall, prng, view, rule, rule_is_told, last_token, latencies).hash(hasher);
        clocks.fingerprint(hasher);
        assert!(held.is_empty(), "no clock in a model is so far ahead that a session is replaced");
        // Nothing takes time in a model, so that no leader advises anything.
        let WriteTimes {
            oks,
            distances,
            ordered,
            latency,
            ordered_distance: _,
            fast_when_advised: _,
            followed_at: _,
        } = write_times;
        (oks, distances.map(|distance| distance.shortest), ordered, latency).hash(hasher);
        // No timeout that starts with something being sent is longer than this.
        let slowest = latencies.slowest().max(write_times.slowest()).max(*latency);
        let patience = super::patience(config.settings.resend, slowest, &config.settings);
        match session {
            Session::None => 0_u8.hash(hasher),
            Session::Abandoned { nonce } => (1_u8, nonce).hash(hasher),
            Session::Registering { nonce, sent } => {
                nonce.hash(hasher);
                clock.past(*sent, config.settings.resend, hasher);
            }
            Session::Active(session) => session.fingerprint(clock, hasher),
        }
        clock.past(*last_update, config.settings.session_idle_max, hasher);
        let patience = patience.max(config.settings.sync_after);
        let patience = patience.max(self.straggler_patience(Strength::Strong).unwrap_or_default());
        hash_updates(updates, config, patience, clock, hasher);
        hash_reads(reads, config, patience, clock, hasher);
        members.fingerprint(patience, clock, hasher);
        clock.deadline(*scan_at, hasher);
    }
}

impl Active {
    fn fingerprint(&self, clock: Clock, hasher: &mut impl Hasher) {
        let Self { id, nonce: _, shown: _, last_micros, followed, direct } = self;
        (id, last_micros, followed.map(|(sequence, _)| sequence)).hash(hasher);
        // (Clients of models are near, and ask for none.)
        direct.hash(hasher);
        if let Some((_, began)) = followed {
            clock.past(*began, COMPARISON_INTERVAL, hasher);
        }
    }
}

impl Members {
    fn fingerprint(&self, patience: Duration, clock: Clock, hasher: &mut impl Hasher) {
        let Self {
            connected,
            quorum_lost,
            slow,
            behind,
            leader_heard,
            probed,
            tell_none: _,
            asked_configuration,
        } = self;
        for asked in asked_configuration {
            asked.is_some().hash(hasher);
            if let Some(asked) = asked {
                clock.past(*asked, patience, hasher);
            }
        }
        (connected.0, slow.0, behind.0, quorum_lost).hash(hasher);
        clock.past(*leader_heard, patience, hasher);
        clock.past(*probed, patience, hasher);
    }
}

fn hash_updates(
    updates: &Window<Update>,
    config: &Config,
    patience: Duration,
    clock: Clock,
    hasher: &mut impl Hasher,
) {
    (updates.first(), updates.slots()).hash(hasher);
    for update in updates.iter_slots() {
        update.is_some().hash(hasher);
        let Some(Update {
            token,
            body,
            fast,
            strength,
            invoked,
            sent,
            micros,
            acked_below,
            path,
            attempts,
            shared,
            recipients,
            oks,
            returns,
            evaluated,
            refusals,
            asked,
            is_older,
            without_room,
            lacks,
            is_resent,
            crowded_out,
            way,
            began,
        }) = update
        else {
            continue;
        };
        (token, body, fast, strength, micros, acked_below, path, shared).hash(hasher);
        // Compared with nothing but 0 and 1.
        attempts.min(&2).hash(hasher);
        (recipients, oks.0, returns, evaluated, refusals.0, crowded_out, way).hash(hasher);
        (asked.0, is_older, without_room.0, lacks, is_resent).hash(hasher);
        clock.past(*began, patience, hasher);
        clock.past(*sent, patience, hasher);
        clock.past(*invoked, config.settings.give_up_after, hasher);
    }
}

fn hash_reads(
    reads: &Window<Read>,
    config: &Config,
    patience: Duration,
    clock: Clock,
    hasher: &mut impl Hasher,
) {
    (reads.first(), reads.slots()).hash(hasher);
    for read in reads.iter_slots() {
        read.is_some().hash(hasher);
        let Some(Read {
            token,
            body,
            policy,
            bucket,
            invoked,
            sent,
            attempts,
            source,
            progress,
            waits_for,
            referred,
            refused,
        }) = read
        else {
            continue;
        };
        (
            token,
            body,
            policy,
            bucket,
            (*attempts).min(config.configuration.size() as u32 + 1),
            source,
            progress,
            waits_for,
            (referred, refused),
        )
            .hash(hasher);
        clock.past(*sent, patience, hasher);
        clock.past(*invoked, config.settings.give_up_after, hasher);
    }
}
