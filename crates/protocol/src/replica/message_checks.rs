//! What another member says is checked before it is acted upon, however well that member has proved who it is: its memory
//! may be damaged, or its code. A message that no right member sends is refused as a whole. It must neither stop this
//! replica nor put something on its disk from which it could not go on.

use super::{PlantedBug, Replica};
use crate::message::{LogEntry, Message, Prepared};
use crate::record::SnapshotHead;
use crate::sessions::SESSION_WINDOW_MAX;
use syros_types::{Class, OpNumber, View, WallTime};

/// A view farther ahead than this is refused. With ten view changes a second a member would have to be away for 13 years
/// to hear of one; and views cannot be used up by messages, of which it would take four thousand million.
const VIEWS_AHEAD_MAX: u64 = 1 << 32;

/// No view, op number or time reaches this: what is computed from them cannot overflow.
const NUMBER_MAX: u64 = 1 << 62;

impl Replica {
    /// True if a right member may send this message.
    pub(super) fn is_plausible(&self, message: &Message) -> bool {
        if self.planted(PlantedBug::PeersNotValidated) {
            return true;
        }
        let possible =
            |view: View| view.0 < NUMBER_MAX && view.0 <= self.view.0.saturating_add(VIEWS_AHEAD_MAX);
        let numbers = |numbers: &[OpNumber]| numbers.iter().all(|number| number.0 < NUMBER_MAX);
        match message {
            Message::Prepare { view, first, commit, time, entries, .. } => {
                possible(*view)
                    && numbers(&[*first, *commit])
                    && first.0 > 0
                    && time.0 < NUMBER_MAX
                    && entries.iter().all(|entry| self.is_update(entry))
            }
            Message::Commit { view, commit, op_number, .. } => {
                possible(*view) && numbers(&[*commit, *op_number])
            }
            Message::PrepareOk { view, op_number, applied, .. } => {
                possible(*view) && numbers(&[*op_number, *applied])
            }
            Message::NewState { view, first, commit, entries } => {
                possible(*view) && numbers(&[*first, *commit]) && is_log(entries, *view)
            }
            Message::DoViewChange(change) => {
                possible(change.view)
                    && change.last_normal <= change.view
                    && self.is_possible_rule(change.rule, change.last_normal)
                    && change.commit_view <= change.view
                    && numbers(&[change.commit])
                    && is_log(&change.suffix, change.view)
            }
            Message::StartView(start) => {
                possible(start.view)
                    && start.base_view <= start.view
                    && self.is_possible_rule(start.rule, start.view)
                    && numbers(&[start.base, start.commit])
                    && is_log(&start.suffix, start.view)
            }
            Message::GetState { view, from } => possible(*view) && numbers(&[*from]),
            Message::GetStartView { view, commit } => possible(*view) && numbers(&[*commit]),
            Message::GetSnapshot { op_number, .. } | Message::SnapshotPart { op_number, .. } => {
                numbers(&[*op_number])
            }
            Message::Digest { view, op_number, .. }
            | Message::Diverged { view, op_number, .. }
            | Message::HeldByAll { view, op_number }
            | Message::LogDurable { view, op_number } => possible(*view) && numbers(&[*op_number]),
            Message::FetchBodies { view, .. }
            | Message::Bodies { view, .. }
            | Message::Forward { view, .. }
            | Message::StartViewChange { view, .. }
            | Message::Rejoin { view }
            | Message::WatchLog { view }
            | Message::WrongView { view } => possible(*view),
            // Those of clients: what is in them is checked where they are dealt with.
            _ => true,
        }
    }

    /// True if the bytes of the entry, if it has any, are an operation that belongs into a log.
    fn is_update(&self, entry: &Prepared) -> bool {
        let Prepared::Full(request) = entry else { return true };
        (self.config.describe)(&request.body).is_some_and(|known| known.class != Class::Read)
    }

    /// True if entries of a message can follow `base` here: where they begin to differ from this log, they are not from
    /// before it.
    pub(super) fn continues(&self, base: OpNumber, entries: &[LogEntry]) -> bool {
        if self.planted(PlantedBug::PeersNotValidated) {
            return true;
        }
        let (last, known) = self.agreement(base, entries);
        let (view, time) = (self.log.view_at(last), self.log.time_at(last));
        entries.get(known).is_none_or(|entry| view <= Some(entry.view) && time <= Some(entry.time))
    }

    /// True if a snapshot that another member has sent can be the state after the entry it names.
    pub(super) fn is_plausible_snapshot(&self, head: &SnapshotHead) -> bool {
        let sessions = || {
            head.sessions.iter().all(|(id, session)| {
                let (completions, from) = (&session.completions, session.acked_below);
                let within =
                    |(sequence, _)| (from..from.saturating_add(SESSION_WINDOW_MAX)).contains(&sequence);
                id.0 <= head.op_number.0 && completions.iter().all(within)
            })
        };
        self.planted(PlantedBug::PeersNotValidated)
            || (head.op_number.0 < NUMBER_MAX && head.time.0 < NUMBER_MAX && sessions())
    }
}

/// True if the entries can stand in one log, in this order, as of `view`.
fn is_log(entries: &[LogEntry], view: View) -> bool {
    let ascending =
        entries.is_sorted_by_key(|entry| entry.view) && entries.is_sorted_by_key(|entry| entry.time);
    let last = entries.last().is_none_or(|last| last.view <= view && last.time < WallTime(NUMBER_MAX));
    let updates = || entries.iter().flat_map(LogEntry::updates);
    ascending && last && updates().all(|update| update.class != Class::Read)
}
