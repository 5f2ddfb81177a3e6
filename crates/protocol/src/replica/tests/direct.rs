//! What a follower counts as committed, and whom it answers.

use super::*;

/// A follower whose front end has asked the leader for an update: the leader has it in its log, and the follower waits for
/// word of the leader's disk.
fn waiting(bug: Option<PlantedBug>) -> (Cluster, View, OpNumber) {
    let mut cluster = Cluster::with(3, FastQuorum::Majority, planted(bug));
    cluster.event(1, Event::OwnFrontEnd(7));
    let session = cluster.register();
    cluster.pass(5);
    cluster.inbox.clear();
    // The third member hears nothing, so that only the leader and the follower can be the majority.
    cluster.down.insert(2);
    cluster.unwritten.insert(0, Ticket(0));
    let view = cluster.replicas[0].view();
    let update = cluster.request(session, 1, 1, Path::Ordered, "uA1");
    cluster.send(&[0], &update);
    let number = cluster.replicas[0].log.op_number();
    cluster.deliver_all();
    (cluster, view, number)
}

fn log_durable(cluster: &mut Cluster, view: View, op_number: OpNumber) {
    let message = Message::LogDurable { view, op_number };
    cluster.event(1, Event::Message { from: Peer::Replica(ReplicaId(0)), message });
}

#[test]
fn a_follower_answers_its_own_front_end_when_the_leader_has_the_entry_on_disk() {
    let (mut cluster, ..) = waiting(None);
    assert_eq!(cluster.answers(), [], "the leader's disk takes its time");
    let ticket = cluster.unwritten.remove(&0).unwrap();
    cluster.event(0, Event::Persisted(ticket));
    cluster.inbox.clear();
    // Of all that the leader sends now, only the word about its log arrives.
    cluster.wire.retain(|(_, _, message)| matches!(message, Message::LogDurable { .. }));
    cluster.deliver_all();
    assert_eq!(cluster.answers(), [(1, "committed")]);
    assert_eq!(cluster.executed[1].last().map(String::as_str), Some("uA1"));
}

#[test]
fn what_a_member_said_of_its_log_in_another_view_does_not_count() {
    for bug in [None, Some(PlantedBug::LogOfAnyView)] {
        let (mut cluster, view, number) = waiting(bug);
        log_durable(&mut cluster, view.next(), number);
        let counts = bug.is_some() && cfg!(feature = "planted-bugs");
        assert_eq!(!cluster.answers().is_empty(), counts, "{bug:?}");
    }
}

#[test]
fn a_follower_answers_nobody_else() {
    // The same client, but it is not this process's front end.
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let update = cluster.request(session, 1, 1, Path::Ordered, "uA1");
    cluster.send(&[0], &update);
    cluster.pass(50);
    assert_eq!(cluster.answers(), [(0, "committed")]);

    // It is, and shows another nonce than the session was registered with.
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    cluster.event(1, Event::OwnFrontEnd(9));
    let from = Peer::Client(9);
    cluster.event(1, Event::Message { from, message: Message::Attach { session, nonce: 2 } });
    let update = cluster.request(session, 1, 1, Path::Ordered, "uA1");
    cluster.send(&[0], &update);
    cluster.pass(50);
    assert_eq!(cluster.answers(), [(0, "committed")]);
}

/// A client that is no node asks a follower for answers, and shows whose session it is.
#[test]
fn a_follower_answers_who_asks_for_that_and_knows_the_nonce() {
    let is_wrong = |bug: PlantedBug| planted(Some(bug));
    for (nonce, config, is_answered) in [
        (1, planted(None), true),
        (2, planted(None), false),
        (2, is_wrong(PlantedBug::DirectToStranger), cfg!(feature = "planted-bugs")),
    ] {
        let mut cluster = Cluster::with(3, FastQuorum::Majority, config);
        let session = cluster.register();
        cluster.pass(5);
        cluster.down.insert(2);
        let ask = Message::AnswerDirectly { session, nonce, lasting: Duration::from_secs(1) };
        cluster.event(1, Event::Message { from: CLIENT, message: ask.clone() });
        cluster.deliver_all();
        cluster.inbox.clear();
        let update = cluster.request(session, 1, 1, Path::Ordered, "uA1");
        cluster.send(&[0], &update);
        cluster.deliver_all();
        let answers = cluster.answers();
        assert_eq!(answers.contains(&(1, "committed")), is_answered, "{nonce}: {answers:?}");
        assert!(answers.contains(&(0, "committed")));
        // Not when it has found out that its data differs.
        cluster.replicas[1].diverged = Some(OpNumber(1));
        let update = cluster.request(session, 7, 7, Path::Ordered, "uA3");
        cluster.send(&[0], &update);
        cluster.deliver_all();
        assert_eq!(cluster.answers(), [(0, "committed")]);
        cluster.replicas[1].diverged = None;
        // Nor when the client does not want it any more, or its connection is gone.
        let no_more = Message::AnswerDirectly { session, nonce, lasting: Duration::ZERO };
        for (sequence, event) in
            [(2, Event::Message { from: CLIENT, message: no_more }), (3, Event::ClientGone(7))]
        {
            cluster.event(1, event);
            let update = cluster.request(session, sequence, sequence, Path::Ordered, "uA2");
            cluster.send(&[0], &update);
            cluster.deliver_all();
            assert_eq!(cluster.answers(), [(0, "committed")]);
            cluster.event(1, Event::Message { from: CLIENT, message: ask.clone() });
        }
    }
}
