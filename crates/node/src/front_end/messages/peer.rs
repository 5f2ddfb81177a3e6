//! What one other front end has said of its subscribers, and what it has been told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::registry::{SUBSCRIPTION_BYTES_MAX, SUBSCRIPTIONS_MAX};
use syros_commands::glob_matches;
use syros_protocol::message::Body;
use syros_types::{Instant, SubscriptionKind};
use syros_wire::Interest;

/// An [`Interest`](syros_wire::FrontEndMessage::Interest) that is not answered for so long is taken to be lost: the peer is
/// told everything anew.
pub(super) const RESEND_AFTER: Duration = Duration::from_secs(1);

/// Most names that a peer is believed to reach subscribers of, and most bytes that they take: a node's own, and those of a few
/// full gateways.
const PEER_NAMES_MAX: usize = 4 * SUBSCRIPTIONS_MAX;
const PEER_BYTES_MAX: usize = 4 * SUBSCRIPTION_BYTES_MAX;

/// Another front end.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// The names that it has subscribers of, and how many.
    subscribers: [BTreeMap<Body, u64>; 3],
    /// Bytes that the names of each kind take.
    bytes: [usize; 3],
    /// The last number of what it has said, and this front end has taken.
    heard: u64,
    /// The last number of what it has been told.
    sent: u64,
    /// The last number of that which it has answered.
    known: u64,
    /// It is to be told everything.
    pub(super) needs_whole: bool,
    /// It is to be told what has become of these names.
    changed: BTreeSet<(SubscriptionKind, Body)>,
    /// When what it has not answered is taken to be lost.
    resend_at: Option<Instant>,
    /// It has not answered for a while: nobody waits for it.
    is_silent: bool,
}

/// What comes of an `Interest`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing: something before it is missing, and the peer will say everything anew; or it is more than a process may have.
    Nothing,
    /// It was known.
    Known(u64),
    /// Subscribers of these names have come or gone.
    Changed(u64, BTreeSet<(SubscriptionKind, Body)>),
}

impl Peer {
    /// A peer that has just been connected to.
    pub(super) fn new() -> Self {
        Self { needs_whole: true, ..Self::default() }
    }

    /// Takes what the peer says of its subscribers.
    pub(super) fn on_interest(&mut self, number: u64, is_whole: bool, entries: Vec<Interest>) -> Heard {
        if number <= self.heard {
            return Heard::Known(self.heard);
        }
        if !is_whole && number != self.heard + 1 {
            return Heard::Nothing;
        }
        if !is_whole && self.exceeds_limits(&entries) {
            return Heard::Nothing;
        }
        let mut changed = BTreeSet::new();
        if is_whole {
            self.bytes = [0; 3];
            for (kind, names) in SubscriptionKind::ALL.into_iter().zip(&mut self.subscribers) {
                changed.extend(std::mem::take(names).into_keys().map(|name| (kind, name)));
            }
        }
        self.heard = number;
        for Interest { kind, name, subscribers } in entries {
            let (names, bytes) = (&mut self.subscribers[kind.index()], &mut self.bytes[kind.index()]);
            if subscribers == 0 {
                *bytes -= names.remove(&name).map_or(0, |_| name.len());
            } else {
                *bytes += names.insert(name.clone(), subscribers).map_or(name.len(), |_| 0);
            }
            changed.insert((kind, name));
        }
        Heard::Changed(number, changed)
    }

    /// True if names of a gateway and its own clients would be more than a front end takes.
    fn exceeds_limits(&self, entries: &[Interest]) -> bool {
        let names = self.subscribers.iter().map(BTreeMap::len).sum::<usize>() + entries.len();
        let bytes =
            self.bytes.iter().sum::<usize>() + entries.iter().map(|entry| entry.name.len()).sum::<usize>();
        names > PEER_NAMES_MAX || bytes > PEER_BYTES_MAX
    }

    /// Bytes of all patterns that it has subscribers of.
    pub(super) const fn pattern_bytes(&self) -> usize {
        self.bytes[SubscriptionKind::Pattern.index()]
    }

    /// How many of its subscribers a message in this channel reaches.
    pub(super) fn receivers(&self, kind: SubscriptionKind, channel: &[u8]) -> u64 {
        let mut receivers = self.count(kind, channel);
        if kind == SubscriptionKind::Channel {
            let patterns = &self.subscribers[SubscriptionKind::Pattern.index()];
            let matching = patterns.iter().filter(|(pattern, _)| glob_matches(pattern, channel));
            receivers += matching.map(|(_, count)| count).sum::<u64>();
        }
        receivers
    }

    /// How many of its subscribers subscribe to this name.
    pub(super) fn count(&self, kind: SubscriptionKind, name: &[u8]) -> u64 {
        self.subscribers[kind.index()].get(name).copied().unwrap_or(0)
    }

    /// The names of a kind that it has subscribers of.
    pub(super) fn names(&self, kind: SubscriptionKind) -> impl Iterator<Item = &Body> {
        self.subscribers[kind.index()].keys()
    }

    /// The peer is to be told what has become of a name.
    pub(super) fn mark_changed(&mut self, kind: SubscriptionKind, name: Body) {
        self.changed.insert((kind, name));
    }

    /// True if there is something to tell it.
    pub(super) fn has_news(&self) -> bool {
        self.needs_whole || !self.changed.is_empty()
    }

    /// True if it usually answers.
    pub(super) const fn answers(&self) -> bool {
        !self.is_silent
    }

    /// What has changed since it was told last.
    pub(super) fn take_changed(&mut self) -> BTreeSet<(SubscriptionKind, Body)> {
        std::mem::take(&mut self.changed)
    }

    /// The number of what it is told now.
    pub(super) fn next_number(&mut self, now: Instant) -> u64 {
        self.sent += 1;
        self.resend_at.get_or_insert(now.after(RESEND_AFTER));
        self.sent
    }

    /// It has answered what it was told up to this number.
    pub(super) fn on_known(&mut self, now: Instant, number: u64) {
        if number <= self.known || number > self.sent {
            return;
        }
        self.known = number;
        self.is_silent = false;
        self.resend_at = (self.known < self.sent).then(|| now.after(RESEND_AFTER));
    }

    /// When what it has not answered is taken to be lost.
    pub(super) fn deadline(&self) -> Instant {
        self.resend_at.unwrap_or(Instant::NEVER)
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.deadline() <= now {
            self.resend_at = Some(now.after(RESEND_AFTER));
            self.needs_whole = true;
            self.is_silent = true;
        }
    }
}
