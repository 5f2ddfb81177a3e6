//! How an update is accepted, ordered and executed, and whose body counts.

use super::*;

#[test]
fn a_nilext_update_is_acknowledged_before_it_is_ordered() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    assert!(cluster.executed.iter().all(Vec::is_empty));
    cluster.pass(30);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
    assert!(cluster.replicas.iter().all(|replica| replica.dlog.is_empty()));
    // A duplicate is answered and not executed.
    cluster.send(&[0, 1], &request);
    assert_eq!(cluster.answers(), [(0, "committed"), (1, "ok")]);
    cluster.pass(30);
    assert_eq!(cluster.executed[0].len(), 1);
}

#[test]
fn an_older_timestamp_conflicts_and_the_leader_orders_at_once() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let newer = cluster.request(session, 1, 50, Path::Durability, "oA1");
    let older = cluster.request(session, 2, 40, Path::Durability, "oA2");
    cluster.send(&[0, 1, 2], &newer);
    cluster.answers();
    cluster.send(&[0, 1, 2], &older);
    cluster.deliver_all();
    assert_eq!(cluster.answers(), [(1, "conflict"), (2, "conflict"), (0, "committed")]);
    assert_eq!(cluster.executed[0], ["oA1", "oA2"]);
}

#[test]
fn a_reference_without_body_is_fetched() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1], &request);
    cluster.pass(100);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// Two bodies under one id: what the leader holds is what everybody executes. Before references carried a hash, the third
/// replica executed the other one.
#[test]
fn another_body_under_the_same_id_is_not_executed() {
    for path in [Path::Durability, Path::Ordered] {
        let mut cluster = Cluster::new(3, FastQuorum::Majority);
        let session = cluster.register();
        let other = cluster.request(session, 1, 5, Path::Durability, "oB2");
        cluster.send(&[2], &other);
        let request = cluster.request(session, 1, 5, path, "oA1");
        let recipients: &[usize] = if path == Path::Ordered { &[0] } else { &[0, 1] };
        cluster.send(recipients, &request);
        cluster.pass(100);
        assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]), "{:?}", cluster.executed);
        // Nothing of the other one is left behind: an older update of its key is accepted by all.
        cluster.answers();
        let next = cluster.request(session, 2, 4, Path::Durability, "oB3");
        cluster.send(&[0, 1, 2], &next);
        assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    }
}

/// An `Ok` for an id says nothing of another body: whoever holds one refuses it by name.
#[test]
fn another_body_under_the_same_id_is_refused() {
    let mut cluster = Cluster::new(3, FastQuorum::Majority);
    let session = cluster.register();
    let request = cluster.request(session, 1, 5, Path::Durability, "oA1");
    cluster.send(&[0, 1, 2], &request);
    assert_eq!(cluster.answers(), [(0, "ok"), (1, "ok"), (2, "ok")]);
    for path in [Path::Durability, Path::Ordered] {
        let other = cluster.request(session, 1, 5, path, "oA2");
        let to: &[usize] = if path == Path::Ordered { &[0] } else { &[0, 1, 2] };
        cluster.send(to, &other);
        let refused = |(_, _, message): (u64, usize, Message)| {
            matches!(message, Message::Refused { refusal: Refusal::OtherOperation, .. })
        };
        assert_eq!(cluster.inbox.len(), to.len());
        assert!(cluster.inbox.drain(..).all(refused));
    }
    // So does a follower that has no more than the log of it.
    cluster.replicas[0].order_all();
    cluster.event(0, Event::Tick);
    cluster.deliver_all();
    let other = cluster.request(session, 1, 5, Path::Durability, "oA2");
    cluster.send(&[1], &other);
    assert_eq!(cluster.answers(), [(1, "refused")]);
    cluster.pass(30);
    assert!(cluster.executed.iter().all(|executed| executed == &["oA1"]));
}

/// Whoever was not sent an update by its client has it with the Prepare, and nobody else does.
#[test]
fn those_that_a_client_spares_get_the_body_from_the_leader() {
    let mut cluster = Cluster::new(5, FastQuorum::Majority);
    let session = cluster.register();
    let spread: ReplicaSet = [0, 1, 3].map(ReplicaId).into_iter().collect();
    let Message::Request { view, path, request, .. } =
        cluster.request(session, 1, 5, Path::Durability, "oA1")
    else {
        unreachable!()
    };
    let request = Message::Request { view, path, recipients: spread, request };
    cluster.send(&[0, 1, 3], &request);
    let everybody = cluster.request(session, 2, 6, Path::Durability, "oB1");
    cluster.send(&[0, 1, 2, 3, 4], &everybody);
    cluster.replicas[0].order_all();
    cluster.replicas[0].emit_batch();
    let mut full = [const { Vec::new() }; 5];
    while let Some(action) = cluster.replicas[0].poll() {
        if let Action::Send { to: Peer::Replica(to), message: Message::Prepare { entries, .. }, .. } = action
        {
            full[to.index()] = entries.iter().map(|entry| matches!(entry, Prepared::Full(_))).collect();
        }
    }
    let [spared, known] = [vec![true, false], vec![false, false]];
    assert_eq!(full, [vec![], known.clone(), spared.clone(), known, spared]);
    // The next batch does not have it again.
    let request = cluster.request(session, 3, 7, Path::Durability, "oC1");
    cluster.send(&[0, 1, 2, 3, 4], &request);
    cluster.replicas[0].order_all();
    assert!(
        cluster.replicas[0]
            .role
            .leading()
            .is_some_and(|leader| leader.batch.bodies.is_empty() && leader.batch.bytes == 0)
    );
}

#[test]
fn malformed_and_misplaced_requests_are_refused_without_a_trace() {
    let mut cluster = Cluster::new(3, FastQuorum::Supermajority);
    let session = cluster.register();
    for (path, body) in
        [(Path::Durability, "x"), (Path::Durability, ""), (Path::Durability, "uA"), (Path::Ordered, "rA")]
    {
        let request = cluster.request(session, 1, 5, path, body);
        cluster.send(&[0], &request);
        assert_eq!(cluster.answers(), [(0, "refused")], "{body}");
    }
    let skewed = cluster.request(session, 1, u64::MAX, Path::Durability, "oA");
    let unknown = cluster.request(SessionId(99), 1, 5, Path::Ordered, "uA");
    cluster.send(&[0], &skewed);
    cluster.send(&[0], &unknown);
    assert_eq!(cluster.answers(), [(0, "refused"), (0, "refused")]);
    cluster.pass(50);
    assert!(cluster.executed[0].is_empty() && cluster.replicas[0].dlog.is_empty());
}

/// What an engine on disk has yet to execute is bounded: beyond, updates are refused, and taken again when it has
/// caught up.
#[test]
fn an_engine_that_is_behind_is_not_outrun() {
    let mut cluster = Cluster::new(1, FastQuorum::Majority);
    cluster.replicas[0].config.engine_is_durable = true;
    let session = cluster.register();
    let body = ["ua", &"x".repeat(1 << 20)].concat();
    let mut sequence = 0;
    let mut send = |cluster: &mut Cluster| {
        sequence += 1;
        let message = cluster.request(session, sequence, 1_000_000 + sequence, Path::Ordered, &body);
        cluster.event(0, Event::Message { from: CLIENT, message });
        cluster.pass(1);
        let refused = |(_, _, message): &(u64, usize, Message)| {
            matches!(message, Message::Refused { refusal: Refusal::Overloaded, .. })
        };
        let refused = cluster.inbox.iter().any(refused);
        cluster.inbox.clear();
        refused
    };
    cluster.stuck = true;
    let taken = (0..100).take_while(|_| !send(&mut cluster)).count();
    assert!((60..=65).contains(&taken), "{taken} updates of 1 MiB were taken");
    assert!(send(&mut cluster), "nothing has changed");
    cluster.stuck = false;
    let through = cluster.replicas[0].commit;
    cluster.replicas[0].apply_requested = through;
    cluster.apply(0, through);
    assert!(!send(&mut cluster), "there is room again");
}
