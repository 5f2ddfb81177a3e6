//! A node whose group is being formed: it has no replica yet, and only listens to the other nodes.

use std::io;
use std::time::Duration;

use syros_metrics::{ToBe, Way};
use syros_protocol::formation::{Decision, Declaration, Formation, Mismatch, Stage};
use syros_types::{ConfigurationEpoch, Instant, ReplicaId, ReplicaSet};
use syros_wire::{Channel, HandshakeMessage, put_frame};

use super::input::REFUSES_US;
use super::{EndReason, EventLoop};
use crate::directory::DataDirectory;

/// How often a node says for whom it waits.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// What a node knows while its group is being formed.
pub(crate) struct Forming {
    pub(crate) formation: Formation,
    pub(crate) directory: DataDirectory,
    /// Why the node must not start, as a node said that is not connected.
    pub(crate) objection: Option<Mismatch>,
    /// Why it has not been taken yet, as another node said last.
    told: Option<(ReplicaId, String)>,
    /// When this node heard first that the one whose place it asks for runs.
    runs_since: Option<Instant>,
    /// For whom it waited when that was logged last, and when it is logged again.
    logged: Option<ReplicaSet>,
    log_at: Instant,
}

impl Forming {
    pub(crate) const fn new(formation: Formation, directory: DataDirectory) -> Self {
        Self {
            formation,
            directory,
            objection: None,
            told: None,
            runs_since: None,
            logged: None,
            log_at: Instant(0),
        }
    }

    /// What the node waits to be.
    pub(crate) fn to_be(&self) -> ToBe {
        let Declaration { replica, stage, .. } = self.formation.declaration();
        let way = match stage {
            Stage::New | Stage::Voted(_) | Stage::Acting(_) => Way::Form,
            Stage::Joining | Stage::Learning => Way::Join,
            Stage::Replacing => Way::Replace,
        };
        ToBe { replica: replica.0, way }
    }

    /// When it has something to say.
    pub(crate) const fn deadline(&self) -> Instant {
        self.log_at
    }

    /// A member has said why this node is not taken. Gives back why it must not wait any longer, if so: the node whose place it asks
    /// for runs. If this one waited, it would take the place as soon as that node is started anew, though nobody has decided then
    /// that it is lost.
    ///
    /// A node that has just been ended is not known to be gone at once. So it is taken to run when it has answered the leader after
    /// this one had heard of it.
    fn refusal_after(&mut self, by: ReplicaId, objection: &str, now: Instant) -> Option<String> {
        let Declaration { replica, stage, .. } = self.formation.declaration();
        let answered = answered_before(objection, replica).filter(|_| stage == Stage::Replacing)?;
        let first_heard = *self.runs_since.get_or_insert(now);
        (answered < now.since(first_heard)).then(|| {
            format!(
                "the node that is {replica} runs, and goes on answering, as {by} says: it is not replaced, and this one does not \
                 wait for it to be away. If it is to be replaced all the same, stop it for good, see that nothing starts it again, \
                 and start this one again. If this start was a mistake, delete the data directory {}, which holds nothing",
                self.directory.path().display()
            )
        })
    }

    fn log_wait(&mut self, waits: ReplicaSet, now: Instant) {
        if self.logged == Some(waits) && now < self.log_at {
            return;
        }
        (self.logged, self.log_at) = (Some(waits), now.after(LOG_INTERVAL));
        let names: Vec<String> = waits.iter().map(|replica| replica.to_string()).collect();
        let what = match self.formation.declaration().stage {
            stage @ (Stage::Replacing | Stage::Joining | Stage::Learning) => {
                let Declaration { replica, node, .. } = self.formation.declaration();
                tracing::info!(
                    node = replica.0,
                    id = %node,
                    "this node is to {}, and waits for the leader among {} to let it{}",
                    if stage == Stage::Replacing {
                        "take the place of another one"
                    } else {
                        "come into the cluster together with another new one"
                    },
                    names.join(", "),
                    match &self.told {
                        None => " (none has answered yet; where there is no cluster, one is made with --bootstrap)".to_owned(),
                        Some((replica, reason)) => format!(". {replica} has said last: {reason}"),
                    }
                );
                return;
            }
            Stage::New => "be started with a new data directory",
            Stage::Voted(_) | Stage::Acting(_) => "agree on the disks of all nodes",
        };
        tracing::info!(
            node = self.formation.declaration().replica.0,
            "the cluster is not formed yet: this node waits for {} to {what}",
            names.join(", ")
        );
    }
}

/// How long before the leader said so the node had answered that is `replica`, if that is what it objects: see
/// [`ReconfigurationObjection::Alive`](syros_protocol::replica::ReconfigurationObjection::Alive).
fn answered_before(objection: &str, replica: ReplicaId) -> Option<Duration> {
    let (_, rest) = objection.split_once(&format!("the node that is {replica} is running: it answered "))?;
    let (number, _) = rest.split_once(" ms ago")?;
    number.parse().ok().map(Duration::from_millis)
}

impl EventLoop {
    /// Goes on forming the group, if that is what the node does. Gives back how that ended, if it has.
    pub(super) fn form(&mut self) -> io::Result<Option<EndReason>> {
        let Some(forming) = &mut self.forming else { return Ok(None) };
        let ended = loop {
            if let Some(objection) = &forming.objection {
                break Some(EndReason::Refused(objection.to_string()));
            }
            match forming.formation.decide() {
                Decision::Wait(members) => {
                    forming.log_wait(members, self.now.instant);
                    break None;
                }
                Decision::Vote(roster) => {
                    forming.directory.vote(roster).map_err(io::Error::other)?;
                    forming.formation.voted(roster);
                }
                Decision::Act(configuration) => break Some(EndReason::Formed(configuration)),
                Decision::Learn(configuration) => break Some(EndReason::Learns(configuration)),
                Decision::Refuse(mismatch) => break Some(EndReason::Refused(mismatch.to_string())),
            }
        };
        self.send_stage();
        Ok(ended)
    }

    /// Tells the members that have not been told how far this node has come. By now the handshake with each of them is over,
    /// and its last frame is in the connection's buffer.
    fn send_stage(&mut self) {
        let Some(forming) = &mut self.forming else { return };
        let mut is_said = false;
        while let Some((member, stage)) = forming.formation.next_to_tell() {
            let Some(index) = self.links[member.index()].connection else { continue };
            let Some(open) = self.table.open_mut(index) else { continue };
            put_frame(open.net.outbound(), Channel::Handshake, |out| {
                HandshakeMessage::Stage(stage).encode(out);
            });
            open.mark_dirty(index, &mut self.dirty);
            is_said = true;
        }
        if is_said {
            self.flush();
        }
    }

    /// A connection to a member ends: what it has said against this node is repeated in the log.
    pub(super) fn note_objection(&mut self, replica: ReplicaId, reason: &str) {
        let Some(objection) = reason.strip_prefix(REFUSES_US) else { return };
        if let Some(forming) = &mut self.forming {
            forming.told = Some((replica, objection.to_owned()));
            let refusal = forming.refusal_after(replica, objection, self.now.instant);
            self.refusal = self.refusal.take().or(refusal);
        }
        self.on_not_yet(replica, objection.to_owned());
    }

    /// A connected member has come farther.
    pub(super) fn on_stage(&mut self, replica: ReplicaId, stage: Stage) -> Result<(), String> {
        let Some(forming) = &mut self.forming else { return Ok(()) };
        let Some(node) = self.links[replica.index()].node else { return Ok(()) };
        let (epoch, before) = (ConfigurationEpoch::FIRST, None);
        let declaration = Declaration { replica, node, stage, epoch, before };
        forming.formation.check(&declaration).map_err(|mismatch| mismatch.to_string())?;
        forming.formation.hear(&declaration);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_protocol::replica::ReconfigurationObjection;

    /// The reason comes from another process, as a text.
    #[test]
    fn a_leader_that_says_that_a_node_runs_is_understood() {
        let (member, silent) = (ReplicaId(2), Duration::from_millis(37));
        let text = format!("it is not in yet: {}", ReconfigurationObjection::Alive { member, silent });
        assert_eq!(answered_before(&text, member), Some(silent), "{text}");
        assert_eq!(answered_before(&text, ReplicaId(1)), None);
        let other = ReconfigurationObjection::JustBegun.to_string();
        assert_eq!(answered_before(&other, member), None);
    }
}
