//! What the clients were told, as the checker wants it.

use crate::history::{History, Invocation};
use crate::workload::Step;
use syros_checker::history::{History as Judged, Input, Output};
use syros_checker::linearizability::{Verdict, check};
use syros_commands::Reply;
use syros_protocol::client::Outcome;

/// Whether the history is linearizable.
///
/// # Errors
/// Why not, or why nobody can tell, in words.
pub(crate) fn judge(history: &History) -> Result<(), String> {
    match check(&translate(history)?) {
        Verdict::Linearizable => Ok(()),
        Verdict::Violation { keys, explanation } => {
            Err(format!("the history is not linearizable on keys {keys:?}:\n{explanation}"))
        }
        Verdict::Undecided { keys, steps } => {
            Err(format!("the checker cannot decide the history of keys {keys:?} in {steps} steps"))
        }
    }
}

/// The history in the checker's terms.
fn translate(history: &History) -> Result<Judged, String> {
    let mut judged = Judged::new();
    for (number, invocation) in history.operations().iter().enumerate() {
        let input = match invocation.steps.as_slice() {
            [step] => input(step),
            steps => Input::Batch(steps.iter().map(input).collect()),
        };
        let index = judged
            .invoke(invocation.client, invocation.invoked, input)
            .map_err(|error| error.to_string())?;
        let Some(finished) = &invocation.finished else { continue };
        let result = match &finished.outcome {
            Outcome::Done => judged.acknowledge(index, finished.order, Output::Done),
            Outcome::Reply(body) => {
                let output = output(invocation, body).ok_or_else(|| {
                    format!("operation {number}, {:?}, was answered {}", invocation.steps, body.escape_ascii())
                })?;
                judged.acknowledge(index, finished.order, output)
            }
            Outcome::Refused(_) | Outcome::TimedOut => judged.fail(index),
            Outcome::Unknown => Ok(()),
        };
        result.map_err(|error| format!("operation {number}, {:?}: {error}", invocation.steps))?;
    }
    Ok(judged)
}

fn input(step: &Step) -> Input {
    let name = |key: &u64| *key as u32;
    match step {
        Step::Get(key) => Input::Get(name(key)),
        Step::MGet(keys) => Input::GetMany(keys.iter().map(name).collect()),
        Step::Set(key, value) => Input::Set(name(key), value.clone()),
        Step::GetSet(key, value) => Input::Exchange(name(key), value.clone()),
        Step::SetNx(key, value) => Input::SetIfAbsent(name(key), value.clone()),
        Step::MSet(pairs) => {
            Input::SetMany(pairs.iter().map(|(key, value)| (name(key), value.clone())).collect())
        }
        Step::IncrBy { key, delta, .. } => Input::Increment(name(key), *delta),
        Step::Append { key, value, .. } => Input::Append(name(key), value.clone()),
        Step::Del { key, .. } => Input::Delete(name(key)),
    }
}

/// What a reply says to the operation's steps; `None` if it is no answer to them.
fn output(invocation: &Invocation, body: &[u8]) -> Option<Output> {
    let replies = Reply::decode_all(body).ok()?;
    if replies.len() != invocation.steps.len() {
        return None;
    }
    let mut outputs: Vec<Output> =
        invocation.steps.iter().zip(replies).map(|(step, reply)| answer(step, reply)).collect::<Option<_>>()?;
    if outputs.len() == 1 { outputs.pop() } else { Some(Output::Batch(outputs)) }
}

fn answer(step: &Step, reply: Reply) -> Option<Output> {
    Some(match (step, reply) {
        (_, Reply::Ok) => Output::Done,
        (Step::Get(_) | Step::GetSet(..), reply) => Output::Value(value(reply)?),
        (Step::MGet(_), Reply::Array(replies)) => {
            Output::Values(replies.into_iter().map(value).collect::<Option<_>>()?)
        }
        (Step::SetNx(..) | Step::Del { .. }, Reply::Integer(flag @ (0 | 1))) => Output::Flag(flag == 1),
        (Step::IncrBy { .. } | Step::Append { .. }, Reply::Integer(number)) => Output::Number(number),
        (Step::IncrBy { .. }, Reply::Error(_)) => Output::Error,
        _ => return None,
    })
}

fn value(reply: Reply) -> Option<Option<Vec<u8>>> {
    match reply {
        Reply::Nil => Some(None),
        Reply::Bulk(bytes) => Some(Some(bytes)),
        _ => None,
    }
}
