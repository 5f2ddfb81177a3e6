//! What the clients were told, as the checker wants it.
//!
//! Deciding linearizability is NP-complete, and a run with many faults leaves many operations whose
//! outcome nobody knows. But the simulator sees the log, and the log suggests an order. So first that
//! order is put to the checker as a history without any concurrency, which it judges in linear time;
//! if its answers are right and it respects real time, the real history has an order too. Only what
//! fails this is searched for any other order.

mod ends;
mod evictions;
mod lifetimes;

pub(crate) use lifetimes::Lifetimes;

use crate::history::{Finished, History, Invocation};
use crate::invariants::{Invariants, LogPosition};
use crate::workload::{ClientCommand, collections, key_name, key_of};
use syros_checker::collections::{CollectionOperation, SetOperation};
use syros_checker::history::{History as Judged, Input, OperationIndex, Output};
use syros_checker::linearizability::{Verdict, check, check_within};
use syros_checker::transfer::Transfer;
use syros_commands::Reply;
use syros_protocol::client::Outcome;

/// Steps for the suggested order: it needs one or two for every operation.
const SUGGESTION_STEPS: u64 = 100_000;

/// Whether the history is linearizable.
///
/// # Errors
/// Why not, or why nobody can tell, in words.
pub(crate) fn judge(
    history: &History,
    invariants: &Invariants,
    lifetimes: Option<Lifetimes>,
) -> Result<(), String> {
    let mut operations = translate(history, invariants)?;
    for (number, operation) in operations.iter().enumerate() {
        let executed = history.get(number).id.and_then(|id| invariants.position(id));
        if let (Told::Failed, Some(place)) = (&operation.told, executed) {
            return Err(format!(
                "operation {number}, {:?}, ended as {:?} and is executed at {}",
                history.get(number).steps,
                history.get(number).finished.as_ref().map(|finished| &finished.outcome),
                place.number.0,
            ));
        }
    }
    for (number, invocation) in history.operations().iter().enumerate() {
        let executed = invocation.refused_ids.iter().find_map(|id| invariants.position(*id));
        if let Some(place) = executed {
            let (steps, place) = (&invocation.steps, place.number.0);
            return Err(format!(
                "operation {number}, {steps:?}, was sent once more and is executed at {place}"
            ));
        }
    }
    for (number, operation) in operations.iter_mut().enumerate() {
        operation.is_look = operation.input.is_read() || is_no_op(history, number, invariants);
    }
    operations.extend(lifetimes::ends(history, invariants, lifetimes));
    operations.extend(evictions::evictions(history, invariants));
    decide(&operations, &suggest(history, invariants, &operations))
}

/// Puts the suggested order to the checker: as it is, then with the ends of lifetimes where reads need
/// them; last, searches for any order.
fn decide(operations: &[Translated], order: &[usize]) -> Result<(), String> {
    if suggestion_holds(operations, order).is_ok() {
        return Ok(());
    }
    match suggestion_holds(operations, &ends::place_ends(operations, order)) {
        Ok(()) => Ok(()),
        Err(why_not) => search(operations, &why_not),
    }
}

/// Searches for any order, since the suggested one does not hold.
fn search(operations: &[Translated], why_not: &str) -> Result<(), String> {
    let mut judged = Judged::new();
    for operation in operations {
        let index = judged
            .invoke(operation.client, operation.invoked, operation.input.clone())
            .map_err(|error| error.to_string())?;
        match &operation.told {
            Told::Answer { at, output } => judged.acknowledge(index, *at, output.clone()),
            Told::Failed => judged.fail(index),
            Told::Nothing => Ok(()),
        }
        .map_err(|error| error.to_string())?;
    }
    for (first, then) in demanded(operations) {
        judged.order(first, then).map_err(|error| error.to_string())?;
    }
    match check(&judged) {
        Verdict::Linearizable => Ok(()),
        Verdict::Violation { keys, explanation } => {
            Err(format!("the history is not linearizable on keys {keys:?}:\n{explanation}"))
        }
        Verdict::Undecided { keys, steps } => Err(format!(
            "no order found for the history of keys {keys:?} in {steps} steps; that of the log does not \
             explain it: {why_not}"
        )),
    }
}

/// One operation in the checker's terms. Moments are twice those of the history: there is one between any two.
struct Translated {
    client: u64,
    invoked: u64,
    input: Input,
    told: Told,
    /// The connection of a Redis client that it came on, and its place on it.
    sent: Option<(u64, usize)>,
    /// For the end of a lifetime: where the log has it.
    ends_at: Option<(u64, u64)>,
    /// It has changed nothing: a look at the state has answered it. For a read that is always so.
    is_look: bool,
}

/// What its client was told.
enum Told {
    /// An answer.
    Answer { at: u64, output: Output },
    /// That it had no effect and never will.
    Failed,
    /// Nothing for certain.
    Nothing,
}

/// An operation's place in the suggested order: after this entry of the log, and the rest to break ties.
type Suggested = ((u64, u64), u64, usize);

/// The order that the log suggests: updates as they were executed, reads after the entries their
/// replica had executed, updates that a view change dropped just before what overwrote them, and what is
/// lost at the end.
fn suggest(history: &History, invariants: &Invariants, operations: &[Translated]) -> Vec<usize> {
    let at = |place: LogPosition| (place.number.0, 2 * place.index as u64 + 1);
    let mut placed: Vec<Suggested> = Vec::new();
    let (mut dropped, mut ends) = (Vec::new(), Vec::new());
    for (number, operation) in operations.iter().enumerate() {
        let Some(invocation) = history.operations().get(number) else {
            if operation.ends_at.is_some() || matches!(operation.told, Told::Answer { .. }) {
                ends.push(number);
            }
            continue;
        };
        if operation.input.is_read() && !matches!(operation.told, Told::Answer { .. }) {
            // Its client was not told what it found. (It travelled in one body with updates.)
            continue;
        }
        let executed = invocation.id.and_then(|id| invariants.position(id));
        if let Some(place) = executed {
            placed.push((at(place), operation.invoked, number));
        } else if let (Some(read_after), None, Told::Answer { .. }) =
            (invocation.read_after, invocation.stale, &operation.told)
        {
            // (What a front end has read for a client that is gone has no place.)
            placed.push(((read_after.0, u64::MAX), operation.invoked, number));
        } else if matches!(operation.told, Told::Answer { .. }) {
            dropped.push(number);
        }
    }
    for number in dropped {
        let (operation, steps) = (&operations[number], &history.get(number).steps);
        let keys = key_mask(&operation.input);
        let before = placed.iter().filter(|(_, _, other)| match operations[*other].told {
            Told::Answer { at, .. } => at < operation.invoked,
            _ => false,
        });
        // Within one recovered entry, updates of other keys may change places with it.
        let lowest =
            before.map(
                |(at, _, other)| {
                    if key_mask(&operations[*other].input) & keys == 0 { (at.0, 0) } else { *at }
                },
            );
        let lowest = lowest.max().unwrap_or_default();
        let overwrites = |id| {
            history.operations().iter().any(|other| {
                other.id == Some(id)
                    && other.steps.last().map(ClientCommand::key) == steps.last().map(ClientCommand::key)
            })
        };
        let place = invariants
            .recovered_overwrites()
            .iter()
            .map(|(place, id)| ((place.number.0, 2 * place.index as u64), *id))
            .find(|(place, id)| lowest <= *place && overwrites(*id));
        // What too many disks took with them nobody has seen since: it may have been the last of all.
        let place = place.map_or((u64::MAX, u64::MAX), |(place, _)| place);
        placed.push((place, operation.invoked, number));
    }
    let ends: Vec<Suggested> =
        ends.into_iter().map(|number| place_of_end(number, operations, &placed)).collect();
    placed.extend(ends);
    placed.sort_unstable();
    placed.into_iter().map(|(_, _, number)| number).collect()
}

/// The place of the end of a lifetime: where the log has it, or if that does not say, when everything is over; but before the first
/// read that comes when it must have ended. Where nothing is ordered for a while, a member's clock says so before the log does.
fn place_of_end(number: usize, operations: &[Translated], placed: &[Suggested]) -> Suggested {
    let operation = &operations[number];
    let in_log = (operation.ends_at.unwrap_or((u64::MAX, u64::MAX)), operation.invoked, number);
    let Told::Answer { at: ended_by, .. } = operation.told else { return in_log };
    let keys = keys_of(&operation.input);
    let is_later = |(_, invoked, other): &&Suggested| {
        let input = &operations[*other].input;
        input.is_read() && *invoked > ended_by && share_a_key(&keys, &keys_of(input))
    };
    let first_read = placed.iter().filter(is_later).map(|(place, ..)| (*place, ended_by, number)).min();
    first_read.map_or(in_log, |before| before.min(in_log))
}

/// Puts a suggested order right with real time: operations that share a key stay in the order suggested, unless neither changes it;
/// others change places where one had its answer before the other was invoked, or a Redis client demands it.
///
/// (Of two looks at a key, one may have been answered by a member that lacked entries which do not change it. So the suggestion
/// has it too early.)
///
/// # Errors
/// If an answered operation is missing, or if that cannot be done, in words.
fn respect_real_time(operations: &[Translated], order: &[usize]) -> Result<Vec<usize>, String> {
    let mut is_in_order = vec![false; operations.len()];
    order.iter().for_each(|number| is_in_order[*number] = true);
    for (number, operation) in operations.iter().enumerate() {
        if matches!(operation.told, Told::Answer { .. }) && !is_in_order[number] {
            return Err(format!("operation {number}, {}, is not in the log", operation.input));
        }
    }
    let masks: Vec<u64> = order.iter().map(|number| key_mask(&operations[*number].input)).collect();
    let keys: Vec<Vec<u32>> = order.iter().map(|number| keys_of(&operations[*number].input)).collect();
    let invoked: Vec<u64> = order.iter().map(|number| operations[*number].invoked).collect();
    let answered_at = order.iter().map(|number| match operations[*number].told {
        Told::Answer { at, .. } => at,
        Told::Failed | Told::Nothing => u64::MAX,
    });
    let answered_at: Vec<u64> = answered_at.collect();
    let looks: Vec<bool> = order.iter().map(|number| operations[*number].is_look).collect();
    let overlap = |a: usize, b: usize| {
        masks[a] & masks[b] != 0 && !(looks[a] && looks[b]) && share_a_key(&keys[a], &keys[b])
    };
    let is_sent_before = |a: usize, b: usize| {
        masks[a] & masks[b] != 0 && must_precede(&operations[order[a]], &operations[order[b]])
    };
    let all = 0..order.len();
    let mut by_answer: Vec<usize> = all.clone().collect();
    by_answer.sort_by_key(|at| answered_at[*at]);
    let mut by_answer = by_answer.into_iter().peekable();
    let mut placed = vec![false; order.len()];
    let mut result = Vec::with_capacity(order.len());
    // Everything before it is placed.
    let mut from = 0;
    while result.len() < order.len() {
        while by_answer.next_if(|at| placed[*at]).is_some() {}
        let first_answer = by_answer.peek().map_or(u64::MAX, |at| answered_at[*at]);
        let left = |placed: &[bool], a: usize, b: usize| a != b && !placed[a];
        let is_next = |placed: &[bool], b: usize| {
            let waits = invoked[b] > first_answer
                || (from..b).any(|a| left(placed, a, b) && overlap(a, b))
                || (operations[order[b]].sent.is_some()
                    && all.clone().any(|a| left(placed, a, b) && is_sent_before(a, b)));
            !placed[b] && !waits
        };
        let Some(next) = (from..order.len()).find(|at| is_next(&placed, *at)) else {
            // Every operation left waits for another one left: going back long enough finds a circle.
            let precedes = |a: usize, b: usize| {
                a != b && (answered_at[a] < invoked[b] || (a < b && overlap(a, b)) || is_sent_before(a, b))
            };
            let before = |b: usize| all.clone().find(|a| !placed[*a] && precedes(*a, b)).unwrap_or(b);
            let start = (0..order.len()).fold(from, |at, _| before(at));
            let circle =
                core::iter::successors(Some(before(start)), |at| (*at != start).then(|| before(*at)));
            let names = circle.map(|at| format!("operation {}, {}", order[at], operations[order[at]].input));
            return Err(format!("each precedes the one before it: {}", names.collect::<Vec<_>>().join("; ")));
        };
        placed[next] = true;
        result.push(order[next]);
        while from < order.len() && placed[from] {
            from += 1;
        }
    }
    Ok(result)
}

/// True if a look at the state has answered an update, because it would have changed nothing.
fn is_no_op(history: &History, number: usize, invariants: &Invariants) -> bool {
    let invocation = history.get(number);
    let is_executed = invocation.id.is_some_and(|id| invariants.position(id).is_some());
    invocation.read_after.is_some() && invocation.stale.is_none() && !is_executed
}

/// True if one operation takes effect before another one because a Redis client sent them on one connection in that order,
/// and their keys overlap. Two reads have no order; neither has an update of which nobody knows whether it was executed.
fn must_precede(one: &Translated, other: &Translated) -> bool {
    let (Some((connection, first)), Some((same, then))) = (one.sent, other.sent) else { return false };
    let is_told = |it: &Translated| matches!(it.told, Told::Answer { .. });
    connection == same
        && first < then
        && is_told(one)
        && is_told(other)
        && !(one.input.is_read() && other.input.is_read())
        && share_a_key(&keys_of(&one.input), &keys_of(&other.input))
}

/// All pairs of operations that a client demands to take effect in order.
fn demanded(operations: &[Translated]) -> Vec<(OperationIndex, OperationIndex)> {
    let mut pairs = Vec::new();
    for (then, other) in operations.iter().enumerate().filter(|(_, it)| it.sent.is_some()) {
        let before = operations[..then].iter().enumerate().filter(|(_, one)| must_precede(one, other));
        pairs.extend(before.map(|(first, _)| (OperationIndex(first), OperationIndex(then))));
    }
    pairs
}

/// A bit for every key the operation touches; keys may share one.
fn key_mask(input: &Input) -> u64 {
    let mut mask = 0;
    input.for_each_key(&mut |key| mask |= 1 << (key % 64));
    mask
}

/// The keys the operation touches, in order.
fn keys_of(input: &Input) -> Vec<u32> {
    let mut keys = Vec::new();
    input.for_each_key(&mut |key| keys.push(key));
    keys.sort_unstable();
    keys
}

/// True if two lists in order have something in common.
fn share_a_key(one: &[u32], other: &[u32]) -> bool {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().any(|key| many.binary_search(key).is_ok())
}

/// Whether the operations, in this order or one that differs only where it makes no difference, give
/// the answers that were given, within their real times.
///
/// # Errors
/// Why not, in words.
fn suggestion_holds(operations: &[Translated], order: &[usize]) -> Result<(), String> {
    let order = respect_real_time(operations, order)?;
    let mut judged = Judged::new();
    for (moment, number) in (0_u64..).zip(order) {
        let operation = &operations[number];
        let (input, output) = match &operation.told {
            Told::Answer { output, .. } => (operation.input.clone(), output.clone()),
            Told::Failed | Told::Nothing => (effect_of(&operation.input), Output::Done),
        };
        let index = judged.invoke(number as u64, 2 * moment, input).map_err(|error| error.to_string())?;
        judged.acknowledge(index, 2 * moment + 1, output).map_err(|error| error.to_string())?;
    }
    match check_within(&judged, SUGGESTION_STEPS) {
        Verdict::Linearizable => Ok(()),
        Verdict::Violation { explanation, .. } => Err(explanation),
        Verdict::Undecided { steps, .. } => Err(format!("not decided in {steps} steps")),
    }
}

/// The operation without its reads, whose results nobody was told.
fn effect_of(input: &Input) -> Input {
    match input {
        Input::Batch(parts) => Input::Batch(parts.iter().filter(|part| !part.is_read()).cloned().collect()),
        other => other.clone(),
    }
}

/// True if its client was told that an operation had no effect and never will.
const fn has_failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(_) | Outcome::TimedOut | Outcome::NoQuorum)
}

/// The history in the checker's terms.
fn translate(history: &History, invariants: &Invariants) -> Result<Vec<Translated>, String> {
    let all_keys = all_keys(history);
    let translated = history.operations().iter().enumerate().map(|(number, invocation)| {
        match invocation.steps.as_slice() {
            [ClientCommand::Wait(wait)] => {
                return told_apart(history, number, invariants, |reply| wait.judged(reply, key_name));
            }
            [ClientCommand::PopMember(key)] => {
                return told_apart(history, number, invariants, |reply| member_popped(*key as u32, reply));
            }
            _ => {}
        }
        let input = match invocation.steps.as_slice() {
            _ if invocation.is_undone => Input::Batch(Vec::new()),
            [ClientCommand::Unchanged { .. }, ..] => transaction(invocation, number, &all_keys),
            [step] => input(step, number, &all_keys),
            steps => Input::Batch(steps.iter().map(|step| input(step, number, &all_keys)).collect()),
        };
        // `stale` judges it.
        let finished = invocation.finished.as_ref().filter(|_| invocation.stale.is_none());
        let told = match finished.map(|finished| (finished.order, &finished.outcome)) {
            Some((at, Outcome::Done)) => Told::Answer { at: 2 * at, output: Output::Done },
            Some((at, Outcome::Reply(body))) => {
                let output = output(invocation, body).ok_or_else(|| {
                    format!(
                        "operation {number}, {:?}, was answered {}",
                        invocation.steps,
                        body.escape_ascii()
                    )
                })?;
                Told::Answer { at: 2 * at, output }
            }
            Some((_, outcome)) if has_failed(outcome) => Told::Failed,
            Some(_) | None => Told::Nothing,
        };
        let is_untold = matches!(told, Told::Nothing);
        let input = match is_untold && did_nothing(history, number, invariants) {
            true => Input::Batch(Vec::new()),
            false => input,
        };
        let (client, invoked) = (invocation.client, 2 * invocation.invoked);
        let sent = invocation.connection.map(|connection| (connection, number));
        Ok(Translated { client, invoked, input, told, sent, ends_at: None, is_look: false })
    });
    translated.collect()
}

/// What SPOP was to the checker, and what its client was told, by its answer.
fn member_popped(key: u32, reply: Reply) -> Option<(Input, Output)> {
    let on_set = |operation| Input::Collection(key, CollectionOperation::Set(operation));
    match reply {
        Reply::Bulk(member) => Some((on_set(SetOperation::Remove(vec![member])), Output::Number(1))),
        Reply::Nil => Some((on_set(SetOperation::Length), Output::Number(0))),
        Reply::Error(text) if text.starts_with(b"WRONGTYPE") => {
            Some((on_set(SetOperation::Length), Output::WrongType))
        }
        _ => None,
    }
}

/// An operation of which only its answer says what it was to the checker: what has it taken, and of which key? If its client was
/// told nothing, the log says that.
fn told_apart(
    history: &History,
    number: usize,
    invariants: &Invariants,
    judged: impl Fn(Reply) -> Option<(Input, Output)>,
) -> Result<Translated, String> {
    let invocation = &history.operations()[number];
    let finished = invocation.finished.as_ref();
    let outcome = finished.map(|finished| &finished.outcome);
    let nothing = (Input::Batch(Vec::new()), Told::Nothing);
    let (input, told) = match (finished, outcome) {
        (Some(Finished { order, .. }), Some(Outcome::Reply(body))) => {
            let reply = Reply::decode_all(body).ok().filter(|it| it.len() == 1).and_then(|mut it| it.pop());
            let (input, output) = reply.and_then(judged).ok_or_else(|| {
                format!("operation {number}, {:?}, was answered {}", invocation.steps, body.escape_ascii())
            })?;
            (input, Told::Answer { at: 2 * order, output })
        }
        // What it had asked for before took nothing, or it would have been told of that.
        (_, Some(outcome)) if has_failed(outcome) => nothing,
        _ => {
            let taken = reply_in_log(history, number, invariants).and_then(judged);
            taken.map_or(nothing, |(input, _)| (input, Told::Nothing))
        }
    };
    let (client, invoked) = (invocation.client, 2 * invocation.invoked);
    let sent = invocation.connection.map(|connection| (connection, number));
    Ok(Translated { client, invoked, input, told, sent, ends_at: None, is_look: false })
}

/// True if the log says that nothing was done of a script, because memory was short for a command of it, or of a transaction,
/// because somebody had changed what it watched: perhaps to the value that it had before.
fn did_nothing(history: &History, number: usize, invariants: &Invariants) -> bool {
    let is_watching = matches!(history.get(number).steps.first(), Some(ClientCommand::Unchanged { .. }));
    match reply_in_log(history, number, invariants) {
        Some(Reply::Error(text)) => text.starts_with(b"OOM "),
        Some(Reply::Nil) => is_watching,
        _ => false,
    }
}

/// What the log says that an operation was answered, if it was sent and executed.
fn reply_in_log(history: &History, number: usize, invariants: &Invariants) -> Option<Reply> {
    let operations = history.operations();
    let id = operations[number].id?;
    let mut replies = Reply::decode_all(invariants.answer(id)?).ok()?;
    // Commands that a client sends behind each other may travel as one.
    let count = |part: &[Invocation]| -> usize {
        part.iter().filter(|other| other.id == Some(id)).map(Invocation::replies).sum()
    };
    let (before, through) = (count(&operations[..number]), count(&operations[..=number]));
    if replies.len() == count(operations) && before < through {
        return Some(replies.swap_remove(before));
    }
    // What waits is sent with what its process has to ask before.
    replies.pop()
}

/// What a transaction with a condition is to the checker: if it was executed, one that began with reads; if it was not, nothing.
fn transaction(invocation: &Invocation, number: usize, all_keys: &[u32]) -> Input {
    let [ClientCommand::Unchanged { seen, .. }, steps @ ..] = invocation.steps.as_slice() else {
        return Input::Batch(Vec::new());
    };
    let mut parts: Vec<Input> = steps.iter().map(|step| input(step, number, all_keys)).collect();
    match invocation.finished.as_ref().map(|finished| &finished.outcome) {
        Some(Outcome::Reply(body)) if is_not_executed(body) => Input::Batch(Vec::new()),
        Some(Outcome::Reply(_)) => {
            parts.splice(0..0, seen.iter().map(|(key, _)| Input::Get(*key as u32)));
            Input::Batch(parts)
        }
        _ => {
            let seen = seen.iter().map(|(key, value)| (*key as u32, value.clone()));
            Input::Conditional(seen.collect(), parts)
        }
    }
}

/// True if a transaction was answered that some key has changed.
fn is_not_executed(body: &[u8]) -> bool {
    matches!(Reply::decode_all(body).as_deref(), Ok([Reply::Nil]))
}

/// What the reply to a transaction with a condition says: what its client had seen, which it has found again, comes first.
fn output_of_transaction(
    seen: &[(u64, Option<Vec<u8>>)],
    steps: &[ClientCommand],
    body: &[u8],
) -> Option<Output> {
    if is_not_executed(body) {
        return Some(Output::Batch(Vec::new()));
    }
    let mut replies = Reply::decode_all(body).ok()?.into_iter();
    if replies.next()? != Reply::Ok || replies.len() != steps.len() {
        return None;
    }
    let seen = seen.iter().map(|(_, value)| Some(Output::Value(value.clone())));
    let outputs = steps.iter().zip(replies).map(|(step, reply)| answer(step, reply));
    seen.chain(outputs).collect::<Option<_>>().map(Output::Batch)
}

/// Every key that some operation names, in order: those that an operation over all keys is about. Empty if there is no such
/// operation.
fn all_keys(history: &History) -> Vec<u32> {
    let steps = || history.operations().iter().flat_map(|invocation| &invocation.steps);
    let mut keys = Vec::new();
    if steps()
        .any(|step| matches!(step, ClientCommand::FlushAll | ClientCommand::DbSize | ClientCommand::Keys))
    {
        steps().for_each(|step| step.for_each_key(&mut |key| keys.push(key as u32)));
        keys.sort_unstable();
        keys.dedup();
    }
    keys
}

/// What a step of the operation with this number is to the checker.
fn input(step: &ClientCommand, number: usize, all_keys: &[u32]) -> Input {
    let name = |key: &u64| *key as u32;
    match step {
        ClientCommand::FlushAll => Input::Clear(all_keys.to_vec()),
        ClientCommand::DbSize => Input::Count(all_keys.to_vec()),
        ClientCommand::Keys => Input::List(all_keys.to_vec()),
        ClientCommand::Get(key) => Input::Get(name(key)),
        ClientCommand::MGet(keys) => Input::GetMany(keys.iter().map(name).collect()),
        ClientCommand::Set(key, value) | ClientCommand::SetFor(key, value, _) => {
            Input::Set(name(key), value.clone())
        }
        ClientCommand::GetSet(key, value) => Input::Exchange(name(key), value.clone()),
        ClientCommand::SetNx(key, value) => Input::SetIfAbsent(name(key), value.clone()),
        ClientCommand::MSet(pairs) => {
            Input::SetMany(pairs.iter().map(|(key, value)| (name(key), value.clone())).collect())
        }
        ClientCommand::IncrBy { key, delta, .. } => Input::Increment(name(key), *delta),
        ClientCommand::Append { key, value, .. } => Input::Append(name(key), value.clone()),
        ClientCommand::Del { key, .. } => Input::Delete(name(key)),
        ClientCommand::Collection { key, operation, .. } => Input::Collection(name(key), operation.clone()),
        ClientCommand::Rename(from, to) => Input::Rename(name(from), name(to)),
        ClientCommand::Transfer(from, to, transfer) => {
            Input::Transfer(name(from), name(to), transfer.clone())
        }
        ClientCommand::Expire { key, .. } => Input::Lifetime(name(key), number as u32),
        ClientCommand::Persist { key, .. } => Input::Persist(name(key)),
        // The first two are translated apart. Versions are no part of what keys hold.
        ClientCommand::Wait(_)
        | ClientCommand::PopMember(_)
        | ClientCommand::Watch(_)
        | ClientCommand::RecordVersions
        | ClientCommand::Unchanged { .. }
        | ClientCommand::Unjudged(_) => Input::Batch(Vec::new()),
    }
}

/// What a reply says to the operation's steps; `None` if it is no answer to them.
fn output(invocation: &Invocation, body: &[u8]) -> Option<Output> {
    if let [ClientCommand::Unchanged { seen, .. }, steps @ ..] = invocation.steps.as_slice() {
        return output_of_transaction(seen, steps, body);
    }
    let replies = Reply::decode_all(body).ok()?;
    if replies.len() != invocation.steps.len() {
        return None;
    }
    let mut outputs: Vec<Output> = invocation
        .steps
        .iter()
        .zip(replies)
        .map(|(step, reply)| answer(step, reply))
        .collect::<Option<_>>()?;
    if outputs.len() == 1 { outputs.pop() } else { Some(Output::Batch(outputs)) }
}

fn answer(step: &ClientCommand, reply: Reply) -> Option<Output> {
    Some(match (step, reply) {
        (ClientCommand::Rename(..), Reply::Ok) => Output::Flag(true),
        (ClientCommand::Watch(_), Reply::Array(_)) => Output::Batch(Vec::new()),
        (_, Reply::Ok) => Output::Done,
        (_, Reply::Error(text)) if text.starts_with(b"WRONGTYPE") => Output::WrongType,
        (ClientCommand::Collection { operation, .. }, reply) => collections::answer(operation, reply)?,
        (ClientCommand::Transfer(_, _, transfer), reply) => answer_to_transfer(transfer, reply)?,
        (ClientCommand::Get(_) | ClientCommand::GetSet(..), reply) => Output::Value(value(reply)?),
        (ClientCommand::MGet(_), Reply::Array(replies)) => {
            Output::Values(replies.into_iter().map(value).collect::<Option<_>>()?)
        }
        (
            ClientCommand::SetNx(..)
            | ClientCommand::Del { .. }
            | ClientCommand::Expire { .. }
            | ClientCommand::Persist { .. },
            Reply::Integer(flag @ (0 | 1)),
        ) => Output::Flag(flag == 1),
        (
            ClientCommand::IncrBy { .. } | ClientCommand::Append { .. } | ClientCommand::DbSize,
            Reply::Integer(number),
        ) => Output::Number(number),
        (ClientCommand::Keys, Reply::Array(names)) => {
            let key = |name| key_of(&value(name)??).map(|key| key as u32);
            let mut keys = names.into_iter().map(key).collect::<Option<Vec<u32>>>()?;
            keys.sort_unstable();
            Output::Keys(keys)
        }
        (ClientCommand::IncrBy { .. } | ClientCommand::Rename(..), Reply::Error(_)) => Output::Error,
        _ => return None,
    })
}

/// What is answered to an operation that takes from one key and leaves it at another.
fn answer_to_transfer(transfer: &Transfer, reply: Reply) -> Option<Output> {
    Some(match (transfer, reply) {
        (Transfer::Element(..), reply) => Output::Value(value(reply)?),
        (Transfer::Member(_) | Transfer::Copy { .. } | Transfer::Whole, Reply::Integer(flag @ (0 | 1))) => {
            Output::Flag(flag == 1)
        }
        (Transfer::Union | Transfer::Range | Transfer::Sorted, Reply::Integer(number)) => {
            Output::Number(number)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One Redis client sends DEL of a key, which changes nothing, and GET behind it; the log has the GET first.
    fn looks(value: Option<&str>, is_look: bool) -> Result<(), String> {
        let sent = |place, input, output, is_look| Translated {
            client: 1,
            invoked: 1,
            input,
            told: Told::Answer { at: 10, output },
            sent: Some((1, place)),
            ends_at: None,
            is_look,
        };
        let delete = sent(0, Input::Delete(1), Output::Flag(false), is_look);
        let get = sent(1, Input::Get(1), Output::Value(value.map(Into::into)), true);
        suggestion_holds(&[delete, get], &[1, 0])
    }

    #[test]
    fn an_update_that_changes_nothing_goes_before_a_read_that_was_sent_after_it() {
        assert_eq!(looks(None, true), Ok(()));
        assert!(looks(Some("value"), true).is_err(), "the key was gone before");
        assert!(looks(None, false).is_err(), "what the log has executed keeps its place");
    }
}
