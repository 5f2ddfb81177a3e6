//! Known-wrong variants of the execution in memory.

use syros_commands::families::{Del, HSet, LPop, ListEnd, SAdd, ScoreEnd, Unchanged, Versions, ZPop};
use syros_commands::{Arguments, Command, Operation, Reply, ScriptUse, operations};
use syros_protocol::message::Body;
use syros_protocol::replica::PlantedBug;
use syros_types::{Class, OpNumber, WallTime};

use super::MemoryExecutor;
use crate::in_memory::InMemory;

/// Entries whose number this divides are executed wrongly.
const WRONG_EVERY: u64 = 7;

impl<E: InMemory> MemoryExecutor<E> {
    /// Makes it wrong, if the bug is one of execution.
    pub const fn plant(&mut self, bug: Option<PlantedBug>) {
        self.planted = bug;
    }

    fn is_wrong_at(&self, bug: PlantedBug, number: OpNumber, class: Class) -> bool {
        self.planted == Some(bug) && number.0.is_multiple_of(WRONG_EVERY) && class.is_nilext()
    }

    /// True if this update is not executed.
    pub(super) fn is_lost(&self, number: OpNumber, class: Class) -> bool {
        self.is_wrong_at(PlantedBug::EngineLosesUpdate, number, class)
    }

    /// What is executed instead of a body, if it is another one.
    pub(super) fn mutilated(&self, number: OpNumber, class: Class, body: &[u8]) -> Option<Vec<u8>> {
        if self.planted == Some(PlantedBug::ConditionIgnored) {
            return self.with_present_versions(body);
        }
        if self.planted == Some(PlantedBug::EvictedBeside) {
            return with_one_more(body);
        }
        let loses_field = self.is_wrong_at(PlantedBug::EngineLosesField, number, class);
        loses_field.then(|| with_first_fields(body))
    }

    /// Does what a script had done that was undone, because it has touched a key that it did not declare.
    pub(super) fn redo_undone(&mut self, time: WallTime, body: &[u8]) {
        let says = |part: &[u8]| self.reply.windows(part.len()).any(|window| window == part);
        if self.planted != Some(PlantedBug::ScriptNotUndone) || !says(b"which was not declared") {
            return;
        }
        let mut forced = Vec::new();
        for mut operation in operations(body).flatten() {
            if let Some(ScriptUse::Text { owns_everything, .. } | ScriptUse::Name { owns_everything, .. }) =
                operation.script_mut()
            {
                *owns_everything = true;
            }
            operation.encode(&mut forced);
        }
        self.engine.apply(time, &forced, &mut Vec::new());
    }

    /// What an update returns, found out wrongly; `None` if it is found out as it should be.
    pub(super) fn evaluate_wrongly(&mut self, body: &[u8]) -> Option<Option<Body>> {
        self.reply.clear();
        let is_certain = match self.planted? {
            PlantedBug::EvaluatedByFirstField => {
                self.engine.evaluate(&with_first_fields(body), &mut self.reply)
            }
            PlantedBug::EvaluatedBeforeExpiry => self.engine.evaluate_as_lasting(body, &mut self.reply),
            PlantedBug::EvaluatedAtOtherEnd => self.engine.evaluate(&from_other_end(body), &mut self.reply),
            PlantedBug::EvaluatedAtHighestScore => {
                self.engine.evaluate(&from_highest_score(body), &mut self.reply)
            }
            PlantedBug::EvaluatedByFirstMember => {
                self.engine.evaluate(&with_first_members(body), &mut self.reply)
            }
            PlantedBug::ConditionIgnored => {
                let changed = self.with_present_versions(body);
                self.engine.evaluate(changed.as_deref().unwrap_or(body), &mut self.reply)
            }
            PlantedBug::AbsenceEvaluated => self.evaluate_condition_apart(body)?,
            PlantedBug::EvaluatedInPlace => {
                let is_certain = self.engine.evaluate(body, &mut self.reply);
                if is_certain && operations(body).flatten().all(|operation| is_of_hash(&operation)) {
                    self.engine.apply(WallTime(0), body, &mut Vec::new());
                }
                is_certain
            }
            _ => return None,
        };
        Some(is_certain.then(|| Body::from(self.reply.as_slice())))
    }
}

impl<E: InMemory> MemoryExecutor<E> {
    /// The versions of the keys of a condition, as they are now.
    fn present_versions(&self, condition: &Unchanged<'_>) -> Option<Vec<[u8; 8]>> {
        let keys: Vec<&[u8]> = condition.pairs.pairs().map(|(key, _)| key).collect();
        let (mut body, mut reply) = (Vec::new(), Vec::new());
        Operation::new(Versions { keys: Arguments::new(&keys) }).encode(&mut body);
        self.engine.read(WallTime(0), &body, &mut reply);
        let Ok(Reply::Array(versions)) = Reply::decode(&mut reply.as_slice()) else { return None };
        let bytes = |version: Reply| match version {
            Reply::Integer(version) => Some(version.to_be_bytes()),
            _ => None,
        };
        versions.into_iter().map(bytes).collect()
    }

    /// The body with a condition that holds, if it has one.
    fn with_present_versions(&self, body: &[u8]) -> Option<Vec<u8>> {
        let mut all = operations(body).flatten();
        let Command::Unchanged(condition) = all.next()?.command else { return None };
        let versions = self.present_versions(&condition)?;
        let mut words: Vec<&[u8]> = Vec::new();
        for ((key, _), version) in condition.pairs.pairs().zip(&versions) {
            words.extend([key, version]);
        }
        let mut out = Vec::new();
        Operation::new(Unchanged { pairs: Arguments::new(&words) }).encode(&mut out);
        all.for_each(|operation| operation.encode(&mut out));
        Some(out)
    }

    /// Evaluates what comes after a condition that holds, as if nothing but what the body names could change that; `None` if
    /// there is no such condition.
    fn evaluate_condition_apart(&mut self, body: &[u8]) -> Option<bool> {
        let mut all = operations(body).flatten();
        let Command::Unchanged(condition) = all.next()?.command else { return None };
        let versions = self.present_versions(&condition)?;
        let holds = condition.pairs.pairs().zip(&versions).all(|((_, then), now)| then == now);
        let mut rest = Vec::new();
        all.for_each(|operation| operation.encode(&mut rest));
        Reply::Ok.encode(&mut self.reply);
        (holds && !rest.is_empty()).then(|| self.engine.evaluate(&rest, &mut self.reply))
    }
}

/// The body and a removal that nobody is told of, if it evicts keys.
fn with_one_more(body: &[u8]) -> Option<Vec<u8>> {
    let is_eviction = |operation: Operation<'_>| matches!(operation.command, Command::Evict(_));
    if !operations(body).flatten().any(is_eviction) {
        return None;
    }
    let mut out = body.to_vec();
    Operation::new(Del { keys: Arguments::new(&[b"k0"]) }).encode(&mut out);
    Some(out)
}

const fn is_of_hash(operation: &Operation<'_>) -> bool {
    matches!(
        operation.command,
        Command::HSet(_) | Command::HSetNx(_) | Command::HDel(_) | Command::HIncrBy(_)
    )
}

/// The body, but each HSET is of its first field alone.
fn with_first_fields(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for operation in operations(body).flatten() {
        match &operation.command {
            Command::HSet(all) => {
                let words: Vec<&[u8]> = all.pairs.iter().take(2).collect();
                let first = HSet { pairs: Arguments::new(&words), ..*all };
                Operation { command: first.into(), ..operation }.encode(&mut out);
            }
            _ => operation.encode(&mut out),
        }
    }
    out
}

/// The body, but each SADD is of its first member alone.
fn with_first_members(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for operation in operations(body).flatten() {
        match &operation.command {
            Command::SAdd(all) => {
                let words: Vec<&[u8]> = all.members.iter().take(1).collect();
                let first = SAdd { members: Arguments::new(&words), ..*all };
                Operation { command: first.into(), ..operation }.encode(&mut out);
            }
            _ => operation.encode(&mut out),
        }
    }
    out
}

/// The body, but what is taken from one end of a list is taken from the other.
fn from_other_end(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for operation in operations(body).flatten() {
        match &operation.command {
            Command::LPop(pop) => {
                let end = if pop.end == ListEnd::Left { ListEnd::Right } else { ListEnd::Left };
                Operation { command: LPop { end, ..*pop }.into(), ..operation }.encode(&mut out);
            }
            _ => operation.encode(&mut out),
        }
    }
    out
}

/// The body, but what is taken from a sorted set has the highest score.
fn from_highest_score(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for operation in operations(body).flatten() {
        match &operation.command {
            Command::ZPop(pop) => {
                let command = ZPop { end: ScoreEnd::Max, ..*pop }.into();
                Operation { command, ..operation }.encode(&mut out);
            }
            _ => operation.encode(&mut out),
        }
    }
    out
}
