//! What waits for which record.

use super::*;

/// Found by seed 70053421: a leader told a client what an update returned, and had forgotten the view it led after a
/// crash. Leading the same view once more, with another log, it would have been believed.
#[test]
fn nothing_is_told_out_of_a_view_that_a_crash_undoes() {
    let mut cluster = Cluster::new(3, FastQuorum::NilextOrCommutative);
    let session = cluster.register();
    cluster.down.insert(0);
    cluster.unwritten.insert(1, Ticket(0));
    let leads = |cluster: &Cluster| cluster.replicas[1].is_leader() && cluster.replicas[1].is_normal();
    for _ in 0..5_000 {
        if leads(&cluster) {
            break;
        }
        cluster.pass(1);
    }
    assert!(leads(&cluster) && cluster.unwritten[&1] > Ticket(0), "it does not wait for its own disk");
    cluster.inbox.clear();
    let view = cluster.replicas[1].view();
    let read = |number| Message::Read {
        view,
        number,
        asked: Asked::Value { after: OpNumber(0) },
        body: Body::from(*b"rA"),
    };
    let update = |sequence| {
        let id = OperationId { session, sequence };
        let request = Request { id, micros: 5, acked_below: 1, body: Body::from(*b"uB1") };
        Message::Request { view, path: Path::Durability, recipients: ReplicaSet::ALL, request }
    };
    cluster.attach(session);
    cluster.send(&[1], &read(1));
    cluster.send(&[1], &update(1));
    let refused = Message::ReadRefused { view: View(0), number: 1, refusal: Refusal::NotNormal };
    assert_eq!(cluster.inbox, [(7, 1, refused)]);
    assert_eq!((cluster.reads.len(), cluster.evaluated), (0, 0), "the update is ordered instead");
    let ticket = cluster.unwritten.remove(&1).unwrap();
    cluster.event(1, Event::Persisted(ticket));
    cluster.pass(50);
    assert!(cluster.executed[1].iter().any(|body| body == "uB1"));
    cluster.send(&[1], &read(2));
    cluster.send(&[1], &update(2));
    assert_eq!((cluster.reads.len(), cluster.evaluated), (1, 1));
}

/// What it waits for itself, a replica has to be told at once; of the rest it may hear later.
#[test]
fn replicas_await_their_view_and_leaders_their_entries() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    for replica in [0, 1] {
        cluster.unwritten.insert(replica, Ticket(0));
    }
    let awaited = |cluster: &Cluster| [0, 1].map(|replica| cluster.replicas[replica].awaited());
    assert_eq!(awaited(&cluster), [None, None]);
    let update = cluster.request(session, 1, 1, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &update);
    let accepted = cluster.unwritten.clone();
    assert!(accepted.values().all(|ticket| *ticket > Ticket(0)), "its record is on its way to the disk");
    assert_eq!(awaited(&cluster), [None, None], "clients wait for that, and nobody else");
    cluster.pass(10);
    let ordered = cluster.unwritten.clone();
    assert!(ordered.iter().all(|(replica, ticket)| *ticket > accepted[replica]));
    assert_eq!(awaited(&cluster), [Some(ordered[&0]), None], "a leader counts its own copies");
    cluster.event(0, Event::Persisted(accepted[&0]));
    assert_eq!(awaited(&cluster), [Some(ordered[&0]), None]);
    cluster.event(0, Event::Persisted(ordered[&0]));
    assert_eq!(awaited(&cluster), [None, None]);

    // The follower, which has heard of nothing, goes on to lead: it counts its copies as well, and waits for its view.
    cluster.down.insert(0);
    cluster.pass(1_000);
    assert!(cluster.replicas[1].is_leader());
    assert_eq!(awaited(&cluster)[1], Some(ordered[&1]));
    cluster.event(1, Event::Persisted(ordered[&1]));
    assert!(awaited(&cluster)[1] > Some(ordered[&1]));
    let newest = cluster.unwritten.remove(&1).unwrap();
    cluster.event(1, Event::Persisted(newest));
    cluster.pass(50);
    assert!(cluster.replicas[1].is_normal());
    assert_eq!(awaited(&cluster)[1], None);
}

#[test]
fn a_replica_whose_disk_takes_nothing_tells_its_status() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    // Its view never reaches the disk.
    cluster.unwritten.insert(0, Ticket(0));
    cluster.event(0, Event::StepDown);
    assert!(!cluster.replicas[0].persistence.has_view());
    let now = cluster.clock(0);
    cluster.replicas[0].handle(now, Event::PersistFailed);
    cluster.replicas[0].handle(now, Event::Message { from: CLIENT, message: Message::StatusRequest });
    let answer = core::iter::from_fn(|| cluster.replicas[0].poll()).find_map(|action| match action {
        Action::Send { message: Message::Status(report), after, .. } => Some((report, after)),
        _ => None,
    });
    let (report, after) = answer.unwrap();
    assert!(report.disk_failed && report.role == RoleName::ViewChange, "{report:?}");
    assert!(after <= cluster.replicas[0].persistence.persisted(), "it waits for {after:?}");
}
