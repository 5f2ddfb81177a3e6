//! Members that lack what is gone from memory, snapshots that they read, and disks that are short: schedules of a reviewer, who found that
//! some waited for ever, and that one which takes nothing kept others from what they needed.

use super::*;
use crate::record::SnapshotHead;

const MEMBER: Peer = Peer::Replica(ReplicaId(2));

/// A message to this replica; what comes of it but for records and messages to others, and messages to member 2.
fn tell(cluster: &mut Cluster, to: usize, event: Event) -> (Vec<Message>, Vec<Action>) {
    let now = cluster.clock(to);
    let replica = &mut cluster.replicas[to];
    replica.handle(now, event);
    let (mut messages, mut actions) = (Vec::new(), Vec::new());
    while let Some(action) = replica.poll() {
        match action {
            Action::Send { to: MEMBER, message, .. } => messages.push(message),
            Action::Send { to: Peer::Replica(other), message, .. } => {
                cluster.wire.push_back((to, other.index(), message));
            }
            Action::Persist { ticket, .. } => replica.handle(now, Event::Persisted(ticket)),
            Action::Send { .. } | Action::Trace(_) => {}
            // A checkpoint of the engine succeeds at once.
            Action::TakeSnapshot { head, is_file: false, .. } => {
                replica.handle(now, Event::SnapshotTaken { op_number: head.op_number, bytes: 0 });
            }
            other => actions.push(other),
        }
    }
    (messages, actions)
}

fn member_says(cluster: &mut Cluster, to: usize, message: Message) -> (Vec<Message>, Vec<Action>) {
    tell(cluster, to, Event::Message { from: MEMBER, message })
}

fn taken(actions: &[Action]) -> Option<(OpNumber, bool)> {
    actions.iter().find_map(|action| match action {
        Action::TakeSnapshot { head, is_file, .. } => Some((head.op_number, *is_file)),
        _ => None,
    })
}

fn offer(messages: &[Message]) -> Option<OpNumber> {
    messages.iter().find_map(|message| match message {
        Message::SnapshotOffer { op_number, .. } => Some(*op_number),
        _ => None,
    })
}

fn is_part_sent(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::SendSnapshotPart { .. }))
}

/// Engines on disk; nothing that was executed stays in memory.
fn on_disk() -> (Cluster, SessionId) {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.settings.log_keep_bytes = 0;
        config.engine_is_durable = true;
    });
    cluster.takes_snapshots = true;
    let session = cluster.register();
    cluster.down.insert(2);
    cluster.update_times(session, 1..=20);
    (cluster, session)
}

/// Disks are short, nothing is executed; a member that has nothing reads the file that was taken for it.
#[test]
fn a_file_that_a_member_reads_stays_on_a_short_disk() {
    let (mut cluster, _) = on_disk();
    assert_eq!(cluster.leader(), 0);
    cluster.event(0, Event::DiskRoom(0));
    cluster.event(1, Event::DiskRoom(0));
    cluster.pass(1_000);
    let view = cluster.replicas[0].view();
    let nothing = Message::GetState { view, from: OpNumber(1) };
    let (mut files, mut at) = (0, 0);
    // The file has 20 parts, of which it gets one a second.
    let mut reading: Option<OpNumber> = None;
    let mut furthest = 0;
    for _ in 0..120 {
        match reading {
            None => {
                let (messages, actions) = member_says(&mut cluster, 0, nothing.clone());
                if let Some((op_number, true)) = taken(&actions) {
                    files += 1;
                    tell(&mut cluster, 0, Event::SnapshotTaken { op_number, bytes: 20 });
                }
                reading = offer(&messages);
                at = 0;
            }
            Some(op_number) => {
                let get = Message::GetSnapshot { op_number, offset: at };
                if is_part_sent(&member_says(&mut cluster, 0, get).1) {
                    at += 1;
                } else {
                    reading = None;
                }
                furthest = furthest.max(at);
                if at == 20 {
                    assert_eq!(files, 1);
                    return;
                }
            }
        }
        cluster.pass(1_000);
    }
    panic!("{files} files were taken in 120 seconds, and of none more than {furthest} of 20 parts was read");
}

/// The same for a backup.
#[test]
fn a_file_that_a_client_reads_stays_on_a_short_disk() {
    let (mut cluster, _) = on_disk();
    let applied = cluster.replicas[1].applied();
    let want = Message::WantSnapshot { op_number: applied };
    let (_, actions) = tell(&mut cluster, 1, Event::Message { from: CLIENT, message: want });
    assert_eq!(taken(&actions), Some((applied, true)));
    tell(&mut cluster, 1, Event::SnapshotTaken { op_number: applied, bytes: 20 });
    let first = Message::GetSnapshot { op_number: applied, offset: 0 };
    let (_, actions) = tell(&mut cluster, 1, Event::Message { from: CLIENT, message: first });
    assert!(is_part_sent(&actions));
    cluster.event(1, Event::DiskRoom(0));
    cluster.pass(1_000);
    for part in 1..20 {
        let message = Message::GetSnapshot { op_number: applied, offset: part };
        let (_, actions) = tell(&mut cluster, 1, Event::Message { from: CLIENT, message });
        assert!(is_part_sent(&actions), "part {part} of 20: the file that it reads has been forgotten");
        cluster.pass(1_000);
    }
}

/// A replica with an engine on disk had a file, and then takes over another one's snapshot: its file is removed. (It offered that file
/// for ever: seeds 670000512 and 680000358.)
#[test]
fn a_file_that_was_removed_is_not_offered() {
    let (mut cluster, _) = on_disk();
    let view = cluster.replicas[1].view();
    // Somebody with nothing had a file taken here.
    let nothing = Message::GetState { view, from: OpNumber(1) };
    let (file, _) = taken(&member_says(&mut cluster, 1, nothing).1).unwrap();
    tell(&mut cluster, 1, Event::SnapshotTaken { op_number: file, bytes: 1_000 });
    // It was away, and its leader's log does not go back so far: it gets a snapshot.
    cluster.pass(5_000);
    let (op_number, leader) = (OpNumber(file.0 + 1_000), Peer::Replica(ReplicaId(0)));
    let from_leader = |message| Event::Message { from: leader, message };
    tell(&mut cluster, 1, from_leader(Message::SnapshotOffer { view, op_number, bytes: 4 }));
    cluster.wire.clear();
    let part = Body::from(*b"part");
    tell(&mut cluster, 1, from_leader(Message::SnapshotPart { op_number, offset: 0, part }));
    let (_, actions) = tell(&mut cluster, 1, Event::SnapshotPartWritten { op_number, received: 4 });
    assert!(matches!(actions[..], [Action::LoadSnapshot { .. }]), "{actions:?}");
    let replica = &cluster.replicas[1];
    let head = SnapshotHead {
        op_number,
        view,
        time: WallTime(replica.log.last_time().0 + 1),
        sessions: replica.sessions.clone(),
        configuration: None,
    };
    let (_, actions) = tell(&mut cluster, 1, Event::SnapshotLoaded { head: Box::new(head), bytes: 4 });
    let kept = actions.iter().find_map(|action| match action {
        Action::KeepFrom { op_number, .. } => Some(*op_number),
        _ => None,
    });
    assert_eq!(kept, Some(op_number), "the driver removes the file before it");
    // Member 2 lacks what follows its entry 3. The log on disk has a gap: it is `Gone`.
    let mut told = Vec::new();
    for round in 0..300 {
        let asks = Message::GetState { view, from: OpNumber(4) };
        let (mut messages, actions) = member_says(&mut cluster, 1, asks);
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            let answer = match action {
                Action::ReadEntries(EntriesWanted { copier, after, .. }) => {
                    let found = Some(ScannedEntries::Gone { base: op_number, is_cut: true });
                    Event::EntriesRead { copier, after, found }
                }
                Action::TakeSnapshot { head, is_file: true, .. } => {
                    Event::SnapshotTaken { op_number: head.op_number, bytes: 1_000 }
                }
                _ => continue,
            };
            let (more, next) = tell(&mut cluster, 1, answer);
            messages.extend(more);
            actions.extend(next);
        }
        if let Some(offered) = offer(&messages) {
            if offered >= op_number {
                return;
            }
            // It asks for the file, in vain, and waits.
            let (_, actions) =
                member_says(&mut cluster, 1, Message::GetSnapshot { op_number: offered, offset: 0 });
            told.push((round, offered, is_part_sent(&actions)));
            // The engine's checkpoints go on.
            let (_, actions) = tell(&mut cluster, 1, Event::CheckpointDue);
            assert!(actions.is_empty(), "{actions:?}");
        }
        cluster.now.instant.0 += 1_500_000_000;
    }
    panic!("{} times it was offered the file at {file:?}, which is removed: {:?}", told.len(), &told[..3]);
}

/// How many snapshots are taken for the sake of space when the disks of 0 and 1 are short, whatever member 2 does.
fn for_space(fails: bool) -> usize {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| config.settings.log_keep_bytes = 0);
    cluster.takes_snapshots = true;
    let session = cluster.register();
    cluster.update_times(session, 1..=3);
    cluster.down.insert(2);
    cluster.update_times(session, 4..=40);
    if fails {
        cluster.down.remove(&2);
        cluster.event(2, Event::PersistFailed);
    }
    cluster.pass(5_000);
    cluster.event(0, Event::DiskRoom(0));
    cluster.event(1, Event::DiskRoom(0));
    cluster.pass(120_000);
    cluster.snapshots
}

/// A member whose disk has failed asks for ever, and takes nothing: it must not keep the leader's log on a short disk.
#[test]
fn a_member_that_takes_nothing_keeps_no_snapshot_from_being_taken_for_space() {
    assert_eq!((for_space(false), for_space(true)), (2, 2));
}

/// A learner that does not hear the leader any more asks a group of one for ever.
#[test]
fn a_learner_that_hears_nothing_keeps_no_snapshot_from_being_taken_for_space() {
    for deaf in [false, true] {
        let mut cluster = Cluster::with(1, FastQuorum::Mixed, |config| {
            config.settings.transfer_entries_max = 4;
            config.configuration.roster = sizes::roster_of(1);
            config.node = config.configuration.roster.node(config.replica);
        });
        cluster.takes_snapshots = true;
        let session = cluster.register();
        cluster.update_times(session, 1..=30);
        let known = *cluster.replicas[0].configuration();
        let mut config = cluster.replicas[0].config.clone();
        (config.replica, config.configuration) = (ReplicaId(1), known);
        config.node = Some(sizes::node(2));
        cluster.replicas.push(Replica::new(config, Boot::Fresh, cluster.now));
        cluster.executed.push(Vec::new());
        cluster.ahead.push(0);
        cluster.pass(300);
        assert_eq!(cluster.executed[1].len(), 30);
        // It is away for a moment, and more is written than memory holds.
        cluster.down.insert(1);
        let settings = &mut cluster.replicas[0].config.settings;
        (settings.log_keep_bytes, settings.log_bytes_max) = (0, 8_000);
        cluster.update_times(session, 31..=130);
        cluster.pass(20_000);
        cluster.update_times(session, 131..=132);
        assert!(cluster.replicas[0].log_base() > OpNumber(40));
        // It hears how far the log is committed, and then nothing more.
        if deaf {
            cluster.down.clear();
            cluster.now.instant.0 += 60_000_000;
            cluster.event(1, Event::Tick);
            while !cluster.replicas[1].awaits_transfer() {
                let (from, to, message) = cluster.wire.pop_front().expect("the leader answers");
                cluster.event(to, Event::Message { from: Peer::Replica(ReplicaId(from as u8)), message });
            }
            cluster.cut.insert((0, 1));
        }
        cluster.pass(5_000);
        cluster.event(0, Event::DiskRoom(0));
        cluster.pass(120_000);
        let (base, read) = (cluster.replicas[0].log_base(), cluster.from_disk);
        assert!(
            cluster.snapshots > 0,
            "deaf: {deaf}, none in 120 seconds; base {base:?}, {read} entries read"
        );
    }
}

/// "A member that lacks no more log than goes into so many answers gets that, however short a snapshot is."
#[test]
fn who_lacks_one_entry_gets_no_terabyte() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| config.settings.log_keep_bytes = 0);
    let session = cluster.register();
    cluster.update_times(session, 1..=20);
    let view = cluster.replicas[1].view();
    let base = cluster.replicas[1].log_base();
    let nothing = Message::GetState { view, from: OpNumber(1) };
    let (op_number, _) = taken(&member_says(&mut cluster, 1, nothing).1).unwrap();
    tell(&mut cluster, 1, Event::SnapshotTaken { op_number, bytes: 1 << 40 });
    let (messages, actions) = member_says(&mut cluster, 1, Message::GetState { view, from: base });
    let lacking = op_number.0 + 1 - base.0;
    assert_eq!(offer(&messages), None, "it lacks {lacking} entry of {op_number:?}: {actions:?}");
}

/// What was executed while a file was being written follows the file as well: a reader that is slow does not keep all of it for ever.
#[test]
fn the_log_that_was_written_during_a_snapshot_counts() {
    let (mut cluster, session) = on_disk();
    let view = cluster.replicas[1].view();
    let nothing = || Message::GetState { view, from: OpNumber(1) };
    let (file, _) = taken(&member_says(&mut cluster, 1, nothing()).1).unwrap();
    cluster.update_times(session, 21..=1_020);
    cluster.replicas[1].config.settings.snapshot_log_bytes = 1_000;
    member_says(&mut cluster, 1, nothing());
    // The next checkpoint follows at once.
    let (_, actions) = tell(&mut cluster, 1, Event::SnapshotTaken { op_number: file, bytes: 2_000 });
    let kept = |action: &Action| match action {
        Action::KeepFrom { op_number, .. } => Some(*op_number),
        _ => None,
    };
    let kept: Vec<OpNumber> = actions.iter().filter_map(kept).collect();
    assert_eq!(kept, [file, cluster.replicas[1].applied()]);
}

/// How much a member lacks nobody knows: when it has got twice as much log as a snapshot would be, it gets that.
#[test]
fn who_lacks_much_more_log_than_a_snapshot_gets_the_snapshot() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.settings.log_keep_bytes = 0;
        config.settings.transfer_bytes_max = 1;
    });
    let session = cluster.register();
    cluster.update_times(session, 1..=400);
    let view = cluster.replicas[1].view();
    let asks = |first| Message::GetState { view, from: OpNumber(first) };
    let (file, _) = taken(&member_says(&mut cluster, 1, asks(1)).1).unwrap();
    tell(&mut cluster, 1, Event::SnapshotTaken { op_number: file, bytes: 2_000 });
    let (mut first, mut bytes) = (2, 0);
    let offered = loop {
        let (messages, actions) = member_says(&mut cluster, 1, asks(first));
        if let Some(offered) = offer(&messages) {
            break offered;
        }
        assert!(actions.iter().any(|action| matches!(action, Action::ReadEntries(_))), "{first}");
        let entry = LogEntry { view: View(0), time: WallTime(5), payload: Payload::Tick };
        bytes += entry.memory_bytes();
        let found = Some(ScannedEntries::Entries { after_view: View(0), entries: vec![entry] });
        tell(&mut cluster, 1, Event::EntriesRead { copier: MEMBER, after: OpNumber(first - 1), found });
        cluster.now.instant = cluster.now.instant.after(Duration::from_millis(1));
        first += 1;
    };
    assert!(offered == file && (4_000..5_000).contains(&bytes), "{bytes} bytes of log");
}

/// Members whose disks have failed hold the two places for ever.
#[test]
fn members_that_take_nothing_leave_their_places_to_others() {
    for failing in [1, 2] {
        let mut cluster = Cluster::with(5, FastQuorum::Majority, |config| {
            config.settings.log_keep_bytes = 0;
            config.settings.transfer_entries_max = 4;
        });
        let session = cluster.register();
        cluster.update_times(session, 1..=5);
        cluster.down.extend([3, 4]);
        cluster.update_times(session, 6..=40);
        cluster.down.clear();
        for member in 3..3 + failing {
            cluster.event(member, Event::PersistFailed);
        }
        cluster.pass(60_000);
        let view = cluster.replicas[0].view();
        let mut read = 0;
        for _ in 0..2_000 {
            let asks = Message::GetState { view, from: OpNumber(4) };
            let (_, actions) = member_says(&mut cluster, 0, asks);
            read += usize::from(actions.iter().any(|action| matches!(action, Action::ReadEntries(_))));
            if let Some((op_number, _)) = taken(&actions) {
                tell(&mut cluster, 0, Event::SnapshotFailed { op_number });
            }
            cluster.pass(10);
        }
        assert!(
            read > 0,
            "{failing} have failed; member 2 has asked for 20 seconds, and nothing was read for it"
        );
    }
}

/// The thread that reads the log has died: members for which it was to read give up their places, too.
#[test]
fn members_that_get_no_answer_leave_their_places_to_others() {
    let mut cluster = Cluster::with(5, FastQuorum::Majority, |config| config.settings.log_keep_bytes = 0);
    let session = cluster.register();
    cluster.update_times(session, 1..=40);
    let asks = |cluster: &mut Cluster, member: u8| {
        let message = Message::GetState { view: cluster.replicas[0].view(), from: OpNumber(4) };
        let from = Peer::Replica(ReplicaId(member));
        let (_, actions) = tell(cluster, 0, Event::Message { from, message });
        actions.iter().any(|action| matches!(action, Action::ReadEntries(_)))
    };
    assert_eq!([2, 3, 4].map(|member| asks(&mut cluster, member)), [true, true, false]);
    cluster.now.instant = cluster.now.instant.after(Duration::from_secs(4));
    // They go on asking, and get snapshots.
    assert_eq!([2, 3, 4].map(|member| asks(&mut cluster, member)), [false, false, true]);
}

/// One large entry behind the file, and the log before it counts as if it were of such entries.
#[test]
fn who_lacks_little_gets_no_terabyte() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| config.settings.log_keep_bytes = 0);
    let session = cluster.register();
    cluster.update_times(session, 1..=2_000);
    let view = cluster.replicas[1].view();
    let nothing = Message::GetState { view, from: OpNumber(1) };
    let (op_number, _) = taken(&member_says(&mut cluster, 1, nothing).1).unwrap();
    tell(&mut cluster, 1, Event::SnapshotTaken { op_number, bytes: 1 << 30 });
    let long = std::format!("uA{}", "x".repeat(1 << 20));
    let update = cluster.request(session, 2_001, cluster.now.wall.0, Path::Ordered, &long);
    cluster.send(&[0], &update);
    cluster.deliver_all();
    cluster.pass(100);
    assert!(cluster.replicas[1].applied() > op_number);
    let (messages, actions) = member_says(&mut cluster, 1, Message::GetState { view, from: OpNumber(10) });
    assert_eq!(offer(&messages), None, "it lacks 200 KB and one entry of a MiB: {}", actions.len());
}

/// A member whose disk has failed asks for entries on disk for ever: no backup of its leader begins.
#[test]
fn a_member_that_takes_nothing_keeps_no_backup_from_beginning() {
    let taken_for_client = |fails: bool, is_durable: bool| {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
            config.settings.log_keep_bytes = 0;
            config.engine_is_durable = is_durable;
        });
        let session = cluster.register();
        cluster.update_times(session, 1..=3);
        cluster.down.insert(2);
        cluster.update_times(session, 4..=40);
        if fails {
            cluster.down.remove(&2);
            cluster.event(2, Event::PersistFailed);
        }
        cluster.pass(5_000);
        let want = Message::WantSnapshot { op_number: OpNumber(1) };
        for _ in 0..600 {
            let message = want.clone();
            if taken(&tell(&mut cluster, 0, Event::Message { from: CLIENT, message }).1).is_some() {
                return true;
            }
            cluster.pass(100);
        }
        false
    };
    let all = [(false, false), (false, true), (true, false), (true, true)];
    assert_eq!(all.map(|(fails, is_durable)| taken_for_client(fails, is_durable)), [true; 4], "in a minute");
}

/// A member wants a file for which the disk has no room, and says so again and again: the engine's own checkpoint, which would let
/// the log go, is never tried without the file.
#[test]
fn a_file_that_has_no_room_keeps_no_checkpoint_from_being_made() {
    let (mut cluster, _) = on_disk();
    let view = cluster.replicas[0].view();
    let nothing = Message::GetState { view, from: OpNumber(1) };
    let (mut files, mut checkpoints) = (0, 0);
    let mut event = Event::DiskRoom(0);
    // No room for a file: whatever is tried with one fails.
    for _ in 0..1_200 {
        for event in [Event::Message { from: MEMBER, message: nothing.clone() }, event.clone(), Event::Tick] {
            let now = cluster.clock(0);
            cluster.replicas[0].handle(now, event);
            while let Some(action) = cluster.replicas[0].poll() {
                let answer = match action {
                    Action::Persist { ticket, .. } => Event::Persisted(ticket),
                    Action::TakeSnapshot { head, is_file: true, .. } => {
                        files += 1;
                        Event::SnapshotFailed { op_number: head.op_number }
                    }
                    Action::TakeSnapshot { head, .. } => {
                        checkpoints += 1;
                        Event::SnapshotTaken { op_number: head.op_number, bytes: 0 }
                    }
                    _ => continue,
                };
                cluster.replicas[0].handle(now, answer);
            }
        }
        event = Event::Tick;
        cluster.now.instant.0 += 50_000_000;
        cluster.now.wall.0 += 50_000;
    }
    assert!(checkpoints > 0, "{files} attempts with a file in a minute, and none without");
}

/// A member has loaded the file, and lacks what follows it. Reading that from disk takes two and a half seconds, less than the
/// three after which it is given up. It asks all the while. What it reads must not be removed by a checkpoint meanwhile.
#[test]
fn the_log_that_is_being_read_for_a_member_stays() {
    for millis in [1_500, 2_500] {
        let (mut cluster, session) = on_disk();
        let view = cluster.replicas[0].view();
        let nothing = Message::GetState { view, from: OpNumber(1) };
        let (file, _) = taken(&member_says(&mut cluster, 0, nothing).1).unwrap();
        tell(&mut cluster, 0, Event::SnapshotTaken { op_number: file, bytes: 1_000 });
        assert!(is_part_sent(
            &member_says(&mut cluster, 0, Message::GetSnapshot { op_number: file, offset: 0 }).1
        ));
        // The log goes on, beyond what memory keeps for who reads a file.
        cluster.replicas[0].config.settings.log_bytes_max = 1_000;
        cluster.update_times(session, 21..=60);
        cluster.replicas[0].config.settings.log_bytes_max = 1 << 30;
        assert!(cluster.replicas[0].log_base() > file.next());
        let lacks = Message::GetState { view, from: file.next() };
        let (_, actions) = member_says(&mut cluster, 0, lacks.clone());
        assert!(matches!(actions[..], [Action::ReadEntries(_)]), "{actions:?}");
        // The disk is slow. It asks again and again.
        for _ in 0..millis / 50 {
            cluster.pass(50);
            assert!(member_says(&mut cluster, 0, lacks.clone()).1.is_empty());
        }
        // A checkpoint of the engine.
        let now = cluster.clock(0);
        cluster.replicas[0].handle(now, Event::CheckpointDue);
        let mut kept = None;
        while let Some(action) = cluster.replicas[0].poll() {
            let answer = match action {
                Action::Persist { ticket, .. } => Event::Persisted(ticket),
                Action::TakeSnapshot { head, is_file: false, .. } => {
                    Event::SnapshotTaken { op_number: head.op_number, bytes: 0 }
                }
                Action::KeepFrom { op_number, .. } => {
                    kept = Some(op_number);
                    continue;
                }
                _ => continue,
            };
            cluster.replicas[0].handle(now, answer);
        }
        assert_eq!(kept, Some(file), "after {millis} ms the log is kept from there on");
    }
}

/// Every snapshot takes so long that the next one is due when it is done: a member that has nothing is told of none of them.
#[test]
fn a_member_is_told_of_a_file_though_another_is_being_written() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.settings.log_keep_bytes = 0;
        config.settings.snapshot_log_bytes = 1_000;
    });
    let mut offers = 0;
    let (mut taking, mut files, mut sequence) = (None, 0, 0);
    let session = cluster.register();
    cluster.down.insert(2);
    cluster.cut.insert((0, 2));
    for _ in 0..50 {
        // Log of ten times the length at which one is due.
        for _ in 0..100 {
            sequence += 1;
            let update =
                cluster.request(session, sequence, cluster.now.wall.0, Path::Ordered, "uA-twenty-bytes-long");
            let attach = Message::Attach { session, nonce: 1 };
            let mut queue = VecDeque::from([
                (0, Event::Message { from: CLIENT, message: attach }),
                (0, Event::Message { from: CLIENT, message: update }),
            ]);
            while let Some((to, event)) = queue.pop_front() {
                let now = cluster.clock(to);
                cluster.replicas[to].handle(now, event);
                while let Some(action) = cluster.replicas[to].poll() {
                    match action {
                        Action::Persist { ticket, .. } => {
                            cluster.replicas[to].handle(now, Event::Persisted(ticket));
                        }
                        Action::Apply { through } => cluster.apply(to, through),
                        Action::Send { to: Peer::Replica(other), message, .. } if other.index() < 2 => {
                            let from = Peer::Replica(ReplicaId(to as u8));
                            queue.push_back((other.index(), Event::Message { from, message }));
                        }
                        Action::TakeSnapshot { head, .. } if to == 0 => taking = Some(head.op_number),
                        Action::TakeSnapshot { head, .. } => {
                            let op_number = head.op_number;
                            cluster.replicas[to].handle(now, Event::SnapshotTaken { op_number, bytes: 100 });
                        }
                        _ => {}
                    }
                }
                if queue.is_empty() && cluster.replicas[0].applied().0 < sequence {
                    cluster.now.instant.0 += 1_000_000;
                    cluster.now.wall.0 += 1_000;
                    queue.extend([(0, Event::Tick), (1, Event::Tick)]);
                }
            }
            // It asks every few milliseconds.
            let view = cluster.replicas[0].view();
            let (messages, actions) =
                member_says(&mut cluster, 0, Message::GetState { view, from: OpNumber(1) });
            taking = taken(&actions).map(|(at, _)| at).or(taking);
            offers += usize::from(offer(&messages).is_some());
        }
        if let Some(op_number) = taking.take() {
            files += 1;
            let (_, actions) = tell(&mut cluster, 0, Event::SnapshotTaken { op_number, bytes: 100 });
            taking = taken(&actions).map(|(at, _)| at);
        }
    }
    assert!(offers > 0, "{files} files were written, and it asked 5,000 times");
}
