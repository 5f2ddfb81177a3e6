//! One client's connection.

mod access;
mod messages;
mod requests;
mod tracking;
mod transactions;
mod waiting;
mod watching;

pub use waiting::Unblocking;

use crate::bytes::ByteQueue;
use crate::connection_commands::{self, Replies, Session, debug};
use crate::context::{Context, Identity};
use crate::info::tells_keys;
use crate::limits::{
    COMMANDS_MAX, NODE_COMMANDS_PER_TURN, REPLY_BYTES_EXPECTED_MAX, REPLY_BYTES_EXPECTED_NARROW,
    REPLY_BYTES_MAX, REPLY_BYTES_PAUSE,
};
use crate::messages::{MessageAnswer, MessageRequest, PushedMessage};
use crate::parser::{Parser, ParserOutcome};
use crate::queue::{Queue, is_about_node};
use crate::schedule::{Completion, PART_BYTES, Schedule, Submission, Written};
use crate::shared::{Shared, put_words, words_of};
use crate::watch::{Watched, Watching};
use crate::writer::{Protocol, write_error, write_integer, write_simple, write_verbatim};
use core::sync::atomic::Ordering;
use messages::{Inquiry, asks_registry};
use requests::PendingRequest;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use syros_commands::{
    CommandError, ConnectionCommand, Generation, Operation, Parsed, commands, parse_numbered,
};
use syros_types::{Class, ReadPolicy, WallTime};
use transactions::Transaction;

/// One client's connection: bytes in, submissions out; completions in, bytes out.
///
/// The driver
/// - calls [`receive`](Self::receive) with the received bytes that have not been consumed, whenever
///   there are new ones, and, if there are any, whenever [`is_paused`](Self::is_paused) has become
///   false; it should not read from the socket while the connection is paused;
/// - calls it once more in its next turn if the connection [`rests`](Self::rests);
/// - then calls [`poll_submit`](Self::poll_submit) until there is nothing, after `receive`, `complete`
///   and `sent` alike;
/// - hands the end of every submission to [`complete`](Self::complete), in any order;
/// - sends [`output`](Self::output), says with [`sent`](Self::sent) how much of it has been sent, and
///   closes the socket when there is no output and [`is_finished`](Self::is_finished) is true.
///
/// To pack commands as well as possible, it polls only when it has no more input to give.
#[derive(Debug)]
pub struct Connection {
    parser: Parser,
    /// Empty; kept for its memory.
    words: Vec<&'static [u8]>,
    pipeline: CommandPipeline,
}

/// Everything behind the parser.
#[derive(Debug)]
struct CommandPipeline {
    session: Session,
    schedule: Schedule,
    /// Commands without a reply in `output`, in the order of the requests.
    slots: VecDeque<Slot>,
    /// What has been queued since MULTI.
    queue: Option<Queue>,
    /// What the next EXEC depends on.
    watched: Watched,
    /// The WATCH that waits for versions. No further input is looked at.
    watching: Option<Watching>,
    /// What has been asked of the registry of subscriptions, or is to be: by a transaction, and by a command behind it. No further
    /// input is looked at.
    inquiries: VecDeque<Inquiry>,
    /// Messages for the client that wait for the end of the reply that is being written.
    pushes: ByteQueue,
    /// Transactions without a reply in `output`, in the order of their EXECs.
    transactions: VecDeque<Transaction>,
    output: ByteQueue,
    /// The end of the output is a part of a reply; the rest is written when the client has taken this part.
    is_partial: bool,
    /// The output is to be nearly empty before more is added to it.
    is_narrow: bool,
    /// Replies that the connection gave itself and that wait for earlier ones.
    held: ByteQueue,
    /// An INFO that waits until the keys have been counted: the words after its name. No further input is looked at.
    counting: Option<Vec<Vec<u8>>>,
    /// Nobody has been told yet that the keys are to be counted.
    wants_count: bool,
    /// The group of the command that may have to wait. No further input is looked at.
    waiting: Option<u64>,
    /// A CLIENT UNBLOCK that has no answer yet. No further input is looked at.
    unblocking: Option<Unblocking>,
    /// Nobody has been told of it yet.
    wants_unblocking: bool,
    /// No further input is looked at: QUIT, a protocol error, or a request of another protocol.
    closing: bool,
    #[cfg(feature = "planted-bugs")]
    planted: Option<crate::planted::PlantedBug>,
    /// The client sent a line of an HTTP request.
    speaks_http: bool,
    commands: u64,
    /// The client keeps what the command reads that is under way.
    keeps_copies: bool,
    /// The client gets no reply to the command that is looked at.
    is_silent: bool,
    /// What has been asked of the process. No further input is looked at.
    requested: Option<PendingRequest>,
    /// The next command waits, because clients are paused.
    is_postponed: bool,
    /// The next command waits until the users are known.
    awaits_users: bool,
    /// The words of the commands of groups in `slots`, as the slow log keeps them.
    kept_words: ByteQueue,
    /// Commands of others that the client wants to see, while a reply is written in parts.
    shown: Vec<u8>,
    /// An update has ended of which nobody knows whether it is executed.
    has_unknown_update: bool,
    /// When the client has sent something last.
    last_input: WallTime,
    /// Bytes of requests that have been looked at, and of replies that have been sent.
    received_bytes: u64,
    sent_bytes: u64,
    /// A command that changes users is under way. No further input is looked at before it is answered: that may be of such a
    /// user.
    changes_users: bool,
    /// The latest time that the connection knows of.
    now: WallTime,
    /// Bytes received that were not looked at the last time.
    unread_bytes: usize,
    /// So many commands about the node have been answered in this turn.
    node_commands: usize,
    /// The name of the last command.
    last_command: Option<&'static str>,
}

/// A command that waits for its reply, or whose reply waits for earlier ones.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Command(Answer),
    /// EXEC: its reply is that of the first of the transactions.
    Transaction,
    /// WATCH: its reply comes when the versions are known.
    Watch,
}

/// Where the reply to a command comes from.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// It is the next one of this group. The command is that of this number in the table; so many bytes of its words are
    /// the next ones of `kept_words`.
    Group { slot: u64, shown: Shown, command: u16, kept: u16 },
    /// It is the next so many bytes of `held`.
    Local { bytes: usize },
    /// It is an element of a transaction's reply that the registry of subscriptions gives.
    Registry,
}

/// What the client gets of a reply.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// All of it, in the protocol chosen when the command was received.
    Reply(Protocol),
    /// A number that no count is, in place of OK: the client has given up the count. An error is shown.
    NoCount,
    /// Nothing.
    Nothing,
}

/// What a client gets that has given up a count.
const NO_COUNT: i64 = -1;

/// Capacity for more words than this is not kept for later requests.
const WORDS_KEPT_MAX: usize = 1024;

impl Connection {
    /// A connection that was accepted `now`.
    #[must_use]
    pub fn new(identity: Identity, now: WallTime) -> Self {
        Self::with_shared(identity, now, Arc::default())
    }

    /// A connection that was accepted `now`, of a process whose connections share this.
    #[must_use]
    pub fn with_shared(identity: Identity, now: WallTime, shared: Arc<Shared>) -> Self {
        Self {
            parser: Parser::new(),
            words: Vec::new(),
            pipeline: CommandPipeline {
                session: Session::new(identity, now, shared),
                schedule: Schedule::new(),
                slots: VecDeque::new(),
                queue: None,
                watched: Watched::default(),
                watching: None,
                inquiries: VecDeque::new(),
                pushes: ByteQueue::default(),
                transactions: VecDeque::new(),
                output: ByteQueue::default(),
                is_partial: false,
                is_narrow: false,
                held: ByteQueue::default(),
                counting: None,
                wants_count: false,
                waiting: None,
                unblocking: None,
                wants_unblocking: false,
                closing: false,
                #[cfg(feature = "planted-bugs")]
                planted: None,
                speaks_http: false,
                commands: 0,
                keeps_copies: false,
                is_silent: false,
                requested: None,
                is_postponed: false,
                awaits_users: false,
                kept_words: ByteQueue::default(),
                shown: Vec::new(),
                has_unknown_update: false,
                last_input: now,
                received_bytes: 0,
                sent_bytes: 0,
                changes_users: false,
                now,
                unread_bytes: 0,
                node_commands: 0,
                last_command: None,
            },
        }
    }

    /// Makes the connection a known-wrong one.
    #[cfg(feature = "planted-bugs")]
    pub const fn plant(&mut self, bug: Option<crate::planted::PlantedBug>) {
        self.pipeline.planted = bug;
        self.pipeline.session.login.plant(bug);
        self.pipeline.schedule.plant(bug);
    }

    /// Takes received bytes; returns how many of them were consumed. What is left must come again in
    /// front of what is received next.
    pub fn receive(&mut self, bytes: &[u8], context: &Context<'_>) -> usize {
        let mut words: Vec<&[u8]> = std::mem::take(&mut self.words);
        let mut rest = bytes;
        self.pipeline.now = context.now;
        self.pipeline.node_commands = 0;
        let has_turn = |pipeline: &CommandPipeline| pipeline.node_commands < NODE_COMMANDS_PER_TURN;
        while !self.pipeline.closing && !self.pipeline.is_paused() && has_turn(&self.pipeline) {
            let consumed = match self.parser.next(rest) {
                Ok(ParserOutcome::Incomplete) => break,
                Ok(ParserOutcome::Empty { consumed }) => {
                    self.pipeline.use_up_skip();
                    consumed
                }
                Ok(ParserOutcome::Skipped { consumed }) => consumed,
                Ok(ParserOutcome::Multibulk { consumed }) => {
                    self.parser.words(rest, &mut words);
                    self.pipeline.take_command(&words, consumed, context)
                }
                Ok(ParserOutcome::Inline { consumed }) => {
                    self.pipeline.take_command(&self.parser.inline_words(), consumed, context)
                }
                Ok(ParserOutcome::TooLarge { consumed, problem }) => {
                    self.pipeline.begin_command();
                    self.pipeline.reply_error(|text| text.extend_from_slice(problem.to_string().as_bytes()));
                    consumed
                }
                Err(error) => {
                    self.pipeline.is_silent = self.pipeline.session.replies.are_unwanted();
                    self.pipeline.reply_error(|text| error.write(text));
                    self.pipeline.closing = true;
                    0
                }
            };
            rest = &rest[consumed..];
        }
        words.clear();
        if words.capacity() <= WORDS_KEPT_MAX {
            // Collecting nothing in place turns the lifetime of the empty vector back into any.
            self.words = words.into_iter().map(|_| -> &'static [u8] { &[] }).collect();
        }
        let consumed = if self.pipeline.closing { bytes.len() } else { bytes.len() - rest.len() };
        self.pipeline.unread_bytes = bytes.len() - consumed;
        if consumed > 0 {
            self.pipeline.last_input = context.now;
        }
        self.pipeline.session.statistics.on_input(consumed, context.now);
        consumed
    }

    /// True if the connection has stopped to look at the input because it has answered so much about the node that others
    /// are to have their turn. The driver calls [`receive`](Self::receive) again in its next turn, whether or not there are new
    /// bytes.
    #[must_use]
    pub const fn rests(&self) -> bool {
        self.pipeline.node_commands >= NODE_COMMANDS_PER_TURN && self.pipeline.unread_bytes > 0
    }

    /// An incomplete request at the front of the unconsumed bytes needs at least this many in all: what
    /// the driver's buffer must have room for.
    #[must_use]
    pub fn bytes_needed(&self) -> usize {
        self.parser.needed()
    }

    /// True while no input is consumed because too much is under way. Becomes false again when
    /// completions come in and output is sent.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.pipeline.is_paused()
    }

    /// True, once, if the connection waits until the keys have been counted: an INFO is to tell their number. The driver
    /// calls [`counted`](Self::counted) when [`ServerInfo::report`](crate::ServerInfo::report) knows a number that was counted after this call, or
    /// when that takes too long.
    pub const fn takes_count(&mut self) -> bool {
        std::mem::replace(&mut self.pipeline.wants_count, false)
    }

    /// The client that is to wait no longer, once: the driver calls [`unblocked`](Self::unblocked).
    pub fn takes_unblocking(&mut self) -> Option<Unblocking> {
        let is_new = std::mem::replace(&mut self.pipeline.wants_unblocking, false);
        self.pipeline.unblocking.filter(|_| is_new)
    }

    /// Answers CLIENT UNBLOCK: whether a command of that client has waited. Nothing happens if none is to be answered.
    pub fn unblocked(&mut self, found: bool) {
        self.pipeline.unblocked(found);
    }

    /// The number that CLIENT ID answers.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.pipeline.session.identity.id
    }

    /// Answers the INFO that waited until the keys were counted; nothing happens if there is none.
    pub fn counted(&mut self, context: &Context<'_>) {
        if let Some(names) = self.pipeline.counting.take() {
            let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            self.pipeline
                .reply(|session, out| connection_commands::write_info(&names, session, context, out));
        }
    }

    /// What is to be asked of the registry of subscriptions, in this order; the owner answers all of it with
    /// [`answer_messages`](Self::answer_messages), at once or later. `None` while there is nothing to be asked, or earlier
    /// commands have not been answered.
    pub fn poll_messages(&mut self) -> Option<Vec<MessageRequest>> {
        self.pipeline.poll_messages()
    }

    /// Takes the answers to what has been polled, one for each request.
    pub fn answer_messages(&mut self, answers: &[MessageAnswer]) {
        self.pipeline.answer_messages(answers);
    }

    /// Writes a message for the client, which subscribes to its channel. Bytes of output that wait for the client.
    pub fn push(&mut self, message: &PushedMessage<'_>) -> usize {
        self.pipeline.push(message)
    }

    /// Others have lately got values of so many bytes: the first ones of this connection may be like them.
    pub const fn expect_first_values(&mut self, bytes: usize) {
        self.pipeline.schedule.expect_first(bytes);
    }

    /// The next submission, if one may go: none while the client has so much to take that a read would be postponed.
    pub fn poll_submit(&mut self) -> Option<Submission> {
        self.poll_submit_if(|_| true)
    }

    /// As [`poll_submit`](Self::poll_submit), if `admits` says that there is room for the bytes of values that the
    /// submission is expected to get: as many as those before had, and 0 as long as there were none.
    pub fn poll_submit_if(&mut self, admits: impl FnOnce(usize) -> bool) -> Option<Submission> {
        if self.is_full() {
            return None;
        }
        self.pipeline.schedule.poll(self.pipeline.output.len() + self.pipeline.held.len(), admits)
    }

    /// True if the replies to the submission with this slot, a read, may be added to those in memory now. Else it is to
    /// be [postponed](Self::postpone): what replies will be is only a guess when they are asked for.
    #[must_use]
    pub fn has_room_for(&self, slot: u64) -> bool {
        !self.is_full() && self.pipeline.schedule.has_room_for(slot)
    }

    /// True if values have been asked for and have not come: when they come, the connection goes on by itself.
    #[must_use]
    pub const fn has_values_in_flight(&self) -> bool {
        self.pipeline.schedule.has_values_in_flight()
    }

    /// Takes back a submission that is a read which has not been executed, or a command that waits and has found nothing: this
    /// body is submitted in its place when the client has taken some of its replies. False if none with this slot is in flight;
    /// then nothing happens.
    pub fn postpone(&mut self, slot: u64, body: &[u8]) -> bool {
        self.pipeline.schedule.postpone(slot, body)
    }

    /// The values of a submission that has been [postponed](Self::postpone) have so many bytes: the connection asks for no
    /// more of them at a time than it has room for.
    pub fn expect(&mut self, slot: u64, bytes: usize) {
        self.pipeline.schedule.expect(slot, bytes);
    }

    /// True if the client has more replies to take than one may have waiting.
    fn is_full(&self) -> bool {
        self.pipeline.output.len() > REPLY_BYTES_EXPECTED_MAX || self.pipeline.is_narrow
    }

    /// The server is short of memory: the client is to take nearly all of the replies that there are before it gets
    /// another that a read has to be executed for.
    pub const fn narrow(&mut self) {
        let unwritten = if self.pipeline.is_partial { self.pipeline.schedule.reply_bytes() } else { 0 };
        self.pipeline.is_narrow = self.pipeline.output.len() + unwritten > REPLY_BYTES_EXPECTED_NARROW;
    }

    /// Takes the end of a submission. False if none with this slot is in flight; then nothing happens.
    pub fn complete(&mut self, slot: u64, completion: Completion) -> bool {
        self.complete_after(slot, completion, Duration::ZERO, self.pipeline.now)
    }

    /// As [`complete`](Self::complete), `now`; the submission was in flight for so long.
    pub fn complete_after(
        &mut self,
        slot: u64,
        completion: Completion,
        took: Duration,
        now: WallTime,
    ) -> bool {
        self.pipeline.now = now;
        self.pipeline.has_unknown_update |= completion == Completion::Unknown;
        let known = self.pipeline.schedule.complete(slot, completion, took);
        if known {
            self.pipeline.answer();
        }
        known
    }

    /// Bytes to be sent to the client.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.pipeline.output.as_slice()
    }

    /// So many bytes of the output have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.pipeline.session.statistics.on_output(bytes);
        self.pipeline.sent_bytes += bytes as u64;
        self.pipeline.output.take(bytes);
        if self.pipeline.is_partial {
            self.pipeline.answer();
        }
        if self.pipeline.is_narrow {
            self.narrow();
        }
    }

    /// Bytes of replies that are in memory: those to be sent, and those that wait for earlier ones.
    #[must_use]
    pub const fn reply_bytes(&self) -> usize {
        self.pipeline.reply_bytes()
    }

    /// Bytes of memory that operations and replies of this connection take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.parser.memory_bytes() + self.pipeline.memory_bytes()
    }

    /// True if there will be no further output: the client said QUIT, or was not understood, or let its
    /// replies pile up, and every reply that it is to get is in the output.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.pipeline.closing && self.pipeline.outstanding() == 0
    }

    /// True if the client sent `POST` or `Host:` as a command. A web browser does that when a page makes it
    /// send a request to this port; the commands in the request's body are not the client's own, and are
    /// not executed. The driver should log it.
    #[must_use]
    pub const fn speaks_http(&self) -> bool {
        self.pipeline.speaks_http
    }

    /// Commands received whose replies are not in the output yet.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.pipeline.outstanding()
    }

    /// Commands received so far.
    #[must_use]
    pub const fn commands(&self) -> u64 {
        self.pipeline.commands
    }
}

/// True for the two commands that every HTTP request with a body has at the beginning of a line: Redis
/// ends the connection at these, too.
const fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

impl CommandPipeline {
    fn is_paused(&self) -> bool {
        self.counting.is_some()
            || self.requested.is_some()
            || self.is_postponed
            || self.awaits_users
            || self.watching.is_some()
            || !self.inquiries.is_empty()
            || self.waiting.is_some()
            || self.unblocking.is_some()
            || (self.changes_users && !self.slots.is_empty())
            || self.transactions.back().is_some_and(Transaction::is_conditional)
            // Invalidations have their places between replies.
            || (self.session.tracking.is_some() && !self.slots.is_empty())
            || self.slots.len() >= COMMANDS_MAX
            || !self.schedule.has_room()
            || self.reply_bytes() >= REPLY_BYTES_PAUSE
    }

    /// Bytes of replies that are in memory.
    const fn reply_bytes(&self) -> usize {
        self.output.len() + self.held.len() + self.pushes.len() + self.schedule.reply_bytes()
    }

    /// Commands received whose replies are not in the output yet.
    fn outstanding(&self) -> usize {
        [self.counting.is_some(), self.requested.is_some(), self.unblocking.is_some()]
            .into_iter()
            .fold(self.slots.len() + self.inquiries.len(), |count, waits| count + usize::from(waits))
    }

    /// Bytes of memory that operations and replies take.
    fn memory_bytes(&self) -> usize {
        let Self {
            schedule,
            slots,
            queue,
            watched,
            transactions,
            output,
            held,
            kept_words,
            shown,
            pushes,
            ..
        } = self;
        let parts = transactions.iter().map(Transaction::parts).sum::<usize>();
        let slots = (slots.len() + parts) * size_of::<Slot>();
        let queue = queue.as_ref().map_or(0, Queue::memory_bytes);
        schedule.memory_bytes()
            + slots
            + queue
            + watched.bytes()
            + output.memory_bytes()
            + held.memory_bytes()
            + pushes.memory_bytes()
            + kept_words.memory_bytes()
            + shown.capacity()
    }

    /// One command, received in `request_bytes` bytes, unless it has to wait; how many of them are taken.
    fn take_command(&mut self, words: &[&[u8]], request_bytes: usize, context: &Context<'_>) -> usize {
        if self.has_to_wait(words) {
            self.is_postponed = true;
            return 0;
        }
        if context.has_to_wait(words) || self.has_to_wait_for_users(words, context) {
            self.awaits_users = true;
            return 0;
        }
        self.received_bytes += request_bytes as u64;
        self.begin_command();
        self.command(words, request_bytes, context);
        request_bytes
    }

    /// A command has been received.
    const fn begin_command(&mut self) {
        self.commands += 1;
        self.changes_users = false;
        self.is_silent = self.session.replies.are_unwanted();
        self.use_up_skip();
    }

    /// The command that is looked at is the only one to be skipped. In Redis that may be an empty one.
    const fn use_up_skip(&mut self) {
        if matches!(self.session.replies, Replies::SkipNext | Replies::Again) {
            self.session.replies = Replies::Wanted;
        }
    }

    /// One command, received in `request_bytes` bytes.
    fn command(&mut self, words: &[&[u8]], request_bytes: usize, context: &Context<'_>) {
        match words {
            [name, rest @ ..] if name.eq_ignore_ascii_case(b"READ") => {
                self.read(rest, request_bytes, context);
            }
            [name, ..] if is_http(name) => {
                self.speaks_http = true;
                self.cut_off();
            }
            _ => self.understood(words, request_bytes, context),
        }
    }

    /// READ: a read that says how it is to be answered; without one, the connection's choice from now on.
    fn read(&mut self, words: &[&[u8]], request_bytes: usize, context: &Context<'_>) {
        if self.queue.is_some() {
            return self.refuse_in_transaction();
        }
        if self.refuses_read() {
            return;
        }
        let policy = words.first().and_then(|name| std::str::from_utf8(name).ok()?.parse().ok());
        let Some(policy) = policy else {
            let text = "ERR READ takes a policy, one of auto, leader, meta, quorum and stale, and a command that \
                        only reads; without a command it is for all that this connection reads from now on";
            return self.reply(|_, out| write_error(out, text.as_bytes()));
        };
        let (number, parsed) = self.parse(&words[1..]);
        if let Some(text) = self.forbids(number, &words[1..], Some(policy), context) {
            return self.refuse(number, &text);
        }
        match parsed {
            _ if words.len() == 1 => {
                self.session.read_policy = Some(policy);
                self.reply(|_, out| write_simple(out, b"OK"));
            }
            Ok(Parsed::Data(operation)) if operation.class() == Class::Read => {
                let mut operation = operation.in_database(self.session.database);
                self.name_user(&mut operation);
                self.tell_of_script(&mut operation);
                self.add((number, &operation), words, request_bytes, Some(policy), context);
            }
            Ok(_) => {
                let text = format!("ERR READ {policy} is for commands that only read");
                self.reply(|_, out| write_error(out, text.as_bytes()));
            }
            Err(error) => self.reject(number, &error),
        }
    }

    fn add(
        &mut self,
        (number, operation): (Option<usize>, &Operation<'_>),
        words: &[&[u8]],
        request_bytes: usize,
        policy: Option<ReadPolicy>,
        context: &Context<'_>,
    ) {
        if let Some(unavailable) = context.unavailable {
            return self.reply(|_, out| write_error(out, unavailable.text().as_bytes()));
        }
        let number = number.unwrap_or_default();
        self.session.statistics.on_call(number);
        if operation.may_wait() {
            return self.wait((number, operation), policy);
        }
        let blind = Operation { blind: true, ..*operation };
        let (operation, shown) = match (self.is_silent, operation.class()) {
            // Nobody is told what it finds.
            (true, Class::Read) => return,
            (true, _) => (&blind, Shown::Nothing),
            (false, _) if self.session.gives_up_counts && operation.counts() => (&blind, Shown::NoCount),
            (false, _) if self.session.gives_up_counts && operation.confirms() => {
                (&blind, Shown::Reply(self.session.protocol))
            }
            (false, _) => (operation, Shown::Reply(self.session.protocol)),
        };
        self.changes_users |= operation.changes_users();
        let slot = self.schedule.add(operation, request_bytes, policy);
        // The table has fewer commands than that: its index has a `u16` for each.
        let command = u16::try_from(number).unwrap_or(u16::MAX);
        let kept = self.keep_words(words);
        self.slots.push_back(Slot::Command(Answer::Group { slot, shown, command, kept }));
    }

    /// As [`parse_numbered`]. What a client must not know of data, it asks the connection, which says so.
    fn parse<'a>(&self, words: &'a [&'a [u8]]) -> (Option<usize>, Result<Parsed<'a>, CommandError>) {
        let (number, parsed) = parse_numbered(words);
        let spec = number.and_then(|number| commands().get(number));
        match (parsed, spec.and_then(|spec| spec.local)) {
            (Ok(Parsed::Data(_)), Some(local @ ConnectionCommand::Debug))
                if !debug::is_allowed(&self.session) =>
            {
                (number, Ok(Parsed::Local(local)))
            }
            (parsed, _) => (number, parsed),
        }
    }

    fn understood(&mut self, words: &[&[u8]], request_bytes: usize, context: &Context<'_>) {
        let (number, parsed) = self.parse(words);
        if let Some(text) = self.forbids(number, words, self.session.read_policy, context) {
            return self.refuse(number, &text);
        }
        match parsed.as_ref().ok().map(|parsed| Self::without_passwords(parsed, words)) {
            Some(Err(text)) => self.refuse(number, text.as_bytes()),
            Some(Ok(Some(hidden))) => {
                let hidden: Vec<&[u8]> = hidden.iter().map(Vec::as_slice).collect();
                let (number, parsed) = self.parse(&hidden);
                self.allowed((number, parsed), &hidden, request_bytes, context);
            }
            _ => self.allowed((number, parsed), words, request_bytes, context),
        }
    }

    /// A script or function is told whose rights it needs.
    fn name_user(&self, operation: &mut Operation<'_>) {
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(crate::planted::PlantedBug::ScriptOfNobody) {
            return;
        }
        if let Some(user) = operation.user_mut() {
            *user = self.session.login.caller(&self.session.shared.users);
        }
    }

    /// A script or function is told which keys it may touch, and whether it is loaded.
    fn tell_of_script(&self, operation: &mut Operation<'_>) {
        let may_touch_any = self.session.shared.settings.undeclared_keys.load(Ordering::Relaxed) > 0;
        let reads_may = self.session.shared.knows(Generation::OwningReads);
        self.session.statistics.scripts.tell(operation, may_touch_any, reads_may);
    }

    /// A command that the client may run, or that is none.
    fn allowed<'a>(
        &mut self,
        (number, mut parsed): (Option<usize>, Result<Parsed<'a>, CommandError>),
        words: &'a [&'a [u8]],
        request_bytes: usize,
        context: &Context<'_>,
    ) {
        self.on_command(number, words, context);
        if let Ok(Parsed::Data(operation)) = &mut parsed {
            *operation = operation.in_database(self.session.database);
            self.name_user(operation);
            if let Some(seed) = operation.seed_mut() {
                *seed = self.session.seeds.next_u64();
            }
            if let Some(now_ms) = operation.now_mut() {
                *now_ms = context.now.as_millis();
            }
            if let Some(terms) = operation.terms_mut() {
                terms.debugs = self.session.shared.scripts_debug() && debug::is_allowed(&self.session);
                terms.abilities = self.session.shared.abilities();
            }
            self.tell_of_script(operation);
        }
        let local = if let Ok(Parsed::Local(command)) = &parsed { Some(*command) } else { None };
        if self.refuse_to_subscriber(number, local, words) {
            return;
        }
        self.note_tracking(local);
        match parsed {
            Ok(Parsed::Local(command)) if transactions::is_immediate(command) => {
                self.at_once(number, command, words, context);
            }
            Err(error @ CommandError::Arity("exec")) => self.abort(number, &error),
            parsed if self.queue.is_some() => self.enqueue(number, parsed, words, context),
            Ok(Parsed::Data(operation)) => {
                self.add((number, &operation), words, request_bytes, self.session.read_policy, context);
            }
            Ok(Parsed::Local(command)) if asks_registry(command) => {
                self.ask_registry((number, command), words, context);
            }
            Ok(Parsed::Local(ConnectionCommand::Client)) if waiting::is_unblock(words) => {
                self.unblock(number, words);
            }
            Ok(Parsed::Local(command)) => {
                if command == ConnectionCommand::Unwatch {
                    self.unwatch();
                }
                self.local((number, command), words, context);
            }
            Err(error) => self.reject(number, &error),
        }
    }

    /// A command has been received: those who want to know are told.
    fn on_command(&mut self, number: Option<usize>, words: &[&[u8]], context: &Context<'_>) {
        let Some(spec) = number.and_then(|number| commands().get(number)) else { return };
        self.last_command = Some(connection_commands::full_name(spec, words));
        let monitor = &self.session.shared.monitor;
        if monitor.is_watched() && connection_commands::is_shown(spec, words) {
            monitor.record(context.now, &self.session.identity.address, words);
        }
    }

    /// A command that the connection answers by itself.
    fn local(
        &mut self,
        (number, command): (Option<usize>, ConnectionCommand),
        words: &[&[u8]],
        context: &Context<'_>,
    ) {
        if let Some(unavailable) = context.unavailable.filter(|reason| reason.forbids(command)) {
            return self.reply(|_, out| write_error(out, unavailable.text().as_bytes()));
        }
        self.session.statistics.on_call(number.unwrap_or_default());
        self.node_commands += usize::from(is_about_node(command));
        if command == ConnectionCommand::Info
            && !self.is_silent
            && tells_keys(&words[1..])
            && context.info.has_to_count_keys()
        {
            self.counting = Some(words[1..].iter().map(|word| word.to_vec()).collect());
            self.wants_count = true;
            return;
        }
        if self.ask_process((number.unwrap_or_default(), command), words, context) {
            return;
        }
        if connection_commands::is_client_info(command, words) {
            let mut line = Vec::new();
            self.describe(context.now, &mut line);
            self.reply(|session, out| write_verbatim(out, session.protocol, &line));
        } else {
            self.closing =
                self.reply(|session, out| connection_commands::answer(command, words, session, context, out));
            self.note_refused_login(context.now);
        }
        // How long it took is not measured: it is far less than what the clock tells apart.
        if self.session.shared.is_slow(Duration::ZERO) {
            let mut kept = Vec::new();
            put_words(words, &mut kept);
            self.on_local_time(number.unwrap_or_default(), &kept, Duration::ZERO);
        }
    }

    /// Refuses a command that is none.
    fn reject(&mut self, number: Option<usize>, error: &CommandError) {
        self.refuse(number, &error.text());
    }

    /// Answers a command with an error before it has become an operation. A transaction with it will not be executed.
    fn refuse(&mut self, number: Option<usize>, text: &[u8]) {
        self.session.statistics.on_rejected(number, text);
        if let Some(queue) = &mut self.queue {
            queue.doom();
        }
        self.reply(|_, out| write_error(out, text));
    }

    fn reply_error(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut text = Vec::new();
        write(&mut text);
        self.refuse(None, &text);
    }

    /// Gives a reply of the connection's own, in its turn, if the client wants it.
    fn reply<R>(&mut self, write: impl FnOnce(&mut Session, &mut Vec<u8>) -> R) -> R {
        if !self.is_silent {
            return self.put(write);
        }
        let mut unwanted = Vec::new();
        let result = write(&mut self.session, &mut unwanted);
        if self.session.replies == Replies::Again {
            self.session.replies = Replies::Wanted;
            self.put(|_, out| out.extend_from_slice(&unwanted));
        }
        result
    }

    /// Gives a reply of the connection's own, in its turn.
    fn put<R>(&mut self, write: impl FnOnce(&mut Session, &mut Vec<u8>) -> R) -> R {
        if self.slots.is_empty() {
            return write(&mut self.session, self.output.tail());
        }
        let before = self.held.len();
        let result = write(&mut self.session, self.held.tail());
        self.slots.push_back(Slot::Command(Answer::Local { bytes: self.held.len() - before }));
        result
    }

    /// Moves to the output whatever is its turn.
    fn answer(&mut self) {
        #[cfg(feature = "planted-bugs")]
        self.confuse();
        loop {
            self.release_pushes();
            let Some(slot) = self.slots.front().copied() else { break };
            if self.is_partial && self.output.len() >= PART_BYTES {
                break;
            }
            let written = match slot {
                Slot::Transaction => self.answer_transaction(),
                Slot::Watch => self.answer_watch(),
                Slot::Command(answer) => self.answer_one(answer, self.is_partial),
            };
            if written == Written::Nothing {
                break;
            }
            self.is_partial = written == Written::Part;
            if !self.is_partial {
                self.slots.pop_front();
            }
        }
        self.put_shown();
        if self.reply_bytes() > REPLY_BYTES_MAX {
            self.cut_off();
        }
    }

    /// Writes the reply to one command, or the next part of it if a part has been written.
    fn answer_one(&mut self, answer: Answer, is_partial: bool) -> Written {
        match answer {
            Answer::Group { slot, shown, command, kept } => {
                let took = self.schedule.took(slot);
                let out = self.output.tail();
                let start = out.len();
                let protocol = if let Shown::Reply(protocol) = shown { protocol } else { Protocol::Resp2 };
                let written = self.schedule.answer(slot, protocol, out);
                if written == Written::Nothing {
                    return written;
                }
                if written == Written::Whole && self.waiting == Some(slot) {
                    self.waiting = None;
                }
                match shown {
                    Shown::Nothing => out.truncate(start),
                    Shown::NoCount if out[start..].starts_with(b"+") => {
                        out.truncate(start);
                        write_integer(out, NO_COUNT);
                    }
                    Shown::NoCount | Shown::Reply(_) => {}
                }
                if !matches!(shown, Shown::Nothing) && !is_partial {
                    self.session.statistics.on_reply(usize::from(command), protocol, &out[start..]);
                }
                if written == Written::Whole {
                    self.on_group_time(command, kept, took);
                }
                written
            }
            Answer::Local { bytes } => {
                let reply = self.held.as_slice().get(..bytes).unwrap_or_default();
                self.output.tail().extend_from_slice(reply);
                self.held.take(bytes);
                Written::Whole
            }
            Answer::Registry => self.answer_from_registry(),
        }
    }

    /// A command of a group, whose words are the next so many bytes that are kept, took so long, if that is known.
    fn on_group_time(&mut self, command: u16, kept: u16, took: Option<Duration>) {
        if let Some(took) = took {
            let words = self.kept_words.as_slice().get(..usize::from(kept)).unwrap_or_default();
            self.on_time(usize::from(command), took, || words_of(words));
        }
        self.kept_words.take(usize::from(kept));
    }

    /// Has the first command that has ended change places with the first of all.
    #[cfg(feature = "planted-bugs")]
    fn confuse(&mut self) {
        let has_ended = |slot: &Slot| matches!(slot, Slot::Command(Answer::Group { slot, .. }) if self.schedule.has_ended(*slot));
        if self.planted == Some(crate::planted::PlantedBug::RepliesOutOfOrder)
            && !self.is_partial
            && let Some(at) = self.slots.iter().position(has_ended)
        {
            self.slots.swap(0, at);
        }
    }

    /// Gives up a client that gets no reply any more: its replies have outgrown the memory they may take,
    /// or it is no Redis client.
    fn cut_off(&mut self) {
        self.closing = true;
        self.slots.clear();
        self.queue = None;
        self.watching = None;
        self.inquiries.clear();
        self.pushes.clear();
        self.transactions.clear();
        self.counting = None;
        self.requested = None;
        self.is_postponed = false;
        self.awaits_users = false;
        self.session.is_monitor = false;
        self.kept_words.clear();
        self.shown = Vec::new();
        self.waiting = None;
        self.unblocking = None;
        self.held.clear();
        self.is_partial = false;
        self.output.clear();
        self.schedule.abandon();
    }
}
