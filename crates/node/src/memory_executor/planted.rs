//! Known-wrong variants of the execution in memory.

use syros_commands::families::HSet;
use syros_commands::{Arguments, Command, Operation, operations};
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
        let loses_field = self.is_wrong_at(PlantedBug::EngineLosesField, number, class);
        loses_field.then(|| with_first_fields(body))
    }

    /// What an update returns, found out wrongly; `None` if it is found out as it should be.
    pub(super) fn evaluate_wrongly(&mut self, body: &[u8]) -> Option<Option<Body>> {
        self.reply.clear();
        let is_certain = match self.planted? {
            PlantedBug::EvaluatedByFirstField => {
                self.engine.evaluate(&with_first_fields(body), &mut self.reply)
            }
            PlantedBug::EvaluatedBeforeExpiry => self.engine.evaluate_as_lasting(body, &mut self.reply),
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
