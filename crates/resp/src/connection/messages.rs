//! SUBSCRIBE, PUBLISH and their kin.
//!
//! The registry of subscriptions is the owner's. So a connection that comes to such a command waits until all of its
//! earlier commands are answered, asks the registry ([`Connection::poll_messages`](super::Connection::poll_messages)), and
//! looks at no further input before it has the answer: a client that sets a key and publishes in one pipeline publishes
//! when the key is set. Between MULTI and EXEC they are queued, and asked when the transaction is known to have been executed.

use super::CommandPipeline;
use crate::connection_commands::{Subcommand, subcommand, subcommand_error};
use crate::context::Context;
use crate::messages::{MessageAnswer, MessageRequest, PushedMessage, SubscriptionChange};
use crate::schedule::Written;
use crate::writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_nil, write_push, write_simple,
};
use std::collections::VecDeque;
use syros_commands::{ConnectionCommand, commands};
use syros_types::SubscriptionKind;
use syros_types::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Requests that the registry has not answered.
#[derive(Debug)]
pub(super) struct Inquiry {
    requests: Vec<MessageRequest>,
    source: Source,
    /// The owner has taken the requests.
    is_asked: bool,
}

/// What an inquiry is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// This command, of which the client gets no reply if it is silent.
    Command(ConnectionCommand),
    /// The first of the transactions.
    Transaction,
}

/// True for the commands that ask the registry.
pub(super) const fn asks_registry(command: ConnectionCommand) -> bool {
    use ConnectionCommand as C;
    matches!(command, C::Publish | C::SPublish | C::PubSub) || is_subscription(command)
}

/// True for the commands that begin or end subscriptions.
pub(super) const fn is_subscription(command: ConnectionCommand) -> bool {
    use ConnectionCommand as C;
    matches!(
        command,
        C::Subscribe | C::Unsubscribe | C::PSubscribe | C::PUnsubscribe | C::SSubscribe | C::SUnsubscribe
    )
}

const SUBCOMMANDS: [Subcommand; 5] = [
    Subcommand {
        name: "channels",
        arity: -2,
        help: &[
            "CHANNELS [<pattern>]",
            "    Return the currently active channels matching a <pattern> (default: '*').",
        ],
    },
    Subcommand {
        name: "numpat",
        arity: 2,
        help: &["NUMPAT", "    Return number of subscriptions to patterns."],
    },
    Subcommand {
        name: "numsub",
        arity: -2,
        help: &[
            "NUMSUB [<channel> ...]",
            "    Return the number of subscribers for the specified channels, excluding",
            "    pattern subscriptions(default: no channels).",
        ],
    },
    Subcommand {
        name: "shardchannels",
        arity: -2,
        help: &[
            "SHARDCHANNELS [<pattern>]",
            "    Return the currently active shard level channels matching a <pattern> (default: '*').",
        ],
    },
    Subcommand {
        name: "shardnumsub",
        arity: -2,
        help: &[
            "SHARDNUMSUB [<shardchannel> ...]",
            "    Return the number of subscribers for the specified shard level channel(s)",
        ],
    },
];

/// What a command with these words asks; or the reply, which has been written, for an error or for HELP.
pub(super) fn request_of(
    command: ConnectionCommand,
    words: &[&[u8]],
    out: &mut Vec<u8>,
) -> Option<MessageRequest> {
    use ConnectionCommand as C;
    use SubscriptionKind::{Channel, Pattern, Shard};
    if let Some(text) = beyond_limits(command, words) {
        write_error(out, text.as_bytes());
        return None;
    }
    let names = || words[1..].iter().map(|name| name.to_vec()).collect();
    let publish =
        |kind| MessageRequest::Publish { kind, channel: words[1].to_vec(), payload: words[2].to_vec() };
    Some(match command {
        C::Subscribe => MessageRequest::Subscribe { kind: Channel, names: names() },
        C::PSubscribe => MessageRequest::Subscribe { kind: Pattern, names: names() },
        C::SSubscribe => MessageRequest::Subscribe { kind: Shard, names: names() },
        C::Unsubscribe => MessageRequest::Unsubscribe { kind: Channel, names: names() },
        C::PUnsubscribe => MessageRequest::Unsubscribe { kind: Pattern, names: names() },
        C::SUnsubscribe => MessageRequest::Unsubscribe { kind: Shard, names: names() },
        C::Publish => publish(Channel),
        C::SPublish => publish(Shard),
        _ => {
            let names = || words[2..].iter().map(|name| name.to_vec()).collect();
            let kind_of = |name: &str| if name.starts_with("shard") { Shard } else { Channel };
            match subcommand("pubsub", &SUBCOMMANDS, words, out)? {
                "numpat" => MessageRequest::Patterns,
                name @ ("numsub" | "shardnumsub") => {
                    MessageRequest::Counts { kind: kind_of(name), names: names() }
                }
                name if words.len() <= 3 => MessageRequest::Names {
                    kind: kind_of(name),
                    pattern: words.get(2).map(|pattern| pattern.to_vec()),
                },
                _ => {
                    let mut text = b"ERR unknown subcommand or wrong number of arguments for '".to_vec();
                    text.extend_from_slice(words[1]);
                    text.extend_from_slice(b"'. Try PUBSUB HELP.");
                    write_error(out, &text);
                    return None;
                }
            }
        }
    })
}

/// Why names or a message are too long, if they are.
fn beyond_limits(command: ConnectionCommand, words: &[&[u8]]) -> Option<String> {
    use ConnectionCommand as C;
    let is_publish = matches!(command, C::Publish | C::SPublish);
    let names = if is_publish { &words[1..2] } else { &words[1..] };
    let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    if longest > KEY_BYTES_MAX {
        return Some(format!(
            "ERR name of a channel of {longest} bytes exceeds the maximum of {KEY_BYTES_MAX}"
        ));
    }
    let bytes = if is_publish { words[2].len() } else { 0 };
    (bytes > VALUE_BYTES_MAX)
        .then(|| format!("ERR message of {bytes} bytes exceeds the maximum of {VALUE_BYTES_MAX}"))
}

/// The word that tells the client what has happened.
const fn verb(request: &MessageRequest) -> &'static [u8] {
    use SubscriptionKind::{Channel, Pattern, Shard};
    match request {
        MessageRequest::Subscribe { kind: Channel, .. } => b"subscribe",
        MessageRequest::Subscribe { kind: Pattern, .. } => b"psubscribe",
        MessageRequest::Subscribe { kind: Shard, .. } => b"ssubscribe",
        MessageRequest::Unsubscribe { kind: Pattern, .. } => b"punsubscribe",
        MessageRequest::Unsubscribe { kind: Shard, .. } => b"sunsubscribe",
        _ => b"unsubscribe",
    }
}

fn write_changes(out: &mut Vec<u8>, protocol: Protocol, verb: &[u8], changes: &[SubscriptionChange]) {
    for change in changes {
        write_push(out, protocol, 3);
        write_bulk(out, verb);
        match &change.name {
            Some(name) => write_bulk(out, name),
            None => write_nil(out, protocol),
        }
        write_integer(out, change.left as i64);
    }
}

fn write_answer(out: &mut Vec<u8>, protocol: Protocol, request: &MessageRequest, answer: &MessageAnswer) {
    match answer {
        MessageAnswer::Subscriptions { changes, .. } => write_changes(out, protocol, verb(request), changes),
        MessageAnswer::Refused(text) => write_error(out, text.as_bytes()),
        MessageAnswer::Count(count) => write_integer(out, count.cast_signed()),
        MessageAnswer::Names(names) => {
            write_array(out, names.len());
            names.iter().for_each(|name| write_bulk(out, name));
        }
        MessageAnswer::Counts(counts) => {
            write_array(out, 2 * counts.len());
            for (name, count) in counts {
                write_bulk(out, name);
                write_integer(out, count.cast_signed());
            }
        }
    }
}

impl CommandPipeline {
    /// Refuses a command that a subscriber may not send in RESP2, where a reply cannot be told from a message. True if it
    /// has.
    pub(super) fn refuse_to_subscriber(
        &mut self,
        number: Option<usize>,
        command: Option<ConnectionCommand>,
        words: &[&[u8]],
    ) -> bool {
        use ConnectionCommand as C;
        if self.session.protocol != Protocol::Resp2 || !self.session.is_subscriber() {
            return false;
        }
        let is_allowed = command.is_some_and(|command| {
            is_subscription(command) || matches!(command, C::Ping | C::Quit | C::Reset)
        });
        let spec = number.and_then(|number| commands().get(number));
        let Some(spec) = spec.filter(|spec| !is_allowed && spec.accepts(words.len())) else {
            return false;
        };
        if subcommand_error(spec, words).is_some() {
            return false;
        }
        let is_it = |name: &str| {
            let second = name.split_once('|').map(|(_, second)| second.as_bytes());
            second.is_some_and(|second| words.get(1).is_some_and(|word| word.eq_ignore_ascii_case(second)))
        };
        let subcommand = spec.subcommands.iter().find(|subcommand| is_it(subcommand.name));
        let name = subcommand.map_or(spec.name, |subcommand| subcommand.name);
        self.refuse(number, Self::text_for_subscriber(name).as_bytes());
        true
    }

    /// READ is for commands that a subscriber may not send in RESP2. True if it has been refused.
    pub(super) fn refuses_read(&mut self) -> bool {
        let is_refused = self.session.protocol == Protocol::Resp2 && self.session.is_subscriber();
        if is_refused {
            self.refuse(None, Self::text_for_subscriber("read").as_bytes());
        }
        is_refused
    }

    fn text_for_subscriber(name: &str) -> String {
        format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
             this context"
        )
    }

    /// A command that asks the registry.
    pub(super) fn ask_registry(
        &mut self,
        (number, command): (Option<usize>, ConnectionCommand),
        words: &[&[u8]],
        context: &Context<'_>,
    ) {
        if let Some(unavailable) = context.unavailable.filter(|reason| reason.forbids(command)) {
            return self.reply(|_, out| write_error(out, unavailable.text().as_bytes()));
        }
        self.session.statistics.on_call(number.unwrap_or_default());
        let mut reply = Vec::new();
        match request_of(command, words, &mut reply) {
            Some(request) => {
                let source = Source::Command(command);
                self.inquiries.push_back(Inquiry { requests: vec![request], source, is_asked: false });
            }
            None => self.reply(|_, out| out.extend_from_slice(&reply)),
        }
    }

    /// RESET: if the client has subscriptions, they end before it is answered. True if it waits for that.
    pub(super) fn resets_subscriptions(&mut self) -> bool {
        if !self.session.is_subscriber() {
            return false;
        }
        let requests = vec![MessageRequest::UnsubscribeAll];
        let source = Source::Command(ConnectionCommand::Reset);
        self.inquiries.push_back(Inquiry { requests, source, is_asked: false });
        true
    }

    /// The first of the transactions has been executed, and now asks this: before a command that came after it, which waits for its
    /// turn.
    pub(super) fn ask_for_transaction(&mut self, requests: Vec<MessageRequest>) {
        self.inquiries.push_front(Inquiry { requests, source: Source::Transaction, is_asked: false });
    }

    /// True if a transaction has asked, and is not answered.
    pub(super) fn has_transaction_asked(&self) -> bool {
        self.inquiries.front().is_some_and(|inquiry| inquiry.source == Source::Transaction)
    }

    /// See [`Connection::poll_messages`](super::Connection::poll_messages).
    pub(super) fn poll_messages(&mut self) -> Option<Vec<MessageRequest>> {
        let inquiry = self.inquiries.front_mut()?;
        let is_its_turn = inquiry.source == Source::Transaction || self.slots.is_empty();
        if inquiry.is_asked || !is_its_turn || self.closing {
            return None;
        }
        inquiry.is_asked = true;
        Some(inquiry.requests.clone())
    }

    /// See [`Connection::answer_messages`](super::Connection::answer_messages).
    pub(super) fn answer_messages(&mut self, answers: &[MessageAnswer]) {
        let Some(Inquiry { requests, source, .. }) = self.inquiries.pop_front() else { return };
        if self.closing {
            return;
        }
        for answer in answers {
            if let MessageAnswer::Subscriptions { held, .. } = answer {
                self.session.subscriptions = *held;
            }
        }
        let protocol = self.session.protocol;
        let pairs = requests.iter().zip(answers);
        match source {
            Source::Transaction => {
                let written = pairs.map(|(request, answer)| {
                    let mut out = Vec::new();
                    write_answer(&mut out, protocol, request, answer);
                    out
                });
                let written: VecDeque<Vec<u8>> = written.collect();
                self.take_registry_answers(written);
                self.answer();
            }
            Source::Command(ConnectionCommand::Reset) => {
                self.reply(|session, out| {
                    session.reset();
                    write_simple(out, b"RESET");
                });
            }
            Source::Command(_) => {
                for (request, answer) in pairs {
                    let write = |out: &mut Vec<u8>| write_answer(out, protocol, request, answer);
                    if matches!(answer, MessageAnswer::Subscriptions { .. }) {
                        // They are messages, which CLIENT REPLY does not concern.
                        write(self.output.tail());
                    } else {
                        self.reply(|_, out| write(out));
                    }
                }
            }
        }
    }

    /// Writes a message for a subscriber: between replies, never inside one. Bytes that the client has not taken.
    pub(super) fn push(&mut self, message: &PushedMessage<'_>) -> usize {
        let PushedMessage { kind, pattern, channel, payload } = *message;
        if self.closing {
            return 0;
        }
        let protocol = self.session.protocol;
        let out = if self.is_partial { self.pushes.tail() } else { self.output.tail() };
        write_push(out, protocol, if pattern.is_some() { 4 } else { 3 });
        let verb: &[u8] = match (pattern, kind) {
            (Some(_), _) => b"pmessage",
            (None, SubscriptionKind::Shard) => b"smessage",
            (None, _) => b"message",
        };
        write_bulk(out, verb);
        if let Some(pattern) = pattern {
            write_bulk(out, pattern);
        }
        write_bulk(out, channel);
        write_bulk(out, payload);
        self.output.len() + self.pushes.len()
    }

    /// Writes the messages that came while a reply was being written, which has ended.
    pub(super) fn release_pushes(&mut self) {
        if !self.is_partial && self.pushes.len() > 0 {
            self.output.tail().extend_from_slice(self.pushes.as_slice());
            self.pushes.take(self.pushes.len());
        }
    }

    /// Writes the next of the registry's answers to the first transaction.
    pub(super) fn answer_from_registry(&mut self) -> Written {
        let Some(answer) = self.next_registry_answer() else { return Written::Whole };
        self.output.tail().extend_from_slice(&answer);
        Written::Whole
    }
}
