//! What a replica without its memory says and does while it fetches the log of a view.

use super::*;
use crate::message::StartView;

/// Log entries of a view, from one number to another.
fn entries(view: u64, numbers: core::ops::RangeInclusive<u64>) -> Vec<LogEntry> {
    let entry = |number| LogEntry {
        view: View(view),
        time: WallTime(number),
        payload: Payload::Register { nonce: 100 * view + number },
    };
    numbers.map(entry).collect()
}

fn start_view(view: u64, base: u64, suffix: Vec<LogEntry>) -> Message {
    let (view, base) = (View(view), OpNumber(base));
    Message::StartView(Box::new(StartView { view, base, base_view: view, commit: base, suffix }))
}

fn new_state(view: u64, commit: u64, entries: Vec<LogEntry>) -> Message {
    Message::NewState { view: View(view), first: OpNumber(1), commit: OpNumber(commit), entries }
}

impl Cluster {
    /// Replica 4 has lost its memory, was in view 1, and has fetched two of three entries of view 6, which are older.
    fn fetching(bug: Option<PlantedBug>) -> Self {
        let mut cluster = Self::with(5, FastQuorum::Majority, planted(bug));
        let config = cluster.replicas[4].config.clone();
        cluster.replicas[4] = Replica::new(config, Boot::Amnesiac { view: View(1) }, cluster.now);
        cluster.say(1, start_view(6, 3, Vec::new()));
        cluster.say(1, new_state(6, 3, entries(1, 1..=2)));
        assert_eq!(cluster.replicas[4].commit, OpNumber(2));
        cluster
    }

    /// Replica 4 gets a message, and nobody gets what comes of it; the names of that.
    fn say(&mut self, from: u8, message: Message) -> Vec<&'static str> {
        self.wire.clear();
        self.event(4, Event::Message { from: Peer::Replica(ReplicaId(from)), message });
        self.wire.iter().map(|(_, _, message)| message.name()).collect()
    }
}

/// Found by seed 2800258390: another replica, about to enter view 2, took the commit number of view 6 for its own view's.
#[test]
fn what_it_has_fetched_so_far_it_gives_nobody() {
    for bug in [None, Some(PlantedBug::AmnesiacGivesState)] {
        let mut cluster = Cluster::fetching(bug);
        let told = cluster.say(3, Message::GetState { view: View(2), from: OpNumber(1) });
        let gives = told.contains(&"NewState");
        assert_eq!(gives, bug.is_some() && cfg!(feature = "planted-bugs"), "with {bug:?}: {told:?}");
    }
}

#[test]
fn it_enters_no_earlier_view_than_one_whose_entries_it_has() {
    for bug in [None, Some(PlantedBug::AmnesiacGoesBack)] {
        let mut cluster = Cluster::fetching(bug);
        // The group has moved on: what was being fetched is no longer of use.
        let told = cluster.say(2, new_state(7, 9, entries(7, 1..=1)));
        assert_eq!(told, ["GetStartView"]);
        // Sent long ago, and delayed: view 5 had another second entry, which was never committed.
        let Message::StartView(mut start) = start_view(5, 1, entries(5, 2..=4)) else { unreachable!() };
        start.base_view = View(1);
        cluster.say(0, Message::StartView(start));
        let went_back = cluster.replicas[4].is_normal();
        assert_eq!(went_back, bug.is_some() && cfg!(feature = "planted-bugs"), "with {bug:?}");
    }
}
