//! A replica starts: with what its disk holds, or without memory.

use super::restore::Parts;
use super::role::{Recovering, Role};
use super::timers::{Timer, Timers};
use super::{PlantedBug, Replica, Restored, ViewChangeCause};
use crate::message::ViewChangeReason;
use crate::record::Record;
use syros_types::View;

impl Replica {
    pub(super) fn boot_restored(&mut self, restored: Restored) {
        let Parts { view, last_normal, rule, commit, log, dlog, snapshot } = restored.into_parts();
        self.view = view;
        self.take_part(None);
        self.last_normal = last_normal;
        if let Some((head, _)) = &snapshot {
            self.known_configuration = head.configuration;
        }
        if !self.planted(PlantedBug::RuleForgotten) {
            self.rule = rule;
        }
        self.log = log;
        self.commit = commit;
        if let Some((head, bytes)) = snapshot {
            self.applied = head.op_number;
            self.restart_digests(head.op_number);
            self.apply_requested = head.op_number;
            self.commit = commit.max(head.op_number);
            self.sessions = head.sessions;
            self.restored_from(head.op_number, bytes);
        }
        self.persistence.restore(self.log.op_number());
        for update in self.describe_all(dlog) {
            self.dlog.restore(update, self.now.instant);
        }
        self.rebuild_pending();
        let epoch = self.config.configuration.id.epoch;
        if self.is_departing() {
            // It goes where others go.
            self.view = view.max(View::of_epoch(epoch, 0));
            self.begin_view_change(self.config.settings.view_change_timeout);
            self.send_do_view_change();
        } else if view.epoch() < epoch {
            // It had adopted its configuration, and was stopped before a view of it was on disk.
            self.view = View::of_epoch(epoch, view.number());
            self.move_to(self.view.next(), ViewChangeReason::Moved, ViewChangeCause::Restarted);
        } else if view > last_normal {
            self.begin_view_change(self.config.settings.view_change_timeout);
            self.send_do_view_change();
        } else if self.leader() == self.config.replica {
            if self.planted(PlantedBug::RestartedLeaderResumes) {
                return;
            }
            // It may have sent Prepares that it never wrote down: it must not fill those numbers
            // with anything else in the same view.
            self.move_to(View(view.0 + 1), ViewChangeReason::Moved, ViewChangeCause::Restarted);
        }
    }

    pub(super) fn boot_amnesiac(&mut self, view: View) {
        // Of a later configuration than that of its view it has never acted in any.
        let view = view.max(View::of_epoch(self.config.configuration.id.epoch, 0));
        self.view = view;
        self.last_normal = view;
        self.take_part(None);
        if self.planted(PlantedBug::AmnesiacRejoinsAtOnce) {
            return;
        }
        // It takes no part until a later view takes it in.
        let timers = Timers::stopped().with(Timer::Rejoin, self.now.instant);
        self.enter(Role::Recovering(Recovering::default()), timers);
        // What an earlier attempt to come back has written does not count.
        self.persist_data(|| Record::Forgot { view });
    }
}
