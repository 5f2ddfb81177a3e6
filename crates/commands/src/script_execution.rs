//! Executes scripts and functions, and what they call.
//!
//! It stands above the families, because what a script calls may be any command: its words are parsed, and executed on the
//! databases that the script runs on. Scripts do not run scripts.

use crate::access::{Databases, DatabasesMut, Keys as _, KeysMut as _};
use crate::acl::{CallingUser, NamedUser, Users};
use crate::error::{ExecutionError, NO_MEMORY};
use crate::example::put_example;
use crate::families::definition::{ExecutionResult, View};
use crate::families::script_name;
use crate::families::specification::{CommandKind, CommandSpec};
use crate::families::{
    Abilities, Command, ConnectionCommand, Eval, EvalRo, EvalSha, EvalShaRo, FCall, FCallRo, RunTerms,
    ScriptCall, ScriptInput,
};
use crate::limits::{MESSAGE_BYTES, REPLY_BYTES_MAX, SCRIPT_MESSAGES_BYTES_MAX, UPDATE_REPLY_BYTES_MAX};
use crate::operation::{KEY_WORK, Operation};
use crate::parse::{Parsed, parse};
use crate::programs::Programs;
use crate::reply::{
    Double, PairsRef, ReplyRef, put_array, put_big_number, put_boolean, put_bulk, put_double, put_error,
    put_integer, put_map, put_nil, put_pairs, put_set, put_simple, put_verbatim,
};
use crate::table::lookup;
use crate::words::{database as parse_database, is};
use std::collections::BTreeSet;
use std::sync::Arc;
use syros_scripts::{Flags, Host, Input, Limits, Outcome, Reply};
use syros_types::{Database, SubscriptionKind, WallTime, mix};

/// Bytes that an operation touches for one unit of fuel.
const BYTES_PER_UNIT: usize = 16;

/// What a script runs on.
trait Target {
    /// Executes an operation in its database.
    fn execute(&mut self, operation: &Operation<'_>, view: View, reply: &mut Vec<u8>) -> ExecutionResult;

    /// See [`Operation::work_on`].
    fn work_on(&self, operation: &Operation<'_>) -> usize;

    /// See [`Operation::bytes_gone_through`].
    fn bytes_gone_through(&self, operation: &Operation<'_>) -> usize;

    /// See [`Operation::keys_gone_through`].
    fn keys_gone_through(&self, operation: &Operation<'_>) -> usize;

    /// What is answered next depends on when that is.
    fn before_time(&self);

    /// Publishes a message.
    fn publish(&mut self, message: &Message);

    /// Undoes all that has been executed, or lets it be.
    fn end(&mut self, keeps: bool);
}

/// What a script publishes: it is told when the script has ended and is not undone.
struct Message {
    kind: SubscriptionKind,
    channel: Vec<u8>,
    payload: Vec<u8>,
}

/// Keys that a script can change.
struct Writer<'a, D> {
    databases: &'a mut D,
    /// The database of the client that calls it.
    database: Database,
    /// The databases in which something may have been changed.
    changed: BTreeSet<Database>,
}

impl<D: DatabasesMut> Target for Writer<'_, D> {
    fn execute(&mut self, operation: &Operation<'_>, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let Operation { command, database, .. } = operation;
        if !command.is_read() && self.changed.insert(*database) {
            self.databases.database_mut(*database).begin_undo();
        }
        let outcome = command.apply(self.databases, *database, view, reply);
        if !command.is_read()
            && let Some(effects) = self.databases.effects_mut()
        {
            let mut encoded = Vec::new();
            operation.encode(&mut encoded);
            effects.add_call(&encoded, reply);
        }
        outcome
    }

    fn work_on(&self, operation: &Operation<'_>) -> usize {
        operation.work_on(&*self.databases)
    }

    fn bytes_gone_through(&self, operation: &Operation<'_>) -> usize {
        operation.bytes_gone_through(&*self.databases)
    }

    fn keys_gone_through(&self, operation: &Operation<'_>) -> usize {
        operation.keys_gone_through(&*self.databases)
    }

    fn before_time(&self) {
        self.databases.database(self.database).before_draw();
    }

    fn publish(&mut self, Message { kind, channel, payload }: &Message) {
        self.databases.database_mut(Database::FIRST).publish(*kind, channel, payload);
    }

    fn end(&mut self, keeps: bool) {
        for database in &self.changed {
            self.databases.database_mut(*database).end_undo(keeps);
        }
    }
}

/// Keys that a script can only read.
struct Reader<'a, D> {
    databases: &'a D,
    database: Database,
}

impl<D: Databases> Target for Reader<'_, D> {
    fn execute(&mut self, operation: &Operation<'_>, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        operation.command.read(self.databases, operation.database, view, reply)
    }

    fn work_on(&self, operation: &Operation<'_>) -> usize {
        operation.work_on(self.databases)
    }

    fn bytes_gone_through(&self, operation: &Operation<'_>) -> usize {
        operation.bytes_gone_through(self.databases)
    }

    fn keys_gone_through(&self, operation: &Operation<'_>) -> usize {
        operation.keys_gone_through(self.databases)
    }

    fn before_time(&self) {
        self.databases.database(self.database).before_draw();
    }

    /// What only reads publishes nothing.
    fn publish(&mut self, _message: &Message) {}

    fn end(&mut self, _keeps: bool) {}
}

/// What is to be run.
enum Program<'a> {
    /// A script that stands in the operation.
    Text(&'a [u8]),
    /// A script that has been loaded.
    Script(Arc<[u8]>),
    /// A function of a library with this text.
    Function(Arc<[u8]>, String),
}

/// How something is run.
struct Run<'a> {
    program: Program<'a>,
    /// What the client calls it.
    called: &'a [u8],
    flags: Flags,
    input: ScriptInput<'a>,
    /// Units of fuel.
    fuel: u64,
    seed: u64,
    terms: RunTerms,
    /// Whose rights it needs; `None` if nothing is to be checked.
    caller: Option<NamedUser>,
}

/// Executes an operation that runs something, at all members; `None` of all other operations.
pub(crate) fn apply<D: DatabasesMut>(
    databases: &mut D,
    now: WallTime,
    operation: &Operation<'_>,
    reply: &mut Vec<u8>,
) -> Option<ExecutionResult> {
    let view = View { now, draw: now.0, is_of_member: false, reply_end: REPLY_BYTES_MAX };
    let run = match operation.command {
        Command::Eval(Eval { call, seed, fuel, loads, terms }) => {
            let text = call.subject();
            let run = flags_of(text).map(|flags| {
                let owns_everything = terms.owns_everything || flags.undeclared_keys;
                let terms = RunTerms { owns_everything, ..terms };
                let (program, input) = (Program::Text(text), call.input());
                Run { program, called: b"", flags, input, fuel, seed, terms, caller: None }
            });
            if loads && run.is_ok() && syros_scripts::check(text).is_ok() {
                let mut programs = databases.programs();
                programs.load(text);
                databases.set_programs(programs);
            }
            run
        }
        Command::EvalSha(EvalSha { call, seed, fuel, terms }) => {
            loaded_script(&databases.programs(), call, (fuel, seed), terms)
        }
        Command::FCall(FCall { call, seed, fuel, terms }) => {
            loaded_function(&databases.programs(), call, (fuel, seed), terms)
        }
        // Among updates, what only reads is executed by all members, too.
        _ => return read(databases, view, operation, reply),
    };
    let run = run.and_then(|run| called_by(run, &databases.programs(), operation));
    Some(match run {
        Ok(run) => {
            let database = operation.database;
            let writer = Writer { databases, database, changed: BTreeSet::new() };
            start((writer, database), view, &run, false, reply)
        }
        Err(problem) => {
            put_error(reply, problem.as_bytes());
            Ok(())
        }
    })
}

/// Executes an operation that runs something which must change nothing; `None` of all other operations.
pub(crate) fn read<D: Databases>(
    databases: &D,
    view: View,
    operation: &Operation<'_>,
    reply: &mut Vec<u8>,
) -> Option<ExecutionResult> {
    let seed = view.draw;
    let run = match operation.command {
        Command::EvalRo(EvalRo { call, fuel, owns_everything, .. }) => {
            flags_of(call.subject()).map(|flags| Run {
                program: Program::Text(call.subject()),
                called: b"",
                flags,
                input: call.input(),
                fuel,
                seed,
                terms: reading(owns_everything || flags.undeclared_keys),
                caller: None,
            })
        }
        Command::EvalShaRo(EvalShaRo { call, fuel, owns_everything, .. }) => {
            loaded_script(&databases.programs(), call, (fuel, seed), reading(owns_everything))
        }
        Command::FCallRo(FCallRo { call, fuel, owns_everything, .. }) => {
            loaded_function(&databases.programs(), call, (fuel, seed), reading(owns_everything))
        }
        _ => return None,
    };
    let run = run.and_then(|run| called_by(run, &databases.programs(), operation));
    Some(match run {
        Ok(run) if run.flags.has_line && !run.flags.no_writes => {
            put_error(reply, b"ERR Can not execute a script with write flag using *_ro command.");
            Ok(())
        }
        Ok(run) => {
            let view = View { reply_end: REPLY_BYTES_MAX, ..view };
            let database = operation.database;
            start((Reader { databases, database }, database), view, &run, true, reply)
        }
        Err(problem) => {
            put_error(reply, problem.as_bytes());
            Ok(())
        }
    })
}

/// The terms of something that only reads.
const fn reading(owns_everything: bool) -> RunTerms {
    // One member runs it, or it stands beside updates, where builds that cannot count so run none.
    RunTerms {
        owns_everything,
        lacks_memory: false,
        debugs: false,
        abilities: Abilities::ALL,
        user: CallingUser::NOBODY,
    }
}

/// The same for the user that the operation names; the text of an error if there is no such user any more.
fn called_by<'a>(run: Run<'a>, programs: &Programs, operation: &Operation<'_>) -> Result<Run<'a>, String> {
    let Some(number) = operation.user().number() else { return Ok(run) };
    match Users::one_of(programs, number) {
        Some(caller) => Ok(Run { caller: Some(caller), ..run }),
        None => Err("NOPERM The user who calls the script does not exist any more".to_owned()),
    }
}

/// What a script says about itself, or what is wrong with that.
fn flags_of(text: &[u8]) -> Result<Flags, String> {
    Flags::of_script(text).map_err(|problem| problem.to_string())
}

/// The script that a client calls so; the text of an error if it has not been loaded.
fn loaded_script<'a>(
    programs: &Programs,
    call: ScriptCall<'a>,
    (fuel, seed): (u64, u64),
    terms: RunTerms,
) -> Result<Run<'a>, String> {
    let called = call.subject();
    let text = script_name(called).and_then(|name| programs.script(&name));
    let text = text.ok_or_else(|| "NOSCRIPT No matching script. Please use EVAL.".to_owned())?;
    let flags = flags_of(&text)?;
    let program = Program::Script(text);
    Ok(Run { program, called, flags, input: call.input(), fuel, seed, terms, caller: None })
}

/// The function that a client calls so; the text of an error if it has not been loaded.
fn loaded_function<'a>(
    programs: &Programs,
    call: ScriptCall<'a>,
    (fuel, seed): (u64, u64),
    terms: RunTerms,
) -> Result<Run<'a>, String> {
    let called = call.subject();
    let found = core::str::from_utf8(called).ok().and_then(|name| programs.function(name));
    let (library, function) = found.ok_or_else(|| "ERR Function not found".to_owned())?;
    let program = Program::Function(Arc::clone(&library.text), function.name.clone());
    let flags = function.flags();
    Ok(Run { program, called, flags, input: call.input(), fuel, seed, terms, caller: None })
}

fn start<T: Target>(
    (target, database): (T, Database),
    view: View,
    run: &Run<'_>,
    is_read: bool,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
    if run.flags.undeclared_keys && !run.terms.owns_everything {
        // A node that sees this knows it the next time.
        let is_function = matches!(run.program, Program::Function(..));
        let kind: &[u8] = if is_function { b"function " } else { b"script " };
        let text: &[u8] = b" may touch any key, which this node did not know";
        put_error(reply, &[b"TRYAGAIN ", kind, run.called, text].concat());
        return Ok(());
    }
    let lacks_memory = run.terms.lacks_memory && !run.flags.out_of_memory;
    if lacks_memory && run.flags.has_line && !run.flags.no_writes {
        put_error(reply, NO_MEMORY.as_bytes());
        return Ok(());
    }
    let keys: Vec<&[u8]> = run.input.keys.iter().collect();
    let arguments: Vec<&[u8]> = run.input.arguments.iter().collect();
    let input = Input { keys: &keys, arguments: &arguments };
    let abilities = run.terms.abilities;
    let limits = Limits {
        fuel: run.fuel,
        seed: run.seed,
        counts_script_alone: abilities.has(Abilities::COUNTS_SCRIPT_ALONE),
    };
    let mut runner = Runner {
        target,
        home: database,
        database,
        view,
        declared: (!run.terms.owns_everything).then(|| keys.iter().copied().collect()),
        is_read: is_read || run.flags.no_writes,
        lacks_memory,
        caller: run.caller.as_ref(),
        debugs: run.terms.debugs,
        counts_whole_values: abilities.has(Abilities::COUNTS_WHOLE_VALUES),
        counts_keys: abilities.has(Abilities::COUNTS_KEYS),
        tells_rights: abilities.has(Abilities::TELLS_RIGHTS),
        seed: run.seed,
        calls: 0,
        messages: Vec::new(),
        message_bytes: 0,
        doom: None,
    };
    let outcome = match &run.program {
        Program::Text(text) => syros_scripts::run(text, input, limits, &mut runner),
        Program::Script(text) => syros_scripts::run(text, input, limits, &mut runner),
        Program::Function(text, name) => syros_scripts::call(text, name, input, limits, &mut runner),
    };
    let begin = reply.len();
    match (runner.doom, outcome) {
        (Some(doom), _) => {
            runner.target.end(false);
            put_error(reply, &doom);
        }
        (None, Outcome::OutOfFuel) => {
            runner.target.end(false);
            let fuel = run.fuel;
            put_error(
                reply,
                format!("ERR the script has used up its {fuel} units of fuel and was undone").as_bytes(),
            );
        }
        (None, Outcome::Reply(answer)) => {
            put_reply(reply, &answer);
            let is_too_long = reply.len() - begin > UPDATE_REPLY_BYTES_MAX;
            runner.target.end(!is_too_long);
            if is_too_long {
                return Err(ExecutionError::UpdateReplyTooLong);
            }
            runner.messages.iter().for_each(|message| runner.target.publish(message));
        }
    }
    Ok(())
}

struct Runner<'a, T> {
    target: T,
    /// The database of the client.
    home: Database,
    /// The one that the script has chosen: the client's at first.
    database: Database,
    view: View,
    /// The keys of the client's database that may be touched, if not all of all databases.
    declared: Option<BTreeSet<&'a [u8]>>,
    is_read: bool,
    /// The data may not grow.
    lacks_memory: bool,
    /// Who needs the right to run what is called.
    caller: Option<&'a NamedUser>,
    /// It may call DEBUG.
    debugs: bool,
    /// See [`Abilities`].
    counts_whole_values: bool,
    counts_keys: bool,
    /// It is told which commands the caller may run.
    tells_rights: bool,
    seed: u64,
    calls: u64,
    messages: Vec<Message>,
    message_bytes: usize,
    /// Why all is undone.
    doom: Option<Vec<u8>>,
}

/// A refusal that a script can catch.
fn refused(text: &[u8]) -> (Reply, u64) {
    (Reply::Error(text.to_vec()), 0)
}

impl<T: Target> Runner<'_, T> {
    /// Whether the caller may run a command: 1, or nothing.
    fn may_call(&self, words: &[&[u8]]) -> Reply {
        if !self.tells_rights {
            return Reply::Integer(1);
        }
        if words.first().and_then(|name| lookup(name)).is_none() {
            return Reply::Error(b"ERR Invalid command passed to server.acl_check_cmd()".to_vec());
        }
        match self.caller.map_or(Ok(()), |caller| caller.user().check(words)) {
            Ok(()) => Reply::Integer(1),
            Err(_) => Reply::Nil,
        }
    }
}

impl<T: Target> Host for Runner<'_, T> {
    fn call(&mut self, words: &[&[u8]], is_newer: bool, fuel: u64) -> (Reply, u64) {
        if let [syros_scripts::RIGHTS_QUESTION, words @ ..] = words {
            return (self.may_call(words), 0);
        }
        let Some(spec) = words.first().and_then(|name| lookup(name)) else {
            return refused(b"ERR Unknown command called from script");
        };
        if !spec.accepts(words.len()) {
            return refused(b"ERR Wrong number of args calling command from script");
        }
        // As by Valkey 8, commands that wait are executed. They do not wait.
        let is_debug = spec.local == Some(ConnectionCommand::Debug);
        let is_allowed = spec.flags.contains(&"blocking") || is_wait(spec) || (self.debugs && is_debug);
        let is_refused = spec.flags.contains(&"noscript") && !is_allowed;
        let is_of_users = spec.local == Some(ConnectionCommand::Acl);
        if is_refused || is_of_users || spec.group == "scripting" || spec.kind == CommandKind::Blind {
            return refused(NOT_ALLOWED);
        }
        if let Some(caller) = self.caller
            && let Err(denial) = caller.user().check(words)
        {
            let sentence = denial.sentence(caller.name(), false);
            return refused(&[b"ERR ACL failure in script: ", &sentence[..]].concat());
        }
        match parse(words) {
            Err(error) => refused(&error.text()),
            Ok(Parsed::Local(command @ (ConnectionCommand::Publish | ConnectionCommand::SPublish))) => {
                let is_shard = command == ConnectionCommand::SPublish;
                let kind = if is_shard { SubscriptionKind::Shard } else { SubscriptionKind::Channel };
                self.publish(kind, words)
            }
            Ok(Parsed::Local(command)) => (self.local(command, words, is_newer), 0),
            Ok(Parsed::Data(mut operation)) => {
                if self.is_read && !operation.command.is_read() {
                    return refused(READ_ONLY);
                }
                operation = operation.in_database(self.database);
                if !operation.command.is_read() && !concerns_only(&operation, self.database) {
                    return refused(NOT_ALLOWED);
                }
                self.calls += 1;
                let draw = mix(self.seed.wrapping_add(self.calls));
                if let Some(seed) = operation.seed_mut() {
                    *seed = draw;
                }
                if let Some(now_ms) = operation.now_mut() {
                    *now_ms = self.view.now.as_millis();
                }
                if let Some(key) = self.undeclared(&operation) {
                    self.doom = Some(key);
                    return refused(b"");
                }
                if self.lacks_memory && spec.flags.contains(&"denyoom") {
                    return refused(NO_MEMORY.as_bytes());
                }
                // Once it has begun to change something, all of that is to be done.
                self.lacks_memory &= operation.command.is_read();
                self.execute(&operation, draw, is_newer, fuel)
            }
        }
    }

    fn is_doomed(&self) -> bool {
        self.doom.is_some()
    }
}

/// True for WAIT and WAITAOF.
fn is_wait(spec: &CommandSpec) -> bool {
    let wait = [ConnectionCommand::Wait, ConnectionCommand::WaitAof];
    wait.iter().any(|command| spec.kind == CommandKind::Local(*command))
}

/// True if an update names keys, and those are of this database: what scripts may undo.
fn concerns_only(operation: &Operation<'_>, database: Database) -> bool {
    let mut is_of_one = true;
    let names_keys = operation.each_key(|key| is_of_one &= key.database == database);
    names_keys && is_of_one
}

/// What Redis says of commands that scripts cannot call.
const NOT_ALLOWED: &[u8] = b"ERR This Redis command is not allowed from script";

/// What Redis says of updates in scripts that must only read, and of messages.
const READ_ONLY: &[u8] = b"ERR Write commands are not allowed from read-only scripts.";

impl<T: Target> Runner<'_, T> {
    /// PUBLISH or SPUBLISH. All replicas execute the script and must answer the same, but each knows of other subscribers: so
    /// the answer is that there are none.
    fn publish(&mut self, kind: SubscriptionKind, words: &[&[u8]]) -> (Reply, u64) {
        if self.is_read {
            return refused(READ_ONLY);
        }
        let &[_, channel, payload] = words else { return refused(NOT_ALLOWED) };
        let bytes = MESSAGE_BYTES + channel.len() + payload.len();
        if self.message_bytes + bytes > SCRIPT_MESSAGES_BYTES_MAX {
            let limit = SCRIPT_MESSAGES_BYTES_MAX;
            return refused(format!("ERR the messages of a script take at most {limit} bytes").as_bytes());
        }
        self.message_bytes += bytes;
        self.messages.push(Message { kind, channel: channel.to_vec(), payload: payload.to_vec() });
        (Reply::Integer(0), (bytes / BYTES_PER_UNIT) as u64)
    }

    /// A command that a connection answers by itself.
    fn local(&mut self, command: ConnectionCommand, words: &[&[u8]], is_newer: bool) -> Reply {
        match (command, words) {
            (ConnectionCommand::Ping, [_]) => Reply::Status(b"PONG".to_vec()),
            (ConnectionCommand::Ping | ConnectionCommand::Echo, [_, text]) => Reply::Bulk(text.to_vec()),
            (ConnectionCommand::Time, _) => {
                self.target.before_time();
                let micros = self.view.now.0;
                let part = |number: u64| Reply::Bulk(number.to_string().into_bytes());
                Reply::Array(vec![part(micros / 1_000_000), part(micros % 1_000_000)])
            }
            (ConnectionCommand::Select, [_, number]) => match parse_database(number) {
                Ok(database) => {
                    self.database = database;
                    Reply::Status(b"OK".to_vec())
                }
                Err(error) => Reply::Error(error.text()),
            },
            // The time of a script stands still: it could not tell how long it has slept.
            (ConnectionCommand::Debug, [_, name, _]) if is(name, "sleep") => Reply::Status(b"OK".to_vec()),
            (ConnectionCommand::Debug, [_, name, kind]) if is(name, "protocol") => {
                let mut encoded = Vec::new();
                match put_example(kind, &mut encoded).then(|| ReplyRef::decode(&mut &encoded[..])) {
                    Some(Ok(reply)) => to_reply(reply, is_newer),
                    _ => Reply::Error(NOT_ALLOWED.to_vec()),
                }
            }
            // Nothing is known of other members while a script is executed.
            (ConnectionCommand::Wait, _) => Reply::Integer(0),
            (ConnectionCommand::WaitAof, _) => Reply::Array(vec![Reply::Integer(0), Reply::Integer(0)]),
            _ => Reply::Error(NOT_ALLOWED.to_vec()),
        }
    }

    /// Why an operation must not be executed, if it touches a key that has not been declared.
    fn undeclared(&self, operation: &Operation<'_>) -> Option<Vec<u8>> {
        const ADVICE: &[u8] = b"begin the script with #!lua flags=allow-undeclared-keys";
        let declared = self.declared.as_ref()?;
        let mut missing = None;
        let names_keys = operation.each_key(|key| {
            let is_declared = key.database == self.home && declared.contains(key.name);
            if missing.is_none() && !is_declared {
                missing = Some(key.name);
            }
        });
        match missing {
            _ if !names_keys => {
                Some([b"ERR script tried to access keys that it cannot declare; ", ADVICE].concat())
            }
            None => None,
            Some(key) => {
                let text = b"', which was not declared; pass it in KEYS, or ";
                Some([b"ERR script tried to access key '", key, text, ADVICE].concat())
            }
        }
    }

    fn execute(&mut self, operation: &Operation<'_>, draw: u64, is_newer: bool, fuel: u64) -> (Reply, u64) {
        let mut work = operation.work();
        if self.counts_whole_values || !operation.command.was_free() {
            work = work.saturating_add(self.target.work_on(operation));
        }
        if self.counts_whole_values {
            work = work.saturating_add(self.target.bytes_gone_through(operation));
        }
        if self.counts_keys {
            work = work.saturating_add(self.target.keys_gone_through(operation).saturating_mul(KEY_WORK));
        }
        let units = (work / BYTES_PER_UNIT) as u64;
        if units > fuel {
            // It would be undone, whatever it does: a union of a thousand large sets takes seconds.
            return (Reply::Nil, units);
        }
        let mut encoded = Vec::new();
        let view = View { draw, ..self.view };
        let reply = match self.target.execute(operation, view, &mut encoded) {
            Ok(()) => {
                ReplyRef::decode(&mut &encoded[..]).map_or(Reply::Nil, |reply| to_reply(reply, is_newer))
            }
            Err(error) => Reply::Error(error.text().as_bytes().to_vec()),
        };
        (reply, units)
    }
}

/// A reply of a command as a script gets it, which speaks RESP3 or not.
fn to_reply(reply: ReplyRef<'_>, is_newer: bool) -> Reply {
    let of = |reply: ReplyRef<'_>| to_reply(reply, is_newer);
    let pairs = |pairs: PairsRef<'_>| -> Vec<(Reply, Reply)> {
        pairs.map(|(first, second)| (of(first), of(second))).collect()
    };
    match reply {
        ReplyRef::Nil | ReplyRef::NilArray | ReplyRef::Waits => Reply::Nil,
        ReplyRef::Ok => Reply::Status(b"OK".to_vec()),
        ReplyRef::Integer(integer) => Reply::Integer(integer),
        ReplyRef::Bulk(bytes) => Reply::Bulk(bytes.to_vec()),
        ReplyRef::Simple(text) => Reply::Status(text.to_vec()),
        ReplyRef::Error(text) => Reply::Error(text.to_vec()),
        ReplyRef::Double(number) => Reply::Double(number.value()),
        ReplyRef::Decimal(number) => Reply::Bulk(decimal(number)),
        ReplyRef::Boolean(flag) => Reply::Boolean(flag),
        ReplyRef::BigNumber(digits) => Reply::BigNumber(digits.to_vec()),
        ReplyRef::Verbatim(kind, text) => Reply::Verbatim(kind.to_vec(), text.to_vec()),
        ReplyRef::Array(parts) => Reply::Array(parts.map(of).collect()),
        ReplyRef::Set(members) => Reply::Set(members.map(of).collect()),
        ReplyRef::Map(map) => Reply::Map(pairs(map)),
        ReplyRef::Keyed(map) if is_newer => Reply::Map(pairs(map)),
        ReplyRef::Keyed(map) => {
            Reply::Array(pairs(map).into_iter().map(|(key, value)| Reply::Array(vec![key, value])).collect())
        }
        ReplyRef::Pairs(list) => Reply::Pairs(pairs(list)),
    }
}

/// A number with up to seventeen decimals, as text.
fn decimal(number: Double) -> Vec<u8> {
    let mut text = Vec::new();
    crate::double::write_decimal(&mut text, number.value());
    text
}

/// Appends what a script answers.
fn put_reply(out: &mut Vec<u8>, reply: &Reply) {
    let pairs = |out: &mut Vec<u8>, pairs: &[(Reply, Reply)]| {
        for (first, second) in pairs {
            put_reply(out, first);
            put_reply(out, second);
        }
    };
    match reply {
        Reply::Nil => put_nil(out),
        Reply::Status(text) => put_simple(out, text),
        Reply::Error(text) => put_error(out, text),
        Reply::Integer(integer) => put_integer(out, *integer),
        Reply::Bulk(bytes) => put_bulk(out, bytes),
        Reply::Double(number) => put_double(out, *number),
        Reply::Boolean(flag) => put_boolean(out, *flag),
        Reply::BigNumber(digits) => put_big_number(out, digits),
        Reply::Verbatim(kind, text) => put_verbatim(out, kind, text),
        Reply::Array(parts) => {
            put_array(out, parts.len());
            parts.iter().for_each(|part| put_reply(out, part));
        }
        Reply::Set(members) => {
            put_set(out, members.len());
            members.iter().for_each(|member| put_reply(out, member));
        }
        Reply::Map(map) => {
            put_map(out, map.len());
            pairs(out, map);
        }
        Reply::Pairs(list) => {
            put_pairs(out, list.len());
            pairs(out, list);
        }
    }
}
