//! When a read is answered, and out of which view.

use super::*;

#[test]
fn a_read_waits_for_what_is_pending_on_its_key_only() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    let view = View(0);
    cluster.send(&[0], &Message::Read { view, number: 1, asked: Asked::Answer, body: Body::from(*b"rB") });
    assert_eq!(cluster.reads, [(0, 1)]);
    cluster.send(&[0], &Message::Read { view, number: 2, asked: Asked::Answer, body: Body::from(*b"rA") });
    assert_eq!(cluster.reads, [(0, 1)]);
    cluster.deliver_all();
    assert_eq!((cluster.reads.clone(), cluster.executed[0].len()), (vec![(0, 1), (0, 2)], 1));
}

/// A reader that was told of an entry which a view change has dropped since would wait for ever, and take the
/// place of others.
#[test]
fn nobody_waits_for_an_entry_that_is_not_in_the_log() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Ordered, "uA1");
    cluster.send(&[0], &request);
    cluster.deliver_all();
    cluster.inbox.clear();
    let end = cluster.replicas[1].log.op_number();
    let ask = |cluster: &mut Cluster, replica: usize, after: OpNumber| {
        let asked = Asked::Value { after };
        let body = Body::from(*b"rA");
        cluster.send(&[replica], &Message::Read { view: View(0), number: 1, asked, body });
    };
    for replica in 0..3 {
        ask(&mut cluster, replica, end.next());
    }
    let refused = |(_, _, message): &(u64, usize, Message)| {
        matches!(message, Message::ReadRefused { refusal: Refusal::NotNormal, .. })
    };
    assert!(cluster.inbox.len() == 3 && cluster.inbox.iter().all(refused), "{:?}", cluster.inbox);
    // One that is in the log is waited for, and the value comes when it is executed.
    assert!(cluster.replicas[1].applied() < end && cluster.reads.is_empty());
    ask(&mut cluster, 1, end);
    assert!(cluster.reads.is_empty());
    cluster.pass(10);
    assert_eq!(cluster.reads, [(1, 1)]);
}

/// Found by seed 12017947: a client that was refused by a replica between views believed in a view that never began.
#[test]
fn a_reader_hears_of_no_view_that_has_not_begun() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let moved = Message::StartViewChange { view: View(4), reason: ViewChangeReason::Moved };
    cluster.event(2, Event::Message { from: Peer::Replica(ReplicaId(0)), message: moved });
    assert_eq!((cluster.replicas[2].view(), cluster.replicas[2].is_normal()), (View(4), false));
    cluster.inbox.clear();
    for asked in [Asked::Value { after: OpNumber(0) }, Asked::StaleValue] {
        let message = Message::Read { view: View(0), number: 1, asked, body: Body::from(*b"rA") };
        cluster.replicas[2].handle(cluster.now, Event::Message { from: CLIENT, message });
    }
    let told = core::iter::from_fn(|| cluster.replicas[2].poll()).filter_map(|action| match action {
        Action::Send { to: Peer::Client(_), message: Message::ReadRefused { view, refusal, .. }, .. } => {
            Some((view, Some(refusal)))
        }
        Action::Read { view, .. } => Some((view, None)),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(View(0), Some(Refusal::NotNormal)), (View(0), None)]);
}

#[test]
fn a_leader_without_lease_answers_after_a_round_of_heartbeats() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.register();
    cluster.now.instant.0 += 260_000_000;
    cluster.send(
        &[0],
        &Message::Read { view: View(0), number: 1, asked: Asked::Answer, body: Body::from(*b"rA") },
    );
    assert!(cluster.reads.is_empty());
    cluster.deliver_all();
    assert_eq!(cluster.reads, [(0, 1)]);
}

/// An engine on disk answers later than it is asked, and a driver handles several events before it looks at what is to
/// be done: what happens in between may be of another view than the answer says it is of.
#[test]
fn an_answer_names_the_entry_that_was_executed_when_it_was_asked_for() {
    let mut cluster = Cluster::new(1, FastQuorum::Majority);
    let session = cluster.register();
    cluster.stuck = true;
    let before = cluster.replicas[0].applied();
    let message = cluster.request(session, 1, 1_000_001, Path::Ordered, "oA1");
    cluster.event(0, Event::Message { from: CLIENT, message });
    let through = cluster.replicas[0].apply_requested;
    assert!(through > before, "the engine is to execute it");
    let (asked, body) = (Asked::Value { after: OpNumber(0) }, Body::from(*b"rA"));
    let message = Message::Read { view: View(0), number: 1, asked, body };
    cluster.replicas[0].handle(cluster.now, Event::Message { from: CLIENT, message });
    cluster.replicas[0].handle(cluster.now, Event::Applied { through, replies: Vec::new() });
    let named = core::iter::from_fn(|| cluster.replicas[0].poll()).find_map(|action| match action {
        Action::Read { applied, .. } => Some(applied),
        _ => None,
    });
    assert_eq!(named, Some(before));
}

/// What changes nothing is answered as a read of the leader would be that need not wait.
#[test]
fn only_a_leader_with_a_lease_reads_at_once_what_nothing_pending_concerns() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    cluster.pass(30);
    let footprint = |body: &[u8]| (cluster.replicas[0].config.describe)(body).unwrap().footprint;
    let (a, b) = (footprint(b"oA1"), footprint(b"oB1"));
    let reads = |cluster: &mut Cluster, replica: usize, footprint: &Footprint| {
        let now = cluster.now;
        cluster.replicas[replica].reads_at_once(now, footprint)
    };
    let is_certain = |told| matches!(told, ReadAtOnce::Certain(_));
    assert!(is_certain(reads(&mut cluster, 0, &a)));
    assert_eq!(reads(&mut cluster, 1, &a), ReadAtOnce::Uncertain);
    assert_eq!(reads(&mut cluster, 0, &Footprint::All), ReadAtOnce::Uncertain);
    // Of one key an update is pending, that of the other is not.
    cluster.stuck = true;
    let request = cluster.request(session, 1, 1_000_001, Path::Ordered, "oA1");
    cluster.event(0, Event::Message { from: CLIENT, message: request });
    assert_eq!(reads(&mut cluster, 0, &a), ReadAtOnce::Pending);
    assert!(is_certain(reads(&mut cluster, 0, &b)));
    // Without room, what would make the state grow is refused, though it might not.
    for (event, again) in [
        (
            Event::MemoryRoom { bytes: -1, leader_margin: 0 },
            Event::MemoryRoom { bytes: 1 << 30, leader_margin: 0 },
        ),
        (Event::DiskRoom(0), Event::DiskRoom(u64::MAX)),
    ] {
        cluster.replicas[0].handle(cluster.now, event);
        assert_eq!(reads(&mut cluster, 0, &b), ReadAtOnce::Uncertain);
        cluster.replicas[0].handle(cluster.now, again);
        assert!(is_certain(reads(&mut cluster, 0, &b)));
    }
    // Nobody has promised anything for longer than that.
    cluster.now.instant.0 += 260_000_000;
    assert_eq!(reads(&mut cluster, 0, &b), ReadAtOnce::Uncertain);
}
