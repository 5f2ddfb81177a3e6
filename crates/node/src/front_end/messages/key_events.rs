//! Messages that come from the execution of the log: events of keys in the channels of keyspace notifications, and the
//! messages of scripts.
//!
//! A node makes them of what its own replica executes, for its own clients, and for those of the gateways whose home it is.
//! So whichever process a client listens at, one node tells of an entry, once.

use super::{MessagePeer, Messages, Push, STEPS_MAX};
use syros_commands::access::{Announcement, KeyEvent, Notification, ScriptMessage};
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_resp::KeyspaceEvents;
use syros_types::SubscriptionKind;
use syros_wire::FrontEndMessage;

/// What the names of all channels of events of keys begin with.
const CHANNELS: &[u8] = b"__key";

/// The channel of an event, without the key or the event behind the colon.
const KEYSPACE: &[u8] = b"__keyspace@";
const KEYEVENT: &[u8] = b"__keyevent@";

/// True if somebody who subscribes to this name may get events of keys.
fn may_hear(kind: SubscriptionKind, name: &[u8]) -> bool {
    match kind {
        SubscriptionKind::Channel => name.starts_with(CHANNELS),
        SubscriptionKind::Pattern => {
            // As far as a pattern is a plain beginning, it has to agree.
            let plain = name.iter().take_while(|byte| !b"*?[\\".contains(byte)).count();
            let length = plain.min(CHANNELS.len());
            name[..length] == CHANNELS[..length] && (plain >= CHANNELS.len() || plain < name.len())
        }
        SubscriptionKind::Shard => false,
    }
}

/// The name of a channel of events.
fn channel(kind: &[u8], database: u8, subject: &[u8]) -> Vec<u8> {
    [kind, database.to_string().as_bytes(), b"__:", subject].concat()
}

/// The event that is told of in this channel with this payload, and whether it is a channel of a key.
fn event_in(channel: &[u8], payload: &[u8]) -> Option<(KeyEvent, bool)> {
    if channel.starts_with(KEYSPACE) {
        return Some((KeyEvent::from_name(payload)?, true));
    }
    // No event has a colon in its name.
    let name = channel.strip_prefix(KEYEVENT)?.split(|byte| *byte == b':').next_back()?;
    Some((KeyEvent::from_name(name)?, false))
}

impl Messages {
    /// Tells clients of these events only, from now on.
    pub(in crate::front_end) fn set_key_events(&mut self, key_events: KeyspaceEvents) {
        if self.key_events != key_events {
            self.key_events = key_events;
            self.wants_key_events = None;
        }
    }

    /// True if somebody listens to events of keys: a client of this process that is told of any, or one of a gateway.
    pub(in crate::front_end) fn wants_key_events(&mut self) -> bool {
        let wants = self.wants_key_events.unwrap_or_else(|| self.finds_listeners());
        self.wants_key_events = Some(wants);
        wants
    }

    fn finds_listeners(&self) -> bool {
        let kinds = [SubscriptionKind::Channel, SubscriptionKind::Pattern];
        let own = self.key_events.is_any()
            && kinds.iter().any(|kind| self.registry.names(*kind).any(|name| may_hear(*kind, name)));
        own || self.gateways().any(|(_, gateway)| {
            kinds.iter().any(|kind| gateway.names(*kind).any(|name| may_hear(*kind, name)))
        })
    }

    /// Tells of what the replica of this process has executed.
    pub(in crate::front_end) fn announce(&mut self, happened: &[Announcement], push: &mut Push<'_>) {
        for announcement in happened {
            match announcement {
                Announcement::KeyEvent(notification) => self.tell_key_event(notification, push),
                Announcement::Message(ScriptMessage { entry, kind, channel, payload }) => {
                    self.announce_one(
                        (FrontEndMessage::OF_SCRIPTS, *entry),
                        true,
                        (*kind, channel),
                        payload,
                        push,
                    );
                }
            }
        }
    }

    fn tell_key_event(&mut self, notification: &Notification, push: &mut Push<'_>) {
        let Notification { entry, database, key, event } = notification;
        let has_gateways = self.gateways().next().is_some();
        let (database, name) = (database.number(), event.name().as_bytes());
        let (own_keyspace, own_keyevent) =
            (self.key_events.has_keyspace(*event), self.key_events.has_keyevent(*event));
        for (is_own, kind, subject, payload) in
            [(own_keyspace, KEYSPACE, &**key, name), (own_keyevent, KEYEVENT, name, &**key)]
        {
            if is_own || has_gateways {
                let channel = channel(kind, database, subject);
                let to = (SubscriptionKind::Channel, &*channel);
                self.announce_one((FrontEndMessage::OF_KEYS, *entry), is_own, to, payload, push);
            }
        }
    }

    /// Tells subscribers among the clients of this process, if `is_own`, and gateways. A channel that is too long to be compared
    /// with all patterns reaches nobody: there is no client to whom that could be said.
    fn announce_one(
        &mut self,
        (origin, number): (u64, u64),
        is_own: bool,
        (kind, channel): (SubscriptionKind, &[u8]),
        payload: &[u8],
        push: &mut Push<'_>,
    ) {
        if self.steps(kind, channel) > STEPS_MAX {
            return;
        }
        if is_own {
            self.registry.deliver(kind, channel, payload, push);
        }
        let reached = self.gateways().filter(|(_, gateway)| gateway.receivers(kind, channel) > 0);
        let reached: Vec<MessagePeer> = reached.map(|(peer, _)| *peer).collect();
        for peer in reached {
            let (channel, payload) = (channel.into(), payload.into());
            let message = FrontEndMessage::Published { origin, number, kind, channel, payload };
            self.outbox.push_back((peer, message));
        }
    }

    /// True unless another node has told of the execution of this log entry, or this one has told of a later one.
    pub(super) fn is_announced_first(&mut self, from: MessagePeer, number: u64) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(PlantedBug::AnnouncedAgain) {
            return true;
        }
        let is_new = self
            .announced
            .is_none_or(|(teller, last)| number > last || (number == last && Some(from) == teller));
        if is_new {
            self.announced = Some((Some(from), number));
        }
        is_new
    }

    /// True if clients of this process are told of the event in this channel.
    pub(super) fn tells_key_event(&self, channel: &[u8], payload: &[u8]) -> bool {
        event_in(channel, payload).is_some_and(|(event, is_keyspace)| {
            if is_keyspace {
                self.key_events.has_keyspace(event)
            } else {
                self.key_events.has_keyevent(event)
            }
        })
    }

    fn gateways(&self) -> impl Iterator<Item = (&MessagePeer, &super::Peer)> {
        self.peers.iter().filter(|(peer, _)| matches!(peer, MessagePeer::Gateway(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_who_may_hear_events_of_keys() {
        for (name, expected) in [
            ("__key*__:*", true),
            ("*", true),
            ("__k?y*", true),
            ("_[_]keyspace", true),
            ("__keyspace@0__:k", true),
            ("__ke", false),
            ("news.*", false),
            ("_", false),
        ] {
            assert_eq!(may_hear(SubscriptionKind::Pattern, name.as_bytes()), expected, "{name}");
        }
        assert!(may_hear(SubscriptionKind::Channel, b"__keyevent@0__:set"));
        assert!(!may_hear(SubscriptionKind::Channel, b"news"));
        assert!(!may_hear(SubscriptionKind::Shard, b"__keyevent@0__:set"));
    }

    #[test]
    fn events_are_read_back_from_their_channels() {
        for event in KeyEvent::ALL {
            let name = event.name().as_bytes();
            assert_eq!(event_in(&channel(KEYSPACE, 3, b"a:b"), name), Some((*event, true)));
            assert_eq!(event_in(&channel(KEYEVENT, 15, name), b"a:b"), Some((*event, false)));
        }
        assert_eq!(event_in(b"news", b"set"), None);
        assert_eq!(event_in(b"__keyspace@0__:k", b"nothing"), None);
    }
}
