//! What a connection asks its process, and what it tells of itself to others.

use super::{CommandPipeline, Connection};
use crate::connection_commands;
use crate::context::{Context, Unavailable};
use crate::requests::{ClientFilter, ClientKind, ProcessAnswer, ProcessRequest};
use crate::shared::{PauseMode, SlowCommand, put_words, words_of};
use crate::writer::{write_array, write_error, write_integer, write_simple, write_verbatim};
use core::sync::atomic::Ordering;
use std::time::Duration;
use syros_commands::{ConnectionCommand, Parsed, commands, operations, parse};
use syros_types::WallTime;

/// A request that has not been answered.
#[derive(Debug)]
pub(super) struct PendingRequest {
    /// What is asked; `None` once the driver has taken it.
    request: Option<ProcessRequest>,
    /// The command, as the slow log keeps it, and its number in the table.
    words: Vec<u8>,
    number: usize,
    /// The answer takes time: the client is blocked.
    is_blocking: bool,
}

/// When so many bytes of words of commands are kept for the slow log, only the names of further ones are.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// A monitor whose client does not take what it is shown is cut off when so many bytes wait for it.
const MONITOR_BYTES_MAX: usize = 32 << 20;

impl Connection {
    /// What the process is to do for this connection, once. The driver calls it after `receive` and `complete`, and gives
    /// the answer with [`answer_request`](Self::answer_request).
    pub fn take_request(&mut self) -> Option<ProcessRequest> {
        let pipeline = &mut self.pipeline;
        let pending = pipeline.requested.as_mut()?;
        let comes_last = matches!(pending.request, Some(ProcessRequest::Wait(_) | ProcessRequest::Track(_)));
        if comes_last && !pipeline.slots.is_empty() {
            return None;
        }
        let mut request = pending.request.take()?;
        if let ProcessRequest::Wait(wait) = &mut request {
            wait.is_all_known = !pipeline.has_unknown_update;
        }
        Some(request)
    }

    /// Answers the request, which took so long; nothing happens if there is none.
    pub fn answer_request(&mut self, answer: &ProcessAnswer, took: Duration, now: WallTime) {
        let Some(PendingRequest { words, number, .. }) = self.pipeline.requested.take() else { return };
        self.pipeline.reply(|session, out| match answer {
            ProcessAnswer::Ok => write_simple(out, b"OK"),
            ProcessAnswer::Integer(number) => write_integer(out, number.cast_signed()),
            ProcessAnswer::Pair(first, second) => {
                write_array(out, 2);
                write_integer(out, first.cast_signed());
                write_integer(out, second.cast_signed());
            }
            ProcessAnswer::Text(text) => write_verbatim(out, session.protocol, text),
            ProcessAnswer::Error(text) => write_error(out, text.as_bytes()),
        });
        self.pipeline.now = now;
        self.pipeline.on_local_time(number, &words, took);
    }

    /// True if a command waits because clients are paused. The driver calls [`resume`](Self::resume) when they are not any
    /// more.
    #[must_use]
    pub const fn is_postponed(&self) -> bool {
        self.pipeline.is_postponed
    }

    /// Clients are not paused any more, or other commands wait now.
    pub const fn resume(&mut self) {
        self.pipeline.is_postponed = false;
    }

    /// The connection takes no further commands, and ends when its client has got the replies to those it has sent.
    pub const fn close_after_replies(&mut self) {
        self.pipeline.closing = true;
    }

    /// The connection ends at once: its client gets nothing more.
    pub fn cut_off(&mut self) {
        self.pipeline.cut_off();
    }

    /// True if the client is to see the commands of all clients: it has sent MONITOR, and not RESET.
    #[must_use]
    pub const fn is_monitor(&self) -> bool {
        self.pipeline.session.is_monitor
    }

    /// Shows a monitor commands that have come.
    pub fn show(&mut self, commands: &[u8]) {
        let pipeline = &mut self.pipeline;
        if pipeline.shown.len() + pipeline.output.len() + commands.len() > MONITOR_BYTES_MAX {
            return pipeline.cut_off();
        }
        pipeline.shown.extend_from_slice(commands);
        pipeline.put_shown();
    }

    /// How long the client has sent nothing.
    #[must_use]
    pub const fn idle(&self, now: WallTime) -> Duration {
        Duration::from_micros(now.0.saturating_sub(self.pipeline.last_input.0))
    }

    /// True if a client that sends nothing for a while is to be disconnected: it waits for nothing.
    #[must_use]
    pub fn may_be_idle(&self) -> bool {
        self.outstanding() == 0 && !self.is_monitor() && !self.is_postponed()
    }

    /// True if the filter means this client.
    #[must_use]
    pub fn is_meant(&self, filter: &ClientFilter, now: WallTime) -> bool {
        let session = &self.pipeline.session;
        let identity = &session.identity;
        let ClientFilter { ids, kind, address, local_address, user, skipped, age_min } = filter;
        let age = Duration::from_micros(now.0.saturating_sub(session.connected_at.0));
        ids.as_ref().is_none_or(|ids| ids.contains(&identity.id))
            && kind.is_none_or(|kind| kind == ClientKind::Normal)
            && address.as_ref().is_none_or(|address| *address == identity.address.as_bytes())
            && local_address.as_ref().is_none_or(|address| *address == identity.local_address.as_bytes())
            && user.as_ref().is_none_or(|user| user == session.login.name())
            && *skipped != Some(identity.id)
            && age_min.is_none_or(|least| age >= least)
    }

    /// Appends the client's line of CLIENT LIST.
    pub fn describe(&self, now: WallTime, out: &mut Vec<u8>) {
        self.pipeline.describe(now, out);
    }
}

impl CommandPipeline {
    /// Appends the line of CLIENT LIST.
    pub(super) fn describe(&self, now: WallTime, out: &mut Vec<u8>) {
        let figures = connection_commands::ClientFigures {
            queued: self.queue.as_ref().map(|queue| queue.commands.len()),
            queue_bytes: self.queue.as_ref().map_or(0, crate::queue::Queue::memory_bytes),
            is_blocked: self.requested.as_ref().is_some_and(|asked| asked.is_blocking)
                || self.is_postponed
                || self.waiting.is_some(),
            unread_bytes: self.unread_bytes,
            output_bytes: self.output.len(),
            output_memory: self.output.memory_bytes() + self.held.memory_bytes(),
            memory_bytes: self.memory_bytes(),
            idle: Duration::from_micros(now.0.saturating_sub(self.last_input.0)),
            last_command: self.last_command,
            watched: self.watched.len(),
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            commands: self.commands,
        };
        connection_commands::put_client_line(&self.session, &figures, now, out);
    }

    /// Asks the process, if that is what the command does. True if it does.
    pub(super) fn ask_process(
        &mut self,
        (number, command): (usize, ConnectionCommand),
        words: &[&[u8]],
        context: &Context<'_>,
    ) -> bool {
        match connection_commands::request(command, words, &self.session, context) {
            None => false,
            Some(Ok(_)) if context.unavailable == Some(Unavailable::Loading) => {
                // There is nobody yet who could answer.
                self.reply(|_, out| write_error(out, Unavailable::Loading.text().as_bytes()));
                true
            }
            Some(Err(text)) => {
                self.reply(|_, out| write_error(out, &text));
                true
            }
            Some(Ok(request)) => {
                if request == ProcessRequest::Monitor {
                    self.session.is_monitor = true;
                }
                let is_blocking = matches!(request, ProcessRequest::Wait(_) | ProcessRequest::Sleep(_));
                let mut kept = Vec::new();
                put_words(words, &mut kept);
                self.requested =
                    Some(PendingRequest { request: Some(request), words: kept, number, is_blocking });
                true
            }
        }
    }

    /// True if a command has to wait because clients are paused.
    pub(super) fn has_to_wait(&self, words: &[&[u8]]) -> bool {
        let Some(pause) = self.session.shared.pause() else { return false };
        // What is refused anyway is refused at once.
        let spec = words.first().and_then(|name| syros_commands::lookup(name));
        spec.is_some_and(|spec| spec.accepts(words.len()))
            && (pause == PauseMode::All || self.may_write(words))
    }

    /// True if a command may change data.
    fn may_write(&self, words: &[&[u8]]) -> bool {
        let [name, rest @ ..] = words else { return false };
        let Some(spec) = syros_commands::lookup(name) else { return false };
        let writes = |flags: &[&str]| flags.contains(&"write") || flags.contains(&"may_replicate");
        match spec.kind {
            syros_commands::CommandKind::Local(ConnectionCommand::Exec) => {
                self.queue.as_ref().is_some_and(|queue| {
                    queue
                        .commands
                        .iter()
                        .any(|queued| commands().get(queued.number).is_some_and(|spec| writes(spec.flags)))
                        || operations(&queue.body).flatten().any(|operation| operation.runs_writer())
                })
            }
            _ if spec.group == "scripting" && runs_writer(words) => true,
            syros_commands::CommandKind::Blind => self.may_write(rest),
            _ => {
                let full = connection_commands::full_name(spec, words);
                let subcommand = spec.subcommands.iter().find(|subcommand| subcommand.name == full);
                writes(spec.flags) || subcommand.is_some_and(|subcommand| writes(subcommand.flags))
            }
        }
    }

    /// Moves to the output what a monitor is to be shown, unless a reply is written in parts.
    pub(super) fn put_shown(&mut self) {
        if !self.is_partial && !self.shown.is_empty() {
            self.output.tail().extend_from_slice(&self.shown);
            self.shown.clear();
        }
    }

    /// A command that the connection has answered by itself took so long. Its words are those that the slow log keeps.
    pub(super) fn on_local_time(&self, number: usize, words: &[u8], took: Duration) {
        self.on_time(number, took, || words_of(words));
    }

    /// A command took so long.
    pub(super) fn on_time(&self, number: usize, took: Duration, words: impl FnOnce() -> Vec<Vec<u8>>) {
        let Some(spec) = commands().get(number) else { return };
        let shared = &self.session.shared;
        // What takes no time has not been measured.
        if took > Duration::ZERO && shared.settings.latency_tracking.load(Ordering::Relaxed) > 0 {
            shared.statistics.on_time(number, took);
        }
        let event = if spec.flags.contains(&"fast") { "fast-command" } else { "command" };
        shared.record_latency(event, took, self.now);
        if shared.is_slow(took) && shared.keeps_words() {
            let identity = &self.session.identity;
            let command = SlowCommand {
                at: self.now,
                took,
                words: words(),
                address: identity.address.clone(),
                name: self.session.name.clone(),
            };
            let length = shared.settings.slow_log_length.load(Ordering::Relaxed);
            shared.slow_log(|log| log.push(command, length));
        }
    }

    /// Keeps the beginning of a command until it is answered; how many bytes that takes.
    pub(super) fn keep_words(&mut self, words: &[&[u8]]) -> u16 {
        if !self.session.shared.keeps_words() {
            return 0;
        }
        let before = self.kept_words.len();
        let words = if before > KEPT_BYTES_MAX { &words[..1] } else { words };
        put_words(words, self.kept_words.tail());
        u16::try_from(self.kept_words.len() - before).unwrap_or(u16::MAX)
    }
}

/// True if these words run a script that may change data.
fn runs_writer(words: &[&[u8]]) -> bool {
    matches!(parse(words), Ok(Parsed::Data(operation)) if operation.runs_writer())
}
