//! Advice: a leader whose cores are what limits the group tells its clients which way updates and reads had better go.
//!
//! A fast update costs every replica a message to receive and one to send; one that the leader orders costs the followers
//! only their part of a batch, and the client a second round trip (Skyros 6). Where distance is what an update waits for,
//! fast is better. Where all wait for cores, the way with the least work is done soonest, and no client sees that by
//! itself: alone on the other way it would wait behind those of all the others. So the leader tries. When its process is
//! busy it asks all clients to send it their updates for a moment, and compares how many the group executes in that time.
//! Then it does the same with reads: those that others answer relieve it, and cost them and the clients a message more.
//! Clients that ask for more as soon as they are answered show by that which way answers sooner. Advice is no rule: whatever
//! clients do with it is safe.

use super::role::Done;
use super::{Action, Replica, Role, TraceEvent};
use crate::message::{Advice, Advised, Message, Peer};

impl Replica {
    /// The process was busy for this share of the time since it last said so.
    pub(super) fn on_load(&mut self, share: u32) {
        let now = self.now.instant;
        let reads = self.counters.fast_reads + self.counters.slow_reads;
        let done = Done { executed: self.applied, reads };
        let Role::Leader(leader) = &mut self.role else { return };
        let told = leader.advisor.advice();
        if let Some(measured) = leader.advisor.on_load(now, share, done) {
            let (view, advised) = (self.view, leader.advisor.advice());
            let (rate, load) = (measured.rate(), measured.load);
            for of in Advised::ALL.into_iter().filter(|of| advised[*of as usize] != told[*of as usize]) {
                let advice = advised[of as usize];
                self.actions.push_back(Action::Trace(TraceEvent::Advised { of, advice, rate, load }));
                for client in self.attachments.clients() {
                    self.send(Peer::Client(client), Message::Advise { view, of, advice });
                }
            }
        }
    }

    /// Leader: a client has shown that a session is its own. It is told what it could not know.
    pub(super) fn brief(&mut self, client: u64) {
        let rule = self.rule;
        if self.is_leader() && rule.mode != self.config.configuration.mode {
            self.send(Peer::Client(client), Message::FastRule { view: self.view, rule });
        }
        let Some(advised) = self.role.leading().map(|leader| leader.advisor.advice()) else { return };
        for of in Advised::ALL.into_iter().filter(|of| advised[*of as usize] != Advice::Free) {
            let advice = advised[of as usize];
            self.send(Peer::Client(client), Message::Advise { view: self.view, of, advice });
        }
    }
}
