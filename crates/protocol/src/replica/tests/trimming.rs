//! How much of the log stays in memory.

use super::*;

const KEEP: usize = 64_000;

impl Cluster {
    /// As many updates, one after the other, all executed by whoever is there.
    pub(super) fn update_times(&mut self, session: SessionId, sequences: core::ops::RangeInclusive<u64>) {
        for sequence in sequences {
            let update =
                self.request(session, sequence, self.now.wall.0, Path::Ordered, "uA-twenty-bytes-long");
            let leader = self.leader();
            self.send(&[leader], &update);
            self.deliver_all();
            self.pass(1);
        }
        self.pass(20);
        self.inbox.clear();
    }

    fn log_bytes(&self) -> Vec<usize> {
        self.replicas.iter().map(|replica| replica.log.bytes()).collect()
    }
}

/// All that is kept is for members that lack it: the leader tells what none does.
#[test]
fn what_all_members_hold_goes_and_what_one_lacks_stays() {
    let keep = |config: &mut Config| config.settings.log_keep_bytes = KEEP;
    let mut cluster = Cluster::with(3, FastQuorum::Majority, keep);
    let session = cluster.register();
    cluster.update_times(session, 1..=200);
    let all_hold = 3 * KEEP / HELD_SHARE;
    assert!(cluster.log_bytes().iter().all(|bytes| *bytes <= all_hold), "{:?}", cluster.log_bytes());

    cluster.down.insert(2);
    cluster.update_times(session, 201..=400);
    let lacking = cluster.log_bytes()[0];
    assert!(lacking > 10 * all_hold && lacking < KEEP, "{lacking}");
    assert_eq!(cluster.executed[2].len(), 200);

    // Nobody offers it a snapshot: that would be an action which these tests do not know.
    cluster.down.remove(&2);
    cluster.pass(2_000);
    cluster.update_times(session, 401..=420);
    assert_eq!(cluster.executed[2].len(), 420);
    assert!(cluster.log_bytes().iter().all(|bytes| *bytes <= all_hold), "{:?}", cluster.log_bytes());

    // Where more is lacking than the limit, the limit holds.
    cluster.down.insert(2);
    cluster.update_times(session, 421..=1_200);
    assert!(cluster.log_bytes()[0] <= KEEP && cluster.log_bytes()[1] <= KEEP, "{:?}", cluster.log_bytes());
}

/// Only the leader of the view is believed, and nothing goes that has not been executed.
#[test]
fn followers_take_no_more_for_held_than_they_have_executed() {
    let keep = |config: &mut Config| config.settings.log_keep_bytes = KEEP;
    let mut cluster = Cluster::with(3, FastQuorum::Majority, keep);
    let session = cluster.register();
    cluster.down.insert(2);
    cluster.update_times(session, 1..=50);
    let before = cluster.log_bytes()[1];
    let told = |view| Message::HeldByAll { view, op_number: OpNumber(1_000_000) };
    let view = cluster.replicas[0].view();
    for (from, message) in [(2, told(view)), (0, told(View(view.0 + 3)))] {
        cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(from)), message });
        assert_eq!(cluster.log_bytes()[1], before);
    }
    cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(0)), message: told(view) });
    let applied = cluster.replicas[1].applied();
    assert!(cluster.log_bytes()[1] <= KEEP / HELD_SHARE && cluster.replicas[1].log.base() < applied);
    cluster.update_times(session, 51..=60);
    assert!(cluster.replicas[1].log.base() < cluster.replicas[1].applied());
    assert_eq!(cluster.executed[1].len(), 60);
}

/// Member 2 was away, the others keep nothing in memory of the log that it lacks, and cannot read it on disk: it will need a snapshot.
fn without_what_member_2_lacks() -> (Cluster, SessionId) {
    let change = |config: &mut Config| {
        config.settings.log_keep_bytes = 0;
        config.durability = Durability::Fsync;
    };
    let mut cluster = Cluster::with(3, FastQuorum::Majority, change);
    cluster.is_unreadable = true;
    let session = cluster.register();
    cluster.down.insert(2);
    cluster.update_times(session, 1..=20);
    (cluster, session)
}

/// A leader whose disk is short is asked for a snapshot, and has more in its log that nobody else holds than a checkpoint there
/// should repeat: it tries, again and again, and writes no checkpoint for each attempt. What it has cannot be completed before the
/// other has the snapshot.
#[test]
fn a_snapshot_that_a_member_needs_is_tried_though_much_follows_it_on_a_short_disk() {
    let (mut cluster, session) = without_what_member_2_lacks();
    cluster.down.insert(1);
    let long = "uA".repeat(500);
    for sequence in 21..=60 {
        let update = cluster.request(session, sequence, 5, Path::Ordered, &long);
        cluster.send(&[0], &update);
    }
    cluster.event(0, Event::DiskRoom(0));
    cluster.down.remove(&2);
    cluster.pass(5_000);
    assert_eq!(cluster.executed[0].len(), 20);
    assert!(cluster.snapshots >= 4, "{} attempts", cluster.snapshots);
    assert_eq!(cluster.checkpoints, 1);
}

/// A follower has accepted updates that the leader has refused for want of room, before it heard that a majority's disks are short.
/// Its own disk becomes short, too, and snapshots fail while something is executed now and then.
#[test]
fn a_durability_log_is_not_written_again_and_again_on_a_short_disk() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| config.durability = Durability::Fsync);
    let session = cluster.register();
    cluster.event(0, Event::DiskRoom(0));
    cluster.event(1, Event::DiskRoom(0));
    cluster.wire.clear();
    let long = "oA".repeat(5_000);
    for sequence in 1..=100 {
        let update = cluster.request(session, sequence, 5 + sequence, Path::Durability, &long);
        cluster.send(&[0, 2], &update);
    }
    let answers = cluster.answers();
    let count = |from, what| answers.iter().filter(|answer| **answer == (from, what)).count();
    assert_eq!((count(0, "refused"), count(2, "ok")), (100, 100));
    cluster.event(2, Event::DiskRoom(0));
    cluster.checkpoint_bytes = 0;
    for second in 0..60 {
        let (from, view) = (Peer::Client(1_000 + second), cluster.replicas[0].view());
        let message = Message::Register { view, nonce: 1_000 + second };
        cluster.event(0, Event::Message { from, message });
        cluster.pass(1_000);
    }
    // At once, after ten seconds, and after twenty more.
    let held: usize = cluster.replicas[2].dlog.iter().map(|update| update.request.body.len()).sum();
    let written = cluster.checkpoint_bytes;
    assert!(held > 900_000 && written <= 3 * held + 60_000, "{written} bytes of {held}");
}

/// A leader whose disk is short is asked for a snapshot, which fails. It has much that is not committed, and gets it committed
/// little by little.
#[test]
fn what_is_committed_slowly_is_not_written_again_and_again_on_a_short_disk() {
    let (mut cluster, session) = without_what_member_2_lacks();
    cluster.cut.insert((1, 0));
    let long = "uA".repeat(5_000);
    for sequence in 21..=420 {
        let update = cluster.request(session, sequence, 5, Path::Ordered, &long);
        cluster.send(&[0], &update);
    }
    let (view, base) = (cluster.replicas[0].view(), cluster.replicas[0].commit());
    let tail: usize = cluster.replicas[0].log.suffix(base).iter().map(LogEntry::memory_bytes).sum();
    cluster.down.remove(&2);
    cluster.event(0, Event::DiskRoom(0));
    cluster.event(2, Event::DiskRoom(0));
    cluster.checkpoint_bytes = 0;
    for second in 1..=40 {
        cluster.pass(1_000);
        let (sent_at, clock, promise) = (cluster.now.instant, cluster.now.wall, Duration::from_millis(200));
        let op_number = OpNumber(base.0 + 10 * second);
        let message = Message::PrepareOk { view, op_number, applied: op_number, sent_at, promise, clock };
        cluster.event(0, Event::Message { from: Peer::Replica(ReplicaId(1)), message });
    }
    assert_eq!(cluster.replicas[0].view(), view);
    assert!(cluster.snapshots >= 3, "{} attempts", cluster.snapshots);
    let written = cluster.checkpoint_bytes;
    assert!(written <= 3 * tail, "{written} bytes of {tail}");
}

/// The disk of an engine refused to flush it for a file that a member wanted, when the last checkpoint held all that had been
/// executed. Only a flush that succeeds shows that the disk has room, and nothing is executed before that. Simulator seed
/// 396161870744 had two such replicas of three, which refused updates for good.
#[test]
fn an_engine_whose_disk_is_short_tries_to_flush_again_though_nothing_new_was_executed() {
    let attempts = |engine_is_durable| {
        let change = |config: &mut Config| {
            config.durability = Durability::Fsync;
            config.engine_is_durable = engine_is_durable;
        };
        let mut cluster = Cluster::with(3, FastQuorum::Majority, change);
        cluster.takes_snapshots = true;
        let session = cluster.register();
        cluster.update_times(session, 1..=5);
        cluster.event(1, Event::DiskRoom(0));
        cluster.pass(1_000);
        let first = (cluster.snapshots, cluster.checkpoints);
        cluster.pass(30_000);
        let short = (cluster.snapshots, cluster.checkpoints);
        cluster.event(1, Event::DiskRoom(u64::MAX));
        cluster.pass(30_000);
        assert_eq!((cluster.snapshots, cluster.checkpoints), short);
        (first, short)
    };
    // The log's checkpoint goes with every attempt, and is written once.
    assert_eq!(attempts(true), ((1, 1), (4, 1)));
    // Files hold all that was executed: others would bring nothing.
    assert_eq!(attempts(false), ((1, 1), (1, 1)));
}
