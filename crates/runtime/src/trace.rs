//! What the core reports of itself, in the log's words.

use std::fmt;

use syros_protocol::replica::{ClockError, HandOverReason, TraceEvent, ViewChangeCause};
use syros_types::ReplicaId;

/// Logs an event: as a warning what an operator may have to look into, as information what explains the rest.
pub(crate) fn log(me: ReplicaId, event: TraceEvent) {
    let level = match event {
        TraceEvent::Differing { .. } | TraceEvent::Diverged { .. } | TraceEvent::MemoryGone { .. } => {
            log::Level::Error
        }
        TraceEvent::Suspected { .. }
        | TraceEvent::Alone { .. }
        | TraceEvent::QuorumLost { .. }
        | TraceEvent::WrongClock(_)
        | TraceEvent::Implausible { .. }
        | TraceEvent::LeftView {
            cause:
                ViewChangeCause::LeaderSilent
                | ViewChangeCause::NotBegun
                | ViewChangeCause::Deposed(_)
                | ViewChangeCause::Unheard(_)
                | ViewChangeCause::HandedOver(
                    _,
                    HandOverReason::SlowDisk(_)
                    | HandOverReason::WrongClock(_)
                    | HandOverReason::FullDisk
                    | HandOverReason::Diverged,
                ),
            ..
        } => log::Level::Warn,
        TraceEvent::LeftView { .. }
        | TraceEvent::LeaderReturned { .. }
        | TraceEvent::TransferBegan { .. }
        | TraceEvent::SnapshotBegan { .. }
        | TraceEvent::EnteredView { .. }
        | TraceEvent::QuorumRegained { .. } => log::Level::Info,
    };
    log::log!(level, "{me} {}", Line(event));
}

/// An event as what follows the name of the replica.
struct Line(TraceEvent);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TraceEvent::Differing { op_number } => write!(
                f,
                "finds that members have executed different things in the log up to entry {}: their data differ. \
                 The one that a majority contradicts says so",
                op_number.0
            ),
            TraceEvent::Diverged { op_number } => write!(
                f,
                "has executed something else than the majority in the log up to entry {}: it answers no reads any more. \
                 Its data are wrong; let it come back without them, so that it gets those of the others",
                op_number.0
            ),
            TraceEvent::Suspected { view, leader, silent } => write!(
                f,
                "suspects {leader}, the leader of view {}: nothing heard for {} ms",
                view.0,
                silent.as_millis()
            ),
            TraceEvent::LeaderReturned { view } => {
                write!(f, "hears the leader of view {} again, and stays in the view", view.0)
            }
            TraceEvent::LeftView { from, to, cause } => {
                write!(f, "leaves view {} for view {}: {}", from.0, to.0, Cause(cause))
            }
            TraceEvent::Alone { view } => {
                write!(f, "cannot begin view {}: too few other replicas are heard to want a new view", view.0)
            }
            TraceEvent::TransferBegan { view, from, first } => {
                write!(f, "fetches the log of view {} from {from}, from entry {} on", view.0, first.0)
            }
            TraceEvent::SnapshotBegan { from, op_number, bytes } => write!(
                f,
                "fetches a snapshot of {bytes} bytes, up to entry {}, from {from}: the log before it is gone",
                op_number.0
            ),
            TraceEvent::EnteredView { view, leader, took } => {
                write!(f, "enters view {} of {leader}, after {} ms without a view", view.0, took.as_millis())
            }
            TraceEvent::QuorumLost { view, silent } => write!(
                f,
                "leads view {} and has not heard a majority for {} ms: nothing can be completed",
                view.0,
                silent.as_millis()
            ),
            TraceEvent::WrongClock(error) => {
                write!(f, "leads, and its clock is {}: check this machine's clock", Error(error))
            }
            TraceEvent::MemoryGone { members } => {
                let names: Vec<String> = members.iter().map(|member| member.to_string()).collect();
                write!(
                    f,
                    "has no memory of what was acknowledged, and neither have so many others that they are a majority ({}): \
                     nobody can tell what the data was, and the cluster serves nobody. With durability \"replicated\" that \
                     is what comes of a majority that restarts at once: the data is gone. Stop all nodes, and start a \
                     new cluster with empty data directories and --bootstrap",
                    names.join(", ")
                )
            }
            TraceEvent::Implausible { from, message } => {
                write!(f, "refuses a {message} of {from} that no working replica sends")
            }
            TraceEvent::QuorumRegained { view } => {
                write!(f, "leads view {} and hears a majority again", view.0)
            }
        }
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
    use std::time::Duration;
    use syros_types::View;

    #[test]
    fn lines_name_the_view_the_member_and_the_reason() {
        let leader = ReplicaId(0);
        let silent = Duration::from_millis(231);
        let line = Line(TraceEvent::Suspected { view: View(4), leader, silent }).to_string();
        assert_eq!(line, "suspects replica 0, the leader of view 4: nothing heard for 231 ms");
        let cause = ViewChangeCause::HandedOver(ReplicaId(2), HandOverReason::SlowDisk(silent));
        let line = Line(TraceEvent::LeftView { from: View(4), to: View(5), cause }).to_string();
        assert_eq!(
            line,
            "leaves view 4 for view 5: replica 2 is to lead, because this disk has been behind the others for 231 ms"
        );
    }
}
