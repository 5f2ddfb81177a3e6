//! What another member says is checked before it is acted upon, however well that member has proved who it is: its memory
//! may be damaged, or its code. A message that no right member sends is refused as a whole. It must neither stop this
//! replica nor put something on its disk from which it could not go on.

use super::configurations::is_resized;
use super::{PlantedBug, Replica};
use crate::message::{LogEntry, Message, Payload, Prepared, ViewChangeReason};
use crate::record::SnapshotHead;
use crate::sessions::SESSION_WINDOW_MAX;
use syros_types::{Class, ConfigurationEpoch, OpNumber, Reconfiguration, ReplicaId, View, WallTime};

/// A view farther ahead than this is refused. With ten view changes a second a member would have to be away for 19 days
/// to hear of one; and to use up the views takes tens of thousands of messages that are believed.
const VIEWS_AHEAD_MAX: u64 = 1 << 24;

/// No number of a view reaches this: the next ones do not overflow.
const VIEW_NUMBER_MAX: u64 = 1 << 39;

/// An epoch farther ahead than this is refused: a member would have to be away while as many nodes are replaced.
const EPOCHS_AHEAD_MAX: u64 = 4096;

/// No op number or time reaches this: what is computed from them cannot overflow.
const NUMBER_MAX: u64 = 1 << 62;

impl Replica {
    /// True if a right member may send this message.
    pub(super) fn is_plausible(&self, message: &Message) -> bool {
        if self.planted(PlantedBug::PeersNotValidated) {
            return true;
        }
        // A leader that hears of a later view leads one behind that, which its followers have to believe.
        let ahead = if self.is_leader() { VIEWS_AHEAD_MAX / 2 } else { VIEWS_AHEAD_MAX };
        let possible = |view: View| {
            view.number() < VIEW_NUMBER_MAX
                && view.number() <= self.view.number().saturating_add(ahead)
                && self.is_possible_epoch(view.epoch())
        };
        // No view of a later configuration has number 0: a node that comes in takes that for the last one that it was in.
        let begun =
            |view: View| possible(view) && (view.epoch() == ConfigurationEpoch::FIRST || view.number() > 0);
        let numbers = |numbers: &[OpNumber]| numbers.iter().all(|number| number.0 < NUMBER_MAX);
        match message {
            Message::Prepare { view, first, commit, time, entries, .. } => {
                begun(*view)
                    && numbers(&[*first, *commit])
                    && first.0 > 0
                    && time.0 < NUMBER_MAX
                    && entries.iter().all(|entry| self.is_update(*view, entry))
            }
            Message::Commit { view, commit, op_number, .. } => {
                possible(*view) && numbers(&[*commit, *op_number])
            }
            Message::PrepareOk { view, op_number, applied, .. } => {
                possible(*view) && numbers(&[*op_number, *applied])
            }
            Message::NewState { view, first, commit, entries } => {
                possible(*view) && numbers(&[*first, *commit]) && self.is_log(entries, *view)
            }
            Message::DoViewChange(change) => {
                begun(change.view)
                    && change.last_normal <= change.view
                    && self.is_possible_rule(change.rule, change.last_normal)
                    && change.commit_view <= change.view
                    && numbers(&[change.commit])
                    && self.is_log(&change.suffix, change.view)
            }
            Message::StartView(start) => {
                begun(start.view)
                    && start.base_view <= start.view
                    && self.is_possible_rule(start.rule, start.view)
                    && numbers(&[start.base, start.commit])
                    && self.is_log(&start.suffix, start.view)
            }
            Message::GetState { view, from } => possible(*view) && numbers(&[*from]),
            Message::GetStartView { view, commit } => possible(*view) && numbers(&[*commit]),
            Message::PlaceWanted { view, applied, .. } => possible(*view) && numbers(&[*applied]),
            Message::GetSnapshot { op_number, .. } | Message::SnapshotPart { op_number, .. } => {
                numbers(&[*op_number])
            }
            Message::Digest { view, op_number, .. }
            | Message::Diverged { view, op_number, .. }
            | Message::HeldByAll { view, op_number }
            | Message::LogDurable { view, op_number } => possible(*view) && numbers(&[*op_number]),
            // Who misses the leader of a view wants the next one.
            Message::StartViewChange { view, reason: ViewChangeReason::Suspicion } => {
                begun(*view) && (view.number() > 1 || view.epoch() == ConfigurationEpoch::FIRST)
            }
            Message::StartViewChange { view, .. } | Message::Patience { view, .. } => begun(*view),
            Message::FetchBodies { view, .. }
            | Message::Bodies { view, .. }
            | Message::Forward { view, .. }
            | Message::Rejoin { view }
            | Message::WatchLog { view }
            | Message::WrongView { view } => possible(*view),
            Message::GetConfiguration { epoch } => self.is_possible_epoch(*epoch),
            Message::Configuration(known) => self.is_possible_configuration(known),
            // Those of clients: what is in them is checked where they are dealt with.
            _ => true,
        }
    }

    /// True if what the entry brings with it, if it brings anything, belongs into a log.
    fn is_update(&self, view: View, entry: &Prepared) -> bool {
        match entry {
            Prepared::Full(request) => {
                (self.config.describe)(&request.body).is_some_and(|known| known.class != Class::Read)
            }
            Prepared::Reconfigure(next) => self.may_follow(view, next),
            _ => true,
        }
    }

    fn is_possible_epoch(&self, epoch: ConfigurationEpoch) -> bool {
        let ours = self.config.configuration.id.epoch;
        epoch <= ConfigurationEpoch::MAX && epoch.0 <= ours.0 + EPOCHS_AHEAD_MAX
    }

    /// True if the group may have this configuration at some time.
    fn is_possible_configuration(&self, next: &Reconfiguration) -> bool {
        next.epoch > ConfigurationEpoch::FIRST
            && self.is_possible_epoch(next.epoch)
            && self.is_possible_size(next)
            && (next.roster.is_complete() || !self.config.configuration.roster.is_complete())
            && self.changes_from_ours(next)
                <= next.epoch.0.saturating_sub(self.config.configuration.id.epoch.0)
    }

    /// True if the group may have come to this size since this replica's configuration: each epoch changes it by two at most,
    /// and the configuration says from which.
    fn is_possible_size(&self, next: &Reconfiguration) -> bool {
        let ours = &self.config.configuration;
        let apart = next.roster.group().size().abs_diff(ours.size()) as u64 / 2;
        let is_near = next.epoch <= ours.id.epoch || apart <= next.epoch.0 - ours.id.epoch.0;
        let follows = next.epoch == ours.id.epoch.next();
        let begins_with = next.before.map_or(next.roster.group(), |before| before.group());
        is_near
            && (!follows || begins_with == ours.group())
            && next.before.is_none_or(|before| is_resized(&before, &next.roster))
    }

    /// So many positions have another node in a later configuration than in that of this replica: each epoch changes one.
    fn changes_from_ours(&self, next: &Reconfiguration) -> u64 {
        let ours = &self.config.configuration;
        if next.epoch <= ours.id.epoch {
            return 0;
        }
        let is_changed = |member: &ReplicaId| {
            let (before, after) = (ours.roster.node(*member), next.roster.node(*member));
            before.is_some() && after.is_some() && before != after
        };
        ours.members().filter(is_changed).count() as u64
    }

    /// True if an entry of this view may say that this is the next configuration.
    fn may_follow(&self, view: View, next: &Reconfiguration) -> bool {
        next.epoch == view.epoch().next() && self.is_possible_configuration(next)
    }

    /// True if the entries can stand in one log, in this order, as of `view`.
    fn is_log(&self, entries: &[LogEntry], view: View) -> bool {
        let ascending =
            entries.is_sorted_by_key(|entry| entry.view) && entries.is_sorted_by_key(|entry| entry.time);
        let last = entries.last().is_none_or(|last| last.view <= view && last.time < WallTime(NUMBER_MAX));
        let updates = || entries.iter().flat_map(LogEntry::updates);
        let is_possible = |entry: &LogEntry| match &entry.payload {
            Payload::Reconfigure(next) => self.may_follow(entry.view, next),
            _ => true,
        };
        ascending
            && last
            && updates().all(|update| update.class != Class::Read)
            && entries.iter().all(is_possible)
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
            || (head.op_number.0 < NUMBER_MAX
                && head.time.0 < NUMBER_MAX
                && head.configuration.as_ref().is_none_or(|known| self.is_possible_configuration(known))
                && sessions())
    }
}
