//! The other members, as a node asks for their state before it starts anew in its process.
//!
//! A node that starts anew may lose its memory, and has it from the others again. Two members that do so at once could be
//! a majority without memory. So a node waits until enough others are well, and for its turn: the members take turns by
//! the clock. Questions take time, so the event loop never asks them itself.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant as SystemInstant};

use mio::Waker;
use syros_client::Access;
use syros_protocol::message::{RoleName, StatusReport};
use syros_types::{Group, ReplicaId, WallTime};

use crate::clock::Clock;
use crate::tls::LinksTls;
use crate::trace::COMPLAINT_INTERVAL;

/// How long a member's turn to start anew is. Two clocks may differ by half of it.
const TURN: Duration = Duration::from_secs(4);

/// How often a node that is to start anew looks whether it is its turn.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A member that does not tell its status within this time is away.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// Who the others are.
#[derive(Clone, Debug)]
pub(crate) struct OtherMembers {
    pub(crate) group: Group,
    pub(crate) me: ReplicaId,
    /// Where the replicas listen, in the order of their positions.
    pub(crate) replicas: Vec<String>,
    pub(crate) tls: Option<LinksTls>,
}

impl OtherMembers {
    /// True while it is this node's turn. The first half of a turn is for beginning, the second for clocks that differ.
    pub(crate) fn is_our_turn(&self, now: WallTime) -> bool {
        let turn = u64::try_from(TURN.as_micros()).unwrap_or(u64::MAX);
        let (number, part) = (now.0 / turn, now.0 % turn);
        number % self.group.size() as u64 == u64::from(self.me.0) && part < turn / 2
    }

    /// How many others have to be well: a majority without this node.
    pub(crate) const fn needed(&self) -> usize {
        self.group.majority()
    }

    /// How many others are well. Takes up to half a second for each.
    ///
    /// # Errors
    /// That of `go_on`, which is asked after each: the questions end there.
    pub(crate) fn well<E>(&self, mut go_on: impl FnMut() -> Result<(), E>) -> Result<usize, E> {
        let mut well = 0;
        for (position, address) in self.replicas.iter().enumerate() {
            if position == self.me.index() {
                continue;
            }
            let resolved = address.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
            let ask = |address| {
                LinksTls::attempts(self.tls.as_ref()).find_map(|credentials| {
                    let access = Access { credentials, secret: None };
                    syros_client::status(address, access, STATUS_TIMEOUT).ok()
                })
            };
            let report = resolved.and_then(ask);
            well += usize::from(report.is_some_and(|report| is_well(&report)));
            go_on()?;
        }
        Ok(well)
    }
}

/// The process ends, or nobody waits any more for what a thread does.
pub(crate) struct Stopped;

/// Sleeps, or finds that the thread is to end.
///
/// # Errors
/// The thread is to end.
pub(crate) fn sleep(stopped: &Receiver<()>, time: Duration) -> Result<(), Stopped> {
    match stopped.recv_timeout(time) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Stopped),
    }
}

/// True if a member has its memory, and a disk that can note the view in which it gives others theirs.
fn is_well(report: &StatusReport) -> bool {
    matches!(report.role, RoleName::Leader | RoleName::Follower) && !report.disk_failed
}

/// A thread that waits until a node may start anew that loses its memory by that: one whose data is in its memory only, or whose disk
/// is damaged.
///
/// With durability `replicated` a restart loses the memory. Most replicas go on without one when their disk returns; those
/// whose engine on disk has failed with it cannot. If the engines of a majority fail together, a node that started anew at
/// once would lose what only the others' memories could give back, while they do the same. So it keeps its memory until
/// enough others are well, and answers `stale` reads from it. No simulator runs this: it decides by what other processes
/// answer on connections of their own, and by the clock.
pub(crate) struct RestartPermit {
    is_granted: Arc<AtomicBool>,
    /// Ends the thread when it is dropped, after its question to the others: the event loop does not wait for that.
    _stop: Sender<()>,
}

impl RestartPermit {
    /// Starts the thread. It uses `waker` when the node may start anew.
    pub(crate) fn request(others: OtherMembers, clock: Clock, waker: Arc<Waker>) -> io::Result<Self> {
        let is_granted = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&is_granted);
        let (stop, stopped) = channel::<()>();
        thread::Builder::new().name("restart".to_owned()).spawn(move || {
            let mut complain_at = SystemInstant::now();
            let wait = |time| sleep(&stopped, time);
            while wait(LOOK_INTERVAL).is_ok() {
                // A replica that is alone could get its memory from nobody.
                let is_alone = others.group.size() == 1;
                if !is_alone && !others.is_our_turn(clock.now().wall) {
                    continue;
                }
                let Ok(well) = others.well(|| wait(Duration::ZERO)) else { return };
                if !is_alone && well >= others.needed() {
                    theirs.store(true, Ordering::Release);
                    // Fails only if the loop is gone, and then nobody waits.
                    let _ = waker.wake();
                    return;
                }
                if SystemInstant::now() >= complain_at {
                    complain_at = SystemInstant::now() + COMPLAINT_INTERVAL;
                    tracing::warn!(
                        node = others.me.0,
                        needed = others.needed(),
                        well,
                        "this replica has to start anew, and loses its data on disk or in memory by that: it does so when enough \
                         other replicas are well. If a majority stays like that, save the \
                         data while the processes run: READ stale COMMAND answers from memory"
                    );
                }
            }
        })?;
        Ok(Self { is_granted, _stop: stop })
    }

    /// True if the node may start anew.
    pub(crate) fn is_granted(&self) -> bool {
        self.is_granted.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_take_turns() {
        let turn = u64::try_from(TURN.as_micros()).unwrap();
        let begins = [0, 1, 2].map(|position| {
            let me = ReplicaId(position);
            let others = OtherMembers { group: Group::new(3).unwrap(), me, replicas: Vec::new(), tls: None };
            let ours: Vec<u64> =
                (0..6 * turn).step_by(1000).filter(|micros| others.is_our_turn(WallTime(*micros))).collect();
            assert_eq!(ours.len() as u64, turn / 1000, "two halves of turns");
            ours[0]
        });
        assert_eq!(begins, [0, turn, 2 * turn]);
    }
}
