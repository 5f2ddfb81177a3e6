//! How a body is executed over the databases of an engine. What each of its operations does stands with the operation.

use crate::access::{Databases, DatabasesMut, KeysMut as _};
use crate::describe::operations;
use crate::error::ExecutionError;
use crate::families::definition::{ExecutionResult, View};
use crate::families::{Command, Unchanged};
use crate::limits::REPLY_BYTES_MAX;
use crate::operation::Operation;
use crate::primitive::Malformed;
use crate::reply::{put_error, put_ok};
use crate::script_execution;
use crate::user_execution;
use syros_types::WallTime;
use syros_types::limits::BODY_BYTES_MAX;

/// Executes a body at log time `time`, and appends one encoded reply per operation to `reply`; behind a condition that does
/// not hold ([`Unchanged`]) nothing is executed, and there are no replies. A malformed body is
/// answered by a single error and changes nothing.
pub fn apply<D: DatabasesMut>(databases: &mut D, time: WallTime, body: &[u8], reply: &mut Vec<u8>) {
    let view = View { is_of_member: false, ..view(time, reply) };
    match check(body) {
        Ok((first, false)) => apply_one(databases, view, &first, reply),
        Ok((_, true)) => {
            for operation in operations(body).flatten() {
                let start = reply.len();
                apply_one(databases, view, &operation, reply);
                if matches!(operation.command, Command::Unchanged(_)) && !Unchanged::holds(&reply[start..]) {
                    return;
                }
            }
        }
        Err(_) => put_error(reply, ExecutionError::Malformed.text().as_bytes()),
    }
}

/// Executes a body of reads, and appends one encoded reply per operation to `reply`: an error for an operation that is no
/// read. `now` is not before log time. A malformed body is answered by a single error.
pub fn read<D: Databases>(databases: &D, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
    let view = view(now, reply);
    match check(body) {
        Ok((first, false)) => read_one(databases, view, &first, reply),
        Ok((_, true)) => {
            for operation in operations(body).flatten() {
                read_one(databases, view, &operation, reply);
            }
        }
        Err(_) => put_error(reply, ExecutionError::Malformed.text().as_bytes()),
    }
}

/// What the operations of a body see at `now`, whose replies start after `reply`.
const fn view(now: WallTime, reply: &[u8]) -> View {
    View { now, draw: now.0, is_of_member: true, reply_end: reply.len() + REPLY_BYTES_MAX }
}

/// The first operation of a body, and whether there are more; fails if any is malformed.
fn check(body: &[u8]) -> Result<(Operation<'_>, bool), Malformed> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Malformed::TooLong { length: body.len() as u64, limit: BODY_BYTES_MAX as u64 });
    }
    let mut rest = body;
    let first = Operation::decode(&mut rest)?;
    if !rest.is_empty() {
        operations(body).try_for_each(|operation| operation.map(drop))?;
    }
    Ok((first, !rest.is_empty()))
}

/// Executes one operation at log time `view.now` and appends its reply.
fn apply_one<D: DatabasesMut>(databases: &mut D, view: View, operation: &Operation<'_>, reply: &mut Vec<u8>) {
    let start = reply.len();
    let command = &operation.command;
    if operation.blind
        && let Some((key, operand)) = command.operand()
        && databases.database_mut(operation.database).merge(key, view.now.as_millis(), operand)
    {
        return put_ok(reply);
    }
    // An operation that answers OK alone is executed in any case: it cannot add much.
    let outcome = if start > view.reply_end && !operation.class().is_nilext() {
        Err(ExecutionError::ReplyTooLong)
    } else {
        apply_above(databases, view, operation, reply)
            .unwrap_or_else(|| command.apply(databases, operation.database, view, reply))
    };
    if operation.blind {
        reply.truncate(start);
        put_ok(reply);
    } else {
        replace_error(outcome, start, reply);
        // What an update without a state to return has done stands in the log.
        if !command.is_read()
            && !operation.class().is_nilext()
            && let Some(effects) = databases.effects_mut()
        {
            effects.add_reply(&reply[start..]);
        }
    }
}

/// Executes what stands above the families of commands; `None` of all other operations.
#[inline]
fn apply_above<D: DatabasesMut>(
    databases: &mut D,
    view: View,
    operation: &Operation<'_>,
    reply: &mut Vec<u8>,
) -> Option<ExecutionResult> {
    match &operation.command {
        Command::UserSet(set) => user_execution::set(databases, set, reply),
        Command::UserDelete(delete) => user_execution::delete(databases, delete, reply),
        Command::UserLook(look) => user_execution::look(databases, look, reply),
        _ => return script_execution::apply(databases, view.now, operation, reply),
    }
    Some(Ok(()))
}

/// The same of what must only read.
#[inline]
fn read_above<D: Databases>(
    databases: &D,
    view: View,
    operation: &Operation<'_>,
    reply: &mut Vec<u8>,
) -> Option<ExecutionResult> {
    let Command::UserLook(look) = &operation.command else {
        return script_execution::read(databases, view, operation, reply);
    };
    user_execution::look(databases, look, reply);
    Some(Ok(()))
}

/// Executes one operation that must only read and appends its reply.
fn read_one<D: Databases>(databases: &D, view: View, operation: &Operation<'_>, reply: &mut Vec<u8>) {
    let start = reply.len();
    let outcome = if start > view.reply_end {
        Err(ExecutionError::ReplyTooLong)
    } else {
        read_above(databases, view, operation, reply)
            .unwrap_or_else(|| operation.command.read(databases, operation.database, view, reply))
    };
    replace_error(outcome, start, reply);
}

/// If the operation failed, replaces what it added to `reply` after `start` by the error.
fn replace_error(outcome: ExecutionResult, start: usize, reply: &mut Vec<u8>) {
    if let Err(error) = outcome {
        reply.truncate(start);
        put_error(reply, error.text().as_bytes());
    }
}
