//! Messages between front ends: which subscriptions there are, and what is published. Since version 12 of the wire format.

use crate::error::Malformed;
use crate::parts::{body, boolean_tag};
use crate::primitive::{Reader, Writer};
use crate::tag::front_end as tag;
use crate::tag::subscription;
use syros_protocol::message::Body;
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX};
use syros_types::{Group, SubscriptionKind};

/// A message between two front ends: those of nodes that are connected, or of a gateway and a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEndMessage {
    /// Which subscribers the receiver reaches through the sender.
    Interest {
        /// Consecutive, from one message of this kind to the next of one sender to one receiver.
        number: u64,
        /// What the sender has said before is to be forgotten.
        is_whole: bool,
        /// What there is, or what has changed.
        entries: Vec<Interest>,
    },
    /// The receiver's `Interest` up to this number has come, and all that are reached through the sender know of it.
    InterestKnown {
        /// The number.
        number: u64,
    },
    /// Something has been published. It is sent only to those that reach subscribers of it.
    Published {
        /// The front end where it was published: a number that no other has; or [`Self::OF_KEYS`] or [`Self::OF_SCRIPTS`].
        origin: u64,
        /// Of two messages of one origin, the later one has the greater number.
        number: u64,
        /// Where it was published: a channel or a shard channel.
        kind: SubscriptionKind,
        /// The name of the channel, in bytes.
        channel: Body,
        /// The message.
        payload: Body,
    },
    /// The sender wants to know where the nodes are. Since version 19.
    WantNodes,
    /// Where the nodes are that the sender, a node, has been told of: as `host:port`, in the order of their positions; empty
    /// where it does not know. Since version 19.
    Nodes {
        /// The addresses.
        addresses: Vec<String>,
    },
}

impl FrontEndMessage {
    /// The origin of events of keys. Their numbers are those of the log entries whose execution has made them. No front end has
    /// this number, as good as certainly: they draw theirs from all of 64 bits.
    pub const OF_KEYS: u64 = 0;

    /// The origin of what scripts publish; the same holds for it.
    pub const OF_SCRIPTS: u64 = 1;
}

/// One name that somebody subscribes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interest {
    /// What the name is of.
    pub kind: SubscriptionKind,
    /// The name.
    pub name: Body,
    /// How many subscribe to it; 0 if nobody does any more.
    pub subscribers: u64,
}

/// The longest address of a node, in bytes: a host name has no more than 253, and a port 5 digits.
const ADDRESS_BYTES_MAX: usize = 260;

/// The least that an [`Interest`] takes, in bytes.
const INTEREST_BYTES_MIN: usize = 3;

const fn subscription_tag(kind: SubscriptionKind) -> u8 {
    match kind {
        SubscriptionKind::Channel => subscription::CHANNEL,
        SubscriptionKind::Pattern => subscription::PATTERN,
        SubscriptionKind::Shard => subscription::SHARD,
    }
}

const fn subscription_kind(reader: &mut Reader<'_>) -> Result<SubscriptionKind, Malformed> {
    match reader.byte() {
        Ok(subscription::CHANNEL) => Ok(SubscriptionKind::Channel),
        Ok(subscription::PATTERN) => Ok(SubscriptionKind::Pattern),
        Ok(subscription::SHARD) => Ok(SubscriptionKind::Shard),
        Ok(tag) => Err(Malformed::Tag { what: "subscription", tag }),
        Err(error) => Err(error),
    }
}

impl FrontEndMessage {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Interest { .. } => "Interest",
            Self::InterestKnown { .. } => "InterestKnown",
            Self::Published { .. } => "Published",
            Self::WantNodes => "WantNodes",
            Self::Nodes { .. } => "Nodes",
        }
    }

    /// Appends its encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let writer = Writer::new(out);
        match self {
            Self::Interest { number, is_whole, entries } => {
                let writer = writer.byte(tag::INTEREST).number(*number).byte(boolean_tag(*is_whole));
                writer.list(entries, 32, |writer, entry| {
                    let writer = writer.byte(subscription_tag(entry.kind)).number(entry.subscribers);
                    writer.number(entry.name.len() as u64).bytes(&entry.name)
                })
            }
            Self::InterestKnown { number } => writer.byte(tag::INTEREST_KNOWN).number(*number),
            Self::Published { origin, number, kind, channel, payload } => {
                let writer = writer.byte(tag::PUBLISHED).fixed(*origin).number(*number);
                let writer = writer.byte(subscription_tag(*kind)).number(channel.len() as u64);
                writer.bytes(channel).bytes(payload)
            }
            Self::WantNodes => writer.byte(tag::WANT_NODES),
            Self::Nodes { addresses } => {
                let writer = writer.byte(tag::NODES);
                writer.list(addresses, 24, |writer, address| {
                    writer.number(address.len() as u64).bytes(address.as_bytes())
                })
            }
        };
    }

    /// The message that `bytes` encode.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are anything but one whole message.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let message = match reader.byte()? {
            tag::INTEREST => Self::Interest {
                number: reader.number()?,
                is_whole: reader.boolean()?,
                entries: interests(&mut reader)?,
            },
            tag::INTEREST_KNOWN => Self::InterestKnown { number: reader.number()? },
            tag::PUBLISHED => Self::Published {
                origin: reader.fixed()?,
                number: reader.number()?,
                kind: subscription_kind(&mut reader)?,
                channel: body(reader.bytes("channel", BODY_BYTES_MAX)?),
                payload: body(reader.remainder("message", BODY_BYTES_MAX)?),
            },
            tag::WANT_NODES => Self::WantNodes,
            tag::NODES => Self::Nodes { addresses: addresses(&mut reader)? },
            tag => return Err(Malformed::Tag { what: "message of a front end", tag }),
        };
        reader.end()?;
        Ok(message)
    }
}

fn interests(reader: &mut Reader<'_>) -> Result<Vec<Interest>, Malformed> {
    let count = reader.count(INTEREST_BYTES_MIN)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = subscription_kind(reader)?;
        let subscribers = reader.number()?;
        entries.push(Interest { kind, subscribers, name: body(reader.bytes("name", KEY_BYTES_MAX)?) });
    }
    Ok(entries)
}

fn addresses(reader: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let count = reader.count(1)?;
    if count > Group::SIZE_MAX {
        let (what, value, limit) = ("addresses of nodes", count as u64, Group::SIZE_MAX as u64);
        return Err(Malformed::OutOfRange { what, value, limit });
    }
    let mut addresses = Vec::with_capacity(count);
    for _ in 0..count {
        let bytes = reader.bytes("address", ADDRESS_BYTES_MAX)?;
        addresses.push(String::from_utf8(bytes.to_vec()).map_err(|_| Malformed::Address)?);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(message: &FrontEndMessage) -> Vec<u8> {
        let mut out = Vec::new();
        message.encode(&mut out);
        out
    }

    fn interest(kind: SubscriptionKind, name: &[u8], subscribers: u64) -> Interest {
        Interest { kind, name: body(name), subscribers }
    }

    #[test]
    fn messages_have_golden_bytes_and_come_back() {
        let golden: [(FrontEndMessage, &[u8]); 6] = [
            (FrontEndMessage::WantNodes, &[4]),
            (
                FrontEndMessage::Nodes { addresses: vec!["a:1".to_owned(), String::new()] },
                &[5, 2, 3, b'a', b':', b'1', 0],
            ),
            (
                FrontEndMessage::Interest {
                    number: 300,
                    is_whole: true,
                    entries: vec![
                        interest(SubscriptionKind::Channel, b"ab", 2),
                        interest(SubscriptionKind::Pattern, b"*", 1),
                        interest(SubscriptionKind::Shard, b"", 0),
                    ],
                },
                &[1, 0xac, 2, 1, 3, 1, 2, 2, b'a', b'b', 2, 1, 1, b'*', 3, 0, 0],
            ),
            (FrontEndMessage::Interest { number: 1, is_whole: false, entries: Vec::new() }, &[1, 1, 0, 0]),
            (FrontEndMessage::InterestKnown { number: 7 }, &[2, 7]),
            (
                FrontEndMessage::Published {
                    origin: 0x0102_0304_0506_0708,
                    number: 9,
                    kind: SubscriptionKind::Shard,
                    channel: body(b"c"),
                    payload: body(b"hello"),
                },
                &[3, 8, 7, 6, 5, 4, 3, 2, 1, 9, 3, 1, b'c', b'h', b'e', b'l', b'l', b'o'],
            ),
        ];
        for (message, bytes) in golden {
            assert_eq!(encoded(&message), bytes);
            assert_eq!(FrontEndMessage::decode(bytes).as_ref(), Ok(&message));
            // The payload of a message is all that is left of it.
            let is_open = matches!(message, FrontEndMessage::Published { .. });
            for length in 0..bytes.len() {
                match FrontEndMessage::decode(&bytes[..length]) {
                    Ok(shorter) => assert!(is_open && encoded(&shorter) == bytes[..length]),
                    Err(error) => assert_eq!(error, Malformed::Truncated),
                }
            }
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let refused = |bytes: &[u8]| FrontEndMessage::decode(bytes).unwrap_err();
        assert_eq!(refused(&[9]), Malformed::Tag { what: "message of a front end", tag: 9 });
        assert_eq!(refused(&[1, 1, 0, 1, 4, 0, 0]), Malformed::Tag { what: "subscription", tag: 4 });
        assert_eq!(refused(&[2, 7, 0]), Malformed::Trailing { bytes: 1 });
        assert_eq!(refused(&[1, 1, 0, 0xff, 0xff, 3]), Malformed::Truncated, "a count that cannot be");
    }
}
