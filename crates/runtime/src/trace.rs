//! Events of the core as log lines.

use std::fmt;
use std::time::Duration;

use syros_protocol::message::{Advice, Advised};
use syros_protocol::replica::{ClockError, HandOverReason, TraceEvent, ViewChangeCause};
use syros_types::{ReplicaId, ReplicaSet};

/// How often trouble of this node's own that lasts is logged.
pub(crate) const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// Logs an event of the core: as a warning or an error where an operator may have to act, as information where it explains the
/// rest.
pub(crate) fn log(me: ReplicaId, event: TraceEvent) {
    let node = me.0;
    match event {
        TraceEvent::Differing { op_number } => tracing::error!(
            node,
            entry = op_number.0,
            "members have executed different things in the log up to this entry, so their data differ; the member that a \
             majority contradicts says so"
        ),
        TraceEvent::Diverged { op_number } => tracing::error!(
            node,
            entry = op_number.0,
            "this replica has executed something else than the majority in the log up to this entry: its data are wrong, and \
             it answers no reads any more. Let it come back without its data, so that it gets those of the others"
        ),
        TraceEvent::MemoryGone { members } => log_memory_gone(node, members),
        TraceEvent::WrongClock(error) => tracing::warn!(
            node,
            off_ms = error.off.as_millis(),
            ahead = error.ahead,
            "this replica leads, and its clock differs from those of the others: check this machine's clock"
        ),
        TraceEvent::Implausible { from, message } => tracing::warn!(
            node,
            member = from.0,
            name = message,
            "this replica refuses a message that no working replica sends"
        ),
        TraceEvent::TransferBegan { view, from, first } => tracing::info!(
            node,
            view = view.number(),
            member = from.0,
            entry = first.0,
            "this replica fetches the log of the view from another one"
        ),
        TraceEvent::SnapshotBegan { from, op_number, bytes } => tracing::info!(
            node,
            member = from.0,
            entry = op_number.0,
            bytes,
            "this replica fetches a snapshot from another one, because the log before it is gone"
        ),
        TraceEvent::DroppedEntriesGiven { to, first, entries } => tracing::debug!(
            node,
            member = to.0,
            entry = first.0,
            entries,
            "this replica gives another one entries from the log on disk"
        ),
        TraceEvent::Advised { of, advice, rate, load } => tracing::debug!(
            node,
            operations = if of == Advised::Reads { "reads" } else { "updates" },
            by_leader = advice == Advice::Leader,
            updates_per_second = rate,
            busy_permille = load,
            "this replica leads, and tells its clients whether these operations had better go to it alone"
        ),
        event => log_change_of_view(node, event),
    }
}

/// What a replica has noticed of its view and its leader.
fn log_change_of_view(node: u8, event: TraceEvent) {
    match event {
        TraceEvent::Suspected { view, leader, silent } => tracing::warn!(
            node,
            view = view.number(),
            leader = leader.0,
            silent_ms = silent.as_millis(),
            "this replica suspects the leader, which is silent"
        ),
        TraceEvent::LeaderReturned { view } => {
            tracing::info!(
                node,
                view = view.number(),
                "this replica hears the leader again, and stays in the view"
            );
        }
        TraceEvent::LeftView { from, to, cause } => {
            let (view, previous_view, member) = (to.number(), from.number(), member_of(cause));
            if is_trouble(cause) {
                tracing::warn!(
                    node,
                    view,
                    previous_view,
                    member,
                    "this replica leaves its view: {}",
                    Cause(cause)
                );
            } else {
                tracing::info!(
                    node,
                    view,
                    previous_view,
                    member,
                    "this replica leaves its view: {}",
                    Cause(cause)
                );
            }
        }
        TraceEvent::Alone { view } => tracing::warn!(
            node,
            view = view.number(),
            "this replica cannot begin the view: too few other replicas are heard to want a new one"
        ),
        TraceEvent::EnteredView { view, leader, took } => tracing::info!(
            node,
            view = view.number(),
            leader = leader.0,
            duration_ms = took.as_millis(),
            "this replica enters the view, after a time without one"
        ),
        TraceEvent::QuorumLost { view, silent } => tracing::warn!(
            node,
            view = view.number(),
            silent_ms = silent.as_millis(),
            "this replica leads and hears no majority: nothing can be completed"
        ),
        TraceEvent::QuorumRegained { view } => {
            tracing::info!(node, view = view.number(), "this replica leads and hears a majority again");
        }
        // The others are not about views.
        _ => {}
    }
}

/// Several replicas, for people to read.
fn names(members: ReplicaSet) -> String {
    let names: Vec<String> = members.iter().map(|member| member.to_string()).collect();
    names.join(", ")
}

fn log_memory_gone(node: u8, members: ReplicaSet) {
    tracing::error!(
        node,
        members = names(members),
        "this replica has no memory of what was acknowledged, and with it a majority of the replicas has none: no replica can tell \
         what the data was, and the cluster serves no clients. With durability \"replicated\" a majority that restarts at once \
         loses the data. Stop all nodes, and start a new cluster with empty data directories and --bootstrap"
    );
}

/// True if an operator may have to look into why the view was left.
const fn is_trouble(cause: ViewChangeCause) -> bool {
    match cause {
        ViewChangeCause::LeaderSilent
        | ViewChangeCause::NotBegun
        | ViewChangeCause::Deposed(_)
        | ViewChangeCause::Unheard(_) => true,
        ViewChangeCause::ActiveMembers { left_out, .. } => !left_out.is_empty(),
        ViewChangeCause::HandedOver(_, reason) => {
            !matches!(reason, HandOverReason::Requested | HandOverReason::Stopping)
        }
        ViewChangeCause::LeaderLeft
        | ViewChangeCause::Followed(_)
        | ViewChangeCause::Challenged(_)
        | ViewChangeCause::Yielded(_)
        | ViewChangeCause::MemoryLost(_)
        | ViewChangeCause::Mode(_)
        | ViewChangeCause::Reconfigured
        | ViewChangeCause::Restarted => false,
    }
}

/// The other member because of which the view was left.
const fn member_of(cause: ViewChangeCause) -> Option<u8> {
    match cause {
        ViewChangeCause::Followed(member)
        | ViewChangeCause::Challenged(member)
        | ViewChangeCause::Yielded(member)
        | ViewChangeCause::MemoryLost(member)
        | ViewChangeCause::Deposed(member)
        | ViewChangeCause::HandedOver(member, _) => Some(member.0),
        ViewChangeCause::LeaderSilent
        | ViewChangeCause::NotBegun
        | ViewChangeCause::LeaderLeft
        | ViewChangeCause::Restarted
        | ViewChangeCause::Unheard(_)
        | ViewChangeCause::Mode(_)
        | ViewChangeCause::Reconfigured
        | ViewChangeCause::ActiveMembers { .. } => None,
    }
}

/// Why a replica left its view.
struct Cause(ViewChangeCause);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ViewChangeCause::LeaderSilent => {
                f.write_str("the leader is silent, and enough others miss it too")
            }
            ViewChangeCause::NotBegun => f.write_str("it did not begin in time, and enough others move on"),
            ViewChangeCause::LeaderLeft => f.write_str("its leader has left it"),
            ViewChangeCause::Followed(member) => write!(f, "{member} has moved there"),
            ViewChangeCause::Challenged(member) => {
                write!(
                    f,
                    "{member} is in a later view and cannot come back; this leader starts one of its own"
                )
            }
            ViewChangeCause::Yielded(member) => write!(f, "{member} has moved on, and this leader follows"),
            ViewChangeCause::MemoryLost(member) => {
                write!(f, "{member} has lost its memory and can enter a new view only")
            }
            ViewChangeCause::Restarted => f.write_str("it led when its process ended"),
            ViewChangeCause::Deposed(member) => {
                write!(f, "{member} takes part in a later view, so this replica has been deposed")
            }
            ViewChangeCause::Unheard(silence) => {
                write!(f, "too few other replicas have answered it for {} ms", silence.as_millis())
            }
            ViewChangeCause::ActiveMembers { left_out, taken_back } => {
                if !left_out.is_empty() {
                    write!(
                        f,
                        "no update waits for {} any longer, which this leader does not hear, or hears much later than others",
                        names(left_out)
                    )?;
                }
                let separator = if left_out.is_empty() || taken_back.is_empty() { "" } else { "; " };
                f.write_str(separator)?;
                if !taken_back.is_empty() {
                    write!(f, "{} has caught up and is active again", names(taken_back))?;
                }
                Ok(())
            }
            ViewChangeCause::Reconfigured => f.write_str("the cluster has other nodes from now on"),
            ViewChangeCause::Mode(mode) => write!(f, "the fast quorum is to be {mode}, as was asked for"),
            ViewChangeCause::HandedOver(to, HandOverReason::WrongClock(error)) => {
                write!(f, "{to} is to lead, because this machine's clock is {}", Error(error))
            }
            ViewChangeCause::HandedOver(to, HandOverReason::Requested) => {
                write!(f, "{to} is to lead, as was asked for")
            }
            ViewChangeCause::HandedOver(to, HandOverReason::Stopping) => {
                write!(f, "{to} is to lead, because this node stops")
            }
            ViewChangeCause::HandedOver(to, HandOverReason::FullDisk) => {
                write!(f, "{to} is to lead, because this disk is nearly full")
            }
            ViewChangeCause::HandedOver(to, HandOverReason::Replaced) => {
                write!(f, "{to} is to lead, because another node takes the place of this one")
            }
            ViewChangeCause::HandedOver(to, HandOverReason::Diverged) => {
                write!(f, "{to} is to lead, because this node's state is not that of the majority")
            }
            ViewChangeCause::HandedOver(to, HandOverReason::SlowDisk(behind)) => {
                write!(
                    f,
                    "{to} is to lead, because this disk has been behind the others for {} ms",
                    behind.as_millis()
                )
            }
        }
    }
}

/// How wrong a clock is.
struct Error(ClockError);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.0.ahead { "ahead of" } else { "behind" };
        write!(f, "{} ms {direction} those of the other replicas", self.0.off.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_views_names_the_member_and_the_reason() {
        let behind = Duration::from_millis(231);
        let cause = ViewChangeCause::HandedOver(ReplicaId(2), HandOverReason::SlowDisk(behind));
        assert_eq!(
            Cause(cause).to_string(),
            "replica 2 is to lead, because this disk has been behind the others for 231 ms"
        );
        assert_eq!((member_of(cause), is_trouble(cause)), (Some(2), true));
        let cause = ViewChangeCause::HandedOver(ReplicaId(2), HandOverReason::Requested);
        assert_eq!((member_of(cause), is_trouble(cause)), (Some(2), false));
        assert_eq!(
            (member_of(ViewChangeCause::LeaderSilent), is_trouble(ViewChangeCause::LeaderSilent)),
            (None, true)
        );
    }
}
