//! What Redis clients have published and heard, and whether they may have: nothing twice, nothing out of order, nothing that
//! they had not subscribed to; and when nothing breaks, everything.

use crate::clock::VirtualTime;
use crate::resp_client::Received;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A connection: the place of its process, the process's life, and its address there.
pub(crate) type ConnectionName = (usize, u64, u64);

/// A channel, by its number.
pub(crate) type Channel = u8;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// That it subscribes.
    Subscribed(Channel),
    /// That it does not subscribe any more.
    Unsubscribed(Channel),
    /// How many get the message of this number.
    Published(usize),
}

/// Who has published a message: a connection, and whether a script of it did. Each node tells of scripts when it executes
/// them, so their messages and those of commands are in no order.
pub(crate) type Publisher = (ConnectionName, bool);

/// A message.
#[derive(Clone, Copy, Debug)]
struct Publication {
    publisher: Publisher,
    channel: Channel,
    /// It was sent when nothing broke any more.
    is_quiet: bool,
    /// Its publisher has been told how many get it.
    is_answered: bool,
    /// Its publisher has been told that it was refused: nobody is to hear it.
    is_refused: bool,
    /// Somebody has heard it.
    is_heard: bool,
    /// Somebody has heard it behind a later one of its publisher.
    is_late: bool,
    at: VirtualTime,
}

impl Publication {
    /// Whether it may have been heard as it was. A script of which nobody knows what has become may be executed at any time, and
    /// its client may be told so after others have heard it.
    fn judge(&self, number: usize) -> Result<(), String> {
        let Self { publisher, channel, .. } = self;
        if self.is_refused && self.is_heard {
            return Err(format!(
                "message {number} of {publisher:?} in channel {channel} was refused, and heard"
            ));
        }
        let is_in_doubt = publisher.1 && !self.is_answered;
        if self.is_late && !is_in_doubt {
            return Err(format!(
                "message {number} of {publisher:?} in channel {channel} was heard after a later one"
            ));
        }
        Ok(())
    }
}

/// What is known of one connection.
#[derive(Debug, Default)]
struct Listener {
    awaited: VecDeque<Awaited>,
    /// The channels that it subscribes to: since when it has known, and whether it has asked to end that.
    subscriptions: BTreeMap<Channel, (VirtualTime, bool)>,
    heard: BTreeSet<usize>,
    /// The last message of each publisher in each channel.
    last: BTreeMap<(Publisher, Channel), usize>,
}

/// Everything that is published and heard.
#[derive(Debug, Default)]
pub(crate) struct MessageLedger {
    published: Vec<Publication>,
    listeners: BTreeMap<ConnectionName, Listener>,
    /// Nothing breaks any more.
    pub(crate) is_quiet: bool,
    /// Messages that have been delivered.
    pub(crate) delivered: u64,
}

/// The name of a channel.
pub(crate) fn channel_name(channel: Channel) -> Vec<u8> {
    format!("channel {channel}").into_bytes()
}

impl MessageLedger {
    /// A connection asks to subscribe.
    pub(crate) fn subscribe(&mut self, who: ConnectionName, channel: Channel) {
        self.listeners.entry(who).or_default().awaited.push_back(Awaited::Subscribed(channel));
    }

    /// A connection asks to end a subscription.
    pub(crate) fn unsubscribe(&mut self, who: ConnectionName, channel: Channel) {
        let listener = self.listeners.entry(who).or_default();
        listener.awaited.push_back(Awaited::Unsubscribed(channel));
        if let Some((_, is_ending)) = listener.subscriptions.get_mut(&channel) {
            *is_ending = true;
        }
    }

    /// A connection publishes; the message.
    pub(crate) fn publish(&mut self, publisher: Publisher, channel: Channel, at: VirtualTime) -> Vec<u8> {
        let number = self.published.len();
        self.published.push(Publication {
            publisher,
            channel,
            is_quiet: self.is_quiet,
            is_answered: false,
            is_refused: false,
            is_heard: false,
            is_late: false,
            at,
        });
        self.listeners.entry(publisher.0).or_default().awaited.push_back(Awaited::Published(number));
        number.to_string().into_bytes()
    }

    /// A connection is gone.
    pub(crate) fn gone(&mut self, who: ConnectionName) {
        self.listeners.remove(&who);
    }

    /// All connections of a process are gone.
    pub(crate) fn process_gone(&mut self, slot: usize) {
        self.listeners.retain(|(at, _, _), _| *at != slot);
    }

    /// A connection hears something.
    ///
    /// # Errors
    /// Why it must not have been told that.
    pub(crate) fn hear(
        &mut self,
        who: ConnectionName,
        what: &Received,
        now: VirtualTime,
    ) -> Result<(), String> {
        let Some(listener) = self.listeners.get_mut(&who) else { return Ok(()) };
        let wrong = |what: &Received| format!("a client of {who:?} is told {what:?}");
        if let Received::Array(parts) = what {
            let [Received::Bulk(verb), Received::Bulk(name), last] = &parts[..] else {
                return Err(wrong(what));
            };
            let digit = name.last().filter(|digit| digit.is_ascii_digit());
            let channel = digit.map(|digit| digit - b'0').ok_or_else(|| wrong(what))?;
            if verb == b"message" {
                let Received::Bulk(text) = last else { return Err(wrong(what)) };
                return self.hear_message(who, channel, text);
            }
            let expected = match &verb[..] {
                b"subscribe" => Awaited::Subscribed(channel),
                _ => Awaited::Unsubscribed(channel),
            };
            if listener.awaited.pop_front() != Some(expected) {
                return Err(wrong(what));
            }
            if expected == Awaited::Subscribed(channel) {
                let is_ending = listener.awaited.contains(&Awaited::Unsubscribed(channel));
                listener.subscriptions.entry(channel).or_insert((now, is_ending));
            } else {
                listener.subscriptions.remove(&channel);
            }
            return Ok(());
        }
        match (listener.awaited.pop_front(), what) {
            (Some(Awaited::Published(number)), Received::Integer(_)) => {
                self.published[number].is_answered = true;
                self.published[number].judge(number)
            }
            (Some(Awaited::Published(number)), Received::Error(text)) => {
                let publication = &mut self.published[number];
                // A process that is about to end, or has no room, may refuse.
                publication.is_refused = !text.starts_with(b"UNKNOWN");
                publication.judge(number)
            }
            // The same of what is no message.
            (Some(_), Received::Error(_)) => Ok(()),
            _ => Err(wrong(what)),
        }
    }

    fn hear_message(&mut self, who: ConnectionName, channel: Channel, text: &[u8]) -> Result<(), String> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<usize>().ok());
        let published = number.and_then(|number| Some((number, *self.published.get(number)?)));
        let Some((number, publication)) = published.filter(|(_, it)| it.channel == channel) else {
            return Err(format!(
                "{who:?} hears {} in channel {channel}, which nobody said",
                text.escape_ascii()
            ));
        };
        let Some(listener) = self.listeners.get_mut(&who) else { return Ok(()) };
        if !listener.subscriptions.contains_key(&channel) {
            return Err(format!(
                "{who:?} hears message {number} of channel {channel}, and does not subscribe to it"
            ));
        }
        if !listener.heard.insert(number) {
            return Err(format!("{who:?} hears message {number} of channel {channel} twice"));
        }
        let last = listener.last.entry((publication.publisher, channel)).or_insert(number);
        let is_late = *last > number;
        *last = number.max(*last);
        self.delivered += 1;
        let publication = &mut self.published[number];
        publication.is_heard = true;
        publication.is_late |= is_late;
        publication.judge(number)
    }

    /// Whether all messages that were published when nothing broke have been heard by all that had subscribed. Those of scripts
    /// are not owed if a node has taken over a snapshot meanwhile, which stands for entries that it does not execute.
    ///
    /// # Errors
    /// Which has not been heard.
    pub(crate) fn judge(&self, owes_scripts: bool) -> Result<(), String> {
        for (number, publication) in self
            .published
            .iter()
            .enumerate()
            .filter(|(_, it)| it.is_quiet && it.is_answered && (owes_scripts || !it.publisher.1))
        {
            for (who, listener) in &self.listeners {
                let since = listener.subscriptions.get(&publication.channel);
                let is_owed = since.is_some_and(|(since, is_ending)| *since < publication.at && !is_ending);
                if is_owed && !listener.heard.contains(&number) {
                    return Err(format!(
                        "{who:?} never hears message {number} of channel {} by {:?}, though nothing broke",
                        publication.channel, publication.publisher
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ConnectionName = (0, 1, 7);
    const THERE: ConnectionName = (1, 1, 8);

    fn told(verb: &str, last: Received) -> Received {
        let verb = Received::Bulk(verb.as_bytes().to_vec());
        Received::Array(vec![verb, Received::Bulk(channel_name(1)), last])
    }

    fn message(number: usize) -> Received {
        told("message", Received::Bulk(number.to_string().into_bytes()))
    }

    /// A client that subscribes, and two messages that nobody has heard.
    fn ledger() -> MessageLedger {
        let mut ledger = MessageLedger { is_quiet: true, ..MessageLedger::default() };
        ledger.subscribe(HERE, 1);
        assert_eq!(ledger.hear(HERE, &told("subscribe", Received::Integer(1)), 10), Ok(()));
        for number in 0..2 {
            assert_eq!(ledger.publish((THERE, false), 1, 20), number.to_string().into_bytes());
            assert_eq!(ledger.hear(THERE, &Received::Integer(1), 21), Ok(()));
        }
        ledger
    }

    #[test]
    fn what_is_heard_once_in_order_is_right() {
        let mut ledger = ledger();
        assert_eq!(ledger.hear(HERE, &message(0), 30), Ok(()));
        assert!(ledger.judge(true).is_err(), "one is missing");
        assert_eq!(ledger.hear(HERE, &message(1), 30), Ok(()));
        assert_eq!(ledger.judge(true), Ok(()));
    }

    #[test]
    fn what_nobody_may_hear_is_found() {
        assert!(ledger().hear(HERE, &message(2), 30).is_err(), "nobody said it");
        assert!(ledger().hear(THERE, &message(0), 30).is_err(), "it has not subscribed");
        let mut twice = ledger();
        assert_eq!(twice.hear(HERE, &message(0), 30), Ok(()));
        assert!(twice.hear(HERE, &message(0), 30).is_err());
        let mut disordered = ledger();
        assert_eq!(disordered.hear(HERE, &message(1), 30), Ok(()));
        assert!(disordered.hear(HERE, &message(0), 30).is_err());
        let mut ended = ledger();
        ended.unsubscribe(HERE, 1);
        assert_eq!(ended.hear(HERE, &message(0), 30), Ok(()), "it has not been told yet");
        assert_eq!(ended.hear(HERE, &told("unsubscribe", Received::Integer(0)), 31), Ok(()));
        assert!(ended.hear(HERE, &message(1), 32).is_err());
        assert_eq!(ended.judge(true), Ok(()));
    }

    #[test]
    fn a_script_in_doubt_may_come_late_and_a_refused_one_never() {
        for (answer, may_come) in [
            (Received::Error(b"UNKNOWN the update may or may not".to_vec()), true),
            (Received::Error(b"OOM command not allowed".to_vec()), false),
            (Received::Integer(1), false),
        ] {
            for is_answered_first in [true, false] {
                let mut ledger = MessageLedger::default();
                ledger.subscribe(HERE, 1);
                assert_eq!(ledger.hear(HERE, &told("subscribe", Received::Integer(1)), 10), Ok(()));
                (0..2).for_each(|_| _ = ledger.publish((THERE, true), 1, 20));
                assert_eq!(ledger.hear(HERE, &message(1), 30), Ok(()));
                let mut steps = [(THERE, answer.clone()), (HERE, message(0))];
                if !is_answered_first {
                    steps.reverse();
                }
                let [first, second] = steps.map(|(who, what)| ledger.hear(who, &what, 31));
                assert_eq!(first, Ok(()));
                assert_eq!(second.is_ok(), may_come, "{answer:?}, {is_answered_first}: {second:?}");
            }
        }
    }
}
