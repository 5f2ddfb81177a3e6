//! Clients that copy snapshots, for backups.

use super::*;

const MORE: Peer = Peer::Client(8);

/// What replicas answered about snapshots: last entry and bytes.
fn offers(cluster: &mut Cluster) -> Vec<(u64, u64)> {
    let offer = |(_, _, message): (u64, usize, Message)| match message {
        Message::SnapshotOffer { op_number, bytes, .. } => Some((op_number.0, bytes)),
        _ => None,
    };
    cluster.inbox.drain(..).filter_map(offer).collect()
}

fn ask(cluster: &mut Cluster, from: Peer, message: Message) -> Vec<Action> {
    let now = cluster.clock(1);
    let replica = &mut cluster.replicas[1];
    replica.handle(now, Event::Message { from, message });
    let mut actions = Vec::new();
    while let Some(action) = replica.poll() {
        match action {
            Action::Send { to: Peer::Client(to), message, .. } => cluster.inbox.push((to, 1, message)),
            Action::Persist { ticket, .. } => replica.handle(now, Event::Persisted(ticket)),
            other => actions.push(other),
        }
    }
    actions
}

/// A cluster whose member 1 has executed some updates.
fn cluster() -> (Cluster, OpNumber) {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let update = cluster.request(session, 1, 1, Path::Ordered, "uA");
    let leader = cluster.leader();
    cluster.send(&[leader], &update);
    cluster.deliver_all();
    cluster.pass(50);
    cluster.inbox.clear();
    let applied = cluster.replicas[1].applied();
    assert!(applied > OpNumber(0));
    (cluster, applied)
}

fn taken(actions: &[Action]) -> Option<OpNumber> {
    actions.iter().find_map(|action| match action {
        Action::TakeSnapshot { head, is_file, .. } => {
            assert!(is_file, "only a file can be copied");
            Some(head.op_number)
        }
        _ => None,
    })
}

/// The snapshot at this entry is on disk, with 1,000 bytes.
fn finish(cluster: &mut Cluster, op_number: OpNumber) {
    let now = cluster.clock(1);
    cluster.replicas[1].handle(now, Event::SnapshotTaken { op_number, bytes: 1_000 });
    while cluster.replicas[1].poll().is_some() {}
}

fn is_sent(actions: &[Action], client: Peer) -> bool {
    actions.iter().any(|action| matches!(action, Action::SendSnapshotPart { to, .. } if *to == client))
}

#[test]
fn a_snapshot_is_taken_for_a_client_and_not_before_it_can_hold_what_is_wanted() {
    let (mut cluster, applied) = cluster();
    let too_late = Message::WantSnapshot { op_number: applied.next() };
    assert_eq!(taken(&ask(&mut cluster, CLIENT, too_late)), None);
    assert_eq!(offers(&mut cluster), [(applied.0, 0)], "there is none yet");
    let want = Message::WantSnapshot { op_number: applied };
    assert_eq!(taken(&ask(&mut cluster, CLIENT, want.clone())), Some(applied));
    assert_eq!(taken(&ask(&mut cluster, CLIENT, want.clone())), None, "one is being taken");
    assert_eq!(offers(&mut cluster), [(applied.0, 0), (applied.0, 0)]);
    finish(&mut cluster, applied);
    assert_eq!(taken(&ask(&mut cluster, CLIENT, want)), None, "it is there");
    assert_eq!(offers(&mut cluster), [(applied.0, 1_000)]);
    // Of that one parts are sent; of another one, and of what is behind its end, none.
    for (op_number, offset, sent) in [(applied, 0, true), (applied, 1_000, false), (applied.next(), 0, false)]
    {
        let get = Message::GetSnapshot { op_number, offset };
        assert_eq!(is_sent(&ask(&mut cluster, CLIENT, get), CLIENT), sent);
    }
    assert_eq!(offers(&mut cluster), [(applied.0, 1_000), (applied.0, 1_000)]);
}

/// Otherwise each would have the snapshot taken away that the other one copies.
#[test]
fn a_snapshot_that_is_copied_is_not_replaced_for_another_client() {
    let (mut cluster, applied) = cluster();
    assert!(taken(&ask(&mut cluster, CLIENT, Message::WantSnapshot { op_number: applied })).is_some());
    finish(&mut cluster, applied);
    cluster.register();
    let later = cluster.replicas[1].applied();
    assert!(later > applied);
    let get = Message::GetSnapshot { op_number: applied, offset: 0 };
    assert!(is_sent(&ask(&mut cluster, CLIENT, get), CLIENT));
    let want = Message::WantSnapshot { op_number: later };
    assert_eq!(taken(&ask(&mut cluster, MORE, want.clone())), None, "the first client reads it");
    // When that client is gone, the other one's turn has come.
    cluster.pass(60_000);
    assert_eq!(taken(&ask(&mut cluster, MORE, want)), Some(cluster.replicas[1].applied()));
}

/// Backups that begin together wait for the same snapshot, and not for each other.
#[test]
fn clients_that_only_ask_keep_each_other_from_nothing() {
    let (mut cluster, applied) = cluster();
    let too_late = Message::WantSnapshot { op_number: applied.next() };
    for client in [CLIENT, MORE] {
        assert_eq!(taken(&ask(&mut cluster, client, too_late.clone())), None, "it cannot hold that yet");
    }
    let want = Message::WantSnapshot { op_number: applied };
    assert_eq!(taken(&ask(&mut cluster, CLIENT, want)), Some(applied), "the other one has only asked");
}

#[test]
fn few_clients_copy_at_a_time() {
    let (mut cluster, _) = cluster();
    let refused = |cluster: &Cluster| cluster.replicas[1].status().refused;
    let before = refused(&cluster);
    for client in 0..1_000 {
        ask(&mut cluster, Peer::Client(client), Message::WantSnapshot { op_number: OpNumber(u64::MAX) });
    }
    assert_eq!(refused(&cluster) - before, 996);
    assert_eq!(offers(&mut cluster).len(), 4);
    cluster.pass(60_000);
    ask(&mut cluster, Peer::Client(2_000), Message::WantSnapshot { op_number: OpNumber(u64::MAX) });
    assert_eq!(offers(&mut cluster).len(), 1, "those that ask no more are forgotten");
}

/// A client that reads a snapshot needs no log after it.
#[test]
fn a_copy_keeps_no_log() {
    let (mut cluster, applied) = cluster();
    assert!(taken(&ask(&mut cluster, CLIENT, Message::WantSnapshot { op_number: applied })).is_some());
    assert!(!cluster.replicas[1].has_reading_members());
}

/// What a replica answered to who copies its log: the end of its base, and the views of the entries.
fn copied(cluster: &mut Cluster) -> Option<(OpNumber, OpNumber, usize)> {
    let answer = |(_, _, message): (u64, usize, Message)| match message {
        Message::CommittedEntries { base, applied, entries, .. } => Some((base, applied, entries.len())),
        _ => None,
    };
    cluster.inbox.drain(..).find_map(answer)
}

#[test]
fn who_copies_the_log_gets_what_is_executed_and_nothing_else() {
    let (mut cluster, applied) = cluster();
    let mut want = |after, bytes_max| {
        cluster.pass(1);
        let message = Message::WantEntries { after: OpNumber(after), held: OpNumber(after), bytes_max };
        ask(&mut cluster, CLIENT, message);
        copied(&mut cluster)
    };
    assert_eq!(want(0, u64::MAX), Some((OpNumber(0), applied, applied.0 as usize)));
    // One at least, and none if it is only to keep them.
    assert_eq!(want(0, 1), Some((OpNumber(0), applied, 1)));
    assert_eq!(want(0, 0), Some((OpNumber(0), applied, 0)));
    for after in [applied.0, applied.0 + 1, u64::MAX] {
        assert_eq!(want(after, u64::MAX), Some((OpNumber(0), applied, 0)), "nothing is behind {after}");
    }
}

/// Fifteen bytes ask for a megabyte: whoever does not wait for the answer gets one.
#[test]
fn who_copies_the_log_asks_for_one_thing_at_a_time() {
    let (mut cluster, applied) = cluster();
    let want = Message::WantEntries { after: OpNumber(0), held: OpNumber(0), bytes_max: u64::MAX };
    let before = cluster.replicas[1].status().refused;
    for _ in 0..1_000 {
        ask(&mut cluster, CLIENT, want.clone());
    }
    assert_eq!(cluster.replicas[1].status().refused - before, 999);
    assert_eq!(copied(&mut cluster), Some((OpNumber(0), applied, applied.0 as usize)));
    assert_eq!(copied(&mut cluster), None);
    cluster.pass(1);
    ask(&mut cluster, CLIENT, want);
    assert!(copied(&mut cluster).is_some());
}

#[test]
fn many_clients_copy_the_log_and_the_last_ones_have_it_kept() {
    let (mut cluster, _) = cluster();
    for client in 0..1_000 {
        cluster.pass(1);
        let held = OpNumber(if client < 900 { 0 } else { 1 + client % 4 });
        let want = Message::WantEntries { after: OpNumber(9), held, bytes_max: 0 };
        ask(&mut cluster, Peer::Client(client), want);
    }
    assert_eq!(cluster.inbox.len(), 1_000, "each is answered");
    assert_eq!(cluster.replicas[1].held_by_copiers(), Some(OpNumber(1)));
    cluster.pass(60_000);
    assert_eq!(cluster.replicas[1].held_by_copiers(), None, "those that ask no more keep nothing");
}

/// A cluster of which no member keeps in memory what it has executed, and member 1 has executed some.
fn cluster_without_memory() -> (Cluster, OpNumber) {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| config.settings.log_keep_bytes = 0);
    let session = cluster.register();
    for sequence in 1..=20 {
        let update = cluster.request(session, sequence, cluster.now.wall.0, Path::Ordered, "uA");
        let leader = cluster.leader();
        cluster.send(&[leader], &update);
        cluster.deliver_all();
        cluster.pass(20);
    }
    cluster.inbox.clear();
    let base = cluster.replicas[1].log_base();
    assert!(base > OpNumber(10));
    (cluster, base)
}

fn want(after: u64) -> Message {
    Message::WantEntries { after: OpNumber(after), held: OpNumber(after), bytes_max: u64::MAX }
}

fn wanted(actions: &[Action]) -> Option<EntriesWanted> {
    actions.iter().find_map(|action| match action {
        Action::ReadEntries(wanted) => Some(*wanted),
        _ => None,
    })
}

#[test]
fn what_is_gone_from_memory_is_read_from_disk_and_told() {
    let (mut cluster, base) = cluster_without_memory();
    let asked = wanted(&ask(&mut cluster, CLIENT, want(3))).expect("it is read from disk");
    let replica = &cluster.replicas[1];
    assert_eq!((asked.after, asked.applied), (OpNumber(3), replica.applied()));
    assert_eq!(asked.ticket, replica.last_ticket());
    assert_eq!(copied(&mut cluster), None, "there is no answer yet");
    // One that does not wait gets nothing more.
    cluster.pass(1);
    assert_eq!(wanted(&ask(&mut cluster, CLIENT, want(3))), None);
    let entry = LogEntry { view: View(0), time: WallTime(5), payload: Payload::Tick };
    let entries = vec![entry.clone(), entry];
    let found = Some(ScannedEntries::Entries { after_view: View(0), entries });
    let (copier, after) = (asked.copier, asked.after);
    cluster.event(1, Event::EntriesRead { copier, after, found });
    let applied = cluster.replicas[1].applied();
    assert_eq!(copied(&mut cluster), Some((OpNumber(3), applied, 2)));
    // Of what is gone, it is told where the log begins, on disk or in memory.
    for (found, told) in [
        (Some(ScannedEntries::Gone { base: OpNumber(7), is_cut: true }), OpNumber(7)),
        (Some(ScannedEntries::Gone { base: OpNumber(1_000), is_cut: false }), base),
        (None, base),
    ] {
        cluster.pass(1);
        assert!(wanted(&ask(&mut cluster, CLIENT, want(3))).is_some());
        cluster.event(1, Event::EntriesRead { copier, after, found });
        let (has, _, count) = copied(&mut cluster).unwrap();
        assert_eq!((has.min(base), count), (told.min(cluster.replicas[1].log_base()), 0));
    }
    // One who only wants entries kept, and one who wants those in memory, have nothing read.
    cluster.pass(1);
    let keep = Message::WantEntries { after: OpNumber(3), held: OpNumber(3), bytes_max: 0 };
    assert_eq!(wanted(&ask(&mut cluster, CLIENT, keep)), None);
    cluster.pass(1);
    let base = cluster.replicas[1].log_base();
    assert_eq!(wanted(&ask(&mut cluster, CLIENT, want(base.0))), None);
}

#[test]
fn the_disk_is_read_for_few_at_a_time_and_the_others_hear_of_no_entries() {
    let (mut cluster, _) = cluster_without_memory();
    for client in 0..4 {
        assert!(wanted(&ask(&mut cluster, Peer::Client(client), want(3))).is_some());
    }
    assert_eq!(wanted(&ask(&mut cluster, MORE, want(3))), None);
    let applied = cluster.replicas[1].applied();
    assert_eq!(copied(&mut cluster), Some((OpNumber(3), applied, 0)), "it is to ask again");
    // One whose answer is not there yet keeps its place, one that does not ask any more does not.
    cluster.pass(60_000);
    assert_eq!(wanted(&ask(&mut cluster, MORE, want(3))), None);
    cluster.event(1, Event::EntriesRead { copier: Peer::Client(2), after: OpNumber(3), found: None });
    cluster.pass(60_000);
    assert!(wanted(&ask(&mut cluster, MORE, want(3))).is_some());
    cluster.event(1, Event::ClientGone(8));
    assert_eq!(wanted(&ask(&mut cluster, Peer::Client(9), want(3))), None, "what is read has its place");
    cluster.event(1, Event::EntriesRead { copier: Peer::Client(8), after: OpNumber(3), found: None });
    cluster.event(1, Event::ClientGone(8));
    cluster.pass(1);
    assert!(wanted(&ask(&mut cluster, Peer::Client(9), want(3))).is_some());
}

/// Member 2 asks member 1 for what follows this entry: what member 1 reads from its log on disk for that.
fn member_asks(cluster: &mut Cluster, after: u64) -> Option<EntriesWanted> {
    let message = Message::GetState { view: cluster.replicas[1].view(), from: OpNumber(after + 1) };
    wanted(&ask(cluster, Peer::Replica(ReplicaId(2)), message))
}

/// What member 1 found for it.
fn found_for_member(cluster: &mut Cluster, after: u64, found: Option<ScannedEntries>) -> Vec<Message> {
    let event = Event::EntriesRead { copier: Peer::Replica(ReplicaId(2)), after: OpNumber(after), found };
    let now = cluster.clock(1);
    let replica = &mut cluster.replicas[1];
    replica.handle(now, event);
    let to_member = |action| match action {
        Action::Send { to: Peer::Replica(ReplicaId(2)), message, .. } => Some(message),
        _ => None,
    };
    core::iter::from_fn(|| replica.poll()).filter_map(to_member).collect()
}

/// Nobody begins anew because a leader's memory does not hold what he lacks.
#[test]
fn a_member_gets_from_disk_what_is_gone_from_memory() {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, |config| {
        config.settings.log_keep_bytes = 0;
        config.settings.transfer_entries_max = 4;
    });
    let session = cluster.register();
    cluster.down.insert(2);
    cluster.update_times(session, 1..=60);
    cluster.down.remove(&2);
    cluster.pass(2_000);
    assert_eq!(cluster.executed[2].len(), 60);
    assert!(cluster.from_disk > 40, "{}", cluster.from_disk);
    cluster.update_times(session, 61..=65);
    assert_eq!(cluster.executed[2].len(), 65);
}

/// Memory does not hold any more what follows a snapshot when that is on disk: another one would not hold it either a moment later.
#[test]
fn one_snapshot_is_taken_for_members_that_have_nothing() {
    let (mut cluster, _) = cluster_without_memory();
    let nothing = Message::GetState { view: cluster.replicas[1].view(), from: OpNumber(1) };
    let member = Peer::Replica(ReplicaId(2));
    let first = taken(&ask(&mut cluster, member, nothing.clone())).expect("it has nothing");
    // No more than half of this stays for members that read a snapshot.
    cluster.replicas[1].config.settings.log_bytes_max = 1_000;
    let session = cluster.register();
    cluster.update_times(session, 1..=20);
    assert!(cluster.replicas[1].log_base() > first);
    assert_eq!(taken(&ask(&mut cluster, Peer::Replica(ReplicaId(0)), nothing.clone())), None, "it comes");
    finish(&mut cluster, first);
    assert_eq!(taken(&ask(&mut cluster, member, nothing)), None, "it is there");
    assert!(!cluster.replicas[1].wants_snapshot());
}

/// A file that rots would be offered for ever.
#[test]
fn a_snapshot_that_cannot_be_read_is_offered_to_nobody() {
    let (mut cluster, applied) = cluster();
    let want = Message::WantSnapshot { op_number: applied };
    assert_eq!(taken(&ask(&mut cluster, CLIENT, want.clone())), Some(applied));
    finish(&mut cluster, applied);
    cluster.register();
    cluster.event(1, Event::SnapshotUnreadable { op_number: OpNumber(0) });
    assert_eq!(taken(&ask(&mut cluster, CLIENT, want.clone())), None, "that was another one");
    cluster.event(1, Event::SnapshotUnreadable { op_number: applied });
    cluster.pass(1);
    assert_eq!(taken(&ask(&mut cluster, CLIENT, want)), Some(cluster.replicas[1].applied()));
}

#[test]
fn backups_do_not_keep_members_from_what_is_on_disk() {
    let (mut cluster, _) = cluster_without_memory();
    for client in 0..10 {
        let reads = wanted(&ask(&mut cluster, Peer::Client(100 + client), want(3))).is_some();
        assert_eq!(reads, client < 4);
    }
    let asked = member_asks(&mut cluster, 3).expect("it is read for the member as well");
    assert_eq!((asked.copier, asked.after), (Peer::Replica(ReplicaId(2)), OpNumber(3)));
    assert!(member_asks(&mut cluster, 3).is_none(), "it has not been answered yet");
    let entry = LogEntry { view: View(0), time: WallTime(5), payload: Payload::Tick };
    let entries = vec![entry.clone(), entry];
    let found = Some(ScannedEntries::Entries { after_view: View(0), entries: entries.clone() });
    let (view, commit) = (cluster.replicas[1].view(), cluster.replicas[1].commit());
    let state = Message::NewState { view, first: OpNumber(4), commit, entries };
    assert_eq!(found_for_member(&mut cluster, 3, found), [state]);
    assert!(!cluster.replicas[1].wants_snapshot());
}

/// Where the log on disk does not hold what a member lacks, cannot be read, or gives no answer, a snapshot is taken for it.
#[test]
fn a_member_gets_a_snapshot_where_the_disk_has_not_what_it_lacks() {
    let gone = Some(ScannedEntries::Gone { base: OpNumber(7), is_cut: true });
    let nothing = || Some(ScannedEntries::Entries { after_view: View(0), entries: Vec::new() });
    for found in [gone, None] {
        let (mut cluster, _) = cluster_without_memory();
        assert!(member_asks(&mut cluster, 3).is_some());
        assert!(!cluster.replicas[1].wants_snapshot());
        found_for_member(&mut cluster, 3, found);
        assert!(cluster.replicas[1].wants_snapshot());
        // It is not looked for again and again; something else is.
        assert!(member_asks(&mut cluster, 3).is_none());
        assert!(member_asks(&mut cluster, 9).is_some());
    }
    let (mut cluster, _) = cluster_without_memory();
    for attempt in 1..=6 {
        assert!(member_asks(&mut cluster, 3).is_some(), "{attempt}: reading goes on");
        assert!(!cluster.replicas[1].wants_snapshot());
        found_for_member(&mut cluster, 3, nothing());
    }
    assert!(cluster.replicas[1].wants_snapshot());
    let (mut cluster, _) = cluster_without_memory();
    assert!(member_asks(&mut cluster, 3).is_some());
    cluster.now.instant = cluster.now.instant.after(Duration::from_secs(4));
    assert!(member_asks(&mut cluster, 3).is_none() && cluster.replicas[1].wants_snapshot());
}
