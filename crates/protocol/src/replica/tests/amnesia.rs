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
    Message::StartView(Box::new(StartView { view, rule: None, base, base_view: view, commit: base, suffix }))
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

#[test]
fn an_amnesiac_enters_only_a_new_view() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Ordered, "uA1");
    cluster.send(&[0], &request);
    cluster.deliver_all();
    assert_eq!(cluster.answers(), [(0, "committed")]);
    let config = cluster.replicas[2].config.clone();
    cluster.replicas[2] = Replica::new(config, Boot::Amnesiac { view: View(0) }, cluster.now);
    cluster.executed[2].clear();
    cluster.pass(500);
    assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view() == View(3)));
    assert!(cluster.executed.iter().all(|executed| executed == &["uA1"]));
}

/// Found by seed 73010310: the file with the record that says so was gone, and the log began with the next one, in the
/// next file.
#[test]
fn an_amnesiac_whose_log_has_lost_its_beginning_is_one() {
    let config = Cluster::new(3, FastQuorum::Majority).replicas[2].config.clone();
    let (view, base) = (View(4), OpNumber(9));
    let checkpoint = |amnesiac| {
        Record::Checkpoint(Box::new(Checkpoint {
            view,
            last_normal: view,
            rule: None,
            base,
            base_view: View(3),
            base_time: WallTime(5),
            commit: base,
            suffix: Vec::new(),
            dlog: Vec::new(),
            amnesiac,
        }))
    };
    let enter = Record::EnterView { view: View(5), rule: None, base, commit: base, suffix: Vec::new() };
    let restore = |snapshots: &[OpNumber], first: u64, records: &[Record]| {
        let mut restored = Restored::new(&config, snapshots.iter().copied());
        for (number, record) in (first..).zip(records) {
            restored.replay(number, record.clone()).unwrap();
        }
        (restored.is_amnesiac(), restored.view(), restored.needed_snapshot())
    };
    for snapshots in [&[base][..], &[]] {
        let amnesiac = (true, view, Ok(None));
        assert_eq!(restore(snapshots, 1, &[Record::Forgot { view }, checkpoint(true)]), amnesiac);
        assert_eq!(restore(snapshots, 2, &[checkpoint(true)]), amnesiac);
    }
    assert_eq!(restore(&[base], 2, &[checkpoint(false)]), (false, view, Ok(Some(base))));
    assert_eq!(restore(&[base], 2, &[checkpoint(true), enter]), (false, View(5), Ok(Some(base))));
}

#[test]
fn a_majority_without_memory_says_so() {
    let is_gone = |traced: &(usize, TraceEvent)| matches!(traced.1, TraceEvent::MemoryGone { .. });
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let forget = |cluster: &mut Cluster, member: usize| {
        let config = cluster.replicas[member].config.clone();
        let view = cluster.replicas[member].view();
        cluster.replicas[member] = Replica::new(config, Boot::Amnesiac { view }, cluster.now);
        cluster.executed[member].clear();
    };
    forget(&mut cluster, 2);
    cluster.pass(2000);
    assert!(cluster.replicas.iter().all(Replica::is_normal), "the others remember");
    forget(&mut cluster, 2);
    forget(&mut cluster, 1);
    assert!(!cluster.traced.iter().any(is_gone), "{:?}", cluster.traced);
    cluster.pass(2000);
    let told: Vec<_> = cluster.traced.iter().filter(|traced| is_gone(traced)).collect();
    let members = [ReplicaId(1), ReplicaId(2)].into_iter().collect();
    let event = TraceEvent::MemoryGone { members };
    assert!(told.len() == 2 && told.contains(&&(1, event)) && told.contains(&&(2, event)), "{told:?}");
}
