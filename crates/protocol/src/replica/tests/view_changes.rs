//! What a view change recovers, and who takes part.

use super::*;

#[test]
fn a_view_change_recovers_what_was_acknowledged() {
    for mode in [FastQuorum::Majority, FastQuorum::Supermajority] {
        for n in [3, 5, 7, 9] {
            let mut cluster = Cluster::new(n, mode);
            let session = cluster.register();
            let everyone: Vec<usize> = (0..n).collect();
            for (sequence, body) in [(1, "oA1"), (2, "oB1"), (3, "oA2")] {
                let request = cluster.request(session, sequence, sequence, Path::Durability, body);
                cluster.send(&everyone, &request);
            }
            cluster.down.insert(0);
            cluster.wire.clear();
            cluster.pass(700);
            assert_eq!(cluster.leader(), 1);
            let expected: &[&str] =
                if mode == FastQuorum::Majority { &["oB1", "oA2"] } else { &["oA1", "oB1", "oA2"] };
            assert!(
                cluster.executed[1..].iter().all(|executed| executed == expected),
                "{:?}",
                cluster.executed
            );
            // The old leader, which slept, is let in again.
            cluster.down.clear();
            cluster.pass(300);
            assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view() == View(1)));
            assert_eq!(cluster.executed[0], expected);
        }
    }
}

#[test]
fn one_replica_without_links_disturbs_nobody() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.down.insert(2);
    cluster.pass(2000);
    cluster.down.clear();
    cluster.pass(500);
    assert!(cluster.replicas.iter().all(|replica| replica.view() == View(0) && replica.is_normal()));
}

/// Whose view changes have come to nothing waits longer each time. Those that have not waited in vain need
/// not wait for it: found by the simulator, as a group that took seconds to go on.
#[test]
fn a_replica_that_has_backed_off_goes_along_with_others() {
    let mut cluster = Cluster::new(5, FastQuorum::Majority);
    let start_view_change = |from: u8, view: u64, reason: ViewChangeReason| Event::Message {
        from: Peer::Replica(ReplicaId(from)),
        message: Message::StartViewChange { view: View(view), reason },
    };
    for view in 1..=6 {
        cluster.event(4, start_view_change(0, view, ViewChangeReason::Moved));
    }
    assert_eq!(cluster.replicas[4].view(), View(6));
    cluster.event(4, start_view_change(1, 7, ViewChangeReason::Suspicion));
    assert_eq!(cluster.replicas[4].view(), View(6), "one alone may have a bad link");
    cluster.event(4, start_view_change(2, 7, ViewChangeReason::Suspicion));
    assert_eq!(cluster.replicas[4].view(), View(7), "f others and this one are a majority");
}

#[test]
fn a_follower_far_behind_catches_up_across_a_view_change() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    cluster.down.insert(2);
    for sequence in 1..=20_000 {
        let request = cluster.request(session, sequence, sequence, Path::Ordered, "uA1");
        cluster.send(&[0], &request);
        cluster.deliver_all();
    }
    assert_eq!(cluster.executed[0].len(), 20_000);
    // A new view, in which the laggard is needed.
    let view = View(3);
    let reason = ViewChangeReason::Moved;
    let from = Peer::Replica(ReplicaId(1));
    cluster.event(0, Event::Message { from, message: Message::StartViewChange { view, reason } });
    cluster.deliver_all();
    cluster.down.clear();
    cluster.down.insert(1);
    cluster.pass(2000);
    assert_eq!(cluster.executed[2].len(), 20_000);
    assert!(cluster.replicas[2].is_normal());
}

#[test]
fn recovered_updates_are_one_entry() {
    let mut cluster = Cluster::new(3, FastQuorum::Supermajority);
    let session = cluster.register();
    for (sequence, body) in [(1, "mA1"), (2, "mB1")] {
        let request = cluster.request(session, sequence, sequence, Path::Durability, body);
        cluster.send(&[0, 1, 2], &request);
    }
    cluster.down.insert(0);
    cluster.pass(700);
    let entry = cluster.replicas[1].entry(cluster.replicas[1].applied()).clone();
    assert!(matches!(entry.payload, Payload::Recovered(updates) if updates.len() == 2));
}

#[test]
fn recovery_leaves_out_only_what_is_dealt_with() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    cluster.send(&[0, 1, 2], &cluster.request(session, 1, 1, Path::Durability, "oa1"));
    cluster.pass(50);
    let replica = &cluster.replicas[1];
    let id = |session, sequence| OperationId { session, sequence };
    assert!(!replica.may_recover(id(session, 1)), "executed");
    assert!(!replica.may_recover(id(session, 0)), "acknowledged");
    assert!(replica.may_recover(id(session, 2)));
    // What was executed here may be far behind what the leader had executed when it accepted this.
    assert!(replica.may_recover(id(session, 1 + 2 * crate::sessions::SESSION_WINDOW_MAX)));
    assert!(!replica.may_recover(id(SessionId(replica.applied.0), 1)), "no such session, or no longer");
    assert!(replica.may_recover(id(SessionId(replica.applied.0 + 1), 1)), "registered in entries to come");
}

/// Every view change has a cause in the trace of each replica that takes part, and says how long it took.
#[test]
fn replicas_say_why_views_change() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.pass(100);
    assert_eq!(cluster.traced, []);
    cluster.down.insert(0);
    cluster.pass(400);
    let (view, leader) = (View(0), ReplicaId(0));
    for member in [1, 2] {
        let events = cluster.traced.iter().filter(|(replica, _)| *replica == member);
        let [suspected, left, entered] = events.map(|(_, event)| *event).collect::<Vec<_>>()[..] else {
            unreachable!("{:?}", cluster.traced)
        };
        let TraceEvent::Suspected { silent, .. } = suspected else { unreachable!("{suspected:?}") };
        assert!(silent >= cluster.replicas[member].config.settings.suspect_after);
        assert_eq!(suspected, TraceEvent::Suspected { view, leader, silent });
        let TraceEvent::LeftView { from: View(0), to: View(1), cause } = left else {
            unreachable!("{left:?}")
        };
        let (silent, followed) =
            (ViewChangeCause::LeaderSilent, ViewChangeCause::Followed(ReplicaId(3 - member as u8)));
        assert!(cause == silent || cause == followed, "{cause:?}");
        let TraceEvent::EnteredView { took, .. } = entered else { unreachable!("{entered:?}") };
        assert!(took < Duration::from_millis(10));
        assert_eq!(entered, TraceEvent::EnteredView { view: View(1), leader: ReplicaId(1), took });
    }
    // The old one comes back and finds the view gone; then the leader is told to let it lead.
    cluster.down.clear();
    cluster.pass(100);
    assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view == View(1)));
    cluster.traced.clear();
    cluster.send(&[1], &Message::HandOver { to: ReplicaId(2) });
    cluster.pass(50);
    let cause = ViewChangeCause::HandedOver(ReplicaId(2), HandOverReason::Requested);
    assert_eq!(cluster.traced[0], (1, TraceEvent::LeftView { from: View(1), to: View(2), cause }));
    assert!(cluster.traced.contains(&(
        0,
        TraceEvent::LeftView { from: View(1), to: View(2), cause: ViewChangeCause::LeaderLeft }
    )));
}

/// A leader that was stopped hears first of all that the others have moved on. It follows them; taking the lead back
/// would cost the group another view change.
#[test]
fn a_leader_that_was_stopped_leaves_the_lead_to_its_successor() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    cluster.pass(1_000);
    cluster.down.insert(0);
    cluster.pass(400);
    assert_eq!((cluster.leader(), cluster.replicas[1].view()), (1, View(1)));
    cluster.down.clear();
    let moved = Message::StartViewChange { view: View(1), reason: ViewChangeReason::Moved };
    cluster.event(0, Event::Message { from: Peer::Replica(ReplicaId(2)), message: moved });
    cluster.deliver_all();
    cluster.pass(100);
    assert!(cluster.replicas.iter().all(|replica| replica.is_normal() && replica.view() == View(1)));
}

/// Only member 4 can lead: it, 1 and 2 are a majority, and 1 and 2 hear it and nobody else of them. Member 3 hears 1 and 2, and only
/// 4 hears it. 4 lacks what is committed, and goes by 3's log, who never hears that it is asked; 1 and 2 can give it as well.
fn lead_though_the_source_is_deaf(bug: Option<PlantedBug>) -> bool {
    let mut cluster = Cluster::with(5, FastQuorum::Majority, planted(bug));
    let session = cluster.register();
    (0..4).for_each(|other| cluster.cut_between(4, other));
    for sequence in 1..10 {
        let request = cluster.request(session, sequence, sequence, Path::Ordered, "oA1");
        cluster.send(&[0], &request);
        cluster.pass(1);
    }
    cluster.pass(100);
    cluster.down.insert(0);
    cluster.cut.clear();
    cluster.cut_between(1, 2);
    cluster.cut.extend([(4, 3), (3, 1), (3, 2)]);
    let committed = |cluster: &Cluster| cluster.replicas.iter().map(Replica::commit).max();
    let before = committed(&cluster);
    for second in 0..30 {
        cluster.pass(1_000);
        for leader in (1..5).filter(|member| cluster.replicas[*member].is_leader()).collect::<Vec<_>>() {
            let (from, view) = (Peer::Client(1_000 + second), cluster.replicas[leader].view());
            let message = Message::Register { view, nonce: 1_000 + second };
            cluster.event(leader, Event::Message { from, message });
        }
    }
    committed(&cluster) > before
}

#[test]
fn a_new_leader_does_without_a_member_that_does_not_hear_it() {
    assert!(lead_though_the_source_is_deaf(None));
}

#[cfg(feature = "planted-bugs")]
#[test]
fn a_new_leader_that_asks_one_member_alone_waits_for_ever() {
    assert!(!lead_though_the_source_is_deaf(Some(PlantedBug::SourceAskedAlone)));
}
