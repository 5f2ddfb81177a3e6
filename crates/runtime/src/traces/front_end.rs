//! The root of a trace: an operation at the front end where its client is connected.
//!
//! A Redis client cannot name a span of its own as the parent: its protocol has no place for that. So the root is here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;

use syros_commands::{ReplyRef, operations};
use syros_metrics::TraceActivity;
use syros_node::front_end::{Origin, RedisFrontEnd};
use syros_protocol::client::{Outcome, Token, Way};
use syros_protocol::message::Message;
use syros_traces::{Span, SpanKind, Stage, TraceId, Value, span_of};
use syros_types::{Instant, Now, OperationId};

use super::{FOLLOWED_MAX, Tracing};

/// Replies that are longer than this, in bytes, are not searched for errors. An update that fails says so in a few words.
const SEARCHED_BYTES_MAX: usize = 4096;

/// Operations of this front end that are traced.
#[derive(Debug)]
pub(crate) struct FrontEndTraces {
    tracing: Tracing,
    /// A random number, by which the reads of this process differ from all others.
    process: u64,
    /// Where Redis clients find it.
    server: Option<SocketAddr>,
    /// Those that have not ended, by their token. [`FOLLOWED_MAX`] is their limit.
    followed: HashMap<Token, Followed>,
}

/// An operation that has not ended.
#[derive(Debug)]
struct Followed {
    trace: TraceId,
    origin: Origin,
    /// Of an update.
    id: Option<OperationId>,
    description: Description,
}

/// What an operation is, as far as that may be told: neither keys nor values.
#[derive(Debug, Default, PartialEq, Eq)]
struct Description {
    /// The command; of several commands that differ, none.
    command: Option<&'static str>,
    /// How many commands.
    count: u64,
    /// The database of the first of them.
    database: u8,
}

impl Description {
    fn of(body: &[u8]) -> Self {
        let mut description = Self::default();
        for operation in operations(body).flatten() {
            let name = operation.name();
            if description.count == 0 {
                (description.command, description.database) = (Some(name), operation.database.number());
            } else if description.command != Some(name) {
                description.command = None;
            }
            description.count += 1;
        }
        description
    }

    /// As OpenTelemetry names an operation or a batch of them.
    fn name(&self) -> String {
        let command = self.command.unwrap_or_default().to_ascii_uppercase();
        match self.count {
            0 => "operation".to_owned(),
            1 => command,
            _ if command.is_empty() => "BATCH".to_owned(),
            _ => format!("BATCH {command}"),
        }
    }
}

impl FrontEndTraces {
    pub(crate) fn new(tracing: Tracing, process: u64, server: Option<SocketAddr>) -> Self {
        // An address that stands for all of the machine's says nothing.
        let server = server.filter(|address| !address.ip().is_unspecified());
        Self { tracing, process, server, followed: HashMap::new() }
    }

    /// What has become of the spans of this process.
    pub(crate) fn activity(&self) -> TraceActivity {
        let counts = self.tracing.sink().counts();
        let dropped = vec![
            ("queue", counts.dropped_by_queue),
            ("operations", counts.dropped_by_process),
            ("collector", counts.dropped_by_collector),
        ];
        TraceActivity { exported: counts.exported, dropped, failures: counts.failures }
    }

    /// The front end sends a message.
    pub(crate) fn on_sent(&mut self, message: &Message, front_end: &RedisFrontEnd) {
        let client = front_end.client();
        let (trace, token, id, body) = match message {
            Message::Request { request, .. } => {
                let Some(trace) = self.tracing.of_update(request.id) else { return };
                (trace, client.token_of_update(request.id), Some(request.id), &request.body)
            }
            Message::Read { number, body, .. } => {
                let Some(trace) = self.tracing.of_read(self.process, *number) else { return };
                (trace, client.token_of_read(*number), None, body)
            }
            _ => return,
        };
        let Some(token) = token.filter(|token| !self.followed.contains_key(token)) else { return };
        let Some(origin) = front_end.origin(token) else { return };
        if self.followed.len() >= FOLLOWED_MAX {
            // A read that nobody waits for any more ends without a word.
            self.followed.retain(|token, _| front_end.origin(*token).is_some());
        }
        if self.followed.len() >= FOLLOWED_MAX {
            return self.tracing.sink().note_untraced();
        }
        let description = Description::of(body);
        self.followed.insert(token, Followed { trace, origin, id, description });
    }

    /// An operation has ended.
    pub(crate) fn on_completed(
        &mut self,
        now: impl FnOnce() -> Now,
        token: Token,
        way: Option<Way>,
        outcome: Option<&Outcome>,
    ) {
        if self.followed.is_empty() {
            return;
        }
        let (Some(followed), Some(outcome)) = (self.followed.remove(&token), outcome) else { return };
        let now = now();
        self.tracing.look_at_clock(now);
        let span = self.span(followed, now.instant, way, outcome);
        self.tracing.sink().send(span);
    }

    fn span(&self, followed: Followed, end: Instant, way: Option<Way>, outcome: &Outcome) -> Span {
        let Followed { trace, origin, id, description } = followed;
        let name = description.name();
        let mut attributes: Vec<(&'static str, Value)> = vec![
            ("db.system.name", "syros".into()),
            ("db.operation.name", name.clone().into()),
            ("db.namespace", description.database.to_string().into()),
        ];
        if description.count > 1 {
            attributes.push(("db.operation.batch.size", description.count.into()));
        }
        if let Some(server) = self.server {
            attributes.push(("server.address", server.ip().to_string().into()));
            attributes.push(("server.port", u64::from(server.port()).into()));
        }
        attributes.extend(id.map(|id| ("syros.operation", id.to_string().into())));
        attributes.extend(way.map(|way| ("syros.way", way.name().into())));
        if origin.is_internal {
            attributes.push(("syros.internal", Value::Flag(true)));
        }
        let error = match outcome {
            Outcome::Done => None,
            Outcome::Reply(reply) => error_code(reply).inspect(|code| {
                attributes.push(("db.response.status_code", code.clone().into_owned().into()));
            }),
            Outcome::Refused(refusal) => Some(refusal.name().into()),
            Outcome::Unknown => Some("unknown".into()),
            Outcome::TimedOut => Some("timed-out".into()),
            Outcome::NoQuorum => Some("no-quorum".into()),
        };
        attributes.extend(error.clone().map(|error| ("error.type", error.into_owned().into())));
        Span {
            trace,
            id: span_of(trace, 0, Stage::FrontEnd, 0),
            parent: None,
            name: name.into(),
            kind: SpanKind::Server,
            start: self.tracing.unix(origin.since),
            end: self.tracing.unix(end.max(origin.since)),
            attributes,
            error,
        }
    }
}

/// Codes of errors that are ours or Redis's. A script may make an error of anything, also of what it has read.
const CODES: [&str; 26] = [
    "BUSYGROUP",
    "BUSYKEY",
    "DENIED",
    "ERR",
    "EXECABORT",
    "INPROG",
    "LOADING",
    "MISCONF",
    "NOAUTH",
    "NOGROUP",
    "NOPERM",
    "NOPROTO",
    "NOQUORUM",
    "NOREPLICAS",
    "NOSCRIPT",
    "NOTBUSY",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
    "UNKILLABLE",
    "UNKNOWN",
    "WRONGPASS",
    "WRONGTYPE",
    "BADCONF",
    "NOMASTERLINK",
];

/// The code of the first error among replies: its first word, if that is one of [`CODES`].
fn error_code(mut replies: &[u8]) -> Option<Cow<'static, str>> {
    if replies.len() > SEARCHED_BYTES_MAX {
        return None;
    }
    while !replies.is_empty() {
        if let ReplyRef::Error(text) = ReplyRef::decode(&mut replies).ok()? {
            let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
            let known = CODES.iter().find(|known| known.as_bytes() == code);
            return Some((*known.unwrap_or(&"other")).into());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::{Parsed, parse, put_error, put_ok};

    fn body(commands: &[&[&str]]) -> Vec<u8> {
        let mut body = Vec::new();
        for words in commands {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            match parse(&words) {
                Ok(Parsed::Data(operation)) => operation.encode(&mut body),
                other => panic!("{other:?}"),
            }
        }
        body
    }

    #[test]
    fn an_operation_is_named_by_its_commands_and_by_neither_keys_nor_values() {
        for (commands, name, count) in [
            (&[&["SET", "key", "value"][..]][..], "SET", 1),
            (&[&["SETEX", "key", "7", "value"]], "SET", 1),
            (&[&["INCR", "key"]], "INCRBY", 1),
            (&[&["GET", "key"]], "GET", 1),
            (&[&["GET", "key"], &["GET", "other"]], "BATCH GET", 2),
            (&[&["GET", "key"], &["SET", "key", "value"], &["GET", "key"]], "BATCH", 3),
            (&[], "operation", 0),
        ] {
            let description = Description::of(&body(commands));
            assert_eq!((description.name().as_str(), description.count), (name, count), "{commands:?}");
        }
        assert_eq!(
            Description::of(b"\xff\xff\xff").name(),
            "operation",
            "of a state machine of somebody's own"
        );
    }

    #[test]
    fn an_error_is_told_by_its_code_alone() {
        let code = |texts: &[&str]| {
            let mut replies = Vec::new();
            put_ok(&mut replies);
            texts.iter().for_each(|text| put_error(&mut replies, text.as_bytes()));
            put_ok(&mut replies);
            error_code(&replies).map(Cow::into_owned)
        };
        assert_eq!(code(&[]), None);
        assert_eq!(code(&["WRONGTYPE Operation against a key", "ERR no"]).as_deref(), Some("WRONGTYPE"));
        // What scripts answer may be anything.
        for text in ["secret value", "PASSWORDOFAUSER x", "", "SECRET-7 x", "ABCDEFGHIJKLMNOPQRSTUVWXYZ x"] {
            assert_eq!(code(&[text]).as_deref(), Some("other"), "{text}");
        }
        assert_eq!(error_code(b"\xff"), None);
    }
}
