//! Somebody copies the log of the group, as `syros backup continue` does, and the judge looks whether the copy is the log: every
//! entry that was executed, at its number, and nothing else.
//!
//! The one who copies asks any member at any time. Answers get lost, are held back, and come twice and in any order. All of
//! it has dice of its own.

use super::{SimEvent, World};
use crate::swarm::{MILLI, SECOND};
use crate::tally::Occurrence;
use syros_node::execute_entry;
use syros_protocol::log_copy::{CopyError, LogCopy};
use syros_protocol::message::{LogEntry, Message, Peer};
use syros_protocol::replica;
use syros_storage::{Engine as _, MemoryEngine};
use syros_types::{OpNumber, Prng, View, WallTime};

/// The address of the one who copies. Clients of the world have small ones.
const ADDRESS: u64 = 1 << 40;

/// Answers that are held back at a time.
const HELD_MAX: usize = 8;

/// The copy of a world's log.
#[derive(Debug)]
pub(crate) struct Copying {
    copy: LogCopy,
    /// What was copied, with the number that it has in the copy. After a gap that a member has told of, a new copy begins.
    entries: Vec<(OpNumber, LogEntry)>,
    held: Vec<Message>,
    dice: Prng,
    /// Now and then nothing is asked for until the members have dropped what they kept for the one who copies, as where a backup is
    /// continued each hour.
    pauses: bool,
}

impl Copying {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            copy: LogCopy::after(OpNumber(0), View(0), WallTime(0)),
            entries: Vec::new(),
            held: Vec::new(),
            dice: Prng::new(seed ^ 0x5397_0a11_5eed_0058),
            pauses: Prng::new(seed ^ 0x5397_0a11_5eed_0059).chance(2, 3),
        }
    }
}

impl World {
    /// The first question is asked soon, if somebody copies the log of this world.
    pub(crate) fn begin_copying(&mut self) {
        if self.swarm.copies_log {
            self.ask_for_entries_later();
        }
    }

    fn ask_for_entries_later(&mut self) {
        let speed = u64::from(self.swarm.protocol.speed);
        let mut pause = 1 + self.copying.dice.below(40 * MILLI / speed);
        if self.copying.pauses && self.copying.dice.chance(1, 30) {
            // Members keep what it lacks for 200 times `resend`.
            pause += 11 * SECOND / speed;
        }
        let at = self.now() + pause;
        self.scheduler.schedule(at, SimEvent::CopyEntries);
    }

    /// Takes some of the answers that were held back, and asks a member.
    pub(super) fn copy_entries(&mut self) {
        while !self.copying.held.is_empty() && self.copying.dice.chance(1, 2) {
            let at = self.copying.dice.below(self.copying.held.len() as u64) as usize;
            let answer = if self.copying.dice.chance(1, 4) {
                self.copying.held[at].clone()
            } else {
                self.copying.held.swap_remove(at)
            };
            self.take_entries(answer);
        }
        if self.copying.pauses && self.copying.dice.chance(1, 16) {
            self.continue_older_copy();
        }
        let replica = self.copying.dice.below(self.replicas.len() as u64) as usize;
        let bytes_max = [0, 1, 300, 3_000, 1 << 20][self.copying.dice.below(5) as usize];
        let (message, life) =
            (self.copying.copy.want(self.copying.copy.op_number(), bytes_max), self.replicas[replica].life);
        self.tell(replica, life, replica::Event::Message { from: Peer::Client(ADDRESS), message });
        if !self.is_healed {
            self.ask_for_entries_later();
        }
    }

    /// The next thing that is copied continues another backup, which ends earlier.
    fn continue_older_copy(&mut self) {
        let Copying { copy, dice, .. } = &mut self.copying;
        let op_number = OpNumber(dice.below(copy.op_number().0 + 1));
        let end = if op_number == OpNumber(0) {
            Some((View(0), WallTime(0)))
        } else {
            self.invariants.executed_entry(op_number)
        };
        if let Some((view, time)) = end {
            *copy = LogCopy::after(op_number, view, time);
        }
    }

    /// The next piece of a replica's log is read after a while.
    pub(super) fn plan_entries_step(&mut self, replica: usize) {
        let at = self.now() + 1 + self.copying.dice.below(MILLI);
        let life = self.replicas[replica].life;
        self.scheduler.schedule(at, SimEvent::StepEntries { replica, life });
    }

    pub(super) fn step_entries(&mut self, replica: usize, life: u64) {
        let slot = &mut self.replicas[replica];
        let Some(process) = slot.process.as_mut().filter(|_| slot.life == life) else { return };
        let has_report = process.step_entries();
        process.entries_planned = process.reads_entries();
        if process.entries_planned {
            self.plan_entries_step(replica);
        }
        if has_report {
            self.rouse(replica);
        }
    }

    /// A replica sends something to somebody who is no client of the world.
    pub(super) fn overhear_entries(&mut self, address: u64, bytes: &[u8]) {
        if address != ADDRESS || self.copying.dice.chance(1, 10) {
            return;
        }
        let message = crate::adapter::decode_message(bytes);
        if self.copying.held.len() < HELD_MAX && self.copying.dice.chance(1, 2) {
            self.copying.held.push(message);
        } else {
            self.take_entries(message);
        }
    }

    fn take_entries(&mut self, answer: Message) {
        let Copying { copy, entries, .. } = &mut self.copying;
        let first = copy.op_number().next();
        match copy.take(answer) {
            Ok(taken) => {
                let numbers = (first.0..).map(OpNumber);
                let before = entries.len();
                entries.extend(numbers.zip(taken.into_iter().flatten()));
                if entries.len() > before {
                    self.tally.record(Occurrence::EntriesCopied);
                }
            }
            // A new full backup is what the copy goes on from.
            Err(CopyError::Gone { base, .. }) => {
                if let Some((view, time)) = self.invariants.executed_entry(base) {
                    *copy = LogCopy::after(base, view, time);
                    self.tally.record(Occurrence::EntriesGone);
                } else {
                    self.invariants.miscopied(format!(
                        "a member says that it has dropped entry {}, which nobody executed",
                        base.0
                    ));
                }
            }
            Err(error) => self.invariants.miscopied(format!("the copy of the log cannot go on: {error}")),
        }
    }

    /// Compares the copy with what was executed; and as long as it has no gap, the state that comes of executing it, as who
    /// restores a backup does, with that of the replicas.
    pub(crate) fn judge_copy(&mut self) {
        let (mut engine, mut executed, mut reply) = (MemoryEngine::new(), OpNumber(0), Vec::new());
        for (number, entry) in std::mem::take(&mut self.copying.entries) {
            self.invariants.copied(number, &entry);
            if number == executed.next() {
                execute_entry(&mut engine, number, &entry, &mut reply);
                executed = number;
            }
        }
        self.invariants.restored(executed, engine.digest());
    }
}
