//! MULTI, EXEC and DISCARD.
//!
//! A transaction is queued at the connection: nobody else hears of it before EXEC, and nothing is left of it if the
//! connection ends. EXEC submits its operations as one body, and what the connection answers by itself it answers then; the
//! reply is an array of both, in the order of the commands.
//!
//! As in Redis, a command that does not exist, that has too few or too many words, or that is not allowed is refused at
//! once, and dooms the transaction. Other errors, such as those of options, are elements of the array, as those of the
//! execution are: the other commands are executed.
//!
//! If keys are watched, the body begins with the condition that none of them has changed: an operation for each of their
//! databases. A SELECT is answered by the connection; the operations queued behind it have its database. What the connection answers by
//! itself then counts only if the condition holds: until that is known, no further input is looked at.

use super::messages::{asks_registry, is_subscription, request_of};
use super::{Answer, CommandPipeline, Shown, Slot};
use crate::connection_commands::{self, Session};
use crate::context::Context;
use crate::messages::MessageRequest;
use crate::queue::{Queue, Queued, QueuedKind};
use crate::schedule::{Completion, GroupEnd, Load, Written, write_failure};
use crate::writer::{Protocol, write_array, write_error, write_nil_array, write_simple};
use std::collections::VecDeque;
use syros_commands::{CommandError, ConnectionCommand, Operation, Parsed, commands, operations};
use syros_types::Class;

/// What is said of commands that would leave the array without one of its elements, or with one too many, and, as by Valkey
/// 8, of MULTI and WATCH.
pub(super) const NOT_ALLOWED: &[u8] = b"ERR Command not allowed inside a transaction";

/// A transaction that has been submitted and whose reply has not been written.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The group of its operations; `None` if it has none.
    slot: Option<u64>,
    /// The number of EXEC in the table of commands.
    command: u16,
    /// The elements of the reply that have not been written.
    parts: VecDeque<Answer>,
    /// Bytes in the connection's `held` that are elements of the reply.
    local_bytes: usize,
    /// What it asks the registry of subscriptions when it has been executed.
    requests: Vec<MessageRequest>,
    /// What the registry has answered, as elements of the reply that have not been written.
    registry_answers: VecDeque<Vec<u8>>,
    /// The head of the reply has been written.
    is_begun: bool,
    /// A part of the first element has been written.
    is_partial: bool,
    /// The client gets no reply.
    is_silent: bool,
    /// It depends on watched keys.
    condition: Option<Condition>,
}

/// What a transaction needs that may execute nothing.
#[derive(Debug)]
struct Condition {
    /// What the session was before it.
    before: Box<Session>,
    /// How its reply is written.
    protocol: Protocol,
    /// How many operations the condition is whose replies have not been looked at.
    left: u32,
}

impl Transaction {
    /// True if it may execute nothing, since it depends on watched keys.
    pub(super) const fn is_conditional(&self) -> bool {
        self.condition.is_some()
    }

    /// Elements of the reply that have not been written.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }
}

/// True for commands that are not queued between MULTI and EXEC.
pub(super) const fn is_immediate(command: ConnectionCommand) -> bool {
    use ConnectionCommand::{Discard, Exec, Multi, Quit, Reset, Watch};
    matches!(command, Multi | Exec | Discard | Watch | Quit | Reset)
}

impl CommandPipeline {
    /// Carries out a command that is not queued.
    pub(super) fn at_once(
        &mut self,
        number: Option<usize>,
        command: ConnectionCommand,
        words: &[&[u8]],
        context: &Context<'_>,
    ) {
        let number = number.unwrap_or_default();
        match command {
            ConnectionCommand::Multi => self.begin(number),
            ConnectionCommand::Exec => self.execute(number, context),
            ConnectionCommand::Discard => self.discard(number),
            ConnectionCommand::Watch => self.watch(number, &words[1..], context),
            other => {
                if other == ConnectionCommand::Reset {
                    self.queue = None;
                    self.unwatch();
                    if self.resets_subscriptions() {
                        return self.session.statistics.on_call(number);
                    }
                }
                self.local((Some(number), other), words, context);
            }
        }
    }

    fn begin(&mut self, number: usize) {
        if self.queue.is_some() {
            return self.refuse(Some(number), NOT_ALLOWED);
        }
        self.session.statistics.on_call(number);
        let mut queue = Queue::watching(self.session.database, self.watched.len(), self.watched.bytes());
        queue.users_epoch = self.session.shared.users.epoch();
        self.queue = Some(queue);
        self.reply(|_, out| write_simple(out, b"OK"));
    }

    fn discard(&mut self, number: usize) {
        self.session.statistics.on_call(number);
        match self.queue.take() {
            Some(_) => {
                self.unwatch();
                self.reply(|_, out| write_simple(out, b"OK"));
            }
            None => self.reply(|_, out| write_error(out, b"ERR DISCARD without MULTI")),
        }
    }

    /// Refuses an EXEC that is none: as in Redis, the transaction has ended.
    pub(super) fn abort(&mut self, number: Option<usize>, error: &CommandError) {
        self.queue = None;
        self.unwatch();
        self.refuse(number, &aborted(&error.text()));
    }

    /// Refuses a command that must not stand between MULTI and EXEC.
    pub(super) fn refuse_in_transaction(&mut self) {
        self.refuse(None, NOT_ALLOWED);
    }

    /// Takes a command between MULTI and EXEC.
    pub(super) fn enqueue(
        &mut self,
        number: Option<usize>,
        parsed: Result<Parsed<'_>, CommandError>,
        words: &[&[u8]],
        context: &Context<'_>,
    ) {
        if let Some(text) = refusal(number, &parsed, words, context) {
            return self.refuse(number, &text);
        }
        let command = number.unwrap_or_default();
        let is_free = self.session.login.is_free(&self.session.shared.users);
        let Some(queue) = &mut self.queue else { return };
        if !is_free && !queue.is_doomed {
            queue.keep_words(words);
        }
        let added = match parsed {
            _ if queue.is_doomed => Ok(()),
            Ok(Parsed::Data(operation)) => {
                let gives_up_count = self.session.gives_up_counts && operation.counts();
                queue.add(command, &operation, gives_up_count)
            }
            Ok(Parsed::Local(local)) => queue.add_local(command, local, words),
            Err(error) => queue.add_error(command, error.text()),
        };
        match added {
            Ok(()) => self.reply(|_, out| write_simple(out, b"QUEUED")),
            Err(too_large) => self.refuse(number, too_large.to_string().as_bytes()),
        }
    }

    /// EXEC.
    fn execute(&mut self, number: usize, context: &Context<'_>) {
        let Some(mut queue) = self.queue.take() else {
            return self.reply(|_, out| write_error(out, b"ERR EXEC without MULTI"));
        };
        queue.share_fuel();
        let condition = std::mem::take(&mut self.watched).condition();
        if queue.is_doomed {
            let text = b"EXECABORT Transaction discarded because of previous errors.";
            return self.refuse(Some(number), text);
        }
        if let Some(text) = self.forbids_queued(&queue, context.now) {
            return self.refuse(Some(number), &text);
        }
        self.changes_users |= queue.changes_users;
        let concerns_data = condition.is_some() || !queue.body.is_empty();
        if let Some(reason) = context.unavailable.filter(|_| concerns_data) {
            return self.refuse(Some(number), &aborted(reason.text().as_bytes()));
        }
        self.session.statistics.on_call(number);
        queue.commands.iter().for_each(|queued| self.session.statistics.on_call(queued.number));
        self.node_commands += queue.of_node;
        let Queue { mut body, mut load, commands, .. } = queue;
        if self.is_silent {
            (body, load) = without_replies(&body);
        }
        let mut conditions = 0;
        if let Some(mut condition) = condition {
            for operation in operations(&condition).flatten() {
                load.add(&operation);
                conditions += 1;
            }
            condition.extend_from_slice(&body);
            body = condition;
        }
        if body.is_empty() {
            let asks = |queued: &Queued| matches!(queued.kind, QueuedKind::Local(command, _) if asks_registry(command));
            if !commands.iter().any(asks) {
                return self.answer_alone(&commands, context);
            }
            self.expect_transaction((None, None), number, &commands, context);
            return self.answer();
        }
        match self.schedule.add_transaction(body, load, self.session.read_policy) {
            Ok(slot) => {
                let condition = (conditions > 0).then(|| Condition {
                    before: Box::new(self.session.clone()),
                    protocol: self.session.protocol,
                    left: conditions,
                });
                self.expect_transaction((Some(slot), condition), number, &commands, context);
            }
            Err(malformed) => self.refuse(None, format!("ERR internal error: {malformed}").as_bytes()),
        }
    }

    /// Answers a transaction that concerns no data.
    fn answer_alone(&mut self, commands: &[Queued], context: &Context<'_>) {
        let mut elements = Vec::new();
        self.parts(commands, 0, context, (&mut elements, &mut Vec::new()));
        self.reply(|_, out| {
            write_array(out, commands.len());
            out.extend_from_slice(&elements);
        });
    }

    /// From now on the reply to a transaction that has been submitted is waited for.
    fn expect_transaction(
        &mut self,
        (slot, condition): (Option<u64>, Option<Condition>),
        number: usize,
        commands: &[Queued],
        context: &Context<'_>,
    ) {
        let (mut elements, mut requests) = (Vec::new(), Vec::new());
        let into = (&mut elements, &mut requests);
        let mut parts = self.parts(commands, slot.unwrap_or(0), context, into);
        if self.is_silent {
            elements.clear();
            parts.clear();
        }
        self.held.tail().extend_from_slice(&elements);
        self.transactions.push_back(Transaction {
            slot,
            command: u16::try_from(number).unwrap_or(u16::MAX),
            parts,
            local_bytes: elements.len(),
            requests,
            registry_answers: VecDeque::new(),
            is_begun: false,
            is_partial: false,
            is_silent: self.is_silent,
            condition,
        });
        self.slots.push_back(Slot::Transaction);
    }

    /// Carries out what the connection answers by itself, and appends its replies to `elements`, and what is to be asked of the
    /// registry of subscriptions to `requests`; what the elements of the array are.
    fn parts(
        &mut self,
        commands: &[Queued],
        slot: u64,
        context: &Context<'_>,
        (elements, requests): (&mut Vec<u8>, &mut Vec<MessageRequest>),
    ) -> VecDeque<Answer> {
        let mut part = |queued: &Queued| {
            let before = elements.len();
            match &queued.kind {
                QueuedKind::Operation { gives_up_count } => {
                    let protocol = self.session.protocol;
                    let shown = if *gives_up_count { Shown::NoCount } else { Shown::Reply(protocol) };
                    let command = u16::try_from(queued.number).unwrap_or(u16::MAX);
                    return Answer::Group { slot, shown, command, kept: 0 };
                }
                QueuedKind::Local(command, words) => {
                    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                    if asks_registry(*command) {
                        if let Some(request) = request_of(*command, &words, elements) {
                            requests.push(request);
                            return Answer::Registry;
                        }
                        return Answer::Local { bytes: elements.len() - before };
                    }
                    // Nothing that is queued closes the connection.
                    connection_commands::answer(*command, &words, &mut self.session, context, elements);
                }
                QueuedKind::Error(text) => write_error(elements, text),
            }
            Answer::Local { bytes: elements.len() - before }
        };
        commands.iter().map(&mut part).collect()
    }

    /// Writes what comes next of the reply to the first transaction.
    pub(super) fn answer_transaction(&mut self) -> Written {
        let has_asked = self.has_transaction_asked();
        let Some(transaction) = self.transactions.front_mut() else { return Written::Whole };
        if !transaction.is_begun {
            if has_asked {
                return Written::Nothing;
            }
            if let Some(slot) = transaction.slot {
                match self.schedule.end_of(slot) {
                    None => return Written::Nothing,
                    Some(GroupEnd::Failure) => return self.answer_as_one(),
                    Some(GroupEnd::Replies) => {}
                }
                let pending = transaction.condition.as_mut().filter(|condition| condition.left > 0);
                if let Some(condition) = pending {
                    while condition.left > 0 {
                        let mut answer = Vec::new();
                        self.schedule.answer(slot, condition.protocol, &mut answer);
                        if !answer.starts_with(b"+") {
                            return self.answer_as_one();
                        }
                        condition.left -= 1;
                    }
                }
            }
            if !transaction.requests.is_empty() {
                // It holds, and is not looked at again.
                transaction.condition = None;
                let requests = std::mem::take(&mut transaction.requests);
                self.ask_for_transaction(requests);
                return Written::Nothing;
            }
            if transaction.is_silent {
                transaction.condition = None;
                return self.answer_as_one();
            }
            transaction.is_begun = true;
            let command = transaction.command;
            let took = transaction.slot.and_then(|slot| self.schedule.transaction_took(slot));
            write_array(self.output.tail(), transaction.parts.len());
            self.on_time(usize::from(command), took.unwrap_or_default(), || vec![b"EXEC".to_vec()]);
        }
        let next =
            self.transactions.front().and_then(|next| Some((next.parts.front().copied()?, next.is_partial)));
        if let Some((part, is_partial)) = next {
            let written = self.answer_one(part, is_partial);
            let Some(transaction) = self.transactions.front_mut() else { return Written::Whole };
            transaction.is_partial = written == Written::Part;
            if written == Written::Whole {
                transaction.parts.pop_front();
            }
        }
        if self.transactions.front().is_none_or(|transaction| transaction.parts.is_empty()) {
            self.transactions.pop_front();
            return Written::Whole;
        }
        Written::Part
    }

    /// What the registry has answered to the first transaction, each an element of its reply.
    pub(super) fn take_registry_answers(&mut self, answers: VecDeque<Vec<u8>>) {
        if let Some(transaction) = self.transactions.front_mut() {
            transaction.registry_answers = answers;
        }
    }

    /// The next element of the reply to the first transaction that the registry has given.
    pub(super) fn next_registry_answer(&mut self) -> Option<Vec<u8>> {
        self.transactions.front_mut()?.registry_answers.pop_front()
    }

    /// Answers the first transaction, which has ended, with one error, with nil, or not at all. If it has executed nothing,
    /// nothing is left of what the connection has answered by itself.
    fn answer_as_one(&mut self) -> Written {
        let Some(transaction) = self.transactions.pop_front() else { return Written::Whole };
        let Transaction { slot, command, local_bytes, is_silent, condition, .. } = transaction;
        self.held.take(local_bytes);
        let out = self.output.tail();
        let start = out.len();
        match (slot.and_then(|slot| self.schedule.take_end(slot)), &condition) {
            (Some(Completion::Done | Completion::Reply(_)) | None, Some(condition)) => {
                write_nil_array(out, condition.protocol);
            }
            // It has been executed, and nobody wants to know.
            (Some(Completion::Done | Completion::Reply(_)) | None, None) => {}
            (Some(failure), _) => write_failure(&failure, out),
        }
        if let Some(condition) = condition {
            self.session = *condition.before;
        }
        if is_silent {
            out.truncate(start);
        } else {
            self.session.statistics.on_reply(usize::from(command), Protocol::Resp2, &out[start..]);
        }
        Written::Whole
    }
}

/// Why a command may not be queued, if it may not.
fn refusal(
    number: Option<usize>,
    parsed: &Result<Parsed<'_>, CommandError>,
    words: &[&[u8]],
    context: &Context<'_>,
) -> Option<Vec<u8>> {
    let spec = number.and_then(|number| commands().get(number));
    match parsed {
        Ok(Parsed::Data(_)) => context.unavailable.map(|reason| reason.text().into()),
        Ok(Parsed::Local(command)) => {
            let unavailable = context.unavailable.filter(|reason| reason.forbids(*command));
            let is_client =
                |name: &[u8]| *command == ConnectionCommand::Client && words[1].eq_ignore_ascii_case(name);
            let is_alone = is_client(b"reply") || is_client(b"unblock") || is_subscription(*command);
            unavailable
                .map(|reason| reason.text().into())
                .or_else(|| connection_commands::subcommand_error(spec?, words))
                .or_else(|| {
                    spec.is_some_and(|spec| spec.flags.contains(&"no_multi")).then(|| NOT_ALLOWED.to_vec())
                })
                .or_else(|| connection_commands::asks_process(*command, words).then(|| NOT_ALLOWED.to_vec()))
                .or_else(|| is_alone.then(|| NOT_ALLOWED.to_vec()))
        }
        Err(CommandError::Unknown { .. } | CommandError::UnknownSubcommand { .. }) => {
            parsed.as_ref().err().map(CommandError::text)
        }
        Err(error) if spec.is_none_or(|spec| !spec.accepts(words.len())) => Some(error.text()),
        // What else is wrong Redis says when the transaction is executed.
        Err(_) => connection_commands::subcommand_error(spec?, words),
    }
}

/// The error that says why a transaction is given up.
pub(super) fn aborted(reason: &[u8]) -> Vec<u8> {
    let reason = reason.strip_prefix(b"ERR ").unwrap_or(reason);
    [b"EXECABORT Transaction discarded because of: ", reason].concat()
}

/// The body of which nobody is told what it finds: without its reads, and its updates are blind.
fn without_replies(body: &[u8]) -> (Vec<u8>, Load) {
    let (mut blind, mut load) = (Vec::with_capacity(body.len()), Load::default());
    for operation in operations(body).flatten().filter(|operation| operation.class() != Class::Read) {
        let operation = Operation { blind: true, ..operation };
        operation.encode(&mut blind);
        load.add(&operation);
    }
    (blind, load)
}
