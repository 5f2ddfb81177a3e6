//! Advice: a leader whose cores are what limits the group tells its clients which way updates had better go.
//!
//! A fast update costs every replica a message to receive and one to send; one that the leader orders costs the followers
//! only their part of a batch, and the client a second round trip (Skyros 6). Where distance is what an update waits for,
//! fast is better. Where all wait for cores, the way with the least work is done soonest, and no client sees that by
//! itself: alone on the other way it would wait behind those of all the others. So the leader tries. When its process is
//! busy it asks all clients to send it their updates for a moment, and compares how many the group executes in that time.
//! Clients that ask for more as soon as they are answered show by that which way answers sooner. Advice is no rule: whatever
//! clients do with it is safe.

use super::{Action, Replica, Role, TraceEvent};
use crate::message::{Advice, Message, Peer};

impl Replica {
    /// The process was busy for this share of the time since it last said so.
    pub(super) fn on_load(&mut self, share: u32) {
        let (now, executed) = (self.now.instant, self.applied);
        let Role::Leader(leader) = &mut self.role else { return };
        if let Some(measured) = leader.advisor.on_load(now, share, executed) {
            let (view, advice) = (self.view, leader.advisor.advice());
            let (rate, load) = (measured.rate(), measured.load);
            self.actions.push_back(Action::Trace(TraceEvent::Advised { advice, rate, load }));
            for client in self.attachments.clients() {
                self.send(Peer::Client(client), Message::Advise { view, advice });
            }
        }
    }

    /// Leader: a client has shown that a session is its own. It is told what it could not know.
    pub(super) fn brief(&mut self, client: u64) {
        let rule = self.rule;
        if self.is_leader() && rule.mode != self.config.configuration.mode {
            self.send(Peer::Client(client), Message::FastRule { view: self.view, rule });
        }
        let advice = self.role.leading().map(|leader| leader.advisor.advice());
        if let Some(advice) = advice.filter(|advice| *advice != Advice::Free) {
            self.send(Peer::Client(client), Message::Advise { view: self.view, advice });
        }
    }
}
