//! Direct answers, as a client asks for them. A follower that executes what the leader has ordered answers half a round trip
//! before the leader, where all links are alike; and costs everybody a message. So the client measures: it asks a follower
//! when the leader takes so long that something can be gained, compares when both answer, and goes on only if that gains
//! enough and not too few of the follower's answers are needed. Nothing that it has heard of distances decides that: those contain
//! what the disks take, and what waits for cores.

use super::direct_answers::{AskedFollower, DirectAnswers};
use super::session::{COMPARISON_INTERVAL, Session};
use super::{Action, Client};
use crate::message::Message;
use core::time::Duration;
use syros_types::{ReplicaId, ReplicaSet, WritePolicy};

/// A client that direct answers did not gain enough tries them again after this time: nodes move, and others' load does.
const REST: Duration = Duration::from_secs(30);

/// Comparisons that are judged together: one may have been held up.
const COMPARISONS: u32 = 8;

/// A follower answers also what the fast quorum has answered before. When so many of its answers were needless, it has to stop
/// if fewer than a quarter as many were needed.
const NEEDLESS_JUDGED: u32 = 64;
const NEEDLESS_FOR_ONE_NEEDED: u32 = 4;

impl Client {
    /// True if followers may answer directly: of three replicas one is a majority with the leader. Other policies than `auto` say
    /// who answers, and protocols of the literature have them; and a replica's own front end needs not ask.
    fn may_have_direct_answers(&self) -> bool {
        self.config.configuration.size() == 3
            && self.config.settings.write_policy == WritePolicy::Auto
            && self.config.own_replica.is_none()
    }

    const fn direct_answers(&mut self) -> Option<&mut DirectAnswers> {
        match &mut self.session {
            Session::Active(session) => Some(&mut session.direct),
            Session::None | Session::Abandoned { .. } | Session::Registering { .. } => None,
        }
    }

    /// A replica was the first to answer an update that the leader has ordered, after so many nanoseconds.
    pub(super) fn on_first_answer(&mut self, from: ReplicaId, sequence: u64, took: u64) {
        let (leader, now) = (self.leader(), self.now.instant);
        let lasting = self.config.settings.direct_lasting;
        let may_gain = took / 2 >= self.config.settings.direct_gain_min.as_nanos() as u64;
        let is_open = may_gain && self.may_have_direct_answers();
        let Some(direct) = self.direct_answers() else { return };
        match &mut direct.asked {
            Some(asked) if from == asked.follower => {
                asked.needed += 1;
                // The leader's answer to the one before may never come.
                if asked.compared.is_none_or(|(_, first)| now >= first.after(COMPARISON_INTERVAL)) {
                    asked.compared = Some((sequence, now));
                }
                if now >= asked.at.after(lasting / 2) {
                    self.renew_direct_answers();
                }
            }
            _ if from != leader || !is_open => {}
            None if now >= direct.rest_until => self.ask_next_follower(),
            // It was asked for no longer than this.
            Some(asked) if asked.needed > 0 && now >= asked.at.after(lasting) => {
                asked.needed = 0;
                self.renew_direct_answers();
            }
            // It does not know the session yet, or is slow.
            Some(asked) if asked.needed == 0 && now >= asked.at.after(COMPARISON_INTERVAL.min(lasting)) => {
                direct.in_vain = direct.in_vain.with(asked.follower);
                self.ask_next_follower();
            }
            None | Some(_) => {}
        }
    }

    /// A replica has answered an update that had been answered before.
    pub(super) fn on_later_answer(&mut self, from: ReplicaId, sequence: u64) {
        let (leader, now) = (self.leader(), self.now.instant);
        let gain_min = self.config.settings.direct_gain_min.as_nanos() as u64;
        let Some(DirectAnswers { asked: Some(asked), .. }) = self.direct_answers() else { return };
        if from == asked.follower {
            asked.needless += 1;
            let AskedFollower { needed, needless, .. } = *asked;
            if needless >= NEEDLESS_JUDGED && needed < needless / NEEDLESS_FOR_ONE_NEEDED {
                self.rest_from_direct_answers();
            }
        } else if from == leader
            && let Some((_, first)) = asked.compared.take_if(|(compared, _)| *compared == sequence)
        {
            asked.gained = asked.gained.saturating_add(now.since(first).as_nanos() as u64);
            asked.comparisons += 1;
            if asked.comparisons == COMPARISONS {
                let gained = core::mem::take(&mut asked.gained) / u64::from(COMPARISONS);
                asked.comparisons = 0;
                if gained < gain_min {
                    self.rest_from_direct_answers();
                }
            }
        }
    }

    /// Asks the nearest follower that has not been asked in vain; rests if there is none.
    fn ask_next_follower(&mut self) {
        let (now, active, leader) = (self.now.instant, self.rule.active, self.leader());
        let Some(direct) = self.direct_answers() else { return };
        let in_vain = direct.in_vain;
        let followers = self.usable().within(active).without(leader).except(in_vain);
        // One whose distance is not known comes last.
        let nearest = followers.iter().min_by_key(|follower| self.distance(*follower).wrapping_sub(1));
        let Some(nearest) = nearest else { return self.rest_from_direct_answers() };
        self.end_direct_answers();
        if let Some(direct) = self.direct_answers() {
            direct.asked = Some(AskedFollower::new(nearest, now));
        }
        self.ask_for_direct_answers(nearest, self.config.settings.direct_lasting);
    }

    /// Asks the same follower again, before it forgets, or because it may have forgotten.
    fn renew_direct_answers(&mut self) {
        let (now, lasting) = (self.now.instant, self.config.settings.direct_lasting);
        let Some(DirectAnswers { asked: Some(asked), .. }) = self.direct_answers() else { return };
        let follower = asked.follower;
        asked.at = now;
        // What it did long ago counts less.
        (asked.needed, asked.needless) = (asked.needed.div_ceil(2), asked.needless / 2);
        self.ask_for_direct_answers(follower, lasting);
    }

    fn rest_from_direct_answers(&mut self) {
        let until = self.now.instant.after(REST);
        self.end_direct_answers();
        if let Some(direct) = self.direct_answers() {
            (direct.in_vain, direct.rest_until) = (ReplicaSet(0), until);
        }
    }

    /// Tells the follower that has been asked that its answers are wanted no more.
    fn end_direct_answers(&mut self) {
        let Some(asked) = self.direct_answers().and_then(|direct| direct.asked.take()) else { return };
        self.ask_for_direct_answers(asked.follower, Duration::ZERO);
    }

    fn ask_for_direct_answers(&mut self, follower: ReplicaId, lasting: Duration) {
        let Session::Active(session) = &self.session else { return };
        let message = Message::AnswerDirectly { session: session.id, nonce: session.nonce, lasting };
        self.actions.push_back(Action::Send { to: ReplicaSet::default().with(follower), message });
    }
}
